/* SPDX-License-Identifier: MIT
 *
 * stdio - descriptors that are shared with others: what they are, another open file of the same, and calls that do not wait although the
 * descriptor would.
 * Threads: any. Blocks: no, but for the last resort of weft__stdio_read and write (weft/stdio.h).
 */
#ifndef WEFT_SYS_STDIO_H
#define WEFT_SYS_STDIO_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Opened anew, where that means the same: a terminal or a pipe. Close-on-exec, not blocking. Gives an fd. Returns it; -EOPNOTSUPP: another kind of
 * thing; -EACCES and other errnos: it cannot be had; -EBADF: `fd` is closed. */
int weft__stdio_reopen(int fd, bool writes);

/* Another number for it, close-on-exec. Returns it; -EBADF; -EMFILE. */
int weft__stdio_dup(int fd);

/* Return how much; 0 at the end; -EAGAIN: it would wait; -EPIPE ... */
ssize_t weft__stdio_read(int fd, const struct iovec *piece);
ssize_t weft__stdio_write(int fd, const struct iovec *piece);

#endif
