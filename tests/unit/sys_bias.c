/* SPDX-License-Identifier: MIT
 *
 * Locks that belong to somebody: numbers, giving and taking back, also where the kernel has no membarrier, or has it no more; and that nobody meets in them.
 */
#include "sys/bias.h"

#include "base/fault.h"
#include "sys/membarrier.h"
#include "test.h"

#include <errno.h>
#include <pthread.h>

struct guarded {
    struct weft__lock lock;
    struct weft__bias_row row;
    uint64_t count;
    uint64_t in; /* how many are in it now */
};

static void guarded_init(struct guarded *g)
{
    *g = (struct guarded){.count = 0};
    weft__lock_init(&g->lock, WEFT__RANK_NONE);
    weft__bias_init(&g->lock, &g->row);
}

static void skip_where_there_is_none(void)
{
    if (weft__membarrier() < 0) TEST_SKIP("no membarrier here");
}

static void give(struct guarded *g, uint16_t number)
{
    (void)weft__bias_take(&g->lock, number, 0);
    weft__bias_give(&g->lock, number);
    weft__bias_drop(&g->lock, number, 0);
}

TEST(bias_numbers_are_different_and_come_back)
{
    bool seen[WEFT__BIAS_NUMBERS] = {false};
    uint16_t last = 0;
    unsigned count = 0;

    for (uint16_t number; (number = weft__bias_number_new()) != 0; count++) {
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
        weft__bias_number_free((uint16_t)i);
}

TEST(bias_row_is_of_one_number)
{
    struct weft__bias_row row = {.last = 1, .left = 3};

    ASSERT(weft__bias_row_goes_on(&row, 1));
    ASSERT(weft__bias_row_goes_on(&row, 1));
    ASSERT(!weft__bias_row_goes_on(&row, 1)); /* the last one */
    row.left = 3;
    ASSERT(!weft__bias_row_goes_on(&row, 2));
    ASSERT_EQ(row.left, 3);
}

/* Its owner takes it without the word; whoever else comes takes it back. */
TEST(bias_is_given_and_taken_back)
{
    struct guarded g;

    skip_where_there_is_none();
    guarded_init(&g);
    ASSERT(!weft__bias_try_take_own(&g.lock, 1, 0));
    ASSERT(!weft__bias_try_take_own(&g.lock, 0, 0)); /* nobody's is not number 0's */
    give(&g, 1);
    ASSERT(!weft__bias_try_take_own(&g.lock, 2, 0));
    ASSERT(!weft__bias_try_take_word(&g.lock, 0));
    ASSERT(weft__bias_try_take_own(&g.lock, 1, 0));
    ASSERT_EQ(g.lock.word, 0);
    ASSERT(!weft__bias_has_word(&g.lock, 1, 0));
    weft__bias_drop(&g.lock, 1, 0);

    ASSERT(weft__bias_take(&g.lock, 2, 0));
    ASSERT(weft__bias_has_word(&g.lock, 2, 0));
    ASSERT_EQ(g.lock.word, 1);
    weft__bias_drop(&g.lock, 2, 0);
    ASSERT_EQ(g.lock.word, 0);
    ASSERT(!weft__bias_try_take_own(&g.lock, 1, 0));
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
    ASSERT(weft__bias_try_take_own(&outer.lock, 1, 0));
    ASSERT(weft__bias_try_take_own(&inner.lock, 1, 1));
    weft__bias_drop(&inner.lock, 1, 1);
    ASSERT(!weft__bias_has_word(&outer.lock, 1, 0));
    weft__bias_drop(&outer.lock, 1, 0);
}

#if defined(WEFT_FAULTS)
TEST(bias_is_given_to_nobody_without_a_membarrier)
{
    struct guarded g;

    guarded_init(&g);
    weft__fault_arm(WEFT__FAULT_MEMBARRIER, 1, 1, -ENOSYS);
    give(&g, 1);
    ASSERT(!weft__bias_try_take_own(&g.lock, 1, 0));
    give(&g, 1); /* it is not asked again */
    ASSERT(!weft__bias_try_take_own(&g.lock, 1, 0));
}

TEST(bias_is_taken_back_although_the_membarrier_is_forbidden_now)
{
    struct guarded g;

    skip_where_there_is_none();
    guarded_init(&g);
    give(&g, 1);
    ASSERT(weft__bias_try_take_own(&g.lock, 1, 0));
    weft__bias_drop(&g.lock, 1, 0);
    weft__fault_arm(WEFT__FAULT_MEMBARRIER, 1, UINT32_MAX, -EPERM);
    ASSERT(weft__bias_take(&g.lock, 2, 0));
    weft__bias_drop(&g.lock, 2, 0);
    ASSERT(!weft__bias_try_take_own(&g.lock, 1, 0));
}
#endif

/* ---- many at once ---- */

struct one {
    struct guarded *g;
    uint16_t number;
    uint64_t rounds;
};

static void *comes_and_goes(void *arg)
{
    struct one *one = arg;

    for (uint64_t i = 0; i < one->rounds; i++) {
        (void)weft__bias_take(&one->g->lock, one->number, 0);
        ASSERT_EQ(++one->g->in, 1);
        one->g->count++;
        one->g->in--;
        if (weft__bias_has_word(&one->g->lock, one->number, 0) && i % 64 == 0)
            weft__bias_give(&one->g->lock, one->number);
        weft__bias_drop(&one->g->lock, one->number, 0);
    }
    return NULL;
}

/* Three that are given it now and then, and one that never is. */
TEST(bias_lets_nobody_in_beside_another)
{
    struct guarded g;
    struct one ones[4];
    pthread_t threads[4];
    uint64_t rounds = test_scaled(100000);

    guarded_init(&g);
    for (uint16_t i = 0; i < 4; i++) {
        ones[i] = (struct one){.g = &g, .number = i, .rounds = rounds};
        ASSERT_OK(pthread_create(&threads[i], NULL, comes_and_goes, &ones[i]));
    }
    for (unsigned i = 0; i < 4; i++)
        ASSERT_OK(pthread_join(threads[i], NULL));
    ASSERT_EQ(g.count, 4 * rounds);
}
