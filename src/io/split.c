/* SPDX-License-Identifier: MIT
 *
 * split - the two halves of a stream (weft/part.h), each with an owner of its own.
 *
 * An operation on a half is one on the stream beneath, in the same room. A stream is closed as a whole, so the end of one half's
 * operations is made here: a close tells the task that waits, whose next poll gives up what is under way beneath, and answers -EBADF.
 *     half   IDLE -> USED    [begins]   by the first poll of an operation; known by the address of its room
 *            USED -> IDLE    [ends]     READY, or a look that found nothing
 *            any  -> CLOSED  [close]    who waits is woken; no more begin
 *            CLOSED and not USED: let go, by `close` or by `ends`, whoever comes last
 *     whole  the last half that is let go closes the stream beneath
 * A writer that is let go before the reader shuts down writing first. Nobody is there to wait for that: it is polled once, and then told
 * to stop. Even so it may want to be polled again, and then whoever wakes it does so: `rings` is above 0 while one polls, who goes on while others ring.
 *
 * Threads: any. Locks: rank wait list, one half's at a time, and not while the stream beneath is asked.
 * Pairs: [split-ref], [split-ring].
 * Rejected: a reference for each operation (the half counts for its operations); to flush what the stream beneath holds back in the
 * background (who reads may let go at any time, and then it is lost all the same: weft_shutdown waits for it).
 */
#include "base/alloc.h"
#include "base/list.h"
#include "io/list.h"
#include "io/piece.h"

#include <weft/part.h>

struct split;

struct half {
    weft_stream face;
    struct split *whole;
    struct weft__waitlist list; /* at most the waiter; its lock guards the rest */
    struct weft__waiter waiter; /* of the operation under way, while that waits */
    const void *user;           /* whose room it is; NULL: nothing is under way */
    bool closed;
};

struct split {
    struct weft__foreign
        bell;             /* of a closed writer's shutdown; its last reference frees all of this */
    weft_stream *beneath; /* constant */
    struct half reader;
    struct half writer;
    _Atomic uint32_t halves; /* that were not let go  [split-ref] */
    _Atomic uint32_t rings;  /* of the bell; 0: nobody polls  [split-ring] */
    struct weft_io shut;     /* who polls alone */
    bool told;               /* likewise: it is to stop */
};

static struct half *half_of(weft_stream *stream)
{
    return weft__container_of(stream, struct half, face);
}

/* ---- letting go ---- */

static void unref(struct split *s)
{
    /* [split-ref] with unref: what was done to the stream by the other half */
    if (fetch_sub_acq_rel(&s->halves, 1) > 1) return;
    s->beneath->ops->close(s->beneath);
    weft__foreign_unref(&s->bell);
}

/* By who polls. One that yields has nobody to let pass. */
static weft_poll poll_shutdown(struct split *s)
{
    weft_poll answer;
    bool again;
    do {
        int ignored = 0; /* nobody is there to hear it, and the close is an end, too */
        struct weft_cx cx = {.waker = weft__waker_of_foreign(&s->bell),
                             .why = s->told ? -ECANCELED : 0,
                             .among = true, /* what can be done at once is: it is told to stop in the same breath */
                             .budget = WEFT__UNBUDGETED};
        answer = s->beneath->ops->shutdown(s->beneath, &s->shut, &cx, &ignored);
        again = cx.yielded || !s->told;
        s->told = true;
    } while (answer == WEFT_PENDING && again);
    return answer;
}

/* Whoever made `rings` more than 0 polls, until it is over, or nobody has rung since. */
static void shut_down(struct split *s)
{
    for (;;) {
        uint32_t seen = load_acquire(&s->rings); /* [split-ring] with shut_down, rung */
        if (poll_shutdown(s) == WEFT_READY) break;
        /* [split-ring] with rung: what was done to the operation, and what the bell was rung for */
        if (fetch_sub_acq_rel(&s->rings, seen) == seen) return;
    }
    unref(s); /* `rings` stays: who rings now has nothing to do */
}

static void rung(struct weft__foreign *bell)
{
    struct split *s = weft__container_of(bell, struct split, bell);
    /* [split-ring] with shut_down: what the one before did to the operation */
    if (fetch_add_acq_rel(&s->rings, 1) == 0) shut_down(s);
}

static void freed(struct weft__foreign *bell)
{
    weft__free(weft__container_of(bell, struct split, bell));
}

static const struct weft__foreign_ops bells = {.wake = rung, .free = freed};

/* It is closed, and nothing is under way. If the other half is gone the stream is closed at once, which is the end of writing, too. */
static void let_go(struct half *h)
{
    struct split *s = h->whole;
    bool last = load_relaxed(&s->halves) == 1; /* relaxed: either way the peer hears the end */
    if (h == &s->reader || last) {
        unref(s);
        return;
    }
    store_relaxed(&s->rings, 1); /* relaxed: nobody knows the bell yet */
    shut_down(s);
}

static void half_close(weft_stream *stream)
{
    struct half *h = half_of(stream);
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    weft__waitlist_lock(&h->list);
    weft_assert(!h->closed); /* a half is closed once */
    h->closed = true;
    bool idle = !h->user;
    (void)weft__waitlist_give_turn(&h->list, &chain);
    weft__waitlist_unlock_push(&h->list, &chain, &weft__sched); /* not idle: it may be gone now */
    if (idle) let_go(h);
}

/* ---- an operation ---- */

/* What is asked of the stream beneath. */
struct asking {
    struct half *half;
    struct weft_io *io;
    weft_poll (*one)(const struct asking *a, weft_cx *cx, ssize_t *ret);
    const struct iovec *iov;
    int count;
    unsigned flags;
    size_t *done;
};

/* Returns 0; above: it is to stop, the half was closed meanwhile; -EBADF, -EBUSY: it does not begin. */
static int begins(struct half *h, const void *me)
{
    int r = 0;
    weft__waitlist_lock(&h->list);
    if (h->user == me) {
        r = h->closed;
    } else if (h->closed) {
        r = -EBADF;
    } else if (h->user) {
        r = -EBUSY;
    } else {
        h->user = me;
    }
    weft__waitlist_unlock(&h->list);
    return r;
}

static void ends(struct half *h)
{
    weft__waitlist_lock(&h->list);
    (void)weft__waitlist_settle(&h->list, &h->waiter); /* a turn is word of a close */
    h->user = NULL;
    bool closed = h->closed;
    weft__waitlist_unlock(&h->list);
    if (closed) let_go(h);
}

/* It waits beneath, so a close has to be heard, too. False: it was closed. */
static bool listens(struct half *h, weft_cx *cx)
{
    weft__waitlist_lock(&h->list);
    bool open = !h->closed;
    bool queued = weft__waiter_queued(&h->list, &h->waiter);
    if (open && !queued) weft__waitlist_add(&h->list, &h->waiter, cx->waker);
    weft__waitlist_unlock(&h->list);
    return open;
}

/* The half was closed, and the task has not been told anything: what is under way beneath is given up in its place. */
static weft_poll gives_up(const struct asking *a, weft_cx *cx, ssize_t *ret)
{
    struct weft_cx told = *cx;
    if (!cx->why) told.why = -ECANCELED;
    weft_poll answer = a->one(a, &told, ret);
    cx->budget = told.budget;
    cx->yielded = told.yielded;
    if (answer == WEFT_READY && *ret == -ECANCELED && !cx->why) *ret = -EBADF;
    return answer;
}

static weft_poll asks(const struct asking *a, bool closed, weft_cx *cx, ssize_t *ret)
{
    if (!closed) {
        if (a->one(a, cx, ret) == WEFT_READY) return WEFT_READY;
        if (cx->probe || listens(a->half, cx)) return WEFT_PENDING;
    }
    return gives_up(a, cx, ret);
}

static weft_poll half_poll(const struct asking *a, weft_cx *cx, ssize_t *ret)
{
    int r = begins(a->half, a->io);
    if (r < 0) {
        *ret = r;
        return WEFT_READY;
    }
    weft_poll answer = asks(a, r > 0, cx, ret);
    if (answer == WEFT_READY || cx->probe) ends(a->half); /* it may be gone now */
    return answer;
}

/* ---- the tables ---- */

static weft_poll read_one(const struct asking *a, weft_cx *cx, ssize_t *ret)
{
    weft_stream *of = a->half->whole->beneath;
    return of->ops->read(of, a->io, a->iov, a->count, a->flags, cx, ret, a->done);
}

static weft_poll write_one(const struct asking *a, weft_cx *cx, ssize_t *ret)
{
    weft_stream *of = a->half->whole->beneath;
    return of->ops->write(of, a->io, a->iov, a->count, a->flags, cx, ret, a->done);
}

static weft_poll shut_one(const struct asking *a, weft_cx *cx, ssize_t *ret)
{
    weft_stream *of = a->half->whole->beneath;
    int r = 0;
    weft_poll answer = of->ops->shutdown(of, a->io, cx, &r);
    *ret = r;
    return answer;
}

static weft_poll half_read(weft_stream *stream, struct weft_io *io, const struct iovec *iov,
                           int count, unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done)
{
    struct asking a = {half_of(stream), io, read_one, iov, count, flags, done};
    return half_poll(&a, cx, ret);
}

static weft_poll half_write(weft_stream *stream, struct weft_io *io, const struct iovec *iov,
                            int count, unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done)
{
    struct asking a = {half_of(stream), io, write_one, iov, count, flags, done};
    return half_poll(&a, cx, ret);
}

static weft_poll half_shut(weft_stream *stream, struct weft_io *io, weft_cx *cx, int *ret)
{
    struct asking a = {.half = half_of(stream), .io = io, .one = shut_one};
    ssize_t answer = 0;
    if (half_poll(&a, cx, &answer) == WEFT_PENDING) return WEFT_PENDING;
    *ret = (int)answer;
    return WEFT_READY;
}

static weft_poll cannot_shut(weft_stream *stream, struct weft_io *io, weft_cx *cx, int *ret)
{
    (void)stream, (void)io, (void)cx;
    *ret = -EBADF;
    return WEFT_READY;
}

static int half_fd(weft_stream *stream)
{
    return weft_stream_fd(half_of(stream)->whole->beneath);
}

static const weft_stream_ops readers = {"reader",    half_read,  weft__piece_cannot,
                                        cannot_shut, half_close, half_fd};
static const weft_stream_ops writers = {"writer",  weft__piece_cannot, half_write,
                                        half_shut, half_close,         half_fd};

static void half_init(struct half *h, struct split *whole, const weft_stream_ops *ops)
{
    h->face.ops = ops;
    h->whole = whole;
    weft__waitlist_init(&h->list);
    weft__waiter_init(&h->waiter);
}

int weft_split(weft_stream *stream, weft_stream **reader, weft_stream **writer)
{
    if (!stream || !reader || !writer) return -EINVAL;
    struct split *s = weft__alloc(sizeof(*s));
    if (!s) return -ENOMEM;
    weft__foreign_init(&s->bell, &bells);
    s->beneath = stream;
    store_relaxed(&s->halves, 2); /* relaxed: not shared yet */
    half_init(&s->reader, s, &readers);
    half_init(&s->writer, s, &writers);
    *reader = &s->reader.face;
    *writer = &s->writer.face;
    return 0;
}
