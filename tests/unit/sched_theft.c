/* SPDX-License-Identifier: MIT
 *
 * What a theft was worth, whom thieves leave alone, and who gathers a crowd: by one thread, with
 * workers that nobody runs. A theft that is never worth it has taken more tasks than there is time
 * for, a crowd has met more often than there is time for: no clock decides.
 */
#include "sched/sched.h"
#include "sys/clock.h"
#include "test.h"

#define WORKERS   4
#define TASKS     (2 * WEFT__RUNQ_CAP)
#define MIN_NS    100000
#define MAX_NS    1000000
#define CROWD_MAX 8000000
#define CROWDED   (1U << 28)  /* meetings that make a crowd, however long they took */
#define SECOND    INT64_C(1000000000)

static struct weft_rt rt;
static struct weft__worker workers[WORKERS];
static struct weft__here heres[WORKERS];
static struct weft_task tasks[TASKS];
static const uint64_t place[2] = {4, 32}; /* locks, as far as anybody here knows */

static void start(uint32_t worker_count)
{
    rt.workers = workers;
    rt.worker_count = worker_count;
    weft__inject_init(&rt.inject);
    for (uint32_t i = 0; i < worker_count; i++) {
        struct weft__worker *w = &workers[i];
        w->rt = &rt;
        w->index = i;
        w->here = &heres[i];
        weft__runq_init(&w->ring);
        weft__overflow_init(&w->over);
        weft__shun_init(&w->shun);
        w->theft = (struct weft__theft){.met_since = weft__clock_now()};
        store_relaxed(&w->counts.gathered, 0);
    }
}

static void done(void)
{
    for (uint32_t i = 0; i < rt.worker_count; i++)
        weft__overflow_done(&workers[i].over);
}

static void fill(uint32_t worker, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        ASSERT(weft__runq_push(&workers[worker].ring, &tasks[first + i]));
}

static uint64_t queued(uint32_t worker)
{
    return weft__runq_length(&workers[worker].ring) + weft__overflow_count(&workers[worker].over);
}

static bool is_shunned(uint32_t worker)
{
    return load_relaxed(&workers[worker].shun.until) != 0;
}

static int64_t next_ns(uint32_t worker)
{
    return load_relaxed(&workers[worker].shun.next_ns);
}

static uint64_t crowd_of(uint32_t worker)
{
    return load_relaxed(&workers[worker].shun.crowd);
}

/* A moment ago, however long this test takes. */
static void steals_from(uint32_t worker, uint32_t victim)
{
    weft__theft_begins(&workers[worker], &workers[victim], 1, true);
    workers[worker].theft.begun += 3600 * SECOND;
}

/* It has been in a crowd there, and comes to its tick. */
static void meets(uint32_t worker, uint64_t at)
{
    heres[worker].met += CROWDED;
    heres[worker].met_at |= at;
    weft__theft_tick(&workers[worker]);
}

/* ---- what it was worth ---- */

/* So many tasks that no time is enough for them. */
static void steals_in_vain(uint32_t worker, uint32_t victim)
{
    weft__theft_begins(&workers[worker], &workers[victim], UINT32_MAX, true);
    weft__theft_ends(&workers[worker]);
}

TEST(theft_in_vain_shuns_its_victim_and_nobody_else)
{
    start(WORKERS);
    int64_t before = weft__clock_now();
    steals_in_vain(0, 2);
    ASSERT_GE(load_relaxed(&workers[2].shun.until), before + MIN_NS);
    ASSERT(weft__shunned(&workers[2].shun, before));
    ASSERT(!weft__shunned(&workers[2].shun, before + SECOND * 3600));
    for (uint32_t i = 0; i < WORKERS; i++)
        ASSERT_EQ(is_shunned(i), i == 2);
    done();
}

TEST(theft_in_vain_again_shuns_for_longer_up_to_a_millisecond)
{
    static const int64_t next[] = {2 * MIN_NS, 4 * MIN_NS, 8 * MIN_NS, MAX_NS, MAX_NS};
    start(WORKERS);
    for (uint32_t i = 0; i < 5; i++) {
        steals_in_vain(i % 2, 2); /* whoever it is */
        ASSERT_EQ(next_ns(2), next[i]);
    }
    ASSERT_EQ(next_ns(3), MIN_NS);
    done();
}

TEST(theft_that_was_worth_it_begins_anew)
{
    start(WORKERS);
    steals_in_vain(0, 2);
    steals_in_vain(0, 2);
    int64_t until = load_relaxed(&workers[2].shun.until);
    weft__theft_begins(&workers[1], &workers[2], 1, true);
    workers[1].theft.begun -= SECOND;
    weft__theft_ends(&workers[1]);
    ASSERT_EQ(next_ns(2), MIN_NS);
    ASSERT_EQ(load_relaxed(&workers[2].shun.until), until); /* what was said stands */
    weft__theft_ends(&workers[1]);                          /* it is judged once */
    ASSERT_EQ(next_ns(2), MIN_NS);
    done();
}

/* A task that talks to one that it has spawned lasts 100 ns; one that does nothing, 20 to 50 at a thief. */
TEST(theft_of_small_tasks_is_worth_it_and_of_empty_ones_is_not)
{
    static const struct {
        int64_t each_ns;
        bool shunned;
    } cases[] = {{100, false}, {50, true}};
    static const uint32_t count = 1000000000; /* so many that this test's own time is nothing beside theirs */
    for (uint32_t i = 0; i < 2; i++) {
        start(WORKERS);
        weft__theft_begins(&workers[1], &workers[2], count, true);
        workers[1].theft.begun -= (int64_t)count * cases[i].each_ns;
        weft__theft_ends(&workers[1]);
        ASSERT_EQ(is_shunned(2), cases[i].shunned);
        done();
    }
}

/* What a crowd has brought about lasts, whoever finds that worker's tasks too small meanwhile. */
TEST(theft_in_vain_ends_no_other_judgement)
{
    start(WORKERS);
    store_relaxed(&workers[2].shun.until, INT64_MAX);
    steals_in_vain(0, 2);
    ASSERT_EQ(load_relaxed(&workers[2].shun.until), INT64_MAX);
    done();
}

/* ---- crowds ---- */

TEST(theft_crowd_is_gathered_by_who_meets_at_that_place)
{
    start(WORKERS);
    fill(1, 0, 5);
    fill(2, 5, 3); /* of one that has stolen as well, and meets nobody */
    steals_from(1, 0);
    steals_from(2, 0);
    meets(1, place[0]);
    ASSERT_EQ(crowd_of(1), place[0]);
    ASSERT(is_shunned(0));
    ASSERT_EQ(queued(0), 0); /* nobody pushes to another's ring */

    weft__theft_tick(&workers[0]); /* it has met nobody */
    ASSERT_EQ(queued(1), 5);
    meets(0, place[1]); /* it has, but elsewhere */
    ASSERT_EQ(queued(1), 5);
    ASSERT_EQ(crowd_of(1), place[0]);

    meets(0, place[0]);
    ASSERT_EQ(queued(1), 0);
    ASSERT_EQ(queued(2), 3);
    ASSERT_EQ(crowd_of(1), 0);
    ASSERT_EQ(load_relaxed(&workers[0].counts.gathered), 5);
    for (uint32_t i = 0; i < 5; i++)
        ASSERT_PTR(weft__runq_take_oldest(&workers[0].ring), &tasks[i]);
    ASSERT(!is_shunned(1));
    ASSERT(!is_shunned(2));
    done();
}

/* Tasks that use two locks in turn: one of them in common is enough. */
TEST(theft_crowd_at_two_places_is_gathered_by_who_meets_at_one)
{
    start(WORKERS);
    fill(1, 0, 4);
    steals_from(1, 0);
    heres[1].met_at |= place[0];
    meets(1, place[1]);
    ASSERT_EQ(crowd_of(1), place[0] | place[1]);
    meets(0, place[0]);
    ASSERT_EQ(queued(0), 4);
    done();
}

/* Two crowds at once: each comes together by itself. */
TEST(theft_two_crowds_do_not_mix)
{
    start(WORKERS);
    fill(1, 0, 4);
    fill(3, 4, 4);
    steals_from(1, 0);
    steals_from(3, 2);
    meets(1, place[0]);
    meets(3, place[1]);
    meets(2, place[1]);
    ASSERT_EQ(queued(2), 4);
    ASSERT_EQ(queued(1), 4);
    meets(0, place[0]);
    ASSERT_EQ(queued(0), 4);
    ASSERT_EQ(queued(2), 4);
    ASSERT_PTR(weft__runq_take_oldest(&workers[2].ring), &tasks[4]);
    ASSERT_PTR(weft__runq_take_oldest(&workers[0].ring), &tasks[0]);
    done();
}

/* Whoever it was taken from: thieves that meet each other come together too, at the first of them,
 * and from there at one that has not stolen. It never goes back. */
TEST(theft_crowd_of_thieves_ends_at_one)
{
    start(WORKERS);
    fill(1, 0, 2);
    fill(3, 2, 2);
    steals_from(1, 0);
    steals_from(3, 0);
    meets(1, place[0]);
    meets(3, place[0]); /* the second of them finds the first, and leaves it alone */
    ASSERT_EQ(queued(1), 2);
    ASSERT_EQ(queued(3), 2);
    meets(1, place[0]);
    ASSERT_EQ(queued(1), 4);
    ASSERT(is_shunned(1));
    for (int i = 0; i < 3; i++)
        meets(3, place[0]);
    ASSERT_EQ(queued(1), 4);

    meets(2, place[0]); /* it has not stolen */
    ASSERT_EQ(queued(2), 4);
    for (int i = 0; i < 3; i++) {
        meets(1, place[0]);
        meets(3, place[0]);
    }
    ASSERT_EQ(queued(2), 4);
    ASSERT(is_shunned(2));
    done();
}

TEST(theft_crowd_shuns_for_longer_up_to_eight_milliseconds)
{
    start(WORKERS);
    steals_from(1, 0);
    for (int i = 0; i < 10; i++)
        meets(1, place[0]);
    ASSERT_EQ(next_ns(0), CROWD_MAX);
    weft__theft_ends(&workers[1]); /* it was judged */
    ASSERT_EQ(next_ns(0), CROWD_MAX);
    steals_in_vain(1, 0);
    ASSERT_EQ(next_ns(0), MAX_NS);
    done();
}

TEST(theft_crowd_is_over_when_its_thief_runs_dry)
{
    start(WORKERS);
    steals_from(1, 0);
    meets(1, place[0]);
    weft__theft_ends(&workers[1]);
    ASSERT_EQ(crowd_of(1), 0);
    meets(1, place[0]); /* what it has now is its own */
    ASSERT_EQ(crowd_of(1), 0);
    fill(1, 0, 3);
    meets(0, place[0]);
    ASSERT_EQ(queued(1), 3);
    done();
}

TEST(theft_crowd_is_over_when_nobody_comes_any_more)
{
    start(WORKERS);
    steals_from(1, 0);
    meets(1, place[0]);
    workers[1].theft.met_since += 3600 * SECOND; /* it has only just begun */
    weft__theft_tick(&workers[1]);
    ASSERT_EQ(crowd_of(1), place[0]);
    workers[1].theft.met_since -= 2 * 3600 * SECOND;
    weft__theft_tick(&workers[1]);
    ASSERT_EQ(crowd_of(1), 0);
    ASSERT_PTR(workers[1].theft.victim, &workers[0]); /* the theft goes on */
    done();
}

TEST(theft_crowd_is_told_anew_where_it_goes)
{
    start(WORKERS);
    steals_from(1, 0);
    meets(1, place[0]);
    meets(1, place[1]);
    ASSERT_EQ(crowd_of(1), place[1]);
    done();
}

/* Seldom is no crowd, however often. */
TEST(theft_meetings_that_are_far_apart_are_no_crowd)
{
    start(WORKERS);
    steals_from(1, 0);
    workers[1].theft.met_since -= 10 * SECOND;
    heres[1].met += 1000;
    heres[1].met_at |= place[0];
    weft__theft_tick(&workers[1]);
    ASSERT_EQ(crowd_of(1), 0);
    ASSERT(!is_shunned(0));
    done();
}

/* A ring that is full spills: all of both are there. */
TEST(theft_gathers_more_than_a_ring_holds)
{
    start(WORKERS);
    fill(0, 0, WEFT__RUNQ_CAP);
    fill(1, WEFT__RUNQ_CAP, WEFT__RUNQ_CAP);
    steals_from(1, 0);
    meets(1, place[0]);
    meets(0, place[0]);
    ASSERT_EQ(queued(1), 0);
    ASSERT_EQ(queued(0), 2 * WEFT__RUNQ_CAP);
    uint32_t seen = 0;
    for (struct weft_task *t;; seen++) {
        t = weft__runq_take_oldest(&workers[0].ring);
        if (!t) t = weft__overflow_refill(&workers[0].over, &workers[0].ring).run;
        if (!t) break;
        store_relaxed(&t->polls, load_relaxed(&t->polls) + 1);
    }
    ASSERT_EQ(seen, TASKS);
    for (uint32_t i = 0; i < TASKS; i++)
        ASSERT_EQ(load_relaxed(&tasks[i].polls), 1);
    done();
}

/* There is nobody to meet, but for threads that are no workers. */
TEST(theft_lone_worker_judges_nothing)
{
    start(1);
    fill(0, 0, 3);
    for (int i = 0; i < 3; i++)
        meets(0, place[0]);
    ASSERT_EQ(queued(0), 3);
    ASSERT(!is_shunned(0));
    ASSERT_EQ(crowd_of(0), 0);
    done();
}
