/* SPDX-License-Identifier: MIT
 *
 * fdstream - streams on a descriptor: sockets, pipes, terminals. The stream lies in the face of its slot, so that one costs no memory
 * beside it, and a closed one stays readable memory while its port lives.
 *     face[0]   the table: what kind of descriptor it is
 */
#ifndef WEFT_IO_FDSTREAM_H
#define WEFT_IO_FDSTREAM_H

#include "base/list.h"
#include "driver/driver.h"
#include "task/here.h"

#include <weft/stream.h>

enum weft__fdstream_kind {
    WEFT__FDSTREAM_TCP, /* where it is fetched ahead */
    WEFT__FDSTREAM_UNIX,
    WEFT__FDSTREAM_READER, /* of a pipe, or a terminal: one direction alone */
    WEFT__FDSTREAM_WRITER,
    WEFT__FDSTREAM_FILE,       /* a terminal, a FIFO that is open for both: whatever it is */
    WEFT__FDSTREAM_TCP_DIRECT, /* what a TCP stream becomes where nothing is ever fetched ahead */
};

/* The stream of a slot that was just added. Takes the slot. */
weft_stream *weft__fdstream_of(struct weft__fdslot *slot, enum weft__fdstream_kind kind);

/* Is it one of these, and of that kind? Any stream may be asked. */
bool weft__fdstream_is(const weft_stream *stream, enum weft__fdstream_kind kind);

/* A stream of an fd, in a port. Takes fd if it succeeds. Returns as weft__driver_add. */
int weft__fdstream_new(struct weft__port *port, int fd, enum weft__fdstream_kind kind,
                       weft_stream **into);

/* Is it one of these, of any kind? */
bool weft__fdstream_has_slot(const weft_stream *stream);

static inline struct weft__fdslot *weft__fdstream_slot(weft_stream *stream)
{
    return weft__container_of((void **)(void *)stream, struct weft__fdslot, face[0]);
}

extern const weft_stream_ops weft__fdstream_tables[];

/* May the frames that move one buffer go by the steps of direct.h? */
static inline bool weft__fdstream_is_direct(const weft_stream *stream)
{
    return stream->ops == &weft__fdstream_tables[WEFT__FDSTREAM_TCP_DIRECT];
}

/* Or by those for a TCP stream of a backend that fetches ahead, and hands sends in together? */
static inline bool weft__fdstream_is_ahead(const weft_stream *stream)
{
    return stream->ops == &weft__fdstream_tables[WEFT__FDSTREAM_TCP];
}

/* May a write's buffer be left with the backend for a moment? Not of one that is polled beside others, whose winning would drop its answer; nor of a worker's thread in a hook, which does
 * not come by. */
static inline bool weft__fdstream_may_be_soon(const weft_cx *cx)
{
    return !cx->among && !cx->probe && weft__here()->task;
}

/* Two streams, on the current runtime, or none: then both fds are closed. */
int weft__fdstream_pair(const int fds[2], const enum weft__fdstream_kind kinds[2],
                        weft_stream *into[2]);

#endif
