/* SPDX-License-Identifier: MIT
 *
 * The inject queue: four pushers, two drainers: each task once, and whatever a drainer gets of one pusher
 * comes in that pusher's order. Then one drainer, who sees all of it.
 */
#include "base/assert.h"
#include "sched/inject.h"
#include "test.h"

#include <pthread.h>
#include <sched.h>

#define PUSHERS  4
#define DRAINERS 2
#define EACH     20000
#define CHAIN    5

struct item {
    struct weft_task task;
    uint32_t pusher; /* plain, both: written by the pusher, read by who gets the task */
    uint32_t number;
    uint32_t seen;
};

static struct weft__inject queue;
static struct item *items[PUSHERS];
static uint32_t each;
static _Atomic uint32_t left;

static void write_item(struct item *item, uint32_t pusher, uint32_t number)
{
    item->pusher = pusher;
    item->number = number;
}

/* Single pushes and chains, by turns that the seed chooses. */
static void *pusher_main(void *arg)
{
    uint32_t me = (uint32_t)(uintptr_t)arg;
    uint64_t random = test_seed() + me;
    struct item *mine = items[me];

    for (uint32_t i = 0; i < each;) {
        random = random * 6364136223846793005 + 1442695040888963407;
        uint32_t length = random >> 62 == 0 && i + CHAIN <= each ? CHAIN : 1;
        for (uint32_t k = 0; k < length; k++) {
            write_item(&mine[i + k], me, i + k);
            store_relaxed(&mine[i + k].task.link,
                          &mine[i + k + 1].task); /* relaxed: the push publishes it */
        }
        weft__inject_push_chain(&queue, &mine[i].task, &mine[i + length - 1].task);
        i += length;
    }
    return NULL;
}

static void *drainer_main(void *arg)
{
    uint32_t next[PUSHERS] = {0}; /* a later task of the same pusher has at least this number */
    struct weft_task *batch[16];

    while (load_relaxed(&left)) { /* relaxed: only when to stop */
        uint32_t count = weft__inject_pop(&queue, 16, batch);
        for (uint32_t i = 0; i < count; i++) {
            struct item *item = (struct item *)batch[i];
            item->seen++;
            weft_assert(item->number >= next[item->pusher]); /* Check's asserts are for one thread */
            next[item->pusher] = item->number + 1;
        }
        if (count) {
            fetch_sub_relaxed(&left, count); /* relaxed: a count */
        } else {
            sched_yield();
        }
    }
    return arg;
}

TEST(inject_four_pushers_two_drainers)
{
    pthread_t pushers[PUSHERS];
    pthread_t drainers[DRAINERS];

    each = (uint32_t)test_scaled(EACH);
    weft__inject_init(&queue);
    store_relaxed(&left, PUSHERS * each); /* relaxed: no thread yet */
    for (uint32_t i = 0; i < PUSHERS; i++) items[i] = calloc(each + 1, sizeof(struct item));
    for (int i = 0; i < DRAINERS; i++) {
        ASSERT_OK(pthread_create(&drainers[i], NULL, drainer_main, NULL));
    }
    for (uintptr_t i = 0; i < PUSHERS; i++) {
        ASSERT_OK(pthread_create(&pushers[i], NULL, pusher_main, (void *)i));
    }
    for (int i = 0; i < PUSHERS; i++) ASSERT_OK(pthread_join(pushers[i], NULL));
    for (int i = 0; i < DRAINERS; i++) ASSERT_OK(pthread_join(drainers[i], NULL));
    ASSERT_EQ(weft__inject_check(&queue), 0);
    for (uint32_t p = 0; p < PUSHERS; p++) {
        for (uint32_t i = 0; i < each; i++) weft_assert(items[p][i].seen == 1);
        free(items[p]);
    }
}

/* With one drainer the order is the whole of it: each pusher's tasks come out with no number missing. */
TEST(inject_one_drainer_sees_each_pusher_in_order)
{
    pthread_t pushers[PUSHERS];
    uint32_t next[PUSHERS] = {0};
    struct weft_task *batch[64];

    each = (uint32_t)test_scaled(EACH);
    weft__inject_init(&queue);
    for (uint32_t i = 0; i < PUSHERS; i++) items[i] = calloc(each + 1, sizeof(struct item));
    for (uintptr_t i = 0; i < PUSHERS; i++) {
        ASSERT_OK(pthread_create(&pushers[i], NULL, pusher_main, (void *)i));
    }
    for (uint32_t got = 0; got < PUSHERS * each;) {
        uint32_t count = weft__inject_pop(&queue, 64, batch);
        for (uint32_t i = 0; i < count; i++) {
            struct item *item = (struct item *)batch[i];
            weft_assert(item->number == next[item->pusher]);
            next[item->pusher]++;
        }
        got += count;
        if (!count) sched_yield();
    }
    for (int i = 0; i < PUSHERS; i++) ASSERT_OK(pthread_join(pushers[i], NULL));
    ASSERT(weft__inject_empty(&queue));
    for (uint32_t p = 0; p < PUSHERS; p++) free(items[p]);
}
