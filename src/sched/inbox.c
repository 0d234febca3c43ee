/* SPDX-License-Identifier: MIT
 *
 * inbox - the list of a worker's own; the idea is in inbox.h.
 */
#include "sched/inbox.h"

/* Tasks fetched from `remote` at once. Doubled: twice the stack, for half a read-modify-write less. */
#define FETCH_BATCH 32

void weft__inbox_init(struct weft__inbox *inbox)
{
    weft__inject_init(&inbox->remote);
    inbox->first = NULL;
    inbox->last = NULL;
    inbox->in_turn = false;
}

void weft__inbox_push(struct weft__inbox *inbox, struct weft_task *t)
{
    store_relaxed(&t->link, NULL); /* relaxed, both: the list is this thread's */
    if (inbox->first) {
        store_relaxed(&inbox->last->link, t);
    } else {
        inbox->first = t;
    }
    inbox->last = t;
}

void weft__inbox_push_remote(struct weft__inbox *inbox, struct weft_task *t)
{
    weft__inject_push(&inbox->remote, t);
}

static void fetch(struct weft__inbox *inbox)
{
    struct weft_task *got[FETCH_BATCH];
    uint32_t count = weft__inject_pop(&inbox->remote, FETCH_BATCH, got);
    for (uint32_t i = 0; i < count; i++)
        weft__inbox_push(inbox, got[i]);
}

struct weft_task *weft__inbox_take(struct weft__inbox *inbox)
{
    if (!weft__inject_idle(&inbox->remote)) fetch(inbox);
    struct weft_task *t = inbox->first;
    if (t) inbox->first = load_relaxed(&t->link); /* relaxed: the list is this thread's */
    return t;
}

struct weft_task *weft__inbox_take_in_turn(struct weft__inbox *inbox)
{
    inbox->in_turn = !inbox->in_turn;
    return inbox->in_turn ? weft__inbox_take(inbox) : NULL;
}
