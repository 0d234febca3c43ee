/* SPDX-License-Identifier: MIT
 *
 * The tests of sched_runq.c again, on a ring of two: each task is next to both ends.
 */
#define WEFT__RUNQ_CAP 2
#include "sched/runq.c"

#include "sched_runq.c"
