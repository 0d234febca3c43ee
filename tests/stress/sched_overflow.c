/* SPDX-License-Identifier: MIT
 *
 * The overflow under thieves: an owner that makes bursts, spills and takes back, while two others take
 * arrays whole and steal from the ring: every task comes out exactly once, and no array is left.
 * Compiled a second time at small capacities by sched_overflow_tiny.c.
 */
#include "base/assert.h"
#include "sched/overflow.h"
#include "test.h"

#include <pthread.h>
#include <sched.h>

#ifndef TASKS
#define TASKS 60000
#endif
#define THIEVES 2

struct item {
    struct weft_task task;
    uint64_t word; /* plain: written by the owner, read by who gets the task */
    uint32_t seen;
};

struct worker {
    pthread_t thread;
    struct weft__runq ring;
    struct weft__overflow overflow;
};

static struct item *items;
static struct worker owner;
static struct worker thieves[THIEVES];
static _Atomic bool over;

static void take(struct weft_task *t)
{
    struct item *item = (struct item *)t;

    if (!t) return;
    weft_assert(item->word == ~(uint64_t)(item - items)); /* Check's asserts are for one thread */
    item->seen++;
}

/* All that the worker has: its ring, then its overflow, until both are empty. */
static void run_dry(struct worker *w)
{
    for (;;) {
        struct weft_task *t = weft__runq_take_oldest(&w->ring);
        if (!t) t = weft__overflow_refill(&w->overflow, &w->ring).run;
        if (!t) return;
        take(t);
    }
}

static void *thief_main(void *arg)
{
    struct worker *me = arg;

    while (!load_acquire(&over)) { /* [over] with the owner's end */
        (void)weft__overflow_take_half(&me->overflow, &owner.overflow);
        struct weft_task *t = weft__overflow_refill(&me->overflow, &me->ring).run;
        if (!t) t = weft__runq_steal_half(&owner.ring, &me->ring, false).run;
        take(t);
        run_dry(me);
        if (!t) sched_yield();
    }
    return NULL;
}

static void worker_init(struct worker *w)
{
    weft__runq_init(&w->ring);
    weft__overflow_init(&w->overflow);
}

static void push(uint64_t index)
{
    items[index].word = ~index;
    while (!weft__runq_push(&owner.ring, &items[index].task)) {
        weft_assert(weft__overflow_spill(&owner.overflow, &owner.ring) >= 0);
    }
}

/* A burst of pushes, then a stretch of takes, of seeded lengths: the overflow fills and empties. */
static void make_bursts(uint64_t count)
{
    uint64_t random = test_seed();

    for (uint64_t pushed = 0; pushed < count;) {
        random = random * 6364136223846793005 + 1442695040888963407;
        uint64_t burst = (random >> 33) % (4 * WEFT__RUNQ_CAP);
        for (uint64_t i = 0; i < burst && pushed < count; i++) push(pushed++);
        if (random >> 62 == 0) {
            run_dry(&owner);
        } else if (random >> 54 == 1023) {
            sched_yield(); /* on one core the thieves get their turn here */
        }
        weft__overflow_check(&owner.overflow);
    }
    run_dry(&owner);
}

TEST(overflow_each_task_once_against_two_thieves)
{
    uint64_t count = test_scaled(TASKS);

    items = calloc(count, sizeof(*items));
    worker_init(&owner);
    store_relaxed(&over, false); /* relaxed: no thread yet */
    for (int i = 0; i < THIEVES; i++) {
        worker_init(&thieves[i]);
        ASSERT_OK(pthread_create(&thieves[i].thread, NULL, thief_main, &thieves[i]));
    }
    make_bursts(count);
    store_release(&over, true); /* [over] with the thieves' loop */
    for (int i = 0; i < THIEVES; i++) {
        ASSERT_OK(pthread_join(thieves[i].thread, NULL));
        weft__overflow_done(&thieves[i].overflow);
    }
    weft__overflow_done(&owner.overflow);
    for (uint64_t i = 0; i < count; i++) weft_assert(items[i].seen == 1);
    free(items);
}
