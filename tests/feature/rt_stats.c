/* SPDX-License-Identifier: MIT
 *
 * Statistics: each worker counts what it does itself, and the whole is the sum of them.
 */
#include "crew.h"
#include "sched/sched.h"
#include "tasks.h"
#include "test.h"

#include <string.h>
#include <weft/local.h>

/* ---- the whole -------------------------------------------------------------------------------------------------- */

static unsigned workers_of(const struct crew *crew)
{
    return crew->workers < 0 ? 1 : weft_rt_workers(crew->rt);
}

static weft_stats stats_of(const struct crew *crew)
{
    weft_stats s;
    weft_rt_stats(crew->rt, &s);
    return s;
}

static weft_stats stats_of_worker(const struct crew *crew, unsigned worker)
{
    weft_stats s;
    ASSERT_OK(weft_rt_worker_stats(crew->rt, worker, &s));
    return s;
}

static weft_stats sum_of_workers(const struct crew *crew)
{
    weft_stats sum = {0};
    for (unsigned i = 0; i < workers_of(crew); i++) {
        weft_stats one = stats_of_worker(crew, i);
        sum.spawned += one.spawned;
        sum.completed += one.completed;
        sum.polls += one.polls;
        sum.steals += one.steals;
        sum.stolen += one.stolen;
        sum.parks += one.parks;
        sum.wakes += one.wakes;
        sum.spills += one.spills;
        sum.inlined += one.inlined;
        sum.spurious += one.spurious;
        sum.rescued += one.rescued;
    }
    return sum;
}

/* More than the ring holds, so some of them spill. */
static int crowds(int count)
{
    weft_task *kid[1000];
    ASSERT_LE(count, 1000);
    for (int i = 0; i < count; i++)
        kid[i] = weft_go(answers, i);
    for (int i = 0; i < count; i++)
        ASSERT_OK(weft_join(kid[i], (int *)NULL));
    return count;
}

static _Atomic bool taken_away;

static void notes_it(void)
{
    store_release(&taken_away, true);
}

/* It holds its worker until one of its children has run: so somebody has stolen that one. */
static int keeps_its_worker(void)
{
    weft_task *kid[8];
    store_relaxed(&taken_away, false);
    for (int i = 0; i < 8; i++)
        kid[i] = weft_go(notes_it);
    CREW_UNTIL(load_acquire(&taken_away));
    for (int i = 0; i < 8; i++)
        ASSERT_OK(weft_join(kid[i], NULL));
    return 1;
}

/* Of each kind there was some. */
static void expect_all_kinds(const struct crew *crew, const weft_stats *s)
{
    ASSERT_GE(s->polls, 1000);
    if (crew->workers < 2) { /* else thieves may have been faster */
        ASSERT_GE(s->spills, 1);
        ASSERT_GE(s->inlined, 1);
    }
    if (crew->workers < 0) return;
    ASSERT_GE(s->parks, 1);
    ASSERT_GE(s->spurious, 1);
    if (crew->workers == 1) return;
    ASSERT_GE(s->steals, 1);
    ASSERT_GE(s->stolen, s->steals);
}

/* Counts only grow: where the whole is the same before and behind, it was the same all the while. */
static void expect_that_they_add_up(const struct crew *crew)
{
    weft_stats whole;
    weft_stats again;
    weft_stats sum;
    do {
        whole = stats_of(crew);
        sum = sum_of_workers(crew);
        again = stats_of(crew);
    } while (memcmp(&whole, &again, sizeof(whole)) != 0);
    ASSERT_EQ(sum.polls, whole.polls);
    ASSERT_EQ(sum.steals, whole.steals);
    ASSERT_EQ(sum.stolen, whole.stolen);
    ASSERT_EQ(sum.parks, whole.parks);
    ASSERT_EQ(sum.wakes, whole.wakes);
    ASSERT_EQ(sum.spills, whole.spills);
    ASSERT_EQ(sum.inlined, whole.inlined);
    ASSERT_EQ(sum.spurious, whole.spurious);
    ASSERT_EQ(sum.rescued, whole.rescued);
    ASSERT_EQ(sum.completed, whole.completed);
    expect_all_kinds(crew, &whole);
}

/* Each sleeper once, so each has its share. */
static void wake_for_nothing(const struct crew *crew)
{
    for (unsigned i = 0; crew->workers > 0 && i < workers_of(crew); i++) {
        uint64_t before = stats_of_worker(crew, i).spurious;
        do {
            weft__unpark(&crew->rt->workers[i].park);
            sched_yield();
        } while (stats_of_worker(crew, i).spurious == before);
    }
}

static void all_kinds_add_up(struct crew *crew)
{
    int got;
    ASSERT_OK(weft_join(weft_spawn(forks, 7), &got));
    ASSERT_OK(weft_join(weft_go(crowds, 1000), &got));
    if (crew->workers > 1) ASSERT_OK(weft_join(weft_go(keeps_its_worker), &got));
    wake_for_nothing(crew);
    expect_that_they_add_up(crew);
}

TEST(rt_stats_of_the_workers_are_those_of_the_whole)
{
    crew_each(all_kinds_add_up);
}

/* ---- whose they are ----------------------------------------------------------------------------------------------- */

enum { ROUNDS = 500, KIDS = 20 };

static int yields_often(void)
{
    for (int i = 0; i < ROUNDS; i++)
        ASSERT_OK(weft_yield());
    return 0;
}

/* Where its children run is their own affair; it has spawned them. */
static int spawns_free_ones(void)
{
    weft_task *kid[KIDS];
    for (int i = 0; i < KIDS; i++)
        kid[i] = weft_go(answers, i);
    for (int i = 0; i < KIDS; i++)
        ASSERT_OK(weft_join(kid[i], (int *)NULL));
    return 0;
}

/* The counts of worker `own` grow, and those of the others stay where they are. */
static void is_counted_there(struct crew *crew, unsigned own)
{
    weft_local there = weft_local_at(crew->rt, own);
    weft_stats before[4] = {{0}};
    for (unsigned i = 0; i < workers_of(crew); i++)
        before[i] = stats_of_worker(crew, i);
    ASSERT_OK(weft_join(weft_go_as((.local = &there), yields_often), (int *)NULL));
    for (unsigned i = 0; i < workers_of(crew); i++) {
        weft_stats now = stats_of_worker(crew, i);
        ASSERT_EQ(now.completed - before[i].completed, i == own);
        ASSERT_EQ(now.spawned, before[i].spawned); /* it was spawned from outside */
        if (i == own) ASSERT_GE(now.polls - before[i].polls, ROUNDS);
        if (i != own) ASSERT_EQ(now.polls, before[i].polls);
    }
    ASSERT_OK(weft_join(weft_go_as((.local = &there), spawns_free_ones), (int *)NULL));
    for (unsigned i = 0; i < workers_of(crew); i++)
        ASSERT_EQ(stats_of_worker(crew, i).spawned - before[i].spawned, i == own ? KIDS : 0);
}

static void each_has_its_own(struct crew *crew)
{
    for (unsigned i = 0; i < workers_of(crew); i++)
        is_counted_there(crew, i);
}

TEST(rt_stats_of_a_worker_are_its_own)
{
    crew_each(each_has_its_own);
}
