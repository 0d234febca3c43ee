/* SPDX-License-Identifier: MIT
 *
 * Buffered streams on real runtimes: lines, pieces, looking ahead, small writes; limits, failures, and every byte accounted for whatever is given up.
 */
#include "base/fault.h"
#include "storm.h"
#include "town.h"

#include <signal.h>

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

static void says(weft_stream *peer, const char *text)
{
    ASSERT_EQ(weft_write_all(peer, text, strlen(text)), strlen(text));
}

static void line_is(weft_buf *b, size_t limit, const char *text)
{
    weft_slice line;
    ASSERT_EQ(weft_read_line(b, limit, &line), 1);
    ASSERT_EQ(line.len, strlen(text));
    ASSERT_EQ(memcmp(line.data, text, line.len), 0);
}

/* ---- lines ---- */

static void lines(struct crew *crew)
{
    weft_stream *peer;
    weft_slice line;
    weft_buf *b = buffered(&peer, NULL);
    (void)crew;
    says(peer, "one\ntwo\r\n\n\r\na\rb\n\r\r\nlast\r");
    weft_close(peer);
    line_is(b, 0, "one");
    line_is(b, 0, "two");
    line_is(b, 0, "");
    line_is(b, 0, "");
    line_is(b, 0, "a\rb");
    line_is(b, 0, "\r");
    line_is(b, 0, "last\r"); /* no LF, no line end */
    ASSERT_EQ(weft_read_line(b, 0, &line), 0);
    ASSERT_EQ(weft_read_line(b, 0, &line), 0);
    weft_close(b);
}

TEST(buf_reads_lines)
{
    crew_each(lines);
}

/* Exactly `limit` is a line, with whatever end; one more is an error that consumes nothing. */
static void line_limits(struct crew *crew)
{
    weft_stream *peer;
    weft_slice line;
    const char *data;
    weft_buf *b = buffered(&peer, &(weft_buf_opts){.read_bytes = 4});
    (void)crew;
    says(peer, "123456\n123456\r\n1234567\nx\n123456");
    line_is(b, 6, "123456");
    line_is(b, 6, "123456");
    ASSERT_EQ(weft_read_line(b, 6, &line), -EMSGSIZE);
    ASSERT_EQ(weft_read_line(b, 6, &line), -EMSGSIZE);
    ASSERT_EQ(weft_read_until(b, '\n', 7, &data), -EMSGSIZE);
    ASSERT_EQ(weft_read_until(b, '\n', 8, &data), 8);
    ASSERT_EQ(memcmp(data, "1234567\n", 8), 0);
    line_is(b, 1, "x");
    weft_close(peer);
    line_is(b, 6, "123456");
    weft_close(b);
}

TEST(buf_lines_have_a_limit)
{
    crew_each(line_limits);
}

/* Too long shows before the end of the line is there: nobody waits for it. */
static void limit_shows_early(struct crew *crew)
{
    weft_stream *peer;
    weft_slice line;
    const char *data;
    char room[8];
    weft_buf *b = buffered(&peer, &(weft_buf_opts){.read_room = room, .read_bytes = sizeof room});
    (void)crew;
    says(peer, "12345678");
    ASSERT_EQ(weft_read_line(b, 3, &line), -EMSGSIZE);
    ASSERT_EQ(weft_read_line(b, 1000, &line), -EMSGSIZE); /* the caller's room is full */
    ASSERT_EQ(weft_buf_fill(b, 9, &data), -EMSGSIZE);
    ASSERT_EQ(weft_buf_fill(b, 8, &data), 8);
    ASSERT_EQ(memcmp(data, "12345678", 8), 0);
    ASSERT_EQ(weft_buf_consume(b, 9), -EINVAL);
    ASSERT_OK(weft_buf_consume(b, 6));
    says(peer, "9\n");
    line_is(b, 3, "789");
    weft_close(peer);
    weft_close(b);
}

TEST(buf_in_the_callers_room_never_grows)
{
    crew_each(limit_shows_early);
}

static void until(struct crew *crew)
{
    weft_stream *peer;
    const char *data;
    weft_buf *b = buffered(&peer, &(weft_buf_opts){.read_bytes = 3});
    (void)crew;
    says(peer, "a=1;bb=22;;rest");
    weft_close(peer);
    ASSERT_EQ(weft_read_until(b, ';', 100, &data), 4);
    ASSERT_EQ(memcmp(data, "a=1;", 4), 0);
    ASSERT_EQ(weft_read_until(b, ';', 100, &data), 6);
    ASSERT_EQ(memcmp(data, "bb=22;", 6), 0);
    ASSERT_EQ(weft_read_until(b, ';', 100, &data), 1);
    ASSERT_EQ(weft_read_until(b, ';', 4, &data), 4);
    ASSERT_EQ(memcmp(data, "rest", 4), 0);
    ASSERT_EQ(weft_read_until(b, ';', 100, &data), 0);
    weft_close(b);
}

TEST(buf_reads_until_a_delimiter)
{
    crew_each(until);
}

static void fills(struct crew *crew)
{
    weft_stream *peer;
    const char *data;
    weft_buf *b = buffered(&peer, &(weft_buf_opts){.read_bytes = 2});
    (void)crew;
    says(peer, "abcdef");
    ASSERT_EQ(weft_buf_fill(b, 5, &data), 5);
    ASSERT_EQ(memcmp(data, "abcde", 5), 0);
    ASSERT_EQ(weft_buf_fill(b, 1, &data), 5); /* and again: it was not consumed */
    ASSERT_OK(weft_buf_consume(b, 4));
    weft_close(peer);
    ASSERT_EQ(weft_buf_fill(b, 100, &data), 2); /* the end */
    ASSERT_EQ(memcmp(data, "ef", 2), 0);
    ASSERT_OK(weft_buf_consume(b, 2));
    ASSERT_EQ(weft_buf_fill(b, 0, &data), 0);
    weft_close(b);
}

TEST(buf_fills_and_consumes)
{
    crew_each(fills);
}

/* ---- as a stream ---- */

static void is_a_stream(struct crew *crew)
{
    enum { BYTES = 100 };
    unsigned char out[BYTES], in[BYTES];
    weft_stream *peer;
    weft_buf *b = buffered(&peer, &(weft_buf_opts){.read_bytes = 16, .write_bytes = 16});
    weft_stream *s = weft_buf_stream(b);
    (void)crew;
    town_fill(out, BYTES, 0);
    for (size_t step = 1; step < BYTES; step++) { /* smaller than the buffer, as large, larger */
        ASSERT_EQ(weft_write_all(peer, out, BYTES), BYTES);
        ASSERT_EQ(weft_peek(s, in, 3), 3);
        town_check(in, 3, 0);
        for (size_t at = 0; at < BYTES; at += step) {
            size_t len = step < BYTES - at ? step : BYTES - at;
            ASSERT_EQ(weft_read_exact(s, in + at, len), len);
        }
        town_check(in, BYTES, 0);
        for (size_t at = 0; at < BYTES; at += step) {
            size_t len = step < BYTES - at ? step : BYTES - at;
            struct iovec iov[] = {{out + at, len / 2}, {out + at + len / 2, len - len / 2}};
            ASSERT_EQ(weft_writev_all(s, iov, 2), len);
        }
        ASSERT_OK(weft_flush(b));
        ASSERT_EQ(weft_read_exact(peer, in, BYTES), BYTES);
        town_check(in, BYTES, 0);
    }
    ASSERT_EQ(weft_write(s, "tail", 4), 4); /* held back until the shutdown */
    ASSERT_OK(weft_shutdown(s));
    ASSERT_EQ(weft_read_exact(peer, in, BYTES), 4);
    ASSERT_EQ(weft_write_all(s, out, BYTES), -EPIPE);
    weft_close(peer);
    ASSERT_EQ(weft_read_exact(s, in, BYTES), 0);
    ASSERT_GE(weft_stream_fd(s), 0);
    weft_close(s);
}

TEST(buf_is_a_stream)
{
    crew_each(is_a_stream);
}

static void keeps(struct crew *crew)
{
    weft_stream *pair[2];
    weft_buf *b;
    char byte;
    (void)crew;
    town_pair(TOWN_UNIX, pair);
    ASSERT_OK(weft_buf_new(pair[1], &(weft_buf_opts){.keep = true}, &b));
    weft_close(b);
    says(pair[0], "x");
    ASSERT_EQ(weft_read(pair[1], &byte, 1), 1);
    weft_close(pair[0]);
    weft_close(pair[1]);
}

TEST(buf_leaves_a_stream_open_that_it_borrows)
{
    crew_each(keeps);
}

/* ---- two of a kind, mistakes ---- */

static int waits_for_a_line(weft_buf *b)
{
    weft_slice line;
    int r;
    while ((r = weft_read_line(b, 0, &line)) == -EBUSY)
        (void)weft_yield();
    return r;
}

static void busy(struct crew *crew)
{
    weft_stream *peer;
    weft_buf *b = buffered(&peer, NULL);
    const char *data;
    int r = -1;
    (void)crew;
    says(peer, "some"); /* it is in the buffer, with the seat still taken */
    weft_task *task = weft_go(waits_for_a_line, b);
    ssize_t n;
    do {
        struct weft_buf_fill fill;
        struct weft_yield once;
        (void)weft_select_biased(weft_arm(fill, weft_buf_fill, b, 100, &data),
                                 weft_arm(once, weft_yield));
        n = fill.ret;
    } while (n != -EBUSY);
    ASSERT_EQ(weft_buf_consume(b, 0), -EBUSY);
    ASSERT_EQ(weft_write_all(weft_buf_stream(b), "x", 1), 1); /* a writer is no reader */
    says(peer, "\n");
    ASSERT_OK(weft_join(task, &r));
    ASSERT_EQ(r, 1);
    weft_close(peer);
    weft_close(b);
}

TEST(buf_has_one_reader)
{
    crew_each(busy);
}

TEST(buf_mistakes)
{
    weft_stream *peer;
    struct crew crew;
    weft_slice line;
    weft_buf *b;
    crew_start(&crew, 1);
    b = buffered(&peer, NULL);
    ASSERT_EQ(weft_buf_new(NULL, NULL, &b), -EINVAL);
    ASSERT_EQ(weft_buf_new(peer, NULL, NULL), -EINVAL);
    ASSERT_EQ(weft_buf_new(peer, &(weft_buf_opts){.read_room = &line}, &b), -EINVAL);
    ASSERT_EQ(weft_read_line(NULL, 0, &line), -EINVAL);
    ASSERT_EQ(weft_read_line(b, 0, NULL), -EINVAL);
    ASSERT_EQ(weft_flush(NULL), -EINVAL);
    ASSERT_EQ(weft_buf_consume(NULL, 0), -EINVAL);
    ASSERT(!weft_buf_stream(NULL));
    weft_close((weft_buf *)NULL);
    weft_close(b);
    weft_close(peer);
    crew_stop(&crew);
}

/* ---- failures ---- */

#if defined(WEFT_FAULTS)
/* No memory at any of the places that ask for it; and then it works. */
static void no_memory(struct crew *crew)
{
    weft_stream *pair[2];
    weft_slice line;
    weft_buf *b;
    (void)crew;
    town_pair(TOWN_UNIX, pair);
    for (uint32_t nth = 1; nth <= 3; nth++) {
        weft__fault_arm(WEFT__FAULT_ALLOC, nth, 1, -ENOMEM);
        ASSERT_EQ(weft_buf_new(pair[1], NULL, &b), -ENOMEM);
        weft__fault_reset();
    }
    ASSERT_OK(weft_buf_new(pair[1], &(weft_buf_opts){.read_bytes = 4}, &b));
    says(pair[0], "a long line\n");
    int r;
    uint32_t nth = 0;
    do { /* the call itself asks for memory, too, on a plain thread: it does without */
        weft__fault_arm(WEFT__FAULT_ALLOC, ++nth, 1, -ENOMEM);
        r = weft_read_line(b, 0, &line);
        weft__fault_reset();
        ASSERT(r == 1 || r == -ENOMEM);
    } while (r < 0);
    ASSERT_EQ(line.len, 11);
    ASSERT_EQ(memcmp(line.data, "a long line", 11), 0);
    weft_close(pair[0]);
    weft_close(b);
}

TEST(buf_without_memory_loses_nothing)
{
    struct crew crew;
    crew_start(&crew, 1);
    no_memory(&crew);
    crew_stop(&crew);
}

/* A broken connection in the middle of a line: the error is told, and what came before is there. */
static void breaks(struct crew *crew)
{
    weft_stream *peer;
    weft_slice line;
    const char *data;
    weft_buf *b = buffered(&peer, NULL);
    (void)crew;
    says(peer, "half a li");
    ASSERT_EQ(weft_buf_fill(b, 1, &data), 9);
    says(peer, "ne\n");
    weft__fault_arm(WEFT__FAULT_RECV, 1, 1, -ECONNRESET);
    ASSERT_EQ(weft_read_line(b, 0, &line), -ECONNRESET);
    weft__fault_reset();
    line_is(b, 0, "half a line");
    ASSERT_EQ(weft_write_all(weft_buf_stream(b), "kept", 4), 4);
    weft__fault_arm(WEFT__FAULT_SEND, 1, 1, -ENETDOWN);
    ASSERT_EQ(weft_flush(b), -ENETDOWN);
    weft__fault_reset();
    ASSERT_OK(weft_flush(b));
    char in[4];
    ASSERT_EQ(weft_read_exact(peer, in, 4), 4);
    ASSERT_EQ(memcmp(in, "kept", 4), 0);
    weft_close(peer);
    weft_close(b);
}

TEST(buf_survives_errors_beneath)
{
    struct crew crew;
    crew_start(&crew, 1);
    breaks(&crew);
    crew_stop(&crew);
}
#endif

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
    uint64_t random = d->random + 1;
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

/* ---- the end of a buffer that is in use ---- */

TEST_WITH(buf_closed_under_a_reader_is_told, .signal = SIGABRT, .timeout_s = 60)
{
    struct crew crew;
    weft_stream *peer;
    struct weft_buf_fill fill;
    struct weft_yield once;
    const char *data;
    crew_start(&crew, 1);
    weft_buf *b = buffered(&peer, NULL);
    weft_task *task = weft_go(waits_for_a_line, b);
    do {
        (void)weft_select_biased(weft_arm(fill, weft_buf_fill, b, 100, &data),
                                 weft_arm(once, weft_yield));
    } while (fill.ret != -EBUSY);
    weft_close(b);
    (void)weft_detach(task);
}
