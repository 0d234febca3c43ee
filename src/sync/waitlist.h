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
 *     OUT    -> QUEUED   [add, add_first, add_new]
 *     QUEUED -> TURN     [give_turn, claim, wake]         by others: unlinks, claims
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
 * THE LOCK IS LENT to a worker that takes it often in a row, where the primitive counts that (count):
 * then it needs no read-modify-write (sys/bias.h). Whoever else comes takes it back. Its drop is no touch
 * of the list at all, so all that is said above holds.
 *
 * Threads: any. First come, first served. LOCK ORDER: rank WAITLIST; wakers are claimed under it
 * and pushed after. It is held for nanoseconds, so where it is not lent it is taken and dropped by lock.h's brief pair:
 * one read-modify-write for both, and the drop is still the last touch.
 * Rejected: a waiter on the heap; handing the permit itself over (lost on cancel, or a clean-up
 * path in each primitive); a state that can always be read without the lock (the frame could die
 * between the waker's mark and its claim, the list between the mark and the drop).
 */
#ifndef WEFT_SYNC_WAITLIST_H
#define WEFT_SYNC_WAITLIST_H

#include "base/list.h"
#include "limits.h"
#include "sys/bias.h"
#include "task/here.h"
#include "task/linked.h"
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
    struct weft__lock lock; /* guards the list and what the primitive keeps beside it; may be lent */
    struct weft__link head; /* the waiters, the oldest first                     [lock] */
    uint32_t sweeps;        /* calls of wake_all between two batches             [lock] */
    uint32_t row;           /* times in a row that are left until it is lent     [lock] */
};

_Static_assert(sizeof(struct weft__waitlist) == 32, "half a cache line");

void weft__waitlist_init(struct weft__waitlist *list);

/* Of one that is zero. Holds: its lock, by its word. */
static inline void weft__waitlist_begin(struct weft__waitlist *list)
{
    weft__link_init(&list->head);
    weft__bias_begin(&list->lock, WEFT__BIAS_LENT_BITS, &list->row);
}

/* Asserts that nobody waits and nobody is between two batches. */
void weft__waitlist_done(struct weft__waitlist *list);

static inline void weft__waiter_init(struct weft__waiter *waiter)
{
    weft__link_init(&waiter->link);
    store_relaxed(&waiter->word, 0); /* relaxed: nobody else knows it yet */
}

/* Debug builds count a task's waiters that are not OUT (task/linked.h). Holds: the list's lock, or what take_granted says. */
static inline void weft__waiter_uncount(const struct weft__waiter *waiter)
{
#if defined(WEFT_DEBUG)
    uintptr_t word = load_relaxed(&waiter->word); /* relaxed: as above */
    weft__linked_remove(weft__waker_task((struct weft_waker){word & ~WEFT__WAITER_BITS}));
#else
    (void)waiter;
#endif
}

static inline void weft__waiter_is_out(struct weft__waiter *waiter)
{
    weft__waiter_uncount(waiter);
    store_relaxed(&waiter->word, 0); /* relaxed: the lock orders it, or what take_granted says */
}

/* By the waiter, without the lock. True: it had a turn whose waker is through with it and with the
 * list, and is OUT. False: there may be a turn all the same, which the lock shows. */
static inline bool weft__waiter_take_granted(struct weft__waiter *waiter)
{
    /* relaxed, both: the mark was made before the push that brought this poll, whose order the
     * queues carry; a poll for another reason cannot see it */
    if (!(load_relaxed(&waiter->word) & WEFT__WAITER_GRANTED)) return false;
    weft__waiter_is_out(waiter);
    return true;
}

/* Asserts that the waiter is in no list and owes nobody a turn: its frame may die. By the waiter. */
void weft__waiter_check_out(const struct weft__waiter *waiter);

/* ---- the lock --------------------------------------------------------------------------------- */

#if defined(WEFT_MODEL_REAL_BIAS)
uint8_t weft__waitlist_me(void); /* the test's */
#define weft__waitlist_met(place, times) ((void)(place), (void)(times))
#elif defined(WEFT_MODEL)
#define weft__waitlist_me()              ((uint8_t)0)
#define weft__waitlist_met(place, times) ((void)(place), (void)(times))
#else
#define weft__waitlist_me()              (weft__here()->number)
#define weft__waitlist_met(place, times) weft__here_meets(place, times)
#endif

/* To take a lock back counts as so many meetings. Doubled: the scheduler wants twice as much work of a theft that makes another worker's lock be taken back, 130 us. */
#define WEFT__WAITLIST_TAKEN_BACK 16

static inline void weft__waitlist_lock(struct weft__waitlist *list)
{
    if (weft__bias_take(&list->lock, weft__waitlist_me(), WEFT__BIAS_INNER))
        weft__waitlist_met(list, WEFT__WAITLIST_TAKEN_BACK);
}

static inline void weft__waitlist_unlock(struct weft__waitlist *list)
{
    weft__bias_drop(&list->lock, weft__waitlist_me(), WEFT__BIAS_INNER);
}

/* For those who take it all day: the two ways apart. `me` is weft__waitlist_me, of one thread from lock to drop. */
enum weft__waitlist_way { WEFT__BY_WORD, WEFT__BY_LOAN };

/* False: it is not lent to me. */
static inline bool weft__waitlist_try_loan(struct weft__waitlist *list, uint8_t me)
{
    return weft__bias_try_take_lent(&list->lock, me, WEFT__BIAS_INNER);
}

/* False: it is held, or lent. */
static inline bool weft__waitlist_try_word(struct weft__waitlist *list)
{
    return weft__bias_try_take_word(&list->lock);
}

/* Holds: the lock, by its word. One more of a row, at whose end it is lent to me. */
static inline void weft__waitlist_count(struct weft__waitlist *list, uint8_t me)
{
    if (__builtin_expect(weft__bias_row_ends(&list->lock, &list->row, me), 0))
        weft__bias_count(&list->lock, &list->row, me);
}

/* The rest of hold: it is not lent to me. */
void weft__waitlist_hold_by_word(struct weft__waitlist *list);

/* Takes it. Gives the way, for drop. */
static inline enum weft__waitlist_way weft__waitlist_hold(struct weft__waitlist *list, uint8_t me)
{
    if (__builtin_expect(weft__waitlist_try_loan(list, me), 1)) return WEFT__BY_LOAN;
    weft__waitlist_hold_by_word(list);
    return WEFT__BY_WORD;
}

/* Counts, if it is held by its word: last of all, so that the child of a fork finds the list whole if the lock was just lent. */
static inline void weft__waitlist_drop(struct weft__waitlist *list, uint8_t me,
                                       enum weft__waitlist_way way)
{
    if (way == WEFT__BY_LOAN) {
        weft__bias_drop_lent(&list->lock, me, WEFT__BIAS_INNER);
    } else {
        weft__waitlist_count(list, me);
        weft__lock_drop_brief(&list->lock);
    }
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

/* Whom it wakes; NULL: it is no task. */
static inline struct weft_task *weft__waiter_task(struct weft__waitlist *list,
                                                  const struct weft__waiter *waiter)
{
    return weft__waker_task((struct weft_waker){weft__waiter_word(list, waiter) & ~WEFT__WAITER_BITS});
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
    weft__waiter_uncount(waiter); /* with the turn that it may have had */
    weft__linked_add(weft__waker_task(waker));
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

/* The same of a waiter that has not been initialised: its first words are these. `head`: of another queue, whose waiters the same lock guards. */
static inline void weft__waitlist_add_new_at(struct weft__waitlist *list, struct weft__link *head,
                                             struct weft__waiter *waiter, struct weft_waker waker)
{
    weft__lock_assert_held(&list->lock);
    weft_dassert(!weft__waker_is_none(waker));
    weft__linked_add(weft__waker_task(waker));
    store_relaxed(&waiter->word, waker.word | WEFT__WAITER_QUEUED); /* relaxed: the lock orders it */
    weft__list_insert_new_before(head, &waiter->link);
}

static inline void weft__waitlist_add_new(struct weft__waitlist *list, struct weft__waiter *waiter,
                                          struct weft_waker waker)
{
    weft__waitlist_add_new_at(list, &list->head, waiter, waker);
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

/* Give `waiter`, which is QUEUED, and this task's, a turn. True: it is to be pushed after the drop. */
static inline bool weft__waitlist_claim_task(struct weft__waiter *waiter, struct weft_task *task)
{
    weft__list_take_out(&waiter->link);
    bool granted = weft__waker_claim_task(task);
    uintptr_t turn = granted ? WEFT__WAITER_TURN | WEFT__WAITER_GRANTED : WEFT__WAITER_TURN;
    /* relaxed: the lock orders it; or, if the claim was granted, the push */
    store_relaxed(&waiter->word, weft__waker_of(task).word | turn);
    return granted;
}

/* The same of any that is QUEUED. A task is claimed and pushed right here: a chain of one would cost as
 * much again. */
static inline void weft__waitlist_unlock_wake(struct weft__waitlist *list,
                                              struct weft__waiter *waiter,
                                              const struct weft__sched *sched)
{
    struct weft_task *task = weft__waiter_task(list, waiter);

    if (__builtin_expect(!task, 0)) {
        weft__waitlist_unlock_wake_foreign(list, waiter, sched);
        return;
    }
    bool granted = weft__waitlist_claim_task(waiter, task);
    weft__waitlist_unlock(list);
    if (__builtin_expect(!granted, 0)) return;
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
 * never queued may leave, too, if it was initialised. */
bool weft__waitlist_leave(struct weft__waitlist *list, struct weft__waiter *waiter);

/* The waiter gives up, and a turn that it had goes to the next. True: it had one. */
bool weft__waitlist_cancel(struct weft__waitlist *list, struct weft__waiter *waiter,
                           const struct weft__sched *sched);

#endif
