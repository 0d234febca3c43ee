/* SPDX-License-Identifier: MIT
 *
 * Blocking jobs where threads or memory run out: an error where there is no thread at all, patience
 * where there is one, and never a hang.
 */
#include "base/fault.h"
#include "crew.h"
#include "stuck.h"

#include <errno.h>
#include <weft/weft.h>

#ifdef WEFT_FAULTS

static weft_stats stats_of(weft_rt *rt)
{
    weft_stats s;
    weft_rt_stats(rt, &s);
    return s;
}

static int add(int a, int b)
{
    return a + b;
}

static int stays(struct stuck *s)
{
    stuck_here(s);
    return 7;
}

static int stays_away(struct stuck *s)
{
    return weft_blocking(stays, s);
}

static int result_of(weft_task *task)
{
    int r = 0;
    ASSERT_OK(weft_join(task, &r));
    return r;
}

/* ---- no thread at all ---- */

struct awaits {
    WEFT_FRAME(int);
    struct weft_blocking job;
};

static weft_async(awaits)
{
    weft_begin;
    weft_await(f->job, weft_blocking, weft_bind(add, 1, 2));
    weft_return((int)f->job.ret);
    weft_end;
}

static int asks(void)
{
    return weft_blocking(add, 1, 2);
}

static void ask_in_all_ways(int answer)
{
    ASSERT_EQ(asks(), answer);
    ASSERT_EQ(result_of(weft_go(asks)), answer);
    ASSERT_EQ(result_of(weft_spawn(awaits)), answer);
    ASSERT_EQ(weft_run(awaits), answer);
}

static void first_thread_fails(struct crew *crew)
{
    weft__fault_arm(WEFT__FAULT_THREAD, 1, UINT32_MAX, -EAGAIN);
    ask_in_all_ways(-EAGAIN);
    ASSERT_EQ(stats_of(crew->rt).blocking_threads, 0);
    ASSERT_EQ(stats_of(crew->rt).blocking_queued, 0);
    weft__fault_reset();
    ask_in_all_ways(3);
}

TEST(blocking_without_a_thread_is_an_error)
{
    crew_each(first_thread_fails);
}

/* No memory for the thread's record. A plain thread needs some for its waker: it does without. */
static void no_memory_for_a_thread(struct crew *crew)
{
    weft__fault_arm(WEFT__FAULT_ALLOC, 1, UINT32_MAX, -ENOMEM);
    int r = asks();
    weft__fault_reset();
    ASSERT_EQ(r, -ENOMEM);
    ASSERT_EQ(stats_of(crew->rt).blocking_threads, 0);
    ASSERT_EQ(asks(), 3);
}

TEST(blocking_without_memory_for_a_thread_is_an_error)
{
    crew_each(no_memory_for_a_thread);
}

/* Many ask while all starts fail: whoever trusted somebody else's thread hears of it as well. */
#define MANY 40

static void all_hear_of_it(struct crew *crew)
{
    weft_task *tasks[MANY];
    weft__fault_arm(WEFT__FAULT_THREAD, 1, UINT32_MAX, -EAGAIN);
    for (unsigned i = 0; i < MANY; i++)
        tasks[i] = i % 2 ? weft_spawn(awaits) : weft_go(asks);
    for (unsigned i = 0; i < MANY; i++)
        ASSERT_EQ(result_of(tasks[i]), -EAGAIN);
    weft__fault_reset();
    ASSERT_EQ(stats_of(crew->rt).blocking_threads, 0);
    ASSERT_EQ(asks(), 3);
}

TEST(blocking_everyone_who_waits_for_a_thread_that_does_not_come_is_told)
{
    crew_each(all_hear_of_it);
}

/* ---- a thread is there ---- */

/* The second cannot be started: its job waits for the first. */
static void second_thread_fails(struct crew *crew)
{
    struct stuck s = STUCK_INIT;
    weft_task *first = weft_go(stays_away, &s);
    stuck_until(&s, 1);
    weft__fault_arm(WEFT__FAULT_THREAD, 1, UINT32_MAX, -EAGAIN);
    weft_task *second = weft_go(asks);
    CREW_UNTIL(stats_of(crew->rt).blocking_queued == 1);
    CREW_UNTIL(weft__fault_calls(WEFT__FAULT_THREAD) > 0);
    ASSERT(!weft_done(second));
    stuck_open(&s);
    ASSERT_EQ(result_of(second), 3);
    ASSERT_EQ(result_of(first), 7);
    ASSERT_EQ(stats_of(crew->rt).blocking_threads, 1);
    weft__fault_reset();
}

TEST(blocking_with_one_thread_waits_for_it)
{
    crew_each(second_thread_fails);
}

/* A start fails now and then, wherever it comes from: all jobs run that were not told an error, and
 * none waits for ever. */
static void some_starts_fail(struct crew *crew)
{
    for (uint32_t nth = 1; nth <= 6; nth++) {
        weft_task *tasks[MANY];
        weft__fault_arm(WEFT__FAULT_THREAD, nth, 3, -EAGAIN);
        for (unsigned i = 0; i < MANY; i++)
            tasks[i] = i % 2 ? weft_spawn(awaits) : weft_go(asks);
        for (unsigned i = 0; i < MANY; i++) {
            int r = result_of(tasks[i]);
            ASSERT(r == 3 || r == -EAGAIN);
        }
        weft__fault_reset();
    }
    ASSERT_EQ(stats_of(crew->rt).blocking_queued, 0);
}

TEST(blocking_survives_starts_that_fail_now_and_then)
{
    crew_each(some_starts_fail);
}

/* ---- memory ---- */

static unsigned disposals;

static void dispose(void *arg, int64_t ret)
{
    (void)arg;
    (void)ret;
    disposals++;
}

static int answers(const int *value)
{
    return *value;
}

/* A job that owns needs memory: without it nothing was taken. Lanes the same. */
static void no_memory_for_a_job(struct crew *crew)
{
    int value = 5;
    weft_lane *lane = NULL;
    ASSERT_EQ(weft_blocking(answers, &value), 5); /* the thread is there */
    weft__fault_arm(WEFT__FAULT_ALLOC, 1, UINT32_MAX, -ENOMEM);
    int owning = weft_blocking_as((.dispose = dispose), answers, &value);
    int borrowing = weft_blocking(answers, &value);
    int new_lane = weft_lane_new(crew->rt, "none", 1, &lane);
    weft__fault_reset();
    ASSERT_EQ(owning, -ENOMEM);
    ASSERT_EQ(borrowing, 5);
    ASSERT_EQ(new_lane, -ENOMEM);
    ASSERT_EQ(disposals, 0);
    ASSERT_EQ(weft_blocking_as((.dispose = dispose), answers, &value), 5);
    ASSERT_EQ(disposals, 0);
}

TEST(blocking_without_memory_for_a_job_takes_nothing)
{
    crew_each(no_memory_for_a_job);
}

#else

TEST(blocking_faults_need_a_build_with_faults)
{
    TEST_SKIP("built without WEFT_FAULTS");
}

#endif
