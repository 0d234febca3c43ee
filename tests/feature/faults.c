/* SPDX-License-Identifier: MIT
 *
 * What fails while tasks are made and started: memory, threads, stacks; and wakes that come while a runtime stops.
 */
#include "base/fault.h"
#include "crew.h"
#include "death.h"
#include "test.h"

#include <errno.h>
#include <string.h>
#include <weft/pool.h>

/* ---- wakes while it stops ---- */

#define SLEEPERS 32

/* A task that leaves its waker here and sleeps until it is cancelled. */
struct bed {
    pthread_mutex_t mutex; /* guards the waker */
    weft_waker waker;      /* a reference, or none */
};
static struct bed beds[SLEEPERS];
static _Atomic uint32_t asleep;
static _Atomic bool over;

struct sleeps {
    WEFT_FRAME(int);
    struct bed *bed;
};
static weft_poll sleeps_poll(void *frame, weft_cx *cx)
{
    struct sleeps *f = frame;
    f->ret = weft_cx_cancelled(cx);
    if (f->ret < 0) return WEFT_READY;
    pthread_mutex_lock(&f->bed->mutex);
    if (f->bed->waker.word == 0) {
        f->bed->waker = weft_waker_ref(weft_cx_waker(cx));
        fetch_add_relaxed(&asleep, 1);
    }
    pthread_mutex_unlock(&f->bed->mutex);
    return WEFT_PENDING;
}

static void *wakes_all(void *unused)
{
    (void)unused;
    while (!load_relaxed(&over)) {
        for (int i = 0; i < SLEEPERS; i++) {
            pthread_mutex_lock(&beds[i].mutex);
            weft_waker waker = weft_waker_ref(beds[i].waker);
            pthread_mutex_unlock(&beds[i].mutex);
            weft_waker_wake(waker);
            weft_waker_unref(waker);
        }
    }
    return NULL;
}

static void stop_under_wakes(int workers)
{
    struct crew crew;
    pthread_t waker[2];
    store_relaxed(&over, false);
    store_relaxed(&asleep, 0);
    crew_start(&crew, workers);
    for (int i = 0; i < SLEEPERS; i++) {
        beds[i] = (struct bed){.waker = {0}};
        pthread_mutex_init(&beds[i].mutex, NULL);
        ASSERT_OK(weft_detach(weft_spawn(sleeps, .bed = &beds[i])));
    }
    CREW_UNTIL(load_relaxed(&asleep) == SLEEPERS);
    for (int i = 0; i < 2; i++)
        ASSERT_OK(pthread_create(&waker[i], NULL, wakes_all, NULL));
    crew_stop(&crew);
    store_relaxed(
        &over,
        true); /* until here they went on, with wakers of tasks and a runtime that have ended */
    for (int i = 0; i < 2; i++)
        ASSERT_OK(pthread_join(waker[i], NULL));
    for (int i = 0; i < SLEEPERS; i++)
        weft_waker_unref(beds[i].waker);
}

TEST(faults_wakes_from_outside_while_a_runtime_stops)
{
    for (uint64_t round = 0; round < test_scaled(100); round++)
        stop_under_wakes(crew_sizes[round % CREW_SIZES]);
}

#ifdef WEFT_FAULTS

/* ---- spawn ---- */

static _Atomic uint32_t evaluated;

static int evaluates(int value)
{
    fetch_add_relaxed(&evaluated, 1);
    return value;
}

struct small {
    WEFT_FRAME(int);
    int value;
};
static weft_async(small)
{
    weft_begin;
    weft_return(f->value);
    weft_end;
}

struct roomy {
    WEFT_FRAME(int);
    int value;
    char room[5000];
};
static weft_async(roomy)
{
    weft_begin;
    weft_return(f->value);
    weft_end;
}

static int no_memory_for_anything(void)
{
    weft__fault_arm(WEFT__FAULT_ALLOC, 1, UINT32_MAX, -ENOMEM);
    weft_task *large = weft_spawn(roomy, .value = evaluates(1));
    weft_task *named = weft_spawn_as((.name = "named"), small, .value = evaluates(1));
    weft_task *sized = weft_go_as((.stack_bytes = 1 << 21), evaluates, 1);
    weft__fault_reset();
    return large || named || sized ? -1 : 0;
}

static void spawns_take_nothing(struct crew *crew)
{
    weft_stats before;
    weft_stats after;
    int got;
    ASSERT_OK(weft_join(weft_spawn(small, .value = 0), &got));
    weft_rt_stats(crew->rt, &before);
    store_relaxed(&evaluated, 0);
    ASSERT_OK(no_memory_for_anything());
    ASSERT_OK(weft_join(weft_go(no_memory_for_anything), &got));
    ASSERT_OK(got);
    ASSERT_EQ(load_relaxed(&evaluated), 0);
    weft_rt_stats(crew->rt, &after);
    ASSERT_EQ(after.spawned, before.spawned + 1);
    ASSERT_OK(weft_join(weft_spawn(roomy, .value = evaluates(8)), &got));
    ASSERT_EQ(got, 8);
}

TEST(faults_spawn_without_memory_evaluates_no_argument)
{
    crew_each(spawns_take_nothing);
}

/* The first block of a class is mapped: no mapping, no task. */
static void blocks_are_not_mapped(struct crew *crew)
{
    (void)crew;
    store_relaxed(&evaluated, 0);
    weft__fault_arm(WEFT__FAULT_MMAP, 1, UINT32_MAX, -ENOMEM);
    weft_task *task = weft_spawn(small, .value = evaluates(1));
    weft__fault_reset();
    ASSERT_NULL(task);
    ASSERT_EQ(load_relaxed(&evaluated), 0);
    ASSERT_EQ(weft_join(task, (int *)NULL), -ECHILD);
}

TEST(faults_spawn_without_a_mapping_evaluates_no_argument)
{
    crew_each(blocks_are_not_mapped);
}

/* ---- threads ---- */

static _Atomic uint32_t started;
static _Atomic uint32_t stopped;

static void on_start(weft_rt *rt, unsigned worker)
{
    (void)rt;
    (void)worker;
    fetch_add_relaxed(&started, 1);
}

static void on_stop(weft_rt *rt, unsigned worker)
{
    (void)rt;
    (void)worker;
    fetch_add_relaxed(&stopped, 1);
}

/* The threads that were there are gone again, and no hook was called for a runtime that never was. */
static void fails_at_thread(uint32_t nth)
{
    weft_rt *rt = NULL;
    weft_rt_opts o = {
        .workers = 4, .make_default = true, .on_thread_start = on_start, .on_thread_stop = on_stop};
    store_relaxed(&started, 0);
    store_relaxed(&stopped, 0);
    weft__fault_arm(WEFT__FAULT_THREAD, nth, 1, -EAGAIN);
    ASSERT_EQ(weft_rt_new(&o, &rt), -EAGAIN);
    weft__fault_reset();
    ASSERT_NULL(rt);
    ASSERT_NULL(weft_rt_current());
    ASSERT_EQ(load_relaxed(&started), 0);
    ASSERT_EQ(load_relaxed(&stopped), 0);
}

TEST(faults_thread_that_does_not_start_undoes_the_runtime)
{
    for (uint32_t nth = 1; nth <= 5; nth++) /* the last is the monitor */
        fails_at_thread(nth);
}

/* ---- stacks ---- */

/* From now on no stack gets its guard, however guards are made here: each get of a new one fails. */
static void no_stacks(void)
{
    weft__fault_arm(WEFT__FAULT_GUARD, 1, UINT32_MAX, -ENOMEM);
    weft__fault_arm(WEFT__FAULT_MPROTECT, 1, UINT32_MAX, -ENOMEM);
}

static _Atomic uint32_t ran;

static int gives_int(void)
{
    fetch_add_relaxed(&ran, 1);
    return 5;
}

static signed char gives_char(void)
{
    fetch_add_relaxed(&ran, 1);
    return 5;
}

static int64_t gives_wide(void)
{
    fetch_add_relaxed(&ran, 1);
    return 5;
}

static void *gives_pointer(void)
{
    fetch_add_relaxed(&ran, 1);
    return &ran;
}

static void gives_nothing(void)
{
    fetch_add_relaxed(&ran, 1);
}

struct point {
    double x;
    double y;
};
struct framed {
    WEFT_FRAME(struct point);
};
static weft_fiber(framed)
{
    fetch_add_relaxed(&ran, 1);
    f->ret = (struct point){1, 2};
}

struct framed_int {
    WEFT_FRAME(int);
    char room[3000]; /* boxed */
};
static weft_fiber(framed_int)
{
    fetch_add_relaxed(&ran, 1);
    f->ret = 5;
}

static void expect_results(void)
{
    int narrow;
    signed char tiny;
    int64_t wide;
    void *pointer;
    struct point point;
    ASSERT_OK(weft_join(weft_go(gives_int), &narrow));
    ASSERT_EQ(narrow, 5);
    ASSERT_OK(weft_join(weft_go(gives_char), &tiny));
    ASSERT_EQ(tiny, 5);
    ASSERT_OK(weft_join(weft_go(gives_wide), &wide));
    ASSERT_EQ(wide, 5);
    ASSERT_OK(weft_join(weft_go(gives_pointer), &pointer));
    ASSERT_PTR(pointer, &ran);
    ASSERT_OK(weft_join(weft_go(gives_nothing), (int *)NULL));
    ASSERT_OK(weft_join(weft_spawn(framed), &point));
    ASSERT(point.y == 2);
    ASSERT_OK(weft_join(weft_spawn(framed_int), &narrow));
    ASSERT_EQ(narrow, 5);
}

/* A signed result is the error itself; any other is left alone, and join answers. */
static void expect_errors(void)
{
    int narrow = 1;
    signed char tiny = 1;
    int64_t wide = 1;
    void *pointer = &narrow;
    struct point point = {7, 7};
    ASSERT_OK(weft_join(weft_go(gives_int), &narrow));
    ASSERT_EQ(narrow, -ENOMEM);
    ASSERT_OK(weft_join(weft_go(gives_char), &tiny));
    ASSERT_EQ(tiny, -ENOMEM);
    ASSERT_OK(weft_join(weft_go(gives_wide), &wide));
    ASSERT_EQ(wide, -ENOMEM);
    ASSERT_EQ(weft_join(weft_go(gives_pointer), &pointer), -ENOMEM);
    ASSERT_PTR(pointer, &narrow);
    ASSERT_EQ(weft_join(weft_go(gives_nothing), (int *)NULL), -ENOMEM);
    ASSERT_EQ(weft_join(weft_spawn(framed), &point), -ENOMEM);
    ASSERT(point.x == 7);
    ASSERT_OK(weft_join(weft_spawn(framed_int), &narrow));
    ASSERT_EQ(narrow, -ENOMEM);
}

static void no_stack_is_an_answer(struct crew *crew)
{
    (void)crew;
    store_relaxed(&ran, 0);
    no_stacks();
    for (int i = 0; i < 20; i++)
        expect_errors();
    weft__fault_reset();
    ASSERT_EQ(load_relaxed(&ran), 0);
    for (int i = 0; i < 20; i++)
        expect_results();
    ASSERT_EQ(load_relaxed(&ran), 140);
}

TEST(faults_fiber_without_a_stack_ends_with_enomem)
{
    crew_each(no_stack_is_an_answer);
}

/* The first fiber of a size: at its spawn a page is mapped to see how guards are made, at its first poll the stacks. */
static void no_mapping_is_an_answer(struct crew *crew)
{
    int got;
    (void)crew;
    ASSERT_OK(weft_join(weft_go(gives_int), &got)); /* blocks are there */
    weft__fault_arm(WEFT__FAULT_MMAP, 1, 1, -ENOMEM);
    ASSERT_NULL(weft_go_as((.stack_bytes = 1 << 22), gives_int));
    weft__fault_arm(WEFT__FAULT_MMAP, 2, 1, -ENOMEM);
    ASSERT_OK(weft_join(weft_go_as((.stack_bytes = 1 << 22), gives_int), &got));
    ASSERT_EQ(weft__fault_calls(WEFT__FAULT_MMAP), 2);
    weft__fault_reset();
    ASSERT_EQ(got, -ENOMEM);
    ASSERT_OK(weft_join(weft_go_as((.stack_bytes = 1 << 22), gives_int), &got));
    ASSERT_EQ(got, 5);
}

/* Mappings are counted, and a thread that begins makes some: all have begun before. */
TEST(faults_no_mapping_for_a_stack_is_an_answer)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        weft_rt_opts o = {.workers = crew_sizes[i], .on_thread_start = on_start};
        store_relaxed(&started, 0);
        crew_start_with(&crew, &o);
        CREW_UNTIL(load_relaxed(&started) == weft_rt_workers(crew.rt));
        no_mapping_is_an_answer(&crew);
        crew_stop(&crew);
    }
}

static void no_stack_in_a_pool(struct crew *crew)
{
    static char memory[WEFT_POOL_GO_BYTES(10)];
    weft_pool pool;
    int got;
    weft_pool_opts o = {.rt = crew->rt};
    ASSERT_OK(weft_pool_init(&pool, memory, sizeof(memory), &o));
    no_stacks();
    ASSERT_OK(weft_join(weft_go_as((.pool = &pool), gives_int), &got));
    ASSERT_EQ(got, -ENOMEM);
    ASSERT_EQ(weft_join(weft_go_as((.pool = &pool), gives_nothing), (int *)NULL), -ENOMEM);
    weft__fault_reset();
    ASSERT_OK(weft_pool_done(&pool));
}

TEST(faults_fiber_without_a_stack_in_a_pool)
{
    crew_each(no_stack_in_a_pool);
}

static void detached_without_a_stack(void *unused)
{
    weft_rt *rt;
    (void)unused;
    if (weft_rt_new(&(weft_rt_opts){.workers = 1}, &rt) < 0) _exit(2);
    no_stacks();
    if (weft_detach(weft_go_as((.rt = rt), gives_nothing)) < 0) _exit(3);
    if (weft_detach(weft_go_as((.rt = rt), gives_int)) < 0) _exit(4);
    _exit(weft_rt_stop(rt, -1) == 0 ? 0 : 5);
}

/* Nobody is there to be told: it is reported as any failure that nobody reads. */
TEST(faults_detached_fiber_without_a_stack_is_reported)
{
    struct death d = death_of(detached_without_a_stack, NULL);
    ASSERT_EQ(d.signal, 0);
    ASSERT_EQ(d.code, 0);
    ASSERT(strstr(d.said, "task 'gives_nothing'"));
    ASSERT(strstr(d.said, "task 'gives_int'"));
    ASSERT(strstr(d.said, "ended with ENOMEM, and nobody reads it"));
}

#endif
