/* SPDX-License-Identifier: MIT
 *
 * Jobs that do nothing on the blocking pool: what it costs to go there and come back. One awaiter, then sixteen at once.
 */
#include "root.h"

#define AWAITERS 16

static int64_t echo(int64_t i)
{
    return i;
}

/* So many jobs, one at a time. */
struct blocker {
    WEFT_FRAME(int64_t);
    uint64_t n;
    uint64_t i;
    struct weft_blocking job;
};

static weft_async(blocker)
{
    weft_begin;
    f->ret = 0;
    for (f->i = 0; f->i < f->n; f->i++) {
        weft_await(f->job, weft_blocking, weft_bind(echo, (int64_t)f->i));
        f->ret += f->job.ret;
    }
    weft_end;
}

BENCH(blocking, .n = 30000, .end = root_end)
{
    uint64_t start = root_start(b);
    return root_finish(b, start, weft_spawn(blocker, b->n), b->n, bench_sum_below(b->n));
}

static void spawn_blockers(weft_task **tasks, uint64_t awaiters, uint64_t each)
{
    for (uint64_t i = 0; i < awaiters; i++)
        tasks[i] = weft_spawn(blocker, each);
}

BENCH(blocking16, .n = 30000, .end = root_end)
{
    uint64_t each = b->n / AWAITERS;
    uint64_t start = root_start(b);
    weft_task *root = root_all(spawn_blockers, AWAITERS, each);
    return root_finish(b, start, root, each * AWAITERS, AWAITERS * bench_sum_below(each));
}
