/* SPDX-License-Identifier: MIT
 *
 * deaf - tasks that were told to stop and go on all the same: one line for the first of a place.
 *
 * A wait that begins in a task that was told to stop answers why, at the price of budget. A loop that
 * does not look at the answer spends the whole budget of its poll, poll after poll, and yields by
 * that alone. Clean-up can do so as well, for a while; who does it for a second, without a pause of a
 * tenth of that, is named. By then it has been told some million times.
 *
 * It costs a lock and a look at the clock for each budget that is spent so. A few tasks are followed
 * at a time; one that is crowded out begins anew.
 * Threads: any; one lock. Rejected: a count in the task, whose header has no room; the monitor, which
 * current-thread runtimes and those of one worker do not have.
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
    int64_t after_ns;       /* so long before it is named; tests shorten it */
    struct weft__deaf_task task[WEFT__DEAF_FOLLOWED];
    const struct weft_site *named[WEFT__DEAF_SITES];
    uint32_t named_count;
};

void weft__deaf_init(struct weft__deaf *deaf);

/* A poll of the task has spent its budget on being told to stop. By the poller, who holds no lock. */
void weft__deaf_seen(struct weft__deaf *deaf, const struct weft_task *task);

#endif
