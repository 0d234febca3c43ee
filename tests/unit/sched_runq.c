/* SPDX-License-Identifier: MIT
 *
 * The ring, by one thread: both ends, full and empty, many rounds, and what a thief leaves behind.
 * Compiled a second time at the smallest capacity by sched_runq_tiny.c.
 */
#include "sched/runq.h"
#include "test.h"

static struct weft__runq ring;
static struct weft__runq other;
static struct weft_task tasks[4 * WEFT__RUNQ_CAP];

static void fill(struct weft__runq *q, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) ASSERT(weft__runq_push(q, &tasks[first + i]));
    weft__runq_check(q);
}

static void start(void)
{
    weft__runq_init(&ring);
    weft__runq_init(&other);
}

TEST(runq_oldest_comes_first)
{
    start();
    ASSERT_NULL(weft__runq_take_oldest(&ring));
    fill(&ring, 0, WEFT__RUNQ_CAP);
    for (uint32_t i = 0; i < WEFT__RUNQ_CAP; i++) {
        ASSERT_PTR(weft__runq_take_oldest(&ring), &tasks[i]);
        weft__runq_check(&ring);
    }
    ASSERT_NULL(weft__runq_take_oldest(&ring));
}

TEST(runq_newest_comes_back_last_in_first_out)
{
    start();
    ASSERT_NULL(weft__runq_take_newest(&ring));
    fill(&ring, 0, WEFT__RUNQ_CAP);
    for (uint32_t i = WEFT__RUNQ_CAP; i-- > 0;) {
        ASSERT_PTR(weft__runq_take_newest(&ring), &tasks[i]);
        weft__runq_check(&ring);
    }
    ASSERT_NULL(weft__runq_take_newest(&ring));
    fill(&ring, 0, 1); /* the ring still works after the last one was taken from the far end */
    ASSERT_PTR(weft__runq_take_oldest(&ring), &tasks[0]);
}

TEST(runq_refuses_when_full_and_changes_nothing)
{
    start();
    fill(&ring, 0, WEFT__RUNQ_CAP);
    ASSERT(!weft__runq_push(&ring, &tasks[WEFT__RUNQ_CAP]));
    ASSERT_EQ(weft__runq_length(&ring), WEFT__RUNQ_CAP);
    ASSERT_PTR(weft__runq_take_oldest(&ring), &tasks[0]);
    ASSERT(weft__runq_push(&ring, &tasks[WEFT__RUNQ_CAP]));
    ASSERT_PTR(weft__runq_take_newest(&ring), &tasks[WEFT__RUNQ_CAP]);
}

/* A seeded walk over both ends and the thief's, against an array that says what must come out. */
TEST(runq_agrees_with_a_plain_array_over_many_rounds)
{
    static uint32_t model[WEFT__RUNQ_CAP];
    uint32_t length = 0;
    uint64_t random = test_seed() | 1;

    start();
    for (uint32_t step = 0; step < test_scaled(4000); step++) {
        random = random * 6364136223846793005 + 1442695040888963407;
        uint32_t choice = (uint32_t)(random >> 33) % 8;
        if (choice < 4) {
            uint32_t next = step % (4 * WEFT__RUNQ_CAP);
            ASSERT_EQ(weft__runq_push(&ring, &tasks[next]), length < WEFT__RUNQ_CAP);
            if (length < WEFT__RUNQ_CAP) model[length++] = next;
        } else if (length == 0) {
            ASSERT_NULL(weft__runq_take_oldest(&ring));
            ASSERT_NULL(weft__runq_take_newest(&ring));
            ASSERT_NULL(weft__runq_steal(&ring));
        } else if (choice == 4) {
            ASSERT_PTR(weft__runq_take_newest(&ring), &tasks[model[--length]]);
        } else {
            struct weft_task *t =
                choice == 5 ? weft__runq_steal(&ring) : weft__runq_take_oldest(&ring);
            ASSERT_PTR(t, &tasks[model[0]]);
            length--;
            for (uint32_t i = 0; i < length; i++) model[i] = model[i + 1];
        }
        ASSERT_EQ(weft__runq_length(&ring), length);
    }
}

TEST(runq_half_is_rounded_up_and_comes_in_order)
{
    for (uint32_t n = 2; n <= WEFT__RUNQ_CAP; n++) {
        start();
        fill(&ring, 0, n);
        struct weft__haul haul = weft__runq_steal_half(&ring, &other, false);
        ASSERT_EQ(haul.count, (n + 1) / 2);
        ASSERT_PTR(haul.run, &tasks[0]);
        ASSERT_EQ(weft__runq_length(&other), haul.count - 1);
        ASSERT_EQ(weft__runq_length(&ring), n - haul.count);
        for (uint32_t i = 1; i < haul.count; i++) {
            ASSERT_PTR(weft__runq_take_oldest(&other), &tasks[i]);
        }
    }
}

TEST(runq_a_thief_leaves_a_ring_of_one_unless_told)
{
    struct weft__haul haul;

    start();
    haul = weft__runq_steal_half(&ring, &other, true);
    ASSERT_NULL(haul.run);
    ASSERT_EQ(haul.count, 0);
    fill(&ring, 0, 1);
    haul = weft__runq_steal_half(&ring, &other, false);
    ASSERT_NULL(haul.run);
    ASSERT_EQ(haul.count, 0);
    haul = weft__runq_steal_half(&ring, &other, true);
    ASSERT_PTR(haul.run, &tasks[0]);
    ASSERT_EQ(haul.count, 1);
    ASSERT_EQ(weft__runq_length(&other), 0);
}

TEST(runq_a_thief_takes_no_more_than_its_ring_holds)
{
    start();
    fill(&ring, 0, WEFT__RUNQ_CAP);
    fill(&other, WEFT__RUNQ_CAP, WEFT__RUNQ_CAP);
    struct weft__haul haul = weft__runq_steal_half(&ring, &other, false);
    ASSERT_PTR(haul.run, &tasks[0]);
    ASSERT_EQ(haul.count, 1);
    ASSERT_EQ(weft__runq_length(&other), WEFT__RUNQ_CAP);
}
