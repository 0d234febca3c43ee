/* SPDX-License-Identifier: MIT
 *
 * The ring under thieves: the owner pushes and takes at both ends, one to three others steal one or half,
 * and every task comes out exactly once, with what its pusher wrote behind the pointer.
 * Compiled a second time on a ring of two by sched_runq_tiny.c.
 */
#include "base/assert.h"
#include "sched/runq.h"
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#ifndef TASKS_MAX
#define TASKS_MAX 60000
#endif
#define THIEVES_MAX 3

/* What lies behind the pointer is plain: TSan sees a task that is taken without being published, or twice. */
struct item {
    struct weft_task task;
    uint64_t word; /* written by the pusher, read by the taker */
    uint32_t seen; /* by the taker */
};

static struct item *items;
static struct weft__runq ring;
static _Atomic bool over;
static uint32_t item_count;

static void take(struct weft_task *t)
{
    struct item *item = (struct item *)t;

    if (!t) return;
    weft_assert(item->word == ~(uint64_t)(item - items)); /* Check's asserts are for one thread */
    item->seen++;
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005 + 1442695040888963407;
    return *state >> 33;
}

static void drain_own(struct weft__runq *own)
{
    for (struct weft_task *t; (t = weft__runq_take_oldest(own));) take(t);
}

struct thief {
    pthread_t thread;
    struct weft__runq own;
    uint64_t random;
};

static bool steal_some(struct thief *me)
{
    uint64_t choice = next_random(&me->random) % 4;
    struct weft_task *t = choice == 0 ? weft__runq_steal(&ring)
                                      : weft__runq_steal_half(&ring, &me->own, choice == 1).run;

    take(t);
    drain_own(&me->own);
    return t != NULL;
}

static void *thief_main(void *arg)
{
    while (!load_acquire(&over)) { /* [over] with the owner's end */
        if (!steal_some(arg)) sched_yield();
    }
    return NULL;
}

/* One random step of the owner: pushes a little more often than it takes, so that the ring is full at times. */
static void owner_step(uint64_t *random, uint32_t *pushed)
{
    uint64_t choice = next_random(random) % 16;

    if (choice < 9) {
        struct item *item = &items[*pushed];
        item->word = ~(uint64_t)*pushed;
        if (weft__runq_push(&ring, &item->task)) {
            ++*pushed;
        } else {
            take(weft__runq_take_oldest(&ring));
        }
    } else {
        take(choice < 13 ? weft__runq_take_newest(&ring) : weft__runq_take_oldest(&ring));
    }
    if (next_random(random) % 512 == 0) {
        weft__runq_check(&ring);
        sched_yield(); /* on one core the thieves get their turn here */
    }
}

static void run(uint32_t thief_count)
{
    static struct thief thieves[THIEVES_MAX];
    uint64_t random = test_seed() + thief_count;
    uint32_t pushed = 0;

    item_count = (uint32_t)test_scaled(TASKS_MAX);
    items = calloc(item_count, sizeof(*items));
    weft__runq_init(&ring);
    store_relaxed(&over, false); /* relaxed: no thread yet */
    for (uint32_t i = 0; i < thief_count; i++) {
        weft__runq_init(&thieves[i].own);
        thieves[i].random = next_random(&random);
        ASSERT_OK(pthread_create(&thieves[i].thread, NULL, thief_main, &thieves[i]));
    }
    while (pushed < item_count) owner_step(&random, &pushed);
    drain_own(&ring);
    store_release(&over, true); /* [over] with the thieves' loop */
    for (uint32_t i = 0; i < thief_count; i++) ASSERT_OK(pthread_join(thieves[i].thread, NULL));
    for (uint32_t i = 0; i < item_count; i++) weft_assert(items[i].seen == 1);
    free(items);
}

TEST(runq_each_task_once_against_one_thief)
{
    run(1);
}

TEST(runq_each_task_once_against_two_thieves)
{
    run(2);
}

TEST(runq_each_task_once_against_three_thieves)
{
    run(3);
}
