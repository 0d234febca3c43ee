/* SPDX-License-Identifier: MIT
 *
 * fd - what every file descriptor needs: a close that nobody has to check, and a look at what it is ready for.
 */
#ifndef WEFT_SYS_FD_H
#define WEFT_SYS_FD_H

/* Close `fd`; a negative one is fine and means nothing was open. Blocks: where the file's own
 * release does (a socket that lingers, NFS).
 * Threads: any. Fails: never upward. On Linux the descriptor is gone whatever close answers, so
 * there is nothing to repeat; an error that close reports late belongs to a write, and whoever
 * needs it calls fsync. A descriptor that is not open is a bug that debug builds abort on. */
void weft__fd_close(int fd);

/* For what the library opens for itself: a number that is none of 0, 1 and 2, which the kernel gives to whoever comes first if the program was started without
 * them; what the program then reads or prints would be the library's. Takes `fd`, unless it is negative: that is passed on. Returns a number from 3 on; -EMFILE, and it
 * is closed. */
int weft__fd_beyond_standard(int fd);

enum { WEFT__FD_IN = 1, WEFT__FD_OUT = 2, WEFT__FD_PRI = 4 };

/* Can it be waited for at all, as epoll(7) sees it? Blocks: no. Returns 0; -EPERM: a plain file, a directory, a disk, /dev/null; -EBADF; -EMFILE, -ENFILE, -ENOMEM. */
int weft__fd_has_readiness(int fd);

/* Which of these is it ready for just now? Errors and the peer's end count as ready. Blocks: no.
 * Returns some of `for_what`; 0: none; -EBADF. */
int weft__fd_ready(int fd, int for_what);

/* Make what would block answer -EAGAIN. Returns 0; 1: it did so already; -EBADF. */
int weft__fd_unblock(int fd);

/* As it was before. `unblocked`: what that answered. */
void weft__fd_put_back(int fd, int unblocked);

#endif
