/* SPDX-License-Identifier: MIT
 *
 * Buffered streams whose operations are given up, at any moment and by any means: every byte is read once and written once, in its order.
 */
#include "storm.h"
#include "town.h"

/* A pair of Unix sockets, of which the second has a buffer. */
static weft_buf *buffered(weft_stream **peer, const weft_buf_opts *opts)
{
    weft_stream *pair[2];
    weft_buf *b;
    town_pair(TOWN_UNIX, pair);
    ASSERT_OK(weft_buf_new(pair[1], opts, &b));
    *peer = pair[0];
    return b;
}

/* ---- given up: reading ---- */

/* Line i, as it must come. */
static size_t line_make(uint64_t i, char *into)
{
    size_t len = (size_t)(i * 2654435761u >> 7) % 90;
    for (size_t k = 0; k < len; k++)
        into[k] = (char)('a' + (i + k) % 26);
    return len;
}

struct page {
    weft_stream *peer;
    weft_buf *b;
    uint64_t lines;
    uint64_t at; /* the next one that must come; by one reader after the other */
    uint64_t seed;
};

static void line_check(struct page *p, const weft_slice *line)
{
    char want[90];
    size_t len = line_make(p->at++, want);
    ASSERT(len == line->len && memcmp(want, line->data, len) == 0);
}

static int writes_lines(struct page *p)
{
    char buf[96];
    uint64_t random = p->seed;
    for (uint64_t i = 0; i < p->lines; i++) {
        size_t len = line_make(i, buf);
        if (i % 3 == 0) buf[len++] = '\r';
        buf[len++] = '\n';
        for (size_t at = 0; at < len;) { /* in pieces */
            size_t piece = 1 + pool_random(&random, (uint32_t)(len - at));
            ssize_t n = weft_write_all(p->peer, buf + at, piece);
            if (n < 0) return (int)n;
            at += piece;
            if (pool_random(&random, 3) == 0) (void)weft_yield();
        }
    }
    weft_close(p->peer);
    return 0;
}

static int reads_lines(struct page *p)
{
    weft_slice line;
    int r;
    while ((r = weft_read_line(p->b, 90, &line)) > 0)
        line_check(p, &line);
    return r;
}

struct reading_lines {
    WEFT_FRAME(int);
    struct page *p;
    weft_slice line;
    struct weft_read_line rd;
};
static weft_async(reading_lines)
{
    weft_begin;
    for (;;) {
        weft_await(f->rd, weft_read_line, f->p->b, 90, &f->line);
        if (f->rd.ret <= 0) break;
        line_check(f->p, &f->line);
    }
    weft_return(f->rd.ret);
    weft_end;
}

/* One reader after the other, of either kind, each cancelled at any moment. */
static void given_up_reads(struct crew *crew)
{
    struct page p = {.lines = test_scaled(2000), .seed = pool_seed(3)};
    uint64_t random = pool_seed(4);
    int r = -ECANCELED;
    int w = 1;
    (void)crew;
    p.b = buffered(&p.peer, &(weft_buf_opts){.read_bytes = 32});
    weft_task *writer = weft_go(writes_lines, &p);
    while (r == -ECANCELED) {
        weft_task *reader =
            pool_random(&random, 2) ? weft_spawn(reading_lines, &p) : weft_go(reads_lines, &p);
        for (uint32_t k = pool_random(&random, 30); k > 0; k--)
            sched_yield();
        weft_cancel(reader);
        ASSERT_OK(weft_join(reader, &r));
    }
    ASSERT_EQ(r, 0);
    ASSERT_EQ(p.at, p.lines);
    ASSERT_OK(weft_join(writer, &w));
    ASSERT_OK(w);
    weft_close(p.b);
}

TEST_WITH(buf_reads_given_up_lose_nothing, .timeout_s = 180)
{
    crew_each(given_up_reads);
}

/* The same inside one task: the read is an arm that may lose, of every kind there is. */
struct drops {
    weft_stream *peer;
    weft_buf *b;
    uint64_t bytes;
    uint64_t at;
    uint64_t random;
};

static int pours(struct drops *d)
{
    unsigned char buf[64];
    uint64_t random = pool_seed(6); /* d->random is the other one's */
    for (uint64_t at = 0; at < d->bytes;) {
        size_t len = 1 + pool_random(&random, 63);
        if (len > d->bytes - at) len = (size_t)(d->bytes - at);
        town_fill(buf, len, at);
        ssize_t n = weft_write_all(d->peer, buf, len);
        if (n < 0) return (int)n;
        at += len;
        if (pool_random(&random, 3) == 0) (void)weft_yield();
    }
    weft_close(d->peer);
    return 0;
}

/* How many bytes came, checked; 0: the end, or it was given up. */
static ssize_t sips(struct drops *d, bool *ended)
{
    unsigned char buf[80];
    const char *data = NULL;
    struct storm_pause pause;
    uint32_t patience = pool_random(&d->random, 3);
    size_t want = 1 + pool_random(&d->random, 79);
    ssize_t n = -ECANCELED;
    switch (pool_random(&d->random, 4)) {
    case 0: {
        struct weft_read rd;
        (void)weft_select(weft_arm(rd, weft_read, weft_buf_stream(d->b), buf, want),
                          weft_arm(pause, storm_pause, patience));
        n = rd.ret;
        data = (const char *)buf;
        break;
    }
    case 1: {
        struct weft_read_exact rd;
        (void)weft_select(weft_arm(rd, weft_read_exact, weft_buf_stream(d->b), buf, want),
                          weft_arm(pause, storm_pause, patience));
        town_check(buf, rd.done, d->at);
        d->at += rd.done;
        *ended = rd.ret >= 0 && (size_t)rd.ret < want;
        return (ssize_t)rd.done;
    }
    case 2: {
        struct weft_read_until rd;
        (void)weft_select(weft_arm(rd, weft_read_until, d->b, 0, 4096, &data),
                          weft_arm(pause, storm_pause, patience));
        n = rd.ret;
        break;
    }
    default: {
        struct weft_buf_fill rd;
        (void)weft_select(weft_arm(rd, weft_buf_fill, d->b, want, &data),
                          weft_arm(pause, storm_pause, patience));
        n = rd.ret;
        if (n > 0) ASSERT_OK(weft_buf_consume(d->b, (size_t)n));
        break;
    }
    }
    if (n > 0) town_check((const unsigned char *)data, (size_t)n, d->at);
    if (n > 0) d->at += (uint64_t)n;
    *ended = n == 0;
    return n;
}

static int sips_all(struct drops *d)
{
    bool ended = false;
    while (!ended) {
        ssize_t n = sips(d, &ended);
        if (n < 0 && n != -ECANCELED) return (int)n;
    }
    return d->at == d->bytes ? 0 : -EIO;
}

static void given_up_arms(struct crew *crew)
{
    struct drops d = {.bytes = test_scaled(100000), .random = pool_seed(5)};
    int r[2] = {1, 1};
    (void)crew;
    d.b = buffered(&d.peer, &(weft_buf_opts){.read_bytes = 48});
    weft_task *a = weft_go(pours, &d);
    weft_task *b = weft_go(sips_all, &d);
    ASSERT_OK(weft_join(a, &r[0]));
    ASSERT_OK(weft_join(b, &r[1]));
    ASSERT_OK(r[0]);
    ASSERT_OK(r[1]);
    weft_close(d.b);
}

TEST_WITH(buf_arms_that_lose_leave_no_gap, .timeout_s = 180)
{
    crew_each(given_up_arms);
}

/* ---- given up: writing ---- */

static int writes_and_gives_up(struct drops *d)
{
    unsigned char buf[200];
    struct storm_pause pause;
    while (d->at < d->bytes) {
        size_t len = 1 + pool_random(&d->random, 199);
        uint32_t patience = pool_random(&d->random, 2);
        if (len > d->bytes - d->at) len = (size_t)(d->bytes - d->at);
        town_fill(buf, len, d->at);
        if (pool_random(&d->random, 4) == 0) {
            struct weft_flush flush;
            (void)weft_select(weft_arm(flush, weft_flush, d->b),
                              weft_arm(pause, storm_pause, patience));
            if (flush.ret < 0 && flush.ret != -ECANCELED) return flush.ret;
            continue;
        }
        struct weft_write_all wr;
        (void)weft_select(weft_arm(wr, weft_write_all, weft_buf_stream(d->b), buf, len),
                          weft_arm(pause, storm_pause, patience));
        if (wr.ret < 0 && wr.ret != -ECANCELED) return (int)wr.ret;
        d->at += wr.done;
    }
    return weft_shutdown(weft_buf_stream(d->b));
}

static int drinks(struct drops *d)
{
    unsigned char buf[300];
    uint64_t random = 17;
    uint64_t at = 0;
    ssize_t n;
    while ((n = weft_read(d->peer, buf, 1 + pool_random(&random, 299))) > 0) {
        town_check(buf, (size_t)n, at);
        at += (uint64_t)n;
        if (pool_random(&random, 2)) (void)weft_yield();
    }
    return n < 0 ? (int)n : at == d->bytes ? 0 : -EIO;
}

/* To a socket, and to a stream so narrow that each write is taken in parts. */
static void given_up_writes(struct crew *crew)
{
    (void)crew;
    for (int narrow = 0; narrow < 2; narrow++) {
        struct drops d = {.bytes = test_scaled(200000), .random = pool_seed(6)};
        weft_stream *pair[2];
        int r[2] = {1, 1};
        if (narrow) {
            ASSERT_OK(weft_duplex(13, &pair[0], &pair[1]));
        } else {
            town_pair(TOWN_UNIX, pair);
            ASSERT_OK(weft_sock_set(pair[1], WEFT_SOCK_SEND_BYTES, 2048));
        }
        d.peer = pair[0];
        ASSERT_OK(weft_buf_new(pair[1], &(weft_buf_opts){.write_bytes = 64}, &d.b));
        weft_task *a = weft_go(writes_and_gives_up, &d);
        weft_task *b = weft_go(drinks, &d);
        ASSERT_OK(weft_join(a, &r[0]));
        ASSERT_OK(weft_join(b, &r[1]));
        ASSERT_OK(r[0]);
        ASSERT_OK(r[1]);
        weft_close(d.peer);
        weft_close(d.b);
    }
}

TEST_WITH(buf_writes_given_up_leave_no_gap, .timeout_s = 180)
{
    crew_each(given_up_writes);
}
