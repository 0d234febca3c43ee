/* SPDX-License-Identifier: MIT
 *
 * membarrier - one thread pays for the fences of all.
 *
 * Between call and return every thread of the process passes a full fence. So a reader that is there
 * once in a while can order itself against writers that are there all the time and have none: what
 * it has seen a thread write tells what that thread wrote before, after the call.
 * Threads: any. Blocks: no; about 10 us, and an interrupt for each CPU that runs one of our threads.
 */
#ifndef WEFT_SYS_MEMBARRIER_H
#define WEFT_SYS_MEMBARRIER_H

/* Returns 0; -ENOSYS, -EINVAL or -EPERM where the kernel has none, or it is filtered (sys/probe.h tells
 * beforehand). */
int weft__membarrier(void);

#endif
