/* SPDX-License-Identifier: MIT
 *
 * monitor - the thread that watches the workers of a runtime.
 *
 * It looks every 5 ms (`monitor_us`) while any worker is awake, five times as often for a while
 * after it has found one that stands still, and sleeps once all of them have slept for a second
 * (watch.h). What it finds it does not repair itself: it gives leave to rob the one that stands
 * still, and wakes a sleeper, who takes what lies there. The victim may come back at any moment and
 * goes on with what is left: its ring and its slot are built for thieves.
 *
 * It helps as far as there is somebody who has nothing to do. If all others are busy the leave
 * stands until one runs dry; if all stand still, nothing happens until one comes back.
 *
 * It also names a task that was told to stop and does not come back from its poll (deaf.h).
 *
 * Before it sleeps too it gives the pages of free stacks back, all but a few, as long as nobody wakes.
 * Where there is no monitor, a worker that has slept for a second does so (find.c).
 *
 * With `schedtrace_ms` it also prints a line in each interval (trace.h). A runtime of one worker has
 * nobody to help, and a current-thread one no threads at all: there is no monitor then, but for the
 * first if it prints; the second prints at the end of a turn (rt.c).
 * COST  A look is some 20 us of CPU, nearly all of it the timer's: 0.4 % of a core while anything
 * runs, 2 % in trouble, nothing in a runtime that sleeps (schedstat of its thread, 2 workers). No
 * worker does anything for it in a poll; one that leaves its sleep pays a fence and a load.
 * Threads: its own; start and stop by who builds the runtime.
 */
#ifndef WEFT_SCHED_MONITOR_H
#define WEFT_SCHED_MONITOR_H

#include "sched/trace.h"
#include "sched/watch.h"
#include "sys/thread.h"

struct weft_rt;

struct weft__monitor {
    struct weft__watch watch;

    /* -- the monitor alone, once started; the trace of a current-thread runtime: who turns it -- */
    WEFT__CACHE_ALIGNED struct weft__pace pace;
    struct weft__trace trace;
    int64_t interval_ns; /* constant; WEFT__NEVER: it only prints */
    bool running;        /* constant */
    struct weft__thread thread;
};

/* Start it, if this runtime wants one. The workers may be running already.
 * Returns 0; what weft__thread_start answers. */
int weft__monitor_start(struct weft_rt *rt);

/* Does this runtime want one that looks at its workers? By anyone: its options say so. */
bool weft__monitor_watches(const struct weft_rt *rt);

/* All workers sleep: gives the pages of free stacks back, until one wakes or the runtime stops. By anyone. */
void weft__monitor_trim(struct weft_rt *rt);

/* Stop it and wait for it, if it runs. */
void weft__monitor_stop(struct weft_rt *rt);

#endif
