/* SPDX-License-Identifier: MIT
 *
 * buf - the buffer as a stream: reads, writes, flush, close; the idea is in buf.h. What looks ahead is in seek.c.
 */
#include "io/buf.h"

#include "base/alloc.h"
#include "io/list.h"
#include "sync/leaf.h"
#include "task/call.h"

#include <string.h>

static weft_poll over(ssize_t *ret, ssize_t answer)
{
    *ret = answer;
    return WEFT_READY;
}

/* ---- in ---- */

/* One piece of what is wanted, from the buffer. */
static size_t take(struct weft__buf_in *in, const struct iovec *piece)
{
    size_t there = in->end - in->pos;
    size_t bytes = there < piece->iov_len ? there : piece->iov_len;
    memcpy(piece->iov_base, in->data + in->pos, bytes);
    in->pos += bytes;
    return bytes;
}

/* As much as is there. */
static size_t take_list(struct weft__buf_in *in, const struct weft__list_rest *rest)
{
    struct iovec piece;
    size_t taken = 0;
    while (in->end > in->pos && weft__list_piece(rest, taken, &piece))
        taken += take(in, &piece);
    return taken;
}

/* The buffer is empty. Straight into a piece that is as large as the buffer, else into the buffer. */
static weft_poll read_more(weft_buf *b, struct weft_io *io, const struct iovec *piece, weft_cx *cx,
                           ssize_t *got, size_t *straight)
{
    struct weft__buf_in *in = &b->in;
    bool past = piece->iov_len >= in->cap;
    struct iovec room = {.iov_base = in->data, .iov_len = in->cap};
    in->pos = in->end = 0;
    if (weft__beneath_read(b->beneath, io, past ? piece : &room, cx, got) == WEFT_PENDING)
        return WEFT_PENDING;
    *straight = past && *got > 0 ? (size_t)*got : 0;
    in->end = !past && *got > 0 ? (size_t)*got : 0;
    return WEFT_READY;
}

/* Sits. *moved: how far it came. */
static weft_poll read_list(weft_buf *b, struct weft_io *io, struct weft__list_rest *rest, bool all,
                           weft_cx *cx, ssize_t *ret)
{
    struct iovec piece;
    for (;;) {
        size_t straight = 0;
        rest->done += take_list(&b->in, rest);
        bool some = rest->done > 0;
        if (!weft__list_piece(rest, 0, &piece) || (some && !all))
            return over(ret, (ssize_t)rest->done);
        if (read_more(b, io, &piece, cx, ret, &straight) == WEFT_PENDING) return WEFT_PENDING;
        rest->done += straight;
        if (*ret < 0) return WEFT_READY;
        if (*ret == 0) return over(ret, (ssize_t)rest->done);
    }
}

/* As a read whose bytes are put back. */
static weft_poll peek_list(weft_buf *b, struct weft_io *io, struct weft__list_rest *rest,
                           weft_cx *cx, ssize_t *ret)
{
    struct iovec nothing = {.iov_base = NULL, .iov_len = 0};
    size_t straight;
    if (b->in.end == b->in.pos) {
        if (read_more(b, io, &nothing, cx, ret, &straight) == WEFT_PENDING) return WEFT_PENDING;
        if (*ret <= 0) return WEFT_READY;
    }
    size_t pos = b->in.pos;
    size_t taken = take_list(&b->in, rest);
    b->in.pos = pos;
    return over(ret, (ssize_t)taken);
}

static weft_poll read_face(weft_stream *stream, struct weft_io *io, const struct iovec *iov,
                           int count, unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done)
{
    weft_buf *b = (weft_buf *)(void *)stream;
    bool all = flags & WEFT_IO_ALL;
    struct weft__list_rest rest = {.iov = iov, .count = count, .done = all ? *done : 0};
    if (weft__list_bytes(iov, count) == 0) return over(ret, 0);
    enum weft__sits sits = weft__seat_begin(&b->reads, io, cx, ret);
    if (sits != WEFT__SITS) return sits == WEFT__SITS_OVER ? WEFT_READY : WEFT_PENDING;
    weft_poll answer = flags & WEFT_IO_PEEK ? peek_list(b, io, &rest, cx, ret)
                                            : read_list(b, io, &rest, all, cx, ret);
    *done = rest.done;
    return weft__seat_end(&b->reads, cx, answer);
}

/* ---- out ---- */

/* READY: all of it is written, *ret is 0; or why not. */
static weft_poll drain(weft_buf *b, struct weft_io *io, weft_cx *cx, ssize_t *ret)
{
    struct weft__buf_out *out = &b->out;
    while (out->from < out->to) {
        struct iovec rest = {.iov_base = out->data + out->from, .iov_len = out->to - out->from};
        if (weft__beneath_write(b->beneath, io, &rest, cx, ret) == WEFT_PENDING)
            return WEFT_PENDING;
        if (*ret < 0) return WEFT_READY;
        out->from += (size_t)*ret;
    }
    out->from = out->to = 0;
    return over(ret, 0);
}

/* As much as there is room for. */
static size_t put_list(struct weft__buf_out *out, const struct weft__list_rest *rest)
{
    struct iovec piece;
    size_t put = 0;
    while (out->to < out->cap && weft__list_piece(rest, put, &piece)) {
        size_t room = out->cap - out->to;
        size_t bytes = room < piece.iov_len ? room : piece.iov_len;
        memcpy(out->data + out->to, piece.iov_base, bytes);
        out->to += bytes;
        put += bytes;
    }
    return put;
}

/* One step: into the buffer, or past it if it is empty and the piece is as large, or it is full and makes room. READY: *ret is how much was
 * taken, 0 if there is room now. */
static weft_poll write_some(weft_buf *b, struct weft_io *io, const struct weft__list_rest *rest,
                            const struct iovec *piece, weft_cx *cx, ssize_t *ret)
{
    struct weft__buf_out *out = &b->out;
    if (out->to == out->cap) return drain(b, io, cx, ret);
    if (out->to == 0 && piece->iov_len >= out->cap)
        return weft__beneath_write(b->beneath, io, piece, cx, ret);
    return over(ret, (ssize_t)put_list(out, rest));
}

static weft_poll write_list(weft_buf *b, struct weft_io *io, struct weft__list_rest *rest, bool all,
                            weft_cx *cx, ssize_t *ret)
{
    struct iovec piece;
    while (weft__list_piece(rest, 0, &piece) && (all || rest->done == 0)) {
        if (write_some(b, io, rest, &piece, cx, ret) == WEFT_PENDING) return WEFT_PENDING;
        if (*ret < 0) return WEFT_READY;
        rest->done += (size_t)*ret;
    }
    return over(ret, (ssize_t)rest->done);
}

static weft_poll write_face(weft_stream *stream, struct weft_io *io, const struct iovec *iov,
                            int count, unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done)
{
    weft_buf *b = (weft_buf *)(void *)stream;
    bool all = flags & WEFT_IO_ALL;
    struct weft__list_rest rest = {.iov = iov, .count = count, .done = all ? *done : 0};
    if (weft__list_bytes(iov, count) == 0) return over(ret, 0);
    enum weft__sits sits = weft__seat_begin(&b->writes, io, cx, ret);
    if (sits != WEFT__SITS) return sits == WEFT__SITS_OVER ? WEFT_READY : WEFT_PENDING;
    weft_poll answer = write_list(b, io, &rest, all, cx, ret);
    *done = rest.done;
    return weft__seat_end(&b->writes, cx, answer);
}

static weft_poll shut_face(weft_stream *stream, struct weft_io *io, weft_cx *cx, int *ret)
{
    weft_buf *b = (weft_buf *)(void *)stream;
    ssize_t answer = 0;
    enum weft__sits sits = weft__seat_begin(&b->writes, io, cx, &answer);
    if (sits == WEFT__SITS_PENDING) return WEFT_PENDING;
    if (sits == WEFT__SITS) {
        weft_poll poll = drain(b, io, cx, &answer);
        int r = (int)answer;
        if (poll == WEFT_READY && r == 0) poll = b->beneath->ops->shutdown(b->beneath, io, cx, &r);
        if (weft__seat_end(&b->writes, cx, poll) == WEFT_PENDING) return WEFT_PENDING;
        answer = r;
    }
    *ret = (int)answer;
    return WEFT_READY;
}

weft_poll weft__buf_flush(weft_buf *b, struct weft_io *io, weft_cx *cx, ssize_t *ret)
{
    enum weft__sits sits = weft__seat_begin(&b->writes, io, cx, ret);
    if (sits != WEFT__SITS) return sits == WEFT__SITS_OVER ? WEFT_READY : WEFT_PENDING;
    return weft__seat_end(&b->writes, cx, drain(b, io, cx, ret));
}

weft_poll weft_flush_poll(void *frame, weft_cx *cx)
{
    struct weft_flush *f = frame;
    ssize_t answer = -EINVAL;
    if (f->buf && weft__buf_flush(f->buf, &f->weft__io, cx, &answer) == WEFT_PENDING) {
        f->weft__at = WEFT__LEAF_WAITS;
        return WEFT_PENDING;
    }
    f->weft__at = 0;
    f->ret = (int)answer;
    return WEFT_READY;
}

int weft__flush(weft_buf *buf)
{
    struct weft_flush f = {.buf = buf};
    int r = weft__run_from(weft_flush_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

/* ---- all or nothing ---- */

/* It is empty, and smaller than `bytes`. */
static int grow_out(struct weft__buf_out *out, size_t bytes)
{
    char *data = out->own ? weft__alloc(bytes) : NULL;
    if (!data) return out->own ? -ENOMEM : -EMSGSIZE;
    weft__free(out->data);
    out->data = data;
    out->cap = bytes;
    return 0;
}

/* Sits. READY: *ret is 0, and so many bytes fit; or why not. */
static weft_poll make_room(weft_buf *b, struct weft_io *io, size_t bytes, weft_cx *cx, ssize_t *ret)
{
    struct weft__buf_out *out = &b->out;
    if (bytes <= out->cap - out->to) return over(ret, 0);
    if (!out->own && bytes > out->cap) return over(ret, -EMSGSIZE);
    if (drain(b, io, cx, ret) == WEFT_PENDING) return WEFT_PENDING;
    if (*ret == 0 && bytes > out->cap) *ret = grow_out(out, bytes);
    return WEFT_READY;
}

weft_poll weft__buf_put(weft_buf *b, struct weft_io *io, const weft_slice *parts, int count,
                        weft_cx *cx, ssize_t *ret)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += parts[i].len;
    enum weft__sits sits = weft__seat_begin(&b->writes, io, cx, ret);
    if (sits != WEFT__SITS) return sits == WEFT__SITS_OVER ? WEFT_READY : WEFT_PENDING;
    weft_poll answer = make_room(b, io, bytes, cx, ret);
    for (int i = 0; i < count && answer == WEFT_READY && *ret == 0; i++) {
        if (parts[i].len > 0) memcpy(b->out.data + b->out.to, parts[i].data, parts[i].len);
        b->out.to += parts[i].len;
    }
    return weft__seat_end(&b->writes, cx, answer);
}

/* ---- beginning and end ---- */

static int fd_face(weft_stream *stream)
{
    return weft_stream_fd(((weft_buf *)(void *)stream)->beneath);
}

static void free_rooms(weft_buf *b)
{
    if (b->in.own) weft__free(b->in.data);
    if (b->out.own) weft__free(b->out.data);
    weft__free(b);
}

static void close_face(weft_stream *stream)
{
    weft_buf *b = (weft_buf *)(void *)stream;
    weft_assert(weft__seat_is_free(&b->reads));  /* nobody reads a buffer that is closed */
    weft_assert(weft__seat_is_free(&b->writes)); /* nor writes */
    if (!b->keep) weft__stream_close(b->beneath, NULL);
    free_rooms(b);
}

static const weft_stream_ops table = {"buf", read_face, write_face, shut_face, close_face, fd_face};

weft_buf *weft__buf_of(weft_stream *stream)
{
    return stream->ops == &table ? (weft_buf *)(void *)stream : NULL;
}

static int rooms_of(weft_buf *b, const weft_buf_opts *opts)
{
    b->in.cap = opts->read_bytes ? opts->read_bytes : WEFT_BUF_BYTES;
    b->out.cap = opts->write_bytes ? opts->write_bytes : WEFT_BUF_BYTES;
    b->in.own = !opts->read_room;
    b->out.own = !opts->write_room;
    b->in.data = b->in.own ? weft__alloc(b->in.cap) : opts->read_room;
    b->out.data = b->out.own ? weft__alloc(b->out.cap) : opts->write_room;
    return b->in.data && b->out.data ? 0 : -ENOMEM;
}

static bool is_sound(const weft_buf_opts *opts)
{
    bool sized = (!opts->read_room || opts->read_bytes) && (!opts->write_room || opts->write_bytes);
    return sized && opts->read_bytes <= SSIZE_MAX && opts->write_bytes <= SSIZE_MAX;
}

int weft_buf_new(weft_stream *stream, const weft_buf_opts *opts, weft_buf **into)
{
    static const weft_buf_opts usual;
    if (!opts) opts = &usual;
    if (!stream || !into || !is_sound(opts)) return -EINVAL;
    weft_buf *b = weft__alloc(sizeof(*b));
    if (!b) return -ENOMEM;
    b->face.ops = &table;
    b->beneath = stream;
    b->keep = opts->keep;
    int r = rooms_of(b, opts);
    if (r < 0) {
        free_rooms(b);
        return r;
    }
    *into = b;
    return 0;
}

weft_stream *weft_buf_stream(weft_buf *buf)
{
    return buf ? &buf->face : NULL;
}

void weft__buf_close(weft_buf *buf, const char *caller)
{
    if (buf) weft__stream_close(&buf->face, caller);
}
