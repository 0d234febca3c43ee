/* SPDX-License-Identifier: MIT
 *
 * Threads outside that spawn: each has a slab of its own while it lives, and leaves it to the next, whichever of thread and runtime ends first.
 */
#include "base/fault.h"
#include "crew.h"
#include "sched/sched.h"
#include "test.h"

#include <errno.h>

static int answers(int value)
{
    return value;
}

struct nothing {
    WEFT_FRAME(int);
};
static weft_async(nothing)
{
    weft_begin;
    weft_end;
}

/* A thread that spawns and joins some, then waits to be told to end. */
struct visitor {
    pthread_t thread;
    weft_rt *rt;
    int count;
    pthread_barrier_t *meet; /* NULL: ends at once */
};

static void spawn_and_join(weft_rt *rt, int count)
{
    for (int i = 0; i < count; i++) {
        int got;
        ASSERT_OK(weft_join(weft_go_as((.rt = rt), answers, i), &got));
        ASSERT_EQ(got, i);
    }
}

static void *visit(void *arg)
{
    struct visitor *me = arg;
    spawn_and_join(me->rt, me->count);
    if (me->meet) pthread_barrier_wait(me->meet);
    return NULL;
}

static void visit_once(weft_rt *rt, int count)
{
    struct visitor v = {.rt = rt, .count = count};
    ASSERT_OK(pthread_create(&v.thread, NULL, visit, &v));
    ASSERT_OK(pthread_join(v.thread, NULL));
}

/* ---- how many ---- */

static void one_after_another(struct crew *crew)
{
    for (int i = 0; i < 20; i++)
        visit_once(crew->rt, 10);
    ASSERT_EQ(weft__guests_count(&crew->rt->guests), 1);
    spawn_and_join(crew->rt, 10); /* this thread takes over the idle one */
    ASSERT_EQ(weft__guests_count(&crew->rt->guests), 1);
    visit_once(crew->rt, 10);
    ASSERT_EQ(weft__guests_count(&crew->rt->guests), 2);
}

TEST(guest_of_an_ended_thread_serves_the_next)
{
    crew_each(one_after_another);
}

#define AT_ONCE 8

static void all_at_once(struct crew *crew)
{
    pthread_barrier_t meet;
    struct visitor v[AT_ONCE];
    pthread_barrier_init(&meet, NULL, AT_ONCE);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < AT_ONCE; i++) {
            v[i] = (struct visitor){.rt = crew->rt, .count = 20, .meet = &meet};
            ASSERT_OK(pthread_create(&v[i].thread, NULL, visit, &v[i]));
        }
        for (int i = 0; i < AT_ONCE; i++)
            ASSERT_OK(pthread_join(v[i].thread, NULL));
        ASSERT_EQ(weft__guests_count(&crew->rt->guests), AT_ONCE);
    }
    pthread_barrier_destroy(&meet);
}

TEST(guest_there_are_as_many_as_threads_at_once)
{
    crew_each(all_at_once);
}

/* ---- who ends first ---- */

/* The record that this thread has of a runtime that has ended must not fit the next one, which often lies at the same address. */
TEST(guest_runtime_ends_before_the_thread)
{
    for (uint64_t i = 0; i < test_scaled(200); i++) {
        weft_rt *rt;
        ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = i % 2 ? 1 : -1}, &rt));
        weft_task *task = weft_go_as((.rt = rt), answers, 3);
        ASSERT_EQ(weft__guests_count(&rt->guests), 1);
        ASSERT_OK(weft_rt_stop(rt, -1));
        ASSERT(weft_done(task));
        ASSERT_OK(weft_join(task, (int *)NULL));
    }
}

struct leaver {
    pthread_t thread;
    weft_rt *rt;
    _Atomic uint32_t
        step; /* relaxed, but for the hand-over of rt: 1 it has spawned, 2 it may go on */
};

static void *outlives(void *arg)
{
    struct leaver *me = arg;
    ASSERT_OK(weft_detach(weft_go_as((.rt = me->rt), answers, 1)));
    store_release(&me->step, 1);
    CREW_UNTIL(load_acquire(&me->step) == 2);
    return NULL;
}

static void leaver_start(struct leaver *l)
{
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1}, &l->rt));
    store_relaxed(&l->step, 0);
    ASSERT_OK(pthread_create(&l->thread, NULL, outlives, l));
    CREW_UNTIL(load_acquire(&l->step) == 1);
}

TEST(guest_thread_ends_long_after_the_runtime)
{
    struct leaver l;
    leaver_start(&l);
    ASSERT_OK(weft_rt_stop(l.rt, -1));
    store_release(&l.step, 2);
    ASSERT_OK(pthread_join(l.thread, NULL));
}

TEST(guest_thread_ends_while_the_runtime_stops)
{
    for (uint64_t i = 0; i < test_scaled(400); i++) {
        struct leaver l;
        leaver_start(&l);
        store_release(&l.step, 2); /* from here on both are on their way */
        ASSERT_OK(weft_rt_stop(l.rt, -1));
        ASSERT_OK(pthread_join(l.thread, NULL));
    }
}

/* A handle keeps the blocks, also those of a guest whose thread is gone, beyond the runtime. */
static void *spawn_one(void *rt)
{
    return weft_go_as((.rt = rt), answers, 9);
}

TEST(guest_handle_outlives_thread_and_runtime)
{
    for (uint64_t i = 0; i < test_scaled(100); i++) {
        weft_rt *rt;
        pthread_t thread;
        void *task;
        int got;
        ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1}, &rt));
        ASSERT_OK(pthread_create(&thread, NULL, spawn_one, rt));
        ASSERT_OK(pthread_join(thread, &task));
        ASSERT_OK(weft_rt_stop(rt, -1));
        ASSERT_OK(weft_join((weft_task *)task, &got));
        ASSERT_EQ(got, 9);
    }
}

/* ---- more runtimes than seats ---- */

#define RUNTIMES 7

/* A worker of one runtime is a stranger in all others. */
static int tours(weft_rt **rt, int rounds)
{
    for (int i = 0; i < rounds * RUNTIMES; i++) {
        int got = 0;
        int r = weft_join(weft_go_as((.rt = rt[i % RUNTIMES]), answers, i), &got);
        if (r < 0 || got != i) return -1;
    }
    return 0;
}

TEST(guest_of_many_runtimes_in_turns)
{
    weft_rt *rt[RUNTIMES];
    int got;
    for (int i = 0; i < RUNTIMES; i++)
        ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1}, &rt[i]));
    ASSERT_OK(tours(rt, 10));
    for (int i = 0; i < RUNTIMES; i++) {
        ASSERT_OK(weft_join(weft_go_as((.rt = rt[i]), tours, rt, 3), &got));
        ASSERT_OK(got);
    }
    for (int i = 0; i < RUNTIMES; i++) {
        ASSERT_LE(weft__guests_count(&rt[i]->guests), 1 + RUNTIMES);
        ASSERT_OK(weft_rt_stop(rt[i], -1));
    }
}

/* ---- what it leaves behind ---- */

#define LEFT 3000

static void *spawn_left(void *rt)
{
    weft_task *task[LEFT]; /* all at once: however fast the worker is, that many blocks are needed */
    for (int i = 0; i < LEFT; i++)
        task[i] = weft_spawn_as((.rt = rt), nothing);
    for (int i = 0; i < LEFT; i++)
        ASSERT_OK(weft_detach(task[i]));
    return NULL;
}

static int spawns_many(int count)
{
    weft_task *task[LEFT];
    for (int i = 0; i < count; i++)
        task[i] = weft_spawn(nothing);
    for (int i = 0; i < count; i++)
        if (weft_join(task[i], (int *)NULL) < 0) return -1;
    return 0;
}

/* What a thread had mapped is enough for as many tasks of a worker. */
TEST(guest_memory_is_used_by_workers)
{
    weft_rt *rt;
    pthread_t thread;
    int got;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1}, &rt));
    ASSERT_OK(weft_join(weft_go_as((.rt = rt), answers, 1), &got)); /* a chunk for fibers' blocks */
    ASSERT_OK(pthread_create(&thread, NULL, spawn_left, rt));
    ASSERT_OK(pthread_join(thread, NULL));
    uint32_t chunks = load_relaxed(&rt->blocks.chunk_count);
    ASSERT_OK(
        weft_join(weft_go_as((.rt = rt, .stack_bytes = 1 << 18), spawns_many, LEFT / 2), &got));
    ASSERT_OK(got);
    ASSERT_LE(load_relaxed(&rt->blocks.chunk_count), chunks + 1);
    ASSERT_OK(weft_rt_stop(rt, -1));
}

/* ---- destructors of the program's own ---- */

static pthread_key_t late_key;
static weft_rt *late_rt;
static _Atomic uint32_t late_count;

static void spawns_late(void *rounds)
{
    uintptr_t left = (uintptr_t)rounds;
    spawn_and_join(late_rt, 3);
    fetch_add_relaxed(&late_count, 1);
    if (left > 1) pthread_setspecific(late_key, (void *)(left - 1));
}

static void *dies_slowly(void *rt)
{
    spawn_and_join(rt, 1);
    pthread_setspecific(late_key, (void *)3);
    return NULL;
}

/* A thread that spawns in its last moments sits down again, and leaves again. */
TEST(guest_spawns_in_the_destructors_of_a_thread)
{
    pthread_t thread;
    ASSERT_OK(pthread_key_create(&late_key, spawns_late));
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1}, &late_rt));
    for (int i = 0; i < 5; i++) {
        ASSERT_OK(pthread_create(&thread, NULL, dies_slowly, late_rt));
        ASSERT_OK(pthread_join(thread, NULL));
    }
    ASSERT_EQ(load_relaxed(&late_count), 15);
    ASSERT_EQ(weft__guests_count(&late_rt->guests), 1);
    ASSERT_OK(weft_rt_stop(late_rt, -1));
    ASSERT_OK(pthread_key_delete(late_key));
}

/* ---- without memory ---- */

#ifdef WEFT_FAULTS
static void expect_no_seat(weft_rt *rt, enum weft__fault_kind kind)
{
    weft__fault_arm(kind, 1, UINT32_MAX,
                    -ENOMEM); /* all of them: the worker may be just beginning, and maps, too */
    weft_task *task = weft_spawn_as((.rt = rt), nothing);
    weft__fault_reset();
    ASSERT_NULL(task);
}

TEST(guest_without_memory_spawns_nothing)
{
    weft_rt *rt;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1}, &rt));
    expect_no_seat(rt, WEFT__FAULT_THREAD_KEY);
    expect_no_seat(rt, WEFT__FAULT_ALLOC);
    expect_no_seat(rt, WEFT__FAULT_MMAP);
    spawn_and_join(rt, 5);
    ASSERT_EQ(weft__guests_count(&rt->guests), 1);
    ASSERT_OK(weft_rt_stop(rt, -1));
}
#endif
