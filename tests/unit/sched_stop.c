/* SPDX-License-Identifier: MIT
 *
 * Shutdown by its parts: the gate, the sweep, the deadline. On runtimes that nobody turns, so that
 * nothing moves unless the test, or the stop itself, makes it. Shutdown as users meet it, with
 * everything running: tests/feature/rt_stop.c, tests/feature/behave_stop.c.
 */
#include "sched/stop.h"

#include "crew.h"
#include "death.h"
#include "sys/clock.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <weft/scope.h>

static struct weft_rt *rt_of_one(void)
{
    weft_rt *rt;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
    return rt;
}

/* Waits, and stops when it is told to. (That of tasks.h stands among stackless functions, which cppcheck does not read.) */
struct waits {
    WEFT_FRAME(int);
};
static weft_poll waits_poll(void *frame, weft_cx *cx)
{
    struct waits *f = frame;
    f->ret = weft_cx_cancelled(cx);
    return f->ret ? WEFT_READY : WEFT_PENDING;
}

/* ---- the gate ------------------------------------------------------------------------------------------ */

struct stopper {
    pthread_t thread;
    struct weft_rt *rt;
    _Atomic bool done;
};

static void *stops(void *arg)
{
    struct stopper *me = arg;
    ASSERT_OK(weft__stop_tasks(me->rt, -1));
    store_release(&me->done, true); /* a flag of the test's */
    return NULL;
}

/* A thread that is inside a spawn is waited for; from the moment that the stage is CLOSING no other gets in. */
TEST(stop_waits_for_who_is_inside_the_gate)
{
    struct stopper s = {.rt = rt_of_one()};
    fetch_add_relaxed(&s.rt->gate, 1); /* as a spawn from outside has it */
    ASSERT_OK(pthread_create(&s.thread, NULL, stops, &s));
    CREW_UNTIL(load_acquire(&s.rt->stage) == WEFT__CLOSING);
    for (int i = 0; i < 100; i++) {
        weft_task *task = weft_spawn_as((.rt = s.rt), waits);
        ASSERT_NULL(task);
        sched_yield();
    }
    ASSERT(!load_acquire(&s.done));
    ASSERT_EQ(load_relaxed(&s.rt->gate), 1); /* those who were refused have left */
    fetch_sub_release(&s.rt->gate, 1);
    ASSERT_OK(pthread_join(s.thread, NULL));
    ASSERT(load_acquire(&s.done));
    ASSERT_OK(weft_rt_stop(s.rt, -1));
}

/* ---- the sweep ------------------------------------------------------------------------------------------- */

static _Atomic bool stubborn_ends;

/* Never answers the cancel; notes when it came. */
struct stubborn {
    WEFT_FRAME(int);
    _Atomic uint32_t *told;
};
static weft_poll stubborn_poll(void *frame, weft_cx *cx)
{
    struct stubborn *f = frame;
    if (weft_cx_cancelled(cx) < 0) fetch_add_relaxed(f->told, 1);
    if (load_relaxed(&stubborn_ends)) return WEFT_READY;
    return WEFT_PENDING;
}

static int to_nowhere(void)
{
    int kept = dup(STDERR_FILENO);
    int nowhere = open("/dev/null", O_WRONLY);
    ASSERT(kept >= 0 && nowhere >= 0);
    dup2(nowhere, STDERR_FILENO);
    close(nowhere);
    return kept;
}

static void back_from_nowhere(int kept)
{
    dup2(kept, STDERR_FILENO);
    close(kept);
}

/* One sweep asks every task once; one that was asked and waits on is not pushed again by the next. */
TEST(stop_asks_each_task_once)
{
    enum { COUNT = 300 };
    struct weft_rt *rt = rt_of_one();
    weft_task *task[COUNT];
    _Atomic uint32_t told = 0;
    store_relaxed(&stubborn_ends, false);
    for (int i = 0; i < COUNT; i++)
        task[i] = weft_spawn_as((.rt = rt), stubborn, .told = &told);
    while (weft_rt_turn(rt, 0) > 0) {
    }
    ASSERT_EQ(load_relaxed(&told), 0);
    int kept = to_nowhere();
    for (int i = 0; i < 3; i++)
        ASSERT_EQ(weft__stop_tasks(rt, WEFT__NS_PER_MS), -ETIME);
    back_from_nowhere(kept);
    while (weft_rt_turn(rt, 0) > 0) {
    }
    ASSERT_EQ(load_relaxed(&told), COUNT);
    ASSERT_EQ(weft_rt_turn(rt, 0), 0); /* they wait; nothing is queued */
    store_relaxed(&stubborn_ends, true);
    for (int i = 0; i < COUNT; i++) {
        weft_waker_wake(weft__waker_of(task[i])); /* the sweep asks once: someone else wakes */
    }
    ASSERT_OK(weft__stop_tasks(rt, -1));
    for (int i = 0; i < COUNT; i++)
        ASSERT_OK(weft_join(task[i], (int *)NULL));
    ASSERT_OK(weft_rt_stop(rt, -1));
}

TEST(stop_of_an_empty_runtime_is_at_once_and_may_be_repeated)
{
    struct weft_rt *rt = rt_of_one();
    ASSERT_OK(weft__stop_tasks(rt, 0));
    ASSERT_EQ(load_relaxed(&rt->stage), WEFT__CLOSING);
    ASSERT_OK(weft__stop_tasks(rt, 0));
    ASSERT_OK(weft__stop_tasks(rt, -1));
    ASSERT_OK(weft_rt_stop(rt, 0));
}

/* A task that has ended is no reason to wait, whoever holds its handle. */
TEST(stop_does_not_wait_for_handles)
{
    struct weft_rt *rt = rt_of_one();
    weft_task *task = weft_spawn_as((.rt = rt), waits);
    weft_cancel(task);
    while (weft_rt_turn(rt, 0) > 0) {
    }
    ASSERT(weft_done(task));
    ASSERT_OK(weft__stop_tasks(rt, 0));
    ASSERT_OK(weft_rt_stop(rt, -1));
    int got = 0;
    ASSERT_OK(weft_join(task, &got));
    ASSERT_EQ(got, -ECANCELED);
}

/* ---- the deadline ------------------------------------------------------------------------------------------ */

static void times_out(void *unused)
{
    struct weft_rt *rt = rt_of_one();
    _Atomic uint32_t told = 0;
    (void)unused;
    store_relaxed(&stubborn_ends, false);
    weft_task *one = weft_spawn_as((.rt = rt, .name = "first"), stubborn, .told = &told);
    weft_task *two = weft_spawn_as((.rt = rt), stubborn, .told = &told);
    if (weft__stop_tasks(rt, 0) != -ETIME) _exit(2);
    if (load_relaxed(&rt->stage) != WEFT__CLOSING) _exit(3);
    _exit(weft_done(one) || weft_done(two) ? 4 : 0);
}

static void times_out_in_a_scope(void *unused)
{
    struct weft_rt *rt = rt_of_one();
    _Atomic uint32_t told = 0;
    (void)unused;
    store_relaxed(&stubborn_ends, false);
    WEFT_SCOPE(s)
    {
        if (weft_spawn_in_as(s, (.rt = rt), stubborn, .told = &told) < 0) _exit(2);
        if (weft__stop_tasks(rt, 0) != -ETIME) _exit(3);
        _exit(0);
    }
}

TEST(stop_names_the_scope_whose_child_does_not_stop)
{
    struct death d = death_of(times_out_in_a_scope, NULL);
    ASSERT_EQ(d.signal, 0);
    ASSERT_EQ(d.code, 0);
    const char *line = strstr(d.said, "task 'stubborn' (spawned at ");
    ASSERT(line);
    const char *scope = strstr(line, ", in the scope of ");
    ASSERT(scope);
    ASSERT(strstr(scope, "sched_stop.c:"));
    ASSERT(strstr(scope, ") does not stop\n"));
}

/* By the name that was given, else by the function's; both with the place that spawned them. */
TEST(stop_names_tasks_by_their_own_names)
{
    struct death d = death_of(times_out, NULL);
    ASSERT_EQ(d.signal, 0);
    ASSERT_EQ(d.code, 0);
    ASSERT(strstr(d.said, "task 'first' (spawned at "));
    ASSERT(strstr(d.said, "task 'stubborn' (spawned at "));
    ASSERT(strstr(d.said, "sched_stop.c:"));
    ASSERT(strstr(d.said, ") does not stop\n"));
}

/* ---- what outlives it -------------------------------------------------------------------------------------- */

/* A push from outside has the task in, but has not told the fd yet; the task has run, and the runtime stops. The number
 * stays taken until that thread is through: it never writes into a file that somebody else has opened since. */
TEST(stop_keeps_the_fd_for_who_is_about_to_signal_it)
{
    struct weft_rt *rt = rt_of_one();
    uint64_t count = 0;
    ASSERT_GE(weft_rt_fd(rt), 0);
    int fd = load_relaxed(&rt->event_fd); /* what the host's waits for, among others */
    ASSERT_GE(fd, 0);
    ASSERT_OK(weft_rt_turn(rt, 0)); /* drains it */
    weft__rt_hold(rt);              /* as a push from outside does */
    ASSERT_OK(weft_rt_stop(rt, -1));
    ASSERT_GE(fcntl(fd, F_GETFD), 0);
    weft__rt_signal(rt);
    ASSERT_EQ(read(fd, &count, sizeof(count)), sizeof(count));
    ASSERT_EQ(count, 1);
    weft__rt_release(rt);
    ASSERT_EQ(fcntl(fd, F_GETFD), -1);
}
