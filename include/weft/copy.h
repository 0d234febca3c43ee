/* SPDX-License-Identifier: MIT
 *
 * copy - streams to their end: into memory, into another stream, two of them into each other, a file into a stream.
 *
 *     r = weft_read_to_end(conn, 1 << 20, &text, &len);          for weft_free
 *     n = weft_copy(from, to);                                   how many bytes
 *     r = weft_copy_bidirectional(client, server, &up, &down);   a proxy: until both have ended
 *     n = weft_sendfile(file, 0, -1, conn);                      without a copy where the kernel can
 *
 * Called by fibers and threads, awaited by stackless tasks. They borrow all their arguments until they are over; nothing is closed.
 *
 * GIVEN UP  Awaited, `.done` tells how many bytes have arrived. What was read and not yet written is lost, up to 64 KiB, unless it is
 * read through a buffer (weft_buf_stream): of that only what was written is consumed, so a copy can go on later without a gap.
 */
#ifndef WEFT_COPY_H
#define WEFT_COPY_H

#include <weft/buf.h>
#include <weft/file.h>
#include <weft/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- into memory -----------------------------------------------------------------------------------------------------------
 *
 * weft_read_to_end(stream, limit, &data, &len): read until the end, `limit` bytes at most (0: as many as come). Gives memory for weft_free,
 * with a NUL behind the last byte. Whatever it answers, what was read is there: *len bytes; with none, and an error, *data is NULL.
 * Returns 0; -EMSGSIZE: there are more, of which one was read (*len is limit + 1); -ENOMEM; else as weft_read. */
struct weft_read_to_end {
    WEFT_FRAME(int);
    weft_stream *stream;
    size_t limit;
    char **into;
    size_t *len;
    char *weft__data WEFT__ZERO;
    size_t weft__len WEFT__ZERO;
    size_t weft__cap WEFT__ZERO;
    struct weft_io weft__io WEFT__ZERO;
};

/* ---- into another stream ---------------------------------------------------------------------------------------------------- */

/* Bytes on their way from one stream to another. Private. */
struct weft__pump {
    char *data WEFT__ZERO; /* its own room, or in a buffer */
    size_t len WEFT__ZERO;
    char *room WEFT__ZERO;
    size_t room_bytes WEFT__ZERO;
    int step WEFT__ZERO;
    bool sits WEFT__ZERO;
    struct weft_io reads WEFT__ZERO;
    struct weft_io writes WEFT__ZERO;
};

/* weft_copy(from, to): all that comes, until the end. What `to` buffers is flushed. Returns how many bytes; -ENOMEM; else as weft_read and weft_write.
 *
 * weft_splice(from, to): the same, without a copy through the process where both are descriptors (sockets, pipes) and the kernel can; else it is weft_copy. */
struct weft_copy {
    WEFT_FRAME(int64_t);
    weft_stream *from;
    weft_stream *to;
    uint64_t done WEFT__ZERO;
    struct weft__pump weft__pump WEFT__ZERO;
};
struct weft_splice {
    WEFT_FRAME(int64_t);
    weft_stream *from;
    weft_stream *to;
    uint64_t done WEFT__ZERO;
    struct weft__pump weft__pump WEFT__ZERO;
    int weft__step WEFT__ZERO;
    int weft__pipe[2] WEFT__ZERO;
    size_t weft__held WEFT__ZERO;
};

/* weft_copy_bidirectional(a, b, &ab, &ba): from each to the other, until both have ended. When one ends, the other is told so (weft_shutdown, where
 * it has one), and the other direction goes on. An error of one ends both. *ab is how many bytes went from a to b, *ba the other way, whatever the
 * answer; NULL: nobody asks. Returns 0; the first error; -ECANCELED, -ETIME. */
struct weft_copy_bidirectional {
    WEFT_FRAME(int);
    weft_stream *a;
    weft_stream *b;
    uint64_t *ab;
    uint64_t *ba;
    uint64_t weft__done[2] WEFT__ZERO;
    struct weft__pump weft__pump[2] WEFT__ZERO;
};

/* weft_sendfile(file, offset, count, to): `count` bytes of a file from `offset` on, or up to its end (-1). What is in the system's memory goes to a socket or pipe
 * without a copy; the rest is read by threads that may block. Returns how many: fewer, if the file ends before; -EINVAL; else as weft_file_read and weft_write. */
struct weft_sendfile {
    WEFT_FRAME(int64_t);
    weft_file *file;
    int64_t offset;
    int64_t count;
    weft_stream *to;
    uint64_t done WEFT__ZERO;
    struct weft__pump weft__pump WEFT__ZERO;
    int weft__step WEFT__ZERO;
    bool weft__plain WEFT__ZERO; /* no sendfile(2) here */
    struct weft_file_read weft__read WEFT__ZERO;
};

WEFT_API weft_pollfn weft_read_to_end_poll;
WEFT_API weft_pollfn weft_copy_poll;
WEFT_API weft_pollfn weft_splice_poll;
WEFT_API weft_pollfn weft_copy_bidirectional_poll;
WEFT_API weft_pollfn weft_sendfile_poll;

WEFT_API int weft__read_to_end(weft_stream *stream, size_t limit, char **into, size_t *len)
    __attribute__((warn_unused_result));
WEFT_API int64_t weft__copy(weft_stream *from, weft_stream *to) __attribute__((warn_unused_result));
WEFT_API int64_t weft__splice_streams(weft_stream *from, weft_stream *to)
    __attribute__((warn_unused_result));
WEFT_API int weft__copy_bidirectional(weft_stream *a, weft_stream *b, uint64_t *ab, uint64_t *ba)
    __attribute__((warn_unused_result));
WEFT_API int64_t weft__sendfile(weft_file *file, int64_t offset, int64_t count, weft_stream *to)
    __attribute__((warn_unused_result));

#define weft_read_to_end(stream, limit, into, len)                                                 \
    (WEFT__CALL_FORM("weft_read_to_end()"), weft__read_to_end(stream, limit, into, len))
#define weft_copy(from, to)   (WEFT__CALL_FORM("weft_copy()"), weft__copy(from, to))
#define weft_splice(from, to) (WEFT__CALL_FORM("weft_splice()"), weft__splice_streams(from, to))
#define weft_copy_bidirectional(a, b, ab, ba)                                                      \
    (WEFT__CALL_FORM("weft_copy_bidirectional()"), weft__copy_bidirectional(a, b, ab, ba))
#define weft_sendfile(file, offset, count, to)                                                     \
    (WEFT__CALL_FORM("weft_sendfile()"), weft__sendfile(file, offset, count, to))

#ifdef __cplusplus
}
#endif

#endif
