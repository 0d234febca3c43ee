/* SPDX-License-Identifier: MIT
 *
 * Whom the monitor helps, what a leave is good for, how often it looks, and when it sleeps.
 */
#include "sched/watch.h"

#include "test.h"

#include <pthread.h>
#include <sched.h>

/* ---- who stands still ---- */

static bool still(struct weft__look before, struct weft__look now)
{
    return weft__look_stands_still(&before, &now);
}

TEST(watch_one_poll_with_work_behind_it_stands_still)
{
    ASSERT(still((struct weft__look){7, 3, 1}, (struct weft__look){7, 3, 1}));
    ASSERT(still((struct weft__look){0, 0, 1}, (struct weft__look){0, 0, 1}));   /* its first */
    ASSERT(still((struct weft__look){7, 3, 300}, (struct weft__look){7, 3, 2})); /* being robbed */
    ASSERT(still((struct weft__look){7, 3, 1}, (struct weft__look){7, 3, 400})); /* it spawns */
}

TEST(watch_who_ends_polls_or_turns_moves)
{
    ASSERT(!still((struct weft__look){7, 3, 1}, (struct weft__look){8, 3, 1}));
    ASSERT(!still((struct weft__look){7, 3, 1}, (struct weft__look){7, 4, 1}));
    ASSERT(!still((struct weft__look){UINT64_MAX, 3, 1}, (struct weft__look){0, 3, 1}));
}

TEST(watch_without_work_behind_it_at_both_looks_nobody_waits)
{
    ASSERT(!still((struct weft__look){7, 3, 0}, (struct weft__look){7, 3, 0}));
    ASSERT(
        !still((struct weft__look){7, 3, 1}, (struct weft__look){7, 3, 0})); /* taken meanwhile */
    ASSERT(!still((struct weft__look){7, 3, 0}, (struct weft__look){7, 3, 1})); /* just found */
}

/* ---- leave ---- */

TEST(watch_leave_ends_with_the_poll)
{
    struct weft__leave leave = {0};
    _Atomic uint64_t polls = 0;
    ASSERT(!weft__leave_stands(&leave, &polls));
    weft__leave_give(&leave, 0);
    ASSERT(weft__leave_stands(&leave, &polls));
    ASSERT(weft__leave_stands(&leave, &polls)); /* for every thief */
    store_relaxed(&polls, 1);
    ASSERT(!weft__leave_stands(&leave, &polls));
    weft__leave_give(&leave, 1);
    ASSERT(weft__leave_stands(&leave, &polls));
    weft__leave_take_back(&leave);
    ASSERT(!weft__leave_stands(&leave, &polls));
    weft__leave_take_back(&leave);
    ASSERT(!weft__leave_stands(&leave, &polls));
}

/* ---- pace ---- */

TEST(watch_pace_is_long_while_all_goes_well)
{
    struct weft__pace pace = {0};
    for (int i = 0; i < 1000; i++)
        ASSERT_EQ(weft__pace_after(&pace, false, false), WEFT__PACE_LONG);
}

TEST(watch_pace_is_short_for_a_while_after_trouble)
{
    struct weft__pace pace = {0};
    for (int round = 0; round < 3; round++) {
        ASSERT_EQ(weft__pace_after(&pace, true, false), WEFT__PACE_SHORT);
        for (int i = 1; i < WEFT__PACE_ALERT_LOOKS; i++)
            ASSERT_EQ(weft__pace_after(&pace, false, i % 2), WEFT__PACE_SHORT);
        ASSERT_EQ(weft__pace_after(&pace, false, false), WEFT__PACE_LONG);
    }
}

TEST(watch_pace_dozes_once_all_have_slept_for_long)
{
    struct weft__pace pace = {0};
    for (int round = 0; round < 3; round++) {
        for (int i = 1; i < WEFT__PACE_QUIET_LOOKS; i++)
            ASSERT_EQ(weft__pace_after(&pace, false, true), WEFT__PACE_LONG);
        ASSERT_EQ(weft__pace_after(&pace, false, false), WEFT__PACE_LONG); /* one look spoils it */
        for (int i = 1; i < WEFT__PACE_QUIET_LOOKS; i++)
            ASSERT_EQ(weft__pace_after(&pace, false, true), WEFT__PACE_LONG);
        ASSERT_EQ(weft__pace_after(&pace, false, true), WEFT__PACE_DOZE);
    }
}

/* ---- rest and doze ---- */

static struct weft__watch watch;
static struct weft__idle idle;

static void begin(uint32_t workers)
{
    weft__watch_init(&watch);
    weft__idle_init(&idle, workers);
}

TEST(watch_rest_ends_at_its_deadline_whatever_token_is_there)
{
    begin(1);
    ASSERT(weft__watch_rest(&watch, 0));
    weft__unpark(&watch.park); /* of a worker that stirred late */
    ASSERT(weft__watch_rest(&watch, 1));
    ASSERT(!weft__park(&watch.park, 0)); /* it took the token and waited on */
    weft__watch_stop(&watch);
    ASSERT(!weft__watch_rest(&watch, WEFT__NEVER));
    ASSERT(!weft__watch_rest(&watch, WEFT__NEVER));
}

TEST(watch_doze_is_short_while_anybody_is_awake)
{
    begin(2);
    ASSERT(!weft__watch_doze(&watch, &idle, WEFT__NEVER));
    weft__idle_sleep(&idle, 0, false);
    ASSERT(!weft__watch_doze(&watch, &idle, WEFT__NEVER));
    weft__idle_sleep(&idle, 1, false);
    ASSERT(weft__watch_doze(&watch, &idle, 0)); /* all sleep: until the deadline */
    ASSERT(!load_relaxed(&watch.asleep));
    weft__watch_stir(&watch); /* nobody to wake: no token */
    ASSERT(weft__watch_doze(&watch, &idle, 0));
    weft__watch_stop(&watch);
    ASSERT(!weft__watch_doze(&watch, &idle, WEFT__NEVER));
}

static _Atomic uint32_t dozed;

static void *doze_often(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < test_scaled(2000); i++) {
        ASSERT(!weft__watch_doze(&watch, &idle, WEFT__NEVER));
        fetch_add_relaxed(&dozed, 1);
    }
    return NULL;
}

/* A worker sleeps and leaves its sleep, over and over: no doze lasts beyond that. */
TEST(watch_doze_ends_when_a_worker_stirs)
{
    pthread_t monitor;
    begin(1);
    store_relaxed(&dozed, 0);
    ASSERT_OK(pthread_create(&monitor, NULL, doze_often, NULL));
    while (load_relaxed(&dozed) < test_scaled(2000)) {
        weft__idle_sleep(&idle, 0, false);
        for (uint64_t i = test_seed() % 3; i > 0; i--)
            sched_yield();
        ASSERT(weft__idle_unsleep(&idle, 0));
        weft__watch_stir(&watch);
        (void)weft__idle_search_end(&idle, 0);
    }
    ASSERT_OK(pthread_join(monitor, NULL));
}
