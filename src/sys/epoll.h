/* SPDX-License-Identifier: MIT
 *
 * epoll - the five calls of it, with a time-out in nanoseconds.
 *
 * The wait is epoll_pwait2 where the kernel has it (5.11), and else epoll_pwait with the time
 * rounded up to milliseconds: a wait may end late, never early for rounding's sake. Which one is
 * found out by the first wait and remembered.
 * Threads: any; several may wait on one epoll, and add, mod and del work meanwhile. The word `data`
 * comes back with each event of the fd.
 */
#ifndef WEFT_SYS_EPOLL_H
#define WEFT_SYS_EPOLL_H

#include <stdint.h>
#include <sys/epoll.h>

/* Open one, close-on-exec; weft__fd_close closes it. Blocks: no. Returns 0; -EMFILE; -ENFILE;
 * -ENOMEM. */
int weft__epoll_open(int *into);

/* Watch `fd` for `events` (EPOLLIN | EPOLLET ...). Blocks: no. Returns 0; -EEXIST if it is
 * watched already; -EPERM for what cannot be watched, a plain file; -ENOSPC at the user's limit
 * of watches; -ENOMEM; -EBADF; -ELOOP. */
int weft__epoll_add(int epoll, int fd, uint32_t events, uint64_t data);

/* Change what is watched for. Reports anew what is ready, also when edge-triggered. Blocks: no.
 * Returns 0; -ENOENT if it is not watched; -ENOMEM; -EBADF. */
int weft__epoll_mod(int epoll, int fd, uint32_t events, uint64_t data);

/* Stop watching. Events of it that another thread has already been given are still on their way.
 * Blocks: no. Returns 0; -ENOENT; -EBADF. */
int weft__epoll_del(int epoll, int fd);

/* Wait until something is ready, at most `timeout_ns` from now (0: do not wait; WEFT__NEVER:
 * without end), and put at most `max` events into `into`.
 * Blocks: yes, unless timeout_ns is 0. Returns how many; 0 when the time is over, or earlier if
 * that is weeks away: the caller looks at its clock. -EINTR when a signal handler ran: nothing
 * is lost, no event was taken, and the caller works out the time that is left; -EBADF; -EINVAL
 * if `epoll` is none. */
int weft__epoll_wait(int epoll, struct epoll_event *into, int max, int64_t timeout_ns);

/* Is epoll_pwait2 there? Returns 0, or the negative errno that says why not. Blocks: no. */
int weft__epoll_probe_pwait2(void);

#endif
