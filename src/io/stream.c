/* SPDX-License-Identifier: MIT
 *
 * stream - the operations of weft/stream.h: frames that ask their stream's table, and the call forms.
 *
 * A frame's arguments become one list of buffers at each poll; what must last between polls is in its `weft__io`, which is the
 * table's alone. `weft__at` is odd from the first poll to the last: a leaf, to whoever walks await chains.
 */
#include <weft/stream.h>

#include "driver/driver.h"
#include "io/fdstream.h"
#include "sync/leaf.h"
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

/* The same with one buffer, which on a TCP stream of most drivers needs neither list nor table. */
#define POLL_ONE(name, which, how, moved)                                                          \
    static __attribute__((noinline)) POLL_AS(name##_by_table, weft_##name, which, ONE_BUFFER(f),   \
                                             1, how, moved)                                        \
    weft_poll weft_##name##_poll(void *frame, weft_cx *cx)                                         \
    {                                                                                              \
        struct weft_##name *f = frame;                                                             \
        if (f->stream && weft__fdstream_is_direct(f->stream) && is_buffer(f->buf, f->len))         \
            return weft__direct_##name(f, cx);                                                     \
        return name##_by_table(f, cx);                                                             \
    }

POLL_ONE(read, poll_read, 0, NULL)
POLL(weft_peek, poll_read, ONE_BUFFER(f), 1, WEFT_IO_PEEK, NULL)
POLL(weft_readv, poll_read, f->iov, f->count, 0, NULL)
POLL_ONE(read_exact, poll_read, WEFT_IO_ALL, &f->done)
POLL_ONE(write, poll_write, 0, NULL)
POLL(weft_writev, poll_write, f->iov, f->count, 0, NULL)
POLL_ONE(write_all, poll_write, WEFT_IO_ALL, &f->done)
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
