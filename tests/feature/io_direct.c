/* SPDX-License-Identifier: MIT
 *
 * The short ways of reads and writes of one buffer (io/direct.h), which a TCP stream takes once its lock is lent to the worker that is alone with it: whatever ends a wait
 * there, the answer is the one that is promised, and who gives up has taken nothing. By tasks of both kinds, on 1, 2 and 4 workers and a current-thread runtime. A ring has
 * ways of its own, of which the same is asked.
 */
#include "lent.h"

/* ---- who reads ---- */

/* A byte, 0 at the end, or why not; by which verb and which kind of task. */
enum { STACKLESS = 1, EXACT = 2, WAYS = 4 };

static int answer(ssize_t n, char b)
{
    return n == 1 ? b : (int)n;
}

static int reads(weft_stream *s, bool exact)
{
    char b = 0;
    ssize_t n = exact ? weft_read_exact(s, &b, 1) : weft_read(s, &b, 1);
    return answer(n, b);
}

struct reading {
    WEFT_FRAME(int);
    weft_stream *s;
    bool exact;
    char b;
    struct weft_read rd;
    struct weft_read_exact all;
};
static weft_async(reading)
{
    weft_begin;
    if (f->exact) {
        weft_await(f->all, weft_read_exact, f->s, &f->b, 1);
        weft_return(answer(f->all.ret, f->b));
    }
    weft_await(f->rd, weft_read, f->s, &f->b, 1);
    weft_return(answer(f->rd.ret, f->b));
    weft_end;
}

static weft_task *reader_of(const struct desk *d, int way)
{
    bool exact = way & EXACT;
    return way & STACKLESS ? weft_spawn_as((.pinned = true), reading, d->stream, exact)
                           : weft_go_as((.pinned = true), reads, d->stream, exact);
}

/* ---- scenes: one reads, and waits with the lock lent ---- */

typedef void scene(struct desk *d, weft_task *reader, int way);
static scene *staged;

static int plays(bool alone)
{
    for (int way = 0; way < WAYS; way++) {
        struct desk d = desk_open(alone);
        weft_task *reader = reader_of(&d, way);
        until_waits(&d, WEFT__SIDE_READ);
        staged(&d, reader, way);
        desk_close(&d);
    }
    return 0;
}

static void stages(struct crew *crew)
{
    acts_on(crew, plays);
}

static void everywhere(scene *play)
{
    staged = play;
    crew_each(stages);
}

static void refuses_a_second(struct desk *d, weft_task *reader, int way)
{
    (void)way;
    for (int other = 0; other < WAYS; other++)
        ASSERT_EQ(joined(reader_of(d, other)), -EBUSY);
    stays_lent(d);
    says(d, 'x');
    ASSERT_EQ(joined(reader), 'x');
}

TEST(direct_read_is_refused_beside_another)
{
    everywhere(refuses_a_second);
}

/* Whatever has come meanwhile. */
static void is_closed(struct desk *d, weft_task *reader, int way)
{
    (void)way;
    says(d, 'x');
    weft_close(d->stream);
    d->stream = NULL;
    ASSERT_EQ(joined(reader), -EBADF);
}

TEST(direct_read_is_ended_by_a_close)
{
    everywhere(is_closed);
}

/* A cancelled one has taken nothing: what comes is the next one's. */
static void is_cancelled(struct desk *d, weft_task *reader, int way)
{
    weft_cancel(reader);
    ASSERT_EQ(joined(reader), -ECANCELED);
    stays_lent(d);
    says(d, 'x');
    ASSERT_EQ(joined(reader_of(d, way)), 'x');
}

TEST(direct_read_that_is_cancelled_takes_nothing)
{
    everywhere(is_cancelled);
}

static void comes_to_its_end(struct desk *d, weft_task *reader, int way)
{
    ASSERT_OK(shutdown(d->peer, SHUT_WR));
    ASSERT_EQ(joined(reader), 0);
    ASSERT_EQ(joined(reader_of(d, way)), 0); /* once more */
    stays_lent(d);
}

TEST(direct_read_finds_the_end)
{
    everywhere(comes_to_its_end);
}

static void is_reset(struct desk *d, weft_task *reader, int way)
{
    (void)way;
    peer_reset(d->peer);
    d->peer = -1;
    ASSERT_EQ(joined(reader), -ECONNRESET);
}

TEST(direct_read_hears_of_a_reset)
{
    everywhere(is_reset);
}

/* ---- nothing to move ---- */

struct moving_nothing {
    WEFT_FRAME(int);
    weft_stream *s;
    struct weft_read rd;
    struct weft_read_exact rx;
    struct weft_write wr;
    struct weft_write_all wx;
    char b;
};
static weft_async(moving_nothing)
{
    weft_begin;
    weft_await(f->rd, weft_read, f->s, &f->b, 0);
    weft_await(f->rx, weft_read_exact, f->s, &f->b, 0);
    weft_await(f->wr, weft_write, f->s, &f->b, 0);
    weft_await(f->wx, weft_write_all, f->s, &f->b, 0);
    weft_return(f->rd.ret || f->rx.ret || f->wr.ret || f->wx.ret);
    weft_end;
}

static void nothing_moves(const struct desk *d)
{
    char b = 0;
    ASSERT_EQ(weft_read(d->stream, &b, 0), 0);
    ASSERT_EQ(weft_read_exact(d->stream, &b, 0), 0);
    ASSERT_EQ(weft_write(d->stream, &b, 0), 0);
    ASSERT_EQ(weft_write_all(d->stream, &b, 0), 0);
    ASSERT_OK(joined(weft_spawn_as((.pinned = true), moving_nothing, d->stream)));
}

static void moves_nothing(struct desk *d, weft_task *reader, int way)
{
    (void)way;
    nothing_moves(d);
    says(d, 'x');
    ASSERT_EQ(joined(reader), 'x');
    nothing_moves(d); /* where there is nothing to read, and nobody else who does */
}

/* No bytes are there at once, even beside a reader that waits for some. */
TEST(direct_length_of_nothing_is_answered_at_once)
{
    everywhere(moves_nothing);
}

/* ---- a thread comes between ---- */

static void *closes(void *stream)
{
    weft_close((weft_stream *)stream);
    return NULL;
}

static void is_closed_outside(struct desk *d, weft_task *reader, int way)
{
    pthread_t thread;
    (void)way;
    ASSERT_OK(pthread_create(&thread, NULL, closes, d->stream));
    d->stream = NULL;
    ASSERT_EQ(joined(reader), -EBADF);
    ASSERT_OK(pthread_join(thread, NULL));
}

TEST(direct_read_is_ended_by_a_close_outside)
{
    everywhere(is_closed_outside);
}

static void *looks_in(void *stream)
{
    ASSERT(slot_is_awaited(stream, WEFT__SIDE_READ));
    return NULL;
}

/* Who waited by the lent lock is woken by the other, and it is lent again. */
static void is_taken_back(struct desk *d, weft_task *reader, int way)
{
    pthread_t thread;
    ASSERT_OK(pthread_create(&thread, NULL, looks_in, d->stream));
    ASSERT_OK(pthread_join(thread, NULL));
    ASSERT(!is_lent(d) || !d->alone);
    says(d, 'x');
    ASSERT_EQ(joined(reader), 'x');
    gets_lent(d);
    says(d, 'y');
    ASSERT_EQ(joined(reader_of(d, way)), 'y');
}

TEST(direct_read_goes_on_where_the_lock_is_taken_back)
{
    everywhere(is_taken_back);
}

/* ---- in a select ---- */

/* Nobody has said anything: the other arm wins, a permit that is there at once, or a time that comes. */
struct loss {
    weft_stream *s;
    weft_sem *permits;
    bool exact;
};

static int loses(const struct loss *loss, bool at_once)
{
    struct weft_read rd = {.ret = 0};
    struct weft_read_exact all = {.ret = 0};
    struct weft_sem_acquire sem;
    struct weft_sleep sleep;
    char b = 0;
    int won =
        weft_select_biased(weft_when(loss->exact, weft_arm(all, weft_read_exact, loss->s, &b, 1)),
                           weft_when(!loss->exact, weft_arm(rd, weft_read, loss->s, &b, 1)),
                           weft_when(at_once, weft_arm(sem, weft_sem_acquire, loss->permits, 1)),
                           weft_when(!at_once, weft_arm(sleep, weft_sleep, weft_us(1))));
    ASSERT_EQ(won, at_once ? 2 : 3);
    ASSERT_EQ(loss->exact ? all.ret : rd.ret, -ECANCELED);
    return b;
}

struct losing {
    WEFT_FRAME(int);
    const struct loss *loss;
    bool at_once;
    char b;
    struct weft_read rd;
    struct weft_read_exact all;
    struct weft_sem_acquire sem;
    struct weft_sleep sleep;
    struct weft_select sel;
};
static weft_async(losing)
{
    weft_begin;
    weft_await(
        f->sel, weft_select,
        .arm = {weft_when(f->loss->exact, weft_arm(f->all, weft_read_exact, f->loss->s, &f->b, 1)),
                weft_when(!f->loss->exact, weft_arm(f->rd, weft_read, f->loss->s, &f->b, 1)),
                weft_when(f->at_once, weft_arm(f->sem, weft_sem_acquire, f->loss->permits, 1)),
                weft_when(!f->at_once, weft_arm(f->sleep, weft_sleep, weft_us(1)))},
        .biased = true);
    ASSERT_EQ(f->sel.ret, f->at_once ? 2 : 3);
    ASSERT_EQ(f->loss->exact ? f->all.ret : f->rd.ret, -ECANCELED);
    weft_return((unsigned char)f->b);
    weft_end;
}

static int loses_and_reads(bool alone)
{
    struct desk d = desk_open(alone);
    weft_sem permits;
    weft_sem_init(&permits, 5 * WAYS);
    for (int i = 0; i < 10 * WAYS; i++) {
        int way = i % WAYS;
        struct loss loss = {d.stream, &permits, way & EXACT};
        bool at_once = i / WAYS % 2;
        ASSERT_EQ(joined(way & STACKLESS ? weft_spawn_as((.pinned = true), losing, &loss, at_once)
                                         : weft_go_as((.pinned = true), loses, &loss, at_once)),
                  0);
        says(&d, 'x');
        ASSERT_EQ(joined(reader_of(&d, way)), 'x');
        stays_lent(&d);
    }
    weft_sem_done(&permits);
    desk_close(&d);
    return 0;
}

static void select_is_lost(struct crew *crew)
{
    acts_on(crew, loses_and_reads);
}

TEST(direct_read_that_loses_a_select_takes_nothing)
{
    crew_each(select_is_lost);
}
