/* SPDX-License-Identifier: MIT
 *
 * Runtimes at work: in what order tasks run, spawns into a runtime that sleeps, runtimes inside of
 * tasks, and what the counters say of all that.
 */
#include "bell.h"
#include "crew.h"
#include "test.h"

#include <errno.h>

static int answers(int value)
{
    return value;
}

/* ---- order, on a runtime that the test turns -------------------------------------------------------------- */

static char written[64];
static size_t written_count;

static void write_down(char c)
{
    if (written_count < sizeof(written) - 1) written[written_count++] = c;
    written[written_count] = '\0';
}

static void forget(void)
{
    written_count = 0;
    written[0] = '\0';
}

/* Writes its letter, and once more after each yield. */
struct writer {
    WEFT_FRAME(int);
    char letter;
    int yields;
    struct weft_yield pause;
};
static weft_async(writer)
{
    weft_begin;
    write_down(f->letter);
    while (f->yields-- > 0) {
        weft_await(f->pause, weft_yield);
        write_down(f->letter);
    }
    weft_return(0);
    weft_end;
}

static void write_letters(char first, int count, int yields)
{
    for (int i = 0; i < count; i++)
        ASSERT_OK(weft_detach(weft_spawn(writer, .letter = (char)(first + i), .yields = yields)));
}

static void turn_to_the_end(weft_rt *rt)
{
    while (weft_rt_turn(rt, 0) > 0) {
    }
}

TEST(rt_order_of_spawns_and_yields)
{
    weft_rt *rt;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
    (void)weft_rt_enter(rt);
    forget();
    write_letters('a', 5, 0); /* from outside: as they came */
    turn_to_the_end(rt);
    ASSERT_STR(written, "abcde");
    forget();
    write_letters('a', 3, 2); /* who yields goes behind the others */
    turn_to_the_end(rt);
    ASSERT_STR(written, "abcabcabc");
    (void)weft_rt_enter(NULL);
    ASSERT_OK(weft_rt_stop(rt, -1));
}

static int spawns_letters(char first, int count)
{
    write_letters(first, count, 0);
    write_down('.');
    return 0;
}

/* Inside: the newest runs next, the others in the order in which they were spawned. */
TEST(rt_order_of_spawns_by_a_task)
{
    weft_rt *rt;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
    (void)weft_rt_enter(rt);
    forget();
    ASSERT_OK(weft_detach(weft_go(spawns_letters, 'a', 4)));
    turn_to_the_end(rt);
    ASSERT_STR(written, ".dabc");
    (void)weft_rt_enter(NULL);
    ASSERT_OK(weft_rt_stop(rt, -1));
}

/* ---- asleep ---------------------------------------------------------------------------------------------------- */

static uint64_t parks_of(weft_rt *rt)
{
    weft_stats s;
    weft_rt_stats(rt, &s);
    return s.parks;
}

/* Each spawn finds all workers asleep, or on their way there. */
static void into_the_sleep(int workers)
{
    struct crew crew;
    crew_start(&crew, workers);
    for (uint64_t i = 0; i < test_scaled(400); i++) {
        int got = 0;
        CREW_UNTIL(parks_of(crew.rt) > i);
        ASSERT_OK(weft_join(weft_go(answers, 1), &got));
        ASSERT_EQ(got, 1);
    }
    crew_stop(&crew);
}

TEST(rt_spawn_into_a_sleeping_runtime)
{
    into_the_sleep(1);
    into_the_sleep(2);
    into_the_sleep(4);
}

/* ---- a runtime inside of a task ---------------------------------------------------------------------------------- */

static int makes_one(int workers)
{
    weft_rt *outer = weft_rt_current();
    weft_rt *rt;
    int got = 0;
    int r = weft_rt_new(&(weft_rt_opts){.workers = workers}, &rt);
    if (r < 0) return r;
    weft_task *task = weft_go_as((.rt = rt), answers, 11);
    if (workers < 0) (void)weft_rt_turn(rt, 0);
    r = weft_join(task, &got);
    if (r < 0 || got != 11) return -EIO;
    if (weft_rt_current() != outer) return -EXDEV;
    return weft_rt_stop(rt, -1);
}

static void inside(struct crew *crew)
{
    static const int sizes[] = {1, 2, -1};
    (void)crew;
    for (int i = 0; i < 3; i++) {
        int got = 1;
        ASSERT_OK(weft_join(weft_go(makes_one, sizes[i]), &got));
        ASSERT_OK(got);
    }
}

TEST(rt_made_and_stopped_inside_a_task)
{
    crew_each(inside);
}

/* ---- entering ----------------------------------------------------------------------------------------------------- */

static weft_rt *where(void)
{
    return weft_rt_current();
}

/* Nested, left in whatever order: what was entered last counts, and the task's own before all. */
TEST(rt_entered_by_turns)
{
    weft_rt *rt[2];
    weft_rt *got;
    for (int i = 0; i < 2; i++)
        ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1}, &rt[i]));
    weft_rt *before = weft_rt_enter(rt[0]);
    ASSERT_NULL(before);
    before = weft_rt_enter(rt[1]);
    ASSERT_PTR(before, rt[0]);
    ASSERT_OK(weft_join(weft_go(where), &got));
    ASSERT_PTR(got, rt[1]);
    ASSERT_OK(weft_join(weft_go_as((.rt = rt[0]), where), &got));
    ASSERT_PTR(got, rt[0]);
    ASSERT_PTR(weft_rt_enter(before), rt[1]);
    ASSERT_OK(weft_join(weft_go(where), &got));
    ASSERT_PTR(got, rt[0]);
    ASSERT_PTR(weft_rt_enter(NULL), rt[0]);
    ASSERT_NULL(weft_rt_current());
    for (int i = 0; i < 2; i++)
        ASSERT_OK(weft_rt_stop(rt[i], -1));
}

static void *is_nowhere(void *unused)
{
    (void)unused;
    return weft_rt_current();
}

/* What one thread entered is no business of the next. */
TEST(rt_entered_by_one_thread_alone)
{
    struct crew crew;
    pthread_t thread;
    void *got = &crew;
    crew_start(&crew, 1);
    ASSERT_OK(pthread_create(&thread, NULL, is_nowhere, NULL));
    ASSERT_OK(pthread_join(thread, &got));
    ASSERT_NULL(got);
    crew_stop(&crew);
}

/* ---- counters -------------------------------------------------------------------------------------------------------- */

/* Exact where one thread does it all: spawned, ended, polls. */
TEST(rt_counts_tasks_and_polls)
{
    weft_stats s;
    weft_rt *rt;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
    (void)weft_rt_enter(rt);
    forget();
    write_letters('a', 3, 4);
    weft_rt_stats(rt, &s);
    ASSERT_EQ(s.spawned, 3);
    ASSERT_EQ(s.completed, 0);
    ASSERT_EQ(s.polls, 0);
    turn_to_the_end(rt);
    weft_rt_stats(rt, &s);
    ASSERT_EQ(s.completed, 3);
    ASSERT_EQ(s.polls, 3 * 5);
    ASSERT_EQ(s.spills, 0);
    ASSERT_EQ(s.steals, 0);
    (void)weft_rt_enter(NULL);
    ASSERT_OK(weft_rt_stop(rt, -1));
}

static int spawns_many(weft_task **task, int count)
{
    for (int i = 0; i < count; i++)
        task[i] = weft_go(answers, i);
    return 0;
}

static uint64_t spills_of(int spawns)
{
    static weft_task *task[2000];
    weft_stats s;
    weft_rt *rt;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
    ASSERT_OK(weft_detach(weft_go_as((.rt = rt), spawns_many, task, spawns)));
    turn_to_the_end(rt);
    weft_rt_stats(rt, &s);
    for (int i = 0; i < spawns; i++) {
        int got = -1;
        ASSERT_OK(weft_join(task[i], &got));
        ASSERT_EQ(got, i);
    }
    ASSERT_OK(weft_rt_stop(rt, -1));
    return s.spills;
}

/* A ring of tasks and the one that runs next; one more spills half of the ring, and so on. */
TEST(rt_counts_spills)
{
    ASSERT_EQ(spills_of(200), 0);
    ASSERT_GE(spills_of(300), 1);
    ASSERT_GE(spills_of(2000), 8);
}

static int works_long(void)
{
    for (int i = 0; i < 20000; i++)
        cpu_pause();
    return 1;
}

static _Atomic bool seen_stolen;

static int spawns_work(weft_task **task, int count)
{
    for (int i = 0; i < count; i++)
        task[i] = weft_go(works_long);
    for (int i = 0; i < count; i++) {
        int got;
        int r = weft_join(task[i], &got);
        if (r < 0) return r;
    }
    return 0;
}

/* Long tasks in one ring are shared sooner or later: the counters show it. */
TEST(rt_counts_steals)
{
    struct crew crew;
    crew_start(&crew, 2);
    store_relaxed(&seen_stolen, false);
    while (!load_relaxed(&seen_stolen)) {
        static weft_task *task[100];
        weft_stats s;
        int got;
        ASSERT_OK(weft_join(weft_go(spawns_work, task, 100), &got));
        ASSERT_OK(got);
        weft_rt_stats(crew.rt, &s);
        ASSERT_GE(s.stolen, s.steals);
        store_relaxed(&seen_stolen, s.steals > 0);
    }
    crew_stop(&crew);
}
