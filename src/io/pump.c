/* SPDX-License-Identifier: MIT
 *
 * pump - the steps; the drawing is in pump.h.
 */
#include "io/pump.h"

#include "base/alloc.h"
#include "io/list.h"
#include "limits.h"

static weft_poll over(int *ret, int answer)
{
    *ret = answer;
    return WEFT_READY;
}

/* ---- room ---- */

int weft__pump_room(struct weft__pump *p, size_t bytes)
{
    if (p->room && p->room_bytes >= bytes) return 0;
    weft__free(p->room);
    p->room = weft__alloc(bytes);
    p->room_bytes = bytes;
    return p->room ? 0 : -ENOMEM;
}

void weft__pump_drop(struct weft__pump *p)
{
    weft__free(p->room);
    p->room = NULL;
    p->room_bytes = 0;
}

/* ---- in ---- */

static weft_poll read_plain(struct weft__pump *p, weft_stream *from, weft_cx *cx, ssize_t *got)
{
    *got = weft__pump_room(p, WEFT__COPY_BYTES);
    if (*got < 0) return WEFT_READY;
    struct iovec room = {.iov_base = p->room, .iov_len = p->room_bytes};
    p->data = p->room;
    return weft__beneath_read(from, &p->reads, &room, cx, got);
}

/* It sits there from here on, if there is something. */
static weft_poll read_buffer(struct weft__pump *p, weft_buf *from, weft_cx *cx, ssize_t *got)
{
    if (weft__buf_some(from, &p->reads, cx, got) == WEFT_PENDING) return WEFT_PENDING;
    p->sits = *got > 0;
    if (p->sits) p->data = from->in.data + from->in.pos;
    return WEFT_READY;
}

/* So much of the piece was written: it is not in the buffer any more. */
static void consumed(struct weft__pump *p, weft_stream *from, size_t bytes)
{
    if (p->sits) weft__buf_of(from)->in.pos += bytes;
}

static void leave(struct weft__pump *p, weft_stream *from)
{
    if (p->sits) (void)weft__buf_left(weft__buf_of(from));
    p->sits = false;
}

/* ---- out ---- */

/* READY: *ret 0, the piece is written; or why not. */
static weft_poll write_piece(struct weft__pump *p, weft_stream *from, weft_stream *to, weft_cx *cx,
                             uint64_t *done, int *ret)
{
    while (p->len > 0) {
        struct iovec piece = {.iov_base = p->data, .iov_len = p->len};
        ssize_t n = 0;
        if (weft__beneath_write(to, &p->writes, &piece, cx, &n) == WEFT_PENDING)
            return WEFT_PENDING;
        if (n < 0) return over(ret, (int)n);
        consumed(p, from, (size_t)n);
        p->data += n;
        p->len -= (size_t)n;
        *done += (uint64_t)n;
    }
    return over(ret, 0);
}

static weft_poll flush(struct weft__pump *p, weft_stream *to, weft_cx *cx, int *ret)
{
    weft_buf *b = weft__buf_of(to);
    ssize_t answer = 0;
    if (b && weft__buf_flush(b, &p->writes, cx, &answer) == WEFT_PENDING) return WEFT_PENDING;
    return over(ret, (int)answer);
}

static weft_poll put_piece(struct weft__pump *p, weft_stream *from, weft_stream *to, weft_cx *cx,
                           uint64_t *done, int *ret)
{
    if (p->step == WEFT__PUMP_WRITES) {
        if (write_piece(p, from, to, cx, done, ret) == WEFT_PENDING) return WEFT_PENDING;
        leave(p, from);
        if (*ret < 0) return WEFT_READY;
        p->step = WEFT__PUMP_FLUSHES;
    }
    return flush(p, to, cx, ret);
}

weft_poll weft__pump_piece(struct weft__pump *p, weft_stream *to, weft_cx *cx, uint64_t *done,
                           int *ret)
{
    return put_piece(p, NULL, to, cx, done, ret);
}

/* ---- both ---- */

/* READY: *got above 0, there is a piece; 0, the end; or why not. */
static weft_poll get_piece(struct weft__pump *p, weft_stream *from, weft_cx *cx, ssize_t *got)
{
    weft_buf *b = weft__buf_of(from);
    weft_poll answer = b ? read_buffer(p, b, cx, got) : read_plain(p, from, cx, got);
    if (answer == WEFT_READY && *got > 0) {
        p->len = (size_t)*got;
        p->step = WEFT__PUMP_WRITES;
    }
    return answer;
}

static weft_poll pump(struct weft__pump *p, weft_stream *from, weft_stream *to, weft_cx *cx,
                      uint64_t *done, int *ret)
{
    for (;;) {
        if (p->step == WEFT__PUMP_READS) {
            ssize_t got = 0;
            if (get_piece(p, from, cx, &got) == WEFT_PENDING) return WEFT_PENDING;
            if (got <= 0) return over(ret, (int)got);
        }
        if (put_piece(p, from, to, cx, done, ret) == WEFT_PENDING) return WEFT_PENDING;
        if (*ret < 0) return WEFT_READY;
        p->step = WEFT__PUMP_READS;
    }
}

weft_poll weft__pump_poll(struct weft__pump *p, weft_stream *from, weft_stream *to, weft_cx *cx,
                          uint64_t *done, int *ret)
{
    if (pump(p, from, to, cx, done, ret) == WEFT_PENDING) return WEFT_PENDING;
    weft__pump_drop(p);
    p->step = WEFT__PUMP_OVER;
    return WEFT_READY;
}
