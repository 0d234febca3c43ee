/* SPDX-License-Identifier: MIT
 *
 * The driver on io_uring, where it differs from the other: what is fetched ahead is bounded and in order, requests that end for whatever reason are asked for anew,
 * queues that are full lose nothing, and where it is forbidden epoll takes its place and says why. Everything else is seen by all tests of sockets, which run on both.
 */
#include "driver/uring.h"
#include "base/fault.h"
#include "base/rand.h"
#include "death.h"
#include "net/listen.h"
#include "on_uring.h"
#include "peer.h"
#include "sched/sched.h"
#include "slot.h"
#include "sys/event.h"
#include "town.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

static struct weft__uring_slot *more_of(weft_stream *stream)
{
    return slot_of(stream)->more;
}

static size_t unread_of(weft_stream *stream)
{
    struct weft__uring_slot *us = more_of(stream);
    struct weft__uring *u = us->slot->port->own;
    weft__lock_take(&u->lock);
    size_t unread = us->unread;
    weft__lock_drop(&u->lock);
    return unread;
}

/* Older kernels go on until they are told to stop, and all that the port has may be full by then. */
static size_t bound_of(weft_rt *rt)
{
    const struct weft__uring *u = rt->driver->ports[0].own;
    return u && u->no_cap ? WEFT__URING_BUFFERS * WEFT__URING_BUFFER_BYTES
                          : WEFT__URING_UNREAD + WEFT__URING_BUFFER_BYTES;
}

static uint32_t asked_of(weft_stream *stream)
{
    return load_relaxed(&more_of(stream)->asked); /* relaxed: a look */
}

#if defined(WEFT_FAULTS)
static void crew_on_uring(struct crew *crew, int workers)
{
    stops(on_uring(1)); /* or all of it is left out */
    crew_start_with(crew, &(weft_rt_opts){.workers = workers, .driver = WEFT_DRIVER_IO_URING});
}
#endif

/* ---- choosing ---- */

#if defined(WEFT_FAULTS)
TEST(uring_that_is_denied_gives_way_and_says_why)
{
    static const int errors[] = {-EPERM, -ENOSYS, -ENOMEM};
    static const char *const words[] = {"EPERM", "ENOSYS", "ENOMEM"};
    const char *asked = getenv("WEFT_DRIVER"); /* it has the last word */
    if (asked && *asked && strcmp(asked, "io_uring") != 0) TEST_SKIP("WEFT_DRIVER asks for %s", asked);
    if (weft__driver_uring_probe() == -EOPNOTSUPP) TEST_SKIP("it is not asked for here");
    for (int i = 0; i < 3; i++) {
        weft_rt *rt;
        const char *why = NULL;
        weft_stream *pair[2];
        char b[4];
        weft__fault_arm(WEFT__FAULT_URING_SETUP, 1, 1, errors[i]);
        ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1, .driver = WEFT_DRIVER_IO_URING}, &rt));
        weft__fault_reset();
        ASSERT_STR(weft_rt_driver(rt, &why), "epoll");
        ASSERT(why && strstr(why, words[i]));
        (void)weft_rt_enter(rt);
        town_pair(TOWN_TCP, pair);
        ASSERT_EQ(weft_write_all(pair[0], "abc", 3), 3);
        ASSERT_EQ(weft_read(pair[1], b, sizeof b), 3);
        weft_close(pair[0]);
        weft_close(pair[1]);
        stops(rt);
    }
}

static bool asks_for_another(void)
{
    const char *asked = getenv("WEFT_DRIVER"); /* it has the last word */
    return (asked && *asked && strcmp(asked, "io_uring") != 0) || weft__driver_uring_probe() < 0;
}

static void says_a_word(void)
{
    weft_stream *pair[2];
    char b[4];
    town_pair(TOWN_TCP, pair);
    ASSERT_EQ(weft_write_all(pair[0], "abc", 3), 3);
    ASSERT_EQ(weft_read(pair[1], b, sizeof b), 3);
    weft_close(pair[0]);
    weft_close(pair[1]);
}

/* A program that asks for io_uring, and has a runtime by whichever it gets: 3 by io_uring, 4 by epoll. */
static void asks_for_uring(void *error)
{
    weft_rt *rt;
    int r = *(const int *)error; /* 0: nothing is denied */
    if (r < 0) weft__fault_arm(WEFT__FAULT_URING_SETUP, 1, 1, r);
    if (weft_rt_new(&(weft_rt_opts){.workers = 2, .driver = WEFT_DRIVER_IO_URING}, &rt) < 0)
        _exit(5);
    _exit(strcmp(weft_rt_driver(rt, NULL), "io_uring") == 0 ? 3 : 4);
}

/* One line, with the reason; where nothing is denied nothing is said. */
TEST(uring_that_is_denied_is_told_on_stderr)
{
    static const struct {
        int error;
        int code;
        const char *said;
    } rows[] = {
        {-EPERM, 4,
         "weft: io_uring does not work here: not permitted (EPERM); sockets go by epoll\n"},
        {-ENOSYS, 4,
         "weft: io_uring does not work here: not implemented by the kernel (ENOSYS); sockets go by epoll\n"},
        {-ENOMEM, 4,
         "weft: io_uring does not work here: out of memory (ENOMEM); sockets go by epoll\n"},
        {0, 3, ""},
    };
    if (asks_for_another()) TEST_SKIP("io_uring is not asked for, or does not work here");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int error = rows[i].error;
        struct death d = death_of(asks_for_uring, &error);
        ASSERT_EQ(d.code, rows[i].code);
        ASSERT_STR(d.said, rows[i].said);
    }
}

/* Whichever of its rings is the one that cannot be had: no runtime is half of one and half of the other. */
TEST(uring_that_is_denied_for_one_worker_gives_way_for_all)
{
    if (asks_for_another()) TEST_SKIP("io_uring is not asked for, or does not work here");
    for (uint32_t nth = 1; nth <= 5; nth++) {
        weft_rt *rt;
        const char *why = NULL;
        weft__fault_arm(WEFT__FAULT_URING_SETUP, nth, 1, -ENOMEM);
        ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 4, .driver = WEFT_DRIVER_IO_URING}, &rt));
        weft__fault_reset();
        ASSERT_STR(weft_rt_driver(rt, &why), "epoll"); /* the first is the question, then one for each worker */
        ASSERT(why && strstr(why, "ENOMEM"));
        (void)weft_rt_enter(rt);
        for (int i = 0; i < 4; i++)
            says_a_word();
        stops(rt);
    }
}

/* A kernel that has rings, and does not know what is asked of them: found by the question before the first, or at any worker's. */
TEST(uring_that_lacks_a_request_gives_way_for_all)
{
    enum { WORKERS = 2, REQUESTS = 5 /* poll, cancel, accept, receive, send */, ASKED = (1 + WORKERS) * REQUESTS };
    if (asks_for_another()) TEST_SKIP("io_uring is not asked for, or does not work here");
    for (uint32_t nth = 1; nth <= ASKED + 1; nth++) {
        weft_rt *rt;
        const char *why = NULL;
        weft__fault_arm(WEFT__FAULT_URING_PROBE, nth, 1, -EOPNOTSUPP);
        ASSERT_OK(
            weft_rt_new(&(weft_rt_opts){.workers = WORKERS, .driver = WEFT_DRIVER_IO_URING}, &rt));
        ASSERT_EQ(weft__fault_calls(WEFT__FAULT_URING_PROBE), nth <= ASKED ? nth : ASKED);
        weft__fault_reset();
        ASSERT_STR(weft_rt_driver(rt, &why), nth <= ASKED ? "epoll" : "io_uring");
        if (nth <= ASKED)
            ASSERT_STR(why, "io_uring does not work here: not supported (EOPNOTSUPP)");
        (void)weft_rt_enter(rt);
        for (int i = 0; i < WORKERS; i++)
            says_a_word();
        stops(rt);
    }
}

/* By a filter that a program has put up behind its start: the rings are there. */
TEST(uring_that_is_denied_later_goes_on)
{
    if (asks_for_another()) TEST_SKIP("io_uring is not asked for, or does not work here");
    weft_rt *rt;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 4, .driver = WEFT_DRIVER_IO_URING}, &rt));
    ASSERT_STR(weft_rt_driver(rt, NULL), "io_uring");
    weft__fault_arm(WEFT__FAULT_URING_SETUP, 1, UINT32_MAX, -EPERM);
    (void)weft_rt_enter(rt);
    for (int i = 0; i < 4; i++)
        says_a_word();
    weft__fault_reset();
    stops(rt);
}
#endif

static void asks_for_nonsense(void *arg)
{
    weft_rt *rt;
    (void)arg;
    setenv("WEFT_DRIVER", "kqueue", 1);
    _exit(weft_rt_new(NULL, &rt) == -EINVAL ? 3 : 4);
}

TEST(uring_or_what_else_is_asked_for_in_words)
{
    weft_rt *rt;
    struct death d = death_of(asks_for_nonsense, NULL);
    ASSERT_EQ(d.code, 3);
    ASSERT(strstr(d.said, "weft: WEFT_DRIVER=kqueue: want auto, epoll or io_uring"));
    if (getenv("WEFT_DRIVER")) return; /* the environment has the last word */
    weft_rt_opts none = {.workers = 1};
    memset(&none.driver, 1, sizeof(none.driver)); /* no driver has that number */
    ASSERT_EQ(weft_rt_new(&none, &rt), -EINVAL);
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1, .driver = WEFT_DRIVER_AUTO}, &rt));
    ASSERT_STR(weft_rt_driver(rt, NULL), "epoll");
    stops(rt);
}

/* ---- fetched ahead ---- */

enum { MUCH = 3 << 20 };

static int writes_much(weft_stream *to)
{
    unsigned char piece[5000];
    for (uint64_t at = 0; at < MUCH;) {
        size_t n = MUCH - at < sizeof piece ? MUCH - at : sizeof piece;
        town_fill(piece, n, at);
        ssize_t r = weft_write_all(to, piece, n);
        if (r < 0) return (int)r;
        at += n;
    }
    weft_close(to);
    return 0;
}

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

static int reads_one(weft_stream *from)
{
    char b;
    ssize_t n = weft_read(from, &b, 1);
    return n < 0 ? (int)n : b;
}

static int reads_all(weft_stream *from, uint64_t at)
{
    unsigned char room[600];
    ssize_t n;
    while ((n = weft_read(from, room, sizeof room)) > 0) {
        for (ssize_t i = 0; i < n; i++)
            if (room[i] != town_byte(at + (uint64_t)i)) return -EIO;
        at += (uint64_t)n;
    }
    return n < 0 ? (int)n : at == MUCH ? 0 : -EPIPE;
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

/* More answers than have a place while the worker is away: the kernel keeps the rest. Signals that come close together are one answer: so they are not counted, but go on until it says that
 * it keeps some. */
TEST(uring_loses_no_answer_when_there_are_too_many)
{
    weft_rt *rt;
    weft_stream *pair[2];
    int r = 0;
    rt = on_uring(1);
    store_relaxed(&may_go, false); /* relaxed: a flag */
    town_pair(TOWN_TCP, pair);
    weft_task *reader = weft_go(reads_one, pair[1]);
    CREW_UNTIL(asked_of(pair[1]) & WEFT__URING_FETCH);
    weft_task *in_the_way = weft_go(stands_in_the_way);
    CREW_UNTIL(load_relaxed(&is_there));
    struct weft__port *port = &rt->driver->ports[0];
    int signalled = 0;
    while (signalled == 0 && !overflows(port))
        signalled = weft__event_signal(port->event);
    ASSERT_OK(signalled);
    ASSERT_EQ(weft_write_all(pair[0], "z", 1), 1);
    ASSERT(overflows(port)); /* what was written is behind them, and nobody has come by */
    store_relaxed(&may_go, true);
    ASSERT_OK(weft_join(in_the_way, &r));
    ASSERT_OK(weft_join(reader, &r));
    ASSERT_EQ(r, 'z');
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
/* The kernel takes nothing for a while: what was wanted is asked for again. */
TEST(uring_asks_again_when_the_kernel_takes_nothing)
{
    weft_rt *rt = on_uring(2);
    for (uint32_t nth = 1; nth < 12; nth++) {
        weft_stream *pair[2];
        int r = 0;
        town_pair(TOWN_TCP, pair);
        weft__fault_arm(WEFT__FAULT_URING_ENTER, nth, 3, -EAGAIN);
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

static const int refusals[] = {-EAGAIN, -EBUSY, -ENOMEM};

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
        weft__fault_arm(WEFT__FAULT_URING_ENTER, 1, 1 + i % 4, refusals[i % 3]);
        struct outsider o = {crew.rt, pair[1]};
        ASSERT_OK(pthread_create(&reader, NULL, outsider_reads_one, &o));
        CREW_UNTIL(asked_of(pair[1]) & WEFT__URING_FETCH);
        ASSERT_EQ(write(weft_stream_fd(pair[0]), "n", 1), 1);
        ASSERT_OK(pthread_join(reader, &r));
        ASSERT_EQ((intptr_t)r, 'n');
        CREW_UNTIL(load_relaxed(&port->slept_in));
        weft__fault_arm(WEFT__FAULT_URING_ENTER, 1, 2 + i % 3, refusals[i % 3]);
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

/* ---- a kernel that does not know how to fetch ---- */

#if defined(WEFT_FAULTS)
static bool has_no_cap(weft_stream *stream)
{
    struct weft__uring *u = slot_of(stream)->port->own;
    weft__lock_take(&u->lock);
    bool no_cap = u->no_cap;
    weft__lock_drop(&u->lock);
    return no_cap;
}

static int echoes(weft_stream *c)
{
    char b[16];
    ssize_t n;
    while ((n = weft_read(c, b, sizeof b)) > 0)
        if (weft_write_all(c, b, (size_t)n) != n) return -EIO;
    weft_close(c);
    return (int)n;
}

struct echoing {
    WEFT_FRAME(int);
    weft_stream *c;
    char b[16];
    struct weft_read rd;
    struct weft_write_all wr;
};
static weft_async(echoing)
{
    weft_begin;
    for (;;) {
        weft_await(f->rd, weft_read, f->c, f->b, sizeof f->b);
        if (f->rd.ret <= 0) break;
        weft_await(f->wr, weft_write_all, f->c, f->b, (size_t)f->rd.ret);
        if (f->wr.ret != f->rd.ret) weft_return(-EIO);
    }
    weft_close(f->c);
    weft_return((int)f->rd.ret);
    weft_end;
}

enum { CALLERS = 6, WORDS = 20 };

static weft_task *serves_one(weft_stream *c, int i)
{
    return i % 2 ? weft_spawn(echoing, c) : weft_go(echoes, c);
}

static int serves(weft_listener *l, weft_task **served)
{
    for (int i = 0; i < CALLERS; i++) {
        weft_stream *c;
        int r = weft_accept(l, &c);
        if (r < 0) return r;
        served[i] = serves_one(c, i);
    }
    return 0;
}

struct serving {
    WEFT_FRAME(int);
    weft_listener *l;
    weft_task **served;
    int i;
    weft_stream *c;
    struct weft_accept accept;
};
static weft_async(serving)
{
    weft_begin;
    for (f->i = 0; f->i < CALLERS; f->i++) {
        weft_await(f->accept, weft_accept, f->l, &f->c);
        if (f->accept.ret < 0) weft_return(f->accept.ret);
        f->served[f->i] = serves_one(f->c, f->i);
    }
    weft_return(0);
    weft_end;
}

static int talks(const char *address)
{
    weft_stream *s;
    int r = weft_tcp_connect(address, &s);
    for (int i = 0; r == 0 && i < WORDS; i++) {
        char b[8];
        if (weft_write_all(s, "a word.", 8) != 8 || weft_read_exact(s, b, 8) != 8) r = -EIO;
        if (r == 0 && memcmp(b, "a word.", 8) != 0) r = -EILSEQ;
    }
    weft_close(s);
    return r;
}

/* Somebody waits in an accept, and one in a read: what they asked for is refused, and they wait by other means. */
static void learns_it(struct crew *crew, weft_listener *l)
{
    weft_stream *pair[2];
    int r = 0;
    const struct weft__uring *u = weft__listener_slot(l)->port->own;
    CREW_UNTIL(load_relaxed(&u->no_fetch_listener)); /* relaxed, both: a look */
    town_pair(TOWN_TCP, pair);
    weft_task *reader = weft_go(reads_one, pair[1]);
    u = slot_of(pair[1])->port->own;
    CREW_UNTIL(load_relaxed(&u->no_fetch_stream));
    ASSERT(has_no_cap(pair[1])); /* tried first without its bound */
    if (crew->rt->worker_count == 1) ASSERT_EQ(weft__fault_calls(WEFT__FAULT_URING_FETCH), 3);
    ASSERT_EQ(weft_write_all(pair[0], "c", 1), 1);
    ASSERT_OK(weft_join(reader, &r));
    ASSERT_EQ(r, 'c');
    weft_close(pair[0]);
    weft_close(pair[1]);
}

static void serves_by_calls(int workers, bool stackless)
{
    struct crew crew;
    struct town_gate gate;
    weft_task *served[CALLERS], *callers[CALLERS];
    int r = 1;
    crew_on_uring(&crew, workers);
    weft__fault_arm(WEFT__FAULT_URING_FETCH, 1, UINT32_MAX, -EINVAL);
    town_open(&gate);
    weft_task *server = stackless ? weft_spawn(serving, gate.listener, served)
                                  : weft_go(serves, gate.listener, served);
    learns_it(&crew, gate.listener);
    for (int i = 0; i < CALLERS; i++)
        callers[i] = weft_go(talks, gate.address);
    for (int i = 0; i < CALLERS; i++) {
        ASSERT_OK(weft_join(callers[i], &r));
        ASSERT_OK(r);
    }
    ASSERT_OK(weft_join(server, &r));
    ASSERT_OK(r);
    for (int i = 0; i < CALLERS; i++) {
        ASSERT_OK(weft_join(served[i], &r));
        ASSERT_OK(r);
    }
    if (crew.rt->worker_count == 1)
        ASSERT_EQ(weft__fault_calls(WEFT__FAULT_URING_FETCH), 3); /* it is not asked for again */
    weft_close(gate.listener);
    crew_stop(&crew);
    weft__fault_reset();
}

/* Each request that goes on for ever is answered -EINVAL, by the kernel itself: everybody is served all the same. */
TEST(uring_that_cannot_fetch_goes_on_by_calls)
{
    for (size_t i = 0; i < 2 * CREW_SIZES; i++)
        serves_by_calls(crew_sizes[i / 2], i % 2);
}

/* A kernel before 6.17 knows no bound: it is asked without, and stopped when the slot is full. */
TEST(uring_that_cannot_bound_a_fetch_is_stopped)
{
    weft_rt *rt = on_uring(1);
    weft_stream *pair[2];
    int r = 0;
    town_pair(TOWN_TCP, pair);
    weft__fault_arm(WEFT__FAULT_URING_FETCH, 1, 1, -EINVAL);
    weft_task *first = weft_go(reads_one, pair[1]);
    CREW_UNTIL(has_no_cap(pair[1]) && (asked_of(pair[1]) & WEFT__URING_FETCH));
    weft_task *writer = weft_go(writes_much, pair[0]);
    ASSERT_OK(weft_join(first, &r));
    ASSERT_EQ(r, town_byte(0));
    CREW_UNTIL(!(asked_of(pair[1]) & WEFT__URING_FETCH));
    ASSERT_GE(unread_of(pair[1]), WEFT__URING_UNREAD / 2);
    weft_task *rest = weft_go(reads_all, pair[1], UINT64_C(1));
    ASSERT_OK(weft_join(rest, &r));
    ASSERT_OK(r);
    ASSERT_OK(weft_join(writer, &r));
    ASSERT_OK(r);
    weft_close(pair[1]);
    stops(rt);
    weft__fault_reset();
}
#endif
