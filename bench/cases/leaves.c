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
    weft__waitlist_lock(&bell->list);
    if (weft__waitlist_empty(&bell->list)) {
        bell->rung = true;
        weft__waitlist_unlock(&bell->list);
    } else {
        weft__waitlist_unlock_wake_first(&bell->list, &weft__sched);
    }
}

/* Gives up; a ring that had come is for the next, or kept. */
static weft_poll stop(struct bell_wait *f, weft_cx *cx)
{
    if (f->weft__at && weft__waitlist_leave(&f->bell->list, &f->waiter)) bell_ring(f->bell);
    f->ret = weft_cx_cancelled(cx);
    return WEFT_READY;
}

/* Is there a ring? If not, it waits for one. */
static weft_poll begin(struct bell_wait *f, weft_cx *cx)
{
    struct bell *bell = f->bell;

    f->weft__at = 1; /* odd: not a place in a body */
    weft__waiter_init(&f->waiter);
    weft__waitlist_lock(&bell->list);
    bool rung = bell->rung;
    bell->rung = false;
    if (!rung) weft__waitlist_add(&bell->list, &f->waiter, cx->waker);
    weft__waitlist_unlock(&bell->list);
    return rung ? WEFT_READY : WEFT_PENDING;
}

/* It was running when it was rung for, or it is polled for another reason. */
static weft_poll look_again(struct bell_wait *f)
{
    weft__waitlist_lock(&f->bell->list);
    bool turn = weft__waiter_has_turn(&f->bell->list, &f->waiter);
    if (turn) (void)weft__waitlist_settle(&f->bell->list, &f->waiter);
    weft__waitlist_unlock(&f->bell->list);
    return turn ? WEFT_READY : WEFT_PENDING;
}

/* Apart from bell_wait_poll, so that a wait which is over saves no registers for it. */
static __attribute__((noinline)) weft_poll poll_slow(struct bell_wait *f, weft_cx *cx)
{
    if (__builtin_expect(cx->why < 0, 0)) return stop(f, cx);
    return f->weft__at ? look_again(f) : begin(f, cx);
}

weft_poll bell_wait_poll(void *frame, weft_cx *cx)
{
    struct bell_wait *f = frame;

    if (f->weft__at && weft__waiter_take_granted(&f->waiter)) return WEFT_READY;
    return poll_slow(f, cx);
}
