/* SPDX-License-Identifier: MIT
 *
 * Events, wait groups and barriers on real runtimes: all are let through, none too early, and a cancelled wait leaves the
 * rest as it was.
 */
#include "crew.h"
#include "storm.h"
#include "test.h"
#include "waiters.h"

#include <errno.h>
#include <weft/weft.h>

enum kind { EVENT, GROUP, BARRIER };

static enum kind kind;
static weft_event event = WEFT_EVENT_INIT;
static weft_wg group = WEFT_WG_INIT(0);
static weft_barrier barrier = WEFT_BARRIER_INIT(0);
static _Atomic uint32_t leaders;
static _Atomic uint32_t begun;

static void begin(enum kind what, uint64_t count)
{
    kind = what;
    weft_event_init(&event);
    weft_wg_init(&group, count);
    weft_barrier_init(&barrier, count);
    store_relaxed(&leaders, 0);
    store_relaxed(&begun, 0);
}

static void end(void)
{
    weft_event_done(&event);
    weft_wg_done(&group);
    weft_barrier_done(&barrier);
}

/* ---- one function, two forms; 0, or why it was stopped ---------------------------------------------- */

static int waits(void)
{
    (void)fetch_add_relaxed(&begun, 1);
    int r = kind == EVENT   ? weft_event_wait(&event)
            : kind == GROUP ? weft_wg_wait(&group)
                            : weft_barrier_wait(&barrier);
    if (r <= 0) return r;
    (void)fetch_add_relaxed(&leaders, 1);
    return 0;
}

struct waiting {
    WEFT_FRAME(int);
    struct weft_event_wait event;
    struct weft_wg_wait group;
    struct weft_barrier_wait barrier;
};
static weft_async(waiting)
{
    weft_begin;
    (void)fetch_add_relaxed(&begun, 1);
    if (kind == EVENT) {
        weft_await(f->event, weft_event_wait, &event);
        weft_return(f->event.ret);
    }
    if (kind == GROUP) {
        weft_await(f->group, weft_wg_wait, &group);
        weft_return(f->group.ret);
    }
    weft_await(f->barrier, weft_barrier_wait, &barrier);
    if (f->barrier.ret <= 0) weft_return(f->barrier.ret);
    (void)fetch_add_relaxed(&leaders, 1);
    weft_return(0);
    weft_end;
}

static weft_task *waiter(void *unused, uint32_t i, bool stackless)
{
    (void)unused;
    (void)i;
    return stackless ? weft_spawn(waiting) : weft_go(waits);
}

static void open_it(void *unused)
{
    (void)unused;
    if (kind == EVENT) {
        weft_event_set(&event);
    } else {
        weft_wg_finish(&group);
    }
}

/* ---- event, wait group ------------------------------------------------------------------------------ */

static void let_through(struct crew *crew)
{
    (void)crew;
    for (enum kind what = EVENT; what <= GROUP; what++) {
        begin(what, 1);
        struct storm_sum sum = storm(waiter, NULL, (uint32_t)test_scaled(300), open_it);
        ASSERT_EQ(sum.other, 0);
        ASSERT_OK(waits()); /* it stays open */
        end();
    }
}

TEST(gather_event_and_group_let_all_through)
{
    crew_each(let_through);
}

static int finishes(uint64_t *place)
{
    *place = 1; /* seen by who waited for all */
    weft_wg_finish(&group);
    return 0;
}

/* What was done before each finish is seen; and whoever waited may free the group. */
static void work_is_seen(struct crew *crew)
{
    (void)crew;
    for (int round = 0; round < 20; round++) {
        uint64_t done[20] = {0};
        begin(GROUP, 0);
        for (uint32_t i = 0; i < 20; i++) {
            weft_wg_add(&group, 1);
            ASSERT_OK(weft_detach(weft_go(finishes, &done[i])));
        }
        ASSERT_OK(weft_wg_wait(&group));
        for (uint32_t i = 0; i < 20; i++)
            ASSERT_EQ(done[i], 1);
        ASSERT_EQ(weft_wg_count(&group), 0);
        end();
    }
}

TEST(gather_group_waits_for_all)
{
    crew_each(work_is_seen);
}

/* Threads without a runtime, which sleep in the kernel, each time: two events by turns, of which one is set when all wait for it. */
enum { THREADS = 4, ROUNDS = 500 };

static weft_event door[2];

static void *thread_passes(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        ASSERT_OK(weft_event_wait(&door[i % 2]));
        ASSERT_EQ(load_relaxed(&begun), i + 1); /* not too early */
    }
    return NULL;
}

TEST(gather_event_wakes_threads)
{
    pthread_t thread[THREADS];

    store_relaxed(&begun, 0);
    weft_event_init(&door[0]);
    weft_event_init(&door[1]);
    for (int i = 0; i < THREADS; i++)
        ASSERT_OK(pthread_create(&thread[i], NULL, thread_passes, NULL));
    for (int i = 0; i < ROUNDS; i++) {
        CREW_UNTIL(waiters_of(&door[i % 2]) == THREADS);
        weft_event_reset(&door[(i + 1) % 2]); /* behind which all are */
        store_relaxed(&begun, (uint32_t)i + 1);
        weft_event_set(&door[i % 2]);
    }
    for (int i = 0; i < THREADS; i++)
        ASSERT_OK(pthread_join(thread[i], NULL));
    weft_event_done(&door[0]);
    weft_event_done(&door[1]);
}

TEST(gather_event_is_reset)
{
    weft_event e = WEFT_EVENT_INIT;
    struct weft_event_wait wait;
    struct weft_sleep sleep;

    ASSERT(!weft_event_is_set(&e));
    weft_event_set(&e);
    weft_event_set(&e);
    ASSERT(weft_event_is_set(&e));
    ASSERT_OK(weft_event_wait(&e));
    weft_event_reset(&e);
    ASSERT_EQ(
        weft_select_biased(weft_arm(wait, weft_event_wait, &e), weft_arm(sleep, weft_sleep, 1)), 1);
    ASSERT_EQ(wait.ret, -ECANCELED);
    ASSERT_EQ(weft_event_wait(NULL), -EINVAL);
    ASSERT_EQ(weft_wg_wait(NULL), -EINVAL);
    ASSERT_EQ(weft_barrier_wait(NULL), -EINVAL);
    weft_event_done(&e);
    weft_event_done(NULL);
    weft_wg_done(NULL);
    weft_barrier_done(NULL);
}

/* ---- barrier ---------------------------------------------------------------------------------------- */

static _Atomic uint32_t round_of[8];

static int meets_often(uint32_t number, uint32_t rounds)
{
    for (uint32_t k = 1; k <= rounds; k++) {
        store_relaxed(&round_of[number], k);
        int r = weft_barrier_wait(&barrier);
        if (r < 0) return r;
        (void)fetch_add_relaxed(&leaders, (uint32_t)r);
        for (uint32_t i = 0; i < 8;
             i++) /* nobody is behind, and nobody a round ahead of who waits */
            if (load_relaxed(&round_of[i]) < k) return -EPROTO;
    }
    return 0;
}

static void rounds(struct crew *crew)
{
    weft_task *task[8];
    uint32_t count = (uint32_t)test_scaled(200);
    (void)crew;
    begin(BARRIER, 8);
    for (uint32_t i = 0; i < 8; i++)
        store_relaxed(&round_of[i], 0);
    for (uint32_t i = 0; i < 8; i++)
        task[i] = weft_go(meets_often, i, count);
    for (uint32_t i = 0; i < 8; i++) {
        int r = 1;
        ASSERT_OK(weft_join(task[i], &r));
        ASSERT_OK(r);
    }
    ASSERT_EQ(load_relaxed(&leaders), count);
    end();
}

TEST(gather_barrier_one_leader_a_round)
{
    crew_each(rounds);
}

/* Of each round all but one have to sleep. */
static void *thread_meets(void *number)
{
    ASSERT_OK(meets_often(*(uint32_t *)number, ROUNDS));
    return NULL;
}

TEST(gather_barrier_of_threads)
{
    pthread_t thread[8];
    uint32_t number[8];

    begin(BARRIER, 8);
    for (uint32_t i = 0; i < 8; i++) {
        store_relaxed(&round_of[i], 0);
        number[i] = i;
    }
    for (uint32_t i = 0; i < 8; i++)
        ASSERT_OK(pthread_create(&thread[i], NULL, thread_meets, &number[i]));
    for (uint32_t i = 0; i < 8; i++)
        ASSERT_OK(pthread_join(thread[i], NULL));
    ASSERT_EQ(load_relaxed(&leaders), ROUNDS);
    end();
}

TEST(gather_barrier_of_one)
{
    weft_barrier none = WEFT_BARRIER_INIT(0);
    weft_barrier one = WEFT_BARRIER_INIT(1);
    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(weft_barrier_wait(&none), 1);
        ASSERT_EQ(weft_barrier_wait(&one), 1);
    }
}

/* Those who are cancelled do not count: of all that come, each full number goes through with one leader, and none is left
 * over by accident. */
static void lets_the_rest_through(void *unused)
{
    (void)unused;
    CREW_UNTIL(load_relaxed(&begun) == (uint32_t)test_scaled(300));
}

static weft_task *meeting[300];

static void cancelled_does_not_count(struct crew *crew)
{
    uint64_t random = pool_seed(6);
    uint32_t count = (uint32_t)test_scaled(300), through = 0;
    (void)crew;
    begin(BARRIER, 3);
    for (uint32_t i = 0; i < count; i++) {
        meeting[i] = waiter(NULL, i, pool_random(&random, 2));
        if (pool_random(&random, 3) == 0) weft_cancel(meeting[pool_random(&random, i + 1)]);
    }
    lets_the_rest_through(NULL);
    for (uint32_t i = 0; i < count; i++)
        weft_cancel(meeting[i]); /* one or two may be left */
    for (uint32_t i = 0; i < count; i++) {
        int r = 1;
        ASSERT_OK(weft_join(meeting[i], &r));
        ASSERT(r == 0 || r == -ECANCELED);
        through += r == 0;
    }
    ASSERT_EQ(through % 3, 0);
    ASSERT_EQ(load_relaxed(&leaders), through / 3);
    ASSERT_EQ(barrier.weft__arrived, 0);
    end();
}

TEST(gather_barrier_does_not_count_the_cancelled)
{
    crew_each(cancelled_does_not_count);
}
