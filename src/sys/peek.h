/* SPDX-License-Identifier: MIT
 *
 * peek - read memory that may not be there: an error instead of a SIGSEGV.
 *
 * For those who look at objects that may die meanwhile: the deadlock walker and the console follow
 * pointers out of a task's block with this, never by dereferencing. What is read may be torn; the
 * caller checks a generation before and after.
 * Threads: any; also in a signal handler. Blocks: no, but for a page that has to come from a disk.
 * About 0.5 us.
 * Rejected: a SIGSEGV handler with a jump back (process-wide, and the program's own handler loses),
 * /proc/self/mem (an fd per thread, ignores protection).
 */
#ifndef WEFT_SYS_PEEK_H
#define WEFT_SYS_PEEK_H

#include <stddef.h>
#include <sys/types.h>

/* Copy `bytes` from `addr` of this process into `into`: all of them, or an error; after an error
 * `into` may be partly written.
 * Returns 0; -EFAULT if any byte is not readable; -ENOSYS or -EPERM where the call is filtered
 * (sys/probe.h tells beforehand). */
int weft__peek(const void *addr, void *into, size_t bytes);

/* The same of a text of unknown length, which may end right before a page that is not there; it is
 * cut to `bytes`, with its zero. `bytes` > 0. */
int weft__peek_text(const char *from, char *into, size_t bytes);

/* Between copies and the look that tells whether they were worth it: whoever wrote, before what is
 * looked at, anything that was copied, is found out by the look. Returns 0; weft__membarrier's error. */
int weft__peek_order(void);

/* What weft__peek does, from another process. Returns also -ESRCH, and -EPERM without the right to trace it. */
int weft__peek_pid(pid_t pid, const void *addr, void *into, size_t bytes);

#endif
