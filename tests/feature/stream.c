/* SPDX-License-Identifier: MIT
 *
 * Streams on real runtimes: bytes arrive whole and in order, whatever carries them and whoever waits for them; the end, half an end, and
 * a second reader.
 */
#include "storm.h"
#include "town.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- echo, by both kinds of task ---- */

static int echo(weft_stream *c)
{
    char b[4096];
    ssize_t n;
    while ((n = weft_read(c, b, sizeof b)) > 0)
        if ((n = weft_write_all(c, b, (size_t)n)) < 0) break;
    weft_close(c);
    return (int)n;
}

struct echoing {
    WEFT_FRAME(int);
    weft_stream *c;
    char b[256];
    struct weft_read rd;
    struct weft_write_all wr;
};
static weft_async(echoing)
{
    weft_begin;
    for (;;) {
        weft_await(f->rd, weft_read, f->c, f->b, sizeof f->b);
        if (f->rd.ret <= 0) break;
        weft_await(f->wr, weft_write_all, f->c, f->b, (size_t)f->rd.ret);
        if (f->wr.ret < 0) break;
    }
    weft_close(f->c);
    weft_return((int)f->rd.ret);
    weft_end;
}

static weft_task *echoer(weft_stream *c, bool stackless)
{
    return stackless ? weft_spawn(echoing, c) : weft_go(echo, c);
}

/* The test's own thread is the client. */
static void echoes(struct crew *crew)
{
    (void)crew;
    static const enum town_kind kinds[] = {TOWN_TCP, TOWN_UNIX, TOWN_MEMORY};
    for (int i = 0; i < 6; i++) {
        weft_stream *pair[2];
        unsigned char out[1000], in[1000];
        int r = 1;
        town_pair(kinds[i % 3], pair);
        weft_task *task = echoer(pair[1], i / 3);
        for (uint64_t k = 0; k < 20; k++) {
            town_fill(out, sizeof out, k);
            ASSERT_EQ(weft_write_all(pair[0], out, sizeof out), sizeof out);
            ASSERT_EQ(weft_read_exact(pair[0], in, sizeof in), sizeof in);
            town_check(in, sizeof in, k);
        }
        ASSERT_OK(weft_shutdown(pair[0]));
        ASSERT_EQ(weft_read(pair[0], in, sizeof in), 0);
        weft_close(pair[0]);
        ASSERT_OK(weft_join(task, &r));
        ASSERT_OK(r);
    }
}

TEST(stream_echoes)
{
    crew_each(echoes);
}

/* ---- many bytes, in pieces of any size ---- */

struct load {
    weft_stream *stream;
    uint64_t bytes;
    uint64_t seed;
};

#define PIECE 8192

static int pours(struct load *l)
{
    unsigned char buf[PIECE];
    uint64_t random = l->seed;
    for (uint64_t at = 0; at < l->bytes;) {
        size_t len = 1 + pool_random(&random, PIECE - 1);
        if (len > l->bytes - at) len = (size_t)(l->bytes - at);
        town_fill(buf, len, at);
        ssize_t n = pool_random(&random, 2) ? weft_write_all(l->stream, buf, len)
                                            : weft_write(l->stream, buf, len);
        if (n < 0) return (int)n;
        at += (uint64_t)n;
    }
    weft_close(l->stream);
    return 0;
}

struct drinking {
    WEFT_FRAME(int);
    struct load *l;
    uint64_t at;
    struct iovec iov[2];
    struct weft_readv rd;
    unsigned char buf[700];
};
static weft_async(drinking)
{
    weft_begin;
    for (;;) {
        f->iov[0] = (struct iovec){f->buf, 300};
        f->iov[1] = (struct iovec){f->buf + 300, 400};
        weft_await(f->rd, weft_readv, f->l->stream, f->iov, 2);
        if (f->rd.ret <= 0) break;
        town_check(f->buf, (size_t)f->rd.ret, f->at);
        f->at += (uint64_t)f->rd.ret;
    }
    weft_close(f->l->stream);
    weft_return(f->rd.ret < 0 ? (int)f->rd.ret : f->at == f->l->bytes ? 0 : -EIO);
    weft_end;
}

static int drinks(struct load *l)
{
    unsigned char buf[PIECE];
    uint64_t at = 0;
    uint64_t random = l->seed;
    ssize_t n;
    while ((n = weft_read(l->stream, buf, 1 + pool_random(&random, PIECE - 1))) > 0) {
        town_check(buf, (size_t)n, at);
        at += (uint64_t)n;
    }
    weft_close(l->stream);
    return n < 0 ? (int)n : at == l->bytes ? 0 : -EIO;
}

static void carries(struct crew *crew)
{
    uint64_t bytes = test_scaled(1000000);
    (void)crew;
    for (int i = 0; i < 2 * TOWN_KINDS; i++) {
        weft_stream *pair[2];
        int r[2] = {1, 1};
        town_pair((enum town_kind)(i / 2), pair);
        struct load in = {pair[0], bytes, pool_seed(1)};
        struct load out = {pair[1], bytes, pool_seed(2)};
        weft_task *a = weft_go(pours, &in);
        weft_task *b = i % 2 ? weft_spawn(drinking, &out) : weft_go(drinks, &out);
        ASSERT_OK(weft_join(a, &r[0]));
        ASSERT_OK(weft_join(b, &r[1]));
        ASSERT_OK(r[0]);
        ASSERT_OK(r[1]);
    }
}

TEST_WITH(stream_carries_bytes_in_order, .timeout_s = 180)
{
    crew_each(carries);
}

/* ---- ends ---- */

static int reads_the_end(weft_stream *c)
{
    char b[10];
    return (int)weft_read(c, b, sizeof b);
}

static void ends(struct crew *crew)
{
    (void)crew;
    for (int kind = 0; kind < TOWN_KINDS; kind++) {
        weft_stream *pair[2];
        char b[10];
        int r = 1;
        town_pair((enum town_kind)kind, pair);
        weft_task *task = weft_go(reads_the_end, pair[1]); /* waits for it, perhaps */
        weft_close(pair[0]);
        ASSERT_OK(weft_join(task, &r));
        ASSERT_EQ(r, 0);
        ASSERT_EQ(weft_read(pair[1], b, sizeof b), 0); /* and again */
        weft_close(pair[1]);
    }
}

TEST(stream_ends_when_its_peer_closes)
{
    crew_each(ends);
}

/* Each side in turn says that it writes no more; the other direction goes on. */
static void half_closes(struct crew *crew)
{
    (void)crew;
    for (int kind = 0; kind < TOWN_KINDS; kind++) {
        weft_stream *pair[2];
        char b[10];
        if (kind == TOWN_PIPE) continue;
        town_pair((enum town_kind)kind, pair);
        ASSERT_OK(weft_shutdown(pair[0]));
        ASSERT_EQ(weft_read(pair[1], b, sizeof b), 0);
        ASSERT_EQ(weft_write_all(pair[1], "still", 5), 5);
        ASSERT_EQ(weft_read_exact(pair[0], b, 5), 5);
        ASSERT_EQ(memcmp(b, "still", 5), 0);
        ASSERT_EQ(weft_write(pair[0], "no", 2), -EPIPE);
        ASSERT_OK(weft_shutdown(pair[0]));
        ASSERT_OK(weft_shutdown(pair[1]));
        ASSERT_EQ(weft_read(pair[0], b, sizeof b), 0);
        weft_close(pair[0]);
        weft_close(pair[1]);
    }
}

TEST(stream_closes_by_halves)
{
    crew_each(half_closes);
}

/* Data that lies before the end is read, though the end came with it. */
static void end_behind_data(struct crew *crew)
{
    (void)crew;
    for (int kind = 0; kind < TOWN_KINDS; kind++) {
        weft_stream *pair[2];
        char b[100];
        town_pair((enum town_kind)kind, pair);
        ASSERT_EQ(weft_write_all(pair[0], "abc", 3), 3);
        weft_close(pair[0]);
        ASSERT_EQ(weft_read(pair[1], b, sizeof b), 3);
        ASSERT_EQ(weft_read(pair[1], b, sizeof b), 0);
        weft_close(pair[1]);
    }
}

TEST(stream_ends_behind_its_data)
{
    crew_each(end_behind_data);
}

static void short_ends(struct crew *crew)
{
    weft_stream *pair[2];
    char b[10];
    (void)crew;
    town_pair(TOWN_UNIX, pair);
    ASSERT_EQ(weft_write_all(pair[0], "abc", 3), 3);
    weft_close(pair[0]);
    ASSERT_EQ(weft_read_exact(pair[1], b, sizeof b), 3);
    ASSERT_EQ(weft_read_exact(pair[1], b, sizeof b), 0);
    weft_close(pair[1]);
}

TEST(stream_read_exact_stops_at_the_end)
{
    crew_each(short_ends);
}

/* ---- nobody reads ---- */

static void no_reader(struct crew *crew)
{
    (void)crew;
    for (int kind = 0; kind < TOWN_KINDS; kind++) {
        weft_stream *pair[2];
        ssize_t n = 0;
        town_pair((enum town_kind)kind, pair);
        weft_close(pair[1]);
        for (int i = 0; i < 10000 && n >= 0; i++) /* TCP learns of it by a reset */
            n = weft_write(pair[0], "x", 1);
        ASSERT(n == -EPIPE || n == -ECONNRESET);
        ASSERT_EQ(weft_write(pair[0], "x", 1), -EPIPE);
        weft_close(pair[0]);
    }
}

TEST(stream_without_reader_is_an_error_and_no_signal)
{
    crew_each(no_reader);
}

/* ---- two of a kind ---- */

static int reads_patiently(weft_stream *c)
{
    char b[10];
    ssize_t n;
    while ((n = weft_read(c, b, sizeof b)) == -EBUSY)
        (void)weft_yield();
    return (int)n;
}

static void busy(struct crew *crew)
{
    weft_stream *pair[2];
    char b[10];
    int r = 1;
    (void)crew;
    town_pair(TOWN_UNIX, pair);
    weft_task *task = weft_go(reads_patiently, pair[1]);
    ssize_t n;
    do { /* until the other waits: this one must not */
        struct weft_read rd;
        struct weft_yield once;
        (void)weft_select_biased(weft_arm(rd, weft_read, pair[1], b, sizeof b),
                                 weft_arm(once, weft_yield));
        n = rd.ret;
    } while (n != -EBUSY);
    ASSERT_EQ(weft_write_all(pair[1], "x", 1), 1); /* a writer is no reader */
    ASSERT_EQ(weft_read_exact(pair[0], b, 1), 1);
    weft_close(pair[0]);
    ASSERT_OK(weft_join(task, &r));
    ASSERT_EQ(r, 0);
    weft_close(pair[1]);
}

TEST(stream_has_one_reader)
{
    crew_each(busy);
}

/* ---- peek, nothing, mistakes ---- */

static void peeks(struct crew *crew)
{
    (void)crew;
    for (int kind = 0; kind < TOWN_KINDS; kind++) {
        weft_stream *pair[2];
        char b[10];
        town_pair((enum town_kind)kind, pair);
        ASSERT_EQ(weft_write_all(pair[0], "abc", 3), 3);
        if (kind == TOWN_PIPE) {
            ASSERT_EQ(weft_peek(pair[1], b, sizeof b), -EOPNOTSUPP);
        } else {
            ASSERT_EQ(weft_peek(pair[1], b, 2), 2);
            ASSERT_EQ(weft_peek(pair[1], b, sizeof b), 3);
        }
        ASSERT_EQ(weft_read(pair[1], b, sizeof b), 3);
        weft_close(pair[0]);
        weft_close(pair[1]);
    }
}

TEST(stream_peeks)
{
    crew_each(peeks);
}

static void nothing(struct crew *crew)
{
    weft_stream *pair[2];
    char b[4];
    (void)crew;
    town_pair(TOWN_TCP, pair);
    ASSERT_EQ(weft_read(pair[1], b, 0), 0);
    ASSERT_EQ(weft_write(pair[0], b, 0), 0);
    ASSERT_EQ(weft_write_all(pair[0], NULL, 0), 0);
    ASSERT_EQ(weft_writev_all(pair[0], NULL, 0), 0);
    ASSERT_EQ(weft_read(pair[1], NULL, 4), -EINVAL);
    ASSERT_EQ(weft_read(NULL, b, 4), -EINVAL);
    ASSERT_EQ(weft_shutdown(NULL), -EINVAL);
    ASSERT_EQ(weft_stream_fd(NULL), -EINVAL);
    weft_close((weft_stream *)NULL);
    weft_close(pair[0]);
    weft_close(pair[1]);
}

TEST(stream_of_nothing_and_mistakes)
{
    crew_each(nothing);
}

TEST(stream_needs_a_runtime)
{
    weft_stream *a, *b;
    weft_listener *l;
    ASSERT_EQ(weft_pipe(&a, &b), -ENXIO);
    ASSERT_EQ(weft_unix_pair(&a, &b), -ENXIO);
    ASSERT_EQ(weft_tcp_listen("127.0.0.1:0", &l), -ENXIO);
    ASSERT_EQ(weft_tcp_connect("127.0.0.1:1", &a), -ENXIO);
    ASSERT_EQ(weft_unix_connect("@nobody", &a), -ENXIO);
    ASSERT_EQ(weft_pipe(NULL, &b), -EINVAL);
}

/* ---- lists longer than one call takes ---- */

static void long_lists(struct crew *crew)
{
    enum { PARTS = 300, LEN = 7 };
    static unsigned char out[PARTS * LEN], in[PARTS * LEN];
    struct iovec iov[PARTS];
    weft_stream *pair[2];
    (void)crew;
    town_pair(TOWN_TCP, pair);
    town_fill(out, sizeof out, 5);
    for (size_t i = 0; i < PARTS; i++)
        iov[i] = (struct iovec){out + i * LEN, LEN};
    ASSERT_EQ(weft_writev_all(pair[0], iov, PARTS), sizeof out);
    ASSERT_EQ(weft_read_exact(pair[1], in, sizeof in), sizeof in);
    town_check(in, sizeof in, 5);
    ASSERT_EQ(weft_writev(pair[0], iov, 3), 3 * LEN);
    ASSERT_EQ(weft_read_exact(pair[1], in, 3 * LEN), 3 * LEN);
    weft_close(pair[0]);
    weft_close(pair[1]);
}

TEST(stream_writes_long_lists)
{
    crew_each(long_lists);
}

/* ---- in memory ---- */

static int reads_ten(weft_stream *s)
{
    char b[10];
    ssize_t n;
    while ((n = weft_read_exact(s, b, sizeof b)) == -EBUSY)
        (void)weft_yield();
    return (int)n;
}

/* Closed under its own reader, and under its own writer: both are answered. */
static void closed_in_memory(struct crew *crew)
{
    static const char block[3000];
    weft_stream *a, *b;
    int r = 1;
    (void)crew;
    ASSERT_OK(weft_duplex(100, &a, &b));
    ASSERT_EQ(weft_write(b, "x", 1), 1);
    weft_task *reader = weft_go(reads_ten, a);
    ASSERT_EQ(weft_write(a, block, sizeof block), 100); /* what fits */
    char c;
    do { /* until the reader has the byte, and waits for more */
        struct weft_peek look;
        struct weft_yield once;
        (void)weft_select_biased(weft_arm(look, weft_peek, a, &c, 1), weft_arm(once, weft_yield));
        r = (int)look.ret;
    } while (r != -EBUSY);
    weft_close(a);
    ASSERT_OK(weft_join(reader, &r));
    ASSERT_EQ(r, -EBADF);
    char rest[200];
    ASSERT_EQ(weft_read(b, rest, sizeof rest), 100); /* what was written before the end */
    ASSERT_EQ(weft_read(b, rest, sizeof rest), 0);
    ASSERT_EQ(weft_write(b, "x", 1), -EPIPE);
    ASSERT_EQ(weft_stream_fd(b), -EOPNOTSUPP);
    weft_close(b);
    ASSERT_EQ(weft_duplex(0, &a, &b), -EINVAL);
    ASSERT_EQ(weft_duplex(1, NULL, &b), -EINVAL);
}

TEST(stream_in_memory_is_closed_under_its_reader)
{
    crew_each(closed_in_memory);
}

/* ---- terminals ---- */

static int terminal(int *into)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0) return -1;
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    *into = slave;
    return master;
}

/* A terminal gives one line for each read, however many there are: fewer bytes than asked for do not mean that it is drained. */
static void lines(struct crew *crew)
{
    weft_stream *s;
    char b[100];
    int slave = -1;
    (void)crew;
    int master = terminal(&slave);
    if (slave < 0) {
        if (master >= 0) (void)close(master);
        return; /* no terminals here */
    }
    ASSERT_OK(weft_stream_of_fd(slave, &s));
    ASSERT_EQ(write(master, "one\ntwo\nthree\n", 14), 14);
    ASSERT_EQ(weft_read(s, b, sizeof b), 4);
    ASSERT_EQ(weft_read(s, b, sizeof b), 4);
    ASSERT_EQ(weft_read(s, b, sizeof b), 6);
    weft_close(s);
    ASSERT_OK(close(master));
}

TEST(stream_of_a_terminal_reads_all_lines)
{
    crew_each(lines);
}

static void no_datagrams(struct crew *crew)
{
    weft_stream *s;
    int fds[2];
    (void)crew;
    ASSERT_OK(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds));
    ASSERT_EQ(weft_stream_of_fd(fds[0], &s), -EPROTOTYPE);
    ASSERT_OK(close(fds[0]));
    ASSERT_OK(close(fds[1]));
}

TEST(stream_is_not_made_of_datagrams)
{
    crew_each(no_datagrams);
}
