/* SPDX-License-Identifier: MIT
 *
 * Streams to their end, on real runtimes: into memory, into another one, from a file; with what the kernel can and without.
 */
#include "base/fault.h"
#include "storm.h"
#include "town.h"

#if defined(WEFT_FAULTS)
#define CALLS(kind) weft__fault_calls(WEFT__FAULT_##kind)
#else
#define CALLS(kind) UINT32_MAX /* not counted */
#endif

/* ---- into memory ---- */

struct source {
    weft_stream *to;
    uint64_t bytes;
    uint64_t seed;
};

static int pours(struct source *s)
{
    unsigned char buf[4096];
    uint64_t random = s->seed;
    for (uint64_t at = 0; at < s->bytes;) {
        size_t len = 1 + pool_random(&random, sizeof buf - 1);
        if (len > s->bytes - at) len = (size_t)(s->bytes - at);
        town_fill(buf, len, at);
        ssize_t n = weft_write_all(s->to, buf, len);
        if (n < 0) return (int)n;
        at += len;
        if (pool_random(&random, 4) == 0) (void)weft_yield();
    }
    weft_close(s->to);
    return 0;
}

struct reading_whole {
    WEFT_FRAME(int);
    weft_stream *from;
    char **into;
    size_t *len;
    struct weft_read_to_end rd;
};
static weft_async(reading_whole)
{
    weft_begin;
    weft_await(f->rd, weft_read_to_end, f->from, 0, f->into, f->len);
    weft_return(f->rd.ret);
    weft_end;
}

static int reads_whole(weft_stream *from, char **into, size_t *len)
{
    return weft_read_to_end(from, 0, into, len);
}

static void whole(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 6; i++) {
        weft_stream *pair[2];
        char *data = NULL;
        size_t len = 1;
        int r[2] = {1, 1};
        town_pair((enum town_kind)(i % TOWN_KINDS), pair);
        struct source s = {pair[0], i == 5 ? 0 : 1 + (uint64_t)i * 12345, pool_seed(1)};
        weft_task *a = weft_go(pours, &s);
        weft_task *b = i % 2 ? weft_spawn(reading_whole, pair[1], &data, &len)
                             : weft_go(reads_whole, pair[1], &data, &len);
        ASSERT_OK(weft_join(a, &r[0]));
        ASSERT_OK(weft_join(b, &r[1]));
        ASSERT_OK(r[0]);
        ASSERT_OK(r[1]);
        ASSERT_EQ(len, s.bytes);
        town_check((unsigned char *)data, len, 0);
        ASSERT(data && data[len] == 0);
        weft_free(data);
        weft_close(pair[1]);
    }
}

TEST(copy_reads_to_the_end)
{
    crew_each(whole);
}

static void whole_limits(struct crew *crew)
{
    weft_stream *pair[2];
    char *data;
    size_t len;
    (void)crew;
    town_pair(TOWN_UNIX, pair);
    ASSERT_EQ(weft_write_all(pair[0], "12345", 5), 5);
    ASSERT_EQ(weft_read_to_end(pair[1], 3, &data, &len), -EMSGSIZE);
    ASSERT_EQ(len, 4);
    ASSERT_STR(data, "1234");
    weft_free(data);
    ASSERT_EQ(weft_write_all(pair[0], "67", 2), 2);
    weft_close(pair[0]);
    ASSERT_OK(weft_read_to_end(pair[1], 3, &data, &len));
    ASSERT_STR(data, "567");
    weft_free(data);
    weft_close(pair[1]);
    ASSERT_EQ(weft_read_to_end(NULL, 3, &data, &len), -EINVAL);
}

TEST(copy_to_the_end_has_a_limit)
{
    crew_each(whole_limits);
}

/* Given up again and again: all pieces together are the whole. */
static int reads_in_turns(weft_stream *from, uint64_t *total)
{
    uint64_t random = pool_seed(9);
    int r;
    do {
        struct weft_read_to_end rd;
        struct storm_pause pause;
        char *data = NULL;
        size_t len = 0;
        (void)weft_select(weft_arm(rd, weft_read_to_end, from, 0, &data, &len),
                          weft_arm(pause, storm_pause, pool_random(&random, 5)));
        town_check((unsigned char *)data, len, *total);
        *total += len;
        weft_free(data);
        r = rd.ret;
    } while (r == -ECANCELED);
    return r;
}

static void whole_given_up(struct crew *crew)
{
    weft_stream *pair[2];
    uint64_t total = 0;
    int r[2] = {1, 1};
    (void)crew;
    town_pair(TOWN_UNIX, pair);
    struct source s = {pair[0], test_scaled(300000), pool_seed(1)};
    weft_task *a = weft_go(pours, &s);
    weft_task *b = weft_go(reads_in_turns, pair[1], &total);
    ASSERT_OK(weft_join(a, &r[0]));
    ASSERT_OK(weft_join(b, &r[1]));
    ASSERT_OK(r[0]);
    ASSERT_OK(r[1]);
    ASSERT_EQ(total, s.bytes);
    weft_close(pair[1]);
}

TEST(copy_to_the_end_given_up_gives_what_it_read)
{
    crew_each(whole_given_up);
}

/* ---- one way ---- */

static int drinks(weft_stream *from, uint64_t *total)
{
    unsigned char buf[3000];
    uint64_t random = 11;
    ssize_t n;
    while ((n = weft_read(from, buf, sizeof buf)) > 0) {
        town_check(buf, (size_t)n, *total);
        *total += (uint64_t)n;
        if (pool_random(&random, 3) == 0) (void)weft_yield();
    }
    return (int)n;
}

enum way { COPIES, SPLICES, COPIES_BUFFERED };

struct carrying {
    WEFT_FRAME(int64_t);
    weft_stream *from;
    weft_stream *to;
    enum way way;
    struct weft_copy copy;
    struct weft_splice splice;
};
static weft_async(carrying)
{
    weft_begin;
    if (f->way == SPLICES) {
        weft_await(f->splice, weft_splice, f->from, f->to);
        weft_close(f->to);
        weft_return(f->splice.ret);
    }
    weft_await(f->copy, weft_copy, f->from, f->to);
    weft_close(f->to);
    weft_return(f->copy.ret);
    weft_end;
}

static int64_t carries(weft_stream *from, weft_stream *to, int way)
{
    int64_t n = way == SPLICES ? weft_splice(from, to) : weft_copy(from, to);
    weft_close(to);
    return n;
}

/* Between descriptors a splice goes through the kernel; where there is none it is a copy, and a copy always is. */
static bool is_by_kernel(enum town_kind in, enum town_kind out, enum way way)
{
    return way == SPLICES && in != TOWN_MEMORY && out != TOWN_MEMORY;
}

/* From a pair into a pair, by every kind of stream. */
static void carry(enum town_kind in, enum town_kind out, enum way way, bool stackless)
{
    weft_stream *a[2], *b[2];
    uint64_t total = 0;
    int64_t n = 0;
    int r[2] = {1, 1};
    town_pair(in, a);
    town_pair(out, b);
    if (way == COPIES_BUFFERED) {
        weft_buf *buf[2];
        ASSERT_OK(weft_buf_new(a[1], &(weft_buf_opts){.read_bytes = 1000}, &buf[0]));
        ASSERT_OK(weft_buf_new(b[0], NULL, &buf[1]));
        a[1] = weft_buf_stream(buf[0]);
        b[0] = weft_buf_stream(buf[1]);
    }
    struct source s = {a[0], test_scaled(300000), pool_seed(1)};
    uint32_t calls = CALLS(SPLICE);
    weft_task *pourer = weft_go(pours, &s);
    weft_task *carrier =
        stackless ? weft_spawn(carrying, a[1], b[0], way) : weft_go(carries, a[1], b[0], (int)way);
    weft_task *drinker = weft_go(drinks, b[1], &total);
    ASSERT_OK(weft_join(pourer, &r[0]));
    ASSERT_OK(weft_join(carrier, &n));
    ASSERT_OK(weft_join(drinker, &r[1]));
    ASSERT_OK(r[0]);
    ASSERT_OK(r[1]);
    ASSERT_EQ(n, s.bytes);
    ASSERT_EQ(total, s.bytes);
    if (calls != UINT32_MAX) ASSERT_EQ(CALLS(SPLICE) > calls, is_by_kernel(in, out, way));
    weft_close(a[1]);
    weft_close(b[1]);
}

static void carry_all(struct crew *crew)
{
    (void)crew;
    for (int in = 0; in < TOWN_KINDS; in++)
        for (int out = 0; out < TOWN_KINDS; out++)
            for (int way = COPIES; way <= COPIES_BUFFERED; way++)
                carry((enum town_kind)in, (enum town_kind)out, (enum way)way, (in + out) % 2);
}

TEST_WITH(copy_carries_everything, .timeout_s = 180)
{
    crew_each(carry_all);
}

#if defined(WEFT_FAULTS)
/* The kernel that cannot, at once or in the middle with bytes in the pipe; and no pipe to be had. */
TEST(splice_falls_back_to_a_copy)
{
    struct crew crew;
    crew_start(&crew, 2);
    for (uint32_t nth = 1; nth < 8; nth++) {
        weft__fault_arm(WEFT__FAULT_SPLICE, nth, UINT32_MAX, -EINVAL);
        carry(TOWN_UNIX, TOWN_TCP, SPLICES, nth % 2);
        weft__fault_reset();
    }
    weft_stream *a[2], *b[2];
    town_pair(TOWN_UNIX, a);
    town_pair(TOWN_UNIX, b);
    ASSERT_EQ(weft_write_all(a[0], "abc", 3), 3);
    weft_close(a[0]);
    weft__fault_arm(WEFT__FAULT_PIPE, 1, 1, -EMFILE);
    ASSERT_EQ(weft_splice(a[1], b[0]), 3);
    ASSERT_EQ(weft__fault_calls(WEFT__FAULT_PIPE), 1);
    weft__fault_reset();
    weft_close(a[1]);
    weft_close(b[0]);
    weft_close(b[1]);
    crew_stop(&crew);
}
#endif

/* Nobody reads: an error, no signal, and no descriptor is left. */
static void no_reader(struct crew *crew)
{
    (void)crew;
    for (int way = COPIES; way <= SPLICES; way++) {
        weft_stream *a[2], *b[2];
        town_pair(TOWN_UNIX, a);
        town_pair(way ? TOWN_PIPE : TOWN_UNIX, b);
        weft_close(b[1]);
        ASSERT_EQ(weft_write_all(a[0], "abc", 3), 3);
        ASSERT_EQ(way ? weft_splice(a[1], b[0]) : weft_copy(a[1], b[0]), -EPIPE);
        weft_close(a[0]);
        weft_close(a[1]);
        weft_close(b[0]);
    }
}

TEST(copy_without_reader_is_an_error)
{
    crew_each(no_reader);
}

/* Through a buffer, a copy that is given up at any moment goes on without a gap. */
static int copies_in_turns(weft_buf *from, weft_stream *to)
{
    uint64_t random = pool_seed(9);
    int64_t r;
    do {
        struct weft_copy copy;
        struct storm_pause pause;
        (void)weft_select(weft_arm(copy, weft_copy, weft_buf_stream(from), to),
                          weft_arm(pause, storm_pause, pool_random(&random, 4)));
        r = copy.ret;
    } while (r == -ECANCELED);
    weft_close(to);
    return r < 0 ? (int)r : 0;
}

static void copy_given_up(struct crew *crew)
{
    weft_stream *a[2], *b[2];
    weft_buf *buf;
    uint64_t total = 0;
    int r[3] = {1, 1, 1};
    (void)crew;
    town_pair(TOWN_UNIX, a);
    town_pair(TOWN_UNIX, b);
    ASSERT_OK(weft_sock_set(b[0], WEFT_SOCK_SEND_BYTES, 2048));
    ASSERT_OK(weft_buf_new(a[1], NULL, &buf));
    struct source s = {a[0], test_scaled(300000), pool_seed(1)};
    weft_task *t[3] = {weft_go(pours, &s), weft_go(copies_in_turns, buf, b[0]),
                       weft_go(drinks, b[1], &total)};
    for (int i = 0; i < 3; i++) {
        ASSERT_OK(weft_join(t[i], &r[i]));
        ASSERT_OK(r[i]);
    }
    ASSERT_EQ(total, s.bytes);
    weft_close(buf);
    weft_close(b[1]);
}

TEST_WITH(copy_of_a_buffer_given_up_leaves_no_gap, .timeout_s = 180)
{
    crew_each(copy_given_up);
}

#if defined(WEFT_FAULTS)
/* No memory, the nth time: it is told, and what was not asked for yet stays where it is. */
TEST(copy_without_memory_loses_nothing)
{
    static unsigned char bytes[30000];
    weft_stream *in[2], *out[2];
    uint64_t total = 0;
    char *data;
    size_t len;
    int r;
    town_fill(bytes, sizeof bytes, 0);
    ASSERT_OK(weft_duplex(sizeof bytes, &in[0], &in[1]));
    ASSERT_OK(weft_duplex(sizeof bytes, &out[0], &out[1]));
    ASSERT_EQ(weft_write_all(in[0], bytes, sizeof bytes), sizeof bytes);
    ASSERT_OK(weft_shutdown(in[0]));
    weft__fault_arm(WEFT__FAULT_ALLOC, 1, 1, -ENOMEM); /* this thread's own is there already */
    ASSERT_EQ(weft_copy(in[1], out[0]), -ENOMEM);
    weft__fault_reset();
    ASSERT_EQ(weft_copy(in[1], out[0]), sizeof bytes);
    ASSERT_OK(weft_shutdown(out[0]));
    for (uint32_t nth = 1; nth < 6; nth++) {
        weft__fault_arm(WEFT__FAULT_ALLOC, nth, 1, -ENOMEM);
        r = weft_read_to_end(out[1], 0, &data, &len);
        weft__fault_reset();
        ASSERT(r == 0 || r == -ENOMEM);
        town_check((unsigned char *)data, len, total);
        total += len;
        weft_free(data);
    }
    ASSERT_EQ(total, sizeof bytes);
    for (int i = 0; i < 2; i++) {
        weft_close(in[i]);
        weft_close(out[i]);
    }
}
#endif

/* ---- from a file ---- */

struct sending {
    WEFT_FRAME(int64_t);
    weft_file *file;
    int64_t offset;
    int64_t count;
    weft_stream *to;
    struct weft_sendfile send;
};
static weft_async(sending)
{
    weft_begin;
    weft_await(f->send, weft_sendfile, f->file, f->offset, f->count, f->to);
    weft_close(f->to);
    weft_return(f->send.ret);
    weft_end;
}

static int64_t sends(weft_file *file, int64_t offset, int64_t count, weft_stream *to)
{
    int64_t n = weft_sendfile(file, offset, count, to);
    weft_close(to);
    return n;
}

enum { FILE_BYTES = 200000 };

static weft_file *a_file(void)
{
    static unsigned char bytes[FILE_BYTES];
    weft_file *file;
    town_fill(bytes, sizeof bytes, 0);
    ASSERT_OK(weft_file_temp(NULL, &file));
    for (size_t at = 0; at < sizeof bytes;) {
        ssize_t n = weft_file_write(file, bytes + at, sizeof bytes - at, (int64_t)at);
        ASSERT_GE(n, 1);
        at += (size_t)n;
    }
    return file;
}

/* Is it in the system's memory? Not every file system says so: then it is read. */
static bool is_at_hand(weft_file *file)
{
    char byte;
    struct iovec one = {&byte, 1};
    return preadv2(weft_file_fd(file), &one, 1, 0, RWF_NOWAIT) == 1;
}

static void send_part(weft_file *file, enum town_kind kind, int64_t offset, int64_t count,
                      uint64_t expected, bool stackless, bool buffer)
{
    weft_stream *pair[2];
    uint64_t total = (uint64_t)offset;
    int64_t n = 0;
    int r = 1;
    town_pair(kind, pair);
    if (buffer) {
        weft_buf *b;
        ASSERT_OK(weft_buf_new(pair[0], NULL, &b));
        pair[0] = weft_buf_stream(b);
    }
    weft_task *drinker = weft_go(drinks, pair[1], &total);
    weft_task *sender = stackless ? weft_spawn(sending, file, offset, count, pair[0])
                                  : weft_go(sends, file, offset, count, pair[0]);
    ASSERT_OK(weft_join(sender, &n));
    ASSERT_OK(weft_join(drinker, &r));
    ASSERT_OK(r);
    ASSERT_EQ(n, expected);
    ASSERT_EQ(total, (uint64_t)offset + expected);
    weft_close(pair[1]);
}

static void from_a_file(struct crew *crew)
{
    weft_file *file = a_file();
    (void)crew;
    for (int i = 0; i < 2 * TOWN_KINDS; i++) {
        enum town_kind kind = (enum town_kind)(i % TOWN_KINDS);
        bool by_kernel = i < TOWN_KINDS && kind != TOWN_MEMORY && is_at_hand(file);
        uint32_t calls = CALLS(SENDFILE);
        send_part(file, kind, 0, -1, FILE_BYTES, i % 2, i >= TOWN_KINDS);
        send_part(file, kind, 1000, 70000, 70000, i % 2, i >= TOWN_KINDS);
        send_part(file, kind, 199990, 70000, 10, i % 2, i >= TOWN_KINDS);
        send_part(file, kind, 5, 0, 0, i % 2, i >= TOWN_KINDS);
        send_part(file, kind, FILE_BYTES + 5, -1, 0, i % 2, i >= TOWN_KINDS);
        if (calls != UINT32_MAX) ASSERT_EQ(CALLS(SENDFILE) > calls, by_kernel);
    }
    weft_file_close(file);
}

TEST_WITH(sendfile_sends_parts_of_files, .timeout_s = 180)
{
    crew_each(from_a_file);
}

#if defined(WEFT_FAULTS)
TEST(sendfile_falls_back_to_reading)
{
    struct crew crew;
    crew_start(&crew, 2);
    weft_file *file = a_file();
    for (uint32_t nth = 1; nth < 4; nth++) {
        weft__fault_arm(WEFT__FAULT_SENDFILE, nth, UINT32_MAX, -EINVAL);
        send_part(file, TOWN_UNIX, 0, -1, FILE_BYTES, nth % 2, false);
        weft__fault_reset();
    }
    ASSERT_EQ(weft_sendfile(NULL, 0, -1, NULL), -EINVAL);
    weft_stream *pair[2];
    town_pair(TOWN_UNIX, pair);
    ASSERT_EQ(weft_sendfile(file, 0, -2, pair[0]), -EINVAL);
    ASSERT_EQ(weft_sendfile(file, -1, 1, pair[0]), -EINVAL);
    weft_close(pair[0]);
    weft_close(pair[1]);
    weft_file_close(file);
    crew_stop(&crew);
}
#endif
