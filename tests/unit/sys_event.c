/* SPDX-License-Identifier: MIT
 *
 * The eventfd: signals add up, drain takes all, neither ever sleeps.
 */
#include "base/fault.h"
#include "sys/event.h"
#include "sys/fd.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    ASSERT_GE(poll(&p, 1, 0), 0);
    return p.revents & POLLIN;
}

TEST(event_signals_add_up_and_are_drained_at_once)
{
    int fd;
    ASSERT_OK(weft__event_open(&fd));
    ASSERT(!readable(fd));
    ASSERT_EQ(weft__event_drain(fd), 0);
    for (int i = 0; i < 5; i++)
        ASSERT_OK(weft__event_signal(fd));
    ASSERT(readable(fd));
    ASSERT_EQ(weft__event_drain(fd), 1);
    ASSERT(!readable(fd));
    ASSERT_EQ(weft__event_drain(fd), 0);
    weft__fd_close(fd);
}

TEST(event_is_close_on_exec_and_nonblocking)
{
    int fd;
    ASSERT_OK(weft__event_open(&fd));
    ASSERT(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    ASSERT(fcntl(fd, F_GETFL) & O_NONBLOCK);
    weft__fd_close(fd);
}

/* At the counter's top a signal cannot be added, and need not be. */
TEST(event_full_is_signalled_already)
{
    int fd;
    uint64_t top = UINT64_MAX - 1;
    ASSERT_OK(weft__event_open(&fd));
    ASSERT_EQ(write(fd, &top, sizeof(top)), sizeof(top));
    ASSERT_OK(weft__event_signal(fd));
    ASSERT_EQ(weft__event_drain(fd), 1);
    weft__fd_close(fd);
}

TEST(event_bad_descriptor_is_an_error)
{
    ASSERT_EQ(weft__event_signal(-1), -EBADF);
    ASSERT_EQ(weft__event_drain(-1), -EBADF);
}

#if defined(WEFT_FAULTS)
TEST(event_fails_when_told)
{
    int fd = -7;
    weft__fault_arm(WEFT__FAULT_EVENTFD, 1, 1, -EMFILE);
    ASSERT_EQ(weft__event_open(&fd), -EMFILE);
    ASSERT_EQ(fd, -7);
    ASSERT_OK(weft__event_open(&fd));
    weft__fault_arm(WEFT__FAULT_WRITE, 1, 1, -EIO);
    weft__fault_arm(WEFT__FAULT_READ, 1, 1, -EIO);
    ASSERT_EQ(weft__event_signal(fd), -EIO);
    ASSERT_EQ(weft__event_drain(fd), -EIO);
    ASSERT_OK(weft__event_signal(fd));
    ASSERT_EQ(weft__event_drain(fd), 1);
    weft__fd_close(fd);
}
#endif
