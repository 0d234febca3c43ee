/* SPDX-License-Identifier: MIT
 *
 * The checker on trial: every kind of fault that it promises to find is planted here, and must be found; what is right must pass.
 *
 * Each test is searched twice, with a bound on preemptions and with sleep sets. A failure must be the expected one, and its path must lead to it again.
 */
#include "base/atomic.h"
#include "trial.h"

#include <errno.h>

#define THREAD(name) static void name(void *unused __attribute__((unused)))
#define RUN2(a, b) (model_thread(a, NULL), model_thread(b, NULL), model_join())

static _Atomic uint32_t x, y;
static struct pair {
    int first;
    int second;
} plain;
static char lock_a, lock_b;
static bool told;                   /* no memory of the model */

static void fresh(void)
{
    store_relaxed(&x, 0);
    store_relaxed(&y, 0);
    plain.first = plain.second = 0;
    told = false;
}

#define TEST2(name, one, two)                                                                                          \
    static void name(void)                                                                                             \
    {                                                                                                                  \
        fresh();                                                                                                       \
        RUN2(one, two);                                                                                                \
    }
#define BODY(name, ...)                                                                                                \
    THREAD(name)                                                                                                       \
    {                                                                                                                  \
        __VA_ARGS__;                                                                                                   \
    }

/* ---- races ---- */

BODY(write_first, plain_write(&plain.first, 1))
BODY(read_first, (void)plain_read(&plain.first))
BODY(read_second, (void)plain_read(&plain.second))
BODY(write_pair, plain_write(&plain, ((struct pair){1, 2})))
BODY(write_locked, model_lock(&lock_a); plain_write(&plain.first, plain_read(&plain.first) + 1); model_unlock(&lock_a))
BODY(write_other_lock, model_lock(&lock_b); plain_write(&plain.first, 1); model_unlock(&lock_b))
BODY(publish_release, plain_write(&plain.first, 1); store_release(&x, 1))
BODY(publish_relaxed, plain_write(&plain.first, 1); store_relaxed(&x, 1))
BODY(consume_acquire, if (load_acquire(&x)) (void)plain_read(&plain.first))
BODY(consume_relaxed, if (load_relaxed(&x)) (void)plain_read(&plain.first))
TEST2(race_write_write, write_first, write_first)
TEST2(race_write_read, write_first, read_first)
TEST2(race_read_write, read_first, write_first)
TEST2(race_whole_part, write_pair, read_second)
TEST2(race_part_whole, read_second, write_pair)
TEST2(race_two_locks, write_locked, write_other_lock)
TEST2(race_relaxed_store, publish_relaxed, consume_acquire)
TEST2(race_relaxed_load, publish_release, consume_relaxed)
TEST2(no_race_reads, read_first, read_first)
TEST2(no_race_parts, write_first, read_second)
TEST2(no_race_lock, write_locked, write_locked)
TEST2(no_race_published, publish_release, consume_acquire)

static void race_with_creator(void)
{
    fresh();
    model_thread(read_first, NULL);
    plain_write(&plain.first, 1);
    model_join();
}

/* ---- memory ---- */

static struct block {
    _Atomic uint32_t word;
    int data;
    _Atomic uint32_t lock;
} *block;

BODY(block_atomic, (void)load_relaxed(&block->word))
BODY(block_plain, (void)plain_read(&block->data))
BODY(block_lock, model_lock(&block->lock); model_unlock(&block->lock))
BODY(block_free, model_free(block))
BODY(block_use_then_tell, store_relaxed(&block->word, 1); store_relaxed(&x, 1))
BODY(block_use_then_release, store_relaxed(&block->word, 1); store_release(&x, 1))
BODY(block_free_when_told, if (load_acquire(&x)) model_free(block); else store_relaxed(&y, 1))
BODY(block_lock_and_free, model_lock(&block->lock); model_free(block))

static void with_block(void (*one)(void *), void (*two)(void *))
{
    fresh();
    block = model_alloc(sizeof(*block));
    RUN2(one, two);
}

#define BLOCK_TEST2(name, one, two)                                                                                    \
    static void name(void)                                                                                             \
    {                                                                                                                  \
        with_block(one, two);                                                                                          \
        if (load_relaxed(&y)) model_free(block);                                                                       \
    }
BLOCK_TEST2(use_after_free_atomic, block_atomic, block_free)
BLOCK_TEST2(use_after_free_plain, block_plain, block_free)
BLOCK_TEST2(use_after_free_lock, block_lock, block_free)
BLOCK_TEST2(use_after_free_first, block_free, block_atomic)
BLOCK_TEST2(use_after_free_only_unordered, block_use_then_tell, block_free_when_told)
BLOCK_TEST2(free_after_last_use, block_use_then_release, block_free_when_told)
BLOCK_TEST2(double_free_by_two, block_free, block_free)
BLOCK_TEST2(free_of_held_lock, block_lock_and_free, read_first)

static void double_free(void)
{
    void *p = model_alloc(8);
    model_free(p);
    model_free(p);
}
static void free_of_middle(void)
{
    char *p = model_alloc(8);
    model_free(p + 1);
}
static void beyond_block(void)
{
    int *p = model_alloc(4 * sizeof(int));
    plain_write(&p[4], 1);
}
static void across_end(void)
{
    char *p = model_alloc(12);
    (void)plain_read((uint64_t *)(void *)(p + 8));
}
static void leak(void)
{
    (void)model_alloc(8);
}
static void no_leak(void)
{
    model_free(model_alloc(8));
    model_free(NULL);
}
static void around_the_checker(void)
{
    static uint32_t word;
    store_relaxed((_Atomic uint32_t *)&word, 0);
    word = 1;
    (void)load_relaxed((_Atomic uint32_t *)&word);
}
static void atomic_and_plain(void)
{
    fresh();
    (void)plain_read((uint32_t *)&x);
}
static void two_sizes(void)
{
    static _Atomic uint64_t wide;
    store_relaxed(&wide, 0);
    (void)load_relaxed((_Atomic uint32_t *)&wide);
}
static void half_of_an_atomic(void)
{
    static _Atomic uint64_t wide;
    store_relaxed(&wide, 0);
    (void)load_relaxed((_Atomic uint32_t *)&wide + 1);
}

/* ---- locks, waiting, ending ---- */

BODY(a_then_b, model_lock(&lock_a); model_lock(&lock_b); model_unlock(&lock_b); model_unlock(&lock_a))
BODY(b_then_a, model_lock(&lock_b); model_lock(&lock_a); model_unlock(&lock_a); model_unlock(&lock_b))
BODY(lock_twice, model_lock(&lock_a); model_lock(&lock_a))
BODY(lock_and_end, model_lock(&lock_a))
BODY(lock_and_tell, model_lock(&lock_a); store_relaxed(&x, 1); while (!load_relaxed(&y)) model_yield(); model_unlock(&lock_a))
BODY(drop_when_told, while (!load_relaxed(&x)) model_yield(); model_unlock(&lock_a))
BODY(nothing, (void)0)
TEST2(deadlock_crosswise, a_then_b, b_then_a)
TEST2(no_deadlock, a_then_b, a_then_b)
TEST2(recursive_lock, lock_twice, nothing)
TEST2(unlock_by_another, lock_and_tell, drop_when_told)
TEST2(ends_with_lock, lock_and_end, nothing)

/* The sleeper looks, then sleeps without looking again under the futex: x may have changed in between. */
BODY(sleep_without_recheck, if (load_acquire(&x) == 0) model_futex_wait(&y, 0, false))
BODY(sleep_with_recheck, while (load_acquire(&x) == 0) model_futex_wait(&x, 0, false))
BODY(set_and_wake_y, store_release(&x, 1); model_futex_wake(&y, 1))
BODY(set_and_wake_x, store_release(&x, 1); model_futex_wake(&x, 1))
BODY(set_without_wake, store_release(&x, 1))
BODY(spin_on_x, while (load_acquire(&x) == 0) cpu_pause())
BODY(spin_without_pause, while (load_acquire(&x) == 0) (void)0)
/* Not x is looked at after the wake: a load could still see its old value, as a wake orders nothing by itself. */
BODY(wait_once, if (model_futex_wait(&x, 0, false) == 0) model_assert(told))
BODY(tell_and_wake, store_release(&x, 1); told = true; model_futex_wake(&x, 1))
BODY(wait_timed_once, int r = model_futex_wait(&x, 0, true); saw((unsigned)-r))
BODY(wait_timed_loop, while (load_acquire(&x) == 0) model_futex_wait(&x, 0, true))
BODY(fail_if_set, model_assert(load_relaxed(&x) == 0))
TEST2(lost_wake_up, sleep_without_recheck, set_and_wake_y)
TEST2(no_lost_wake_up, sleep_with_recheck, set_and_wake_x)
TEST2(forgotten_wake_up, sleep_with_recheck, set_without_wake)
TEST2(spin_ends, spin_on_x, set_without_wake)
TEST2(spin_for_ever, spin_on_x, nothing)
TEST2(spin_unannounced, spin_without_pause, nothing)
TEST2(wait_without_loop, wait_once, tell_and_wake)
TEST2(timed_wait, wait_timed_once, set_and_wake_x)
TEST2(timed_loop_ends, wait_timed_loop, set_without_wake)
TEST2(timed_loop_for_ever, wait_timed_loop, nothing)
TEST2(assertion, fail_if_set, set_without_wake)

static void join_missing(void)
{
    fresh();
    model_thread(spin_on_x, NULL);
}

/* Dekker, with the futex's look as one of the two loads: the fences order it like any other. */
BODY(announce_and_sleep, store_relaxed(&y, 1); fence_seq_cst(); model_futex_wait(&x, 0, false))
BODY(set_and_wake_if_announced, store_relaxed(&x, 1); fence_seq_cst(); if (load_relaxed(&y)) model_futex_wake(&x, 1))
BODY(set_and_wake_unfenced, store_relaxed(&x, 1); if (load_relaxed(&y)) model_futex_wake(&x, 1))
TEST2(futex_dekker, announce_and_sleep, set_and_wake_if_announced)
TEST2(futex_dekker_unfenced, announce_and_sleep, set_and_wake_unfenced)

/* ---- what others build ---- */

static unsigned inside;

static void critical(void)
{
    plain_write(&inside, plain_read(&inside) + 1);
}

static void two_through(void (*thread)(void *))
{
    fresh();
    plain_write(&inside, 0);
    RUN2(thread, thread);
    model_assert(plain_read(&inside) == 2);
}

#define TWICE(name, thread)                                                                                            \
    static void name(void)                                                                                             \
    {                                                                                                                  \
        two_through(thread);                                                                                           \
    }

/* Test and set, by exchange: two waiters that write 1 over 1 are no news for each other. */
BODY(by_spinlock, while (exchange_acquire(&x, 1)) cpu_pause(); critical(); store_release(&x, 0))
BODY(by_relaxed_spinlock, while (exchange_acquire(&x, 1)) cpu_pause(); critical(); store_relaxed(&x, 0))
BODY(by_unlocked_spinlock, if (!load_acquire(&x)) { store_relaxed(&x, 1); critical(); store_release(&x, 0); } else critical())
BODY(by_ticket, uint32_t t = fetch_add_relaxed(&x, 1); while (load_acquire(&y) != t) cpu_pause(); critical(); store_release(&y, t + 1))
BODY(by_relaxed_ticket, uint32_t t = fetch_add_relaxed(&x, 1); while (load_relaxed(&y) != t) cpu_pause(); critical(); store_release(&y, t + 1))

static void mutex_take(void)
{
    uint32_t free_ = 0;
    if (cas_acquire(&x, &free_, 1)) return;
    while (exchange_acquire(&x, 2) != 0) model_futex_wait(&x, 2, false);
}
static void mutex_drop(uint32_t wake_at)
{
    if (exchange_release(&x, 0) == wake_at) model_futex_wake(&x, 1);
}
BODY(by_mutex, mutex_take(); critical(); mutex_drop(2))
BODY(by_deaf_mutex, mutex_take(); critical(); mutex_drop(3))
TWICE(spinlock, by_spinlock)
TWICE(spinlock_relaxed_unlock, by_relaxed_spinlock)
TWICE(spinlock_no_rmw, by_unlocked_spinlock)
TWICE(ticket_lock, by_ticket)
TWICE(ticket_lock_relaxed, by_relaxed_ticket)
TWICE(futex_mutex, by_mutex)
TWICE(futex_mutex_without_wake, by_deaf_mutex)

static void spinlock_of_three(void)
{
    fresh();
    plain_write(&inside, 0);
    model_thread(by_spinlock, NULL);
    RUN2(by_spinlock, by_spinlock);
}

/* Back off: the loop writes, but a round leaves nothing changed. */
BODY(dekker_x, for (;;) { store_seq_cst(&x, 1); if (!load_seq_cst(&y)) break; store_seq_cst(&x, 0); cpu_pause(); } critical(); store_release(&x, 0))
BODY(back_off_y, store_seq_cst(&y, 1); if (!load_seq_cst(&x)) critical(); store_release(&y, 0))
TEST2(back_off, dekker_x, back_off_y)

/* A seqlock: x is the sequence, `left` and `right` must match. */
static _Atomic uint32_t left, right;
THREAD(seq_write)
{
    store_relaxed(&x, 1);
    fence_release();
    store_relaxed(&left, 1);
    store_relaxed(&right, 1);
    store_release(&x, 2);
}
static void seq_read(bool fenced)
{
    for (;;) {
        uint32_t before = load_acquire(&x);
        uint32_t l = load_relaxed(&left);
        uint32_t r = load_relaxed(&right);
        if (fenced) fence_acquire();
        if (before % 2 == 0 && load_relaxed(&x) == before) {
            model_assert(l == r);
            return;
        }
        cpu_pause();
    }
}
BODY(seq_read_fenced, seq_read(true))
BODY(seq_read_unfenced, seq_read(false))
static void run_seqlock(void (*reader)(void *))
{
    fresh();
    store_relaxed(&left, 0);
    store_relaxed(&right, 0);
    RUN2(seq_write, reader);
}
static void seqlock(void)
{
    run_seqlock(seq_read_fenced);
}
static void seqlock_unfenced(void)
{
    run_seqlock(seq_read_unfenced);
}

/* ---- try_lock ---- */

BODY(hold_and_tell, model_lock(&lock_a); store_relaxed(&x, 1); model_unlock(&lock_a))
BODY(try_when_told, if (load_relaxed(&x)) { bool got = model_try_lock(&lock_a); saw(got); if (got) model_unlock(&lock_a); })
BODY(hold_shortly, model_lock(&lock_a); model_unlock(&lock_a))
BODY(try_once, bool got = model_try_lock(&lock_a); saw(got); if (got) model_unlock(&lock_a))
BODY(try_until, while (!model_try_lock(&lock_a)) cpu_pause(); model_unlock(&lock_a))
TEST2(try_after_last_store, hold_and_tell, try_when_told)
TEST2(try_in_empty_section, hold_shortly, try_once)
TEST2(try_loop_ends, try_until, try_until)

/* ---- giving up ---- */

BODY(spin_thrice_then_set, for (int i = 0; i < 3 && !load_relaxed(&x); i++) cpu_pause(); store_relaxed(&y, 1); model_futex_wake(&y, 1))
BODY(sleep_on_y, while (!load_relaxed(&y)) model_futex_wait(&y, 0, false))
TEST2(bounded_spin_gives_up, spin_thrice_then_set, sleep_on_y)

/* ---- tests that are wrong ---- */

static void not_the_same(void)
{
    static unsigned runs;
    fresh();
    model_choose(2);
    if (++runs % 2) {
        model_choose(3);
        RUN2(nothing, nothing);
    } else {
        model_choose(2);
    }
}

static void not_the_same_threads(void)
{
    static unsigned runs;
    fresh();
    model_thread(set_and_wake_x, NULL);
    if (++runs % 2) model_thread(sleep_with_recheck, NULL);
    store_relaxed(&y, 1);
    model_join();
}

static const struct fault {
    const char *name;
    void (*run)(void);
    const char *why;                /* what the failure contains; NULL: passes */
    unsigned spurious;
} faults[] = {
    {"race: write, write", race_write_write, "data race", 0},
    {"race: write, read", race_write_read, "data race", 0},
    {"race: read, write", race_read_write, "data race", 0},
    {"race: whole written, part read", race_whole_part, "data race", 0},
    {"race: part read, whole written", race_part_whole, "data race", 0},
    {"race: two locks for one thing", race_two_locks, "data race", 0},
    {"race: published relaxed", race_relaxed_store, "data race", 0},
    {"race: consumed relaxed", race_relaxed_load, "data race", 0},
    {"race: with the creator", race_with_creator, "data race", 0},
    {"no race: two reads", no_race_reads, NULL, 0},
    {"no race: two parts", no_race_parts, NULL, 0},
    {"no race: a lock", no_race_lock, NULL, 0},
    {"no race: published", no_race_published, NULL, 0},
    {"use after free: atomic", use_after_free_atomic, "use after free", 0},
    {"use after free: plain", use_after_free_plain, "use after free", 0},
    {"use after free: lock", use_after_free_lock, "use after free", 0},
    {"use after free: freed first", use_after_free_first, "use after free", 0},
    {"use after free: never late, but unordered", use_after_free_only_unordered, "use after free", 0},
    {"free after the last use", free_after_last_use, NULL, 0},
    {"double free", double_free, "double free", 0},
    {"double free by two threads", double_free_by_two, "double free", 0},
    {"free of a held lock", free_of_held_lock, "freed while it is held", 0},
    {"free of what is no block", free_of_middle, "model_alloc did not give", 0},
    {"beyond a block", beyond_block, "beyond the end", 0},
    {"across a block's end", across_end, "beyond the end", 0},
    {"leak", leak, "leak: 8 bytes", 0},
    {"no leak", no_leak, NULL, 0},
    {"written around the checker", around_the_checker, "around the checker", 0},
    {"atomic and plain", atomic_and_plain, "both as an atomic and as plain", 0},
    {"two sizes", two_sizes, "two sizes", 0},
    {"half of an atomic", half_of_an_atomic, "overlaps", 0},
    {"deadlock", deadlock_crosswise, "deadlock", 0},
    {"no deadlock", no_deadlock, NULL, 0},
    {"recursive lock", recursive_lock, "takes a lock that it holds", 0},
    {"unlock by another", unlock_by_another, "drops a lock that it does not hold", 0},
    {"thread ends with a lock", ends_with_lock, "ended while it held a lock", 0},
    {"lost wake-up", lost_wake_up, "deadlock or lost wake-up", 0},
    {"no lost wake-up", no_lost_wake_up, NULL, 2},
    {"forgotten wake-up", forgotten_wake_up, "sleeps on a futex", 0},
    {"spin that ends", spin_ends, NULL, 0},
    {"livelock", spin_for_ever, "livelock", 0},
    {"spin without a pause", spin_unannounced, "endless loop", 0},
    {"join is missing", join_missing, "model_join is missing", 0},
    {"assertion", assertion, "assertion: load_relaxed(&x) == 0", 0},
    {"wait without a loop, no spurious returns", wait_without_loop, NULL, 0},
    {"wait without a loop, a spurious return", wait_without_loop, "assertion", 1},
    {"a loop around a timed wait ends", timed_loop_ends, NULL, 0},
    {"a timed wait for what nobody does", timed_loop_for_ever, "livelock", 0},
    {"futex as half of Dekker", futex_dekker, NULL, 0},
    {"futex as half of Dekker, one fence short", futex_dekker_unfenced, "lost wake-up", 0},
    {"spinlock", spinlock, NULL, 0},
    {"spinlock of three", spinlock_of_three, NULL, 0},
    {"spinlock, unlock relaxed", spinlock_relaxed_unlock, "data race", 0},
    {"spinlock without an RMW", spinlock_no_rmw, "data race", 0},
    {"ticket lock", ticket_lock, NULL, 0},
    {"ticket lock, taken relaxed", ticket_lock_relaxed, "data race", 0},
    {"futex mutex", futex_mutex, NULL, 1},
    {"futex mutex that does not wake", futex_mutex_without_wake, "lost wake-up", 0},
    {"back off", back_off, NULL, 0},
    {"seqlock", seqlock, NULL, 0},
    {"seqlock, reader without its fence", seqlock_unfenced, "assertion: l == r", 0},
    {"loop of try_lock", try_loop_ends, NULL, 0},
    {"bounded spin gives up", bounded_spin_gives_up, NULL, 0},
    {"a test that is not the same each time", not_the_same, "not the same each time", 0},
    {"a test with other threads each time", not_the_same_threads, "not the same each time", 0},
};

static void try_fault(const struct fault *f, bool unbounded)
{
    struct model_case c = {.name = f->name, .run = f->run, .unbounded = unbounded, .spurious = f->spurious};
    struct model_result r = model_run(&c);
    trial(f->why ? r.failed && strstr(r.why, f->why) : !r.failed && r.exhausted, f->name, r.failed ? r.why : "not found");
    if (!r.failed || strstr(r.why, "not the same")) return;
    struct model_result again = model_replay(&c, r.path);
    trial(again.failed && strcmp(again.why, r.why) == 0 && strcmp(again.path, r.path) == 0, f->name, "the path leads elsewhere");
}

/* Outcomes that must be reachable, in both searches. */
static void try_outcomes(const char *name, void (*run)(void), const struct trial_set *expected)
{
    for (unsigned unbounded = 0; unbounded < 2; unbounded++) {
        struct model_case c = {.name = name, .run = run, .unbounded = unbounded};
        trial_seen.count = 0;
        struct model_result r = model_run(&c);
        trial(!r.failed && trial_same(&trial_seen, expected), name, r.failed ? r.why : "other outcomes");
    }
}

int main(void)
{
    for (size_t i = 0; i < MODEL_COUNT(faults); i++) {
        try_fault(&faults[i], false);
        try_fault(&faults[i], true);
    }
    try_outcomes("timed wait: woken, late or timed out", timed_wait, &(struct trial_set){3, {0, EAGAIN, ETIMEDOUT}});
    try_outcomes("try_lock between the last store and unlock", try_after_last_store, &(struct trial_set){2, {0, 1}});
    try_outcomes("try_lock in a section without atomics", try_in_empty_section, &(struct trial_set){2, {0, 1}});
    return trial_end("selftest");
}
