/* SPDX-License-Identifier: MIT
 *
 * Cancellation on real runtimes: a request that sticks, met at the next await, passed on by joins.
 */
#include "crew.h"
#include "test.h"

#include <errno.h>

static _Atomic uint32_t started;
static _Atomic uint32_t unwound;
static _Atomic bool gate_open;

/* ---- tasks that wait, of both kinds ---------------------------------------------------------------- */

static int waits_politely(void)
{
    int r = 0;
    fetch_add_relaxed(&started, 1);
    while (r == 0)
        r = weft_yield();
    fetch_add_relaxed(&unwound, 1);
    return r;
}

struct waits_politely_too {
    WEFT_FRAME(int);
    struct weft_yield pause;
};
static weft_async(waits_politely_too)
{
    weft_begin;
    fetch_add_relaxed(&started, 1);
    do {
        weft_await(f->pause, weft_yield);
    } while (f->pause.ret == 0);
    fetch_add_relaxed(&unwound, 1);
    weft_return(f->pause.ret);
    weft_end;
}

/* Waits in a join, for a child that waits in a join, down to one that waits politely. */
static int waits_for_a_child(int depth)
{
    int of_child = 0;
    if (depth == 0) return waits_politely();
    int r = weft_join(weft_go(waits_for_a_child, depth - 1), &of_child);
    fetch_add_relaxed(&unwound, 1);
    return r < 0 ? r : of_child;
}

struct waits_for_a_child_too {
    WEFT_FRAME(int);
    int depth;
    int of_child;
    struct weft_join join;
};
static weft_async(waits_for_a_child_too)
{
    weft_begin;
    weft_await(f->join, weft_join,
               f->depth ? weft_spawn(waits_for_a_child_too, .depth = f->depth - 1)
                        : weft_spawn(waits_politely_too),
               &f->of_child);
    fetch_add_relaxed(&unwound, 1);
    weft_return(f->join.ret < 0 ? f->join.ret : f->of_child);
    weft_end;
}

static void clear(void)
{
    store_relaxed(&started, 0);
    store_relaxed(&unwound, 0);
    store_relaxed(&gate_open, false);
}

/* ---- when ------------------------------------------------------------------------------------------- */

/* Cancelled as soon as it is spawned: whether it is queued, running or about to, it starts, and
 * meets the answer at its first await. */
static void at_once(struct crew *crew)
{
    uint32_t count = (uint32_t)test_scaled(1000);
    (void)crew;
    clear();
    for (uint32_t i = 0; i < count; i++) {
        int got = 0;
        weft_task *task = i % 2 ? weft_go(waits_politely) : weft_spawn(waits_politely_too);
        weft_cancel(task);
        ASSERT_OK(weft_join(task, &got));
        ASSERT_EQ(got, -ECANCELED);
    }
    ASSERT_EQ(load_relaxed(&started), count);
    ASSERT_EQ(load_relaxed(&unwound), count);
}

TEST(cancel_at_once_still_starts_the_task)
{
    crew_each(at_once);
}

/* By a task on the same worker, before the child can have been polled if there is but one. */
static int cancels_before_the_first_poll(void)
{
    int got = 0;
    weft_task *task = weft_spawn(waits_politely_too);
    weft_cancel(task);
    int r = weft_join(task, &got);
    return r < 0 ? r : got;
}

static void before_first_poll(struct crew *crew)
{
    int got;
    (void)crew;
    clear();
    ASSERT_OK(weft_join(weft_go(cancels_before_the_first_poll), &got));
    ASSERT_EQ(got, -ECANCELED);
    ASSERT_EQ(load_relaxed(&started), 1);
}

TEST(cancel_before_the_first_poll)
{
    crew_each(before_first_poll);
}

static void while_running(struct crew *crew)
{
    (void)crew;
    for (int kind = 0; kind < 2; kind++) {
        int got;
        clear();
        weft_task *task = kind ? weft_go(waits_politely) : weft_spawn(waits_politely_too);
        CREW_UNTIL(load_relaxed(&started) == 1);
        weft_cancel(task);
        weft_cancel(task);
        ASSERT_OK(weft_join(task, &got));
        ASSERT_EQ(got, -ECANCELED);
        ASSERT_EQ(load_relaxed(&unwound), 1);
    }
}

TEST(cancel_while_it_runs_and_twice)
{
    crew_each(while_running);
}

static void through_joins(struct crew *crew)
{
    enum { DEPTH = 20 };
    int got;
    (void)crew;
    clear();
    weft_task *task = weft_go(waits_for_a_child, DEPTH);
    CREW_UNTIL(load_relaxed(&started) == 1);
    weft_cancel(task);
    ASSERT_OK(weft_join(task, &got));
    ASSERT_EQ(got, -ECANCELED);
    ASSERT_EQ(load_relaxed(&unwound), DEPTH + 1);

    clear();
    task = weft_spawn(waits_for_a_child_too, .depth = DEPTH);
    CREW_UNTIL(load_relaxed(&started) == 1);
    weft_cancel(task);
    ASSERT_OK(weft_join(task, &got));
    ASSERT_EQ(got, -ECANCELED);
    ASSERT_EQ(load_relaxed(&unwound), DEPTH + 2);
}

TEST(cancel_is_passed_on_by_every_join)
{
    crew_each(through_joins);
}

static int answers_seven(void)
{
    return 7;
}

static void when_over(struct crew *crew)
{
    int got;
    (void)crew;
    weft_task *task = weft_go(answers_seven);
    CREW_UNTIL(weft_done(task));
    weft_cancel(task);
    ASSERT_OK(weft_join(task, &got));
    ASSERT_EQ(got, 7);
}

TEST(cancel_after_the_end_changes_nothing)
{
    crew_each(when_over);
}

/* ---- racing ------------------------------------------------------------------------------------------- */

struct canceller {
    pthread_t thread;
    weft_task *task; /* a reference of its own */
};

static void *cancel_it(void *arg)
{
    struct canceller *me = arg;
    weft_cancel(me->task);
    weft_unref(me->task);
    return NULL;
}

static void by_four(struct crew *crew)
{
    (void)crew;
    for (uint64_t round = 0; round < test_scaled(40); round++) {
        struct canceller c[4];
        int got;
        weft_task *task = round % 2 ? weft_go(waits_for_a_child, 3)
                                    : weft_spawn(waits_for_a_child_too, .depth = 3);
        for (int i = 0; i < 4; i++) {
            c[i].task = weft_ref(task);
            ASSERT_OK(pthread_create(&c[i].thread, NULL, cancel_it, &c[i]));
        }
        ASSERT_OK(weft_join(task, &got));
        ASSERT_EQ(got, -ECANCELED);
        for (int i = 0; i < 4; i++)
            ASSERT_OK(pthread_join(c[i].thread, NULL));
    }
}

TEST(cancel_by_four_threads_at_once)
{
    crew_each(by_four);
}

/* ---- those who do not listen ---------------------------------------------------------------------------- */

static int ignores_it(void)
{
    fetch_add_relaxed(&started, 1);
    while (!load_relaxed(&gate_open))
        (void)weft_yield();
    return 1;
}

struct ignores_it_too {
    WEFT_FRAME(int);
    struct weft_yield pause;
};
static weft_async(ignores_it_too)
{
    weft_begin;
    fetch_add_relaxed(&started, 1);
    while (!load_relaxed(&gate_open))
        weft_await(f->pause, weft_yield);
    weft_return(1);
    weft_end;
}

/* By hand, asking cx alone: it does not yield, so it has to be polled out. */
struct asks_cx {
    WEFT_FRAME(int);
};
static weft_poll asks_cx_poll(void *frame, weft_cx *cx)
{
    struct asks_cx *f = frame;
    if (!f->weft__at) fetch_add_relaxed(&started, 1);
    f->weft__at = 1;
    f->ret = load_relaxed(&gate_open);
    if (f->ret) return WEFT_READY;
    (void)weft_cx_cancelled(cx);
    weft_waker_wake(weft_cx_waker(cx));
    return WEFT_PENDING;
}

static int opens_the_gate(void)
{
    store_relaxed(&gate_open, true);
    return 0;
}

/* More of the deaf than workers: they must let the one through that sets them free. */
static void deaf_ones(struct crew *crew)
{
    enum { COUNT = 6 };
    weft_task *task[COUNT * 3];
    int got;
    (void)crew;
    clear();
    for (int i = 0; i < COUNT; i++) {
        task[3 * i] = weft_go(ignores_it);
        task[3 * i + 1] = weft_spawn(ignores_it_too);
        task[3 * i + 2] = weft_spawn(asks_cx);
    }
    CREW_UNTIL(load_relaxed(&started) == COUNT * 3);
    for (int i = 0; i < COUNT * 3; i++)
        weft_cancel(task[i]);
    for (int i = 0; i < 100; i++)
        ASSERT_OK(weft_join(weft_go(answers_seven), &got));
    ASSERT_OK(weft_join(weft_go(opens_the_gate), &got));
    for (int i = 0; i < COUNT * 3; i++) {
        ASSERT_OK(weft_join(task[i], &got));
        ASSERT_EQ(got, 1);
    }
}

TEST(cancel_ignored_lets_others_run_all_the_same)
{
    crew_each(deaf_ones);
}
