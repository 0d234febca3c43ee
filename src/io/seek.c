/* SPDX-License-Identifier: MIT
 *
 * seek - reads that look ahead in a buffer: until there is enough, up to a delimiter, a line; the idea is in buf.h.
 */
#include "io/buf.h"

#include "base/alloc.h"
#include "io/list.h"
#include "sync/leaf.h"
#include "task/call.h"

#include <limits.h>
#include <string.h>

/* ---- room ---- */

static void to_front(struct weft__buf_in *in)
{
    if (in->pos == 0) return;
    memmove(in->data, in->data + in->pos, in->end - in->pos);
    in->end -= in->pos;
    in->pos = 0;
}

/* `most`: what it will hold at the very most. */
static int grow(struct weft__buf_in *in, size_t bytes, size_t most)
{
    size_t cap = in->cap > most / 2 ? most : in->cap * 2;
    if (cap < bytes) cap = bytes;
    if (!in->own) return -EMSGSIZE;
    char *data = weft__alloc(cap);
    if (!data) return -ENOMEM;
    memcpy(data, in->data + in->pos, in->end - in->pos);
    weft__free(in->data);
    in->data = data;
    in->end -= in->pos;
    in->pos = 0;
    in->cap = cap;
    return 0;
}

/* So that `bytes` fit from `pos` on. A small rest of room would be read into byte by byte: what is there is moved to the front before. */
static int room_for(struct weft__buf_in *in, size_t bytes, size_t most)
{
    if (bytes > in->cap) return grow(in, bytes, most);
    if (bytes > in->cap - in->pos || in->cap - in->end < in->cap / 2) to_front(in);
    return 0;
}

/* ---- the search ---- */

/* Sits. READY: *got bytes came; 0: the end; or why not. */
static weft_poll reads_on(weft_buf *b, struct weft_io *io, const struct weft__seek *seek,
                          weft_cx *cx, ssize_t *got)
{
    struct weft__buf_in *in = &b->in;
    size_t len = weft__buf_len(b);
    *got = room_for(in, seek->need > len ? seek->need : len + 1, seek->most);
    if (*got < 0) return WEFT_READY;
    struct iovec room = {.iov_base = in->data + in->end, .iov_len = in->cap - in->end};
    if (weft__beneath_read(b->beneath, io, &room, cx, got) == WEFT_PENDING) return WEFT_PENDING;
    if (*got > 0) in->end += (size_t)*got;
    return WEFT_READY;
}

static ssize_t find(weft_buf *b, struct weft__seek *seek, bool ended)
{
    size_t len = weft__buf_len(b);
    seek->need = 0;
    ssize_t r = seek->find(seek, b->in.data + b->in.pos, len, ended);
    return r == 0 && !ended && len >= seek->most ? -EMSGSIZE : r;
}

/* Sits. */
static weft_poll search(weft_buf *b, struct weft_io *io, struct weft__seek *seek, weft_cx *cx,
                        ssize_t *ret)
{
    ssize_t got;
    while ((*ret = find(b, seek, false)) == 0) {
        if (reads_on(b, io, seek, cx, &got) == WEFT_PENDING) return WEFT_PENDING;
        if (got > 0) continue;
        *ret = got < 0 ? got : find(b, seek, true);
        break;
    }
    return WEFT_READY;
}

weft_poll weft__buf_seek(weft_buf *b, struct weft_io *io, struct weft__seek *seek, weft_cx *cx,
                         ssize_t *ret)
{
    enum weft__sits sits = weft__seat_begin(&b->reads, io, cx, ret);
    if (sits != WEFT__SITS) return sits == WEFT__SITS_OVER ? WEFT_READY : WEFT_PENDING;
    weft_poll answer = search(b, io, seek, cx, ret);
    bool found = answer == WEFT_READY && *ret > 0;
    return found ? WEFT_READY : weft__seat_end(&b->reads, cx, answer);
}

const char *weft__buf_left(weft_buf *b)
{
    const char *data = b->in.data + b->in.pos;
    weft__seat_leave(&b->reads);
    return data;
}

const char *weft__buf_found(weft_buf *b, size_t bytes)
{
    const char *data = b->in.data + b->in.pos;
    b->in.pos += bytes;
    weft__seat_leave(&b->reads);
    return data;
}

/* ---- enough ---- */

static ssize_t find_enough(struct weft__seek *seek, const char *data, size_t len, bool ended)
{
    (void)data;
    seek->need = *(const size_t *)seek->how;
    return len >= seek->need || ended ? (ssize_t)len : 0;
}

weft_poll weft__buf_some(weft_buf *b, struct weft_io *io, weft_cx *cx, ssize_t *ret)
{
    static const size_t one = 1;
    struct weft__seek seek = {.find = find_enough, .most = one, .how = &one};
    return weft__buf_seek(b, io, &seek, cx, ret);
}

weft_poll weft_buf_fill_poll(void *frame, weft_cx *cx)
{
    struct weft_buf_fill *f = frame;
    size_t want = f->want ? f->want : 1;
    struct weft__seek seek = {.find = find_enough, .most = want, .how = &want};
    f->ret = -EINVAL;
    if (!f->buf || !f->into || want > SSIZE_MAX) return WEFT_READY;
    weft_poll answer = weft__buf_seek(f->buf, &f->weft__io, &seek, cx, &f->ret);
    f->weft__at = answer == WEFT_PENDING ? WEFT__LEAF_WAITS : 0;
    if (answer == WEFT_READY && f->ret > 0) *f->into = weft__buf_left(f->buf);
    return answer;
}

int weft_buf_consume(weft_buf *buf, size_t bytes)
{
    if (!buf) return -EINVAL;
    int r = weft__seat_take(&buf->reads, &bytes);
    if (r < 0) return r;
    if (bytes > weft__buf_len(buf)) r = -EINVAL;
    (void)weft__buf_found(buf, r < 0 ? 0 : bytes);
    return r;
}

/* ---- up to a delimiter ---- */

/* How many bytes there are up to the delimiter and with it; 0: it is not there. */
static size_t scan(struct weft__seek *seek, const char *data, size_t len, int delim)
{
    const char *at = seek->seen < len ? memchr(data + seek->seen, delim, len - seek->seen) : NULL;
    seek->seen = len;
    return at ? (size_t)(at - data) + 1 : 0;
}

static ssize_t find_delim(struct weft__seek *seek, const char *data, size_t len, bool ended)
{
    const struct weft_read_until *f = seek->how;
    size_t bytes = scan(seek, data, len, f->delim);
    if (bytes == 0 && ended) bytes = len;
    return bytes >= seek->most ? -EMSGSIZE : (ssize_t)bytes;
}

/* One more than may be there: it tells a piece of `limit` at the end from one that is too long. */
static size_t most_of(size_t limit, size_t more)
{
    if (limit == 0) limit = WEFT_LINE_LIMIT;
    return limit < SSIZE_MAX - more ? limit + more : SSIZE_MAX;
}

weft_poll weft_read_until_poll(void *frame, weft_cx *cx)
{
    struct weft_read_until *f = frame;
    struct weft__seek seek = {.find = find_delim, .most = most_of(f->limit, 1), .how = f};
    f->ret = -EINVAL;
    if (!f->buf || !f->into) return WEFT_READY;
    seek.seen = f->weft__seen;
    weft_poll answer = weft__buf_seek(f->buf, &f->weft__io, &seek, cx, &f->ret);
    f->weft__seen = answer == WEFT_PENDING ? seek.seen : 0;
    f->weft__at = answer == WEFT_PENDING ? WEFT__LEAF_WAITS : 0;
    if (answer == WEFT_READY && f->ret > 0) *f->into = weft__buf_found(f->buf, (size_t)f->ret);
    return answer;
}

/* ---- a line ---- */

/* Without what ends it. */
static size_t bare_line(const char *data, size_t bytes)
{
    if (bytes == 0 || data[bytes - 1] != '\n') return bytes;
    bytes--;
    return bytes > 0 && data[bytes - 1] == '\r' ? bytes - 1 : bytes;
}

/* `most` leaves room for CRLF, and one more. */
static ssize_t find_line(struct weft__seek *seek, const char *data, size_t len, bool ended)
{
    size_t bytes = scan(seek, data, len, '\n');
    if (bytes == 0 && ended) bytes = len;
    return bare_line(data, bytes) > seek->most - 2 ? -EMSGSIZE : (ssize_t)bytes;
}

weft_poll weft_read_line_poll(void *frame, weft_cx *cx)
{
    struct weft_read_line *f = frame;
    struct weft__seek seek = {.find = find_line, .most = most_of(f->limit, 2)};
    ssize_t got = -EINVAL;
    weft_poll answer = WEFT_READY;
    if (f->buf && f->into) {
        seek.seen = f->weft__seen;
        answer = weft__buf_seek(f->buf, &f->weft__io, &seek, cx, &got);
    }
    f->weft__seen = answer == WEFT_PENDING ? seek.seen : 0;
    f->weft__at = answer == WEFT_PENDING ? WEFT__LEAF_WAITS : 0;
    if (answer == WEFT_PENDING) return WEFT_PENDING;
    if (got > 0) {
        f->into->data = weft__buf_found(f->buf, (size_t)got);
        f->into->len = bare_line(f->into->data, (size_t)got);
    }
    f->ret = got > 0 ? 1 : (int)got;
    return WEFT_READY;
}

/* ---- call forms ---- */

ssize_t weft__buf_fill(weft_buf *buf, size_t want, const char **into)
{
    struct weft_buf_fill f = {.buf = buf, .want = want, .into = into};
    int r = weft__run_from(weft_buf_fill_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

ssize_t weft__read_until(weft_buf *buf, int delim, size_t limit, const char **into)
{
    struct weft_read_until f = {.buf = buf, .delim = delim, .limit = limit, .into = into};
    int r = weft__run_from(weft_read_until_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

int weft__read_line(weft_buf *buf, size_t limit, weft_slice *into)
{
    struct weft_read_line f = {.buf = buf, .limit = limit, .into = into};
    int r = weft__run_from(weft_read_line_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}
