/* SPDX-License-Identifier: MIT
 *
 * spawn_yield - many tasks at once, each giving way to the others ten times: what do they cost?
 *
 *     spawn_yield [--tasks=N] [--workers=W]        default: 100,000 tasks on as many workers as CPUs
 *     spawn_yield --workers=-1                     on this thread, without any worker
 *
 * It builds a runtime by itself, where other programs say WEFT_MAIN, to choose the number of workers. The figures beside
 * are those that tutorials on async runtimes quote; they count a spawn and a yield as one switch, and so does this.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weft/weft.h>

enum { YIELDS = 10, ROUNDS = 5 };

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

static void print_row(const char *what, double here, const char *unit, const char *theirs)
{
    printf("%-22s %8.1f %s   %s\n", what, here, unit, theirs);
}

/* Of one round, in nanoseconds. */
struct took {
    double spawning;
    double yielding;
};

static void print_table(long tasks, struct took best)
{
    const double spawn = best.spawning / (double)tasks;
    const double yield = best.yielding / (double)(tasks * YIELDS);
    printf("%-34s   tutorials: Tokio, 4 workers, 100,000 tasks\n", "");
    print_row("per spawn", spawn, "ns", " 61 ns (a kernel thread: 9000)");
    print_row("per yield", yield, "ns", " 38 ns");
    print_row("per switch", spawn + yield, "ns", " 99 ns (a kernel thread: 1000 to 3000)");
    print_row("spawned in", best.spawning / 1e6, "ms", "6.1 ms");
    print_row("in all", (best.spawning + best.yielding) / 1e6, "ms", "");
}

static long crowd_once(long tasks, weft_task **task, struct took *into)
{
    long yields = 0;
    double begun = now_ns();
    for (long i = 0; i < tasks; i++)
        task[i] = weft_spawn(polite);
    double spawned = now_ns();
    for (long i = 0; i < tasks; i++) {
        int own = 0;
        if (weft_join(task[i], &own) == 0) yields += own;
    }
    *into = (struct took){spawned - begun, now_ns() - spawned};
    return yields;
}

/* A fiber: spawns from inside the runtime, which is cheaper than from another thread. The best of some rounds counts: the
 * first pays for memory that the others find there, and other programs want the CPUs as well. */
static int crowd(long tasks)
{
    weft_task **task = calloc((size_t)tasks, sizeof(weft_task *));
    if (!task) return -ENOMEM;
    struct took best = {1e18, 1e18};
    long yields = tasks * YIELDS;
    for (int round = 0; round < ROUNDS && yields == tasks * YIELDS; round++) {
        struct took now;
        yields = crowd_once(tasks, task, &now);
        if (now.spawning < best.spawning) best.spawning = now.spawning;
        if (now.yielding < best.yielding) best.yielding = now.yielding;
    }
    free(task);
    printf("yields %ld, the best of %d rounds\n", yields, ROUNDS);
    print_table(tasks, best);
    return yields == tasks * YIELDS ? 0 : -ENOMEM;
}

static void print_peak_memory(void)
{
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof(line), status))
        if (strncmp(line, "VmHWM:", 6) == 0)
            print_row("peak memory", atof(line + 6) * 1024 / 1e6, "MB", " 17 MB");
    if (status) fclose(status);
}

/* Without workers the task runs in turns that somebody makes: here. */
static int run(weft_rt *rt, long tasks)
{
    int failed = 0;
    weft_task *t = weft_go_as((.rt = rt), crowd, tasks);
    while (weft_rt_workers(rt) == 0 && t && !weft_done(t))
        (void)weft_rt_turn(rt, -1);
    int r = weft_join(t, &failed);
    return r < 0 ? r : failed;
}

static void print_polls(const weft_rt *rt)
{
    weft_stats s;
    for (unsigned w = 0; weft_rt_worker_stats(rt, w, &s) == 0; w++)
        printf("worker %u: %" PRIu64 " polls\n", w, s.polls);
}

int main(int argc, char **argv)
{
    long tasks = 100000;
    weft_rt_opts opts = {0};
    for (int i = 1; i < argc; i++) {
        if (sscanf(argv[i], "--tasks=%ld", &tasks) == 1 && tasks > 0) continue;
        if (sscanf(argv[i], "--workers=%d", &opts.workers) == 1 &&
            (opts.workers > 0 || opts.workers == -1))
            continue;
        fprintf(stderr, "usage: spawn_yield [--tasks=N] [--workers=W], W from 1 or -1\n");
        return 2;
    }
    weft_rt *rt;
    if (weft_rt_new(&opts, &rt) < 0) return 1;
    int r = run(rt, tasks);
    print_peak_memory();
    print_polls(rt);
    (void)weft_rt_stop(rt, -1);
    return r < 0;
}
