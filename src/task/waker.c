/* SPDX-License-Identifier: MIT
 *
 * waker - claims, chains and deliveries; the idea is in waker.h.
 */
#include "task/waker.h"

#include "sys/lock.h"
#include "task/state.h"

#define FOREIGN_CLAIMED UINT32_C(1)
#define FOREIGN_REF     UINT32_C(2)

void weft__foreign_init(struct weft__foreign *foreign, const struct weft__foreign_ops *ops)
{
    foreign->ops = ops;
    foreign->link = NULL;
    store_relaxed(&foreign->state, FOREIGN_REF); /* relaxed: not shared yet */
}

void weft__foreign_ref(struct weft__foreign *foreign)
{
    /* relaxed: who has one can give one */
    uint32_t state = fetch_add_relaxed(&foreign->state, FOREIGN_REF);
    weft_assert(state >= FOREIGN_REF);
    weft_assert(state < UINT32_MAX - FOREIGN_REF);
}

bool weft__foreign_unref(struct weft__foreign *foreign)
{
    /* [foreign-ref] with unref, both ways */
    uint32_t state = fetch_sub_acq_rel(&foreign->state, FOREIGN_REF);

    weft_assert(state >= FOREIGN_REF);
    if (state >= 2 * FOREIGN_REF) return false;
    weft_assert(state == FOREIGN_REF); /* a claim holds a reference of its own */
    foreign->ops->free(foreign);
    return true;
}

bool weft__foreign_alone(struct weft__foreign *foreign)
{
    return load_acquire(&foreign->state) == FOREIGN_REF; /* [foreign-ref] with unref: the others' last touch */
}

static bool foreign_claim(struct weft__foreign *foreign)
{
    /* Always a read-modify-write, as for tasks. [foreign-wake] with deliver: what we wrote;
     * [foreign-link] with deliver: `link` is free. */
    uint32_t state = fetch_or_acq_rel(&foreign->state, FOREIGN_CLAIMED);

    weft_assert(state >= FOREIGN_REF);
    if (state & FOREIGN_CLAIMED) return false;
    /* the deliverer's; until it is taken the waiter, held fast, keeps the thing alive */
    weft__foreign_ref(foreign);
    return true;
}

/* Its `link` must have been read before. */
static void foreign_deliver(struct weft__foreign *foreign)
{
    /* [foreign-wake], [foreign-link], both with claim */
    uint32_t state = fetch_and_acq_rel(&foreign->state, ~FOREIGN_CLAIMED);

    weft_assert(state & FOREIGN_CLAIMED);
    if (foreign->ops->deliver) {
        foreign->ops->deliver(foreign);
        return;
    }
    foreign->ops->wake(foreign);
    weft__foreign_unref(foreign);
}

struct weft_waker weft__waker_claim(struct weft_waker waker)
{
    struct weft__foreign *foreign = weft__waker_foreign(waker);

    weft_assert(!weft__waker_is_none(waker));
    if (foreign) return foreign_claim(foreign) ? waker : weft__waker_none();
    if (weft__state_claim(weft__waker_task(waker)) == WEFT__STATE_ENQUEUE) return waker;
    return weft__waker_none();
}

void weft__waker_push(struct weft_waker claimed, const struct weft__sched *sched)
{
    if (weft__waker_is_none(claimed)) return;
    weft__lock_assert_none_held();
    weft__waker_deliver(claimed, sched);
}

void weft__waker_deliver(struct weft_waker claimed, const struct weft__sched *sched)
{
    if (weft__waker_is_none(claimed)) return;
    if (weft__waker_foreign(claimed)) {
        foreign_deliver(weft__waker_foreign(claimed));
    } else {
        sched->ops->push(sched->self, weft__waker_task(claimed));
    }
}

void weft__waker_wake(struct weft_waker waker, const struct weft__sched *sched)
{
    weft__waker_push(weft__waker_claim(waker), sched);
}

bool weft__wake_chain_claim_foreign(struct weft__wake_chain *chain, struct weft_waker waker)
{
    struct weft__foreign *foreign = weft__waker_foreign(weft__waker_claim(waker));

    if (!foreign) return false;
    plain_write(&foreign->link, chain->foreign);
    chain->foreign = foreign;
    return false;
}

static void chain_deliver_foreign(struct weft__foreign *foreign)
{
    while (foreign) {
        /* before the delivery: it gives the link to the next claimer */
        struct weft__foreign *next = plain_read(&foreign->link);
        foreign_deliver(foreign);
        foreign = next;
    }
}

void weft__wake_chain_push(struct weft__wake_chain *chain, const struct weft__sched *sched)
{
    struct weft__wake_chain all = *chain;

    weft__lock_assert_none_held();
    *chain = (struct weft__wake_chain)WEFT__WAKE_CHAIN_INIT;
    if (all.count == 1) sched->ops->push(sched->self, all.first);
    if (all.count > 1) sched->ops->push_chain(sched->self, all.first, all.last, all.count);
    chain_deliver_foreign(all.foreign);
}
