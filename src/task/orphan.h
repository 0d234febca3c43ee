/* SPDX-License-Identifier: MIT
 *
 * orphan - the thread of a child process whose runtime stayed with the parent.
 *
 * fork copies one thread. If that thread polled a task, the child stands inside a poll of a runtime whose other threads,
 * and whose locks' holders, are not there. So its record is cleared: it is a plain thread that happens to stand on a
 * worker's or a fiber's stack. It may call whatever a plain thread may, make a runtime of its own, and exit. It must not
 * go back: what would poll the next task, or wait for this one, is a copy that nobody else works with. Returning from
 * the task's function, or suspending it, ends the process with one line on stderr.
 *     here->worker, here->fiber  NULL in the child: whoever comes back finds that it is not who it was
 * What a plain thread polls (weft_run without a runtime) is its own business, and goes on in the child.
 *
 * Threads: in the child, while it has one.
 * Rejected: to end the task in the copy and let weft_rt_turn answer -ECHILD (it would unwind through queues and locks as
 * the fork found them).
 */
#ifndef WEFT_TASK_ORPHAN_H
#define WEFT_TASK_ORPHAN_H

#include <stdint.h>

/* The exit code of a child that went back: EX_SOFTWARE, as the shell's tools have it. */
#define WEFT__ORPHAN_CODE 70

/* How many forks lie between the first process and this one: what was made before the last of them belongs to a parent.
 * Written while the process has one thread. */
extern uint32_t weft__forks __attribute__((visibility("hidden")));

/* In the child, right after fork. */
void weft__orphan_here(void);

/* The child came back into the runtime that it left. */
_Noreturn __attribute__((cold)) void weft__orphan_returns(void);

#endif
