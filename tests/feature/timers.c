/* SPDX-License-Identifier: MIT
 *
 * Timers and the scheduler: a host's fd and turns, a worker that is stuck, workers that sleep, and the
 * end of a runtime with sleepers in it.
 */
#include "crew.h"
#include "nap.h"
#include "test.h"

#include "sched/sched.h"

#include <errno.h>
#include <poll.h>
#include <weft/select.h>
#include <weft/time.h>

/* ---- a host ---------------------------------------------------------------------------------- */

static bool readable(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    ASSERT_GE(poll(&p, 1, timeout_ms), 0);
    return p.revents & POLLIN;
}

/* A loop that sleeps in poll(2) and turns with no time of its own. */
TEST(timers_make_a_hosts_fd_readable)
{
    weft_rt *rt;

    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
    (void)weft_rt_enter(rt);
    int fd = weft_rt_fd(rt);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(weft_rt_fd(rt), fd);
    weft_task *near = weft_go(sleeps, weft_ms(3));
    weft_task *far = weft_go(sleeps, weft_mins(60));
    while (!weft_done(near)) {
        ASSERT(readable(fd, -1));
        ASSERT_GE(weft_rt_turn(rt, 0), 0);
    }
    ASSERT_GE(joined(near), weft_ms(3));
    ASSERT_EQ(weft_rt_turn(rt, 0), 0);
    ASSERT(!readable(fd, 0)); /* an hour is a long time */
    weft_cancel(far);
    while (!weft_done(far)) {
        ASSERT(readable(fd, -1));
        ASSERT_GE(weft_rt_turn(rt, 0), 0);
    }
    ASSERT_EQ(joined(far), -ECANCELED);
    (void)weft_rt_enter(NULL);
    ASSERT_OK(weft_rt_stop(rt, -1));
}

static int until(int64_t back)
{
    return weft_sleep_until(weft_now() - back);
}

/* Its clock stands: what is due as it is armed comes, and the host hears of it or it has come. */
TEST(timers_of_a_clock_that_stands_and_a_host)
{
    for (int64_t back = 0; back <= 8192; back += 1024) {
        weft_rt *rt;
        int r;

        ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1, .paused = true}, &rt));
        (void)weft_rt_enter(rt);
        int fd = weft_rt_fd(rt);
        ASSERT_GE(fd, 0);
        weft_task *t = weft_go(until, back);
        while (!weft_done(t)) {
            ASSERT(readable(fd, -1));
            ASSERT_GE(weft_rt_turn(rt, 0), 0);
        }
        ASSERT_OK(weft_join(t, &r));
        ASSERT_OK(r);
        (void)weft_rt_enter(NULL);
        ASSERT_OK(weft_rt_stop(rt, -1));
    }
}

TEST(timers_end_the_wait_of_a_turn)
{
    weft_rt *rt;

    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
    (void)weft_rt_enter(rt);
    weft_task *t = weft_go(sleeps, weft_ms(2));
    while (!weft_done(t))
        ASSERT_GE(weft_rt_turn(rt, -1), 0);
    ASSERT_GE(joined(t), weft_ms(2));
    (void)weft_rt_enter(NULL);
    ASSERT_OK(weft_rt_stop(rt, -1));
}

/* ---- a worker that is stuck ------------------------------------------------------------------ */

static _Atomic uint32_t woken;
static _Atomic bool release;

static int wakes(int64_t ns)
{
    int r = weft_sleep(ns);
    fetch_add_relaxed(&woken, 1);
    return r;
}

#define BEHIND 20

/* Its timers are armed, all on this worker; then it keeps its thread until they have fired. */
static int sticks(void)
{
    weft_task *behind[BEHIND];

    for (int64_t i = 0; i < BEHIND; i++)
        behind[i] = weft_go(wakes, weft_us(100) + i);
    for (int i = 0; i < 5; i++)
        (void)weft_yield(); /* they begin to sleep, here or elsewhere */
    while (!load_relaxed(&release))
        sched_yield(); /* no call of the library: this thread is gone */
    for (int i = 0; i < BEHIND; i++)
        (void)weft_join(behind[i], NULL);
    return 0;
}

/* Sleepers behind a poll that does not end are woken by the other worker, with the monitor's leave. */
TEST(timers_behind_a_stuck_worker_fire)
{
    struct crew crew;
    int r = -1;

    crew_start_with(&crew,
                    &(weft_rt_opts){.workers = 2, .seed = test_seed() | 1, .monitor_us = 200});
    weft_task *t = weft_go(sticks);
    CREW_UNTIL(load_relaxed(&woken) == BEHIND);
    store_relaxed(&release, true);
    ASSERT_OK(weft_join(t, &r));
    ASSERT_OK(r);
    crew_stop(&crew);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* A runtime that stops does not wait for its sleepers. */
static void stops(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 100; i++)
        ASSERT_OK(weft_detach(weft_go(sleeps, weft_mins(60) + i)));
}

TEST(timers_do_not_keep_a_runtime_from_stopping)
{
    crew_each(stops);
}

/* ---- many at once ---------------------------------------------------------------------------- */

static int64_t spawns(int64_t count)
{
    weft_task *tasks[64];
    int64_t ok = 0;

    for (int64_t i = 0; i < 64; i++)
        tasks[i] = weft_go(sleeps, weft_us(500) + count * 7 % 300);
    for (int64_t i = 0; i < 64; i++) {
        int64_t lasted = 0;
        int r = weft_join(tasks[i], &lasted);
        ok += r == 0 && lasted >= weft_us(500);
    }
    return ok;
}

static void bursts(struct crew *crew)
{
    uint64_t rounds = test_scaled(20);
    (void)crew;
    for (uint64_t i = 0; i < rounds; i++)
        ASSERT_EQ(joined(weft_go(spawns, (int64_t)i)), 64);
}

TEST(timers_in_bursts)
{
    crew_each(bursts);
}

/* ---- a task that moves ----------------------------------------------------------------------- */

static _Atomic uint32_t moves; /* relaxed: a count */

/* Arms a timer, gives way a few times, and gives it up: wherever it is by then. */
struct wanders {
    WEFT_FRAME(int);
    int i;
    uint32_t home;
    struct weft_sleep sleep;
    struct weft_yield pause;
};
static weft_async(wanders)
{
    weft_begin;
    weft_start(f->sleep, weft_sleep, weft_secs(3600));
    f->home = weft__here()->worker->index;
    for (f->i = 0; f->i < 8; f->i++) {
        weft_sleep_reset(&f->sleep, weft_later(weft_now(), weft_secs(3600)));
        weft_await(f->pause, weft_yield);
    }
    if (weft__here()->worker->index != f->home) fetch_add_relaxed(&moves, 1);
    weft_await_settled(f->sleep, weft_sleep);
    weft_return(f->sleep.ret);
    weft_end;
}

/* By those who look at it while they choose: the timer is armed, and the task is polled elsewhere. */
struct wanders_and_waits {
    WEFT_FRAME(int);
    uint32_t home;
    int i;
    struct weft_sleep sleep;
    struct weft_yield pause;
    struct weft_select sel;
};
static weft_async(wanders_and_waits)
{
    weft_begin;
    weft_start(f->sleep, weft_sleep, weft_secs(3600));
    f->home = UINT32_MAX;
    for (f->i = 0; f->i < 8; f->i++) {
        weft_await(f->sel, weft_select,
                   .arm = {weft_keep(f->sleep, weft_sleep), weft_arm(f->pause, weft_yield)});
        if (f->home == UINT32_MAX) f->home = weft__here()->worker->index;
    }
    if (weft__here()->worker->index != f->home) fetch_add_relaxed(&moves, 1);
    weft_await_settled(f->sleep, weft_sleep);
    weft_return(f->sleep.ret);
    weft_end;
}

#define WANDERERS 200

static int crowd(void)
{
    weft_task *task[WANDERERS];
    int r = 0;
    for (int i = 0; i < WANDERERS; i++)
        task[i] = i % 2 ? weft_spawn(wanders) : weft_spawn(wanders_and_waits);
    for (int i = 0; i < WANDERERS; i++) {
        ASSERT_OK(weft_join(task[i], &r));
        ASSERT_EQ(r, -ECANCELED);
    }
    return 0;
}

/* Until enough of them have been stolen in between. */
TEST(timers_are_given_up_by_tasks_that_have_moved)
{
    for (int workers = 2; workers <= 4; workers += 2) {
        struct crew crew;
        crew_start(&crew, workers);
        store_relaxed(&moves, 0);
        do {
            ASSERT_OK(weft_join(weft_go(crowd), NULL));
        } while (load_relaxed(&moves) < 20);
        for (uint32_t i = 0; i <= crew.rt->worker_count; i++)
            ASSERT(weft__wheel_idle(&crew.rt->wheels[i]));
        crew_stop(&crew);
    }
}
