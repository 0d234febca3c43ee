/* SPDX-License-Identifier: MIT
 *
 * Runtimes: building them, with what options; several; turning one by hand; stopping; what fails.
 */
#include "base/fault.h"
#include "crew.h"
#include "death.h"
#include "sched/sched.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

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

/* ---- options and environment ----------------------------------------------------------------------------- */

static void says_and_refuses(void *opts)
{
    weft_rt *rt = NULL;
    int r = weft_rt_new(opts, &rt);
    _exit(r == -EINVAL && !rt ? 0 : 1);
}

static unsigned lines_of(const char *text)
{
    unsigned count = 0;
    for (; *text; text++)
        count += *text == '\n';
    return count;
}

static void expect_refusal(weft_rt_opts opts, const char *word)
{
    struct death d = death_of(says_and_refuses, &opts);
    ASSERT_EQ(d.signal, 0);
    ASSERT_EQ(d.code, 0);
    ASSERT_EQ(lines_of(d.said), 1);
    ASSERT(strstr(d.said, word));
}

TEST(rt_bad_options_are_named_and_refused)
{
    expect_refusal((weft_rt_opts){.workers = -2}, "WEFT_WORKERS");
    expect_refusal((weft_rt_opts){.workers = 1 << 20}, "WEFT_WORKERS");
    expect_refusal((weft_rt_opts){.stack_bytes = 1}, "WEFT_STACK");
    expect_refusal((weft_rt_opts){.stack_bytes = SIZE_MAX}, "WEFT_STACK");
    expect_refusal((weft_rt_opts){.thread_stack_bytes = SIZE_MAX}, "WEFT_THREAD_STACK");
    expect_refusal((weft_rt_opts){.thread_stack_bytes = 1}, "WEFT_THREAD_STACK");
    expect_refusal((weft_rt_opts){.tick_max = 100001}, "WEFT_TICK");
    expect_refusal((weft_rt_opts){.budget = 1000001}, "WEFT_BUDGET");
    expect_refusal((weft_rt_opts){.spin_us = 1000001}, "WEFT_SPIN");
    expect_refusal((weft_rt_opts){.monitor_us = -2}, "WEFT_MONITOR");
    expect_refusal((weft_rt_opts){.monitor_us = 10000001}, "WEFT_MONITOR");
    expect_refusal((weft_rt_opts){.schedtrace_ms = 3600001}, "WEFT_SCHEDTRACE");
    ASSERT_EQ(weft_rt_new(NULL, NULL), -EINVAL);
}

TEST(rt_bad_variables_are_named_and_refused)
{
    static const struct {
        const char *name;
        const char *value;
    } bad[] = {
        {"WEFT_WORKERS", "many"}, {"WEFT_WORKERS", "-2"},
        {"WEFT_WORKERS", "4x"},   {"WEFT_WORKERS", "99999999999999999999"},
        {"WEFT_STACK", "12"},     {"WEFT_STACK", "1e9"},
        {"WEFT_PIN", "yes"},      {"WEFT_TICK", "0"},
        {"WEFT_BUDGET", "0"},     {"WEFT_SPIN", "-1"},
        {"WEFT_SEED", "0"},       {"WEFT_THREAD_STACK", "-"},
        {"WEFT_MONITOR", "-2"},   {"WEFT_MONITOR", "off"},
        {"WEFT_SCHEDTRACE", "1s"}, {"WEFT_SCHEDTRACE", "-1"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        setenv(bad[i].name, bad[i].value, 1);
        expect_refusal((weft_rt_opts){.workers = 1}, bad[i].name);
        unsetenv(bad[i].name);
    }
}

TEST(rt_environment_has_the_last_word)
{
    weft_rt *rt;
    int got;
    setenv("WEFT_WORKERS", "3", 1);
    setenv("WEFT_TICK", "7", 1);
    setenv("WEFT_BUDGET", "2", 1);
    setenv("WEFT_SEED", "42", 1);
    setenv("WEFT_SPIN", "0", 1);
    setenv("WEFT_PIN", "1", 1);
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1}, &rt));
    ASSERT_EQ(weft_rt_workers(rt), 3);
    for (int i = 0; i < 100; i++) {
        ASSERT_OK(weft_join(weft_go_as((.rt = rt), answers, i), &got));
        ASSERT_EQ(got, i);
    }
    ASSERT_OK(weft_rt_stop(rt, -1));
    setenv("WEFT_WORKERS", "", 1);
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 2}, &rt));
    ASSERT_EQ(weft_rt_workers(rt), 2);
    ASSERT_OK(weft_rt_stop(rt, -1));
    setenv("WEFT_WORKERS", "-1", 1);
    ASSERT_OK(weft_rt_new(NULL, &rt));
    ASSERT_EQ(weft_rt_workers(rt), 0);
    ASSERT_OK(weft_rt_stop(rt, -1));
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

/* ---- stopping ----------------------------------------------------------------------------------------------------- */

static _Atomic uint32_t begun;
static _Atomic uint32_t ended;
static _Atomic bool let_go;

static int yields_until_told(void)
{
    int r = 0;
    fetch_add_relaxed(&begun, 1);
    while (r == 0)
        r = weft_yield();
    fetch_add_relaxed(&ended, 1);
    return r;
}

struct yields_until_told_too {
    WEFT_FRAME(int);
    struct weft_yield pause;
};
static weft_async(yields_until_told_too)
{
    weft_begin;
    fetch_add_relaxed(&begun, 1);
    do {
        weft_await(f->pause, weft_yield);
    } while (f->pause.ret == 0);
    fetch_add_relaxed(&ended, 1);
    weft_return(f->pause.ret);
    weft_end;
}

/* Waits for ever: nobody has its waker. */
struct forever {
    WEFT_FRAME(int);
};
static weft_poll forever_poll(void *frame, weft_cx *cx)
{
    struct forever *f = frame;
    if (!f->weft__at) fetch_add_relaxed(&begun, 1);
    f->weft__at = 1;
    f->ret = weft_cx_cancelled(cx);
    if (f->ret == 0) return WEFT_PENDING;
    fetch_add_relaxed(&ended, 1);
    return WEFT_READY;
}

static int waits_in_join(void)
{
    int got = 0;
    fetch_add_relaxed(&begun, 1);
    int r = weft_join(weft_spawn(forever), &got);
    fetch_add_relaxed(&ended, 1);
    return r < 0 ? r : got;
}

static void leaves_tasks_of_all_kinds(struct crew *crew)
{
    uint32_t count = (uint32_t)test_scaled(400);
    (void)crew;
    store_relaxed(&begun, 0);
    store_relaxed(&ended, 0);
    for (uint32_t i = 0; i < count; i++) {
        ASSERT_OK(weft_detach(weft_go(yields_until_told)));
        ASSERT_OK(weft_detach(weft_spawn(yields_until_told_too)));
        ASSERT_OK(weft_detach(weft_spawn(forever)));
        ASSERT_OK(weft_detach(weft_go(waits_in_join)));
    }
}

/* Queued, waiting or yielding: what began has unwound when stop returns, and all of it began. */
TEST(rt_stop_ends_tasks_wherever_they_are)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        crew_start(&crew, crew_sizes[i]);
        leaves_tasks_of_all_kinds(&crew);
        crew_stop(&crew);
        ASSERT_EQ(load_relaxed(&begun), test_scaled(400) * 5);
        ASSERT_EQ(load_relaxed(&ended), load_relaxed(&begun));
    }
}

static void stops_with_tasks(void *unused)
{
    struct crew crew;
    (void)unused;
    crew_start(&crew, 2);
    leaves_tasks_of_all_kinds(&crew);
    crew_stop(&crew);
}

/* A task that hands on the -ECANCELED of its child has not failed, whichever of the two is told first. */
TEST(rt_stop_reports_no_failures)
{
    struct death d = death_of(stops_with_tasks, NULL);
    ASSERT_EQ(d.code, 0);
    ASSERT_STR(d.said, "");
}

static int stops_its_own(void)
{
    return weft_rt_stop(weft_rt_current(), -1);
}

struct stops_its_own_too {
    WEFT_FRAME(int);
};
static weft_async(stops_its_own_too)
{
    weft_begin;
    weft_return(weft_rt_stop(weft_rt_current(), -1));
    weft_end;
}

static void from_inside(struct crew *crew)
{
    int got;
    (void)crew;
    ASSERT_OK(weft_join(weft_go(stops_its_own), &got));
    ASSERT_EQ(got, -EDEADLK);
    ASSERT_OK(weft_join(weft_spawn(stops_its_own_too), &got));
    ASSERT_EQ(got, -EDEADLK);
}

TEST(rt_stop_from_inside_is_refused)
{
    crew_each(from_inside);
}

static int stubborn(void)
{
    fetch_add_relaxed(&begun, 1);
    while (!load_relaxed(&let_go))
        (void)weft_yield();
    return 0;
}

/* Whatever is said meanwhile goes nowhere. */
static int stderr_away(void)
{
    int kept = dup(STDERR_FILENO);
    int nowhere = open("/dev/null", O_WRONLY);
    if (kept < 0 || nowhere < 0) _exit(9);
    dup2(nowhere, STDERR_FILENO);
    close(nowhere);
    return kept;
}

/* Stops time out, however short they are, until the polite one has ended: the stubborn one lets it
 * through. Only then is it certain who is named. */
static void stop_often(void *workers)
{
    struct crew crew;
    store_relaxed(&begun, 0);
    crew_start(&crew, *(int *)workers);
    weft_task *polite = weft_go(yields_until_told);
    if (weft_detach(weft_go(stubborn)) < 0) _exit(2);
    CREW_UNTIL(load_relaxed(&begun) == 2);
    crew_release_driver(&crew);
    int kept = stderr_away();
    do {
        if (weft_rt_stop(crew.rt, 1000 * 1000) != -ETIME) _exit(3);
    } while (!weft_done(polite));
    if (kept < 0 || dup2(kept, STDERR_FILENO) < 0) _exit(9);
    if (weft_rt_stop(crew.rt, 0) != -ETIME) _exit(4);
    weft_task *late = weft_go(stubborn);
    if (late) _exit(5);
    store_relaxed(&let_go, true);
    if (weft_rt_stop(crew.rt, -1) != 0) _exit(6);
    _exit(weft_detach(polite));
}

TEST(rt_stop_names_who_does_not_stop_and_may_be_repeated)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        int workers = crew_sizes[i];
        struct death d = death_of(stop_often, &workers);
        ASSERT_EQ(d.signal, 0);
        ASSERT_EQ(d.code, 0);
        ASSERT_EQ(lines_of(d.said), 1);
        ASSERT(strstr(d.said, "task 'stubborn'"));
    }
}

static void leaves_a_hundred(void *unused)
{
    struct crew crew;
    (void)unused;
    store_relaxed(&begun, 0);
    crew_start(&crew, 2);
    for (int i = 0; i < 100; i++)
        if (weft_detach(weft_go(stubborn)) < 0) _exit(2);
    if (weft_rt_stop(crew.rt, 0) != -ETIME) _exit(3);
    store_relaxed(&let_go, true);
    _exit(weft_rt_stop(crew.rt, -1) == 0 ? 0 : 4);
}

TEST(rt_stop_names_some_of_many)
{
    struct death d = death_of(leaves_a_hundred, NULL);
    ASSERT_EQ(d.signal, 0);
    ASSERT_EQ(d.code, 0);
    ASSERT_EQ(lines_of(d.said), 33);
    ASSERT(strstr(d.said, "weft: 68 more tasks do not stop\n"));
}

/* Threads that spawn while the runtime closes are served or refused, and nothing stays. */
static void *spawn_until_refused(void *arg)
{
    struct spawner *me = arg;
    for (;;) {
        weft_task *task = weft_go_as((.rt = me->rt), answers, 1);
        if (!task) break;
        ASSERT_OK(weft_detach(task));
        fetch_add_relaxed(&begun, 1);
    }
    return NULL;
}

/* Whoever uses a runtime has to know that it is there: the last stop comes when the threads have left. */
TEST(rt_stop_while_threads_spawn)
{
    for (uint64_t round = 0; round < test_scaled(40); round++) {
        struct spawner s[3];
        weft_rt *rt;
        ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1 + (int)(round % 3)}, &rt));
        store_relaxed(&begun, 0);
        store_relaxed(&let_go, false);
        weft_task *keeper = weft_go_as((.rt = rt), stubborn);
        for (int i = 0; i < 3; i++) {
            s[i] = (struct spawner){.rt = rt};
            ASSERT_OK(pthread_create(&s[i].thread, NULL, spawn_until_refused, &s[i]));
        }
        CREW_UNTIL(load_relaxed(&begun) > 100);
        ASSERT_EQ(weft_rt_stop(rt, 0), -ETIME);
        for (int i = 0; i < 3; i++)
            ASSERT_OK(pthread_join(s[i].thread, NULL));
        store_relaxed(&let_go, true);
        ASSERT_OK(weft_rt_stop(rt, -1));
        ASSERT_OK(weft_detach(keeper));
    }
}

/* ---- what fails -------------------------------------------------------------------------------------------------- */

#ifdef WEFT_FAULTS
/* Every allocation, mapping and thread of a build fails once: an error, and nothing stays. */
static void build_fails_at_each(enum weft__fault_kind kind, int error, int workers)
{
    for (uint32_t nth = 1;; nth++) {
        weft_rt *rt = NULL;
        weft__fault_arm(kind, nth, 1, error);
        int r = weft_rt_new(&(weft_rt_opts){.workers = workers}, &rt);
        uint32_t calls = weft__fault_calls(kind);
        weft__fault_reset();
        if (r == 0) ASSERT_OK(weft_rt_stop(rt, -1));
        if (r < 0) ASSERT_EQ(r, error);
        if (r < 0) ASSERT_NULL(rt);
        if (calls < nth) break;
        ASSERT_LE(nth, 100);
    }
}

TEST(rt_build_that_fails_leaves_nothing)
{
    build_fails_at_each(WEFT__FAULT_ALLOC, -ENOMEM, -1);
    build_fails_at_each(WEFT__FAULT_ALLOC, -ENOMEM, 2);
    build_fails_at_each(WEFT__FAULT_MMAP, -ENOMEM, 2);
    build_fails_at_each(WEFT__FAULT_THREAD, -EAGAIN, 4);
}

struct roomy {
    WEFT_FRAME(int);
    char room[3000];
};
static weft_async(roomy)
{
    weft_begin;
    weft_return(f->room[0] + 1);
    weft_end;
}

/* A spawn without memory for the block (a mapping), or for a large frame (the heap), from outside
 * and from inside. */
static int spawn_without_memory(void)
{
    weft__fault_arm(WEFT__FAULT_ALLOC, 1, UINT32_MAX, -ENOMEM);
    weft_task *task = weft_spawn(roomy);
    weft__fault_reset();
    return task ? -1 : 0;
}

static int spawn_without_mappings(void)
{
    weft_task *first = NULL;
    weft_task *kept[20000];
    int count = 0;
    weft__fault_arm(WEFT__FAULT_MMAP, 1, UINT32_MAX, -ENOMEM);
    while (count < 20000 && (first = weft_spawn(yields_until_told_too)))
        kept[count++] = first;
    weft__fault_reset();
    for (int i = 0; i < count; i++) {
        weft_cancel(kept[i]);
        (void)weft_detach(kept[i]);
    }
    return count;
}

static void no_memory(struct crew *crew)
{
    int got = 1;
    ASSERT_OK(spawn_without_memory());
    ASSERT_OK(weft_join(weft_go_as((.rt = crew->rt), spawn_without_memory), &got));
    ASSERT_OK(got);
    ASSERT_LE(spawn_without_mappings(), 19999);
    ASSERT_OK(weft_join(weft_spawn(roomy), &got));
    ASSERT_EQ(got, 1);
}

TEST(rt_spawn_without_memory_takes_nothing)
{
    crew_each(no_memory);
}
#endif
