/* SPDX-License-Identifier: MIT
 *
 * Buffered streams on real runtimes: lines, pieces, looking ahead, small writes; limits, failures, mistakes. What is given up: buf_given_up.c.
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
