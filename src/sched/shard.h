/* SPDX-License-Identifier: MIT
 *
 * shard - what brings work from outside, apart from the thread that serves it.
 *
 * A worker is a thread: it may be stuck in a poll, and what is tied to it is stuck with it. A shard
 * is not: it is there for the runtime's whole life, one for each worker from the start, and at any
 * time one worker *drives* it. What must go on while a thread is stuck therefore belongs here and
 * not into the worker: the timer wheel, the epoll and the io_uring, each under a lock of its own, so
 * that somebody else can drive them. The wheel is the runtime's of the same index (keep.h), the epoll is
 * in its port (driver/driver.h).
 *     turns   the driver has looked at what comes from outside: each `tick_max` polls, and before it
 *             sleeps; in a current-thread runtime once for each turn
 * The monitor reads it beside the poll count.
 *
 * A shard's driver is its own worker, for good: nobody takes over yet, but for a look at its wheel and a turn of
 * its port with the monitor's leave. Spares, the workers without a
 * shard that will, have no room in the worker array so far: who walks the array would walk past them.
 * Threads: turn by the driver; the count by anyone.
 */
#ifndef WEFT_SCHED_SHARD_H
#define WEFT_SCHED_SHARD_H

#include "base/assert.h"
#include "base/atomic.h"

struct weft__port;

struct weft__shard {
    WEFT__CACHE_ALIGNED _Atomic uint64_t turns; /* the driver writes, anybody reads */
    uint32_t index;                             /* constant */
    uint32_t driver;                            /* the worker that drives it; constant so far */
    struct weft__port *port;                    /* constant */
};

static inline void weft__shard_init(struct weft__shard *shard, uint32_t index)
{
    store_relaxed(&shard->turns, 0); /* relaxed: not shared yet */
    shard->index = index;
    shard->driver = index;
}

/* Driver: it has looked at what comes from outside. */
static inline void weft__shard_turn(struct weft__shard *shard, uint32_t driver)
{
    weft_dassert(shard->driver == driver);
    /* relaxed, both: one writer, and a count */
    store_relaxed(&shard->turns, load_relaxed(&shard->turns) + 1);
}

#endif
