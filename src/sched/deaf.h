/* SPDX-License-Identifier: MIT
 *
 * deaf - tasks that were told to stop and go on all the same: one line for the first of a place.
 *
 * A wait that begins in a task that was told to stop answers why, at the price of budget. A loop that
 * does not look at the answer spends the whole budget of its poll, poll after poll, and yields by
 * that alone. Clean-up can do so as well, for a while; who does it for a second, without a pause of a
 * tenth of that, is named. By then it has been told some million times.
 *
 * A poll that does not end is no wait at all, and nobody inside it looks. So the monitor (monitor.h), which comes by all the time,
 * also keeps how long each worker has been in the same poll; where that lasts it asks now and then who it is, and names one that was
 * told to stop for as long, and has not come back since. A runtime without a monitor does not see those.
 *
 * It costs a lock and a look at the clock for each budget that is spent so. A few tasks are followed
 * at a time; one that is crowded out begins anew.
 * Threads: any; one lock. Rejected: a count in the task, whose header has no room; the monitor for the
 * first kind, which current-thread runtimes and those of one worker do not have.
 */
#ifndef WEFT_SCHED_DEAF_H
#define WEFT_SCHED_DEAF_H

#include "sys/lock.h"
#include "types.h"

/* Followed at a time. Doubled: a longer search under the lock. */
#define WEFT__DEAF_FOLLOWED 16

/* Places that were named. Doubled: a program full of such loops prints twice as many lines. */
#define WEFT__DEAF_SITES 16

struct weft__deaf_task {
    uint64_t id;      /* weft_task_id; 0: nobody */
    int64_t since_ns; /* of the system's clock: since when it does not listen */
    int64_t last_ns;  /* when it was last seen so */
};

struct weft__deaf {
    struct weft__lock lock; /* rank slab; guards all */
    _Atomic int64_t after_ns; /* so long before it is named; tests shorten it */
    struct weft__deaf_task task[WEFT__DEAF_FOLLOWED];
    const struct weft_site *named[WEFT__DEAF_SITES];
    uint32_t named_count;
};

/* A worker's poll, as the monitor has seen it so far. Zero is a beginning. */
struct weft__deaf_poll {
    uint64_t polls;  /* that had ended before it */
    int64_t look_ns; /* not before then is it asked whose it is */
    int64_t told_ns; /* since when that one is known to have been told to stop; 0: it was not */
    const struct weft_task
        *who;            /* which one: a poll may turn another runtime, whose tasks come and go */
    uint32_t generation; /* of its block */
};

void weft__deaf_init(struct weft__deaf *deaf);

/* The monitor's look at a worker that has ended so many polls. */
struct weft__worker;
void weft__deaf_look(struct weft__deaf *deaf, struct weft__worker *w, uint64_t polls, int64_t now);

/* A poll of the task has spent its budget on being told to stop. By the poller, who holds no lock. */
void weft__deaf_seen(struct weft__deaf *deaf, const struct weft_task *task);

#endif
