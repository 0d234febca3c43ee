/* SPDX-License-Identifier: MIT
 *
 * Runtimes: several at once, entered or default; hooks; turning one by hand; counters.
 */
#include "crew.h"
#include "sched/sched.h"
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

static weft_rt *_Atomic at_the_end;

static void looks_at_the_end(weft_rt *rt, unsigned worker)
{
    (void)rt;
    (void)worker;
    store_relaxed(&at_the_end, weft_rt_current());
}

static int enters(weft_rt *other)
{
    (void)weft_rt_enter(other);
    return 0;
}

/* What a task has entered stays on its worker's thread, and may be gone when that ends. */
TEST(rt_hook_of_a_threads_end_has_entered_nothing)
{
    weft_rt *rt;
    weft_rt *other;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1, .on_thread_stop = looks_at_the_end}, &rt));
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1}, &other));
    ASSERT_OK(weft_join(weft_go_as((.rt = rt), enters, other), (int *)NULL));
    ASSERT_OK(weft_rt_stop(other, -1));
    store_relaxed(&at_the_end, rt);
    ASSERT_OK(weft_rt_stop(rt, -1));
    ASSERT_NULL(load_relaxed(&at_the_end));
}

/* A sleeper that is woken while there is nothing to do sleeps again, and counts it. */
TEST(rt_wakes_for_nothing_are_counted)
{
    weft_rt *rt;
    weft_stats before;
    weft_stats after;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 2, .monitor_us = -1}, &rt));
    do {
        weft_rt_stats(rt, &before);
    } while (before.parks < 2);
    for (int i = 0; i < 10; i++) {
        weft__unpark(&rt->workers[i % 2].park);
        CREW_UNTIL((weft_rt_stats(rt, &after), after.spurious > before.spurious));
        before = after;
    }
    ASSERT_OK(weft_rt_stop(rt, -1));
}

static _Atomic uint32_t hook_parked[4];
static _Atomic uint32_t hook_unparked[4];

static void on_park(weft_rt *rt, unsigned worker)
{
    (void)rt;
    fetch_add_relaxed(&hook_parked[worker], 1);
}

/* In pairs: whoever wakes has slept. */
static void on_unpark(weft_rt *rt, unsigned worker)
{
    (void)rt;
    fetch_add_relaxed(&hook_unparked[worker], 1);
    ASSERT_EQ(load_relaxed(&hook_parked[worker]), load_relaxed(&hook_unparked[worker]));
}

static uint32_t sum_of(_Atomic uint32_t *each)
{
    uint32_t sum = 0;
    for (int i = 0; i < 4; i++)
        sum += load_relaxed(&each[i]);
    return sum;
}

TEST(rt_hooks_run_around_each_sleep)
{
    weft_rt *rt;
    weft_rt_opts o = {.workers = 4, .on_thread_park = on_park, .on_thread_unpark = on_unpark};
    int got;
    ASSERT_OK(weft_rt_new(&o, &rt));
    for (int i = 0; i < 20; i++) { /* all sleep, so whoever runs the task has left its sleep */
        uint32_t before = sum_of(hook_unparked);
        CREW_UNTIL(sum_of(hook_parked) == sum_of(hook_unparked) + 4);
        ASSERT_OK(weft_join(weft_go_as((.rt = rt), answers, 1), &got));
        ASSERT(sum_of(hook_unparked) > before);
    }
    ASSERT_OK(weft_rt_stop(rt, -1));
    for (int i = 0; i < 4; i++)
        ASSERT_EQ(load_relaxed(&hook_parked[i]), load_relaxed(&hook_unparked[i]));
}

/* A task that waits for a hook to wake it. */
static weft_waker hook_waker; /* written before hook_wakes */
static _Atomic uint32_t hook_wakes;
enum { HOOK_NOTHING, HOOK_AT_PARK, HOOK_AT_UNPARK, HOOK_DONE };

struct woken_by_hook {
    WEFT_FRAME(int);
    uint32_t when;
};
static weft_poll woken_by_hook_poll(void *frame, weft_cx *cx)
{
    struct woken_by_hook *f = frame;
    if (!f->weft__at) {
        f->weft__at = 1;
        hook_waker = weft_waker_ref(weft_cx_waker(cx));
        store_release(&hook_wakes, f->when);
    }
    if (load_acquire(&hook_wakes) != HOOK_DONE) return WEFT_PENDING;
    f->ret = 7;
    return WEFT_READY;
}

static void wake_from_hook(uint32_t when)
{
    uint32_t expected = when;
    if (cas_acq_rel(&hook_wakes, &expected, HOOK_DONE)) weft_waker_wake(hook_waker);
}

static void wake_at_park(weft_rt *rt, unsigned worker)
{
    (void)rt;
    (void)worker;
    wake_from_hook(HOOK_AT_PARK);
}

static void wake_at_unpark(weft_rt *rt, unsigned worker)
{
    (void)rt;
    (void)worker;
    wake_from_hook(HOOK_AT_UNPARK);
}

/* What a hook wakes is in the worker's own slot, and nothing else comes: it must look there itself. Only
 * tokens, which bring no work, end its sleep. */
TEST(rt_hooks_may_wake_tasks)
{
    for (unsigned workers = 1; workers <= 2; workers++) {
        weft_rt *rt;
        weft_rt_opts o = {.workers = (int)workers,
                          .on_thread_park = wake_at_park,
                          .on_thread_unpark = wake_at_unpark,
                          .monitor_us = -1};
        int got;
        ASSERT_OK(weft_rt_new(&o, &rt));
        for (uint32_t i = 0; i < 40; i++) {
            uint32_t when = i % 2 ? HOOK_AT_PARK : HOOK_AT_UNPARK;
            store_relaxed(&hook_wakes, HOOK_NOTHING);
            weft_task *task = weft_spawn_as((.rt = rt), woken_by_hook, .when = when);
            while (!weft_done(task)) {
                weft__unpark(&rt->workers[i % workers].park);
                sched_yield();
            }
            ASSERT_OK(weft_join(task, &got));
            ASSERT_EQ(got, 7);
            weft_waker_unref(hook_waker);
        }
        ASSERT_OK(weft_rt_stop(rt, -1));
    }
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

/* Nobody is asked: the answer says so, and nothing is followed. */
TEST(rt_questions_to_no_runtime_are_answered)
{
    const char *why = "";
    weft_stats s = {.spawned = 1};
    weft_stats one = {.spawned = 1};
    ASSERT_EQ(weft_rt_workers(NULL), 0);
    ASSERT_STR(weft_rt_driver(NULL, &why), "none");
    ASSERT_NULL(why);
    weft_rt_stats(NULL, &s);
    ASSERT_EQ(s.spawned, 0);
    ASSERT_EQ(weft_rt_worker_stats(NULL, 0, &one), -EINVAL);
    ASSERT_EQ(one.spawned, 1);
    ASSERT_EQ(weft_rt_turn(NULL, 0), -EINVAL);
    ASSERT_EQ(weft_rt_fd(NULL), -EINVAL);
    ASSERT_EQ(weft_rt_files(NULL), -EINVAL);
    ASSERT_OK(weft_rt_stop(NULL, 0));
}
