/* SPDX-License-Identifier: MIT
 *
 * weft_wait on real runtimes: many wait for one task, of both kinds and from plain threads, beside
 * a joiner, with the handle dropped, cancelled, and at every moment of the task's end.
 */
#include "crew.h"
#include "death.h"
#include "test.h"

#include <errno.h>
#include <string.h>

static _Atomic bool released;
static _Atomic uint32_t waiting; /* begun to wait */
static _Atomic uint32_t answers;

static int until_released(void)
{
    while (!load_acquire(&released)) /* acquire: a flag of the test's */
        (void)weft_yield();
    return 7;
}

static void begin(void)
{
    store_relaxed(&released, false);
    store_relaxed(&waiting, 0);
    store_relaxed(&answers, 0);
}

/* ---- one function, three forms --------------------------------------------------------------------- */

/* Takes the reference. Answers what the wait did, and -EBUSY if the task had not ended. */
static int waits(weft_task *task)
{
    fetch_add_relaxed(&waiting, 1);
    int r = weft_wait(task);
    if (r == 0 && !weft_done(task)) r = -EBUSY;
    weft_unref(task);
    fetch_add_relaxed(&answers, 1);
    return r;
}

struct awaits {
    WEFT_FRAME(int);
    weft_task *task;
    struct weft_wait wait;
};
static weft_async(awaits)
{
    weft_begin;
    fetch_add_relaxed(&waiting, 1);
    weft_await(f->wait, weft_wait, f->task);
    f->ret = f->wait.ret;
    if (f->ret == 0 && !weft_done(f->task)) f->ret = -EBUSY;
    weft_unref(f->task);
    fetch_add_relaxed(&answers, 1);
    weft_end;
}

static void *waits_on_thread(void *task)
{
    ASSERT_OK(waits(task));
    return NULL;
}

#define EACH 20

/* Twenty of each form wait; then one joins. */
static void many(struct crew *crew)
{
    weft_task *waiter[2 * EACH];
    pthread_t thread[3];
    int seven = 0;
    (void)crew;

    begin();
    weft_task *task = weft_go(until_released);
    for (int i = 0; i < EACH; i++) {
        waiter[2 * i] = weft_go(waits, weft_ref(task));
        waiter[2 * i + 1] = weft_spawn(awaits, weft_ref(task));
    }
    for (int i = 0; i < 3; i++)
        ASSERT_OK(pthread_create(&thread[i], NULL, waits_on_thread, weft_ref(task)));
    CREW_UNTIL(load_relaxed(&waiting) == 2 * EACH + 3);
    ASSERT_EQ(load_relaxed(&answers), 0);
    store_release(&released, true);
    ASSERT_OK(weft_join(task, &seven));
    ASSERT_EQ(seven, 7);
    for (int i = 0; i < 2 * EACH; i++) {
        int r = 1;
        ASSERT_OK(weft_join(waiter[i], &r));
        ASSERT_OK(r);
    }
    for (int i = 0; i < 3; i++)
        ASSERT_OK(pthread_join(thread[i], NULL));
}

TEST(wait_many_beside_a_joiner)
{
    crew_each(many);
}

static void owner_waits_then_joins(struct crew *crew)
{
    int seven = 0;
    (void)crew;
    begin();
    weft_task *task = weft_go(until_released);
    store_release(&released, true);
    ASSERT_OK(weft_wait(task));
    ASSERT(weft_done(task));
    ASSERT_OK(weft_wait(task)); /* it stays over */
    ASSERT_OK(weft_join(task, &seven));
    ASSERT_EQ(seven, 7);
}

TEST(wait_leaves_the_result_to_the_owner)
{
    crew_each(owner_waits_then_joins);
}

static void dropped(struct crew *crew)
{
    weft_task *waiter[4];
    (void)crew;
    begin();
    weft_task *task = weft_go(until_released);
    for (int i = 0; i < 2; i++)
        waiter[i] = weft_go(waits, weft_ref(task));
    weft_task *late = weft_ref(task);
    CREW_UNTIL(load_relaxed(&waiting) == 2);
    ASSERT_OK(weft_detach(task));
    waiter[2] = weft_spawn(awaits, weft_ref(late)); /* of a task that nobody owns any more */
    waiter[3] = weft_go(waits, late);
    CREW_UNTIL(load_relaxed(&waiting) == 4);
    store_release(&released, true);
    for (int i = 0; i < 4; i++) {
        int r = 1;
        ASSERT_OK(weft_join(waiter[i], &r));
        ASSERT_OK(r);
    }
}

TEST(wait_for_a_task_that_was_detached)
{
    crew_each(dropped);
}

/* ---- giving up ----------------------------------------------------------------------------------------- */

/* The waiters are cancelled; the task goes on, and is none the wiser. */
static void cancelled(struct crew *crew)
{
    weft_task *waiter[2 * EACH];
    int seven = 0;
    (void)crew;
    begin();
    weft_task *task = weft_go(until_released);
    for (int i = 0; i < EACH; i++) {
        waiter[2 * i] = weft_go(waits, weft_ref(task));
        waiter[2 * i + 1] = weft_spawn(awaits, weft_ref(task));
    }
    CREW_UNTIL(load_relaxed(&waiting) == 2 * EACH);
    for (int i = 0; i < 2 * EACH; i += 3)
        weft_cancel(waiter[i]);
    for (int i = 0; i < 2 * EACH; i += 3) {
        int r = 0;
        ASSERT_OK(weft_join(waiter[i], &r));
        ASSERT_EQ(r, -ECANCELED);
    }
    ASSERT(!weft_done(task));
    store_release(&released, true);
    for (int i = 0; i < 2 * EACH; i++) {
        int r = 1;
        if (i % 3 == 0) continue;
        ASSERT_OK(weft_join(waiter[i], &r));
        ASSERT_OK(r);
    }
    ASSERT_OK(weft_join(task, &seven));
    ASSERT_EQ(seven, 7);
}

TEST(wait_cancelled_settles_at_once_and_takes_nothing)
{
    crew_each(cancelled);
}

/* One that is cancelled before it starts does not begin to wait, even if the task has ended. */
static void cancelled_before(struct crew *crew)
{
    int r = 0;
    (void)crew;
    begin();
    weft_task *task = weft_go(until_released);
    weft_task *waiter = weft_go(waits, weft_ref(task));
    weft_cancel(waiter);
    ASSERT_OK(weft_join(waiter, &r));
    ASSERT_EQ(r, -ECANCELED);
    store_release(&released, true);
    ASSERT_OK(weft_join(task, NULL));
}

TEST(wait_in_a_task_that_is_cancelled)
{
    crew_each(cancelled_before);
}

/* ---- at any moment ---------------------------------------------------------------------------------------- */

static int short_life(int polls)
{
    for (int i = 0; i < polls; i++)
        (void)weft_yield();
    return 0;
}

struct short_frame {
    WEFT_FRAME(int);
    int polls;
    struct weft_yield pause;
};
static weft_async(short_frame)
{
    weft_begin;
    while (f->polls-- > 0)
        weft_await(f->pause, weft_yield);
    weft_end;
}

/* Tasks of a few polls, each with waiters that come at any time, of whom some are cancelled at any
 * time, and a handle that is joined or dropped. */
static void storm(struct crew *crew)
{
    uint64_t random = test_seed() | 1;
    uint64_t rounds = test_scaled(1500);
    (void)crew;
    begin();
    for (uint64_t i = 0; i < rounds; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        unsigned dice = (unsigned)(random >> 40);
        int polls = (int)(dice % 4);
        weft_task *task = dice & 8 ? weft_go(short_life, polls) : weft_spawn(short_frame, polls);
        weft_task *a = weft_go(waits, weft_ref(task));
        weft_task *b = weft_spawn(awaits, weft_ref(task));
        if (dice & 16) weft_cancel(a);
        if (dice & 32) ASSERT_OK(weft_wait(task));
        if (dice & 64) weft_cancel(b);
        if (dice & 128) {
            ASSERT_OK(weft_join(task, NULL));
        } else {
            ASSERT_OK(weft_detach(task));
        }
        int r = 1;
        ASSERT_OK(weft_join(a, &r));
        ASSERT(r == 0 || (r == -ECANCELED && (dice & 16)));
        ASSERT_OK(weft_join(b, &r));
        ASSERT(r == 0 || (r == -ECANCELED && (dice & 64)));
    }
    ASSERT_EQ(load_relaxed(&answers), 2 * rounds);
}

TEST(wait_at_every_moment_of_the_end)
{
    crew_each(storm);
}

/* ---- refusals ---------------------------------------------------------------------------------------------- */

static int waits_for_itself(void)
{
    return weft_wait(weft_self());
}

struct awaits_nothing {
    WEFT_FRAME(int);
    struct weft_wait wait;
};
static weft_async(awaits_nothing)
{
    weft_begin;
    weft_await(f->wait, weft_wait, .task = NULL);
    weft_return(f->wait.ret);
    weft_end;
}

static void refusals(struct crew *crew)
{
    int r = 0;
    (void)crew;
    ASSERT_EQ(weft_wait(NULL), -ECHILD);
    ASSERT_OK(weft_join(weft_spawn(awaits_nothing), &r));
    ASSERT_EQ(r, -ECHILD);
    ASSERT_OK(weft_join(weft_go(waits_for_itself), &r));
    ASSERT_EQ(r, -EDEADLK);
}

TEST(wait_for_nobody_and_for_itself)
{
    crew_each(refusals);
}

static int helper_waits(weft_task *task)
{
    return weft_wait(task);
}

struct waits_in_poll {
    WEFT_FRAME(int);
    weft_task *task;
};
static weft_async(waits_in_poll)
{
    weft_begin;
    weft_return(helper_waits(f->task));
    weft_end;
}

static void calls_in_a_poll(void *unused)
{
    struct crew crew;
    int r = 0;
    (void)unused;
    begin();
    crew_start(&crew, 2);
    weft_task *task = weft_go(until_released);
    if (weft_join(weft_spawn(waits_in_poll, task), &r) < 0) _exit(2);
    store_release(&released, true);
    if (weft_join(task, NULL) < 0) _exit(3);
    crew_stop(&crew);
    _exit(r == -EDEADLK ? 0 : 4);
}

/* Release builds answer; debug builds stop there. Both name the task. */
TEST(wait_in_a_stackless_poll_is_refused)
{
    struct death d = death_of(calls_in_a_poll, NULL);
#ifdef WEFT_DEBUG
    ASSERT_EQ(d.signal, SIGABRT);
#else
    ASSERT_EQ(d.signal, 0);
    ASSERT_EQ(d.code, 0);
#endif
    ASSERT(strstr(d.said, "waits_in_poll"));
}
