/* SPDX-License-Identifier: MIT
 *
 * The alarm: readable from its time on, until it is set again.
 */
#include "base/fault.h"
#include "sys/alarm.h"
#include "sys/clock.h"
#include "sys/fd.h"
#include "sys/futex.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>

static bool readable(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    ASSERT_GE(poll(&p, 1, timeout_ms), 0);
    return p.revents & POLLIN;
}

TEST(alarm_is_readable_from_its_time_on)
{
    int fd;
    ASSERT_OK(weft__alarm_open(&fd));
    ASSERT(!readable(fd, 0));
    int64_t at = weft__clock_now() + WEFT__NS_PER_MS;
    ASSERT_OK(weft__alarm_set(fd, at));
    ASSERT(readable(fd, -1));
    ASSERT_GE(weft__clock_now(), at);
    ASSERT(readable(fd, 0)); /* and stays so */
    ASSERT_OK(weft__alarm_set(fd, at + 3600 * WEFT__NS_PER_S));
    ASSERT(!readable(fd, 0));
    weft__fd_close(fd);
}

TEST(alarm_of_the_past_rings_now_and_of_never_not_at_all)
{
    int fd;
    ASSERT_OK(weft__alarm_open(&fd));
    ASSERT_OK(weft__alarm_set(fd, 0));
    ASSERT(readable(fd, -1));
    ASSERT_OK(weft__alarm_set(fd, WEFT__NEVER));
    ASSERT(!readable(fd, 0));
    ASSERT_OK(weft__alarm_set(fd, INT64_MIN));
    ASSERT(readable(fd, -1));
    weft__fd_close(fd);
}

TEST(alarm_is_close_on_exec_and_nonblocking)
{
    int fd;
    ASSERT_OK(weft__alarm_open(&fd));
    ASSERT(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    ASSERT(fcntl(fd, F_GETFL) & O_NONBLOCK);
    weft__fd_close(fd);
}

TEST(alarm_errors_are_numbers)
{
    ASSERT_EQ(weft__alarm_set(-1, 0), -EBADF);
#if defined(WEFT_FAULTS)
    int fd;
    weft__fault_arm(WEFT__FAULT_TIMERFD, 1, 1, -EMFILE);
    ASSERT_EQ(weft__alarm_open(&fd), -EMFILE);
#endif
}
