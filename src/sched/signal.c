/* SPDX-License-Identifier: MIT
 *
 * signal - wakes and cancels from signal handlers.
 *
 * A handler runs between any two instructions of the thread that it interrupts. A plain wake may not be used there: on a thread
 * that turns a current-thread runtime it writes the ring and the slot, whose owner may be in the middle of the same; and where
 * locks are checked it asserts that none is held, which the interrupted code may well do. So this one always takes the way of
 * threads outside, each step of which may be interrupted, and interrupt itself:
 *     claim      one read-modify-write
 *     push       one exchange of the inject queue's tail, one store; an interrupted pusher leaves a gap, which it closes when
 *                the handler has returned; until then a pop sees the queue end there, and nobody waits for it
 *     tell       CAS of the idle word, exchange of the parking word; a futex or eventfd syscall that does not block
 * No lock, no memory, no stdio; errno is put back. The reference that the caller keeps makes sure that nothing is freed here.
 */
#include "sched/sched.h"

#include "sys/errno.h"
#include "task/waker.h"

static void push_as_outsider(void *unused, struct weft_task *task)
{
    (void)unused;
    struct weft_rt *rt = weft__rt_of(task);
    weft__rt_hold(rt);
    weft__rt_push_outside(rt, task, task);
    weft__rt_release(rt);
}

static const struct weft__sched_ops ops = {.push = push_as_outsider};
static const struct weft__sched outside = {.ops = &ops};

void weft__task_cancel_signal(struct weft_task *task)
{
    int before = weft__errno_save();
    if (weft__state_cancel(task) == WEFT__STATE_ENQUEUE) push_as_outsider(NULL, task);
    weft__errno_restore(before);
}

void weft_waker_wake_signal(weft_waker waker)
{
    if (weft__waker_is_none(waker)) return;
    int before = weft__errno_save();
    weft__waker_deliver(weft__waker_claim(waker), &outside);
    weft__errno_restore(before);
}
