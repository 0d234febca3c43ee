/* SPDX-License-Identifier: MIT
 *
 * Copies both ways: what arrives, how they end by halves, and together; given up at any moment they tell what arrived.
 */
#include "storm.h"
#include "town.h"

#include <weft/test.h>

struct proxying {
    WEFT_FRAME(int);
    weft_stream *a;
    weft_stream *b;
    uint64_t *moved;
    struct weft_copy_bidirectional copy;
};
static weft_async(proxying)
{
    weft_begin;
    weft_await(f->copy, weft_copy_bidirectional, f->a, f->b, &f->moved[0], &f->moved[1]);
    weft_return(f->copy.ret);
    weft_end;
}

static int proxies(weft_stream *a, weft_stream *b, uint64_t *moved)
{
    return weft_copy_bidirectional(a, b, &moved[0], &moved[1]);
}

static weft_task *proxy(weft_stream *a, weft_stream *b, uint64_t *moved, bool stackless)
{
    return stackless ? weft_spawn(proxying, a, b, moved) : weft_go(proxies, a, b, moved);
}

/* client <-> a[1] proxy b[0] <-> server. The client ends its side first; the server answers what it got, then ends. */
static void both_ways(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 4; i++) {
        weft_stream *a[2], *b[2];
        uint64_t moved[2] = {0};
        char *data;
        size_t len;
        int r = 1;
        town_pair(i % 2 ? TOWN_TCP : TOWN_UNIX, a);
        town_pair(i % 2 ? TOWN_UNIX : TOWN_TCP, b);
        weft_task *task = proxy(a[1], b[0], moved, i / 2);
        ASSERT_EQ(weft_write_all(a[0], "question", 8), 8);
        ASSERT_OK(weft_shutdown(a[0]));
        ASSERT_OK(weft_read_to_end(b[1], 0, &data, &len)); /* the end came through */
        ASSERT_STR(data, "question");
        weft_free(data);
        ASSERT_EQ(weft_write_all(b[1], "the answer", 10), 10); /* the other way is open */
        ASSERT_OK(weft_shutdown(b[1]));
        ASSERT_OK(weft_read_to_end(a[0], 0, &data, &len));
        ASSERT_STR(data, "the answer");
        weft_free(data);
        ASSERT_OK(weft_join(task, &r));
        ASSERT_OK(r);
        ASSERT_EQ(moved[0], 8);
        ASSERT_EQ(moved[1], 10);
        weft_close(a[0]);
        weft_close(a[1]);
        weft_close(b[0]);
        weft_close(b[1]);
    }
}

TEST(copy_goes_both_ways_and_ends_by_halves)
{
    crew_each(both_ways);
}

/* Told to stop, or broken on one side: both directions settle, and nobody hangs. */
static void both_ways_end(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 4; i++) {
        weft_stream *a[2], *b[2];
        uint64_t moved[2] = {0};
        char in[4];
        int r = 1;
        town_pair(TOWN_UNIX, a);
        town_pair(TOWN_UNIX, b);
        weft_task *task = proxy(a[1], b[0], moved, i % 2);
        ASSERT_EQ(weft_write_all(a[0], "ping", 4), 4);
        ASSERT_EQ(weft_read_exact(b[1], in, 4), 4);
        if (i / 2) {
            weft_cancel(task);
            ASSERT_OK(weft_join(task, &r));
            ASSERT_EQ(r, -ECANCELED);
        } else { /* a reader that is gone ends both, though the other never speaks */
            weft_close(b[1]);
            ASSERT_EQ(weft_write_all(a[0], "ping", 4), 4);
            ASSERT_OK(weft_join(task, &r));
            ASSERT(r == -EPIPE || r == -ECONNRESET); /* by who writes, or by who reads */
            b[1] = NULL;
        }
        /* on a ring the kernel lets go of what was closed a moment later: the second may have gone in, to nobody */
        ASSERT(moved[0] == 4 || (town_is_on_uring() && moved[0] == 8));
        weft_close(a[0]);
        weft_close(a[1]);
        weft_close(b[0]);
        weft_close(b[1]);
    }
}

TEST(copy_both_ways_stops_as_one)
{
    crew_each(both_ways_end);
}

/* Somebody who speaks until it is told to stop. */
static int speaks(weft_stream *to)
{
    unsigned char buf[777];
    for (uint64_t at = 0;;) {
        town_fill(buf, sizeof buf, at);
        ssize_t n = weft_write(to, buf, sizeof buf);
        if (n < 0) return (int)n;
        at += (uint64_t)n;
    }
}

/* Some of what comes, behind what came before: how many bytes are there now, all in order. */
static uint64_t hears_some(weft_stream *from, uint64_t at, ssize_t *n)
{
    unsigned char buf[4096];
    *n = weft_read(from, buf, sizeof buf);
    if (*n > 0) town_check(buf, (size_t)*n, at);
    return *n > 0 ? at + (uint64_t)*n : at;
}

/* All of it, up to the end. */
static uint64_t hears(weft_stream *from, uint64_t at)
{
    ssize_t n = 1;
    while (n > 0)
        at = hears_some(from, at, &n);
    ASSERT_EQ(n, 0);
    return at;
}

static void told_to_stop(weft_task *task)
{
    int r = 1;
    weft_cancel(task);
    ASSERT_OK(weft_join(task, &r));
    ASSERT_EQ(r, -ECANCELED);
}

/* Given up at any moment, in the middle of both directions: it has written exactly what it says. Every third time something has come before. */
static void both_ways_given_up(struct crew *crew)
{
    uint64_t random = pool_seed((uint64_t)crew->workers + 11);
    for (uint64_t i = 0; i < test_scaled(30); i++) {
        weft_stream *a[2], *b[2];
        uint64_t moved[2] = {0};
        uint64_t early = 0;
        ssize_t n;
        town_pair(TOWN_UNIX, a);
        town_pair(TOWN_UNIX, b);
        weft_task *client = weft_go(speaks, a[0]);
        weft_task *server = weft_go(speaks, b[1]);
        weft_task *task = proxy(a[1], b[0], moved, i % 2);
        if (i % 3 == 0) early = hears_some(b[1], 0, &n);
        for (uint32_t k = pool_random(&random, 20); k > 0; k--)
            storm_linger(&random);
        told_to_stop(task);
        told_to_stop(client);
        told_to_stop(server);
        ASSERT_OK(weft_shutdown(a[1]));
        ASSERT_OK(weft_shutdown(b[0]));
        ASSERT_GE(moved[0], early);
        ASSERT_EQ(hears(b[1], early), moved[0]);
        ASSERT_EQ(hears(a[0], 0), moved[1]);
        for (int k = 0; k < 2; k++) {
            weft_close(a[k]);
            weft_close(b[k]);
        }
    }
}

TEST_WITH(copy_both_ways_given_up_tells_what_arrived, .timeout_s = 180)
{
    crew_each(both_ways_given_up);
}

/* One direction fails while the other waits for what never comes: that one is told to stop. */
static void one_way_fails(struct crew *crew)
{
    static const weft_script_step steps[] = {WEFT_SCRIPT_WRITE_FAILS(EIO),
                                             WEFT_SCRIPT_EXPECTS("nobody writes this")};
    (void)crew;
    for (int i = 0; i < 4; i++) {
        weft_stream *pair[2], *script;
        uint64_t moved[2] = {1, 1};
        int r = 1;
        town_pair(TOWN_UNIX, pair);
        ASSERT_OK(weft_script_new(steps, 2, &script));
        bool first = i / 2; /* which of the two is polled first */
        weft_task *task = proxy(first ? pair[1] : script, first ? script : pair[1], moved, i % 2);
        ASSERT_EQ(weft_write_all(pair[0], "x", 1), 1);
        ASSERT_OK(weft_join(task, &r));
        ASSERT_EQ(r, -EIO);
        ASSERT_EQ(moved[0], 0);
        ASSERT_EQ(moved[1], 0);
        weft_close(script);
        weft_close(pair[0]);
        weft_close(pair[1]);
    }
}

TEST(copy_both_ways_fails_as_one)
{
    crew_each(one_way_fails);
}
