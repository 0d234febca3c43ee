/* SPDX-License-Identifier: MIT
 *
 * seat - one reader, or one writer, of a stream that stands on another: who sits there is known by the address of its operation.
 *
 *     FREE -> TAKEN   [take]     by the first poll of an operation
 *     TAKEN -> TAKEN  [take]     by its later polls: its `weft_io` does not move
 *     TAKEN -> FREE   [leave]    when it settles, or when a probe has found nothing
 * The operation's own room (struct weft_io) belongs to the stream beneath, so nothing about it can be kept there; the address alone is
 * enough. A second operation is answered -EBUSY, as by the streams on descriptors.
 *
 * Pairs: [io-seat] leave -> take: what the last one did to the buffer.
 * Threads: any.
 */
#ifndef WEFT_IO_SEAT_H
#define WEFT_IO_SEAT_H

#include "base/assert.h"
#include "base/atomic.h"
#include "types.h"

#include <weft/stream.h>

#include <errno.h>

struct weft__seat {
    const void *_Atomic taken_by; /* NULL: free  [io-seat] */
};

static inline bool weft__seat_is_mine(const struct weft__seat *seat, const void *me)
{
    return load_relaxed(&seat->taken_by) == me; /* relaxed: nobody else writes this address there */
}

static inline bool weft__seat_is_free(const struct weft__seat *seat)
{
    return weft__seat_is_mine(seat, NULL);
}

/* Returns 0; -EBUSY. */
static inline int weft__seat_take(struct weft__seat *seat, const void *me)
{
    const void *nobody = NULL;
    return cas_acquire(&seat->taken_by, &nobody, me) ? 0 : -EBUSY; /* [io-seat] with leave */
}

static inline void weft__seat_leave(struct weft__seat *seat)
{
    store_release(&seat->taken_by, NULL); /* [io-seat] with take */
}

/* The beginning of an operation on a stream of ours, and of each poll of it. READY: it is over, with *ret. PENDING: to be passed on.
 * Else it sits, and goes on. */
enum weft__sits { WEFT__SITS, WEFT__SITS_OVER, WEFT__SITS_PENDING };
enum weft__sits weft__seat_begin(struct weft__seat *seat, const void *me, weft_cx *cx,
                                 ssize_t *ret);

/* The end of one: the answer of a poll. Leaves the seat if it is over, or was a look. */
static inline weft_poll weft__seat_end(struct weft__seat *seat, const weft_cx *cx, weft_poll answer)
{
    if (answer == WEFT_READY || cx->probe) weft__seat_leave(seat);
    return answer;
}

#endif
