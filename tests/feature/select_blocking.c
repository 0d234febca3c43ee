/* SPDX-License-Identifier: MIT
 *
 * Blocking jobs as arms of a select, under a deadline, and beside others: what wins, what is withdrawn,
 * what is waited for, and what is left behind.
 */
#include "still.h"
#include "test.h"

#include <errno.h>
#include <weft/weft.h>

static _Atomic uint32_t ran; /* relaxed, all: flags and counts */
static _Atomic uint32_t disposed;
static _Atomic bool begun;
static _Atomic bool gate;

static void clear(void)
{
    store_relaxed(&ran, 0);
    store_relaxed(&disposed, 0);
    store_relaxed(&begun, false);
    store_relaxed(&gate, false);
}

static int answers(int value)
{
    fetch_add_relaxed(&ran, 1);
    return value;
}

static int waits_at_the_gate(int value)
{
    store_relaxed(&begun, true);
    CREW_UNTIL(load_relaxed(&gate));
    return answers(value);
}

static int64_t owns(void *arg)
{
    (void)arg;
    return waits_at_the_gate(0);
}

static void disposes(void *arg, int64_t ret)
{
    (void)arg;
    (void)ret;
    fetch_add_relaxed(&disposed, 1);
}

static int wants_to_begin(void)
{
    while (!load_relaxed(&begun))
        if (weft_yield() < 0) return -ECANCELED;
    return 7;
}

static weft_task *_Atomic first_task;

/* Behind the end of whoever is to win. */
static void open_the_gate(void)
{
    weft_task *first;
    CREW_UNTIL((first = load_acquire(&first_task)) && weft_done(first));
    store_relaxed(&gate, true);
}

/* ---- the job wins: nothing else could end it while the clock stands ---- */

struct job_wins {
    WEFT_FRAME(int);
    struct weft_blocking job;
    struct weft_sleep sleep;
    struct weft_select sel;
};
static weft_async(job_wins)
{
    weft_begin;
    weft_await(f->sel, weft_select,
               .arm = {weft_arm(f->sleep, weft_sleep, weft_secs(1)),
                       weft_arm(f->job, weft_blocking, weft_bind(answers, 42))});
    ASSERT_EQ(f->job.ret, 42);
    ASSERT_EQ(f->sleep.ret, -ECANCELED);
    weft_return(f->sel.ret);
    weft_end;
}

static int job_wins_on_a_fiber(void)
{
    struct weft_blocking job;
    struct weft_sleep sleep;
    int which = weft_select(weft_arm(sleep, weft_sleep, weft_secs(1)),
                            weft_arm(job, weft_blocking, weft_bind(answers, 42)));
    ASSERT_EQ(job.ret, 42);
    ASSERT_EQ(sleep.ret, -ECANCELED);
    return which;
}

static void wins(struct crew *crew)
{
    int which = -1;
    (void)crew;
    clear();
    ASSERT_OK(weft_join(weft_spawn(job_wins), &which));
    ASSERT_EQ(which, 1);
    ASSERT_OK(weft_join(weft_go(job_wins_on_a_fiber), &which));
    ASSERT_EQ(which, 1);
    ASSERT_EQ(load_relaxed(&ran), 2);
}

TEST(select_of_a_blocking_job_that_wins)
{
    still_each(wins);
}

/* A clock that stands would not wait for this thread: an hour of one that runs. */
static void wins_on_a_thread(struct crew *crew)
{
    struct weft_blocking job;
    struct weft_sleep sleep;
    (void)crew;
    ASSERT_EQ(weft_select(weft_arm(sleep, weft_sleep, weft_mins(60)),
                          weft_arm(job, weft_blocking, weft_bind(answers, 42))),
              1);
    ASSERT_EQ(job.ret, 42);
    ASSERT_EQ(sleep.ret, -ECANCELED);
}

TEST(select_of_a_blocking_job_on_a_plain_thread)
{
    crew_each(wins_on_a_thread);
}

/* ---- the job loses ---- */

/* Behind another in a lane of one: it never began, and never will. */
static int queued_loses(weft_lane *lane)
{
    struct weft_blocking job;
    struct weft_wait first;
    weft_task *begins = weft_go(wants_to_begin);
    int r = 0;
    int which =
        weft_select(weft_arm(job, weft_blocking, .call = weft_bind(answers, 1), .lane = lane),
                    weft_arm(first, weft_wait, begins));
    ASSERT_EQ(which, 1);
    ASSERT_EQ(job.ret, -ECANCELED);
    ASSERT_OK(weft_join(begins, &r));
    return load_relaxed(&ran) == 0 ? 0 : -EBADMSG;
}

static int fills_the_lane(weft_lane *lane)
{
    return weft_blocking_as((.lane = lane), waits_at_the_gate, 5);
}

static void loses_before_it_begins(struct crew *crew)
{
    weft_lane *lane;
    int r = -1;
    clear();
    ASSERT_OK(weft_lane_new(crew->rt, "one", 1, &lane));
    weft_task *full = weft_go(fills_the_lane, lane);
    CREW_UNTIL(load_relaxed(&begun));
    ASSERT_OK(weft_join(weft_go(queued_loses, lane), &r));
    ASSERT_OK(r);
    store_relaxed(&gate, true);
    ASSERT_OK(weft_join(full, &r));
    ASSERT_EQ(r, 5);
    ASSERT_EQ(load_relaxed(&ran), 1);
    weft_lane_free(lane);
}

TEST(select_withdraws_a_blocking_job_that_has_not_begun)
{
    crew_each(loses_before_it_begins);
}

/* It borrows, and runs: select returns when it is over, and its result is told. */
static int running_loses(void)
{
    struct weft_blocking job;
    struct weft_wait first;
    int r = 0;
    weft_task *begins = weft_go(wants_to_begin);
    store_release(&first_task, begins);
    int which = weft_select_biased(weft_arm(first, weft_wait, begins),
                                   weft_arm(job, weft_blocking, weft_bind(waits_at_the_gate, 9)));
    ASSERT_EQ(load_relaxed(&ran), 1);
    ASSERT_EQ(job.ret, 9);
    ASSERT(load_relaxed(&gate)); /* so nobody looks at the handle any more */
    ASSERT_OK(weft_join(begins, &r));
    return which;
}

/* It owns: select returns at once, and somebody disposes of what it was given. */
static int owning_loses(void)
{
    struct weft_blocking job;
    struct weft_wait first;
    int r = 0;
    weft_task *begins = weft_go(wants_to_begin);
    int which = weft_select(
        weft_arm(job, weft_blocking, .call = weft_bind(owns, NULL), .dispose = disposes),
        weft_arm(first, weft_wait, begins));
    ASSERT_EQ(load_relaxed(&ran), 0);
    ASSERT_EQ(job.ret, -ECANCELED);
    ASSERT_OK(weft_join(begins, &r));
    store_relaxed(&gate, true);
    return which;
}

static void loses_while_it_runs(struct crew *crew)
{
    int which = -1;
    (void)crew;
    clear();
    store_relaxed(&first_task, NULL);
    weft_task *loser = weft_go(running_loses);
    open_the_gate();
    ASSERT_OK(weft_join(loser, &which));
    ASSERT_EQ(which, 0);
    clear();
    ASSERT_OK(weft_join(weft_go(owning_loses), &which));
    ASSERT_EQ(which, 1);
    CREW_UNTIL(load_relaxed(&disposed) == 1);
}

TEST(select_awaits_a_blocking_job_that_runs_or_leaves_it)
{
    crew_each(loses_while_it_runs);
}

/* ---- under a deadline ---- */

struct late_job {
    WEFT_FRAME(int);
    struct weft_blocking job;
    struct weft_timeout to;
};
static weft_async(late_job)
{
    weft_begin;
    weft_await(f->to, weft_timeout, 10, weft_arm(f->job, weft_blocking, weft_bind(answers, 3)));
    ASSERT_EQ(f->job.ret, 3);
    weft_return(f->to.ret);
    weft_end;
}

static int sleeps_in_a_job(int64_t ns)
{
    return weft_sleep(ns);
}

/* The deadline passes while the job runs: it asks, and the true result comes all the same. */
static int outlasts_its_deadline(void)
{
    int64_t r = -1;
    int behind = -1;
    WEFT_TIMEOUT(10)
    {
        r = weft_blocking(sleeps_in_a_job, INT64_C(30));
        behind = weft_sleep(1);
    }
    ASSERT_EQ(behind, -ETIME);
    return (int)r;
}

static void bounded(struct crew *crew)
{
    int r = -1;
    (void)crew;
    ASSERT_OK(weft_join(weft_spawn(late_job), &r)); /* a clock that stands waits for a job */
    ASSERT_OK(r);
    ASSERT_OK(weft_join(weft_go(outlasts_its_deadline), &r));
    ASSERT_OK(r);
}

TEST(select_deadline_over_a_blocking_job)
{
    still_each(bounded);
}
