/* SPDX-License-Identifier: MIT
 *
 * How long I/O waits for a worker that is never idle: counted in polls, which is how the bound is given (docs/DRIVER.md).
 */
#include "town.h"

#include <unistd.h>

#define SPINNERS_MAX 8

struct fair {
    weft_stream *pair[2];
    uint32_t rounds;
    _Atomic uint32_t heard; /* relaxed, all: one thread polls everybody here */
    _Atomic uint64_t polls; /* of those that spin */
    uint64_t worst;
    _Atomic bool over;
};

static int hears(struct fair *f)
{
    char b;
    while (load_relaxed(&f->heard) < f->rounds) {
        if (weft_read(f->pair[1], &b, 1) != 1) return -EIO;
        (void)fetch_add_relaxed(&f->heard, 1);
    }
    return 0;
}

struct hearing {
    WEFT_FRAME(int);
    struct fair *of;
    char b;
    struct weft_read rd;
};
static weft_async(hearing)
{
    weft_begin;
    while (load_relaxed(&f->of->heard) < f->of->rounds) {
        weft_await(f->rd, weft_read, f->of->pair[1], &f->b, 1);
        if (f->rd.ret != 1) weft_return(-EIO);
        (void)fetch_add_relaxed(&f->of->heard, 1);
    }
    weft_return(0);
    weft_end;
}

/* Never idle: the worker has somebody to run at every moment. */
static int spins(struct fair *f)
{
    while (!load_relaxed(&f->over)) {
        (void)fetch_add_relaxed(&f->polls, 1);
        (void)weft_yield();
    }
    return 0;
}

struct spinning {
    WEFT_FRAME(int);
    struct fair *of;
    struct weft_yield yield;
};
static weft_async(spinning)
{
    weft_begin;
    while (!load_relaxed(&f->of->over)) {
        (void)fetch_add_relaxed(&f->of->polls, 1);
        weft_await(f->yield, weft_yield);
    }
    weft_return(0);
    weft_end;
}

/* One of them sends a byte, at a moment of its own each time, and counts until it was heard. */
static int sends(struct fair *f)
{
    uint64_t random = pool_seed(f->rounds);
    for (uint32_t i = 0; i < f->rounds; i++) {
        for (uint32_t k = pool_random(&random, 100); k > 0; k--) {
            (void)fetch_add_relaxed(&f->polls, 1);
            (void)weft_yield();
        }
        uint64_t before = load_relaxed(&f->polls);
        if (write(weft_stream_fd(f->pair[0]), "x", 1) != 1) return -EIO;
        while (load_relaxed(&f->heard) == i) {
            (void)fetch_add_relaxed(&f->polls, 1);
            (void)weft_yield();
        }
        uint64_t took = load_relaxed(&f->polls) - before;
        if (took > f->worst) f->worst = took;
    }
    store_relaxed(&f->over, true);
    return 0;
}

/* Behind the look at the port, at the tick, whoever is in front in the queue is polled once. */
static void served_within(int workers, unsigned tick, int spinners, bool stackless)
{
    struct crew crew;
    struct fair f = {.rounds = (uint32_t)test_scaled(50)};
    weft_task *spinner[SPINNERS_MAX];
    int r = 1;
    crew_start_with(&crew, &(weft_rt_opts){.workers = workers, .tick_max = tick});
    town_pair(TOWN_UNIX, f.pair);
    weft_task *listener = stackless ? weft_spawn(hearing, &f) : weft_go(hears, &f);
    for (int i = 0; i < spinners; i++)
        spinner[i] = i % 2 ? weft_spawn(spinning, &f) : weft_go(spins, &f);
    ASSERT_OK(weft_join(weft_go(sends, &f), &r));
    ASSERT_OK(r);
    ASSERT_OK(weft_join(listener, &r));
    ASSERT_OK(r);
    for (int i = 0; i < spinners; i++)
        ASSERT_OK(weft_join(spinner[i], &r));
    ASSERT_LE(f.worst, (tick ? tick : 61) + (unsigned)spinners + 4);
    weft_close(f.pair[0]);
    weft_close(f.pair[1]);
    crew_stop(&crew);
}

TEST(io_is_served_within_a_tick)
{
    static const unsigned ticks[] = {0, 7, 200};
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 4; k++) {
            int workers = k % 2 ? 1 : -1;
            served_within(workers, ticks[i], k / 2 ? SPINNERS_MAX : 0, k / 2);
        }
    }
}

/* ---- more of them ready than a worker's ring holds ---- */

#define PAIRS 450
#define LAPS  40
#define SETTLED ((uint64_t)8 * PAIRS) /* strokes until all were polled that were spawned in one burst */

/* One thread polls everybody. */
struct rally {
    weft_stream *end[PAIRS][2];
    uint64_t hit_at[PAIRS]; /* when the ball was hit: strokes of all, by then */
    uint64_t strokes;
    uint64_t worst; /* strokes of others while a ball lay there */
};

static void strikes(struct rally *rally, int pair)
{
    uint64_t lay = rally->strokes++ - rally->hit_at[pair];
    if (rally->strokes > SETTLED && lay > rally->worst) rally->worst = lay;
    rally->hit_at[pair] = rally->strokes;
}

struct player {
    WEFT_FRAME(int);
    struct rally *rally;
    int pair, side;
    int laps;
    char ball;
    struct weft_read rd;
    struct weft_write wr;
};
static weft_async(player)
{
    weft_begin;
    for (; f->laps < LAPS; f->laps++) {
        weft_await(f->rd, weft_read, f->rally->end[f->pair][f->side], &f->ball, 1);
        if (f->rd.ret != 1) weft_return(-EIO);
        strikes(f->rally, f->pair);
        weft_await(f->wr, weft_write, f->rally->end[f->pair][f->side], &f->ball, 1);
        if (f->wr.ret != 1) weft_return(-EIO);
    }
    weft_return(0);
    weft_end;
}

/* In one poll, so that nobody has a start. */
static int begins(struct rally *rally, weft_task *(*task)[2])
{
    for (int i = 0; i < 2 * PAIRS; i++)
        task[i / 2][i % 2] = weft_spawn(player, rally, i / 2, i % 2);
    for (int i = 0; i < PAIRS; i++)
        if (write(weft_stream_fd(rally->end[i][1]), "x", 1) != 1) return -EIO;
    return 0;
}

static void plays(int workers)
{
    static struct rally rally;
    static weft_task *task[PAIRS][2];
    struct crew crew;
    int r = 1;
    rally = (struct rally){.strokes = 0};
    crew_start_with(&crew, &(weft_rt_opts){.workers = workers});
    for (int i = 0; i < PAIRS; i++)
        town_pair(TOWN_UNIX, rally.end[i]);
    ASSERT_OK(weft_join(weft_go(begins, &rally, &task[0]), &r));
    ASSERT_OK(r);
    for (int i = 0; i < 2 * PAIRS; i++) {
        ASSERT_OK(weft_join(task[i / 2][i % 2], &r));
        ASSERT_OK(r);
    }
    ASSERT_LE(rally.worst, PAIRS + 61); /* each of the others once, and a tick */
    for (int i = 0; i < 2 * PAIRS; i++)
        weft_close(rally.end[i / 2][i % 2]);
    crew_stop(&crew);
}

/* Those that do not fit are not served behind all others: the kernel's order holds. */
TEST(io_that_is_ready_takes_turns_however_many_there_are)
{
    plays(1);
    plays(-1);
}
