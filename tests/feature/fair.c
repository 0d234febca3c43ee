/* SPDX-License-Identifier: MIT
 *
 * Nobody starves: whatever tasks do that never wait, the others get their turns.
 */
#include "crew.h"
#include "test.h"

#include <errno.h>

static _Atomic bool over;
static _Atomic uint32_t turns;

static int yields_until_over(_Atomic uint32_t *mine)
{
    while (!load_relaxed(&over)) {
        fetch_add_relaxed(mine, 1);
        if (weft_yield() < 0) break;
    }
    return 0;
}

struct yields_too {
    WEFT_FRAME(int);
    _Atomic uint32_t *mine;
    struct weft_yield pause;
};
static weft_async(yields_too)
{
    weft_begin;
    while (!load_relaxed(&over)) {
        fetch_add_relaxed(f->mine, 1);
        weft_await(f->pause, weft_yield);
        if (f->pause.ret < 0) break;
    }
    weft_return(0);
    weft_end;
}

static int answers_one(void)
{
    return 1;
}

/* ---- two that wake each other ------------------------------------------------------------------------ */

struct table {
    pthread_mutex_t mutex; /* guards the rest */
    weft_waker player[2];  /* references, or none */
    int turn;
};

/* Plays until it is over: wakes the other, and waits to be woken. */
struct player {
    WEFT_FRAME(int);
    struct table *table;
    int side;
};
static weft_poll player_poll(void *frame, weft_cx *cx)
{
    struct player *f = frame;
    struct table *t = f->table;
    weft_waker other = {0};

    (void)weft_cx_cancelled(cx);
    pthread_mutex_lock(&t->mutex);
    if (t->player[f->side].word == 0) t->player[f->side] = weft_waker_ref(weft_cx_waker(cx));
    if (t->turn == f->side) {
        t->turn = 1 - f->side;
        other = t->player[t->turn];
        fetch_add_relaxed(&turns, 1);
    }
    pthread_mutex_unlock(&t->mutex);
    if (other.word) weft_waker_wake(other);
    return load_relaxed(&over) ? WEFT_READY : WEFT_PENDING;
}

static void ping_pong(struct crew *crew)
{
    struct table t = {.turn = 0};
    _Atomic uint32_t third = 0;
    int got;
    (void)crew;
    pthread_mutex_init(&t.mutex, NULL);
    store_relaxed(&over, false);
    store_relaxed(&turns, 0);
    weft_task *a = weft_spawn(player, .table = &t, .side = 0);
    weft_task *b = weft_spawn(player, .table = &t, .side = 1);
    weft_task *c = weft_spawn(yields_too, &third);
    CREW_UNTIL(load_relaxed(&third) > 100 && load_relaxed(&turns) > 100);
    for (int i = 0; i < 50; i++) /* and those from outside */
        ASSERT_OK(weft_join(weft_go(answers_one), &got));
    store_relaxed(&over, true);
    weft_waker_wake(t.player[0]);
    weft_waker_wake(t.player[1]);
    ASSERT_OK(weft_join(a, &got));
    ASSERT_OK(weft_join(b, &got));
    ASSERT_OK(weft_join(c, &got));
    weft_waker_unref(t.player[0]);
    weft_waker_unref(t.player[1]);
}

TEST(fair_two_that_wake_each_other_starve_nobody)
{
    crew_each(ping_pong);
}

/* ---- yielders and the inject queue ---------------------------------------------------------------------- */

static void outsiders_get_in(struct crew *crew)
{
    enum { COUNT = 8 };
    weft_task *task[COUNT];
    _Atomic uint32_t each[COUNT] = {0};
    int got;
    (void)crew;
    store_relaxed(&over, false);
    for (int i = 0; i < COUNT; i++)
        task[i] = i % 2 ? weft_go(yields_until_over, &each[i]) : weft_spawn(yields_too, &each[i]);
    for (uint64_t i = 0; i < test_scaled(400); i++) {
        ASSERT_OK(weft_join(weft_go(answers_one), &got));
        ASSERT_EQ(got, 1);
    }
    store_relaxed(&over, true);
    for (int i = 0; i < COUNT; i++)
        ASSERT_OK(weft_join(task[i], &got));
}

TEST(fair_yielders_do_not_starve_the_inject_queue)
{
    crew_each(outsiders_get_in);
}

/* ---- more than a ring holds -------------------------------------------------------------------------------- */

static bool all_above(_Atomic uint32_t *each, uint32_t count, uint32_t least)
{
    for (uint32_t i = 0; i < count; i++)
        if (load_relaxed(&each[i]) <= least) return false;
    return true;
}

static void spawns_yielders(weft_task **task, _Atomic uint32_t *each, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        task[i] = weft_spawn(yields_too, &each[i]);
}

static void thousands(struct crew *crew)
{
    uint32_t count = (uint32_t)test_scaled(10000);
    _Atomic uint32_t *each = calloc(count, sizeof(*each));
    weft_task **task = calloc(count, sizeof(*task));
    int got;
    (void)crew;
    store_relaxed(&over, false);
    /* By one task, on one worker: they overflow its ring. */
    ASSERT_OK(weft_join(weft_go(spawns_yielders, task, each, count), NULL));
    for (uint32_t least = 0; least < 5; least++)
        CREW_UNTIL(all_above(each, count, least));
    ASSERT_OK(weft_join(weft_go(answers_one), &got));
    store_relaxed(&over, true);
    for (uint32_t i = 0; i < count; i++)
        ASSERT_OK(weft_join(task[i], &got));
    free(each);
    free(task);
}

TEST(fair_ten_thousand_yielders_all_progress)
{
    crew_each(thousands);
}

/* ---- one that spawns without end ------------------------------------------------------------------------------ */

static int breeds(int *count)
{
    while (!load_relaxed(&over)) {
        int got;
        int r = weft_join(weft_go(answers_one), &got);
        if (r < 0) return r;
        ++*count;
    }
    return 0;
}

struct breeds_too {
    WEFT_FRAME(int);
    int got;
    struct weft_join join;
};
static weft_async(breeds_too)
{
    weft_begin;
    while (!load_relaxed(&over)) { /* inlined joins: it hardly ever leaves its poll */
        weft_await(f->join, weft_join, weft_go(answers_one), &f->got);
        if (f->join.ret < 0) weft_return(f->join.ret);
    }
    weft_return(0);
    weft_end;
}

static void breeders(struct crew *crew)
{
    int count = 0;
    int got;
    (void)crew;
    store_relaxed(&over, false);
    weft_task *a = weft_go(breeds, &count);
    weft_task *b[4];
    for (int i = 0; i < 4; i++)
        b[i] = weft_spawn(breeds_too);
    for (uint64_t i = 0; i < test_scaled(200); i++)
        ASSERT_OK(weft_join(weft_go(answers_one), &got));
    store_relaxed(&over, true);
    ASSERT_OK(weft_join(a, &got));
    for (int i = 0; i < 4; i++)
        ASSERT_OK(weft_join(b[i], &got));
}

TEST(fair_spawning_without_end_starves_nobody)
{
    crew_each(breeders);
}
