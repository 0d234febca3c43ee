/* SPDX-License-Identifier: MIT
 *
 * tour - what weft does, in a few seconds: one stop for each of its parts.
 *
 *     tour [TASKS]                     of the second stop; 100,000
 *
 * Each stop is a function that reads from top to bottom. The figures beside the crowd's are those that
 * tutorials on async runtimes quote, for Tokio on four workers; docs/BENCHMARKS.md has measurements.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weft/weft.h>

static double ms_since(weft_time begun)
{
    return (double)(weft_now() - begun) / 1e6;
}

static const char *name_of(int r)
{
    return r == -ETIME ? "ETIME" : r == -ECANCELED ? "ECANCELED" : r < 0 ? "an error" : "done";
}

/* ---- 1: one function in three forms ---------------------------------------------------------------- */

/* As a fiber: ordinary C. The sleep suspends it, not its thread. */
static int delayed_sum(int a, int b)
{
    int r = weft_sleep(weft_ms(100));
    return r < 0 ? r : a + b;
}

/* Stackless: what lives across a suspension is in the struct. */
struct delayed_sum {
    WEFT_FRAME(int);
    int a, b;
    struct weft_sleep sleep;
};
static weft_async(delayed_sum)
{
    weft_begin;
    weft_await(f->sleep, weft_sleep, weft_ms(100));
    if (f->sleep.ret < 0) weft_return(f->sleep.ret);
    weft_return(f->a + f->b);
    weft_end;
}

/* By hand: what weft_async writes for you. */
struct hand_sum {
    WEFT_FRAME(int);
    int a, b;
    struct weft_sleep sleep;
};
static weft_poll hand_sum_poll(void *frame, weft_cx *cx)
{
    struct hand_sum *f = frame;
    if (weft_sleep_poll(&f->sleep, cx) == WEFT_PENDING) return WEFT_PENDING;
    f->ret = f->sleep.ret < 0 ? f->sleep.ret : f->a + f->b;
    return WEFT_READY;
}

static int three_forms(void)
{
    static const char *const form[] = {"fiber", "stackless", "by hand"};
    weft_time begun = weft_now();
    weft_task *task[] = {
        weft_go(delayed_sum, 3, 4),
        weft_spawn(delayed_sum, .a = 3, .b = 4),
        weft_spawn(hand_sum, .a = 3, .b = 4, .sleep = {.ns = weft_ms(100)}),
    };

    printf("1  delayed_sum(3, 4), which sleeps for 100 ms first\n");
    int failed = 0;
    for (int i = 0; i < 3; i++) {
        int sum = 0;
        int r = weft_join(task[i], &sum); /* who joins need not know what it is */
        if (r == 0) printf("   %s: %d\n", form[i], sum);
        if (r < 0 || sum < 0) failed = r < 0 ? r : sum;
    }
    printf("   together in %.0f ms: they slept at the same time\n\n", ms_since(begun));
    return failed;
}

/* ---- 2: a crowd --------------------------------------------------------------------------------------- */

enum { YIELDS = 10, ROUNDS = 7 };

struct polite {
    WEFT_FRAME(int);
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

/* Peak memory of this process so far, in bytes; 0 where it cannot be told. */
static double peak_bytes(void)
{
    char line[256];
    double kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, "VmHWM:", 6) == 0) kib = atof(line + 6);
    if (status) fclose(status);
    return kib * 1024;
}

struct figures {
    double spawn_ns, yield_ns; /* of one */
    long yields;
};

static int crowd_once(long tasks, weft_task **task, struct figures *into)
{
    weft_time begun = weft_now();
    for (long i = 0; i < tasks; i++)
        task[i] = weft_spawn(polite);
    weft_time spawned = weft_now();
    long yields = 0;
    for (long i = 0; i < tasks; i++) {
        int own = 0;
        if (weft_join(task[i], &own) == 0) yields += own;
    }
    into->spawn_ns = (double)(spawned - begun) / (double)tasks;
    into->yield_ns = (double)(weft_now() - spawned) / (double)(tasks * YIELDS);
    into->yields = yields;
    return yields == tasks * YIELDS ? 0 : -ENOMEM;
}

/* Several rounds, of which the best counts: other programs want the CPUs as well. */
static int crowd(long tasks)
{
    weft_task **task = malloc((size_t)tasks * sizeof(weft_task *));
    if (!task) return -ENOMEM;
    memset(task, 0, (size_t)tasks * sizeof(weft_task *));
    double before = peak_bytes();
    struct figures best = {0};
    int r = 0;
    for (int round = 0; round < ROUNDS && r == 0; round++) {
        struct figures now;
        r = crowd_once(tasks, task, &now);
        if (round == 0) best = now;
        if (now.spawn_ns < best.spawn_ns) best.spawn_ns = now.spawn_ns;
        if (now.yield_ns < best.yield_ns) best.yield_ns = now.yield_ns;
    }
    free(task);
    double bytes = peak_bytes() - before;

    printf("2  %ld tasks that all give way %d times   %-13s tutorials: Tokio, 4 workers\n", tasks,
           YIELDS, "here");
    printf("   to spawn one %30s %5.0f ns      61 ns (a kernel thread: 9000)\n", "", best.spawn_ns);
    printf("   to spawn all %30s %5.1f ms     6.1 ms\n", "", best.spawn_ns * (double)tasks / 1e6);
    printf("   to give way once %26s %5.0f ns      38 ns (a kernel thread: 1000 to 3000)\n", "",
           best.yield_ns);
    printf("   to spawn and give way: a switch %11s %5.0f ns      99 ns\n", "",
           best.spawn_ns + best.yield_ns);
    printf("   memory %36s %5.1f MB      17 MB\n", "", bytes / 1e6);
    printf("   memory of one %29s %5.0f bytes  150 bytes (Go: 2048)\n", "", bytes / (double)tasks);
    printf("   yields: %ld; the best of %d rounds\n\n", best.yields, ROUNDS);
    return r;
}

/* ---- 3: a tree -------------------------------------------------------------------------------------------- */

enum { LEAVES = 100000, KIDS = 10 };

/* Ten children each, down to leaves that answer their number: nothing but spawning and joining. */
struct skynet {
    WEFT_FRAME(long);
    long first, leaves; /* adds first .. first + leaves - 1 */
    int i;
    long sum, part;
    weft_task *kid[KIDS];
    struct weft_join join;
};
static weft_async(skynet)
{
    weft_begin;
    if (f->leaves == 1) weft_return(f->first);
    for (f->i = 0; f->i < KIDS; f->i++) {
        long leaves = f->leaves / KIDS;
        f->kid[f->i] = weft_spawn(skynet, .first = f->first + f->i * leaves, .leaves = leaves);
    }
    for (f->i = 0; f->i < KIDS; f->i++) { /* all are joined, also behind one that failed */
        weft_await(f->join, weft_join, f->kid[f->i], &f->part);
        if (f->join.ret < 0) f->part = f->join.ret;
        if (f->sum >= 0) f->sum = f->part < 0 ? f->part : f->sum + f->part;
    }
    weft_return(f->sum);
    weft_end;
}

static int tree(const weft_rt *rt)
{
    weft_stats before, after;
    long sum = 0;
    weft_rt_stats(rt, &before);
    weft_time begun = weft_now();
    int r = weft_join(weft_spawn(skynet, .leaves = LEAVES), &sum);
    double ms = ms_since(begun);
    weft_rt_stats(rt, &after);
    if (r < 0 || sum < 0) return r < 0 ? r : (int)sum;
    uint64_t tasks = after.spawned - before.spawned;
    printf("3  a tree of tasks with %d leaves, whose numbers are added up\n", LEAVES);
    printf("   sum: %ld\n", sum);
    printf("   %" PRIu64 " tasks in %.1f ms, %.0f ns each\n", tasks, ms, ms * 1e6 / (double)tasks);
    printf("   inlined: %" PRIu64 ", run by the very join that waits for them; thefts: %" PRIu64
           " of %" PRIu64 " tasks\n\n",
           after.inlined - before.inlined, after.steals - before.steals,
           after.stolen - before.stolen);
    return 0;
}

/* ---- 4: timers ------------------------------------------------------------------------------------------ */

enum { SLEEPERS = 1000 };

struct late { /* by how much a sleep was late: its result */
    WEFT_FRAME(int64_t);
    weft_time ns;
    weft_time begun;
    struct weft_sleep sleep;
};
static weft_async(late)
{
    weft_begin;
    f->begun = weft_now();
    weft_await(f->sleep, weft_sleep, f->ns);
    weft_return(f->sleep.ret < 0 ? f->sleep.ret : weft_now() - f->begun - f->ns);
    weft_end;
}

static int by_size(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a;
    const int64_t y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static int timers(void)
{
    weft_task *task[SLEEPERS];
    int64_t lateness[SLEEPERS];
    int early = 0;
    int ticks = 0;
    weft_time begun = weft_now();

    for (int i = 0; i < SLEEPERS; i++) /* from 0 to 200 ms, in no order */
        task[i] = weft_spawn(late, .ns = weft_us(200) * ((i * 367) % SLEEPERS));
    weft_interval every = weft_interval_of(weft_ms(10));
    while (weft_now() - begun < weft_ms(200) && weft_tick(&every) == 0)
        ticks++;
    for (int i = 0; i < SLEEPERS; i++) {
        if (weft_join(task[i], &lateness[i]) < 0) return -ECHILD;
        early += lateness[i] < 0;
    }
    qsort(lateness, SLEEPERS, sizeof lateness[0], by_size);
    printf("4  %d sleeps of up to 200 ms, beside an interval of 10 ms\n", SLEEPERS);
    const int64_t median = lateness[SLEEPERS / 2];
    printf("   early: %d; late: half of them by less than %.0f us\n", early, (double)median / 1e3);
    printf("   the interval ticked %d times\n\n", ticks);
    return 0;
}

/* ---- 5: select with a timeout --------------------------------------------------------------------------- */

static int choose(void)
{
    weft_task *slow = weft_go(delayed_sum, 20, 22); /* 100 ms */
    struct weft_wait answer;
    struct weft_sleep patience;
    int r = -1;

    printf("5  whatever comes first\n");
    int which = weft_select(weft_arm(answer, weft_wait, slow), /* 0 */
                            weft_arm(patience, weft_sleep, weft_ms(10)) /* 1 */);
    printf("   select: %s\n", which == 0   ? "the answer"
                              : which == 1 ? "patience is over"
                                           : "stopped");
    WEFT_TIMEOUT(weft_ms(10)) r = weft_wait(slow); /* the same as a deadline over a block */
    printf("   timeout: %s\n", name_of(r));
    int sum = 0;
    r = weft_join(slow, &sum); /* nothing was lost by giving up */
    printf("   and then: %d\n\n", sum);
    return r;
}

/* ---- 6: cancellation --------------------------------------------------------------------------------------- */

static int session(int *said_goodbye)
{
    int r = weft_sleep(weft_secs(3600)); /* -ECANCELED: somebody does not want to wait so long */
    WEFT_SHIELD(weft_secs(1))
    { /* clean-up may wait, too, and has a time of its own for it */
        *said_goodbye = weft_sleep(weft_ms(5)) == 0;
    }
    return r;
}

static int give_up(void)
{
    int said_goodbye = 0;
    weft_task *t =
        weft_go(session, &said_goodbye); /* it may borrow: nobody leaves before it has ended */
    int r = 0;

    (void)weft_sleep(weft_ms(5));
    weft_cancel(t); /* a request */
    int joined = weft_join(t, &r);
    printf("6  a task that is cancelled, and cleans up before it ends\n");
    printf("   its sleep: %s; its goodbye: %s\n\n", name_of(r), said_goodbye ? "said" : "not said");
    return joined;
}

/* ---- 7: code that blocks --------------------------------------------------------------------------------- */

enum { CALLS = 20 };

static int blocks_its_thread(int ms)
{
    struct timespec t = {.tv_nsec = ms * 1000000L};
    return nanosleep(&t, NULL); /* knows nothing of weft */
}

static int calls_it(void)
{
    return weft_blocking(blocks_its_thread, 50);
}

static int blocking_work(void)
{
    weft_task *task[CALLS];
    int failed = 0;
    int ticks = 0;
    weft_time begun = weft_now();

    for (int i = 0; i < CALLS; i++)
        task[i] = weft_go(calls_it);
    weft_interval every = weft_interval_of(weft_ms(1));
    while (!weft_done(task[CALLS - 1]) && weft_tick(&every) == 0)
        ticks++;
    for (int i = 0; i < CALLS; i++) {
        int r = -1;
        if (weft_join(task[i], &r) < 0 || r < 0) failed++;
    }
    printf("7  %d calls that block for 50 ms each\n", CALLS);
    printf("   all of them in %.0f ms, %d failed; the workers went on: %d ticks of 1 ms\n\n",
           ms_since(begun), failed, ticks);
    return failed ? -EIO : 0;
}

/* ---- 8: what the scheduler did ------------------------------------------------------------------------------ */

static void statistics(const weft_rt *rt)
{
    weft_stats s;

    weft_rt_stats(rt, &s);
    printf("8  what the scheduler did for this\n");
    printf("   tasks    %" PRIu64 " spawned, %" PRIu64 " ended, %" PRIu64 " polls\n", s.spawned,
           s.completed, s.polls);
    printf("   workers  %" PRIu64 " thefts of %" PRIu64 " tasks, %" PRIu64 " naps, %" PRIu64
           " of them for nothing\n",
           s.steals, s.stolen, s.parks, s.spurious);
    for (unsigned w = 0; w < weft_rt_workers(rt); w++) {
        weft_stats one;
        if (weft_rt_worker_stats(rt, w, &one) == 0)
            printf("   worker %u: %" PRIu64 " polls\n", w, one.polls);
    }
    printf("   blocking %" PRIu64 " jobs on %" PRIu64 " threads\n", s.blocking_jobs,
           s.blocking_threads);
}

static int app(int argc, char **argv)
{
    long tasks = argc > 1 ? atol(argv[1]) : 100000;
    if (tasks <= 0) {
        fprintf(stderr, "usage: tour [TASKS]\n");
        return 2;
    }
    int r = three_forms();
    if (r == 0) r = crowd(tasks);
    if (r == 0) r = tree(weft_rt_current());
    if (r == 0) r = timers();
    if (r == 0) r = choose();
    if (r == 0) r = give_up();
    if (r == 0) r = blocking_work();
    if (r == 0) statistics(weft_rt_current());
    return r;
}

WEFT_MAIN(app)
