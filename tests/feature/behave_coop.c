/* SPDX-License-Identifier: MIT
 *
 * Budgets: a poll that could go on for ever is ended, and how soon is a matter of the option.
 *
 * Here it is spent by operations that answer at once because the task was cancelled, which can be counted.
 * What is ready at once spends it too: chan.c, select_yields.c, all_fair.c and udp.c have tests of that.
 */
#include "crew.h"
#include "test.h"

#include <errno.h>

static _Atomic uint32_t turns; /* relaxed: a count */

/* Goes on, whatever it is told, for so many awaits. */
static int ignores_it(int awaits)
{
    while (awaits-- > 0)
        if (weft_yield() != -ECANCELED) return -1;
    return 0;
}

struct ignores_it_too {
    WEFT_FRAME(int);
    int awaits;
    struct weft_yield pause;
};
static weft_async(ignores_it_too)
{
    weft_begin;
    while (f->awaits-- > 0) {
        weft_await(f->pause, weft_yield);
        if (f->pause.ret != -ECANCELED) weft_return(-1);
    }
    weft_return(0);
    weft_end;
}

static weft_rt *rt_with(unsigned budget)
{
    weft_rt *rt;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1, .budget = budget}, &rt));
    (void)weft_rt_enter(rt);
    return rt;
}

static void stop(weft_rt *rt)
{
    (void)weft_rt_enter(NULL);
    ASSERT_OK(weft_rt_stop(rt, -1));
}

/* How many polls a cancelled task makes for so many awaits. */
static uint64_t polls_for(unsigned budget, int awaits, bool fiber)
{
    weft_rt *rt = rt_with(budget);
    weft_stats s;
    int got = -1;
    weft_task *task =
        fiber ? weft_go(ignores_it, awaits) : weft_spawn(ignores_it_too, .awaits = awaits);
    weft_cancel(task);
    while (weft_rt_turn(rt, 0) > 0) {
    }
    weft_rt_stats(rt, &s);
    ASSERT_OK(weft_join(task, &got));
    ASSERT_OK(got);
    stop(rt);
    return s.polls;
}

/* A poll ends after `budget` answers; the await that found none left is answered in the next. */
TEST(coop_budget_ends_the_poll)
{
    for (int fiber = 0; fiber < 2; fiber++) {
        ASSERT_EQ(polls_for(128, 100, fiber), 1);
        uint64_t few = polls_for(1000, 10000, fiber);
        uint64_t many = polls_for(10, 10000, fiber);
        ASSERT_GE(few, 9);
        ASSERT_LE(few, 11);
        ASSERT_GE(many, 900);
        ASSERT_LE(many, 1100);
    }
}

struct counts_turns {
    WEFT_FRAME(int);
    int left;
    struct weft_yield pause;
};
static weft_async(counts_turns)
{
    weft_begin;
    while (f->left-- > 0) {
        fetch_add_relaxed(&turns, 1);
        weft_await(f->pause, weft_yield);
    }
    weft_return(0);
    weft_end;
}

/* Others have their turns in between: as many as it has polls. */
TEST(coop_others_run_between_the_polls)
{
    weft_rt *rt = rt_with(10);
    int got = -1;
    store_relaxed(&turns, 0);
    weft_task *deaf = weft_go(ignores_it, 1000);
    ASSERT_OK(weft_detach(weft_spawn(counts_turns, .left = 1000000)));
    weft_cancel(deaf);
    while (!weft_done(deaf))
        ASSERT_GE(weft_rt_turn(rt, 0), 1);
    ASSERT_GE(load_relaxed(&turns), 80);
    ASSERT_OK(weft_join(deaf, &got));
    ASSERT_OK(got);
    stop(rt);
}

/* A wait that is not over costs nothing: it may be asked as often as one likes in one poll. */
struct never {
    WEFT_FRAME(int);
};
static weft_poll never_poll(void *frame, weft_cx *cx)
{
    (void)frame;
    return weft_cx_cancelled(cx) ? WEFT_READY : WEFT_PENDING;
}

struct asks_often {
    WEFT_FRAME(int);
    struct never never;
    struct weft_yield pause;
};
static weft_poll asks_often_poll(void *frame, weft_cx *cx)
{
    struct asks_often *f = frame;
    for (int i = 0; i < 1000; i++)
        if (never_poll(&f->never, cx) == WEFT_READY) return WEFT_READY;
    f->ret = 1;
    return WEFT_READY;
}

TEST(coop_waiting_costs_no_budget)
{
    weft_rt *rt = rt_with(5);
    int got = 0;
    weft_task *task = weft_spawn(asks_often);
    ASSERT_EQ(weft_rt_turn(rt, 0), 1);
    ASSERT_OK(weft_join(task, &got));
    ASSERT_EQ(got, 1);
    stop(rt);
}

/* A thread that is no task yields too, and nobody is there to cancel it. */
TEST(coop_yield_outside_of_a_runtime)
{
    for (int i = 0; i < 1000; i++)
        ASSERT_OK(weft_yield());
    ASSERT_EQ(weft_run(ignores_it_too, .awaits = 1), -1); /* it was not cancelled */
}
