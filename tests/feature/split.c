/* SPDX-License-Identifier: MIT
 *
 * The halves of a stream: which way each goes, what the peer hears, who is told when one is closed, in both orders, of every kind of stream and by both kinds of task.
 */
#include "base/fault.h"
#include "storm.h"
#include "town.h"

/* A stream's halves, and the other end of it. */
struct halves {
    weft_stream *in, *out, *peer;
    int fd;         /* of the stream itself */
    bool stackless; /* the kind of the tasks that use them */
};

static struct halves halves_of(enum town_kind kind, bool stackless)
{
    weft_stream *pair[2];
    town_pair(kind, pair);
    struct halves h = {.peer = pair[1], .fd = weft_stream_fd(pair[0]), .stackless = stackless};
    ASSERT_OK(weft_split(pair[0], &h.in, &h.out));
    return h;
}

static void (*said_of_halves)(struct halves *h);

static void of_every_kind(struct crew *crew)
{
    static const enum town_kind kinds[] = {TOWN_TCP, TOWN_UNIX, TOWN_MEMORY};
    (void)crew;
    for (size_t i = 0; i < 2 * sizeof kinds / sizeof kinds[0]; i++) {
        struct halves h = halves_of(kinds[i / 2], i % 2);
        said_of_halves(&h);
    }
}

/* On every crew, of every kind of stream, by both kinds of task. It closes all three. */
static void halves_each(void (*body)(struct halves *h))
{
    said_of_halves = body;
    crew_each(of_every_kind);
}

/* ---- which way ---- */

static void goes_one_way(struct halves *h)
{
    char b[10];
    ASSERT_EQ(weft_stream_fd(h->in), h->fd);
    ASSERT_EQ(weft_stream_fd(h->out), h->fd);
    ASSERT_EQ(weft_read(h->out, b, sizeof b), -EBADF);
    ASSERT_EQ(weft_peek(h->out, b, sizeof b), -EBADF);
    ASSERT_EQ(weft_write(h->in, "x", 1), -EBADF);
    ASSERT_EQ(weft_write_all(h->in, "x", 1), -EBADF);
    ASSERT_EQ(weft_shutdown(h->in), -EBADF);
    ASSERT_EQ(weft_write_all(h->out, "there", 5), 5);
    ASSERT_EQ(weft_read_exact(h->peer, b, 5), 5);
    ASSERT_EQ(weft_write_all(h->peer, "back", 4), 4);
    ASSERT_EQ(weft_peek(h->in, b, 1), 1);
    ASSERT_EQ(weft_read_exact(h->in, b, 4), 4);
    ASSERT_EQ(memcmp(b, "back", 4), 0);
    ASSERT_OK(weft_shutdown(h->out));
    ASSERT_EQ(weft_read(h->peer, b, sizeof b), 0);
    ASSERT_EQ(weft_write(h->out, "x", 1), -EPIPE);
    weft_close(h->out);
    weft_close(h->in);
    weft_close(h->peer);
}

TEST(split_halves_go_one_way)
{
    halves_each(goes_one_way);
}

TEST(split_needs_no_runtime)
{
    weft_stream *pair[2], *in, *out;
    char b;
    ASSERT_OK(weft_duplex(8, &pair[0], &pair[1]));
    ASSERT_EQ(weft_split(NULL, &in, &out), -EINVAL);
    ASSERT_EQ(weft_split(pair[0], NULL, &out), -EINVAL);
    ASSERT_EQ(weft_split(pair[0], &in, NULL), -EINVAL);
#if defined(WEFT_FAULTS)
    weft__fault_arm(WEFT__FAULT_ALLOC, 1, 1, -ENOMEM);
    ASSERT_EQ(weft_split(pair[0], &in, &out), -ENOMEM); /* the stream is still ours */
    weft__fault_reset();
#endif
    ASSERT_OK(weft_split(pair[0], &in, &out));
    weft_close(out);
    ASSERT_EQ(weft_read(pair[1], &b, 1), 0);
    ASSERT_EQ(weft_write(pair[1], "x", 1), 1); /* the other way is open */
    weft_close(in);
    ASSERT_EQ(weft_write(pair[1], "x", 1), -EPIPE);
    weft_close(pair[1]);
}

/* ---- ends ---- */

struct reading {
    WEFT_FRAME(int);
    weft_stream *stream;
    char b;
    struct weft_read rd;
    struct weft_yield once;
};
static weft_async(reading)
{
    weft_begin;
    for (;;) { /* await_reader may be there just now */
        weft_await(f->rd, weft_read, f->stream, &f->b, 1);
        if (f->rd.ret != -EBUSY) break;
        weft_await(f->once, weft_yield);
    }
    weft_return(f->rd.ret < 0 ? (int)f->rd.ret : f->rd.ret == 0 ? 0 : f->b);
    weft_end;
}

static int reads(weft_stream *stream)
{
    char b = 0;
    int r;
    while ((r = (int)weft_read(stream, &b, 1)) == -EBUSY)
        (void)weft_yield();
    return r > 0 ? b : r;
}

#define MUCH (32 << 20) /* more than any socket here takes */
static char much[MUCH];
static char swallowed[1 << 16];

struct writing {
    WEFT_FRAME(int);
    weft_stream *stream;
    struct weft_write_all wr;
};
static weft_async(writing)
{
    weft_begin;
    weft_await(f->wr, weft_write_all, f->stream, much, sizeof much);
    weft_return((int)f->wr.ret);
    weft_end;
}

static int writes(weft_stream *stream)
{
    return (int)weft_write_all(stream, much, sizeof much);
}

static weft_task *begin_write(const struct halves *h)
{
    return h->stackless ? weft_spawn(writing, h->out) : weft_go(writes, h->out);
}

/* Until somebody else reads there: a second reader is told. */
static void await_reader(weft_stream *stream)
{
    struct weft_read rd;
    struct weft_yield once;
    char b;
    do {
        sched_yield();
        (void)weft_select_biased(weft_arm(rd, weft_read, stream, &b, 1),
                                 weft_arm(once, weft_yield));
    } while (rd.ret != -EBUSY);
}

/* It waits when this returns. */
static weft_task *begin_read(const struct halves *h)
{
    weft_task *task = h->stackless ? weft_spawn(reading, h->in) : weft_go(reads, h->in);
    await_reader(h->in);
    return task;
}

static int joined(weft_task *task)
{
    int r = 1;
    ASSERT_OK(weft_join(task, &r));
    return r;
}

/* The writer goes first: the peer hears the end, and the one who waits for its answer goes on waiting, and gets it. */
static void writer_first(struct halves *h)
{
    char b[10];
    weft_task *reader = begin_read(h);
    ASSERT_EQ(weft_write_all(h->out, "ask", 3), 3);
    weft_close(h->out);
    ASSERT_EQ(weft_read_exact(h->peer, b, sizeof b), 3); /* and then the end */
    ASSERT(!weft_done(reader));
    ASSERT_EQ(weft_write_all(h->peer, "!", 1), 1);
    ASSERT_EQ(joined(reader), '!');
    weft_close(h->peer);
    ASSERT_EQ(weft_read(h->in, b, sizeof b), 0);
    weft_close(h->in);
}

TEST(split_writer_closed_first_ends_writing_alone)
{
    halves_each(writer_first);
}

/* The writer still writes, and then the peer finds the stream closed. */
static void writes_to_its_end(struct halves *h)
{
    char b[10];
    ASSERT_EQ(weft_write_all(h->out, "more", 4), 4);
    weft_close(h->out);
    ASSERT_EQ(weft_read_exact(h->peer, b, sizeof b), 4);
    ASSERT_EQ(memcmp(b, "more", 4), 0);
    weft_close(h->peer);
}

/* The reader goes first: who writes goes on. */
static void reader_first(struct halves *h)
{
    weft_close(h->in);
    writes_to_its_end(h);
}

TEST(split_reader_closed_first_leaves_the_writer)
{
    halves_each(reader_first);
}

/* A half is closed under the one who reads there: it is told -EBADF, and the other half is none the wiser. */
static void reader_under_way(struct halves *h)
{
    weft_task *reader = begin_read(h);
    weft_close(h->in);
    ASSERT_EQ(joined(reader), -EBADF);
    writes_to_its_end(h);
}

TEST(split_reader_is_told_when_its_half_is_closed)
{
    halves_each(reader_under_way);
}

/* What the peer hears until the end; 0, or why there is none. */
static ssize_t swallow_all(weft_stream *peer)
{
    ssize_t n;
    while ((n = weft_read(peer, swallowed, sizeof swallowed)) > 0)
        continue;
    return n;
}

/* The same of one who writes: when it has left, the peer hears the end behind what was written. */
static void writer_under_way(struct halves *h)
{
    weft_task *writer = begin_write(h);
    ASSERT_EQ(weft_read_exact(h->peer, swallowed, 1), 1); /* it has begun */
    weft_close(h->out);
    ASSERT_EQ(joined(writer), -EBADF);
    ASSERT_EQ(swallow_all(h->peer), 0);
    ASSERT_EQ(weft_write_all(h->peer, "?", 1), 1);
    ASSERT_EQ(reads(h->in), '?');
    weft_close(h->in);
    weft_close(h->peer);
}

TEST(split_writer_is_told_when_its_half_is_closed)
{
    halves_each(writer_under_way);
}

/* Both halves closed under their users: the stream ends with the last that leaves. */
static void both_under_way(struct halves *h, weft_stream *first, weft_stream *second)
{
    weft_task *writer = begin_write(h);
    weft_task *reader = begin_read(h);
    ASSERT_EQ(weft_read_exact(h->peer, swallowed, 1), 1);
    weft_close(first);
    weft_close(second);
    ASSERT_EQ(joined(reader), -EBADF);
    ASSERT_EQ(joined(writer), -EBADF);
    (void)swallow_all(h->peer);
    weft_close(h->peer);
}

static void reader_then_writer(struct halves *h)
{
    both_under_way(h, h->in, h->out);
}

static void writer_then_reader(struct halves *h)
{
    both_under_way(h, h->out, h->in);
}

TEST(split_both_are_told)
{
    halves_each(reader_then_writer);
    halves_each(writer_then_reader);
}

/* ---- given up, and what stands beneath ---- */

static void given_up(struct halves *h)
{
    weft_task *reader = begin_read(h);
    weft_cancel(reader);
    ASSERT_EQ(joined(reader), -ECANCELED);
    ASSERT_EQ(weft_write_all(h->peer, "x", 1), 1); /* it took nothing */
    ASSERT_EQ(reads(h->in), 'x');
    weft_close(h->in);
    weft_close(h->out);
    weft_close(h->peer);
}

TEST(split_given_up_has_taken_nothing)
{
    halves_each(given_up);
}

/* Of a buffer: what was not flushed is gone with the writer, as with any buffer, but weft_shutdown waits for it. */
static void of_a_buffer(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 2; i++) {
        weft_stream *pair[2], *in, *out;
        weft_buf *buf;
        char b[20];
        town_pair(TOWN_UNIX, pair);
        ASSERT_OK(weft_buf_new(pair[0], NULL, &buf));
        ASSERT_OK(weft_split(weft_buf_stream(buf), &in, &out));
        ASSERT_EQ(weft_write_all(out, "words", 5), 5);
        if (i == 0) ASSERT_OK(weft_shutdown(out));
        weft_close(out); /* there is room beneath: it is flushed without a wait */
        ASSERT_EQ(weft_read_exact(pair[1], b, sizeof b), 5);
        ASSERT_EQ(weft_write_all(pair[1], "reply", 5), 5);
        ASSERT_EQ(weft_read_exact(in, b, 5), 5);
        weft_close(in); /* and the buffer, and the stream */
        weft_close(pair[1]);
    }
}

TEST(split_of_a_buffer)
{
    crew_each(of_a_buffer);
}

/* Of one that goes one way: there is nothing to shut down, and the peer hears the end with the stream's own. */
static void of_a_pipe(struct crew *crew)
{
    struct halves h = halves_of(TOWN_PIPE, false);
    char b[20];
    (void)crew;
    ASSERT_EQ(weft_read(h.in, b, sizeof b), -EBADF);
    ASSERT_EQ(weft_write_all(h.out, "words", 5), 5);
    ASSERT_EQ(weft_shutdown(h.out), -EOPNOTSUPP);
    weft_close(h.out);
    ASSERT_EQ(weft_read_exact(h.peer, b, 5), 5);
    weft_close(h.in);
    ASSERT_EQ(weft_read(h.peer, b, sizeof b), 0);
    weft_close(h.peer);
}

TEST(split_of_a_stream_that_goes_one_way)
{
    crew_each(of_a_pipe);
}

/* ---- a stream that takes its time ---- */

/* Its shutdown ends when it is let, told to stop or not: as one that a thread is busy with. */
struct slow {
    weft_stream face;
    weft_waker waker; /* of who waits; under the lock */
    pthread_mutex_t lock;
    bool let;
    int polls;
    bool was_told;
    bool rings;          /* it lets itself, while it is polled */
    _Atomic bool closed; /* relaxed: a flag */
};

static weft_poll slow_shut(weft_stream *stream, struct weft_io *io, weft_cx *cx, int *ret)
{
    struct slow *s = (struct slow *)(void *)stream;
    (void)io;
    pthread_mutex_lock(&s->lock);
    s->polls++;
    s->was_told = weft_cx_cancelled(cx) != 0;
    s->waker = weft_cx_waker(cx);
    bool let = s->let;
    bool rings = s->rings;
    s->let |= rings;
    pthread_mutex_unlock(&s->lock);
    if (rings) weft_waker_wake(weft_cx_waker(cx));
    *ret = -ECANCELED;
    return let ? WEFT_READY : WEFT_PENDING;
}

static weft_poll slow_move(weft_stream *stream, struct weft_io *io, const struct iovec *iov,
                           int count, unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done)
{
    (void)stream, (void)io, (void)iov, (void)count, (void)flags, (void)cx;
    *done = 0;
    *ret = 0;
    return WEFT_READY;
}

static void slow_close(weft_stream *stream)
{
    store_relaxed(&((struct slow *)(void *)stream)->closed, true);
}

static const weft_stream_ops slow_ops = {"slow", slow_move, slow_move, slow_shut, slow_close, NULL};

static void *lets(void *arg)
{
    struct slow *s = arg;
    pthread_mutex_lock(&s->lock);
    s->let = true;
    weft_waker waker = s->waker;
    pthread_mutex_unlock(&s->lock);
    weft_waker_wake(waker);
    return NULL;
}

/* No close waits, and the stream is closed when its shutdown has settled, by whoever was last; woken for nothing before, it goes on. */
TEST(split_lets_a_slow_shutdown_end)
{
    for (int i = 0; i < 6; i++) {
        struct slow s = {.face = {&slow_ops}, .lock = PTHREAD_MUTEX_INITIALIZER};
        weft_stream *in, *out;
        pthread_t thread;
        ASSERT_OK(weft_split(&s.face, &in, &out));
        weft_close(out);
        ASSERT_EQ(s.polls, 2); /* asked, then told to stop */
        ASSERT(s.was_told);
        weft_waker_wake(s.waker);
        ASSERT_EQ(s.polls, 3);
        if (i % 2) weft_close(in);
        ASSERT(!load_relaxed(&s.closed));
        if (i & 4) {
            s.rings = true;
            weft_waker_wake(s.waker);
            ASSERT_EQ(s.polls, 5); /* rung while it was polled: once more */
        } else if (i & 2) {
            ASSERT_OK(pthread_create(&thread, NULL, lets, &s));
            ASSERT_OK(pthread_join(thread, NULL));
        } else {
            (void)lets(&s);
        }
        ASSERT_EQ(load_relaxed(&s.closed), i % 2);
        if (i % 2 == 0) weft_close(in);
        ASSERT(load_relaxed(&s.closed));
    }
}
