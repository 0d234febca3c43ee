/* SPDX-License-Identifier: MIT
 *
 * part - take and chain (weft/part.h): streams that count what passes, and hand everything else on.
 *
 * Threads: the reader's (seat.h); writers of a take are the stream's own.
 */
#include "io/list.h"
#include "io/piece.h"

#include <weft/part.h>

_Static_assert(sizeof(struct weft__seat) == sizeof(void *), "a seat fits its place");

static struct weft__seat *seat_of(void **place)
{
    return (struct weft__seat *)(void *)place;
}

static void close_nothing(weft_stream *stream)
{
    (void)stream;
}

/* ---- take ---- */

static weft_poll take_one(weft_stream *stream, struct weft_io *io, const struct iovec *piece,
                          weft_cx *cx, ssize_t *got)
{
    weft_part *t = (weft_part *)(void *)stream;
    struct iovec cut = *piece;
    if (cut.iov_len > t->left) cut.iov_len = (size_t)t->left;
    *got = 0;
    if (cut.iov_len == 0) return WEFT_READY;
    if (weft__beneath_read(t->weft__of, io, &cut, cx, got) == WEFT_PENDING) return WEFT_PENDING;
    if (*got > 0) t->left -= (uint64_t)*got;
    return WEFT_READY;
}

static weft_poll take_read(weft_stream *stream, struct weft_io *io, const struct iovec *iov,
                           int count, unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done)
{
    weft_part *t = (weft_part *)(void *)stream;
    struct weft__pieces p = {stream, io, iov, count, flags, seat_of(&t->weft__seat), take_one};
    return weft__pieces_poll(&p, cx, ret, done);
}

static weft_poll take_write(weft_stream *stream, struct weft_io *io, const struct iovec *iov,
                            int count, unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done)
{
    weft_stream *of = ((weft_part *)(void *)stream)->weft__of;
    return of->ops->write(of, io, iov, count, flags, cx, ret, done);
}

static weft_poll take_shut(weft_stream *stream, struct weft_io *io, weft_cx *cx, int *ret)
{
    weft_stream *of = ((weft_part *)(void *)stream)->weft__of;
    return of->ops->shutdown(of, io, cx, ret);
}

static const weft_stream_ops takes = {"take",    take_read,     take_write,
                                      take_shut, close_nothing, NULL};

weft_stream *weft_part_init(weft_part *room, weft_stream *stream, uint64_t bytes)
{
    *room = (weft_part){.weft__face = {&takes}, .weft__of = stream, .left = bytes};
    return &room->weft__face;
}

/* ---- chain ---- */

static weft_poll chain_one(weft_stream *stream, struct weft_io *io, const struct iovec *piece,
                           weft_cx *cx, ssize_t *got)
{
    weft_chain *c = (weft_chain *)(void *)stream;
    if (!c->ended) {
        if (weft__beneath_read(c->weft__of[0], io, piece, cx, got) == WEFT_PENDING)
            return WEFT_PENDING;
        if (*got != 0) return WEFT_READY;
        c->ended = true;
    }
    return weft__beneath_read(c->weft__of[1], io, piece, cx, got);
}

static weft_poll chain_read(weft_stream *stream, struct weft_io *io, const struct iovec *iov,
                            int count, unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done)
{
    weft_chain *c = (weft_chain *)(void *)stream;
    struct weft__pieces p = {stream, io, iov, count, flags, seat_of(&c->weft__seat), chain_one};
    return weft__pieces_poll(&p, cx, ret, done);
}

static const weft_stream_ops chains = {
    "chain", chain_read, weft__piece_cannot, weft__piece_cannot_shut, close_nothing, NULL};

weft_stream *weft_chain_init(weft_chain *room, weft_stream *first, weft_stream *second)
{
    *room = (weft_chain){.weft__face = {&chains}, .weft__of = {first, second}};
    return &room->weft__face;
}
