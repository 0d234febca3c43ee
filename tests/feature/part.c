/* SPDX-License-Identifier: MIT
 *
 * Streams made of others, and streams in memory, on real runtimes: where they end, who waits for whom, and every byte accounted for.
 */
#include "base/fault.h"
#include "storm.h"
#include "town.h"

/* ---- take and chain ---- */

static void takes(struct crew *crew)
{
    weft_stream *pair[2];
    weft_part t;
    char b[10];
    (void)crew;
    town_pair(TOWN_UNIX, pair);
    ASSERT_EQ(weft_write_all(pair[0], "0123456789", 10), 10);
    weft_stream *s = weft_part_init(&t, pair[1], 6);
    ASSERT_EQ(weft_read(s, b, 4), 4);
    ASSERT_EQ(t.left, 2);
    ASSERT_EQ(weft_read_exact(s, b, sizeof b), 2);
    ASSERT_EQ(memcmp(b, "45", 2), 0);
    ASSERT_EQ(weft_read(s, b, sizeof b), 0);
    ASSERT_EQ(weft_peek(s, b, sizeof b), -EOPNOTSUPP);
    ASSERT_EQ(weft_write_all(s, "back", 4), 4); /* goes to the stream itself */
    ASSERT_OK(weft_shutdown(s));
    weft_close(s); /* closes nothing */
    ASSERT_EQ(weft_read(pair[1], b, sizeof b), 4);
    ASSERT_EQ(memcmp(b, "6789", 4), 0);
    ASSERT_EQ(weft_read_exact(pair[0], b, sizeof b), 4);
    s = weft_part_init(&t, pair[1], 100);
    weft_close(pair[0]);
    ASSERT_EQ(weft_read(s, b, sizeof b), 0); /* the stream ended before */
    ASSERT_EQ(t.left, 100);
    weft_close(pair[1]);
}

TEST(part_takes_so_many)
{
    crew_each(takes);
}

static void chains(struct crew *crew)
{
    weft_stream *a[2], *b[2];
    weft_chain c;
    char in[20];
    (void)crew;
    town_pair(TOWN_UNIX, a);
    town_pair(TOWN_PIPE, b);
    ASSERT_EQ(weft_write_all(a[0], "one", 3), 3);
    ASSERT_EQ(weft_write_all(b[0], "two", 3), 3);
    weft_close(a[0]);
    weft_close(b[0]);
    weft_stream *s = weft_chain_init(&c, a[1], b[1]);
    ASSERT_EQ(weft_write(s, "x", 1), -EBADF);
    ASSERT_EQ(weft_shutdown(s), -EOPNOTSUPP);
    ASSERT_EQ(weft_read(s, in, sizeof in), 3); /* a read does not reach over the seam */
    ASSERT(!c.ended);
    ASSERT_EQ(weft_read_exact(s, in + 3, sizeof in - 3), 3);
    ASSERT_EQ(memcmp(in, "onetwo", 6), 0);
    ASSERT(c.ended);
    ASSERT_EQ(weft_read(s, in, sizeof in), 0);
    weft_close(a[1]);
    weft_close(b[1]);
}

TEST(part_chains_one_behind_the_other)
{
    crew_each(chains);
}

/* ---- duplex ---- */

struct drops {
    weft_stream *stream;
    uint64_t bytes;
    uint64_t random;
    uint64_t at;
};

static int pours(struct drops *d)
{
    unsigned char buf[64];
    struct storm_pause pause;
    while (d->at < d->bytes) {
        size_t len = 1 + pool_random(&d->random, 63);
        if (len > d->bytes - d->at) len = (size_t)(d->bytes - d->at);
        town_fill(buf, len, d->at);
        struct weft_write_all wr;
        (void)weft_select(weft_arm(wr, weft_write_all, d->stream, buf, len),
                          weft_arm(pause, storm_pause, pool_random(&d->random, 4)));
        if (wr.ret < 0 && wr.ret != -ECANCELED) return (int)wr.ret;
        d->at += wr.done;
    }
    return weft_shutdown(d->stream);
}

static int drinks(struct drops *d)
{
    unsigned char buf[80];
    struct storm_pause pause;
    for (;;) {
        struct weft_read rd;
        size_t len = 1 + pool_random(&d->random, 79);
        (void)weft_select(weft_arm(rd, weft_read, d->stream, buf, len),
                          weft_arm(pause, storm_pause, pool_random(&d->random, 4)));
        if (rd.ret == -ECANCELED) continue;
        if (rd.ret <= 0) return rd.ret < 0 ? (int)rd.ret : d->at == d->bytes ? 0 : -EIO;
        town_check(buf, (size_t)rd.ret, d->at);
        d->at += (uint64_t)rd.ret;
    }
}

struct drinking {
    WEFT_FRAME(int);
    struct drops *d;
    struct weft_read_exact rd;
    unsigned char buf[100];
};
static weft_async(drinking)
{
    weft_begin;
    do {
        weft_await(f->rd, weft_read_exact, f->d->stream, f->buf, sizeof f->buf);
        if (f->rd.ret < 0) weft_return((int)f->rd.ret);
        town_check(f->buf, (size_t)f->rd.ret, f->d->at);
        f->d->at += (uint64_t)f->rd.ret;
    } while (f->rd.ret == sizeof f->buf);
    weft_return(f->d->at == f->d->bytes ? 0 : -EIO);
    weft_end;
}

/* Both ways at once, by writers and readers that give up again and again. */
static void duplex(struct crew *crew)
{
    uint64_t bytes = test_scaled(20000);
    (void)crew;
    for (size_t room = 1; room <= 100; room *= 10) {
        weft_stream *end[2];
        weft_task *task[4];
        struct drops d[4];
        ASSERT_OK(weft_duplex(room, &end[0], &end[1]));
        for (int i = 0; i < 4; i++) {
            d[i] = (struct drops){end[i % 2], room == 1 ? bytes / 10 : bytes,
                                  pool_seed((uint64_t)i), 0};
            task[i] = i < 2    ? weft_go(pours, &d[i])
                      : i == 2 ? weft_go(drinks, &d[i])
                               : weft_spawn(drinking, &d[i]);
        }
        for (int i = 0; i < 4; i++) {
            int r = 1;
            ASSERT_OK(weft_join(task[i], &r));
            ASSERT_OK(r);
        }
        weft_close(end[0]);
        weft_close(end[1]);
    }
}

TEST_WITH(duplex_carries_both_ways_without_a_gap, .timeout_s = 180)
{
    crew_each(duplex);
}

/* Who asks whether it has begun may be there before it, for a moment. */
static int reads_one(weft_stream *s)
{
    char b;
    for (;;) {
        ssize_t n = weft_read(s, &b, 1);
        if (n != -EBUSY) return (int)n;
        (void)weft_yield();
    }
}

static int writes_much(weft_stream *s)
{
    char b[100] = {0};
    return (int)weft_write_all(s, b, sizeof b);
}

/* Whoever waits is told: by the peer's close, and by that of its own end, in whichever order; the memory goes with the last. */
static void closes(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 50; i++) {
        weft_stream *end[2];
        int r[2] = {1, 1};
        bool own = i % 2;
        ASSERT_OK(weft_duplex(4, &end[0], &end[1]));
        weft_task *reader = weft_go(reads_one, end[0]);
        weft_task *writer = weft_go(writes_much, end[0]);
        char b[4];
        ASSERT_EQ(weft_read_exact(end[1], b, 4), 4); /* the writer has begun */
        if (own) {                                   /* that the reader has begun shows by -EBUSY */
            struct weft_read rd;
            struct weft_yield once;
            char c;
            do {
                (void)weft_select_biased(weft_arm(rd, weft_read, end[0], &c, 1),
                                         weft_arm(once, weft_yield));
            } while (rd.ret != -EBUSY && !weft_done(reader));
        }
        weft_close(end[own ? 0 : 1]);
        ASSERT_OK(weft_join(reader, &r[0]));
        ASSERT_OK(weft_join(writer, &r[1]));
        ASSERT_EQ(r[0], own ? -EBADF : 0);
        ASSERT_EQ(r[1], own ? -EBADF : -EPIPE);
        weft_close(end[own ? 1 : 0]);
    }
}

TEST(duplex_closed_tells_who_waits)
{
    crew_each(closes);
}

/* Without a runtime; full, empty, ended; no memory. */
TEST(duplex_needs_no_runtime)
{
    weft_stream *a, *b;
    char in[10];
    ASSERT_EQ(weft_duplex(0, &a, &b), -EINVAL);
    ASSERT_EQ(weft_duplex(8, NULL, &b), -EINVAL);
#if defined(WEFT_FAULTS)
    weft__fault_arm(WEFT__FAULT_ALLOC, 1, 1, -ENOMEM);
    ASSERT_EQ(weft_duplex(8, &a, &b), -ENOMEM);
    weft__fault_reset();
#endif
    ASSERT_OK(weft_duplex(8, &a, &b));
    ASSERT_EQ(weft_write(a, "0123456789", 10), 8);
    ASSERT_EQ(weft_read(b, in, 5), 5);
    ASSERT_EQ(weft_write(a, "abc", 3), 3); /* around the corner of the ring */
    ASSERT_OK(weft_shutdown(a));
    ASSERT_EQ(weft_write(a, "x", 1), -EPIPE);
    ASSERT_EQ(weft_read_exact(b, in, 10), 6);
    ASSERT_EQ(memcmp(in, "567abc", 6), 0);
    ASSERT_EQ(weft_read(b, in, 10), 0);
    ASSERT_EQ(weft_stream_fd(a), -EOPNOTSUPP);
    weft_close(b);
    weft_close(a);
}
