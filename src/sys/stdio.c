/* SPDX-License-Identifier: MIT
 *
 * stdio - the calls; stdio.h says what they promise.
 */
#include "sys/stdio.h"

#include "base/fault.h"
#include "sys/fd.h"
#include "sys/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a terminal takes at once if it says that it takes something. Doubled: a write behind a look may wait, where a slow line is nearly full. */
#define PIECE_MAX 256

/* ---- another one ---- */

/* 0: opened anew it is the same thing. A file would have a place of its own, and a device may be anything. */
static int can_reopen(int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0) return -errno;
    bool terminal = S_ISCHR(st.st_mode) && isatty(fd);
    return terminal || S_ISFIFO(st.st_mode) ? 0 : -EOPNOTSUPP;
}

int weft__stdio_reopen(int fd, bool writes)
{
    char path[32];
    int r = can_reopen(fd);
    if (r == 0) r = weft__fault(WEFT__FAULT_OPEN);
    if (r < 0) return r;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    r = open(path, (writes ? O_WRONLY : O_RDONLY) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return r < 0 ? -errno : weft__fd_beyond_standard(r);
}

int weft__stdio_dup(int fd)
{
    int r = weft__fault(WEFT__FAULT_OPEN);
    if (r == 0) r = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    return r == -1 ? -errno : r;
}

/* ---- without waiting ---- */

static bool cannot(ssize_t r)
{
    return r == -EOPNOTSUPP || r == -ENOSYS || r == -EINVAL;
}

static ssize_t read_nowait(int fd, const struct iovec *piece)
{
    ssize_t r = weft__fault(WEFT__FAULT_READ);
    if (r < 0) return r;
    r = preadv2(fd, piece, 1, -1, RWF_NOWAIT);
    return r < 0 ? -errno : r;
}

static ssize_t read_behind_a_look(int fd, const struct iovec *piece)
{
    int ready = weft__fd_ready(fd, WEFT__FD_IN);
    if (ready <= 0) return ready < 0 ? ready : -EAGAIN;
    ssize_t r = readv(fd, piece, 1);
    return r < 0 ? -errno : r;
}

ssize_t weft__stdio_read(int fd, const struct iovec *piece)
{
    ssize_t r;
    do {
        r = read_nowait(fd, piece);
        if (cannot(r)) r = read_behind_a_look(fd, piece);
    } while (r == -EINTR);
    return r;
}

static ssize_t write_nowait(int fd, const struct iovec *piece)
{
    ssize_t r = weft__fault(WEFT__FAULT_WRITE);
    if (r < 0) return r;
    r = pwritev2(fd, piece, 1, -1, RWF_NOWAIT);
    return r < 0 ? -errno : r;
}

static ssize_t write_behind_a_look(int fd, const struct iovec *piece)
{
    struct iovec some = *piece;
    int ready = weft__fd_ready(fd, WEFT__FD_OUT);
    if (ready <= 0) return ready < 0 ? ready : -EAGAIN;
    if (some.iov_len > PIECE_MAX) some.iov_len = PIECE_MAX;
    ssize_t r = writev(fd, &some, 1);
    return r < 0 ? -errno : r;
}

ssize_t weft__stdio_write(int fd, const struct iovec *piece)
{
    struct weft__pipe_hush hush;
    ssize_t r;
    weft__pipe_hush(&hush);
    do {
        r = write_nowait(fd, piece);
        if (cannot(r)) r = write_behind_a_look(fd, piece);
    } while (r == -EINTR);
    weft__pipe_unhush(&hush, r);
    return r;
}
