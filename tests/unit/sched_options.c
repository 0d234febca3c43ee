/* SPDX-License-Identifier: MIT
 *
 * Options of a runtime: the defaults, each variable of the environment with its limits, what is
 * refused, and who has the last word.
 */
#include "death.h"
#include "sched/sched.h"
#include "sys/cpu.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* One option, seen as a number: how it is called outside, its limits, and where it lies. */
struct row {
    const char *name;
    int64_t least;
    int64_t most;
    int64_t (*get)(const weft_rt_opts *o);
    void (*set)(weft_rt_opts *o, int64_t value);
};

#define FIELD(field, type)                                                                         \
    static int64_t get_##field(const weft_rt_opts *o)                                              \
    {                                                                                              \
        return (int64_t)o->field;                                                                  \
    }                                                                                              \
    static void set_##field(weft_rt_opts *o, int64_t value)                                        \
    {                                                                                              \
        o->field = (type)value;                                                                    \
    }
FIELD(workers, int)
FIELD(thread_stack_bytes, size_t)
FIELD(stack_bytes, size_t)
FIELD(pin_threads, bool)
FIELD(tick_max, unsigned)
FIELD(budget, unsigned)
FIELD(spin_us, unsigned)
FIELD(seed, uint64_t)
FIELD(monitor_us, int)
FIELD(schedtrace_ms, unsigned)
FIELD(blocking_threads, unsigned)
FIELD(blocking_keep_ms, unsigned)
FIELD(paused, bool)

#define ROW(name, least, most, field) {name, least, most, get_##field, set_##field}
static const struct row rows[] = {
    ROW("WEFT_WORKERS", -1, WEFT__WORKERS_MAX, workers),
    ROW("WEFT_THREAD_STACK", 16384, INT64_C(1) << 32, thread_stack_bytes),
    ROW("WEFT_STACK", 16384, INT64_C(1) << 32, stack_bytes),
    ROW("WEFT_PIN", 0, 1, pin_threads),
    ROW("WEFT_TICK", 1, 100000, tick_max),
    ROW("WEFT_BUDGET", 1, 1000000, budget),
    ROW("WEFT_SPIN", 0, 1000000, spin_us),
    ROW("WEFT_SEED", 1, INT64_MAX, seed),
    ROW("WEFT_MONITOR", -1, 10000000, monitor_us),
    ROW("WEFT_SCHEDTRACE", 0, 3600000, schedtrace_ms),
    ROW("WEFT_BLOCKING_THREADS", 1, WEFT__BLOCKING_THREADS_MAX, blocking_threads),
    ROW("WEFT_BLOCKING_KEEP", 1, 86400000, blocking_keep_ms),
    ROW("WEFT_PAUSED", 0, 1, paused),
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void clear_environment(void)
{
    for (size_t i = 0; i < ROWS; i++)
        unsetenv(rows[i].name);
    unsetenv("WEFT_NAME"); /* those that are no numbers */
    unsetenv("WEFT_DRIVER");
    unsetenv("WEFT_FILES");
}

static int64_t usable(void)
{
    struct weft__cpu_limits limits;
    weft__cpu_limits(&limits);
    return limits.usable_count;
}

TEST(options_defaults)
{
    weft_rt_opts o = {0};
    clear_environment();
    ASSERT_OK(weft__options_fill(&o));
    ASSERT_EQ(o.workers, usable());
    ASSERT_EQ(o.thread_stack_bytes, 0);
    ASSERT_EQ(o.stack_bytes, 256 * 1024);
    ASSERT(!o.pin_threads);
    ASSERT_EQ(o.tick_max, 61);
    ASSERT_EQ(o.budget, 128);
    ASSERT_EQ(o.spin_us, 20);
    ASSERT(o.seed != 0);
    ASSERT_EQ(o.monitor_us, 5000);
    ASSERT_EQ(o.schedtrace_ms, 0);
    ASSERT_EQ(o.blocking_threads, 512);
    ASSERT_EQ(o.blocking_keep_ms, 10000);
    ASSERT(!o.paused);
    ASSERT(!o.name); /* rt.c has its own */
    ASSERT_EQ(o.driver, WEFT_DRIVER_AUTO);
    ASSERT_EQ(o.files, WEFT_FILES_AUTO);
}

/* By words. */
TEST(options_files_go_by)
{
    weft_rt_opts o = {0};
    unsetenv("WEFT_FILES");
    ASSERT_OK(weft__options_fill(&o));
    ASSERT_EQ(o.files, WEFT_FILES_AUTO);
    o.files = WEFT_FILES_IO_URING;
    ASSERT_OK(weft__options_fill(&o));
    ASSERT_EQ(o.files, WEFT_FILES_IO_URING);
    setenv("WEFT_FILES", "", 1);
    ASSERT_OK(weft__options_fill(&o));
    ASSERT_EQ(o.files, WEFT_FILES_IO_URING);
    setenv("WEFT_FILES", "pool", 1);
    ASSERT_OK(weft__options_fill(&o));
    ASSERT_EQ(o.files, WEFT_FILES_POOL);
    setenv("WEFT_FILES", "auto", 1);
    ASSERT_OK(weft__options_fill(&o));
    ASSERT_EQ(o.files, WEFT_FILES_AUTO);
    setenv("WEFT_FILES", "io_uring", 1);
    ASSERT_OK(weft__options_fill(&o));
    ASSERT_EQ(o.files, WEFT_FILES_IO_URING);
    setenv("WEFT_FILES", "io_uring ", 1);
    ASSERT_EQ(weft__options_fill(&o), -EINVAL);
}

TEST(options_driver_goes_by)
{
    static const char *const words[] = {"auto", "epoll", "io_uring"};
    clear_environment();
    for (int i = 0; i < 3; i++) {
        weft_rt_opts o = {.driver = (weft_driver)i};
        ASSERT_OK(weft__options_fill(&o));
        ASSERT_EQ(o.driver, i);
        setenv("WEFT_DRIVER", words[i], 1);
        o.driver = WEFT_DRIVER_EPOLL;
        ASSERT_OK(weft__options_fill(&o));
        ASSERT_EQ(o.driver, i);
        unsetenv("WEFT_DRIVER");
    }
    setenv("WEFT_DRIVER", "select", 1);
    ASSERT_EQ(weft__options_fill(&(weft_rt_opts){0}), -EINVAL);
}

/* By the program, by the environment over it, and up to its longest; an empty variable is as none. */
TEST(options_name_goes_by)
{
    weft_rt_opts o = {.name = "mine"};
    clear_environment();
    ASSERT_OK(weft__options_fill(&o));
    ASSERT_STR(o.name, "mine");
    setenv("WEFT_NAME", "", 1);
    ASSERT_OK(weft__options_fill(&o));
    ASSERT_STR(o.name, "mine");
    setenv("WEFT_NAME", "ninebytes", 1);
    ASSERT_OK(weft__options_fill(&o));
    ASSERT_STR(o.name, "ninebytes");
    unsetenv("WEFT_NAME");
    o.name = "ninebytes";
    ASSERT_OK(weft__options_fill(&o));
    ASSERT_STR(o.name, "ninebytes");
}

/* What no variable stands for is left as it was. */
TEST(options_others_are_left_alone)
{
    weft_rt_opts o = {.make_default = true};
    clear_environment();
    ASSERT_OK(weft__options_fill(&o));
    ASSERT(o.make_default);
    ASSERT(!o.on_thread_start);
    ASSERT(!o.on_thread_stop);
}

/* ---- a value, from the program or from outside ------------------------------------------------------ */

static void put_variable(const char *name, int64_t value)
{
    char text[32];
    snprintf(text, sizeof(text), "%lld", (long long)value);
    setenv(name, text, 1);
}

/* 0 of WEFT_WORKERS means all of them, 0 of WEFT_MONITOR its default. */
static int64_t meaning_of(const struct row *row, int64_t value)
{
    if (value != 0) return value;
    if (row->get == get_monitor_us) return 5000;
    return row->get == get_workers ? usable() : 0;
}

static void expect_from_outside(const struct row *row, int64_t value)
{
    weft_rt_opts o = {0};
    row->set(&o, row->least > 0 ? row->least : 1); /* overruled */
    put_variable(row->name, value);
    ASSERT_OK(weft__options_fill(&o));
    ASSERT_EQ(row->get(&o), meaning_of(row, value));
    unsetenv(row->name);
}

static void expect_from_the_program(const struct row *row, int64_t value)
{
    weft_rt_opts o = {0};
    row->set(&o, value);
    ASSERT_OK(weft__options_fill(&o));
    ASSERT_EQ(row->get(&o), value);
}

TEST(options_at_their_limits_are_taken)
{
    clear_environment();
    for (size_t i = 0; i < ROWS; i++) {
        expect_from_outside(&rows[i], rows[i].least);
        expect_from_outside(&rows[i], rows[i].most);
        if (rows[i].least != 0) expect_from_the_program(&rows[i], rows[i].least);
        expect_from_the_program(&rows[i], rows[i].most);
        if (rows[i].least < 0) expect_from_outside(&rows[i], 0);
    }
}

TEST(options_empty_variables_count_as_unset)
{
    clear_environment();
    for (size_t i = 0; i < ROWS; i++) {
        weft_rt_opts o = {0};
        rows[i].set(&o, rows[i].most);
        setenv(rows[i].name, "", 1);
        ASSERT_OK(weft__options_fill(&o));
        ASSERT_EQ(rows[i].get(&o), rows[i].most);
        unsetenv(rows[i].name);
    }
}

/* A seed is 63 bits wide; one that has the highest alone is as none, and none is zero. */
TEST(options_seed_keeps_63_bits)
{
    weft_rt_opts o = {.seed = (UINT64_C(1) << 63) | 5};
    clear_environment();
    ASSERT_OK(weft__options_fill(&o));
    ASSERT_EQ(o.seed, 5);
    o.seed = UINT64_C(1) << 63;
    ASSERT_OK(weft__options_fill(&o));
    ASSERT(o.seed != 0 && o.seed >> 63 == 0);
}

/* ---- what is refused ----------------------------------------------------------------------------------- */

static void fills(void *opts)
{
    _exit(weft__options_fill(opts) == -EINVAL ? 0 : 1);
}

/* One line, which says what was wanted. */
static void expect_refusal(const weft_rt_opts *opts, const struct row *row)
{
    weft_rt_opts o = *opts;
    char wanted[96];
    struct death d = death_of(fills, &o);
    snprintf(wanted, sizeof(wanted), "want a number from %lld to %lld\n", (long long)row->least,
             (long long)row->most);
    ASSERT_EQ(d.signal, 0);
    ASSERT_EQ(d.code, 0);
    ASSERT(strstr(d.said, row->name));
    ASSERT(strstr(d.said, wanted));
    ASSERT_PTR(strchr(d.said, '\n') + 1, d.said + strlen(d.said));
}

TEST(options_beyond_their_limits_are_refused)
{
    clear_environment();
    for (size_t i = 0; i < ROWS; i++) {
        const weft_rt_opts none = {0};
        put_variable(rows[i].name, rows[i].least - 1);
        expect_refusal(&none, &rows[i]);
        if (rows[i].most < INT64_MAX) {
            put_variable(rows[i].name, rows[i].most + 1);
            expect_refusal(&none, &rows[i]);
        }
        unsetenv(rows[i].name);
        if (rows[i].most == 1 || rows[i].most == INT64_MAX) continue; /* such a value has no room */
        weft_rt_opts o = {0};
        rows[i].set(&o, rows[i].most + 1);
        expect_refusal(&o, &rows[i]);
    }
}

TEST(options_of_other_shapes_are_refused)
{
    static const char *const shapes[] = {
        "x",
        "1x",
        "1 ",
        " 1",
        "0x10",
        "1.5",
        "-",
        "+1",
        "--1",
        "9223372036854775808",
        "9999999999999999999999",
    };
    clear_environment();
    for (size_t i = 0; i < ROWS; i++) {
        for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
            setenv(rows[i].name, shapes[s], 1);
            expect_refusal(&(weft_rt_opts){0}, &rows[i]);
        }
        unsetenv(rows[i].name);
    }
}

/* One line, which says what was there and what was wanted. */
static void expect_name_refused(const char *given, const char *variable, const char *said)
{
    weft_rt_opts o = {.name = given};
    if (variable) setenv("WEFT_NAME", variable, 1);
    struct death d = death_of(fills, &o);
    unsetenv("WEFT_NAME");
    ASSERT_EQ(d.signal, 0);
    ASSERT_EQ(d.code, 0);
    ASSERT_STR(d.said, said);
}

TEST(options_names_that_would_be_cut_are_refused)
{
    clear_environment();
    expect_name_refused(NULL, "ten bytes.", "weft: WEFT_NAME=ten bytes.: want 1 to 9 bytes\n");
    expect_name_refused("mine", "ten bytes.", "weft: WEFT_NAME=ten bytes.: want 1 to 9 bytes\n");
    expect_name_refused("tenletters", NULL,
                        "weft: option for WEFT_NAME is \"tenletters\": want 1 to 9 bytes\n");
    expect_name_refused("", NULL, "weft: option for WEFT_NAME is \"\": want 1 to 9 bytes\n");
}

/* A refusal leaves the caller's options as they were. */
TEST(options_refused_are_not_half_filled)
{
    weft_rt_opts o = {.budget = 1000001};
    clear_environment();
    struct death d = death_of(fills, &o);
    ASSERT_EQ(d.code, 0);
    int kept = dup(STDERR_FILENO);
    ASSERT(kept >= 0);
    ASSERT(freopen("/dev/null", "w", stderr) != NULL);
    ASSERT_EQ(weft__options_fill(&o), -EINVAL);
    dup2(kept, STDERR_FILENO);
    close(kept);
    ASSERT_EQ(o.workers, 0);
    ASSERT_EQ(o.tick_max, 0);
    ASSERT_EQ(o.budget, 1000001);
}
