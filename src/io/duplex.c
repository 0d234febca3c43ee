/* SPDX-License-Identifier: MIT
 *
 * duplex - two streams in memory, each the other's peer: for tests, and for parts of a program that speak a protocol to each other.
 *
 * Two halves, one for each direction, each a ring of bytes under the lock of its wait list. Of a half either the reader waits, and it is empty, or
 * the writer, and it is full; never both: so one list does for them. Whoever moves bytes gives the one who waits a turn; the poll takes.
 *     end i reads from half[i] and writes to half[1 - i]
 * A close marks both halves and wakes who waits there: the peer finds the end, or -EPIPE; one's own operations are answered -EBADF. The memory goes with the last
 * of the two ends and of the operations under way.
 * Threads: any. Locks: rank wait list, one half at a time. Needs no runtime. Pairs: [duplex-ref].
 */
#include "base/alloc.h"
#include "base/list.h"
#include "sync/leaf.h"

#include <weft/part.h>

#include <errno.h>
#include <string.h>

enum { READER, WRITER };

struct half {
    struct weft__waitlist list; /* its lock guards all of this */
    unsigned char *ring;        /* constant */
    size_t capacity;            /* constant */
    size_t head;                /* where the oldest byte is */
    size_t used;
    bool ended;   /* nobody writes any more */
    bool deaf;    /* nobody reads any more */
    bool busy[2]; /* a reader, a writer is under way */
    bool gone[2]; /* its end was closed */
};

struct duplex;

struct end {
    weft_stream stream;
    uint32_t index;
    struct duplex *duplex;
};

struct duplex {
    struct half half[2];
    struct end end[2];
    _Atomic uint32_t references; /* ends, and operations under way  [duplex-ref] */
};

/* An operation under way, in its struct weft_io. */
struct moving {
    struct weft__waiter waiter;
    bool begun;
};

_Static_assert(sizeof(struct moving) <= sizeof(struct weft_io), "an operation fits its room");

static struct end *end_of(weft_stream *stream)
{
    return weft__container_of(stream, struct end, stream);
}

static void unref(struct duplex *d)
{
    /* [duplex-ref] with unref: each holder's last touch */
    if (fetch_sub_acq_rel(&d->references, 1) > 1) return;
    weft__free(d->half[0].ring);
    weft__free(d->half[1].ring);
    weft__free(d);
}

/* ---- the ring ---- */

/* Holds: the lock. Copies out of the oldest bytes, from the `from`th on. */
static void copy_out(const struct half *h, size_t from, void *to, size_t len)
{
    size_t at = (h->head + from) % h->capacity;
    size_t first = len < h->capacity - at ? len : h->capacity - at;
    memcpy(to, h->ring + at, first);
    memcpy((char *)to + first, h->ring, len - first);
}

/* Holds: the lock. There is room. */
static void copy_in(struct half *h, const void *from, size_t len)
{
    size_t at = (h->head + h->used) % h->capacity;
    size_t first = len < h->capacity - at ? len : h->capacity - at;
    memcpy(h->ring + at, from, first);
    memcpy(h->ring, (const char *)from + first, len - first);
    h->used += len;
}

/* Holds: the lock. Moves what it can, beyond the first `done` bytes of the list. */
static size_t move_list(struct half *h, int way, const struct iovec *iov, int count, size_t done,
                        bool peek)
{
    size_t moved = 0;
    for (int i = 0; i < count; i++) {
        size_t skip = done < iov[i].iov_len ? done : iov[i].iov_len;
        size_t len = iov[i].iov_len - skip;
        size_t most = way == WRITER ? h->capacity - h->used : h->used - (peek ? moved : 0);
        done -= skip;
        if (len > most) len = most;
        if (len == 0) continue;
        char *at = (char *)iov[i].iov_base + skip;
        if (way == WRITER) {
            copy_in(h, at, len);
        } else {
            copy_out(h, peek ? moved : 0, at, len);
            if (!peek) h->head = (h->head + len) % h->capacity;
            if (!peek) h->used -= len;
        }
        moved += len;
    }
    return moved;
}

/* ---- one operation ---- */

static weft_poll settles(struct duplex *d, struct half *h, int way, struct moving *m, ssize_t *ret,
                         ssize_t answer)
{
    weft__waitlist_lock(&h->list);
    (void)weft__waitlist_settle(&h->list,
                                &m->waiter); /* all who waited were told: a turn is nobody else's */
    h->busy[way] = false;
    weft__waitlist_unlock(&h->list);
    m->begun = false;
    *ret = answer;
    unref(d);
    return WEFT_READY;
}

static int begins(struct duplex *d, struct half *h, int way, struct moving *m)
{
    int r = 0;
    weft__waitlist_lock(&h->list);
    if (h->gone[way]) r = -EBADF;
    if (r == 0 && h->busy[way]) r = -EBUSY;
    if (r == 0) {
        h->busy[way] = true;
        /* before a close can see it; relaxed: the end holds one */
        (void)fetch_add_relaxed(&d->references, 1);
    }
    weft__waitlist_unlock(&h->list);
    if (r < 0) return r;
    weft__waiter_init(&m->waiter);
    m->begun = true;
    return 0;
}

/* Holds: the lock. Of one that moved nothing: why it is over; 1: it is not. */
static int is_over(const struct half *h, int way)
{
    if (h->gone[way]) return -EBADF;
    if (way == WRITER) return h->deaf || h->ended ? -EPIPE : 1;
    return h->ended ? 0 : 1;
}

/* One look under the lock: moves, waits, or finds that it is over. PENDING: it waits, or it is a probe. */
static weft_poll looks(struct half *h, int way, struct moving *m, const struct iovec *iov,
                       int count, unsigned flags, size_t done, weft_cx *cx, ssize_t *got)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    weft_poll answer = WEFT_READY;

    weft__waitlist_lock(&h->list);
    bool shut = h->gone[way] || (way == WRITER && (h->deaf || h->ended));
    size_t moved = shut ? 0 : move_list(h, way, iov, count, done, flags & WEFT_IO_PEEK);
    *got = moved > 0 ? (ssize_t)moved : is_over(h, way);
    if (moved > 0) {
        while (weft__waitlist_give_turn(&h->list, &chain))
            continue;
    } else if (*got == 1) {
        answer = WEFT_PENDING;
        bool queued = weft__waiter_queued(&h->list, &m->waiter);
        if (!cx->probe && !queued) weft__waitlist_add(&h->list, &m->waiter, cx->waker);
    }
    weft__waitlist_unlock_push(&h->list, &chain, &weft__sched);
    return answer;
}

static size_t bytes_of(const struct iovec *iov, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += iov[i].iov_len;
    return bytes;
}

static weft_poll moves(struct duplex *d, struct half *h, int way, struct moving *m,
                       const struct iovec *iov, int count, unsigned flags, weft_cx *cx,
                       ssize_t *ret, size_t *done)
{
    size_t want = bytes_of(iov, count);
    bool all = flags & WEFT_IO_ALL;
    for (;;) {
        ssize_t got = 0;
        if (looks(h, way, m, iov, count, flags, all ? *done : 0, cx, &got) == WEFT_PENDING) {
            if (cx->probe) (void)settles(d, h, way, m, ret, 0); /* a look leaves nothing behind */
            return WEFT_PENDING;
        }
        if (got <= 0 || !all)
            return settles(d, h, way, m, ret, got == 0 && all ? (ssize_t)*done : got);
        *done += (size_t)got;
        if (*done == want) return settles(d, h, way, m, ret, (ssize_t)want);
        if (!weft__leaf_may(cx)) return WEFT_PENDING;
    }
}

static weft_poll polls(struct duplex *d, struct half *h, int way, struct weft_io *io,
                       const struct iovec *iov, int count, unsigned flags, weft_cx *cx,
                       ssize_t *ret, size_t *done)
{
    struct moving *m = (struct moving *)(void *)io;
    if (bytes_of(iov, count) == 0) {
        *ret = 0;
        return WEFT_READY;
    }
    if (m->begun && cx->why) return settles(d, h, way, m, ret, weft_cx_cancelled(cx));
    if (!m->begun) {
        if (cx->why && weft__told_yields(cx)) return WEFT_PENDING;
        *ret = cx->why ? weft_cx_cancelled(cx) : begins(d, h, way, m);
        if (*ret < 0) return WEFT_READY;
        if (!weft__leaf_may(cx)) { /* it holds its end while others run, who may close that */
            if (cx->probe) (void)settles(d, h, way, m, ret, 0);
            return WEFT_PENDING;
        }
    }
    return moves(d, h, way, m, iov, count, flags, cx, ret, done);
}

/* ---- the table ---- */

static weft_poll duplex_read(weft_stream *stream, struct weft_io *io, const struct iovec *iov,
                             int count, unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done)
{
    struct end *e = end_of(stream);
    return polls(e->duplex, &e->duplex->half[e->index], READER, io, iov, count, flags, cx, ret,
                 done);
}

static weft_poll duplex_write(weft_stream *stream, struct weft_io *io, const struct iovec *iov,
                              int count, unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done)
{
    struct end *e = end_of(stream);
    return polls(e->duplex, &e->duplex->half[1 - e->index], WRITER, io, iov, count, flags, cx, ret,
                 done);
}

/* The half that it writes to gets no more. */
static void end_writing(struct half *h, bool gone)
{
    weft__waitlist_lock(&h->list);
    h->ended = true;
    if (gone) h->gone[WRITER] = true;
    (void)weft__waitlist_unlock_wake_all(&h->list, &weft__sched);
}

static weft_poll duplex_shutdown(weft_stream *stream, struct weft_io *io, weft_cx *cx, int *ret)
{
    struct end *e = end_of(stream);
    (void)io;
    if (cx->probe) return WEFT_PENDING;
    *ret = weft_cx_cancelled(cx);
    if (*ret == 0) end_writing(&e->duplex->half[1 - e->index], false);
    return WEFT_READY;
}

static void duplex_close(weft_stream *stream)
{
    struct end *e = end_of(stream);
    struct half *in = &e->duplex->half[e->index];
    weft__waitlist_lock(&in->list);
    in->deaf = true;
    in->gone[READER] = true;
    (void)weft__waitlist_unlock_wake_all(&in->list, &weft__sched);
    end_writing(&e->duplex->half[1 - e->index], true);
    unref(e->duplex);
}

static const weft_stream_ops table = {
    .kind = "memory",
    .read = duplex_read,
    .write = duplex_write,
    .shutdown = duplex_shutdown,
    .close = duplex_close,
};

static bool half_init(struct half *h, size_t capacity)
{
    weft__waitlist_init(&h->list);
    h->ring = weft__alloc(capacity);
    h->capacity = capacity;
    return h->ring != NULL;
}

int weft_duplex(size_t capacity, weft_stream **a, weft_stream **b)
{
    if (!a || !b || capacity == 0) return -EINVAL;
    struct duplex *d = weft__alloc(sizeof(*d));
    if (!d) return -ENOMEM;
    store_relaxed(&d->references, 2); /* relaxed: not shared yet */
    bool there = half_init(&d->half[0], capacity);
    if (!half_init(&d->half[1], capacity)) there = false;
    for (uint32_t i = 0; i < 2; i++)
        d->end[i] = (struct end){.stream = {&table}, .index = i, .duplex = d};
    if (!there) {
        store_relaxed(&d->references, 1); /* relaxed: as above */
        unref(d);
        return -ENOMEM;
    }
    *a = &d->end[0].stream;
    *b = &d->end[1].stream;
    return 0;
}
