/* SPDX-License-Identifier: MIT
 *
 * duplex - two connected streams in memory (weft_duplex): a ring for each direction.
 *
 *     end 0 --- half 0 --> end 1         an end writes the half of its own number, and reads the other
 *     end 0 <-- half 1 --- end 1
 * A half's bytes are [head, head + len) of the ring, wrapping; 0 <= len <= cap.
 *
 * LIFE  The block is shared by its two ends, until they are closed, and by the operations under way, which a close ends with -EBADF: whoever
 * lets go last frees it. An operation is under way while it sits (seat.h).
 *     Pairs: [duplex-ref] let_go -> the last: all others are through.
 * Threads: any. LOCK ORDER: a half's wait list alone.
 */
#include "io/piece.h"

#include "base/alloc.h"
#include "sync/leaf.h"

#include <weft/part.h>

#include <string.h>

struct half {
    struct weft__waitlist list; /* its reader and its writer; guards the rest of it */
    char *ring;
    size_t cap; /* constant */
    size_t head;
    size_t len;
    bool shut;        /* nothing more is written */
    bool writer_gone; /* its end is closed */
    bool reader_gone;
};

struct end {
    weft_stream face;
    struct duplex *of; /* constant, as the number */
    int number;
    struct weft__seat reads;
    struct weft__seat writes;
};

struct duplex {
    _Atomic uint32_t users; /* ends, and operations under way  [duplex-ref] */
    struct end ends[2];
    struct half halves[2];
    char rings[];
};

static struct end *end_of(weft_stream *stream)
{
    return (struct end *)(void *)stream;
}

static struct half *in_of(struct end *end)
{
    return &end->of->halves[1 - end->number];
}

static struct half *out_of(struct end *end)
{
    return &end->of->halves[end->number];
}

/* ---- life ---- */

static void let_go(struct duplex *d)
{
    if (fetch_sub_acq_rel(&d->users, 1) > 1)
        return; /* [duplex-ref] with the last: all others are through */
    weft__waitlist_done(&d->halves[0].list);
    weft__waitlist_done(&d->halves[1].list);
    weft__free(d);
}

/* ---- holds: the half's lock ---- */

/* How much of the ring lies in one piece from `at` on. */
static size_t straight(const struct half *h, size_t at, size_t bytes)
{
    return bytes < h->cap - at ? bytes : h->cap - at;
}

static size_t ring_get(struct half *h, char *into, size_t bytes)
{
    size_t count = bytes < h->len ? bytes : h->len;
    size_t first = straight(h, h->head, count);
    memcpy(into, h->ring + h->head, first);
    memcpy(into + first, h->ring, count - first);
    h->head = (h->head + count) % h->cap;
    h->len -= count;
    return count;
}

static size_t ring_put(struct half *h, const char *from, size_t bytes)
{
    size_t count = bytes < h->cap - h->len ? bytes : h->cap - h->len;
    size_t tail = (h->head + h->len) % h->cap;
    size_t first = straight(h, tail, count);
    memcpy(h->ring + tail, from, first);
    memcpy(h->ring, from + first, count - first);
    h->len += count;
    return count;
}

static ssize_t try_read(void *self, const struct iovec *piece)
{
    struct half *h = self;
    if (h->reader_gone) return -EBADF;
    if (h->len > 0) return (ssize_t)ring_get(h, piece->iov_base, piece->iov_len);
    return h->shut ? 0 : -EAGAIN;
}

static ssize_t try_write(void *self, const struct iovec *piece)
{
    struct half *h = self;
    if (h->writer_gone) return -EBADF;
    if (h->shut || h->reader_gone) return -EPIPE;
    if (h->len == h->cap) return -EAGAIN;
    return (ssize_t)ring_put(h, piece->iov_base, piece->iov_len);
}

/* ---- the table ---- */

static weft_poll read_one(weft_stream *stream, struct weft_io *io, const struct iovec *piece,
                          weft_cx *cx, ssize_t *got)
{
    struct half *h = in_of(end_of(stream));
    return weft__try_poll(&h->list, io, try_read, h, piece, cx, got);
}

static weft_poll write_one(weft_stream *stream, struct weft_io *io, const struct iovec *piece,
                           weft_cx *cx, ssize_t *got)
{
    struct half *h = out_of(end_of(stream));
    return weft__try_poll(&h->list, io, try_write, h, piece, cx, got);
}

/* It uses the block from the poll that sits down to the one that gets up. */
static weft_poll uses(const struct weft__pieces *p, weft_cx *cx, ssize_t *ret, size_t *done)
{
    struct duplex *d = end_of(p->stream)->of;
    if (!weft__seat_is_mine(p->seat, p->io))
        fetch_add_relaxed(&d->users, 1); /* relaxed: whoever uses it has it already */
    weft_poll answer = weft__pieces_poll(p, cx, ret, done);
    if (!weft__seat_is_mine(p->seat, p->io)) let_go(d);
    return answer;
}

static weft_poll read_face(weft_stream *stream, struct weft_io *io, const struct iovec *iov,
                           int count, unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done)
{
    struct weft__pieces p = {stream, io, iov, count, flags, &end_of(stream)->reads, read_one};
    return uses(&p, cx, ret, done);
}

static weft_poll write_face(weft_stream *stream, struct weft_io *io, const struct iovec *iov,
                            int count, unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done)
{
    struct weft__pieces p = {stream, io, iov, count, flags, &end_of(stream)->writes, write_one};
    return uses(&p, cx, ret, done);
}

static void shut_half(struct half *h)
{
    weft__waitlist_lock(&h->list);
    h->shut = true;
    (void)weft__waitlist_unlock_wake_all(&h->list, &weft__sched);
}

static weft_poll shut_face(weft_stream *stream, struct weft_io *io, weft_cx *cx, int *ret)
{
    struct end *end = end_of(stream);
    ssize_t answer = 0;
    enum weft__sits sits = weft__seat_begin(&end->writes, io, cx, &answer);
    if (sits == WEFT__SITS_PENDING) return WEFT_PENDING;
    if (sits == WEFT__SITS) {
        shut_half(out_of(end));
        weft__seat_leave(&end->writes);
    }
    *ret = (int)answer;
    return WEFT_READY;
}

static void close_face(weft_stream *stream)
{
    struct end *end = end_of(stream);
    struct half *in = in_of(end);
    struct half *out = out_of(end);
    weft__waitlist_lock(&in->list);
    in->reader_gone = true;
    (void)weft__waitlist_unlock_wake_all(&in->list, &weft__sched);
    weft__waitlist_lock(&out->list);
    out->writer_gone = out->shut = true;
    (void)weft__waitlist_unlock_wake_all(&out->list, &weft__sched);
    let_go(end->of);
}

static const weft_stream_ops table = {"duplex", read_face, write_face, shut_face, close_face, NULL};

static void open_end(struct duplex *d, int i, size_t bytes)
{
    d->ends[i].face.ops = &table;
    d->ends[i].of = d;
    d->ends[i].number = i;
    weft__waitlist_init(&d->halves[i].list);
    d->halves[i].ring = d->rings + (size_t)i * bytes;
    d->halves[i].cap = bytes;
}

int weft_duplex(size_t bytes, weft_stream **a, weft_stream **b)
{
    if (!a || !b || bytes == 0 || bytes > SIZE_MAX / 4) return -EINVAL;
    struct duplex *d = weft__alloc(sizeof(*d) + 2 * bytes);
    if (!d) return -ENOMEM;
    store_relaxed(&d->users, 2); /* relaxed: not shared yet */
    open_end(d, 0, bytes);
    open_end(d, 1, bytes);
    *a = &d->ends[0].face;
    *b = &d->ends[1].face;
    return 0;
}
