/* SPDX-License-Identifier: MIT
 *
 * The notify on real runtimes: one ring is kept, all who wait are woken, the longest waiter comes first, and a
 * notification whose receiver is cancelled goes on to the next.
 */
#include "crew.h"
#include "storm.h"
#include "test.h"
#include "waiters.h"

#include <errno.h>
#include <weft/weft.h>

static weft_notify notify = WEFT_NOTIFY_INIT;
static _Atomic uint32_t begun;
static _Atomic uint32_t heard;

static void begin(void)
{
    weft_notify_init(&notify);
    store_relaxed(&begun, 0);
    store_relaxed(&heard, 0);
}

static int listens(void)
{
    (void)fetch_add_relaxed(&begun, 1);
    int r = weft_notify_wait(&notify);
    if (r == 0) (void)fetch_add_relaxed(&heard, 1);
    return r;
}

struct listening {
    WEFT_FRAME(int);
    struct weft_notify_wait wait;
};
static weft_async(listening)
{
    weft_begin;
    (void)fetch_add_relaxed(&begun, 1);
    weft_await(f->wait, weft_notify_wait, &notify);
    if (f->wait.ret == 0) (void)fetch_add_relaxed(&heard, 1);
    weft_return(f->wait.ret);
    weft_end;
}

static weft_task *listener(bool stackless)
{
    return stackless ? weft_spawn(listening) : weft_go(listens);
}

TEST(notify_keeps_one_ring)
{
    weft_notify n = WEFT_NOTIFY_INIT;
    for (int i = 0; i < 5; i++)
        weft_notify_one(&n);
    ASSERT_EQ(weft_notify_waiters(&n), 0); /* and does not eat it */
    ASSERT_OK(weft_notify_wait(&n));
    struct weft_notify_wait wait;
    struct weft_sleep sleep;
    int which =
        weft_select_biased(weft_arm(wait, weft_notify_wait, &n), weft_arm(sleep, weft_sleep, 1));
    ASSERT_EQ(which, 1); /* there was but one */
    ASSERT_EQ(weft_notify_wait(NULL), -EINVAL);
    weft_notify_done(&n);
    weft_notify_done(NULL);
}

/* Nobody waits: it was for nobody, and is not kept. */
TEST(notify_waiters_is_kept_for_nobody)
{
    weft_notify n = WEFT_NOTIFY_INIT;
    struct weft_notify_wait wait;
    struct weft_sleep sleep;
    for (int i = 0; i < 5; i++)
        ASSERT_EQ(weft_notify_waiters(&n), 0);
    ASSERT_EQ(
        weft_select_biased(weft_arm(wait, weft_notify_wait, &n), weft_arm(sleep, weft_sleep, 1)),
        1);
    weft_notify_done(&n);
}

/* Tells all until all have heard: those who came late, too. Answers how many were told in all. */
static uint32_t tell_all(uint32_t count)
{
    uint32_t told = 0;
    while (told < count) {
        told += weft_notify_waiters(&notify);
        sched_yield();
    }
    return told;
}

static void all(struct crew *crew)
{
    weft_task *task[150];
    (void)crew;
    begin();
    for (uint32_t i = 0; i < 150; i++)
        task[i] = listener(i % 2);
    ASSERT_EQ(tell_all(150), 150);
    for (uint32_t i = 0; i < 150; i++) {
        int r = 1;
        ASSERT_OK(weft_join(task[i], &r));
        ASSERT_OK(r);
    }
    weft_notify_done(&notify);
}

TEST(notify_waiters_wakes_each_once)
{
    crew_each(all);
}

/* One rings at a time, and only when the last ring was heard: so each must be heard, whoever is cancelled meanwhile. */
static void ring_is_never_lost(struct crew *crew)
{
    uint64_t random = pool_seed(2);
    uint32_t rounds = (uint32_t)test_scaled(300);
    (void)crew;
    begin();
    for (uint32_t k = 0; k < rounds; k++) {
        int first = 1, second = 1;
        uint32_t before = load_relaxed(&heard);
        weft_task *a = listener(pool_random(&random, 2));
        weft_task *b = listener(pool_random(&random, 2));
        storm_linger(&random);
        weft_notify_one(&notify);
        if (pool_random(&random, 2)) storm_linger(&random);
        weft_cancel(a);
        CREW_UNTIL(load_relaxed(&heard) == before + 1); /* by the one or the other */
        weft_cancel(b);
        ASSERT_OK(weft_join(a, &first));
        ASSERT_OK(weft_join(b, &second));
        ASSERT((first == 0) != (second == 0));
        ASSERT(first == 0 || first == -ECANCELED);
        ASSERT(second == 0 || second == -ECANCELED);
    }
    weft_notify_done(&notify);
}

TEST(notify_passes_a_cancelled_ring_on)
{
    crew_each(ring_is_never_lost);
}

/* Whoever was woken with all the others has nothing to pass on. */
static void broadcast_is_nobody_elses(struct crew *crew)
{
    (void)crew;
    for (uint32_t k = 0; k < 20; k++) {
        int r = 1;
        begin();
        weft_task *a = listener(k % 2);
        CREW_UNTIL(load_relaxed(&begun) == 1);
        for (uint32_t i = 0; i < k; i++)
            sched_yield();
        (void)weft_notify_waiters(&notify);
        weft_cancel(a);
        ASSERT_OK(weft_join(a, &r));
        ASSERT(r == 0 || r == -ECANCELED);
        struct weft_notify_wait wait;
        struct weft_sleep sleep;
        ASSERT_EQ(weft_select_biased(weft_arm(wait, weft_notify_wait, &notify),
                                     weft_arm(sleep, weft_sleep, 1)),
                  1); /* nothing was kept */
        weft_notify_done(&notify);
    }
}

TEST(notify_waiters_is_not_passed_on)
{
    crew_each(broadcast_is_nobody_elses);
}

/* All of them wait at once, and one call wakes them all. */
static void many(uint32_t count)
{
    begin();
    for (uint32_t i = 0; i < count; i++)
        ASSERT_OK(weft_detach(weft_spawn(listening)));
    CREW_UNTIL(load_relaxed(&begun) == count); /* before they are counted, which takes a while */
    CREW_UNTIL(waiters_of(&notify) == count);
    ASSERT_EQ(load_relaxed(&heard), 0);
    ASSERT_EQ(weft_notify_waiters(&notify), count);
    CREW_UNTIL(load_relaxed(&heard) == count);
    weft_notify_done(&notify);
}

static void thousands(struct crew *crew)
{
    (void)crew;
    many((uint32_t)test_scaled(20000));
}

TEST(notify_thousands_of_waiters)
{
    crew_each(thousands);
}

TEST_WITH(notify_a_million_waiters, .timeout_s = 300)
{
    struct crew crew;
    crew_start(&crew, 2);
    many((uint32_t)test_scaled(1000000));
    crew_stop(&crew);
}

static void *rings(void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < 1000; i++) {
        weft_notify_one(&notify);
        uint32_t next = i + 1;
        CREW_UNTIL(load_relaxed(&heard) == next);
    }
    return NULL;
}

static int listens_often(uint32_t times)
{
    for (uint32_t i = 0; i < times; i++) {
        int r = weft_notify_wait(&notify);
        if (r < 0) return r;
        (void)fetch_add_relaxed(&heard, 1);
    }
    return 0;
}

static void from_threads(struct crew *crew)
{
    pthread_t thread;
    int r = 1;
    (void)crew;
    begin();
    ASSERT_OK(pthread_create(&thread, NULL, rings, NULL));
    weft_task *task = weft_go(listens_often, 500);
    ASSERT_OK(listens_often(500)); /* the test's own thread */
    ASSERT_OK(weft_join(task, &r));
    ASSERT_OK(r);
    ASSERT_OK(pthread_join(thread, NULL));
    weft_notify_done(&notify);
}

TEST(notify_between_threads_and_tasks)
{
    crew_each(from_threads);
}
