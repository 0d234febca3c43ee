/* SPDX-License-Identifier: MIT
 *
 * handle - what the holder of a task may do with it, beside waiting for it (join.c): cancel, detach, look; and yield.
 */
#include "sched/sched.h"
#include "task/call.h"
#include "task/fiber.h"
#include "task/watchers.h"

#include <errno.h>

/* ---- the poll protocol's own ---- */

int weft_cx_cancelled(weft_cx *cx)
{
    return weft__told(cx);
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

void weft__handle_cancel_for(weft_task *task, int why)
{
    if (weft__state_cancel_for(task, why) != WEFT__STATE_ENQUEUE) return;
    weft__lock_assert_none_held();
    weft__sched.ops->push(weft__sched.self, task);
}

void weft_cancel(weft_task *task)
{
    if (!task) return;
    weft__handle_check(task, "weft_cancel");
    weft__handle_cancel_for(task, -ECANCELED);
}

/* The child is complete, and the caller drops its handle. In a forked child nobody counts: the lock may be held for ever. */
static void tell_unread(struct weft_task *task)
{
    int64_t failure = weft__task_failure(task);
    if (failure && !weft__task_is_lost(task)) weft__unread_add(&weft__rt_of(task)->unread, task->site, failure);
}

void weft__handle_drop(struct weft_task *task)
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

/* Most are detached in the same breath as they are spawned, and lie in this worker's slot. A read-modify-write would wait there until all
 * that the spawn has written is in the cache. */
static inline bool detach_newborn(struct weft_task *task)
{
    struct weft__worker *w = weft__here()->worker;
    if (!w || !weft__slot_hold_if(&w->next, task)) return false;
    bool done = weft__join_detach_newborn(task);
    weft__slot_let_go(&w->next);
    return done;
}

int weft_detach(weft_task *task)
{
    if (!task) return -ECHILD;
    weft__handle_spend(task, "weft_detach");
    if (detach_newborn(task)) return 0;
    enum weft__state_next next;
    uint64_t word = weft__state_look(task);
    /* Of most the end is still to come: there is nothing to tell, and nothing to free. */
    if ((word & WEFT__STATE_COMPLETE) || !weft__join_detach(task, &word, &next)) weft__handle_drop(task);
    return 0;
}

/* ---- yield ---- */

/* A task that was told to stop is answered at once, at the price of budget: a loop that does not listen yields for real when it has none left. */
static __attribute__((noinline)) weft_poll yield_told_to_stop(struct weft_yield *f, weft_cx *cx)
{
    if (!f->weft__at && weft__told_yields(cx)) {
        f->weft__at = 1;
        return WEFT_PENDING;
    }
    f->ret = weft_cx_cancelled(cx);
    return WEFT_READY;
}

weft_poll weft_yield_poll(void *frame, weft_cx *cx)
{
    struct weft_yield *f = frame;
    if (__builtin_expect(cx->why, 0)) return yield_told_to_stop(f, cx);
    if (f->weft__at) {
        f->ret = 0;
        return WEFT_READY;
    }
    if (__builtin_expect(cx->probe, 0)) return WEFT_PENDING;
    f->weft__at = 1;
    cx->yielded = true;
    return WEFT_PENDING;
}

/* On a fiber that was not told to stop, and is in no region, there is nothing to poll: it is suspended, and told when it goes on. */
int weft__yield(void)
{
    struct weft__here *here = weft__here();
    struct weft__fiber *f = here->fiber;
    if (f && !f->polling && !f->regions && !here->cx->why) {
        here->cx->yielded = true;
        return weft__fiber_suspend();
    }
    struct weft_yield frame = {0};
    int r = weft__run_from(weft_yield_poll, &frame, __builtin_return_address(0));
    return r < 0 ? r : frame.ret;
}
