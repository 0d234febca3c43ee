/* SPDX-License-Identifier: MIT
 *
 * Cases about making tasks, ending them, and giving the thread back.
 */
#include "leaves.h"
#include "root.h"

#include <pthread.h>
#include <stdlib.h>

/* ---- spawn: N detached tasks, each counts one down; the last one tells -------------------------- */

struct leaf {
    WEFT_FRAME(int);
    struct latch *latch;
};

static weft_async(leaf)
{
    weft_begin;
    latch_count(f->latch);
    weft_end;
}

static void spawn_leaves(struct latch *latch, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        (void)weft_detach(weft_spawn(leaf, latch));
}

struct spawner {
    WEFT_FRAME(int64_t);
    uint64_t n;
    struct latch latch;
    struct weft_notify_wait wait;
};

static weft_async(spawner)
{
    weft_begin;
    latch_init(&f->latch, f->n);
    spawn_leaves(&f->latch, f->n);
    weft_await(f->wait, weft_notify_wait, &f->latch.all);
    weft_return((int64_t)(f->n - latch_left(&f->latch)));
    weft_end;
}

BENCH(spawn, .n = 1000000, .end = root_end)
{
    uint64_t start = root_start(b);
    return root_finish(b, start, weft_spawn(spawner, b->n), b->n, b->n);
}

/* ---- spawn_remote: the same from a thread outside, which keeps the time ------------------------- */

struct outside {
    struct bench *b;
    struct latch latch;
    weft_notify over;
    double took;
};

static void *spawn_from_outside(void *arg)
{
    struct outside *o = arg;

    (void)weft_rt_enter(o->b->state);
    uint64_t start = bench_now_ns();
    spawn_leaves(&o->latch, o->b->n);
    (void)weft_notify_wait(&o->latch.all);
    o->took = bench_per_op(start, o->b->n);
    weft_notify_one(&o->over);
    return NULL;
}

struct bystander {
    WEFT_FRAME(int64_t);
    weft_notify *over;
    struct weft_notify_wait wait;
};

static weft_async(bystander)
{
    weft_begin;
    weft_await(f->wait, weft_notify_wait, f->over);
    weft_return(f->wait.ret);
    weft_end;
}

BENCH(spawn_remote, .n = 300000, .end = root_end)
{
    struct outside o = {.b = b};
    pthread_t thread;

    (void)root_rt(b);
    latch_init(&o.latch, b->n);
    weft_notify_init(&o.over);
    weft_task *root = weft_spawn(bystander, &o.over);
    if (pthread_create(&thread, NULL, spawn_from_outside, &o) != 0) abort();
    (void)root_wait(b, root);
    (void)pthread_join(thread, NULL);
    bench_check(b, b->n - latch_left(&o.latch), b->n);
    return o.took;
}

/* ---- spawn_join, join_all ----------------------------------------------------------------------- */

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
    weft_end;
}

BENCH(spawn_join, .n = 300000, .end = root_end)
{
    uint64_t start = root_start(b);
    return root_finish(b, start, weft_spawn(one_by_one, b->n), b->n, bench_sum_below(b->n));
}

static void spawn_values(weft_task **tasks, uint64_t n, uint64_t unused)
{
    (void)unused;
    for (uint64_t i = 0; i < n; i++)
        tasks[i] = weft_spawn(value, (int64_t)i);
}

BENCH(join_all, .n = 100000, .end = root_end)
{
    uint64_t start = root_start(b);
    return root_finish(b, start, root_all(spawn_values, b->n, 0), b->n, bench_sum_below(b->n));
}

/* ---- tasks100k: milliseconds, and the process's peak -------------------------------------------- */

struct empty {
    WEFT_FRAME(int64_t);
};

static weft_async(empty)
{
    weft_begin;
    weft_return(1); /* to be counted */
    weft_end;
}

static void spawn_empty(weft_task **tasks, uint64_t n, uint64_t unused)
{
    (void)unused;
    for (uint64_t i = 0; i < n; i++)
        tasks[i] = weft_spawn(empty);
}

BENCH(tasks100k, .n = 100000, .end = root_end, .unit = "ms")
{
    uint64_t start = root_start(b);
    double each_ns = root_finish(b, start, root_all(spawn_empty, b->n, 0), b->n, b->n);

    if (b->round == BENCH_ROUNDS - 1) bench_also(b, "rss", (double)bench_rss_peak_bytes() / 1e6);
    return each_ns * (double)b->n / 1e6;
}

/* ---- yield: N tasks that yield a million times together ----------------------------------------- */

struct yielder {
    WEFT_FRAME(int64_t);
    uint64_t each;
    struct weft_yield pause;
};

static weft_async(yielder)
{
    weft_begin;
    for (f->ret = 0; f->ret < (int64_t)f->each; f->ret++)
        weft_await(f->pause, weft_yield);
    weft_end;
}

static void spawn_yielders(weft_task **tasks, uint64_t n, uint64_t each)
{
    for (uint64_t i = 0; i < n; i++)
        tasks[i] = weft_spawn(yielder, each);
}

BENCH(yield, .n = 1000, .end = root_end)
{
    uint64_t each = bench_yields_each(b->n);
    uint64_t start = root_start(b);
    weft_task *root = root_all(spawn_yielders, b->n, each);
    return root_finish(b, start, root, b->n * each, b->n * each);
}

/* ---- chained: each task spawns the next, N deep ------------------------------------------------- */

struct link {
    WEFT_FRAME(int);
    uint64_t left;
    uint64_t count;
    struct oneshot *end;
};

static weft_async(link)
{
    weft_begin;
    if (f->left == 0) {
        oneshot_send(f->end, (int64_t)f->count);
    } else {
        (void)weft_detach(weft_spawn(link, f->left - 1, f->count + 1, f->end));
    }
    weft_end;
}

struct chain {
    WEFT_FRAME(int64_t);
    uint64_t n;
    struct oneshot end;
    struct weft_notify_wait wait;
};

static weft_async(chain)
{
    weft_begin;
    oneshot_init(&f->end);
    (void)weft_detach(weft_spawn(link, f->n, 0, &f->end));
    weft_await(f->wait, weft_notify_wait, &f->end.came);
    weft_return(f->end.value);
    weft_end;
}

BENCH(chained, .n = 300000, .end = root_end)
{
    uint64_t start = root_start(b);
    return root_finish(b, start, weft_spawn(chain, b->n), b->n, b->n);
}
