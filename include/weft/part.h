/* SPDX-License-Identifier: MIT
 *
 * part - streams made of others, in the caller's memory: at most so many bytes of one; one after the other. The halves of one, each with
 * its owner. Streams in memory.
 *
 *     weft_part body;
 *     weft_stream *s = weft_part_init(&body, conn, content_length);
 *     r = weft_read_to_end(s, 0, &text, &len);             ends behind the body; conn goes on
 *     if (body.left > 0) ...                               conn ended before
 *
 *     weft_stream *in, *out;
 *     r = weft_split(conn, &in, &out);                     takes conn; a task reads from `in`, another writes to `out`
 *     weft_close(out);                                     the peer hears the end; `in` goes on, until it is closed, and conn with it
 *
 * The first two borrow the streams they stand on: weft_close of one closes nothing, and is not needed. What is read from them is read from those, and
 * given up likewise: nothing is lost. Their memory is pinned while an operation is under way.
 */
#ifndef WEFT_PART_H
#define WEFT_PART_H

#include <weft/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_part {
    weft_stream weft__face;
    weft_stream *weft__of;
    uint64_t left; /* bytes that it will still give; to be looked at while nobody reads */
    void *weft__seat;
} weft_part;

/* At most `bytes` of a stream, then the end. Writes and weft_shutdown go to the stream itself. Context: anywhere. Returns `room`, as a stream. */
WEFT_API weft_stream *weft_part_init(weft_part *room, weft_stream *stream, uint64_t bytes);

typedef struct weft_chain {
    weft_stream weft__face;
    weft_stream *weft__of[2];
    bool ended; /* the first has; to be looked at while nobody reads */
    void *weft__seat;
} weft_chain;

/* All of the first, then all of the second. It cannot be written (-EBADF). Context: anywhere. Returns `room`, as a stream. */
WEFT_API weft_stream *weft_chain_init(weft_chain *room, weft_stream *first, weft_stream *second);

/* ---- halves ------------------------------------------------------------------------------------------------------------------ */

/* Two streams of one, whatever its kind: of the first can only be read, to the second only be written and weft_shutdown; the other way round they
 * answer -EBADF. weft_stream_fd of both is the stream's. Each is for weft_close, by its own task, in any order, also while others use it: who waits for that
 * half is answered -EBADF, and the other half goes on. The last that is closed closes the stream.
 * Writing is shut down when the writer is closed, but never waits: where there is more to do than can be done at once, as bytes of a weft_buf that were not
 * flushed, the peer hears the end only with the stream's own; weft_shutdown before waits for it. So it is for a stream that goes one way only (-EOPNOTSUPP).
 * Takes the stream if it succeeds, with nothing under way. Context: anywhere. Returns 0; -ENOMEM; -EINVAL: NULL. */
WEFT_API int weft_split(weft_stream *stream, weft_stream **reader, weft_stream **writer)
    __attribute__((warn_unused_result));

/* ---- in memory ---------------------------------------------------------------------------------------------------------------- */

/* Gives two streams that are connected to each other, with room for `bytes` in each direction, without a descriptor and without a runtime. As of
 * sockets: who writes waits for room, a shutdown or close is the end for the other's reader, and a write that nobody can read is -EPIPE.
 * Context: anywhere. Returns 0; -ENOMEM; -EINVAL: NULL, or no bytes. */
WEFT_API int weft_duplex(size_t bytes, weft_stream **a, weft_stream **b)
    __attribute__((warn_unused_result));

#ifdef __cplusplus
}
#endif

#endif
