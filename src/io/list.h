/* SPDX-License-Identifier: MIT
 *
 * list - lists of buffers, piece by piece, and one piece given to the stream beneath.
 */
#ifndef WEFT_IO_LIST_H
#define WEFT_IO_LIST_H

#include <weft/stream.h>

#include <errno.h>

/* A list, of which the first `done` bytes were moved. */
struct weft__list_rest {
    const struct iovec *iov;
    int count;
    size_t done;
};

static inline size_t weft__list_bytes(const struct iovec *iov, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += iov[i].iov_len;
    return bytes;
}

/* The first piece behind `done + skip` bytes. False: there is none. */
static inline bool weft__list_piece(const struct weft__list_rest *rest, size_t skip,
                                    struct iovec *into)
{
    skip += rest->done;
    for (int i = 0; i < rest->count; i++) {
        size_t len = rest->iov[i].iov_len;
        if (skip < len) {
            into->iov_base = (char *)rest->iov[i].iov_base + skip;
            into->iov_len = len - skip;
            return true;
        }
        skip -= len;
    }
    return false;
}

/* Polls of an operation of one piece on the stream beneath, in the room of the operation above. READY: the room is empty again. */
static inline weft_poll weft__beneath_read(weft_stream *beneath, struct weft_io *io,
                                           const struct iovec *piece, weft_cx *cx, ssize_t *got)
{
    size_t done = 0;
    if (beneath->ops->read(beneath, io, piece, 1, 0, cx, got, &done) == WEFT_PENDING)
        return WEFT_PENDING;
    *io = (struct weft_io){{0}};
    return WEFT_READY;
}

/* One that takes nothing breaks the rule of weft_write, and would be asked for ever. */
static inline weft_poll weft__beneath_write(weft_stream *beneath, struct weft_io *io,
                                            const struct iovec *piece, weft_cx *cx, ssize_t *got)
{
    size_t done = 0;
    if (beneath->ops->write(beneath, io, piece, 1, 0, cx, got, &done) == WEFT_PENDING)
        return WEFT_PENDING;
    *io = (struct weft_io){{0}};
    if (*got == 0) *got = -EIO;
    return WEFT_READY;
}

#endif
