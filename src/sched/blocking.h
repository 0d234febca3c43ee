/* SPDX-License-Identifier: MIT
 *
 * blocking - the threads of a runtime on which code may block.
 *
 * None exists until somebody asks. A thread runs jobs as long as there are some (job.h), then spins
 * for a moment if no other does, then sleeps, and ends when nobody has called it for `blocking_keep_ms`.
 * A job runs as on a plain thread that has entered the runtime: it may spawn, and wait.
 *
 * NO THREAD  One that cannot be started is an error to those who wait only if there is no other: then
 * all queued jobs end with that error. Else they wait for one that is there, and the next submit, or
 * the next thread that takes a job, tries again.
 * THE END  Each thread that ends joins the one that ended before it, and leaves itself to the next;
 * the runtime's stop joins the last. So no thread is detached, and none waits to be joined for long.
 *
 * Threads: the pool is built and stopped by who builds the runtime; the rest by anyone (job.h).
 * Rejected: threads of a lane's own (an idle one would be of no use to others), a pool for the process
 * (a runtime that stops could not say which jobs are its own).
 */
#ifndef WEFT_SCHED_BLOCKING_H
#define WEFT_SCHED_BLOCKING_H

#include "sched/job.h"
#include "sys/thread.h"

#include <weft/rt.h>

#include <weft/blocking.h>

struct weft_lane {
    struct weft__lane lane;
    struct weft_rt *rt; /* constant, as the next */
    char name[16];
    bool freed; /* by its owner: goes with its last job     [jobs.lock] */
};

struct weft__blocking {
    struct weft__jobs jobs;
    struct weft_rt *rt; /* constant, as the next two */
    int64_t keep_ns;
    int64_t spin_ns;
    struct weft_lane common; /* for jobs that name no lane */
    struct weft_lane names;  /* for those that ask for names (task/lane.h) */
    struct weft__link
        hands; /* all threads that run                     [jobs.lock, as all that follow] */
    struct blocking_hand *ended; /* the last that ended; not joined yet */
    uint32_t started_count;
};

/* An owning job, which outlives its frame. */
struct weft__own_job {
    struct weft__job job;
    weft_call call;
    void (*dispose)(void *arg, int64_t ret);
};

void weft__blocking_init(struct weft__blocking *pool, struct weft_rt *rt);

/* Queued jobs end with -ECANCELED, running ones are waited for until `until_ns`. Returns 0: no
 * thread is left, and the lanes are gone; -ETIME: what still runs was named on stderr, and stop
 * may be called again. */
int weft__blocking_stop(struct weft__blocking *pool, int64_t until_ns);

/* Say on stderr which jobs run. Blocks: no. */
void weft__blocking_name_running(struct weft__blocking *pool);

/* Wake and start whom submit or take has called. False: one could not be started; jobs may be
 * DONE by that, with the error. */
bool weft__blocking_call(struct weft__blocking *pool, const struct weft__calls *calls);

/* Make the call, here and now. Gives the result, its sign extended. */
int64_t weft__call_now(const weft_call *call);

/* This thread runs a job of that lane. */
bool weft__blocking_is_here(const struct weft_lane *lane);

/* This thread is one of the pool's. */
bool weft__blocking_is_thread_of(const struct weft__blocking *pool);

/* Of so many who hold the clock, is there one that is no job that waits? One waits inside of itself, and has not been woken, or in its lane behind others. */
bool weft__blocking_holds(struct weft__blocking *pool, const _Atomic uint32_t *holds);

void weft__blocking_stats(struct weft__blocking *pool, weft_stats *into);

#endif
