/* SPDX-License-Identifier: MIT
 *
 * Locks that belong to somebody, lent or kept: numbers, rows, giving and taking back, also where the kernel has no membarrier, or has it no more; and that nobody meets in them.
 */
#include "sys/bias.h"

#include "base/fault.h"
#include "base/rand.h"
#include "death.h"
#include "sys/membarrier.h"
#include "sys/thread.h"
#include "test.h"

#include <errno.h>

static void skip_where_there_is_none(void)
{
    if (weft__membarrier() < 0) TEST_SKIP("no membarrier here");
}

/* ---- numbers ---- */

TEST(bias_numbers_are_different_and_come_back)
{
    bool seen[WEFT__BIAS_NUMBERS] = {false};
    uint8_t last = 0;
    unsigned count = 0;

    for (uint8_t number; (number = weft__bias_number_new()) != 0; count++) {
        ASSERT_LE(number, WEFT__BIAS_NUMBERS - 1);
        ASSERT(!seen[number]);
        seen[number] = true;
        last = number;
    }
    ASSERT_EQ(count, WEFT__BIAS_NUMBERS - 1);
    weft__bias_number_free(0); /* is nothing */
    weft__bias_number_free(last);
    ASSERT_EQ(weft__bias_number_new(), last);
    ASSERT_EQ(weft__bias_number_new(), 0);
    for (unsigned i = 1; i < WEFT__BIAS_NUMBERS; i++)
        weft__bias_number_free((uint8_t)i);
}

/* As in the child of a fork: whoever was inside a lock stays there. */
TEST(bias_forgets_numbers_but_for_those_inside)
{
    struct weft__lock lock;
    uint32_t row;

    weft__lock_init(&lock, WEFT__RANK_NONE);
    weft__bias_begin(&lock, 0, &row);
    for (unsigned i = 1; i < WEFT__BIAS_NUMBERS; i++)
        ASSERT(weft__bias_number_new());
    store_relaxed(&lock.owner, 2); /* relaxed: one thread */
    ASSERT(weft__bias_try_take_lent(&lock, 2, 1));
    weft__bias_forget();
    ASSERT_EQ(weft__bias_number_new(), 1);
    ASSERT_EQ(weft__bias_number_new(), 3);
    weft__bias_drop_lent(&lock, 2, 1);
    weft__bias_forget();
    for (unsigned i = 1; i < WEFT__BIAS_NUMBERS; i++)
        ASSERT_EQ(weft__bias_number_new(), i);
}

/* ---- lent ---- */

/* What a lent lock guards. */
struct guarded {
    struct weft__lock lock;
    uint32_t left;
};

static void guarded_init(struct guarded *g)
{
    weft__lock_init(&g->lock, WEFT__RANK_NONE);
    weft__bias_begin(&g->lock, WEFT__BIAS_LENT_BITS, &g->left);
}

static void give(struct guarded *g, uint8_t number)
{
    (void)weft__bias_take(&g->lock, number, 0);
    weft__bias_give(&g->lock, number);
    weft__bias_drop(&g->lock, number, 0);
}

/* One operation of a row. True: it had the word. */
static bool counts(struct guarded *g, uint8_t number)
{
    (void)weft__bias_take(&g->lock, number, 0);
    bool by_word = weft__bias_has_word(&g->lock, number, 0);
    if (by_word) weft__bias_count(&g->lock, &g->left, number);
    weft__bias_drop(&g->lock, number, 0);
    return by_word;
}

/* The last of so many in a row, by its word, gives it; whoever else comes begins a new one. */
static void row_of(struct guarded *g, uint8_t number, uint32_t length)
{
    for (uint32_t i = 0; i < length; i++) {
        ASSERT(!weft__bias_is_given(&g->lock));
        ASSERT(counts(g, number));
    }
    ASSERT(weft__bias_is_given(&g->lock));
    ASSERT(!counts(g, number));
}

TEST(bias_row_is_of_one_number)
{
    struct guarded g;

    skip_where_there_is_none();
    guarded_init(&g);
    for (int i = 0; i < (1 << WEFT__BIAS_LENT_BITS) - 1; i++)
        ASSERT(counts(&g, 1));
    ASSERT(counts(&g, 2));
    row_of(&g, 1, 1 << WEFT__BIAS_LENT_BITS);
}

/* It was in vain: the next time it takes longer; up to a bound. */
TEST(bias_row_doubles_with_each_time_that_it_was_taken_back)
{
    struct guarded g;

    skip_where_there_is_none();
    guarded_init(&g);
    for (unsigned bits = WEFT__BIAS_LENT_BITS; bits <= WEFT__BIAS_LENT_BITS_MAX + 1; bits++) {
        unsigned most = bits < WEFT__BIAS_LENT_BITS_MAX ? bits : WEFT__BIAS_LENT_BITS_MAX;
        row_of(&g, 1, UINT32_C(1) << most);
        ASSERT(weft__bias_take(&g.lock, 2, 0));
        weft__bias_drop(&g.lock, 2, 0);
    }
}

TEST(bias_row_of_nobody_comes_to_nothing)
{
    struct guarded g;

    guarded_init(&g);
    for (int i = 0; i < 2 << WEFT__BIAS_LENT_BITS; i++)
        ASSERT(counts(&g, 0));
    ASSERT(!weft__bias_is_given(&g.lock));
}

/* Its owner takes it without the word; whoever else comes takes it back. */
TEST(bias_is_given_and_taken_back)
{
    struct guarded g;

    skip_where_there_is_none();
    guarded_init(&g);
    ASSERT(!weft__bias_try_take_lent(&g.lock, 1, 0));
    ASSERT(!weft__bias_try_take_lent(&g.lock, 0, 0)); /* nobody's is not number 0's */
    give(&g, 1);
    ASSERT(!weft__bias_try_take_lent(&g.lock, 2, 0));
    ASSERT(!weft__bias_try_take_word(&g.lock));
    ASSERT(weft__bias_try_take_lent(&g.lock, 1, 0));
    ASSERT_EQ(g.lock.word, 0);
    ASSERT(!weft__bias_has_word(&g.lock, 1, 0));
    weft__bias_drop(&g.lock, 1, 0);

    ASSERT(weft__bias_take(&g.lock, 2, 0));
    ASSERT(weft__bias_has_word(&g.lock, 2, 0));
    ASSERT_EQ(g.lock.word, 1);
    weft__bias_drop(&g.lock, 2, 0);
    ASSERT_EQ(g.lock.word, 0);
    ASSERT(!weft__bias_try_take_lent(&g.lock, 1, 0));
    ASSERT(!weft__bias_take(&g.lock, 1, 0)); /* by its word, as it is nobody's */
    weft__bias_drop(&g.lock, 1, 0);
}

/* Two at once, each at its place. */
TEST(bias_holds_two_locks)
{
    struct guarded outer, inner;

    skip_where_there_is_none();
    guarded_init(&outer);
    guarded_init(&inner);
    give(&outer, 1);
    (void)weft__bias_take(&inner.lock, 1, 1);
    weft__bias_give(&inner.lock, 1);
    weft__bias_drop(&inner.lock, 1, 1);
    ASSERT(weft__bias_try_take_lent(&outer.lock, 1, 0));
    ASSERT(weft__bias_try_take_lent(&inner.lock, 1, 1));
    weft__bias_drop(&inner.lock, 1, 1);
    ASSERT(!weft__bias_has_word(&outer.lock, 1, 0));
    weft__bias_drop(&outer.lock, 1, 0);
}

/* ---- kept ---- */

#define AGAIN 4096 /* the owner's first row, of bias.c */

static struct weft__bias kept;

static void keeps(void)
{
    skip_where_there_is_none();
    weft__bias_init(&kept, WEFT__RANK_SLAB);
    weft__bias_favour(&kept);
}

static bool passes(enum weft__door door)
{
    bool by_favour = weft__bias_enter(&kept, door);
    weft__bias_leave(&kept, by_favour);
    return by_favour;
}

TEST(bias_favours_its_owner)
{
    keeps();
    for (int i = 0; i < 10; i++)
        ASSERT(passes(WEFT__BY_OWNER));
    ASSERT_EQ(load_relaxed(&kept.lock.word), 0); /* relaxed: one thread */
}

/* In a row: whoever comes in between starts the count anew. */
TEST(bias_gives_favour_back_after_a_while)
{
    keeps();
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

TEST(bias_from_init_favours_nobody)
{
    weft__bias_init(&kept, WEFT__RANK_SLAB);
    for (int i = 0; i < AGAIN + 2; i++)
        ASSERT(!passes(WEFT__BY_OWNER));
}

/* ---- one that is inside ---- */

static _Atomic uint32_t got;

static void comes_once(void *unused)
{
    (void)unused;
    bool by_favour = weft__bias_enter(&kept, WEFT__BY_ANY);
    store_relaxed(&got, 1); /* relaxed: read after join, or a look */
    weft__bias_leave(&kept, by_favour);
}

/* Another comes while the owner is inside: it waits until that is out. */
static void waits_for_the_owner(void)
{
    struct weft__thread t;
    bool by_favour = weft__bias_enter(&kept, WEFT__BY_OWNER);

    ASSERT(by_favour);
    ASSERT_OK(weft__thread_start(&t, &(struct weft__thread_options){0}, comes_once, NULL));
    while (weft__bias_is_given(&kept.lock))
        weft__thread_yield();
    for (int i = 0; i < 100; i++)
        weft__thread_yield();
    ASSERT_EQ(load_relaxed(&got), 0); /* relaxed: it is not in */
    weft__bias_leave(&kept, by_favour);
    weft__thread_join(&t);
    ASSERT_EQ(load_relaxed(&got), 1); /* relaxed: joined */
}

TEST(bias_waits_for_an_owner_that_is_inside)
{
    keeps();
    waits_for_the_owner();
}

/* ---- a kernel without ---- */

#if defined(WEFT_FAULTS)
TEST(bias_is_given_to_nobody_without_a_membarrier)
{
    struct guarded g;

    guarded_init(&g);
    weft__fault_arm(WEFT__FAULT_MEMBARRIER, 1, 1, -ENOSYS);
    give(&g, 1);
    ASSERT(!weft__bias_try_take_lent(&g.lock, 1, 0));
    give(&g, 1); /* it is not asked again */
    ASSERT(!weft__bias_try_take_lent(&g.lock, 1, 0));
    weft__bias_init(&kept, WEFT__RANK_SLAB);
    weft__bias_favour(&kept);
    for (int i = 0; i < 2 * AGAIN; i++)
        ASSERT(!passes(WEFT__BY_OWNER));
}

/* It could when it was asked, and cannot now: the program has put up a filter since. Once is enough: nothing is given any more. */
TEST(bias_is_taken_back_although_the_membarrier_is_forbidden_now)
{
    struct guarded g;

    skip_where_there_is_none();
    guarded_init(&g);
    give(&g, 1);
    ASSERT(weft__bias_try_take_lent(&g.lock, 1, 0));
    weft__bias_drop(&g.lock, 1, 0);
    weft__fault_arm(WEFT__FAULT_MEMBARRIER, 1, UINT32_MAX, -EPERM);
    ASSERT(weft__bias_take(&g.lock, 2, 0));
    weft__bias_drop(&g.lock, 2, 0);
    ASSERT(!weft__bias_try_take_lent(&g.lock, 1, 0));
    give(&g, 1);
    ASSERT(!weft__bias_is_given(&g.lock));
}

TEST(bias_bears_a_fence_that_is_gone_while_the_owner_is_inside)
{
    keeps();
    weft__fault_arm(WEFT__FAULT_MEMBARRIER, 1, 1000, -ENOSYS);
    waits_for_the_owner();
    for (int i = 0; i < 3 * AGAIN; i++)
        ASSERT(!passes(WEFT__BY_OWNER));
}
#endif

#if defined(WEFT_DEBUG)
static void take_against_the_order(void *unused)
{
    struct weft__lock wheel = WEFT__LOCK_INIT(WEFT__RANK_WHEEL);
    (void)unused;
    (void)weft__bias_enter(&kept, WEFT__BY_OWNER);
    weft__lock_take(&wheel);
}

TEST(bias_has_a_rank_by_either_way)
{
    keeps();
    struct death d = death_of(take_against_the_order, NULL);
    ASSERT_EQ(d.signal, SIGABRT);
    ASSERT(strstr(d.said, "slab"));
    (void)passes(WEFT__BY_ANY);
    d = death_of(take_against_the_order, NULL);
    ASSERT_EQ(d.signal, SIGABRT);
    ASSERT(strstr(d.said, "slab"));
}
#endif

/* ---- many threads ---- */

#define COMERS 4

static struct guarded lent;

/* What either lock guards: two counters that are equal whenever it is free. */
static uint64_t left;
static uint64_t right;

/* One who comes to the kept lock, or to the lent one. */
struct comer {
    struct weft__thread thread;
    enum weft__door door; /* kept */
    uint8_t number;       /* lent */
    uint64_t rounds;
    uint64_t seed;
    uint64_t pause; /* it comes once in so many turns of a loop; 0: all the time */
};

/* Perhaps it is off the CPU with the lock held. */
static void touch(struct weft__rand *r)
{
    weft_assert(left == right);
    left++;
    if (weft__rand_chance(r, 1, 1024)) weft__thread_yield();
    right++;
}

static void comes_to_kept(void *arg)
{
    struct comer *c = arg;
    struct weft__rand r;

    weft__rand_seed(&r, c->seed);
    for (uint64_t i = 0; i < c->rounds; i++) {
        bool by_favour = weft__bias_enter(&kept, c->door);
        touch(&r);
        weft__bias_leave(&kept, by_favour);
        for (uint64_t n = c->pause ? weft__rand_below(&r, c->pause) : 0; n > 0; n--)
            cpu_pause();
    }
}

/* It is given the lock now and then, unless it is nobody. Now and then it tries, and comes in the end. */
static void comes_to_lent(void *arg)
{
    struct comer *c = arg;
    struct weft__rand r;

    weft__rand_seed(&r, c->seed);
    for (uint64_t i = 0; i < c->rounds; i++) {
        if (i % 3 > 0 || !weft__bias_try_take_word(&lent.lock))
            (void)weft__bias_take(&lent.lock, c->number, 0);
        touch(&r);
        if (weft__bias_has_word(&lent.lock, c->number, 0) && i % 64 == 0)
            weft__bias_give(&lent.lock, c->number);
        weft__bias_drop(&lent.lock, c->number, 0);
    }
}

static void meet(struct comer all[COMERS], void (*comes)(void *))
{
    uint64_t rounds = 0;
    left = right = 0;
    for (unsigned i = 0; i < COMERS; i++) {
        all[i].seed = test_seed() + i;
        rounds += all[i].rounds;
        ASSERT_OK(weft__thread_start(
            &all[i].thread, &(struct weft__thread_options){.name = "comer"}, comes, &all[i]));
    }
    for (unsigned i = 0; i < COMERS; i++)
        weft__thread_join(&all[i].thread);
    ASSERT_EQ(left, rounds);
    ASSERT_EQ(right, rounds);
}

static void meet_at_kept(uint64_t owners, uint64_t others, uint64_t pause)
{
    struct comer other = {.door = WEFT__BY_ANY, .rounds = others, .pause = pause};
    struct comer all[COMERS] = {{.door = WEFT__BY_OWNER, .rounds = owners}, other, other, other};
    keeps();
    meet(all, comes_to_kept);
}

TEST(bias_keeps_others_out)
{
    meet_at_kept(test_scaled(200000), test_scaled(20000), 0);
}

/* So seldom that the owner is favoured again each time: each of them pays for a fence. */
TEST(bias_keeps_out_who_comes_seldom)
{
    meet_at_kept(test_scaled(20000000), test_scaled(300), 100000);
}

/* Three that are given it now and then, and one that never is. */
TEST(bias_lent_lets_nobody_in_beside_another)
{
    struct comer all[COMERS];
    for (uint8_t i = 0; i < COMERS; i++)
        all[i] = (struct comer){.number = i, .rounds = test_scaled(100000)};
    guarded_init(&lent);
    meet(all, comes_to_lent);
}
