/* SPDX-License-Identifier: MIT
 *
 * The tests of sched_overflow.c again: a ring of eight, arrays of three, so that a spill is a full array.
 */
#define WEFT__RUNQ_CAP       8
#define WEFT__OVERFLOW_BATCH 3
#include "sched/overflow.c"
#include "sched/runq.c"

#include "sched_overflow.c"
