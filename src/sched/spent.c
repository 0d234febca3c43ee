/* SPDX-License-Identifier: MIT
 *
 * spent - the ring of blocks that wait, and who is told; the idea is in spent.h.
 */
#include "sched/spent.h"

#if defined(WEFT_DEBUG)

#include "base/slab.h"
#include "task/name.h"
#include "task/state.h"

#include <stdio.h>
#include <stdlib.h>

bool weft__spent_waits(const struct weft_task *task)
{
    return !weft__slab_pooled(task);
}

struct weft_task *weft__spent_put(struct weft__spent *spent, struct weft_task *task)
{
    if (spent->closed) return task;
    /* The last one to let go leaves its reference in. relaxed: for who is wrong in any order */
    fetch_and_relaxed(&task->state, ~WEFT__STATE_REFS);
    struct weft_task *oldest = spent->ring[spent->next];
    spent->ring[spent->next] = task;
    spent->next = (spent->next + 1) % WEFT__SPENT_MAX;
    return oldest;
}

struct weft_task *weft__spent_close(struct weft__spent *spent)
{
    spent->closed = true;
    for (uint32_t i = 0; i < WEFT__SPENT_MAX; i++) {
        struct weft_task *task = spent->ring[i];
        spent->ring[i] = NULL;
        if (task) return task;
    }
    return NULL;
}

/* The block is free, and may hold anything but a task. */
__attribute__((noreturn)) static void die_nameless(const char *user)
{
    fprintf(stderr, "weft: %s: the handle was spent before, and its task is gone\n", user);
    abort();
}

__attribute__((noreturn)) static void die(const struct weft_task *task, const char *user)
{
    const struct weft_site *site = task->site;
    char own[WEFT__NAME_BYTES]; /* it may end at any moment, and has perhaps */
    bool named = weft__name_peek(task, weft__state_look(task), own) == 0;
    fprintf(
        stderr,
        "weft: %s: the handle of task '%s' (spawned at %s:%u) was spent before, by weft_join or weft_detach\n",
        user, named ? own : site->name, site->file, site->line);
    abort();
}

/* Does it wait in a ring? */
static bool waits(uint64_t word)
{
    return (word & WEFT__STATE_COMPLETE) && weft__state_references_of(word) == 0;
}

void weft__handle_check(const struct weft_task *task, const char *user)
{
    uint64_t word = weft__state_look(task);
    if (!(word & WEFT__STATE_ALIVE)) die_nameless(user);
    if (waits(word)) die(task, user);
}

void weft__handle_spend(struct weft_task *task, const char *user)
{
    weft__handle_check(task, user);
    /* relaxed: it is said to nobody but the next spender, who is wrong in any order */
    if (fetch_or_relaxed(&task->state, WEFT__STATE_SPENT) & WEFT__STATE_SPENT) die(task, user);
}

#endif
