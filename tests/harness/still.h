/* SPDX-License-Identifier: MIT
 *
 * still - a crew whose clock stands: hours of sleep in no time, and times that are exact.
 *
 *     static void sleeps(struct crew *crew) { ... }
 *     TEST(sleep_lasts) { still_each(sleeps); }
 *     TEST(sleep_of_a_task_lasts) { still_task_each(sleeps); }
 *     static int sleeps_here(void) { ... return 0; }
 *     TEST(sleep_lasts_here) { each_paused(sleeps_here); }
 */
#ifndef WEFT_TESTS_STILL_H
#define WEFT_TESTS_STILL_H

#include "crew.h"

#include <weft/time.h>

static inline void still_each(void (*body)(struct crew *crew))
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        weft_rt_opts opts = {.workers = crew_sizes[i], .seed = test_seed() | 1, .paused = true};
        crew_start_with(&crew, &opts);
        body(&crew);
        crew_stop(&crew);
    }
}

/* The body is a task: a sleep then lasts until all others wait. */
static void (*still_body)(struct crew *crew);

static inline void still_runs(struct crew *crew)
{
    still_body(crew);
}

static inline void still_joins(struct crew *crew)
{
    ASSERT_OK(weft_join(weft_go(still_runs, crew), NULL));
}

static inline void still_task_each(void (*body)(struct crew *crew))
{
    still_body = body;
    still_each(still_joins);
}

/* The same of a body that needs no crew and answers 0. */
static int (*still_answer)(void);

static inline void still_joins_answer(struct crew *crew)
{
    int r = 1;
    (void)crew;
    ASSERT_OK(weft_join(weft_go(still_answer), &r));
    ASSERT_OK(r);
}

static inline void each_paused(int (*body)(void))
{
    still_answer = body;
    still_each(still_joins_answer);
}

#endif
