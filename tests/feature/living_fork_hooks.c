/* SPDX-License-Identifier: MIT
 *
 * Living with fork, in the hooks of a runtime: the child is a plain thread there. If it goes back into the worker it ends
 * with a message; one that a plain thread's spawn made goes on without the runtime. The parent notices nothing.
 */
#include "child.h"
#include "crew.h"
#include "sched/sched.h"
#include "test.h"

#include <errno.h>

/* ---- a hook that forks, once -------------------------------------------------------------------------------------- */

#define NOT_YET (-1)

static _Atomic bool armed; /* relaxed: a flag; who disarms it forks */
static _Atomic int code;   /* how the child ended; NOT_YET */
static int pipe_ends[2];   /* the child's stderr */
static pid_t parent;       /* who forks */

static void forks_once(void)
{
    if (!exchange_relaxed(&armed, false)) return;
    pid_t child = fork();
    if (child == 0) {
        dup2(pipe_ends[1], STDERR_FILENO);
        return;
    }
    store_release(&code, exit_code_of(child)); /* a flag of the test's */
}

static void forks_at_thread(weft_rt *rt, unsigned worker)
{
    (void)rt;
    (void)worker;
    forks_once();
}

static void forks_at_task(weft_rt *rt, const weft_task *task)
{
    (void)rt;
    (void)task;
    forks_once();
}

static void arm(void)
{
    ASSERT_OK(pipe(pipe_ends));
    parent = getpid();
    store_relaxed(&code, NOT_YET);
    store_relaxed(&armed, true);
}

static bool has_ended(void)
{
    return load_acquire(&code) != NOT_YET;
}

/* The child has ended like this, with these words. */
static void ended_with(int expected, const char *words)
{
    char said[512] = "";
    CREW_UNTIL(has_ended());
    close(pipe_ends[1]);
    ASSERT_GE(read(pipe_ends[0], said, sizeof(said) - 1), words ? 1 : 0);
    close(pipe_ends[0]);
    if (!ended_by(load_relaxed(&code), expected)) fputs(said, stderr);
    ASSERT(ended_by(load_relaxed(&code), expected));
    if (words) ASSERT(strstr(said, words));
}

/* A child that polls another task of the parent's has gone too far. */
static int quick(int value)
{
    CHILD_NEEDS(getpid() == parent);
    return value;
}

struct quick_too {
    WEFT_FRAME(int);
    int value;
};
static weft_async(quick_too)
{
    weft_begin;
    weft_return(quick(f->value));
    weft_end;
}

/* The parent's runtime is as it was. */
static void still_works(void)
{
    for (int i = 0; i < 20; i++) {
        int got;
        ASSERT_OK(weft_join(weft_go(quick, i), &got));
        ASSERT_EQ(got, i);
        ASSERT_OK(weft_join(weft_spawn(quick_too, i), &got));
        ASSERT_EQ(got, i);
    }
}

/* ---- hooks of threads --------------------------------------------------------------------------------------------- */

static void thread_hook_that_forks(weft_rt_opts opts)
{
    static const int sizes[] = {1, 2, 4};
    for (size_t i = 0; i < 3; i++) {
        struct crew crew;
        opts.workers = sizes[i];
        arm();
        crew_start_with(&crew, &opts);
        while (!has_ended()) /* until somebody has slept, and woken */
            still_works();
        ended_with(70, "the child of a fork went back into a worker's hook");
        still_works();
        crew_stop(&crew);
    }
}

TEST(fork_in_on_thread_start)
{
    thread_hook_that_forks((weft_rt_opts){.on_thread_start = forks_at_thread});
}

TEST(fork_in_on_thread_park)
{
    thread_hook_that_forks((weft_rt_opts){.on_thread_park = forks_at_thread});
}

TEST(fork_in_on_thread_unpark)
{
    thread_hook_that_forks((weft_rt_opts){.on_thread_unpark = forks_at_thread});
}

/* ---- the hook of a task's end --------------------------------------------------------------------------------------- */

static void each_crew(weft_rt_opts opts, void (*body)(struct crew *))
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        opts.workers = crew_sizes[i];
        crew_start_with(&crew, &opts);
        body(&crew);
        still_works();
        crew_stop(&crew);
    }
}

static void forks_at_the_end(struct crew *crew)
{
    (void)crew;
    for (int fiber = 0; fiber < 2; fiber++) {
        int got;
        arm();
        ASSERT_OK(weft_join(fiber ? weft_go(quick, 3) : weft_spawn(quick_too, 3), &got));
        ASSERT_EQ(got, 3);
        ended_with(70, "the child of a fork went back into a worker's hook");
    }
}

TEST(fork_in_on_task_end)
{
    each_crew((weft_rt_opts){.on_task_end = forks_at_task}, forks_at_the_end);
}

/* ---- the hook of a spawn ---------------------------------------------------------------------------------------------- */

/* In the child the spawn is a plain thread's that was under way: it has a handle, of a task that nobody runs. */
static int spawns_and_goes_back(void)
{
    int got = 0;
    pid_t before = getpid();
    arm();
    weft_task *task = weft_go(quick, 4);
    if (getpid() != before) {
        CHILD_NEEDS(weft_self() == NULL);
        CHILD_NEEDS(weft_join(task, &got) == -ECHILD);
        return 0;
    }
    int r = weft_join(task, &got);
    return r < 0 ? r : got;
}

struct spawns_and_goes_back_too {
    WEFT_FRAME(int);
    int got;
    weft_task *task;
    struct weft_join join;
};
static weft_async(spawns_and_goes_back_too)
{
    weft_begin;
    arm();
    f->task = weft_go(quick, 4);
    weft_await(f->join, weft_join, f->task, &f->got);
    weft_return(f->join.ret < 0 ? f->join.ret : f->got);
    weft_end;
}

static void forks_at_a_tasks_spawn(struct crew *crew)
{
    int got;
    (void)crew;
    ASSERT_OK(weft_join(weft_go(spawns_and_goes_back), &got));
    ASSERT_EQ(got, 4);
    ended_with(70, "the child of a fork went back into task 'spawns_and_goes_back'");
    ASSERT_OK(weft_join(weft_spawn(spawns_and_goes_back_too), &got));
    ASSERT_EQ(got, 4);
    ended_with(70, "the child of a fork went back into task 'spawns_and_goes_back_too'");
}

TEST(fork_in_on_task_spawn_of_a_task)
{
    each_crew((weft_rt_opts){.on_task_spawn = forks_at_task}, forks_at_a_tasks_spawn);
}

static void forks_at_a_threads_spawn(struct crew *crew)
{
    int got;
    pid_t before = getpid();
    (void)crew;
    arm();
    weft_task *task = weft_go(quick, 5);
    if (getpid() != before) {
        CHILD_NEEDS(weft_join(task, &got) == -ECHILD);
        CHILD_NEEDS(weft_go(quick, 6) == NULL);
        _exit(5);
    }
    ASSERT_OK(weft_join(task, &got));
    ASSERT_EQ(got, 5);
    ended_with(5, NULL);
}

TEST(fork_in_on_task_spawn_of_a_plain_thread)
{
    each_crew((weft_rt_opts){.on_task_spawn = forks_at_task}, forks_at_a_threads_spawn);
}

/* Its ring is full, so that the spawn's push would take the lock of the overflow arrays; a thread that stayed with the
 * parent has that. */
static int spawns_upon_a_full_ring(struct weft__worker *w)
{
    while (weft__runq_length(&w->ring) < WEFT__RUNQ_CAP)
        if (weft_detach(weft_go(quick, 0)) < 0) return -1;
    arm();
    return weft_detach(weft_go(quick, 0));
}

TEST(fork_in_on_task_spawn_takes_no_lock_in_the_child)
{
    struct crew crew;
    int got;
    crew_start_with(&crew, &(weft_rt_opts){.workers = 1, .on_task_spawn = forks_at_task});
    struct weft__worker *w = &crew.rt->workers[0];
    store_relaxed(&code, NOT_YET);
    weft__lock_take(&w->over.lock);
    weft_task *task = weft_go(spawns_upon_a_full_ring, w);
    CREW_UNTIL(has_ended());
    weft__lock_drop(&w->over.lock);
    ended_with(70, "the child of a fork went back into task 'spawns_upon_a_full_ring'");
    ASSERT_OK(weft_join(task, &got));
    ASSERT_OK(got);
    crew_stop(&crew);
}
