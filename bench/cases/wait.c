/* SPDX-License-Identifier: MIT
 *
 * Cases about tasks that wait for one another.
 */
#include "leaves.h"
#include "root.h"

#include <stdatomic.h>
#include <stdlib.h>

/* ---- ping_pong: N pairs, a value there and back ---- */

struct pong {
    WEFT_FRAME(int);
    struct oneshot *ping;
    struct oneshot *back;
    struct bell_wait wait;
};

static weft_async(pong)
{
    weft_begin;
    weft_await(f->wait, bell_wait, &f->ping->bell);
    oneshot_send(f->back, f->ping->value);
    weft_end;
}

struct ping {
    WEFT_FRAME(int64_t);
    int64_t value;
    struct oneshot there;
    struct oneshot back;
    struct bell_wait wait;
    struct weft_join join;
    weft_task *other;
};

static weft_async(ping)
{
    weft_begin;
    oneshot_init(&f->there);
    oneshot_init(&f->back);
    f->other = weft_spawn(pong, &f->there, &f->back);
    oneshot_send(&f->there, f->value);
    weft_await(f->wait, bell_wait, &f->back.bell);
    weft_await(f->join, weft_join, f->other, NULL); /* it borrows from this frame */
    weft_return(f->back.value);
    weft_end;
}

struct pairs {
    WEFT_FRAME(int64_t);
    uint64_t n;
    weft_task **tasks;
    uint64_t i;
    int64_t part;
    struct weft_join join;
};

static weft_async(pairs)
{
    weft_begin;
    for (uint64_t i = 0; i < f->n; i++) f->tasks[i] = weft_spawn(ping, (int64_t)i);
    f->ret = 0;
    for (f->i = 0; f->i < f->n; f->i++) {
        weft_await(f->join, weft_join, f->tasks[f->i], &f->part);
        f->ret += f->part;
    }
    weft_return(f->ret);
    weft_end;
}

BENCH(ping_pong, .n = 100000, .end = root_end)
{
    (void)root_rt(b);
    weft_task **tasks = malloc(b->n * sizeof(weft_task *));
    uint64_t start = bench_now_ns();
    int64_t sum = root_wait(b, weft_spawn(pairs, b->n, tasks));
    double took = bench_per_op(start, b->n);
    free(tasks);
    bench_check(b, (uint64_t)sum, bench_sum_below(b->n));
    return took;
}

/* ---- switch: two tasks hand a token over ---- */

struct player {
    WEFT_FRAME(int64_t);
    uint64_t n;
    struct bell *mine;
    struct bell *other;
    bool first;
    uint64_t i;
    struct bell_wait wait;
};

static weft_async(player)
{
    weft_begin;
    if (f->first) bell_ring(f->other);
    for (f->i = 0; f->i < f->n; f->i++) {
        weft_await(f->wait, bell_wait, f->mine);
        if (!f->first || f->i + 1 < f->n) bell_ring(f->other);
    }
    weft_return((int64_t)f->i);
    weft_end;
}

struct game {
    WEFT_FRAME(int64_t);
    uint64_t n;
    struct bell a;
    struct bell b;
    weft_task *one;
    weft_task *two;
    int64_t part;
    struct weft_join join;
};

static weft_async(game)
{
    weft_begin;
    bell_init(&f->a);
    bell_init(&f->b);
    f->one = weft_spawn(player, f->n, &f->a, &f->b, true);
    f->two = weft_spawn(player, f->n, &f->b, &f->a, false);
    weft_await(f->join, weft_join, f->one, &f->part);
    f->ret = f->part;
    weft_await(f->join, weft_join, f->two, &f->part);
    weft_return(f->ret + f->part);
    weft_end;
}

BENCH(switch, .n = 500000, .end = root_end)
{
    (void)root_rt(b);
    uint64_t start = bench_now_ns();
    int64_t sum = root_wait(b, weft_spawn(game, b->n));
    double took = bench_per_op(start, 2 * b->n);
    bench_check(b, (uint64_t)sum, 2 * b->n);
    return took;
}

/* ---- mem_wait: what a waiting task weighs ---- */

struct waits_forever {
    WEFT_FRAME(int);
    struct bell_wait wait;
};

static struct bell never;
static atomic_long started;

static weft_async(waits_forever)
{
    weft_begin;
    atomic_fetch_add(&started, 1);
    weft_await(f->wait, bell_wait, &never);
    weft_end;
}

struct crowd {
    WEFT_FRAME(int64_t);
    uint64_t n;
    uint64_t i;
    struct weft_yield pause;
};

static weft_async(crowd)
{
    weft_begin;
    for (f->i = 0; f->i < f->n; f->i++) {
        (void)weft_detach(weft_spawn(waits_forever));
        if (f->i % 128 == 127) weft_await(f->pause, weft_yield);
    }
    while (atomic_load(&started) < (long)f->n) weft_await(f->pause, weft_yield);
    weft_return((int64_t)f->n);
    weft_end;
}

static void wake_crowd(struct bench *b)
{
    for (uint64_t i = 0; i < b->n; i++) bell_ring(&never);
    root_end(b);
}

BENCH(mem_wait, .n = 1000000, .once = true, .unit = "B", .end = wake_crowd)
{
    (void)root_rt(b);
    bell_init(&never);
    uint64_t before = bench_rss_bytes();
    int64_t sum = root_wait(b, weft_spawn(crowd, b->n));
    double each = (double)(bench_rss_bytes() - before) / (double)b->n;
    bench_check(b, (uint64_t)sum, b->n);
    return each;
}
