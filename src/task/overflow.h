/* SPDX-License-Identifier: MIT
 *
 * overflow - a fiber that runs into its guard dies by name.
 *
 *     weft: fiber 'conn' (spawned at server.c:41) overflowed its stack of 256 KiB; raise it with .stack_bytes
 * and then SIGSEGV, as a thread's overflow would be. A fault is an overflow if it lies in the guard
 * of the stack that this very thread is on: a wild pointer into another's guard is not, and goes its
 * usual way. What jumps over the guard in one step is not seen; the guard is 64 KiB where the kernel
 * makes that cheap, and -fstack-clash-protection makes every step small.
 *
 * Threads: each thread that polls fibers has a signal stack. Workers call init before and done after, on their own stack. Any
 * other (one that turns a runtime, one that runs a fiber by weft_run) calls watch, at its first turn or with each such fiber: its
 * signal stack stays until it ends. From turn to turn it would be some system calls each time.
 */
#ifndef WEFT_TASK_OVERFLOW_H
#define WEFT_TASK_OVERFLOW_H

#include "sys/segv.h"

/* Pins *a until done. Returns 0; -ENOMEM: fibers work all the same, but die without a name. */
int weft__overflow_thread_init(struct weft__altstack *a);
void weft__overflow_thread_done(struct weft__altstack *a);

/* Init for the rest of the calling thread's life. On an alternate stack, and without memory for one, nothing happens: fibers
 * die without a name. */
void weft__overflow_thread_watch(void);

#endif
