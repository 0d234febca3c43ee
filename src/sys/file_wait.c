/* SPDX-License-Identifier: MIT
 *
 * file_wait - looks, and pauses between them; the idea is in file_wait.h.
 */
#include "sys/file_wait.h"

#include "sys/answer.h"
#include "sys/clock.h"
#include "sys/fd.h"
#include "sys/file.h"
#include "sys/futex.h"
#include "sys/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

/* Doubled: who gives a read of a silent terminal up waits for that twice as long. Halved: its thread looks up 40 times a second. */
#define LOOK_MS 50

/* The longest pause between two tries to open a FIFO, as a power of two of milliseconds. One more: who opens the other side waits twice as long, at worst. */
#define PAUSE_DOUBLINGS 4

/* What a terminal takes at once if it says that it takes something (sys/stdio.c). */
#define TERMINAL_BYTES 256

/* ---- opening ---- */

static void pause_for(unsigned round)
{
    _Atomic uint32_t nobody = 0;
    unsigned doublings = round < PAUSE_DOUBLINGS ? round : PAUSE_DOUBLINGS;
    (void)weft__futex_wait(&nobody, 0, weft__clock_now() + (WEFT__NS_PER_MS << doublings));
}

static bool is_fifo(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISFIFO(about.st_mode);
}

/* Of a FIFO: would an opening wait for another? One that is to be made, and of both ways, never does. */
static bool waits_for_another(int flags)
{
    int way = flags & O_ACCMODE;
    bool made = (flags & O_CREAT) && (flags & O_EXCL);
    return (way == O_RDONLY || way == O_WRONLY) && !made &&
           !(flags & (O_NONBLOCK | O_PATH | O_DIRECTORY));
}

static int64_t open_now(const char *path, int flags, uint32_t mode)
{
    return WEFT__ANSWER(WEFT__FAULT_OPEN, open(path, flags | O_CLOEXEC, (mode_t)mode));
}

/* It is open, and from now on it waits as others do. */
static int64_t opened(int64_t fd)
{
    int flags = fcntl((int)fd, F_GETFL);
    if (flags >= 0) (void)fcntl((int)fd, F_SETFL, flags & ~O_NONBLOCK); /* of our own: cannot fail */
    return fd;
}

/* Returns 0: a writer is there, or was; -ECANCELED; or why it cannot be told. */
static int64_t await_writer(const struct weft__file_req *req, int fd)
{
    int scratch[2];
    int64_t r = weft__pipe_open(scratch);
    if (r < 0) return r;
    for (unsigned round = 0; (r = weft__pipe_is_joined(fd, scratch)) == -EAGAIN; round++) {
        if (weft__file_is_stopped(req)) {
            r = -ECANCELED;
            break;
        }
        pause_for(round);
    }
    weft__fd_close(scratch[0]);
    weft__fd_close(scratch[1]);
    return r;
}

static int64_t open_to_read(const struct weft__file_req *req, const char *path, int flags,
                            uint32_t mode)
{
    struct stat about;
    int64_t fd = open_now(path, flags | O_NONBLOCK, mode);
    if (fd < 0) return fd;
    bool fifo = fstat((int)fd, &about) == 0 && S_ISFIFO(about.st_mode); /* another may lie there now */
    int64_t r = fifo ? await_writer(req, (int)fd) : 0;
    if (r == 0) return opened(fd);
    weft__fd_close((int)fd);
    return r;
}

static int64_t open_to_write(const struct weft__file_req *req, const char *path, int flags,
                             uint32_t mode)
{
    for (unsigned round = 0;; round++) {
        int64_t fd = open_now(path, flags | O_NONBLOCK, mode);
        if (fd >= 0) return opened(fd);
        if (fd != -ENXIO || !is_fifo(path)) return fd;
        if (weft__file_is_stopped(req)) return -ECANCELED;
        pause_for(round);
    }
}

int64_t weft__file_wait_open(const struct weft__file_req *req, const char *path, int flags,
                             uint32_t mode)
{
    if (!waits_for_another(flags) || !is_fifo(path)) return open_now(path, flags, mode);
    return (flags & O_ACCMODE) == O_RDONLY ? open_to_read(req, path, flags, mode)
                                           : open_to_write(req, path, flags, mode);
}

/* ---- reading, writing ---- */

/* Is it no file on a disk, but somebody else's other end? Of a device that knows no readiness poll(2) says that it is ready. */
static bool is_other(int fd, struct stat *about)
{
    if (fstat(fd, about) < 0) return false;
    return !S_ISREG(about->st_mode) && !S_ISDIR(about->st_mode) && !S_ISBLK(about->st_mode);
}

/* Returns 0: a call does not wait, or says what is wrong; -ECANCELED. */
static int64_t await_ready(const struct weft__file_req *req, int fd, short events)
{
    struct pollfd look = {.fd = fd, .events = events};
    if (fcntl(fd, F_GETFL) & O_NONBLOCK) return 0;
    for (;;) {
        if (weft__file_is_stopped(req)) return -ECANCELED;
        int r = poll(&look, 1, LOOK_MS);
        if (r > 0 || (r < 0 && errno != EINTR)) return 0;
    }
}

int64_t weft__file_wait_read(const struct weft__file_req *req, int fd, void *into, size_t bytes)
{
    struct stat about;
    int64_t r = is_other(fd, &about) ? await_ready(req, fd, POLLIN) : 0;
    return r < 0 ? r : WEFT__ANSWER(WEFT__FAULT_READ, read(fd, into, bytes));
}

/* What goes at once. A message on a socket, or to a device, is not cut. */
static size_t piece_of(int fd, const struct stat *about, size_t bytes)
{
    size_t most = SIZE_MAX;
    if (S_ISFIFO(about->st_mode)) most = PIPE_BUF;
    if (S_ISCHR(about->st_mode) && bytes > TERMINAL_BYTES && isatty(fd)) most = TERMINAL_BYTES;
    return bytes < most ? bytes : most;
}

int64_t weft__file_wait_write(const struct weft__file_req *req, int fd, const void *from,
                              size_t bytes)
{
    struct stat about;
    if (!is_other(fd, &about)) return WEFT__ANSWER(WEFT__FAULT_WRITE, write(fd, from, bytes));
    struct weft__pipe_hush hush;
    int64_t r = await_ready(req, fd, POLLOUT);
    if (r < 0) return r;
    size_t piece = piece_of(fd, &about, bytes);
    weft__pipe_hush(&hush);
    r = WEFT__ANSWER(WEFT__FAULT_WRITE, write(fd, from, piece));
    weft__pipe_unhush_pieces(&hush, r, piece);
    return r;
}
