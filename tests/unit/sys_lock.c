/* SPDX-License-Identifier: MIT
 *
 * The futex lock: mutual exclusion with more threads than cores, try, and the debug checks of order
 * and ownership.
 */
#include "base/fault.h"
#include "base/rand.h"
#include "death.h"
#include "sys/lock.h"
#include "sys/thread.h"
#include "test.h"

#include <errno.h>

#define THREADS 8

static struct weft__lock lock = WEFT__LOCK_INIT(WEFT__RANK_SLAB);

TEST(lock_take_and_drop_alone)
{
    for (int i = 0; i < 3; i++) {
        weft__lock_take(&lock);
        ASSERT_EQ(load_relaxed(&lock.word), 1); /* relaxed: one thread */
        weft__lock_drop(&lock);
        ASSERT_EQ(load_relaxed(&lock.word), 0); /* relaxed: one thread */
    }
}

TEST(lock_init_frees_and_ranks)
{
    struct weft__lock fresh;
    weft__lock_init(&fresh, WEFT__RANK_WHEEL);
    ASSERT(weft__lock_try_take(&fresh));
    ASSERT_EQ(fresh.rank, WEFT__RANK_WHEEL);
    weft__lock_drop(&fresh);
}

/* What the lock guards: two counters that are equal whenever the lock is free. */
static uint64_t left;
static uint64_t right;

struct contender {
    struct weft__thread thread;
    uint64_t rounds;
    uint64_t seed;
    uint64_t tried; /* rounds that try_take got at once */
};

static void change_both(struct weft__rand *r)
{
    weft_assert(left == right);
    left++;
    if (weft__rand_chance(r, 1, 256)) weft__thread_yield(); /* be off the CPU with the lock held */
    right++;
}

static void contend(void *arg)
{
    struct contender *c = arg;
    struct weft__rand r;

    weft__rand_seed(&r, c->seed);
    for (uint64_t i = 0; i < c->rounds; i++) {
        if (weft__rand_chance(&r, 1, 2) && weft__lock_try_take(&lock)) {
            c->tried++;
        } else {
            weft__lock_take(&lock);
        }
        change_both(&r);
        weft__lock_drop(&lock);
    }
}

/* Eight threads on however few cores there are change two counters under the lock, yielding
 * inside it so that others pile up and sleep. No change is lost, nobody sees the counters
 * differ, and nobody sleeps for ever. Seeded. */
TEST(lock_keeps_others_out)
{
    static struct contender all[THREADS];
    uint64_t rounds = test_scaled(20000);

    left = right = 0;
    for (int i = 0; i < THREADS; i++) {
        all[i] = (struct contender){.rounds = rounds, .seed = test_seed() + (uint64_t)i};
        ASSERT_OK(weft__thread_start(
            &all[i].thread, &(struct weft__thread_options){.name = "contender"}, contend, &all[i]));
    }
    for (int i = 0; i < THREADS; i++)
        weft__thread_join(&all[i].thread);
    ASSERT_EQ(left, THREADS * rounds);
    ASSERT_EQ(right, THREADS * rounds);
    ASSERT_EQ(load_relaxed(&lock.word), 0); /* relaxed: all are joined */
}

static _Atomic uint32_t refused;

static void try_once(void *arg)
{
    (void)arg;
    if (weft__lock_try_take(&lock)) {
        weft__lock_drop(&lock);
    } else {
        store_relaxed(&refused, 1); /* relaxed: read after join */
    }
}

static uint32_t refused_in_another_thread(void)
{
    struct weft__thread t;
    store_relaxed(&refused, 0); /* relaxed: before the thread starts */
    ASSERT_OK(weft__thread_start(&t, &(struct weft__thread_options){0}, try_once, NULL));
    weft__thread_join(&t);
    return load_relaxed(&refused); /* relaxed: joined */
}

TEST(lock_try_take_refuses_what_is_held)
{
    weft__lock_take(&lock);
    ASSERT_EQ(refused_in_another_thread(), 1);
    weft__lock_drop(&lock);
    ASSERT_EQ(refused_in_another_thread(), 0);
}

static _Atomic uint32_t got;

static void take_once(void *arg)
{
    (void)arg;
    weft__lock_take(&lock);
    store_relaxed(&got, 1); /* relaxed: read under the lock or after join */
    weft__lock_drop(&lock);
}

/* The word says 2 once a taker is about to sleep; the drop that follows wakes it. */
TEST(lock_drop_wakes_a_sleeper)
{
    struct weft__thread t;

    weft__lock_take(&lock);
    ASSERT_OK(weft__thread_start(&t, &(struct weft__thread_options){0}, take_once, NULL));
    while (load_relaxed(&lock.word) != 2)
        weft__thread_yield();         /* relaxed: a look */
    ASSERT_EQ(load_relaxed(&got), 0); /* relaxed: the lock is ours */
    weft__lock_drop(&lock);
    weft__thread_join(&t);
    ASSERT_EQ(load_relaxed(&got), 1); /* relaxed: joined */
}

#if defined(WEFT_FAULTS)
/* A futex that answers nonsense a few times (a signal, say) delays the taker and does no more. */
TEST(lock_bears_futex_errors)
{
    weft__fault_arm(WEFT__FAULT_FUTEX_WAIT, 1, 3, -EINTR);
    struct weft__thread t;

    weft__lock_take(&lock);
    ASSERT_OK(weft__thread_start(&t, &(struct weft__thread_options){0}, take_once, NULL));
    while (weft__fault_calls(WEFT__FAULT_FUTEX_WAIT) < 4)
        weft__thread_yield();
    weft__lock_drop(&lock);
    weft__thread_join(&t);
    ASSERT_EQ(load_relaxed(&got), 1); /* relaxed: joined */
}
#endif

#if defined(WEFT_DEBUG)

static void take_against_the_order(void *arg)
{
    struct weft__lock wheel = WEFT__LOCK_INIT(WEFT__RANK_WHEEL);
    (void)arg;
    weft__lock_take(&lock);
    weft__lock_take(&wheel);
}

TEST(lock_order_violation_names_both_ranks)
{
    struct death d = death_of(take_against_the_order, NULL);
    ASSERT_EQ(d.signal, SIGABRT);
    ASSERT(strstr(d.said, "wheel"));
    ASSERT(strstr(d.said, "slab"));
}

static void take_twins(void *arg)
{
    struct weft__lock twin = WEFT__LOCK_INIT(WEFT__RANK_SLAB);
    (void)arg;
    weft__lock_take(&lock);
    weft__lock_take(&twin);
}

static void take_against_the_order_by_trying(void *arg)
{
    struct weft__lock wheel = WEFT__LOCK_INIT(WEFT__RANK_WHEEL);
    (void)arg;
    weft__lock_take(&lock);
    (void)weft__lock_try_take(&wheel);
}

TEST(lock_order_holds_for_twins_and_for_trying)
{
    ASSERT_EQ(death_of(take_twins, NULL).signal, SIGABRT);
    ASSERT_EQ(death_of(take_against_the_order_by_trying, NULL).signal, SIGABRT);
}

static void take_twice(void *arg)
{
    (void)arg;
    weft__lock_take(&lock);
    weft__lock_take(&lock);
}

TEST(lock_taken_twice_aborts)
{
    struct death d = death_of(take_twice, NULL);
    ASSERT_EQ(d.signal, SIGABRT);
    ASSERT(strstr(d.said, "held[i] != lock"));
}

static void drop_what_is_not_held(void *arg)
{
    (void)arg;
    weft__lock_drop(&lock);
}

static void drop_from_here(void *arg)
{
    (void)arg;
    weft__lock_drop(&lock);
}

static void drop_in_another_thread(void *arg)
{
    struct weft__thread t;
    (void)arg;
    weft__lock_take(&lock);
    (void)weft__thread_start(&t, &(struct weft__thread_options){0}, drop_from_here, NULL);
    weft__thread_join(&t);
}

TEST(lock_dropped_by_a_stranger_aborts)
{
    struct death d = death_of(drop_what_is_not_held, NULL);
    ASSERT_EQ(d.signal, SIGABRT);
    ASSERT(strstr(d.said, "held_by_this_thread"));
    ASSERT_EQ(death_of(drop_in_another_thread, NULL).signal, SIGABRT);
}

/* Rising ranks are fine, in whatever order they are dropped; a lock without a rank goes
 * anywhere. */
TEST(lock_order_allows_what_rises)
{
    struct weft__lock rt = WEFT__LOCK_INIT(WEFT__RANK_RT);
    struct weft__lock wheel = WEFT__LOCK_INIT(WEFT__RANK_WHEEL);
    struct weft__lock any = WEFT__LOCK_INIT(WEFT__RANK_NONE);

    weft__lock_assert_none_held();
    weft__lock_take(&rt);
    weft__lock_take(&wheel);
    weft__lock_take(&lock);
    weft__lock_take(&any);
    weft__lock_assert_held(&wheel);
    weft__lock_drop(&wheel);
    ASSERT(!weft__lock_order_holds(&wheel));
    weft__lock_assert_held(&lock);
    weft__lock_drop(&rt);
    weft__lock_drop(&any);
    weft__lock_drop(&lock);
    weft__lock_assert_none_held();
}

static void say_none_held(void *arg)
{
    (void)arg;
    weft__lock_take(&lock);
    weft__lock_assert_none_held();
}

static void say_held(void *arg)
{
    (void)arg;
    weft__lock_assert_held(&lock);
}

TEST(lock_assertions_about_holding_are_checked)
{
    ASSERT_EQ(death_of(say_none_held, NULL).signal, SIGABRT);
    ASSERT_EQ(death_of(say_held, NULL).signal, SIGABRT);
}

TEST(lock_every_rank_has_a_name)
{
    for (int rank = 0; rank < WEFT__RANK_COUNT; rank++)
        ASSERT(strcmp(weft__rank_name(rank), "?") != 0);
    ASSERT_STR(weft__rank_name(WEFT__RANK_COUNT), "?");
}

#endif
