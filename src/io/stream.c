/* SPDX-License-Identifier: MIT
 *
 * stream - the operations of weft/stream.h: frames that ask their stream's table, and the call forms.
 *
 * A frame's arguments become one list of buffers at each poll; what must last between polls is in its `weft__io`, which is the
 * table's alone. `weft__at` is odd from the first poll to the last: a leaf, to whoever walks await chains.
 */
#include <weft/stream.h>

#include "io/direct.h"
#include "sys/socket.h"
#include "task/call.h"

#include <errno.h>
#include <limits.h>

/* ---- polls ---- */

static __attribute__((noinline)) bool is_long_list(const struct iovec *iov, int count)
{
    size_t bytes = 0;
    if (count < 0 || (count > 0 && !iov)) return false;
    for (int i = 0; i < count; i++) {
        if (!iov[i].iov_base && iov[i].iov_len > 0) return false;
        if (__builtin_add_overflow(bytes, iov[i].iov_len, &bytes) || bytes > SSIZE_MAX)
            return false;
    }
    return true;
}

static inline bool is_buffer(const void *buf, size_t len)
{
    return (buf || len == 0) && len <= SSIZE_MAX;
}

/* Most have one buffer, and know it when they are compiled. */
static inline bool is_list(const struct iovec *iov, int count)
{
    if (count != 1 || !iov) return is_long_list(iov, count);
    return is_buffer(iov->iov_base, iov->iov_len);
}

struct arguments {
    weft_stream *stream;
    struct weft_io *io;
    const struct iovec *iov;
    int count;
    unsigned flags;
    size_t *done;
};

static inline __attribute__((always_inline)) weft_poll poll_read(const struct arguments *a,
                                                                 int32_t *at, weft_cx *cx,
                                                                 ssize_t *ret)
{
    size_t done = 0;
    if (!a->stream || !is_list(a->iov, a->count)) {
        *ret = -EINVAL;
        return WEFT_READY;
    }
    weft_poll answer = a->stream->ops->read(a->stream, a->io, a->iov, a->count, a->flags, cx, ret,
                                            a->done ? a->done : &done);
    *at = answer == WEFT_PENDING ? WEFT__LEAF_WAITS : 0;
    return answer;
}

static inline __attribute__((always_inline)) weft_poll poll_write(const struct arguments *a,
                                                                  int32_t *at, weft_cx *cx,
                                                                  ssize_t *ret)
{
    size_t done = 0;
    if (!a->stream || !is_list(a->iov, a->count)) {
        *ret = -EINVAL;
        return WEFT_READY;
    }
    weft_poll answer = a->stream->ops->write(a->stream, a->io, a->iov, a->count, a->flags, cx, ret,
                                             a->done ? a->done : &done);
    *at = answer == WEFT_PENDING ? WEFT__LEAF_WAITS : 0;
    return answer;
}

/* The cast: a list of buffers does not say which way they go. */
#define ONE_BUFFER(f)                                                                              \
    (&(struct iovec){.iov_base = (void *)(uintptr_t)(f)->buf, .iov_len = (f)->len})

#define POLL_AS(poll, name, which, list, number, how, moved)                                       \
    weft_poll poll(void *frame, weft_cx *cx)                                                       \
    {                                                                                              \
        struct name *f = frame;                                                                    \
        struct arguments a = {.stream = f->stream,                                                 \
                              .io = &f->weft__io,                                                  \
                              .iov = (list),                                                       \
                              .count = (number),                                                   \
                              .flags = (how),                                                      \
                              .done = (moved)};                                                    \
        return which(&a, &f->weft__at, cx, &f->ret);                                               \
    }

#define POLL(name, ...) POLL_AS(name##_poll, name, __VA_ARGS__)

/* ---- polls of one buffer ----
 *
 * On a TCP stream they need neither list nor table nor loop: direct.h's steps, each of which can leave the rest to the table. There are two ways to try, by the stream's backend:
 *     direct   a system call
 *     ahead    the backend's verb: what has come is here, and what is to be sent is handed in with that of others
 * A backend that fetches ahead may have its slot go `direct` for a while. Who sees that too long enters by the loan, or not at all: so nobody else has been there since who could have asked for more ahead. */

weft_poll weft__direct_leaves_by_word(struct weft__fdslot *slot, uint32_t as, uint64_t seen,
                                      uint64_t bits)
{
    if (__builtin_expect(weft__fdslot_finish(slot, as, seen, bits), 0)) weft__driver_dispose(slot);
    return WEFT_READY;
}

/* A try was not the last one. True: it waits, or lets others run first. */
static bool is_to_return(struct weft__fdslot *slot, struct weft__op *op, enum weft__side side,
                         const struct weft__lesson *lesson, ssize_t got, weft_cx *cx)
{
    if (got == -EAGAIN && !cx->probe && !(lesson->seen & WEFT__READY_DOWN))
        return weft__direct_waits(slot, op, side, lesson, cx);
    if (lesson->bits) weft__fdslot_clear(slot, lesson->seen, lesson->bits);
    return got > 0 && !weft__leaf_may(cx);
}

/* By the table, from whatever state: what the others leave to it. */
#define BY_TABLE(name, which, how, done_at)                                                        \
    static __attribute__((noinline)) POLL_AS(name##_by_table, weft_##name, which, ONE_BUFFER(f),   \
                                             1, how, done_at)

#define GO_ON(name, direction)                                                                     \
    static __attribute__((noinline)) weft_poll name##_goes_on(                                     \
        struct weft_##name *f, const struct weft__lesson *lesson, ssize_t got, weft_cx *cx)        \
    {                                                                                              \
        f->weft__at = WEFT__LEAF_WAITS;                                                            \
        if (is_to_return(weft__fdstream_slot(f->stream), weft__op_of(&f->weft__io),                \
                         WEFT__SIDE_##direction, lesson, got, cx))                                 \
            return WEFT_PENDING;                                                                   \
        return name##_by_table(f, cx);                                                             \
    }

/* A try, in a function of these attributes. `all`: it goes on until everything has moved. `moved`: so much has, by tries before; `none`, which is not used, of what is over with the first. */
#define TRY_ONE(name, way, attributes, direction, all, moved, try)                                 \
    static attributes weft_poll name##_tries_##way(struct weft_##name *f, weft_cx *cx)             \
    {                                                                                              \
        struct weft__fdslot *slot = weft__fdstream_slot(f->stream);                                \
        size_t none __attribute__((unused)) = 0;                                                   \
        struct weft__lesson lesson = {.seen = weft__fdslot_look(slot)};                            \
        if (!weft__direct_may(lesson.seen, WEFT__SIDE_##direction)) return name##_by_table(f, cx); \
        size_t bytes = f->len - (moved);                                                           \
        ssize_t got = try(slot, (char *)(uintptr_t)f->buf + (moved), bytes, &lesson);              \
        bool over = got != -EAGAIN && (!(all) || got <= 0 || (size_t)got == bytes);                \
        if ((all) && got > 0) (moved) += (size_t)got;                                              \
        if (__builtin_expect(!over, 0)) return name##_goes_on(f, &lesson, got, cx);                \
        f->ret = (all) && got >= 0 ? (ssize_t)(moved) : got;                                       \
        f->weft__at = 0;                                                                           \
        weft__op_of(&f->weft__io)->as = 0;                                                         \
        return weft__direct_leaves(slot, as_##direction, lesson.seen, lesson.bits);                \
    }

enum { as_READ = WEFT__USE_READER, as_WRITE = WEFT__USE_WRITER };

/* The first step of a way, or the table. `asks`: for an event, by who waits. */
#define STEPS(name, direction, way, slot, asks)                                                    \
    switch (weft__direct_opens(slot, weft__op_of(&f->weft__io), as_##direction,                    \
                               WEFT__SIDE_##direction, cx)) {                                      \
    case WEFT__DIRECT_TRIES:                                                                       \
        return name##_tries_##way(f, cx);                                                          \
    case WEFT__DIRECT_WAITS:                                                                       \
        asks;                                                                                      \
        f->weft__at = WEFT__LEAF_WAITS;                                                            \
        return WEFT_PENDING;                                                                       \
    case WEFT__DIRECT_ELSE:                                                                        \
        break;                                                                                     \
    }                                                                                              \
    return name##_by_table(f, cx)

#define AHEAD_ONE(name, direction, may)                                                            \
    static inline weft_poll name##_direct_for_now(struct weft_##name *f, weft_cx *cx)              \
    {                                                                                              \
        STEPS(name, direction, direct, weft__fdstream_slot(f->stream), (void)0);                   \
    }                                                                                              \
                                                                                                   \
    static __attribute__((noinline)) weft_poll name##_ahead(struct weft_##name *f, weft_cx *cx)    \
    {                                                                                              \
        struct weft__fdslot *slot = weft__fdstream_slot(f->stream);                                \
        if (!weft__fdstream_is_ahead(f->stream)) return name##_by_table(f, cx);                    \
        if (load_relaxed(&slot->direct)) return name##_direct_for_now(f, cx); /* relaxed: see there */ \
        if (!(may)) return name##_by_table(f, cx);                                                 \
        STEPS(name, direction, ahead, slot,                                                        \
              weft__driver_arm(slot, WEFT__SIDE_##direction,                                       \
                               weft__ready_bits(WEFT__SIDE_##direction)));                         \
    }

/* A length of 0, which no call is made for, and one that is too long are the table's, too. */
#define POLL_ONE(name, direction)                                                                  \
    weft_poll weft_##name##_poll(void *frame, weft_cx *cx)                                         \
    {                                                                                              \
        struct weft_##name *f = frame;                                                             \
        if (!f->stream || !f->buf || f->len - 1 >= SSIZE_MAX) return name##_by_table(f, cx);       \
        if (!weft__fdstream_is_direct(f->stream)) return name##_ahead(f, cx);                      \
        STEPS(name, direction, direct, weft__fdstream_slot(f->stream), (void)0);                   \
    }

#define ONE(name, direction, all, moved, try_direct, try_ahead, may_ahead)                         \
    GO_ON(name, direction)                                                                         \
    TRY_ONE(name, direct, WEFT__JUMPS_BACK, direction, all, moved, try_direct)                     \
    TRY_ONE(name, ahead, inline, direction, all, moved, try_ahead)                                 \
    AHEAD_ONE(name, direction, may_ahead)                                                          \
    POLL_ONE(name, direction)

static inline ssize_t recv_one(struct weft__fdslot *slot, void *into, size_t bytes,
                               struct weft__lesson *lesson)
{
    ssize_t got = weft__socket_recv_one(slot->fd, into, bytes, 0);
    lesson->bits = weft__take_lesson(lesson->seen, WEFT__SIDE_READ, got, (size_t)got < bytes);
    return got;
}

static inline ssize_t send_one(struct weft__fdslot *slot, void *from, size_t bytes,
                               struct weft__lesson *lesson)
{
    ssize_t got = weft__socket_send_one(slot->fd, from, bytes);
    lesson->bits = weft__take_lesson(lesson->seen, WEFT__SIDE_WRITE, got, (size_t)got < bytes);
    return got;
}

static inline ssize_t take_one(struct weft__fdslot *slot, int kind, void *at, size_t bytes,
                               struct weft__lesson *lesson)
{
    struct iovec one = {.iov_base = at, .iov_len = bytes};
    struct weft__take what = {.kind = kind, .iov = &one, .count = 1, .bytes = bytes};
    return weft__driver_take(slot, &what, lesson);
}

static inline ssize_t recv_ahead(struct weft__fdslot *slot, void *into, size_t bytes,
                                 struct weft__lesson *lesson)
{
    return take_one(slot, WEFT__TAKE_RECV, into, bytes, lesson);
}

static inline ssize_t send_soon(struct weft__fdslot *slot, void *from, size_t bytes,
                                struct weft__lesson *lesson)
{
    return take_one(slot, WEFT__TAKE_SEND_SOON, from, bytes, lesson);
}

BY_TABLE(read, poll_read, 0, NULL)
ONE(read, READ, false, none, recv_one, recv_ahead, true)

BY_TABLE(read_exact, poll_read, WEFT_IO_ALL, &f->done)
ONE(read_exact, READ, true, f->done, recv_one, recv_ahead, true)

BY_TABLE(write, poll_write, 0, NULL)
ONE(write, WRITE, false, none, send_one, send_soon, weft__fdstream_may_be_soon(cx))

BY_TABLE(write_all, poll_write, WEFT_IO_ALL, &f->done)
ONE(write_all, WRITE, true, f->done, send_one, send_soon, weft__fdstream_may_be_soon(cx))

/* ---- the other polls ---- */

POLL(weft_peek, poll_read, ONE_BUFFER(f), 1, WEFT_IO_PEEK, NULL)
POLL(weft_readv, poll_read, f->iov, f->count, 0, NULL)
POLL(weft_writev, poll_write, f->iov, f->count, 0, NULL)
POLL(weft_writev_all, poll_write, f->iov, f->count, WEFT_IO_ALL, &f->done)

weft_poll weft_shutdown_poll(void *frame, weft_cx *cx)
{
    struct weft_shutdown *f = frame;
    if (!f->stream) {
        f->ret = -EINVAL;
        return WEFT_READY;
    }
    weft_poll answer = f->stream->ops->shutdown(f->stream, &f->weft__io, cx, &f->ret);
    f->weft__at = answer == WEFT_PENDING ? WEFT__LEAF_WAITS : 0;
    return answer;
}

/* ---- call forms ---- */

#define CALL(name, ...)                                                                            \
    do {                                                                                           \
        struct name f = {__VA_ARGS__};                                                             \
        int r = weft__run_from(name##_poll, &f, __builtin_return_address(0));                      \
        return r < 0 ? r : f.ret;                                                                  \
    } while (0)

ssize_t weft__stream_peek(weft_stream *stream, void *buf, size_t len)
{
    CALL(weft_peek, .stream = stream, .buf = buf, .len = len);
}

ssize_t weft__readv(weft_stream *stream, const struct iovec *iov, int count)
{
    CALL(weft_readv, .stream = stream, .iov = iov, .count = count);
}

ssize_t weft__writev(weft_stream *stream, const struct iovec *iov, int count)
{
    CALL(weft_writev, .stream = stream, .iov = iov, .count = count);
}

ssize_t weft__writev_all(weft_stream *stream, const struct iovec *iov, int count)
{
    CALL(weft_writev_all, .stream = stream, .iov = iov, .count = count);
}

int weft__shutdown(weft_stream *stream)
{
    CALL(weft_shutdown, .stream = stream);
}

/* ---- the rest ---- */

void weft__stream_close(weft_stream *stream, const char *caller)
{
    if (!stream) return;
    weft__driver_closes("a stream", caller);
    stream->ops->close(stream);
}

int weft_stream_fd(weft_stream *stream)
{
    if (!stream) return -EINVAL;
    return stream->ops->fd ? stream->ops->fd(stream) : -EOPNOTSUPP;
}
