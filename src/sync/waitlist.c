/* SPDX-License-Identifier: MIT
 *
 * waitlist - waiters, turns and batches; the idea is in waitlist.h.
 */
#include "sync/waitlist.h"

void weft__waitlist_init(struct weft__waitlist *list)
{
    weft__lock_init(&list->lock, WEFT__RANK_WAITLIST);
    weft__waitlist_begin(list);
    list->sweeps = 0;
}

void weft__waitlist_hold_by_word(struct weft__waitlist *list)
{
    (void)weft__bias_take_word(&list->lock, WEFT__BIAS_INNER); /* no meeting: of many descriptors each is taken back once in a long row */
}

void weft__waitlist_done(struct weft__waitlist *list)
{
    weft__waitlist_lock(list);
    weft_assert(weft__list_empty(&list->head)); /* a waiter would be left on a list that is gone */
    weft_assert(list->sweeps == 0);             /* a wake_all will be back for its next batch */
    weft__waitlist_unlock(list);
}

void weft__waiter_check_out(const struct weft__waiter *waiter)
{
    /* it is queued, or had a turn and passed it to nobody */
    weft_assert(load_relaxed(&waiter->word) == 0); /* relaxed: the waiter's own by now */
}

bool weft__waitlist_settle(struct weft__waitlist *list, struct weft__waiter *waiter)
{
    uintptr_t word = weft__waiter_word(list, waiter);

    /* from `head`, or from the private one of a wake_all */
    if (word & WEFT__WAITER_QUEUED) weft__list_remove(&waiter->link);
    weft__waiter_is_out(waiter);
    return word & WEFT__WAITER_TURN;
}

/* Holds: list->lock. The waiter leaves the queue; its waker is to be claimed, then mark_turn called. */
static struct weft_waker unqueue(struct weft__waitlist *list, struct weft__waiter *waiter)
{
    struct weft_waker waker = {weft__waiter_word(list, waiter) & ~WEFT__WAITER_BITS};

    weft__list_remove(&waiter->link);
    return waker;
}

/* Holds: list->lock. After the claim the waiter stays valid until the lock is dropped, or, if the
 * claim was granted, until the push: its leaf waits for that, or has not been polled yet. */
static void mark_turn(struct weft__waiter *waiter, struct weft_waker waker, bool granted)
{
    uintptr_t turn = granted ? WEFT__WAITER_TURN | WEFT__WAITER_GRANTED : WEFT__WAITER_TURN;

    store_relaxed(&waiter->word, waker.word | turn); /* relaxed: the lock orders it, or the push */
}

struct weft__waiter *weft__waitlist_give_turn_at(struct weft__waitlist *list,
                                                 struct weft__link *head,
                                                 struct weft__wake_chain *chain)
{
    weft__lock_assert_held(&list->lock);
    struct weft__link *first = weft__list_first(head);
    if (!first) return NULL;

    struct weft__waiter *waiter = weft__container_of(first, struct weft__waiter, link);
    struct weft_waker waker = unqueue(list, waiter);
    mark_turn(waiter, waker, weft__wake_chain_claim(chain, waker));
    return waiter;
}

struct weft__waiter *weft__waitlist_give_turn(struct weft__waitlist *list,
                                              struct weft__wake_chain *chain)
{
    return weft__waitlist_give_turn_at(list, &list->head, chain);
}

void weft__waitlist_unlock_push(struct weft__waitlist *list, struct weft__wake_chain *chain,
                                const struct weft__sched *sched)
{
    weft__waitlist_unlock(list);
    weft__wake_chain_push(chain, sched);
}

/* Holds: list->lock. At most one batch. */
static uint32_t give_turns(struct weft__waitlist *list, struct weft__link *head,
                           struct weft__wake_chain *chain)
{
    uint32_t count = 0;
    while (count < WEFT__WAKE_BATCH && weft__waitlist_give_turn_at(list, head, chain))
        count++;
    return count;
}

/* The waiters of the start move to a head of our own, on this stack; they still leave by the list's
 * lock, whichever head they hang on. */
uint32_t weft__waitlist_unlock_wake_all(struct weft__waitlist *list,
                                        const struct weft__sched *sched)
{
    struct weft__link ours = WEFT__LIST_INIT(ours);
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    weft__lock_assert_held(&list->lock);
    weft__list_splice_back(&ours, &list->head);
    uint32_t count = give_turns(list, &ours, &chain);
    while (!weft__list_empty(&ours)) {
        list->sweeps++;
        weft__waitlist_unlock_push(list, &chain, sched);
        weft__waitlist_lock(list);
        list->sweeps--;
        count += give_turns(list, &ours, &chain);
    }
    weft__waitlist_unlock_push(list, &chain, sched);
    return count;
}

void weft__waitlist_unlock_wake_foreign(struct weft__waitlist *list, struct weft__waiter *waiter,
                                        const struct weft__sched *sched)
{
    struct weft_waker waker = unqueue(list, waiter);
    struct weft_waker claimed = weft__waker_claim(waker);

    mark_turn(waiter, waker, false);
    weft__waitlist_unlock(list);
    weft__waker_push(claimed, sched);
}

void weft__waitlist_unlock_wake_first(struct weft__waitlist *list, const struct weft__sched *sched)
{
    weft_assert(!weft__waitlist_empty(list));
    weft__waitlist_unlock_wake(
        list, weft__container_of(list->head.next, struct weft__waiter, link), sched);
}

struct weft_waker weft__waitlist_claim_first(struct weft__waitlist *list)
{
    weft_assert(!weft__waitlist_empty(list));
    struct weft__waiter *waiter = weft__container_of(list->head.next, struct weft__waiter, link);
    struct weft_waker waker = unqueue(list, waiter);
    struct weft_task *task = weft__waker_task(waker);
    struct weft_waker claimed = weft__waker_none();
    bool granted = task && weft__waker_claim_task(task);

    if (!task) claimed = weft__waker_claim(waker);
    mark_turn(waiter, waker, granted);
    return granted ? waker : claimed;
}

bool weft__waitlist_wake_one(struct weft__waitlist *list, const struct weft__sched *sched)
{
    weft__waitlist_lock(list);
    if (weft__waitlist_empty(list)) {
        weft__waitlist_unlock(list);
        return false;
    }
    weft__waitlist_unlock_wake_first(list, sched);
    return true;
}

uint32_t weft__waitlist_wake_all(struct weft__waitlist *list, const struct weft__sched *sched)
{
    weft__waitlist_lock(list);
    return weft__waitlist_unlock_wake_all(list, sched);
}

bool weft__waitlist_leave(struct weft__waitlist *list, struct weft__waiter *waiter)
{
    weft__waitlist_lock(list);
    bool had_turn = weft__waitlist_settle(list, waiter);
    weft__waitlist_unlock(list);
    return had_turn;
}

bool weft__waitlist_cancel(struct weft__waitlist *list, struct weft__waiter *waiter,
                           const struct weft__sched *sched)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    weft__waitlist_lock(list);
    bool had_turn = weft__waitlist_settle(list, waiter);
    if (had_turn) (void)weft__waitlist_give_turn(list, &chain);
    weft__waitlist_unlock_push(list, &chain, sched);
    return had_turn;
}
