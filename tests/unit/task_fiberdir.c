/* SPDX-License-Identifier: MIT
 *
 * Fibers by number: distinct, found again through every block, used anew, and nothing kept at the
 * end (the harness sees to that); one at a time and by several threads.
 */
#include "task/fiberdir.h"

#include "base/fault.h"
#include "test.h"

#include <errno.h>
#include <pthread.h>

/* An address that stands for a fiber: the directory never looks at it. */
static struct weft__fiber *mark(uintptr_t value)
{
    return (struct weft__fiber *)(value * 64 + 64);
}

/* Five blocks and a bit: 64, 128, ... */
#define MANY 2500

TEST(fiberdir_finds_each_through_all_blocks)
{
    static int32_t number[MANY];
    static bool seen[MANY + 1];
    for (int i = 0; i < MANY; i++) {
        number[i] = weft__fiberdir_add(mark((uintptr_t)i));
        ASSERT(number[i] > 0);
        ASSERT_LE(number[i], MANY + 2048); /* dense: the doubling's waste at most */
        if (number[i] <= MANY) {
            ASSERT(!seen[number[i]]);
            seen[number[i]] = true;
        }
    }
    for (int i = 0; i < MANY; i++)
        ASSERT_PTR(weft__fiberdir_get(number[i]), mark((uintptr_t)i));
    for (int i = 0; i < MANY; i += 2)
        weft__fiberdir_remove(number[i]);
    for (int i = 1; i < MANY; i += 2)
        ASSERT_PTR(weft__fiberdir_get(number[i]), mark((uintptr_t)i));
    for (int i = 1; i < MANY; i += 2)
        weft__fiberdir_remove(number[i]);
}

TEST(fiberdir_gives_back_the_place_that_was_freed_last)
{
    int32_t first = weft__fiberdir_add(mark(1));
    int32_t second = weft__fiberdir_add(mark(2));
    weft__fiberdir_remove(first);
    ASSERT_EQ(weft__fiberdir_add(mark(3)), first);
    ASSERT_PTR(weft__fiberdir_get(first), mark(3));
    ASSERT_PTR(weft__fiberdir_get(second), mark(2));
    weft__fiberdir_remove(second);
    weft__fiberdir_remove(first);
    ASSERT_EQ(weft__fiberdir_add(mark(4)), 1); /* from the beginning: none was in use */
    weft__fiberdir_remove(1);
}

TEST(fiberdir_empties_and_fills_again)
{
    for (int round = 0; round < 20; round++) {
        int32_t number[300];
        for (int i = 0; i < 300; i++)
            number[i] = weft__fiberdir_add(mark((uintptr_t)i));
        for (int i = 300; i-- > 0;) {
            ASSERT_PTR(weft__fiberdir_get(number[i]), mark((uintptr_t)i));
            weft__fiberdir_remove(number[i]);
        }
    }
}

#if defined(WEFT_FAULTS)
/* The first 64 need no memory; the 65th does, and says so when there is none. */
TEST(fiberdir_without_memory_says_so_and_keeps_the_rest)
{
    int32_t number[65];
    for (int i = 0; i < 64; i++)
        number[i] = weft__fiberdir_add(mark((uintptr_t)i));
    weft__fault_arm(WEFT__FAULT_ALLOC, 1, 1, -ENOMEM);
    ASSERT_EQ(weft__fiberdir_add(mark(64)), -ENOMEM);
    weft__fault_reset();
    number[64] = weft__fiberdir_add(mark(64));
    ASSERT(number[64] > 0);
    for (int i = 0; i < 65; i++) {
        ASSERT_PTR(weft__fiberdir_get(number[i]), mark((uintptr_t)i));
        weft__fiberdir_remove(number[i]);
    }
}
#endif

#define THREADS 4
#define HELD    100

/* Each thread holds up to HELD numbers, and finds its own marks under them. */
static void *churn(void *arg)
{
    uintptr_t me = (uintptr_t)arg;
    int32_t number[HELD] = {0};
    uint64_t rounds = test_scaled(20000);
    for (uint64_t i = 0; i < rounds; i++) {
        uintptr_t at = (i * 7 + me) % HELD;
        if (number[at]) {
            ASSERT_PTR(weft__fiberdir_get(number[at]), mark(me * HELD + at));
            weft__fiberdir_remove(number[at]);
            number[at] = 0;
        } else {
            number[at] = weft__fiberdir_add(mark(me * HELD + at));
            ASSERT(number[at] > 0);
        }
    }
    for (uintptr_t at = 0; at < HELD; at++) {
        if (!number[at]) continue;
        ASSERT_PTR(weft__fiberdir_get(number[at]), mark(me * HELD + at));
        weft__fiberdir_remove(number[at]);
    }
    return NULL;
}

TEST(fiberdir_by_four_threads_at_once)
{
    pthread_t thread[THREADS];
    int32_t mine = weft__fiberdir_add(mark(99999)); /* so that it grows once, and stays grown */
    for (uintptr_t i = 0; i < THREADS; i++)
        ASSERT_OK(pthread_create(&thread[i], NULL, churn, (void *)i));
    for (int i = 0; i < THREADS; i++)
        ASSERT_OK(pthread_join(thread[i], NULL));
    ASSERT_PTR(weft__fiberdir_get(mine), mark(99999));
    weft__fiberdir_remove(mine);
}
