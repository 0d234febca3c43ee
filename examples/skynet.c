/* SPDX-License-Identifier: MIT
 *
 * skynet - a tree of tasks, ten children each, whose leaves add up their numbers: `skynet [LEAVES]`.
 *
 * It is nothing but spawning and joining, so it shows what those cost. Compare the lines at the end:
 * most children are `inlined`, run by the very join that waits for them, and few are stolen.
 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <weft/weft.h>

struct skynet {
    WEFT_FRAME(long);
    long first, leaves; /* adds first .. first + leaves - 1 */
    int i;
    long sum, part;
    weft_task *kid[10];
    struct weft_join join;
};
static weft_async(skynet)
{
    weft_begin;
    if (f->leaves == 1) weft_return(f->first);
    for (f->i = 0; f->i < 10; f->i++) {
        long leaves = f->leaves / 10; /* a local may live between two awaits */
        f->kid[f->i] = weft_spawn(skynet, .first = f->first + f->i * leaves, .leaves = leaves);
    }
    for (f->i = 0; f->i < 10; f->i++) { /* all are joined, also behind one that failed */
        weft_await(f->join, weft_join, f->kid[f->i], &f->part);
        if (f->join.ret < 0) f->part = f->join.ret; /* it could not be started: out of memory */
        if (f->sum >= 0) f->sum = f->part < 0 ? f->part : f->sum + f->part;
    }
    weft_return(f->sum);
    weft_end;
}

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void print_stats(const weft_rt *rt)
{
    weft_stats s;
    weft_rt_stats(rt, &s);
    printf("workers %u, spawned %" PRIu64 ", inlined %" PRIu64 ", polls %" PRIu64 "\n",
           weft_rt_workers(rt), s.spawned, s.inlined, s.polls);
    printf("thefts %" PRIu64 " of %" PRIu64 " tasks, spills %" PRIu64 ", parks %" PRIu64
           ", wakes %" PRIu64 "\n",
           s.steals, s.stolen, s.spills, s.parks, s.wakes);
}

static int app(int argc, char **argv)
{
    long leaves = argc > 1 ? atol(argv[1]) : 1000000;
    long tasks = 0;
    long level = leaves > 0 ? leaves : 2;
    for (; level > 1 && level % 10 == 0; level /= 10)
        tasks += level;
    if (level != 1) {
        fprintf(stderr, "skynet: the number of leaves is a power of ten\n");
        return 2;
    }
    double begun = now_ns();
    long sum;
    int r = weft_join(weft_spawn(skynet, .leaves = leaves), &sum);
    double took = now_ns() - begun;
    if (r < 0 || sum < 0) return r < 0 ? r : (int)sum;
    printf("sum %ld\n", sum);
    printf("%.1f ms, %.0f ns per task\n", took / 1e6, took / (double)(tasks + 1));
    print_stats(weft_rt_current());
    return 0;
}

WEFT_MAIN(app)
