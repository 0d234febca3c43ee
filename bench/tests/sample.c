/* SPDX-License-Identifier: MIT
 *
 * sample - cases for the harness's own test: one that is right, and what must be noticed.
 */
#include "harness.h"

#include <stdlib.h>

static void end_count(struct bench *b)
{
    bench_also(b, "rounds", *(unsigned *)b->state);
    free(b->state);
}

BENCH(count, .n = 1000, .end = end_count)
{
    uint64_t start_ns = bench_now_ns();
    uint64_t sum = 0;

    if (!b->state) b->state = calloc(1, sizeof(unsigned));
    ++*(unsigned *)b->state;
    for (uint64_t i = 0; i < b->n; i++)
        sum += i;
    bench_check(b, sum, bench_sum_below(b->n));
    return bench_per_op(start_ns, b->n + 1);
}

BENCH(workers, .once = true, .unit = "workers")
{
    bench_check(b, b->n, 0);
    return b->workers;
}

BENCH(memory, .once = true, .n = 1)
{
    bench_check(b, bench_rss_bytes() <= bench_rss_peak_bytes(), true);
    return (double)bench_rss_bytes();
}

BENCH(wrong)
{
    bench_check(b, 1, 2);
    return 0;
}

BENCH(unchecked)
{
    (void)b;
    return 0;
}
