/* SPDX-License-Identifier: MIT
 *
 * clock - the time, in nanoseconds on the monotonic clock; the only place that asks for it.
 *
 * Deadlines of the whole library are points on this clock (weft__futex_wait's too), so that setting
 * the wall clock moves none of them. It stands still while the machine is suspended. Code above
 * takes `now` as an argument; the simulator stands in for this file.
 * Threads: any; also in a signal handler. Blocks: no. Fails: no.
 */
#ifndef WEFT_SYS_CLOCK_H
#define WEFT_SYS_CLOCK_H

#include "sys/futex.h"

#include <stdint.h>

#define WEFT__NS_PER_S  INT64_C(1000000000)
#define WEFT__NS_PER_MS INT64_C(1000000)

/* Now; never less than an earlier answer on any thread that happened before. 20 to 40 ns without
 * a syscall. */
int64_t weft__clock_now(void);

/* When a wait that begins now is over, which may take so long; WEFT__NEVER for less than nothing, and beyond the end of time. */
static inline int64_t weft__clock_later(int64_t now, int64_t ns)
{
    int64_t when;
    return ns < 0 || __builtin_add_overflow(now, ns, &when) ? WEFT__NEVER : when;
}

/* Now as of the last timer tick: up to 10 ms behind weft__clock_now, never ahead of it, at a
 * quarter of the price. For "since when". */
int64_t weft__clock_coarse(void);

#endif
