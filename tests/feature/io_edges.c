/* SPDX-License-Identifier: MIT
 *
 * Edges of the driver: what a short read means of which descriptor, an event that is nobody's, the last fd of a clock that stands, a connection that
 * comes while its runtime stops; what can still be done behind that.
 */
#include "base/fault.h"
#include "driver/driver.h"
#include "sched/sched.h"
#include "stuck.h"
#include "sys/event.h"
#include "town.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- what is short and not drained ---- */

struct lines {
    weft_stream *stream;
    char first[64];
    char second[64];
    ssize_t got[2];
};

static int reads_twice(struct lines *l)
{
    l->got[0] = weft_read(l->stream, l->first, sizeof l->first);
    l->got[1] = weft_read(l->stream, l->second, sizeof l->second);
    return 0;
}

/* The reader waits, and both pieces come as one edge: `arrived` says when they are there. Each read gives one. */
static void two_pieces(int fd, int from, const void *pieces, size_t bytes, int arrived, size_t each)
{
    weft_rt *rt;
    struct lines lines = {.stream = NULL};
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
    (void)weft_rt_enter(rt);
    ASSERT_OK(weft_stream_of_fd(fd, &lines.stream));
    weft_task *task = weft_go(reads_twice, &lines);
    while (weft_rt_turn(rt, 0) > 0)
        continue;
    ASSERT_EQ(write(from, pieces, bytes), bytes);
    int there = 0;
    CREW_UNTIL(arrived == 0 || (ioctl(fd, FIONREAD, &there) == 0 && there >= arrived));
    while (!weft_done(task))
        ASSERT_GE(weft_rt_turn(rt, -1), 0);
    ASSERT_OK(weft_detach(task));
    ASSERT_EQ(lines.got[0], each);
    ASSERT_EQ(lines.got[1], each);
    weft_close(lines.stream);
    (void)weft_rt_enter(NULL);
    ASSERT_OK(weft_rt_stop(rt, -1));
}

/* A terminal gives one line at a time, however many there are. */
TEST(io_reads_every_line_of_a_terminal)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0) TEST_SKIP("no terminals here: is /dev/pts there?");
    ASSERT_OK(grantpt(master));
    ASSERT_OK(unlockpt(master));
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    ASSERT_GE(slave, 0);
    two_pieces(slave, master, "a\nb\n", 4, 4, 2);
    close(master);
}

/* So does a pipe that keeps packets apart. */
TEST(io_reads_every_packet_of_a_pipe)
{
    int ends[2];
    ASSERT_OK(pipe2(ends, O_CLOEXEC | O_DIRECT | O_NONBLOCK));
    ASSERT_EQ(write(ends[1], "ab", 2), 2);
    weft_rt *rt;
    struct lines lines = {.stream = NULL};
    char b[8];
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
    (void)weft_rt_enter(rt);
    ASSERT_EQ(read(ends[0], b, sizeof b), 2);
    ASSERT_OK(weft_stream_of_fd(ends[0], &lines.stream));
    weft_task *task = weft_go(reads_twice, &lines);
    while (weft_rt_turn(rt, 0) > 0)
        continue;
    ASSERT_EQ(write(ends[1], "cd", 2), 2);
    ASSERT_EQ(write(ends[1], "ef", 2), 2);
    while (!weft_done(task))
        ASSERT_GE(weft_rt_turn(rt, -1), 0);
    ASSERT_OK(weft_detach(task));
    ASSERT_EQ(lines.got[0], 2);
    ASSERT_EQ(lines.got[1], 2);
    weft_close(lines.stream);
    close(ends[1]);
    (void)weft_rt_enter(NULL);
    ASSERT_OK(weft_rt_stop(rt, -1));
}

/* Nor is it known of a pipe of our own: whoever has the other end may have told it so. */
static void packets_of_a_pipe(struct crew *crew)
{
    weft_stream *reader;
    weft_stream *writer;
    char b[8];
    (void)crew;
    ASSERT_OK(weft_pipe(&reader, &writer));
    int fd = weft_stream_fd(writer);
    ASSERT_OK(fcntl(fd, F_SETFL, O_DIRECT | O_NONBLOCK));
    for (int i = 0; i < 4; i++)
        ASSERT_EQ(weft_write_all(writer, "ab", 2), 2);
    for (int i = 0; i < 4; i++)
        ASSERT_EQ(weft_read(reader, b, sizeof b), 2);
    weft_close(reader);
    weft_close(writer);
}

TEST(io_reads_every_packet_of_its_own_pipe)
{
    crew_each(packets_of_a_pipe);
}

/* ---- an event that is nobody's ---- */

struct rescue {
    weft_stream *pair[2];
    uint32_t worker;
    struct stuck stuck;
};

/* Both on one worker: the port that it opens is its own. */
static int opens_and_blocks(struct rescue *r)
{
    r->worker = weft__here()->worker->index;
    int e = weft_unix_pair(&r->pair[0], &r->pair[1]);
    stuck_here(&r->stuck);
    return e;
}

/* A port's event comes late, when its worker has taken the token and is stuck in a poll. Who looks after that port takes the event out and sleeps again: given
 * back, it would be found again at once, and again. */
TEST_WITH(io_a_late_event_keeps_nobody_awake, .timeout_s = 60)
{
    struct crew crew;
    struct rescue rescue = {.stuck = STUCK_INIT};
    int r = 1;
    crew_start(&crew, 2);
    weft_task *blocker = weft_go(opens_and_blocks, &rescue);
    stuck_until(&rescue.stuck, 1);
    struct weft__port *port = crew.rt->shards[rescue.worker].port;
    ASSERT_OK(weft__event_signal(port->event));
    for (int quiet = 0; quiet < 1000;)
        quiet = port->driver->ops->has(port) ? 0 : quiet + 1;
    weft_stats other;
    ASSERT_OK(weft_rt_worker_stats(crew.rt, 1 - rescue.worker, &other));
    ASSERT_LE(other.spurious, 100); /* else thousands */
    stuck_open(&rescue.stuck);
    ASSERT_OK(weft_join(blocker, &r));
    ASSERT_OK(r);
    weft_close(rescue.pair[0]);
    weft_close(rescue.pair[1]);
    crew_stop(&crew);
}

/* ---- a clock that stands ---- */

static int sleeps_an_hour(void)
{
    return weft_sleep(weft_secs(3600));
}

/* An fd keeps it from moving by itself. When a thread outside closes the last one, all workers are asleep, and one of them must look again. */
TEST(io_the_last_fd_lets_a_clock_go)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        weft_stream *pair[2];
        int r = 1;
        crew_start_with(&crew, &(weft_rt_opts){.workers = crew_sizes[i], .paused = true});
        town_pair(TOWN_UNIX, pair);
        weft_task *task = weft_go(sleeps_an_hour);
        for (int quiet = 0; quiet < 100; sched_yield()) {
            bool asleep = weft__idle_sleeping(&crew.rt->idle) == crew.rt->worker_count;
            quiet = asleep ? quiet + 1 : 0;
        }
        ASSERT(!weft_done(task));
        weft_close(pair[0]);
        weft_close(pair[1]);
        CREW_UNTIL(weft_done(task));
        ASSERT_OK(weft_join(task, &r));
        ASSERT_OK(r);
        crew_stop(&crew);
    }
}

/* ---- a connection that comes while its runtime stops ---- */

static struct {
    _Atomic bool inside;  /* seq_cst, all: a test */
    _Atomic bool stopped; /* weft_rt_stop has returned */
    _Atomic bool wrong;   /* and the runtime is still told */
} ending;

static void *stops(void *rt)
{
    CREW_UNTIL(atomic_load(&ending.inside));
    void *answer = (void *)(intptr_t)weft_rt_stop(rt, -1);
    atomic_store(&ending.stopped, true);
    return answer;
}

/* Where the runtime is told of a port's first fd. It may not go meanwhile; one that does, does so soon. */
static void slow_stir(struct weft__driver *driver, uint32_t port)
{
    (void)driver, (void)port;
    atomic_store(&ending.inside, true);
    for (int i = 0; i < 200 && !atomic_load(&ending.stopped); i++)
        usleep(1000);
    atomic_store(&ending.wrong, atomic_load(&ending.stopped));
}

static int knocks(const weft_listener *l)
{
    struct sockaddr_in at;
    socklen_t bytes = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_GE(fd, 0);
    ASSERT_OK(getsockname(weft_listener_fd(l), (struct sockaddr *)&at, &bytes));
    ASSERT_OK(connect(fd, (struct sockaddr *)&at, bytes));
    return fd;
}

/* A thread outside accepts: nothing but its listener keeps the driver, and nothing at all its runtime. */
TEST(io_a_runtime_that_stops_is_not_told_of_an_fd)
{
    struct crew crew;
    struct town_gate gate;
    weft_stream *c;
    pthread_t thread;
    void *answer;
    crew_start(&crew, 2);
    town_open(&gate);
    crew.rt->driver->stir = slow_stir;
    int client = knocks(gate.listener);
    (void)weft_rt_enter(NULL);
    ASSERT_OK(pthread_create(&thread, NULL, stops, crew.rt));
    ASSERT_OK(weft_accept(gate.listener, &c));
    ASSERT_OK(pthread_join(thread, &answer));
    ASSERT(answer == NULL);
    ASSERT(atomic_load(&ending.inside));
    ASSERT(!atomic_load(&ending.wrong));
    weft_close(c);
    weft_close(gate.listener);
    close(client);
}

/* ---- what can be done at once behind the stop ---- */

static int waits_a_while(weft_stream *s)
{
    char b;
    ssize_t n = 0;
    WEFT_TIMEOUT(weft_ms(1)) n = weft_read(s, &b, 1);
    return (int)n;
}

static int writes_a_while(weft_stream *s)
{
    ssize_t n = 0;
    WEFT_TIMEOUT(weft_ms(1)) n = weft_write(s, "x", 1);
    return (int)n;
}

static void is_full(int fd)
{
    static const char block[4096];
    while (write(fd, block, sizeof block) > 0)
        continue;
    ASSERT_EQ(errno, EAGAIN);
}

static void is_empty(int fd)
{
    char buf[4096];
    while (read(fd, buf, sizeof buf) > 0)
        continue;
    ASSERT_EQ(errno, EAGAIN);
}

static void until(int fd, short what)
{
    struct pollfd p = {.fd = fd, .events = what};
    ASSERT_EQ(poll(&p, 1, -1), 1);
}

/* Of what may find room of its own once more: the kernel moves what it has. */
static void writes_until_full(weft_stream *s)
{
    static const char block[4096];
    ssize_t n;
    while ((n = weft_write(s, block, sizeof block)) > 0)
        continue;
    ASSERT_EQ(n, -ESHUTDOWN);
}

static void runs(int (*fn)(weft_stream *), weft_stream *s)
{
    int r = 1;
    ASSERT_OK(weft_join(weft_go(fn, s), &r));
    ASSERT(r == -ETIME || r == 1); /* 1: it has found room */
}

/* There is nothing to read, and no room, when the runtime stops, and both are known. What comes later is there for whoever looks. */
static void beyond(struct crew *crew, enum town_kind kind)
{
    weft_stream *in[2], *out[2];
    char b[8] = {0};
    town_pair(kind, in);
    town_pair(kind, out);
    runs(waits_a_while, in[1]);
    is_full(weft_stream_fd(out[0]));
    runs(writes_a_while, out[0]);
    crew_stop(crew);
    ASSERT_EQ(weft_read(in[1], b, sizeof b), -ESHUTDOWN);
    writes_until_full(out[0]);
    ASSERT_EQ(write(weft_stream_fd(in[0]), "abc", 3), 3);
    until(weft_stream_fd(in[1]), POLLIN);
    ASSERT_EQ(weft_read_exact(in[1], b, 2), 2);
    ASSERT_EQ(weft_read(in[1], b, sizeof b), 1);
    ASSERT_EQ(b[0], 'c');
    ASSERT_EQ(weft_read(in[1], b, sizeof b), -ESHUTDOWN);
    is_empty(weft_stream_fd(out[1]));
    until(weft_stream_fd(out[0]), POLLOUT);
    ASSERT_EQ(weft_write(out[0], b, 1), 1);
    weft_close(in[0]);
    until(weft_stream_fd(in[1]), POLLIN);
    ASSERT_EQ(weft_read(in[1], b, sizeof b), 0);
    weft_close(in[1]);
    weft_close(out[0]);
    weft_close(out[1]);
}

TEST(io_beyond_a_stop_what_can_be_done_is_done)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        for (int kind = TOWN_TCP; kind <= TOWN_PIPE; kind++) {
            struct crew crew;
            crew_start(&crew, crew_sizes[i]);
            beyond(&crew, (enum town_kind)kind);
        }
    }
}

/* Nobody could wait for a connection that is taken then: it stays in the queue, where its peer does not find it closed. */
TEST(io_beyond_a_stop_no_connection_is_taken)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        struct town_gate gate;
        weft_stream *c;
        char b;
        crew_start(&crew, crew_sizes[i]);
        town_open(&gate);
        crew_stop(&crew);
        int client = knocks(gate.listener);
        ASSERT_EQ(weft_accept(gate.listener, &c), -ESHUTDOWN);
        ASSERT_EQ(recv(client, &b, 1, MSG_DONTWAIT), -1);
        ASSERT_EQ(errno, EAGAIN);
        weft_close(gate.listener);
        close(client);
    }
}

/* ---- a thread that sleeps on the clock of a runtime that stops ---- */

static void *sleeps_outside(void *rt)
{
    (void)weft_rt_enter(rt);
    int r = weft_sleep(weft_secs(3600));
    (void)weft_rt_enter(NULL);
    return (void *)(intptr_t)r;
}

/* It looks whether all is idle, and so at the fds, while the driver goes. */
TEST(io_a_clock_outlives_the_fds_of_its_runtime)
{
    for (uint32_t i = 0; i < test_scaled(30); i++) {
        struct crew crew;
        weft_stream *pair[2];
        pthread_t thread;
        void *answer;
        crew_start_with(&crew, &(weft_rt_opts){.workers = 2, .paused = true});
        town_pair(TOWN_UNIX, pair);
        ASSERT_OK(pthread_create(&thread, NULL, sleeps_outside, crew.rt));
        struct weft__wheel *wheel = &crew.rt->wheels[crew.rt->worker_count];
        CREW_UNTIL(!weft__wheel_idle(wheel)); /* it holds the runtime */
        crew_stop(&crew);
        ASSERT_OK(pthread_join(thread, &answer));
        ASSERT_EQ((intptr_t)answer, 0);
        weft_close(pair[0]);
        weft_close(pair[1]);
    }
}

#if defined(WEFT_FAULTS)
/* ---- a host ---- */

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static int reads_one(weft_stream *s)
{
    char b;
    return (int)weft_read(s, &b, 1);
}

/* The port could not be put into what the host waits for: its fd stays readable until it could, or the host would sleep upon what comes. */
TEST(io_a_host_hears_of_its_fds_in_the_end)
{
    weft_rt *rt;
    weft_stream *pair[2];
    int r = 0;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
    (void)weft_rt_enter(rt);
    int fd = weft_rt_fd(rt);
    ASSERT_GE(fd, 0);
    ASSERT_OK(weft_unix_pair(&pair[0], &pair[1]));
    weft_task *task = weft_go(reads_one, pair[1]);
    weft__fault_arm(WEFT__FAULT_EPOLL_CTL, 1, 3, -ENOMEM);
    while (readable(fd))
        ASSERT_GE(weft_rt_turn(rt, 0), 0);
    ASSERT(!weft_done(task));
    ASSERT_EQ(write(weft_stream_fd(pair[0]), "x", 1), 1);
    ASSERT(readable(fd));
    while (readable(fd))
        ASSERT_GE(weft_rt_turn(rt, 0), 0);
    ASSERT(weft_done(task));
    ASSERT_OK(weft_join(task, &r));
    ASSERT_EQ(r, 1);
    weft__fault_reset();
    weft_close(pair[0]);
    weft_close(pair[1]);
    (void)weft_rt_enter(NULL);
    ASSERT_OK(weft_rt_stop(rt, -1));
}
#endif
