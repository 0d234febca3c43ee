/* SPDX-License-Identifier: MIT
 *
 * Runtimes: several at once, entered or default; hooks; turning one by hand; counters.
 */
#include "crew.h"
#include "test.h"

#include <errno.h>

static int answers(int value)
{
    return value;
}

/* ---- several ------------------------------------------------------------------------------------------ */

static bool runs_in(const weft_rt *rt)
{
    return weft_rt_current() == rt;
}

TEST(rt_several_in_one_process)
{
    weft_rt *rt[3];
    for (int i = 0; i < 3; i++)
        ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = i + 1}, &rt[i]));
    for (int i = 0; i < 300; i++) {
        bool right = false;
        weft_rt *mine = rt[i % 3];
        ASSERT_OK(weft_join(weft_go_as((.rt = mine), runs_in, mine), &right));
        ASSERT(right);
        ASSERT_EQ(weft_rt_workers(mine), i % 3 + 1);
    }
    for (int i = 0; i < 3; i++)
        ASSERT_OK(weft_rt_stop(rt[i], -1));
}

static int joins_in(weft_rt *other, int depth)
{
    int got = 0;
    weft_rt *mine = weft_rt_current();
    if (depth == 0) return 0;
    int r = weft_join(weft_go_as((.rt = other), joins_in, mine, depth - 1), &got);
    return r < 0 ? r : got + 1;
}

/* Each task waits for one of the other runtime. */
TEST(rt_tasks_join_across_runtimes)
{
    weft_rt *one;
    weft_rt *two;
    int got;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 2}, &one));
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1}, &two));
    for (uint64_t i = 0; i < test_scaled(200); i++) {
        ASSERT_OK(weft_join(weft_go_as((.rt = one), joins_in, two, 20), &got));
        ASSERT_EQ(got, 20);
    }
    ASSERT_OK(weft_rt_stop(one, -1));
    ASSERT_OK(weft_rt_stop(two, -1));
}

TEST(rt_current_is_entered_before_default)
{
    weft_rt *fallback;
    weft_rt *entered;
    ASSERT_NULL(weft_rt_current());
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1, .make_default = true}, &fallback));
    ASSERT_PTR(weft_rt_current(), fallback);
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1}, &entered));
    ASSERT_PTR(weft_rt_current(), fallback);
    ASSERT_NULL(weft_rt_enter(entered));
    ASSERT_PTR(weft_rt_current(), entered);
    ASSERT_PTR(weft_rt_enter(NULL), entered);
    ASSERT_OK(weft_rt_stop(fallback, -1));
    ASSERT_NULL(weft_rt_current());
    ASSERT_OK(weft_rt_stop(entered, -1));
    ASSERT_OK(weft_rt_stop(NULL, -1));
}

/* ---- hooks ------------------------------------------------------------------------------------------------ */

static _Atomic uint32_t hook_started;
static _Atomic uint32_t hook_stopped;

static void on_start(weft_rt *rt, unsigned worker)
{
    (void)rt;
    fetch_add_relaxed(&hook_started, 1u << 8 * worker);
}

static void on_stop(weft_rt *rt, unsigned worker)
{
    (void)rt;
    fetch_add_relaxed(&hook_stopped, 1u << 8 * worker);
}

TEST(rt_hooks_run_once_on_each_thread)
{
    weft_rt *rt;
    weft_rt_opts o = {.workers = 4, .on_thread_start = on_start, .on_thread_stop = on_stop};
    ASSERT_OK(weft_rt_new(&o, &rt));
    CREW_UNTIL(load_relaxed(&hook_started) == 0x01010101);
    ASSERT_EQ(load_relaxed(&hook_stopped), 0);
    ASSERT_OK(weft_rt_stop(rt, -1));
    ASSERT_EQ(load_relaxed(&hook_started), 0x01010101);
    ASSERT_EQ(load_relaxed(&hook_stopped), 0x01010101);
}

/* ---- turning ------------------------------------------------------------------------------------------------ */

static int turns_its_own(weft_rt *rt)
{
    return weft_rt_turn(rt, 0);
}

TEST(rt_turn_runs_what_is_ready)
{
    weft_rt *rt;
    int got;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
    ASSERT_EQ(weft_rt_turn(rt, 0), 0);
    ASSERT_EQ(weft_rt_turn(rt, 1000), 0);
    weft_task *task = weft_go_as((.rt = rt), answers, 5);
    ASSERT(!weft_done(task));
    ASSERT_EQ(weft_rt_turn(rt, -1), 1);
    ASSERT(weft_done(task));
    ASSERT_OK(weft_join(task, &got));
    ASSERT_EQ(got, 5);
    task = weft_go_as((.rt = rt), turns_its_own, rt);
    ASSERT_EQ(weft_rt_turn(rt, -1), 1);
    ASSERT_OK(weft_join(task, &got));
    ASSERT_EQ(got, -EBUSY);
    ASSERT_NULL(weft_self());
    ASSERT_OK(weft_rt_stop(rt, -1));
    ASSERT_EQ(weft_rt_turn(NULL, 0), -EINVAL);
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1}, &rt));
    ASSERT_EQ(weft_rt_turn(rt, 0), -EINVAL);
    ASSERT_OK(weft_rt_stop(rt, -1));
}

struct spawner {
    pthread_t thread;
    weft_rt *rt;
    uint32_t count;
};

static void *spawn_some(void *arg)
{
    struct spawner *me = arg;
    for (uint32_t i = 0; i < me->count; i++) {
        int got;
        ASSERT_OK(weft_join(weft_go_as((.rt = me->rt), answers, 1), &got));
        ASSERT_EQ(got, 1);
    }
    return NULL;
}

/* Each spawn finds the turner waiting, or about to: none is lost. */
TEST(rt_turn_that_waits_is_ended_by_a_spawn)
{
    struct spawner s = {.count = (uint32_t)test_scaled(2000)};
    uint32_t done = 0;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &s.rt));
    ASSERT_OK(pthread_create(&s.thread, NULL, spawn_some, &s));
    while (done < s.count) {
        int r = weft_rt_turn(s.rt, -1);
        ASSERT_GE(r, 0);
        done += (uint32_t)r;
    }
    ASSERT_OK(pthread_join(s.thread, NULL));
    ASSERT_OK(weft_rt_stop(s.rt, -1));
}

static int turns_another(weft_rt *other)
{
    int got = 0;
    weft_task *task = weft_go_as((.rt = other), answers, 11);
    while (!weft_done(task))
        if (weft_rt_turn(other, 0) < 0) return -1;
    int r = weft_join(task, &got);
    return r < 0 ? r : got;
}

/* From a fiber of one runtime another is turned: afterwards the thread is what it was. */
TEST(rt_turn_inside_another_runtimes_task)
{
    weft_rt *outer;
    weft_rt *inner;
    int got;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1}, &outer));
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &inner));
    for (int i = 0; i < 20; i++) {
        ASSERT_OK(weft_join(weft_go_as((.rt = outer), turns_another, inner), &got));
        ASSERT_EQ(got, 11);
    }
    ASSERT_OK(weft_rt_stop(outer, -1));
    ASSERT_OK(weft_rt_stop(inner, -1));
}

/* ---- statistics ------------------------------------------------------------------------------------------------ */

static int forks(int depth)
{
    weft_task *kid[2];
    int sum = 1;
    if (depth == 0) return 1;
    for (int i = 0; i < 2; i++)
        kid[i] = weft_go(forks, depth - 1);
    for (int i = 0; i < 2; i++) {
        int part;
        int r = weft_join(kid[i], &part);
        if (r < 0) return r;
        sum += part;
    }
    return sum;
}

static void adds_up(struct crew *crew)
{
    weft_stats s;
    weft_stats sum = {0};
    int got;
    ASSERT_OK(weft_join(weft_go(forks, 7), &got));
    ASSERT_EQ(got, 255);
    weft_rt_stats(crew->rt, &s); /* the last join is over: everything is counted */
    ASSERT_EQ(s.spawned, 255);
    ASSERT_EQ(s.completed, 255);
    ASSERT_GE(s.polls, 255);
    unsigned count = weft_rt_workers(crew->rt) ? weft_rt_workers(crew->rt) : 1;
    for (unsigned i = 0; i < count; i++) {
        weft_stats one;
        ASSERT_OK(weft_rt_worker_stats(crew->rt, i, &one));
        sum.completed += one.completed;
    }
    ASSERT_EQ(sum.completed, 255);
    ASSERT_EQ(weft_rt_worker_stats(crew->rt, count, &s), -EINVAL);
}

TEST(rt_stats_add_up_once_joined)
{
    crew_each(adds_up);
}
