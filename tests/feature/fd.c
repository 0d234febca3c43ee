/* SPDX-License-Identifier: MIT
 *
 * Waits for any descriptor: eventfds, pipes and timers of the program's own; what cannot be waited for says so; what is taken back is free.
 */
#include "driver/driver.h"
#include "town.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

static int event_of(void)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    ASSERT_GE(fd, 0);
    return fd;
}

static void signal_it(int fd)
{
    uint64_t one = 1;
    ASSERT_EQ(write(fd, &one, sizeof one), sizeof one);
}

static void drain_it(int fd)
{
    uint64_t count;
    ASSERT_EQ(read(fd, &count, sizeof count), sizeof count);
}

static int waits(weft_fd *w)
{
    return weft_fd_readable(w);
}

struct waiting {
    WEFT_FRAME(int);
    weft_fd *w;
    struct weft_fd_readable wait;
};
static weft_async(waiting)
{
    weft_begin;
    weft_await(f->wait, weft_fd_readable, f->w);
    weft_return(f->wait.ret);
    weft_end;
}

static weft_task *waiter(weft_fd *w, int i)
{
    return i % 2 ? weft_spawn(waiting, w) : weft_go(waits, w);
}

/* All who wait are woken; and what was not read is there for the next, as with poll(2). */
static void wakes_all(struct crew *crew)
{
    weft_task *task[10];
    weft_fd *w;
    int fd = event_of();
    (void)crew;
    ASSERT_OK(weft_fd_open(fd, &w));
    ASSERT_EQ(weft_fd_number(w), fd);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 10; i++)
            task[i] = waiter(w, i);
        signal_it(fd);
        for (int i = 0; i < 10; i++) {
            int r = 1;
            ASSERT_OK(weft_join(task[i], &r));
            ASSERT_OK(r);
        }
        ASSERT_OK(weft_fd_readable(w));
        ASSERT_OK(weft_fd_writable(w));
        drain_it(fd);
    }
    weft_close(w);
}

TEST(fd_wakes_all_who_wait)
{
    crew_each(wakes_all);
}

/* A wait after everything was read waits, although nobody told weft of the read. */
static void looks_each_time(struct crew *crew)
{
    weft_fd *w;
    int fd = event_of();
    (void)crew;
    ASSERT_OK(weft_fd_open(fd, &w));
    for (int i = 0; i < 20; i++) {
        signal_it(fd);
        ASSERT_OK(weft_fd_readable(w));
        drain_it(fd);
        weft_task *task = waiter(w, i);
        for (int k = 0; k < 20; k++)
            sched_yield();
        ASSERT(!weft_done(task));
        signal_it(fd);
        int r = 1;
        ASSERT_OK(weft_join(task, &r));
        ASSERT_OK(r);
        drain_it(fd);
    }
    weft_close(w);
}

TEST(fd_waits_are_like_poll)
{
    crew_each(looks_each_time);
}

/* ---- try ---- */

static ssize_t read_count(int fd, void *arg)
{
    ssize_t n = read(fd, arg, sizeof(uint64_t));
    return n < 0 ? -errno : n;
}

static int tries(weft_fd *w, uint64_t *count)
{
    return (int)weft_fd_try(w, WEFT_FD_READ, read_count, count);
}

static void tries_until(struct crew *crew)
{
    weft_fd *w;
    int fd = event_of();
    (void)crew;
    ASSERT_OK(weft_fd_open(fd, &w));
    for (int i = 0; i < 50; i++) {
        uint64_t count = 0;
        int r = 1;
        weft_task *task = weft_go(tries, w, &count);
        signal_it(fd);
        ASSERT_OK(weft_join(task, &r));
        ASSERT_EQ(r, sizeof count);
        ASSERT_EQ(count, 1);
    }
    ASSERT_EQ(weft_fd_try(w, WEFT_FD_READ, NULL, NULL), -EINVAL);
    weft_close(w);
}

TEST(fd_tries_until_there_is_something)
{
    crew_each(tries_until);
}

/* ---- urgent ---- */

static int waits_urgent(weft_fd *w)
{
    return weft_fd_wait(w, WEFT_FD_URGENT);
}

static void urgent(struct crew *crew)
{
    weft_stream *pair[2];
    weft_fd *w;
    int r = 1;
    char b[10];
    (void)crew;
    town_pair(TOWN_TCP, pair);
    ASSERT_OK(weft_fd_open(dup(weft_stream_fd(pair[1])), &w));
    weft_task *task = weft_go(waits_urgent, w);
    ASSERT_EQ(weft_write_all(pair[0], "ab", 2), 2);
    ASSERT_EQ(weft_read_exact(pair[1], b, 2), 2);
    ASSERT(!weft_done(task));
    ASSERT_EQ(send(weft_stream_fd(pair[0]), "!", 1, MSG_OOB), 1);
    ASSERT_OK(weft_join(task, &r));
    ASSERT_OK(r);
    ASSERT_EQ(weft_write_all(pair[0], "cd", 2),
              2); /* a read stops at the mark: what is behind it is still read */
    ASSERT_EQ(weft_read_exact(pair[1], b, 2), 2);
    ASSERT_EQ(memcmp(b, "cd", 2), 0);
    weft_close(w);
    weft_close(pair[0]);
    weft_close(pair[1]);
}

TEST(fd_hears_urgent_data)
{
    crew_each(urgent);
}

struct urgently {
    WEFT_FRAME(int);
    weft_fd *w;
    struct weft_fd_wait wait;
};
static weft_async(urgently)
{
    weft_begin;
    weft_await(f->wait, weft_fd_wait, f->w, WEFT_FD_URGENT);
    weft_return(f->wait.ret);
    weft_end;
}

/* How a peer goes: it says that it writes no more, it closes, it resets, with data of its own unread or not. */
static void leave(weft_stream *s, int how)
{
    if (how == 0) {
        ASSERT_OK(weft_shutdown(s));
        return;
    }
    if (how == 2) ASSERT_OK(weft_sock_set(s, WEFT_SOCK_LINGER_S, 0));
    weft_close(s);
}

/* Nothing urgent can come any more, so who waits for it is told; also beside data that nobody has read. */
static void urgent_ends(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 12; i++) {
        weft_stream *pair[2];
        weft_fd *w;
        int r = 1;
        int how = i % 3;
        town_pair(TOWN_TCP, pair);
        ASSERT_OK(weft_fd_open(dup(weft_stream_fd(pair[1])), &w));
        if (i / 6) ASSERT_EQ(weft_write_all(pair[0], "ab", 2), 2);
        weft_task *task = i / 3 % 2 ? weft_spawn(urgently, w) : weft_go(waits_urgent, w);
        const struct weft__fdslot *slot = (const struct weft__fdslot *)(const void *)w;
        CREW_UNTIL(load_relaxed(&slot->users) == WEFT__USE_SHARED); /* relaxed: it has begun */
        leave(pair[0], how);
        ASSERT_OK(weft_join(task, &r));
        ASSERT_OK(r);
        ASSERT_OK(weft_fd_wait(w, WEFT_FD_URGENT)); /* and again */
        weft_close(w);
        weft_close(pair[1]);
        if (how == 0) weft_close(pair[0]);
    }
}

TEST(fd_waits_for_urgent_data_end_with_the_peer)
{
    crew_each(urgent_ends);
}

/* An error counts, too: a pipe that nobody reads any more. */
static void urgent_fails(struct crew *crew)
{
    int ends[2];
    weft_fd *w;
    int r = 1;
    (void)crew;
    ASSERT_OK(pipe2(ends, O_CLOEXEC | O_NONBLOCK));
    ASSERT_OK(weft_fd_open(ends[1], &w));
    weft_task *task = weft_spawn(urgently, w);
    const struct weft__fdslot *slot = (const struct weft__fdslot *)(const void *)w;
    CREW_UNTIL(load_relaxed(&slot->users) == WEFT__USE_SHARED); /* relaxed: it has begun */
    ASSERT_OK(close(ends[0]));
    ASSERT_OK(weft_join(task, &r));
    ASSERT_OK(r);
    weft_close(w);
}

TEST(fd_waits_for_urgent_data_end_with_an_error)
{
    crew_each(urgent_fails);
}

/* ---- what cannot be, and what is over ---- */

static void refuses(struct crew *crew)
{
    weft_fd *w;
    weft_stream *s;
    (void)crew;
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    ASSERT_GE(file, 0);
    ASSERT_EQ(weft_fd_open(file, &w), -EPERM); /* a plain file */
    ASSERT_EQ(weft_stream_of_fd(file, &s), -EPERM);
    ASSERT_OK(close(file)); /* it is still ours */
    ASSERT_EQ(weft_fd_open(100000, &w), -EBADF);
    ASSERT_EQ(weft_fd_open(-1, &w), -EBADF);
    ASSERT_EQ(weft_fd_open(0, NULL), -EINVAL);
    ASSERT_EQ(weft_fd_readable(NULL), -EINVAL);
    ASSERT_EQ(weft_fd_number(NULL), -EINVAL);
    ASSERT_EQ(weft_fd_take(NULL), -EINVAL);
    int fd = event_of();
    ASSERT_OK(weft_fd_open(fd, &w));
    int both = WEFT_FD_READ | WEFT_FD_WRITE;
    /* NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): the mistake itself */
    ASSERT_EQ(weft_fd_wait(w, (enum weft_fd_side)both), -EINVAL);
    weft_close(w);
    weft_close((weft_fd *)NULL);
}

TEST(fd_refuses_what_cannot_be_watched)
{
    crew_each(refuses);
}

/* What a file is called does not tell: on every driver it is as epoll(7) says. */
static void knows_what_has_readiness(struct crew *crew)
{
    weft_fd *w;
    (void)crew;
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    ASSERT_GE(null, 0);
    ASSERT_EQ(weft_fd_open(null, &w), -EPERM);
    close(null);
    int mounts = open("/proc/self/mounts", O_RDONLY | O_CLOEXEC); /* says when there is another */
    if (mounts < 0) TEST_SKIP("no /proc here");
    ASSERT_OK(weft_fd_open(mounts, &w));
    ASSERT_OK(weft_fd_readable(w));
    weft_close(w);
}

TEST(fd_is_watched_if_the_kernel_can)
{
    crew_each(knows_what_has_readiness);
}

/* What is refused is still the caller's, and of whoever else has it open: it blocks as before. Of one port, so that what is watched is refused. */
TEST(fd_refused_blocks_as_before)
{
    struct crew crew;
    weft_fd *w;
    weft_stream *s;
    weft_listener *l;
    int ends[2];
    crew_start(&crew, 1);
    ASSERT_OK(pipe2(ends, O_CLOEXEC));
    ASSERT_OK(weft_fd_open(ends[0], &w));
    ASSERT_EQ(weft_stream_of_fd(ends[0], &s), -EEXIST);
    ASSERT_EQ(fcntl(ends[0], F_GETFL) & O_NONBLOCK, 0);
    weft_close(w);
    close(ends[1]);
    int door = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_GE(door, 0);
    struct sockaddr any = {.sa_family = AF_UNIX};
    ASSERT_OK(bind(door, &any, sizeof(any.sa_family))); /* the kernel names it */
    ASSERT_OK(listen(door, 1));
    ASSERT_OK(weft_fd_open(door, &w));
    ASSERT_EQ(weft_listener_of_fd(NULL, door, &l), -EEXIST);
    ASSERT_EQ(fcntl(door, F_GETFL) & O_NONBLOCK, 0);
    weft_close(w);
    crew_stop(&crew);
}

static void closes_under_waiters(struct crew *crew)
{
    (void)crew;
    for (int round = 0; round < 30; round++) {
        weft_task *task[4];
        weft_fd *w;
        ASSERT_OK(weft_fd_open(event_of(), &w));
        for (int i = 0; i < 4; i++)
            task[i] = waiter(w, i);
        const struct weft__fdslot *slot = (const struct weft__fdslot *)(const void *)w;
        CREW_UNTIL(load_relaxed(&slot->users) ==
                   4 * WEFT__USE_SHARED); /* relaxed: all have begun */
        ASSERT_EQ(weft_fd_take(w), -EBUSY);
        weft_close(w);
        for (int i = 0; i < 4; i++) {
            int r = 1;
            ASSERT_OK(weft_join(task[i], &r));
            ASSERT_EQ(r, -EBADF);
        }
    }
}

TEST(fd_closed_answers_who_waits)
{
    crew_each(closes_under_waiters);
}

static void takes_back(struct crew *crew)
{
    weft_fd *w;
    int fd = event_of();
    (void)crew;
    for (int i = 0; i < 5; i++) {
        ASSERT_OK(weft_fd_open(fd, &w));
        weft_fd *twice;
        if (crew->workers == 1 || crew->workers == -1) ASSERT_EQ(weft_fd_open(fd, &twice), -EEXIST);
        ASSERT_EQ(weft_fd_take(w), fd);
        signal_it(fd);
        drain_it(fd);
    }
    ASSERT_OK(close(fd));
}

TEST(fd_taken_back_is_free)
{
    crew_each(takes_back);
}

/* Closed by its number behind our back: what is left of it does no harm. */
static void closed_early(struct crew *crew)
{
    weft_fd *w;
    (void)crew;
    int fd = event_of();
    int other = dup(fd);
    ASSERT_GE(other, 0);
    ASSERT_OK(weft_fd_open(fd, &w));
    signal_it(other);
    ASSERT_OK(weft_fd_readable(w));
    ASSERT_EQ(dup2(other, fd), fd); /* the number is another's, the event's registration is gone */
    weft_close(w);
    ASSERT_OK(close(other));
}

TEST(fd_closed_behind_our_back)
{
    crew_each(closed_early);
}
