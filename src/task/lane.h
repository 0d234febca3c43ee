/* SPDX-License-Identifier: MIT
 *
 * lane - queues of blocking jobs that the library itself has in every runtime (weft/blocking.h).
 */
#ifndef WEFT_TASK_LANE_H
#define WEFT_TASK_LANE_H

struct weft_lane;
struct weft_rt;

/* For names, which may take many seconds each: nothing else waits behind them. `rt`: NULL is the current one. In
 * sched/blocking_call.c. Returns NULL: there is no runtime. */
struct weft_lane *weft__lane_of_names(struct weft_rt *rt);

#endif
