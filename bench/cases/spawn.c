/* SPDX-License-Identifier: MIT
 *
 * Cases about making tasks, ending them, and giving the thread back.
 */
#include "leaves.h"
#include "root.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* ---- spawn: N detached tasks, each counts one down; the last one tells ---- */

static atomic_long left;
static struct bell all_done;

struct leaf {
    WEFT_FRAME(int);
};

static weft_async(leaf)
{
    weft_begin;
    if (atomic_fetch_sub_explicit(&left, 1, memory_order_relaxed) == 1) bell_ring(&all_done);
    weft_end;
}

struct spawner {
    WEFT_FRAME(int64_t);
    uint64_t n;
    struct bell_wait wait;
};

static weft_async(spawner)
{
    weft_begin;
    for (uint64_t i = 0; i < f->n; i++) (void)weft_detach(weft_spawn(leaf));
    weft_await(f->wait, bell_wait, &all_done);
    weft_return((int64_t)f->n - atomic_load(&left));
    weft_end;
}

static void expect_leaves(uint64_t n)
{
    atomic_store(&left, (long)n);
    bell_init(&all_done);
}

BENCH(spawn, .n = 1000000, .end = root_end)
{
    (void)root_rt(b);
    expect_leaves(b->n);
    uint64_t start = bench_now_ns();
    int64_t sum = root_wait(b, weft_spawn(spawner, b->n));
    double took = bench_per_op(start, b->n);
    bench_check(b, (uint64_t)sum, b->n);
    return took;
}

/* ---- spawn_remote: the same from a thread outside ---- */

struct waiter_task {
    WEFT_FRAME(int64_t);
    struct bell_wait wait;
};

static weft_async(waiter_task)
{
    weft_begin;
    weft_await(f->wait, bell_wait, &all_done);
    weft_return(0);
    weft_end;
}

BENCH(spawn_remote, .n = 300000, .end = root_end)
{
    (void)root_rt(b);
    expect_leaves(b->n);
    weft_task *waits = weft_spawn(waiter_task);
    uint64_t start = bench_now_ns();
    for (uint64_t i = 0; i < b->n; i++) (void)weft_detach(weft_spawn(leaf));
    (void)root_wait(b, waits);
    double took = bench_per_op(start, b->n);
    bench_check(b, b->n - (uint64_t)atomic_load(&left), b->n);
    return took;
}

/* ---- spawn_join, join_all, tasks100k ---- */

struct value {
    WEFT_FRAME(int64_t);
    int64_t of;
};

static weft_async(value)
{
    weft_begin;
    weft_return(f->of);
    weft_end;
}

struct one_by_one {
    WEFT_FRAME(int64_t);
    uint64_t n;
    uint64_t i;
    int64_t part;
    struct weft_join join;
};

static weft_async(one_by_one)
{
    weft_begin;
    f->ret = 0;
    for (f->i = 0; f->i < f->n; f->i++) {
        weft_await(f->join, weft_join, weft_spawn(value, (int64_t)f->i), &f->part);
        f->ret += f->part;
    }
    weft_return(f->ret);
    weft_end;
}

BENCH(spawn_join, .n = 300000, .end = root_end)
{
    (void)root_rt(b);
    uint64_t start = bench_now_ns();
    int64_t sum = root_wait(b, weft_spawn(one_by_one, b->n));
    double took = bench_per_op(start, b->n);
    bench_check(b, (uint64_t)sum, bench_sum_below(b->n));
    return took;
}

struct all_at_once {
    WEFT_FRAME(int64_t);
    uint64_t n;
    weft_task **tasks;
    uint64_t i;
    int64_t part;
    struct weft_join join;
};

static weft_async(all_at_once)
{
    weft_begin;
    for (uint64_t i = 0; i < f->n; i++) f->tasks[i] = weft_spawn(value, (int64_t)i);
    f->ret = 0;
    for (f->i = 0; f->i < f->n; f->i++) {
        weft_await(f->join, weft_join, f->tasks[f->i], &f->part);
        f->ret += f->part;
    }
    weft_return(f->ret);
    weft_end;
}

static int64_t join_all_once(struct bench *b)
{
    weft_task **tasks = malloc(b->n * sizeof(weft_task *));
    int64_t sum = root_wait(b, weft_spawn(all_at_once, b->n, tasks));
    free(tasks);
    return sum;
}

BENCH(join_all, .n = 100000, .end = root_end)
{
    (void)root_rt(b);
    uint64_t start = bench_now_ns();
    int64_t sum = join_all_once(b);
    double took = bench_per_op(start, b->n);
    bench_check(b, (uint64_t)sum, bench_sum_below(b->n));
    return took;
}

BENCH(tasks100k, .n = 100000, .end = root_end, .unit = "ms")
{
    (void)root_rt(b);
    uint64_t start = bench_now_ns();
    int64_t sum = join_all_once(b);
    double took = (double)(bench_now_ns() - start) / 1e6;
    if (b->round == BENCH_ROUNDS - 1) bench_also(b, "rss", (double)bench_rss_peak_bytes() / 1e6);
    bench_check(b, (uint64_t)sum == bench_sum_below(b->n) ? b->n : 0, b->n);
    return took;
}

/* ---- yield ---- */

struct yielder {
    WEFT_FRAME(int64_t);
    uint64_t each;
    uint64_t i;
    struct weft_yield pause;
};

static weft_async(yielder)
{
    weft_begin;
    for (f->i = 0; f->i < f->each; f->i++) weft_await(f->pause, weft_yield);
    weft_return((int64_t)f->i);
    weft_end;
}

struct yield_root {
    WEFT_FRAME(int64_t);
    uint64_t n;
    uint64_t each;
    weft_task **tasks;
    uint64_t i;
    int64_t part;
    struct weft_join join;
};

static weft_async(yield_root)
{
    weft_begin;
    for (uint64_t i = 0; i < f->n; i++) f->tasks[i] = weft_spawn(yielder, f->each);
    f->ret = 0;
    for (f->i = 0; f->i < f->n; f->i++) {
        weft_await(f->join, weft_join, f->tasks[f->i], &f->part);
        f->ret += f->part;
    }
    weft_return(f->ret);
    weft_end;
}

BENCH(yield, .n = 1000, .end = root_end)
{
    (void)root_rt(b);
    uint64_t n = b->n ? b->n : 1;
    uint64_t each = 1000000 / n ? 1000000 / n : 1;
    weft_task **tasks = malloc(n * sizeof(weft_task *));
    uint64_t start = bench_now_ns();
    int64_t sum = root_wait(b, weft_spawn(yield_root, n, each, tasks));
    double took = bench_per_op(start, n * each);
    free(tasks);
    bench_check(b, (uint64_t)sum, n * each);
    return took;
}

/* ---- chained: each task spawns the next ---- */

struct link {
    WEFT_FRAME(int);
    uint64_t left;
    uint64_t count;
};

static _Atomic uint64_t chain_count;

static weft_async(link)
{
    weft_begin;
    if (f->left == 0) {
        atomic_store(&chain_count, f->count);
        bell_ring(&all_done);
    } else {
        (void)weft_detach(weft_spawn(link, f->left - 1, f->count + 1));
    }
    weft_end;
}

BENCH(chained, .n = 300000, .end = root_end)
{
    (void)root_rt(b);
    bell_init(&all_done);
    weft_task *waits = weft_spawn(waiter_task);
    uint64_t start = bench_now_ns();
    (void)weft_detach(weft_spawn(link, b->n, 0));
    (void)root_wait(b, waits);
    double took = bench_per_op(start, b->n);
    bench_check(b, atomic_load(&chain_count), b->n);
    return took;
}

/* ---- skynet and fib: fork and join ---- */

struct node {
    WEFT_FRAME(int64_t);
    int64_t number;
    int64_t size;
    int i;
    int64_t part;
    struct weft_join join;
    weft_task *child[10];
};

static weft_async(node)
{
    weft_begin;
    if (f->size == 1) weft_return(f->number);
    for (int i = 0; i < 10; i++) f->child[i] = weft_spawn(node, f->number + i * (f->size / 10), f->size / 10);
    f->ret = 0;
    for (f->i = 0; f->i < 10; f->i++) {
        weft_await(f->join, weft_join, f->child[f->i], &f->part);
        f->ret += f->part;
    }
    weft_return(f->ret);
    weft_end;
}

BENCH(skynet, .n = 1000000, .end = root_end)
{
    (void)root_rt(b);
    uint64_t start = bench_now_ns();
    int64_t sum = root_wait(b, weft_spawn(node, 0, (int64_t)b->n));
    double took = bench_per_op(start, (10 * b->n - 1) / 9);
    bench_check(b, (uint64_t)sum, bench_sum_below(b->n));
    return took;
}

struct fib {
    WEFT_FRAME(int64_t);
    int64_t n;
    weft_task *left;
    struct fib *right;
    int64_t part;
    struct weft_join join;
};

static int64_t fib_plain(int64_t n)
{
    int64_t x = 0;
    int64_t y = 1;
    for (; n > 0; n--) {
        int64_t sum = x + y;
        x = y;
        y = sum;
    }
    return x;
}

static weft_async(fib)
{
    weft_begin;
    if (f->n < 2) weft_return(f->n);
    f->left = weft_spawn(fib, f->n - 1);
    weft_await_boxed(f->right, fib, f->n - 2);
    f->ret = weft_unbox(f->right);
    weft_await(f->join, weft_join, f->left, &f->part);
    weft_return(f->ret + f->part);
    weft_end;
}

BENCH(fib, .n = 30, .end = root_end)
{
    (void)root_rt(b);
    uint64_t start = bench_now_ns();
    int64_t sum = root_wait(b, weft_spawn(fib, (int64_t)b->n));
    double took = bench_per_op(start, (uint64_t)(2 * fib_plain((int64_t)b->n + 1) - 1));
    bench_check(b, (uint64_t)sum, (uint64_t)fib_plain((int64_t)b->n));
    return took;
}
