/* SPDX-License-Identifier: MIT
 *
 * The test of sched_overflow.c again: a ring of four, arrays of three: every other push spills.
 */
#define WEFT__RUNQ_CAP       4
#define WEFT__OVERFLOW_BATCH 3
#define TASKS                20000
#include "sched/overflow.c"
#include "sched/runq.c"

#include "sched_overflow.c"
