/* SPDX-License-Identifier: MIT
 *
 * The slot under thieves: each task that is put or dealt comes out exactly once, of put, take, play or steal.
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
        struct weft_task *got[WEFT__SLOT_MOST];
        uint32_t count = weft__slot_steal(&slot, got);
        for (uint32_t i = 0; i < count; i++) take(got[i]);
        if (count == 0) sched_yield();
    }
    return arg;
}

static struct weft_task *made(uint64_t i)
{
    items[i].word = ~i;
    return &items[i].task;
}

/* As who detaches a newborn does: what a thief gets is whole. */
static void change(struct weft_task *t)
{
    struct item *item = (struct item *)t;

    if (!weft__slot_hold_if(&slot, t)) return;
    item->word = 0;
    item->word = ~(uint64_t)(item - items);
    weft__slot_let_go(&slot);
}

/* Returns how many were dealt. */
static uint32_t deal(uint64_t from, uint64_t left, uint64_t random)
{
    struct weft_task *tasks[WEFT__HAND];
    uint32_t count = (uint32_t)(random >> 40) % (WEFT__HAND + 1);

    if (count > left) count = (uint32_t)left;
    for (uint32_t i = 0; i < count; i++) tasks[i] = made(from + i);
    weft__slot_deal(&slot, tasks, count);
    return count;
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
    for (uint64_t i = 0; i < count;) {
        random = random * 6364136223846793005 + 1442695040888963407;
        struct weft_task *t = made(i++);
        take(weft__slot_put(&slot, t));
        if (random >> 61 == 1) change(t);
        if (random >> 62 == 0) take(weft__slot_take(&slot));
        if (random >> 62 == 1) take(weft__slot_play(&slot));
        if (random >> 54 == 0) sched_yield(); /* on one core the thieves get their turn here */
        if (!weft__slot_has_hand(&slot) && !weft__slot_is_shared(&slot)) i += deal(i, count - i, random);
    }
    take(weft__slot_take(&slot));
    for (struct weft_task *t; (t = weft__slot_play(&slot));) take(t);
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
