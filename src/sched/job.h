/* SPDX-License-Identifier: MIT
 *
 * job - the jobs of a blocking pool: which wait, which may start, who comes to run them.
 *
 * A JOB lies in the frame of who awaits it (it borrows), or on the heap (it owns its argument).
 *     (submit) -> QUEUED           linked in its lane
 *     QUEUED   -> RUNNING          [take]      a thread of the pool has it
 *     QUEUED   -> out              [poll]      withdrawn by who gave it up: it never runs
 *     QUEUED   -> DONE             [fail_all]  never runs: no thread, or the runtime stops
 *     RUNNING  -> DONE             [finish]    the result stands
 *     RUNNING  -> abandoned        [poll]      an owning one that was given up: finish disposes of it
 * All but the look for DONE happen under the lock. DONE is the last touch of a job by the pool: its
 * frame may be gone in the next moment. Before it, under the same lock, the waker is claimed, so
 * that a poll either finds DONE, or ends before the claim and is followed by another.
 *
 * A LANE is a queue with a bound: so many of its jobs run at once, and no more. A slow lane fills its
 * own bound and takes nothing from the others: for each job that may start there may be a thread.
 *     may     = min(queued, bound - running)          of each lane
 *     ready   = the sum of all `may`
 *     live    = the sum of all `running` + coming + idle threads  <=  the sum of all bounds
 * Lanes that have something that may start take turns.
 *
 * WHO COMES  A thread that will look for a job is `coming`: one that spins, was woken, or is being
 * started. A submitter sees to it that one is, and that one calls the next before it begins its own
 * job, if there is more. So a submitter pays one wake at most, and none while a thread spins; and
 * however many jobs come at once, nobody is woken for whom there is nothing.
 *     ready > 0  implies  coming > 0, unless the last thread that was asked for could not be started
 * Idle threads are called in the order last in, first out: the longer one is idle, the longer it stays so.
 *
 * Threads: submit and poll by who awaits; take, finish and rest by threads of the pool. No lock is
 * held across a syscall: what must be woken or started is written down under it and done after it.
 * Pairs: [job-done].
 * Rejected: a state word that cancel, start and finish race for by CAS (a queue needs the lock anyway,
 * and the finisher takes it for its next job in any case); a condition variable (wakes the longest
 * idle first, and herds).
 */
#ifndef WEFT_SCHED_JOB_H
#define WEFT_SCHED_JOB_H

#include "base/list.h"
#include "sched/park.h"
#include "sys/lock.h"
#include "task/waker.h"

struct weft_call;

enum weft__job_state { WEFT__JOB_QUEUED, WEFT__JOB_RUNNING, WEFT__JOB_DONE };

struct weft__lane {
    struct weft__link all;   /* in jobs->lanes          [all fields: jobs->lock] */
    struct weft__link turn;  /* in jobs->turn while may > 0 */
    struct weft__link queue; /* jobs, the oldest first */
    uint32_t bound;          /* constant */
    uint32_t queued;
    uint32_t running;
    uint32_t may;
};

struct weft__job {
    struct weft__link link;  /* in lane->queue while QUEUED          [jobs->lock] */
    struct weft__lane *lane; /* constant, as the next three */
    const struct weft_call *call;
    const char *name;        /* NULL: nobody gave one */
    struct weft_waker waker; /* of who awaits it */
    int64_t ret;             /* published by DONE */
    _Atomic uint32_t state;  /* enum weft__job_state                 [job-done] */
    bool owning;             /* constant */
    bool abandoned;          /*                                      [jobs->lock] */
};

/* As much of a thread as the hand-over needs. */
struct weft__hand {
    struct weft__link idle; /* in jobs->idle while it waits to be called  [jobs->lock] */
    struct weft__park park;
};

struct weft__jobs {
    struct weft__lock lock; /* rank blocking; guards all that is not marked */
    uint32_t coming;
    uint32_t idle_count;
    bool spinning; /* one of the coming spins */
    struct weft__link lanes;
    struct weft__link turn; /* lanes with jobs that may start */
    struct weft__link idle; /* hands; the last that came is the first */
    uint64_t done_count;
    _Atomic uint32_t
        live; /* threads, also those being started; a futex for who waits for their end */

    /* -- written under the lock, looked at without it -- */
    WEFT__CACHE_ALIGNED _Atomic uint32_t
        ready; /* who spins looks here, and the lock's line is left to others */
    _Atomic bool closing;
};

/* What to do once the lock is dropped. */
#define WEFT__CALLS_MAX 2
struct weft__calls {
    struct weft__hand *wake[WEFT__CALLS_MAX];
    uint32_t wakes;
    uint32_t starts; /* threads; counted as live and coming already */
};

void weft__jobs_init(struct weft__jobs *jobs);
void weft__lane_init(struct weft__jobs *jobs, struct weft__lane *lane, uint32_t bound);
void weft__lane_done(struct weft__lane *lane); /* holds: jobs->lock. It has no jobs */

/* ---- by who awaits ---- */

/* Queue a job that was filled in. Pins *job until it is withdrawn, abandoned or DONE. Returns 0,
 * and what to do; -ESHUTDOWN: nothing was taken. */
int weft__job_submit(struct weft__jobs *jobs, struct weft__job *job, struct weft__calls *calls);

enum weft__job_answer {
    WEFT__JOB_WAIT,
    WEFT__JOB_READY,     /* DONE: ret stands, and the job is the caller's again */
    WEFT__JOB_WITHDRAWN, /* it never ran, and is the caller's again */
    WEFT__JOB_LEFT,      /* it runs on, and is the pool's from now on */
};

/* `stop`: the caller gives it up. */
enum weft__job_answer weft__job_poll(struct weft__jobs *jobs, struct weft__job *job, bool stop);

/* ---- by threads of the pool; all: holds jobs->lock ---- */

/* The next job, which is RUNNING from now on; NULL: none may start. */
struct weft__job *weft__job_take(struct weft__jobs *jobs);

/* More jobs may start than threads are coming: call some. */
void weft__jobs_call(struct weft__jobs *jobs, struct weft__calls *calls);

/* It has returned `ret`. Gives the claimed waker, or none; of an abandoned job nothing but its
 * lane is touched, and it is the caller's. */
struct weft_waker weft__job_finish(struct weft__jobs *jobs, struct weft__job *job, int64_t ret);

/* Ends all queued jobs with `error`. Gives the claimed wakers. */
struct weft__wake_chain weft__jobs_fail_all(struct weft__jobs *jobs, int64_t error);

/* A thread has nothing to do. True: it is the one that spins, and coming. False: it is idle. */
bool weft__jobs_rest(struct weft__jobs *jobs, struct weft__hand *hand, bool may_spin);
void weft__jobs_spun(struct weft__jobs *jobs);

/* An idle thread's time is over. True: it was idle, is so no more, and nobody will call it.
 * False: it was called, and a token is on its way. */
bool weft__jobs_unrest(struct weft__jobs *jobs, struct weft__hand *hand);

#endif
