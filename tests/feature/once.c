/* SPDX-License-Identifier: MIT
 *
 * Once and the cell on real runtimes: it is done once, with awaits in the midst of it; tried again if it failed or was
 * cancelled; and seen by all who come.
 */
#include "counted.h"
#include "crew.h"
#include "death.h"
#include "storm.h"
#include "test.h"
#include "waiters.h"

#include <errno.h>
#include <string.h>
#include <weft/weft.h>

static weft_once once;
static uint32_t made;  /* by who is at it */
static uint32_t tries; /* the same */
static uint32_t failures;

static void begin(uint32_t fail)
{
    once = (weft_once)WEFT_ONCE_INIT;
    made = 0;
    tries = 0;
    failures = fail;
}

static bool works(void)
{
    tries++;
    if (tries <= failures) return false;
    made++;
    return true;
}

/* 0: it is done; -EAGAIN: it failed here. A cancelled pause fails, too. */
static int does(uint32_t pause)
{
    int r = weft_once_enter(&once);
    if (r > 0) {
        int paused = 0;
        while (pause-- > 0 && paused == 0)
            paused = weft_yield();
        bool done = paused == 0 && works();
        ASSERT_OK(weft_once_leave(&once, done));
        return done ? 0 : paused < 0 ? paused : -EAGAIN;
    }
    if (r == 0) ASSERT_EQ(made, 1);
    return r;
}

struct doing {
    WEFT_FRAME(int);
    uint32_t pause;
    struct weft_once_enter enter;
    struct storm_pause paused;
};
static weft_async(doing)
{
    weft_begin;
    weft_await(f->enter, weft_once_enter, &once);
    if (f->enter.ret > 0) {
        weft_await(f->paused, storm_pause, f->pause);
        f->ret = works() ? 0 : -EAGAIN;
        ASSERT_OK(weft_once_leave(&once, f->ret == 0));
        weft_return(f->ret);
    }
    if (f->enter.ret == 0) ASSERT_EQ(made, 1);
    weft_return(f->enter.ret);
    weft_end;
}

static weft_task *start(void *of, uint32_t i, bool stackless)
{
    uint64_t *random = of;
    uint32_t pause = pool_random(random, 6);
    (void)i;
    return stackless ? weft_spawn(doing, pause) : weft_go(does, pause);
}

static void once_only(struct crew *crew)
{
    uint64_t random = pool_seed(7);
    uint32_t count = (uint32_t)test_scaled(200);
    (void)crew;
    begin(5);
    struct storm_sum sum = storm(start, &random, count, NULL);
    if (!weft_once_is_done(&once)) { /* all who might have were cancelled, or failed */
        for (int i = 0; i < 6 && does(0) == -EAGAIN; i++)
            continue;
    }
    ASSERT(weft_once_is_done(&once));
    ASSERT_EQ(made, 1);
    ASSERT_EQ(tries, 6);
    ASSERT_LE(sum.other, 5);
    ASSERT_OK(does(0));
}

TEST(once_is_done_once)
{
    crew_each(once_only);
}

/* Polled by hand, each in nobody's name: who waits is next when it has failed, and nobody passes; cancelled, it lets the next one try, or whoever comes. */
TEST(once_next_in_line_tries)
{
    weft_once o = WEFT_ONCE_INIT;
    struct counted c[4];
    struct weft_cx cx[4];
    struct weft_once_enter enter[4];

    for (int i = 0; i < 4; i++) {
        cx[i] = cx_of(&c[i]);
        cx[i].among = true; /* all have one name here */
        enter[i] = (struct weft_once_enter){.once = &o};
    }
    ASSERT_EQ(weft_once_enter_poll(&enter[0], &cx[0]), WEFT_READY);
    ASSERT_EQ(enter[0].ret, 1);
    for (int i = 1; i < 3; i++)
        ASSERT_EQ(weft_once_enter_poll(&enter[i], &cx[i]), WEFT_PENDING);
    ASSERT_OK(weft_once_leave(&o, false));
    ASSERT_EQ(c[1].wakes, 1);
    ASSERT_EQ(weft_once_enter_poll(&enter[3], &cx[3]), WEFT_PENDING); /* it comes behind them */
    cx[1].why = -ECANCELED;
    ASSERT_EQ(weft_once_enter_poll(&enter[1], &cx[1]), WEFT_READY);
    ASSERT_EQ(enter[1].ret, -ECANCELED);
    ASSERT_EQ(c[2].wakes, 1);
    ASSERT_EQ(c[3].wakes, 0);
    cx[2].why = cx[3].why = -ECANCELED;
    for (int i = 2; i < 4; i++) {
        ASSERT_EQ(weft_once_enter_poll(&enter[i], &cx[i]), WEFT_READY);
        ASSERT_EQ(enter[i].ret, -ECANCELED);
    }
    ASSERT_EQ(c[3].wakes, 1);
    ASSERT_EQ(weft_once_enter_poll(&enter[0], &cx[0]), WEFT_READY); /* nobody is left in line */
    ASSERT_EQ(enter[0].ret, 1);
    ASSERT_OK(weft_once_leave(&o, true));
    ASSERT(weft_once_is_done(&o));
}

enum { ASKERS = 50 };

static weft_cell cell = WEFT_CELL_INIT;
static int answer = 42;
static _Atomic uint32_t makers; /* relaxed: a count */

/* Who has to make it waits in the midst of that. */
static int asks(int **into)
{
    void *value;
    int r = weft_cell_enter(&cell, &value);
    if (r > 0) {
        storm_pause_here(3);
        fetch_add_relaxed(&makers, 1);
        value = &answer;
        r = weft_cell_leave(&cell, value);
    }
    if (r == 0) *into = value;
    return r;
}

struct asking {
    WEFT_FRAME(int);
    int **into;
    void *value;
    struct weft_cell_enter enter;
    struct storm_pause paused;
};
static weft_async(asking)
{
    weft_begin;
    weft_await(f->enter, weft_cell_enter, &cell, &f->value);
    if (f->enter.ret < 0) weft_return(f->enter.ret);
    if (f->enter.ret > 0) {
        weft_await(f->paused, storm_pause, 3);
        fetch_add_relaxed(&makers, 1);
        f->value = &answer;
        ASSERT_OK(weft_cell_leave(&cell, f->value));
    }
    *f->into = f->value;
    weft_return(0);
    weft_end;
}

/* All of them wait when it could not be made: the first of them makes it, and the others get what it has made. */
static void cell_of(bool first_stackless, bool others_stackless)
{
    weft_task *task[ASKERS];
    int *value[ASKERS] = {0};
    cell = (weft_cell)WEFT_CELL_INIT;
    store_relaxed(&makers, 0);
    ASSERT_NULL(weft_cell_get(&cell));
    ASSERT_EQ(weft_cell_enter(&cell, NULL), 1);
    for (uint32_t i = 0; i < ASKERS; i++) {
        bool stackless = i == 0 ? first_stackless : others_stackless;
        task[i] = stackless ? weft_spawn(asking, &value[i]) : weft_go(asks, &value[i]);
        CREW_UNTIL(waiters_of(&cell) == i + 1);
    }
    ASSERT_OK(weft_cell_leave(&cell, NULL)); /* it could not be made: another tries */
    for (uint32_t i = 0; i < ASKERS; i++) {
        int r = 1;
        ASSERT_OK(weft_join(task[i], &r));
        ASSERT_OK(r);
        ASSERT_PTR(value[i], &answer);
    }
    ASSERT_EQ(load_relaxed(&makers), 1);
    ASSERT_PTR(weft_cell_get(&cell), &answer);
}

static void cells(struct crew *crew)
{
    (void)crew;
    for (int kinds = 0; kinds < 4; kinds++)
        cell_of(kinds & 1, kinds & 2);
}

TEST(once_cell_is_made_when_asked_for)
{
    crew_each(cells);
}

static void enters_twice(void *arg)
{
    (void)arg;
    begin(0);
    if (weft_once_enter(&once) != 1) _exit(3);
    _exit(weft_once_enter(&once) == -EDEADLK ? 9 : 4);
}

static void leaves_without(void *arg)
{
    (void)arg;
    begin(0);
    _exit(weft_once_leave(&once, true) == -EPERM ? 9 : 4);
}

TEST(once_mistakes_are_named)
{
    death_expect_told(enters_twice, "a once is entered once more by a thread");
    death_expect_told(leaves_without, "a once is left by a thread");
    ASSERT_EQ(weft_once_enter(NULL), -EINVAL);
    ASSERT_EQ(weft_once_leave(NULL, true), -EINVAL);
    ASSERT_EQ(weft_cell_enter(NULL, NULL), -EINVAL);
    ASSERT_EQ(weft_cell_leave(NULL, NULL), -EINVAL);
    ASSERT_NULL(weft_cell_get(NULL));
}
