/* SPDX-License-Identifier: MIT
 *
 * Many tasks of both kinds: one by one, at once, deep, nested, from several threads.
 */
#include "crew.h"
#include "tasks.h"
#include "test.h"

/* ---- many ------------------------------------------------------------------------------------------ */

static int spawn_and_join(int count)
{
    int sum = 0;
    for (int i = 0; i < count; i++) {
        int one;
        int r = i % 2 ? weft_join(weft_go(answers, 1), &one)
                      : weft_join(weft_spawn(answers_too, 1), &one);
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
        weft_await(f->join, weft_join, f->i % 2 ? weft_go(answers, 1) : weft_spawn(answers_too, 1),
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
        task[i] = i % 2 ? weft_spawn(answers_too, 1) : weft_spawn(answers_too, 2);
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

/* The same tree, by the blocks that it holds: from a spawn until its handle is spent. One thread polls all of it. */
static _Atomic int held; /* relaxed, both: counts */
static _Atomic int held_most;

static void holds_one_more(void)
{
    int now = fetch_add_relaxed(&held, 1) + 1;
    if (now > load_relaxed(&held_most)) store_relaxed(&held_most, now);
}

struct frugal {
    WEFT_FRAME(long);
    long leaves;
    int i;
    long part, sum;
    weft_task *kid[10];
    struct weft_join join;
};
static weft_async(frugal)
{
    weft_begin;
    if (f->leaves == 1) weft_return(1);
    for (f->i = 0; f->i < 10; f->i++) {
        f->kid[f->i] = weft_spawn(frugal, .leaves = f->leaves / 10);
        holds_one_more();
    }
    for (f->i = 0; f->i < 10; f->i++) {
        weft_await(f->join, weft_join, f->kid[f->i], &f->part);
        fetch_sub_relaxed(&held, 1);
        if (f->join.ret < 0) weft_return(f->join.ret);
        f->sum += f->part;
    }
    weft_return(f->sum);
    weft_end;
}

/* How deep a tree of so many leaves is, a power of ten. */
static int levels_of(long leaves)
{
    int levels = 0;
    for (; leaves > 1; leaves /= 10)
        levels++;
    return levels;
}

/* The most that was held at once. */
static int holds_at_most(int workers, unsigned tick_max, long leaves)
{
    struct crew crew;
    long got;
    weft_rt_opts opts = {.workers = workers, .seed = test_seed() | 1, .tick_max = tick_max};
    crew_start_with(&crew, &opts);
    store_relaxed(&held, 1);
    store_relaxed(&held_most, 1);
    ASSERT_OK(weft_join(weft_spawn(frugal, .leaves = leaves), &got));
    ASSERT_EQ(got, leaves);
    ASSERT_EQ(load_relaxed(&held), 1);
    crew_stop(&crew);
    return load_relaxed(&held_most);
}

/* A task that joins is gone through at once, and so on down: of each level there are the ten that one task has spawned, and of 111,111 tasks 51. When the
 * joins have lasted some fairness ticks they are left, and the loop begins another branch: each 1,000 polls by default, which makes it 1,755. */
TEST(task_skynet_holds_as_many_blocks_as_it_is_deep)
{
    long leaves = test_scaled(100000) == 100000 ? 100000 : 1000;
    for (int workers = -1; workers <= 1; workers += 2) {
        ASSERT_LE(holds_at_most(workers, 100000, leaves), 1 + 10 * levels_of(leaves));
        ASSERT_LE(holds_at_most(workers, 0, leaves), leaves / 20);
    }
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
