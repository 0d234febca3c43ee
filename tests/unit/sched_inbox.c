/* SPDX-License-Identifier: MIT
 *
 * The inbox of a worker: two ways in, one way out, in turn with the rest. Waking the owner is idle's
 * business (tests/model/idle.c), the queue for others is the inject queue's (tests/model/inject.c).
 */
#include "sched/inbox.h"

#include "crew.h"
#include "test.h"

#define COUNT 100

static struct weft__inbox inbox;
static struct weft_task tasks[COUNT];

TEST(inbox_is_empty_at_first)
{
    weft__inbox_init(&inbox);
    ASSERT(weft__inbox_idle(&inbox));
    ASSERT(weft__inbox_empty(&inbox));
    ASSERT_NULL(weft__inbox_take(&inbox));
}

TEST(inbox_own_come_out_in_order)
{
    weft__inbox_init(&inbox);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++)
            weft__inbox_push(&inbox, &tasks[i]);
        ASSERT(!weft__inbox_idle(&inbox));
        ASSERT(!weft__inbox_empty(&inbox));
        for (int i = 0; i < COUNT; i++)
            ASSERT_PTR(weft__inbox_take(&inbox), &tasks[i]);
        ASSERT(weft__inbox_empty(&inbox));
    }
}

/* More than one batch, behind what was here before, before what comes later. */
TEST(inbox_remote_wait_for_older_ones_only)
{
    weft__inbox_init(&inbox);
    weft__inbox_push(&inbox, &tasks[0]);
    for (int i = 1; i < COUNT; i++)
        weft__inbox_push_remote(&inbox, &tasks[i]);
    ASSERT(!weft__inbox_empty(&inbox));
    ASSERT_PTR(weft__inbox_take(&inbox), &tasks[0]);
    weft__inbox_push(&inbox, &tasks[0]); /* it yields: behind the 32 that were fetched */
    int before = 0;
    for (struct weft_task *t; (t = weft__inbox_take(&inbox)) != &tasks[0]; before++)
        ASSERT_PTR(t, &tasks[before + 1]);
    ASSERT_GE(before, 32);
    for (struct weft_task *t; (t = weft__inbox_take(&inbox)); before++)
        ASSERT_PTR(t, &tasks[before + 1]);
    ASSERT_EQ(before, COUNT - 1);
    ASSERT(weft__inbox_idle(&inbox));
}

TEST(inbox_gives_every_other_turn_away)
{
    weft__inbox_init(&inbox);
    for (int i = 0; i < 10; i++)
        weft__inbox_push(&inbox, &tasks[i]);
    for (int i = 0; i < 10; i++) {
        ASSERT_PTR(weft__inbox_take_in_turn(&inbox), &tasks[i]);
        ASSERT_NULL(weft__inbox_take_in_turn(&inbox));
    }
}

static void *pushes_all(void *first)
{
    struct weft_task *t = first;
    for (int i = 0; i < COUNT / 2; i++)
        weft__inbox_push_remote(&inbox, &t[i]);
    return NULL;
}

TEST(inbox_two_pushers_lose_nothing)
{
    pthread_t pusher[2];
    int seen[COUNT] = {0};
    weft__inbox_init(&inbox);
    for (int i = 0; i < 2; i++)
        ASSERT_OK(pthread_create(&pusher[i], NULL, pushes_all, &tasks[i * COUNT / 2]));
    for (int got = 0; got < COUNT;) {
        struct weft_task *t = weft__inbox_take(&inbox);
        if (!t) continue;
        seen[t - tasks]++;
        got++;
    }
    for (int i = 0; i < 2; i++)
        ASSERT_OK(pthread_join(pusher[i], NULL));
    for (int i = 0; i < COUNT; i++)
        ASSERT_EQ(seen[i], 1);
    ASSERT(weft__inbox_empty(&inbox));
}
