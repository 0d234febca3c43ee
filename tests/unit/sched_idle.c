/* SPDX-License-Identifier: MIT
 *
 * The idle words: who may search, who sleeps, who is woken; with one group and with several. The
 * orders are the model checker's business, the races of real threads that of
 * tests/stress/sched_idle.c.
 */
#include "sched/idle.h"

#include "test.h"

#include <signal.h>

#define MANY (WEFT__IDLE_GROUP_WORKERS + 4) /* workers of two groups */
#define FAR  (WEFT__IDLE_GROUP_WORKERS + 1) /* one of the second */

static void assert_counts(const struct weft__idle *idle, uint32_t searching, uint32_t sleeping)
{
    ASSERT_EQ(weft__idle_searching(idle), searching);
    ASSERT_EQ(weft__idle_sleeping(idle), sleeping);
}

TEST(idle_one_searches_at_a_time)
{
    struct weft__idle idle;
    weft__idle_init(&idle, MANY);
    ASSERT(weft__idle_search_begin(&idle, 0));
    ASSERT(!weft__idle_search_begin(&idle, 1));
    ASSERT(!weft__idle_search_begin(&idle, FAR));
    assert_counts(&idle, 1, 0);
    ASSERT(weft__idle_search_end(&idle, 0));
    ASSERT(weft__idle_search_begin(&idle, FAR));
    ASSERT(!weft__idle_search_begin(&idle, 0));
}

TEST(idle_search_end_tells_the_last_of_a_group)
{
    struct weft__idle idle;
    weft__idle_init(&idle, 4);
    weft__idle_sleep(&idle, 1, false);
    ASSERT(weft__idle_search_begin(&idle, 0));
    ASSERT(weft__idle_unsleep(&idle, 1)); /* a second searcher */
    assert_counts(&idle, 2, 0);
    ASSERT(!weft__idle_search_end(&idle, 0));
    ASSERT(weft__idle_search_end(&idle, 1));
    assert_counts(&idle, 0, 0);
}

TEST(idle_sleep_gives_up_the_search_in_the_same_step)
{
    struct weft__idle idle;
    weft__idle_init(&idle, 2);
    ASSERT(weft__idle_search_begin(&idle, 1));
    weft__idle_sleep(&idle, 1, true);
    assert_counts(&idle, 0, 1);
    weft__idle_sleep(&idle, 0, false);
    assert_counts(&idle, 0, 2);
}

TEST(idle_wake_one_makes_a_sleeper_a_searcher)
{
    struct weft__idle idle;
    weft__idle_init(&idle, 3);
    weft__idle_sleep(&idle, 2, false);
    weft__idle_sleep(&idle, 1, false);
    ASSERT_EQ(weft__idle_wake_one(&idle, 0), 1);
    assert_counts(&idle, 1, 1);
    ASSERT_EQ(weft__idle_wake_one(&idle, 0), WEFT__IDLE_NOBODY); /* somebody searches */
    ASSERT(!weft__idle_unsleep(&idle, 1));                       /* it holds the right already */
    ASSERT(weft__idle_search_end(&idle, 1));
    ASSERT_EQ(weft__idle_wake_one(&idle, 0), 2);
    weft__idle_sleep(&idle, 2, true);
    assert_counts(&idle, 0, 1);
}

TEST(idle_wake_one_finds_nobody_when_all_run)
{
    struct weft__idle idle;
    weft__idle_init(&idle, MANY);
    ASSERT(!weft__idle_hint(&idle));
    ASSERT_EQ(weft__idle_wake_one(&idle, 0), WEFT__IDLE_NOBODY);
    ASSERT_EQ(weft__idle_submit(&idle), WEFT__IDLE_NOBODY);
}

TEST(idle_unsleep_by_oneself_searches_too)
{
    struct weft__idle idle;
    weft__idle_init(&idle, 2);
    weft__idle_sleep(&idle, 0, false);
    ASSERT(weft__idle_unsleep(&idle, 0));
    assert_counts(&idle, 1, 0);
    ASSERT(!weft__idle_unsleep(&idle, 0));
    ASSERT(weft__idle_search_end(&idle, 0));
}

TEST(idle_wake_one_prefers_its_own_group)
{
    struct weft__idle idle;
    weft__idle_init(&idle, MANY);
    weft__idle_sleep(&idle, 3, false);
    weft__idle_sleep(&idle, FAR, false);
    ASSERT_EQ(weft__idle_wake_one(&idle, FAR + 1), FAR);
    ASSERT(weft__idle_search_end(&idle, FAR));
    ASSERT_EQ(weft__idle_wake_one(&idle, FAR), 3);
}

TEST(idle_wake_one_looks_at_every_group)
{
    struct weft__idle idle;
    weft__idle_init(&idle, MANY);
    weft__idle_sleep(&idle, FAR, false);
    ASSERT(weft__idle_search_begin(&idle, 0));
    ASSERT_EQ(weft__idle_wake_one(&idle, FAR),
              WEFT__IDLE_NOBODY); /* the searcher is of the other group */
    ASSERT(weft__idle_search_end(&idle, 0));
    ASSERT_EQ(weft__idle_submit(&idle), FAR);
}

TEST(idle_looks_say_when_a_wake_is_due)
{
    struct weft__idle idle;
    weft__idle_init(&idle, MANY);
    weft__idle_sleep(&idle, FAR, false);
    ASSERT(weft__idle_hint(&idle));
    ASSERT(weft__idle_look(&idle));
    ASSERT(weft__idle_search_begin(&idle, 0));
    ASSERT(!weft__idle_hint(&idle));
    ASSERT(!weft__idle_look(&idle));
}

TEST(idle_holds_as_many_workers_as_there_may_be)
{
    struct weft__idle idle;
    weft__idle_init(&idle, WEFT__WORKERS_MAX);
    for (uint32_t i = 0; i < WEFT__WORKERS_MAX; i++)
        weft__idle_sleep(&idle, i, false);
    assert_counts(&idle, 0, WEFT__WORKERS_MAX);
    for (uint32_t i = 0; i < WEFT__WORKERS_MAX; i++) {
        ASSERT_EQ(weft__idle_submit(&idle), i);
        ASSERT(weft__idle_search_end(&idle, i));
    }
    for (uint32_t i = 0; i < WEFT__WORKERS_MAX; i++)
        weft__idle_sleep(&idle, i, false);
    for (uint32_t i = 0; i < WEFT__WORKERS_MAX; i++)
        ASSERT(weft__idle_unsleep(&idle, i));
    assert_counts(&idle, WEFT__WORKERS_MAX,
                  0); /* all of a group search: the count does not run into the next */
}

TEST(idle_words_lie_on_lines_of_their_own)
{
    ASSERT_EQ(sizeof(struct weft__idle_group), WEFT__CACHE_LINE);
    ASSERT_GE(offsetof(struct weft__idle, group_count), WEFT__IDLE_GROUPS_MAX * WEFT__CACHE_LINE);
}

#define MISUSE(name) TEST_WITH(name, .timeout_s = 60, .signal = SIGABRT)

MISUSE(idle_without_workers)
{
    struct weft__idle idle;
    weft__idle_init(&idle, 0);
}

MISUSE(idle_with_too_many_workers)
{
    struct weft__idle idle;
    weft__idle_init(&idle, WEFT__WORKERS_MAX + 1);
}

MISUSE(idle_worker_that_does_not_exist)
{
    struct weft__idle idle;
    weft__idle_init(&idle, 2);
    weft__idle_sleep(&idle, 2, false);
}

MISUSE(idle_sleep_twice)
{
    struct weft__idle idle;
    weft__idle_init(&idle, 2);
    weft__idle_sleep(&idle, 1, false);
    weft__idle_sleep(&idle, 1, false);
}

MISUSE(idle_sleep_gives_up_a_search_that_is_not)
{
    struct weft__idle idle;
    weft__idle_init(&idle, 2);
    weft__idle_sleep(&idle, 1, true);
}

MISUSE(idle_search_end_without_search)
{
    struct weft__idle idle;
    weft__idle_init(&idle, 2);
    (void)weft__idle_search_end(&idle, 1);
}

MISUSE(idle_search_begin_by_a_sleeper)
{
    struct weft__idle idle;
    weft__idle_init(&idle, 2);
    weft__idle_sleep(&idle, 1, false);
    (void)weft__idle_search_begin(&idle, 1);
}

MISUSE(idle_wake_one_from_a_group_that_does_not_exist)
{
    struct weft__idle idle;
    weft__idle_init(&idle, 2);
    (void)weft__idle_wake_one(&idle, FAR);
}

/* ---- one particular sleeper ---- */

TEST(idle_wake_takes_that_one_whoever_searches)
{
    struct weft__idle idle;
    weft__idle_init(&idle, MANY);
    weft__idle_sleep(&idle, 1, false);
    weft__idle_sleep(&idle, FAR, false);
    ASSERT(weft__idle_search_begin(&idle, 0));
    ASSERT(weft__idle_wake(&idle, FAR));
    assert_counts(&idle, 2, 1);
    ASSERT(!weft__idle_wake(&idle, FAR)); /* it is awake */
    ASSERT(!weft__idle_wake(&idle, 0));
    ASSERT(!weft__idle_unsleep(&idle, FAR)); /* it searches already */
    ASSERT(weft__idle_search_end(&idle, FAR));
    ASSERT(weft__idle_wake(&idle, 1));
    ASSERT(!weft__idle_search_end(&idle, 0)); /* the other one still does */
    ASSERT(weft__idle_search_end(&idle, 1));
    assert_counts(&idle, 0, 0);
}
