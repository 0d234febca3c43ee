/* SPDX-License-Identifier: MIT
 *
 * crew - a real runtime for a test, of every shape: 1, 2 and 4 workers, and one of the current-thread
 * kind, which a thread of the crew's turns.
 *
 *     static void joins(struct crew *crew) { ... weft_go(fn) ... }
 *     TEST(task_joins) { crew_each(joins); }
 * The test's thread has entered the runtime. At the end everything is joined: a body that leaves
 * tasks behind has them cancelled.
 */
#ifndef WEFT_TESTS_CREW_H
#define WEFT_TESTS_CREW_H

#include "base/atomic.h"
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <weft/fiber.h>
#include <weft/rt.h>
#include <weft/task.h>

struct crew {
    weft_rt *rt;
    int workers; /* -1: current-thread */
    pthread_t driver;
    _Atomic bool quit; /* relaxed everywhere: a flag that a wake follows */
};

static inline void *crew_drive(void *arg)
{
    struct crew *crew = arg;
    while (!load_relaxed(&crew->quit))
        ASSERT_GE(weft_rt_turn(crew->rt, -1), 0);
    return NULL;
}

static inline void crew_nothing(void)
{
}

static inline void crew_start_with(struct crew *crew, const weft_rt_opts *opts)
{
    ASSERT_OK(weft_rt_new(opts, &crew->rt));
    crew->workers = opts->workers;
    store_relaxed(&crew->quit, false);
    (void)weft_rt_enter(crew->rt);
    if (crew->workers < 0) ASSERT_OK(pthread_create(&crew->driver, NULL, crew_drive, crew));
}

static inline void crew_start(struct crew *crew, int workers)
{
    crew_start_with(crew, &(weft_rt_opts){.workers = workers, .seed = test_seed() | 1});
}

/* From here on the test's own thread turns, by way of stop. */
static inline void crew_release_driver(struct crew *crew)
{
    if (crew->workers >= 0) return;
    store_relaxed(&crew->quit, true);
    ASSERT_OK(weft_detach(weft_go(crew_nothing)));
    ASSERT_OK(pthread_join(crew->driver, NULL));
}

static inline void crew_stop(struct crew *crew)
{
    crew_release_driver(crew);
    (void)weft_rt_enter(NULL);
    ASSERT_OK(weft_rt_stop(crew->rt, -1));
}

static const int crew_sizes[] = {1, 2, 4, -1};
#define CREW_SIZES (sizeof(crew_sizes) / sizeof(crew_sizes[0]))

static inline void crew_each_in(const int *sizes, size_t count, void (*body)(struct crew *crew))
{
    for (size_t i = 0; i < count; i++) {
        struct crew crew;
        crew_start(&crew, sizes[i]);
        body(&crew);
        crew_stop(&crew);
    }
}

static inline void crew_each(void (*body)(struct crew *crew))
{
    crew_each_in(crew_sizes, CREW_SIZES, body);
}

/* Of these sizes: crew_each_of(joins, 2, 8) */
#define crew_each_of(body, ...) crew_each_in((const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int), body)

/* Wait for what others do, without a clock: the harness's watchdog ends a wait that never ends. */
#define CREW_UNTIL(condition)                                                                      \
    do {                                                                                           \
        while (!(condition))                                                                       \
            sched_yield();                                                                         \
    } while (0)

#endif
