/* SPDX-License-Identifier: MIT
 *
 * The biased lock: its owner's fast way and the others' slow one keep each other out, favour goes and comes back, and a kernel that fences
 * nothing, from the start or from one moment on, is borne.
 */
#include "base/fault.h"
#include "base/rand.h"
#include "death.h"
#include "sys/biased.h"
#include "sys/thread.h"
#include "test.h"

#include <errno.h>

#define OTHERS 3
#define AGAIN  4096 /* of biased.c */

static struct weft__biased lock;

static void begins(void)
{
    weft__biased_init(&lock, WEFT__RANK_SLAB);
    if (!weft__biased_can_favour()) TEST_SKIP("the kernel has no membarrier");
    weft__biased_favour(&lock);
}

static bool passes(enum weft__door door)
{
    bool by_favour = weft__biased_enter(&lock, door);
    weft__biased_leave(&lock, by_favour);
    return by_favour;
}

TEST(biased_favours_its_owner)
{
    begins();
    for (int i = 0; i < 10; i++)
        ASSERT(passes(WEFT__BY_OWNER));
    ASSERT_EQ(load_relaxed(&lock.lock.word), 0); /* relaxed: one thread */
}

/* In a row: whoever comes in between starts the count anew. */
TEST(biased_gives_favour_back_after_a_while)
{
    begins();
    ASSERT(!passes(WEFT__BY_ANY));
    for (int i = 0; i < AGAIN - 1; i++)
        ASSERT(!passes(WEFT__BY_OWNER));
    ASSERT(!passes(WEFT__BY_ANY));
    for (int i = 0; i < AGAIN; i++)
        ASSERT(!passes(WEFT__BY_OWNER));
    ASSERT(passes(WEFT__BY_OWNER));
    ASSERT(!passes(WEFT__BY_ANY)); /* it was in vain: the next time it takes longer */
    for (int i = 0; i < 2 * AGAIN; i++)
        ASSERT(!passes(WEFT__BY_OWNER));
    ASSERT(passes(WEFT__BY_OWNER));
}

TEST(biased_from_init_favours_nobody)
{
    weft__biased_init(&lock, WEFT__RANK_SLAB);
    for (int i = 0; i < AGAIN + 2; i++)
        ASSERT(!passes(WEFT__BY_OWNER));
}

/* ---- many threads ---- */

/* What the lock guards: two counters that are equal whenever it is free. */
static uint64_t left;
static uint64_t right;

struct comer {
    struct weft__thread thread;
    enum weft__door door;
    uint64_t rounds;
    uint64_t seed;
    uint64_t pause; /* others come once in so many turns of a loop; 0: all the time */
};

static void comes(void *arg)
{
    struct comer *c = arg;
    struct weft__rand r;

    weft__rand_seed(&r, c->seed);
    for (uint64_t i = 0; i < c->rounds; i++) {
        bool by_favour = weft__biased_enter(&lock, c->door);
        weft_assert(left == right);
        left++;
        if (weft__rand_chance(&r, 1, 1024)) weft__thread_yield(); /* be off the CPU with the lock held */
        right++;
        weft__biased_leave(&lock, by_favour);
        for (uint64_t n = c->pause ? weft__rand_below(&r, c->pause) : 0; n > 0; n--)
            cpu_pause();
    }
}

static void meet(uint64_t owners, uint64_t others, uint64_t pause)
{
    struct comer all[1 + OTHERS];
    begins();
    left = right = 0;
    for (unsigned i = 0; i <= OTHERS; i++) {
        all[i] = (struct comer){
            .door = i == 0 ? WEFT__BY_OWNER : WEFT__BY_ANY,
            .rounds = i == 0 ? owners : others,
            .seed = test_seed() + i,
            .pause = i == 0 ? 0 : pause,
        };
        ASSERT_OK(weft__thread_start(&all[i].thread, &(struct weft__thread_options){.name = "comer"}, comes, &all[i]));
    }
    for (unsigned i = 0; i <= OTHERS; i++)
        weft__thread_join(&all[i].thread);
    ASSERT_EQ(left, owners + OTHERS * others);
    ASSERT_EQ(right, left);
}

TEST(biased_keeps_others_out)
{
    meet(test_scaled(200000), test_scaled(20000), 0);
}

/* So seldom that the owner is favoured again each time: each of them pays for a fence. */
TEST(biased_keeps_out_who_comes_seldom)
{
    meet(test_scaled(20000000), test_scaled(300), 100000);
}

/* ---- one that is inside ---- */

static _Atomic uint32_t got;

static void comes_once(void *unused)
{
    (void)unused;
    bool by_favour = weft__biased_enter(&lock, WEFT__BY_ANY);
    store_relaxed(&got, 1); /* relaxed: read after join, or a look */
    weft__biased_leave(&lock, by_favour);
}

TEST(biased_waits_for_an_owner_that_is_inside)
{
    struct weft__thread t;
    begins();
    bool by_favour = weft__biased_enter(&lock, WEFT__BY_OWNER);
    ASSERT(by_favour);
    ASSERT_OK(weft__thread_start(&t, &(struct weft__thread_options){0}, comes_once, NULL));
    while (load_relaxed(&lock.favours)) /* relaxed: a look */
        weft__thread_yield();
    for (int i = 0; i < 100; i++)
        weft__thread_yield();
    ASSERT_EQ(load_relaxed(&got), 0); /* relaxed: it is not in */
    weft__biased_leave(&lock, by_favour);
    weft__thread_join(&t);
    ASSERT_EQ(load_relaxed(&got), 1); /* relaxed: joined */
}

#if defined(WEFT_FAULTS)
TEST(biased_asks_whether_the_kernel_can)
{
    weft__fault_arm(WEFT__FAULT_MEMBARRIER, 1, 1, -ENOSYS);
    ASSERT(!weft__biased_can_favour());
}

/* It could when it was asked, and cannot now: the program has put up a filter since. */
TEST(biased_bears_a_fence_that_is_gone)
{
    struct weft__thread t;
    begins();
    weft__fault_arm(WEFT__FAULT_MEMBARRIER, 1, 1000, -ENOSYS);
    bool by_favour = weft__biased_enter(&lock, WEFT__BY_OWNER);
    ASSERT_OK(weft__thread_start(&t, &(struct weft__thread_options){0}, comes_once, NULL));
    while (load_relaxed(&lock.favours)) /* relaxed: a look */
        weft__thread_yield();
    ASSERT_EQ(load_relaxed(&got), 0); /* relaxed: as above */
    weft__biased_leave(&lock, by_favour);
    weft__thread_join(&t);
    ASSERT_EQ(load_relaxed(&got), 1); /* relaxed: as above */
    for (int i = 0; i < 3 * AGAIN; i++)
        ASSERT(!passes(WEFT__BY_OWNER)); /* once is enough */
}
#endif

#if defined(WEFT_DEBUG)
static void take_against_the_order(void *unused)
{
    struct weft__lock wheel = WEFT__LOCK_INIT(WEFT__RANK_WHEEL);
    (void)unused;
    (void)weft__biased_enter(&lock, WEFT__BY_OWNER);
    weft__lock_take(&wheel);
}

TEST(biased_has_a_rank_by_either_way)
{
    begins();
    struct death d = death_of(take_against_the_order, NULL);
    ASSERT_EQ(d.signal, SIGABRT);
    ASSERT(strstr(d.said, "slab"));
    (void)passes(WEFT__BY_ANY);
    d = death_of(take_against_the_order, NULL);
    ASSERT_EQ(d.signal, SIGABRT);
    ASSERT(strstr(d.said, "slab"));
}
#endif
