/* SPDX-License-Identifier: MIT
 *
 * Pinned tasks: whoever wakes them, and whatever thieves are about, they run on one thread; and that one is woken for them. Local
 * sets and pin blocks: home_local.c.
 */
#include "street.h"
#include "tasks.h"
#include "test.h"

#include <errno.h>
#include <weft/local.h>

static _Atomic uint32_t rounds;

static void clear(void)
{
    street_clear();
    store_relaxed(&rounds, 0);
}

/* On which thread it runs. */
static pid_t tells_thread(void)
{
    return thread_now();
}

/* ---- pinned -------------------------------------------------------------------------------------------- */

static uint64_t stay_rounds(void)
{
    return test_scaled(16);
}

/* Woken from outside and by itself, in turn. home 0: wherever it is first. */
static int stays(pid_t home, struct bell *bell)
{
    if (home == 0) home = thread_now();
    for (uint64_t i = 0; i < stay_rounds(); i++) {
        note_unless_on(home);
        int r = i % 2 ? weft_yield() : weft_run(hear, .bell = bell);
        if (r < 0) return r;
    }
    note_unless_on(home);
    return 0;
}

struct stays_too {
    WEFT_FRAME(int);
    pid_t home;
    struct bell *bell;
    uint64_t left;
    struct weft_yield pause;
    struct hear wait;
};
static weft_async(stays_too)
{
    weft_begin;
    if (f->home == 0) f->home = thread_now();
    for (f->left = stay_rounds(); f->left > 0; f->left--) {
        note_unless_on(f->home);
        weft_await(f->pause, weft_yield);
        note_unless_on(f->home);
        weft_await(f->wait, hear, .bell = f->bell);
        if (f->wait.ret < 0) weft_return(f->wait.ret);
    }
    weft_return(0);
    weft_end;
}

static void pinned_from_outside(struct crew *crew)
{
    struct street s;
    weft_task *task[BELLS];
    (void)crew;
    street_opens(&s);
    for (int i = 0; i < BELLS; i++) {
        task[i] = i % 2 ? weft_go_as((.pinned = true), stays, 0, &bells[i])
                        : weft_spawn_as((.pinned = true), stays_too, .bell = &bells[i]);
    }
    join_all(task, BELLS);
    street_closes(&s);
    ASSERT_EQ(load_relaxed(&strays), 0);
}

TEST(home_pinned_task_stays_on_one_thread)
{
    crew_each(pinned_from_outside);
}

/* The thread is looked at right before the spawn, and nothing is awaited between. */
static int pins_children(void)
{
    weft_task *task[BELLS];
    for (int i = 0; i < BELLS; i++) {
        task[i] = i % 2 ? weft_go_as((.pinned = true), stays, thread_now(), &bells[i])
                        : weft_spawn_as((.pinned = true), stays_too, thread_now(), &bells[i]);
        (void)weft_yield();
    }
    for (int i = 0; i < BELLS; i++)
        if (weft_join(task[i], (int *)NULL) < 0) return -1;
    return 0;
}

static void pinned_by_a_task(struct crew *crew)
{
    struct street s;
    int got = -1;
    (void)crew;
    street_opens(&s);
    ASSERT_OK(weft_join(weft_go(pins_children), &got));
    ASSERT_EQ(got, 0);
    street_closes(&s);
    ASSERT_EQ(load_relaxed(&strays), 0);
}

TEST(home_pinned_by_a_task_is_where_it_was_spawned)
{
    crew_each(pinned_by_a_task);
}

/* A backlog on one worker, worth stealing, while the others have nothing at all. */
static int yields_at_home(const weft_local *home)
{
    for (uint64_t i = 0; i < test_scaled(1000); i++) {
        if (!weft_local_is_here(home)) fetch_add_relaxed(&strays, 1);
        for (int spin = 0; spin < 100; spin++)
            cpu_pause();
        if (weft_yield() < 0) break;
    }
    return 0;
}

static void beside_idle_thieves(struct crew *crew)
{
    weft_local home = weft_local_at(crew->rt, 0);
    weft_task *task[BELLS];
    clear();
    for (int i = 0; i < BELLS; i++)
        task[i] = weft_go_as((.local = &home), yields_at_home, &home);
    join_all(task, BELLS);
    ASSERT_EQ(load_relaxed(&strays), 0);
}

TEST(home_idle_thieves_get_nothing)
{
    crew_each(beside_idle_thieves);
}

static void in_turn(struct crew *crew)
{
    int count = crew->workers > 0 ? crew->workers : 1;
    weft_task *task[8] = {NULL};
    pid_t at[8] = {0};
    for (int i = 0; i < 2 * count; i++)
        task[i] = weft_go_as((.pinned = true), tells_thread);
    for (int i = 0; i < 2 * count; i++)
        ASSERT_OK(weft_join(task[i], &at[i]));
    for (int i = 0; i < count; i++) {
        ASSERT_EQ(at[i], at[count + i]);
        for (int j = 0; j < i; j++)
            ASSERT_NE(at[i], at[j]);
    }
}

TEST(home_from_outside_each_worker_in_turn)
{
    crew_each(in_turn);
}

/* ---- sleeping homes ---------------------------------------------------------------------------------------- */

/* All workers sleep between two rings, or are about to: each must reach the one that it is for. */
static void woken_asleep(struct crew *crew)
{
    int count = crew->workers > 0 ? crew->workers : 1;
    weft_task *task[4] = {NULL};
    clear();
    for (int i = 0; i < count; i++) {
        bell_init(&bells[i]);
        task[i] = weft_go_as((.pinned = true), counts_rings, &bells[i], &rounds);
    }
    for (uint32_t i = 0; i < test_scaled(400); i++) {
        uint32_t before = load_relaxed(&rounds);
        bell_ring(&bells[i % (uint32_t)count]);
        CREW_UNTIL(load_relaxed(&rounds) != before);
    }
    store_relaxed(&over, true);
    for (int i = 0; i < count; i++)
        bell_ring(&bells[i]);
    join_all(task, count);
}

TEST(home_sleeping_worker_is_woken_for_its_own)
{
    crew_each(woken_asleep);
}

/* A chain through all workers: each wakes the next, which has nothing else to do and falls asleep. */
static int passes_on(int self, int count)
{
    while (weft_run(hear, .bell = &bells[self]) == 0) {
        bool last = fetch_add_relaxed(&rounds, 1) >= (uint32_t)test_scaled(5000);
        bell_ring(&bells[(self + 1) % count]);
        if (last) return 0;
    }
    return -1;
}

static void woken_by_each_other(struct crew *crew)
{
    int count = crew->workers > 0 ? 2 * crew->workers : 2;
    weft_task *task[8] = {NULL};
    (void)crew;
    clear();
    for (int i = 0; i < count; i++) {
        bell_init(&bells[i]);
        task[i] = weft_go_as((.pinned = true), passes_on, i, count);
    }
    bell_ring(&bells[0]);
    join_all(task, count);
}

TEST(home_pinned_tasks_wake_each_other)
{
    crew_each(woken_by_each_other);
}

/* ---- fair both ways ------------------------------------------------------------------------------------------ */

/* Those of the ring, those of the inbox and those from outside: all of them get on. */
static void both_ways(struct crew *crew)
{
    enum { COUNT = 32 };
    weft_task *task[COUNT];
    _Atomic uint32_t each[COUNT] = {0};
    (void)crew;
    clear();
    for (int i = 0; i < COUNT; i++)
        task[i] = weft_go_as((.pinned = i % 4 == 0), yields, &each[i]);
    for (int i = 0; i < COUNT; i++)
        CREW_UNTIL(load_relaxed(&each[i]) > 200);
    for (int i = 0; i < 20; i++) {
        int got;
        ASSERT_OK(weft_join(weft_go(answers, 1), &got));
        ASSERT_OK(weft_join(weft_go_as((.pinned = true), answers, 1), &got));
    }
    store_relaxed(&over, true);
    join_all(task, COUNT);
}

TEST(home_pinned_and_others_starve_nobody)
{
    crew_each(both_ways);
}

/* ---- what contradicts itself --------------------------------------------------------------------------------- */

static void contradictions(struct crew *crew)
{
    weft_local nowhere = weft_local_here(); /* a plain thread */
    weft_local home = weft_local_at(NULL, 0);
    weft_rt *other;
    ASSERT_NULL(nowhere.rt);
    ASSERT_NULL(weft_go_as((.local = &nowhere), answers, 1));
    ASSERT_NULL(weft_go_as((.pinned = true, .background = true), answers, 1));
    ASSERT_NULL(weft_go_as((.local = &home, .background = true), answers, 1));
    ASSERT_NULL(weft_local_at(crew->rt, 1000).rt);
    ASSERT(!weft_local_is_here(&home));
    ASSERT(!weft_local_is_here(NULL));
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1}, &other));
    ASSERT_NULL(weft_go_as((.rt = other, .local = &home), answers, 1));
    ASSERT_OK(weft_rt_stop(other, -1));
}

TEST(home_contradicting_options_are_refused)
{
    crew_each(contradictions);
}

/* ---- stop --------------------------------------------------------------------------------------------------------- */

static _Atomic uint32_t ended;

static int waits_then_counts(struct bell *bell)
{
    int r = weft_run(hear, .bell = bell);
    fetch_add_relaxed(&ended, 1);
    return r;
}

static int yields_then_counts(void)
{
    while (weft_yield() == 0) {
    }
    fetch_add_relaxed(&ended, 1);
    return 0;
}

static void stop_with_all_kinds(int workers)
{
    struct crew crew;
    struct bell unrung[BELLS];
    pthread_t ringer;
    crew_start(&crew, workers);
    clear();
    store_relaxed(&ended, 0);
    weft_local home = weft_local_at(crew.rt, 0);
    for (int i = 0; i < BELLS; i++) {
        bell_init(&unrung[i]);
        bell_init(&bells[i]);
        ASSERT_OK(weft_detach(weft_go_as((.pinned = true), waits_then_counts, &unrung[i])));
        ASSERT_OK(weft_detach(weft_go_as((.pinned = true), yields_then_counts)));
        ASSERT_OK(weft_detach(weft_go_as((.background = true), yields_then_counts)));
        ASSERT_OK(weft_detach(weft_go_as((.local = &home), waits_then_counts, &bells[i])));
    }
    ASSERT_OK(pthread_create(&ringer, NULL, rings_in_turn, NULL)); /* wakes of theirs, meanwhile */
    crew_stop(&crew);
    ASSERT_EQ(load_relaxed(&ended), 4 * BELLS);
    store_relaxed(&over, true);
    ASSERT_OK(pthread_join(ringer, NULL));
}

TEST(home_stop_ends_them_all)
{
    for (size_t i = 0; i < CREW_SIZES; i++)
        for (unsigned n = 0; n < test_scaled(10); n++)
            stop_with_all_kinds(crew_sizes[i]);
}
