/* SPDX-License-Identifier: MIT
 *
 * handle - what the holder of a task may do with it: join, wait, cancel, detach, look; and yield.
 *
 * INLINE JOIN  A parent that joins a child which has not begun takes tasks back from the newest end of its own ring and runs them on the spot until the child is
 * done: a fork-join program then holds as many blocks as it is deep, and pays no queue. It stops at a task that has begun (its frame may wait for
 * anything), at the fairness tick, and when the stack runs low; then the join waits like any other. Each inlined child has a budget of its own and counts as a poll.
 */
#include "sched/sched.h"
#include "task/call.h"
#include "task/fiber.h"
#include "task/watchers.h"

#include <errno.h>
#include <string.h>

/* ---- the poll protocol's own ---- */

int weft_cx_cancelled(weft_cx *cx)
{
    if (cx->why && cx->budget > 0 && cx->budget != WEFT__UNBUDGETED) cx->budget--;
    return cx->why;
}

weft_waker weft_cx_waker(weft_cx *cx)
{
    return cx->waker;
}

void weft_waker_wake(weft_waker waker)
{
    if (weft__waker_is_none(waker)) return;
    weft__waker_wake(waker, &weft__sched);
}

weft_waker weft_waker_ref(weft_waker waker)
{
    struct weft__foreign *foreign = weft__waker_foreign(waker);
    if (weft__waker_is_none(waker)) return waker;
    if (foreign) {
        weft__foreign_ref(foreign);
        return waker;
    }
    return weft__state_ref(weft__waker_task(waker)) < 0 ? weft__waker_none() : waker;
}

void weft_waker_unref(weft_waker waker)
{
    struct weft__foreign *foreign = weft__waker_foreign(waker);
    if (weft__waker_is_none(waker)) return;
    if (foreign) {
        weft__foreign_unref(foreign);
        return;
    }
    weft_unref(weft__waker_task(waker));
}

/* ---- looking ---- */

bool weft_done(const weft_task *task)
{
    if (!task) return true;
    weft__handle_check(task, "weft_done");
    return weft__state_is_complete(task);
}

uint64_t weft_task_id(const weft_task *task)
{
    if (!task) return 0;
    weft__handle_check(task, "weft_task_id");
    return weft__slab_id(task);
}

const char *weft_task_name(const weft_task *task)
{
    if (!task) return "none";
    weft__handle_check(task, "weft_task_name");
    return weft__name_of(task);
}

weft_task *weft_self(void)
{
    return weft__here()->task;
}

/* ---- references ---- */

weft_task *weft_ref(weft_task *task)
{
    if (!task) return NULL;
    weft__handle_check(task, "weft_ref");
    return weft__state_ref(task) < 0 ? NULL : task;
}

void weft_unref(weft_task *task)
{
    if (!task) return;
    weft__handle_check(task, "weft_unref");
    if (weft__state_unref(task) == WEFT__STATE_FREE) weft__task_free(task);
}

static void cancel_for(weft_task *task, int why)
{
    if (weft__state_cancel_for(task, why) == WEFT__STATE_ENQUEUE) weft__sched.ops->push(weft__sched.self, task);
}

void weft_cancel(weft_task *task)
{
    if (!task) return;
    weft__handle_check(task, "weft_cancel");
    cancel_for(task, -ECANCELED);
}

/* The child is complete, and the caller drops its handle. In a forked child nobody counts: the lock may be held for ever. */
static void tell_unread(struct weft_task *task)
{
    int64_t failure = weft__task_failure(task);
    if (failure && !weft__task_is_lost(task)) weft__unread_add(&weft__rt_of(task)->unread, task->site, failure);
}

/* Takes the handle, which has been marked as spent. */
static void let_go(struct weft_task *task)
{
    enum weft__state_next next;
    uint64_t word = weft__state_look(task);
    bool told = false;

    do { /* of one that ends later its worker tells */
        if (told || !(word & WEFT__STATE_COMPLETE) || !weft__state_is_complete(task)) continue;
        tell_unread(task); /* now: without our reference the runtime may be gone */
        told = true;
    } while (!weft__join_detach(task, &word, &next));
    if (next == WEFT__STATE_FREE) weft__task_free(task);
}

int weft_detach(weft_task *task)
{
    if (!task) return -ECHILD;
    weft__handle_spend(task, "weft_detach");
    let_go(task);
    return 0;
}

/* ---- inline join ---- */

/* An inlined child may need as much as this, and what it calls. */
#define STACK_LEFT_MIN (32 * 1024)

/* Fairness ticks that a stretch of inlined children may last: about 1,000 polls, tens to hundreds of microseconds. Doubled: tasks in the ring wait twice as
 * long for the loop; halved: fork-join programs unwind twice as often, and each time the loop begins another branch of their tree. */
#define INLINE_TICKS_MAX 16

/* The tick is over: go on only if nobody outside waits, and not for ever. What lies in the ring is offered to thieves, as the loop would do. */
static bool another_tick(struct weft__worker *w)
{
    if (weft__worker_was_hurried(w)) return true;
    if (w->inline_ticks >= INLINE_TICKS_MAX || weft__worker_keeps_waiting(w)) return false;
    w->inline_ticks++;
    w->tick = 0;
    (void)weft__worker_look(w);
    if (weft__runq_length(&w->ring) >= 2) weft__worker_offer(w);
    return true;
}

static bool may_inline(struct weft__worker *w)
{
    if (!w->stack_lo || (char *)__builtin_frame_address(0) < w->stack_lo + STACK_LEFT_MIN) return false;
    return w->tick < w->tick_max || another_tick(w);
}

/* One that has begun goes to the ring's tail: its frame may wait for anything. */
static struct weft_task *take_newest_unstarted(struct weft__worker *w)
{
    struct weft_task *task = weft__slot_take(&w->next);
    if (!task) task = weft__runq_take_newest(&w->ring);
    if (!task || load_relaxed(&task->polls) == 0) return task; /* relaxed: the taker holds the right to poll */
    weft__worker_push_back(w, task);
    return NULL;
}

/* The child has not begun. True: it is complete. */
static inline bool run_inline(struct weft__worker *w, struct weft_task *child)
{
    while (may_inline(w)) {
        struct weft_task *task = take_newest_unstarted(w);
        if (!task) return false;
        w->tick++;
        weft__tally(&w->counts.inlined, 1);
        weft__worker_run(w, task, child);
        if (weft__state_is_complete(child)) return true;
    }
    return false;
}

/* The worker that may run the child on the spot: the caller is a stackless task on it, and the child has not begun. */
static struct weft__worker *inliner_of(const struct weft_task *child)
{
    struct weft__here *here = weft__here();
    struct weft__worker *w = here->worker;
    if (!w || here->fiber || load_relaxed(&child->polls) > 0) return NULL; /* relaxed: a hint */
    if (weft__is_placed(child)) return NULL; /* it is in no ring */
    return w->rt == weft__rt_of(child) ? w : NULL;
}

/* ---- join ---- */

enum { JOIN_BEGUN = 1, JOIN_CANCEL_PASSED = 2 };

static weft_poll join_ends(struct weft_join *f, int ret)
{
    f->ret = ret;
    return WEFT_READY;
}

/* Most results are one word, for which a call of memcpy costs more than the rest of a join. */
static void copy_result(void *into, const void *from, size_t bytes)
{
    if (bytes == 8) {
        memcpy(into, from, 8);
    } else if (bytes == 4) {
        memcpy(into, from, 4);
    } else {
        memcpy(into, from, bytes);
    }
}

/* A fiber that never ran, and has no way to say so by its result. */
static bool never_ran(struct weft_task *task)
{
    return !task->site->ret_signed && weft__fiber_never_ran(task);
}

/* The child is complete: its result goes to the joiner, its block to whoever holds the last reference. `w` is the worker that this is, if it is known. */
static inline weft_poll join_takes(struct weft_join *f, struct weft__worker *w)
{
    struct weft_task *task = f->task;
    const struct weft_site *site = task->site;
    int ret = __builtin_expect(never_ran(task), 0) ? -ENOMEM : 0;
    if (f->into && ret == 0) copy_result(f->into, (char *)weft__frame_of(task) + site->ret_at, site->ret_bytes);
    f->task = NULL;
    if (weft__state_unref(task) != WEFT__STATE_FREE) return join_ends(f, ret);
    if (w) {
        weft__task_free_on(w, task);
    } else {
        weft__task_free(task);
    }
    return join_ends(f, ret);
}

/* The handle is spent in every case: a child whose result does not fit is let go. */
static weft_poll join_refuses(struct weft_join *f)
{
    let_go(f->task);
    f->task = NULL;
    return join_ends(f, -EINVAL);
}

/* The child has begun, or cannot be run here. */
static __attribute__((noinline)) weft_poll join_waits(struct weft_join *f, weft_cx *cx)
{
    if (cx->why && !(f->weft__at & JOIN_CANCEL_PASSED)) {
        f->weft__at |= JOIN_CANCEL_PASSED;
        cancel_for(f->task, cx->why);
    }
    switch (weft__join_poll(f->task, cx->waker)) {
    case WEFT__JOIN_READY: return join_takes(f, NULL);
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
    if (!join_fits(f)) return join_refuses(f);
    if (weft__state_is_complete(task)) return join_takes(f, NULL);
    struct weft__worker *w = cx->why || cx->among ? NULL : inliner_of(task);
    if (w && run_inline(w, task)) return join_takes(f, w);
    return join_waits(f, cx);
}

int weft__join(weft_task *task, void *into, size_t bytes)
{
    struct weft_join f = {.task = task, .into = into, .bytes = bytes};
    int r = weft__run_from(weft_join_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
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
    if (cx->probe) return weft__state_is_complete(f->task) ? wait_ends(f, 0) : WEFT_PENDING;
    if (weft__watchers_add(f->task, watcher_of(f), cx->waker)) return wait_ends(f, 0);
    f->weft__at = WAIT_LINKED;
    return WEFT_PENDING;
}

weft_poll weft_wait_poll(void *frame, weft_cx *cx)
{
    struct weft_wait *f = frame;
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

/* ---- yield ---- */

static weft_poll yield_ends(struct weft_yield *f)
{
    f->ret = 0;
    return WEFT_READY;
}

/* A task that was told to stop is answered at once, at the price of budget: a loop that does not listen yields for real when it has none left. */
weft_poll weft_yield_poll(void *frame, weft_cx *cx)
{
    struct weft_yield *f = frame;
    if (__builtin_expect(!cx->why, 1)) {
        if (f->weft__at) return yield_ends(f);
        if (cx->probe) return WEFT_PENDING;
        f->weft__at = 1;
        cx->yielded = true;
        return WEFT_PENDING;
    }
    bool answer_now = cx->why && cx->budget > 0;
    f->ret = weft_cx_cancelled(cx);
    if (f->weft__at || answer_now) return WEFT_READY;
    f->weft__at = 1;
    cx->yielded = true;
    return WEFT_PENDING;
}

int weft__yield(void)
{
    struct weft_yield f = {0};
    int r = weft__run_from(weft_yield_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}
