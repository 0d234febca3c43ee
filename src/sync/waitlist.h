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
 *     TURN   -> OUT      [take_granted]                   by the waiter, if its claim was granted
 *
 * THE LOCK BEFORE THE END  A leaf that was ever queued takes the lock once before it settles. That
 * keeps the waker, which claims under the lock, from touching a dead frame or a task that has
 * ended; and it lets the woken side free the primitive itself, as the waker's last touch of it is
 * the drop of the lock. The shape of this file sees to it: a waiter's state can be read under the
 * lock only, and goes back to OUT only by settle (lock held), leave and cancel (which take it);
 * weft__waiter_check_out asserts it where frames die.
 * One turn needs no lock: take_granted's. Where the waker's claim was granted, the task was idle and
 * runs only when the waker pushes it, which it does after the drop: a poll that finds such a turn
 * comes after all that the waker does here. A task that was running when it was claimed, and a
 * foreign waker, whose owner may poll at any time, have a turn without that mark, and take the lock.
 * One exception to "the woken side may free": wake_all lets the lock go between batches of
 * WEFT__WAKE_BATCH and comes back. With more waiters than that its caller keeps the primitive alive
 * (done asserts it).
 *
 * A leaf's poll reads, where a turn is all that it wants (a notify) first of all:
 *     if (weft__waiter_take_granted(w)) -> READY
 * and then, as all others:
 *     weft__waitlist_lock(l);
 *     if (weft__waiter_queued(l, w)) -> unlock, PENDING            polled for no reason
 *     if (there is something, and (w has a turn or nobody waits))
 *         -> take it; weft__waitlist_settle(l, w); unlock; READY
 *     weft__waitlist_add(l, w, waker); unlock; PENDING             add_first, if it was overtaken
 * and when it is given up: weft__waitlist_cancel, READY.
 *
 * Threads: any. First come, first served. LOCK ORDER: rank WAITLIST; wakers are claimed under it
 * and pushed after. It is held for nanoseconds, so it is taken and dropped by lock.h's brief pair: one
 * read-modify-write for both, and the drop is still the last touch.
 * Rejected: a waiter on the heap; handing the permit itself over (lost on cancel, or a clean-up
 * path in each primitive); a state that can always be read without the lock (the frame could die
 * between the waker's mark and its claim, the list between the mark and the drop).
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
    _Atomic uintptr_t word; /* waker | state; zero: OUT    [list's lock; OUT, granted: the waiter] */
};

/* The states, beside the waker's own tag, in the bits that no address has. */
#define WEFT__WAITER_QUEUED  ((uintptr_t)2)
#define WEFT__WAITER_TURN    ((uintptr_t)4)
#define WEFT__WAITER_GRANTED ((uintptr_t)8) /* with TURN: the task runs by the waker's push alone */
#define WEFT__WAITER_BITS    (WEFT__WAITER_QUEUED | WEFT__WAITER_TURN | WEFT__WAITER_GRANTED)

_Static_assert((WEFT__WAITER_BITS & WEFT__WAKER_FOREIGN) == 0,
               "a waker's tag and a waiter's state lie side by side");
_Static_assert((WEFT__WAITER_BITS & ~WEFT__WAKER_BITS) == 0,
               "a waiter's state lies below the address");

_Static_assert(sizeof(struct weft__waiter) == 24, "a waiting task fits a block of 128 bytes");

struct weft__waitlist {
    struct weft__lock lock; /* guards the list and what the primitive keeps beside it; taken by _brief */
    struct weft__link head; /* the waiters, the oldest first                     [lock] */
    uint32_t sweeps;        /* calls of wake_all between two batches             [lock] */
};

void weft__waitlist_init(struct weft__waitlist *list);

/* Asserts that nobody waits and nobody is between two batches. */
void weft__waitlist_done(struct weft__waitlist *list);

static inline void weft__waiter_init(struct weft__waiter *waiter)
{
    weft__link_init(&waiter->link);
    store_relaxed(&waiter->word, 0); /* relaxed: nobody else knows it yet */
}

/* By the waiter, without the lock. True: it had a turn whose waker is through with it and with the
 * list, and is OUT. False: there may be a turn all the same, which the lock shows. */
static inline bool weft__waiter_take_granted(struct weft__waiter *waiter)
{
    /* relaxed, both: the mark was made before the push that brought this poll, whose order the
     * queues carry; a poll for another reason cannot see it */
    if (!(load_relaxed(&waiter->word) & WEFT__WAITER_GRANTED)) return false;
    store_relaxed(&waiter->word, 0);
    return true;
}

/* Asserts that the waiter is in no list and owes nobody a turn: its frame may die. By the waiter. */
void weft__waiter_check_out(const struct weft__waiter *waiter);

static inline void weft__waitlist_lock(struct weft__waitlist *list)
{
    weft__lock_take_brief(&list->lock);
}

static inline bool weft__waitlist_try_lock(struct weft__waitlist *list)
{
    return weft__lock_try_take_brief(&list->lock);
}

static inline void weft__waitlist_unlock(struct weft__waitlist *list)
{
    weft__lock_drop_brief(&list->lock);
}

/* ---- holds: list->lock ----------------------------------------------------------------------- */

/* Does nobody wait? The waiters of a wake_all under way count as woken. */
static inline bool weft__waitlist_empty(struct weft__waitlist *list)
{
    weft__lock_assert_held(&list->lock);
    return weft__list_empty(&list->head);
}

/* The waiter's word; its state and its link say the same. */
static inline uintptr_t weft__waiter_word(struct weft__waitlist *list,
                                          const struct weft__waiter *waiter)
{
    uintptr_t word = load_relaxed(&waiter->word); /* relaxed: the lock orders it */

    weft__lock_assert_held(&list->lock);
    weft_dassert(!(word & WEFT__WAITER_QUEUED) || !(word & WEFT__WAITER_TURN));
    weft_dassert(!(word & WEFT__WAITER_GRANTED) || (word & WEFT__WAITER_TURN));
    weft_dassert(!(word & WEFT__WAITER_QUEUED) == !weft__link_linked(&waiter->link));
    return word;
}

static inline bool weft__waiter_queued(struct weft__waitlist *list,
                                       const struct weft__waiter *waiter)
{
    return weft__waiter_word(list, waiter) & WEFT__WAITER_QUEUED;
}

static inline bool weft__waiter_has_turn(struct weft__waitlist *list,
                                         const struct weft__waiter *waiter)
{
    return weft__waiter_word(list, waiter) & WEFT__WAITER_TURN;
}

static inline void weft__waitlist_add_before(struct weft__waitlist *list, struct weft__link *at,
                                             struct weft__waiter *waiter, struct weft_waker waker)
{
    weft_assert(!weft__waiter_queued(list, waiter));
    weft_assert(!weft__waker_is_none(waker));
    store_relaxed(&waiter->word, waker.word | WEFT__WAITER_QUEUED); /* relaxed: the lock orders it */
    weft__list_insert_before(at, &waiter->link);
}

/* Queue at the end, with the waker to claim. Pins the waiter until it is OUT again; a turn that it
 * had is spent. */
static inline void weft__waitlist_add(struct weft__waitlist *list, struct weft__waiter *waiter,
                                      struct weft_waker waker)
{
    weft__waitlist_add_before(list, &list->head, waiter, waker);
}

/* The same of a waiter that has not been initialised: its first words are these. */
static inline void weft__waitlist_add_new(struct weft__waitlist *list, struct weft__waiter *waiter,
                                          struct weft_waker waker)
{
    weft__lock_assert_held(&list->lock);
    weft_assert(!weft__waker_is_none(waker));
    store_relaxed(&waiter->word, waker.word | WEFT__WAITER_QUEUED); /* relaxed: the lock orders it */
    weft__list_insert_new_before(&list->head, &waiter->link);
}

/* Queue at the front: for one that had its turn and was overtaken. */
static inline void weft__waitlist_add_first(struct weft__waitlist *list,
                                            struct weft__waiter *waiter, struct weft_waker waker)
{
    weft__waitlist_add_before(list, list->head.next, waiter, waker);
}

/* The waiter settles: it is OUT. True: it had a turn, which the caller now uses or passes on. */
bool weft__waitlist_settle(struct weft__waitlist *list, struct weft__waiter *waiter);

/* Give the first waiter a turn; its waker goes into the chain, to be pushed after unlocking.
 * Borrows the answer until then; NULL: nobody waits. */
struct weft__waiter *weft__waitlist_give_turn(struct weft__waitlist *list,
                                              struct weft__wake_chain *chain);

/* The same of another head, whose waiters the same lock guards. */
struct weft__waiter *weft__waitlist_give_turn_at(struct weft__waitlist *list,
                                                 struct weft__link *head,
                                                 struct weft__wake_chain *chain);

/* Drop the lock, then push the chain. The list is not touched after the drop. */
void weft__waitlist_unlock_push(struct weft__waitlist *list, struct weft__wake_chain *chain,
                                const struct weft__sched *sched);

/* Give the first waiter a turn and drop the lock; then push it: as give_turn and unlock_push, for
 * one. Somebody waits. */
void weft__waitlist_unlock_wake_first(struct weft__waitlist *list, const struct weft__sched *sched);

/* The same of `waiter`, which is QUEUED, if its waker is no task. */
void weft__waitlist_unlock_wake_foreign(struct weft__waitlist *list, struct weft__waiter *waiter,
                                        const struct weft__sched *sched);

/* The same of any that is QUEUED. A task is claimed and pushed right here: a chain of one would cost as
 * much again. */
static inline void weft__waitlist_unlock_wake(struct weft__waitlist *list,
                                              struct weft__waiter *waiter,
                                              const struct weft__sched *sched)
{
    struct weft_waker waker = {weft__waiter_word(list, waiter) & ~WEFT__WAITER_BITS};
    struct weft_task *task = weft__waker_task(waker);

    if (__builtin_expect(!task, 0)) {
        weft__waitlist_unlock_wake_foreign(list, waiter, sched);
        return;
    }
    weft__list_remove(&waiter->link);
    /* relaxed, both: the lock orders it; or, if the claim was granted, the push */
    if (__builtin_expect(!weft__waker_claim_task(task), 0)) {
        store_relaxed(&waiter->word, waker.word | WEFT__WAITER_TURN);
        weft__waitlist_unlock(list);
        return;
    }
    store_relaxed(&waiter->word, waker.word | WEFT__WAITER_TURN | WEFT__WAITER_GRANTED);
    weft__waitlist_unlock(list);
    weft__lock_assert_none_held();
    sched->ops->push(sched->self, task);
}

/* The same where the lock is dropped in another way: gives the claimed waker, to be pushed after
 * that, or none. Somebody waits. */
struct weft_waker weft__waitlist_claim_first(struct weft__waitlist *list);

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
