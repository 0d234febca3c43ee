/* SPDX-License-Identifier: MIT
 *
 * The inject queue, by one thread: order, batches, chains, and what a gap and a taken flag look like.
 */
#include "sched/inject.h"
#include "test.h"

#define TASKS 100

static struct weft__inject queue;
static struct weft_task tasks[TASKS];
static struct weft_task *out[TASKS];

static void expect(uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) ASSERT_PTR(out[i], &tasks[first + i]);
}

TEST(inject_first_in_first_out_in_batches)
{
    weft__inject_init(&queue);
    ASSERT_EQ(weft__inject_pop(&queue, TASKS, out), 0);
    for (uint32_t i = 0; i < TASKS; i++) weft__inject_push(&queue, &tasks[i]);
    ASSERT_EQ(weft__inject_check(&queue), TASKS);
    ASSERT_EQ(weft__inject_pop(&queue, 1, out), 1);
    expect(0, 1);
    ASSERT_EQ(weft__inject_pop(&queue, 30, out), 30);
    expect(1, 30);
    ASSERT_EQ(weft__inject_check(&queue), TASKS - 31);
    ASSERT_EQ(weft__inject_pop(&queue, TASKS, out), TASKS - 31);
    expect(31, TASKS - 31);
    ASSERT_EQ(weft__inject_check(&queue), 0);
}

/* The queue that ran empty by a batch of exactly its length, or by one more, takes tasks again. */
TEST(inject_empties_and_begins_again)
{
    weft__inject_init(&queue);
    for (uint32_t n = 1; n < 5; n++) {
        for (uint32_t extra = 0; extra < 2; extra++) {
            for (uint32_t i = 0; i < n; i++) weft__inject_push(&queue, &tasks[i]);
            ASSERT_EQ(weft__inject_pop(&queue, n + extra, out), n);
            expect(0, n);
            ASSERT_EQ(weft__inject_check(&queue), 0);
            ASSERT(weft__inject_idle(&queue));
        }
    }
}

TEST(inject_a_chain_keeps_its_order)
{
    weft__inject_init(&queue);
    weft__inject_push(&queue, &tasks[0]);
    for (uint32_t i = 1; i < 9; i++) {
        store_relaxed(&tasks[i].link, &tasks[i + 1]); /* relaxed: the push publishes it */
    }
    weft__inject_push_chain(&queue, &tasks[1], &tasks[8]); /* its last still points at tasks[9] */
    weft__inject_push(&queue, &tasks[9]);
    ASSERT_EQ(weft__inject_check(&queue), 10);
    ASSERT_EQ(weft__inject_pop(&queue, TASKS, out), 10);
    expect(0, 10);
}

TEST(inject_says_when_there_is_nothing_to_stay_awake_for)
{
    weft__inject_init(&queue);
    ASSERT(weft__inject_empty(&queue));
    ASSERT(weft__inject_idle(&queue));
    weft__inject_push(&queue, &tasks[0]);
    ASSERT(!weft__inject_empty(&queue));
    weft__inject_push(&queue, &tasks[1]);
    ASSERT(!weft__inject_empty(&queue));
    ASSERT_EQ(weft__inject_pop(&queue, 1, out), 1);
    ASSERT(!weft__inject_empty(&queue));
    ASSERT_EQ(weft__inject_pop(&queue, 1, out), 1);
    ASSERT(weft__inject_empty(&queue));
}

/* A pusher stopped between its exchange and its store, played by hand: at the head, then in the middle. */
TEST(inject_a_gap_reads_as_empty_for_now)
{
    weft__inject_init(&queue);
    store_relaxed(&tasks[0].link, NULL); /* relaxed, all: one thread plays everybody */
    store_relaxed(&queue.tail, &tasks[0]);
    ASSERT(weft__inject_empty(&queue));
    ASSERT(!weft__inject_idle(&queue));
    ASSERT_EQ(weft__inject_pop(&queue, TASKS, out), 0);
    store_relaxed(&queue.head, &tasks[0]);
    ASSERT(!weft__inject_empty(&queue));

    store_relaxed(&tasks[1].link, NULL);
    store_relaxed(&queue.tail, &tasks[1]);
    ASSERT(weft__inject_empty(&queue)); /* tasks[0] is behind the gap of tasks[1] */
    ASSERT_EQ(weft__inject_pop(&queue, TASKS, out), 0);
    weft__inject_push(&queue, &tasks[2]);
    ASSERT_EQ(weft__inject_pop(&queue, TASKS, out), 0);
    store_relaxed(&tasks[0].link, &tasks[1]);
    ASSERT_EQ(weft__inject_pop(&queue, TASKS, out), 3);
    expect(0, 3);
    ASSERT_EQ(weft__inject_check(&queue), 0);
}

TEST(inject_goes_away_while_another_drains)
{
    weft__inject_init(&queue);
    weft__inject_push(&queue, &tasks[0]);
    store_relaxed(&queue.draining, 1); /* relaxed: one thread plays everybody */
    ASSERT_EQ(weft__inject_pop(&queue, TASKS, out), 0);
    ASSERT(weft__inject_empty(&queue));
    store_relaxed(&queue.draining, 0); /* relaxed: the same */
    ASSERT_EQ(weft__inject_pop(&queue, TASKS, out), 1);
}
