/* SPDX-License-Identifier: MIT
 *
 * Tasks of both kinds on real runtimes: spawned, joined, detached, looked at; many, deep and nested.
 */
#include "crew.h"
#include "death.h"
#include "test.h"

#include <errno.h>
#include <limits.h>
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

/* ---- handles --------------------------------------------------------------------------------------- */

static void refusals(struct crew *crew)
{
    long wide = 5;
    short narrow = 6;
    (void)crew;
    ASSERT_EQ(weft_join((weft_task *)NULL, &wide), -ECHILD);
    ASSERT_EQ(weft_detach(NULL), -ECHILD);
    ASSERT(weft_done(NULL));
    weft_cancel(NULL);
    weft_unref(NULL);
    ASSERT_EQ(weft_join(weft_go(go_i32, 1), &wide), -EINVAL);
    ASSERT_EQ(weft_join(weft_spawn(echo_i32, 1), &narrow), -EINVAL);
    ASSERT_EQ(wide, 5);
    ASSERT_EQ(narrow, 6);
    ASSERT_OK(weft_join(weft_go(go_i32, 1), (int *)NULL));
    ASSERT_OK(weft_join(weft_spawn(echo_i32, 1), NULL));
}

/* A handle whose join was refused is spent: the harness would see the block that stays. */
TEST(task_join_refuses_and_spends_the_handle)
{
    crew_each(refusals);
}

static _Atomic uint64_t ran;

static void count_one(void)
{
    fetch_add_relaxed(&ran, 1);
}

struct count_two {
    WEFT_FRAME(int);
    struct weft_yield pause;
};
static weft_async(count_two)
{
    weft_begin;
    weft_await(f->pause, weft_yield);
    fetch_add_relaxed(&ran, 1);
    weft_end;
}

static void detached(struct crew *crew)
{
    uint64_t count = test_scaled(2000);
    (void)crew;
    store_relaxed(&ran, 0);
    for (uint64_t i = 0; i < count; i++) {
        ASSERT_OK(weft_detach(weft_go(count_one)));
        ASSERT_OK(weft_detach(weft_spawn(count_two)));
    }
    CREW_UNTIL(load_relaxed(&ran) == 2 * count);
}

TEST(task_detached_tasks_all_run)
{
    crew_each(detached);
}

static _Atomic bool released;

/* A fiber that ends when it is told to. */
static int until_released(void)
{
    while (!load_acquire(&released)) /* acquire: a flag of the test's */
        (void)weft_yield();
    return 3;
}

static void looked_at(struct crew *crew)
{
    int three = 0;
    (void)crew;
    store_relaxed(&released, false);
    weft_task *task = weft_go(until_released);
    weft_task *shared = weft_ref(task);
    ASSERT_PTR(shared, task);
    ASSERT(!weft_done(task));
    ASSERT_STR(weft_task_name(task), "until_released");
    uint64_t id = weft_task_id(task);
    store_release(&released, true);
    ASSERT_OK(weft_join(task, &three));
    ASSERT_EQ(three, 3);
    ASSERT(weft_done(shared));
    ASSERT_EQ(weft_task_id(shared), id);
    weft_cancel(shared);
    weft_unref(shared);
}

TEST(task_references_outlive_the_join)
{
    crew_each(looked_at);
}

static void many_references(struct crew *crew)
{
    (void)crew;
    weft_task *task = weft_go(count_one);
    uint32_t count = 0;
    while (weft_ref(task))
        count++;
    ASSERT_EQ(count, 65534); /* the handle is one, too */
    for (uint32_t i = 0; i < count; i++)
        weft_unref(task);
    ASSERT_OK(weft_join(task, NULL));
}

TEST(task_references_end_at_65535)
{
    crew_each(many_references);
}

static int compare_ids(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;
    return *x < *y ? -1 : *x > *y;
}

static void ids(struct crew *crew)
{
    enum { COUNT = 500 };
    weft_task *task[COUNT];
    uint64_t id[COUNT];
    (void)crew;
    store_relaxed(&released, false);
    for (int i = 0; i < COUNT; i++) {
        task[i] = weft_go(until_released);
        id[i] = weft_task_id(task[i]);
    }
    qsort(id, COUNT, sizeof(id[0]), compare_ids);
    for (int i = 1; i < COUNT; i++)
        ASSERT(id[i - 1] != id[i]);
    store_release(&released, true);
    for (int i = 0; i < COUNT; i++)
        ASSERT_OK(weft_join(task[i], (int *)NULL));
}

TEST(task_ids_are_unique_among_the_living)
{
    crew_each(ids);
}

static int sees_itself(uint64_t *id)
{
    *id = weft_task_id(weft_self());
    int r = weft_yield();
    return r < 0 ? r : *id == weft_task_id(weft_self());
}

struct sees_itself_too {
    WEFT_FRAME(int);
    uint64_t *id;
    struct weft_yield pause;
};
static weft_async(sees_itself_too)
{
    weft_begin;
    *f->id = weft_task_id(weft_self());
    weft_await(f->pause, weft_yield);
    weft_return(*f->id == weft_task_id(weft_self()));
    weft_end;
}

static void self(struct crew *crew)
{
    uint64_t id;
    int same;
    (void)crew;
    ASSERT_NULL(weft_self());
    weft_task *task = weft_go(sees_itself, &id);
    uint64_t known = weft_task_id(task);
    ASSERT_OK(weft_join(task, &same));
    ASSERT_EQ(same, 1);
    ASSERT_EQ(id, known);
    task = weft_spawn(sees_itself_too, &id);
    known = weft_task_id(task);
    ASSERT_OK(weft_join(task, &same));
    ASSERT_EQ(same, 1);
    ASSERT_EQ(id, known);
}

TEST(task_self_is_who_runs)
{
    crew_each(self);
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

/* Fifty handles of one place: dropped before the end, after it, at any moment, and some joined. */
static void fails_often(void *workers)
{
    struct crew crew;
    weft_stats stats;
    weft_task *task[50];
    (void)workers;
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
    weft_task *stopped = weft_go(until_released); /* cancelled by the stop: no failure */
    (void)weft_detach(stopped);
    store_release(&released, true);
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

/* ---- many ------------------------------------------------------------------------------------------ */

static int spawn_and_join(int count)
{
    int sum = 0;
    for (int i = 0; i < count; i++) {
        int one;
        int r =
            i % 2 ? weft_join(weft_go(go_i32, 1), &one) : weft_join(weft_spawn(echo_i32, 1), &one);
        if (r < 0) return r;
        sum += one;
    }
    return sum;
}

struct join_many {
    WEFT_FRAME(int);
    int count;
    int i, one, sum;
    struct weft_join join;
};
static weft_async(join_many)
{
    weft_begin;
    for (f->i = 0; f->i < f->count; f->i++) {
        weft_await(f->join, weft_join, f->i % 2 ? weft_go(go_i32, 1) : weft_spawn(echo_i32, 1),
                   &f->one);
        if (f->join.ret < 0) weft_return(f->join.ret);
        f->sum += f->one;
    }
    weft_return(f->sum);
    weft_end;
}

static void a_hundred_thousand(struct crew *crew)
{
    int count = (int)test_scaled(50000);
    int sum;
    (void)crew;
    ASSERT_OK(weft_join(weft_go(spawn_and_join, count), &sum));
    ASSERT_EQ(sum, count);
    ASSERT_OK(weft_join(weft_spawn(join_many, .count = count), &sum));
    ASSERT_EQ(sum, count);
}

TEST(task_a_hundred_thousand_one_by_one)
{
    crew_each(a_hundred_thousand);
}

static int spawn_all_then_join(int count)
{
    weft_task **task = malloc((size_t)count * sizeof(*task));
    int sum = 0;
    for (int i = 0; i < count; i++)
        task[i] = i % 2 ? weft_spawn(echo_i32, 1) : weft_spawn(echo_i32, 2);
    for (int i = 0; i < count; i++) {
        int one = 0;
        ASSERT_OK(weft_join(task[i], &one));
        sum += one;
    }
    free(task);
    return sum;
}

static void all_at_once(struct crew *crew)
{
    int count = (int)test_scaled(100000) / 2 * 2;
    int sum;
    (void)crew;
    ASSERT_EQ(spawn_all_then_join(count), count / 2 * 3); /* from outside */
    ASSERT_OK(weft_join(weft_go(spawn_all_then_join, count), &sum));
    ASSERT_EQ(sum, count / 2 * 3);
}

TEST(task_a_hundred_thousand_at_once)
{
    crew_each(all_at_once);
}

/* Each waits for the next: all of them live at the same time. */
static int link_fiber(int left)
{
    int below = 0;
    if (left == 0) return 0;
    int r = weft_join(weft_go(link_fiber, left - 1), &below);
    return r < 0 ? r : below < 0 ? below : below + 1;
}

struct link_on {
    WEFT_FRAME(int);
    int left;
    int below;
    struct weft_join join;
};
static weft_async(link_on)
{
    weft_begin;
    if (f->left == 0) weft_return(0);
    weft_await(f->join, weft_join, weft_spawn(link_on, .left = f->left - 1), &f->below);
    if (f->join.ret < 0) weft_return(f->join.ret);
    weft_return(f->below + 1);
    weft_end;
}

static void deep(struct crew *crew)
{
    int depth = (int)test_scaled(100000);
    int fibers = (int)test_scaled(5000);
    int got;
    (void)crew;
    ASSERT_OK(weft_join(weft_spawn(link_on, .left = depth), &got));
    ASSERT_EQ(got, depth);
    ASSERT_OK(weft_join(weft_go(link_fiber, fibers), &got));
    ASSERT_EQ(got, fibers);
}

TEST(task_chain_a_hundred_thousand_deep)
{
    crew_each(deep);
}

struct skynet {
    WEFT_FRAME(long);
    long first, leaves;
    int i;
    long sum;
    long part[10];
    weft_task *kid[10];
    struct weft_join join;
};
static weft_async(skynet)
{
    weft_begin;
    if (f->leaves == 1) weft_return(f->first);
    for (f->i = 0; f->i < 10; f->i++) {
        f->kid[f->i] = weft_spawn(skynet, .first = f->first + f->i * (f->leaves / 10),
                                  .leaves = f->leaves / 10);
    }
    for (f->i = 0; f->i < 10; f->i++) {
        weft_await(f->join, weft_join, f->kid[f->i], &f->part[f->i]);
        if (f->join.ret < 0) weft_return(f->join.ret);
        f->sum += f->part[f->i];
    }
    weft_return(f->sum);
    weft_end;
}

static long skynet_fiber(long first, long leaves)
{
    weft_task *kid[10];
    long sum = 0;
    if (leaves == 1) return first;
    for (int i = 0; i < 10; i++)
        kid[i] = weft_go(skynet_fiber, first + i * (leaves / 10), leaves / 10);
    for (int i = 0; i < 10; i++) {
        long part;
        int r = weft_join(kid[i], &part);
        if (r < 0) return r;
        if (part < 0) return part;
        sum += part;
    }
    return sum;
}

static void skynets(struct crew *crew)
{
    long leaves = test_scaled(100000) == 100000 ? 100000 : 1000;
    long fibers = leaves / 10;
    long sum;
    (void)crew;
    ASSERT_OK(weft_join(weft_spawn(skynet, .first = 0, .leaves = leaves), &sum));
    ASSERT_EQ(sum, leaves * (leaves - 1) / 2);
    ASSERT_OK(weft_join(weft_go(skynet_fiber, 0, fibers), &sum));
    ASSERT_EQ(sum, fibers * (fibers - 1) / 2);
}

TEST(task_skynet_of_both_kinds)
{
    crew_each(skynets);
}

/* ---- from where -------------------------------------------------------------------------------------- */

struct outsider {
    pthread_t thread;
    weft_rt *rt;
    int sum;
};

static void *spawn_from_outside(void *arg)
{
    struct outsider *me = arg;
    (void)weft_rt_enter(me->rt);
    me->sum = spawn_and_join((int)test_scaled(1000));
    return NULL;
}

static void outsiders(struct crew *crew)
{
    struct outsider o[4];
    for (int i = 0; i < 4; i++) {
        o[i].rt = crew->rt;
        ASSERT_OK(pthread_create(&o[i].thread, NULL, spawn_from_outside, &o[i]));
    }
    for (int i = 0; i < 4; i++) {
        ASSERT_OK(pthread_join(o[i].thread, NULL));
        ASSERT_EQ(o[i].sum, test_scaled(1000));
    }
}

TEST(task_spawned_by_four_threads_at_once)
{
    crew_each(outsiders);
}

static int awaits_both_ways(int depth);

struct awaits_a_fiber {
    WEFT_FRAME(int);
    int depth;
    int got;
    struct weft_join join;
};
static weft_async(awaits_a_fiber)
{
    weft_begin;
    weft_await(f->join, weft_join, weft_go(awaits_both_ways, f->depth - 1), &f->got);
    if (f->join.ret < 0) weft_return(f->join.ret);
    weft_return(f->got + 1);
    weft_end;
}

/* Spawned, then run on the fiber's own stack: the callee's kind is of no interest. */
static int awaits_both_ways(int depth)
{
    int got;
    if (depth <= 0) return 0;
    if (depth % 4 == 0) return weft_run(awaits_a_fiber, .depth = depth - 1) + 1;
    int r = weft_join(weft_spawn(awaits_a_fiber, .depth = depth - 1), &got);
    return r < 0 ? r : got + 1;
}

static void both_ways(struct crew *crew)
{
    int got;
    (void)crew;
    ASSERT_OK(weft_join(weft_go(awaits_both_ways, 60), &got));
    ASSERT_EQ(got, 60);
    ASSERT_EQ(weft_run(awaits_a_fiber, .depth = 60), 61);
}

TEST(task_kinds_await_each_other)
{
    crew_each(both_ways);
}

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

/* ---- no runtime; call forms where they must not be ------------------------------------------------------ */

TEST(task_without_a_runtime_there_is_no_task)
{
    int got;
    ASSERT_NULL(weft_rt_current());
    weft_task *task = weft_go(count_one);
    ASSERT_NULL(task);
    ASSERT_EQ(weft_join(weft_spawn(echo_i32, 1), &got), -ECHILD);
    ASSERT_EQ(weft_run(echo_i32, 9), 9);
    ASSERT_OK(weft_yield());
}

__attribute__((noinline)) static int helper_that_joins(void)
{
    int got;
    weft_task *task = weft_spawn(echo_i32, 1);
    int r = weft_join(task, &got);
    if (r == -EDEADLK) (void)weft_detach(task); /* nothing was taken */
    return r;
}

struct misled {
    WEFT_FRAME(int);
};
static weft_async(misled)
{
    weft_begin;
    weft_return(helper_that_joins());
    weft_end;
}

static void join_inside_a_poll(void *unused)
{
    struct crew crew;
    int got = 0;
    (void)unused;
    crew_start(&crew, 1);
    if (weft_join(weft_spawn(misled), &got) < 0) _exit(3);
    crew_stop(&crew);
    _exit(got == -EDEADLK ? 0 : 4);
}

TEST(task_join_inside_a_poll_is_refused)
{
    struct death d = death_of(join_inside_a_poll, NULL);
    ASSERT(strstr(d.said, "'misled'"));
    ASSERT(strstr(d.said, "waits inside a poll"));
#ifdef WEFT_DEBUG
    ASSERT_EQ(d.signal, SIGABRT);
#else
    ASSERT_EQ(d.signal, 0);
    ASSERT_EQ(d.code, 0);
#endif
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

/* A signed integer says why; what cannot is zero. Debug builds stop there. */
TEST(task_run_inside_a_poll_is_refused)
{
    struct death d = death_of(run_inside_a_poll, NULL);
    ASSERT(strstr(d.said, "'misled_to_run'"));
    ASSERT(strstr(d.said, "waits inside a poll"));
#ifdef WEFT_DEBUG
    ASSERT_EQ(d.signal, SIGABRT);
#else
    ASSERT_EQ(d.signal, 0);
    ASSERT_EQ(d.code, 0);
#endif
}
