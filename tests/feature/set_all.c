/* SPDX-License-Identifier: MIT
 *
 * What is done to all members of a task set at once: cancel, join, stop, detach, by fibers and stackless tasks; and a set that outlives its runtime.
 */
#include "flock.h"
#include "tasks.h"

/* ---- all at once ---------------------------------------------------------------------------------------- */

static int cancels_all(void)
{
    int_set set = {0};
    weft_token never = {0};
    int got;

    for (int i = 0; i < 200; i++)
        ASSERT_OK(i % 2 ? weft_set_go(&set, waits_for, &never) : weft_set_spawn(&set, waits));
    weft_set_cancel(&set);
    for (int i = 0; i < 200; i++) {
        ASSERT_EQ(weft_set_join_next(&set, &got), 1);
        ASSERT_EQ(got, -ECANCELED);
    }
    ASSERT_OK(weft_set_go(&set, sleeps_for, 1)); /* whoever comes later is not cancelled */
    ASSERT_EQ(weft_set_join_next(&set, &got), 1);
    ASSERT_EQ(got, 1);
    weft_set_done(&set);
    weft_token_done(&never);
    return 0;
}

/* Some have ended by then: all come out, those with what they had. */
static int cancels_some(void)
{
    int_set set = {0};
    int got;
    int cancelled = 0;

    for (int i = 1; i <= 10; i++)
        ASSERT_OK(weft_set_spawn(&set, sleeps_for_too, i));
    ASSERT_OK(weft_sleep(weft_ms(5) + 1));
    weft_set_cancel(&set);
    ASSERT_EQ(weft_set_len(&set), 10);
    for (int i = 1; i <= 10; i++) {
        ASSERT_EQ(weft_set_join_next(&set, &got), 1);
        if (got < 0) cancelled++;
        if (i <= 5) ASSERT_EQ(got, i);
    }
    ASSERT_EQ(cancelled, 5);
    weft_set_done(&set);
    return 0;
}

TEST(set_cancel_leaves_results_that_stand)
{
    each_paused(cancels_some);
}

/* Every other one is cancelled by its reference, and all are known by their ids. */
static int refers_to_each(void)
{
    int_set set = {0};
    weft_task *ref[16];
    weft_task *task;
    bool seen[16] = {false};
    int got;

    for (int i = 0; i < 16; i++) {
        ASSERT_OK(i % 4 < 2 ? weft_set_go_ref(&ref[i], &set, sleeps_for, i)
                            : weft_set_try_spawn_ref(&ref[i], &set, sleeps_for_too, i));
        if (i % 2) weft_cancel(ref[i]);
    }
    while (weft_set_next(&set, &task) > 0) {
        int which = 0;
        while (weft_task_id(ref[which]) != weft_task_id(task))
            which++;
        ASSERT(!seen[which]);
        seen[which] = true;
        ASSERT_OK(weft_wait(ref[which])); /* it has ended */
        ASSERT_OK(weft_join(task, &got));
        ASSERT_EQ(got, which % 2 ? -ECANCELED : which);
    }
    for (int i = 0; i < 16; i++) {
        ASSERT(seen[i]);
        weft_unref(ref[i]);
    }
    weft_set_done(&set);
    return 0;
}

TEST(set_gives_references_to_members)
{
    each_paused(refers_to_each);
}

/* Taken out when the runtime is gone: what stop has cancelled. */
TEST(set_outlives_its_runtime)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        int_set set = {0};
        int got = 0;
        int count = 0;
        crew_start(&crew, crew_sizes[i]);
        for (int n = 0; n < 20; n++)
            ASSERT_OK(weft_set_spawn(&set, waits));
        crew_stop(&crew);
        ASSERT_EQ(weft_set_running(&set), 0);
        while (weft_set_join_next(&set, &got) > 0) {
            ASSERT_EQ(got, -ECANCELED);
            count++;
        }
        ASSERT_EQ(count, 20);
        weft_set_done(&set);
    }
}

TEST(set_cancel_asks_all)
{
    each_paused(cancels_all);
}

static int fails_after(int ms, int with)
{
    int r = weft_sleep(weft_ms(ms));
    return r < 0 ? r : with;
}

static int joins_all(void)
{
    int_set set = {0};

    ASSERT_OK(weft_set_join(&set)); /* empty */
    for (int i = 0; i < 300; i++)
        ASSERT_OK(weft_set_go(&set, sleeps_for, i));
    ASSERT_OK(weft_set_join(&set));
    ASSERT_EQ(weft_set_len(&set), 0);
    ASSERT_OK(weft_set_go(&set, sleeps_for, 3));
    ASSERT_OK(weft_set_go(&set, fails_after, 2, -EIO));
    ASSERT_EQ(weft_set_join(&set), -EIO); /* the failure, when all are over */
    weft_set_done(&set);
    return 0;
}

TEST(set_join_waits_for_all)
{
    each_paused(joins_all);
}

/* Told to stop, a join passes that on with its reason, and waits. */
static int deadline_on_join(void)
{
    int_set set = {0};
    weft_token never = {0};
    int r = 0;

    store_relaxed(&over, 0);
    for (int i = 0; i < 10; i++)
        ASSERT_OK(weft_set_go(&set, waits_for, &never));
    WEFT_TIMEOUT(weft_ms(5)) r = weft_set_join(&set);
    ASSERT_EQ(r, -ETIME);
    ASSERT_EQ(load_relaxed(&over), 10);
    ASSERT_EQ(weft_set_len(&set), 0);
    weft_set_done(&set);
    weft_token_done(&never);
    return 0;
}

TEST(set_join_passes_a_deadline_on)
{
    each_paused(deadline_on_join);
}

/* A member that is told to stop spawns another: it is born cancelled. */
static int spawns_when_stopped(int_set *set, weft_token *never)
{
    int r = weft_token_wait(never);
    ASSERT_OK(weft_set_try_go(set, waits_for, never));
    return r;
}

static int stops_all(void)
{
    int_set set = {0};
    weft_token never = {0};

    store_relaxed(&over, 0);
    for (int i = 0; i < 100; i++)
        ASSERT_OK(weft_set_go(&set, spawns_when_stopped, &set, &never));
    ASSERT_OK(weft_set_stop(&set));
    ASSERT_EQ(load_relaxed(&over), 100);
    ASSERT_EQ(weft_set_len(&set), 0);
    int got;
    ASSERT_OK(weft_set_go(&set, sleeps_for, 2)); /* it can be used again */
    ASSERT_EQ(weft_set_join_next(&set, &got), 1);
    ASSERT_EQ(got, 2);
    weft_set_done(&set);
    weft_token_done(&never);
    return 0;
}

TEST(set_stop_leaves_nobody)
{
    each_paused(stops_all);
}

/* ---- told to stop, with a budget of one operation ------------------------------------------------------------- */

struct ends_told {
    WEFT_FRAME(int);
    bool stops;
    int_set set;
    weft_token never;
    struct weft_yield yield;
    struct weft_set_join join;
    struct weft_set_stop stop;
};
static weft_async(ends_told)
{
    weft_begin;
    ASSERT_OK(weft_set_try_go(&f->set, waits_for, &f->never));
    weft_cancel(weft_self());
    weft_await(f->yield, weft_yield); /* told from here on */
    if (f->stops) {
        weft_await(f->stop, weft_set_stop, &f->set);
        ASSERT_EQ(f->stop.ret, -ECANCELED);
    } else {
        weft_await(f->join, weft_set_join, &f->set);
        ASSERT_EQ(f->join.ret, -ECANCELED);
    }
    weft_set_done(&f->set);
    weft_token_done(&f->never);
    weft_return(0);
    weft_end;
}

static int ends_told_on_a_fiber(bool stops)
{
    int_set set = {0};
    weft_token never = {0};

    ASSERT_OK(weft_set_try_go(&set, waits_for, &never));
    weft_cancel(weft_self());
    (void)weft_yield();
    ASSERT_EQ(stops ? weft_set_stop(&set) : weft_set_join(&set), -ECANCELED);
    weft_set_done(&set);
    weft_token_done(&never);
    return 0;
}

TEST(set_ends_though_a_poll_is_one_operation)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        crew_start_with(&crew, &(weft_rt_opts){.workers = crew_sizes[i], .budget = 1});
        for (int kind = 0; kind < 4; kind++) {
            int r = -1;
            weft_task *t = kind & 1 ? weft_go(ends_told_on_a_fiber, (kind & 2) != 0)
                                    : weft_spawn(ends_told, .stops = kind & 2);
            ASSERT_OK(weft_join(t, &r));
            ASSERT_OK(r);
        }
        crew_stop(&crew);
    }
}

struct all_stackless {
    WEFT_FRAME(int);
    int_set set;
    int i;
    struct weft_set_join join;
    struct weft_set_stop stop;
    struct weft_set_detach detach;
};
static weft_async(all_stackless)
{
    weft_begin;
    for (f->i = 0; f->i < 20; f->i++)
        ASSERT_OK(weft_set_try_spawn(&f->set, sleeps_for_too, f->i));
    weft_await(f->join, weft_set_join, &f->set);
    ASSERT_OK(f->join.ret);
    for (f->i = 0; f->i < 20; f->i++)
        ASSERT_OK(weft_set_try_spawn(&f->set, waits));
    weft_await(f->stop, weft_set_stop, &f->set);
    ASSERT_OK(f->stop.ret);
    for (f->i = 0; f->i < 20; f->i++)
        ASSERT_OK(weft_set_try_spawn(&f->set, sleeps_for_too, f->i));
    weft_await(f->detach, weft_set_detach, &f->set);
    ASSERT_OK(f->detach.ret);
    weft_set_done(&f->set);
    weft_return(0);
    weft_end;
}

static int stackless_ends_all(void)
{
    return weft_run(all_stackless);
}

TEST(set_join_stop_and_detach_are_awaited)
{
    each_paused(stackless_ends_all);
}

/* Members that were let go live on without the set, at whatever moment of their lives it happens. */
static void let_go(struct crew *crew)
{
    weft_token stop = {0};
    (void)crew;
    store_relaxed(&over, 0);
    for (uint64_t round = test_scaled(50); round > 0; round--) {
        int_set *set = calloc(1, sizeof(*set));
        for (int i = 0; i < 20; i++)
            ASSERT_OK(i % 2 ? weft_set_go(set, waits_for, &stop)
                            : weft_set_spawn(set, answers_too, i));
        ASSERT_OK(weft_set_detach(set));
        ASSERT_EQ(weft_set_len(set), 0);
        weft_set_done(set);
        memset(set, 0x5a, sizeof(*set));
        free(set);
    }
    (void)weft_token_cancel(&stop);
    CREW_UNTIL(load_relaxed(&over) == 10 * test_scaled(50));
    weft_stats stats;
    do {
        weft_rt_stats(crew->rt, &stats);
    } while (stats.completed < 20 * test_scaled(50));
    weft_token_done(&stop);
}

TEST(set_detach_lets_all_go)
{
    crew_each(let_go);
}
