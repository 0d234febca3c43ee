/* SPDX-License-Identifier: MIT
 *
 * piece - lists and everything, piece by piece; waits under a lock. The idea is in piece.h.
 */
#include "io/piece.h"

#include "io/list.h"
#include "sync/leaf.h"

static weft_poll over(ssize_t *ret, ssize_t answer)
{
    *ret = answer;
    return WEFT_READY;
}

/* Sits. What brings something costs budget, so that a stream that never runs dry lets others run. */
static weft_poll move(const struct weft__pieces *p, struct weft__list_rest *rest, weft_cx *cx,
                      ssize_t *ret)
{
    bool all = p->flags & WEFT_IO_ALL;
    struct iovec piece;
    while (weft__list_piece(rest, 0, &piece)) {
        ssize_t got = 0;
        if (p->one(p->stream, p->io, &piece, cx, &got) == WEFT_PENDING) return WEFT_PENDING;
        *p->io = (struct weft_io){{0}};
        if (got < 0) return over(ret, got);
        rest->done += (size_t)got;
        if (got == 0 || !all) break;
        if (!weft__leaf_may(cx)) return WEFT_PENDING;
    }
    return over(ret, (ssize_t)rest->done);
}

weft_poll weft__pieces_poll(const struct weft__pieces *p, weft_cx *cx, ssize_t *ret, size_t *done)
{
    struct weft__list_rest rest = {
        .iov = p->iov, .count = p->count, .done = p->flags & WEFT_IO_ALL ? *done : 0};
    if (p->flags & WEFT_IO_PEEK) return over(ret, -EOPNOTSUPP);
    if (weft__list_bytes(p->iov, p->count) == 0) return over(ret, 0);
    enum weft__sits sits = weft__seat_begin(p->seat, p->io, cx, ret);
    if (sits != WEFT__SITS) return sits == WEFT__SITS_OVER ? WEFT_READY : WEFT_PENDING;
    weft_poll answer = move(p, &rest, cx, ret);
    *done = rest.done;
    return weft__seat_end(p->seat, cx, answer);
}

weft_poll weft__piece_cannot(weft_stream *stream, struct weft_io *io, const struct iovec *iov,
                             int count, unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done)
{
    (void)stream, (void)io, (void)iov, (void)count, (void)flags, (void)cx;
    *done = 0;
    return over(ret, -EBADF);
}

weft_poll weft__piece_cannot_shut(weft_stream *stream, struct weft_io *io, weft_cx *cx, int *ret)
{
    (void)stream, (void)io, (void)cx;
    *ret = -EOPNOTSUPP;
    return WEFT_READY;
}

/* ---- waiting under a lock ---- */

/* holds: list->lock */
static weft_poll waits(struct weft__waitlist *list, struct weft__try *t, weft_cx *cx)
{
    if (!cx->probe) {
        if (!t->waits) weft__waiter_init(&t->waiter);
        weft__waitlist_add(list, &t->waiter, cx->waker);
        t->waits = true;
    }
    weft__waitlist_unlock(list);
    return WEFT_PENDING;
}

/* holds: list->lock. READY: nothing keeps it from trying. */
static weft_poll has_waited(struct weft__waitlist *list, struct weft__try *t, const weft_cx *cx)
{
    if (!t->waits) return WEFT_READY;
    if (weft__waiter_queued(list, &t->waiter) && !cx->why) return WEFT_PENDING;
    (void)weft__waitlist_settle(list,
                                &t->waiter); /* all were given a turn: there is none to pass on */
    t->waits = false;
    return WEFT_READY;
}

weft_poll weft__try_poll(struct weft__waitlist *list, struct weft_io *io, weft__try_fn *tries,
                         void *self, const struct iovec *piece, weft_cx *cx, ssize_t *got)
{
    struct weft__try *t = (struct weft__try *)(void *)io;
    weft__waitlist_lock(list);
    if (has_waited(list, t, cx) == WEFT_PENDING) {
        weft__waitlist_unlock(list);
        return WEFT_PENDING;
    }
    if (cx->why) {
        weft__waitlist_unlock(list);
        return over(got, weft_cx_cancelled(cx));
    }
    *got = tries(self, piece);
    if (*got == -EAGAIN) return waits(list, t, cx);
    (void)weft__waitlist_unlock_wake_all(list, &weft__sched);
    return WEFT_READY;
}
