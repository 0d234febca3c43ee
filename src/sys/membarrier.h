/* SPDX-License-Identifier: MIT
 *
 * membarrier - one thread pays for the fences of all.
 *
 * Between call and return every thread of the process passes a full fence. So a reader that is there
 * once in a while can order itself against writers that are there all the time and have none: what
 * it has seen a thread write tells what that thread wrote before, after the call. Where such a writer stores
 * one word and loads another it says fence_light() between the two (base/atomic.h): the compiler must keep them
 * apart, the machine is made to by the caller of this.
 * Threads: any. Blocks: no; about 10 us, and an interrupt for each CPU that runs one of our threads.
 */
#ifndef WEFT_SYS_MEMBARRIER_H
#define WEFT_SYS_MEMBARRIER_H

/* Returns 0; -ENOSYS, -EINVAL or -EPERM where the kernel has none, or it is filtered (sys/probe.h tells
 * beforehand). */
#if defined(WEFT_MODEL)
#define weft__membarrier() model_membarrier()
#else
int weft__membarrier(void);
#endif

#endif
