/* SPDX-License-Identifier: MIT
 *
 * The `next` slot under thieves: each task put comes out exactly once, of put, take or steal.
 */
#include "base/assert.h"
#include "sched/slot.h"
#include "test.h"

#include <pthread.h>
#include <sched.h>

#define TASKS   100000
#define THIEVES 2

struct item {
    struct weft_task task;
    uint64_t word; /* plain: written by the owner, read by who gets the task */
    uint32_t seen;
};

static struct item *items;
static struct weft__slot slot;
static _Atomic bool over;

static void take(struct weft_task *t)
{
    struct item *item = (struct item *)t;

    if (!t) return;
    weft_assert(item->word == ~(uint64_t)(item - items)); /* Check's asserts are for one thread */
    item->seen++;
}

static void *thief_main(void *arg)
{
    while (!load_acquire(&over)) { /* [over] with the owner's end */
        struct weft_task *t = weft__slot_steal(&slot);
        take(t);
        if (!t) sched_yield();
    }
    return arg;
}

static void each_task_once(bool shared)
{
    pthread_t thieves[THIEVES];
    uint64_t random = test_seed();
    uint64_t count = test_scaled(TASKS);

    items = calloc(count, sizeof(*items));
    weft__slot_init(&slot, shared);
    store_relaxed(&over, false); /* relaxed: no thread yet */
    for (int i = 0; i < THIEVES; i++) {
        ASSERT_OK(pthread_create(&thieves[i], NULL, thief_main, NULL));
    }
    for (uint64_t i = 0; i < count; i++) {
        random = random * 6364136223846793005 + 1442695040888963407;
        items[i].word = ~i;
        take(weft__slot_put(&slot, &items[i].task));
        if (random >> 62 == 0) take(weft__slot_take(&slot));
        if (random >> 54 == 0) sched_yield(); /* on one core the thieves get their turn here */
    }
    take(weft__slot_take(&slot));
    store_release(&over, true); /* [over] with the thieves' loop */
    for (int i = 0; i < THIEVES; i++) ASSERT_OK(pthread_join(thieves[i], NULL));
    for (uint64_t i = 0; i < count; i++) weft_assert(items[i].seen == 1);
    free(items);
}

TEST(slot_each_task_once_against_two_thieves)
{
    each_task_once(false);
}

TEST(slot_each_task_once_without_membarrier)
{
    each_task_once(true);
}
