/* SPDX-License-Identifier: MIT
 *
 * fdstream - tables of the streams on descriptors; the idea is in fdstream.h.
 */
#include "io/fdstream.h"

#include "driver/op.h"
#include "driver/take.h"
#include "limits.h"
#include "sys/fd.h"
#include "sys/pipe.h"
#include "sys/socket.h"

/* ---- one try ---- */

/* What an operation moves: the list, and which call moves it. */
struct moving {
    const struct iovec *iov;
    int count;
    int take;     /* WEFT__TAKE_... */
    size_t *done; /* of the list, by tries before */
    struct weft__lesson lesson;
};

/* The part of the list that is still to be moved, as much of it as one call takes. */
static int rest_of(const struct moving *m, struct iovec *into, size_t *bytes)
{
    size_t done = *m->done;
    int count = 0;
    *bytes = 0;
    for (int i = 0; i < m->count && count < WEFT__IOV_MAX; i++) {
        size_t len = m->iov[i].iov_len;
        size_t skip = done < len ? done : len;
        done -= skip;
        if (len == skip) continue;
        into[count].iov_base = (char *)m->iov[i].iov_base + skip;
        into[count++].iov_len = len - skip;
        *bytes += len - skip;
    }
    return count;
}

static __attribute__((noinline)) ssize_t try_list(struct weft__fdslot *slot, struct moving *m)
{
    struct iovec rest[WEFT__IOV_MAX];
    struct weft__take take = {.kind = m->take, .iov = rest};
    take.count = rest_of(m, rest, &take.bytes);
    return weft__driver_take(slot, &take, &m->lesson);
}

/* Most have one buffer: that needs no list. */
static __attribute__((noinline)) ssize_t tries(struct weft__fdslot *slot, void *arg)
{
    struct moving *m = arg;
    if (m->count != 1) return try_list(slot, m);
    struct iovec rest = {
        .iov_base = (char *)m->iov->iov_base + *m->done,
        .iov_len = m->iov->iov_len - *m->done,
    };
    struct weft__take take = {.kind = m->take, .iov = &rest, .count = 1, .bytes = rest.iov_len};
    return weft__driver_take(slot, &take, &m->lesson);
}

/* ---- polls ---- */

#define KIND(side_, as_, tries_, ...)                                                              \
    {.side = WEFT__SIDE_##side_,                                                                   \
     .as = (as_),                                                                                  \
     .bits = WEFT__READY_##side_ | WEFT__READY_##side_##_END,                                      \
     .tries = (tries_),                                                                            \
     __VA_ARGS__}

static const struct weft__op_kind reads = KIND(READ, WEFT__USE_READER, tries);
static const struct weft__op_kind writes = KIND(WRITE, WEFT__USE_WRITER, tries);

static size_t bytes_of(const struct iovec *iov, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += iov[i].iov_len;
    return bytes;
}

/* A call of no bytes would look like the end. */
static weft_poll moved_nothing(ssize_t *ret)
{
    *ret = 0;
    return WEFT_READY;
}

static __attribute__((noinline)) weft_poll moves(weft_stream *stream, struct weft_io *io,
                                                 const struct weft__op_kind *kind,
                                                 const struct moving *what, unsigned flags,
                                                 weft_cx *cx, ssize_t *ret)
{
    struct moving m = *what;
    struct weft__op_all all = {.want = bytes_of(m.iov, m.count), .done = m.done};
    if (all.want == 0) return moved_nothing(ret);
    return weft__op_poll(weft__fdstream_slot(stream), weft__op_of(io), kind, &m,
                         flags & WEFT_IO_ALL ? &all : NULL, &m.lesson, cx, ret);
}

#define READS(name, take_kind)                                                                     \
    static weft_poll name(weft_stream *stream, struct weft_io *io, const struct iovec *iov,        \
                          int count, unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done)      \
    {                                                                                              \
        return moves(                                                                              \
            stream, io, &reads,                                                                    \
            &(struct moving){.iov = iov, .count = count, .take = (take_kind), .done = done},       \
            flags, cx, ret);                                                                       \
    }

#define WRITES(name, take_kind)                                                                    \
    static weft_poll name(weft_stream *stream, struct weft_io *io, const struct iovec *iov,        \
                          int count, unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done)      \
    {                                                                                              \
        return moves(                                                                              \
            stream, io, &writes,                                                                   \
            &(struct moving){.iov = iov, .count = count, .take = (take_kind), .done = done},       \
            flags, cx, ret);                                                                       \
    }

READS(read_tcp_list, flags &WEFT_IO_PEEK ? WEFT__TAKE_PEEK : WEFT__TAKE_RECV)
READS(read_unix, flags &WEFT_IO_PEEK ? WEFT__TAKE_PEEK : WEFT__TAKE_RECV_UNIX)
READS(read_file_at_all, WEFT__TAKE_READ)
WRITES(write_socket_list, WEFT__TAKE_SEND)
WRITES(write_file, WEFT__TAKE_WRITE)

/* ---- one buffer of a socket ----
 *
 * What most operations move, so the loop of op.h is written out here, with the call in it. */

struct one {
    char *buf;
    size_t len;
    size_t *done; /* by tries before */
    struct weft__lesson lesson;
};

static inline __attribute__((always_inline)) ssize_t recv_one(struct weft__fdslot *slot, void *arg)
{
    struct one *m = arg;
    size_t bytes = m->len - *m->done;
    ssize_t r = weft__socket_recv_one(slot->fd, m->buf + *m->done, bytes, 0);
    m->lesson.bits = weft__take_lesson(m->lesson.seen, WEFT__SIDE_READ, r, (size_t)r < bytes);
    return r;
}

static inline __attribute__((always_inline)) ssize_t send_one(struct weft__fdslot *slot, void *arg)
{
    struct one *m = arg;
    size_t bytes = m->len - *m->done;
    ssize_t r = weft__socket_send_one(slot->fd, m->buf + *m->done, bytes);
    m->lesson.bits = weft__take_lesson(m->lesson.seen, WEFT__SIDE_WRITE, r, (size_t)r < bytes);
    return r;
}

static const struct weft__op_kind recvs_one = KIND(READ, WEFT__USE_READER, recv_one);
static const struct weft__op_kind sends_one = KIND(WRITE, WEFT__USE_WRITER, send_one);

static inline __attribute__((always_inline)) weft_poll
moves_one(weft_stream *stream, struct weft_io *io, const struct weft__op_kind *kind,
          const struct one *one, unsigned flags, weft_cx *cx, ssize_t *ret)
{
    struct one m = *one;
    struct weft__op_all all = {.want = m.len, .done = m.done};
    if (all.want == 0) return moved_nothing(ret);
    return weft__op_poll_as(weft__fdstream_slot(stream), weft__op_of(io), kind, &m,
                            flags & WEFT_IO_ALL ? &all : NULL, &m.lesson, cx, ret);
}

#define ONE_OF(iov_, done_)                                                                        \
    (&(struct one){.buf = (iov_)->iov_base, .len = (iov_)->iov_len, .done = (done_)})

static weft_poll read_tcp(weft_stream *stream, struct weft_io *io, const struct iovec *iov,
                          int count, unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done)
{
    if (count != 1 || (flags & WEFT_IO_PEEK))
        return read_tcp_list(stream, io, iov, count, flags, cx, ret, done);
    return moves_one(stream, io, &recvs_one, ONE_OF(iov, done), flags, cx, ret);
}

static const struct weft__op_kind writes_soon = KIND(WRITE, WEFT__USE_WRITER, tries, .soon = true);

/* On a backend that makes many sends at once. */
static weft_poll write_soon(weft_stream *stream, struct weft_io *io, const struct iovec *one,
                            unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done)
{
    struct weft__fdslot *slot = weft__fdstream_slot(stream);
    struct weft__op *op = weft__op_of(io);
    int take = weft__fdstream_may_be_soon(cx) ? WEFT__TAKE_SEND_SOON : WEFT__TAKE_SEND;
    struct moving m = {.iov = one, .count = 1, .take = take, .done = done};
    struct weft__op_all every = {.want = one->iov_len, .done = done};
    const struct weft__op_all *all = flags & WEFT_IO_ALL ? &every : NULL;
    bool probe = cx->probe;

    if (every.want == 0) return moved_nothing(ret);
    if (op->as) cx->probe = false; /* what has begun does not withdraw: its buffer may be noted */
    weft_poll r = weft__op_poll(slot, op, &writes_soon, &m, all, &m.lesson, cx, ret);
    cx->probe = probe;
    return r;
}

static weft_poll write_socket(weft_stream *stream, struct weft_io *io, const struct iovec *iov,
                              int count, unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done)
{
    if (count != 1) return write_socket_list(stream, io, iov, count, flags, cx, ret, done);
    if (!weft__driver_always_direct(weft__fdstream_slot(stream)))
        return write_soon(stream, io, iov, flags, cx, ret, done);
    return moves_one(stream, io, &sends_one, ONE_OF(iov, done), flags, cx, ret);
}

/* A peek cannot be made of a pipe: what was read is gone from it. */
static weft_poll read_file(weft_stream *stream, struct weft_io *io, const struct iovec *iov,
                           int count, unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done)
{
    if (!(flags & WEFT_IO_PEEK))
        return read_file_at_all(stream, io, iov, count, flags, cx, ret, done);
    *ret = -EOPNOTSUPP;
    return WEFT_READY;
}

/* The end of a pipe that goes the other way. */
static weft_poll cannot(weft_stream *stream, struct weft_io *io, const struct iovec *iov, int count,
                        unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done)
{
    (void)stream, (void)io, (void)iov, (void)count, (void)flags, (void)cx;
    *ret = -EBADF;
    *done = 0;
    return WEFT_READY;
}

/* ---- ends ---- */

/* No wait, so no operation: it enters for the time of the call. */
static weft_poll shut_socket(weft_stream *stream, struct weft_io *io, weft_cx *cx, int *ret)
{
    struct weft__fdslot *slot = weft__fdstream_slot(stream);
    (void)io;
    if (cx->probe) return WEFT_PENDING;
    if (cx->why) {
        if (weft__told_yields(cx)) return WEFT_PENDING;
        *ret = weft_cx_cancelled(cx);
        return WEFT_READY;
    }
    *ret = weft__driver_is_lost(slot) ? -ECHILD : weft__fdslot_enter(slot, WEFT__USE_WRITER);
    if (*ret < 0) return WEFT_READY;
    *ret = weft__socket_shutdown(slot->fd, WEFT__HALF_WRITE);
    weft__driver_leave(slot, WEFT__USE_WRITER);
    return WEFT_READY;
}

static weft_poll shut_file(weft_stream *stream, struct weft_io *io, weft_cx *cx, int *ret)
{
    (void)stream, (void)io, (void)cx;
    *ret = -EOPNOTSUPP;
    return WEFT_READY;
}

static void close_slot(weft_stream *stream)
{
    weft__driver_close(weft__fdstream_slot(stream));
}

static int fd_of(weft_stream *stream)
{
    return weft__fdstream_slot(stream)->fd;
}

/* ---- tables ---- */

const weft_stream_ops weft__fdstream_tables[] = {
    [WEFT__FDSTREAM_TCP] = {"tcp", read_tcp_list, write_socket, shut_socket, close_slot, fd_of},
    [WEFT__FDSTREAM_TCP_DIRECT] = {"tcp", read_tcp, write_socket, shut_socket, close_slot, fd_of},
    [WEFT__FDSTREAM_UNIX] = {"unix", read_unix, write_socket, shut_socket, close_slot, fd_of},
    [WEFT__FDSTREAM_READER] = {"pipe", read_file, cannot, shut_file, close_slot, fd_of},
    [WEFT__FDSTREAM_WRITER] = {"pipe", cannot, write_file, shut_file, close_slot, fd_of},
    [WEFT__FDSTREAM_FILE] = {"fd", read_file, write_file, shut_file, close_slot, fd_of},
};

bool weft__fdstream_has_slot(const weft_stream *stream)
{
    for (size_t i = 0; i < sizeof(weft__fdstream_tables) / sizeof(weft__fdstream_tables[0]); i++)
        if (stream->ops == &weft__fdstream_tables[i]) return true;
    return false;
}

weft_stream *weft__fdstream_of(struct weft__fdslot *slot, enum weft__fdstream_kind kind)
{
    weft_stream *stream = (weft_stream *)(void *)slot->face;
    bool tcp = kind == WEFT__FDSTREAM_TCP;
    bool direct = tcp && weft__driver_always_direct(slot);
    stream->ops = &weft__fdstream_tables[direct ? WEFT__FDSTREAM_TCP_DIRECT : kind];
    if (tcp) slot->shape = WEFT__SHAPE_STREAM;
    return stream;
}

bool weft__fdstream_is(const weft_stream *stream, enum weft__fdstream_kind kind)
{
    return stream->ops == &weft__fdstream_tables[kind];
}

int weft__fdstream_new(struct weft__port *port, int fd, enum weft__fdstream_kind kind,
                       weft_stream **into)
{
    struct weft__fdslot *slot = NULL;
    int r = weft__driver_add(port, fd, &slot);
    if (r == 0) *into = weft__fdstream_of(slot, kind);
    return r;
}

int weft__fdstream_pair(const int fds[2], const enum weft__fdstream_kind kinds[2],
                        weft_stream *into[2])
{
    struct weft__port *port = NULL;
    weft_stream *first = NULL;
    int r = weft__driver_here(NULL, false, &port);
    if (r == 0) r = weft__fdstream_new(port, fds[0], kinds[0], &first);
    if (r < 0) {
        weft__fd_close(fds[0]);
        weft__fd_close(fds[1]);
        return r;
    }
    r = weft__fdstream_new(port, fds[1], kinds[1], &into[1]);
    if (r < 0) {
        close_slot(first);
        weft__fd_close(fds[1]);
        return r;
    }
    into[0] = first;
    return 0;
}

/* ---- what users make ---- */

int weft_pipe(weft_stream **reader, weft_stream **writer)
{
    static const enum weft__fdstream_kind kinds[] = {WEFT__FDSTREAM_READER, WEFT__FDSTREAM_WRITER};
    weft_stream *ends[2] = {NULL};
    int fds[2] = {-1, -1};
    if (!reader || !writer) return -EINVAL;
    int r = weft__pipe_open(fds);
    if (r == 0) r = weft__fdstream_pair(fds, kinds, ends);
    if (r < 0) return r;
    *reader = ends[0];
    *writer = ends[1];
    return 0;
}

/* Returns 0; -EPROTOTYPE: a socket whose messages have ends. */
static int find_kind(int fd, enum weft__fdstream_kind *into)
{
    struct weft__address addr;
    *into = WEFT__FDSTREAM_FILE;
    if (weft__socket_local(fd, &addr) < 0) return 0;
    if (!weft__socket_is_stream(fd)) return -EPROTOTYPE;
    *into = weft__address_port(&addr) < 0 ? WEFT__FDSTREAM_UNIX : WEFT__FDSTREAM_TCP;
    return 0;
}

int weft_stream_of_fd(int fd, weft_stream **into)
{
    enum weft__fdstream_kind kind = WEFT__FDSTREAM_FILE;
    struct weft__port *port = NULL;
    if (fd < 0 || !into) return fd < 0 ? -EBADF : -EINVAL;
    int r = weft__driver_here(NULL, false, &port);
    if (r == 0) r = find_kind(fd, &kind);
    if (r < 0) return r;
    int unblocked = weft__fd_unblock(fd);
    r = unblocked < 0 ? unblocked : weft__fdstream_new(port, fd, kind, into);
    if (r < 0)
        weft__fd_put_back(fd, unblocked); /* it is not ours, and perhaps others have it, too */
    return r;
}
