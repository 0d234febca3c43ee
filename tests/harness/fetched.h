/* SPDX-License-Identifier: MIT
 *
 * fetched - what io_uring has brought ahead for a stream, and a flood of bytes that is checked where it arrives.
 */
#ifndef HARNESS_FETCHED_H
#define HARNESS_FETCHED_H

#include "crew.h"
#include "driver/uring.h"
#include "on_uring.h"
#include "slot.h"
#include "town.h"

static inline struct weft__uring_slot *more_of(weft_stream *stream)
{
    return slot_of(stream)->more;
}

static inline size_t unread_of(weft_stream *stream)
{
    struct weft__uring_slot *us = more_of(stream);
    struct weft__uring *u = us->slot->port->own;
    weft__uring_lock(u);
    size_t unread = us->unread;
    weft__uring_unlock(u);
    return unread;
}

/* Older kernels go on until they are told to stop, and all that the port has may be full by then. */
static inline size_t bound_of(weft_rt *rt)
{
    const struct weft__uring *u = rt->driver->ports[0].own;
    return u && u->no_cap ? WEFT__URING_BUFFERS * WEFT__URING_BUFFER_BYTES
                          : WEFT__URING_UNREAD + WEFT__URING_BUFFER_BYTES;
}

static inline uint32_t asked_of(weft_stream *stream)
{
    return load_relaxed(&more_of(stream)->asked); /* relaxed: a look */
}

static inline void crew_on_uring(struct crew *crew, int workers)
{
    stops(on_uring(1)); /* or all of it is left out */
    crew_start_with(crew, &(weft_rt_opts){.workers = workers, .driver = WEFT_DRIVER_IO_URING});
}

enum { MUCH = 3 << 20 };

static inline int writes_much(weft_stream *to)
{
    unsigned char piece[5000];
    for (uint64_t at = 0; at < MUCH;) {
        size_t n = MUCH - at < sizeof piece ? MUCH - at : sizeof piece;
        town_fill(piece, n, at);
        ssize_t r = weft_write_all(to, piece, n);
        if (r < 0) return (int)r;
        at += n;
    }
    weft_close(to);
    return 0;
}

static inline int reads_one(weft_stream *from)
{
    char b;
    ssize_t n = weft_read(from, &b, 1);
    return n < 0 ? (int)n : b;
}

static inline int reads_all(weft_stream *from, uint64_t at)
{
    unsigned char room[600];
    ssize_t n;
    while ((n = weft_read(from, room, sizeof room)) > 0) {
        for (ssize_t i = 0; i < n; i++)
            if (room[i] != town_byte(at + (uint64_t)i)) return -EIO;
        at += (uint64_t)n;
    }
    return n < 0 ? (int)n : at == MUCH ? 0 : -EPIPE;
}

#endif
