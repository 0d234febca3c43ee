/* SPDX-License-Identifier: MIT
 *
 * What one worker has is offered to those that sleep: a few long tasks too, and long ones behind short ones. There is no monitor, who would help after a while.
 */
#include "crew.h"
#include "sched/sched.h"
#include "sys/clock.h"
#include "test.h"

#define ROUNDS 20
#define LONG   8

/* Longer than it takes for a backlog to be offered, and for a theft to be worth it. */
static void work(void)
{
    int64_t until = weft__clock_now() + 200000;
    while (weft__clock_now() < until) continue;
}

struct works {
    WEFT_FRAME(int);
    uint32_t yields;
    struct weft_yield yield;
};
static weft_async(works)
{
    weft_begin;
    while (f->yields-- > 0) weft_await(f->yield, weft_yield);
    work();
    weft_end;
}

static struct weft_rt *sharing;

static uint64_t wakes(void)
{
    struct weft_stats stats;
    weft_rt_stats(sharing, &stats);
    return stats.wakes;
}

/* 1: somebody was woken for them. */
static int spawns_some(uint32_t yields)
{
    weft_task *tasks[LONG];
    CREW_UNTIL(weft__idle_look(&sharing->idle)); /* the other sleeps, and nobody searches */
    uint64_t before = wakes();
    for (int i = 0; i < LONG; i++) tasks[i] = weft_spawn(works, .yields = yields);
    for (int i = 0; i < LONG; i++) {
        int r = weft_wait(tasks[i]);
        if (r < 0) return r;
        (void)weft_detach(tasks[i]);
    }
    return wakes() > before;
}

/* In most rounds: a thief that comes late finds nothing worth while, and its victim is shunned for a moment. */
static void are_shared(uint32_t yields)
{
    struct crew crew;
    int shared = 0;
    crew_start_with(&crew, &(weft_rt_opts){.workers = 2, .seed = test_seed() | 1, .monitor_us = -1});
    sharing = crew.rt;
    for (int i = 0; i < ROUNDS; i++) {
        int got = 0;
        ASSERT_OK(weft_join(weft_go(spawns_some, yields), &got));
        ASSERT_GE(got, 0);
        shared += got;
    }
    crew_stop(&crew);
    ASSERT_GE(shared, ROUNDS / 2);
}

TEST(share_a_few_long_tasks)
{
    are_shared(0);
}

TEST(share_long_polls_behind_short_ones)
{
    are_shared(3);
}
