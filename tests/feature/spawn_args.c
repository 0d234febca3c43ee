/* SPDX-License-Identifier: MIT
 *
 * What may happen between a task's block and its start, while the arguments of its weft_spawn are evaluated (those of weft_go are before): other
 * spawns, failed ones, a suspension that goes on on another worker, a fork, a stop. And what a block was before it does not matter: a task goes where its own
 * options say.
 */
#include "crew.h"
#include "tasks.h"
#include "test.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/local.h>
#include <weft/pool.h>

/* ---- a block that was another task's ------------------------------------------------------------------------ */

static _Atomic bool over;
static uint32_t polls_in_front; /* the test turns: one thread */
static uint32_t waited;         /* polls in front between a spawn in the background and its poll */

struct in_front {
    WEFT_FRAME(int);
    struct weft_yield pause;
};
static weft_async(in_front)
{
    weft_begin;
    while (!load_relaxed(&over)) {
        polls_in_front++;
        weft_await(f->pause, weft_yield);
        if (f->pause.ret < 0) break;
    }
    weft_return(0);
    weft_end;
}

struct behind {
    WEFT_FRAME(int);
    uint32_t born_at;
};
static weft_async(behind)
{
    weft_begin;
    waited += polls_in_front - f->born_at;
    weft_return(0);
    weft_end;
}

/* One frame as large as another: the second task gets the block of the first. */
struct breeds {
    WEFT_FRAME(int);
    int rounds;
    weft_task *task;
    struct weft_join join;
};
static weft_async(breeds)
{
    weft_begin;
    for (; f->rounds > 0; f->rounds--) {
        weft_await(f->join, weft_join, weft_spawn(behind, .born_at = polls_in_front), NULL);
        f->task = weft_spawn_as((.background = true), behind, .born_at = polls_in_front);
        weft_await(f->join, weft_join, f->task, NULL);
    }
    store_relaxed(&over, true);
    weft_return(0);
    weft_end;
}

/* Those in front go first: 16 polls on the average, until the loop looks behind. */
TEST(spawn_in_the_background_with_the_block_of_an_ordinary_task)
{
    enum { ROUNDS = 100 };
    weft_rt *rt;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1, .seed = 1}, &rt));
    (void)weft_rt_enter(rt);
    store_relaxed(&over, false);
    polls_in_front = 0;
    waited = 0;
    ASSERT_OK(weft_detach(weft_spawn(in_front)));
    ASSERT_OK(weft_detach(weft_spawn(in_front)));
    ASSERT_OK(weft_detach(weft_spawn(breeds, .rounds = ROUNDS)));
    while (!load_relaxed(&over))
        ASSERT_GE(weft_rt_turn(rt, 0), 1);
    ASSERT_GE(waited, ROUNDS * 8);
    (void)weft_rt_enter(NULL);
    ASSERT_OK(weft_rt_stop(rt, -1));
}

/* ---- arguments that take their time --------------------------------------------------------------------------- */

/* Suspends the fiber that spawns, between the block and the start: it goes on wherever a thief takes it. */
static int after_yields(int count, int value)
{
    while (count-- > 0)
        (void)weft_yield();
    return value;
}

static int joined(weft_task *task)
{
    int got = -1;
    return weft_join(task, &got) < 0 ? -1 : got;
}

static int adds(int a, int b)
{
    return a + b;
}

/* Every kind of task, with every kind of argument; each is 3. */
static int spawn_one(int kind)
{
    switch (kind % 6) {
    case 0:
        return joined(weft_go(adds, after_yields(1, 1), after_yields(2, 2)));
    case 1:
        return joined(weft_spawn(answers_too, .value = after_yields(3, 3)));
    case 2:
        return joined(weft_go(adds, joined(weft_go(answers, after_yields(1, 1))), 2));
    case 3:
        return joined(weft_spawn(
            answers_too, .value = joined(weft_spawn(answers_too, .value = after_yields(1, 3)))));
    case 4:
        return joined(weft_spawn_as((.pinned = true), answers_too, .value = after_yields(1, 3)));
    default:
        return joined(weft_spawn_as((.background = true), answers_too,
                                    .value = joined(weft_spawn(answers_too, .value = 3))));
    }
}

static int spawns_all(int first, int rounds)
{
    for (int i = 0; i < rounds; i++)
        if (spawn_one(first + i) != 3) return -1;
    return 0;
}

static void take_their_time(struct crew *crew)
{
    enum { SPAWNERS = 24 };
    weft_task *task[SPAWNERS];
    int rounds = (int)test_scaled(120);
    (void)crew;
    for (int i = 0; i < SPAWNERS; i++)
        task[i] = weft_go(spawns_all, i, rounds);
    for (int i = 0; i < SPAWNERS; i++)
        ASSERT_EQ(joined(task[i]), 0);
}

TEST(spawn_arguments_may_yield_and_spawn)
{
    crew_each(take_their_time);
}

/* A pinned task stays where its own options say, whatever worker gave the block and whatever the block was before. */
static pid_t runs_on(pid_t home)
{
    return home == gettid() ? home : -1;
}

static int pins(int rounds)
{
    for (int i = 0; i < rounds; i++) {
        pid_t got = 0;
        if (spawn_one(i) != 3) return -1;
        WEFT_PINNED
        {
            pid_t home = gettid();
            if (weft_join(weft_go_as((.pinned = true), runs_on, home), &got) < 0 || got != home)
                return -2;
        }
    }
    return 0;
}

static void stay(struct crew *crew)
{
    enum { PINNERS = 8 };
    weft_task *task[PINNERS];
    (void)crew;
    for (int i = 0; i < PINNERS; i++)
        task[i] = weft_go(pins, (int)test_scaled(100));
    for (int i = 0; i < PINNERS; i++)
        ASSERT_EQ(joined(task[i]), 0);
}

TEST(spawn_for_a_worker_stays_there_whatever_the_block_was)
{
    crew_each(stay);
}

/* ---- arguments that fail ---------------------------------------------------------------------------------------- */

#define ROOM 8

static char memory[WEFT_POOL_BYTES(ROOM, answers_too)];

/* The inner one has no room, the outer one has. */
static int spawns_with_a_failure(weft_pool *pool)
{
    enum { MOST = 1000 };
    static weft_task *held[MOST];
    int count = 0;
    while (count < MOST && (held[count] = weft_spawn_as((.pool = pool), waits)))
        count++;
    if (count < ROOM || count == MOST) return -1;
    for (int i = 0; i < 100; i++) {
        int inner = 0;
        int outer = joined(weft_spawn(
            answers_too,
            .value = (inner = joined(weft_spawn_as((.pool = pool), answers_too, .value = 1))) + 5));
        if (inner != -1 || outer != 4) return -2;
    }
    for (int i = 0; i < count; i++) {
        weft_cancel(held[i]);
        if (weft_join(held[i], (int *)NULL) < 0) return -3;
    }
    return 0;
}

static void fails_inside(struct crew *crew)
{
    weft_pool pool;
    weft_pool_opts o = {.rt = crew->rt, .frame_bytes = sizeof(struct answers_too)};
    ASSERT_OK(weft_pool_init(&pool, memory, sizeof(memory), &o));
    ASSERT_EQ(joined(weft_go(spawns_with_a_failure, &pool)), 0);
    ASSERT_OK(weft_pool_done(&pool));
}

TEST(spawn_arguments_may_be_spawns_that_fail)
{
    crew_each(fails_inside);
}

/* ---- arguments that wait, of a thread outside, while the runtime stops ------------------------------------------------ */

static _Atomic uint32_t running;
static _Atomic bool released;

static int waits_for_its_cancel(void)
{
    while (weft_yield() == 0) {
    }
    return 1;
}

/* The argument ends when the sweep has cancelled its task: the stop must not wait for the spawn before. */
static void *spawns_with_a_wait(void *rt)
{
    weft_task *inner = weft_go_as((.rt = (weft_rt *)rt), waits_for_its_cancel);
    weft_task *outer = weft_spawn_as((.rt = (weft_rt *)rt), answers_too,
                                     .value = (fetch_add_release(&running, 1), joined(inner)));
    ASSERT_EQ(joined(outer), 1);
    return NULL;
}

static int until_released(void)
{
    fetch_add_release(&running, 1);
    CREW_UNTIL(load_acquire(&released));
    return 1;
}

static void *spawns_with_a_long_argument(void *rt)
{
    weft_task *outer = weft_spawn_as((.rt = (weft_rt *)rt), answers_too, .value = until_released());
    ASSERT_EQ(joined(outer), 1);
    return NULL;
}

static void stop_beside(void *(*thread_main)(void *), int workers, bool times_out)
{
    weft_rt *rt;
    pthread_t thread;
    store_relaxed(&running, 0);
    store_relaxed(&released, false);
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = workers, .seed = test_seed() | 1}, &rt));
    ASSERT_OK(pthread_create(&thread, NULL, thread_main, rt));
    while (load_acquire(&running) == 0)
        (void)(workers < 0 ? weft_rt_turn(rt, 0) : sched_yield());
    if (times_out) ASSERT_EQ(weft_rt_stop(rt, 1000000), -ETIME);
    store_release(&released, true);
    ASSERT_OK(weft_rt_stop(rt, -1));
    ASSERT_OK(pthread_join(thread, NULL));
}

TEST(spawn_arguments_may_wait_for_a_task_while_the_runtime_stops)
{
    for (size_t i = 0; i < CREW_SIZES; i++)
        stop_beside(spawns_with_a_wait, crew_sizes[i], false);
}

TEST(spawn_arguments_that_do_not_end_are_told_of_by_a_stop)
{
    for (size_t i = 0; i < CREW_SIZES; i++)
        stop_beside(spawns_with_a_long_argument, crew_sizes[i], true);
}

/* ---- arguments that fork ---------------------------------------------------------------------------------------- */

/* The child's handle is of a task that stayed with the parent. */
static int forks_in_an_argument(void)
{
    pid_t child = -1;
    weft_task *task = weft_spawn(answers_too, .value = (child = fork()) == 0 ? 0 : 3);
    if (child == 0) _exit(weft_join(task, (int *)NULL) == -ECHILD ? 7 : 8);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return -1;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 7) return -2;
    return joined(task);
}

static void forked(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 10; i++)
        ASSERT_EQ(joined(weft_go(forks_in_an_argument)), 3);
}

TEST(spawn_arguments_may_fork)
{
    crew_each(forked);
}
