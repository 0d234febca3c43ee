/* SPDX-License-Identifier: MIT
 *
 * Shutdown while other threads are at work: they wake its tasks, hold their handles, spawn, stop
 * other runtimes, end.
 */
#include "bell.h"
#include "crew.h"
#include "test.h"

#include <errno.h>

/* relaxed everywhere: counts and flags that are looked at again, or behind a join or a stop. */
static _Atomic uint64_t born;
static _Atomic uint64_t ended;
static _Atomic bool let_go;

static void clear(void)
{
    store_relaxed(&born, 0);
    store_relaxed(&ended, 0);
    store_relaxed(&let_go, false);
}

static int works_until_told(void)
{
    while (weft_yield() == 0) {
    }
    fetch_add_relaxed(&ended, 1);
    return -ECANCELED;
}

/* ---- handles and wakers in use meanwhile ------------------------------------------------------------------ */

struct ringer {
    pthread_t thread;
    struct bell *bells;
    uint64_t count;
    uint64_t from;
};

static void *ring_all(void *arg)
{
    struct ringer *me = arg;
    fetch_add_relaxed(&born, 1);
    for (uint64_t i = 0; i < me->count; i++)
        bell_ring(&me->bells[(me->from + i) % me->count]);
    return NULL;
}

static int hears(struct bell *bell)
{
    return weft_run(hear, .bell = bell);
}

/* Each was woken, or cancelled, or both: it ended with the answer that came first. */
static void rings_while_it_stops(int workers)
{
    enum { RINGERS = 4 };
    uint64_t count = test_scaled(2000);
    struct bell *bells = calloc(count, sizeof(*bells));
    weft_task **task = calloc(count, sizeof(*task));
    struct ringer r[RINGERS];
    struct crew crew;
    uint64_t rung = 0;
    clear();
    crew_start(&crew, workers);
    for (uint64_t i = 0; i < count; i++) {
        bell_init(&bells[i]);
        task[i] = i % 2 ? weft_go(hears, &bells[i]) : weft_spawn(hear, .bell = &bells[i]);
    }
    for (uint64_t i = 0; i < RINGERS; i++) {
        r[i] = (struct ringer){.bells = bells, .count = count, .from = i * count / RINGERS};
        ASSERT_OK(pthread_create(&r[i].thread, NULL, ring_all, &r[i]));
    }
    CREW_UNTIL(load_relaxed(&born) > 0);
    crew_stop(&crew);
    for (uint64_t i = 0; i < count; i++) {
        int got = 1;
        ASSERT(weft_done(task[i]));
        if (i % 3 == 0) {
            ASSERT_OK(weft_detach(task[i])); /* while the ringers may still hold its waker */
            continue;
        }
        ASSERT_OK(weft_join(task[i], &got));
        ASSERT(got == 0 || got == -ECANCELED);
        rung += got == 0;
    }
    for (int i = 0; i < RINGERS; i++)
        ASSERT_OK(pthread_join(r[i].thread, NULL));
    for (uint64_t i = 0; i < count; i++)
        bell_done(&bells[i]);
    ASSERT_LE(rung, count);
    free(bells);
    free(task);
}

TEST(stop_while_four_threads_wake_its_tasks)
{
    for (size_t i = 0; i < CREW_SIZES; i++)
        rings_while_it_stops(crew_sizes[i]);
}

/* Two that wake each other on their way out, whichever is told first. */
static int wakes_the_other(struct bell *mine, struct bell *other)
{
    int r = weft_run(hear, .bell = mine);
    bell_ring(other);
    fetch_add_relaxed(&ended, 1);
    return r;
}

TEST(stop_of_tasks_that_wake_each_other_as_they_end)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct bell bell[2];
        weft_task *task[2];
        struct crew crew;
        clear();
        crew_start(&crew, crew_sizes[i]);
        for (int n = 0; n < 2; n++)
            bell_init(&bell[n]);
        for (int n = 0; n < 2; n++)
            task[n] = weft_go(wakes_the_other, &bell[n], &bell[1 - n]);
        CREW_UNTIL(bell_awaited(&bell[0]) && bell_awaited(&bell[1]));
        crew_stop(&crew);
        ASSERT_EQ(load_relaxed(&ended), 2);
        for (int n = 0; n < 2; n++) {
            int got = 1;
            ASSERT_OK(weft_join(task[n], &got));
            ASSERT(got == 0 || got == -ECANCELED);
            bell_done(&bell[n]);
        }
    }
}

/* A waker that lies in a worker's thread-specific data, and is used when that thread ends. */
static pthread_key_t last_words;

static void wakes_at_the_end(void *word)
{
    weft_waker waker = {.word = (uintptr_t)word};
    weft_waker_wake(waker);
    weft_waker_unref(waker);
    fetch_add_relaxed(&ended, 1);
}

struct leaves_its_waker {
    WEFT_FRAME(int);
};
static weft_poll leaves_its_waker_poll(void *frame, weft_cx *cx)
{
    struct leaves_its_waker *f = frame;
    weft_waker waker = weft_waker_ref(weft_cx_waker(cx));
    f->ret = pthread_setspecific(last_words, (void *)(uintptr_t)waker.word);
    return WEFT_READY;
}

TEST(stop_with_wakers_that_the_threads_use_as_they_end)
{
    ASSERT_OK(pthread_key_create(&last_words, wakes_at_the_end));
    for (int workers = 1; workers <= 4; workers *= 2) {
        struct crew crew;
        clear();
        crew_start(&crew, workers);
        int got = 1;
        ASSERT_OK(weft_join(weft_spawn(leaves_its_waker), &got));
        ASSERT_OK(got);
        crew_stop(&crew);
        ASSERT_EQ(load_relaxed(&ended), 1);
    }
    ASSERT_OK(pthread_key_delete(last_words));
}

/* A runtime that is stopped by the end of the thread that made it. */
static void stops_it(void *rt)
{
    if (weft_rt_stop(rt, -1) == 0) fetch_add_relaxed(&ended, 1);
}

static void *makes_one_and_ends(void *unused)
{
    struct crew crew;
    (void)unused;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 2}, &crew.rt));
    ASSERT_OK(pthread_setspecific(last_words, crew.rt));
    for (int i = 0; i < 10; i++)
        ASSERT_OK(weft_detach(weft_go_as((.rt = crew.rt), works_until_told)));
    return NULL;
}

TEST(stop_in_a_threads_last_words)
{
    pthread_t thread;
    clear();
    ASSERT_OK(pthread_key_create(&last_words, stops_it));
    ASSERT_OK(pthread_create(&thread, NULL, makes_one_and_ends, NULL));
    ASSERT_OK(pthread_join(thread, NULL));
    ASSERT_EQ(load_relaxed(&ended), 11);
    ASSERT_OK(pthread_key_delete(last_words));
}

/* ---- several runtimes ---------------------------------------------------------------------------------------- */

static int waits_across(weft_rt *other, int depth)
{
    int got = 0;
    weft_rt *mine = weft_rt_current();
    if (depth == 0) {
        while (weft_yield() == 0) {
        }
        fetch_add_relaxed(&ended, 1);
        return -ECANCELED;
    }
    weft_task *child = weft_go_as((.rt = other), waits_across, mine, depth - 1);
    if (!child) return -ECANCELED; /* it closes already */
    fetch_add_relaxed(&born, 1);
    int r = weft_join(child, &got);
    return r < 0 ? r : got;
}

static void *stops_one(void *rt)
{
    ASSERT_OK(weft_rt_stop(rt, -1));
    return NULL;
}

/* Tasks of one wait for tasks of the other, and both stop at once. */
TEST(stop_of_two_runtimes_that_wait_for_each_other)
{
    for (uint64_t round = 0; round < test_scaled(40); round++) {
        enum { CHAINS = 10, DEPTH = 6 };
        weft_rt *rt[2];
        pthread_t thread[2];
        weft_task *task[CHAINS];
        clear();
        for (int i = 0; i < 2; i++)
            ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1 + i}, &rt[i]));
        for (int i = 0; i < CHAINS; i++)
            task[i] = weft_go_as((.rt = rt[i % 2]), waits_across, rt[1 - i % 2], DEPTH);
        /* A task must know that the other runtime is there: all of them have spawned. */
        CREW_UNTIL(load_relaxed(&born) == CHAINS * DEPTH);
        for (int i = 0; i < 2; i++)
            ASSERT_OK(pthread_create(&thread[i], NULL, stops_one, rt[i]));
        for (int i = 0; i < 2; i++)
            ASSERT_OK(pthread_join(thread[i], NULL));
        ASSERT_EQ(load_relaxed(&ended), CHAINS);
        for (int i = 0; i < CHAINS; i++) {
            int got = 0;
            ASSERT_OK(weft_join(task[i], &got));
            ASSERT_EQ(got, -ECANCELED);
        }
    }
}

struct maker {
    pthread_t thread;
    int workers;
};

static void *makes_and_stops(void *arg)
{
    struct maker *me = arg;
    for (uint64_t i = 0; i < test_scaled(40); i++) {
        weft_rt *rt;
        ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = me->workers}, &rt));
        for (int n = 0; n < 10; n++)
            ASSERT_OK(weft_detach(weft_go_as((.rt = rt), works_until_told)));
        ASSERT_OK(weft_rt_stop(rt, -1));
    }
    return NULL;
}

TEST(stop_of_runtimes_that_come_and_go_in_four_threads)
{
    struct maker m[4] = {{.workers = 1}, {.workers = 2}, {.workers = 3}, {.workers = -1}};
    clear();
    for (int i = 0; i < 4; i++)
        ASSERT_OK(pthread_create(&m[i].thread, NULL, makes_and_stops, &m[i]));
    for (int i = 0; i < 4; i++)
        ASSERT_OK(pthread_join(m[i].thread, NULL));
    ASSERT_EQ(load_relaxed(&ended), 4 * 10 * test_scaled(40));
}

/* ---- a storm of spawns ---------------------------------------------------------------------------------------- */

static int counts_its_end(int awaits)
{
    int r = 0;
    while (awaits-- > 0 && r == 0)
        r = weft_yield();
    fetch_add_relaxed(&ended, 1);
    return r;
}

struct counts_its_end_too {
    WEFT_FRAME(int);
    int awaits;
    struct weft_yield pause;
};
static weft_async(counts_its_end_too)
{
    weft_begin;
    while (f->awaits-- > 0) {
        weft_await(f->pause, weft_yield);
        if (f->pause.ret < 0) break;
    }
    fetch_add_relaxed(&ended, 1);
    weft_return(f->pause.ret);
    weft_end;
}

static int keeps_it_open(void)
{
    while (!load_relaxed(&let_go))
        (void)weft_yield();
    return 0;
}

struct stormer {
    pthread_t thread;
    weft_rt *rt;
    int index;
    uint64_t spawned;
};

static void spend(weft_task *task, uint64_t turn)
{
    int got = 0;
    if (turn % 3) {
        ASSERT_OK(weft_detach(task));
        return;
    }
    ASSERT_OK(weft_join(task, &got));
    ASSERT(got == 0 || got == -ECANCELED);
}

static void *storms(void *arg)
{
    struct stormer *me = arg;
    for (uint64_t turn = (uint64_t)me->index;; turn++) {
        int awaits = (int)(turn % 4);
        weft_task *task = turn % 2
                              ? weft_go_as((.rt = me->rt), counts_its_end, awaits)
                              : weft_spawn_as((.rt = me->rt), counts_its_end_too, .awaits = awaits);
        if (!task) return NULL;
        me->spawned++;
        fetch_add_relaxed(&born, 1);
        spend(task, turn);
    }
}

/* Each spawn gives NULL, or a task that runs to its end: the counts match. One task keeps the
 * runtime there until the last thread has been refused. */
static void storm(int workers)
{
    enum { THREADS = 8 };
    struct stormer s[THREADS];
    struct crew crew;
    uint64_t spawned = 0;
    clear();
    crew_start(&crew, workers);
    weft_task *keeper = weft_go(keeps_it_open);
    for (int i = 0; i < THREADS; i++) {
        s[i] = (struct stormer){.rt = crew.rt, .index = i};
        ASSERT_OK(pthread_create(&s[i].thread, NULL, storms, &s[i]));
    }
    CREW_UNTIL(load_relaxed(&born) > test_scaled(2000));
    (void)weft_rt_enter(NULL);
    pthread_t stopper;
    ASSERT_OK(pthread_create(&stopper, NULL, stops_one, crew.rt));
    for (int i = 0; i < THREADS; i++) {
        ASSERT_OK(pthread_join(s[i].thread, NULL));
        spawned += s[i].spawned;
    }
    store_relaxed(&let_go, true);
    ASSERT_OK(pthread_join(stopper, NULL));
    ASSERT_EQ(load_relaxed(&ended), spawned);
    ASSERT_OK(weft_join(keeper, (int *)NULL));
}

/* A current-thread runtime is turned by its stopper and nobody else: it has no part in this. */
TEST(stop_in_a_storm_of_spawns_by_eight_threads)
{
    for (uint64_t round = 0; round < test_scaled(10); round++)
        for (int workers = 1; workers <= 4; workers *= 2)
            storm(workers);
}
