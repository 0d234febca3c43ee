/* SPDX-License-Identifier: MIT
 *
 * buf - a buffer on each side of a stream, and the one way to read ahead in it.
 *
 *     in:    [0, pos) was used   [pos, end) is there   [end, cap) is room for the next read of the stream beneath
 *     out:   [0, from) is written   [from, to) is to be written   [to, cap) is room
 *     0 <= pos <= end <= cap,  0 <= from <= to <= cap
 * Each poll decides anew what to do, from the buffer and the arguments alone: an operation beneath that is under way has changed
 * neither, so the same one is polled again. So nothing is kept between polls but the buffer; that is what makes giving up harmless.
 * While a read beneath is under way its room does not move: `room_for` does nothing the second time.
 *
 * Threads: the input side is the reader's, the output side the writer's (seat.h).
 * Rejected: a place in the frame for what is half done (to be given back when it is given up); a ring instead of moving what is left to
 * the front (a line would lie in two pieces).
 */
#ifndef WEFT_IO_BUF_H
#define WEFT_IO_BUF_H

#include "io/seat.h"

#include <weft/buf.h>

struct weft__buf_in {
    char *data;
    size_t pos;
    size_t end;
    size_t cap;
    bool own; /* it may grow, and is freed */
};

struct weft__buf_out {
    char *data;
    size_t from;
    size_t to;
    size_t cap;
    bool own;
};

struct weft_buf {
    weft_stream face;        /* first: a weft_buf is a stream */
    weft_stream *beneath;    /* constant */
    bool keep;               /* constant: `beneath` is borrowed */
    struct weft__seat reads; /* guards `in` */
    struct weft__seat writes;
    struct weft__buf_in in;
    struct weft__buf_out out;
};

/* The buffer of a stream, if it is one; else NULL. */
weft_buf *weft__buf_of(weft_stream *stream);

/* What is there, by the reader. */
static inline size_t weft__buf_len(const weft_buf *b)
{
    return b->in.end - b->in.pos;
}

/* A search in what is there: for the end of a line, for a whole packet. */
struct weft__seek {
    /* Among `len` bytes, of which none follow if `ended`. Returns above 0: found, so many bytes are it; 0: not yet, `need` says how
     * many there must be (0: one more); an errno. */
    ssize_t (*find)(struct weft__seek *seek, const char *data, size_t len, bool ended);
    size_t most;     /* if so many bytes are there and it was not found: -EMSGSIZE */
    size_t need;     /* by find */
    size_t seen;     /* so many were searched; kept between polls */
    const void *how; /* the finder's */
};

/* Reads until it is found. READY: *ret is what find answered, 0 at the end, or why not. Nothing is consumed, and if it was found the seat
 * is still taken: weft__buf_found ends it. */
weft_poll weft__buf_seek(weft_buf *b, struct weft_io *io, struct weft__seek *seek, weft_cx *cx,
                         ssize_t *ret);

/* Reads until there is something. READY: as weft__buf_seek. */
weft_poll weft__buf_some(weft_buf *b, struct weft_io *io, weft_cx *cx, ssize_t *ret);

/* Writes what it holds. READY: *ret is 0, or why not. */
weft_poll weft__buf_flush(weft_buf *b, struct weft_io *io, weft_cx *cx, ssize_t *ret);

/* Puts all parts into the buffer, or nothing: waits until there is room, and grows where it may. READY: *ret is 0, or why not. */
weft_poll weft__buf_put(weft_buf *b, struct weft_io *io, const weft_slice *parts, int count,
                        weft_cx *cx, ssize_t *ret);

/* Consumes, and ends the operation. Gives the address of what was consumed. */
const char *weft__buf_found(weft_buf *b, size_t bytes);

/* The same, and it stays there. */
const char *weft__buf_left(weft_buf *b);

#endif
