/* SPDX-License-Identifier: MIT
 *
 * piece - what streams in memory, and such that only look at what passes, have in common: operations piece by piece, with a seat for
 * each direction, and a wait under a lock.
 *
 * Such a stream says how one piece of one buffer is moved, and whoever asks for lists, or for everything, gets it from here.
 * Threads: any.
 */
#ifndef WEFT_IO_PIECE_H
#define WEFT_IO_PIECE_H

#include "io/seat.h"
#include "sync/waitlist.h"

#include <weft/stream.h>

/* Moves one piece, or some of it. A poll: `io` is its room, zero at the first, and again when it was READY. *got: 0 is the end. */
typedef weft_poll weft__piece_fn(weft_stream *stream, struct weft_io *io, const struct iovec *piece,
                                 weft_cx *cx, ssize_t *got);

/* What an entry of the table is asked. */
struct weft__pieces {
    weft_stream *stream;
    struct weft_io *io;
    const struct iovec *iov;
    int count;
    unsigned flags;
    struct weft__seat *seat;
    weft__piece_fn *one;
};
weft_poll weft__pieces_poll(const struct weft__pieces *p, weft_cx *cx, ssize_t *ret, size_t *done);

/* The table's entries of a stream that has no such direction. */
weft_poll weft__piece_cannot(weft_stream *stream, struct weft_io *io, const struct iovec *iov,
                             int count, unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done);
weft_poll weft__piece_cannot_shut(weft_stream *stream, struct weft_io *io, weft_cx *cx, int *ret);

/* ---- waiting under a lock ---- */

/* In struct weft_io. */
struct weft__try {
    struct weft__waiter waiter;
    bool waits;
};
_Static_assert(sizeof(struct weft__try) <= sizeof(struct weft_io), "it fits its room");

/* holds: list->lock. One try; -EAGAIN: nothing there. */
typedef ssize_t weft__try_fn(void *self, const struct iovec *piece);

/* Tries until there is something, or it is told to stop. Whatever it brought may be what others wait for: all look again. */
weft_poll weft__try_poll(struct weft__waitlist *list, struct weft_io *io, weft__try_fn *tries,
                         void *self, const struct iovec *piece, weft_cx *cx, ssize_t *got);

#endif
