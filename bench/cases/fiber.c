/* SPDX-License-Identifier: MIT
 *
 * The cases whose tasks are fibers: plain functions with a stack each. The roots are fibers, too.
 */
#include "leaves.h"
#include "root.h"

#include <stdlib.h>

/* ---- spawn_fiber -------------------------------------------------------------------------------- */

static void fiber_leaf(struct latch *latch)
{
    latch_count(latch);
}

static int64_t fiber_spawner(uint64_t n)
{
    struct latch latch;

    latch_init(&latch, n);
    for (uint64_t i = 0; i < n; i++)
        (void)weft_detach(weft_go(fiber_leaf, &latch));
    (void)weft_notify_wait(&latch.all);
    return (int64_t)(n - latch_left(&latch));
}

BENCH(spawn_fiber, .n = 1000000, .end = root_end)
{
    uint64_t start = root_start(b);
    return root_finish(b, start, weft_go(fiber_spawner, b->n), b->n, b->n);
}

/* ---- yield_fiber -------------------------------------------------------------------------------- */

static int64_t fiber_yielder(uint64_t each)
{
    uint64_t count = 0;

    for (; count < each; count++)
        (void)weft_yield();
    return (int64_t)count;
}

static int64_t fiber_yielders(uint64_t n, uint64_t each)
{
    weft_task **tasks = malloc(n * sizeof(weft_task *));
    int64_t sum = 0;

    if (!tasks) return -ENOMEM;
    for (uint64_t i = 0; i < n; i++)
        tasks[i] = weft_go(fiber_yielder, each);
    for (uint64_t i = 0; i < n; i++) {
        int64_t part = 0;
        (void)weft_join(tasks[i], &part);
        sum += part;
    }
    free(tasks);
    return sum;
}

BENCH(yield_fiber, .n = 1000, .end = root_end)
{
    uint64_t each = bench_yields_each(b->n);
    uint64_t start = root_start(b);
    weft_task *root = weft_go(fiber_yielders, b->n, each);
    return root_finish(b, start, root, b->n * each, b->n * each);
}

/* ---- switch_fiber ------------------------------------------------------------------------------- */

static int64_t fiber_server(uint64_t n, weft_notify *there, weft_notify *back)
{
    uint64_t count = 0;

    for (; count < n; count++) {
        weft_notify_one(there);
        (void)weft_notify_wait(back);
    }
    return (int64_t)count;
}

static int64_t fiber_returner(uint64_t n, weft_notify *there, weft_notify *back)
{
    uint64_t count = 0;

    for (; count < n; count++) {
        (void)weft_notify_wait(there);
        weft_notify_one(back);
    }
    return (int64_t)count;
}

static int64_t fiber_game(uint64_t n)
{
    weft_notify there;
    weft_notify back;
    int64_t one = 0;
    int64_t two = 0;

    weft_notify_init(&there);
    weft_notify_init(&back);
    weft_task *second = weft_go(fiber_returner, n, &there, &back);
    weft_task *first = weft_go(fiber_server, n, &there, &back);
    (void)weft_join(first, &one);
    (void)weft_join(second, &two);
    return one + two;
}

BENCH(switch_fiber, .n = 500000, .end = root_end)
{
    uint64_t start = root_start(b);
    return root_finish(b, start, weft_go(fiber_game, b->n), 2 * b->n, 2 * b->n);
}

/* ---- skynet_fiber ------------------------------------------------------------------------------- */

static int64_t fiber_node(int64_t number, int64_t size) // NOLINT(misc-no-recursion): by way of weft_go
{
    weft_task *child[10];
    int64_t sum = 0;

    if (size == 1) return number;
    for (int i = 0; i < 10; i++)
        child[i] = weft_go(fiber_node, number + i * (size / 10), size / 10);
    for (int i = 0; i < 10; i++) {
        int64_t part = 0;
        (void)weft_join(child[i], &part);
        sum += part;
    }
    return sum;
}

BENCH(skynet_fiber, .n = 1000000, .end = root_end)
{
    uint64_t leaves = bench_leaves(b);
    uint64_t start = root_start(b);
    weft_task *root = weft_go(fiber_node, (int64_t)0, (int64_t)leaves);
    return root_finish(b, start, root, bench_tree_nodes(leaves), bench_sum_below(leaves));
}
