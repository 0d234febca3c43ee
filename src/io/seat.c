/* SPDX-License-Identifier: MIT
 *
 * seat - how an operation begins on a stream that stands on another; the idea is in seat.h.
 */
#include "io/seat.h"

#include "sync/leaf.h"

static enum weft__sits over(ssize_t *ret, ssize_t answer)
{
    *ret = answer;
    return WEFT__SITS_OVER;
}

enum weft__sits weft__seat_begin(struct weft__seat *seat, const void *me, weft_cx *cx, ssize_t *ret)
{
    if (weft__seat_is_mine(seat, me)) return WEFT__SITS;
    if (cx->why)
        return weft__told_yields(cx) ? WEFT__SITS_PENDING : over(ret, weft_cx_cancelled(cx));
    if (!weft__leaf_may(cx)) return WEFT__SITS_PENDING;
    int r = weft__seat_take(seat, me);
    return r < 0 ? over(ret, r) : WEFT__SITS;
}
