/* SPDX-License-Identifier: MIT
 *
 * The fd of a host: readable for an event, or for an alarm; what fails halfway leaves nothing open.
 */
#include "base/fault.h"
#include "sched/host.h"
#include "sys/clock.h"
#include "sys/event.h"
#include "sys/fd.h"
#include "sys/futex.h"
#include "test.h"

#include <errno.h>
#include <poll.h>

static bool readable(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    ASSERT_GE(poll(&p, 1, timeout_ms), 0);
    return p.revents & POLLIN;
}

TEST(host_is_readable_for_either)
{
    struct weft__host host;
    int event;

    weft__host_init(&host);
    weft__host_set(&host, 0); /* nobody has asked for it: nothing happens */
    weft__host_close(&host);
    ASSERT_OK(weft__event_open(&event));
    ASSERT_OK(weft__host_open(&host, event));
    ASSERT(!readable(host.epoll, 0));
    ASSERT_OK(weft__event_signal(event));
    ASSERT(readable(host.epoll, 0));
    (void)weft__event_drain(event);
    ASSERT(!readable(host.epoll, 0));
    weft__host_set(&host, weft__clock_now() + WEFT__NS_PER_MS);
    ASSERT(readable(host.epoll, -1));
    weft__host_set(&host, host.alarm_at); /* what is due may still be */
    ASSERT(readable(host.epoll, 0));
    weft__host_set(&host, WEFT__NEVER);
    ASSERT(!readable(host.epoll, 0));
    weft__host_close(&host);
    weft__fd_close(event);
}

#if defined(WEFT_FAULTS)
TEST(host_that_fails_halfway_leaves_nothing_open)
{
    static const enum weft__fault_kind kinds[] = {WEFT__FAULT_EPOLL_CREATE, WEFT__FAULT_TIMERFD,
                                                  WEFT__FAULT_EPOLL_CTL};
    struct weft__host host;
    int event;

    weft__host_init(&host);
    ASSERT_OK(weft__event_open(&event));
    for (unsigned i = 0; i < 4; i++) {
        weft__fault_arm(kinds[i < 3 ? i : 2], i < 3 ? 1 : 2, 1, -EMFILE);
        ASSERT_EQ(weft__host_open(&host, event), -EMFILE);
        ASSERT_EQ(host.epoll, -1);
    }
    weft__fd_close(event);
}
#endif
