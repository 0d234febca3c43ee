/* SPDX-License-Identifier: MIT
 *
 * The handle of a task: joined, detached, shared, looked at; and where there is none.
 */
#include "caller.h"
#include "crew.h"
#include "tasks.h"
#include "test.h"

#include <errno.h>
#include <string.h>

/* ---- handles --------------------------------------------------------------------------------------- */

static void refusals(struct crew *crew)
{
    long wide = 5;
    short narrow = 6;
    (void)crew;
    ASSERT_EQ(weft_join((weft_task *)NULL, &wide), -ECHILD);
    ASSERT_EQ(weft_detach(NULL), -ECHILD);
    ASSERT(weft_done(NULL));
    weft_cancel(NULL);
    weft_unref(NULL);
    ASSERT_EQ(weft_join(weft_go(answers, 1), &wide), -EINVAL);
    ASSERT_EQ(weft_join(weft_spawn(answers_too, 1), &narrow), -EINVAL);
    ASSERT_EQ(wide, 5);
    ASSERT_EQ(narrow, 6);
    ASSERT_OK(weft_join(weft_go(answers, 1), (int *)NULL));
    ASSERT_OK(weft_join(weft_spawn(answers_too, 1), NULL));
}

/* A handle whose join was refused is spent: the harness would see the block that stays. */
TEST(task_join_refuses_and_spends_the_handle)
{
    crew_each(refusals);
}

/* ---- itself ---- */

struct joins_itself {
    WEFT_FRAME(int);
    weft_task *_Atomic *me;
    struct weft_yield pause;
    struct weft_join join;
};
static weft_async(joins_itself)
{
    weft_begin;
    while (!load_acquire(f->me)) /* its spawner's */
        weft_await(f->pause, weft_yield);
    weft_await(f->join, weft_join, load_relaxed(f->me), NULL);
    store_release(f->me, NULL);
    weft_return(f->join.ret == -EDEADLK ? 0 : -EIO);
    weft_end;
}

static int joins_itself_too(weft_task *_Atomic *me)
{
    while (!load_acquire(me))
        (void)weft_yield();
    int r = weft_join(load_relaxed(me), (int *)NULL);
    store_release(me, NULL);
    return r == -EDEADLK ? 0 : -EIO;
}

/* It would wait for ever. The handle is spent: the harness would see the block that stays. */
static void join_of_itself(struct crew *crew)
{
    weft_stats s;
    for (int i = 0; i < 2; i++) {
        weft_task *_Atomic me = NULL;
        weft_task *task = i ? weft_go(joins_itself_too, &me) : weft_spawn(joins_itself, &me);
        store_release(&me, task); /* who has it spends it */
        CREW_UNTIL(!load_acquire(&me));
    }
    weft_rt_stats(crew->rt, &s);
    ASSERT_EQ(s.unread_failures, 0);
}

TEST(task_join_of_itself_is_refused)
{
    crew_each(join_of_itself);
}

static _Atomic uint64_t ran;

static void count_one(void)
{
    fetch_add_relaxed(&ran, 1);
}

struct count_two {
    WEFT_FRAME(int);
    struct weft_yield pause;
};
static weft_async(count_two)
{
    weft_begin;
    weft_await(f->pause, weft_yield);
    fetch_add_relaxed(&ran, 1);
    weft_end;
}

static void detached(struct crew *crew)
{
    uint64_t count = test_scaled(2000);
    (void)crew;
    store_relaxed(&ran, 0);
    for (uint64_t i = 0; i < count; i++) {
        ASSERT_OK(weft_detach(weft_go(count_one)));
        ASSERT_OK(weft_detach(weft_spawn(count_two)));
    }
    CREW_UNTIL(load_relaxed(&ran) == 2 * count);
}

TEST(task_detached_tasks_all_run)
{
    crew_each(detached);
}

static _Atomic bool released;

/* A fiber that ends when it is told to. */
static int until_released(void)
{
    while (!load_acquire(&released)) /* acquire: a flag of the test's */
        (void)weft_yield();
    return 3;
}

static void looked_at(struct crew *crew)
{
    int three = 0;
    (void)crew;
    store_relaxed(&released, false);
    weft_task *task = weft_go(until_released);
    weft_task *shared = weft_ref(task);
    ASSERT_PTR(shared, task);
    ASSERT(!weft_done(task));
    ASSERT_STR(weft_task_name(task), "until_released");
    uint64_t id = weft_task_id(task);
    store_release(&released, true);
    ASSERT_OK(weft_join(task, &three));
    ASSERT_EQ(three, 3);
    ASSERT(weft_done(shared));
    ASSERT_EQ(weft_task_id(shared), id);
    weft_cancel(shared);
    weft_unref(shared);
}

TEST(task_references_outlive_the_join)
{
    crew_each(looked_at);
}

static void many_references(struct crew *crew)
{
    (void)crew;
    weft_task *task = weft_go(count_one);
    uint32_t count = 0;
    while (weft_ref(task))
        count++;
    ASSERT_EQ(count, 65534); /* the handle is one, too */
    for (uint32_t i = 0; i < count; i++)
        weft_unref(task);
    ASSERT_OK(weft_join(task, NULL));
}

TEST(task_references_end_at_65535)
{
    crew_each(many_references);
}

static int compare_ids(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;
    return *x < *y ? -1 : *x > *y;
}

static void ids(struct crew *crew)
{
    enum { COUNT = 500 };
    weft_task *task[COUNT];
    uint64_t id[COUNT];
    (void)crew;
    store_relaxed(&released, false);
    for (int i = 0; i < COUNT; i++) {
        task[i] = weft_go(until_released);
        id[i] = weft_task_id(task[i]);
    }
    qsort(id, COUNT, sizeof(id[0]), compare_ids);
    for (int i = 1; i < COUNT; i++)
        ASSERT(id[i - 1] != id[i]);
    store_release(&released, true);
    for (int i = 0; i < COUNT; i++)
        ASSERT_OK(weft_join(task[i], (int *)NULL));
}

TEST(task_ids_are_unique_among_the_living)
{
    crew_each(ids);
}

static int sees_itself(uint64_t *id)
{
    *id = weft_task_id(weft_self());
    int r = weft_yield();
    return r < 0 ? r : *id == weft_task_id(weft_self());
}

struct sees_itself_too {
    WEFT_FRAME(int);
    uint64_t *id;
    struct weft_yield pause;
};
static weft_async(sees_itself_too)
{
    weft_begin;
    *f->id = weft_task_id(weft_self());
    weft_await(f->pause, weft_yield);
    weft_return(*f->id == weft_task_id(weft_self()));
    weft_end;
}

static void self(struct crew *crew)
{
    uint64_t id;
    int same;
    (void)crew;
    ASSERT_NULL(weft_self());
    weft_task *task = weft_go(sees_itself, &id);
    uint64_t known = weft_task_id(task);
    ASSERT_OK(weft_join(task, &same));
    ASSERT_EQ(same, 1);
    ASSERT_EQ(id, known);
    task = weft_spawn(sees_itself_too, &id);
    known = weft_task_id(task);
    ASSERT_OK(weft_join(task, &same));
    ASSERT_EQ(same, 1);
    ASSERT_EQ(id, known);
}

TEST(task_self_is_who_runs)
{
    crew_each(self);
}

/* ---- no runtime; call forms where they must not be ------------------------------------------------------ */

TEST(task_without_a_runtime_there_is_no_task)
{
    int got;
    ASSERT_NULL(weft_rt_current());
    weft_task *task = weft_go(count_one);
    ASSERT_NULL(task);
    ASSERT_EQ(weft_join(weft_spawn(answers_too, 1), &got), -ECHILD);
    ASSERT_EQ(weft_run(answers_too, 9), 9);
    ASSERT_OK(weft_yield());
}

CALLER static int helper_that_joins(void)
{
    int got;
    weft_task *task = weft_spawn(answers_too, 1);
    int r = weft_join(task, &got);
    if (r == -EDEADLK) (void)weft_detach(task); /* nothing was taken */
    return r;
}

struct misled {
    WEFT_FRAME(int);
};
static weft_async(misled)
{
    weft_begin;
    weft_return(helper_that_joins());
    weft_end;
}

enum { MISLED_AT = __LINE__ + 8 };

static void join_inside_a_poll(void *unused)
{
    struct crew crew;
    int got = 0;
    (void)unused;
    crew_start(&crew, 1);
    weft_task *task = weft_spawn(misled);
    if (weft_join(task, &got) < 0) _exit(3);
    crew_stop(&crew);
    _exit(got == -EDEADLK ? 0 : 4);
}

/* Told with both places: where the task was spawned, and where in the helper the call is. */
TEST(task_join_inside_a_poll_is_refused)
{
    char who[512];
    struct death d = death_of(join_inside_a_poll, NULL);
    (void)snprintf(who, sizeof(who), "task 'misled' (spawned at %s:%d) ", __FILE__, MISLED_AT);
    expect_refused_in_a_poll(&d, who);
    ASSERT(caller_is_told(d.said));
}
