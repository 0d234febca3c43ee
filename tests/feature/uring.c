/* SPDX-License-Identifier: MIT
 *
 * The driver on io_uring, where it differs from the other: what is fetched ahead is bounded and in order, requests that end for whatever reason are asked for anew,
 * and queues that are full lose nothing. Everything else is seen by all tests of sockets, which run on both.
 */
#include "driver/uring.h"
#include "base/fault.h"
#include "base/rand.h"
#include "fetched.h"
#include "peer.h"
#include "sched/sched.h"
#include "sys/event.h"
#include "town.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- fetched ahead ---- */

/* A first byte is read by a wait, so that more is fetched ahead; then nobody reads. What is held stays bounded, and all of it comes, in order, whatever the sizes. */
static void fetches_ahead(int workers)
{
    weft_rt *rt = on_uring(workers);
    weft_stream *pair[2];
    unsigned char room[7001], right[7001];
    uint64_t at = 0;
    struct weft__rand random;
    weft__rand_seed(&random, test_seed());
    town_pair(TOWN_TCP, pair);
    weft_task *task = weft_go(writes_much, pair[0]);
    while (at < MUCH) {
        size_t want = 1 + weft__rand_below(&random, sizeof room - 1);
        if (weft__rand_chance(&random, 1, 64)) weft_sleep(weft_ms(1)); /* a reader that dawdles */
        ASSERT_LE(unread_of(pair[1]), bound_of(rt));
        ssize_t n = weft_read(pair[1], room, want);
        ASSERT_GE(n, 1);
        town_fill(right, (size_t)n, at);
        ASSERT_EQ(memcmp(room, right, (size_t)n), 0);
        at += (uint64_t)n;
    }
    ASSERT_EQ(weft_read(pair[1], room, 1), 0);
    int r = 1;
    ASSERT_OK(weft_join(task, &r));
    ASSERT_OK(r);
    weft_close(pair[1]);
    stops(rt);
}

TEST(uring_fetches_ahead_in_order_and_bounded)
{
    fetches_ahead(1);
    fetches_ahead(2);
    fetches_ahead(4);
}

/* To one that does not read: the request is taken back at the bound, the peer is held up by its window, and nothing is lost. */
static void holds_so_much(int workers)
{
    weft_rt *rt = on_uring(workers);
    weft_stream *pair[2];
    int r = 0;
    town_pair(TOWN_TCP, pair);
    weft_task *first = weft_go(reads_one, pair[1]);
    CREW_UNTIL(asked_of(pair[1]) & WEFT__URING_FETCH);
    weft_task *writer = weft_go(writes_much, pair[0]);
    ASSERT_OK(weft_join(first, &r));
    ASSERT_EQ(r, town_byte(0));
    CREW_UNTIL(!(asked_of(pair[1]) & WEFT__URING_FETCH));
    ASSERT_GE(unread_of(pair[1]), WEFT__URING_UNREAD / 2);
    ASSERT_LE(unread_of(pair[1]), bound_of(rt));
    weft_task *rest = weft_go(reads_all, pair[1], UINT64_C(1));
    ASSERT_OK(weft_join(rest, &r));
    ASSERT_OK(r);
    ASSERT_OK(weft_join(writer, &r));
    ASSERT_OK(r);
    weft_close(pair[1]);
    stops(rt);
}

TEST(uring_holds_so_much_and_no_more)
{
    holds_so_much(1);
    holds_so_much(2);
    holds_so_much(4);
}

/* More data than the port has buffers, for many who do not read: the rest stays in the kernel, and is read from there. */
TEST(uring_without_buffers_reads_by_calls)
{
    enum { STREAMS = 48, EACH = 60000 };
    weft_rt *rt = on_uring(1);
    static weft_stream *pair[STREAMS][2];
    static unsigned char all[EACH], room[EACH];
    for (int i = 0; i < STREAMS; i++) {
        int r = 0;
        town_pair(TOWN_TCP, pair[i]);
        weft_task *first = weft_go(reads_one, pair[i][1]); /* so that it is fetched from */
        CREW_UNTIL(asked_of(pair[i][1]) & WEFT__URING_FETCH);
        ASSERT_EQ(weft_write_all(pair[i][0], "x", 1), 1);
        ASSERT_OK(weft_join(first, &r));
        ASSERT_EQ(r, 'x');
    }
    for (int i = 0; i < STREAMS; i++) {
        town_fill(all, EACH, (uint64_t)i);
        for (int at = 0; at < EACH; at += 1000) /* in pieces, each a buffer */
            ASSERT_EQ(weft_write_all(pair[i][0], all + at, 1000), 1000);
    }
    for (int i = 0; i < STREAMS; i++) {
        ASSERT_EQ(weft_read_exact(pair[i][1], room, EACH), EACH);
        town_fill(all, EACH, (uint64_t)i);
        ASSERT_EQ(memcmp(all, room, EACH), 0);
    }
    for (int i = 0; i < STREAMS; i++) {
        weft_close(pair[i][0]);
        weft_close(pair[i][1]);
    }
    stops(rt);
}

/* ---- requests that end ---- */

static void *waits_and_ends(void *arg)
{
    char b;
    ssize_t n = 0;
    WEFT_TIMEOUT(weft_ms(20)) n = weft_read(arg, &b, 1);
    return (void *)(intptr_t)n;
}

/* Who asked for a request ends, and the kernel takes it back: whoever comes next asks anew, and who waits meanwhile is not forgotten. */
TEST(uring_requests_outlive_the_thread_that_asked)
{
    weft_rt *rt = on_uring(2);
    weft_stream *pair[2];
    town_pair(TOWN_TCP, pair);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        void *n;
        int r = 0;
        ASSERT_OK(pthread_create(&thread, NULL, waits_and_ends, pair[1]));
        ASSERT_OK(pthread_join(thread, &n));
        ASSERT_EQ((intptr_t)n, -ETIME);
        weft_task *next = weft_go(reads_one, pair[1]);
        ASSERT_EQ(weft_write_all(pair[0], "y", 1), 1);
        ASSERT_OK(weft_join(next, &r));
        ASSERT_EQ(r, 'y');
    }
    weft_close(pair[0]);
    weft_close(pair[1]);
    stops(rt);
}

/* ---- queues that are full ---- */

static _Atomic bool may_go, is_there; /* relaxed: flags */

static int stands_in_the_way(void)
{
    store_relaxed(&is_there, true);
    while (!load_relaxed(&may_go))
        usleep(
            1000); /* on purpose: the worker does not come by, and its kernel thread takes answers */
    return 0;
}

/* Are there answers that have no place, and that the kernel keeps? */
static bool overflows(const struct weft__port *port)
{
    const struct weft__uring *u = port->own;
    return load_relaxed(u->ring.sq_flags) & IORING_SQ_CQ_OVERFLOW; /* relaxed: a look */
}

/* Submitted, and not only asked for: a worker that is away submits nothing. */
static bool in_kernel(struct weft__fdslot *slot, uint32_t which)
{
    struct weft__uring_slot *us = weft__uring_more_of(slot);
    struct weft__uring *u = slot->port->own;
    weft__uring_lock(u);
    bool submitted = (weft__uring_asked(us) & ~(uint32_t)us->to_submit) & which;
    weft__uring_unlock(u);
    return submitted;
}

enum {
    BELLS = 64
}; /* each time that the worker's thread is let in, the kernel takes so many answers */

static weft_fd *bells[BELLS];
static weft_task *hearers[BELLS];

static int hears(weft_fd *bell)
{
    return weft_fd_readable(bell);
}

static void hang_bells(void)
{
    for (int i = 0; i < BELLS; i++) {
        int fd = -1;
        ASSERT_OK(weft__event_open(&fd));
        ASSERT_OK(weft_fd_open(fd, &bells[i]));
        hearers[i] = weft_go(hears, bells[i]);
    }
    for (int i = 0; i < BELLS; i++)
        CREW_UNTIL(in_kernel((struct weft__fdslot *)(void *)bells[i],
                             WEFT__URING_POLL_READ)); /* it is one */
}

static void ring_all(void)
{
    for (int i = 0; i < BELLS; i++)
        ASSERT_OK(weft__event_signal(weft_fd_number(bells[i])));
}

static void take_bells_down(void)
{
    for (int i = 0; i < BELLS; i++) {
        int r = -1;
        ASSERT_OK(weft_join(hearers[i], &r));
        ASSERT_OK(r);
        weft_close(bells[i]);
    }
}

/* More answers than have a place while the worker is away: the kernel keeps the rest. Rings of one bell that come close together are one answer: so they are not counted, but go on until
 * it says that it keeps some. */
TEST(uring_loses_no_answer_when_there_are_too_many)
{
    weft_rt *rt;
    weft_stream *pair[2];
    int r = 0;
    rt = on_uring(1);
    store_relaxed(&may_go, false); /* relaxed: a flag */
    town_pair(TOWN_TCP, pair);
    weft_task *reader = weft_go(reads_one, pair[1]);
    CREW_UNTIL(in_kernel(slot_of(pair[1]), WEFT__URING_FETCH));
    hang_bells();
    weft_task *in_the_way = weft_go(stands_in_the_way);
    CREW_UNTIL(load_relaxed(&is_there));
    struct weft__port *port = &rt->driver->ports[0];
    while (!overflows(port))
        ring_all();
    ASSERT_EQ(weft_write_all(pair[0], "z", 1), 1);
    ASSERT(overflows(port)); /* what was written is behind them, and nobody has come by */
    store_relaxed(&may_go, true);
    ASSERT_OK(weft_join(in_the_way, &r));
    ASSERT_OK(weft_join(reader, &r));
    ASSERT_EQ(r, 'z');
    take_bells_down();
    weft_close(pair[0]);
    weft_close(pair[1]);
    stops(rt);
}

static int reads_many(weft_stream **streams, uint32_t count)
{
    static weft_task *tasks[2 * WEFT__URING_REQUESTS];
    int sum = 0;
    for (uint32_t i = 0; i < count; i++)
        tasks[i] = weft_go(reads_one, streams[i]);
    for (uint32_t i = 0; i < count; i++) {
        int r = 0;
        if (weft_join(tasks[i], &r) < 0 || r < 0) return -EIO;
        sum += r;
    }
    return sum;
}

/* More requests than have a place, all in one turn; and as many cancels, when all are closed. */
TEST(uring_loses_no_request_when_the_queue_is_full)
{
    enum { STREAMS = 2 * WEFT__URING_REQUESTS };
    weft_rt *rt = on_uring(1);
    static weft_stream *pair[STREAMS][2];
    static weft_stream *ends[STREAMS];
    int sum = 0;
    for (int i = 0; i < STREAMS; i++) {
        town_pair(TOWN_TCP, pair[i]);
        ends[i] = pair[i][1];
    }
    weft_task *all = weft_go(reads_many, ends, (uint32_t)STREAMS);
    for (int i = 0; i < STREAMS; i++)
        CREW_UNTIL(asked_of(ends[i]) & WEFT__URING_FETCH);
    for (int i = 0; i < STREAMS; i++)
        ASSERT_EQ(weft_write_all(pair[i][0], "\1", 1), 1);
    ASSERT_OK(weft_join(all, &sum));
    ASSERT_EQ(sum, STREAMS);
    /* All at once, and not one by one: each end that is waited for is a hand-over to the worker and back, and behind other programs on the same core each of
     * those takes some milliseconds. */
    for (int i = 0; i < STREAMS; i++)
        weft_close(pair[i][1]); /* while its request is in the kernel */
    for (int i = 0; i < STREAMS; i++) {
        char b;
        ASSERT_EQ(weft_read(pair[i][0], &b, 1), 0); /* and the peer hears of it */
        weft_close(pair[i][0]);
    }
    stops(rt);
}

#if defined(WEFT_FAULTS)
/* What a submit is answered by a kernel that has taken nothing; the last: a signal came before it had. */
static const int refusals[] = {-EAGAIN, -EBUSY, -ENOMEM, -EINTR};
enum { REFUSALS = sizeof(refusals) / sizeof(refusals[0]) };

/* The kernel takes nothing for a while: what was wanted is asked for again. */
TEST(uring_asks_again_when_the_kernel_takes_nothing)
{
    weft_rt *rt = on_uring(2);
    for (uint32_t i = 0; i < 11 * REFUSALS; i++) {
        weft_stream *pair[2];
        int r = 0;
        town_pair(TOWN_TCP, pair);
        weft__fault_arm(WEFT__FAULT_URING_ENTER, 1 + i / REFUSALS, 3, refusals[i % REFUSALS]);
        weft_task *reader = weft_go(reads_one, pair[1]);
        CREW_UNTIL(asked_of(pair[1]) & WEFT__URING_FETCH);
        ASSERT_EQ(weft_write_all(pair[0], "w", 1), 1);
        ASSERT_OK(weft_join(reader, &r));
        ASSERT_EQ(r, 'w');
        weft_close(pair[1]);
        char b;
        ASSERT_EQ(weft_read(pair[0], &b, 1), 0);
        weft_close(pair[0]);
        weft__fault_reset();
    }
    stops(rt);
}
#endif

#if defined(WEFT_FAULTS)
/* ---- nobody at home: the current-thread runtime ---- */

static _Atomic int was_read; /* relaxed: a flag */

static int reads_and_says_so(weft_stream *from)
{
    int r = reads_one(from);
    store_relaxed(&was_read, r);
    return r;
}

struct outsider {
    weft_rt *rt;
    weft_stream *from;
};

static void *outsider_reads_one(void *arg)
{
    struct outsider *o = arg;
    intptr_t r = reads_and_says_so(o->from);
    (void)weft_rt_enter(o->rt);
    ASSERT_OK(weft_detach(weft_go(crew_nothing))); /* whoever turns looks again */
    (void)weft_rt_enter(NULL);
    return (void *)r;
}

/* A thread outside asks for something, and takes it back, while the kernel takes nothing and who turns is asleep in the ring: he is told to come and hand it in. */
TEST(uring_wakes_who_turns_for_what_the_kernel_did_not_take)
{
    struct crew crew;
    crew_on_uring(&crew, -1);
    struct weft__port *port = &crew.rt->driver->ports[0];
    for (unsigned i = 0; i < test_scaled(60); i++) {
        weft_stream *pair[2];
        pthread_t reader;
        void *r;
        char b;
        town_pair(TOWN_TCP, pair);
        CREW_UNTIL(load_relaxed(&port->slept_in)); /* relaxed, both: a look */
        weft__fault_arm(WEFT__FAULT_URING_ENTER, 1, 1 + i % 5, refusals[i % REFUSALS]);
        struct outsider o = {crew.rt, pair[1]};
        ASSERT_OK(pthread_create(&reader, NULL, outsider_reads_one, &o));
        CREW_UNTIL(asked_of(pair[1]) & WEFT__URING_FETCH);
        ASSERT_EQ(write(weft_stream_fd(pair[0]), "n", 1), 1);
        ASSERT_OK(pthread_join(reader, &r));
        ASSERT_EQ((intptr_t)r, 'n');
        CREW_UNTIL(load_relaxed(&port->slept_in));
        weft__fault_arm(WEFT__FAULT_URING_ENTER, 1, 2 + i % 3, refusals[i % REFUSALS]);
        weft_close(pair[1]); /* while its request is in the kernel, which holds the file */
        ASSERT_EQ(weft_read(pair[0], &b, 1), 0);
        weft_close(pair[0]);
        weft__fault_reset();
    }
    crew_stop(&crew);
}

static bool is_readable(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, timeout_ms) == 1;
}

static void turns_once(weft_rt *rt, int fd)
{
    ASSERT(is_readable(fd, -1));
    ASSERT_GE(weft_rt_turn(rt, 0), 0);
}

/* The host's fd tells of it, whether it was a task that asked, in a turn, or a thread outside. */
static void hosted(weft_rt *rt, int fd, bool outside)
{
    weft_stream *pair[2];
    pthread_t reader;
    ASSERT_OK(weft_unix_pair(&pair[0], &pair[1]));
    while (is_readable(fd, 0))
        turns_once(rt, fd);
    store_relaxed(&was_read, 0);
    weft__fault_arm(WEFT__FAULT_URING_ENTER, 1, UINT32_MAX, -EAGAIN);
    struct outsider o = {rt, pair[1]};
    if (outside)
        ASSERT_OK(pthread_create(&reader, NULL, outsider_reads_one, &o));
    else
        ASSERT_OK(weft_detach(weft_go(reads_and_says_so, pair[1])));
    while (weft__fault_calls(WEFT__FAULT_URING_ENTER) < 5)
        turns_once(rt, fd);
    weft__fault_reset();
    ASSERT_EQ(write(weft_stream_fd(pair[0]), "h", 1), 1);
    while (load_relaxed(&was_read) == 0)
        turns_once(rt, fd);
    ASSERT_EQ(load_relaxed(&was_read), 'h');
    if (outside) ASSERT_OK(pthread_join(reader, NULL));
    weft_close(pair[0]);
    weft_close(pair[1]);
}

TEST(uring_calls_the_host_for_what_the_kernel_did_not_take)
{
    weft_rt *rt = on_uring(-1);
    int fd = weft_rt_fd(rt);
    for (int i = 0; i < 10; i++)
        hosted(rt, fd, i % 2);
    stops(rt);
}
#endif

/* ---- listeners ---- */

static int accepts_one(weft_listener *l)
{
    weft_stream *c;
    int r = weft_accept(l, &c);
    if (r < 0) return r;
    weft_close(c);
    return 0;
}

/* Connections that were fetched ahead and that nobody wants end with the listener. */
TEST(uring_listener_closes_what_nobody_accepted)
{
    enum { CLIENTS = 3 * WEFT__URING_UNACCEPTED };
    weft_rt *rt = on_uring(2);
    struct town_gate gate;
    static weft_stream *clients[CLIENTS];
    int r = 1;
    town_open(&gate);
    weft_task *one = weft_go(accepts_one, gate.listener);
    for (int i = 0; i < CLIENTS; i++)
        ASSERT_OK(weft_tcp_connect(gate.address, &clients[i]));
    ASSERT_OK(weft_join(one, &r));
    ASSERT_OK(r);
    weft_close(gate.listener);
    for (int i = 0; i < CLIENTS; i++) {
        char b;
        ssize_t n = weft_read(clients[i], &b, 1);
        ASSERT(n == 0 || n == -ECONNRESET);
        weft_close(clients[i]);
    }
    stops(rt);
}

#if defined(WEFT_FAULTS)
static bool is_fetched_from(weft_listener *l)
{
    const struct weft__uring_slot *us = ((struct weft__fdslot *)(void *)l)->more;
    return load_relaxed(&us->asked) & WEFT__URING_FETCH; /* relaxed: a look */
}

static int accepts_many(weft_listener *l, int count)
{
    for (int i = 0; i < count; i++) {
        int r = accepts_one(l);
        if (r < 0) return r;
    }
    return 0;
}

/* One request brings all of them: a call is made before it, that finds nobody, and perhaps one more, but none for each. They come one by one, so that none is fetched ahead up to the bound. */
TEST(uring_listener_accepts_many_by_one_request)
{
    enum { CLIENTS = 100 };
    weft_rt *rt = on_uring(1);
    struct town_gate gate;
    int r = 1;
    town_open(&gate);
    weft__fault_reset();
    weft_task *server = weft_go(accepts_many, gate.listener, CLIENTS);
    CREW_UNTIL(is_fetched_from(gate.listener));
    for (int i = 0; i < CLIENTS; i++) {
        char b;
        int client = peer_connect(gate.address, 0);
        ASSERT_EQ(read(client, &b, 1), 0); /* it was accepted, and closed */
        ASSERT_OK(close(client));
    }
    ASSERT_OK(weft_join(server, &r));
    ASSERT_OK(r);
    ASSERT_LE(weft__fault_calls(WEFT__FAULT_ACCEPT), 2);
    weft_close(gate.listener);
    stops(rt);
}
#endif
