/* SPDX-License-Identifier: MIT
 *
 * A poll that does not end keeps nothing from running but itself: what it spawned, woke or had
 * behind it is taken by others. On 2 and 4 workers: with one there is nobody to help.
 */
#include "base/fault.h"
#include "crew.h"
#include "sched/sched.h"
#include "test.h"

#include <errno.h>
#include <unistd.h>

static _Atomic uint32_t ran;

/* The poll goes on until `count` others have run: it is stuck until somebody helps. */
static void spin_until_ran(uint32_t count)
{
    CREW_UNTIL(load_acquire(&ran) >= count);
}

static int runs(void)
{
    fetch_add_release(&ran, 1);
    return 1;
}

struct runs_too {
    WEFT_FRAME(int);
};
static weft_async(runs_too)
{
    weft_begin;
    fetch_add_release(&ran, 1);
    weft_return(1);
    weft_end;
}

/* ---- spawned, and alone ------------------------------------------------------------------------------- */

static weft_task *spawn_one(bool fiber)
{
    return fiber ? weft_go(runs) : weft_spawn(runs_too);
}

static int spins_for_its_child(bool fiber)
{
    int got = 0;
    store_relaxed(&ran, 0);
    weft_task *child = spawn_one(fiber);
    spin_until_ran(1);
    int r = weft_join(child, &got);
    return r < 0 ? r : got;
}

struct spins_for_its_child_too {
    WEFT_FRAME(int);
    bool fiber;
    int got;
    weft_task *child;
    struct weft_join join;
};
static weft_async(spins_for_its_child_too)
{
    weft_begin;
    store_relaxed(&ran, 0);
    f->child = spawn_one(f->fiber);
    spin_until_ran(1);
    weft_await(f->join, weft_join, f->child, &f->got);
    weft_return(f->join.ret < 0 ? f->join.ret : f->got);
    weft_end;
}

static void lone_children(struct crew *crew)
{
    int got;
    (void)crew;
    for (int fiber = 0; fiber < 2; fiber++) {
        ASSERT_OK(weft_join(weft_go(spins_for_its_child, fiber), &got));
        ASSERT_EQ(got, 1);
        ASSERT_OK(weft_join(weft_spawn(spins_for_its_child_too, .fiber = fiber), &got));
        ASSERT_EQ(got, 1);
    }
}

TEST(monitor_a_lone_child_runs_while_its_parent_spins)
{
    crew_each_of(lone_children, 2, 4);
}

#if defined(WEFT_FAULTS)
/* Without a membarrier: from the start, thieves and owner share `next` by read-modify-writes. */
TEST(monitor_a_lone_child_runs_without_a_membarrier)
{
    weft__fault_arm(WEFT__FAULT_MEMBARRIER, 1, UINT32_MAX, -ENOSYS);
    crew_each_of(lone_children, 2, 4);
    weft__fault_reset();
}

static int spawns_two(void)
{
    weft_task *a = spawn_one(true);
    weft_task *b = spawn_one(false); /* finds the slot full, and what a thief has left there */
    int ra = weft_join(a, NULL);
    int rb = weft_join(b, NULL);
    return ra < 0 ? ra : rb;
}

/* It is taken away while the runtime runs: what lies behind the poll that is stuck then stays there until its end, all that
 * comes later is taken as ever. Each worker has to learn it for itself. */
static void taken_away(struct crew *crew)
{
    int got;
    weft__fault_arm(WEFT__FAULT_MEMBARRIER, 1, UINT32_MAX, -EPERM);
    for (uint32_t i = 0; i < crew->rt->worker_count; i++) {
        struct weft__slot *slot = &crew->rt->workers[i].next;
        struct weft_task *nothing[WEFT__SLOT_MOST];
        ASSERT_EQ(weft__slot_steal(slot, nothing), 0); /* whatever is there: a thief comes, and leaves a word */
        (void)fetch_or_relaxed(&slot->thieves, WEFT__SLOT_FOR_GOOD);
    }
    for (int i = 0; i < 100; i++) {
        ASSERT_OK(weft_join(weft_go(spawns_two), &got));
        ASSERT_EQ(got, 0);
    }
    weft__fault_reset();
}

TEST(monitor_the_membarrier_is_taken_away)
{
    crew_each_of(taken_away, 2, 4);
}
#endif

/* ---- woken, and alone ----------------------------------------------------------------------------------- */

static weft_waker waiter_waker; /* written before waiter_waits */
static _Atomic bool waiter_waits;
static _Atomic bool waiter_woken;

/* Waits until it is told by hand. */
struct waiter {
    WEFT_FRAME(int);
};
static weft_poll waiter_poll(void *frame, weft_cx *cx)
{
    struct waiter *f = frame;
    if (!f->weft__at) {
        f->weft__at = 1;
        waiter_waker = weft_waker_ref(weft_cx_waker(cx));
        store_release(&waiter_waits, true);
    }
    if (!load_acquire(&waiter_woken)) return WEFT_PENDING;
    weft_waker_unref(waiter_waker);
    f->ret = runs();
    return WEFT_READY;
}

static int waits_in_a_fiber(void)
{
    int got = 0;
    int r = weft_join(weft_spawn(waiter), &got);
    return r < 0 ? r : got;
}

static int spins_for_the_woken(void)
{
    store_release(&waiter_woken, true);
    weft_waker_wake(waiter_waker);
    spin_until_ran(1);
    return 1;
}

static void lone_woken(struct crew *crew)
{
    int got;
    (void)crew;
    for (int fiber = 0; fiber < 2; fiber++) {
        store_relaxed(&ran, 0);
        store_relaxed(&waiter_waits, false);
        store_relaxed(&waiter_woken, false);
        weft_task *waits = fiber ? weft_go(waits_in_a_fiber) : weft_spawn(waiter);
        CREW_UNTIL(load_acquire(&waiter_waits));
        ASSERT_OK(weft_join(weft_go(spins_for_the_woken), &got));
        ASSERT_OK(weft_join(waits, &got));
        ASSERT_EQ(got, 1);
    }
}

TEST(monitor_a_lone_woken_task_runs_while_its_waker_spins)
{
    crew_each_of(lone_woken, 2, 4);
}

/* ---- blocked in the kernel --------------------------------------------------------------------------------- */

static int writes_to(int fd)
{
    return (int)write(fd, "x", 1);
}

static int reads_what_its_child_writes(const int *ends)
{
    char byte = 0;
    int got = 0;
    weft_task *child = weft_go(writes_to, ends[1]);
    if (read(ends[0], &byte, 1) != 1) return -EIO; /* the thread blocks */
    int r = weft_join(child, &got);
    return r < 0 ? r : got;
}

static void blocked_reader(struct crew *crew)
{
    int ends[2];
    int got;
    (void)crew;
    ASSERT_OK(pipe(ends));
    ASSERT_OK(weft_join(weft_go(reads_what_its_child_writes, ends), &got));
    ASSERT_EQ(got, 1);
    close(ends[0]);
    close(ends[1]);
}

TEST(monitor_a_lone_child_runs_while_its_parent_blocks)
{
    crew_each_of(blocked_reader, 2, 4);
}

/* ---- many ---------------------------------------------------------------------------------------------------- */

/* A slot, a full ring and overflow arrays, and then nothing: it never comes back to offer them. */
static int spins_for_many(uint32_t count)
{
    store_relaxed(&ran, 0);
    for (uint32_t i = 0; i < count; i++) {
        int r = weft_detach(weft_spawn(runs_too));
        if (r < 0) return r;
    }
    spin_until_ran(count);
    return 1;
}

static void everything_behind(struct crew *crew)
{
    static const uint32_t counts[] = {2, 3, 10, 300, 2000};
    int got;
    (void)crew;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        ASSERT_OK(weft_join(weft_go(spins_for_many, counts[i]), &got));
        ASSERT_EQ(got, 1);
    }
}

TEST(monitor_all_that_is_behind_a_stuck_poll_runs)
{
    crew_each_of(everything_behind, 2, 4);
}

/* One after the other, each behind the same poll that does not end: the leave stands. */
static int spins_for_each(uint32_t count)
{
    store_relaxed(&ran, 0);
    for (uint32_t i = 0; i < count; i++) {
        int r = weft_detach(weft_spawn(runs_too));
        if (r < 0) return r;
        spin_until_ran(i + 1);
    }
    return 1;
}

static void one_by_one(struct crew *crew)
{
    weft_stats stats;
    int got;
    ASSERT_OK(weft_join(weft_go(spins_for_each, 5), &got));
    ASSERT_EQ(got, 1);
    weft_rt_stats(crew->rt, &stats);
    ASSERT_GE(stats.rescued, 5);
    ASSERT_GE(stats.stolen, stats.rescued);
}

TEST(monitor_helps_again_and_again)
{
    crew_each_of(one_by_one, 2, 4);
}

/* ---- workers that are shunned ----------------------------------------------------------------------------------- */

/* Nobody would steal from it for ever. */
static void be_shunned(weft_rt *rt, unsigned worker)
{
    store_relaxed(&rt->workers[worker].shun.until, INT64_MAX);
}

TEST(monitor_leave_goes_before_shunning)
{
    struct crew crew;
    weft_rt_opts o = {.workers = 2, .on_thread_start = be_shunned};
    int got;
    crew_start_with(&crew, &o);
    for (uint32_t i = 1; i < 6; i++) {
        ASSERT_OK(weft_join(weft_go(spins_for_many, i), &got));
        ASSERT_EQ(got, 1);
    }
    crew_stop(&crew);
}

/* ---- all stuck but one -------------------------------------------------------------------------------------------- */

static _Atomic uint32_t stuck;
static _Atomic bool let_go;

static int spins_until_let_go(void)
{
    fetch_add_relaxed(&stuck, 1);
    CREW_UNTIL(load_relaxed(&let_go));
    return 0;
}

/* The one that is left serves what comes from outside, and what that spawns. */
static void inject_is_served(struct crew *crew)
{
    uint32_t hogs = (uint32_t)crew->workers - 1;
    weft_task *hog[4];
    int got;
    store_relaxed(&stuck, 0);
    store_relaxed(&let_go, false);
    for (uint32_t i = 0; i < hogs; i++)
        hog[i] = weft_go(spins_until_let_go);
    CREW_UNTIL(load_relaxed(&stuck) == hogs);
    for (uint64_t i = 0; i < test_scaled(200); i++) {
        ASSERT_OK(weft_join(i % 2 ? weft_go(runs) : weft_spawn(runs_too), &got));
        ASSERT_EQ(got, 1);
    }
    store_relaxed(&let_go, true);
    for (uint32_t i = 0; i < hogs; i++)
        ASSERT_OK(weft_join(hog[i], &got));
}

TEST(monitor_the_last_free_worker_serves_the_inject_queue)
{
    crew_each_of(inject_is_served, 2, 4);
}

/* ---- what lies in no worker's queues ------------------------------------------------------------------------------ */

/* In a poll: everybody else sleeps, and nobody wakes them but the monitor. */
static void until_others_sleep(struct weft_rt *rt)
{
    CREW_UNTIL(weft__idle_sleeping(&rt->idle) == rt->worker_count - 1);
}

static int spins_until_it_ran(void)
{
    spin_until_ran(1);
    return 1;
}

/* Its worker next polls what does not end before it has gone on. It went back to the background queue, and told nobody:
 * that worker was awake. */
struct gives_way {
    WEFT_FRAME(int);
    weft_rt *rt;
    weft_task *hog;
    struct weft_yield pause;
    struct weft_join join;
    int got;
};
static weft_async(gives_way)
{
    weft_begin;
    until_others_sleep(f->rt);
    f->hog = weft_go(spins_until_it_ran);
    weft_await(f->pause, weft_yield);
    fetch_add_release(&ran, 1);
    weft_await(f->join, weft_join, f->hog, &f->got);
    weft_return(f->join.ret < 0 ? f->join.ret : f->got);
    weft_end;
}

static void background_behind(struct crew *crew)
{
    int got;
    store_relaxed(&ran, 0);
    ASSERT_OK(weft_join(weft_spawn_as((.background = true), gives_way, .rt = crew->rt), &got));
    ASSERT_EQ(got, 1);
}

TEST(monitor_the_background_queue_is_served_beside_a_stuck_poll)
{
    crew_each_of(background_behind, 2, 4);
}

/* As a worker whose ring is full and who has no memory for an array: to the inject queue, and nobody is told. */
static int injects_and_spins(weft_rt *rt, weft_task *waits)
{
    until_others_sleep(rt);
    store_release(&waiter_woken, true);
    if (weft__state_claim(waits) != WEFT__STATE_ENQUEUE) return -1;
    weft__inject_push(&rt->inject, waits);
    spin_until_ran(1);
    return 1;
}

static void inject_behind(struct crew *crew)
{
    int got;
    store_relaxed(&ran, 0);
    store_relaxed(&waiter_waits, false);
    store_relaxed(&waiter_woken, false);
    weft_task *waits = weft_spawn(waiter);
    CREW_UNTIL(load_acquire(&waiter_waits));
    ASSERT_OK(weft_join(weft_go(injects_and_spins, crew->rt, waits), &got));
    ASSERT_EQ(got, 1);
    ASSERT_OK(weft_join(waits, &got));
    ASSERT_EQ(got, 1);
}

TEST(monitor_the_inject_queue_is_served_beside_a_stuck_poll)
{
    crew_each_of(inject_behind, 2, 4);
}

/* ---- inlined children are seen ----------------------------------------------------------------------------------- */

static uint64_t polls_now(void)
{
    weft_stats stats;
    weft_rt_stats(weft_rt_current(), &stats);
    return stats.polls;
}

struct counts_polls {
    WEFT_FRAME(uint64_t);
};
static weft_async(counts_polls)
{
    weft_begin;
    weft_return(polls_now());
    weft_end;
}

/* One poll of the parent, three of its children, inside of it: each of them is counted when it ends. */
struct joins_three {
    WEFT_FRAME(bool);
    uint64_t polls[3];
    int at;
    struct weft_join join;
};
static weft_async(joins_three)
{
    weft_begin;
    for (f->at = 0; f->at < 3; f->at++) {
        weft_await(f->join, weft_join, weft_spawn(counts_polls), &f->polls[f->at]);
        if (f->join.ret < 0) weft_return(false);
    }
    weft_return(f->polls[0] < f->polls[1] && f->polls[1] < f->polls[2]);
    weft_end;
}

static void inlined(struct crew *crew)
{
    weft_stats stats;
    bool counted = false;
    ASSERT_OK(weft_join(weft_spawn(joins_three), &counted));
    ASSERT(counted);
    weft_rt_stats(crew->rt, &stats);
    ASSERT_EQ(stats.inlined, 3);
}

/* Where nobody steals: a child that is rescued is not inlined. */
TEST(monitor_inlined_children_count_as_polls)
{
    static const int alone[] = {1, -1};
    for (size_t i = 0; i < 2; i++) {
        struct crew crew;
        crew_start(&crew, alone[i]);
        inlined(&crew);
        crew_stop(&crew);
    }
}

/* ---- it sleeps, wakes, is not there ------------------------------------------------------------------------------- */

/* All sleep, then the monitor does; a task from outside ends that, and is watched. */
TEST(monitor_sleeps_with_all_workers_and_wakes_with_one)
{
    struct crew crew;
    int got;
    crew_start_with(&crew, &(weft_rt_opts){.workers = 2, .monitor_us = 100});
    for (int i = 0; i < 3; i++) {
        CREW_UNTIL(load_relaxed(&crew.rt->monitor.watch.asleep));
        ASSERT_OK(weft_join(weft_go(spins_for_its_child, true), &got));
        ASSERT_EQ(got, 1);
    }
    CREW_UNTIL(load_relaxed(&crew.rt->monitor.watch.asleep)); /* it is stopped in its sleep too */
    crew_stop(&crew);
}

static bool has_monitor(weft_rt_opts opts)
{
    weft_rt *rt;
    int got;
    ASSERT_OK(weft_rt_new(&opts, &rt));
    bool running = rt->monitor.running;
    if (opts.workers > 0) ASSERT_OK(weft_join(weft_go_as((.rt = rt), runs), &got));
    ASSERT_OK(weft_rt_stop(rt, -1));
    return running;
}

TEST(monitor_is_there_only_if_it_can_help)
{
    ASSERT(has_monitor((weft_rt_opts){.workers = 2}));
    ASSERT(has_monitor((weft_rt_opts){.workers = 2, .monitor_us = 10000000}));
    ASSERT(!has_monitor((weft_rt_opts){.workers = 2, .monitor_us = -1}));
    ASSERT(!has_monitor((weft_rt_opts){.workers = 1}));
    ASSERT(!has_monitor((weft_rt_opts){.workers = -1}));
    ASSERT(!has_monitor((weft_rt_opts){.workers = -1, .schedtrace_ms = 1000}));
    ASSERT(has_monitor((weft_rt_opts){.workers = 1, .schedtrace_ms = 1000}));
    ASSERT(has_monitor((weft_rt_opts){.workers = 2, .monitor_us = -1, .schedtrace_ms = 1000}));
    setenv("WEFT_MONITOR", "-1", 1);
    ASSERT(!has_monitor((weft_rt_opts){.workers = 2, .monitor_us = 100}));
    setenv("WEFT_MONITOR", "0", 1); /* the default */
    ASSERT(has_monitor((weft_rt_opts){.workers = 2, .monitor_us = -1}));
}
