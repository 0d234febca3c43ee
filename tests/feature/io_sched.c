/* SPDX-License-Identifier: MIT
 *
 * Fds in the scheduler: workers that sleep in their port and are woken out of it, events behind a poll that does not end, hosts, a clock that stands, the
 * end of the runtime, fork; and what a round trip costs.
 */
#include "base/fault.h"
#include "child.h"
#include "driver/driver.h"
#include "looks.h"
#include "on_uring.h"
#include "sched/sched.h"
#include "slot.h"
#include "stuck.h"
#include "town.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- asleep in a port ---- */

static int adds(_Atomic uint32_t *sum)
{
    (void)fetch_add_relaxed(sum, 1);
    return 0;
}

/* Every worker has an fd, so all sleep in their ports: tasks from outside reach them there, one by one. */
static void woken_in_ports(struct crew *crew)
{
    weft_stream *pair[8][2];
    _Atomic uint32_t sum = 0;
    (void)crew;
    for (int i = 0; i < 8; i++)
        town_pair(TOWN_UNIX, pair[i]);
    for (uint32_t i = 0; i < test_scaled(2000); i++) {
        int r = 1;
        ASSERT_OK(weft_join(weft_go(adds, &sum), &r));
        ASSERT_OK(r);
    }
    ASSERT_EQ(load_relaxed(&sum), test_scaled(2000));
    for (int i = 0; i < 8; i++) {
        weft_close(pair[i][0]);
        weft_close(pair[i][1]);
    }
}

TEST(io_sleepers_are_woken_in_their_ports)
{
    crew_each(woken_in_ports);
}

static int bounces(weft_stream *in, weft_stream *out, uint32_t rounds)
{
    for (uint32_t i = 0; i < rounds; i++) {
        char b;
        if (weft_read(in, &b, 1) != 1) return -EIO;
        if (weft_write(out, &b, 1) != 1) return -EIO;
    }
    return 0;
}

/* Bytes that go round, while timers run and threads outside push: every sleep has three who could end it. */
static void everything_at_once(struct crew *crew)
{
    weft_stream *a[2], *b[2];
    _Atomic uint32_t sum = 0;
    int r = 1;
    (void)crew;
    town_pair(TOWN_TCP, a);
    town_pair(TOWN_PIPE, b);
    uint32_t rounds = (uint32_t)test_scaled(1000);
    weft_task *one = weft_go(bounces, a[1], b[0], rounds);
    weft_task *two = weft_go(bounces, b[1], a[0], rounds - 1);
    ASSERT_EQ(write(weft_stream_fd(a[0]), "x", 1),
              1); /* not by weft_write: it comes round before that has returned */
    for (uint32_t i = 0; i < rounds / 4; i++) {
        if (i % 16 == 0) ASSERT_OK(weft_sleep(weft_us(50)));
        ASSERT_OK(weft_join(weft_go(adds, &sum), &r));
    }
    ASSERT_OK(weft_join(one, &r));
    ASSERT_OK(r);
    ASSERT_OK(weft_join(two, &r));
    ASSERT_OK(r);
    weft_close(a[0]);
    weft_close(a[1]);
    weft_close(b[0]);
    weft_close(b[1]);
}

TEST(io_beside_timers_and_wakes)
{
    crew_each(everything_at_once);
}

/* A timer ends a sleep in a port, too, and not early. */
static int sleeps_beside_an_fd(void)
{
    weft_stream *pair[2];
    town_pair(TOWN_UNIX, pair);
    weft_time before = weft_now();
    int r = weft_sleep(weft_us(300));
    if (weft_now() - before < weft_us(300)) r = -EIO;
    weft_close(pair[0]);
    weft_close(pair[1]);
    return r;
}

static void timers_in_ports(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 20; i++) {
        int r = 1;
        ASSERT_OK(weft_join(weft_go(sleeps_beside_an_fd), &r));
        ASSERT_OK(r);
    }
}

TEST(io_timers_end_a_sleep_in_a_port)
{
    crew_each(timers_in_ports);
}

/* ---- busy workers ---- */

static int spins_until(_Atomic bool *stop)
{
    while (!load_relaxed(stop)) /* relaxed: a flag */
        (void)weft_yield();
    return 0;
}

/* A worker that never runs dry looks at its port at its fairness tick. */
static void fair_to_fds(struct crew *crew)
{
    weft_stream *pair[2];
    _Atomic bool stop = false;
    weft_task *spinner[8];
    int r = 1;
    char b;
    (void)crew;
    town_pair(TOWN_UNIX, pair);
    for (int i = 0; i < 8; i++)
        spinner[i] = weft_go(spins_until, &stop);
    for (int i = 0; i < 20; i++) {
        weft_task *task = weft_go(bounces, pair[1], pair[1], 1);
        ASSERT_EQ(weft_write(pair[0], "x", 1), 1);
        ASSERT_OK(weft_join(task, &r));
        ASSERT_OK(r);
        ASSERT_EQ(weft_read(pair[0], &b, 1), 1);
    }
    store_relaxed(&stop, true);
    for (int i = 0; i < 8; i++)
        ASSERT_OK(weft_join(spinner[i], &r));
    weft_close(pair[0]);
    weft_close(pair[1]);
}

TEST(io_is_served_beside_tasks_that_never_sleep)
{
    crew_each(fair_to_fds);
}

/* ---- a poll that does not end ---- */

struct rescue {
    weft_stream *pair[2];
    struct stuck stuck;
};

static int opens_here(struct rescue *r)
{
    return weft_unix_pair(&r->pair[0], &r->pair[1]);
}

/* A plain wait, which holds its worker; 1: it is not the one with the fd. */
static int blocks(struct rescue *r)
{
    if (weft__here()->worker->shard->port != slot_of(r->pair[1])->port) return 1;
    stuck_here(&r->stuck);
    return 0;
}

static int frees(struct rescue *r)
{
    char b;
    if (weft_read(r->pair[1], &b, 1) != 1) return -EIO;
    stuck_open(&r->stuck);
    return 0;
}

/* One worker is stuck, and one waits for an fd in its port. Gives both tasks: [0] waits, [1] is stuck. */
static void gets_stuck(struct rescue *rescue, weft_task *tasks[2])
{
    int r = 1;
    weft_task *opener = weft_go_as((.pinned = true), opens_here, rescue);
    ASSERT_OK(weft_join(opener, &r));
    ASSERT_OK(r);
    tasks[0] = weft_go(frees, rescue);
    CREW_UNTIL(slot_users(rescue->pair[1]) & WEFT__USE_READER); /* it waits: its task is nobody's */
    for (;;) { /* pinned tasks from outside go to the workers in turns */
        tasks[1] = weft_go_as((.pinned = true), blocks, rescue);
        CREW_UNTIL(weft_done(tasks[1]) || stuck_came(&rescue->stuck) > 0);
        if (stuck_came(&rescue->stuck) > 0) return;
        ASSERT_OK(weft_join(tasks[1], &r));
    }
}

static void is_freed(struct rescue *rescue, weft_task *tasks[2])
{
    for (int i = 0; i < 2; i++) {
        int r = 1;
        ASSERT_OK(weft_join(tasks[i], &r));
        ASSERT_OK(r);
    }
    weft_close(rescue->pair[0]);
    weft_close(rescue->pair[1]);
}

/* The fd is in the port of the worker that is stuck, and what comes to it is what ends that: somebody else must look there. */
TEST(io_behind_a_poll_that_does_not_end)
{
    for (int i = 0; i < 3; i++) {
        struct crew crew;
        struct rescue rescue = {.stuck = STUCK_INIT};
        weft_task *tasks[2];
        crew_start(&crew, 2);
        gets_stuck(&rescue, tasks);
        ASSERT_EQ(write(weft_stream_fd(rescue.pair[0]), "x", 1), 1);
        is_freed(&rescue, tasks);
        crew_stop(&crew);
    }
}

/* The same without the monitor's thread: its looks are made by hand. The first sees what waits, the second that nothing has moved, and no third is needed. (One is enough where an earlier answer
 * of the kernel's waited there when it was looked at before.) */
TEST(io_behind_a_poll_that_does_not_end_is_found_by_two_looks)
{
    for (int i = 0; i < 3; i++) {
        struct crew crew;
        struct rescue rescue = {.stuck = STUCK_INIT};
        weft_task *tasks[2];
        crew_start_with(&crew, &(weft_rt_opts){.workers = 2, .monitor_us = -1});
        gets_stuck(&rescue, tasks);
        ASSERT_EQ(write(weft_stream_fd(rescue.pair[0]), "x", 1), 1);
        CREW_UNTIL(weft__io_has(slot_of(rescue.pair[1])->port)); /* as soon as the kernel says so */
        ASSERT(!weft_done(tasks[0]));
        if (looks_once(crew.rt) == 0) ASSERT_EQ(looks_once(crew.rt), 1);
        is_freed(&rescue, tasks);
        crew_stop(&crew);
    }
}

/* ---- hosts ---- */

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

/* The host's fd tells of data that comes to a socket, whether it was asked for before the socket or after. */
static void hosted(bool early)
{
    weft_rt *rt;
    weft_stream *pair[2];
    int fd = -1;
    int r = 1;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
    (void)weft_rt_enter(rt);
    if (early) fd = weft_rt_fd(rt);
    ASSERT_OK(weft_unix_pair(&pair[0], &pair[1]));
    weft_task *task = weft_go(bounces, pair[1], pair[1], 1);
    if (!early) fd = weft_rt_fd(rt);
    ASSERT_GE(fd, 0);
    while (readable(fd))
        ASSERT_GE(weft_rt_turn(rt, 0), 0);
    ASSERT(!weft_done(task));
    ASSERT_EQ(write(weft_stream_fd(pair[0]), "x", 1), 1);
    ASSERT(readable(fd));
    ASSERT_GE(weft_rt_turn(rt, 0), 1);
    ASSERT(weft_done(task));
    ASSERT_OK(weft_join(task, &r));
    while (readable(fd))
        ASSERT_GE(weft_rt_turn(rt, 0), 0);
    weft_close(pair[0]);
    weft_close(pair[1]);
    (void)weft_rt_enter(NULL);
    ASSERT_OK(weft_rt_stop(rt, -1));
}

TEST(io_wakes_a_host)
{
    hosted(true);
    hosted(false);
}

/* A turn that waits is ended by an fd. */
TEST(io_ends_the_wait_of_a_turn)
{
    weft_rt *rt;
    weft_stream *pair[2];
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
    (void)weft_rt_enter(rt);
    ASSERT_OK(weft_unix_pair(&pair[0], &pair[1]));
    weft_task *task = weft_go(bounces, pair[1], pair[1], 1);
    ASSERT_GE(weft_rt_turn(rt, 0), 1);
    ASSERT_EQ(write(weft_stream_fd(pair[0]), "x", 1), 1);
    while (!weft_done(task))
        ASSERT_GE(weft_rt_turn(rt, -1), 0);
    ASSERT_OK(weft_detach(task));
    weft_close(pair[0]);
    weft_close(pair[1]);
    (void)weft_rt_enter(NULL);
    ASSERT_OK(weft_rt_stop(rt, -1));
}

/* ---- a clock that stands ---- */

static int reads_in_time(weft_stream *s)
{
    char b;
    ssize_t n = -1;
    WEFT_TIMEOUT(weft_secs(3600)) n = weft_read(s, &b, 1);
    return (int)n;
}

/* With an fd it does not move by itself: the hour is not over before the byte is there. Told to, it moves. */
TEST(io_keeps_a_clock_that_stands)
{
    weft_rt *rt;
    weft_stream *pair[2];
    int r = 1;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1, .paused = true}, &rt));
    (void)weft_rt_enter(rt);
    ASSERT_OK(weft_unix_pair(&pair[0], &pair[1]));
    weft_task *task = weft_go(reads_in_time, pair[1]);
    for (int i = 0; i < 5; i++)
        ASSERT_GE(weft_rt_turn(rt, weft_us(100)), 0);
    ASSERT(!weft_done(task));
    ASSERT_EQ(write(weft_stream_fd(pair[0]), "x", 1), 1);
    while (!weft_done(task))
        ASSERT_GE(weft_rt_turn(rt, -1), 0);
    ASSERT_OK(weft_join(task, &r));
    ASSERT_EQ(r, 1);
    task = weft_go(reads_in_time, pair[1]);
    ASSERT_GE(weft_rt_turn(rt, 0), 1);
    ASSERT_OK(weft_clock_advance(rt, weft_secs(3601)));
    while (!weft_done(task))
        ASSERT_GE(weft_rt_turn(rt, -1), 0);
    ASSERT_OK(weft_join(task, &r));
    ASSERT_EQ(r, -ETIME);
    weft_close(pair[0]);
    weft_close(pair[1]);
    task = weft_go(
        sleeps_beside_an_fd); /* it is gone: now it moves again, but for the pair of its own */
    ASSERT_GE(weft_rt_turn(rt, 0), 1);
    ASSERT_OK(weft_clock_advance(rt, weft_secs(1)));
    while (!weft_done(task))
        ASSERT_GE(weft_rt_turn(rt, -1), 0);
    ASSERT_OK(weft_join(task, &r));
    ASSERT_OK(r);
    (void)weft_rt_enter(NULL);
    ASSERT_OK(weft_rt_stop(rt, -1));
}

/* ---- the end of a runtime ---- */

static void *reads_outside(void *arg)
{
    char b;
    return (void *)weft_read((weft_stream *)arg, &b, 1);
}

/* A thread waits for a socket whose runtime stops: it is told, and what can be done at once is still done. */
TEST(io_outlives_its_runtime)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        weft_stream *pair[2];
        pthread_t thread;
        void *answer;
        char b;
        crew_start(&crew, crew_sizes[i]);
        town_pair(TOWN_UNIX, pair);
        ASSERT_OK(pthread_create(&thread, NULL, reads_outside, pair[1]));
        CREW_UNTIL(slot_users(pair[1]) & WEFT__USE_READER);
        crew_stop(&crew);
        ASSERT_OK(pthread_join(thread, &answer));
        ASSERT_EQ((intptr_t)answer, -ESHUTDOWN);
        ASSERT_EQ(weft_read(pair[0], &b, 1), -ESHUTDOWN);
        ASSERT_EQ(weft_write(pair[0], "x", 1), 1);
        weft_close(pair[0]);
        weft_close(pair[1]);
    }
}

/* Tasks that wait are cancelled by a stop, as by any other. */
static int reads_and_closes(weft_stream *s, int *seen)
{
    char b;
    *seen = (int)weft_read(s, &b, 1);
    weft_close(s);
    return 0;
}

TEST(io_tasks_are_cancelled_by_a_stop)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        weft_stream *pair[2];
        int seen = 1;
        crew_start(&crew, crew_sizes[i]);
        town_pair(TOWN_UNIX, pair);
        ASSERT_OK(weft_detach(weft_go(reads_and_closes, pair[1], &seen)));
        crew_stop(&crew);
        ASSERT_EQ(seen, -ECANCELED);
        weft_close(pair[0]);
    }
}

/* ---- fork ---- */

TEST_WITH(io_in_the_child_of_a_fork, .timeout_s = 120)
{
    struct crew crew;
    weft_stream *pair[2], *own[2];
    char b;
    crew_start(&crew, 2);
    town_pair(TOWN_UNIX, pair);
    pid_t child = fork();
    if (child == 0) {
        CHILD_NEEDS(weft_read(pair[1], &b, 1) == -ECHILD);
        CHILD_NEEDS(weft_write(pair[1], "x", 1) == -ECHILD);
        CHILD_NEEDS(weft_shutdown(pair[1]) == -ECHILD);
        weft_close(pair[0]);
        weft_close(pair[1]);
        weft_rt *rt;
        CHILD_NEEDS(weft_pipe(&own[0], &own[1]) == -ENXIO);
        CHILD_NEEDS(weft_rt_new(&(weft_rt_opts){.workers = 1}, &rt) == 0);
        (void)weft_rt_enter(rt);
        CHILD_NEEDS(weft_pipe(&own[0], &own[1]) == 0);
        CHILD_NEEDS(weft_write(own[1], "x", 1) == 1);
        CHILD_NEEDS(weft_read(own[0], &b, 1) == 1);
        _exit(7);
    }
    ASSERT(ended_by(exit_code_of(child), 7));
    ASSERT_EQ(weft_write(pair[0], "y", 1), 1); /* the child has closed its own, and nothing else */
    ASSERT_EQ(weft_read(pair[1], &b, 1), 1);
    ASSERT_EQ(b, 'y');
    weft_task *task = weft_go(bounces, pair[1], pair[1], 1);
    ASSERT_EQ(weft_write(pair[0], "z", 1), 1); /* and events still come */
    ASSERT_EQ(weft_read(pair[0], &b, 1), 1);
    ASSERT_OK(weft_detach(task));
    weft_close(pair[0]);
    weft_close(pair[1]);
    crew_stop(&crew);
}

/* ---- what it costs ---- */

#if defined(WEFT_FAULTS)
/* A client without a runtime: its calls are not counted, nor its events. */
static int plain_client(const struct town_gate *gate)
{
    weft_addr addr;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_GE(fd, 0);
    ASSERT_OK(weft_addr_parse(gate->address, &addr));
    ASSERT_OK(connect(fd, (const struct sockaddr *)(const void *)addr.weft__data, addr.bytes));
    return fd;
}

static void round_trip(int fd)
{
    char b[64] = "ping";
    ASSERT_EQ(write(fd, b, 4), 4);
    ASSERT_EQ(read(fd, b, sizeof b), 4);
}

static int echoes_blocks(weft_stream *c, uint32_t rounds)
{
    char b[4096];
    for (uint32_t i = 0; i < rounds; i++) {
        ssize_t n = weft_read(c, b, sizeof b);
        if (n <= 0 || weft_write_all(c, b, (size_t)n) != n) return -EIO;
    }
    return 0;
}

/* A live connection: each round trip is one receive, one send, and one wait; interest never changes. With room in its buffer a read is the
 * last of its data, so none is made in vain. */
TEST(io_round_trip_costs_a_read_and_a_write)
{
    enum { ROUNDS = 300 };
    weft_rt *rt;
    struct town_gate gate;
    weft_stream *c;
    int r = 1;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1}, &rt));
    counts_as_quick(rt); /* a worker that is held up sends by calls */
    (void)weft_rt_enter(rt);
    town_open(&gate);
    int client = plain_client(&gate);
    ASSERT_OK(weft_accept(gate.listener, &c));
    weft_task *task = weft_go(echoes_blocks, c, ROUNDS + 1);
    round_trip(client);
    /* its first try may have come before the first byte: from here on it knows when to try */
    struct weft__fdslot *slot = slot_of(c);
    CREW_UNTIL(!(load_relaxed(&slot->word) & WEFT__READY_READ)); /* relaxed: a look */
    weft__fault_reset();
    for (int i = 0; i < ROUNDS; i++)
        round_trip(client);
    ASSERT_OK(weft_join(task, &r));
    ASSERT_OK(r);
    ASSERT_EQ(weft__fault_calls(WEFT__FAULT_EPOLL_CTL), 0);
    /* a ring brings the bytes with the event, and takes them along when it is handed what is wanted */
    bool ring = town_is_on_uring();
    ASSERT_EQ(weft__fault_calls(WEFT__FAULT_SEND), ring ? 0 : ROUNDS);
    ASSERT_EQ(weft__fault_calls(WEFT__FAULT_RECV), ring ? 0 : ROUNDS);
    /* all that comes is far below the bound of one request, which answers each time */
    ASSERT_LE(weft__fault_calls(WEFT__FAULT_URING_FETCH), 1);
    ASSERT_LE(weft__fault_calls(WEFT__FAULT_EPOLL_WAIT) + weft__fault_calls(WEFT__FAULT_URING_ENTER),
              (ring ? 2 : 1) * ROUNDS + 10); /* and now and then one at the fairness tick */
    weft_close(c);
    weft_close(gate.listener);
    ASSERT_OK(close(client));
    (void)weft_rt_enter(NULL);
    ASSERT_OK(weft_rt_stop(rt, -1));
}

/* Returns how many selects went to the yield, and took nothing from the others. */
static int loses(weft_listener *l, weft_stream *s, int rounds)
{
    int lost = 0;
    for (int i = 0; i < rounds; i++) {
        struct weft_accept accept;
        struct weft_read read;
        struct weft_yield yield;
        weft_stream *c;
        char b;
        int which =
            weft_select_biased(weft_arm(accept, weft_accept, l, &c),
                               weft_arm(read, weft_read, s, &b, 1), weft_arm(yield, weft_yield));
        lost += which == 2 && accept.ret == -ECANCELED && read.ret == -ECANCELED;
    }
    return lost;
}

/* Who loses a select is unlinked in memory: the first try tells that there is nothing, and on a ring the first wait asks for it; from then on a select makes no call, however often it is lost.
 * What comes afterwards is there for whoever asks. */
static void loses_for_nothing(struct crew *crew)
{
    enum { ROUNDS = 1000 };
    struct town_gate gate;
    weft_stream *pair[2];
    weft_stream *c;
    char b = 0;
    int lost = 0;
    (void)crew;
    town_open(&gate);
    town_pair(TOWN_TCP, pair);
    weft__fault_reset();
    ASSERT_OK(weft_join(weft_go(loses, gate.listener, pair[1], ROUNDS), &lost));
    ASSERT_EQ(lost, ROUNDS);
    ASSERT_EQ(weft__fault_calls(WEFT__FAULT_EPOLL_CTL), 0);
    ASSERT_LE(weft__fault_calls(WEFT__FAULT_ACCEPT), 1);
    ASSERT_LE(weft__fault_calls(WEFT__FAULT_RECV), 1);
    /* a request each, the sleeps before the task and behind it, and who is woken by them */
    ASSERT_LE(weft__fault_calls(WEFT__FAULT_URING_ENTER), 10);
    int client = plain_client(&gate);
    ASSERT_OK(weft_accept(gate.listener, &c));
    ASSERT_EQ(weft_write_all(pair[0], "x", 1), 1);
    ASSERT_EQ(weft_read(pair[1], &b, 1), 1);
    ASSERT_EQ(b, 'x');
    ASSERT_OK(close(client));
    weft_close(c);
    weft_close(pair[0]);
    weft_close(pair[1]);
    weft_close(gate.listener);
}

TEST(io_that_loses_a_select_re_arms_nothing)
{
    crew_each_of(loses_for_nothing, 1, -1);
}

/* Without an fd nothing of it is called: not the wait, not the signal of an event. */
static void costs_nothing(struct crew *crew)
{
    _Atomic uint32_t sum = 0;
    (void)crew;
    weft__fault_reset();
    for (int i = 0; i < 200; i++) {
        int r = 1;
        ASSERT_OK(weft_join(weft_go(adds, &sum), &r));
        if (i % 50 == 0) ASSERT_OK(weft_sleep(weft_us(100)));
    }
    ASSERT_EQ(weft__fault_calls(WEFT__FAULT_EPOLL_WAIT), 0);
    ASSERT_EQ(weft__fault_calls(WEFT__FAULT_EPOLL_CREATE), 0);
    ASSERT_EQ(weft__fault_calls(WEFT__FAULT_EVENTFD), 0);
    ASSERT_EQ(weft__fault_calls(WEFT__FAULT_WRITE), 0);
    ASSERT_EQ(weft__fault_calls(WEFT__FAULT_POLL), 0);
}

TEST(io_costs_nothing_without_an_fd)
{
    crew_each(costs_nothing);
}
#endif
