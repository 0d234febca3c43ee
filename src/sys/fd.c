/* SPDX-License-Identifier: MIT
 *
 * fd - close, and poll without waiting.
 */
#include "sys/fd.h"

#include "base/assert.h"
#include "base/fault.h"
#include "sys/epoll.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

void weft__fd_close(int fd)
{
    if (fd < 0) return;
    int r = close(fd) < 0 ? -errno : 0;
    /* Else the number may be somebody else's by now, and the next close of this kind hits that. */
    weft_dassert(r != -EBADF);
    (void)r; /* EINTR too means closed */
}

int weft__fd_beyond_standard(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO) return fd;
    int r = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (r < 0) r = -errno;
    weft__fd_close(fd);
    return r;
}

/* The file's type does not tell: of what is no socket and no pipe some have it (/proc/self/mounts, a terminal), some not (/dev/null). So it is added to an epoll of its own. */
static int ask_epoll(int fd)
{
    int epoll;
    int r = weft__epoll_open(&epoll);
    if (r < 0) return r;
    r = weft__epoll_add(epoll, fd, 0, 0);
    weft__fd_close(epoll);
    return r;
}

int weft__fd_has_readiness(int fd)
{
    struct stat about;
    if (fstat(fd, &about) < 0) return -errno;
    return S_ISSOCK(about.st_mode) || S_ISFIFO(about.st_mode) ? 0 : ask_epoll(fd);
}

int weft__fd_ready(int fd, int for_what)
{
    short asked = (for_what & WEFT__FD_IN ? POLLIN | POLLRDHUP : 0) |
                  (for_what & WEFT__FD_OUT ? POLLOUT : 0) |
                  (for_what & WEFT__FD_PRI ? POLLPRI | POLLRDHUP : 0);
    struct pollfd look = {.fd = fd, .events = asked};
    int r;
    do {
        r = weft__fault(WEFT__FAULT_POLL);
        if (r == 0 && poll(&look, 1, 0) < 0) r = -errno;
    } while (r == -EINTR);
    if (r < 0) return r;
    short got = look.revents;
    if (got & POLLNVAL) return -EBADF;
    if (got & (POLLERR | POLLHUP)) return for_what;
    return for_what &
           ((got & (POLLIN | POLLRDHUP) ? WEFT__FD_IN : 0) | (got & POLLOUT ? WEFT__FD_OUT : 0) |
            (got & (POLLPRI | POLLRDHUP) ? WEFT__FD_PRI : 0));
}

int weft__fd_unblock(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0) return -errno;
    if (flags & O_NONBLOCK) return 1;
    return fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

void weft__fd_put_back(int fd, int unblocked)
{
    int flags = unblocked == 0 ? fcntl(fd, F_GETFL) : -1;
    if (flags >= 0) (void)fcntl(fd, F_SETFL, flags & ~O_NONBLOCK); /* it was so: cannot fail */
}
