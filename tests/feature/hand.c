/* SPDX-License-Identifier: MIT
 *
 * The hand of a worker, which takes several of the oldest of a long ring at once: whatever its polls do, those in it have their turn.
 */
#include "base/fault.h"
#include "crew.h"
#include "sched/sched.h"
#include "test.h"

#include <weft/sync.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#define LONG_RING 200 /* more than WEFT__HAND_LEAST, and no spill */

static _Atomic uint32_t ran;

/* ---- behind a poll that spins ---- */

struct one_of_many {
    WEFT_FRAME(int);
    bool spins;
};
static weft_async(one_of_many)
{
    weft_begin;
    if (f->spins) CREW_UNTIL(load_acquire(&ran) >= LONG_RING - 1);
    fetch_add_release(&ran, 1);
    weft_end;
}

static int wait_for_all(weft_task **tasks, uint32_t count)
{
    for (uint32_t i = count; i-- > 0;) {
        int r = weft_wait(tasks[i]);
        if (r < 0) return r;
        (void)weft_detach(tasks[i]);
    }
    return 0;
}

/* One of them spins until all others have run; those that its worker took from the ring together with it are among them. */
static int spawns_a_spinner(uint32_t spinner)
{
    weft_task *tasks[LONG_RING];
    store_relaxed(&ran, 0);
    for (uint32_t i = 0; i < LONG_RING; i++) tasks[i] = weft_spawn(one_of_many, .spins = i == spinner);
    return wait_for_all(tasks, LONG_RING);
}

static void spinners(struct crew *crew)
{
    int got;
    (void)crew;
    for (uint32_t spinner = 0; spinner < 2 * WEFT__SLOT_MOST; spinner++) {
        ASSERT_OK(weft_join(weft_go(spawns_a_spinner, spinner), &got));
        ASSERT_EQ(got, 0);
    }
}

TEST(hand_behind_a_poll_that_spins)
{
    crew_each_of(spinners, 2, 4);
}

#if defined(WEFT_FAULTS)
static weft_notify gong;
static _Atomic uint32_t waiting;
static _Atomic uint32_t gonged;

struct waits_for_gong {
    WEFT_FRAME(int);
    struct weft_notify_wait wait;
};
static weft_async(waits_for_gong)
{
    weft_begin;
    fetch_add_relaxed(&waiting, 1);
    weft_await(f->wait, weft_notify_wait, &gong);
    if (fetch_add_relaxed(&gonged, 1) == 0) CREW_UNTIL(load_acquire(&ran) >= LONG_RING - 1);
    fetch_add_release(&ran, 1);
    weft_end;
}

/* A thief came to each worker, was refused, and has left its word; then all are woken by a chain, which goes to the ring past the slot. */
struct gongs {
    WEFT_FRAME(int);
    struct weft_rt *rt;
};
static weft_async(gongs)
{
    weft_begin;
    for (uint32_t i = 0; i < f->rt->worker_count; i++)
        (void)fetch_or_relaxed(&f->rt->workers[i].next.thieves, WEFT__SLOT_FOR_GOOD);
    (void)weft_notify_waiters(&gong);
    weft_end;
}

static bool all_wait(void)
{
    return load_relaxed(&waiting) == LONG_RING;
}

static void one_spins_behind_the_gong(struct crew *crew)
{
    weft_task *tasks[LONG_RING];
    weft_notify_init(&gong);
    store_relaxed(&ran, 0);
    store_relaxed(&gonged, 0);
    store_relaxed(&waiting, 0);
    for (uint32_t i = 0; i < LONG_RING; i++) tasks[i] = weft_spawn(waits_for_gong);
    CREW_UNTIL(all_wait());
    weft__fault_arm(WEFT__FAULT_MEMBARRIER, 1, UINT32_MAX, -EPERM);
    ASSERT_OK(weft_join(weft_spawn(gongs, .rt = crew->rt), NULL));
    for (uint32_t i = 0; i < LONG_RING; i++) ASSERT_OK(weft_join(tasks[i], NULL));
    weft__fault_reset();
}

TEST(hand_is_not_dealt_without_a_membarrier)
{
    crew_each_of(one_spins_behind_the_gong, 2, 4);
}
#endif

/* ---- beside joins, and tasks that wake each other ---- */

static int nothing(void)
{
    return 0;
}

static int joins_a_child(void)
{
    return weft_join(weft_go(nothing), NULL);
}

/* The first is a fiber that waits for a child: its worker takes the newest of the ring for a while. */
static int spawns_a_diver(uint32_t others)
{
    weft_task *tasks[1 + LONG_RING];
    tasks[0] = weft_go(joins_a_child);
    for (uint32_t i = 1; i <= others; i++) tasks[i] = weft_spawn(one_of_many);
    return wait_for_all(tasks, 1 + others);
}

static void divers(struct crew *crew)
{
    int got;
    (void)crew;
    for (uint32_t others = WEFT__HAND_LEAST - 4; others < 2 * WEFT__HAND_LEAST; others++) {
        ASSERT_OK(weft_join(weft_go(spawns_a_diver, others), &got));
        ASSERT_EQ(got, 0);
    }
}

TEST(hand_beside_a_fiber_that_joins)
{
    crew_each_of(divers, 1, 2);
}

static weft_notify there;
static weft_notify back;
static weft_task *ring_tasks[LONG_RING];
static _Atomic bool all_spawned;

struct answers {
    WEFT_FRAME(int);
    struct weft_notify_wait wait;
};
static weft_async(answers)
{
    weft_begin;
    while (load_relaxed(&ran) < LONG_RING) {
        weft_await(f->wait, weft_notify_wait, &there);
        weft_notify_one(&back);
    }
    weft_end;
}

/* It runs all that is in the ring itself, by joining it; what is left lies in the hand. Then it and another wake each other until those have run.
 * A thief may begin it while the others are still being spawned: their handles are those of the round before until then. */
struct asks {
    WEFT_FRAME(int);
    uint32_t i;
    weft_task *other;
    struct weft_join join;
    struct weft_notify_wait wait;
};
static weft_async(asks)
{
    weft_begin;
    CREW_UNTIL(load_acquire(&all_spawned)); /* [all-spawned] with the spawner: the handles */
    for (f->i = WEFT__SLOT_MOST; f->i < LONG_RING; f->i++) weft_await(f->join, weft_join, ring_tasks[f->i], NULL);
    f->other = weft_spawn(answers);
    while (load_relaxed(&ran) < LONG_RING - 1) {
        weft_notify_one(&there);
        weft_await(f->wait, weft_notify_wait, &back);
    }
    fetch_add_release(&ran, 1);
    weft_notify_one(&there);
    weft_await(f->join, weft_join, f->other, NULL);
    weft_end;
}

static int spawns_two_who_talk(void)
{
    weft_notify_init(&there);
    weft_notify_init(&back);
    store_relaxed(&ran, 0);
    store_relaxed(&all_spawned, false); /* relaxed: the spawn publishes it */
    weft_task *first = weft_spawn(asks);
    for (uint32_t i = 1; i < LONG_RING; i++) ring_tasks[i] = weft_spawn(one_of_many);
    store_release(&all_spawned, true); /* [all-spawned] with asks */
    int r = weft_wait(first); /* a join would have the newest run first */
    (void)weft_detach(first);
    for (uint32_t i = 1; i < WEFT__SLOT_MOST; i++) {
        int one = weft_join(ring_tasks[i], NULL);
        if (r == 0) r = one;
    }
    return r;
}

static void two_who_talk(struct crew *crew)
{
    int got;
    (void)crew;
    for (int i = 0; i < 20; i++) {
        ASSERT_OK(weft_join(weft_go(spawns_two_who_talk), &got));
        ASSERT_EQ(got, 0);
    }
}

TEST(hand_beside_two_who_wake_each_other)
{
    crew_each_of(two_who_talk, 1, 2);
}

/* ---- a handle that was lent, and given back ---- */

static weft_task *_Atomic lent;
static _Atomic bool over;

static void *borrows(void *arg)
{
    while (!load_relaxed(&over)) {
        weft_task *task = load_acquire(&lent); /* [lent] with the lender */
        if (!task) {
            sched_yield();
            continue;
        }
        if (!weft_task_name(task)) abort();
        weft_unref(task);
        store_relaxed(&lent, NULL); /* relaxed: the reference was the last that it did */
    }
    return arg;
}

/* What the borrower did with the task comes before its memory is another's: a detach without a read-modify-write carries that on. */
struct lends {
    WEFT_FRAME(int);
    uint32_t i;
    struct weft_yield yield;
};
static weft_async(lends)
{
    weft_begin;
    for (f->i = 0; f->i < 1000; f->i++) {
        weft_task *task = weft_spawn(one_of_many);
        store_release(&lent, weft_ref(task)); /* [lent] with the borrower */
        CREW_UNTIL(!load_relaxed(&lent));
        (void)weft_detach(task);
        weft_await(f->yield, weft_yield);
    }
    weft_end;
}

static void lending(struct crew *crew)
{
    pthread_t thread;
    (void)crew;
    store_relaxed(&over, false);
    ASSERT_OK(pthread_create(&thread, NULL, borrows, NULL));
    ASSERT_OK(weft_join(weft_spawn(lends), NULL));
    store_relaxed(&over, true);
    ASSERT_OK(pthread_join(thread, NULL));
}

TEST(hand_detach_of_a_newborn_that_was_lent)
{
    crew_each_of(lending, 1, 2);
}
