/* SPDX-License-Identifier: MIT
 *
 * event - eventfd, write and read of its counter.
 */
#include "sys/event.h"

#include "base/fault.h"
#include "sys/fd.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

int weft__event_open(int *into)
{
    int r = weft__fault(WEFT__FAULT_EVENTFD);
    if (r < 0) return r;
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) return -errno;
    fd = weft__fd_beyond_standard(fd);
    if (fd < 0) return fd;
    *into = fd;
    return 0;
}

int weft__event_signal(int fd)
{
    uint64_t one = 1;
    int r = weft__fault(WEFT__FAULT_WRITE);
    if (r < 0) return r;
    int before = errno;
    if (write(fd, &one, sizeof(one)) >= 0) return 0;
    r = -errno;
    errno = before;
    return r == -EAGAIN ? 0 : r; /* the counter is at its top: readable since long */
}

int weft__event_drain(int fd)
{
    uint64_t count;
    int r = weft__fault(WEFT__FAULT_READ);
    if (r < 0) return r;
    int before = errno;
    if (read(fd, &count, sizeof(count)) >= 0) return 1;
    r = -errno;
    errno = before;
    return r == -EAGAIN ? 0 : r;
}
