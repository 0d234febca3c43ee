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
#include "task/watch.h"

#include <errno.h>
#include <string.h>

/* ---- the poll protocol's own ---- */

int weft_cx_cancelled(weft_cx *cx)
{
    if (cx->why && cx->budget > 0) cx->budget--;
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

void weft_cancel(weft_task *task)
{
    if (!task) return;
    weft__handle_check(task, "weft_cancel");
    if (weft__state_cancel(task) == WEFT__STATE_ENQUEUE) weft__sched.ops->push(weft__sched.self, task);
}

/* Takes the handle, which has been marked as spent. */
static void let_go(struct weft_task *task)
{
    if (weft__join_let_go(task)) { /* of one that ends later its worker tells */
        int64_t failure = weft__task_failure(task);
        if (failure) weft__unread_add(&weft__rt_of(task)->unread, task->site, failure);
    }
    weft_unref(task);
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
    if (w->inline_ticks >= INLINE_TICKS_MAX || !weft__inject_idle(&w->rt->inject)) return false;
    w->inline_ticks++;
    w->tick = 0;
    if (weft__runq_length(&w->ring) >= 2) weft__worker_offer(w);
    return true;
}

static bool may_inline(struct weft__worker *w)
{
    if (!w->stack_lo || (char *)__builtin_frame_address(0) < w->stack_lo + STACK_LEFT_MIN) return false;
    return w->tick < w->rt->opts.tick_max || another_tick(w);
}

static struct weft_task *take_newest_unstarted(struct weft__worker *w)
{
    struct weft_task *task = weft__slot_take(&w->next);
    if (!task) task = weft__runq_take_newest(&w->ring);
    if (!task || load_relaxed(&task->polls) == 0) return task; /* relaxed: the taker holds the right to poll */
    weft__worker_push_back(w, task);
    return NULL;
}

static void run_inline(struct weft_task *child)
{
    struct weft__worker *w = weft__here()->worker;
    if (!w || w->rt != weft__rt_of(child) || weft__here()->fiber) return;
    if (load_relaxed(&child->polls) > 0) return; /* relaxed: a hint */
    while (may_inline(w) && !weft__state_is_complete(child)) {
        struct weft_task *task = take_newest_unstarted(w);
        if (!task) return;
        w->tick++;
        weft__tally(&w->counts.inlined, 1);
        weft__worker_run(w, task);
    }
}

/* ---- join ---- */

enum { JOIN_BEGUN = 1, JOIN_CANCEL_PASSED = 2 };

static weft_poll join_ends(struct weft_join *f, int ret)
{
    f->ret = ret;
    return WEFT_READY;
}

static weft_poll join_takes(struct weft_join *f)
{
    const struct weft_site *site = f->task->site;
    if (f->into && site->ret_bytes > 0) memcpy(f->into, (char *)weft__frame_of(f->task) + site->ret_at, site->ret_bytes);
    weft_unref(f->task);
    f->task = NULL;
    return join_ends(f, 0);
}

/* The handle is spent in every case: a child whose result does not fit is let go. */
static weft_poll join_refuses(struct weft_join *f)
{
    let_go(f->task);
    f->task = NULL;
    return join_ends(f, -EINVAL);
}

weft_poll weft_join_poll(void *frame, weft_cx *cx)
{
    struct weft_join *f = frame;
    if (!f->task) return join_ends(f, -ECHILD);
    if (!(f->weft__at & JOIN_BEGUN)) {
        f->weft__at |= JOIN_BEGUN;
        weft__handle_spend(f->task, "weft_join");
        if (f->into && f->bytes != f->task->site->ret_bytes) return join_refuses(f);
        if (!cx->why) run_inline(f->task);
    }
    if (cx->why && !(f->weft__at & JOIN_CANCEL_PASSED)) {
        f->weft__at |= JOIN_CANCEL_PASSED;
        weft_cancel(f->task);
    }
    switch (weft__join_poll(f->task, cx->waker)) {
    case WEFT__JOIN_READY: return join_takes(f);
    case WEFT__JOIN_YIELD: cx->yielded = true; return WEFT_PENDING;
    default: return WEFT_PENDING;
    }
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

static weft_poll wait_answers(struct weft_wait *f, enum weft__join r, weft_cx *cx)
{
    if (r == WEFT__JOIN_READY) return wait_ends(f, 0);
    if (r == WEFT__JOIN_PENDING) f->weft__at = WAIT_LINKED;
    if (r == WEFT__JOIN_YIELD) cx->yielded = true;
    return WEFT_PENDING;
}

static weft_poll wait_begins(struct weft_wait *f, int why, weft_cx *cx)
{
    if (!f->task) return wait_ends(f, -ECHILD);
    weft__handle_check(f->task, "weft_wait");
    if (f->task == weft__waker_task(cx->waker)) return wait_ends(f, -EDEADLK);
    if (why) return wait_ends(f, why);
    return wait_answers(f, weft__watch_add(f->task, watcher_of(f), cx->waker), cx);
}

weft_poll weft_wait_poll(void *frame, weft_cx *cx)
{
    struct weft_wait *f = frame;
    int why = weft_cx_cancelled(cx);
    if (!f->weft__at) return wait_begins(f, why, cx);
    if (!why) return wait_answers(f, weft__watch_again(f->task, watcher_of(f)), cx);
    weft__watch_leave(f->task, watcher_of(f));
    return wait_ends(f, weft__state_is_complete(f->task) ? 0 : why);
}

int weft__wait(weft_task *task)
{
    struct weft_wait f = {.task = task};
    int r = weft__run_from(weft_wait_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

/* ---- yield ---- */

/* A task that was told to stop is answered at once, at the price of budget: a loop that does not listen yields for real when it has none left. */
weft_poll weft_yield_poll(void *frame, weft_cx *cx)
{
    struct weft_yield *f = frame;
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
