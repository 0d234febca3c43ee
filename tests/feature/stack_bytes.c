/* SPDX-License-Identifier: MIT
 *
 * Fibers with a stack of the size they ask for, or of the one that their runtime was told.
 */
#include "base/sanitize.h"
#include "crew.h"
#include "death.h"
#include "test.h"

#include <errno.h>
#include <string.h>

#define KIB 1024

/* Touches `kib` of stack, from the top down. Each level writes to the one above, which keeps compilers from making a loop of it. */
__attribute__((noinline)) static int dig(int kib, volatile char *above)
{
    volatile char spoil[4 * KIB];
    spoil[0] = (char)kib;
    spoil[sizeof(spoil) - 1] = 1;
    *above = 1;
    int deepest = kib <= 4 ? 1 : dig(kib - 4, spoil);
    return deepest * spoil[0] * spoil[sizeof(spoil) - 1];
}

static int digs(int kib)
{
    volatile char top = 0;
    dig(kib, &top);
    return top;
}

static int digs_and_waits(int kib, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        if (digs(kib) != 1) return -1;
        int r = weft_yield();
        if (r < 0) return r;
    }
    return kib;
}

/* A sanitizer's frames are larger: what fills a stack in a plain build overflows there. */
#if defined(WEFT__ASAN) || defined(WEFT__TSAN)
#define DIG 450
#else
#define DIG 900
#endif

static void digs_deep(struct crew *crew)
{
    int got;
    (void)crew;
    ASSERT_OK(weft_join(weft_go_as((.stack_bytes = 1 << 20), digs_and_waits, DIG, 3), &got));
    ASSERT_EQ(got, DIG);
    ASSERT_OK(weft_join(weft_go_as((.stack_bytes = 8 << 20), digs_and_waits, 7 * DIG, 3), &got));
    ASSERT_EQ(got, 7 * DIG);
}

TEST(stack_bytes_hold_what_was_asked_for)
{
    crew_each(digs_deep);
}

struct deep {
    WEFT_FRAME(int);
    int kib;
};
static weft_fiber(deep)
{
    f->ret = digs_and_waits(f->kib, 2);
}

struct polls_deep {
    WEFT_FRAME(int);
    struct deep deep;
};
static weft_async(polls_deep)
{
    weft_begin;
    weft_await(f->deep, deep, .kib = DIG);
    weft_return(f->deep.ret);
    weft_end;
}

static void digs_in_frames(struct crew *crew)
{
    int got;
    (void)crew;
    ASSERT_OK(weft_join(weft_spawn_as((.stack_bytes = 1 << 20), deep, .kib = DIG), &got));
    ASSERT_EQ(got, DIG);
    ASSERT_OK(
        weft_join(weft_spawn_as((.stack_bytes = 1 << 20, .name = "outer"), polls_deep), &got));
    ASSERT_EQ(got, DIG);
}

/* Also the fiber that a stackless task polls. */
TEST(stack_bytes_are_for_all_fibers_of_the_task)
{
    crew_each(digs_in_frames);
}

static void many_sizes(struct crew *crew)
{
    int count = (int)test_scaled(600);
    weft_task **task = calloc((size_t)count, sizeof(*task));
    (void)crew;
    for (int i = 0; i < count; i++) {
        size_t bytes = (size_t)64 * KIB << i % 6;
        task[i] = weft_go_as((.stack_bytes = bytes), digs_and_waits, (int)(bytes / KIB / 3), 3);
    }
    for (int i = 0; i < count; i++) {
        int got;
        ASSERT_OK(weft_join(task[i], &got));
        ASSERT_EQ(got, (64 << i % 6) / 3);
    }
    free(task);
}

TEST(stack_bytes_many_of_all_sizes)
{
    crew_each(many_sizes);
}

/* ---- refused ---- */

static _Atomic uint32_t evaluated;

static int evaluates(void)
{
    fetch_add_relaxed(&evaluated, 1);
    return 1;
}

struct takes_one {
    WEFT_FRAME(int);
    int one;
};
static weft_async(takes_one)
{
    weft_begin;
    weft_return(f->one);
    weft_end;
}

static void absurd(struct crew *crew)
{
    weft_stats before;
    weft_stats after;
    weft_rt_stats(crew->rt, &before);
    ASSERT_NULL(weft_go_as((.stack_bytes = SIZE_MAX), digs, 4));
    ASSERT_NULL(weft_go_as((.stack_bytes = SIZE_MAX, .name = "absurd"), digs, 4));
    ASSERT_NULL(weft_spawn_as((.stack_bytes = SIZE_MAX / 2), takes_one, .one = evaluates()));
    weft_rt_stats(crew->rt, &after);
    ASSERT_EQ(before.spawned, after.spawned);
    ASSERT_EQ(load_relaxed(&evaluated), 0);
}

TEST(stack_bytes_absurd_sizes_are_refused)
{
    crew_each(absurd);
}

/* ---- the runtime's ---- */

/* What a fiber has that asks for nothing: the variable's, else the program's, else 256 KiB. */
struct told {
    const char *variable; /* NULL: not there */
    size_t option;
    size_t own; /* what the task asks for; 0: nothing */
    int kib;    /* to dig */
};

static void told_begin(struct crew *crew, int workers, const struct told *told)
{
    unsetenv("WEFT_STACK");
    if (told->variable) setenv("WEFT_STACK", told->variable, 1);
    weft_rt_opts opts = {.workers = workers, .seed = test_seed() | 1, .stack_bytes = told->option};
    crew_start_with(crew, &opts);
}

/* Both fibers with a plain function and those with a frame. */
static void digs_as_told(const struct told *told)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        int got;
        told_begin(&crew, crew_sizes[i], told);
        ASSERT_OK(
            weft_join(weft_go_as((.stack_bytes = told->own), digs_and_waits, told->kib, 3), &got));
        ASSERT_EQ(got, told->kib);
        ASSERT_OK(weft_join(weft_spawn_as((.stack_bytes = told->own), deep, told->kib), &got));
        ASSERT_EQ(got, told->kib);
        crew_stop(&crew);
    }
}

/* Each is deeper than what it overrules: that one would overflow. */
TEST(stack_bytes_of_the_runtime)
{
    digs_as_told(&(struct told){.option = 1 << 20, .kib = DIG});
    digs_as_told(&(struct told){.option = 64 * KIB, .variable = "1048576", .kib = DIG});
    digs_as_told(
        &(struct told){.option = 64 * KIB, .variable = "65536", .own = 1 << 20, .kib = DIG});
}

/* ---- overflow ---- */

static void overflows(void *arg)
{
    const struct told *told = arg;
    struct crew crew;
    int got;
    told_begin(&crew, 2, told);
    (void)weft_join(weft_go_as((.stack_bytes = told->own), digs_and_waits, told->kib, 1), &got);
}

/* The task, where it was spawned, and the size that it has. */
static void expect_overflow(struct told told, const char *size)
{
    struct death d = death_of(overflows, &told);
    ASSERT_EQ(d.signal, SIGSEGV);
    ASSERT(strstr(d.said, "fiber 'digs_and_waits' (spawned at "));
    ASSERT(strstr(d.said, "stack_bytes.c:"));
    ASSERT(strstr(d.said, size));
}

TEST(stack_bytes_overflow_names_the_size)
{
    expect_overflow((struct told){.kib = 900}, "overflowed its stack of 256 KiB");
    expect_overflow((struct told){.own = 1 << 20, .kib = 3000}, "overflowed its stack of 1024 KiB");
}

/* The variable has the last word over the program, and the task over both, also for less. */
TEST(stack_bytes_overflow_names_the_size_that_was_told)
{
    static const char mib[] = "overflowed its stack of 1024 KiB";
    expect_overflow((struct told){.option = 1 << 20, .kib = 3000}, mib);
    expect_overflow((struct told){.option = 4 << 20, .variable = "1048576", .kib = 3000}, mib);
    expect_overflow((struct told){.option = 64 * KIB, .variable = "1048576", .kib = 3000}, mib);
    expect_overflow(
        (struct told){.option = 4 << 20, .variable = "4194304", .own = 1 << 20, .kib = 3000}, mib);
}
