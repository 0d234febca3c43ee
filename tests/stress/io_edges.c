/* SPDX-License-Identifier: MIT
 *
 * The driver's edges, hammered: closes beside operations while slots and numbers change hands, first fds from outside while all sleep, wakes of every kind while
 * workers sleep in their ports or a host sleeps in poll(2), stops with everything open. Every message and every byte is counted. Seeded.
 */
#include "sched/sched.h"
#include "slot.h"
#include "storm.h"
#include "town.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* relaxed: a look */
#define HAS_USER(stream, as) (load_relaxed(&slot_of(stream)->users) & (as))

static void until_all_sleep(struct crew *crew)
{
    CREW_UNTIL(weft__idle_sleeping(&crew->rt->idle) == crew->rt->worker_count);
}

/* ---- closes beside operations ---- */

#define LANES 6

struct lane {
    uint32_t rounds;
    uint64_t seed;
    unsigned char tag;
};

struct side {
    weft_stream *stream;
    unsigned char tag;
    ssize_t got;
    _Atomic bool over; /* relaxed everywhere: a look */
    bool wrong;        /* a byte of another lane */
};

static int listens(struct side *s)
{
    unsigned char buf[64];
    s->got = weft_read(s->stream, buf, sizeof buf);
    for (ssize_t i = 0; i < s->got; i++)
        s->wrong |= buf[i] != s->tag;
    store_relaxed(&s->over, true);
    return 0;
}

/* More than fits: it waits. */
static int talks(struct side *s)
{
    size_t bytes = 400000;
    unsigned char *buf = malloc(bytes);
    memset(buf, s->tag, bytes);
    s->got = weft_write_all(s->stream, buf, bytes);
    free(buf);
    store_relaxed(&s->over, true);
    return 0;
}

static bool may_come_of_a_close(ssize_t got)
{
    return got >= 0 || got == -EBADF || got == -EPIPE || got == -ECONNRESET;
}

/* Whoever is inside is told, and whatever else has the slot and the number by then is left alone. */
static int close_beside(struct side *s, int (*op)(struct side *), uint32_t as, uint64_t *random)
{
    int r = 1;
    weft_task *task = weft_go(op, s);
    while (!HAS_USER(s->stream, as) && !load_relaxed(&s->over))
        (void)weft_yield();
    for (uint32_t k = pool_random(random, 4); k > 0; k--)
        (void)weft_yield();
    weft_close(s->stream);
    (void)weft_join(task, &r);
    return s->wrong || !may_come_of_a_close(s->got) ? -EIO : r;
}

static int one_round(struct lane *lane, uint64_t *random)
{
    weft_stream *pair[2];
    unsigned char some[8];
    uint32_t what = pool_random(random, 3);
    int r = weft_unix_pair(&pair[0], &pair[1]);
    if (r < 0) return r;
    struct side side = {.stream = pair[1], .tag = lane->tag};
    memset(some, lane->tag, sizeof some);
    if (what == 0 && weft_write(pair[0], some, sizeof some) < 0) return -EPIPE;
    r = what < 2 ? close_beside(&side, listens, WEFT__USE_READER, random)
                 : close_beside(&side, talks, WEFT__USE_WRITER, random);
    weft_close(pair[0]);
    return r;
}

static int runs_lane(struct lane *lane)
{
    uint64_t random = lane->seed;
    for (uint32_t i = 0; i < lane->rounds; i++) {
        int r = one_round(lane, &random);
        if (r < 0) return r;
    }
    return 0;
}

static void lanes(struct crew *crew)
{
    struct lane lane[LANES];
    weft_task *task[LANES];
    int r = 1;
    (void)crew;
    for (uint32_t i = 0; i < LANES; i++) {
        lane[i] = (struct lane){.rounds = (uint32_t)test_scaled(300),
                                .seed = pool_seed(i),
                                .tag = (unsigned char)(i + 1)};
        task[i] = weft_go(runs_lane, &lane[i]);
    }
    for (uint32_t i = 0; i < LANES; i++) {
        ASSERT_OK(weft_join(task[i], &r));
        ASSERT_OK(r);
    }
}

TEST_WITH(io_closes_beside_operations, .timeout_s = 300)
{
    crew_each(lanes);
}

/* ---- short connections, and a listener that goes under its accepts ---- */

static int greets(weft_listener *l, _Atomic uint32_t *greeted)
{
    for (;;) {
        weft_stream *c;
        int r = weft_accept(l, &c);
        if (r < 0) return r;
        ssize_t n = weft_write(c, "!", 1);
        weft_close(c);
        if (n != 1) return -EIO;
        (void)fetch_add_relaxed(greeted, 1);
    }
}

/* Says something first, which nobody reads. A listener that closes in the middle of a handshake may leave its guest connected to nobody, without a word from the kernel: who only
 * listens then waits for ever, and who has spoken is told. */
static int visits(struct town_gate *gate, uint32_t rounds, uint32_t *welcome)
{
    for (uint32_t i = 0; i < rounds; i++) {
        weft_stream *c;
        char b;
        int r = weft_tcp_connect(gate->address, &c);
        if (r == -ECONNREFUSED || r == -ECONNRESET) return 0; /* it has closed */
        if (r < 0) return r;
        ssize_t n = weft_write(c, "?", 1);
        if (n == -EPIPE || n == -ECONNRESET)
            n = 1; /* what it may have said before is still there */
        if (n == 1 && weft_read(c, &b, 1) == 1) (*welcome)++;
        weft_close(c);
    }
    return 0;
}

/* Accepts end with -EBADF, all of them; who was greeted knows it, and nobody twice. */
static void short_connections(struct crew *crew)
{
    enum { SERVERS = 3, CLIENTS = 4 };
    (void)crew;
    for (uint32_t round = 0; round < test_scaled(10); round++) {
        struct town_gate gate;
        weft_task *server[SERVERS], *client[CLIENTS];
        uint32_t welcome[CLIENTS] = {0};
        uint64_t random = pool_seed(round);
        _Atomic uint32_t greeted = 0;
        uint32_t sum = 0;
        int r = 1;
        town_open_alone(&gate, 0);
        for (int i = 0; i < SERVERS; i++)
            server[i] = weft_go(greets, gate.listener, &greeted);
        for (int i = 0; i < CLIENTS; i++)
            client[i] = weft_go(visits, &gate, 50, &welcome[i]);
        uint32_t until = pool_random(&random, 50 * CLIENTS);
        struct weft__fdslot *slot = (struct weft__fdslot *)(void *)gate.listener;
        /* all are in it, each twice: for its accept, and for the wait inside */
        CREW_UNTIL(load_relaxed(&greeted) >= until &&
                   load_relaxed(&slot->users) % WEFT__USE_READER >= 2 * SERVERS);
        weft_close(gate.listener);
        for (int i = 0; i < SERVERS; i++) {
            ASSERT_OK(weft_join(server[i], &r));
            ASSERT_EQ(r, -EBADF);
        }
        for (int i = 0; i < CLIENTS; i++) {
            ASSERT_OK(weft_join(client[i], &r));
            ASSERT_OK(r);
            sum += welcome[i];
        }
        ASSERT_EQ(sum, load_relaxed(&greeted));
    }
}

TEST_WITH(io_short_connections_until_a_close, .timeout_s = 300)
{
    crew_each(short_connections);
}

/* ---- the first fd, from outside, while all sleep on their futexes ---- */

static void *reads_one(void *stream)
{
    char b;
    return (void *)weft_read((weft_stream *)stream, &b, 1);
}

static int reads_task(weft_stream *stream)
{
    return (int)(intptr_t)reads_one(stream);
}

static void first_fds(struct crew *crew)
{
    uint64_t random = pool_seed(1);
    for (uint32_t i = 0; i < test_scaled(300); i++) {
        weft_stream *pair[2];
        pthread_t thread = 0;
        weft_task *task = NULL;
        void *answer = NULL;
        int r = 1;
        if (pool_random(&random, 4)) until_all_sleep(crew);
        ASSERT_OK(weft_unix_pair(&pair[0], &pair[1]));
        if (pool_random(&random, 2)) {
            task = weft_go(reads_task, pair[1]);
        } else {
            ASSERT_OK(pthread_create(&thread, NULL, reads_one, pair[1]));
        }
        if (pool_random(&random, 2)) CREW_UNTIL(HAS_USER(pair[1], WEFT__USE_READER));
        if (pool_random(&random, 2)) until_all_sleep(crew);
        ASSERT_EQ(write(weft_stream_fd(pair[0]), "x", 1), 1);
        if (task) {
            ASSERT_OK(weft_join(task, &r));
        } else {
            ASSERT_OK(pthread_join(thread, &answer));
            r = (int)(intptr_t)answer;
        }
        ASSERT_EQ(r, 1);
        weft_close(pair[0]); /* the last ones: the ports are empty again */
        weft_close(pair[1]);
    }
}

TEST_WITH(io_first_fds_find_their_sleepers, .timeout_s = 300)
{
    crew_each(first_fds);
}

/* ---- wakes of every kind at sleepers in ports ---- */

struct traffic {
    weft_rt *rt;
    weft_chan *chan;
    weft_stream *out; /* bytes go in here, by write(2) */
    uint32_t count;
    uint64_t seed;
    _Atomic uint32_t ran; /* released by each, acquired by who waits for the last: it is gone then; else relaxed: a count */
};

static int runs(_Atomic uint32_t *ran)
{
    (void)fetch_add_release(ran, 1);
    return 0;
}

static int sleeps(weft_time ns, _Atomic uint32_t *ran)
{
    int r = weft_sleep(ns);
    (void)fetch_add_release(ran, 1);
    return r;
}

/* Each message alone, now and then behind a pause that lets all fall asleep: whatever is lost here nothing else wakes. */
static void *pushes(void *arg)
{
    struct traffic *t = arg;
    uint64_t random = t->seed;
    (void)weft_rt_enter(t->rt);
    for (uint32_t i = 0; i < t->count; i++) {
        uint32_t what = pool_random(&random, 4);
        uint32_t before = load_relaxed(&t->ran);
        if (what == 0) {
            ASSERT_OK(weft_detach(weft_go(runs, &t->ran)));
        } else if (what == 1) {
            ASSERT_OK(
                weft_detach(weft_go(sleeps, (weft_time)pool_random(&random, 300000), &t->ran)));
        } else if (what == 2) {
            ASSERT_OK(weft_send(t->chan, &i));
        } else {
            ASSERT_EQ(write(weft_stream_fd(t->out), "x", 1), 1);
        }
        if (pool_random(&random, 2)) CREW_UNTIL(load_relaxed(&t->ran) > before);
    }
    (void)weft_rt_enter(NULL);
    return NULL;
}

static int receives(struct traffic *t)
{
    uint32_t i;
    while (weft_recv(t->chan, &i) == 1)
        (void)fetch_add_relaxed(&t->ran, 1);
    return 0;
}

static int drinks(struct traffic *t, weft_stream *in)
{
    char buf[64];
    ssize_t n;
    while ((n = weft_read(in, buf, sizeof buf)) > 0)
        (void)fetch_add_relaxed(&t->ran, (uint32_t)n);
    weft_close(in);
    return (int)n;
}

#define PUSHERS 3

static void push_all(weft_rt *rt, uint32_t count)
{
    struct traffic t[PUSHERS] = {0};
    pthread_t thread[PUSHERS];
    weft_task *task[PUSHERS][2];
    int r = 1;
    for (uint32_t i = 0; i < PUSHERS; i++) {
        weft_stream *pair[2];
        ASSERT_OK(weft_unix_pair(&pair[0], &pair[1]));
        t[i].rt = rt;
        t[i].out = pair[0];
        t[i].count = count;
        t[i].seed = pool_seed(i);
        ASSERT_OK(weft_chan_new_sized(WEFT_CHAN_BOUNDED, sizeof(uint32_t), 4, &t[i].chan));
        task[i][0] = weft_go(receives, &t[i]);
        task[i][1] = weft_go(drinks, &t[i], pair[1]);
        ASSERT_OK(pthread_create(&thread[i], NULL, pushes, &t[i]));
    }
    for (uint32_t i = 0; i < PUSHERS; i++) {
        ASSERT_OK(pthread_join(thread[i], NULL));
        CREW_UNTIL(load_acquire(&t[i].ran) == count); /* each of them, once */
        weft_chan_close(t[i].chan);
        weft_close(t[i].out);
        for (int k = 0; k < 2; k++) {
            ASSERT_OK(weft_join(task[i][k], &r));
            ASSERT_OK(r);
        }
        ASSERT_EQ(load_relaxed(&t[i].ran), count);
        weft_chan_free(t[i].chan);
    }
}

static void everything_arrives(struct crew *crew)
{
    push_all(crew->rt, (uint32_t)test_scaled(1500));
}

TEST_WITH(io_every_wake_arrives, .timeout_s = 300)
{
    crew_each(everything_arrives);
}

/* ---- a host that sleeps in poll(2), and nowhere else ---- */

static void *hosts(void *arg)
{
    struct crew *crew = arg;
    int fd = weft_rt_fd(crew->rt);
    ASSERT_GE(fd, 0);
    while (!load_relaxed(&crew->quit)) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        (void)poll(&p, 1, -1);
        ASSERT_GE(weft_rt_turn(crew->rt, 0), 0);
    }
    return NULL;
}

TEST_WITH(io_every_wake_reaches_a_host, .timeout_s = 300)
{
    for (uint32_t i = 0; i < 3; i++) {
        struct crew crew = {.workers = -1};
        ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1, .seed = test_seed() | 1}, &crew.rt));
        (void)weft_rt_enter(crew.rt);
        ASSERT_OK(pthread_create(&crew.driver, NULL, hosts, &crew));
        push_all(crew.rt, (uint32_t)test_scaled(1000));
        crew_stop(&crew);
    }
}

/* ---- stops with everything open ---- */

static int waits_on(weft_stream *s, _Atomic uint32_t *ended)
{
    char b;
    int r = (int)weft_read(s, &b, 1);
    (void)fetch_add_relaxed(ended, 1);
    return r == -ECANCELED ? 0 : -EIO;
}

/* As many as this process may have, up to `most`. */
static uint32_t pairs_up_to(uint32_t most)
{
    struct rlimit limit;
    ASSERT_OK(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = limit.rlim_max < 4000 ? limit.rlim_max : 4000;
    ASSERT_OK(setrlimit(RLIMIT_NOFILE, &limit));
    uint32_t may = (uint32_t)limit.rlim_cur / 2 - 100;
    return may < most ? may : most;
}

/* Waiters on all of them, some of which are threads. */
TEST_WITH(io_stops_with_everything_open, .timeout_s = 300)
{
    for (size_t k = 0; k < CREW_SIZES; k++) {
        enum { PAIRS_MAX = 1500, THREADS = 4 };
        static weft_stream *pair[PAIRS_MAX][2];
        uint32_t pairs = pairs_up_to((uint32_t)test_scaled(PAIRS_MAX));
        struct crew crew;
        pthread_t thread[THREADS];
        _Atomic uint32_t ended = 0;
        if (pairs < 2 * THREADS) pairs = 2 * THREADS;
        crew_start(&crew, crew_sizes[k]);
        for (uint32_t i = 0; i < pairs; i++) {
            ASSERT_OK(weft_unix_pair(&pair[i][0], &pair[i][1]));
            if (i < THREADS) {
                ASSERT_OK(pthread_create(&thread[i], NULL, reads_one, pair[i][1]));
            } else {
                ASSERT_OK(weft_detach(weft_go(waits_on, pair[i][1], &ended)));
            }
        }
        for (uint32_t i = 0; i < pairs; i++)
            CREW_UNTIL(HAS_USER(pair[i][1], WEFT__USE_READER));
        crew_stop(&crew);
        ASSERT_EQ(load_relaxed(&ended), pairs - THREADS);
        for (uint32_t i = 0; i < THREADS; i++) {
            void *answer;
            ASSERT_OK(pthread_join(thread[i], &answer));
            ASSERT_EQ((intptr_t)answer, -ESHUTDOWN);
        }
        for (uint32_t i = 0; i < pairs; i++) {
            weft_close(pair[i][0]);
            weft_close(pair[i][1]);
        }
    }
}
