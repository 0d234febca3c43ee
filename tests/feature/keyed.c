/* SPDX-License-Identifier: MIT
 *
 * Keyed task sets on real runtimes: a key has one task, which is refused or replaced, asked to stop, and comes out with its key; many keys; and many tasks that
 * want one key at once.
 */
#include "base/fault.h"
#include "crew.h"
#include "pool.h"
#include "still.h"
#include "tasks.h"
#include "test.h"

#include <errno.h>
#include <string.h>
#include <weft/weft.h>

typedef WEFT_KEYED(uint64_t, int) by_number;

struct name {
    char text[20];
};
typedef WEFT_KEYED(struct name, int) by_name;

static _Atomic uint32_t over;

static int sleeps_for(int ms)
{
    int r = weft_sleep(weft_ms(ms));
    fetch_add_relaxed(&over, 1);
    return r < 0 ? r : ms;
}

struct sleeps_for_too {
    WEFT_FRAME(int);
    int ms;
    struct weft_sleep sleep;
};
static weft_async(sleeps_for_too)
{
    weft_begin;
    weft_await(f->sleep, weft_sleep, weft_ms(f->ms));
    fetch_add_relaxed(&over, 1);
    weft_return(f->sleep.ret < 0 ? f->sleep.ret : f->ms);
    weft_end;
}

/* ---- one key, one task ---------------------------------------------------------------------------------------- */

static int one_by_one(void)
{
    by_number set = {0};
    uint64_t key = 7;
    uint64_t other = 8;
    uint64_t got_key = 0;
    int got = 0;

    ASSERT(!weft_keyed_contains(&set, &key));
    ASSERT_EQ(weft_keyed_cancel(&set, &key), -ENOENT);
    ASSERT_OK(weft_keyed_go(&set, &key, sleeps_for, 20));
    ASSERT_EQ(weft_keyed_go(&set, &key, sleeps_for, 1), -EEXIST);
    ASSERT_EQ(weft_keyed_spawn(&set, &key, sleeps_for_too, 1), -EEXIST);
    ASSERT_OK(weft_keyed_spawn(&set, &other, sleeps_for_too, 10));
    ASSERT(weft_keyed_contains(&set, &key));
    ASSERT_EQ(weft_keyed_len(&set), 2);
    ASSERT_EQ(weft_keyed_try_join_next(&set, &got_key, &got), -EAGAIN);
    ASSERT_EQ(weft_keyed_join_next(&set, &got_key, &got), 1);
    ASSERT_EQ(got_key, 8);
    ASSERT_EQ(got, 10);
    ASSERT_OK(weft_sleep(weft_ms(20)));
    ASSERT(weft_keyed_contains(&set, &key)); /* it has ended, and was not taken out */
    ASSERT_EQ(weft_keyed_go(&set, &key, sleeps_for, 1), -EEXIST);
    ASSERT_EQ(weft_keyed_join_next(&set, &got_key, &got), 1);
    ASSERT_EQ(got_key, 7);
    ASSERT(!weft_keyed_contains(&set, &key));
    ASSERT_OK(weft_keyed_go(&set, &key, sleeps_for, 1000));
    ASSERT_OK(weft_keyed_cancel(&set, &key));
    ASSERT_EQ(weft_keyed_join_next(&set, &got_key, &got), 1);
    ASSERT_EQ(got, -ECANCELED);
    ASSERT_EQ(weft_keyed_join_next(&set, &got_key, &got), 0);
    weft_keyed_done(&set);
    return 0;
}

TEST(keyed_has_one_task_for_a_key)
{
    each_paused(one_by_one);
}

/* ---- replaced -------------------------------------------------------------------------------------------------- */

static int replaced(void)
{
    by_number set = {0};
    uint64_t key = 1;
    uint64_t got_key = 0;
    int got = 0;

    store_relaxed(&over, 0);
    ASSERT_OK(weft_keyed_replace_go(&set, &key, sleeps_for, 100)); /* there was none */
    ASSERT_OK(weft_keyed_replace_spawn(&set, &key, sleeps_for_too, 50));
    ASSERT_EQ(weft_keyed_join_next(&set, &got_key, &got), 1); /* of the first nothing is heard */
    ASSERT_EQ(got, 50);
    ASSERT_EQ(load_relaxed(&over), 2);
    ASSERT_EQ(weft_keyed_join_next(&set, &got_key, &got), 0);

    ASSERT_OK(weft_keyed_go(&set, &key, sleeps_for, 1));
    ASSERT_OK(weft_sleep(weft_ms(5)));
    ASSERT_OK(weft_keyed_replace_go(&set, &key, sleeps_for, 2)); /* one that has ended */
    ASSERT_EQ(weft_keyed_len(&set), 1);
    ASSERT_EQ(weft_keyed_join_next(&set, NULL, &got), 1);
    ASSERT_EQ(got, 2);
    ASSERT_EQ(weft_keyed_join_next(&set, &got_key, NULL), 0);
    weft_keyed_done(&set);
    return 0;
}

TEST(keyed_replaces_the_old_one)
{
    each_paused(replaced);
}

/* A spawn is under way, its argument replaces its key: the one that replaced stays, and the one that comes late is the one that was replaced. */
static int replaced_on_its_way(by_number *set, uint64_t key, bool stackless)
{
    if (stackless) {
        ASSERT_OK(weft_keyed_replace_spawn(set, &key, sleeps_for_too, 30));
    } else {
        ASSERT_OK(weft_keyed_replace_go(set, &key, sleeps_for, 30));
    }
    return 20;
}

static int comes_late(void)
{
    by_number set = {0};
    uint64_t key = 1;
    uint64_t got_key = 0;
    int got = 0;

    for (int kind = 0; kind < 2; kind++) {
        store_relaxed(&over, 0);
        if (kind) {
            ASSERT_OK(weft_keyed_go(&set, &key, sleeps_for, replaced_on_its_way(&set, key, kind)));
        } else {
            ASSERT_OK(
                weft_keyed_spawn(&set, &key, sleeps_for_too, replaced_on_its_way(&set, key, kind)));
        }
        ASSERT(weft_keyed_contains(&set, &key));
        ASSERT_EQ(weft_keyed_go(&set, &key, sleeps_for, 1), -EEXIST);
        ASSERT_EQ(weft_keyed_join_next(&set, &got_key, &got), 1);
        ASSERT_EQ(got, 30);
        ASSERT_EQ(load_relaxed(&over), 2);
        ASSERT_EQ(weft_keyed_len(&set), 0);
        ASSERT(!weft_keyed_contains(&set, &key));
    }
    weft_keyed_done(&set);
    return 0;
}

TEST(keyed_spawn_never_replaces)
{
    each_paused(comes_late);
}

/* ---- many keys, of bytes ---------------------------------------------------------------------------------------- */

#define MANY 3000

static int many_names(void)
{
    by_name set = {0};
    int count = (int)test_scaled(MANY);
    static bool seen[MANY];
    struct name name;
    int got;
    int r;

    memset(seen, 0, sizeof(seen));
    for (int i = 0; i < count; i++) {
        name = (struct name){0};
        (void)snprintf(name.text, sizeof(name.text), "session %d", i);
        ASSERT_OK(weft_keyed_spawn(&set, &name, answers_too, i));
        ASSERT_EQ(weft_keyed_spawn(&set, &name, answers_too, i), -EEXIST);
    }
    ASSERT_EQ(weft_keyed_len(&set), count);
    while ((r = weft_keyed_join_next(&set, &name, &got)) > 0) {
        char text[20];
        (void)snprintf(text, sizeof(text), "session %d", got);
        ASSERT_STR(name.text, text);
        ASSERT(!seen[got]);
        seen[got] = true;
        ASSERT(!weft_keyed_contains(&set, &name));
    }
    ASSERT_OK(r);
    for (int i = 0; i < count; i++)
        ASSERT(seen[i]);
    weft_keyed_done(&set);
    return 0;
}

TEST(keyed_holds_many_names)
{
    each_paused(many_names);
}

#ifdef WEFT_FAULTS
static void without_memory(struct crew *crew)
{
    by_number set = {0};
    uint64_t sum = 0;
    uint64_t key;
    int got;
    (void)crew;
    weft__fault_arm(WEFT__FAULT_ALLOC, 1, UINT32_MAX, -ENOMEM); /* the table stays one list */
    for (key = 0; key < 40; key++)
        ASSERT_OK(weft_keyed_spawn(&set, &key, answers_too, (int)key));
    weft__fault_reset();
    while (weft_keyed_join_next(&set, &key, &got) > 0) {
        ASSERT_EQ(key, got);
        sum += key;
    }
    ASSERT_EQ(sum, 39 * 40 / 2);
    weft_keyed_done(&set);
}

TEST(keyed_table_that_cannot_grow)
{
    struct crew crew;
    crew_start(&crew, 1);
    /* a first task, so that its slab is there */
    ASSERT_OK(weft_join(weft_spawn(answers_too, 1), NULL));
    without_memory(&crew);
    crew_stop(&crew);
}
#endif

/* ---- all of them -------------------------------------------------------------------------------------------------- */

struct ends_all {
    WEFT_FRAME(int);
    by_number set;
    uint64_t key;
    int got;
    struct weft_keyed_join_next next;
    struct weft_set_stop stop;
    struct weft_set_join join;
};
static weft_async(ends_all)
{
    weft_begin;
    for (f->key = 0; f->key < 20; f->key++)
        ASSERT_OK(weft_keyed_spawn(&f->set, &f->key, sleeps_for_too, 1 + (int)f->key));
    weft_await(f->next, weft_keyed_join_next, &f->set, &f->key, &f->got);
    ASSERT_EQ(f->next.ret, 1);
    ASSERT_EQ(f->key, 0);
    ASSERT_EQ(f->got, 1);
    f->key = 5;
    weft_await(f->stop, weft_set_stop, weft_set_of(&f->set));
    ASSERT_OK(f->stop.ret);
    ASSERT(!weft_keyed_contains(&f->set, &f->key));
    ASSERT_OK(weft_keyed_spawn(&f->set, &f->key, sleeps_for_too, 3));
    weft_await(f->join, weft_set_join, weft_set_of(&f->set));
    ASSERT_OK(f->join.ret);
    ASSERT_EQ(weft_keyed_len(&f->set), 0);
    weft_keyed_done(&f->set);
    weft_return(0);
    weft_end;
}

static int stackless_ends_all(void)
{
    return weft_run(ends_all);
}

TEST(keyed_is_stopped_and_joined_as_a_set)
{
    each_paused(stackless_ends_all);
}

static int calls_for_all(void)
{
    by_number set = {0};
    for (uint64_t key = 0; key < 100; key++)
        ASSERT_OK(weft_keyed_go(&set, &key, sleeps_for, 1000));
    weft_keyed_cancel_all(&set);
    ASSERT_OK(weft_keyed_join(&set));
    for (uint64_t key = 0; key < 100; key++)
        ASSERT_OK(weft_keyed_go(&set, &key, sleeps_for, 1000));
    ASSERT_OK(weft_keyed_stop(&set));
    weft_keyed_done(&set);
    weft_keyed_done((by_number *)NULL);
    return 0;
}

TEST(keyed_cancels_all)
{
    each_paused(calls_for_all);
}

/* ---- many want one key ----------------------------------------------------------------------------------------------- */

struct rush {
    by_number set;
    _Atomic uint64_t spawned;
    _Atomic uint64_t refused;
    _Atomic uint64_t ran;
};
static struct rush *rush;

static int runs_alone(int with)
{
    fetch_add_relaxed(&rush->ran, 1);
    (void)weft_yield();
    return with;
}

static int rushes(int number)
{
    uint64_t random = pool_seed((uint64_t)number + 50);
    for (uint64_t n = test_scaled(400); n > 0; n--) {
        uint64_t key = pool_random(&random, 4);
        bool replaces = pool_random(&random, 2);
        int r = replaces ? weft_keyed_replace_go(&rush->set, &key, runs_alone, (int)key)
                         : weft_keyed_go(&rush->set, &key, runs_alone, (int)key);
        if (r == 0) fetch_add_relaxed(&rush->spawned, 1);
        if (r < 0) ASSERT_EQ(r, -EEXIST);
        if (pool_random(&random, 4) == 0) (void)weft_keyed_cancel(&rush->set, &key);
        if (pool_random(&random, 3) == 0) {
            int got;
            uint64_t which;
            r = weft_keyed_try_join_next(&rush->set, &which, &got);
            if (r > 0) ASSERT_EQ(which, got);
        }
    }
    return 0;
}

/* Every task that was spawned runs; what comes out has the right key; nothing is left. */
static void rush_for_keys(struct crew *crew)
{
    struct rush r = {0};
    weft_task *task[6];
    uint64_t key;
    int got;
    (void)crew;

    rush = &r;
    for (int i = 0; i < 6; i++)
        task[i] = weft_go(rushes, i);
    for (int i = 0; i < 6; i++)
        ASSERT_OK(weft_join(task[i], &got));
    while (weft_keyed_join_next(&r.set, &key, &got) > 0)
        ASSERT_EQ(key, got);
    ASSERT_EQ(load_relaxed(&r.ran), load_relaxed(&r.spawned));
    for (key = 0; key < 4; key++)
        ASSERT(!weft_keyed_contains(&r.set, &key));
    weft_keyed_done(&r.set);
}

TEST(keyed_many_want_one_key)
{
    crew_each(rush_for_keys);
}

TEST(keyed_without_a_runtime)
{
    by_number set = {0};
    uint64_t key = 3;
    ASSERT_EQ(weft_keyed_go(&set, &key, answers, 1), -ENXIO);
    ASSERT(!weft_keyed_contains(&set, &key));
    ASSERT_EQ(weft_keyed_replace_spawn(&set, &key, answers_too, 1), -ENXIO);
    ASSERT_EQ(weft_keyed_len(&set), 0);
    ASSERT_EQ(weft_keyed_go((by_number *)NULL, &key, answers, 1), -EINVAL);
    weft_keyed_done(&set);
}
