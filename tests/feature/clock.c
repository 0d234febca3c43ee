/* SPDX-License-Identifier: MIT
 *
 * A runtime's clock: it stands, runs on, jumps; moves by itself when all is idle and not before; and
 * belongs to one runtime.
 */
#include "nap.h"
#include "still.h"
#include "test.h"

#include "sched/sched.h"

#include <errno.h>

#define HOUR weft_mins(60)

/* ---- stands and runs ------------------------------------------------------------------------- */

static void stands(struct crew *crew)
{
    weft_time before = weft_now();
    (void)crew;
    for (int i = 0; i < 1000; i++)
        ASSERT_EQ(weft_now(), before);
    ASSERT_EQ(weft_clock_pause(NULL), -EALREADY);
}

TEST(clock_stands_while_nothing_sleeps)
{
    still_each(stands);
}

static void goes_on(struct crew *crew)
{
    (void)crew;
    ASSERT_EQ(joined(weft_go(sleeps, HOUR)), HOUR);
    weft_time stood = weft_now();
    ASSERT_OK(weft_clock_resume(NULL));
    ASSERT_EQ(weft_clock_resume(NULL), -EALREADY);
    ASSERT_GE(weft_now(), stood);
    ASSERT_GE(joined(weft_go(sleeps, weft_us(100))), weft_us(100));
    ASSERT_LE(weft_now() - stood, HOUR); /* it did not catch up */
    ASSERT_OK(weft_clock_pause(NULL));
    stood = weft_now();
    ASSERT_EQ(joined(weft_go(sleeps, HOUR)), HOUR);
    ASSERT_EQ(weft_now(), stood + HOUR);
}

TEST(clock_runs_on_from_where_it_stood)
{
    still_each(goes_on);
}

/* Workers sleep in the kernel for a time; when the clock begins to stand, they have to be told. */
static void pause_wakes(struct crew *crew)
{
    (void)crew;
    weft_task *t = weft_go(sleeps, 2 * HOUR);
    CREW_UNTIL(weft_rt_current() != NULL);
    ASSERT_OK(weft_clock_pause(NULL));
    ASSERT_GE(joined(t), 2 * HOUR);
}

TEST(clock_pause_wakes_those_who_sleep_in_the_kernel)
{
    crew_each(pause_wakes);
}

static void resume_wakes(struct crew *crew)
{
    weft_stats stats;
    (void)crew;
    weft__clock_hold(&crew->rt->clock); /* or it would be over before it runs */
    weft_task *t = weft_go(sleeps, weft_ms(1));
    do
        weft_rt_stats(crew->rt, &stats);
    while (stats.polls == 0);
    ASSERT_OK(weft_clock_resume(NULL));
    ASSERT_GE(joined(t), weft_ms(1));
    weft__clock_release(&crew->rt->clock);
}

TEST(clock_resume_wakes_those_who_wait_for_it)
{
    still_each(resume_wakes);
}

/* ---- jumps ----------------------------------------------------------------------------------- */

static void jumps(struct crew *crew)
{
    weft_time before = weft_now();
    (void)crew;
    weft__clock_hold(&crew->rt->clock);
    ASSERT_OK(weft_clock_advance(NULL, HOUR));
    ASSERT_EQ(weft_now(), before + HOUR);
    ASSERT_OK(weft_clock_advance(crew->rt, 0));
    ASSERT_EQ(weft_now(), before + HOUR);
    ASSERT_EQ(weft_clock_advance(NULL, -1), -EINVAL);
    weft__clock_release(&crew->rt->clock);
    ASSERT_OK(weft_clock_resume(NULL));
    ASSERT_EQ(weft_clock_advance(NULL, 1), -EINVAL);
}

TEST(clock_advance_jumps)
{
    still_each(jumps);
}

static _Atomic int woken;

static int counts(int64_t ns)
{
    int r = weft_sleep(ns);
    fetch_add_relaxed(&woken, 1);
    return r;
}

/* While the clock is held it does not move for being idle: a jump is all that wakes. */
static void jump_fires(struct crew *crew)
{
    weft_task *tasks[10];
    weft_stats stats;

    store_relaxed(&woken, 0);
    weft__clock_hold(&crew->rt->clock);
    for (int64_t i = 0; i < 10; i++)
        tasks[i] = weft_go(counts, (i + 1) * HOUR);
    do
        weft_rt_stats(crew->rt, &stats);
    while (stats.polls < 10);
    ASSERT_EQ(load_relaxed(&woken), 0);
    ASSERT_OK(weft_clock_advance(NULL, 4 * HOUR));
    CREW_UNTIL(load_relaxed(&woken) == 4);
    ASSERT_OK(weft_clock_advance(NULL, 5 * HOUR));
    CREW_UNTIL(load_relaxed(&woken) == 9);
    ASSERT_OK(weft_clock_advance(NULL, INT64_MAX));
    for (int i = 0; i < 10; i++)
        ASSERT_OK(weft_join(tasks[i], NULL));
    weft__clock_release(&crew->rt->clock);
}

TEST(clock_advance_fires_what_becomes_due)
{
    still_each(jump_fires);
}

/* ---- idle ------------------------------------------------------------------------------------ */

static _Atomic bool quit;

static int keeps_busy(void)
{
    while (!load_relaxed(&quit))
        (void)weft_yield();
    return 0;
}

static void not_while_busy(struct crew *crew)
{
    weft_time before = weft_now();
    weft_stats stats;

    store_relaxed(&quit, false);
    weft_task *busy = weft_go(keeps_busy);
    weft_task *t = weft_go(sleeps, HOUR);
    do
        weft_rt_stats(crew->rt, &stats);
    while (stats.polls < 5000);
    ASSERT_EQ(weft_now(), before);
    store_relaxed(&quit, true);
    ASSERT_OK(weft_join(busy, NULL));
    ASSERT_EQ(joined(t), HOUR);
}

TEST(clock_does_not_move_while_a_task_runs)
{
    still_each(not_while_busy);
}

/* Two tasks that talk by sleeping: each finds the other's writes of the time before. */
static int64_t flag_time;

static int64_t sets(void)
{
    int r = weft_sleep(10);
    flag_time = weft_now();
    return r;
}

static int64_t sees(void)
{
    weft_time start = weft_now();
    int r = weft_sleep(20);
    return r < 0 ? r : flag_time - start;
}

/* Spawned by a task, which is awake: the clock cannot move in between. */
static int64_t both(void)
{
    int64_t seen = 0;
    weft_task *a = weft_go(sees);
    weft_task *b = weft_go(sets);
    int r = weft_join(a, &seen);
    int s = weft_join(b, NULL);
    return r < 0 ? r : s < 0 ? s : seen;
}

static void earlier_first(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 20; i++)
        ASSERT_EQ(joined(weft_go(both)), 10);
}

TEST(clock_lets_earlier_ones_run_first)
{
    still_each(earlier_first);
}

/* ---- whose ----------------------------------------------------------------------------------- */

TEST(clock_of_each_runtime_is_its_own)
{
    weft_rt *still;
    weft_rt *running;

    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1, .paused = true}, &still));
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1}, &running));
    weft_time system = weft_now();
    ASSERT_OK(weft_clock_advance(still, 100 * HOUR));
    (void)weft_rt_enter(still);
    ASSERT_GE(weft_now(), system + 50 * HOUR);
    (void)weft_rt_enter(running);
    ASSERT_LE(weft_now(), system + 50 * HOUR);
    (void)weft_rt_enter(NULL);
    ASSERT_LE(weft_now(), system + 50 * HOUR);
    ASSERT_EQ(weft_clock_pause(NULL), -ENXIO);
    ASSERT_EQ(weft_clock_resume(NULL), -ENXIO);
    ASSERT_EQ(weft_clock_advance(NULL, 1), -ENXIO);
    ASSERT_OK(weft_rt_stop(still, -1));
    ASSERT_OK(weft_rt_stop(running, -1));
}

/* ---- turned by hand -------------------------------------------------------------------------- */

/* A turn that does not wait does not move it; one that waits moves it as far as it waits. */
TEST(clock_moves_in_a_turn_that_waits)
{
    weft_rt *rt;

    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1, .paused = true}, &rt));
    (void)weft_rt_enter(rt);
    weft_time start = weft_now();
    weft_task *t = weft_go(sleeps, HOUR);
    ASSERT_EQ(weft_rt_turn(rt, 0), 1);
    ASSERT_EQ(weft_rt_turn(rt, 0), 0);
    ASSERT_EQ(weft_now(), start);
    ASSERT_EQ(weft_rt_turn(rt, HOUR / 4), 0);
    ASSERT_EQ(weft_now(), start + HOUR / 4);
    ASSERT_EQ(weft_rt_turn(rt, -1), 1);
    ASSERT_EQ(weft_now(), start + HOUR);
    ASSERT(weft_done(t));
    ASSERT_EQ(joined(t), HOUR);
    (void)weft_rt_enter(NULL);
    ASSERT_OK(weft_rt_stop(rt, -1));
}
