/* SPDX-License-Identifier: MIT
 *
 * A connection to one of several addresses, by list and by name: the dead and the closed do not hold up the living, families take turns, losers are
 * closed. On a clock that stands, which the test moves until the next attempt has begun; on the loopback, where a full queue never answers.
 */
#include "base/fault.h"
#include "names.h"
#include "still.h"
#include "storm.h"
#include "town.h"

#include <sys/socket.h>
#include <unistd.h>

#if defined(WEFT_FAULTS) /* which count attempts */

#define DELAY weft_ms(250)

/* Plain sockets: the runtime under test has no part in them. */
struct place {
    int fd;
    int guest[3]; /* fill the queue of a dead one */
    weft_addr addr;
};

static int plain(struct place *p, const char *text, int backlog)
{
    socklen_t bytes = sizeof p->addr.weft__data;
    *p = (struct place){.guest = {-1, -1, -1}};
    ASSERT_OK(weft_addr_parse(text, &p->addr));
    struct sockaddr *sa = (struct sockaddr *)(void *)p->addr.weft__data;
    p->fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (p->fd < 0) return -1;
    if (bind(p->fd, sa, p->addr.bytes) < 0) {
        close(p->fd);
        return -1;
    }
    ASSERT_OK(getsockname(p->fd, sa, &bytes));
    return backlog >= 0 ? listen(p->fd, backlog) : 0;
}

static void leaves(struct place *p)
{
    for (int i = 0; i < 3; i++)
        if (p->guest[i] >= 0) close(p->guest[i]);
    close(p->fd);
}

static void lives(struct place *p)
{
    ASSERT_OK(plain(p, "127.0.0.1:0", 100));
}

/* Has an address, and does not listen. */
static void refuses(struct place *p)
{
    ASSERT_OK(plain(p, "127.0.0.1:0", -1));
}

/* Listens, and its queue is full: the kernel drops who knocks. */
static void is_dead(struct place *p)
{
    ASSERT_OK(plain(p, "127.0.0.1:0", 0));
    for (int i = 0; i < 3; i++) {
        p->guest[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        ASSERT_GE(p->guest[i], 0);
        int r = connect(p->guest[i], (struct sockaddr *)(void *)p->addr.weft__data, p->addr.bytes);
        ASSERT(r == 0 || errno == EINPROGRESS);
    }
}

/* ---- in a task ---- */

struct trip {
    weft_addr to[6];
    size_t count;
    const char *name; /* instead */
    bool stackless;
    weft_stream *stream;
    weft_time took;
};

struct travelling {
    WEFT_FRAME(int);
    struct trip *trip;
    weft_time begun;
    struct weft_tcp_connect_any any;
    struct weft_tcp_connect by_name;
};
static weft_async(travelling)
{
    weft_begin;
    f->begun = weft_now();
    if (f->trip->name) {
        weft_await(f->by_name, weft_tcp_connect, f->trip->name, &f->trip->stream);
        f->any.ret = f->by_name.ret;
    } else {
        weft_await(f->any, weft_tcp_connect_any, f->trip->to, f->trip->count, &f->trip->stream);
    }
    f->trip->took = weft_now() - f->begun;
    weft_return(f->any.ret);
    weft_end;
}

static int travels(struct trip *trip)
{
    weft_time begun = weft_now();
    int r = trip->name ? weft_tcp_connect(trip->name, &trip->stream)
                       : weft_tcp_connect_any(trip->to, trip->count, &trip->stream);
    trip->took = weft_now() - begun;
    return r;
}

/* The clock moves, step by step, while there are fewer attempts than that. */
static void moves_until(uint32_t attempts)
{
    while (weft__fault_calls(WEFT__FAULT_CONNECT) < attempts) {
        ASSERT_OK(weft_clock_advance(NULL, weft_ms(1)));
        sched_yield();
    }
}

/* `attempts`: all but the last never answer, so each but the first begins when the one before it had its time. */
static int goes(struct trip *trip, uint32_t attempts)
{
    int r = 1;
    weft__fault_reset();
    weft_task *task = trip->stackless ? weft_spawn(travelling, trip) : weft_go(travels, trip);
    if (attempts > 1) moves_until(attempts);
    ASSERT_OK(weft_join(task, &r));
    if (attempts > 0) ASSERT_EQ(weft__fault_calls(WEFT__FAULT_CONNECT), attempts);
    return r;
}

static void arrived_at(struct trip *trip, struct place *place)
{
    weft_addr peer;
    ASSERT_OK(weft_sock_peer(trip->stream, &peer));
    ASSERT_EQ(weft_addr_port(&peer), weft_addr_port(&place->addr));
    weft_close(trip->stream);
}

/* ---- order ---- */

/* One that never answers costs its delay; two cost two. */
static void passes_the_dead(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 2; i++) {
        struct place dead, other, alive;
        is_dead(&dead);
        is_dead(&other);
        lives(&alive);
        struct trip trip = {.to = {dead.addr, alive.addr}, .count = 2, .stackless = i};
        ASSERT_OK(goes(&trip, 2));
        arrived_at(&trip, &alive);
        ASSERT_GE(trip.took, DELAY);
        trip = (struct trip){.to = {dead.addr, other.addr, alive.addr}, .count = 3, .stackless = i};
        ASSERT_OK(goes(&trip, 3));
        arrived_at(&trip, &alive);
        ASSERT_GE(trip.took, 2 * DELAY);
        leaves(&dead);
        leaves(&other);
        leaves(&alive);
    }
}

TEST(connect_any_passes_the_dead)
{
    still_each(passes_the_dead);
}

/* One that refuses is followed at once: no time passes. If all do, the first one's word counts. */
static void passes_the_closed(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 2; i++) {
        struct place closed, alive;
        weft_addr wrong;
        refuses(&closed);
        lives(&alive);
        ASSERT_OK(weft_addr_parse("255.255.255.255:9", &wrong)); /* no TCP there */
        struct trip trip = {.to = {closed.addr, wrong, alive.addr}, .count = 3, .stackless = i};
        ASSERT_OK(goes(&trip, 0));
        arrived_at(&trip, &alive);
        ASSERT_EQ(trip.took, 0);
        trip = (struct trip){.to = {closed.addr, wrong}, .count = 2, .stackless = i};
        ASSERT_EQ(goes(&trip, 0), -ECONNREFUSED);
        ASSERT_EQ(weft__fault_calls(WEFT__FAULT_CONNECT), 2);
        trip = (struct trip){.to = {closed.addr}, .count = 1, .stackless = i};
        ASSERT_EQ(goes(&trip, 1), -ECONNREFUSED);
        trip = (struct trip){.to = {alive.addr, closed.addr}, .count = 2, .stackless = i};
        ASSERT_OK(goes(&trip, 1));
        arrived_at(&trip, &alive);
        trip = (struct trip){.count = 0, .stackless = i};
        ASSERT_EQ(goes(&trip, 0), -EINVAL);
        trip = (struct trip){.count = 1, .stackless = i}; /* no address */
        ASSERT_EQ(goes(&trip, 0), -EINVAL);
        leaves(&closed);
        leaves(&alive);
    }
}

TEST(connect_any_passes_the_closed)
{
    still_each(passes_the_closed);
}

/* Three dead ones of a family, then a living one of the other: it is the second that is tried. */
static void families_take_turns(struct crew *crew)
{
    struct place dead, six;
    (void)crew;
    if (plain(&six, "[::1]:0", 100) < 0) return; /* no IPv6 here */
    is_dead(&dead);
    for (int i = 0; i < 2; i++) {
        struct trip trip = {
            .to = {dead.addr, dead.addr, dead.addr, six.addr}, .count = 4, .stackless = i};
        ASSERT_OK(goes(&trip, 2));
        arrived_at(&trip, &six);
    }
    leaves(&dead);
    leaves(&six);
}

TEST(connect_any_families_take_turns)
{
    still_each(families_take_turns);
}

/* ---- by name ---- */

static void by_name(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 2; i++) {
        struct place dead, alive;
        names_reset();
        is_dead(&dead);
        lives(&alive);
        names_table[0] = dead.addr;
        names_table[1] = alive.addr;
        names_count = 2;
        struct trip trip = {.name = "table.test:80", .stackless = i};
        ASSERT_OK(goes(&trip, 2));
        arrived_at(&trip, &alive);
        ASSERT_GE(trip.took, DELAY);
        trip = (struct trip){.name = "none.test:80", .stackless = i};
        ASSERT_EQ(goes(&trip, 0), -ENOENT);
        trip = (struct trip){.name = "service.test:nothing", .stackless = i};
        ASSERT_EQ(goes(&trip, 0), -EPROTONOSUPPORT);
        uint32_t asked = load_relaxed(&names_asked);
        static const char *const none[] = {"nothing", ":",      "host:", ":http",
                                           "[x]:80",  "a:b:80", ""};
        for (size_t k = 0; k < sizeof(none) / sizeof(none[0]); k++) {
            trip = (struct trip){.name = none[k], .stackless = i};
            ASSERT_EQ(goes(&trip, 0), -EINVAL);
        }
        ASSERT_EQ(load_relaxed(&names_asked), asked);
        leaves(&dead);
        leaves(&alive);
    }
}

TEST(connect_by_name)
{
    still_each(by_name);
}

/* ---- given up ---- */

struct swarm {
    struct place dead;
    struct place closed;
    struct place alive;
};

static int tries_a_while(struct swarm *s)
{
    struct trip trip = {.to = {s->dead.addr, s->closed.addr, s->dead.addr, s->alive.addr},
                        .count = 4};
    int r = travels(&trip);
    if (r == 0) weft_close(trip.stream);
    return r;
}

struct trying_by_name {
    WEFT_FRAME(int);
    weft_stream *stream;
    struct weft_tcp_connect connect;
};
static weft_async(trying_by_name)
{
    weft_begin;
    weft_await(f->connect, weft_tcp_connect, "table.test:80", &f->stream);
    if (f->connect.ret == 0) weft_close(f->stream);
    weft_return(f->connect.ret);
    weft_end;
}

static weft_task *starts(void *of, uint32_t i, bool stackless)
{
    (void)i;
    return stackless ? weft_spawn(trying_by_name, NULL)
                     : weft_go(tries_a_while, (struct swarm *)of);
}

static _Atomic bool over; /* relaxed: a flag */

static void *lets_time_pass(void *rt)
{
    while (!load_relaxed(&over)) {
        ASSERT_OK(weft_clock_advance(rt, weft_ms(20)));
        sched_yield();
    }
    return NULL;
}

/* Whenever they are given up: the harness counts descriptors and memory. */
static void given_up(struct crew *crew)
{
    struct swarm s;
    pthread_t time;
    names_reset();
    is_dead(&s.dead);
    refuses(&s.closed);
    ASSERT_OK(plain(&s.alive, "127.0.0.1:0", 4000));
    names_table[0] = s.dead.addr;
    names_table[1] = s.alive.addr;
    names_count = 2;
    store_relaxed(&over, false);
    ASSERT_OK(pthread_create(&time, NULL, lets_time_pass, crew->rt));
    for (uint64_t round = 0; round < test_scaled(5); round++) {
        struct storm_sum sum = storm(starts, &s, 60, NULL);
        ASSERT_EQ(sum.other, 0);
    }
    store_relaxed(&over, true);
    ASSERT_OK(pthread_join(time, NULL));
    leaves(&s.dead);
    leaves(&s.closed);
    leaves(&s.alive);
}

TEST_WITH(connect_any_given_up_leaves_nothing, .timeout_s = 180)
{
    still_each(given_up);
}

/* Each call of each kind fails in turn; the harness counts. */
static void faults(struct crew *crew)
{
    static const enum weft__fault_kind kinds[] = {WEFT__FAULT_ALLOC,   WEFT__FAULT_SOCKET,
                                                  WEFT__FAULT_CONNECT, WEFT__FAULT_EPOLL_CTL,
                                                  WEFT__FAULT_SOCKOPT, WEFT__FAULT_RESOLVE};
    struct place closed, alive;
    (void)crew;
    names_reset();
    refuses(&closed);
    lives(&alive);
    names_table[0] = closed.addr;
    names_table[1] = alive.addr;
    names_count = 2;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        for (uint32_t n = 1; n < 100; n++) {
            struct trip trip = {.name = "table.test:80"};
            weft__fault_arm(kinds[k], n, 1, kinds[k] == WEFT__FAULT_ALLOC ? -ENOMEM : -ENOBUFS);
            int r = travels(&trip);
            bool reached = weft__fault_calls(kinds[k]) >= n;
            weft__fault_reset();
            if (r == 0) weft_close(trip.stream);
            ASSERT(r <= 0);
            if (!reached) break;
        }
    leaves(&closed);
    leaves(&alive);
}

TEST(connect_by_name_faults)
{
    crew_each(faults);
}

#else
TEST(connect_any_passes_the_dead)
{
    TEST_SKIP("built without WEFT_FAULTS");
}
#endif
