/* SPDX-License-Identifier: MIT
 *
 * barrier - so many meet; the last one to come leads, and wakes the others.
 *
 * A waiter remembers the round in which it came; when that is over it is over, whether its turn has come or not. One that is
 * cancelled before is taken out of the count.
 *     arrived == those in the list                                 whenever the lock is free
 * Threads: any. LOCK ORDER: its waitlist alone. What was done before is seen behind it: by the lock, or by the push.
 */
#include "sync/leaf.h"
#include "task/call.h"

#include <weft/sync.h>

#include <errno.h>

_Static_assert(sizeof(struct weft__waitlist) == sizeof(((weft_barrier *)0)->weft__list),
               "a list fits its place");

static struct weft__waitlist *list_of(weft_barrier *barrier)
{
    return (struct weft__waitlist *)(void *)barrier->weft__list;
}

void weft_barrier_init(weft_barrier *barrier, uint64_t size)
{
    weft__waitlist_init(list_of(barrier));
    barrier->weft__size = size;
    barrier->weft__arrived = 0;
    barrier->weft__round = 0;
}

void weft__barrier_done(weft_barrier *barrier, const char *caller)
{
    if (barrier) weft__leaf_done(list_of(barrier), "a barrier", caller);
}

static weft_poll ends(struct weft_barrier_wait *f, int ret)
{
    f->weft__at = 0;
    f->ret = ret;
    return WEFT_READY;
}

static weft_poll arrives(struct weft_barrier_wait *f, weft_cx *cx)
{
    weft_barrier *b = f->barrier;

    weft__waiter_init(WEFT__LEAF_WAITER(f));
    weft__leaf_lock(list_of(b));
    if (b->weft__arrived + 1 >= b->weft__size) {
        b->weft__arrived = 0;
        b->weft__round++;
        (void)weft__waitlist_unlock_wake_all(list_of(b), &weft__sched);
        return ends(f, 1);
    }
    if (!cx->probe) {
        b->weft__arrived++;
        f->weft__round = b->weft__round;
        f->weft__at = WEFT__LEAF_WAITS;
        weft__waitlist_add(list_of(b), WEFT__LEAF_WAITER(f), cx->waker);
    }
    weft__waitlist_unlock(list_of(b));
    return WEFT_PENDING;
}

static weft_poll goes_on(struct weft_barrier_wait *f, weft_cx *cx)
{
    weft_barrier *b = f->barrier;

    if (weft__waiter_take_granted(WEFT__LEAF_WAITER(f))) return ends(f, 0);
    weft__leaf_lock(list_of(b));
    bool met = b->weft__round != f->weft__round;
    if (met || cx->why) (void)weft__waitlist_settle(list_of(b), WEFT__LEAF_WAITER(f));
    if (!met && cx->why) b->weft__arrived--;
    weft__waitlist_unlock(list_of(b));
    if (met) return ends(f, 0);
    return cx->why ? ends(f, weft_cx_cancelled(cx)) : WEFT_PENDING;
}

weft_poll weft_barrier_wait_poll(void *frame, weft_cx *cx)
{
    struct weft_barrier_wait *f = frame;

    if (f->weft__at) return goes_on(f, cx);
    if (cx->why) return weft__told_yields(cx) ? WEFT_PENDING : ends(f, weft_cx_cancelled(cx));
    if (!f->barrier) return ends(f, -EINVAL);
    return weft__leaf_may(cx) ? arrives(f, cx) : WEFT_PENDING;
}

int weft__barrier_wait(weft_barrier *barrier)
{
    struct weft_barrier_wait f = {.barrier = barrier};
    int r = weft__run_from(weft_barrier_wait_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}
