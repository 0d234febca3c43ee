/* SPDX-License-Identifier: MIT
 *
 * storm - tasks of both kinds that wait for something, and a thread that cancels some of them at any moment.
 *
 *     static weft_task *start(void *of, uint32_t i, bool stackless) { ... weft_go(...) or weft_spawn(...) ... }
 *     struct storm_sum sum = storm(start, &of, count);
 * The tasks answer 0 (they got it, and gave it back), -ECANCELED or another errno. What is accounted for is up to the test.
 * Seeded. A share of the tasks is cancelled, from none to all; each after a while of its own, at once or much later.
 */
#ifndef WEFT_TESTS_STORM_H
#define WEFT_TESTS_STORM_H

#include "crew.h"
#include "pool.h"

#include <errno.h>
#include <stdlib.h>

struct storm_sum {
    uint32_t got;
    uint32_t cancelled;
    uint32_t other;
};

typedef weft_task *storm_start(void *of, uint32_t i, bool stackless);

/* So many times let others run, in a task of either kind: how long something is held, or when it comes. */
struct storm_pause {
    WEFT_FRAME(int);
    uint32_t times;
    struct weft_yield yield;
};
__attribute__((unused)) static weft_async(storm_pause)
{
    weft_begin;
    while (f->times-- > 0)
        weft_await(f->yield, weft_yield);
    weft_end;
}

static inline void storm_pause_here(uint32_t times)
{
    while (times-- > 0)
        (void)weft_yield();
}

static inline void storm_linger(uint64_t *random)
{
    for (uint32_t k = pool_random(random, 8); k > 0; k--)
        sched_yield();
}

/* Before the joins: whoever waits for ever gets what it needs from `finish`, if there is one. */
static inline struct storm_sum storm(storm_start *start, void *of, uint32_t count,
                                     void (*finish)(void *of))
{
    struct storm_sum sum = {0};
    uint64_t random = pool_seed(count);
    uint32_t share = pool_random(&random, 101); /* of a hundred, how many are cancelled */
    weft_task **task = calloc(count, sizeof(weft_task *));

    for (uint32_t i = 0; i < count; i++) {
        task[i] = start(of, i, pool_random(&random, 2));
        if (pool_random(&random, 4) == 0) storm_linger(&random);
        uint32_t victim = pool_random(&random, i + 1);
        if (pool_random(&random, 100) < share) weft_cancel(task[victim]);
    }
    if (finish) finish(of);
    for (uint32_t i = 0; i < count; i++) {
        int r = 1;
        ASSERT_OK(weft_join(task[i], &r));
        if (r == 0) {
            sum.got++;
        } else if (r == -ECANCELED) {
            sum.cancelled++;
        } else {
            sum.other++;
        }
    }
    free(task);
    return sum;
}

#endif
