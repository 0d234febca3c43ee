/* SPDX-License-Identifier: MIT
 *
 * Cases about fork and join: trees of tasks.
 */
#include "root.h"

/* ---- skynet: ten children a node, N leaves; nanoseconds per task, inner ones counted ------------ */

struct leaf {
    WEFT_FRAME(int64_t);
    int64_t number;
};

static weft_async(leaf)
{
    weft_begin;
    weft_return(f->number);
    weft_end;
}

struct node {
    WEFT_FRAME(int64_t);
    int64_t number; /* of its first leaf */
    int64_t size;   /* leaves below it: 10 or more */
    int i;
    int64_t part;
    struct weft_join join;
    weft_task *child[10];
};
weft_pollfn node_poll;

static weft_task *spawn_child(int64_t number, int64_t size)
{
    return size == 1 ? weft_spawn(leaf, number) : weft_spawn(node, number, size);
}

weft_async(node)
{
    weft_begin;
    for (int i = 0; i < 10; i++)
        f->child[i] = spawn_child(f->number + i * (f->size / 10), f->size / 10);
    f->ret = 0;
    for (f->i = 0; f->i < 10; f->i++) {
        weft_await(f->join, weft_join, f->child[f->i], &f->part);
        f->ret += f->part;
    }
    weft_end;
}

BENCH(skynet, .n = 1000000, .end = root_end)
{
    uint64_t leaves = bench_leaves(b);
    uint64_t start = root_start(b);
    weft_task *root = spawn_child(0, (int64_t)leaves);
    return root_finish(b, start, root, bench_tree_nodes(leaves), bench_sum_below(leaves));
}

/* ---- fib: spawn n - 1, compute n - 2 inline, join; nanoseconds per call, inline ones counted ---- */

struct fib {
    WEFT_FRAME(int64_t);
    int64_t n;
    weft_task *left;
    struct fib *right;
    int64_t part;
    struct weft_join join;
};

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

static uint64_t fib_plain(uint64_t n)
{
    uint64_t x = 0;
    uint64_t y = 1;

    for (; n > 0; n--) {
        uint64_t sum = x + y;
        x = y;
        y = sum;
    }
    return x;
}

BENCH(fib, .n = 30, .end = root_end)
{
    uint64_t start = root_start(b);
    weft_task *root = weft_spawn(fib, (int64_t)b->n);
    return root_finish(b, start, root, 2 * fib_plain(b->n + 1) - 1, fib_plain(b->n));
}
