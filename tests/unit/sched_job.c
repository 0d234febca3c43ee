/* SPDX-License-Identifier: MIT
 *
 * Queues, lanes and hand-over of blocking jobs, step by step and without a thread.
 */
#include "sched/job.h"

#include "task/state.h"
#include "test.h"

#include <errno.h>
#include <string.h>

struct fixture {
    struct weft__jobs jobs;
    struct weft__lane lanes[2];
    struct weft__foreign foreign;
    unsigned wakes;
};

static struct fixture f;

static void count_wake(struct weft__foreign *unused)
{
    (void)unused;
    f.wakes++;
}

static void stay(struct weft__foreign *unused)
{
    (void)unused;
}

static const struct weft__foreign_ops ops = {.wake = count_wake, .free = stay};

static void begin(uint32_t first_bound, uint32_t second_bound)
{
    memset(&f, 0, sizeof(f));
    weft__foreign_init(&f.foreign, &ops);
    weft__jobs_init(&f.jobs);
    weft__lane_init(&f.jobs, &f.lanes[0], first_bound);
    weft__lane_init(&f.jobs, &f.lanes[1], second_bound);
}

static void end(void)
{
    weft__lock_take(&f.jobs.lock);
    weft__lane_done(&f.lanes[0]);
    weft__lane_done(&f.lanes[1]);
    weft__lock_drop(&f.jobs.lock);
    ASSERT_EQ(load_relaxed(&f.jobs.ready), 0);
}

static struct weft__calls submit(struct weft__job *job, unsigned lane)
{
    struct weft__calls calls = {0};
    *job = (struct weft__job){
        .lane = &f.lanes[lane],
        .waker = weft__waker_of_foreign(&f.foreign),
        .owning = job->owning,
    };
    ASSERT_OK(weft__job_submit(&f.jobs, job, &calls));
    return calls;
}

static struct weft__job *take(struct weft__calls *calls)
{
    weft__lock_take(&f.jobs.lock);
    struct weft__job *job = weft__job_take(&f.jobs);
    if (calls) weft__jobs_call(&f.jobs, calls);
    weft__lock_drop(&f.jobs.lock);
    return job;
}

/* A thread that was called, or started, has come. */
static void arrive(void)
{
    weft__lock_take(&f.jobs.lock);
    f.jobs.coming--;
    weft__lock_drop(&f.jobs.lock);
}

static void finish(struct weft__job *job, int64_t ret)
{
    weft__lock_take(&f.jobs.lock);
    struct weft_waker claimed = weft__job_finish(&f.jobs, job, ret);
    weft__lock_drop(&f.jobs.lock);
    weft__waker_push(claimed, NULL);
}

static bool rest(struct weft__hand *hand, bool may_spin)
{
    weft__lock_take(&f.jobs.lock);
    bool spins = weft__jobs_rest(&f.jobs, hand, may_spin);
    weft__lock_drop(&f.jobs.lock);
    return spins;
}

static void hand_init(struct weft__hand *hand)
{
    weft__link_init(&hand->idle);
    weft__park_init(&hand->park);
}

TEST(job_goes_through_its_life)
{
    struct weft__job job = {0};
    begin(4, 4);
    struct weft__calls calls = submit(&job, 0);
    ASSERT_EQ(calls.starts, 1);
    ASSERT_EQ(calls.wakes, 0);
    ASSERT_EQ(weft__job_poll(&f.jobs, &job, false), WEFT__JOB_WAIT);
    arrive();
    ASSERT_PTR(take(NULL), &job);
    ASSERT_EQ(weft__job_poll(&f.jobs, &job, true),
              WEFT__JOB_WAIT); /* it borrows: it is waited for */
    finish(&job, 9);
    ASSERT_EQ(f.wakes, 1);
    ASSERT_EQ(weft__job_poll(&f.jobs, &job, true), WEFT__JOB_READY);
    ASSERT_EQ(job.ret, 9);
    ASSERT_NULL(take(NULL));
    end();
}

TEST(job_given_up_is_withdrawn_or_left)
{
    struct weft__job queued = {0};
    struct weft__job runs = {.owning = true};
    begin(1, 1);
    (void)submit(&runs, 0);
    (void)submit(&queued, 0);
    ASSERT_PTR(take(NULL), &runs);
    ASSERT_EQ(weft__job_poll(&f.jobs, &queued, true), WEFT__JOB_WITHDRAWN);
    ASSERT_EQ(weft__job_poll(&f.jobs, &runs, true), WEFT__JOB_LEFT);
    finish(&runs, 1);
    ASSERT_EQ(f.wakes, 0);
    ASSERT_NULL(take(NULL));
    end();
}

/* A lane at its bound waits, the other goes on; those that may start take turns. */
TEST(job_lanes_have_bounds_and_take_turns)
{
    struct weft__job jobs[6] = {0};
    begin(1, 2);
    for (unsigned i = 0; i < 6; i++)
        (void)submit(&jobs[i], i / 3);
    ASSERT_EQ(load_relaxed(&f.jobs.ready), 3);
    ASSERT_PTR(take(NULL), &jobs[0]);
    ASSERT_PTR(take(NULL), &jobs[3]);
    ASSERT_PTR(take(NULL), &jobs[4]);
    ASSERT_NULL(take(NULL));
    finish(&jobs[4], 0);
    ASSERT_PTR(take(NULL), &jobs[5]);
    finish(&jobs[0], 0);
    ASSERT_PTR(take(NULL), &jobs[1]);
    finish(&jobs[1], 0);
    ASSERT_PTR(take(NULL), &jobs[2]);
    finish(&jobs[2], 0);
    finish(&jobs[3], 0);
    finish(&jobs[5], 0);
    ASSERT_EQ(f.jobs.done_count, 6);
    end();
}

TEST(job_submitter_calls_one_and_that_one_the_next)
{
    struct weft__job jobs[5] = {0};
    begin(5, 1);
    ASSERT_EQ(submit(&jobs[0], 0).starts, 1);
    for (unsigned i = 1; i < 5; i++)
        ASSERT_EQ(submit(&jobs[i], 0).starts, 0); /* one is coming */
    struct weft__calls calls = {0};
    arrive();
    ASSERT_PTR(take(&calls), &jobs[0]);
    ASSERT_EQ(calls.starts, WEFT__CALLS_MAX);
    ASSERT_EQ(load_relaxed(&f.jobs.live), 3);
    arrive();
    calls = (struct weft__calls){0};
    ASSERT_PTR(take(&calls), &jobs[1]); /* three wait, one comes: two are called */
    ASSERT_EQ(calls.starts, 2);
    for (unsigned i = 2; i < 5; i++) {
        calls = (struct weft__calls){0};
        arrive();
        ASSERT_PTR(take(&calls), &jobs[i]);
        ASSERT_EQ(calls.starts, 0);
    }
    ASSERT_EQ(load_relaxed(&f.jobs.live), 5);
    for (unsigned i = 0; i < 5; i++)
        finish(&jobs[i], 0);
    end();
}

/* The last that became idle is called first; one that spins needs no call; one spins at a time. */
TEST(job_idle_threads_are_called_last_in_first_out)
{
    struct weft__hand hands[3];
    struct weft__job jobs[2] = {0};
    begin(4, 1);
    for (unsigned i = 0; i < 3; i++)
        hand_init(&hands[i]);
    ASSERT(rest(&hands[0], true));
    ASSERT(!rest(&hands[1], true));
    ASSERT(!rest(&hands[2], false));
    struct weft__calls calls = submit(&jobs[0], 0);
    ASSERT_EQ(calls.wakes + calls.starts, 0);
    weft__lock_take(&f.jobs.lock);
    weft__jobs_spun(&f.jobs);
    weft__lock_drop(&f.jobs.lock);
    ASSERT_PTR(take(NULL), &jobs[0]);
    calls = submit(&jobs[1], 0);
    ASSERT_EQ(calls.wakes, 1);
    ASSERT_PTR(calls.wake[0], &hands[2]);
    weft__lock_take(&f.jobs.lock);
    ASSERT(!weft__jobs_unrest(&f.jobs, &hands[2])); /* called: it must not end */
    ASSERT(weft__jobs_unrest(&f.jobs, &hands[1]));
    weft__lock_drop(&f.jobs.lock);
    arrive();
    ASSERT_PTR(take(NULL), &jobs[1]);
    finish(&jobs[0], 0);
    finish(&jobs[1], 0);
    end();
}

TEST(job_queues_fail_as_a_whole)
{
    struct weft__job jobs[3] = {0};
    begin(1, 1);
    for (unsigned i = 0; i < 3; i++)
        (void)submit(&jobs[i], i % 2);
    ASSERT_PTR(take(NULL), &jobs[0]);
    weft__lock_take(&f.jobs.lock);
    struct weft__wake_chain chain = weft__jobs_fail_all(&f.jobs, -EAGAIN);
    store_relaxed(&f.jobs.closing, true);
    weft__lock_drop(&f.jobs.lock);
    weft__wake_chain_push(&chain, NULL);
    ASSERT_EQ(f.wakes, 1); /* one waker for both */
    for (unsigned i = 1; i < 3; i++) {
        ASSERT_EQ(weft__job_poll(&f.jobs, &jobs[i], false), WEFT__JOB_READY);
        ASSERT_EQ(jobs[i].ret, -EAGAIN);
    }
    finish(&jobs[0], 5);
    ASSERT_EQ(jobs[0].ret, 5);
    struct weft__calls calls = {0};
    ASSERT_EQ(weft__job_submit(&f.jobs, &jobs[1], &calls), -ESHUTDOWN);
    end();
}
