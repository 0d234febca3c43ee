/* SPDX-License-Identifier: MIT
 *
 * spawn_yield - many tasks at once, each giving way to the others ten times: what do they cost?
 *
 *     spawn_yield [--tasks=N] [--workers=W]        default: 100,000 tasks on as many workers as CPUs
 *
 * It builds a runtime by itself, where other programs say WEFT_MAIN, to choose the number of workers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weft/weft.h>

enum { YIELDS = 10 };

struct polite {
    WEFT_FRAME(int); /* how often it has given way */
    int i;
    struct weft_yield pause;
};
static weft_async(polite)
{
    weft_begin;
    for (f->i = 0; f->i < YIELDS; f->i++)
        weft_await(f->pause, weft_yield);
    weft_return(f->i);
    weft_end;
}

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* A fiber: spawns from inside the runtime, which is cheaper than from another thread. */
static int crowd(long tasks)
{
    weft_task **task = calloc((size_t)tasks, sizeof(weft_task *));
    if (!task) return -ENOMEM;
    long yields = 0;
    double begun = now_ns();
    for (long i = 0; i < tasks; i++)
        task[i] = weft_spawn(polite);
    double spawned = now_ns();
    for (long i = 0; i < tasks; i++) {
        int own = 0;
        if (weft_join(task[i], &own) == 0) yields += own;
    }
    double ended = now_ns();
    free(task);
    printf("yields %ld\n", yields);
    printf("%.1f ms in all, %.0f ns per spawn, %.1f ns per yield\n", (ended - begun) / 1e6,
           (spawned - begun) / (double)tasks, (ended - spawned) / (double)(tasks * YIELDS));
    return yields == tasks * YIELDS ? 0 : -ENOMEM;
}

static void print_peak_memory(void)
{
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof(line), status))
        if (strncmp(line, "VmHWM:", 6) == 0) printf("peak memory%s", line + 6);
    if (status) fclose(status);
}

int main(int argc, char **argv)
{
    long tasks = 100000;
    weft_rt_opts opts = {0};
    for (int i = 1; i < argc; i++) {
        if (sscanf(argv[i], "--tasks=%ld", &tasks) == 1 && tasks > 0) continue;
        if (sscanf(argv[i], "--workers=%d", &opts.workers) == 1 && opts.workers > 0) continue;
        fprintf(stderr, "usage: spawn_yield [--tasks=N] [--workers=W]\n");
        return 2;
    }
    weft_rt *rt;
    if (weft_rt_new(&opts, &rt) < 0) return 1;
    int failed = 0;
    int r = weft_join(weft_go_as((.rt = rt), crowd, tasks), &failed);
    print_peak_memory();
    for (unsigned w = 0; w < weft_rt_workers(rt); w++) {
        weft_stats s;
        if (weft_rt_worker_stats(rt, w, &s) == 0)
            printf("worker %u: %" PRIu64 " polls\n", w, s.polls);
    }
    (void)weft_rt_stop(rt, -1);
    return r < 0 || failed < 0;
}
