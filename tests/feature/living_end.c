/* SPDX-License-Identifier: MIT
 *
 * Living with the ends of programs and threads: exit and _exit inside a task, the end of main beside a runtime that lives,
 * a stop in an atexit handler, and a thread that ends inside a task.
 */
#include "crew.h"
#include "death.h"
#include "test.h"

#include <errno.h>

/* What only a thread that is not there any more, or not stopped, knew of would count as leaked at an exit. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

/* ---- a runtime that is busy when its process ends ------------------------------------------------------------- */

static int yields_forever(void)
{
    int r;
    while ((r = weft_yield()) == 0) {
    }
    return r;
}

/* All in a process of its own, which is to end: nothing is given back. */
static weft_rt *busy_runtime(int workers)
{
    weft_rt *rt;
    if (weft_rt_new(&(weft_rt_opts){.workers = workers, .make_default = true}, &rt) < 0) _exit(101);
    for (int i = 0; i < 4; i++)
        if (weft_detach(weft_go(yields_forever)) < 0) _exit(102);
    return rt;
}

/* A current-thread runtime is turned by whoever is there. */
static void run_for_ever(weft_rt *rt)
{
    for (;;) {
        if (weft_rt_turn(rt, -1) == -EINVAL) pause();
    }
}

static void says_bye(void)
{
    fputs("bye;", stderr);
}

/* ---- exit inside a task ------------------------------------------------------------------------------------------ */

enum how { BY_EXIT, BY_UNDERSCORE_EXIT, BY_EXIT_THAT_STOPS };

struct end {
    enum how how;
    int workers;
    bool stackless;
};

static weft_rt *stopped_at_exit;

static void stops_at_exit(void)
{
    fprintf(stderr, "stop %d;", weft_rt_stop(stopped_at_exit, -1));
}

static int ends_the_process(int how)
{
    if (weft_yield() < 0) return -1;
    if (how == BY_UNDERSCORE_EXIT) _exit(43);
    exit(42);
}

struct ends_stackless {
    WEFT_FRAME(int);
    int how;
};
static weft_poll ends_stackless_poll(void *frame, weft_cx *cx)
{
    struct ends_stackless *f = frame;
    (void)cx;
    if (f->how == BY_UNDERSCORE_EXIT) _exit(43);
    exit(42);
}

static void ends_inside_a_task(void *arg)
{
    const struct end *end = arg;
    weft_rt *rt = busy_runtime(end->workers);
    stopped_at_exit = rt;
    atexit(end->how == BY_EXIT_THAT_STOPS ? stops_at_exit : says_bye);
    weft_task *task = end->stackless ? weft_spawn(ends_stackless, .how = end->how)
                                     : weft_go(ends_the_process, end->how);
    if (weft_detach(task) < 0) _exit(103);
    run_for_ever(rt);
}

TEST(exit_inside_a_task_keeps_code_and_handlers)
{
    for (unsigned i = 0; i < 2 * CREW_SIZES; i++) {
        struct end end = {.how = BY_EXIT, .workers = crew_sizes[i / 2], .stackless = i % 2};
        struct death d = death_of(ends_inside_a_task, &end);
        ASSERT_OK(d.signal);
        ASSERT_EQ(d.code, 42);
        ASSERT_STR(d.said, "bye;");
    }
}

TEST(underscore_exit_inside_a_task_runs_no_handler)
{
    for (unsigned i = 0; i < 2 * CREW_SIZES; i++) {
        struct end end = {
            .how = BY_UNDERSCORE_EXIT, .workers = crew_sizes[i / 2], .stackless = i % 2};
        struct death d = death_of(ends_inside_a_task, &end);
        ASSERT_OK(d.signal);
        ASSERT_EQ(d.code, 43);
        ASSERT_STR(d.said, "");
    }
}

/* The task that exits is one of those that the stop would wait for. */
TEST(exit_inside_a_task_refuses_a_stop_in_its_handlers)
{
    char expected[32];
    snprintf(expected, sizeof(expected), "stop %d;", -EDEADLK);
    for (unsigned i = 0; i < 2 * CREW_SIZES; i++) {
        struct end end = {
            .how = BY_EXIT_THAT_STOPS, .workers = crew_sizes[i / 2], .stackless = i % 2};
        struct death d = death_of(ends_inside_a_task, &end);
        ASSERT_OK(d.signal);
        ASSERT_EQ(d.code, 42);
        ASSERT_STR(d.said, expected);
    }
}

/* ---- the end of main ------------------------------------------------------------------------------------------------ */

static void main_ends(void *workers)
{
    weft_rt *rt = busy_runtime(*(int *)workers);
    for (int i = 0; i < 5; i++) {
        if (weft_rt_turn(rt, 0) == -EINVAL) sched_yield();
    }
    exit(3); /* what the return from main does */
}

TEST(main_may_end_while_a_runtime_lives)
{
    for (uint64_t i = 0; i < CREW_SIZES * test_scaled(20); i++) {
        int workers = crew_sizes[i % CREW_SIZES];
        struct death d = death_of(main_ends, &workers);
        ASSERT_OK(d.signal);
        ASSERT_EQ(d.code, 3);
        ASSERT_STR(d.said, "");
    }
}

static void main_ends_and_a_handler_stops(void *workers)
{
    stopped_at_exit = busy_runtime(*(int *)workers);
    atexit(stops_at_exit);
    exit(4);
}

TEST(stop_in_an_atexit_handler_works)
{
    for (unsigned i = 0; i < CREW_SIZES; i++) {
        int workers = crew_sizes[i];
        struct death d = death_of(main_ends_and_a_handler_stops, &workers);
        ASSERT_OK(d.signal);
        ASSERT_EQ(d.code, 4);
        ASSERT_STR(d.said, "stop 0;");
    }
}

/* ---- the end of a thread ---------------------------------------------------------------------------------------------- */

/* TSan asserts that a thread ends as itself, not as a fiber, before we can say a word. */
#if defined(WEFT__TSAN)
#define FIBERS_MAY_END_THREADS false
#else
#define FIBERS_MAY_END_THREADS true
#endif

static int ends_its_thread(void)
{
    if (weft_yield() < 0) return -1;
    pthread_exit(NULL);
}

struct ends_thread_stackless {
    WEFT_FRAME(int);
};
static weft_poll ends_thread_stackless_poll(void *frame, weft_cx *cx)
{
    (void)frame;
    (void)cx;
    pthread_exit(NULL);
}

static void thread_ends_inside_a_task(void *arg)
{
    const struct end *end = arg;
    weft_rt *rt = busy_runtime(end->workers);
    weft_task *task = end->stackless ? weft_spawn(ends_thread_stackless) : weft_go(ends_its_thread);
    if (weft_detach(task) < 0) _exit(103);
    run_for_ever(rt);
}

TEST(thread_that_ends_inside_a_task_ends_the_process_by_name)
{
    for (unsigned i = 0; i < 2 * CREW_SIZES; i++) {
        struct end end = {.workers = crew_sizes[i / 2], .stackless = i % 2};
        if (!FIBERS_MAY_END_THREADS && !end.stackless) continue;
        struct death d = death_of(thread_ends_inside_a_task, &end);
        ASSERT_EQ(d.signal, SIGABRT);
        ASSERT(strstr(d.said, "a thread ended inside task 'ends_"));
        ASSERT(strstr(d.said, "living_end.c"));
    }
}

static pthread_t cancelled_worker;
static _Atomic bool is_known; /* relaxed: a flag */

static int tells_its_thread(void)
{
    cancelled_worker = pthread_self();
    store_relaxed(&is_known, true);
    return pause(); /* a cancellation point, and nothing else ends it */
}

static void worker_is_cancelled(void *unused)
{
    weft_rt *rt;
    (void)unused;
    if (weft_rt_new(&(weft_rt_opts){.workers = 1}, &rt) < 0) _exit(101);
    if (weft_detach(weft_go_as((.rt = rt), tells_its_thread)) < 0) _exit(103);
    CREW_UNTIL(load_relaxed(&is_known));
    pthread_cancel(cancelled_worker);
    for (;;)
        pause();
}

TEST(worker_that_is_cancelled_ends_the_process_by_name)
{
    struct death d = death_of(worker_is_cancelled, NULL);
    ASSERT_EQ(d.signal, SIGABRT);
    ASSERT(strstr(d.said, "a thread ended inside task 'tells_its_thread'"));
}

/* A thread that has turned a runtime may end once it is out of it. */
static void *turns_and_ends(void *rt)
{
    ASSERT_GE(weft_rt_turn(rt, 0), 0);
    pthread_exit(NULL);
}

TEST(thread_that_turned_may_end)
{
    weft_rt *rt;
    pthread_t thread;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
    ASSERT_OK(pthread_create(&thread, NULL, turns_and_ends, rt));
    ASSERT_OK(pthread_join(thread, NULL));
    ASSERT_OK(weft_rt_stop(rt, -1));
}
