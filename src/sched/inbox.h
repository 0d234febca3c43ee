/* SPDX-License-Identifier: MIT
 *
 * inbox - the tasks that one worker alone may poll: pinned ones, and those of local sets.
 *
 * Ring, slot and overflow arrays are open to thieves, so such a task never enters them. It has two
 * ways in and one way out, all of them first in, first out:
 *     others push    remote (inject.h), by one exchange; whoever pushed then tells this very worker
 *     the owner      own: a plain list, for what it wakes, spawns and requeues itself
 *     take           own; `remote`, where it has something, is appended to `own` first, in batches
 * So a task that comes from outside waits for those that were here before it, and not for those that
 * keep waking each other behind it.
 *
 * Where nothing is pinned the owner pays two loads a turn: `first` is on a line of its own, and
 * `remote.tail` on one that nobody writes.
 *
 * NO WAKE-UP IS LOST  The pusher does: push, fence, look at the owner's idle bit (weft__idle_wake). The
 * owner: publish that it sleeps, fence, ask weft__inbox_empty. As with the inject queue one of the
 * two fences is first; idle.h has the cases.
 *
 * Threads: push_remote by anyone; the rest by the owner. No locks. Pairs: those of inject.h.
 * Rejected: the ring with a mark that thieves pass over (a thief takes from the head only: one pinned
 * task there would hide the rest); one queue for both ways (an exchange and two counts of the flag
 * for each yield of a pinned task, 10 ns instead of 1).
 */
#ifndef WEFT_SCHED_INBOX_H
#define WEFT_SCHED_INBOX_H

#include "sched/inject.h"
#include "types.h"

struct weft__inbox {
    struct weft__inject remote;
    WEFT__CACHE_ALIGNED struct weft_task *first; /* own: the oldest; NULL: none  [owner] */
    struct weft_task *last;                      /* meaningless while there is none  [owner] */
    bool in_turn;                                /* the others went last  [owner] */
};

void weft__inbox_init(struct weft__inbox *inbox);

/* The owner: append. Takes: t, which the caller has the right to enqueue. */
void weft__inbox_push(struct weft__inbox *inbox, struct weft_task *t);

/* Anyone: append. Takes: t. The caller then does weft__idle_wake. */
void weft__inbox_push_remote(struct weft__inbox *inbox, struct weft_task *t);

/* The owner: take the oldest. Gives: the task, or NULL. */
struct weft_task *weft__inbox_take(struct weft__inbox *inbox);

/* The owner: take the oldest, every other time that it is asked. */
struct weft_task *weft__inbox_take_in_turn(struct weft__inbox *inbox);

/* The owner: a hint, without a read-modify-write. false: tasks are there, or on their way. */
static inline bool weft__inbox_idle(struct weft__inbox *inbox)
{
    return !inbox->first && weft__inject_idle(&inbox->remote);
}

/* The owner on its way to sleep, after it published itself and fenced: may it? */
static inline bool weft__inbox_empty(struct weft__inbox *inbox)
{
    return !inbox->first && weft__inject_empty(&inbox->remote);
}

#endif
