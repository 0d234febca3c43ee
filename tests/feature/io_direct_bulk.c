/* SPDX-License-Identifier: MIT
 *
 * Much by the short ways of reads and writes of one buffer (io/direct.h): parts that come in many pieces, with little budget; a megabyte for one that is slow. By tasks of both kinds, on 1,
 * 2 and 4 workers and a current-thread runtime.
 */
#include "lent.h"

/* ---- in pieces ---- */

enum { PIECE_MAX = 7, PART_MAX = 97 };

/* The next so many are awaited, until all are there. */
static size_t part_at(uint64_t at, uint64_t bytes)
{
    uint64_t part = 1 + at % PART_MAX;
    return (size_t)(part < bytes - at ? part : bytes - at);
}

static int reads_parts(weft_stream *s, uint64_t bytes)
{
    unsigned char room[PART_MAX];
    for (uint64_t at = 0; at < bytes;) {
        size_t part = part_at(at, bytes);
        ssize_t n = weft_read_exact(s, room, part);
        if (n != (ssize_t)part) return n < 0 ? (int)n : -EPIPE;
        town_check(room, part, at);
        at += part;
    }
    return 0;
}

struct reading_parts {
    WEFT_FRAME(int);
    weft_stream *s;
    uint64_t bytes;
    uint64_t at;
    struct weft_read_exact rd;
    unsigned char room[PART_MAX];
};
static weft_async(reading_parts)
{
    weft_begin;
    while (f->at < f->bytes) {
        weft_await(f->rd, weft_read_exact, f->s, f->room, part_at(f->at, f->bytes));
        if (f->rd.ret < 0) weft_return((int)f->rd.ret);
        if ((size_t)f->rd.ret != part_at(f->at, f->bytes)) weft_return(-EPIPE);
        town_check(f->room, (size_t)f->rd.ret, f->at);
        f->at += (uint64_t)f->rd.ret;
    }
    weft_return(0);
    weft_end;
}

static weft_task *reader_of(const struct desk *d, uint64_t bytes, bool stackless)
{
    return stackless ? weft_spawn_as((.pinned = true), reading_parts, d->stream, bytes)
                     : weft_go_as((.pinned = true), reads_parts, d->stream, bytes);
}

/* What the peer's thread sends, or has received. */
struct flood {
    int peer;
    uint64_t bytes;
};

static void *sends_pieces(void *arg)
{
    const struct flood *flood = arg;
    uint64_t random = pool_seed(flood->bytes);
    for (uint64_t at = 0; at < flood->bytes;) {
        uint64_t piece = 1 + pool_random(&random, PIECE_MAX);
        if (piece > flood->bytes - at) piece = flood->bytes - at;
        peer_send(flood->peer, at, (size_t)piece);
        at += piece;
        if (pool_random(&random, 2)) sched_yield();
    }
    return NULL;
}

static int reads_in_pieces(bool alone)
{
    for (int stackless = 0; stackless < 2; stackless++) {
        struct desk d = desk_open(alone);
        struct flood flood = {.peer = d.peer, .bytes = test_scaled(5000)};
        pthread_t thread;
        ASSERT_OK(pthread_create(&thread, NULL, sends_pieces, &flood));
        ASSERT_OK(joined(reader_of(&d, flood.bytes, stackless)));
        ASSERT_OK(pthread_join(thread, NULL));
        stays_lent(&d);
        desk_close(&d);
    }
    return 0;
}

static void with_budget(unsigned of_a_poll, int (*acts)(bool alone))
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        crew_start_with(&crew, &(weft_rt_opts){.workers = crew_sizes[i],
                                               .seed = test_seed() | 1,
                                               .budget = of_a_poll});
        acts_on(&crew, acts);
        crew_stop(&crew);
    }
}

/* Some of a part's pieces are there and some not, while each poll may do one, two or three things. */
TEST(direct_read_exact_of_many_pieces)
{
    for (unsigned each = 1; each <= 3; each++)
        with_budget(each, reads_in_pieces);
}

/* ---- all of it there ---- */

/* Of one worker, as who reads beside it. */
struct beside {
    bool over;
    unsigned turns;
};

static int counts_turns(struct beside *beside)
{
    for (; !beside->over; beside->turns++)
        ASSERT_OK(weft_yield());
    return 0;
}

static unsigned budget; /* of a poll */

static int reads_what_is_there(bool alone)
{
    enum { BYTES = 5000, READS = BYTES / PART_MAX };
    for (int stackless = 0; stackless < 2; stackless++) {
        struct desk d = desk_open(alone);
        struct beside beside = {.turns = 0};
        char b;
        says(&d, 'x');
        peer_send(d.peer, 0, BYTES);
        ASSERT_EQ(weft_read(d.stream, &b, 1), 1); /* with it the event has come */
        weft_task *other = weft_go_as((.pinned = true), counts_turns, &beside);
        ASSERT_OK(joined(reader_of(&d, BYTES, stackless)));
        ASSERT_GE(beside.turns, READS / (2 * budget));
        beside.over = true;
        ASSERT_OK(joined(other));
        stays_lent(&d);
        desk_close(&d);
    }
    return 0;
}

/* No event is to come: what one read leaves the next one finds. However much is there, who is beside has a turn each time that the budget of a poll is used up. */
TEST(direct_read_of_what_is_there_lets_others_run)
{
    for (budget = 1; budget <= 3; budget++)
        with_budget(budget, reads_what_is_there);
}

/* ---- to one that is slow ---- */

enum { MEGABYTE = 1 << 20 };

/* By which kind of task, and by one call for all of it, or by as many as it takes. */
enum { STACKLESS = 1, ALL = 2, WAYS = 4 };

static unsigned char megabyte[MEGABYTE];

static int writes(weft_stream *s, bool all)
{
    size_t at = 0;
    while (at < MEGABYTE) {
        ssize_t n = all ? weft_write_all(s, megabyte, MEGABYTE)
                        : weft_write(s, megabyte + at, MEGABYTE - at);
        if (n < 0) return (int)n;
        at += (size_t)n;
    }
    return (int)at;
}

struct writing {
    WEFT_FRAME(int);
    weft_stream *s;
    bool all;
    size_t at;
    struct weft_write wr;
    struct weft_write_all wx;
};
static weft_async(writing)
{
    weft_begin;
    if (f->all) {
        weft_await(f->wx, weft_write_all, f->s, megabyte, MEGABYTE);
        weft_return((int)f->wx.ret);
    }
    while (f->at < MEGABYTE) {
        weft_await(f->wr, weft_write, f->s, megabyte + f->at, MEGABYTE - f->at);
        if (f->wr.ret < 0) weft_return((int)f->wr.ret);
        f->at += (size_t)f->wr.ret;
    }
    weft_return((int)f->at);
    weft_end;
}

static void *drinks(void *arg)
{
    struct flood *flood = arg;
    unsigned char room[3000];
    ssize_t n;
    while ((n = recv(flood->peer, room, sizeof room, 0)) > 0) {
        town_check(room, (size_t)n, flood->bytes);
        flood->bytes += (uint64_t)n;
        sched_yield();
    }
    return NULL;
}

static int writes_to_a_slow_one(bool alone)
{
    for (int way = 0; way < WAYS; way++) {
        struct desk d = desk_open(alone);
        struct flood flood = {.peer = d.peer};
        pthread_t thread;
        bool all = way & ALL;
        ASSERT_OK(weft_sock_set(d.stream, WEFT_SOCK_SEND_BYTES, 16384));
        weft_task *writer = way & STACKLESS
                                ? weft_spawn_as((.pinned = true), writing, d.stream, all)
                                : weft_go_as((.pinned = true), writes, d.stream, all);
        until_waits(&d, WEFT__SIDE_WRITE); /* nobody reads yet */
        ASSERT_OK(pthread_create(&thread, NULL, drinks, &flood));
        ASSERT_EQ(joined(writer), MEGABYTE);
        stays_lent(&d);
        weft_close(d.stream);
        d.stream = NULL;
        ASSERT_OK(pthread_join(thread, NULL));
        ASSERT_EQ(flood.bytes, MEGABYTE);
        desk_close(&d);
    }
    return 0;
}

static void writes_slowly(struct crew *crew)
{
    town_fill(megabyte, MEGABYTE, 0);
    acts_on(crew, writes_to_a_slow_one);
}

TEST(direct_write_to_a_slow_reader_moves_everything)
{
    crew_each(writes_slowly);
}
