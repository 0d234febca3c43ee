/* SPDX-License-Identifier: MIT
 *
 * fd - waiting for any file descriptor: a library of somebody else's that brings its own sockets, a device, a timerfd, an inotify.
 *
 *     weft_fd *w;
 *     r = weft_fd_open(PQsocket(conn), &w);              takes it; weft_fd_take gives it back
 *     while (PQisBusy(conn)) {
 *         if ((r = weft_fd_readable(w)) < 0) break;      then the library reads
 *         if (!PQconsumeInput(conn)) break;
 *     }
 *
 * weft_fd_readable and weft_fd_writable look whether it is so, and else wait: like poll(2), whatever was or was not read since the last time,
 * for one system call each. Any number of tasks may wait at once; all are woken. Where every byte counts, weft_fd_try makes the call itself, and
 * asks the kernel nothing else.
 * What comes in order and is read by weft alone is a stream (stream.h).
 */
#ifndef WEFT_FD_H
#define WEFT_FD_H

#include <weft/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Watch a descriptor on the current runtime. Takes fd if it succeeds: weft_close(w) closes it. It should not block (O_NONBLOCK), unless
 * it is never read before it is readable. Context: anywhere.
 * Returns 0; -EPERM: the kernel has no readiness for it, a plain file or directory: those are always ready, and a job for weft_blocking; -EEXIST: it is
 * watched already, where that can be told (by the same worker); -EBADF; -EINVAL; -ENOMEM, -ENOSPC, -EMFILE; -ENXIO: there is no runtime; -ESHUTDOWN; -ECHILD. */
WEFT_API int weft_fd_open(int fd, weft_fd **into);

/* Take the descriptor back, open as it is. Takes w if it succeeds. Never waits. Returns it; -EBUSY: somebody waits for it; -ECHILD. */
WEFT_API int weft_fd_take(weft_fd *w);

/* Its number, borrowed. */
WEFT_API int weft_fd_number(const weft_fd *w);

enum weft_fd_side {
    WEFT_FD_READ = 1,
    WEFT_FD_WRITE = 2,
    WEFT_FD_URGENT = 4, /* EPOLLPRI: out of band, and what some devices mean by it */
};

/* weft_fd_readable(w), weft_fd_writable(w), weft_fd_wait(w, side): wait until it is ready on that side; errors and the peer's end count as ready.
 * Borrows w. Cancel-safe: it takes nothing.
 * Returns 0; -ECANCELED, -ETIME; -EBADF: it was closed; -ESHUTDOWN; -ECHILD; -EINVAL; -EDEADLK in a stackless poll (call form). */
struct weft_fd_wait {
    WEFT_FRAME(int);
    weft_fd *fd;
    enum weft_fd_side side;
    struct weft_io weft__io WEFT__ZERO;
};
struct weft_fd_readable {
    WEFT_FRAME(int);
    weft_fd *fd;
    struct weft_io weft__io WEFT__ZERO;
};
struct weft_fd_writable {
    WEFT_FRAME(int);
    weft_fd *fd;
    struct weft_io weft__io WEFT__ZERO;
};
WEFT_API weft_pollfn weft_fd_wait_poll;
WEFT_API weft_pollfn weft_fd_readable_poll;
WEFT_API weft_pollfn weft_fd_writable_poll;
WEFT_API int weft__fd_wait(weft_fd *w, enum weft_fd_side side) __attribute__((warn_unused_result));

/* weft_fd_try(w, side, fn, arg): call fn(fd, arg), and again each time that it is ready, until fn answers something else than -EAGAIN (the negative
 * errno: `return n < 0 ? -errno : n`). fn must really have asked the kernel: -EAGAIN means that nothing more is there. It is called with nothing held,
 * and neither waits nor blocks. Borrows w and arg.
 * Returns what fn answered; else as weft_fd_wait. */
typedef ssize_t weft_fd_fn(int fd, void *arg);
struct weft_fd_try {
    WEFT_FRAME(ssize_t);
    weft_fd *fd;
    enum weft_fd_side side;
    weft_fd_fn *fn;
    void *arg;
    struct weft_io weft__io WEFT__ZERO;
};
WEFT_API weft_pollfn weft_fd_try_poll;
WEFT_API ssize_t weft__fd_try(weft_fd *w, enum weft_fd_side side, weft_fd_fn *fn, void *arg)
    __attribute__((warn_unused_result));

#define weft_fd_wait(w, side) (WEFT__CALL_FORM("weft_fd_wait()"), weft__fd_wait(w, side))
#define weft_fd_readable(w)   (WEFT__CALL_FORM("weft_fd_readable()"), weft__fd_wait(w, WEFT_FD_READ))
#define weft_fd_writable(w)   (WEFT__CALL_FORM("weft_fd_writable()"), weft__fd_wait(w, WEFT_FD_WRITE))
#define weft_fd_try(w, side, fn, arg)                                                              \
    (WEFT__CALL_FORM("weft_fd_try()"), weft__fd_try(w, side, fn, arg))

#define WEFT__PROBES_weft_fd_wait     ~, WEFT__ARM_PROBES
#define WEFT__PROBES_weft_fd_readable ~, WEFT__ARM_PROBES
#define WEFT__PROBES_weft_fd_writable ~, WEFT__ARM_PROBES
#define WEFT__PROBES_weft_fd_try      ~, WEFT__ARM_PROBES

#ifdef __cplusplus
}
#endif

#endif
