/* SPDX-License-Identifier: MIT
 *
 * waitlist - waiters, turns and batches; the idea is in waitlist.h.
 */
#include "sync/waitlist.h"

/* Beside the waker's own tag, in the bits that no address has. */
#define WAITER_QUEUED ((uintptr_t)2)
#define WAITER_TURN   ((uintptr_t)4)
#define WAITER_BITS   (WAITER_QUEUED | WAITER_TURN)

_Static_assert((WAITER_BITS & WEFT__WAKER_FOREIGN) == 0,
               "a waker's tag and a waiter's state lie side by side");
_Static_assert((WAITER_BITS & ~WEFT__WAKER_BITS) == 0, "a waiter's state lies below the address");

void weft__waitlist_init(struct weft__waitlist *list)
{
    weft__lock_init(&list->lock, WEFT__RANK_WAITLIST);
    weft__link_init(&list->head);
    list->sweeps = 0;
}

void weft__waitlist_done(struct weft__waitlist *list)
{
    weft__waitlist_lock(list);
    weft_assert(weft__list_empty(&list->head)); /* a waiter would be left on a list that is gone */
    weft_assert(list->sweeps == 0);             /* a wake_all will be back for its next batch */
    weft__waitlist_unlock(list);
}

void weft__waiter_init(struct weft__waiter *waiter)
{
    weft__link_init(&waiter->link);
    plain_write(&waiter->word, 0);
}

void weft__waiter_check_out(const struct weft__waiter *waiter)
{
    /* it is queued, or had a turn and passed it to nobody */
    weft_assert(plain_read(&waiter->word) == 0);
}

/* The waiter's word; its state and its link say the same. Holds: list->lock. */
static uintptr_t word_of(struct weft__waitlist *list, const struct weft__waiter *waiter)
{
    uintptr_t word = plain_read(&waiter->word);

    weft__lock_assert_held(&list->lock);
    weft_dassert((word & WAITER_BITS) != WAITER_BITS);
    weft_dassert(!(word & WAITER_QUEUED) == !weft__link_linked(&waiter->link));
    return word;
}

bool weft__waitlist_empty(struct weft__waitlist *list)
{
    weft__lock_assert_held(&list->lock);
    return weft__list_empty(&list->head);
}

bool weft__waiter_queued(struct weft__waitlist *list, const struct weft__waiter *waiter)
{
    return word_of(list, waiter) & WAITER_QUEUED;
}

bool weft__waiter_has_turn(struct weft__waitlist *list, const struct weft__waiter *waiter)
{
    return word_of(list, waiter) & WAITER_TURN;
}

static void add_before(struct weft__waitlist *list, struct weft__link *at,
                       struct weft__waiter *waiter, struct weft_waker waker)
{
    weft_assert(!(word_of(list, waiter) & WAITER_QUEUED));
    weft_assert(!weft__waker_is_none(waker));
    plain_write(&waiter->word, waker.word | WAITER_QUEUED);
    weft__list_insert_before(at, &waiter->link);
}

void weft__waitlist_add(struct weft__waitlist *list, struct weft__waiter *waiter,
                        struct weft_waker waker)
{
    add_before(list, &list->head, waiter, waker);
}

void weft__waitlist_add_first(struct weft__waitlist *list, struct weft__waiter *waiter,
                              struct weft_waker waker)
{
    add_before(list, list->head.next, waiter, waker);
}

bool weft__waitlist_settle(struct weft__waitlist *list, struct weft__waiter *waiter)
{
    uintptr_t word = word_of(list, waiter);

    /* from `head`, or from the private one of a wake_all */
    if (word & WAITER_QUEUED) weft__list_remove(&waiter->link);
    plain_write(&waiter->word, 0);
    return word & WAITER_TURN;
}

/* Holds: list->lock. After the claim the waiter stays valid until the lock is dropped: its leaf
 * waits for that, or has not been polled yet. */
static struct weft__waiter *give_turn_from(struct weft__waitlist *list, struct weft__link *head,
                                           struct weft__wake_chain *chain)
{
    struct weft__link *first = weft__list_first(head);
    if (!first) return NULL;

    struct weft__waiter *waiter = weft__container_of(first, struct weft__waiter, link);
    struct weft_waker waker = {word_of(list, waiter) & ~WAITER_BITS};
    weft__list_remove(first);
    plain_write(&waiter->word, waker.word | WAITER_TURN);
    weft__wake_chain_claim(chain, waker);
    return waiter;
}

struct weft__waiter *weft__waitlist_give_turn(struct weft__waitlist *list,
                                              struct weft__wake_chain *chain)
{
    weft__lock_assert_held(&list->lock);
    return give_turn_from(list, &list->head, chain);
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
    while (count < WEFT__WAKE_BATCH && give_turn_from(list, head, chain))
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

bool weft__waitlist_wake_one(struct weft__waitlist *list, const struct weft__sched *sched)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    weft__waitlist_lock(list);
    bool any = weft__waitlist_give_turn(list, &chain) != NULL;
    weft__waitlist_unlock_push(list, &chain, sched);
    return any;
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
