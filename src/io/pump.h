/* SPDX-License-Identifier: MIT
 *
 * pump - bytes on their way from one stream to another, a piece at a time.
 *
 *     READS   -> WRITES    a piece has come
 *     READS   -> OVER      the end
 *     WRITES  -> FLUSHES   the piece is written
 *     FLUSHES -> READS
 *     any     -> OVER      an error, or told to stop
 * A piece lies in room of the pump's own; or, read through a buffer, in that buffer, whose seat is then kept until the piece is written:
 * what was not written stays there.
 *
 * Threads: the poller's. Lives in the frame of the operation.
 * Rejected: to read ahead while a write waits (two pieces of memory for each direction; the kernel's buffers do it already).
 */
#ifndef WEFT_IO_PUMP_H
#define WEFT_IO_PUMP_H

#include "io/buf.h"

#include <weft/copy.h>

enum {
    WEFT__PUMP_READS, /* zero: it begins */
    WEFT__PUMP_WRITES,
    WEFT__PUMP_FLUSHES,
    WEFT__PUMP_SHUTS, /* by whoever pumps both ways */
    WEFT__PUMP_OVER,
};

/* Polls until `from` ends. READY: *ret is 0, or why not; *done counts what was written. It holds nothing any more. */
weft_poll weft__pump_poll(struct weft__pump *p, weft_stream *from, weft_stream *to, weft_cx *cx,
                          uint64_t *done, int *ret);

/* The rest of one piece, which lies in the pump's room. READY: *ret is 0, and it is flushed; or why not. */
weft_poll weft__pump_piece(struct weft__pump *p, weft_stream *to, weft_cx *cx, uint64_t *done,
                           int *ret);

/* Room of its own of at least so many bytes. Returns 0; -ENOMEM. */
int weft__pump_room(struct weft__pump *p, size_t bytes);

/* Gives its room back. */
void weft__pump_drop(struct weft__pump *p);

#endif
