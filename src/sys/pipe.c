/* SPDX-License-Identifier: MIT
 *
 * pipe - the calls, and SIGPIPE held back around a write; the idea is in pipe.h.
 */
#include "sys/pipe.h"

#include "base/fault.h"
#include "sys/answer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int weft__pipe_open(int into[2])
{
    int ends[2];
    int r = weft__fault(WEFT__FAULT_PIPE);
    if (r < 0) return r;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) return -errno;
    into[0] = ends[0];
    into[1] = ends[1];
    return 0;
}

static bool is_fifo(int fd)
{
    struct stat about;
    return fstat(fd, &about) == 0 && S_ISFIFO(about.st_mode);
}

int weft__pipe_open_fifo(const char *path, int flags, int *into)
{
    if ((flags & ~(O_ACCMODE | O_CLOEXEC)) != 0 || (flags & O_ACCMODE) == O_ACCMODE) return -EINVAL;
    int fd =
        (int)WEFT__ANSWER(WEFT__FAULT_OPEN, open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (fd < 0) return fd == -ENXIO ? -EAGAIN : fd;
    if (!is_fifo(fd)) {
        (void)close(fd);
        return -EINVAL;
    }
    *into = fd;
    return 0;
}

/* Bytes, or the end that a writer has left, show by themselves. One that has only opened it does not: but without a writer there is nothing to duplicate
 * for ever, and with one there is nothing yet. */
int weft__pipe_is_joined(int fd, const int scratch[2])
{
    struct pollfd look = {.fd = fd, .events = POLLIN};
    if (poll(&look, 1, 0) > 0) return 0;
    ssize_t r = WEFT__ANSWER(WEFT__FAULT_SPLICE, tee(fd, scratch[1], 1, SPLICE_F_NONBLOCK));
    if (r == 0) return -EAGAIN;
    return r > 0 || r == -EAGAIN ? 0 : (int)r;
}

ssize_t weft__pipe_read(int fd, const struct iovec *iov, int count)
{
    ssize_t r;
    do {
        r = weft__fault(WEFT__FAULT_READV);
        if (r == 0 && (r = readv(fd, iov, count)) < 0) r = -errno;
    } while (r == -EINTR);
    return r;
}

static ssize_t write_some(int fd, const struct iovec *iov, int count)
{
    ssize_t r;
    do {
        r = weft__fault(WEFT__FAULT_WRITEV);
        if (r == 0 && (r = writev(fd, iov, count)) < 0) r = -errno;
    } while (r == -EINTR);
    return r;
}

/* Thread-directed, as ours is, comes first: one that was sent to the process stays. */
static void take_ours(const sigset_t *signals)
{
    struct timespec now = {0};
    while (sigtimedwait(signals, NULL, &now) < 0 && errno == EINTR)
        continue;
}

static void only_ours(sigset_t *into)
{
    sigemptyset(into);
    sigaddset(into, SIGPIPE);
}

void weft__pipe_hush(struct weft__pipe_hush *into)
{
    sigset_t signals;
    only_ours(&signals);
    (void)pthread_sigmask(SIG_BLOCK, &signals, &into->before);
    into->blocked = sigismember(&into->before, SIGPIPE);
}

void weft__pipe_unhush(const struct weft__pipe_hush *hush, ssize_t answer)
{
    sigset_t signals;
    only_ours(&signals);
    if (answer == -EPIPE) take_ours(&signals);
    if (!hush->blocked) (void)pthread_sigmask(SIG_SETMASK, &hush->before, NULL);
}

void weft__pipe_unhush_pieces(const struct weft__pipe_hush *hush, ssize_t answer, size_t bytes)
{
    bool cut = answer > 0 && (size_t)answer < bytes;
    weft__pipe_unhush(hush, cut ? -EPIPE : answer);
}

ssize_t weft__pipe_write(int fd, const struct iovec *iov, int count)
{
    struct weft__pipe_hush hush;
    weft__pipe_hush(&hush);
    ssize_t r = write_some(fd, iov, count);
    weft__pipe_unhush(&hush, r);
    return r;
}
