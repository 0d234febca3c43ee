/* SPDX-License-Identifier: MIT
 *
 * Plain functions on threads that may block: results, bounds, lanes, threads that come and go.
 */
#include "crew.h"
#include "stuck.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <weft/weft.h>

static int add(int a, int b)
{
    return a + b;
}

static weft_stats stats_of(const struct crew *crew)
{
    weft_stats s;
    weft_rt_stats(crew->rt, &s);
    return s;
}

/* ---- results ---- */

static signed char tiny(void)
{
    return -3;
}

static short small(int a)
{
    return (short)-a;
}

static long weigh(int a, unsigned char b, const char *c, long d, short e, uint64_t g)
{
    return a + b + (long)strlen(c) + d + e + (long)g;
}

static long long lowest(void)
{
    return LLONG_MIN;
}

/* Any signed type, none to six arguments; a negative result is only a number here. */
static int results_of_all_sizes(void)
{
    ASSERT_EQ(weft_blocking(add, 3, 4), 7);
    ASSERT_EQ(weft_blocking(tiny), -3);
    ASSERT_EQ(weft_blocking(small, 300), -300);
    ASSERT_EQ(weft_blocking(weigh, 1, 2, "three", 4L, 5, 6u), 23);
    ASSERT(weft_blocking(lowest) == LLONG_MIN);
    ASSERT_EQ(weft_blocking(add, -1, -ENOENT), -1 - ENOENT);
    return 0;
}

struct awaits_all {
    WEFT_FRAME(int);
    struct weft_blocking job;
};

static weft_async(awaits_all)
{
    weft_begin;
    weft_await(f->job, weft_blocking, weft_bind(add, 3, 4));
    ASSERT_EQ(f->job.ret, 7);
    weft_await(f->job, weft_blocking, .call = weft_bind(tiny), .name = "tiny");
    ASSERT_EQ(f->job.ret, -3);
    weft_await(f->job, weft_blocking, weft_bind(small, 300));
    ASSERT_EQ(f->job.ret, -300);
    weft_await(f->job, weft_blocking, weft_bind(lowest));
    ASSERT(f->job.ret == LLONG_MIN);
    weft_return(0);
    weft_end;
}

static void results_come_back(struct crew *crew)
{
    int r = -1;
    (void)crew;
    ASSERT_OK(results_of_all_sizes()); /* from a plain thread */
    ASSERT_OK(weft_join(weft_go(results_of_all_sizes), &r));
    ASSERT_OK(r);
    ASSERT_OK(weft_join(weft_spawn(awaits_all), &r));
    ASSERT_OK(r);
    ASSERT_OK(weft_run(awaits_all));
}

TEST(blocking_gives_results)
{
    crew_each(results_come_back);
}

/* ---- where a job runs ---- */

static int looks_around(weft_rt *rt)
{
    sigset_t mask;
    ASSERT_PTR(weft_rt_current(), rt);
    ASSERT_NULL(weft_self());
    ASSERT_OK(pthread_sigmask(SIG_BLOCK, NULL, &mask));
    ASSERT(sigismember(&mask, SIGINT) && sigismember(&mask, SIGTERM) &&
           sigismember(&mask, SIGUSR1));
    ASSERT(!sigismember(&mask, SIGSEGV));
    return 0;
}

/* A job is at home in the runtime: it spawns, joins, and calls stackless functions. */
static int spawns(void)
{
    int sum = 0;
    ASSERT_OK(weft_join(weft_go(add, 20, 1), &sum));
    ASSERT_OK(weft_run(awaits_all));
    return 2 * sum;
}

static int forgets_the_runtime(void)
{
    (void)weft_rt_enter(NULL);
    return 0;
}

static void at_home(struct crew *crew)
{
    ASSERT_OK(weft_blocking(looks_around, crew->rt));
    ASSERT_EQ(weft_blocking(spawns), 42);
    for (int i = 0; i < 3; i++) {
        ASSERT_OK(weft_blocking(forgets_the_runtime));
        ASSERT_OK(weft_blocking(looks_around, crew->rt));
    }
}

TEST(blocking_job_is_at_home_in_its_runtime)
{
    crew_each(at_home);
}

/* ---- how many ---- */

static int stays(struct stuck *s)
{
    stuck_here(s);
    return 1;
}

static int stays_away(struct stuck *s)
{
    return weft_blocking(stays, s);
}

static void join_ones(weft_task **tasks, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        int r = 0;
        ASSERT_OK(weft_join(tasks[i], &r));
        ASSERT_EQ(r, 1);
    }
}

/* Twenty jobs none of which ends before all have begun: each has a thread of its own. */
static void all_at_once(struct crew *crew)
{
    struct stuck s = STUCK_INIT;
    weft_task *tasks[20];
    for (unsigned i = 0; i < 20; i++)
        tasks[i] = weft_go(stays_away, &s);
    stuck_until(&s, 20);
    ASSERT_EQ(stats_of(crew).blocking_threads, 20);
    stuck_open(&s);
    join_ones(tasks, 20);
}

TEST(blocking_jobs_do_not_wait_for_each_other)
{
    crew_each(all_at_once);
}

/* With two threads there are never three jobs at once, and all come to their turn. */
static void bounded_by(int workers)
{
    struct crew crew;
    struct stuck s = STUCK_INIT;
    weft_task *tasks[12];
    crew_start_with(&crew, &(weft_rt_opts){.workers = workers, .blocking_threads = 2});
    for (unsigned i = 0; i < 12; i++)
        tasks[i] = weft_go(stays_away, &s);
    stuck_until(&s, 2);
    CREW_UNTIL(stats_of(&crew).blocking_queued == 10);
    stuck_open(&s);
    join_ones(tasks, 12);
    ASSERT_EQ(s.most, 2);
    ASSERT_EQ(s.came, 12);
    ASSERT_LE(stats_of(&crew).blocking_threads, 2);
    crew_stop(&crew);
}

TEST(blocking_threads_are_bounded)
{
    for (size_t i = 0; i < CREW_SIZES; i++)
        bounded_by(crew_sizes[i]);
}

/* Jobs queued behind one stuck thread run in the order in which they came. */
static int notes(int *next, int own)
{
    return (*next)++ == own ? 1 : -1;
}

struct takes_turn {
    WEFT_FRAME(int);
    int *next;
    int own;
    struct weft_blocking job;
};

static weft_async(takes_turn)
{
    weft_begin;
    weft_await(f->job, weft_blocking, weft_bind(notes, f->next, f->own));
    weft_return((int)f->job.ret);
    weft_end;
}

TEST(blocking_jobs_are_first_come_first_served)
{
    struct crew crew;
    struct stuck s = STUCK_INIT;
    weft_task *tasks[9];
    int next = 1;
    crew_start_with(&crew, &(weft_rt_opts){.workers = 1, .blocking_threads = 1});
    tasks[0] = weft_go(stays_away, &s);
    stuck_until(&s, 1);
    for (int i = 1; i < 9; i++) {
        tasks[i] = weft_spawn(takes_turn, .next = &next, .own = i);
        CREW_UNTIL(stats_of(&crew).blocking_queued == (uint64_t)i);
    }
    stuck_open(&s);
    join_ones(tasks, 9);
    crew_stop(&crew);
}

/* A job that asks for another: with one thread it would wait for itself. */
static int asks_again(int depth)
{
    return depth == 0 ? 0 : 1 + weft_blocking(asks_again, depth - 1);
}

TEST(blocking_job_in_a_job_needs_no_second_thread)
{
    struct crew crew;
    crew_start_with(&crew, &(weft_rt_opts){.workers = 2, .blocking_threads = 1});
    ASSERT_EQ(weft_blocking(asks_again, 50), 50);
    ASSERT_EQ(stats_of(&crew).blocking_threads, 1);
    crew_stop(&crew);
}

/* ---- lanes ---- */

static int stays_in(struct stuck *s, weft_lane *lane)
{
    return weft_blocking_as((.lane = lane), stays, s);
}

/* A lane full of jobs that do not end holds up neither the common one, nor another. */
static void lanes_apart(struct crew *crew)
{
    struct stuck slow = STUCK_INIT;
    weft_task *tasks[6];
    weft_lane *dns;
    weft_lane *other;
    ASSERT_OK(weft_lane_new(crew->rt, "dns", 2, &dns));
    ASSERT_OK(weft_lane_new(NULL, "other", 1, &other));
    for (unsigned i = 0; i < 6; i++)
        tasks[i] = weft_go(stays_in, &slow, dns);
    stuck_until(&slow, 2);
    CREW_UNTIL(stats_of(crew).blocking_queued == 4);
    ASSERT_EQ(weft_blocking(add, 1, 2), 3);
    ASSERT_EQ(weft_blocking_as((.lane = other), add, 1, 2), 3);
    stuck_open(&slow);
    join_ones(tasks, 6);
    ASSERT_EQ(slow.most, 2);
    weft_lane_free(dns);
    weft_lane_free(other);
    weft_lane_free(NULL);
}

TEST(blocking_lanes_do_not_hold_up_each_other)
{
    crew_each(lanes_apart);
}

/* Nor does the common lane, when all of its threads are stuck. */
TEST(blocking_lane_runs_beside_a_full_common_one)
{
    struct crew crew;
    struct stuck s = STUCK_INIT;
    weft_lane *lane;
    weft_task *task;
    crew_start_with(&crew, &(weft_rt_opts){.workers = 1, .blocking_threads = 1});
    ASSERT_OK(weft_lane_new(crew.rt, "files", 1, &lane));
    task = weft_go(stays_away, &s);
    stuck_until(&s, 1);
    ASSERT_EQ(weft_blocking_as((.lane = lane, .name = "read"), add, 1, 2), 3);
    stuck_open(&s);
    join_ones(&task, 1);
    crew_stop(&crew); /* the lane goes with its runtime */
}

/* A lane that is freed while a job runs in it goes behind that job. */
static void freed_in_use(struct crew *crew)
{
    struct stuck s = STUCK_INIT;
    weft_lane *lane;
    weft_task *task;
    ASSERT_OK(weft_lane_new(crew->rt, NULL, 1, &lane));
    task = weft_go(stays_in, &s, lane);
    stuck_until(&s, 1);
    weft_lane_free(lane);
    stuck_open(&s);
    join_ones(&task, 1);
}

TEST(blocking_lane_freed_in_use_goes_behind_its_last_job)
{
    crew_each(freed_in_use);
}

/* ---- threads that come and go ---- */

static void idle_threads_end(int workers)
{
    struct crew crew;
    crew_start_with(&crew, &(weft_rt_opts){.workers = workers, .blocking_keep_ms = 1});
    ASSERT_EQ(stats_of(&crew).blocking_threads, 0);
    for (int i = 0; i < 5; i++) {
        ASSERT_EQ(weft_blocking(add, i, 1), i + 1);
        all_at_once(&crew);
        CREW_UNTIL(stats_of(&crew).blocking_threads == 0);
    }
    ASSERT_EQ(stats_of(&crew).blocking_jobs, 105);
    crew_stop(&crew);
}

TEST(blocking_threads_end_when_nobody_needs_them)
{
    for (size_t i = 0; i < CREW_SIZES; i++)
        idle_threads_end(crew_sizes[i]);
}

/* One after the other, they need one thread, which is idle afterwards. */
static void one_is_enough(struct crew *crew)
{
    for (int i = 0; i < 500; i++)
        ASSERT_EQ(weft_blocking(add, i, 1), i + 1);
    CREW_UNTIL(stats_of(crew).blocking_idle == 1);
    ASSERT_EQ(stats_of(crew).blocking_threads, 1);
}

TEST(blocking_reuses_an_idle_thread)
{
    crew_each(one_is_enough);
}

/* Keep-alive so short that threads end while they are called: every job runs all the same. */
struct repeats {
    WEFT_FRAME(int);
    int times;
    int i;
    struct weft_blocking job;
    struct weft_yield pause;
};

static weft_async(repeats)
{
    weft_begin;
    for (f->i = 0; f->i < f->times; f->i++) {
        weft_await(f->job, weft_blocking, weft_bind(add, f->i, 1));
        if (f->job.ret != f->i + 1) weft_return(-1);
        if (f->i % 7 == 0) weft_await(f->pause, weft_yield);
    }
    weft_return(1);
    weft_end;
}

static void hurried(int workers)
{
    struct crew crew;
    weft_task *tasks[16];
    int times = (int)test_scaled(300);
    crew_start_with(
        &crew, &(weft_rt_opts){.workers = workers, .blocking_keep_ms = 1, .blocking_threads = 5});
    for (unsigned i = 0; i < 16; i++)
        tasks[i] = weft_spawn(repeats, .times = times);
    join_ones(tasks, 16);
    ASSERT_EQ(stats_of(&crew).blocking_jobs, 16 * times);
    crew_stop(&crew);
}

TEST(blocking_many_awaiters_few_threads)
{
    for (size_t i = 0; i < CREW_SIZES; i++)
        hurried(crew_sizes[i]);
}

/* ---- what is refused ---- */

static unsigned no_sign(void)
{
    return 1;
}

static void refused(struct crew *crew)
{
    weft_lane *lane = NULL;
    weft_rt *elsewhere;
    ASSERT_EQ(weft_run(weft_blocking, weft_bind(no_sign)), -EINVAL);
    ASSERT_EQ(weft_run(weft_blocking, .name = "nothing"), -EINVAL);
    ASSERT_EQ(weft_lane_new(crew->rt, "none", 0, &lane), -EINVAL);
    ASSERT_EQ(weft_lane_new(crew->rt, "none", 1, NULL), -EINVAL);
    ASSERT_NULL(lane);
    ASSERT_OK(weft_lane_new(crew->rt, "here", 1, &lane));
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1}, &elsewhere));
    ASSERT_EQ(weft_blocking_as((.rt = elsewhere, .lane = lane), add, 1, 2), -EINVAL);
    ASSERT_EQ(weft_blocking_as((.rt = elsewhere), add, 1, 2), 3);
    ASSERT_OK(weft_rt_stop(elsewhere, -1));
    weft_lane_free(lane);
}

TEST(blocking_refuses_what_makes_no_sense)
{
    crew_each(refused);
}

TEST(blocking_without_a_runtime)
{
    weft_lane *lane = NULL;
    ASSERT_EQ(weft_blocking(add, 1, 2), -ENXIO);
    ASSERT_EQ(weft_lane_new(NULL, "lost", 1, &lane), -ENXIO);
}
