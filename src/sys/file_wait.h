/* SPDX-License-Identifier: MIT
 *
 * file_wait - what waits for somebody else, done so that it can be called back: FIFOs that are opened, reads and writes of pipes, terminals and devices as files.
 *
 * A thread in open(2), read(2) or write(2) of these sits there until the other side comes, which may be never, and nobody can tell it to stop. So it does not go in
 * before the call would not wait: it looks, and between two looks at whether it is to stop.
 *     a FIFO to be read      is opened without blocking, at once, so that who blocks on the other side goes on; then looked at until a writer is, or was, there
 *     a FIFO to be written   is refused while nobody reads; tried again
 *     a read, a write        behind poll(2); a write in pieces that go at once
 * Opened, it blocks as it would have. An fd that does not (O_NONBLOCK) is not waited for: it answers -EAGAIN, as ever. Two who read from one pipe can still meet in a
 * read of what was there for one.
 * Threads: any that may block. Rejected: a signal that interrupts the call (its number and handler would be the program's, too, and every other call of a job would see it).
 */
#ifndef WEFT_SYS_FILE_WAIT_H
#define WEFT_SYS_FILE_WAIT_H

#include <stddef.h>
#include <stdint.h>

struct weft__file_req;

/* As open(2), close-on-exec; `req` may be told to stop. Returns an fd, or a negative errno; -ECANCELED: it was told to stop, and is not open. Blocks: yes. */
int64_t weft__file_wait_open(const struct weft__file_req *req, const char *path, int flags,
                             uint32_t mode);

/* As read(2) and write(2), where the file stands. A peer that is gone is -EPIPE, and no signal. Return a count, perhaps fewer; a negative errno; -ECANCELED: told to stop, they have done
 * nothing. Blocks: yes. */
int64_t weft__file_wait_read(const struct weft__file_req *req, int fd, void *into, size_t bytes);
int64_t weft__file_wait_write(const struct weft__file_req *req, int fd, const void *from,
                              size_t bytes);

#endif
