/* SPDX-License-Identifier: MIT
 *
 * blocking_call - weft_blocking: the frame that awaits a job, its call form, and lanes.
 *
 * A borrowing job lies in its frame, and the frame waits for it whatever happens. An owning one is a
 * copy on the heap: its frame may leave it behind, and the pool disposes of it (weft/blocking.h).
 * Who waits for a job of a runtime that it is no task of, holds that runtime's memory meanwhile.
 */
#include "sched/blocking.h"

#include "base/alloc.h"
#include "sched/gate.h"
#include "sched/sched.h"
#include "task/call.h"
#include "task/lane.h"

#include <errno.h>
#include <stdio.h>

/* In weft__at: BEGUN is odd, so that it is not taken for an await (weft/future.h). */
enum { BEGUN = 1, OWNING = 2, HOLDING = 4 };

/* ---- the frame ---- */

static struct weft__job *job_of(struct weft_blocking *f)
{
    _Static_assert(sizeof(f->weft__job) >= sizeof(struct weft__job), "a job fits its place");
    return f->weft__at & OWNING ? f->weft__job[0] : (void *)f->weft__job;
}

static struct weft_lane *lane_of(const struct weft_blocking *f)
{
    if (f->lane) return f->lane;
    weft_rt *rt = f->rt ? f->rt : weft_rt_current();
    return rt ? &rt->blocking.common : NULL;
}

/* Of an owning job: given up, it keeps its argument, whether it ran or not. */
static weft_poll answers(struct weft_blocking *f, int64_t ret)
{
    f->ret = ret;
    if (f->dispose && (ret == -ECANCELED || ret == -ETIME))
        f->dispose((void *)(uintptr_t)f->call.arg[0], ret);
    return WEFT_READY;
}

static bool is_its_task(const struct weft_rt *rt)
{
    const struct weft__worker *w = weft__here()->worker;
    return w && w->rt == rt;
}

/* The job is over: what it held goes. A task of the runtime is awake; else somebody has to look. */
static void let_go(struct weft_blocking *f, struct weft_rt *rt, struct weft__job *job)
{
    if (f->weft__at & OWNING) weft__free(job);
    weft__clock_release(&rt->clock);
    if (!is_its_task(rt)) weft__clock_nudge(rt);
    if (f->weft__at & HOLDING) weft__rt_release(rt);
}

static weft_poll goes_on(struct weft_blocking *f, weft_cx *cx)
{
    int why = weft_cx_cancelled(cx);
    struct weft__job *job = job_of(f);
    struct weft_rt *rt = f->rt; /* the lane may be gone */
    int64_t ret = why;

    if (weft__forked && weft__rt_is_lost(rt)) return answers(f, -ECHILD);
    switch (weft__job_poll(&rt->blocking.jobs, job, why < 0)) {
    case WEFT__JOB_WAIT:
        return WEFT_PENDING;
    case WEFT__JOB_READY:
        ret = plain_read(&job->ret);
        break;
    case WEFT__JOB_WITHDRAWN:
        break;
    case WEFT__JOB_LEFT:
        if (f->weft__at & HOLDING) weft__rt_release(rt);
        f->ret = why; /* the pool disposes, and lets go of the clock */
        return WEFT_READY;
    }
    let_go(f, rt, job);
    return answers(f, ret);
}

/* ---- the beginning ---- */

static struct weft__job *own_job_new(struct weft_blocking *f)
{
    struct weft__own_job *own = weft__alloc(sizeof(*own));
    if (!own) return NULL;
    own->call = f->call;
    own->dispose = f->dispose;
    own->job.call = &own->call;
    own->job.owning = true;
    f->weft__job[0] = own;
    return &own->job;
}

static struct weft__job *job_new(struct weft_blocking *f)
{
    if (f->dispose) return own_job_new(f);
    struct weft__job *job = (void *)f->weft__job;
    job->call = &f->call;
    job->owning = false;
    return job;
}

/* 0: queued, and whoever comes to run it was called. 1: the same, but it may be over already.
 * Else an error, and nothing was taken. */
static int submit(struct weft_blocking *f, struct weft_lane *lane, weft_cx *cx)
{
    struct weft__calls calls = {0};
    struct weft__job *job = job_new(f);
    if (!job) return -ENOMEM;
    job->lane = &lane->lane;
    job->name = f->name;
    job->waker = cx->waker;
    weft__clock_hold(&lane->rt->clock); /* one that stands does not move past a job that runs */
    int r = weft__job_submit(&lane->rt->blocking.jobs, job, &calls);
    if (r < 0) {
        weft__clock_release(&lane->rt->clock);
        if (f->dispose) weft__free(f->weft__job[0]);
        return r;
    }
    return weft__blocking_call(&lane->rt->blocking, &calls) ? 0 : 1;
}

/* A task keeps its runtime from stopping; others pass the gate, and hold what they touch again. */
static int submit_from_anywhere(struct weft_blocking *f, struct weft_lane *lane, weft_cx *cx)
{
    struct weft_rt *rt = lane->rt;
    int32_t at = BEGUN | (f->dispose ? OWNING : 0);
    int r;

    if (is_its_task(rt)) {
        r = submit(f, lane, cx);
    } else {
        if (!weft__gate_enter(rt)) return -ESHUTDOWN;
        weft__rt_hold(rt);
        at |= HOLDING;
        r = submit(f, lane, cx);
        weft__clock_nudge(rt); /* it may only wait behind another that sleeps */
        weft__gate_leave(rt);
        if (r < 0) weft__rt_release(rt);
    }
    if (r >= 0) f->weft__at = at;
    return r;
}

static bool is_sound(const struct weft_blocking *f)
{
    return f->call.fn && f->call.ret_signed && !(f->lane && f->rt && f->lane->rt != f->rt);
}

/* On a thread that runs a job of the same lane. It may block already, and may be the last one of
 * the lane: who waited for another would wait for ever. */
static bool may_call_here(const struct weft_lane *lane)
{
    const struct weft__here *here = weft__here();
    return !here->worker && !here->fiber && weft__blocking_is_here(lane);
}

static int64_t call_here(const weft_call *call)
{
    struct weft__here *here = weft__here();
    struct weft_cx *outer = here->cx;

    here->cx = NULL; /* for the function this is no poll */
    int64_t ret = weft__call_now(call);
    here->cx = outer;
    return ret;
}

static weft_poll begins(struct weft_blocking *f, weft_cx *cx)
{
    if (cx->why && weft__told_yields(cx)) return WEFT_PENDING;
    int why = weft_cx_cancelled(cx);
    struct weft_lane *lane = lane_of(f);

    if (!is_sound(f)) return answers(f, -EINVAL);
    if (why) return answers(f, why);
    if (!lane) return answers(f, -ENXIO);
    if (weft__rt_is_lost(lane->rt)) return answers(f, -ECHILD);
    if (may_call_here(lane)) return answers(f, call_here(&f->call));
    f->rt = lane->rt;
    int r = submit_from_anywhere(f, lane, cx);
    if (r < 0) return answers(f, r);
    return r > 0 ? goes_on(f, cx) : WEFT_PENDING;
}

weft_poll weft_blocking_poll(void *frame, weft_cx *cx)
{
    struct weft_blocking *f = frame;
    return f->weft__at ? goes_on(f, cx) : begins(f, cx);
}

int64_t weft__blocking(const weft_call *call, const char *name, const weft_blocking_opts *opts)
{
    struct weft_blocking f = {.call = *call, .name = name};
    if (opts) {
        f.lane = opts->lane;
        f.dispose = opts->dispose;
        f.rt = opts->rt;
        if (opts->name) f.name = opts->name;
    }
    int r = weft__run_from(weft_blocking_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

/* ---- lanes ---- */

struct weft_lane *weft__lane_of_names(struct weft_rt *rt)
{
    if (!rt) rt = weft_rt_current();
    return rt ? &rt->blocking.names : NULL;
}

/* The runtime does not stop meanwhile. */
static int lane_new(weft_rt *rt, const char *name, unsigned threads, weft_lane **into)
{
    struct weft_lane *lane = weft__alloc(sizeof(*lane));
    if (!lane) return -ENOMEM;
    lane->rt = rt;
    snprintf(lane->name, sizeof(lane->name), "%s", name ? name : "");
    weft__lane_init(&rt->blocking.jobs, &lane->lane, threads);
    *into = lane;
    return 0;
}

int weft_lane_new(weft_rt *rt, const char *name, unsigned threads, weft_lane **into)
{
    if (!rt) rt = weft_rt_current();
    if (!into || threads == 0) return -EINVAL;
    if (!rt) return -ENXIO;
    if (weft__rt_is_lost(rt)) return -ECHILD;
    if (is_its_task(rt)) return lane_new(rt, name, threads, into);
    if (!weft__gate_enter(rt)) return -ESHUTDOWN;
    int r = lane_new(rt, name, threads, into);
    weft__gate_leave(rt);
    return r;
}

void weft_lane_free(weft_lane *lane)
{
    if (!lane || weft__rt_is_lost(lane->rt)) return;
    struct weft__jobs *jobs = &lane->rt->blocking.jobs;

    weft__lock_take(&jobs->lock);
    bool unused = lane->lane.queued == 0 && lane->lane.running == 0;
    lane->freed = true;
    if (unused) weft__lane_done(&lane->lane);
    weft__lock_drop(&jobs->lock);
    if (unused) weft__free(lane);
}
