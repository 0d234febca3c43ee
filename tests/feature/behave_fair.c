/* SPDX-License-Identifier: MIT
 *
 * How soon the others get their turns, counted in polls: on a runtime that the test turns, where
 * nothing happens at the same time, so that the bounds of docs/SCHEDULER.md can be held to. That
 * nobody starves where everything happens at once: tests/feature/fair.c.
 */
#include "bell.h"
#include "crew.h"
#include "test.h"

#include <weft/time.h>

#include <errno.h>
#include <string.h>

#define TICK 61 /* the default of WEFT_TICK */

/* One thread turns: plain counts would do, but for the threads that spawn from outside. */
static _Atomic uint32_t polls_of_others; /* made by those who might starve somebody */
static _Atomic uint32_t seen_at;         /* that count, when the one who might starve ran; else 0 */
static _Atomic bool over;

static weft_rt *rt_start(unsigned tick)
{
    weft_rt *rt;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1, .tick_max = tick, .seed = 1}, &rt));
    (void)weft_rt_enter(rt);
    store_relaxed(&polls_of_others, 0);
    store_relaxed(&seen_at, 0);
    store_relaxed(&over, false);
    return rt;
}

static void rt_end(weft_rt *rt)
{
    store_relaxed(&over, true);
    (void)weft_rt_enter(NULL);
    ASSERT_OK(weft_rt_stop(rt, -1));
}

static void turn_until_seen(weft_rt *rt)
{
    while (load_relaxed(&seen_at) == 0)
        ASSERT_GE(weft_rt_turn(rt, 0), 1);
}

static int is_seen(void)
{
    store_relaxed(&seen_at, load_relaxed(&polls_of_others) + 1);
    return 0;
}

static void *spawns_outside(void *rt)
{
    ASSERT_OK(weft_detach(weft_go_as((.rt = (weft_rt *)rt), is_seen)));
    return NULL;
}

/* Into the inject queue, in the middle of a poll: by a thread of its own, which is waited for. */
static void inject_one(weft_rt *rt)
{
    pthread_t thread;
    ASSERT_OK(pthread_create(&thread, NULL, spawns_outside, rt));
    ASSERT_OK(pthread_join(thread, NULL));
    store_relaxed(&polls_of_others, 0);
}

/* ---- the inject queue ------------------------------------------------------------------------------------- */

/* Yields without end; injects in its hundredth poll. */
struct yields {
    WEFT_FRAME(int);
    weft_rt *injects_into; /* NULL: another one does that */
    int polls;
    struct weft_yield pause;
};
static weft_async(yields)
{
    weft_begin;
    while (!load_relaxed(&over)) {
        fetch_add_relaxed(&polls_of_others, 1);
        if (++f->polls == 100 && f->injects_into) inject_one(f->injects_into);
        weft_await(f->pause, weft_yield);
        if (f->pause.ret < 0) break;
    }
    weft_return(0);
    weft_end;
}

/* Alone, with a full ring, and with more than a ring holds: what was injected waits for a tick. */
TEST(fair_injected_runs_within_a_tick_of_yielders)
{
    static const uint32_t counts[] = {1, 2, 200, 3000};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        weft_rt *rt = rt_start(0);
        for (uint32_t n = 0; n < counts[i]; n++)
            ASSERT_OK(weft_detach(weft_spawn(yields, .injects_into = n ? NULL : rt)));
        turn_until_seen(rt);
        ASSERT_LE(load_relaxed(&seen_at), TICK + 1);
        rt_end(rt);
    }
}

TEST(fair_injected_runs_at_once_with_a_tick_of_one)
{
    weft_rt *rt = rt_start(1);
    ASSERT_OK(weft_detach(weft_spawn(yields, .injects_into = rt)));
    turn_until_seen(rt);
    ASSERT_LE(load_relaxed(&seen_at), 2);
    rt_end(rt);
}

/* A task that spawns its like and ends: `next` is never empty. */
struct breeds {
    WEFT_FRAME(int);
    weft_rt *injects_into;
    int generation;
};
static weft_async(breeds)
{
    weft_begin;
    fetch_add_relaxed(&polls_of_others, 1);
    if (f->generation == 100) inject_one(f->injects_into);
    if (!load_relaxed(&over))
        (void)weft_detach(
            weft_spawn(breeds, .injects_into = f->injects_into, .generation = f->generation + 1));
    weft_return(0);
    weft_end;
}

TEST(fair_injected_runs_within_a_tick_of_breeders)
{
    weft_rt *rt = rt_start(0);
    ASSERT_OK(weft_detach(weft_spawn(breeds, .injects_into = rt)));
    turn_until_seen(rt);
    ASSERT_LE(load_relaxed(&seen_at), TICK + 1);
    rt_end(rt);
}

/* Joins children without end, each run inside of its own poll. */
struct child {
    WEFT_FRAME(int);
    weft_rt *injects_into;
    int number;
};
static weft_async(child)
{
    weft_begin;
    fetch_add_relaxed(&polls_of_others, 1);
    if (f->number == 500) inject_one(f->injects_into);
    weft_return(0);
    weft_end;
}

struct joins {
    WEFT_FRAME(int);
    weft_rt *injects_into;
    int number;
    struct weft_join join;
};
static weft_async(joins)
{
    weft_begin;
    while (!load_relaxed(&over)) {
        weft_await(f->join, weft_join,
                   weft_spawn(child, .injects_into = f->injects_into, .number = f->number++), NULL);
        if (f->join.ret < 0) break;
    }
    weft_return(0);
    weft_end;
}

/* The tick that is on ends the stretch of inlined children; the loop's own tick follows. */
TEST(fair_injected_runs_soon_beside_inlined_joins)
{
    weft_rt *rt = rt_start(0);
    weft_stats s;
    ASSERT_OK(weft_detach(weft_spawn(joins, .injects_into = rt)));
    turn_until_seen(rt);
    ASSERT_LE(load_relaxed(&seen_at), 3 * TICK);
    weft_rt_stats(rt, &s);
    ASSERT_GE(s.inlined, 400); /* else this is no test */
    rt_end(rt);
}

/* Arms a timer, which cuts the stretch of polls short. */
struct naps {
    WEFT_FRAME(int);
    struct weft_sleep sleep;
};
static weft_async(naps)
{
    weft_begin;
    weft_await(f->sleep, weft_sleep, weft_secs(3600));
    weft_return(0);
    weft_end;
}

/* Joins a child, run inside of its own poll, and lets others run; once with one that naps, which is run before the child. */
struct forks {
    WEFT_FRAME(int);
    weft_rt *injects_into;
    int nap_at;
    int rounds;
    weft_task *child;
    struct weft_join join;
    struct weft_yield pause;
};
static weft_async(forks)
{
    weft_begin;
    while (!load_relaxed(&over)) {
        fetch_add_relaxed(&polls_of_others, 1);
        if (++f->rounds == 300) inject_one(f->injects_into);
        f->child = weft_spawn(child);
        if (f->rounds == f->nap_at) (void)weft_detach(weft_spawn(naps));
        weft_await(f->join, weft_join, f->child, NULL);
        weft_await(f->pause, weft_yield);
        if (f->join.ret < 0 || f->pause.ret < 0) break;
    }
    weft_return(0);
    weft_end;
}

static void inject_beside_forks(uint32_t tick, int nap_at)
{
    weft_rt *rt = rt_start(tick);
    ASSERT_OK(weft_detach(weft_spawn(forks, .injects_into = rt, .nap_at = nap_at)));
    while (load_relaxed(&seen_at) == 0 && load_relaxed(&polls_of_others) < 100 * (tick + 10))
        ASSERT_GE(weft_rt_turn(rt, 0), 1);
    ASSERT_GE(load_relaxed(&seen_at), 1);
    ASSERT_LE(load_relaxed(&seen_at), 3 * tick + 3);
    rt_end(rt);
}

/* A stretch is as short as one poll: with a tick of 1; with one of 33 behind a look at the background queue; with any, where a timer was armed. */
TEST(fair_injected_runs_soon_behind_inlined_joins_whatever_the_stretch)
{
    static const uint32_t ticks[] = {1, 2, 32, 33, TICK, 65};
    for (size_t i = 0; i < sizeof(ticks) / sizeof(ticks[0]); i++)
        inject_beside_forks(ticks[i], 0);
    for (int nap_at = 1; nap_at <= TICK; nap_at++)
        inject_beside_forks(TICK, nap_at);
}

/* ---- the ring ------------------------------------------------------------------------------------------------ */

/* Two who wake each other: each wake puts the other before the ring. */
struct pair {
    struct bell bell[2];
    _Atomic uint32_t in_a_row; /* turns since the one in the ring had his; relaxed: a count */
    uint32_t most;
};

struct plays {
    WEFT_FRAME(int);
    struct pair *pair;
    int side;
    struct hear hear;
};
static weft_async(plays)
{
    weft_begin;
    while (!load_relaxed(&over)) {
        fetch_add_relaxed(&f->pair->in_a_row, 1);
        bell_ring(&f->pair->bell[1 - f->side]);
        weft_await(f->hear, hear, .bell = &f->pair->bell[f->side]);
        if (f->hear.ret < 0) break;
    }
    weft_return(0);
    weft_end;
}

struct waits_in_the_ring {
    WEFT_FRAME(int);
    struct pair *pair;
    int turns;
    struct weft_yield pause;
};
static weft_async(waits_in_the_ring)
{
    weft_begin;
    for (f->turns = 0; f->turns < 1000; f->turns++) {
        uint32_t in_a_row = exchange_relaxed(&f->pair->in_a_row, 0);
        if (f->turns > 10 && in_a_row > f->pair->most) f->pair->most = in_a_row;
        weft_await(f->pause, weft_yield);
        if (f->pause.ret < 0) break;
    }
    store_relaxed(&seen_at, 1);
    weft_return(0);
    weft_end;
}

static uint32_t longest_wait(uint32_t in_the_ring)
{
    struct pair pair = {.most = 0};
    weft_rt *rt = rt_start(0);
    for (int i = 0; i < 2; i++)
        bell_init(&pair.bell[i]);
    for (int i = 0; i < 2; i++)
        ASSERT_OK(weft_detach(weft_spawn(plays, .pair = &pair, .side = i)));
    for (uint32_t i = 0; i < in_the_ring; i++)
        ASSERT_OK(weft_detach(weft_spawn(waits_in_the_ring, .pair = &pair)));
    turn_until_seen(rt);
    rt_end(rt);
    for (int i = 0; i < 2; i++)
        bell_done(&pair.bell[i]);
    return pair.most;
}

/* Three times in a row, then the ring has its turn. */
TEST(fair_two_that_wake_each_other_let_the_ring_run_every_fourth_time)
{
    uint32_t most = longest_wait(1);
    ASSERT_GE(most, 1); /* they do play */
    ASSERT_LE(most, 4);
    ASSERT_LE(longest_wait(20), 4);
}

/* ---- what has spilled ------------------------------------------------------------------------------------------ */

struct has_turns {
    WEFT_FRAME(int);
    uint32_t *turns;
    struct weft_yield pause;
};
static weft_async(has_turns)
{
    weft_begin;
    while (!load_relaxed(&over)) {
        ++*f->turns;
        weft_await(f->pause, weft_yield);
        if (f->pause.ret < 0) break;
    }
    weft_return(0);
    weft_end;
}

static uint32_t least_turns(const uint32_t *turns, uint32_t count)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++)
        if (turns[i] < least) least = turns[i];
    return least;
}

static void keep_up_with_a_tick_of(unsigned tick, uint32_t wanted)
{
    enum { COUNT = 3000 };
    static uint32_t turns[COUNT];
    weft_rt *rt = rt_start(tick);
    memset(turns, 0, sizeof(turns));
    for (uint32_t i = 0; i < COUNT; i++)
        ASSERT_OK(weft_detach(weft_spawn(has_turns, .turns = &turns[i])));
    for (uint64_t polls = 0; least_turns(turns, COUNT) < wanted; polls += 256) {
        ASSERT_LE(polls, UINT64_C(10) * COUNT * (wanted + 20));
        ASSERT_GE(weft_rt_turn(rt, 0), 1);
    }
    for (uint32_t i = 0; i < COUNT; i++)
        ASSERT_LE(turns[i], 10 * (wanted + 20)); /* 20: those of the ring go round until the last of all has begun */
    rt_end(rt);
}

/* When the last of 3,000 has had a hundred turns, the first has not had many more than a thousand. */
TEST(fair_spilled_tasks_keep_up_with_the_ring)
{
    keep_up_with_a_tick_of(0, (uint32_t)test_scaled(100));
}

/* However often the loop looks elsewhere, what was brought in has its turn before it is brought out again. */
TEST(fair_spilled_tasks_keep_up_with_the_ring_whatever_the_tick)
{
    static const unsigned ticks[] = {1, 2, 3, 8, 16, 100, 1000};
    for (size_t i = 0; i < sizeof(ticks) / sizeof(ticks[0]); i++)
        keep_up_with_a_tick_of(ticks[i], (uint32_t)test_scaled(20));
}

/* ---- many pairs, everything at once ------------------------------------------------------------------------------ */

static int yields_five_times(void)
{
    for (int i = 0; i < 5; i++)
        if (weft_yield() < 0) return -1;
    return 5;
}

/* A hundred pairs saturate the workers; one that yields gets through. */
static void saturated(struct crew *crew)
{
    enum { PAIRS = 100 };
    static struct pair pair[PAIRS];
    weft_task *task[2 * PAIRS];
    int got;
    (void)crew;
    store_relaxed(&over, false);
    for (int i = 0; i < 2 * PAIRS; i++)
        bell_init(&pair[i / 2].bell[i % 2]);
    for (int i = 0; i < 2 * PAIRS; i++)
        task[i] = weft_spawn(plays, .pair = &pair[i / 2], .side = i % 2);
    for (int i = 0; i < 10; i++) {
        ASSERT_OK(weft_join(weft_go(yields_five_times), &got));
        ASSERT_EQ(got, 5);
    }
    store_relaxed(&over, true);
    for (int i = 0; i < 2 * PAIRS; i++)
        weft_cancel(task[i]);
    for (int i = 0; i < 2 * PAIRS; i++)
        ASSERT_OK(weft_join(task[i], (int *)NULL));
    for (int i = 0; i < 2 * PAIRS; i++)
        bell_done(&pair[i / 2].bell[i % 2]);
}

TEST(fair_a_hundred_pairs_starve_nobody)
{
    crew_each(saturated);
}
