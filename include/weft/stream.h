/* SPDX-License-Identifier: MIT
 *
 * stream - bytes in order, both ways or one: sockets, pipes, and whatever else reads and writes. All of them are a
 * `weft_stream`, made by net.h (TCP, Unix), by weft_pipe, or by a table of your own.
 *
 *     char b[4096];
 *     ssize_t n;
 *     while ((n = weft_read(c, b, sizeof b)) > 0)          above 0, then 0 at the end, or an errno
 *         if ((n = weft_write_all(c, b, (size_t)n)) < 0) break;
 *     weft_close(c);                                       never waits, never fails
 *
 *     weft_await(f->rd, weft_read, f->c, f->b, sizeof f->b);        stackless: f->rd.ret
 *
 * Fibers and threads call, stackless tasks await. One reads and one writes at a time, of any kind and on any thread; a second
 * reader is answered -EBUSY. Reading and writing at the same time are two tasks, or two arms of a select.
 *
 * GIVEN UP  A read that was cancelled, or lost in a select, has read nothing; such a write has written nothing. Of those that go
 * on until all is done, weft_write_all and weft_read_exact, `.done` tells how far they came.
 * CLOSED  weft_close may be called while others wait: they are answered -EBADF. It is the last use of the stream.
 * A peer that is gone is an error (-EPIPE, -ECONNRESET) and never a signal: SIGPIPE kills nobody here.
 * When its runtime has stopped, what can be done at once is still done; what would wait is answered -ESHUTDOWN. In the
 * child of a fork streams answer -ECHILD, and weft_close closes the child's descriptor alone.
 */
#ifndef WEFT_STREAM_H
#define WEFT_STREAM_H

#include <weft/task.h>

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_stream weft_stream;
typedef struct weft_listener weft_listener; /* net.h */
typedef struct weft_fd weft_fd;             /* fd.h */
typedef struct weft_buf weft_buf;           /* buf.h */
typedef struct weft_udp weft_udp;           /* udp.h */
typedef struct weft_dgram weft_dgram;       /* unix.h */

/* An operation under way; zero before. Private. Small, since each read and write clears it: a stream that needs more keeps it in itself. */
struct weft_io {
    void *weft__io[4];
};

/* ---- read ----------------------------------------------------------------------------------------------------------------
 *
 * weft_read(stream, buf, len): read what is there, waiting until there is something. Borrows buf until it is over.
 * Returns how many bytes, at least one; 0 at the end, or if len is 0; -ECANCELED, -ETIME: told to stop, nothing was read;
 * -EBUSY: another reads; -EBADF: it was closed; -ESHUTDOWN; -ECHILD; -EINVAL for NULL; -EDEADLK in a stackless poll (call
 * form); and what the stream says: -ECONNRESET, -ETIMEDOUT ...
 * weft_readv: the same into several buffers, which are borrowed with their list.
 * weft_peek: the same, and what was read stays to be read; sockets only, else -EOPNOTSUPP. */
struct weft_read {
    WEFT_FRAME(ssize_t);
    weft_stream *stream;
    void *buf;
    size_t len;
    struct weft_io weft__io WEFT__ZERO;
};
struct weft_peek {
    WEFT_FRAME(ssize_t);
    weft_stream *stream;
    void *buf;
    size_t len;
    struct weft_io weft__io WEFT__ZERO;
};
struct weft_readv {
    WEFT_FRAME(ssize_t);
    weft_stream *stream;
    const struct iovec *iov;
    int count;
    struct weft_io weft__io WEFT__ZERO;
};

/* weft_read_exact(stream, buf, len): read until buf is full. Returns len; less: the end came before (0: at once); else as
 * weft_read. Whatever it answers, `.done` bytes are in buf. Given up, what it has read is lost to those who come after. */
struct weft_read_exact {
    WEFT_FRAME(ssize_t);
    weft_stream *stream;
    void *buf;
    size_t len;
    size_t done WEFT__ZERO;
    struct weft_io weft__io WEFT__ZERO;
};

/* ---- write ---------------------------------------------------------------------------------------------------------------
 *
 * weft_write(stream, buf, len): write what fits, waiting until something does. Borrows buf until it is over.
 * Returns how many bytes, at least one, unless len is 0; -EPIPE: the peer reads no more; else as weft_read, for writers.
 * weft_writev: the same out of several buffers.
 * weft_write_all, weft_writev_all: write everything; nobody else's bytes come in between. Returns how many that was; else
 * as weft_write, and `.done` bytes were written. */
struct weft_write {
    WEFT_FRAME(ssize_t);
    weft_stream *stream;
    const void *buf;
    size_t len;
    struct weft_io weft__io WEFT__ZERO;
};
struct weft_writev {
    WEFT_FRAME(ssize_t);
    weft_stream *stream;
    const struct iovec *iov;
    int count;
    struct weft_io weft__io WEFT__ZERO;
};
struct weft_write_all {
    WEFT_FRAME(ssize_t);
    weft_stream *stream;
    const void *buf;
    size_t len;
    size_t done WEFT__ZERO;
    struct weft_io weft__io WEFT__ZERO;
};
struct weft_writev_all {
    WEFT_FRAME(ssize_t);
    weft_stream *stream;
    const struct iovec *iov;
    int count;
    size_t done WEFT__ZERO;
    struct weft_io weft__io WEFT__ZERO;
};

/* ---- end -----------------------------------------------------------------------------------------------------------------
 *
 * weft_shutdown(stream): write no more: the peer reads what was written, then the end; this side goes on to read. Twice is
 * once. Returns 0; -ENOTCONN: the peer is gone already; -EOPNOTSUPP: it has but one direction; else as weft_write. */
struct weft_shutdown {
    WEFT_FRAME(int);
    weft_stream *stream;
    struct weft_io weft__io WEFT__ZERO;
};

WEFT_API weft_pollfn weft_read_poll;
WEFT_API weft_pollfn weft_peek_poll;
WEFT_API weft_pollfn weft_readv_poll;
WEFT_API weft_pollfn weft_read_exact_poll;
WEFT_API weft_pollfn weft_write_poll;
WEFT_API weft_pollfn weft_writev_poll;
WEFT_API weft_pollfn weft_write_all_poll;
WEFT_API weft_pollfn weft_writev_all_poll;
WEFT_API weft_pollfn weft_shutdown_poll;

__attribute__((warn_unused_result)) WEFT__CALLED(ssize_t, weft__read, weft_read,
                                                 (weft_stream *stream, void *buf, size_t len),
                                                 weft__f.stream = stream, weft__f.buf = buf,
                                                 weft__f.len = len)
WEFT_API ssize_t weft__stream_peek(weft_stream *stream, void *buf, size_t len)
    __attribute__((warn_unused_result));
WEFT_API ssize_t weft__readv(weft_stream *stream, const struct iovec *iov, int count)
    __attribute__((warn_unused_result));
__attribute__((warn_unused_result)) WEFT__CALLED(ssize_t, weft__read_exact, weft_read_exact,
                                                 (weft_stream *stream, void *buf, size_t len),
                                                 weft__f.stream = stream, weft__f.buf = buf,
                                                 weft__f.len = len)
__attribute__((warn_unused_result)) WEFT__CALLED(ssize_t, weft__write, weft_write,
                                                 (weft_stream *stream, const void *buf, size_t len),
                                                 weft__f.stream = stream, weft__f.buf = buf,
                                                 weft__f.len = len)
WEFT_API ssize_t weft__writev(weft_stream *stream, const struct iovec *iov, int count)
    __attribute__((warn_unused_result));
__attribute__((warn_unused_result)) WEFT__CALLED(ssize_t, weft__write_all, weft_write_all,
                                                 (weft_stream *stream, const void *buf, size_t len),
                                                 weft__f.stream = stream, weft__f.buf = buf,
                                                 weft__f.len = len)
WEFT_API ssize_t weft__writev_all(weft_stream *stream, const struct iovec *iov, int count)
    __attribute__((warn_unused_result));
WEFT_API int weft__shutdown(weft_stream *stream);

#define weft_read(stream, buf, len) (WEFT__CALL_FORM("weft_read()"), weft__read(stream, buf, len))
#define weft_peek(stream, buf, len)                                                                \
    (WEFT__CALL_FORM("weft_peek()"), weft__stream_peek(stream, buf, len))
#define weft_write(stream, buf, len)                                                               \
    (WEFT__CALL_FORM("weft_write()"), weft__write(stream, buf, len))
#define weft_readv(stream, iov, count)                                                             \
    (WEFT__CALL_FORM("weft_readv()"), weft__readv(stream, iov, count))
#define weft_writev(stream, iov, count)                                                            \
    (WEFT__CALL_FORM("weft_writev()"), weft__writev(stream, iov, count))
#define weft_read_exact(stream, buf, len)                                                          \
    (WEFT__CALL_FORM("weft_read_exact()"), weft__read_exact(stream, buf, len))
#define weft_write_all(stream, buf, len)                                                           \
    (WEFT__CALL_FORM("weft_write_all()"), weft__write_all(stream, buf, len))
#define weft_writev_all(stream, iov, count)                                                        \
    (WEFT__CALL_FORM("weft_writev_all()"), weft__writev_all(stream, iov, count))
#define weft_shutdown(stream) (WEFT__CALL_FORM("weft_shutdown()"), weft__shutdown(stream))

#define WEFT__PROBES_weft_read   ~, WEFT__ARM_PROBES
#define WEFT__PROBES_weft_peek   ~, WEFT__ARM_PROBES
#define WEFT__PROBES_weft_readv  ~, WEFT__ARM_PROBES
#define WEFT__PROBES_weft_write  ~, WEFT__ARM_PROBES
#define WEFT__PROBES_weft_writev ~, WEFT__ARM_PROBES

/* weft_close(stream), weft_close(listener), weft_close(fd), of udp.h and unix.h: let it go. Whoever waits for it is answered -EBADF; the descriptor itself is closed when
 * the last operation has left. Takes it; NULL is nothing. Never waits, never fails; closed twice, as far as that can be seen, it aborts and says where. Context: anywhere, any thread. */
WEFT_API void weft__stream_close(weft_stream *stream, const char *caller);
WEFT_API void weft__listener_close(weft_listener *listener, const char *caller);
WEFT_API void weft__fd_object_close(weft_fd *fd, const char *caller);
WEFT_API void weft__buf_close(weft_buf *buf, const char *caller);
WEFT_API void weft__udp_close(weft_udp *udp, const char *caller);
WEFT_API void weft__dgram_close(weft_dgram *dgram, const char *caller);

/* ---- making ---------------------------------------------------------------------------------------------------------------- */

/* Gives both ends of a pipe, on the current runtime. Context: anywhere.
 * Returns 0; -EMFILE, -ENFILE, -ENOMEM; -ENXIO: there is no runtime; -ESHUTDOWN; -ECHILD; -EINVAL. */
WEFT_API int weft_pipe(weft_stream **reader, weft_stream **writer);

/* A stream of a descriptor that the program has: a terminal, a FIFO, a pipe, a connected stream socket. Takes fd if it succeeds, and
 * makes it non-blocking, for all who share its open file. Not for a socket with TLS of the kernel's (TCP_ULP): its reads end with a record, and a stream takes a short one for all that
 * there is; weft_fd and calls of your own serve it. Context: anywhere.
 * Returns 0; -EPERM: a plain file or directory, which is always ready and may block all the same: weft_stream_of_file (file.h); -EPROTOTYPE: a socket
 * whose messages have ends; -EBADF; else as weft_pipe. */
WEFT_API int weft_stream_of_fd(int fd, weft_stream **into);

/* weft_fifo_open(path, flags, &stream): open a FIFO, waiting until its other side is there: O_RDONLY for who has it open to write, O_WRONLY for who reads. O_RDWR is both
 * sides, and does not wait. Gives a stream. Borrows the text. Given up, it is not open. The kernel tells nobody but a blocked thread of who opens a FIFO, so it is
 * looked after now and then, from 1 ms to 64 ms apart; who waits for this side goes on at once, or with that look. A writer that came and went again was there.
 * (With open(2) and weft_stream_of_fd: without a writer a read answers 0, and O_WRONLY | O_NONBLOCK is -ENXIO before there is a reader.)
 * Returns 0; -ENOENT, -EACCES of a path; -ECANCELED, -ETIME; -EINVAL: NULL, other flags, or no FIFO; -EMFILE, -ENFILE, -ENOMEM; -ENXIO: there is no runtime;
 * -ESHUTDOWN; -ECHILD; -EDEADLK in a stackless poll (call form). */
struct weft_fifo_open {
    WEFT_FRAME(int);
    const char *path;
    int flags;
    weft_stream **into;
    int weft__fd WEFT__ZERO;         /* 1 more; 0: none */
    int weft__scratch[2] WEFT__ZERO; /* likewise */
    int weft__tries WEFT__ZERO;
    void *weft__pause[6] WEFT__ZERO; /* a sleep */
};
WEFT_API weft_pollfn weft_fifo_open_poll;
WEFT_API int weft__fifo_open(const char *path, int flags, weft_stream **into)
    __attribute__((warn_unused_result));
#define weft_fifo_open(path, flags, into)                                                          \
    (WEFT__CALL_FORM("weft_fifo_open()"), weft__fifo_open(path, flags, into))

/* Its descriptor, borrowed; -EOPNOTSUPP: it has none. For options and questions, and to write by calls of your own between writes of the stream.
 * Not to read by, nor to peek or poll: with the driver io_uring (rt.h), from the first read of a TCP stream that had to wait on, what comes is fetched
 * ahead of whoever reads, and lies with the stream. weft_read, weft_peek and all that reads by them have it, first and in order; a recv(2) on the
 * descriptor would miss it, and could take what belongs behind it. Who wants to make the calls himself gives the descriptor to weft_fd_open (fd.h), from
 * which nothing is ever fetched, instead of having a stream; or takes it from a stream that was not read yet, by dup(2), before weft_close. */
WEFT_API int weft_stream_fd(weft_stream *stream);

/* ---- your own --------------------------------------------------------------------------------------------------------------
 *
 * A stream is a pointer to a table, first in whatever the implementation keeps. All are polls, as of any future: PENDING means that somebody
 * holds the waker; `io` is theirs from the first poll to READY. `flags`: WEFT_IO_ALL asks for everything, with the bytes moved so far in
 * *done whatever the answer: it is 0 at the first poll, and stays between polls. WEFT_IO_PEEK leaves what it reads. One that cannot answers
 * -EOPNOTSUPP. */
enum weft_io_flags {
    WEFT_IO_ALL = 1,
    WEFT_IO_PEEK = 2,
};

typedef struct weft_stream_ops {
    const char *kind; /* "tcp" */
    weft_poll (*read)(weft_stream *stream, struct weft_io *io, const struct iovec *iov, int count,
                      unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done);
    weft_poll (*write)(weft_stream *stream, struct weft_io *io, const struct iovec *iov, int count,
                       unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done);
    weft_poll (*shutdown)(weft_stream *stream, struct weft_io *io, weft_cx *cx, int *ret);
    void (*close)(weft_stream *stream);
    int (*fd)(weft_stream *stream); /* NULL: it has none */
} weft_stream_ops;

struct weft_stream {
    const weft_stream_ops *ops;
};

#ifdef __cplusplus
}
#define weft_close(thing) weft__close(thing, WEFT__CALLER)
static inline void weft__close(weft_stream *stream, const char *caller)
{
    weft__stream_close(stream, caller);
}
static inline void weft__close(weft_listener *listener, const char *caller)
{
    weft__listener_close(listener, caller);
}
static inline void weft__close(weft_fd *fd, const char *caller)
{
    weft__fd_object_close(fd, caller);
}
static inline void weft__close(weft_buf *buf, const char *caller)
{
    weft__buf_close(buf, caller);
}
#else
#define weft_close(thing)                                                                          \
    _Generic((thing),                                                                              \
        weft_stream *: weft__stream_close,                                                         \
        weft_listener *: weft__listener_close,                                                     \
        weft_fd *: weft__fd_object_close,                                                          \
        weft_buf *: weft__buf_close,                                                               \
        weft_udp *: weft__udp_close,                                                               \
        weft_dgram *: weft__dgram_close)(thing, WEFT__CALLER)
#endif

#endif
