/* SPDX-License-Identifier: MIT
 *
 * epoll - the calls, and the choice between the two waits.
 *
 * epoll_pwait2 is called by number: the C library may be older than the kernel. Filters that answer
 * -EPERM to what they do not know are as good as a kernel without it, since no wait answers -EPERM
 * otherwise.
 */
#include "sys/epoll.h"

#include "base/assert.h"
#include "base/atomic.h"
#include "base/bits.h"
#include "base/fault.h"
#include "sys/clock.h"
#include "sys/fd.h"
#include "sys/futex.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

static _Atomic bool pwait2_missing; /* set by the first wait that finds out; never cleared */

int weft__epoll_open(int *into)
{
    int r = weft__fault(WEFT__FAULT_EPOLL_CREATE);
    if (r < 0) return r;
    int fd = epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0) return -errno;
    fd = weft__fd_beyond_standard(fd);
    if (fd < 0) return fd;
    *into = fd;
    return 0;
}

static int control(int epoll, int op, int fd, uint32_t events, uint64_t data)
{
    struct epoll_event event = {.events = events, .data.u64 = data};
    int r = weft__fault(WEFT__FAULT_EPOLL_CTL);
    if (r < 0) return r;
    return epoll_ctl(epoll, op, fd, &event) < 0 ? -errno : 0;
}

int weft__epoll_add(int epoll, int fd, uint32_t events, uint64_t data)
{
    return control(epoll, EPOLL_CTL_ADD, fd, events, data);
}

int weft__epoll_mod(int epoll, int fd, uint32_t events, uint64_t data)
{
    return control(epoll, EPOLL_CTL_MOD, fd, events, data);
}

int weft__epoll_del(int epoll, int fd)
{
    return control(epoll, EPOLL_CTL_DEL, fd, 0, 0);
}

static bool says_missing(int r)
{
    return r == -ENOSYS || r == -EPERM;
}

static int wait_ns(int epoll, struct epoll_event *into, int max, int64_t timeout_ns)
{
    int r = weft__fault(WEFT__FAULT_EPOLL_PWAIT2);
    if (r < 0) return r;
    struct timespec span = {
        .tv_sec = (time_t)(timeout_ns / WEFT__NS_PER_S),
        .tv_nsec = (long)(timeout_ns % WEFT__NS_PER_S),
    };
    struct timespec *until = timeout_ns == WEFT__NEVER ? NULL : &span;
    long n = syscall(SYS_epoll_pwait2, epoll, into, max, until, NULL, (size_t)0);
    return n < 0 ? -errno : (int)n;
}

static int whole_ms(int64_t timeout_ns)
{
    if (timeout_ns == WEFT__NEVER) return -1;
    uint64_t ms = weft__div_up((uint64_t)timeout_ns, (uint64_t)WEFT__NS_PER_MS);
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

static int wait_ms(int epoll, struct epoll_event *into, int max, int64_t timeout_ns)
{
    int n = epoll_pwait(epoll, into, max, whole_ms(timeout_ns), NULL);
    return n < 0 ? -errno : n;
}

int weft__epoll_wait(int epoll, struct epoll_event *into, int max, int64_t timeout_ns)
{
    weft_assert(timeout_ns >= 0);
    weft_assert(max > 0);
    int r = weft__fault(WEFT__FAULT_EPOLL_WAIT);
    if (r < 0) return r;
    if (!load_relaxed(&pwait2_missing)) { /* relaxed: whoever sees it late finds out for itself */
        r = wait_ns(epoll, into, max, timeout_ns);
        if (!says_missing(r)) return r;
        store_relaxed(&pwait2_missing, true); /* relaxed: nothing hangs on it */
    }
    return wait_ms(epoll, into, max, timeout_ns);
}

int weft__epoll_probe_pwait2(void)
{
    struct epoll_event nothing;
    int r = wait_ns(-1, &nothing, 1, 0); /* whoever has it complains of the descriptor */
    return r == -EBADF ? 0 : r;
}
