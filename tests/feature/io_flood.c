/* SPDX-License-Identifier: MIT
 *
 * Floods: more connections have something at once than one look brings, or a ring has buffers for. All of them are heard, whole and in order, whatever kind of task they have; on io_uring
 * who found no buffer is polled meanwhile, and fetches ahead again when it is over.
 */
#include "crew.h"
#include "driver/uring.h"
#include "line.h"
#include "slot.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>

enum {
    SOME = WEFT__URING_BUFFERS + WEFT__URING_BUFFERS / 8,
    MOST = 2 * WEFT__URING_BUFFERS,
    KINDS = 3,
    LARGE = 1500, /* of a frame that has a box of its own */
};

struct flood {
    unsigned count;
    struct line lines[MOST];
    weft_task *tasks[MOST];
    _Atomic uint32_t served; /* relaxed: progress */
    bool seen;               /* by the ring */
};

static struct flood *flood; /* that is under way */

/* A peer that leaves takes its connection along, so that ten thousand of them are not kept by the kernel for a minute. */
static int end_of(ssize_t last)
{
    return last == 0 || last == -ECONNRESET ? 0 : -EIO;
}

static int serves(weft_stream *stream)
{
    uint32_t word;
    ssize_t n;
    while ((n = weft_read_exact(stream, &word, sizeof word)) == sizeof word) {
        if (weft_write_all(stream, &word, sizeof word) < 0) return -EPIPE;
        (void)fetch_add_relaxed(&flood->served, 1);
    }
    weft_close(stream);
    return end_of(n);
}

#define SERVES(name, room_bytes)                                                                   \
    struct name {                                                                                  \
        WEFT_FRAME(int);                                                                           \
        weft_stream *stream;                                                                       \
        struct weft_read_exact rd;                                                                 \
        struct weft_write_all wr;                                                                  \
        char room[room_bytes];                                                                     \
    };                                                                                             \
    static weft_async(name)                                                                        \
    {                                                                                              \
        weft_begin;                                                                                \
        for (;;) {                                                                                 \
            weft_await(f->rd, weft_read_exact, f->stream, f->room, sizeof(uint32_t));              \
            if (f->rd.ret != sizeof(uint32_t)) break;                                              \
            weft_await(f->wr, weft_write_all, f->stream, f->room, sizeof(uint32_t));               \
            if (f->wr.ret < 0) weft_return(-EPIPE);                                                \
            (void)fetch_add_relaxed(&flood->served, 1);                                            \
        }                                                                                          \
        weft_close(f->stream);                                                                     \
        weft_return(end_of(f->rd.ret));                                                            \
        weft_end;                                                                                  \
    }

SERVES(serving_small, 8)
SERVES(serving_large, LARGE)

static weft_task *serve(weft_stream *stream, unsigned kind)
{
    switch (kind) {
    case 0: return weft_go(serves, stream);
    case 1: return weft_spawn(serving_small, .stream = stream);
    default: return weft_spawn(serving_large, .stream = stream);
    }
}

static void needs_descriptors(void)
{
    struct rlimit limit;
    ASSERT_OK(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = limit.rlim_max;
    ASSERT_OK(setrlimit(RLIMIT_NOFILE, &limit));
    if (limit.rlim_max < 2 * MOST + 100)
        TEST_SKIP("%d connections need more descriptors than the %lu here", MOST,
                  (unsigned long)limit.rlim_max);
}

/* All by one gate: a port for each would be looked for among thousands. */
static int gate_open(struct sockaddr_in *at)
{
    socklen_t bytes = sizeof(*at);
    int gate = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    ASSERT_GE(gate, 0);
    ASSERT_OK(bind(gate, (struct sockaddr *)at, bytes));
    ASSERT_OK(listen(gate, 1));
    ASSERT_OK(getsockname(gate, (struct sockaddr *)at, &bytes));
    return gate;
}

static struct line line_through(int gate, const struct sockaddr_in *at)
{
    const struct linger at_once = {.l_onoff = 1};
    int one = 1;
    int ends[2] = {socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), -1};
    ASSERT_GE(ends[0], 0);
    ASSERT_OK(connect(ends[0], (const struct sockaddr *)at, sizeof(*at)));
    ends[1] = accept4(gate, NULL, NULL, SOCK_CLOEXEC);
    ASSERT_GE(ends[1], 0);
    ASSERT_OK(setsockopt(ends[1], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once));
    ASSERT_OK(setsockopt(ends[1], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one));
    return line_of(ends);
}

static void flood_begins(unsigned count)
{
    struct sockaddr_in at;
    needs_descriptors();
    int gate = gate_open(&at);
    flood = calloc(1, sizeof(*flood));
    ASSERT(flood);
    flood->count = count;
    for (unsigned i = 0; i < count; i++) {
        flood->lines[i] = line_through(gate, &at);
        flood->tasks[i] = serve(flood->lines[i].ours, i % KINDS);
        ASSERT(flood->tasks[i]);
    }
    ASSERT_OK(close(gate));
}

/* `turned`: the runtime, if it is this thread that turns it. */
static void flood_ends(weft_rt *turned)
{
    for (unsigned i = 0; i < flood->count; i++)
        ASSERT_OK(close(flood->lines[i].theirs));
    for (unsigned i = 0; i < flood->count; i++) {
        while (turned && !weft_done(flood->tasks[i]))
            ASSERT_GE(weft_rt_turn(turned, -1), 0);
        ASSERT_OK(joined(flood->tasks[i]));
    }
    free(flood);
}

static uint32_t word_of(unsigned round, unsigned i)
{
    return round * MOST + i;
}

static void all_say(unsigned round)
{
    for (unsigned i = 0; i < flood->count; i++) {
        uint32_t word = word_of(round, i);
        ASSERT_EQ(send(flood->lines[i].theirs, &word, sizeof word, MSG_NOSIGNAL), sizeof word);
    }
}

static void all_hear(unsigned round)
{
    for (unsigned i = 0; i < flood->count; i++) {
        uint32_t word;
        ASSERT_EQ(recv(flood->lines[i].theirs, &word, sizeof word, MSG_WAITALL), sizeof word);
        ASSERT_EQ(word, word_of(round, i));
    }
}

/* Each has said two words before one is answered. */
static void flooded(struct crew *crew)
{
    (void)crew;
    flood_begins(SOME);
    for (unsigned round = 0; round < 6; round += 2) {
        all_say(round);
        all_say(round + 1);
        all_hear(round);
        all_hear(round + 1);
    }
    flood_ends(NULL);
}

TEST_WITH(flood_is_heard, .timeout_s = 120)
{
    crew_each(flooded);
}

/* A fiber whose frame has a box, since its key is so long. */
struct name {
    char text[1024];
};
typedef WEFT_KEYED(struct name, int) by_name;

static void boxed_fibers(struct crew *crew)
{
    enum { FIBERS = 12 };
    by_name set = {0};
    (void)crew;
    flood_begins(0);
    flood->count = FIBERS;
    for (unsigned i = 0; i < FIBERS; i++) {
        struct name name = {{0}};
        (void)snprintf(name.text, sizeof name.text, "%u", i);
        flood->lines[i] = line_by_tcp();
        ASSERT_OK(weft_keyed_go(&set, &name, serves, flood->lines[i].ours));
    }
    for (unsigned round = 0; round < 60; round++) {
        all_say(round);
        all_hear(round);
    }
    for (unsigned i = 0; i < FIBERS; i++)
        ASSERT_OK(close(flood->lines[i].theirs));
    int ret;
    for (unsigned i = 0; i < FIBERS; i++) {
        ASSERT_EQ(weft_keyed_join_next(&set, NULL, &ret), 1);
        ASSERT_OK(ret);
    }
    weft_keyed_done(&set);
    free(flood);
}

TEST(flood_of_boxed_fibers)
{
    crew_each(boxed_fibers);
}

/* ---- turned by this thread ---- */

static int hears_one(weft_stream *stream)
{
    char b;
    return weft_read(stream, &b, 1) == 1 ? 0 : -EIO;
}

static void turns_quietly(weft_rt *rt)
{
    while (weft_rt_turn(rt, 0) > 0) {
    }
}

/* More events that nobody waits for than one look brings: who is behind them has his turn all the same. */
TEST(flood_hides_nobody)
{
    enum { OTHERS = 3 * WEFT__EPOLL_EVENTS };
    weft_rt *rt;
    struct line others[OTHERS];
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
    (void)weft_rt_enter(rt);
    struct line l = line_by_pair();
    weft_task *task = weft_go(hears_one, l.ours);
    turns_quietly(rt);
    for (unsigned i = 0; i < OTHERS; i++)
        others[i] = line_by_pair();
    ASSERT_EQ(write(l.theirs, "x", 1), 1);
    turns_quietly(rt);
    ASSERT(weft_done(task));
    ASSERT_OK(joined(task));
    for (unsigned i = 0; i < OTHERS; i++)
        line_end(&others[i]);
    line_end(&l);
    stops(rt);
}

/* ---- on the ring, turned by this thread: what it has found is as it was left ---- */

static struct weft__uring *ring_here(void)
{
    return slot_of(flood->lines[0].ours)->port->own;
}

static void turns_until(weft_rt *rt, uint32_t served)
{
    while (load_relaxed(&flood->served) < served) {
        ASSERT_GE(weft_rt_turn(rt, -1), 0);
        flood->seen |= load_relaxed(&ring_here()->flood); /* relaxed: this thread's */
    }
}

static unsigned count_fetching(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < flood->count; i++) {
        struct weft__uring_slot *us = weft__uring_more_of(slot_of(flood->lines[i].ours));
        count += (weft__uring_asked(us) & WEFT__URING_FETCH) != 0;
    }
    return count;
}

/* One after the other, in quiet. */
static void each_says(weft_rt *rt, unsigned round)
{
    for (unsigned i = 0; i < flood->count; i++) {
        uint32_t word = word_of(round, i);
        ASSERT_EQ(send(flood->lines[i].theirs, &word, sizeof word, MSG_NOSIGNAL), sizeof word);
        turns_until(rt, load_relaxed(&flood->served) + 1);
    }
    all_hear(round);
    turns_quietly(rt);
}

TEST_WITH(flood_is_polled_until_it_is_over, .timeout_s = 120)
{
    weft_rt *rt = on_uring(-1);
    flood_begins(MOST);
    each_says(rt, 0);
    if (load_relaxed(&ring_here()->no_fetch_stream)) TEST_SKIP("the kernel fetches nothing ahead"); /* relaxed: this thread's */
    ASSERT(!flood->seen);
    ASSERT_EQ(count_fetching(), MOST);
    for (unsigned round = 1; round < 4; round++) {
        all_say(round);
        turns_until(rt, (round + 1) * MOST);
        all_hear(round);
    }
    ASSERT(flood->seen);
    ASSERT_LE(count_fetching(), MOST - 1);
    each_says(rt, 4);
    each_says(rt, 5);
    ASSERT(!load_relaxed(&ring_here()->flood)); /* relaxed: this thread's */
    ASSERT_EQ(count_fetching(), MOST);
    flood_ends(rt);
    stops(rt);
}
