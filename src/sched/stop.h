/* SPDX-License-Identifier: MIT
 *
 * stop - shutdown: a gate, then sweeps.
 */
#ifndef WEFT_SCHED_STOP_H
#define WEFT_SCHED_STOP_H

#include "sched/sched.h"

/* May this thread stop it? By its address alone, as long as that is not known: what lies there may be anything. Returns 0: it does, until weft__fork_stops_not, or the
 * runtime is gone; -EDEADLK, -ECHILD, -EBUSY and -EINVAL as weft_rt_stop. */
int weft__stop_begins(struct weft_rt *rt);

/* Close the runtime and wait until no task lives. Returns 0; -ETIME, with the names of those that did not stop on stderr: the runtime stays as it is, and
 * may be asked again. */
int weft__stop_tasks(struct weft_rt *rt, int64_t timeout_ns);

#endif
