/* SPDX-License-Identifier: MIT
 *
 * leaves - see leaves.h.
 */
#include "leaves.h"

#include "sched/sched.h"

void bell_init(struct bell *bell)
{
    weft__waitlist_init(&bell->list);
    bell->rung = false;
}

void bell_ring(struct bell *bell)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    weft__waitlist_lock(&bell->list);
    if (!weft__waitlist_give_turn(&bell->list, &chain)) bell->rung = true;
    weft__waitlist_unlock_push(&bell->list, &chain, &weft__sched);
}

weft_poll bell_wait_poll(void *frame, weft_cx *cx)
{
    struct bell_wait *f = frame;
    bool ready = false;
    if (!f->weft__at) {
        f->weft__at = 1;
        weft__waiter_init(&f->waiter);
    }
    weft__waitlist_lock(&f->bell->list);
    if (!weft__waiter_queued(&f->bell->list, &f->waiter)) {
        ready = f->bell->rung || weft__waiter_has_turn(&f->bell->list, &f->waiter);
        if (ready) {
            if (!weft__waitlist_settle(&f->bell->list, &f->waiter)) f->bell->rung = false;
        } else {
            weft__waitlist_add(&f->bell->list, &f->waiter, weft_cx_waker(cx));
        }
    }
    weft__waitlist_unlock(&f->bell->list);
    return ready ? WEFT_READY : WEFT_PENDING;
}
