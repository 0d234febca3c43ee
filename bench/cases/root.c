/* SPDX-License-Identifier: MIT
 *
 * root - starts and ends the runtime of a case; turns it, if it is the current thread's.
 */
#include "root.h"

#include <stdio.h>
#include <stdlib.h>

static void require(int r, const char *what)
{
    if (r >= 0) return;
    fprintf(stderr, "weft_bench: %s: %d\n", what, r);
    exit(2);
}

weft_rt *root_rt(struct bench *b)
{
    weft_rt *rt = b->state;

    if (!rt) {
        weft_rt_opts opts = {.workers = b->workers ? (int)b->workers : -1};
        require(weft_rt_new(&opts, &rt), "no runtime");
        b->state = rt;
        (void)weft_rt_enter(rt);
    }
    return rt;
}

void root_end(struct bench *b)
{
    require(weft_rt_stop(b->state, -1), "the runtime did not stop");
    (void)weft_rt_enter(NULL);
}

int64_t root_wait(struct bench *b, weft_task *root)
{
    int64_t result = -1;

    while (!b->workers && root && !weft_done(root))
        require(weft_rt_turn(b->state, -1), "the runtime does not turn");
    require(weft_join(root, &result), "the root task was not joined");
    return result;
}

uint64_t root_start(struct bench *b)
{
    (void)root_rt(b);
    return bench_now_ns();
}

double root_finish(struct bench *b, uint64_t start_ns, weft_task *root, uint64_t ops,
                   uint64_t expected)
{
    int64_t sum = root_wait(b, root);
    double took = bench_per_op(start_ns, ops);

    bench_check(b, (uint64_t)sum, expected);
    return took;
}

/* ---- spawn all, join all ------------------------------------------------------------------------ */

struct spawn_join_all {
    WEFT_FRAME(int64_t);
    root_spawn_all *spawn;
    uint64_t n;
    uint64_t arg;
    weft_task **tasks;
    uint64_t i;
    int64_t part;
    struct weft_join join;
};

static weft_async(spawn_join_all)
{
    weft_begin;
    f->tasks = malloc(f->n * sizeof(weft_task *));
    if (!f->tasks) weft_return(-ENOMEM);
    f->spawn(f->tasks, f->n, f->arg);
    f->ret = 0;
    for (f->i = 0; f->i < f->n; f->i++) {
        weft_await(f->join, weft_join, f->tasks[f->i], &f->part);
        f->ret += f->part;
    }
    free(f->tasks);
    weft_end;
}

weft_task *root_all(root_spawn_all *spawn, uint64_t n, uint64_t arg)
{
    return weft_spawn(spawn_join_all, spawn, n, arg);
}
