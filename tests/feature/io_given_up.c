/* SPDX-License-Identifier: MIT
 *
 * Operations given up at every moment: no byte is lost or taken by a loser, no connection either. Seeded.
 */
#include "storm.h"
#include "town.h"

/* ---- bytes under deadlines ---- */

struct flow {
    weft_stream *stream;
    uint64_t bytes;
    uint64_t seed;
    uint64_t given_up; /* operations */
};

/* Mostly none, else short enough to come in the middle. */
static weft_time some_time(uint64_t *random)
{
    static const weft_time times[] = {0, 1, 1000, 5000, 20000, 100000};
    return times[pool_random(random, 6)];
}

/* A write that was given up has written nothing: the next one begins at the same byte. */
static int pours(struct flow *f)
{
    unsigned char buf[3000];
    uint64_t random = f->seed;
    for (uint64_t at = 0; at < f->bytes;) {
        size_t len = 1 + pool_random(&random, sizeof buf - 1);
        if (len > f->bytes - at) len = (size_t)(f->bytes - at);
        town_fill(buf, len, at);
        ssize_t n = -1;
        WEFT_TIMEOUT(some_time(&random)) n = weft_write(f->stream, buf, len);
        if (n == -ETIME) {
            f->given_up++;
        } else if (n < 0) {
            return (int)n;
        } else {
            at += (uint64_t)n;
        }
    }
    weft_close(f->stream);
    return 0;
}

/* The same of reads, by call and by arms of a select. */
static int drinks(struct flow *f)
{
    unsigned char buf[3000];
    uint64_t random = f->seed;
    for (uint64_t at = 0;;) {
        ssize_t n = -1;
        size_t len = 1 + pool_random(&random, sizeof buf - 1);
        if (pool_random(&random, 2)) {
            WEFT_TIMEOUT(some_time(&random)) n = weft_read(f->stream, buf, len);
        } else {
            struct weft_read rd;
            struct weft_sleep patience;
            (void)weft_select(weft_arm(rd, weft_read, f->stream, buf, len),
                              weft_arm(patience, weft_sleep, some_time(&random)));
            n = rd.ret;
        }
        if (n == -ETIME || n == -ECANCELED) {
            f->given_up++;
        } else if (n <= 0) {
            weft_close(f->stream);
            return n < 0 ? (int)n : at == f->bytes ? 0 : -EIO;
        } else {
            town_check(buf, (size_t)n, at);
            at += (uint64_t)n;
        }
    }
}

static void deadlines(struct crew *crew)
{
    (void)crew;
    for (int kind = 0; kind < TOWN_KINDS; kind++) {
        weft_stream *pair[2];
        int r = 1;
        town_pair((enum town_kind)kind, pair);
        struct flow in = {.stream = pair[0], .bytes = test_scaled(1000000), .seed = pool_seed(1)};
        struct flow out = {.stream = pair[1], .bytes = in.bytes, .seed = pool_seed(2)};
        weft_task *a = weft_go(pours, &in);
        weft_task *b = weft_go(drinks, &out);
        ASSERT_OK(weft_join(a, &r));
        ASSERT_OK(r);
        ASSERT_OK(weft_join(b, &r));
        ASSERT_OK(r);
    }
}

TEST_WITH(io_bytes_are_never_lost_by_deadlines, .timeout_s = 300)
{
    crew_each(deadlines);
}

/* ---- bytes under cancels from outside ---- */

struct sip {
    weft_stream *stream;
    unsigned char buf[100];
    ssize_t got;
};

static int sips(struct sip *s)
{
    s->got = weft_read(s->stream, s->buf, sizeof s->buf);
    return 0;
}

struct sipping {
    WEFT_FRAME(int);
    struct sip *s;
    struct weft_read rd;
};
static weft_async(sipping)
{
    weft_begin;
    weft_await(f->rd, weft_read, f->s->stream, f->s->buf, sizeof f->s->buf);
    f->s->got = f->rd.ret;
    weft_return(0);
    weft_end;
}

/* One reader after the other, most of them cancelled, by another thread than the one they wait on. What they read, put together, is what was written. */
static void cancels(struct crew *crew)
{
    (void)crew;
    for (int kind = 0; kind < TOWN_KINDS; kind++) {
        weft_stream *pair[2];
        uint64_t random = pool_seed(4);
        uint64_t at = 0;
        bool over = false;
        int r = 1;
        town_pair((enum town_kind)kind, pair);
        struct flow in = {.stream = pair[0], .bytes = test_scaled(20000), .seed = pool_seed(5)};
        weft_task *writer = weft_go(pours, &in);
        while (!over) {
            struct sip sip = {.stream = pair[1], .got = -1};
            weft_task *task =
                pool_random(&random, 2) ? weft_go(sips, &sip) : weft_spawn(sipping, &sip);
            storm_linger(&random);
            weft_cancel(task);
            ASSERT_OK(weft_join(task, &r));
            over = sip.got == 0;
            if (sip.got == -ECANCELED) continue;
            ASSERT_GE(sip.got, 0);
            town_check(sip.buf, (size_t)sip.got, at);
            at += (uint64_t)sip.got;
        }
        ASSERT_EQ(at, in.bytes);
        ASSERT_OK(weft_join(writer, &r));
        ASSERT_OK(r);
        weft_close(pair[1]);
    }
}

TEST_WITH(io_bytes_are_never_lost_by_cancels, .timeout_s = 300)
{
    crew_each(cancels);
}

/* ---- connections ---- */

static int accepts_impatiently(weft_listener *l, uint64_t count, uint64_t seed)
{
    uint64_t random = seed;
    for (uint64_t got = 0; got < count;) {
        weft_stream *c;
        int r = -1;
        WEFT_TIMEOUT(some_time(&random)) r = weft_accept(l, &c);
        if (r == -ETIME) continue;
        if (r < 0) return r;
        ssize_t n = weft_write_all(c, "!", 1);
        weft_close(c);
        if (n < 0) return (int)n;
        got++;
    }
    return 0;
}

/* Each connection is greeted once: none is lost in an accept that was given up. Connects that are given up leave nothing behind but what the
 * kernel has accepted already, which is greeted, too; so the acceptor is told how many it must greet at least. */
static int is_greeted(struct town_gate *gate, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        weft_stream *c;
        char b;
        int r = weft_tcp_connect(gate->address, &c);
        if (r < 0) return r;
        ssize_t n = weft_read(c, &b, 1);
        weft_close(c);
        if (n != 1) return n < 0 ? (int)n : -EIO;
    }
    return 0;
}

static void connections(struct crew *crew)
{
    enum { CLIENTS = 3 };
    struct town_gate gate;
    weft_task *client[CLIENTS];
    uint64_t each = test_scaled(100);
    int r = 1;
    (void)crew;
    town_open(&gate);
    weft_task *server = weft_go(accepts_impatiently, gate.listener, each * CLIENTS, pool_seed(6));
    for (int i = 0; i < CLIENTS; i++)
        client[i] = weft_go(is_greeted, &gate, each);
    for (int i = 0; i < CLIENTS; i++) {
        ASSERT_OK(weft_join(client[i], &r));
        ASSERT_OK(r);
    }
    ASSERT_OK(weft_join(server, &r));
    ASSERT_OK(r);
    weft_close(gate.listener);
}

TEST_WITH(io_connections_are_never_lost, .timeout_s = 300)
{
    crew_each(connections);
}

/* ---- connect given up at any moment: no descriptor stays (the harness looks) ---- */

static int connects(struct town_gate *gate)
{
    weft_stream *c;
    int r = weft_tcp_connect(gate->address, &c);
    if (r == 0) weft_close(c);
    return r;
}

struct connecting {
    WEFT_FRAME(int);
    struct town_gate *gate;
    weft_stream *c;
    struct weft_tcp_connect connect;
};
static weft_async(connecting)
{
    weft_begin;
    weft_await(f->connect, weft_tcp_connect, f->gate->address, &f->c);
    if (f->connect.ret == 0) weft_close(f->c);
    weft_return(f->connect.ret);
    weft_end;
}

static weft_task *start_connect(void *of, uint32_t i, bool stackless)
{
    (void)i;
    return stackless ? weft_spawn(connecting, of) : weft_go(connects, of);
}

static void given_up_connects(struct crew *crew)
{
    struct town_gate gate;
    (void)crew;
    town_open(&gate);
    struct storm_sum sum = storm(start_connect, &gate, (uint32_t)test_scaled(100), NULL);
    ASSERT_EQ(sum.other, 0);
    weft_close(gate.listener);
}

TEST_WITH(io_connects_given_up, .timeout_s = 300)
{
    crew_each(given_up_connects);
}
