/* SPDX-License-Identifier: MIT
 *
 * The overflow arrays, by one thread: order, what a spill moves, where arrays go, and no memory.
 * Compiled a second time at small capacities by sched_overflow_tiny.c.
 */
#include "base/alloc.h"
#include "base/fault.h"
#include "sched/overflow.h"
#include "test.h"

#include <errno.h>

#define TASKS (8 * WEFT__RUNQ_CAP)

static struct weft__runq ring;
static struct weft__runq their_ring;
static struct weft__overflow own;
static struct weft__overflow theirs;
static struct weft_task tasks[TASKS];

static void start(void)
{
    weft__runq_init(&ring);
    weft__runq_init(&their_ring);
    weft__overflow_init(&own);
    weft__overflow_init(&theirs);
}

static void done(void)
{
    weft__overflow_done(&own);
    weft__overflow_done(&theirs);
}

static void push(uint32_t index)
{
    if (weft__runq_push(&ring, &tasks[index])) return;
    ASSERT_EQ(weft__overflow_spill(&own, &ring), WEFT__OVERFLOW_SPILL);
    weft__overflow_check(&own);
    ASSERT(weft__runq_push(&ring, &tasks[index]));
}

/* The owner's next task: the ring's oldest, then the overflow's. */
static struct weft_task *next(void)
{
    struct weft_task *t = weft__runq_take_oldest(&ring);
    return t ? t : weft__overflow_refill(&own, &ring).run;
}

TEST(overflow_spill_moves_the_oldest_half)
{
    start();
    for (uint32_t i = 0; i <= WEFT__RUNQ_CAP; i++) push(i);
    ASSERT_EQ(weft__overflow_count(&own), WEFT__OVERFLOW_SPILL);
    ASSERT_EQ(weft__runq_length(&ring), WEFT__RUNQ_CAP - WEFT__OVERFLOW_SPILL + 1);
    ASSERT_PTR(weft__runq_take_oldest(&ring), &tasks[WEFT__OVERFLOW_SPILL]);
    while (weft__runq_take_oldest(&ring)) continue;
    for (uint32_t i = 0; i < WEFT__OVERFLOW_SPILL; i++) ASSERT_PTR(next(), &tasks[i]);
    ASSERT_NULL(next());
    done();
}

TEST(overflow_arrays_come_back_in_the_order_of_their_spills)
{
    start();
    for (uint32_t i = 0; i < TASKS; i++) push(i);
    uint64_t spilled = weft__overflow_count(&own);
    ASSERT_EQ(spilled % WEFT__OVERFLOW_SPILL, 0);
    while (weft__runq_take_oldest(&ring)) continue;
    for (uint64_t i = 0; i < spilled; i++) {
        ASSERT_PTR(next(), &tasks[i]);
        weft__overflow_check(&own);
    }
    ASSERT_NULL(next());
    done();
}

static void forget(struct weft__overflow *o, struct weft__runq *q)
{
    do {
        while (weft__runq_take_oldest(q)) continue;
    } while (weft__overflow_refill(o, q).run);
}

TEST(overflow_others_take_the_older_half)
{
    start();
    for (uint32_t i = 0; i < TASKS; i++) push(i);
    uint64_t spilled = weft__overflow_count(&own);
    uint64_t arrays = (spilled / WEFT__OVERFLOW_SPILL + 1) / 2;
    uint64_t moved = weft__overflow_take_half(&theirs, &own);
    ASSERT_EQ(moved, arrays * WEFT__OVERFLOW_SPILL);
    ASSERT_EQ(weft__overflow_count(&theirs), moved);
    ASSERT_EQ(weft__overflow_count(&own), spilled - moved);
    weft__overflow_check(&own);
    weft__overflow_check(&theirs);
    ASSERT_PTR(weft__overflow_refill(&theirs, &their_ring).run, &tasks[0]);
    while (weft__runq_take_oldest(&ring)) continue;
    ASSERT_PTR(weft__overflow_refill(&own, &ring).run, &tasks[moved]);
    forget(&own, &ring);
    forget(&theirs, &their_ring);
    done();
}

TEST(overflow_others_take_the_last_array_and_then_nothing)
{
    start();
    for (uint32_t i = 0; i < WEFT__RUNQ_CAP + 1; i++) push(i);
    ASSERT_EQ(weft__overflow_take_half(&theirs, &own), WEFT__OVERFLOW_SPILL);
    ASSERT_EQ(weft__overflow_take_half(&theirs, &own), 0);
    weft__overflow_check(&own);
    while (weft__runq_push(&ring, &tasks[0])) continue;
    ASSERT_EQ(weft__overflow_spill(&own, &ring), WEFT__OVERFLOW_SPILL); /* the list begins anew */
    ASSERT_EQ(weft__overflow_take_half(&theirs, &own), WEFT__OVERFLOW_SPILL);
    weft__overflow_check(&theirs);
    forget(&own, &ring);
    forget(&theirs, &their_ring);
    done();
}

/* A ring that has no room for the array: nothing is lost, and what is left is still the oldest. */
TEST(overflow_what_does_not_fit_stays_and_stays_oldest)
{
    start();
    for (uint32_t i = 0; i < TASKS; i++) push(i);
    uint64_t spilled = weft__overflow_count(&own);
    while (weft__runq_push(&ring, &tasks[0])) continue;
    struct weft__haul haul = weft__overflow_refill(&own, &ring);
    ASSERT_PTR(haul.run, &tasks[0]);
    ASSERT_EQ(haul.count, 1);
    ASSERT_EQ(weft__overflow_count(&own), spilled - 1);
    weft__overflow_check(&own);
    while (weft__runq_take_oldest(&ring)) continue;
    for (uint64_t i = 1; i < spilled; i++) ASSERT_PTR(next(), &tasks[i]);
    done();
}

TEST(overflow_spill_of_an_empty_ring_moves_nothing)
{
    start();
    ASSERT_EQ(weft__overflow_spill(&own, &ring), 0);
    ASSERT_EQ(weft__overflow_count(&own), 0);
    ASSERT_NULL(weft__overflow_take(&own));
    done();
}

#if defined(WEFT_FAULTS)

/* Steady spill and take-back uses one array for ever; a burst's arrays are given back. */
TEST(overflow_steady_spilling_allocates_once)
{
    int64_t before = weft__alloc_live();

    start();
    weft__fault_arm(WEFT__FAULT_ALLOC, UINT32_MAX, 1, -ENOMEM);
    for (uint32_t round = 0; round < 50; round++) {
        while (weft__runq_push(&ring, &tasks[round])) continue;
        ASSERT_EQ(weft__overflow_spill(&own, &ring), WEFT__OVERFLOW_SPILL);
        while (weft__runq_take_oldest(&ring)) continue;
        ASSERT(weft__overflow_refill(&own, &ring).run);
    }
    ASSERT_EQ(weft__fault_calls(WEFT__FAULT_ALLOC), 1);
    for (uint32_t i = 0; i < TASKS; i++) push(i);
    while (next()) continue;
    ASSERT_EQ(weft__alloc_live(), before + 1);
    done();
    ASSERT_EQ(weft__alloc_live(), before);
    weft__fault_reset();
}

TEST(overflow_without_memory_the_ring_is_as_it_was)
{
    start();
    weft__fault_arm(WEFT__FAULT_ALLOC, 1, 1, -ENOMEM);
    for (uint32_t i = 0; i < WEFT__RUNQ_CAP; i++) push(i);
    ASSERT_EQ(weft__overflow_spill(&own, &ring), -ENOMEM);
    ASSERT_EQ(weft__overflow_count(&own), 0);
    weft__overflow_check(&own);
    for (uint32_t i = 0; i < WEFT__RUNQ_CAP; i++) ASSERT_PTR(next(), &tasks[i]);
    ASSERT_NULL(next());
    weft__fault_reset();
    done();
}

#endif
