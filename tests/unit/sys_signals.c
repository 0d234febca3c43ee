/* SPDX-License-Identifier: MIT
 *
 * signals: each is counted and told to all who listen, the disposition comes back with the last of them, what must not be caught is refused.
 */
#include "sys/epoll.h"
#include "sys/fd.h"
#include "sys/futex.h"
#include "sys/signals.h"
#include "test.h"

#include "base/atomic.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t ours;

static void handler(int number)
{
    (void)number;
    ours++;
}

static int watch(int fd)
{
    int epoll;
    ASSERT_OK(weft__epoll_open(&epoll));
    ASSERT_OK(weft__epoll_add(epoll, fd, EPOLLIN | EPOLLET, 0));
    return epoll;
}

static int reported(int epoll)
{
    struct epoll_event event;
    return weft__epoll_wait(epoll, &event, 1, 0);
}

TEST(signals_are_counted_and_told_to_all)
{
    int fds[3];
    int epolls[3];
    static const int numbers[] = {SIGUSR1, SIGUSR1, SIGHUP};

    for (int i = 0; i < 3; i++) {
        ASSERT_OK(weft__signals_open(numbers[i], &fds[i]));
        epolls[i] = watch(fds[i]);
        ASSERT_EQ(reported(epolls[i]), 0);
    }
    for (uint32_t n = 1; n <= 3; n++) { /* each time anew, though nobody reads it */
        raise(SIGUSR1);
        ASSERT_EQ(weft__signals_count(SIGUSR1), n);
        for (int i = 0; i < 3; i++)
            ASSERT_EQ(reported(epolls[i]), 1);
    }
    ASSERT_EQ(weft__signals_count(SIGHUP), 0);
    for (int i = 0; i < 3; i++) {
        weft__signals_close(numbers[i]);
        weft__fd_close(fds[i]);
        weft__fd_close(epolls[i]);
    }
}

TEST(signals_are_as_before_when_nobody_listens)
{
    struct sigaction action = {.sa_handler = handler};
    int a;
    int b;

    sigaction(SIGUSR2, &action, NULL);
    ASSERT_OK(weft__signals_open(SIGUSR2, &a));
    ASSERT_OK(weft__signals_open(SIGUSR2, &b));
    raise(SIGUSR2);
    ASSERT_EQ(ours, 0);
    weft__signals_close(SIGUSR2);
    raise(SIGUSR2);
    ASSERT_EQ(ours, 0);
    ASSERT_EQ(weft__signals_count(SIGUSR2), 2);
    weft__signals_close(SIGUSR2);
    raise(SIGUSR2);
    ASSERT_EQ(ours, 1);
    ASSERT_EQ(weft__signals_count(SIGUSR2), 2);
    weft__fd_close(a);
    weft__fd_close(b);
}

TEST(signals_that_must_not_be_caught)
{
    static const int numbers[] = {0, -1, 65, SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, 32};
    int fd = -7;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        ASSERT_EQ(weft__signals_open(numbers[i], &fd), -EINVAL);
    ASSERT_EQ(fd, -7);
}

TEST(signals_kill_a_child_as_usual)
{
    int fd;
    int status;
    ASSERT_OK(weft__signals_open(SIGTERM, &fd));
    pid_t child = fork();
    if (child == 0) {
        raise(SIGTERM);
        _exit(0);
    }
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT(WIFSIGNALED(status));
    ASSERT_EQ(WTERMSIG(status), SIGTERM);
    ASSERT_EQ(weft__signals_count(SIGTERM), 0);
    weft__signals_close(SIGTERM);
    weft__fd_close(fd);
}

static void reads_its_own(int number)
{
    int fd;
    int epoll;
    if (weft__signals_open(number, &fd) < 0) _exit(1);
    epoll = watch(fd);
    uint32_t before = weft__signals_count(number);
    raise(number);
    if (weft__signals_count(number) != before + 1 || reported(epoll) != 1) _exit(2);
    weft__signals_close(number);
    weft__fd_close(fd);
    weft__fd_close(epoll);
}

/* Of those that the parent listens to, and others; the parent does not hear of it. A handler that the program has put in our place stays. */
TEST(signals_of_a_child_are_its_own)
{
    struct sigaction action = {.sa_handler = handler};
    int fds[2];
    int status;
    ASSERT_OK(weft__signals_open(SIGUSR1, &fds[0]));
    ASSERT_OK(weft__signals_open(SIGHUP, &fds[1]));
    int epoll = watch(fds[0]);
    sigaction(SIGHUP, &action, NULL);
    pid_t child = fork();
    if (child == 0) {
        weft__signals_forget(); /* as fork.c has it */
        raise(SIGHUP);
        if (ours != 1) _exit(3);
        reads_its_own(SIGUSR2);
        reads_its_own(SIGUSR1);
        raise(SIGUSR1); /* as it was before: by default */
        _exit(4);
    }
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT(WIFSIGNALED(status));
    ASSERT_EQ(WTERMSIG(status), SIGUSR1);
    ASSERT_EQ(reported(epoll), 0);
    ASSERT_EQ(weft__signals_count(SIGUSR1), 0);
    raise(SIGUSR1);
    ASSERT_EQ(reported(epoll), 1);
    weft__fd_close(epoll);
    weft__signals_close(SIGUSR1);
    weft__signals_close(SIGHUP);
    weft__fd_close(fds[0]);
    weft__fd_close(fds[1]);
}

static _Atomic bool enough; /* relaxed: a flag */

static void *sends(void *arg)
{
    (void)arg;
    while (!load_relaxed(&enough))
        pthread_kill(pthread_self(), SIGUSR1);
    return NULL;
}

/* Who listens comes and goes while they come: nobody writes to a descriptor that is closed, which debug builds would see. */
TEST(signals_come_while_listeners_go)
{
    struct sigaction action = {.sa_handler = handler};
    pthread_t thread;
    int fd;
    sigaction(SIGUSR1, &action, NULL);
    ASSERT_OK(pthread_create(&thread, NULL, sends, NULL));
    for (uint64_t i = 0; i < test_scaled(2000); i++) {
        ASSERT_OK(weft__signals_open(SIGUSR1, &fd));
        weft__signals_close(SIGUSR1);
        weft__fd_close(fd);
    }
    store_relaxed(&enough, true);
    pthread_join(thread, NULL);
}
