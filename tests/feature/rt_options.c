/* SPDX-License-Identifier: MIT
 *
 * Options of a runtime, and the environment that overrules them: what is taken, what is refused.
 */
#include "crew.h"
#include "death.h"
#include "test.h"

#include <errno.h>
#include <string.h>

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
