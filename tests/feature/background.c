/* SPDX-License-Identifier: MIT
 *
 * Tasks that can wait, and tasks without a budget: who goes first, who gets on all the same.
 */
#include "street.h"
#include "tasks.h"
#include "test.h"

#include <errno.h>
#include <weft/local.h>

static _Atomic uint32_t in_front; /* polls of ordinary tasks */
static _Atomic uint32_t behind;   /* polls of background tasks */

static void clear(void)
{
    street_clear();
    store_relaxed(&in_front, 0);
    store_relaxed(&behind, 0);
}

/* ---- it runs ---------------------------------------------------------------------------------------------- */

struct pauses {
    WEFT_FRAME(int);
    int left;
    struct weft_yield pause;
};
static weft_async(pauses)
{
    weft_begin;
    for (; f->left > 0; f->left--)
        weft_await(f->pause, weft_yield);
    weft_return(1);
    weft_end;
}

/* With nothing else to do: spawned from outside, by tasks, many, both kinds. */
static int spawns_in_background(void)
{
    int sum = 0;
    for (int i = 0; i < 20; i++) {
        int got = 0;
        weft_task *t = i % 2 ? weft_go_as((.background = true), answers, 1)
                             : weft_spawn_as((.background = true), pauses, 5);
        if (weft_join(t, &got) < 0) return -1;
        sum += got;
    }
    return sum;
}

static void runs(struct crew *crew)
{
    (void)crew;
    for (unsigned i = 0; i < test_scaled(200); i++) {
        int got = 0;
        ASSERT_OK(weft_join(weft_go_as((.background = true), spawns_in_background), &got));
        ASSERT_EQ(got, 20);
    }
}

TEST(background_runs_when_there_is_nothing_else)
{
    crew_each(runs);
}

/* The workers sleep between two rings. */
static void woken(struct crew *crew)
{
    struct bell bell;
    (void)crew;
    clear();
    bell_init(&bell);
    weft_task *t = weft_go_as((.background = true), counts_rings, &bell, &behind);
    for (unsigned i = 0; i < test_scaled(1000); i++) {
        uint32_t before = load_relaxed(&behind);
        bell_ring(&bell);
        CREW_UNTIL(load_relaxed(&behind) != before);
    }
    store_relaxed(&over, true);
    bell_ring(&bell);
    join_all(&t, 1);
}

TEST(background_wake_reaches_a_sleeper)
{
    crew_each(woken);
}

/* ---- who goes first ------------------------------------------------------------------------------------------ */

#define BUSY 16

/* Ordinary tasks that never end leave no worker idle; those behind them get on, but not at their expense. */
static void beside_busy_workers(struct crew *crew)
{
    weft_task *task[2 * BUSY];
    _Atomic uint32_t each[BUSY] = {0};
    (void)crew;
    clear();
    for (int i = 0; i < BUSY; i++)
        task[i] = weft_go(yields, &in_front);
    CREW_UNTIL(load_relaxed(&in_front) > 1000);
    for (int i = 0; i < BUSY; i++)
        task[BUSY + i] = weft_go_as((.background = true), yields, &each[i]);
    for (int i = 0; i < BUSY; i++)
        CREW_UNTIL(load_relaxed(&each[i]) > 20);
    store_relaxed(&over, true);
    join_all(task, 2 * BUSY);
}

TEST(background_gets_on_beside_busy_workers)
{
    crew_each(beside_busy_workers);
}

/* On one worker the polls of both can be counted: no more than 32 of others between two, and few of ten are background's. */
struct gaps {
    uint32_t last;
    uint32_t widest;
    uint32_t count;
};

static int measures_gaps(struct gaps *gaps)
{
    while (!load_relaxed(&over)) {
        uint32_t now = load_relaxed(&in_front);
        if (gaps->count++ > 0 && now - gaps->last > gaps->widest) gaps->widest = now - gaps->last;
        gaps->last = now;
        if (gaps->count == 500) store_relaxed(&over, true);
        if (weft_yield() < 0) break;
    }
    return 0;
}

static int starts_both(struct gaps *gaps)
{
    weft_task *busy = weft_go(yields, &in_front);
    weft_task *waits = weft_go_as((.background = true), measures_gaps, gaps);
    int r = weft_join(busy, (int *)NULL);
    return weft_join(waits, (int *)NULL) < 0 ? -1 : r;
}

static void every_32nd(int workers)
{
    struct crew crew;
    struct gaps gaps = {0};
    crew_start(&crew, workers);
    clear();
    ASSERT_OK(weft_join(weft_go(starts_both, &gaps), (int *)NULL));
    ASSERT_EQ(gaps.count, 500);
    ASSERT_LE(gaps.widest, 32);
    ASSERT_GE(load_relaxed(&in_front), 500 * 10);
    crew_stop(&crew);
}

TEST(background_every_32nd_poll_and_hardly_more)
{
    every_32nd(1);
    every_32nd(-1);
}

static _Atomic uint32_t order;

static int takes_number(void)
{
    return (int)fetch_add_relaxed(&order, 1);
}

static int goes_last(void)
{
    enum { FRONT = 8 };
    weft_task *front[FRONT];
    int number = -1;
    weft_task *last = weft_go_as((.background = true), takes_number);
    for (int i = 0; i < FRONT; i++)
        front[i] = weft_go(takes_number);
    for (int i = 0; i < FRONT; i++)
        if (weft_join(front[i], (int *)NULL) < 0) return -1;
    return weft_join(last, &number) < 0 ? -1 : number;
}

/* On a fresh worker, whose 32nd poll is far away. */
TEST(background_goes_after_what_is_there)
{
    static const int sizes[] = {1, -1};
    for (size_t i = 0; i < 2; i++) {
        struct crew crew;
        int got = -1;
        crew_start(&crew, sizes[i]);
        store_relaxed(&order, 0);
        ASSERT_OK(weft_join(weft_go(goes_last), &got));
        ASSERT_EQ(got, 8);
        crew_stop(&crew);
    }
}

/* ---- many at once ----------------------------------------------------------------------------------------------- */

static _Atomic uint32_t met;

/* Does not let go of its worker until the others are there. */
static int meets(uint32_t count)
{
    fetch_add_relaxed(&met, 1);
    CREW_UNTIL(load_relaxed(&met) >= count);
    return 0;
}

static void all_workers_help(int workers)
{
    struct crew crew;
    crew_start(&crew, workers);
    for (unsigned n = 0; n < test_scaled(50); n++) {
        weft_task *task[4];
        store_relaxed(&met, 0);
        for (int i = 0; i < workers; i++)
            task[i] = weft_go_as((.background = true), meets, (uint32_t)workers);
        join_all(task, workers);
    }
    crew_stop(&crew);
}

TEST(background_is_for_all_workers)
{
    all_workers_help(2);
    all_workers_help(4);
}

/* ---- without a budget --------------------------------------------------------------------------------------------- */

static _Atomic uint32_t seen_from, seen_to;

/* A task that was told to stop is answered at once, and pays by its budget; whoever has one yields when it is spent. */
static int ignores_cancel(struct bell *started)
{
    bell_ring(started);
    while (weft_yield() == 0) {
    }
    store_relaxed(&seen_from, load_relaxed(&in_front));
    for (int i = 0; i < 10000; i++)
        (void)weft_yield();
    store_relaxed(&seen_to, load_relaxed(&in_front));
    return 0;
}

static uint32_t polls_of_others(bool unbudgeted)
{
    struct crew crew;
    struct bell started;
    clear();
    bell_init(&started);
    crew_start(&crew, 1);
    weft_task *other = weft_go(yields, &in_front);
    weft_task *t = weft_go_as((.unbudgeted = unbudgeted), ignores_cancel, &started);
    (void)weft_run(hear, .bell = &started);
    weft_cancel(t);
    join_all(&t, 1);
    store_relaxed(&over, true);
    join_all(&other, 1);
    crew_stop(&crew);
    return load_relaxed(&seen_to) - load_relaxed(&seen_from);
}

TEST(budget_ends_a_poll_unless_there_is_none)
{
    ASSERT_GE(polls_of_others(false), 50);
    ASSERT_EQ(polls_of_others(true), 0);
}
