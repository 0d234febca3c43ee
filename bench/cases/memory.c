/* SPDX-License-Identifier: MIT
 *
 * Cases about resident memory: N tasks that wait for a notify which nobody tells; bytes of each.
 *
 * Nothing of a case is allocated beside the tasks, so what grew is theirs. The end of the runtime
 * cancels them.
 */
#include "leaves.h"
#include "root.h"

static weft_notify never;
static struct latch started;

/* ---- mem_wait ----------------------------------------------------------------------------------- */

struct waits {
    WEFT_FRAME(int);
    struct weft_notify_wait wait;
};

static weft_async(waits)
{
    weft_begin;
    latch_count(&started);
    weft_await(f->wait, weft_notify_wait, &never);
    weft_end;
}

struct crowd {
    WEFT_FRAME(int64_t);
    uint64_t n;
    struct weft_notify_wait wait;
};

static weft_async(crowd)
{
    weft_begin;
    latch_init(&started, f->n);
    for (uint64_t i = 0; i < f->n; i++)
        (void)weft_detach(weft_spawn(waits));
    weft_await(f->wait, weft_notify_wait, &started.all);
    weft_return((int64_t)(f->n - latch_left(&started)));
    weft_end;
}

BENCH(mem_wait, .n = 1000000, .once = true, .unit = "B", .end = root_end)
{
    (void)root_rt(b);
    weft_notify_init(&never);
    uint64_t before = bench_rss_bytes();
    bench_check(b, (uint64_t)root_wait(b, weft_spawn(crowd, b->n)), b->n);
    return (double)(bench_rss_bytes() - before) / (double)b->n;
}

/* ---- mem_fiber ---------------------------------------------------------------------------------- */

static void fiber_waits(void)
{
    latch_count(&started);
    (void)weft_notify_wait(&never);
}

static int64_t fiber_crowd(uint64_t n)
{
    latch_init(&started, n);
    for (uint64_t i = 0; i < n; i++)
        (void)weft_detach(weft_go(fiber_waits));
    (void)weft_notify_wait(&started.all);
    return (int64_t)(n - latch_left(&started));
}

BENCH(mem_fiber, .n = 100000, .once = true, .unit = "B", .end = root_end)
{
    (void)root_rt(b);
    weft_notify_init(&never);
    uint64_t before = bench_rss_bytes();
    bench_check(b, (uint64_t)root_wait(b, weft_go(fiber_crowd, b->n)), b->n);
    return (double)(bench_rss_bytes() - before) / (double)b->n;
}
