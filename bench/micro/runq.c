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
#include "sched/runq.h"
#include "base/assert.h"
#include "sched/slot.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS_MAX 101
#define JOBS       64 /* as a slab gives them back: the same few blocks, warm */
#define YIELDERS   8
#define CHILDREN   10
#define TICK       64 /* polls between two looks at what the thief has left, or wants */
#define INLINE     static inline __attribute__((always_inline))

/* ---- the work -------------------------------------------------------------------------------- */

struct job {
    struct weft_task task;
    _Atomic uint64_t value; /* relaxed everywhere: a thief may run what is queued again */
    uint32_t position;      /* index in the private ring, for a claim out of the middle */
};

static struct job *jobs;

static uint64_t crunch(uint64_t value)
{
    for (int i = 0; i < 4; i++) value = value * 6364136223846793005 + 1442695040888963407;
    return value;
}

INLINE void run_job(struct weft_task *t)
{
    struct job *job = (struct job *)t;
    store_relaxed(&job->value, crunch(load_relaxed(&job->value)));
}

/* ---- cas: the ring and the slot of the library ----------------------------------------------- */

struct cas_queue {
    struct weft__slot next;
    struct weft__runq ring;
};

static struct cas_queue cas;
static struct weft__runq thief_ring;

INLINE void cas_push(struct weft_task *t)
{
    bool pushed = weft__runq_push(&cas.ring, t);
    weft_assert(pushed);
}

INLINE struct weft_task *cas_take_oldest(void)
{
    return weft__runq_take_oldest(&cas.ring);
}

INLINE struct weft_task *cas_take_newest(void)
{
    return weft__runq_take_newest(&cas.ring);
}

INLINE struct weft_task *cas_claim(struct weft_task *t)
{
    (void)t; /* it runs its siblings from the newest on, until the one it waits for is done */
    return weft__runq_take_newest(&cas.ring);
}

INLINE struct weft_task *cas_put_next(struct weft_task *t)
{
    return weft__slot_put(&cas.next, t);
}

INLINE struct weft_task *cas_take_next(void)
{
    return weft__slot_take(&cas.next);
}

INLINE uint32_t cas_length(void)
{
    return weft__runq_length(&cas.ring);
}

INLINE void nothing(void)
{
}

static void cas_init(void)
{
    weft__slot_init(&cas.next);
    weft__runq_init(&cas.ring);
    weft__runq_init(&thief_ring);
}

static uint32_t cas_steal(void)
{
    struct weft__haul haul = weft__runq_steal_half(&cas.ring, &thief_ring, false);
    if (haul.run) run_job(haul.run);
    for (struct weft_task *t; (t = weft__runq_take_oldest(&thief_ring));) run_job(t);
    return haul.count;
}

/* ---- private: a plain ring, half of it published now and then -------------------------------- */

struct private_queue {
    uint32_t head; /* owner only, with tail, slot and next */
    uint32_t tail;
    struct weft_task *next;
    struct weft_task *slot[WEFT__RUNQ_CAP];
    WEFT__CACHE_ALIGNED _Atomic uint32_t inside;   /* biased: the owner is in its queue */
    WEFT__CACHE_ALIGNED _Atomic uint32_t revoked;  /* biased: somebody takes over */
    _Atomic uint32_t wanted;                       /* a thief found nothing published */
    WEFT__CACHE_ALIGNED _Atomic uint64_t out_head; /* the published ring: CAS by takers */
    WEFT__CACHE_ALIGNED _Atomic uint64_t out_tail; /* stored by the owner */
    struct weft_task *_Atomic out[WEFT__RUNQ_CAP];
};

static struct private_queue priv;

INLINE struct weft_task **private_slot(uint32_t index)
{
    return &priv.slot[index & (WEFT__RUNQ_CAP - 1)];
}

INLINE void private_push(struct weft_task *t)
{
    weft_assert(priv.tail - priv.head < WEFT__RUNQ_CAP);
    ((struct job *)t)->position = priv.tail;
    *private_slot(priv.tail++) = t;
}

/* A claim leaves a hole; who comes by passes over it. */
INLINE struct weft_task *private_take_oldest(void)
{
    while (priv.head != priv.tail) {
        struct weft_task *t = *private_slot(priv.head++);
        if (t) return t;
    }
    return NULL;
}

INLINE struct weft_task *private_take_newest(void)
{
    while (priv.head != priv.tail) {
        struct weft_task *t = *private_slot(--priv.tail);
        if (t) return t;
    }
    return NULL;
}

INLINE struct weft_task *private_claim(struct weft_task *t)
{
    uint32_t at = ((struct job *)t)->position;

    if (*private_slot(at) != t || at - priv.head >= priv.tail - priv.head) return NULL;
    *private_slot(at) = NULL;
    while (priv.tail != priv.head && !*private_slot(priv.tail - 1)) priv.tail--;
    return t;
}

INLINE struct weft_task *private_put_next(struct weft_task *t)
{
    struct weft_task *before = priv.next;
    priv.next = t;
    return before;
}

INLINE struct weft_task *private_take_next(void)
{
    struct weft_task *t = priv.next;
    priv.next = NULL;
    return t;
}

INLINE uint32_t private_length(void)
{
    return priv.tail - priv.head;
}

/* At a tick: somebody wants work and nothing is out. Half, oldest first. */
static void private_publish(void)
{
    uint64_t tail = load_relaxed(&priv.out_tail); /* relaxed: the owner's own */
    uint32_t half = private_length() / 2;

    if (load_acquire(&priv.out_head) != tail) return;
    for (uint32_t i = 0; i < half; i++) {
        struct weft_task *t = private_take_oldest();
        if (!t) break;
        store_relaxed(&priv.out[tail++ & WEFT__RUNQ_MASK], t); /* relaxed: published by the tail */
    }
    store_release(&priv.out_tail, tail);
    store_relaxed(&priv.wanted, 0); /* relaxed: a hint */
}

INLINE void private_tick(void)
{
    if (load_relaxed(&priv.wanted)) private_publish(); /* relaxed: a hint */
}

static void private_init(void)
{
    memset(&priv, 0, sizeof(priv));
}

/* All that is out, with one CAS: sound, since its owner never takes back at the tail. */
static uint32_t private_steal(void)
{
    struct weft_task *batch[WEFT__RUNQ_CAP];
    uint64_t head = load_acquire(&priv.out_head);
    uint32_t count = (uint32_t)(load_acquire(&priv.out_tail) - head);

    if (count == 0 || count > WEFT__RUNQ_CAP) {
        if (!load_relaxed(&priv.wanted)) store_relaxed(&priv.wanted, 1); /* relaxed: a hint */
        return 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        batch[i] = load_relaxed(&priv.out[(head + i) & WEFT__RUNQ_MASK]);
    }
    if (!cas_acq_rel(&priv.out_head, &head, head + count)) return 0;
    for (uint32_t i = 0; i < count; i++) run_job(batch[i]);
    return count;
}

/* ---- biased: the same behind a lock that costs its owner a store and a load ------------------ */

static __attribute__((noinline)) void biased_wait(void)
{
    do {
        store_release(&priv.inside, 0);
        while (load_acquire(&priv.revoked)) cpu_pause();
        store_relaxed(&priv.inside, 1);
        atomic_signal_fence(memory_order_seq_cst);
    } while (load_acquire(&priv.revoked));
}

INLINE void biased_enter(void)
{
    store_relaxed(&priv.inside, 1); /* relaxed: the taker's membarrier is the fence of both */
    atomic_signal_fence(memory_order_seq_cst); /* the compiler keeps the order too */
    if (__builtin_expect(load_acquire(&priv.revoked), 0)) biased_wait();
}

INLINE void biased_leave(void)
{
    store_release(&priv.inside, 0);
}

INLINE void biased_push_inside(struct weft_task *t)
{
    biased_enter();
    private_push(t);
    biased_leave();
}

INLINE struct weft_task *biased_take_newest(void)
{
    biased_enter();
    struct weft_task *t = private_take_newest();
    biased_leave();
    return t;
}

INLINE struct weft_task *biased_claim(struct weft_task *t)
{
    biased_enter();
    t = private_claim(t);
    biased_leave();
    return t;
}

INLINE struct weft_task *biased_put_next(struct weft_task *t)
{
    biased_enter();
    t = private_put_next(t);
    biased_leave();
    return t;
}

static int membarrier_expedited(void)
{
    return (int)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

/* What a taker-over does to an owner that is not in its queue. */
static void biased_take_over(void)
{
    store_relaxed(&priv.revoked, 1); /* relaxed: the membarrier orders it */
    (void)membarrier_expedited();
    while (load_acquire(&priv.inside)) cpu_pause();
    store_release(&priv.revoked, 0);
}

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
