/* SPDX-License-Identifier: MIT
 *
 * fork - what is called around fork, and how a child that went wrong ends.
 *
 * The handlers are those of pthread_atfork: `before` in the forking thread, then `parent` and `child` in the one thread
 * that returns from fork on either side. vfork, posix_spawn and system do not call them, nor does _Fork.
 * Threads: watch by any. The handlers stay for the life of the process, and of its children.
 */
#ifndef WEFT_SYS_FORK_H
#define WEFT_SYS_FORK_H

/* Have them called around every fork from now on. Returns 0; -ENOMEM. */
int weft__fork_watch(void (*before)(void), void (*parent)(void), void (*child)(void));

/* End the process at once: no handler of atexit, no buffer of stdio. */
_Noreturn void weft__process_end(int code);

#endif
