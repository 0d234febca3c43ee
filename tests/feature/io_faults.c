/* SPDX-License-Identifier: MIT
 *
 * What goes wrong around sockets: no descriptors left, connections that end too early, signals, resets, calls that fail one after the other.
 */
#include "base/fault.h"
#include "driver/driver.h"
#include "slot.h"
#include "town.h"

#include <sys/resource.h>
#include <unistd.h>

#if defined(WEFT_FAULTS)

/* ---- accept ---- */

static int accepts(weft_listener *l, weft_stream **into)
{
    return weft_accept(l, into);
}

struct accepting {
    WEFT_FRAME(int);
    weft_listener *l;
    weft_stream **into;
    struct weft_accept accept;
};
static weft_async(accepting)
{
    weft_begin;
    weft_await(f->accept, weft_accept, f->l, f->into);
    weft_return(f->accept.ret);
    weft_end;
}

static weft_task *acceptor(weft_listener *l, weft_stream **into, bool stackless)
{
    return stackless ? weft_spawn(accepting, l, into) : weft_go(accepts, l, into);
}

/* Without descriptors for a while: it waits, tries again a few times and no more, and gets its connection. */
static void starves(struct crew *crew)
{
    static const int errors[] = {-EMFILE, -ENFILE, -ENOMEM, -ENOBUFS};
    (void)crew;
    for (int i = 0; i < 4; i++) {
        struct town_gate gate;
        weft_stream *a = NULL;
        weft_stream *b = NULL;
        int r = 1;
        town_open(&gate);
        ASSERT_OK(weft_tcp_connect(gate.address, &a));
        weft__fault_arm(WEFT__FAULT_ACCEPT, 1, 2, errors[i]);
        weft_task *task = acceptor(gate.listener, &b, i % 2);
        ASSERT_OK(weft_join(task, &r));
        ASSERT_OK(r);
        ASSERT_EQ(weft__fault_calls(WEFT__FAULT_ACCEPT), 3); /* two in vain, and the one */
        weft__fault_reset();
        weft_close(a);
        weft_close(b);
        weft_close(gate.listener);
    }
}

TEST(accept_waits_for_descriptors)
{
    crew_each(starves);
}

/* The real thing: the process's limit is reached, and lifted again. */
TEST(accept_waits_for_the_limit_to_be_lifted)
{
    struct crew crew;
    struct rlimit before, low;
    struct town_gate gate;
    weft_stream *a, *b;
    int r = 1;
    if (getenv("WEFT_TEST_UNDER"))
        TEST_SKIP("Valgrind takes a connection, closes it, and then says that there was none");
    crew_start(&crew, 2);
    town_open(&gate);
    ASSERT_OK(weft_tcp_connect(gate.address, &a));
    ASSERT_OK(getrlimit(RLIMIT_NOFILE, &before));
    low = before;
    low.rlim_cur = 3; /* below all that are open: nothing new */
    ASSERT_OK(setrlimit(RLIMIT_NOFILE, &low));
    weft__fault_reset();
    weft_task *task = acceptor(gate.listener, &b, false);
    CREW_UNTIL(weft__fault_calls(WEFT__FAULT_ACCEPT) >= 2);
    ASSERT_OK(setrlimit(RLIMIT_NOFILE, &before));
    ASSERT_OK(weft_join(task, &r));
    ASSERT_OK(r);
    weft_close(a);
    weft_close(b);
    weft_close(gate.listener);
    crew_stop(&crew);
}

/* While it waits for descriptors it can be cancelled, and the listener closed. */
static void starved_and_stopped(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 4; i++) {
        struct town_gate gate;
        weft_stream *a = NULL;
        weft_stream *b = NULL;
        int r = 1;
        town_open(&gate);
        ASSERT_OK(weft_tcp_connect(gate.address, &a));
        weft__fault_arm(WEFT__FAULT_ACCEPT, 1, UINT32_MAX, -EMFILE);
        weft_task *task = acceptor(gate.listener, &b, i % 2);
        CREW_UNTIL(weft__fault_calls(WEFT__FAULT_ACCEPT) >= 1);
        if (i / 2) {
            weft_close(gate.listener);
        } else {
            weft_cancel(task);
        }
        ASSERT_OK(weft_join(task, &r));
        ASSERT_EQ(r, i / 2 ? -EBADF : -ECANCELED);
        weft__fault_reset();
        if (!(i / 2)) weft_close(gate.listener);
        weft_close(a);
    }
}

TEST(accept_without_descriptors_can_be_stopped)
{
    crew_each(starved_and_stopped);
}

/* A connection that ended in the queue is passed over; an error of the listener's own is told. */
static void aborted(struct crew *crew)
{
    static const int passed[] = {-ECONNABORTED, -EPROTO, -ENETDOWN, -EHOSTUNREACH, -EPERM, -EINTR};
    struct town_gate gate;
    (void)crew;
    town_open(&gate);
    for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++) {
        weft_stream *a = NULL;
        weft_stream *b = NULL;
        int r = 1;
        ASSERT_OK(weft_tcp_connect(gate.address, &a));
        weft__fault_arm(WEFT__FAULT_ACCEPT, 1, 3, passed[i]);
        ASSERT_OK(weft_join(acceptor(gate.listener, &b, i % 2), &r));
        ASSERT_OK(r);
        weft__fault_reset();
        weft_close(a);
        weft_close(b);
    }
    weft_stream *c;
    weft__fault_arm(WEFT__FAULT_ACCEPT, 1, 1, -EINVAL);
    ASSERT_EQ(weft_accept(gate.listener, &c), -EINVAL);
    weft__fault_reset();
    weft_close(gate.listener);
}

TEST(accept_passes_over_what_ended_early)
{
    crew_each(aborted);
}

/* ---- signals ---- */

static int reads_three(weft_stream *from)
{
    char b[3];
    return (int)weft_read_exact(from, b, sizeof b);
}

/* Who reads waits when the bytes come, so that each call of the way is made; by memory there are none. */
static void interrupted(struct crew *crew)
{
    static const enum weft__fault_kind kinds[] = {WEFT__FAULT_RECV,       WEFT__FAULT_SEND,
                                                  WEFT__FAULT_READV,      WEFT__FAULT_WRITEV,
                                                  WEFT__FAULT_EPOLL_WAIT, WEFT__FAULT_URING_ENTER};
    (void)crew;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        for (int kind = 0; kind < TOWN_KINDS; kind++) {
            weft_stream *pair[2];
            int r = 0;
            weft__fault_arm(kinds[k], 1, 3, -EINTR);
            town_pair((enum town_kind)kind, pair);
            weft_task *reader = weft_go(reads_three, pair[1]);
            CREW_UNTIL(kind == TOWN_MEMORY || slot_is_awaited(pair[1], WEFT__SIDE_READ));
            ASSERT_EQ(weft_write_all(pair[0], "abc", 3), 3);
            ASSERT_OK(weft_join(reader, &r));
            ASSERT_EQ(r, 3);
            weft__fault_reset();
            weft_close(pair[0]);
            weft_close(pair[1]);
        }
    }
}

TEST(io_goes_on_behind_a_signal)
{
    crew_each(interrupted);
}

/* ---- resets ---- */

static int reads_once(weft_stream *c)
{
    char b[10];
    return (int)weft_read(c, b, sizeof b);
}

static int writes_until_error(weft_stream *c)
{
    static const char block[65536];
    ssize_t n;
    while ((n = weft_write(c, block, sizeof block)) > 0) {
    }
    return (int)n;
}

/* Both who wait hear of a reset, each with an error. */
static void resets(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 10; i++) {
        weft_stream *pair[2];
        int r[2] = {1, 1};
        town_pair(TOWN_TCP, pair);
        weft_task *reader = weft_go(reads_once, pair[0]);
        weft_task *writer = weft_go(writes_until_error, pair[0]);
        if (i % 2) {
            char b[1000];
            ASSERT_GE(weft_read(pair[1], b, sizeof b), 1); /* in the middle of it */
        }
        ASSERT_OK(weft_sock_set(pair[1], WEFT_SOCK_LINGER_S, 0));
        weft_close(pair[1]);
        ASSERT_OK(weft_join(reader, &r[0]));
        ASSERT_OK(weft_join(writer, &r[1]));
        ASSERT(r[0] == -ECONNRESET ||
               r[0] == 0); /* the socket tells one of them, the other finds the end */
        ASSERT(r[1] == -ECONNRESET || r[1] == -EPIPE);
        weft_close(pair[0]);
    }
}

TEST(io_reset_wakes_both_sides)
{
    crew_each(resets);
}

/* ---- one call fails ---- */

/* Every kernel call of these in turn, with an error; then nothing is left open (the harness looks), and it works again. */
static int makes_and_uses(void)
{
    struct town_gate gate;
    weft_stream *pair[2];
    weft_addr addr;
    char b[1];
    int r = weft_tcp_listen("127.0.0.1:0", &gate.listener);
    if (r < 0) return r;
    r = weft_listener_addr(gate.listener, &addr);
    if (r < 0) goto out_listener;
    (void)weft_addr_print(&addr, gate.address, sizeof gate.address);
    r = weft_tcp_connect(gate.address, &pair[0]);
    if (r < 0) goto out_listener;
    r = weft_accept(gate.listener, &pair[1]);
    if (r < 0) goto out_first;
    ssize_t n = weft_write_all(pair[0], "x", 1);
    if (n > 0) n = weft_read_exact(pair[1], b, 1);
    r = n < 0 ? (int)n : 0;
    weft_close(pair[1]);
out_first:
    weft_close(pair[0]);
out_listener:
    weft_close(gate.listener);
    if (r < 0) return r;
    r = weft_pipe(&pair[0], &pair[1]);
    if (r < 0) return r;
    n = weft_write_all(pair[1], "x", 1);
    if (n > 0) n = weft_read_exact(pair[0], b, 1);
    weft_close(pair[0]);
    weft_close(pair[1]);
    return n < 0 ? (int)n : 0;
}

/* A call that the driver in use does without. */
static bool is_not_made(enum weft__fault_kind kind)
{
    if (!town_is_on_uring()) return false;
    return kind == WEFT__FAULT_EPOLL_CTL || kind == WEFT__FAULT_EPOLL_CREATE || kind == WEFT__FAULT_EVENTFD || kind == WEFT__FAULT_RECV;
}

TEST(io_survives_each_failing_call)
{
    static const enum weft__fault_kind kinds[] = {
        WEFT__FAULT_SOCKET,   WEFT__FAULT_BIND,      WEFT__FAULT_LISTEN,       WEFT__FAULT_CONNECT,
        WEFT__FAULT_RECV,     WEFT__FAULT_SEND,      WEFT__FAULT_PIPE,         WEFT__FAULT_ALLOC,
        WEFT__FAULT_SOCKNAME, WEFT__FAULT_EPOLL_CTL, WEFT__FAULT_EPOLL_CREATE, WEFT__FAULT_EVENTFD};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        int error = kinds[k] == WEFT__FAULT_SOCKNAME ? -EIO : -ENOMEM;
        int failures = 0;
        for (uint32_t nth = 1; nth < 100; nth++) {
            weft_rt *rt;
            ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1}, &rt));
            weft_rt *before = weft_rt_enter(rt);
            weft__fault_arm(kinds[k], nth, 1, error);
            int r = makes_and_uses();
            bool reached = weft__fault_calls(kinds[k]) >= nth;
            weft__fault_reset();
            ASSERT(r == 0 || r == error);
            if (r == error) failures++;
            ASSERT_OK(makes_and_uses());
            (void)weft_rt_enter(before);
            ASSERT_OK(weft_rt_stop(rt, -1));
            if (!reached) break;
        }
        ASSERT(failures >= 1 || is_not_made(kinds[k]));
    }
}

/* ---- closed ---- */

struct closing {
    weft_stream *pair[2];
};

static int waits_for_reading(struct closing *c)
{
    char b[8];
    return (int)weft_read(c->pair[0], b, sizeof b);
}

static int waits_for_writing(struct closing *c)
{
    return writes_until_error(c->pair[0]);
}

struct waiting {
    WEFT_FRAME(int);
    struct closing *c;
    char b[8];
    struct weft_read rd;
};
static weft_async(waiting)
{
    weft_begin;
    weft_await(f->rd, weft_read, f->c->pair[0], f->b, sizeof f->b);
    weft_return((int)f->rd.ret);
    weft_end;
}

/* Closed at any moment while one reads and one writes, on other workers: both are answered, neither by another's data. */
static void closed_under_them(struct crew *crew)
{
    uint64_t random = pool_seed(3);
    (void)crew;
    for (uint64_t i = 0; i < test_scaled(60); i++) {
        struct closing c;
        int r[2] = {1, 1};
        town_pair(i % 2 ? TOWN_TCP : TOWN_UNIX, c.pair);
        weft_task *reader = i % 4 < 2 ? weft_go(waits_for_reading, &c) : weft_spawn(waiting, &c);
        weft_task *writer = weft_go(waits_for_writing, &c);
        CREW_UNTIL((slot_users(c.pair[0]) & (WEFT__USE_READER | WEFT__USE_WRITER)) ==
                   (WEFT__USE_READER | WEFT__USE_WRITER));
        for (uint32_t k = pool_random(&random, 200); k > 0; k--)
            cpu_pause();
        weft_close(c.pair[0]);
        ASSERT_OK(weft_join(reader, &r[0]));
        ASSERT_OK(weft_join(writer, &r[1]));
        ASSERT_EQ(r[0], -EBADF);
        ASSERT_EQ(r[1], -EBADF);
        weft_close(c.pair[1]);
    }
}

TEST(io_closed_answers_who_waits)
{
    crew_each(closed_under_them);
}

/* Connections come and go on the same few numbers, each with bytes of its own: nobody hears of another's. */
static int churns(struct town_gate *gate, uint64_t who, uint64_t rounds)
{
    for (uint64_t i = 0; i < rounds; i++) {
        unsigned char out[64], in[64];
        weft_stream *c;
        int r = weft_tcp_connect(gate->address, &c);
        if (r < 0) return r;
        town_fill(out, sizeof out, who * 1000003 + i);
        ssize_t n = weft_write_all(c, out, sizeof out);
        if (n > 0) n = weft_read_exact(c, in, sizeof in);
        weft_close(c);
        if (n != sizeof in || memcmp(in, out, sizeof in) != 0) return n < 0 ? (int)n : -EIO;
    }
    return 0;
}

static int echoes(weft_stream *c)
{
    char b[64];
    ssize_t n;
    while ((n = weft_read(c, b, sizeof b)) > 0)
        if (weft_write_all(c, b, (size_t)n) < 0) break;
    weft_close(c);
    return 0;
}

static int serves(weft_listener *l)
{
    weft_stream *c;
    int r;
    while ((r = weft_accept(l, &c)) == 0)
        (void)weft_detach(weft_go(echoes, c));
    return r == -ECANCELED ? 0 : r;
}

static void churn(struct crew *crew)
{
    enum { CLIENTS = 6 };
    struct town_gate gate;
    weft_task *client[CLIENTS];
    int r = 1;
    (void)crew;
    town_open(&gate);
    weft_task *server = weft_go(serves, gate.listener);
    for (uint64_t i = 0; i < CLIENTS; i++)
        client[i] = weft_go(churns, &gate, i, test_scaled(50));
    for (uint64_t i = 0; i < CLIENTS; i++) {
        ASSERT_OK(weft_join(client[i], &r));
        ASSERT_OK(r);
    }
    weft_cancel(server);
    ASSERT_OK(weft_join(server, &r));
    ASSERT_OK(r);
    weft_close(gate.listener);
}

TEST(io_numbers_that_are_used_again)
{
    crew_each(churn);
}

#else
TEST(io_faults_need_a_build_with_faults)
{
    TEST_SKIP("this build has no fault points");
}
#endif
