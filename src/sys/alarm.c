/* SPDX-License-Identifier: MIT
 *
 * alarm - timerfd; the idea is in alarm.h.
 */
#include "sys/alarm.h"

#include "base/fault.h"
#include "sys/clock.h"
#include "sys/fd.h"
#include "sys/futex.h"

#include <errno.h>
#include <sys/timerfd.h>

int weft__alarm_open(int *into)
{
    int r = weft__fault(WEFT__FAULT_TIMERFD);
    if (r < 0) return r;
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd < 0) return -errno;
    fd = weft__fd_beyond_standard(fd);
    if (fd < 0) return fd;
    *into = fd;
    return 0;
}

/* A value of zero would take it for "none": the first nanosecond is as past as any. */
static struct itimerspec spec_of(int64_t deadline_ns)
{
    if (deadline_ns == WEFT__NEVER) return (struct itimerspec){0};
    if (deadline_ns < 1) deadline_ns = 1;
    return (struct itimerspec){.it_value = {.tv_sec = deadline_ns / WEFT__NS_PER_S,
                                            .tv_nsec = deadline_ns % WEFT__NS_PER_S}};
}

int weft__alarm_set(int fd, int64_t deadline_ns)
{
    struct itimerspec spec = spec_of(deadline_ns);
    return timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, NULL) < 0 ? -errno : 0;
}
