/* SPDX-License-Identifier: MIT
 *
 * What a task gives back: results of every size and sign, structs, frames of any size; failures that
 * nobody reads; what weft_run gives where it must not be.
 */
#include "crew.h"
#include "tasks.h"
#include "test.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

/* ---- results: every size and sign ---------------------------------------------------------------- */

/* The same function twice: as a fiber's plain function and as a stackless one. */
#define ECHO(T, name)                                                                              \
    static T go_##name(T value)                                                                    \
    {                                                                                              \
        return value;                                                                              \
    }                                                                                              \
    struct echo_##name {                                                                           \
        WEFT_FRAME(T);                                                                             \
        T value;                                                                                   \
    };                                                                                             \
    static weft_async(echo_##name)                                                                 \
    {                                                                                              \
        weft_begin;                                                                                \
        weft_return(f->value);                                                                     \
        weft_end;                                                                                  \
    }
ECHO(signed char, i8)
ECHO(unsigned char, u8)
ECHO(short, i16)
ECHO(unsigned short, u16)
ECHO(int, i32)
ECHO(unsigned, u32)
ECHO(long, i64)
ECHO(unsigned long, u64)
ECHO(bool, truth)
ECHO(void *, pointer)

#define EXPECT_ECHO(T, name, given)                                                                \
    do {                                                                                           \
        struct {                                                                                   \
            unsigned char before[8];                                                               \
            T got;                                                                                 \
            unsigned char after[8];                                                                \
        } fiber, stackless;                                                                        \
        memset(&fiber, 0x5a, sizeof(fiber));                                                       \
        memset(&stackless, 0x5a, sizeof(stackless));                                               \
        ASSERT_OK(weft_join(weft_go(go_##name, given), &fiber.got));                               \
        ASSERT_OK(weft_join(weft_spawn(echo_##name, given), &stackless.got));                      \
        ASSERT(fiber.got == (given));                                                              \
        ASSERT(stackless.got == (given));                                                          \
        ASSERT_EQ(fiber.after[0], 0x5a);                                                           \
        ASSERT_EQ(stackless.after[0], 0x5a);                                                       \
    } while (0)

static void results(struct crew *crew)
{
    (void)crew;
    EXPECT_ECHO(signed char, i8, (signed char)SCHAR_MIN);
    EXPECT_ECHO(signed char, i8, (signed char)-1);
    EXPECT_ECHO(unsigned char, u8, (unsigned char)UCHAR_MAX);
    EXPECT_ECHO(short, i16, (short)SHRT_MIN);
    EXPECT_ECHO(short, i16, (short)SHRT_MAX);
    EXPECT_ECHO(unsigned short, u16, (unsigned short)USHRT_MAX);
    EXPECT_ECHO(int, i32, INT_MIN);
    EXPECT_ECHO(int, i32, INT_MAX);
    EXPECT_ECHO(unsigned, u32, UINT_MAX);
    EXPECT_ECHO(long, i64, LONG_MIN);
    EXPECT_ECHO(long, i64, LONG_MAX);
    EXPECT_ECHO(unsigned long, u64, ULONG_MAX);
    EXPECT_ECHO(bool, truth, true);
    EXPECT_ECHO(bool, truth, false);
    EXPECT_ECHO(void *, pointer, (void *)&crew);
}

TEST(task_results_of_every_size_and_sign)
{
    crew_each(results);
}

struct wide {
    long part[40];
};
struct fill {
    WEFT_FRAME(struct wide);
    long base;
    struct weft_yield pause;
};
static weft_async(fill)
{
    weft_begin;
    weft_await(f->pause, weft_yield);
    for (int i = 0; i < 40; i++)
        f->ret.part[i] = f->base + i;
    weft_end;
}

struct fill_fiber {
    WEFT_FRAME(struct wide);
    long base;
};
static weft_fiber(fill_fiber)
{
    (void)weft_yield();
    for (int i = 0; i < 40; i++)
        f->ret.part[i] = f->base + i;
}

static void structs(struct crew *crew)
{
    struct wide one;
    struct wide two;
    (void)crew;
    ASSERT_OK(weft_join(weft_spawn(fill, .base = 7), &one));
    ASSERT_OK(weft_join(weft_spawn(fill_fiber, .base = 7), &two));
    for (int i = 0; i < 40; i++) {
        ASSERT_EQ(one.part[i], 7 + i);
        ASSERT_EQ(two.part[i], 7 + i);
    }
    one = weft_run(fill, .base = 1);
    two = weft_run(fill_fiber, .base = 1);
    ASSERT_EQ(one.part[39], 40);
    ASSERT_EQ(two.part[39], 40);
}

TEST(task_results_that_are_structs)
{
    crew_each(structs);
}

/* ---- frames that do not fit a block ----------------------------------------------------------------- */

struct large {
    WEFT_FRAME(int);
    int base;
    int i;
    struct weft_yield pause;
    int room[1000];
};
static weft_async(large)
{
    weft_begin;
    for (f->i = 0; f->i < 1000; f->i++) {
        f->room[f->i] = f->base + f->i;
        if (f->i % 100 == 0) weft_await(f->pause, weft_yield);
    }
    for (f->i = 0; f->i < 1000; f->i++)
        f->ret += f->room[f->i] == f->base + f->i;
    weft_end;
}

static void boxes(struct crew *crew)
{
    weft_task *task[50];
    (void)crew;
    for (int i = 0; i < 50; i++)
        task[i] = weft_spawn(large, .base = i);
    for (int i = 0; i < 50; i++) {
        int got;
        if (i % 5 == 4) {
            ASSERT_OK(weft_detach(task[i]));
            continue;
        }
        ASSERT_OK(weft_join(task[i], &got));
        ASSERT_EQ(got, 1000);
    }
}

TEST(task_frames_over_a_kibibyte)
{
    crew_each(boxes);
}

/* ---- failures that nobody reads ---------------------------------------------------------------------- */

static void drops_failures(void *unused)
{
    struct crew crew;
    (void)unused;
    crew_start(&crew, 2);
    weft_task *early = weft_spawn(echo_i16, -EPIPE);
    weft_task *late = weft_spawn(echo_i8, -EAGAIN);
    weft_task *good = weft_spawn(echo_u32, UINT_MAX);
    CREW_UNTIL(weft_done(late));
    weft_task *shared = weft_ref(late);
    if (weft_detach(early) < 0 || weft_detach(late) < 0 || weft_detach(good) < 0) _exit(2);
    weft_unref(shared);
    crew_stop(&crew);
}

/* Of any size, whether the handle is dropped before the end or after it. */
TEST(task_failures_that_nobody_reads_are_reported)
{
    struct death d = death_of(drops_failures, NULL);
    ASSERT_EQ(d.code, 0);
    ASSERT(strstr(d.said, "task 'echo_i16'"));
    ASSERT(strstr(d.said, "EPIPE"));
    ASSERT(strstr(d.said, "task 'echo_i8'"));
    ASSERT(strstr(d.said, "EAGAIN"));
    ASSERT(!strstr(d.said, "echo_u32"));
}

static _Atomic uint32_t failing;

static int fails_when_told(void)
{
    while (load_relaxed(&failing) == 0) /* relaxed: a number */
        if (weft_yield() < 0) break;
    return -EPIPE;
}

static int stops_when_told(void)
{
    int r;
    do {
        r = weft_yield();
    } while (r == 0);
    return r;
}

/* Fifty handles of one place: dropped before the end, after it, at any moment, and some joined. */
static void fails_often(void *workers)
{
    struct crew crew;
    weft_stats stats;
    weft_task *task[50];
    crew_start(&crew, *(int *)workers);
    for (int i = 0; i < 50; i++) {
        store_relaxed(&failing, i % 3 == 0);
        task[i] = weft_go(fails_when_told);
        if (i % 3 == 1 && weft_detach(task[i]) < 0) _exit(2);
        store_relaxed(&failing, 1);
        int r = 0;
        if (i % 10 == 2 && i % 3 != 1) {
            if (weft_join(task[i], &r) < 0 || r != -EPIPE) _exit(3);
        } else if (i % 3 != 1 && weft_detach(task[i]) < 0) {
            _exit(4);
        }
    }
    do {
        weft_rt_stats(crew.rt, &stats);
        sched_yield();
    } while (stats.unread_failures < 46);
    store_relaxed(&failing, 0);
    (void)weft_detach(weft_go(stops_when_told)); /* cancelled by the stop: no failure */
    crew_stop(&crew);
}

/* i = 2, 12, 22, 32, 42 are joined, but for 22, which was dropped early: 46 go unread. */
TEST(task_failures_of_one_place_are_reported_once_and_counted)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        int workers = crew_sizes[i];
        struct death d = death_of(fails_often, &workers);
        const char *first = strstr(d.said, "nobody reads it");
        ASSERT_EQ(d.signal, 0);
        ASSERT_EQ(d.code, 0);
        ASSERT(first);
        ASSERT_NULL(strstr(first + 1, "nobody reads it"));
        ASSERT(strstr(d.said, "45 more like it: task 'fails_when_told'"));
    }
}

/* ---- weft_run where it must not be ------------------------------------------------------------------ */

struct run_results {
    signed char i8;
    short i16;
    int i32;
    long i64;
    unsigned u32;
    void *pointer;
    long part;
};

__attribute__((noinline)) static void helper_that_runs(struct run_results *got)
{
    got->i8 = weft_run(echo_i8, 1);
    got->i16 = weft_run(echo_i16, 1);
    got->i32 = weft_run(echo_i32, 1);
    got->i64 = weft_run(echo_i64, 1);
    got->u32 = weft_run(echo_u32, 1);
    got->pointer = weft_run(echo_pointer, got);
    got->part = weft_run(fill, .base = 1).part[3];
}

struct misled_to_run {
    WEFT_FRAME(int);
    struct run_results *got;
};
static weft_async(misled_to_run)
{
    weft_begin;
    helper_that_runs(f->got);
    weft_end;
}

static void run_inside_a_poll(void *unused)
{
    struct crew crew;
    struct run_results got = {.u32 = 9, .pointer = &got, .part = 9};
    (void)unused;
    crew_start(&crew, 1);
    if (weft_join(weft_spawn(misled_to_run, &got), NULL) < 0) _exit(3);
    crew_stop(&crew);
    bool signed_ones = got.i8 == -EDEADLK && got.i16 == -EDEADLK && got.i32 == -EDEADLK && got.i64 == -EDEADLK;
    bool others = got.u32 == 0 && !got.pointer && got.part == 0;
    _exit(signed_ones && others ? 0 : 4);
}

/* A signed integer says why; what cannot is zero. */
TEST(task_run_inside_a_poll_is_refused)
{
    struct death d = death_of(run_inside_a_poll, NULL);
    expect_refused_in_a_poll(&d, "'misled_to_run'");
}
