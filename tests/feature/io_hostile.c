/* SPDX-License-Identifier: MIT
 *
 * Peers that do what they like: they reset in the middle, end by halves, take bytes by the handful, send one byte at a time. Whoever is served beside
 * them does not notice, and what did arrive is right.
 */
#include "peer.h"

#include <signal.h>

/* ---- resets in the middle ---- */

struct meal {
    weft_stream *stream;
    _Atomic uint64_t at; /* bytes so far; relaxed: progress */
    int error;           /* what ended it */
};

static int eats(struct meal *m)
{
    unsigned char buf[700];
    ssize_t n;
    while ((n = weft_read(m->stream, buf, sizeof buf)) > 0) {
        town_check(buf, (size_t)n, load_relaxed(&m->at));
        (void)fetch_add_relaxed(&m->at, (uint64_t)n);
    }
    m->error = (int)n;
    return 0;
}

struct eating {
    WEFT_FRAME(int);
    struct meal *m;
    unsigned char buf[700];
    struct weft_read rd;
};
static weft_async(eating)
{
    weft_begin;
    for (;;) {
        weft_await(f->rd, weft_read, f->m->stream, f->buf, sizeof f->buf);
        if (f->rd.ret <= 0) break;
        town_check(f->buf, (size_t)f->rd.ret, load_relaxed(&f->m->at));
        (void)fetch_add_relaxed(&f->m->at, (uint64_t)f->rd.ret);
    }
    f->m->error = (int)f->rd.ret;
    weft_return(0);
    weft_end;
}

#define BLOCK 5000

static int cooks(struct meal *m)
{
    unsigned char buf[BLOCK];
    for (;;) {
        town_fill(buf, sizeof buf, load_relaxed(&m->at));
        ssize_t n = weft_write(m->stream, buf, sizeof buf);
        if (n < 0) {
            m->error = (int)n;
            return 0;
        }
        (void)fetch_add_relaxed(&m->at, (uint64_t)n);
    }
}

struct cooking {
    WEFT_FRAME(int);
    struct meal *m;
    unsigned char buf[BLOCK];
    struct weft_write_all wr;
};
static weft_async(cooking)
{
    weft_begin;
    for (;;) {
        town_fill(f->buf, sizeof f->buf, load_relaxed(&f->m->at));
        weft_await(f->wr, weft_write_all, f->m->stream, f->buf, sizeof f->buf);
        (void)fetch_add_relaxed(&f->m->at, (uint64_t)f->wr.done);
        if (f->wr.ret < 0) break;
    }
    f->m->error = (int)f->wr.ret;
    weft_return(0);
    weft_end;
}

static weft_task *eater(struct meal *m, bool stackless)
{
    return stackless ? weft_spawn(eating, m) : weft_go(eats, m);
}

static weft_task *cook(struct meal *m, bool stackless)
{
    return stackless ? weft_spawn(cooking, m) : weft_go(cooks, m);
}

/* One connection: the stream here, and the descriptor of a peer. */
static weft_stream *meets(struct town_gate *gate, int *peer)
{
    weft_stream *s;
    *peer = peer_connect(gate->address, 0);
    ASSERT_OK(weft_accept(gate->listener, &s));
    return s;
}

static void ends_well(weft_task *task)
{
    int r = 1;
    ASSERT_OK(weft_join(task, &r));
    ASSERT_OK(r);
}

/* While we read: what came is right, as far as it came, and then there is an error, once; behind it the end. */
static void reset_under_a_reader(struct town_gate *gate, uint64_t *random, bool stackless)
{
    int peer;
    char b;
    struct meal m = {.stream = meets(gate, &peer)};
    uint64_t sent = pool_random(random, 20000);
    weft_task *task = eater(&m, stackless);
    peer_send(peer, 0, sent);
    if (pool_random(random, 2)) CREW_UNTIL(load_relaxed(&m.at) == sent); /* it waits for more */
    peer_reset(peer);
    ends_well(task);
    ASSERT_LE(load_relaxed(&m.at), sent);
    ASSERT_EQ(m.error, -ECONNRESET);
    ASSERT_EQ(weft_read(m.stream, &b, 1), 0);
    weft_close(m.stream);
}

/* While we write, perhaps into full buffers. */
static void reset_under_a_writer(struct town_gate *gate, uint64_t *random, bool stackless)
{
    int peer;
    struct meal m = {.stream = meets(gate, &peer)};
    uint32_t wanted = pool_random(random, 100000);
    weft_task *task = cook(&m, stackless);
    peer_recv(peer, 0, wanted);
    peer_reset(peer);
    ends_well(task);
    ASSERT_GE(load_relaxed(&m.at), wanted);
    ASSERT(m.error == -ECONNRESET || m.error == -EPIPE);
    ASSERT_EQ(weft_write(m.stream, "x", 1), -EPIPE);
    weft_close(m.stream);
}

static void resets(struct crew *crew)
{
    struct town_gate gate;
    uint64_t random = pool_seed((uint64_t)crew->workers);
    town_open(&gate);
    for (uint64_t i = 0; i < test_scaled(40); i++) {
        reset_under_a_reader(&gate, &random, i % 2);
        reset_under_a_writer(&gate, &random, i % 2);
    }
    weft_close(gate.listener);
}

TEST(hostile_peers_reset_in_the_middle)
{
    crew_each(resets);
}

/* ---- ends by halves ---- */

#define HALF 200000

static int cooks_a_meal(struct meal *m)
{
    static unsigned char all[HALF];
    town_fill(all, sizeof all, 0);
    ssize_t n = weft_write_all(m->stream, all, sizeof all);
    return n < 0 ? (int)n : weft_shutdown(m->stream);
}

struct cooking_a_meal {
    WEFT_FRAME(int);
    struct meal *m;
    unsigned char all[HALF];
    struct weft_write_all wr;
    struct weft_shutdown end;
};
static weft_async(cooking_a_meal)
{
    weft_begin;
    town_fill(f->all, sizeof f->all, 0);
    weft_await(f->wr, weft_write_all, f->m->stream, f->all, sizeof f->all);
    if (f->wr.ret < 0) weft_return((int)f->wr.ret);
    weft_await(f->end, weft_shutdown, f->m->stream);
    weft_return(f->end.ret);
    weft_end;
}

/* The peer says that it sends no more, before it has read anything: our reader ends, our writer goes on, and all of it arrives. Or we say it first, and the peer
 * goes on. */
static void by_halves(struct crew *crew)
{
    struct town_gate gate;
    (void)crew;
    town_open(&gate);
    for (int i = 0; i < 8; i++) {
        int peer;
        struct meal in = {.stream = meets(&gate, &peer)};
        struct meal out = {.stream = in.stream};
        bool we_first = i & 1;
        bool stackless = i & 2;
        weft_task *reader = eater(&in, stackless);
        weft_task *writer = NULL;
        if (!we_first) {
            peer_send(peer, 0, 3000);
            ASSERT_OK(shutdown(peer, SHUT_WR));
            ends_well(reader);
        }
        writer = stackless ? weft_spawn(cooking_a_meal, &out) : weft_go(cooks_a_meal, &out);
        ASSERT_EQ(peer_drain(peer, 0), HALF);
        ends_well(writer);
        if (we_first) {
            peer_send(peer, 0, 3000);
            ASSERT_OK(shutdown(peer, SHUT_WR));
            ends_well(reader);
        }
        ASSERT_OK(in.error);
        ASSERT_EQ(load_relaxed(&in.at), 3000);
        weft_close(in.stream);
        ASSERT_OK(close(peer));
    }
    weft_close(gate.listener);
}

TEST(hostile_peers_end_by_halves)
{
    crew_each(by_halves);
}

/* ---- bytes by the handful ---- */

struct nibbler {
    int fd;
    uint64_t bytes;
    uint64_t seed;
};

static void *nibbles(void *arg)
{
    const struct nibbler *n = arg;
    uint64_t random = n->seed;
    for (uint64_t at = 0; at < n->bytes;) {
        size_t some = 1 + pool_random(&random, 3000);
        if (some > n->bytes - at) some = (size_t)(n->bytes - at);
        peer_recv(n->fd, at, some);
        at += some;
    }
    return NULL;
}

/* What does not fit is written in part, and write_all goes on from there. Buffers are the smallest that there are. */
static void in_parts(struct crew *crew)
{
    weft_listener *l;
    struct town_gate gate;
    static unsigned char all[1000000];
    (void)crew;
    ASSERT_OK(weft_tcp_listen_with(&(weft_net_opts){.send_bytes = 4096}, "127.0.0.1:0", &l));
    ASSERT_GE(weft_listener_print(l, gate.address, sizeof gate.address), 1);
    gate.listener = l;
    town_fill(all, sizeof all, 0);
    for (uint32_t i = 0; i < 4; i++) {
        pthread_t thread;
        weft_stream *s;
        struct nibbler peer = {.fd = peer_connect(gate.address, 2048), .seed = pool_seed(i)};
        ASSERT_OK(weft_accept(l, &s));
        ssize_t first = weft_write(s, all, sizeof all);
        ASSERT_GE(first, 1);
        ASSERT_LE(first, sizeof all - 1); /* a part of it */
        peer.bytes = test_scaled(sizeof all - (uint64_t)first) + (uint64_t)first;
        ASSERT_OK(pthread_create(&thread, NULL, nibbles, &peer));
        size_t rest = (size_t)(peer.bytes - (uint64_t)first);
        struct iovec iov[2] = {{all + first, rest / 2}, {all + first + rest / 2, rest - rest / 2}};
        ASSERT_EQ(i % 2 ? weft_writev_all(s, iov, 2) : weft_write_all(s, all + first, rest), rest);
        ASSERT_OK(pthread_join(thread, NULL));
        ASSERT_OK(close(peer.fd));
        weft_close(s);
    }
    weft_close(l);
}

TEST(hostile_peers_take_a_little_at_a_time)
{
    crew_each(in_parts);
}

/* ---- one byte at a time ---- */

static int echoes(weft_stream *c)
{
    char b[100];
    ssize_t n;
    while ((n = weft_read(c, b, sizeof b)) > 0)
        if ((n = weft_write_all(c, b, (size_t)n)) < 0) break;
    weft_close(c);
    return (int)n;
}

enum { DRIPS = 20, SLOW = 8 };

static int reads_all(weft_stream *c)
{
    unsigned char b[DRIPS];
    ssize_t n = weft_read_exact(c, b, sizeof b);
    if (n == sizeof b) town_check(b, sizeof b, 0);
    weft_close(c);
    return n == sizeof b ? 0 : -EIO;
}

struct reading_all {
    WEFT_FRAME(int);
    weft_stream *c;
    unsigned char b[DRIPS];
    struct weft_read_exact rd;
};
static weft_async(reading_all)
{
    weft_begin;
    weft_await(f->rd, weft_read_exact, f->c, f->b, sizeof f->b);
    if (f->rd.ret == sizeof f->b) town_check(f->b, sizeof f->b, 0);
    weft_close(f->c);
    weft_return(f->rd.ret == sizeof f->b ? 0 : -EIO);
    weft_end;
}

/* Between two of their bytes any number of others is served. */
static void drips(struct crew *crew)
{
    struct town_gate gate;
    int slow[SLOW], fast;
    weft_task *reader[SLOW];
    (void)crew;
    town_open(&gate);
    for (int i = 0; i < SLOW; i++) {
        weft_stream *s = meets(&gate, &slow[i]);
        reader[i] = i % 2 ? weft_spawn(reading_all, s) : weft_go(reads_all, s);
    }
    weft_task *echo = weft_go(echoes, meets(&gate, &fast));
    for (uint64_t k = 0; k < DRIPS; k++) {
        for (int i = 0; i < SLOW; i++) {
            ASSERT(!weft_done(reader[i]));
            peer_send(slow[i], k, 1);
        }
        for (uint64_t round = 0; round < 10; round++) {
            peer_send(fast, round, 50);
            peer_recv(fast, round, 50);
        }
    }
    for (int i = 0; i < SLOW; i++) {
        ends_well(reader[i]);
        ASSERT_OK(close(slow[i]));
    }
    ASSERT_OK(close(fast));
    ends_well(echo);
    weft_close(gate.listener);
}

TEST(hostile_peers_send_byte_by_byte)
{
    crew_each(drips);
}

/* ---- a deadline that no byte puts off ---- */

struct patience {
    weft_stream *stream;
    _Atomic uint32_t bytes; /* relaxed: progress */
};

static int listens_until(struct patience *p)
{
    char b;
    ssize_t n = 1;
    WEFT_DEADLINE(weft_now() + weft_secs(10))
    {
        while ((n = weft_read(p->stream, &b, 1)) == 1)
            (void)fetch_add_relaxed(&p->bytes, 1);
    }
    weft_close(p->stream);
    return (int)n;
}

struct listening {
    WEFT_FRAME(int);
    struct patience *p;
    char b;
    struct weft_read rd;
};
static weft_async(listening)
{
    weft_begin;
    for (;;) {
        weft_await(f->rd, weft_read, f->p->stream, &f->b, 1);
        if (f->rd.ret != 1) break;
        (void)fetch_add_relaxed(&f->p->bytes, 1);
    }
    weft_return((int)f->rd.ret);
    weft_end;
}

struct listening_until {
    WEFT_FRAME(int);
    struct patience *p;
    struct listening child;
    struct weft_deadline until;
};
static weft_async(listening_until)
{
    weft_begin;
    weft_await(f->until, weft_deadline, weft_now() + weft_secs(10),
               weft_arm(f->child, listening, f->p));
    weft_close(f->p->stream);
    weft_return(f->until.ret < 0 ? f->until.ret : f->child.ret);
    weft_end;
}

/* A byte each second, on a clock that the test moves: at the tenth second it is over, and the peer finds the end. */
static void outlasts(int workers, bool stackless)
{
    struct crew crew;
    struct town_gate gate;
    int peer;
    int r = 1;
    char b;
    crew_start_with(&crew, &(weft_rt_opts){.workers = workers, .paused = true});
    town_open(&gate);
    struct patience p = {.stream = meets(&gate, &peer)};
    weft_task *task = stackless ? weft_spawn(listening_until, &p) : weft_go(listens_until, &p);
    for (uint32_t i = 0; i < 9; i++) {
        peer_send(peer, i, 1);
        CREW_UNTIL(load_relaxed(&p.bytes) == i + 1);
        ASSERT_OK(weft_clock_advance(crew.rt, weft_secs(1)));
    }
    ASSERT(!weft_done(task));
    ASSERT_OK(weft_clock_advance(crew.rt, weft_secs(1)));
    ASSERT_OK(weft_join(task, &r));
    ASSERT_EQ(r, -ETIME);
    ASSERT_EQ(load_relaxed(&p.bytes), 9);
    ASSERT_EQ(recv(peer, &b, 1, 0), 0);
    ASSERT_OK(close(peer));
    weft_close(gate.listener);
    crew_stop(&crew);
}

TEST(hostile_peers_do_not_put_off_a_deadline)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        outlasts(crew_sizes[i], false);
        outlasts(crew_sizes[i], true);
    }
}

/* ---- signals ---- */

struct gale {
    pthread_t target[2];
    int targets;
    _Atomic bool over;     /* relaxed, all: flags, and a count */
    _Atomic bool calm;     /* nobody is signalled any more */
    _Atomic uint32_t blew; /* that were caught */
};

static struct gale gale;

static void caught(int number)
{
    (void)number;
    (void)fetch_add_relaxed(&gale.blew, 1);
}

static void *blows(void *unused)
{
    (void)unused;
    for (int i = 0; !load_relaxed(&gale.over); i++) {
        ASSERT_OK(pthread_kill(gale.target[i % gale.targets], SIGUSR2));
        sched_yield();
    }
    return NULL;
}

struct windy {
    weft_stream *stream;
    uint64_t bytes;
};

/* A thread of its own, which sleeps in the kernel for each byte. */
static void *reads_in_the_wind(void *arg)
{
    struct windy *w = arg;
    unsigned char b;
    for (w->bytes = 0; weft_read(w->stream, &b, 1) == 1; w->bytes++)
        town_check(&b, 1, w->bytes);
    CREW_UNTIL(load_relaxed(&gale.calm)); /* so that there is somebody to be signalled */
    return NULL;
}

/* Real signals at those who sleep, with a handler that interrupts system calls: at a thread that reads, and at the one that turns the runtime. Nobody notices. */
static void in_the_wind(struct crew *crew)
{
    struct sigaction act = {.sa_handler = caught}; /* without SA_RESTART */
    struct town_gate gate;
    int peer;
    pthread_t reader, wind;
    uint64_t bytes = test_scaled(300);
    town_open(&gate);
    ASSERT_OK(sigaction(SIGUSR2, &act, NULL));
    struct windy windy = {.stream = meets(&gate, &peer)};
    gale.targets = 0;
    store_relaxed(&gale.over, false);
    store_relaxed(&gale.calm, false);
    store_relaxed(&gale.blew, 0);
    ASSERT_OK(pthread_create(&reader, NULL, reads_in_the_wind, &windy));
    gale.target[gale.targets++] = reader;
    if (crew->workers < 0) gale.target[gale.targets++] = crew->driver;
    ASSERT_OK(pthread_create(&wind, NULL, blows, NULL));
    for (uint64_t i = 0; i < bytes; i++) {
        uint32_t before = load_relaxed(&gale.blew);
        CREW_UNTIL(load_relaxed(&gale.blew) != before);
        peer_send(peer, i, 1);
    }
    ASSERT_OK(close(peer));
    CREW_UNTIL(load_relaxed(&gale.blew) > bytes + 10);
    store_relaxed(&gale.over, true);
    ASSERT_OK(pthread_join(wind, NULL));
    store_relaxed(&gale.calm, true);
    ASSERT_OK(pthread_join(reader, NULL));
    ASSERT_EQ(windy.bytes, bytes);
    weft_close(windy.stream);
    weft_close(gate.listener);
}

TEST(hostile_signals_interrupt_nobody)
{
    crew_each(in_the_wind);
}
