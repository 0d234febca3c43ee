/* SPDX-License-Identifier: MIT
 *
 * join - waiting for a task: by its owner, who gets the result, and by others, who only see its end.
 *
 * INLINE JOIN  A parent that joins a child which has not begun takes tasks back from the newest end of its own ring and runs them on the spot until the child is
 * done: a fork-join program then holds as many blocks as it is deep, and pays no queue. It stops at a task that has begun (its frame may wait for
 * anything), when others want to be looked at, after some fairness ticks, and when the stack runs low; then the join waits like any other. Each inlined child has
 * a budget of its own and counts as a poll. A child that its joiner runs to the end, and nobody else refers to, is never complete: its result is copied and its
 * block freed by one store, without a read-modify-write.
 */
#include "sched/poll.h"
#include "sync/kin.h"
#include "sync/leaf.h"
#include "task/call.h"
#include "task/watchers.h"

#include <string.h>

/* ---- the result ---- */

static weft_poll join_ends(struct weft_join *f, int ret)
{
    f->ret = ret;
    return WEFT_READY;
}

/* Most results are one word, for which a call of memcpy costs more than the rest of a join. */
static inline void copy_result(void *into, const void *from, size_t bytes)
{
    if (bytes == 8) {
        memcpy(into, from, 8);
    } else if (bytes == 4) {
        memcpy(into, from, 4);
    } else {
        memcpy(into, from, bytes);
    }
}

/* From a child that has ended; the joiner's handle is spent. 0; -ENOMEM: a fiber that never ran, and has no way to say so by its result. */
static inline int take_result(struct weft_join *f, struct weft_task *task)
{
    const struct weft_site *site = task->site;
    f->task = NULL;
    if (__builtin_expect(!site->ret_signed, 0) && weft__fiber_never_ran(task)) return -ENOMEM;
    if (f->into) copy_result(f->into, (char *)weft__frame_of(task) + site->ret_at, site->ret_bytes);
    return 0;
}

/* The child is complete: its result goes to the joiner, its block to whoever holds the last reference. */
static __attribute__((noinline)) weft_poll join_takes(struct weft_join *f)
{
    struct weft_task *task = f->task;
    int ret = take_result(f, task);
    if (weft__state_unref(task) == WEFT__STATE_FREE) weft__task_free(task);
    return join_ends(f, ret);
}

/* ---- inline join ---- */

/* An inlined child may need as much as this, and what it calls. */
#define STACK_LEFT_MIN (32 * 1024)

/* Fairness ticks that a stretch of inlined children may last: about 1,000 polls, tens to hundreds of microseconds. Doubled: tasks in the ring wait twice as
 * long for the loop; halved: fork-join programs unwind twice as often, and each time the loop begins another branch of their tree. */
#define INLINE_TICKS_MAX 16

/* The loop would look elsewhere now: go on only if nobody outside waits, and not for ever. What lies in the ring is offered to thieves, as the loop would do. */
static __attribute__((noinline)) bool another_stretch(struct weft__worker *w)
{
    weft__worker_look_hurried(w);
    uint32_t tick = w->tick + w->stretch.length;
    bool over = tick >= w->tick_max;
    if (weft__worker_keeps_waiting(w) || (over && w->inline_ticks >= INLINE_TICKS_MAX)) return false;
    w->inline_ticks += over;
    w->round += over ? tick : 0;
    w->tick = over ? 0 : tick;
    w->background_tick = 0; /* nobody waits there */
    weft__worker_stretch(w);
    w->stretch.left++; /* the poll that begins it is counted here, and by the loop is not: else one of a single poll would be at 0, where the loop never sees its end */
    if (over) (void)weft__worker_look(w);
    if (weft__runq_holds(&w->ring, 2)) weft__worker_offer(w, false);
    return true;
}

void weft__worker_inlines_on(struct weft__worker *w, char *lo, size_t bytes)
{
    bool enough = lo && bytes > STACK_LEFT_MIN;
    w->stack_lo = enough ? lo + STACK_LEFT_MIN : NULL;
    w->stack_room = enough ? bytes - STACK_LEFT_MIN : 0;
}

/* Below the stack's end, or above it, the subtraction gives more than there is room: who turns a runtime on a coroutine's stack, or on that of a signal
 * handler, stands there. */
static inline bool may_inline(struct weft__worker *w)
{
    char mark;
    if ((uintptr_t)&mark - (uintptr_t)w->stack_lo >= w->stack_room) return false;
    return w->stretch.left > 1 || another_stretch(w);
}

/* One that has begun goes to the ring's tail: its frame may wait for anything. */
static inline struct weft_task *take_newest_unstarted(struct weft__worker *w)
{
    struct weft_task *task = weft__slot_take(&w->next);
    if (!task) task = weft__runq_take_newest(&w->ring);
    if (!task || load_relaxed(&task->polls) == 0) return task; /* relaxed: the taker holds the right to poll */
    weft__worker_push_back(w, task);
    return NULL;
}

/* The joined child has run to its end. True: nobody else refers to it, and the join is over. */
static inline bool end_own(struct weft_join *f, struct weft__worker *w, struct weft_task *task)
{
    uint64_t word = weft__join_ending(task);
    if (__builtin_expect(!weft__state_is_own(word), 0)) {
        weft__poll_finish_seen(w, task, word);
        return false;
    }
    f->ret = take_result(f, task);
    weft__poll_bury(w, task, word);
    return true;
}

/* A task that was taken back. True: it was the joined child, and the join is over. */
static inline bool run_one(struct weft_join *f, struct weft__worker *w, struct weft_task *task)
{
    struct weft__here *here = w->here;
    struct weft_task *outer_task = here->task;
    struct weft_cx *outer_cx = here->cx;
    struct weft_cx cx;

    weft_poll answer = weft__poll_call(w, here, task, &cx);
    here->task = outer_task;
    here->cx = outer_cx;
    if (answer == WEFT_PENDING) {
        weft__poll_left(w, task, &cx);
        return false;
    }
    weft__poll_ready(w, task);
    if (task == f->task) return end_own(f, w, task);
    weft__poll_finish(w, task);
    return false;
}

/* The child has not begun. True: the join is over. */
static inline bool run_inline(struct weft_join *f, struct weft__worker *w)
{
    while (may_inline(w)) {
        struct weft_task *task = take_newest_unstarted(w);
        if (!task) return false;
        w->stretch.left--;
        weft__tally(&w->counts.inlined, 1);
        if (run_one(f, w, task)) return true;
        if (!weft__state_is_complete(f->task)) continue;
        (void)join_takes(f);
        return true;
    }
    return false;
}

/* The worker that may run the child on the spot: the caller is a stackless task on it, and the child has not begun. */
static inline struct weft__worker *inliner_of(const struct weft_task *child)
{
    struct weft__here *here = weft__here();
    struct weft__worker *w = here->worker;
    if (!w || here->fiber || load_relaxed(&child->polls) > 0) return NULL; /* relaxed: a hint */
    if (weft__is_placed(child)) return NULL; /* it is in no ring */
    return w->rt == weft__rt_of(child) ? w : NULL;
}

/* A fiber cannot run others on its own stack. It has its worker take the newest first for a while: else a tree of fibers would be gone through by its
 * breadth, and all of them would have a stack at once. */
static void dive(struct weft_task *child)
{
    struct weft__here *here = weft__here();
    struct weft__worker *w = here->worker;
    if (!w || !here->fiber || load_relaxed(&child->polls) > 0) return; /* relaxed: a hint */
    if (!weft__is_placed(child) && w->rt == weft__rt_of(child)) w->dive = WEFT__DIVE;
}

void weft__join_dives(void)
{
    struct weft__worker *w = weft__here()->worker;
    if (w) w->dive = WEFT__DIVE;
}

/* ---- join ---- */

enum { JOIN_BEGUN = 1, JOIN_CANCEL_PASSED = 2 };

/* The handle is spent in every case: a child whose result does not fit, and a task that joins itself, is let go. */
static __attribute__((noinline)) weft_poll join_refuses(struct weft_join *f, int why)
{
    weft__handle_drop(f->task);
    f->task = NULL;
    return join_ends(f, why);
}

/* The child has begun, or cannot be run here. */
static __attribute__((noinline)) weft_poll join_waits(struct weft_join *f, weft_cx *cx)
{
    if (f->task == weft__waker_task(cx->waker)) return join_refuses(f, -EDEADLK);
    if (cx->why && !(f->weft__at & JOIN_CANCEL_PASSED)) {
        f->weft__at |= JOIN_CANCEL_PASSED;
        weft__handle_cancel_for(f->task, cx->why);
    }
    switch (weft__join_poll(f->task, cx->waker)) {
    case WEFT__JOIN_READY: return join_takes(f);
    case WEFT__JOIN_YIELD: cx->yielded = true; return WEFT_PENDING;
    default: return WEFT_PENDING;
    }
}

static bool join_fits(const struct weft_join *f)
{
    return !f->into || f->bytes == f->task->site->ret_bytes;
}

weft_poll weft_join_poll(void *frame, weft_cx *cx)
{
    struct weft_join *f = frame;
    struct weft_task *task = f->task;
    if (!task || weft__task_is_lost(task)) return join_ends(f, -ECHILD);
    if (f->weft__at & JOIN_BEGUN) return join_waits(f, cx);
    f->weft__at |= JOIN_BEGUN;
    weft__handle_spend(task, "weft_join");
    if (__builtin_expect(!join_fits(f), 0)) return join_refuses(f, -EINVAL);
    struct weft__worker *w = cx->why || cx->among ? NULL : inliner_of(task);
    if (w && run_inline(f, w)) return WEFT_READY;
    if (weft__state_is_complete(f->task)) return join_takes(f);
    if (!w) dive(f->task);
    return join_waits(f, cx);
}

/* ---- wait ---- */

enum { WAIT_LINKED = 1 };

static struct weft__watcher *watcher_of(struct weft_wait *f)
{
    _Static_assert(sizeof(f->weft__watcher) == sizeof(struct weft__watcher), "a watcher fits its place");
    return (void *)f->weft__watcher;
}

static weft_poll wait_ends(struct weft_wait *f, int ret)
{
    f->ret = ret;
    return WEFT_READY;
}

static weft_poll wait_begins(struct weft_wait *f, int why, weft_cx *cx)
{
    weft__handle_check(f->task, "weft_wait");
    if (f->task == weft__waker_task(cx->waker)) return wait_ends(f, -EDEADLK);
    if (why) return wait_ends(f, why);
    if (!weft__leaf_may(cx)) return WEFT_PENDING;
    if (cx->probe) return weft__state_is_complete(f->task) ? wait_ends(f, 0) : WEFT_PENDING;
    if (weft__watchers_add(f->task, watcher_of(f), cx->waker)) return wait_ends(f, 0);
    f->weft__at = WAIT_LINKED;
    return WEFT_PENDING;
}

weft_poll weft_wait_poll(void *frame, weft_cx *cx)
{
    struct weft_wait *f = frame;
    if (cx->why && !f->weft__at && weft__told_yields(cx)) return WEFT_PENDING;
    int why = weft_cx_cancelled(cx);
    /* In a forked child a watcher that was linked stays as it is: the table has forgotten it. */
    if (!f->task || weft__task_is_lost(f->task)) return wait_ends(f, -ECHILD);
    if (!f->weft__at) return wait_begins(f, why, cx);
    if (weft__watchers_again(f->task, watcher_of(f))) return wait_ends(f, 0);
    if (!why) return WEFT_PENDING;
    weft__watchers_leave(watcher_of(f));
    return wait_ends(f, why);
}

int weft__wait(weft_task *task)
{
    struct weft_wait f = {.task = task};
    int r = weft__run_from(weft_wait_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}
