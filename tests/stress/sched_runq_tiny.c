/* SPDX-License-Identifier: MIT
 *
 * The tests of sched_runq.c again, on a ring of two: owner and thieves are always after the same task.
 */
#define WEFT__RUNQ_CAP 2
#define TASKS_MAX      20000
#include "sched/runq.c"

#include "sched_runq.c"
