/* SPDX-License-Identifier: MIT
 *
 * pipe - two ends, and the read and write of any descriptor, without the signal.
 *
 * A write to a pipe that nobody reads raises SIGPIPE, which ends a process that has not thought of it,
 * and no flag of write(2) prevents that. So the thread blocks the signal around its write, and takes the
 * one that it has caused: two calls more, one on threads of the library, which block it for good.
 * The process's own way with the signal is not touched.
 * Rejected: to ignore the signal for the whole process (programs that are part of a shell's pipe rely on
 * it, and children inherit it); a socket pair instead (a child process may want to see a pipe).
 * Threads: any. Blocks: never, on descriptors that do not.
 */
#ifndef WEFT_SYS_PIPE_H
#define WEFT_SYS_PIPE_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Both close-on-exec and not blocking; into[0] is read from. Returns 0; -EMFILE; -ENFILE. */
int weft__pipe_open(int into[2]);

/* A FIFO by its name, close-on-exec and not blocking. `flags`: O_RDONLY, O_WRONLY or O_RDWR. To be read, it may be without a writer so far.
 * Returns 0; -EAGAIN: to be written, and nobody has it open to read; -EINVAL: other flags, or it is no FIFO; what open(2) answers. */
int weft__pipe_open_fifo(const char *path, int flags, int *into);

/* One that is open to be read: has a writer come since? Leaves what there is to be read. `scratch`: an empty pipe, which gets a byte or none.
 * Returns 0, also if that has gone again; -EAGAIN: nobody; what tee(2) answers. */
int weft__pipe_is_joined(int fd, const int scratch[2]);

/* Returns how much; 0 at the end; -EAGAIN ... */
ssize_t weft__pipe_read(int fd, const struct iovec *iov, int count);

/* Returns how much; -EAGAIN; -EPIPE: nobody reads. */
ssize_t weft__pipe_write(int fd, const struct iovec *iov, int count);

/* Around any call that may raise SIGPIPE. `answer`: of the call. */
struct weft__pipe_hush {
    sigset_t before;
    bool blocked; /* it was already */
};
void weft__pipe_hush(struct weft__pipe_hush *into);
void weft__pipe_unhush(const struct weft__pipe_hush *hush, ssize_t answer);

/* The same behind a call that goes in several pieces, of so many bytes in all: between two of them the peer may go. It then answers how much went before, and the
 * signal comes all the same. */
void weft__pipe_unhush_pieces(const struct weft__pipe_hush *hush, ssize_t answer, size_t bytes);

#endif
