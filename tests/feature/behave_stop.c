/* SPDX-License-Identifier: MIT
 *
 * Shutdown as tasks meet it: those that spawn on, clean up in children, or ignore the cancel for a
 * while. With other threads at work meanwhile: behave_stop_outside.c.
 */
#include "bell.h"
#include "crew.h"
#include "death.h"
#include "tasks.h"
#include "test.h"

#include <errno.h>
#include <string.h>

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

/* ---- those that spawn on --------------------------------------------------------------------------- */

/* A link spawns the next and ends: at every moment one of the chain lives, and never the same one for
 * long. The last waits for a ring from outside, whatever it is told. */
struct link {
    WEFT_FRAME(int);
    uint32_t left;
    struct bell *bell;
    struct hear hear;
};
static weft_async(link)
{
    weft_begin;
    fetch_add_relaxed(&born, 1);
    if (f->left == 0) weft_await(f->hear, hear, .bell = f->bell, .deaf = true);
    if (f->left > 0 && weft_detach(weft_spawn(link, .left = f->left - 1, .bell = f->bell)) < 0)
        weft_return(-ENOMEM);
    fetch_add_relaxed(&ended, 1);
    weft_return(0);
    weft_end;
}

/* Not at once: a stop that has not seen the last link would be over by then. */
static void *rings_late(void *arg)
{
    struct bell *bell = arg;
    CREW_UNTIL(bell_awaited(bell));
    for (int i = 0; i < 20; i++)
        sched_yield();
    bell_ring(bell);
    return NULL;
}

/* Stop comes back when the chain has ended and not before, however its links dodge the sweeps. Many
 * handles of tasks that have ended make a sweep long enough for that. */
static void chain_is_waited_for(int workers)
{
    enum { HELD = 20000 };
    uint32_t links = (uint32_t)test_scaled(100000);
    static weft_task *held[HELD];
    uint32_t held_count = (uint32_t)test_scaled(HELD);
    struct crew crew;
    struct bell bell;
    pthread_t ringer;
    clear();
    bell_init(&bell);
    crew_start(&crew, workers);
    for (uint32_t i = 0; i < held_count; i++)
        held[i] = weft_spawn(answers_too, .value = 1);
    for (uint32_t i = 0; i < held_count; i++)
        CREW_UNTIL(weft_done(held[i]));
    ASSERT_OK(pthread_create(&ringer, NULL, rings_late, &bell));
    ASSERT_OK(weft_detach(weft_spawn(link, .left = links, .bell = &bell)));
    CREW_UNTIL(load_relaxed(&born) > 0);
    crew_stop(&crew);
    ASSERT_EQ(load_relaxed(&ended), links + 1);
    ASSERT_OK(pthread_join(ringer, NULL));
    bell_done(&bell);
    for (uint32_t i = 0; i < held_count; i++)
        ASSERT_OK(weft_detach(held[i]));
}

TEST(stop_waits_for_a_chain_of_spawns_that_dodges_the_sweeps)
{
    for (size_t i = 0; i < CREW_SIZES; i++)
        chain_is_waited_for(crew_sizes[i]);
}

static void breeds_without_end(void);

static void breeds_without_end(void)
{
    if (load_relaxed(&let_go)) return;
    (void)weft_detach(weft_go(breeds_without_end));
}

static void stops_a_breeder(void *unused)
{
    struct crew crew;
    (void)unused;
    clear();
    crew_start(&crew, 2);
    if (weft_detach(weft_go(breeds_without_end)) < 0) _exit(2);
    for (int i = 0; i < 20; i++)
        if (weft_rt_stop(crew.rt, 1000 * 1000) != -ETIME) _exit(3);
    store_relaxed(&let_go, true);
    _exit(weft_rt_stop(crew.rt, -1) == 0 ? 0 : 4);
}

/* It is named if a sweep meets it, and spoken of if none does; it is never taken for stopped. */
TEST(stop_of_tasks_that_breed_times_out_and_says_so)
{
    struct death d = death_of(stops_a_breeder, NULL);
    ASSERT_EQ(d.signal, 0);
    ASSERT_EQ(d.code, 0);
    ASSERT(strstr(d.said, "not stop\n"));
}

/* Told to stop, it does its last work in a child of its own: which starts, is cancelled from birth,
 * and is joined. */
static int cleans_up(void)
{
    fetch_add_relaxed(&born, 1);
    return weft_yield();
}

static int works_until_told(void)
{
    int of_child = 0;
    while (weft_yield() == 0) {
    }
    int r = weft_join(weft_go(cleans_up), &of_child);
    if (r == 0 && of_child == -ECANCELED) fetch_add_relaxed(&ended, 1);
    return -ECANCELED;
}

struct works_until_told_too {
    WEFT_FRAME(int);
    int of_child;
    struct weft_yield pause;
    struct weft_join join;
};
static weft_async(works_until_told_too)
{
    weft_begin;
    do {
        weft_await(f->pause, weft_yield);
    } while (f->pause.ret == 0);
    weft_await(f->join, weft_join, weft_go(cleans_up), &f->of_child);
    if (f->join.ret == 0 && f->of_child == -ECANCELED) fetch_add_relaxed(&ended, 1);
    weft_return(-ECANCELED);
    weft_end;
}

TEST(stop_lets_tasks_spawn_for_their_cleanup)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        uint64_t count = test_scaled(200);
        struct crew crew;
        clear();
        crew_start(&crew, crew_sizes[i]);
        for (uint64_t n = 0; n < count; n++) {
            ASSERT_OK(weft_detach(weft_go(works_until_told)));
            ASSERT_OK(weft_detach(weft_spawn(works_until_told_too)));
        }
        crew_stop(&crew);
        ASSERT_EQ(load_relaxed(&born), 2 * count);
        ASSERT_EQ(load_relaxed(&ended), 2 * count);
    }
}

static void knows_from_birth(void)
{
    if (weft_yield() == -ECANCELED) fetch_add_relaxed(&ended, 1);
}

static int bears_when_told(void)
{
    while (weft_yield() == 0) {
    }
    for (int i = 0; i < 10; i++)
        if (weft_detach(weft_go(knows_from_birth)) == 0) fetch_add_relaxed(&born, 1);
    return -ECANCELED;
}

/* What is born while the runtime closes needs no sweep: its first await answers. */
TEST(stop_tasks_born_meanwhile_are_cancelled_from_birth)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        clear();
        crew_start(&crew, crew_sizes[i]);
        for (uint64_t n = 0; n < test_scaled(100); n++)
            ASSERT_OK(weft_detach(weft_go(bears_when_told)));
        crew_stop(&crew);
        ASSERT_EQ(load_relaxed(&born), 10 * test_scaled(100));
        ASSERT_EQ(load_relaxed(&ended), load_relaxed(&born));
    }
}

/* ---- those that take their time -------------------------------------------------------------------------- */

/* Ignores the cancel for a while: so many awaits more. */
static int takes_its_time(int awaits)
{
    while (weft_yield() == 0) {
    }
    while (awaits-- > 0)
        if (weft_yield() != -ECANCELED) return -1;
    fetch_add_relaxed(&ended, 1);
    return 5;
}

struct takes_its_time_too {
    WEFT_FRAME(int);
    int awaits;
    struct weft_yield pause;
};
static weft_async(takes_its_time_too)
{
    weft_begin;
    do {
        weft_await(f->pause, weft_yield);
    } while (f->pause.ret == 0);
    while (f->awaits-- > 0) {
        weft_await(f->pause, weft_yield);
        if (f->pause.ret != -ECANCELED) weft_return(-1);
    }
    fetch_add_relaxed(&ended, 1);
    weft_return(5);
    weft_end;
}

/* The answer of one that goes on for a while is what it says, and its handle is good beyond the end. */
TEST(stop_waits_for_tasks_that_take_their_time)
{
    enum { COUNT = 20 };
    for (size_t i = 0; i < CREW_SIZES; i++) {
        weft_task *task[2 * COUNT];
        struct crew crew;
        clear();
        crew_start(&crew, crew_sizes[i]);
        for (int n = 0; n < COUNT; n++) {
            task[2 * n] = weft_go(takes_its_time, n * 50);
            task[2 * n + 1] = weft_spawn(takes_its_time_too, .awaits = n * 50);
        }
        crew_stop(&crew);
        ASSERT_EQ(load_relaxed(&ended), 2 * COUNT);
        for (int n = 0; n < 2 * COUNT; n++) {
            int got = 0;
            ASSERT(weft_done(task[n]));
            ASSERT_OK(weft_join(task[n], &got));
            ASSERT_EQ(got, 5);
        }
    }
}

/* ---- those that can never end -------------------------------------------------------------------------------- */

static weft_task *_Atomic other_half; /* release and acquire: the handle, from one to the other */

static int joins_the_other(weft_task *other)
{
    fetch_add_relaxed(&born, 1);
    while (!other && !(other = exchange_acquire(&other_half, NULL)))
        (void)weft_yield();
    fetch_add_relaxed(&born, 1);
    return weft_join(other, (int *)NULL);
}

/* A join passes the cancel on, and waits: each of the two for the other. */
static void stops_a_circle(void *unused)
{
    struct crew crew;
    (void)unused;
    clear();
    crew_start(&crew, 2);
    weft_task *one = weft_go_as((.name = "one"), joins_the_other, NULL);
    weft_task *two = weft_go_as((.name = "two"), joins_the_other, one);
    store_release(&other_half, two);
    CREW_UNTIL(load_relaxed(&born) == 4);
    _exit(weft_rt_stop(crew.rt, 1000 * 1000) == -ETIME ? 0 : 3);
}

TEST(stop_names_tasks_that_join_each_other)
{
    struct death d = death_of(stops_a_circle, NULL);
    ASSERT_EQ(d.signal, 0);
    ASSERT_EQ(d.code, 0);
    ASSERT(strstr(d.said, "task 'one'"));
    ASSERT(strstr(d.said, "task 'two'"));
}
