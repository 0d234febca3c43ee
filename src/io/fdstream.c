/* SPDX-License-Identifier: MIT
 *
 * fdstream - tables of the streams on descriptors; the idea is in fdstream.h.
 */
#include "io/fdstream.h"

#include "driver/op.h"
#include "limits.h"
#include "sys/fd.h"
#include "sys/pipe.h"
#include "sys/socket.h"

/* ---- one try ---- */

/* What an operation moves: the list, and which call moves it. */
struct moving {
    const struct iovec *iov;
    int count;
    struct weft__take take;
};

/* The part of the list that is still to be moved, as much of it as one call takes. */
static int rest_of(const struct moving *m, size_t done, struct iovec *into, size_t *bytes)
{
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

static __attribute__((noinline)) ssize_t try_list(struct weft__fdslot *slot, struct moving *m,
                                                  size_t done)
{
    struct iovec rest[WEFT__IOV_MAX];
    m->take.iov = rest;
    m->take.count = rest_of(m, done, rest, &m->take.bytes);
    return weft__driver_take(slot, &m->take);
}

/* Most have one buffer: that needs no list. */
static ssize_t tries(struct weft__fdslot *slot, struct weft__op *op, void *arg)
{
    struct moving *m = arg;
    if (m->count != 1) return try_list(slot, m, op->done);
    struct iovec rest = {
        .iov_base = (char *)m->iov->iov_base + op->done,
        .iov_len = m->iov->iov_len - op->done,
    };
    m->take.iov = &rest;
    m->take.count = 1;
    m->take.bytes = rest.iov_len;
    return weft__driver_take(slot, &m->take);
}

/* ---- polls ---- */

#define KIND(side_, as_, all_)                                                                     \
    {.side = WEFT__SIDE_##side_,                                                                   \
     .as = (as_),                                                                                  \
     .bits = WEFT__READY_##side_ | WEFT__READY_##side_##_END,                                      \
     .tries = tries,                                                                               \
     .all = (all_)}

static const struct weft__op_kind reads[2] = {KIND(READ, WEFT__USE_READER, false),
                                              KIND(READ, WEFT__USE_READER, true)};
static const struct weft__op_kind writes[2] = {KIND(WRITE, WEFT__USE_WRITER, false),
                                               KIND(WRITE, WEFT__USE_WRITER, true)};

static size_t bytes_of(const struct iovec *iov, int count)
{
    if (count == 1) return iov->iov_len;
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += iov[i].iov_len;
    return bytes;
}

static weft_poll moves(weft_stream *stream, struct weft_io *io, const struct weft__op_kind *kind,
                       struct moving *m, weft_cx *cx, ssize_t *ret, size_t *done)
{
    struct weft__op *op = weft__op_of(io);
    size_t want = bytes_of(m->iov, m->count);
    if (want == 0) { /* a call of no bytes would look like the end */
        *ret = 0;
        return WEFT_READY;
    }
    weft_poll answer = weft__op_poll(weft__fdstream_slot(stream), op, kind, m, want, cx, ret);
    *done = op->done;
    return answer;
}

#define READS(name, take_kind, peek_kind)                                                          \
    static weft_poll name(weft_stream *stream, struct weft_io *io, const struct iovec *iov,        \
                          int count, unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done)      \
    {                                                                                              \
        struct moving m = {.iov = iov, .count = count, .take.kind = (take_kind)};                  \
        if (flags & WEFT_IO_PEEK) m.take.kind = (peek_kind);                                       \
        return moves(stream, io, &reads[flags & WEFT_IO_ALL], &m, cx, ret, done);                  \
    }

#define WRITES(name, take_kind)                                                                    \
    static weft_poll name(weft_stream *stream, struct weft_io *io, const struct iovec *iov,        \
                          int count, unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done)      \
    {                                                                                              \
        struct moving m = {.iov = iov, .count = count, .take.kind = (take_kind)};                  \
        return moves(stream, io, &writes[flags & WEFT_IO_ALL], &m, cx, ret, done);                 \
    }

READS(read_tcp, WEFT__TAKE_RECV, WEFT__TAKE_PEEK)
READS(read_unix, WEFT__TAKE_RECV_UNIX, WEFT__TAKE_PEEK)
READS(read_pipe_at_all, WEFT__TAKE_READ, WEFT__TAKE_READ)
READS(read_file_at_all, WEFT__TAKE_READ_ANY, WEFT__TAKE_READ_ANY)
WRITES(write_socket, WEFT__TAKE_SEND)
WRITES(write_pipe, WEFT__TAKE_WRITE)
WRITES(write_file, WEFT__TAKE_WRITE_ANY)

/* A peek cannot be made of a pipe: what was read is gone from it. */
#define READS_ONLY(name, reads_it)                                                                 \
    static weft_poll name(weft_stream *stream, struct weft_io *io, const struct iovec *iov,        \
                          int count, unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done)      \
    {                                                                                              \
        if (!(flags & WEFT_IO_PEEK))                                                               \
            return reads_it(stream, io, iov, count, flags, cx, ret, done);                         \
        *ret = -EOPNOTSUPP;                                                                        \
        return WEFT_READY;                                                                         \
    }

READS_ONLY(read_pipe, read_pipe_at_all)
READS_ONLY(read_file, read_file_at_all)

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

static const weft_stream_ops tables[] = {
    [WEFT__FDSTREAM_TCP] = {"tcp", read_tcp, write_socket, shut_socket, close_slot, fd_of},
    [WEFT__FDSTREAM_UNIX] = {"unix", read_unix, write_socket, shut_socket, close_slot, fd_of},
    [WEFT__FDSTREAM_READER] = {"pipe", read_pipe, cannot, shut_file, close_slot, fd_of},
    [WEFT__FDSTREAM_WRITER] = {"pipe", cannot, write_pipe, shut_file, close_slot, fd_of},
    [WEFT__FDSTREAM_FILE] = {"fd", read_file, write_file, shut_file, close_slot, fd_of},
};

bool weft__fdstream_has_slot(const weft_stream *stream)
{
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        if (stream->ops == &tables[i]) return true;
    return false;
}

weft_stream *weft__fdstream_of(struct weft__fdslot *slot, enum weft__fdstream_kind kind)
{
    weft_stream *stream = (weft_stream *)(void *)slot->face;
    stream->ops = &tables[kind];
    if (kind == WEFT__FDSTREAM_TCP) slot->shape = WEFT__SHAPE_STREAM;
    return stream;
}

bool weft__fdstream_is(const weft_stream *stream, enum weft__fdstream_kind kind)
{
    return stream->ops == &tables[kind];
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
    if (r == 0) r = weft__fd_unblock(fd);
    return r < 0 ? r : weft__fdstream_new(port, fd, kind, into);
}
