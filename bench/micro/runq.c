/* SPDX-License-Identifier: MIT
 *
 * micro/runq - the choice of the run queue, in numbers (docs/decisions/0003-run-queue.md).
 *
 *     cas       the ring of sched/runq.h and the slot of sched/slot.h: everything can be stolen at any moment
 *     private   a plain ring and a plain `next` of the owner; now and then half of it, oldest first, is
 *               published into a second ring, from which others take a batch with one CAS
 *     biased    the same, but so that a stuck owner's ring can be taken over: an owner-biased lock. The
 *               owner stores and loads a flag when it enters and leaves its queue, the taker pays a
 *               membarrier. A poll is outside: it may block. What a poll pushes has to enter.
 *
 *     yield     eight tasks: take the oldest, run it, push it back
 *     fork      ten pushes inside a poll, then take back the newest until none is left, run each
 *     join      the same, but `private` and `biased` take them out of the middle, first child first
 *     slot      put into `next`, take it, run it
 * Each alone, with a thief on another core that does nothing but steal, and with one that pauses 1 us after
 * each look (`taskset -c 0`: no thief). A task is some nanoseconds of arithmetic; the first line says how many.
 *
 *     micro_runq [--ops N] [--rounds N] [WORD ...]        rows that match each word: a case, a queue
 * Prints nanoseconds of the owner's CPU time per task, best and median of the rounds, and how many of
 * 1,000 tasks the thief got.
 */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wstringop-overflow" /* gcc 12 at -O3 sees one where there is none */
#endif

#include "runq_queues.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS_MAX 101
#define JOBS       64 /* as a slab gives them back: the same few blocks, warm */
#define YIELDERS   8
#define CHILDREN   10
#define TICK       64 /* polls between two looks at what the thief has left, or wants */

/* ---- the cases, once for all three: inlined through the constant table --------- */

struct contender {
    const char *name;
    void (*init)(void);
    void (*push)(struct weft_task *);                  /* by the worker's loop */
    void (*push_in_poll)(struct weft_task *);          /* by a task */
    struct weft_task *(*take_oldest)(void);            /* by the worker's loop */
    struct weft_task *(*take_newest)(void);            /* by a task: inline join */
    struct weft_task *(*claim)(struct weft_task *);    /* by a task: inline join */
    struct weft_task *(*put_next)(struct weft_task *); /* by a task */
    struct weft_task *(*take_next)(void);              /* by the worker's loop */
    void (*poll_begin)(void);
    void (*poll_end)(void);
    uint32_t (*length)(void);
    void (*tick)(void);
    uint32_t (*steal)(void);
};

static const struct contender contenders[] = {
    {"cas", cas_init, cas_push, cas_push, cas_take_oldest, cas_take_newest, cas_claim, cas_put_next,
     cas_take_next, nothing, nothing, cas_length, nothing, cas_steal},
    {"private", private_init, private_push, private_push, private_take_oldest, private_take_newest,
     private_claim, private_put_next, private_take_next, nothing, nothing, private_length,
     private_tick, private_steal},
    {"biased", private_init, private_push, biased_push_inside, private_take_oldest,
     biased_take_newest, biased_claim, biased_put_next, private_take_next, biased_leave,
     biased_enter, private_length, private_tick, private_steal},
};

INLINE struct weft_task *fresh(uint64_t number)
{
    return &jobs[number % JOBS].task;
}

INLINE void yield_case(const struct contender *c, uint64_t ops)
{
    uint64_t made = 0;

    for (uint64_t i = 0; i < ops; i++) {
        if (i % TICK == 0) {
            while (c->length() < YIELDERS) c->push(fresh(made++));
            c->tick();
        }
        struct weft_task *t = c->take_oldest();
        if (!t) t = fresh(made++); /* the thief has them all */
        c->poll_begin();
        run_job(t);
        c->poll_end();
        c->push(t);
    }
    while (c->take_oldest()) continue;
}

INLINE void fork_case(const struct contender *c, uint64_t ops)
{
    for (uint64_t i = 0; i < ops; i += CHILDREN) {
        c->poll_begin();
        for (uint64_t k = 0; k < CHILDREN; k++) c->push_in_poll(fresh(i + k));
        if (i % TICK < CHILDREN) c->tick(); /* tasks run inline count as polls */
        for (struct weft_task *t; (t = c->take_newest());) run_job(t);
        c->poll_end();
    }
}

INLINE void join_case(const struct contender *c, uint64_t ops)
{
    for (uint64_t i = 0; i < ops; i += CHILDREN) {
        c->poll_begin();
        for (uint64_t k = 0; k < CHILDREN; k++) c->push_in_poll(fresh(i + k));
        if (i % TICK < CHILDREN) c->tick(); /* tasks run inline count as polls */
        for (uint64_t k = 0; k < CHILDREN; k++) {
            struct weft_task *t = c->claim(fresh(i + k));
            if (t) run_job(t);
        }
        c->poll_end();
    }
}

INLINE void slot_case(const struct contender *c, uint64_t ops)
{
    for (uint64_t i = 0; i < ops; i++) {
        c->poll_begin();
        (void)c->put_next(fresh(i));
        c->poll_end();
        run_job(c->take_next());
    }
}

INLINE void work_case(const struct contender *c, uint64_t ops)
{
    (void)c;
    for (uint64_t i = 0; i < ops; i++) run_job(fresh(i % YIELDERS));
}

INLINE void take_over_case(const struct contender *c, uint64_t ops)
{
    (void)c;
    for (uint64_t i = 0; i < ops / 4096; i++) biased_take_over();
}

#define CASE(name, index)                                                                          \
    static __attribute__((noinline)) void name##_##index(uint64_t ops)                             \
    {                                                                                              \
        name##_case(&contenders[index], ops);                                                      \
    }
CASE(work, 0)
CASE(yield, 0)
CASE(yield, 1)
CASE(yield, 2)
CASE(fork, 0)
CASE(fork, 1)
CASE(fork, 2)
CASE(join, 0)
CASE(join, 1)
CASE(join, 2)
CASE(slot, 0)
CASE(slot, 1)
CASE(slot, 2)
CASE(take_over, 2)
#undef CASE

enum thief { NO_THIEF, BUSY_THIEF, PAUSING_THIEF };
static const char *const thief_names[] = {"alone", "+thief", "+thief/us"};

struct row {
    const char *name;
    void (*run)(uint64_t ops);
    int contender;
    bool stealable; /* there is something for a thief */
    uint64_t share; /* of the ops, that are one operation */
};

static const struct row rows[] = {
    {"work", work_0, 0, false, 1},  {"yield", yield_0, 0, true, 1},
    {"yield", yield_1, 1, true, 1}, {"yield", yield_2, 2, true, 1},
    {"fork", fork_0, 0, true, 1},   {"fork", fork_1, 1, true, 1},
    {"fork", fork_2, 2, true, 1},   {"join", join_0, 0, true, 1},
    {"join", join_1, 1, true, 1},   {"join", join_2, 2, true, 1},
    {"slot", slot_0, 0, false, 1},  {"slot", slot_1, 1, false, 1},
    {"slot", slot_2, 2, false, 1},  {"take_over", take_over_2, 2, false, 4096},
};

/* ---- measuring ------------------------------------------------------------------------------- */

static uint64_t ops_each = 400000; /* a round fits into a time slice */
static int rounds = 5;
static _Atomic bool thief_over;
static WEFT__CACHE_ALIGNED _Atomic uint64_t thief_looks;
static _Atomic uint64_t thief_got;

struct thief_order {
    const struct contender *from;
    enum thief kind;
};

static double clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    (void)sched_setaffinity(0, sizeof(set), &set);
}

static bool may_run_on(int cpu)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_ISSET(cpu, &set);
}

static void *thief_main(void *arg)
{
    const struct thief_order *order = arg;
    uint64_t got = 0;

    pin(1);
    for (uint64_t looks = 1; !load_relaxed(&thief_over); looks++) { /* relaxed: only when to stop */
        got += order->from->steal();
        store_relaxed(&thief_looks, looks); /* relaxed: a sign of life */
        if (order->kind == PAUSING_THIEF) {
            double until = clock_ns(CLOCK_MONOTONIC) + 1000;
            while (clock_ns(CLOCK_MONOTONIC) < until) cpu_pause();
        }
    }
    store_relaxed(&thief_got, got); /* relaxed: the join publishes it */
    return NULL;
}

static double time_run(const struct row *row)
{
    row->run(ops_each / 16);                          /* warm */
    double begin = clock_ns(CLOCK_THREAD_CPUTIME_ID); /* not what neighbours on the machine take */
    row->run(ops_each);
    double end = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    return (end - begin) / ((double)ops_each / (double)row->share);
}

/* A round with a thief counts if the thief ran all the while, as it may not on a machine with neighbours:
 * a look takes it a microsecond or less, and the owner's task a nanosecond or more. */
static double time_with_thief(const struct row *row, enum thief kind)
{
    pthread_t thief;
    struct thief_order order = {&contenders[row->contender], kind};
    uint64_t looks_least = ops_each / (kind == BUSY_THIEF ? 50 : 500);

    for (;;) {
        order.from->init();
        store_relaxed(&thief_over, false); /* relaxed, both: no thread yet */
        store_relaxed(&thief_looks, 0);
        if (pthread_create(&thief, NULL, thief_main, &order) != 0) abort();
        while (!load_relaxed(&thief_looks))
            sched_yield();                           /* relaxed: a sign of life */
        uint64_t looks = load_relaxed(&thief_looks); /* relaxed: a count */
        double ns = time_run(row);
        looks = load_relaxed(&thief_looks) - looks;
        store_relaxed(&thief_over, true); /* relaxed: only when to stop */
        pthread_join(thief, NULL);
        if (looks >= looks_least) return ns;
    }
}

static double measure(const struct row *row, enum thief kind)
{
    if (kind != NO_THIEF) return time_with_thief(row, kind);
    contenders[row->contender].init();
    return time_run(row);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_row(const struct row *row, enum thief kind)
{
    double ns[ROUNDS_MAX] = {0};
    uint64_t got = 0;

    for (int i = 0; i < rounds; i++) {
        ns[i] = measure(row, kind);
        got += load_relaxed(&thief_got); /* relaxed: the thief has been joined */
    }
    qsort(ns, (size_t)rounds, sizeof(ns[0]), ascending);
    printf("%-10s %-8s %-10s %9.2f %9.2f", row->name, contenders[row->contender].name,
           thief_names[kind], ns[0], ns[rounds / 2]);
    if (kind != NO_THIEF) {
        printf("   %5.1f", (double)got * 1000 / ((double)ops_each * 17 / 16 * rounds));
    }
    printf("\n");
    fflush(stdout);
}

static bool wanted(const struct row *row, char **words)
{
    const char *queue = contenders[row->contender].name;

    for (; *words; words++) {
        if (strcmp(row->name, *words) != 0 && strcmp(queue, *words) != 0) return false;
    }
    return true;
}

static char **parse(char **argv)
{
    for (argv++; argv[0] && argv[1] && strncmp(argv[0], "--", 2) == 0; argv += 2) {
        if (strcmp(argv[0], "--ops") == 0) ops_each = strtoull(argv[1], NULL, 0);
        if (strcmp(argv[0], "--rounds") == 0) rounds = atoi(argv[1]);
    }
    if (rounds < 1) rounds = 1;
    if (rounds > ROUNDS_MAX) rounds = ROUNDS_MAX;
    return argv;
}

int main(int argc, char **argv)
{
    char **words = parse(argv);
    bool two_cores = may_run_on(0) && may_run_on(1);

    (void)argc;
    (void)syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
    jobs = calloc(JOBS, sizeof(*jobs));
    if (!jobs) return 1;
    pin(0);
    printf("%-10s %-8s %-10s %9s %9s   stolen/1000\n", "case", "queue", "", "best", "median");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!wanted(&rows[i], words)) continue;
        print_row(&rows[i], NO_THIEF);
        if (!rows[i].stealable || !two_cores) continue;
        print_row(&rows[i], BUSY_THIEF);
        print_row(&rows[i], PAUSING_THIEF);
    }
    free(jobs);
    return 0;
}
