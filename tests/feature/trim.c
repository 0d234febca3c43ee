/* SPDX-License-Identifier: MIT
 *
 * A burst of fibers leaves stacks behind. Once the runtime has slept for a while their pages are the kernel's again, all but
 * those of a few: also the ones that workers had in their magazines, of the usual size and of others, with a monitor and without.
 */
#include "crew.h"
#include "sched/sched.h"
#include "test.h"

#include <string.h>

enum { BURST = 300 };

static _Atomic uint32_t waiting;

/* Touches some pages, and waits until all are there. */
static int touches(void)
{
    volatile char page[3 * 4096];
    for (size_t i = 0; i < sizeof(page); i += 1024)
        page[i] = 1;
    fetch_add_relaxed(&waiting, 1);
    while (load_relaxed(&waiting) < BURST)
        if (weft_yield() < 0) return -1;
    return page[1024];
}

static void burst(bool large)
{
    weft_task *task[BURST];
    store_relaxed(&waiting, 0);
    for (int i = 0; i < BURST; i++)
        task[i] = large ? weft_go_as((.stack_bytes = 512 * 1024), touches) : weft_go(touches);
    for (int i = 0; i < BURST; i++) {
        int got = 0;
        ASSERT_OK(weft_join(task[i], &got));
        ASSERT_EQ(got, 1);
    }
}

static size_t warm_of(struct weft__stacks *pool)
{
    weft__lock_take(&pool->lock);
    size_t warm = pool->warm_count + pool->in_use_count; /* in a magazine, too */
    weft__lock_drop(&pool->lock);
    return warm;
}

static bool is_trimmed(struct weft__stacks *pool)
{
    return warm_of(pool) <= WEFT__STACK_KEEP;
}

/* A monitor that looks often finds soon that all sleep. */
static void rest_after_bursts(int count, int workers, int monitor_us, bool large)
{
    struct crew crew;
    struct weft__stacks *pool;
    crew_start_with(
        &crew,
        &(weft_rt_opts){.workers = workers, .monitor_us = monitor_us, .seed = test_seed() | 1});
    if (large) {
        ASSERT_OK(weft__stack_sizes_get(&crew.rt->stack_sizes, 512 * 1024, &pool));
    } else {
        pool = &crew.rt->stacks;
    }
    for (int i = 0; i < count; i++) {
        burst(large);
        CREW_UNTIL(is_trimmed(pool));
        weft__stacks_check(pool);
    }
    crew_stop(&crew);
}

TEST(trim_by_the_monitor)
{
    rest_after_bursts(2, 2, 100, false);
    rest_after_bursts(2, 4, 100, false);
}

TEST(trim_of_other_sizes)
{
    rest_after_bursts(2, 2, 100, true);
}

/* A lone worker has no monitor, and others may do without. */
TEST(trim_by_workers)
{
    rest_after_bursts(1, 1, 0, false);
    rest_after_bursts(1, 2, -1, false);
}

/* Trimmed while they are wanted again, and while the runtime stops. */
TEST(trim_beside_bursts_and_a_stop)
{
    for (unsigned round = 0; round < test_scaled(8); round++) {
        struct crew crew;
        crew_start_with(&crew,
                        &(weft_rt_opts){.workers = 2, .monitor_us = 50, .seed = test_seed() | 1});
        for (unsigned i = 0; i < 5; i++) {
            burst(false);
            uint64_t trims = round % 3;
            if (trims) CREW_UNTIL(warm_of(&crew.rt->stacks) < BURST - 16 * trims);
        }
        crew_stop(&crew);
    }
}
