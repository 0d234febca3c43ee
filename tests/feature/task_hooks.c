/* SPDX-License-Identifier: MIT
 *
 * on_task_spawn and on_task_end: once for each task, in this order, whatever becomes of it.
 */
#include "crew.h"
#include "death.h"
#include "tasks.h"
#include "test.h"

#include <errno.h>
#include <string.h>
#include <weft/time.h>

static _Atomic uint32_t spawned;
static _Atomic uint32_t ended;
static _Atomic uint32_t named;
static _Atomic uint64_t id_sum; /* of those spawned, less those ended */
static weft_rt *_Atomic told_rt;

static void on_spawn(weft_rt *rt, const weft_task *task)
{
    fetch_add_relaxed(&spawned, 1); /* relaxed, all: counts, read when all is quiet */
    fetch_add_relaxed(&id_sum, weft_task_id(task));
    if (strcmp(weft_task_name(task), "by name") == 0) fetch_add_relaxed(&named, 1);
    store_relaxed(&told_rt, rt);
    ASSERT(!weft_done(task));
}

static void on_end(weft_rt *rt, const weft_task *task)
{
    fetch_add_relaxed(&ended, 1);
    fetch_sub_relaxed(&id_sum, weft_task_id(task));
    ASSERT_PTR(rt, load_relaxed(&told_rt));
    ASSERT(!weft_done(task)); /* no joiner knows */
    ASSERT_LE(load_relaxed(&ended), load_relaxed(&spawned));
}

static void each_crew(void (*body)(struct crew *), uint32_t tasks)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        weft_rt_opts o = {
            .workers = crew_sizes[i],
            .on_task_spawn = on_spawn,
            .on_task_end = on_end,
        };
        uint32_t before = load_relaxed(&spawned);
        crew_start_with(&crew, &o);
        body(&crew);
        crew_stop(&crew);
        uint32_t own = crew.workers < 0; /* of the crew, to release its driver */
        ASSERT_EQ(load_relaxed(&spawned) - before, tasks + own);
        ASSERT_EQ(load_relaxed(&ended), load_relaxed(&spawned));
        ASSERT_EQ(load_relaxed(&id_sum), 0);
    }
}

static void forks_and_joins(struct crew *crew)
{
    weft_stats s;
    int got;
    ASSERT_OK(weft_join(weft_spawn(forks, 8), &got));
    ASSERT_EQ(got, 256);
    weft_rt_stats(crew->rt, &s);
    ASSERT_GE(s.inlined, 1);
}

TEST(task_hooks_see_children_that_are_inlined)
{
    each_crew(forks_and_joins, 511);
}

static void all_ends(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 100; i++) {
        ASSERT_OK(weft_detach(weft_spawn(waits))); /* ended by the stop */
        ASSERT_OK(weft_detach(weft_go_as((.name = "by name"), answers, 1)));
        weft_task *task = weft_spawn(waits);
        weft_cancel(task);
        ASSERT_OK(weft_join(task, (int *)NULL));
    }
}

TEST(task_hooks_see_detached_cancelled_and_swept_tasks)
{
    each_crew(all_ends, 300);
    ASSERT_EQ(load_relaxed(&named), 100 * CREW_SIZES);
}

static void *spawns(void *rt)
{
    for (int i = 0; i < 100; i++)
        ASSERT_OK(weft_join(weft_go_as((.rt = rt), answers, i), (int *)NULL));
    return NULL;
}

static void from_threads(struct crew *crew)
{
    pthread_t thread[3];
    for (int i = 0; i < 3; i++)
        ASSERT_OK(pthread_create(&thread[i], NULL, spawns, crew->rt));
    for (int i = 0; i < 3; i++)
        ASSERT_OK(pthread_join(thread[i], NULL));
}

TEST(task_hooks_see_spawns_from_outside)
{
    each_crew(from_threads, 300);
}

/* Either may be missing. */
TEST(task_hooks_work_one_by_one)
{
    weft_rt *rt;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1, .on_task_spawn = on_spawn}, &rt));
    ASSERT_OK(weft_join(weft_go_as((.rt = rt), answers, 1), (int *)NULL));
    ASSERT_OK(weft_rt_stop(rt, -1));
    ASSERT_EQ(load_relaxed(&spawned), 1);
    ASSERT_EQ(load_relaxed(&ended), 0);
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1, .on_task_end = on_end}, &rt));
    store_relaxed(&told_rt, rt);
    ASSERT_OK(weft_join(weft_go_as((.rt = rt), answers, 1), (int *)NULL));
    ASSERT_OK(weft_rt_stop(rt, -1));
    ASSERT_EQ(load_relaxed(&spawned), 1);
    ASSERT_EQ(load_relaxed(&ended), 1);
}

/* A task that could not be spawned is not announced. */
TEST(task_hooks_do_not_see_what_was_refused)
{
    weft_rt *rt;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1, .on_task_spawn = on_spawn}, &rt));
    ASSERT_NULL(weft_go_as((.rt = rt, .stack_bytes = SIZE_MAX), answers, 1));
    ASSERT_EQ(load_relaxed(&spawned), 0);
    ASSERT_OK(weft_rt_stop(rt, -1));
}

/* ---- hooks that wait ---- */

static _Atomic bool wait_now; /* relaxed: a flag */
static _Atomic int answer = 1;

/* A worker that waited here would wait for what only it can bring. */
static void sleeps_in_a_hook(weft_rt *rt, unsigned worker)
{
    (void)rt;
    (void)worker;
    if (exchange_relaxed(&wait_now, false)) store_relaxed(&answer, weft_sleep(weft_ms(1)));
}

static void sleeps_at_a_task(weft_rt *rt, const weft_task *task)
{
    (void)task;
    sleeps_in_a_hook(rt, 0);
}

static bool at_spawn; /* by a fiber; written while there is one thread */

static int spawns_one(void)
{
    if (at_spawn) store_relaxed(&wait_now, true);
    return weft_join(weft_go(answers, 1), (int *)NULL);
}

static void runs_with(weft_rt_opts opts)
{
    weft_rt *rt;
    int got = 1;
    at_spawn = opts.on_task_spawn != NULL;
    store_relaxed(&wait_now, !at_spawn);
    if (weft_rt_new(&opts, &rt) < 0) _exit(2);
    if (weft_join(weft_go_as((.rt = rt), spawns_one), &got) < 0 || got != 0) _exit(3);
    CREW_UNTIL(load_relaxed(&answer) != 1); /* it may park later */
    if (weft_rt_stop(rt, -1) < 0) _exit(4);
    _exit(load_relaxed(&answer) == -EDEADLK ? 9 : 5);
}

static void waits_at_thread_start(void *unused)
{
    (void)unused;
    runs_with((weft_rt_opts){.workers = 1, .on_thread_start = sleeps_in_a_hook});
}

static void waits_at_park(void *unused)
{
    (void)unused;
    runs_with((weft_rt_opts){.workers = 1, .on_thread_park = sleeps_in_a_hook});
}

static void waits_at_task_end(void *unused)
{
    (void)unused;
    runs_with((weft_rt_opts){.workers = 1, .on_task_end = sleeps_at_a_task});
}

/* It would come back on another worker, with the new task in its hands. */
static void waits_at_task_spawn(void *unused)
{
    (void)unused;
    runs_with((weft_rt_opts){.workers = 2, .on_task_spawn = sleeps_at_a_task});
}

TEST(task_hooks_that_wait_are_told)
{
    death_expect_told(waits_at_task_spawn, "weft: task 'spawns_one' (spawned at ");
    death_expect_told(waits_at_thread_start, "weft: a worker waits inside a hook, called from ");
    death_expect_told(waits_at_park, "weft: a worker waits inside a hook, called from ");
    death_expect_told(waits_at_task_end, "weft: a worker waits inside a hook, called from ");
}
