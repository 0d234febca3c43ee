/* SPDX-License-Identifier: MIT
 *
 * waitlist - the one way to wait: intrusive waiters in a queue, under a lock that the primitive
 * shares.
 *
 * A wake gives a *turn*: the waiter leaves the queue, its waker is claimed, and the next poll takes
 * what it came for (a permit, a message), if it is there. Nothing is handed over to a waiter that
 * may be cancelled, so a cancelled wait loses nothing: it passes its turn on.
 *
 *     OUT      in no list; the frame may die
 *     QUEUED   in the list
 *     TURN     out of the list, told to look
 *
 *     OUT    -> QUEUED   [add, add_first]
 *     QUEUED -> TURN     [give_turn, wake_one, wake_all]  by others: unlinks, claims
 *     QUEUED -> OUT      [settle, leave, cancel]          by the waiter: had no turn
 *     TURN   -> OUT      [settle, leave, cancel]          by the waiter: had one
 *
 * THE LOCK BEFORE THE END  A leaf that was ever queued takes the lock once before it settles. That
 * keeps the waker, which claims under the lock, from touching a dead frame or a task that has
 * ended; and it lets the woken side free the primitive itself, as the waker's last touch of it is
 * the drop of the lock. The shape of this file sees to it: a waiter's state can be read under the
 * lock only, and goes back to OUT only by settle (lock held), leave and cancel (which take it);
 * weft__waiter_check_out asserts it where frames die.
 * One exception to "the woken side may free": wake_all lets the lock go between batches of
 * WEFT__WAKE_BATCH and comes back. With more waiters than that its caller keeps the primitive alive
 * (done asserts it).
 *
 * A leaf's poll reads:
 *     weft__waitlist_lock(l);
 *     if (weft__waiter_queued(l, w)) -> unlock, PENDING            polled for no reason
 *     if (there is something, and (w has a turn or nobody waits))
 *         -> take it; weft__waitlist_settle(l, w); unlock; READY
 *     weft__waitlist_add(l, w, waker); unlock; PENDING             add_first, if it was overtaken
 * and when it is given up: weft__waitlist_cancel, READY.
 *
 * Threads: any. First come, first served. LOCK ORDER: rank WAITLIST; wakers are claimed under it
 * and pushed after.
 * Rejected: a waiter on the heap; handing the permit itself over (lost on cancel, or a clean-up
 * path in each primitive); a state that can be read without the lock (the frame could die between
 * the waker's mark and its claim).
 */
#ifndef WEFT_SYNC_WAITLIST_H
#define WEFT_SYNC_WAITLIST_H

#include "base/list.h"
#include "limits.h"
#include "sys/lock.h"
#include "task/waker.h"

/* One waiter. Lives in the frame of the future or on the fiber's stack that waits, never on the
 * heap. */
struct weft__waiter {
    struct weft__link link; /* in the list while QUEUED    [list's lock] */
    uintptr_t word;         /* waker | state; zero: OUT    [list's lock; OUT: the waiter] */
};

_Static_assert(sizeof(struct weft__waiter) == 24, "a waiting task fits a block of 128 bytes");

struct weft__waitlist {
    struct weft__lock lock; /* guards the list and what the primitive keeps beside it */
    struct weft__link head; /* the waiters, the oldest first                     [lock] */
    uint32_t sweeps;        /* calls of wake_all between two batches             [lock] */
};

void weft__waitlist_init(struct weft__waitlist *list);

/* Asserts that nobody waits and nobody is between two batches. */
void weft__waitlist_done(struct weft__waitlist *list);

void weft__waiter_init(struct weft__waiter *waiter);

/* Asserts that the waiter is in no list and owes nobody a turn: its frame may die. By the waiter. */
void weft__waiter_check_out(const struct weft__waiter *waiter);

static inline void weft__waitlist_lock(struct weft__waitlist *list)
{
    weft__lock_take(&list->lock);
}

static inline void weft__waitlist_unlock(struct weft__waitlist *list)
{
    weft__lock_drop(&list->lock);
}

/* ---- holds: list->lock ----------------------------------------------------------------------- */

/* Does nobody wait? The waiters of a wake_all under way count as woken. */
bool weft__waitlist_empty(struct weft__waitlist *list);

bool weft__waiter_queued(struct weft__waitlist *list, const struct weft__waiter *waiter);
bool weft__waiter_has_turn(struct weft__waitlist *list, const struct weft__waiter *waiter);

/* Queue at the end, with the waker to claim. Pins the waiter until it is OUT again; a turn that it
 * had is spent. */
void weft__waitlist_add(struct weft__waitlist *list, struct weft__waiter *waiter,
                        struct weft_waker waker);

/* Queue at the front: for one that had its turn and was overtaken. */
void weft__waitlist_add_first(struct weft__waitlist *list, struct weft__waiter *waiter,
                              struct weft_waker waker);

/* The waiter settles: it is OUT. True: it had a turn, which the caller now uses or passes on. */
bool weft__waitlist_settle(struct weft__waitlist *list, struct weft__waiter *waiter);

/* Give the first waiter a turn; its waker goes into the chain, to be pushed after unlocking.
 * Borrows the answer until then; NULL: nobody waits. */
struct weft__waiter *weft__waitlist_give_turn(struct weft__waitlist *list,
                                              struct weft__wake_chain *chain);

/* Drop the lock, then push the chain. The list is not touched after the drop. */
void weft__waitlist_unlock_push(struct weft__waitlist *list, struct weft__wake_chain *chain,
                                const struct weft__sched *sched);

/* Give all who wait now a turn, and drop the lock; also in between, every WEFT__WAKE_BATCH. Those
 * who come meanwhile go on waiting. Returns how many. */
uint32_t weft__waitlist_unlock_wake_all(struct weft__waitlist *list,
                                        const struct weft__sched *sched);

/* ---- take the lock themselves ---------------------------------------------------------------- */

/* Give the first waiter a turn. False: nobody waits. */
bool weft__waitlist_wake_one(struct weft__waitlist *list, const struct weft__sched *sched);

uint32_t weft__waitlist_wake_all(struct weft__waitlist *list, const struct weft__sched *sched);

/* The waiter gives up. True: it had a turn, which is now the caller's to pass on. A waiter that was
 * never queued may leave, too. */
bool weft__waitlist_leave(struct weft__waitlist *list, struct weft__waiter *waiter);

/* The waiter gives up, and a turn that it had goes to the next. True: it had one. */
bool weft__waitlist_cancel(struct weft__waitlist *list, struct weft__waiter *waiter,
                           const struct weft__sched *sched);

#endif
