/* SPDX-License-Identifier: MIT
 *
 * The kit for users' tests: a clock that stands, the same order each time, and a test that waits for
 * nothing is told so.
 */
#include "death.h"
#include "test.h"

#include <weft/fiber.h>
#include <weft/test.h>

#include <errno.h>
#include <string.h>

static int an_hour(void)
{
    weft_time before = weft_now();
    int r = weft_sleep(weft_mins(60));
    if (r < 0) return r;
    return weft_now() - before == weft_mins(60) ? 7 : -ETIME;
}

TEST(testkit_lets_an_hour_pass)
{
    ASSERT_EQ(weft_test_run(an_hour), 7);
    ASSERT_EQ(weft_test_run(NULL), -EINVAL);
}

/* What is said to the program's own runtimes is not said to this one. */
TEST(testkit_is_turned_and_stands_whatever_the_environment_says)
{
    ASSERT_OK(setenv("WEFT_WORKERS", "2", 1));
    ASSERT_OK(setenv("WEFT_PAUSED", "0", 1));
    ASSERT_EQ(weft_test_run(an_hour), 7);
    ASSERT_OK(setenv("WEFT_WORKERS", "many", 1));
    ASSERT_EQ(weft_test_run(an_hour), -EINVAL); /* what nobody can mean is told */
    ASSERT_OK(unsetenv("WEFT_WORKERS"));
    ASSERT_OK(unsetenv("WEFT_PAUSED"));
}

/* ---- the same each time ---------------------------------------------------------------------- */

static char order[200];
static unsigned at;

static int writes(int letter)
{
    for (int i = 0; i < 3; i++) {
        int r = weft_sleep(weft_ms(10 * (letter % 5)));
        if (r < 0) return r;
        order[at++] = (char)letter;
    }
    return 0;
}

static int many_write(void)
{
    weft_task *tasks[26];
    at = 0;
    memset(order, 0, sizeof(order));
    for (int i = 0; i < 26; i++)
        tasks[i] = weft_go(writes, 'a' + i);
    for (int i = 0; i < 26; i++) {
        int r = weft_join(tasks[i], NULL);
        if (r < 0) return r;
    }
    return (int)at;
}

TEST(testkit_runs_in_the_same_order_each_time)
{
    char first[sizeof(order)];

    ASSERT_EQ(weft_test_run(many_write), 78);
    memcpy(first, order, sizeof(order));
    for (int i = 0; i < 5; i++) {
        ASSERT_EQ(weft_test_run(many_write), 78);
        ASSERT_STR(order, first);
    }
}

/* ---- what cannot end ------------------------------------------------------------------------- */

struct waits_for_ever {
    WEFT_FRAME(int);
};
static weft_poll waits_for_ever_poll(void *frame, weft_cx *cx)
{
    struct waits_for_ever *f = frame;
    f->ret = weft_cx_cancelled(cx);
    return f->ret < 0 ? WEFT_READY : WEFT_PENDING; /* and nobody has the waker */
}

static int stuck(void)
{
    int r = weft_sleep(weft_secs(5));
    return r < 0 ? r : weft_run(waits_for_ever);
}

TEST(testkit_notices_that_nothing_is_left_to_do)
{
    ASSERT_EQ(weft_test_run(stuck), -EDEADLK);
}

static int leaves_one_behind(void)
{
    return weft_detach(weft_spawn(waits_for_ever));
}

TEST(testkit_cancels_what_a_test_leaves_behind)
{
    ASSERT_OK(weft_test_run(leaves_one_behind));
}

static int stuck_beside_others(void)
{
    for (int i = 0; i < 10; i++) {
        int r = weft_detach(i % 2 ? weft_spawn(waits_for_ever) : weft_go(an_hour));
        if (r < 0) return r;
    }
    return weft_run(waits_for_ever);
}

static void runs_stuck_beside_others(void *unused)
{
    (void)unused;
    if (weft_test_run(stuck_beside_others) != -EDEADLK) _exit(1);
}

/* The others stop when they are told to: nothing is said of them, and nothing stays. */
TEST(testkit_ends_what_a_stuck_test_leaves_behind)
{
    struct death d = death_of(runs_stuck_beside_others, NULL);
    ASSERT_OK(d.signal);
    ASSERT_OK(d.code);
    ASSERT_STR(d.said, "weft: the test waits, and nothing is left that could end the wait\n");
    ASSERT_EQ(weft_test_run(stuck_beside_others), -EDEADLK); /* the harness looks for memory */
}

static int inside(void)
{
    return weft_test_run(an_hour) == -EBUSY ? 0 : -EINVAL;
}

TEST(testkit_does_not_run_inside_a_task)
{
    ASSERT_OK(weft_test_run(inside));
}

TEST(testkit_main_makes_an_exit_code_of_it)
{
    ASSERT_EQ(weft__test_main(an_hour, "an_hour"), 7);
    ASSERT_EQ(weft__test_main(stuck, "stuck"), 1);
}
