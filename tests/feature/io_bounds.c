/* SPDX-License-Identifier: MIT
 *
 * What a server holds on to when its peers do nothing for it: no descriptors left, peers that never read, peers whose bytes nobody reads. Memory stays where it
 * is, no core is burnt, whoever waits can be told to stop, and nothing is lost when it goes on.
 */
#include "peer.h"
#include "sched/sched.h"
#include "statm.h"

#include <stdlib.h>

/* All workers sleep, and still do a while later: nobody has anything to do. */
static void until_quiet(struct crew *crew)
{
    for (int quiet = 0; quiet < 100; sched_yield()) {
        bool asleep = weft__idle_sleeping(&crew->rt->idle) == crew->rt->worker_count;
        quiet = asleep ? quiet + 1 : 0;
    }
}

static uint64_t polls_of(const struct crew *crew)
{
    weft_stats stats;
    weft_rt_stats(crew->rt, &stats);
    return stats.polls;
}

/* ---- no descriptors ---- */

#define LIMIT  200
#define GUESTS 3

struct taken {
    int fd[LIMIT];
    int count;
    struct rlimit before;
};

/* Every descriptor that the process may have. */
static void take_all(struct taken *t)
{
    ASSERT_OK(getrlimit(RLIMIT_NOFILE, &t->before));
    struct rlimit low = {.rlim_cur = LIMIT, .rlim_max = t->before.rlim_max};
    ASSERT_OK(setrlimit(RLIMIT_NOFILE, &low));
    for (t->count = 0; t->count < LIMIT; t->count++) {
        t->fd[t->count] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (t->fd[t->count] < 0) break;
    }
    ASSERT_EQ(errno, EMFILE);
    ASSERT_GE(t->count, 2);
}

static void give_one_back(struct taken *t)
{
    ASSERT_OK(close(t->fd[--t->count]));
}

static void give_all_back(struct taken *t)
{
    while (t->count > 0)
        give_one_back(t);
    ASSERT_OK(setrlimit(RLIMIT_NOFILE, &t->before));
}

/* Needs one descriptor at a time. */
static int greets(weft_listener *l)
{
    for (int i = 0; i < GUESTS; i++) {
        weft_stream *c;
        int r = weft_accept(l, &c);
        if (r < 0) return r;
        ssize_t n = weft_write(c, "!", 1);
        weft_close(c);
        if (n != 1) return -EIO;
    }
    return 0;
}

struct greeting {
    WEFT_FRAME(int);
    weft_listener *l;
    int i;
    weft_stream *c;
    struct weft_accept accept;
    struct weft_write wr;
};
static weft_async(greeting)
{
    weft_begin;
    for (f->i = 0; f->i < GUESTS; f->i++) {
        weft_await(f->accept, weft_accept, f->l, &f->c);
        if (f->accept.ret < 0) weft_return(f->accept.ret);
        weft_await(f->wr, weft_write, f->c, "!", 1);
        weft_close(f->c);
        if (f->wr.ret != 1) weft_return(-EIO);
    }
    weft_return(0);
    weft_end;
}

/* The clock stands: until it is moved the server does nothing at all, and then it tries once. With one descriptor free it serves them all. */
static void starves(int workers, bool stackless)
{
    struct crew crew;
    struct town_gate gate;
    struct taken taken;
    int guest[GUESTS];
    int r = 1;
    crew_start_with(&crew, &(weft_rt_opts){.workers = workers, .paused = true});
    town_open(&gate);
    for (int i = 0; i < GUESTS; i++)
        guest[i] = peer_connect(gate.address, 0);
    take_all(&taken);
    weft_task *server =
        stackless ? weft_spawn(greeting, gate.listener) : weft_go(greets, gate.listener);
    CREW_UNTIL(polls_of(&crew) >= 1);
    until_quiet(&crew);
    uint64_t before = polls_of(&crew);
    for (int i = 0; i < 10; i++) {
        ASSERT_OK(weft_clock_advance(crew.rt, weft_ms(100)));
        until_quiet(&crew);
    }
    ASSERT_LE(polls_of(&crew) - before, 20);
    ASSERT(!weft_done(server));
    give_one_back(&taken);
    while (!weft_done(server)) {
        ASSERT_OK(weft_clock_advance(crew.rt, weft_ms(100)));
        sched_yield();
    }
    ASSERT_OK(weft_join(server, &r));
    ASSERT_OK(r);
    give_all_back(&taken);
    for (int i = 0; i < GUESTS; i++) {
        char b = 0;
        ASSERT_EQ(recv(guest[i], &b, 1, 0), 1);
        ASSERT_EQ(b, '!');
        ASSERT_OK(close(guest[i]));
    }
    weft_close(gate.listener);
    crew_stop(&crew);
}

TEST(bounds_of_a_server_without_descriptors)
{
    if (getenv("WEFT_TEST_UNDER"))
        TEST_SKIP("Valgrind takes a connection, closes it, and then says that there was none");
    for (size_t i = 0; i < CREW_SIZES; i++) {
        starves(crew_sizes[i], false);
        starves(crew_sizes[i], true);
    }
}

/* ---- peers that do not read, peers that are not read ---- */

enum {
    PEERS = 16,
    BUFFER = 16384, /* of a kernel's side; it takes some more */
    MOST =
        2000000, /* of a connection: far more than both sides' buffers, far less than was asked for */
    MEMORY =
        16 * 1024 * 1024, /* more than all tasks of a test need, and less than their peers send */
};

static void open_small(struct town_gate *gate)
{
    weft_net_opts opts = {.send_bytes = BUFFER, .recv_bytes = BUFFER};
    ASSERT_OK(weft_tcp_listen_with(&opts, "127.0.0.1:0", &gate->listener));
    ASSERT_GE(weft_listener_print(gate->listener, gate->address, sizeof gate->address), 1);
}

/* Only where a byte is a byte. */
static void has_not_grown(uint64_t before)
{
    if (test_scaled(100) == 100) ASSERT_LE(statm().resident_bytes, before + MEMORY);
}

struct spout {
    weft_stream *stream;
    _Atomic uint64_t bytes; /* that were taken from us; relaxed: progress */
    int error;
};

static int spouts(struct spout *s)
{
    unsigned char buf[4000];
    ssize_t n;
    do {
        uint64_t at = load_relaxed(&s->bytes);
        town_fill(buf, sizeof buf, at);
        n = weft_write(s->stream, buf, sizeof buf);
        if (n > 0) store_relaxed(&s->bytes, at + (uint64_t)n);
    } while (n > 0);
    s->error = (int)n;
    return 0;
}

struct spouting {
    WEFT_FRAME(int);
    struct spout *s;
    unsigned char buf[4000];
    struct weft_write_all wr;
};
static weft_async(spouting)
{
    weft_begin;
    do {
        town_fill(f->buf, sizeof f->buf, load_relaxed(&f->s->bytes));
        weft_await(f->wr, weft_write_all, f->s->stream, f->buf, sizeof f->buf);
        (void)fetch_add_relaxed(&f->s->bytes, (uint64_t)f->wr.done);
    } while (f->wr.ret > 0);
    f->s->error = (int)f->wr.ret;
    weft_return(0);
    weft_end;
}

/* They write for ever to peers that do not read, until they are cancelled. Then the peers read, and find exactly what was taken. */
static void unread(struct crew *crew)
{
    struct town_gate gate;
    struct spout spout[PEERS];
    weft_task *task[PEERS];
    int peer[PEERS];
    open_small(&gate);
    for (int i = 0; i < PEERS; i++) {
        peer[i] = peer_connect(gate.address, BUFFER);
        spout[i] = (struct spout){.error = 1};
        ASSERT_OK(weft_accept(gate.listener, &spout[i].stream));
    }
    uint64_t memory = statm().resident_bytes;
    for (int i = 0; i < PEERS; i++)
        task[i] = i % 2 ? weft_spawn(spouting, &spout[i]) : weft_go(spouts, &spout[i]);
    for (int i = 0; i < PEERS; i++)
        CREW_UNTIL(load_relaxed(&spout[i].bytes) > 0);
    until_quiet(crew);
    has_not_grown(memory);
    for (int i = 0; i < PEERS; i++) {
        int r = 1;
        ASSERT_LE(load_relaxed(&spout[i].bytes), MOST);
        weft_cancel(task[i]);
        ASSERT_OK(weft_join(task[i], &r));
        ASSERT_EQ(spout[i].error, -ECANCELED);
        weft_close(spout[i].stream);
        ASSERT_EQ(peer_drain(peer[i], 0), load_relaxed(&spout[i].bytes));
        ASSERT_OK(close(peer[i]));
    }
    weft_close(gate.listener);
}

TEST(bounds_of_peers_that_do_not_read)
{
    crew_each(unread);
}

struct deaf {
    weft_stream *stream;
    weft_event *wake; /* until then it has the stream and does not read */
    uint64_t bytes;
};

static int drinks(struct deaf *d, uint64_t *at)
{
    unsigned char buf[5000];
    ssize_t n;
    while ((n = weft_read(d->stream, buf, sizeof buf)) > 0) {
        town_check(buf, (size_t)n, *at);
        *at += (uint64_t)n;
    }
    weft_close(d->stream);
    return (int)n;
}

/* It has read once before, so that whatever is armed for it is. */
static int is_deaf(struct deaf *d)
{
    unsigned char first;
    if (weft_read(d->stream, &first, 1) != 1) return -EIO;
    int r = weft_event_wait(d->wake);
    uint64_t at = 1;
    if (r == 0) r = drinks(d, &at);
    d->bytes = at;
    return r;
}

/* They send for ever, and nobody reads: it stays with them. Then all of it is read. */
static void unheard(struct crew *crew)
{
    struct town_gate gate;
    weft_event wake = WEFT_EVENT_INIT;
    struct deaf deaf[PEERS];
    weft_task *task[PEERS];
    int peer[PEERS];
    uint64_t sent[PEERS];
    (void)crew;
    open_small(&gate);
    for (int i = 0; i < PEERS; i++) {
        peer[i] = peer_connect(gate.address, 0);
        int small = BUFFER;
        ASSERT_OK(setsockopt(peer[i], SOL_SOCKET, SO_SNDBUF, &small, sizeof small));
        deaf[i] = (struct deaf){.wake = &wake};
        ASSERT_OK(weft_accept(gate.listener, &deaf[i].stream));
        task[i] = weft_go(is_deaf, &deaf[i]);
    }
    uint64_t memory = statm().resident_bytes;
    for (int i = 0; i < PEERS; i++) {
        sent[i] = peer_stuff(peer[i], 0, 2 * MOST);
        ASSERT_LE(sent[i], MOST);
    }
    has_not_grown(memory);
    weft_event_set(&wake);
    for (int i = 0; i < PEERS; i++) {
        int r = 1;
        ASSERT_OK(close(peer[i]));
        ASSERT_OK(weft_join(task[i], &r));
        ASSERT_OK(r);
        ASSERT_EQ(deaf[i].bytes, sent[i]);
    }
    weft_event_done(&wake);
    weft_close(gate.listener);
}

TEST(bounds_of_peers_that_nobody_reads)
{
    crew_each(unheard);
}

/* ---- between two peers ---- */

struct bridge {
    weft_stream *a, *b;
    uint64_t ab, ba;
};

static int carries(struct bridge *p)
{
    return weft_copy_bidirectional(p->a, p->b, &p->ab, &p->ba);
}

static weft_task *bridge_of(struct bridge *p, bool stackless)
{
    return stackless ? weft_spawn(weft_copy_bidirectional, p->a, p->b, &p->ab, &p->ba)
                     : weft_go(carries, p);
}

/* One sends for ever, the other does not read, and who stands between them keeps no more than a buffer. Stopped, it has passed on what it says it has. */
static void between(struct crew *crew)
{
    struct town_gate gate;
    (void)crew;
    open_small(&gate);
    for (int i = 0; i < 4; i++) {
        struct bridge p = {.ab = 0};
        int r = 1;
        int small = BUFFER;
        int from = peer_connect(gate.address, 0);
        ASSERT_OK(weft_accept(gate.listener, &p.a));
        int to = peer_connect(gate.address, BUFFER);
        ASSERT_OK(weft_accept(gate.listener, &p.b));
        ASSERT_OK(setsockopt(from, SOL_SOCKET, SO_SNDBUF, &small, sizeof small));
        weft_task *task = bridge_of(&p, i % 2);
        uint64_t sent = peer_stuff(from, 0, 4 * MOST);
        ASSERT_LE(sent, 2 * MOST);
        weft_cancel(task);
        ASSERT_OK(weft_join(task, &r));
        ASSERT_EQ(r, -ECANCELED);
        weft_close(p.a);
        weft_close(p.b);
        ASSERT_EQ(peer_drain(to, 0), p.ab);
        ASSERT_LE(p.ab, sent);
        ASSERT_EQ(p.ba, 0);
        ASSERT_OK(close(from));
        ASSERT_OK(close(to));
    }
    weft_close(gate.listener);
}

TEST(bounds_of_a_bridge_between_two_peers)
{
    crew_each(between);
}
