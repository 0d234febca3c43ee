/* SPDX-License-Identifier: MIT
 *
 * epoll: what is ready is reported with its word, time-outs are never early by either wait, signals
 * interrupt, faults leave nothing.
 */
#include "base/fault.h"
#include "sys/clock.h"
#include "sys/epoll.h"
#include "sys/event.h"
#include "sys/fd.h"
#include "sys/futex.h"
#include "sys/thread.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

struct pair {
    int epoll;
    int event;
};

static struct pair pair_open(void)
{
    struct pair p;
    ASSERT_OK(weft__epoll_open(&p.epoll));
    ASSERT_OK(weft__event_open(&p.event));
    return p;
}

static void pair_close(struct pair *p)
{
    weft__fd_close(p->event);
    weft__fd_close(p->epoll);
}

TEST(epoll_is_close_on_exec)
{
    struct pair p = pair_open();
    ASSERT(fcntl(p.epoll, F_GETFD) & FD_CLOEXEC);
    pair_close(&p);
}

TEST(epoll_reports_what_is_ready_with_its_word)
{
    struct pair p = pair_open();
    struct epoll_event events[4];

    ASSERT_OK(weft__epoll_add(p.epoll, p.event, EPOLLIN, UINT64_C(0x123456789abcdef0)));
    ASSERT_EQ(weft__epoll_wait(p.epoll, events, 4, 0), 0);
    ASSERT_OK(weft__event_signal(p.event));
    ASSERT_EQ(weft__epoll_wait(p.epoll, events, 4, WEFT__NEVER), 1);
    ASSERT(events[0].data.u64 == UINT64_C(0x123456789abcdef0));
    ASSERT_EQ(events[0].events, EPOLLIN);

    ASSERT_OK(weft__epoll_mod(p.epoll, p.event, EPOLLOUT, 7));
    ASSERT_EQ(weft__epoll_wait(p.epoll, events, 4, 1), 1);
    ASSERT_EQ(events[0].data.u64, 7);
    ASSERT_EQ(events[0].events, EPOLLOUT);

    ASSERT_OK(weft__epoll_del(p.epoll, p.event));
    ASSERT_EQ(weft__epoll_wait(p.epoll, events, 4, 0), 0);
    pair_close(&p);
}

/* Edge-triggered: reported once, and again after a mod. */
TEST(epoll_edge_is_reported_once_until_modified)
{
    struct pair p = pair_open();
    struct epoll_event event;

    ASSERT_OK(weft__epoll_add(p.epoll, p.event, EPOLLIN | EPOLLET, 1));
    ASSERT_OK(weft__event_signal(p.event));
    ASSERT_EQ(weft__epoll_wait(p.epoll, &event, 1, 0), 1);
    ASSERT_EQ(weft__epoll_wait(p.epoll, &event, 1, 0), 0);
    ASSERT_OK(weft__epoll_mod(p.epoll, p.event, EPOLLIN | EPOLLET, 1));
    ASSERT_EQ(weft__epoll_wait(p.epoll, &event, 1, 0), 1);
    pair_close(&p);
}

TEST(epoll_control_answers_what_the_kernel_says)
{
    struct pair p = pair_open();
    int plain = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

    ASSERT_EQ(weft__epoll_mod(p.epoll, p.event, EPOLLIN, 0), -ENOENT);
    ASSERT_EQ(weft__epoll_del(p.epoll, p.event), -ENOENT);
    ASSERT_OK(weft__epoll_add(p.epoll, p.event, EPOLLIN, 0));
    ASSERT_EQ(weft__epoll_add(p.epoll, p.event, EPOLLIN, 0), -EEXIST);
    ASSERT_EQ(weft__epoll_add(p.epoll, -1, EPOLLIN, 0), -EBADF);
    ASSERT_EQ(weft__epoll_add(p.epoll, plain, EPOLLIN, 0), -EPERM);
    weft__fd_close(plain);
    pair_close(&p);
}

static void wait_is_never_early(int epoll, int64_t timeout_ns)
{
    struct epoll_event event;
    int64_t begun_ns = weft__clock_now();
    ASSERT_EQ(weft__epoll_wait(epoll, &event, 1, timeout_ns), 0);
    ASSERT_GE(weft__clock_now() - begun_ns, timeout_ns);
}

static void waits_are_never_early(void)
{
    static const int64_t spans_ns[] = {0, 1, 999, 100000, 1000000, 1000001, 2500000};
    struct pair p = pair_open();
    for (size_t i = 0; i < sizeof(spans_ns) / sizeof(spans_ns[0]); i++)
        wait_is_never_early(p.epoll, spans_ns[i]);
    pair_close(&p);
}

TEST(epoll_wait_is_never_early)
{
    waits_are_never_early();
}

TEST(epoll_wait_on_a_bad_descriptor)
{
    struct epoll_event event;
    struct pair p = pair_open();
    ASSERT_EQ(weft__epoll_wait(-1, &event, 1, 0), -EBADF);
    ASSERT_EQ(weft__epoll_wait(p.event, &event, 1, 0), -EINVAL);
    pair_close(&p);
}

static void nothing(int number)
{
    (void)number;
}

static _Atomic int interrupted;

static void *wait_until_interrupted(void *arg)
{
    struct epoll_event event;
    while (weft__epoll_wait(*(int *)arg, &event, 1, WEFT__NEVER) != -EINTR)
        continue;
    store_relaxed(&interrupted, 1); /* relaxed: a flag, nothing hangs on it */
    return NULL;
}

TEST(epoll_wait_is_interrupted_by_a_handler)
{
    struct sigaction action = {.sa_handler = nothing, .sa_flags = SA_RESTART}; /* in vain */
    struct pair p = pair_open();
    pthread_t thread;

    sigaction(SIGUSR1, &action, NULL);
    ASSERT_OK(pthread_create(&thread, NULL, wait_until_interrupted, &p.epoll));
    while (!load_relaxed(&interrupted)) { /* relaxed: a flag */
        pthread_kill(thread, SIGUSR1);
        weft__thread_yield();
    }
    pthread_join(thread, NULL);
    pair_close(&p);
}

TEST(epoll_probe_agrees_with_the_call)
{
    struct epoll_event event;
    int r = epoll_pwait2(-1, &event, 1, &(struct timespec){0}, NULL);
    int said = r < 0 ? -errno : 0;
    ASSERT_EQ(weft__epoll_probe_pwait2(), said == -EBADF ? 0 : said);
}

#if defined(WEFT_FAULTS)

/* On a kernel without epoll_pwait2, and behind a filter that answers -EPERM, the wait is by
 * milliseconds, rounded up; and asks only once. */
static void falls_back(int error)
{
    struct pair p = pair_open();
    struct epoll_event event;

    weft__fault_arm(WEFT__FAULT_EPOLL_PWAIT2, 1, 1, error);
    waits_are_never_early();
    ASSERT_EQ(weft__fault_calls(WEFT__FAULT_EPOLL_PWAIT2), 1);
    ASSERT_OK(weft__epoll_add(p.epoll, p.event, EPOLLIN, 3));
    ASSERT_OK(weft__event_signal(p.event));
    ASSERT_EQ(weft__epoll_wait(p.epoll, &event, 1, WEFT__NEVER), 1);
    ASSERT_EQ(weft__epoll_wait(p.epoll, &event, 1, WEFT__NEVER - 1), 1); /* too long for ms */
    ASSERT_EQ(event.data.u64, 3);
    pair_close(&p);
}

TEST(epoll_wait_falls_back_without_pwait2)
{
    falls_back(-ENOSYS);
}

TEST(epoll_wait_falls_back_behind_a_filter)
{
    falls_back(-EPERM);
}

TEST(epoll_fails_when_told)
{
    struct epoll_event event;
    int fd = -7;

    weft__fault_arm(WEFT__FAULT_EPOLL_CREATE, 1, 1, -EMFILE);
    ASSERT_EQ(weft__epoll_open(&fd), -EMFILE);
    ASSERT_EQ(fd, -7);
    struct pair p = pair_open();
    weft__fault_arm(WEFT__FAULT_EPOLL_CTL, 1, 1, -ENOSPC);
    ASSERT_EQ(weft__epoll_add(p.epoll, p.event, EPOLLIN, 0), -ENOSPC);
    ASSERT_EQ(weft__epoll_del(p.epoll, p.event), -ENOENT); /* it was not added */
    weft__fault_arm(WEFT__FAULT_EPOLL_WAIT, 2, 1, -EINTR);
    ASSERT_EQ(weft__epoll_wait(p.epoll, &event, 1, 0), 0);
    ASSERT_EQ(weft__epoll_wait(p.epoll, &event, 1, WEFT__NEVER), -EINTR);
    weft__fault_arm(WEFT__FAULT_EPOLL_PWAIT2, 1, 1, -ENOSYS);
    ASSERT_EQ(weft__epoll_probe_pwait2(), -ENOSYS);
    pair_close(&p);
}

#endif
