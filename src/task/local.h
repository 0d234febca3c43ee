/* SPDX-License-Identifier: MIT
 *
 * local - task-locals: values that belong to one task and move along with it.
 *
 *     task->ext -> locals -> slot[number - 1] -> value         three steps from the header, by index: no search
 *                         -> newest -> older -> ... -> NULL    the order of their births, for the end
 * A key gets its number when it is first used anywhere, so the numbers of a program's keys are small and a task's table
 * reaches up to the highest that the task has used. Values lie on the heap, each by itself, and never move; the table does, when it grows.
 *
 * Everything is found through here->task, so a child that is run inside its parent's join has its own, and the thread
 * does not matter. A task that uses none pays nothing, but for one branch at its end.
 *
 * Threads: the task's poller; polls are ordered by the poll protocol. A key's number is set by whoever comes first, relaxed:
 * it says nothing about other memory. Pair: [task-ext] (types.h), for those who look at a task's name meanwhile.
 * Rejected: a list searched by key (linear); a hash (a table of this size is smaller); values of plain threads, which would need
 * a destructor at the thread's end: there the answer is NULL.
 */
#ifndef WEFT_TASK_LOCAL_H
#define WEFT_TASK_LOCAL_H

#include "types.h"

#include <weft/local.h>

/* The task has ended and is still here->task: end its values, the youngest first, and free them. Those not ended yet can
 * be used meanwhile; new ones are refused. */
void weft__locals_end(struct weft_task *task);

#endif
