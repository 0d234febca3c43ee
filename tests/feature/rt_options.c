/* SPDX-License-Identifier: MIT
 *
 * Options of a runtime, and the environment that overrules them: what is taken, what is refused.
 */
#include "crew.h"
#include "death.h"
#include "test.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <weft/time.h>

static int answers(int value)
{
    return value;
}

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
    expect_refusal((weft_rt_opts){.blocking_threads = 32769}, "WEFT_BLOCKING_THREADS");
    expect_refusal((weft_rt_opts){.blocking_keep_ms = 86400001}, "WEFT_BLOCKING_KEEP");
    expect_refusal((weft_rt_opts){.name = "averyverylongname"}, "WEFT_NAME");
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
        {"WEFT_SCHEDTRACE", "1s"}, {"WEFT_SCHEDTRACE", "-1"}, {"WEFT_BLOCKING_THREADS", "0"}, {"WEFT_BLOCKING_KEEP", "0"},
        {"WEFT_NAME", "averyverylongname"}, {"WEFT_PAUSED", "yes"},
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

/* A program that turns its runtime itself would wait for ever for one with threads: its fd and its turns answer -EINVAL. */
TEST(rt_that_is_turned_gets_no_threads_from_the_environment)
{
    weft_rt *rt;
    int got;
    setenv("WEFT_WORKERS", "3", 1);
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
    ASSERT_EQ(weft_rt_workers(rt), 0);
    ASSERT_GE(weft_rt_fd(rt), 0);
    weft_task *task = weft_go_as((.rt = rt), answers, 5);
    while (!weft_done(task))
        ASSERT_GE(weft_rt_turn(rt, -1), 0);
    ASSERT_OK(weft_join(task, &got));
    ASSERT_EQ(got, 5);
    ASSERT_OK(weft_rt_stop(rt, -1));
    setenv("WEFT_WORKERS", "many", 1);
    expect_refusal((weft_rt_opts){.workers = -1}, "WEFT_WORKERS");
}

/* ---- what a worker's thread finds at its beginning ------------------------------------------------------ */

#define FOUND_MAX 4

static struct found {
    cpu_set_t cpus;
    size_t stack_bytes;
    char name[16];
} found[FOUND_MAX];
static _Atomic uint32_t found_count;

/* Each worker writes its own; read by who has seen the count. */
static void looks_around(weft_rt *rt, unsigned worker)
{
    struct found *f = &found[worker];
    pthread_attr_t attr;
    (void)rt;
    ASSERT_OK(sched_getaffinity(0, sizeof(f->cpus), &f->cpus));
    ASSERT_OK(pthread_getattr_np(pthread_self(), &attr));
    ASSERT_OK(pthread_attr_getstacksize(&attr, &f->stack_bytes));
    ASSERT_OK(pthread_attr_destroy(&attr));
    ASSERT_OK(prctl(PR_GET_NAME, f->name));
    fetch_add_release(&found_count, 1); /* with look: what was found */
}

/* Builds a runtime of so many workers, and stops it when each has looked. */
static void look(weft_rt_opts opts)
{
    weft_rt *rt;
    opts.on_thread_start = looks_around;
    ASSERT(opts.workers <= FOUND_MAX);
    store_relaxed(&found_count, 0); /* relaxed: nobody is there */
    ASSERT_OK(weft_rt_new(&opts, &rt));
    CREW_UNTIL(load_acquire(&found_count) == (uint32_t)opts.workers); /* with looks_around */
    ASSERT_OK(weft_rt_stop(rt, -1));
}

static int nth_cpu(const cpu_set_t *cpus, int nth)
{
    int cpu = -1;
    for (int seen = -1; seen < nth;)
        seen += CPU_ISSET(++cpu, cpus) != 0;
    return cpu;
}

/* One CPU each, in turn, of those that the process may use. */
static void expect_pinned(const cpu_set_t *all)
{
    for (int i = 0; i < FOUND_MAX; i++) {
        ASSERT_EQ(CPU_COUNT(&found[i].cpus), 1);
        ASSERT(CPU_ISSET(nth_cpu(all, i % CPU_COUNT(all)), &found[i].cpus));
    }
}

TEST(rt_threads_are_pinned_if_told)
{
    cpu_set_t all;
    ASSERT_OK(sched_getaffinity(0, sizeof(all), &all));
    unsetenv("WEFT_PIN");
    look((weft_rt_opts){.workers = FOUND_MAX});
    for (int i = 0; i < FOUND_MAX; i++)
        ASSERT(CPU_EQUAL(&found[i].cpus, &all));
    look((weft_rt_opts){.workers = FOUND_MAX, .pin_threads = true});
    expect_pinned(&all);
    setenv("WEFT_PIN", "1", 1);
    look((weft_rt_opts){.workers = FOUND_MAX});
    expect_pinned(&all);
    setenv("WEFT_PIN", "0", 1);
    look((weft_rt_opts){.workers = FOUND_MAX, .pin_threads = true});
    for (int i = 0; i < FOUND_MAX; i++)
        ASSERT(CPU_EQUAL(&found[i].cpus, &all));
}

/* A page or two more than asked for is libc's own business. */
static void expect_stacks(size_t bytes)
{
    for (int i = 0; i < 2; i++) {
        ASSERT_GE(found[i].stack_bytes, bytes);
        ASSERT(found[i].stack_bytes < bytes + (bytes >> 1));
    }
}

TEST(rt_threads_have_the_stack_they_were_told)
{
    pthread_attr_t attr;
    size_t usual;
    ASSERT_OK(pthread_attr_init(&attr));
    ASSERT_OK(pthread_attr_getstacksize(&attr, &usual));
    ASSERT_OK(pthread_attr_destroy(&attr));
    unsetenv("WEFT_THREAD_STACK");
    look((weft_rt_opts){.workers = 2});
    expect_stacks(usual);
    look((weft_rt_opts){.workers = 2, .thread_stack_bytes = usual * 2});
    expect_stacks(usual * 2);
    setenv("WEFT_THREAD_STACK", "3145728", 1);
    look((weft_rt_opts){.workers = 2, .thread_stack_bytes = usual * 2});
    expect_stacks(3145728);
}

TEST(rt_threads_have_the_name_they_were_told)
{
    unsetenv("WEFT_NAME");
    look((weft_rt_opts){.workers = 2});
    ASSERT_STR(found[1].name, "weft-1");
    look((weft_rt_opts){.workers = 2, .name = "ninebytes"});
    ASSERT_STR(found[0].name, "ninebytes-0");
    setenv("WEFT_NAME", "outside", 1);
    look((weft_rt_opts){.workers = 2, .name = "ninebytes"});
    ASSERT_STR(found[1].name, "outside-1");
}

static int sleeps_for_an_hour(void)
{
    return weft_sleep(INT64_C(3600000000000));
}

/* An hour passes at once on a clock that stands; no test would see its end on one that runs. */
TEST(rt_clock_stands_if_the_environment_says_so)
{
    int got;
    setenv("WEFT_PAUSED", "1", 1);
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        crew_start_with(&crew, &(weft_rt_opts){.workers = crew_sizes[i]});
        ASSERT_OK(weft_join(weft_go(sleeps_for_an_hour), &got));
        ASSERT_OK(got);
        crew_stop(&crew);
    }
}
