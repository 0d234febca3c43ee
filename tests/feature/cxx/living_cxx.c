/* SPDX-License-Identifier: MIT
 *
 * Living with C++ exceptions: they are thrown and caught inside a task, also across suspensions and on other threads; one
 * that leaves a task ends the process before anything is unwound.
 */
#include "bodies.h"
#include "death.h"
#include "still.h"
#include "test.h"

struct in_catch {
    WEFT_FRAME(int);
    int n;
};
static weft_fiber(in_catch)
{
    f->ret = cxx_awaits_in_catch(f->n);
}

int c_runs_fiber(int n)
{
    return weft_run(in_catch, .n = n);
}

/* ---- inside ------------------------------------------------------------------------------------------------------ */

static int (*const bodies[])(int) = {
    cxx_throws_after_await,
    cxx_awaits_in_catch,
    cxx_awaits_while_unwinding,
    cxx_awaits_beneath,
};
#define BODIES (sizeof(bodies) / sizeof(bodies[0]))

static int calls(size_t body, int n)
{
    return bodies[body](n);
}

static void all_at_once(struct crew *crew)
{
    enum { TASKS = 64 };
    (void)crew;
    for (uint64_t round = 0; round < test_scaled(60); round++) {
        weft_task *tasks[TASKS];
        for (int i = 0; i < TASKS; i++)
            tasks[i] = weft_go(calls, (size_t)i % BODIES, i);
        for (int i = 0; i < TASKS; i++) {
            int right = 0;
            ASSERT_OK(weft_join(tasks[i], &right));
            ASSERT_EQ(right, 1);
        }
    }
    ASSERT_EQ(cxx_things_alive(), 0); /* each was destroyed once */
}

TEST(exceptions_stay_with_their_fiber)
{
    crew_each(all_at_once);
}

TEST(exceptions_of_a_plain_thread_beside_fibers_it_polls)
{
    for (int i = 0; i < 20; i++) {
        ASSERT_EQ(c_runs_fiber(i), 1);
        ASSERT_EQ(cxx_awaits_beneath(i), 1);
    }
    ASSERT_EQ(cxx_things_alive(), 0);
}

/* ---- out of a task ----------------------------------------------------------------------------------------------- */

struct cxx_throws {
    WEFT_FRAME(int);
};
#define cxx_throws_poll cxx_throws_out_of_poll

struct way {
    int workers;
    bool stackless;
};

static void throws_out_of_a_task(void *arg)
{
    const struct way *way = arg;
    weft_rt *rt;
    if (weft_rt_new(&(weft_rt_opts){.workers = way->workers, .make_default = true}, &rt) < 0)
        _exit(101);
    weft_task *task = way->stackless ? weft_spawn(cxx_throws) : weft_go(cxx_throws_out, 1);
    if (weft_detach(task) < 0) _exit(102);
    if (way->workers < 0) _exit(cxx_turns_and_catches(rt) ? 103 : 104);
    for (;;)
        pause();
}

TEST(exception_out_of_a_task_ends_the_process)
{
    for (unsigned i = 0; i < 2 * CREW_SIZES; i++) {
        struct way way = {.workers = crew_sizes[i / 2], .stackless = i % 2};
        struct death d = death_of(throws_out_of_a_task, &way);
        ASSERT_EQ(d.signal, SIGABRT);
        ASSERT(strstr(d.said, "thrown out of a"));
    }
}

/* ---- the macros of C++ ---- */

static void blocking(struct crew *crew)
{
    weft_lane *lane;
    int r = -1;
    ASSERT_OK(weft_lane_new(crew->rt, "cxx", 1, &lane));
    ASSERT_OK(cxx_asks_the_blocking_pool(lane));
    ASSERT_OK(weft_join(weft_go(cxx_asks_the_blocking_pool, lane), &r));
    ASSERT_OK(r);
    weft_lane_free(lane);
}

TEST(blocking_is_called_from_cxx)
{
    crew_each(blocking);
}

/* Time, regions and combinators, in the forms that C++ has. As tasks: a clock that stands waits for no thread. */
static void time_and_choice(struct crew *crew)
{
    weft_token stop = {0};
    int r = -1;
    (void)crew;
    ASSERT_OK(weft_join(weft_go(cxx_keeps_time), &r));
    ASSERT_OK(r);
    ASSERT_OK(weft_join(weft_go(cxx_chooses, &stop), &r));
    ASSERT_OK(r);
    ASSERT_OK(weft_join(weft_go(cxx_gives_up, &stop), &r));
    ASSERT_OK(r);
    weft_token_done(&stop);
}

TEST(time_and_choice_from_cxx)
{
    still_each(time_and_choice);
}
