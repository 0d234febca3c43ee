/* SPDX-License-Identifier: MIT
 *
 * A runtime's clock and those who are no tasks of it: blocking jobs, which a clock that stands waits
 * for unless they wait themselves; threads that sleep on it, also while their runtime stops.
 */
#include "nap.h"
#include "still.h"
#include "test.h"

#include "sched/sched.h"

#include <errno.h>
#include <weft/blocking.h>
#include <weft/region.h>
#include <weft/test.h>

#define HOUR weft_mins(60)

static void all_workers_sleep(struct weft_rt *rt)
{
    CREW_UNTIL(weft__idle_sleeping(&rt->idle) == rt->worker_count);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

/* How far the clock moved while this job ran, and nobody else had anything to do. */
static int64_t watches_the_clock(weft_rt *rt)
{
    weft_time before = weft_now();
    for (int i = 0; i < 20; i++) {
        all_workers_sleep(rt);
        for (int j = 0; j < 50; j++)
            sched_yield(); /* whoever would move it had its time */
    }
    return weft_now() - before;
}

static int64_t asks_for_it(weft_rt *rt)
{
    weft_task *sleeper = weft_go(sleeps, HOUR);
    int64_t moved = weft_blocking(watches_the_clock, rt);
    ASSERT_EQ(joined(sleeper), HOUR);
    return moved;
}

static void job_holds_it(struct crew *crew)
{
    ASSERT_EQ(joined(weft_go(asks_for_it, crew->rt)), 0);
}

/* Somebody sleeps for an hour, and a job runs: the hour begins to pass when it is over. */
TEST(clock_stands_while_a_blocking_job_runs)
{
    still_each(job_holds_it);
}

static void job_of_a_thread_holds_it(struct crew *crew)
{
    weft_task *sleeper = weft_go(sleeps, HOUR);
    (void)weft_blocking(watches_the_clock, crew->rt);
    ASSERT_EQ(joined(sleeper),
              HOUR); /* a thread is no worker: it has to tell one that it is over */
}

TEST(clock_moves_on_behind_a_job_that_a_thread_awaited)
{
    still_each(job_of_a_thread_holds_it);
}

/* A job that sleeps itself is waited for no longer than it sleeps, exactly. */
static int64_t asks_two_to_sleep(void)
{
    weft_time before = weft_now();
    weft_task *later = weft_go(sleeps, 3 * HOUR);
    ASSERT_EQ(weft_blocking(sleeps, HOUR), HOUR);
    ASSERT_EQ(weft_now() - before, HOUR);
    ASSERT_EQ(weft_blocking(sleeps, HOUR / 2), HOUR / 2);
    ASSERT_EQ(weft_now() - before, HOUR + HOUR / 2);
    ASSERT_EQ(joined(later), 3 * HOUR);
    return weft_now() - before;
}

static void job_sleeps(struct crew *crew)
{
    (void)crew;
    ASSERT_EQ(joined(weft_go(asks_two_to_sleep)), 3 * HOUR);
}

TEST(clock_moves_while_a_job_sleeps)
{
    still_each(job_sleeps);
}

/* Jobs that wait for their turn behind one that sleeps hold nothing up: an hour each, one after the other, by tasks and by threads. */
enum { IN_LINE = 4 };

static int64_t asks_another_lane(weft_lane *lane)
{
    return weft_blocking_as((.lane = lane), sleeps, HOUR);
}

static int64_t waits_in_line(weft_lane *lane)
{
    weft_task *task[IN_LINE];
    weft_time before = weft_now();
    for (int i = 0; i < IN_LINE; i++)
        task[i] = weft_go(asks_another_lane, lane);
    for (int i = 0; i < IN_LINE; i++)
        ASSERT_EQ(joined(task[i]), HOUR);
    return weft_now() - before;
}

struct in_line {
    weft_rt *rt;
    weft_lane *lane;
};

static void *thread_in_line(void *arg)
{
    struct in_line *line = arg;
    (void)weft_rt_enter(line->rt);
    ASSERT_EQ(asks_another_lane(line->lane), HOUR);
    return NULL;
}

static void jobs_wait_in_line(struct crew *crew)
{
    struct in_line line = {.rt = crew->rt};
    pthread_t thread[IN_LINE];

    ASSERT_OK(weft_lane_new(crew->rt, "narrow", 1, &line.lane));
    ASSERT_EQ(joined(weft_go(waits_in_line, line.lane)), IN_LINE * HOUR);
    for (int i = 0; i < IN_LINE; i++)
        ASSERT_OK(pthread_create(&thread[i], NULL, thread_in_line, &line));
    for (int i = 0; i < IN_LINE; i++)
        ASSERT_OK(pthread_join(thread[i], NULL));
    weft_lane_free(line.lane);
}

TEST(clock_moves_while_jobs_wait_behind_one_that_sleeps)
{
    still_each(jobs_wait_in_line);
}

/* A job that waits for a task which sleeps, and for a job in another lane which does. */
static int64_t joins_a_sleeper(void)
{
    return joined(weft_go(sleeps, HOUR));
}

static int64_t asks_for_both(weft_lane *lane)
{
    weft_time before = weft_now();
    ASSERT_EQ(weft_blocking(joins_a_sleeper), HOUR);
    ASSERT_EQ(weft_now() - before, HOUR);
    ASSERT_EQ(weft_blocking(asks_another_lane, lane), HOUR);
    return weft_now() - before;
}

static void job_waits(struct crew *crew)
{
    weft_lane *lane;
    ASSERT_OK(weft_lane_new(crew->rt, "other", 1, &lane));
    ASSERT_EQ(joined(weft_go(asks_for_both, lane)), 2 * HOUR);
    weft_lane_free(lane);
}

TEST(clock_moves_while_a_job_waits)
{
    still_each(job_waits);
}

/* A job that owns is left behind by who asked; the clock waits for it all the same. */
static _Atomic bool begun; /* relaxed, all: flags */
static _Atomic bool gate;
static _Atomic uint32_t disposed;

static int64_t waits_at_the_gate(void *unused)
{
    (void)unused;
    store_relaxed(&begun, true);
    CREW_UNTIL(load_relaxed(&gate)); /* it blocks, and does not wait as others do */
    return 0;
}

static void disposes(void *unused, int64_t ret)
{
    (void)unused;
    (void)ret;
    fetch_add_relaxed(&disposed, 1);
}

static int64_t asks_and_leaves(void)
{
    return weft_blocking_as((.dispose = disposes), waits_at_the_gate, NULL);
}

static int64_t disposed_when_woken(void)
{
    int r = weft_sleep(HOUR);
    return r < 0 ? r : (int64_t)load_relaxed(&disposed);
}

static void job_left(struct crew *crew)
{
    store_relaxed(&begun, false);
    store_relaxed(&gate, false);
    store_relaxed(&disposed, 0);
    weft_task *asks = weft_go(asks_and_leaves);
    CREW_UNTIL(load_relaxed(&begun));
    weft_cancel(asks);
    ASSERT_EQ(joined(asks), -ECANCELED);
    weft_task *sleeper = weft_go(disposed_when_woken);
    all_workers_sleep(crew->rt);
    store_relaxed(&gate, true);
    ASSERT_EQ(joined(sleeper), 1);
}

TEST(clock_stands_until_a_job_left_behind_is_over)
{
    still_each(job_left);
}

/* The kit of users: a job that sleeps is no dead end. */
static int kit_body(void)
{
    weft_time before = weft_now();
    if (weft_blocking(sleeps, HOUR) != HOUR) return -EBADMSG;
    return weft_now() - before == HOUR ? 7 : -ETIME;
}

TEST(clock_of_the_testkit_moves_while_a_job_sleeps)
{
    for (int i = 0; i < 20; i++)
        ASSERT_EQ(weft_test_run(kit_body), 7);
}

/* ---- a runtime that stops -------------------------------------------------------------------- */

/* Tells when its timer is armed, and how long it slept on the clock of the runtime, also if that is gone. */
struct sleeps_seen {
    WEFT_FRAME(int64_t);
    struct weft_sleep sleep;
    weft_time begun;
    _Atomic bool *asleep;
};
static weft_poll sleeps_seen_poll(void *frame, weft_cx *cx)
{
    struct sleeps_seen *f = frame;
    if (!f->begun) f->begun = weft_now();
    weft_poll answer = weft_sleep_poll(&f->sleep, cx);
    f->ret = f->sleep.ret < 0 ? f->sleep.ret : weft_now() - f->begun;
    store_relaxed(f->asleep, true);
    return answer;
}

struct visitor {
    weft_rt *rt;
    weft_token *stop; /* that it waits for under a deadline; NULL: it sleeps */
    int64_t ns;
    int64_t ret;
    weft_rt *was_in;     /* when it left */
    _Atomic bool asleep; /* relaxed: a flag; a join follows */
};

static void *visits(void *arg)
{
    struct visitor *v = arg;
    (void)weft_rt_enter(v->rt);
    if (v->stop) {
        WEFT_TIMEOUT(v->ns) v->ret = weft_token_wait(v->stop);
    } else {
        v->ret = weft_run(sleeps_seen, .sleep = {.ns = v->ns}, .asleep = &v->asleep);
    }
    v->was_in = weft_rt_enter(NULL);
    return NULL;
}

/* Who begins to use a runtime while it stops has come too late; who sleeps has not. */
static pthread_t begins(struct visitor *v)
{
    const struct weft__wheel *wheel = &v->rt->wheels[v->rt->worker_count];
    pthread_t thread;
    ASSERT_OK(pthread_create(&thread, NULL, visits, v));
    if (v->stop) {
        CREW_UNTIL(!weft__wheel_idle(wheel));
    } else {
        CREW_UNTIL(load_relaxed(&v->asleep));
    }
    return thread;
}

/* A thread that sleeps on a clock that runs does so to its end: the runtime does not wait for it. */
TEST(clock_outlives_its_runtime_for_a_thread_that_sleeps)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        crew_start(&crew, crew_sizes[i]);
        struct visitor v = {.rt = crew.rt, .ns = weft_ms(30), .ret = -1};
        pthread_t thread = begins(&v);
        crew_stop(&crew);
        ASSERT_OK(pthread_join(thread, NULL));
        ASSERT_GE(v.ret, weft_ms(30));
    }
}

/* The same for one that waits for something else under a deadline. */
TEST(clock_outlives_its_runtime_for_a_thread_under_a_deadline)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        weft_token stop = {0};
        crew_start(&crew, crew_sizes[i]);
        struct visitor v = {.rt = crew.rt, .stop = &stop, .ns = HOUR, .ret = -1};
        pthread_t thread = begins(&v);
        crew_stop(&crew);
        weft_token_cancel(&stop);
        ASSERT_OK(pthread_join(thread, NULL));
        ASSERT_EQ(v.ret, 0);
        ASSERT_NULL(v.was_in); /* there was nothing left to be in */
        weft_token_done(&stop);
    }
}

static int spins_until_cancelled(void)
{
    while (weft_yield() == 0) {
    }
    return 0;
}

/* A clock that stands is moved by the last who sleep on it. */
static void stops_beside(int workers, int64_t ns)
{
    struct crew crew;
    crew_start_with(&crew,
                    &(weft_rt_opts){.workers = workers, .seed = test_seed() | 1, .paused = true});
    weft_task *busy = weft_go(spins_until_cancelled); /* it does not move while this runs */
    struct visitor v = {.rt = crew.rt, .ns = ns, .ret = -1};
    struct visitor w = {.rt = crew.rt, .ns = ns + 1, .ret = -1};
    pthread_t threads[] = {begins(&v), begins(&w)};
    ASSERT_OK(weft_detach(busy));
    crew_stop(&crew);
    for (int i = 0; i < 2; i++)
        ASSERT_OK(pthread_join(threads[i], NULL));
    ASSERT_GE(v.ret, ns);
    ASSERT_GE(w.ret, ns + 1);
}

TEST(clock_that_stands_lets_threads_go_when_its_runtime_stops)
{
    for (size_t i = 0; i < CREW_SIZES; i++)
        for (int round = 0; round < 5; round++)
            stops_beside(crew_sizes[i], HOUR);
}

/* ---- a clock that a thread outside has moved ---- */

struct moved {
    struct crew crew;
    struct weft__timer timer;
    struct weft__foreign hook; /* the timer's */
    _Atomic bool fired;
};

static int sleeps_twice(void)
{
    int r = weft_sleep(HOUR);
    return r < 0 ? r : weft_sleep(HOUR);
}

/* In the middle of the move: whoever turns has run what it brought, and would sleep. */
static void waits_until_asked(struct weft__foreign *hook)
{
    struct moved *m = weft__container_of(hook, struct moved, hook);
    store_relaxed(&m->fired, true); /* relaxed, all: looks */
    CREW_UNTIL(load_relaxed(&m->crew.rt->clock.moving) == WEFT__CLOCK_ASKED);
}

static void nobody_frees(struct weft__foreign *hook)
{
    (void)hook;
}

static const struct weft__foreign_ops hook_ops = {.wake = waits_until_asked, .free = nobody_frees};

static void *turns_from_then_on(void *arg)
{
    struct moved *m = arg;
    CREW_UNTIL(load_relaxed(&m->fired));
    return crew_drive(&m->crew);
}

/* A thread moves it, its own sleep is over by that, and it sleeps no more; the task that it woke sleeps again, before the move is over. */
TEST(clock_is_moved_on_behind_a_thread_that_moved_it)
{
    struct moved m = {.crew = {.workers = -1}};
    int r = 1;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1, .paused = true}, &m.crew.rt));
    (void)weft_rt_enter(m.crew.rt);
    weft_task *task = weft_go(sleeps_twice);
    ASSERT_EQ(weft_rt_turn(m.crew.rt, 0), 1);
    weft__foreign_init(&m.hook, &hook_ops);
    struct weft__wheel *wheel = &m.crew.rt->wheels[1];
    weft__wheel_arm_at(wheel, &m.timer, weft_now() + HOUR, weft__waker_of_foreign(&m.hook));
    ASSERT_OK(pthread_create(&m.crew.driver, NULL, turns_from_then_on, &m));
    ASSERT_OK(weft_sleep(HOUR));
    ASSERT(weft__wheel_cancel(wheel, &m.timer, WEFT__BY_ANY));
    ASSERT_OK(weft_join(task, &r));
    ASSERT_OK(r);
    crew_stop(&m.crew);
}

/* ---- a clock that runs again ---- */

static _Atomic bool busy, busy_no_more, goes_to_sleep;

static int keeps_busy(void)
{
    store_relaxed(&busy, true); /* relaxed, as below: a look */
    while (!load_relaxed(&busy_no_more))
        sched_yield();
    return 0;
}

static void *sleeps_outside(void *rt)
{
    (void)weft_rt_enter(rt);
    store_relaxed(&goes_to_sleep, true); /* relaxed: as above */
    ASSERT_OK(weft_sleep(weft_ms(1)));
    (void)weft_rt_enter(NULL);
    return NULL;
}

/* A thread sleeps while the clock stands, and is held by a task that runs: from then on it is not moved, but runs. */
TEST(clock_that_runs_again_reaches_threads_outside)
{
    weft_rt *rt;
    pthread_t thread;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1, .paused = true}, &rt));
    (void)weft_rt_enter(rt);
    weft_task *task = weft_go(keeps_busy);
    CREW_UNTIL(load_relaxed(&busy));
    ASSERT_OK(pthread_create(&thread, NULL, sleeps_outside, rt));
    CREW_UNTIL(load_relaxed(&goes_to_sleep));
    for (int i = 0; i < 1000; i++)
        sched_yield(); /* it had its time to fall asleep */
    ASSERT_OK(weft_clock_resume(rt));
    ASSERT_OK(pthread_join(thread, NULL)); /* while the task keeps on */
    store_relaxed(&busy_no_more, true);
    ASSERT_OK(weft_join(task, NULL));
    (void)weft_rt_enter(NULL);
    ASSERT_OK(weft_rt_stop(rt, -1));
}
