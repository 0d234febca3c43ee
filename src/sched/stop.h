/* SPDX-License-Identifier: MIT
 *
 * stop - shutdown: a gate, then sweeps.
 */
#ifndef WEFT_SCHED_STOP_H
#define WEFT_SCHED_STOP_H

#include "sched/sched.h"

/* Close the runtime and wait until no task lives. Returns 0; -ETIME, with the names of those that did not stop on stderr: the runtime stays as it is, and
 * may be asked again. */
int weft__stop_tasks(struct weft_rt *rt, int64_t timeout_ns);

#endif
