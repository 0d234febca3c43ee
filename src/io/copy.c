/* SPDX-License-Identifier: MIT
 *
 * copy - streams to their end: into memory, into another one, both ways (weft/copy.h).
 *
 * Both ways are two pumps in one frame, polled one after the other by the same task. One that fails has the other told to stop, and that is
 * awaited: no operation is left behind.
 */
#include "io/pump.h"

#include "base/alloc.h"
#include "io/list.h"
#include "limits.h"
#include "sync/leaf.h"
#include "task/call.h"

#include <string.h>

/* ---- into memory ---- */

/* Room for one more byte, beside the NUL. */
static int whole_room(struct weft_read_to_end *f)
{
    if (f->weft__len + 1 < f->weft__cap) return 0;
    size_t cap = f->weft__cap ? f->weft__cap * 2 : WEFT__WHOLE_BYTES;
    char *data = weft__alloc(cap); /* zeroed: the NUL is there */
    if (!data) return -ENOMEM;
    if (f->weft__data) memcpy(data, f->weft__data, f->weft__len);
    weft__free(f->weft__data);
    f->weft__data = data;
    f->weft__cap = cap;
    return 0;
}

static size_t whole_most(const struct weft_read_to_end *f)
{
    size_t room = f->weft__cap - 1 - f->weft__len;
    if (f->limit == 0 || f->limit == SIZE_MAX) return room;
    size_t left = f->limit + 1 - f->weft__len;
    return room < left ? room : left;
}

/* READY: *got is 0 or below. */
static weft_poll whole_read(struct weft_read_to_end *f, weft_cx *cx, ssize_t *got)
{
    do {
        *got = whole_room(f);
        if (*got < 0) return WEFT_READY;
        struct iovec room = {.iov_base = f->weft__data + f->weft__len, .iov_len = whole_most(f)};
        if (weft__beneath_read(f->stream, &f->weft__io, &room, cx, got) == WEFT_PENDING)
            return WEFT_PENDING;
        if (*got > 0) f->weft__len += (size_t)*got;
        if (f->limit && f->weft__len > f->limit) *got = -EMSGSIZE;
    } while (*got > 0);
    return WEFT_READY;
}

weft_poll weft_read_to_end_poll(void *frame, weft_cx *cx)
{
    struct weft_read_to_end *f = frame;
    ssize_t got = -EINVAL;
    f->weft__at = 0;
    if (f->stream && f->into && f->len) {
        if (whole_read(f, cx, &got) == WEFT_PENDING) {
            f->weft__at = WEFT__LEAF_WAITS;
            return WEFT_PENDING;
        }
        bool nothing = got < 0 && f->weft__len == 0;
        if (nothing) weft__free(f->weft__data);
        if (!nothing) f->weft__data[f->weft__len] = 0; /* a stream may have scribbled there */
        *f->into = nothing ? NULL : f->weft__data;
        *f->len = f->weft__len;
        f->weft__data = NULL;
    }
    f->ret = (int)got;
    return WEFT_READY;
}

/* ---- one way ---- */

weft_poll weft_copy_poll(void *frame, weft_cx *cx)
{
    struct weft_copy *f = frame;
    int r = -EINVAL;
    f->weft__at = 0;
    if (f->from && f->to &&
        weft__pump_poll(&f->weft__pump, f->from, f->to, cx, &f->done, &r) == WEFT_PENDING) {
        f->weft__at = WEFT__LEAF_WAITS;
        return WEFT_PENDING;
    }
    f->ret = r < 0 ? r : (int64_t)f->done;
    return WEFT_READY;
}

/* ---- both ways ---- */

/* One that cannot, or whose peer is gone, needs none. */
static weft_poll tell_end(struct weft__pump *p, weft_stream *to, weft_cx *cx, int *ret)
{
    if (to->ops->shutdown(to, &p->writes, cx, ret) == WEFT_PENDING) return WEFT_PENDING;
    if (*ret == -EOPNOTSUPP || *ret == -ENOTCONN) *ret = 0;
    return WEFT_READY;
}

static weft_poll one_way(struct weft__pump *p, weft_stream *from, weft_stream *to, weft_cx *cx,
                         uint64_t *done, int *ret)
{
    if (p->step == WEFT__PUMP_OVER) return WEFT_READY;
    if (p->step != WEFT__PUMP_SHUTS) {
        if (weft__pump_poll(p, from, to, cx, done, ret) == WEFT_PENDING) return WEFT_PENDING;
        if (*ret < 0) return WEFT_READY;
        p->step = WEFT__PUMP_SHUTS;
        p->writes = (struct weft_io){{0}};
    }
    if (tell_end(p, to, cx, ret) == WEFT_PENDING) return WEFT_PENDING;
    p->step = WEFT__PUMP_OVER;
    return WEFT_READY;
}

/* One direction, beside the other; told to stop if that one failed. True: it is over. */
static bool poll_way(struct weft_copy_bidirectional *f, int i, weft_cx *cx)
{
    int outer_why = cx->why;
    bool outer_among = cx->among;
    int r = 0;
    if (f->ret < 0 && !cx->why) cx->why = -ECANCELED;
    cx->among = true;
    weft_poll answer =
        one_way(&f->weft__pump[i], i ? f->b : f->a, i ? f->a : f->b, cx, &f->weft__done[i], &r);
    cx->why = outer_why;
    cx->among = outer_among;
    if (answer == WEFT_READY && r < 0 && f->ret == 0) f->ret = r;
    return answer == WEFT_READY;
}

/* True: both are over. A failure of the second is news for the first. */
static bool poll_ways(struct weft_copy_bidirectional *f, weft_cx *cx)
{
    bool first = poll_way(f, 0, cx);
    int known = f->ret;
    bool second = poll_way(f, 1, cx);
    if (!first && known == 0 && f->ret < 0) first = poll_way(f, 0, cx);
    return first && second;
}

weft_poll weft_copy_bidirectional_poll(void *frame, weft_cx *cx)
{
    struct weft_copy_bidirectional *f = frame;
    if (!f->a || !f->b) {
        f->ret = -EINVAL;
        return WEFT_READY;
    }
    if (!f->weft__at) f->ret = 0;
    f->weft__at = WEFT__LEAF_WAITS;
    if (!poll_ways(f, cx)) return WEFT_PENDING;
    f->weft__at = 0;
    if (f->ab) *f->ab = f->weft__done[0];
    if (f->ba) *f->ba = f->weft__done[1];
    return WEFT_READY;
}

/* ---- call forms ---- */

int weft__read_to_end(weft_stream *stream, size_t limit, char **into, size_t *len)
{
    struct weft_read_to_end f = {.stream = stream, .limit = limit, .into = into, .len = len};
    int r = weft__run_from(weft_read_to_end_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

int64_t weft__copy(weft_stream *from, weft_stream *to)
{
    struct weft_copy f = {.from = from, .to = to};
    int r = weft__run_from(weft_copy_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

int weft__copy_bidirectional(weft_stream *a, weft_stream *b, uint64_t *ab, uint64_t *ba)
{
    struct weft_copy_bidirectional f = {.a = a, .b = b, .ab = ab, .ba = ba};
    int r = weft__run_from(weft_copy_bidirectional_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}
