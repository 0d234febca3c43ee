/* SPDX-License-Identifier: MIT
 *
 * How soon the others get their turns beside programs that go depth first, and beside those that have the worker look elsewhere at
 * every poll; counted in polls, as in behave_fair.c. A stackless tree runs its children inside of its joins, a tree of fibers has its
 * worker take the newest first: both could go on for ever.
 */
#include "crew.h"
#include "tasks.h"
#include "test.h"

#include <weft/time.h>

#define TICK       61                       /* the default of WEFT_TICK */
#define BACKGROUND 32                       /* polls between two looks at the background queue */
#define DEEP       (16 * (TICK + 1) + TICK) /* polls that a program may go depth first */

#define DEPTH 13

static uint32_t in_front;  /* polls of those who might starve somebody; one thread turns */
static uint32_t last_turn; /* that count, when the one who might starve last ran */
static uint32_t turns;     /* that it had */
static uint32_t longest;   /* the most polls of others between two of them */
static _Atomic bool over;

static weft_rt *rt_start(unsigned tick)
{
    weft_rt *rt;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1, .tick_max = tick, .seed = 1}, &rt));
    (void)weft_rt_enter(rt);
    in_front = 0;
    last_turn = 0;
    turns = 0;
    longest = 0;
    store_relaxed(&over, false);
    return rt;
}

static void rt_end(weft_rt *rt)
{
    store_relaxed(&over, true);
    (void)weft_rt_enter(NULL);
    ASSERT_OK(weft_rt_stop(rt, -1));
}

/* ---- who might starve ------------------------------------------------------------------------------------------ */

struct notes_turns {
    WEFT_FRAME(int);
    struct weft_yield pause;
};
static weft_async(notes_turns)
{
    weft_begin;
    last_turn = in_front;
    while (!load_relaxed(&over)) {
        if (in_front - last_turn > longest) longest = in_front - last_turn;
        last_turn = in_front;
        turns++;
        weft_await(f->pause, weft_yield);
        if (f->pause.ret < 0) break;
    }
    weft_return(0);
    weft_end;
}

/* Until so many polls were made by the others, and `before` each turn of the host. */
static void turn_for(weft_rt *rt, uint32_t polls, void (*before)(void))
{
    while (in_front < polls) {
        if (before) before();
        ASSERT_GE(weft_rt_turn(rt, 0), 1);
    }
    if (in_front - last_turn > longest) longest = in_front - last_turn;
}

/* ---- who might starve them ---------------------------------------------------------------------------------------- */

/* A tree, its children run inside of its joins. */
struct grows {
    WEFT_FRAME(int);
    int depth;
    int i;
    weft_task *kid[2];
    struct weft_join join;
};
static weft_async(grows)
{
    weft_begin;
    in_front++;
    if (f->depth == 0) weft_return(0);
    for (f->i = 0; f->i < 2; f->i++)
        f->kid[f->i] = weft_spawn(grows, .depth = f->depth - 1);
    for (f->i = 0; f->i < 2; f->i++)
        weft_await(f->join, weft_join, f->kid[f->i], (int *)NULL);
    weft_return(0);
    weft_end;
}

struct grows_for_ever {
    WEFT_FRAME(int);
    struct weft_join join;
};
static weft_async(grows_for_ever)
{
    weft_begin;
    while (!load_relaxed(&over)) {
        weft_await(f->join, weft_join, weft_spawn(grows, .depth = 10), (int *)NULL);
        if (f->join.ret < 0) break;
    }
    weft_return(0);
    weft_end;
}

/* The same of fibers. */
static int digs(int depth)
{
    weft_task *kid[2];
    in_front++;
    if (depth == 0) return 0;
    for (int i = 0; i < 2; i++)
        kid[i] = weft_go(digs, depth - 1);
    for (int i = 0; i < 2; i++)
        (void)weft_join(kid[i], (int *)NULL);
    in_front++; /* the poll in which it ends */
    return 0;
}

static int digs_for_ever(void)
{
    while (!load_relaxed(&over))
        if (weft_join(weft_go(digs, DEPTH), (int *)NULL) < 0) break;
    return 0;
}

/* The older of two children is joined: while it waits in the ring, the newest there has not begun. */
static int dives_once(void)
{
    in_front++;
    weft_task *older = weft_go(digs, 0);
    ASSERT_OK(weft_detach(weft_go(digs, 0)));
    return weft_join(older, (int *)NULL);
}

static int dives_for_ever(void)
{
    while (!load_relaxed(&over))
        if (dives_once() < 0) break;
    return 0;
}

struct yields_in_front {
    WEFT_FRAME(int);
    struct weft_yield pause;
};
static weft_async(yields_in_front)
{
    weft_begin;
    while (!load_relaxed(&over)) {
        in_front++;
        weft_await(f->pause, weft_yield);
        if (f->pause.ret < 0) break;
    }
    weft_return(0);
    weft_end;
}

/* Arms a timer in each poll, after which the worker looks at its wheel. */
struct dozes {
    WEFT_FRAME(int);
    struct weft_sleep nap;
};
static weft_async(dozes)
{
    weft_begin;
    while (!load_relaxed(&over)) {
        in_front++;
        weft_await(f->nap, weft_sleep, 1);
        if (f->nap.ret < 0) break;
    }
    weft_return(0);
    weft_end;
}

/* More than a turn takes from the inject queue. */
static void inject_yielders(void)
{
    for (int i = 0; i < 300; i++)
        ASSERT_OK(weft_detach(weft_spawn(grows, .depth = 0)));
}

/* In the inject queue lies one of these whenever the worker looks: each has a thread put the next one there, before it dives. */
static int dives_from_outside(weft_rt *rt);

static void *injects_a_diver(void *rt)
{
    ASSERT_OK(weft_detach(weft_go_as((.rt = (weft_rt *)rt), dives_from_outside, (weft_rt *)rt)));
    return NULL;
}

static int dives_from_outside(weft_rt *rt)
{
    pthread_t thread;
    if (load_relaxed(&over)) return 0;
    ASSERT_OK(pthread_create(&thread, NULL, injects_a_diver, rt));
    ASSERT_OK(pthread_join(thread, NULL));
    return dives_once();
}

/* ---- the ring's oldest ------------------------------------------------------------------------------------------- */

TEST(fair_ring_beside_inlined_trees)
{
    weft_rt *rt = rt_start(0);
    weft_stats s;
    ASSERT_OK(weft_detach(weft_spawn(notes_turns)));
    ASSERT_OK(weft_detach(weft_spawn(grows_for_ever)));
    turn_for(rt, 100000, NULL);
    ASSERT_LE(longest, 4 * DEEP); /* `next` goes before the ring three times in a row */
    weft_rt_stats(rt, &s);
    ASSERT_GE(s.inlined, 50000); /* else this is no test */
    rt_end(rt);
}

/* Before it in the ring are the siblings of those that the tree is inside of, one for each level. */
TEST(fair_ring_beside_diving_fibers)
{
    weft_rt *rt = rt_start(0);
    ASSERT_OK(weft_detach(weft_spawn(notes_turns)));
    ASSERT_OK(weft_detach(weft_go(digs_for_ever)));
    turn_for(rt, 100000, NULL);
    ASSERT_LE(longest, (DEPTH + 1) * DEEP);
    rt_end(rt);
}

/* At every tick the worker takes one of the inject queue first, and that one dives. */
TEST(fair_ring_beside_diving_fibers_in_the_inject_queue)
{
    weft_rt *rt = rt_start(0);
    ASSERT_OK(weft_detach(weft_spawn(notes_turns)));
    ASSERT_OK(weft_detach(weft_go(dives_for_ever)));
    ASSERT_OK(weft_detach(weft_go(dives_from_outside, rt)));
    turn_for(rt, 50000, NULL);
    ASSERT_LE(longest, 2 * DEEP);
    rt_end(rt);
}

/* ---- the overflow arrays ------------------------------------------------------------------------------------------- */

static int comes_from_outside(weft_rt *rt);

static void *injects_another(void *rt)
{
    ASSERT_OK(weft_detach(weft_go_as((.rt = (weft_rt *)rt), comes_from_outside, (weft_rt *)rt)));
    return NULL;
}

static int comes_from_outside(weft_rt *rt)
{
    pthread_t thread;
    if (load_relaxed(&over)) return 0;
    ASSERT_OK(pthread_create(&thread, NULL, injects_another, rt));
    ASSERT_OK(pthread_join(thread, NULL));
    return 0;
}

struct has_turns {
    WEFT_FRAME(int);
    uint32_t *turns;
    struct weft_yield pause;
};
static weft_async(has_turns)
{
    weft_begin;
    while (!load_relaxed(&over)) {
        in_front++;
        ++*f->turns;
        weft_await(f->pause, weft_yield);
        if (f->pause.ret < 0) break;
    }
    weft_return(0);
    weft_end;
}

/* At every tick the worker takes one of the inject queue first: what has spilled is brought round all the same. */
TEST(fair_spilled_tasks_beside_an_inject_queue_that_is_never_empty)
{
    enum { COUNT = 1000 };
    static uint32_t had[COUNT];
    weft_rt *rt = rt_start(0);
    for (int i = 0; i < COUNT; i++)
        ASSERT_OK(weft_detach(weft_spawn(has_turns, .turns = &had[i])));
    ASSERT_OK(weft_detach(weft_go(comes_from_outside, rt)));
    turn_for(rt, 60000, NULL);
    for (int i = 0; i < COUNT; i++)
        ASSERT_GE(had[i], 5);
    rt_end(rt);
}

/* ---- the background queue ------------------------------------------------------------------------------------------ */

/* It has its turn soon, and no more than its turn. */
static void background_beside(void (*begin)(void), void (*before)(void), unsigned tick,
                              uint32_t polls, uint32_t soon)
{
    weft_rt *rt = rt_start(tick);
    ASSERT_OK(weft_detach(weft_spawn_as((.background = true), notes_turns)));
    begin();
    turn_for(rt, polls, before);
    ASSERT_GE(turns, polls / soon);
    ASSERT_LE(longest, soon);
    ASSERT_LE(turns,
              polls / (BACKGROUND / 2) + 100); /* and what a turn of the host takes at its end */
    rt_end(rt);
}

static void begin_trees(void)
{
    ASSERT_OK(weft_detach(weft_spawn(grows_for_ever)));
}

static void begin_fibers(void)
{
    ASSERT_OK(weft_detach(weft_go(digs_for_ever)));
}

static void begin_yielders(void)
{
    for (int i = 0; i < 3; i++)
        ASSERT_OK(weft_detach(weft_spawn(yields_in_front)));
}

TEST(fair_background_beside_inlined_trees)
{
    background_beside(begin_trees, NULL, 0, 20000, 2 * BACKGROUND);
}

TEST(fair_background_beside_diving_fibers)
{
    background_beside(begin_fibers, NULL, 0, 20000, 2 * BACKGROUND);
}

TEST(fair_background_beside_yielders_whatever_the_tick)
{
    static const unsigned ticks[] = {1, 2, 7, 31, 32, 33, 61, 1000};
    for (size_t i = 0; i < sizeof(ticks) / sizeof(ticks[0]); i++)
        background_beside(begin_yielders, NULL, ticks[i], 20000, BACKGROUND);
}

TEST(fair_background_beside_a_full_inject_queue_whatever_the_tick)
{
    static const unsigned ticks[] = {1, 2, 7, 31, 32, 33, 61, 1000};
    for (size_t i = 0; i < sizeof(ticks) / sizeof(ticks[0]); i++)
        background_beside(begin_yielders, inject_yielders, ticks[i], 20000, BACKGROUND);
}

/* Whoever arms timers has the worker look at its wheel, and at nothing else. */
TEST(fair_background_beside_those_who_arm_timers)
{
    weft_rt *rt = rt_start(0);
    ASSERT_OK(weft_detach(weft_spawn_as((.background = true), notes_turns)));
    begin_yielders();
    for (int i = 0; i < 100; i++)
        ASSERT_OK(weft_detach(weft_spawn(dozes)));
    turn_for(rt, 20000, NULL);
    ASSERT_LE(longest, BACKGROUND);
    ASSERT_LE(turns, 20000 / (BACKGROUND / 2) + 100);
    rt_end(rt);
}
