/* SPDX-License-Identifier: MIT
 *
 * Task sets on real runtimes: members of both kinds, taken out in the order of their ends, by fibers, stackless tasks and
 * threads; limits, cancel, join, stop, detach; a large set; and what misuse is told.
 */
#include "crew.h"
#include "death.h"
#include "tasks.h"
#include "test.h"

#include <errno.h>
#include <string.h>
#include <weft/weft.h>

typedef WEFT_SET(int) int_set;

static _Atomic uint32_t begun;
static _Atomic uint32_t over;
static _Atomic uint32_t at_once;
static _Atomic uint32_t most;

static int sleeps_for(int ms)
{
    int r = weft_sleep(weft_ms(ms));
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
    weft_return(f->sleep.ret < 0 ? f->sleep.ret : f->ms);
    weft_end;
}

static int waits_for(weft_token *token)
{
    fetch_add_relaxed(&begun, 1);
    int r = weft_token_wait(token);
    fetch_add_relaxed(&over, 1);
    return r;
}

/* ---- order ------------------------------------------------------------------------------------------ */

static void each_paused(int (*body)(void))
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        int r = 1;
        weft_rt_opts opts = {.workers = crew_sizes[i], .seed = test_seed() | 1, .paused = true};
        crew_start_with(&crew, &opts);
        ASSERT_OK(weft_join(weft_go(body), &r));
        ASSERT_OK(r);
        crew_stop(&crew);
    }
}

/* Both kinds; on a clock that stands the order of their ends is that of their times. */
static int in_order_of_their_ends(void)
{
    static const int ms[] = {40, 10, 30, 20, 60, 50};
    int_set set = {0};
    int got = 0;

    for (int i = 0; i < 6; i += 2) {
        ASSERT_OK(weft_set_go(&set, sleeps_for, ms[i]));
        ASSERT_OK(weft_set_spawn(&set, sleeps_for_too, ms[i + 1]));
    }
    ASSERT_EQ(weft_set_len(&set), 6);
    ASSERT_EQ(weft_set_try_join_next(&set, &got), -EAGAIN);
    for (int i = 1; i <= 6; i++) {
        ASSERT_EQ(weft_set_join_next(&set, &got), 1);
        ASSERT_EQ(got, 10 * i);
    }
    ASSERT_EQ(weft_set_join_next(&set, &got), 0);
    ASSERT_EQ(weft_set_try_join_next(&set, &got), 0);
    ASSERT_EQ(weft_set_len(&set), 0);
    weft_set_done(&set);
    return 0;
}

TEST(set_members_come_out_in_the_order_of_their_ends)
{
    each_paused(in_order_of_their_ends);
}

struct takes_all {
    WEFT_FRAME(int);
    int_set set;
    int i, got;
    struct weft_set_join_next next;
};
static weft_async(takes_all)
{
    weft_begin;
    for (f->i = 5; f->i > 0; f->i--)
        ASSERT_OK(weft_set_try_spawn(&f->set, sleeps_for_too, .ms = f->i));
    ASSERT_OK(weft_set_try_go(&f->set, sleeps_for, 6));
    for (f->i = 1;; f->i++) {
        weft_await(f->next, weft_set_join_next, &f->set, &f->got);
        if (f->next.ret <= 0) break;
        ASSERT_EQ(f->got, f->i);
    }
    ASSERT_OK(f->next.ret);
    ASSERT_EQ(f->i, 7);
    weft_set_done(&f->set);
    weft_return(0);
    weft_end;
}

static int stackless_takes(void)
{
    return weft_run(takes_all);
}

TEST(set_is_used_by_a_stackless_task)
{
    each_paused(stackless_takes);
}

/* ---- results of any type ------------------------------------------------------------------------------ */

static char *gives_text(char *text)
{
    return text;
}

static short gives_short(void)
{
    return 3;
}

static void gives_nothing(void)
{
}

static void mixed(struct crew *crew)
{
    weft_set set = {0};
    weft_task *task;
    uint64_t ids[3];
    char *text = NULL;
    char three[] = "three";
    short number = 0;
    int wrong = 0;
    (void)crew;

    ASSERT_OK(weft_set_go(&set, gives_short));
    ASSERT_EQ(weft_set_join_next(&set, &wrong), -EINVAL); /* it is still there */
    ASSERT_EQ(weft_set_len(&set), 1);
    ASSERT_EQ(weft_set_join_next(&set, &number), 1);
    ASSERT_EQ(number, 3);
    ASSERT_OK(weft_set_go(&set, gives_text, three));
    ASSERT_EQ(weft_set_next(&set, &task), 1);
    ids[0] = weft_task_id(task);
    ASSERT_NE(ids[0], 0);
    ASSERT_STR(weft_task_name(task), "gives_text");
    ASSERT(weft_done(task));
    ASSERT_OK(weft_join(task, &text));
    ASSERT_STR(text, "three");
    ASSERT_OK(weft_set_go_as((.name = "nothing"), &set, gives_nothing));
    ASSERT_EQ(weft_set_next(&set, &task), 1);
    ASSERT_STR(weft_task_name(task), "nothing");
    ASSERT_OK(weft_detach(task));
    ASSERT_OK(weft_set_go(&set, gives_nothing));
    ASSERT_EQ(weft_set_join_next(&set, NULL), 1);
    ASSERT_EQ(weft_set_next(&set, &task), 0);
    weft_set_done(&set);
}

TEST(set_of_different_tasks)
{
    crew_each(mixed);
}

/* A frame over 1 KiB is boxed; its member lies in the box. */
struct large_one {
    WEFT_FRAME(int);
    int value;
    char room[3000];
    struct weft_yield pause;
};
static weft_async(large_one)
{
    weft_begin;
    memset(f->room, 7, sizeof(f->room));
    weft_await(f->pause, weft_yield);
    weft_return(f->value + f->room[2999]);
    weft_end;
}

static void boxed(struct crew *crew)
{
    int_set set = {0};
    int sum = 0;
    int got;
    (void)crew;
    for (int i = 0; i < 50; i++)
        ASSERT_OK(weft_set_spawn(&set, large_one, .value = i));
    while (weft_set_join_next(&set, &got) > 0)
        sum += got;
    ASSERT_EQ(sum, 49 * 50 / 2 + 50 * 7);
    weft_set_done(&set);
}

TEST(set_holds_tasks_with_large_frames)
{
    crew_each(boxed);
}

/* ---- many, from everywhere ----------------------------------------------------------------------------- */

#define TAKERS 4

struct field {
    int_set set;
    _Atomic uint64_t sum;
    _Atomic uint32_t taken;
    uint32_t count;
};

static int spawns(struct field *field, int from)
{
    for (uint32_t i = 0; i < field->count; i++) {
        int r = i % 2 ? weft_set_go(&field->set, answers, from + (int)i)
                      : weft_set_spawn(&field->set, answers_too, from + (int)i);
        ASSERT_OK(r);
    }
    return -1;
}

static void took(struct field *field, int got)
{
    if (got < 0) return; /* a spawner */
    fetch_add_relaxed(&field->sum, (uint64_t)got);
    fetch_add_relaxed(&field->taken, 1);
}

static int takes(struct field *field)
{
    int got;
    int r;
    while ((r = weft_set_join_next(&field->set, &got)) > 0)
        took(field, got);
    return r;
}

static void *takes_on_thread(void *arg)
{
    ASSERT_OK(takes(arg));
    return NULL;
}

struct takes_too {
    WEFT_FRAME(int);
    struct field *field;
    int got;
    struct weft_set_join_next next;
};
static weft_async(takes_too)
{
    weft_begin;
    for (;;) {
        weft_await(f->next, weft_set_join_next, &f->field->set, &f->got);
        if (f->next.ret <= 0) weft_return(f->next.ret);
        took(f->field, f->got);
    }
    weft_end;
}

/* Members spawn members; fibers, stackless tasks and a thread take them out. Each comes out once, and all takers hear of the end. */
static void from_everywhere(struct crew *crew)
{
    struct field field = {.count = (uint32_t)test_scaled(500)};
    weft_task *taker[2 * TAKERS];
    pthread_t thread;
    uint64_t all = 0;
    (void)crew;

    for (int i = 0; i < 3; i++) {
        ASSERT_OK(weft_set_go(&field.set, spawns, &field, i * 10000));
        for (uint32_t k = 0; k < field.count; k++)
            all += (uint64_t)i * 10000 + k;
    }
    for (int i = 0; i < TAKERS; i++) {
        taker[2 * i] = weft_go(takes, &field);
        taker[2 * i + 1] = weft_spawn(takes_too, &field);
    }
    ASSERT_OK(pthread_create(&thread, NULL, takes_on_thread, &field));
    for (int i = 0; i < 2 * TAKERS; i++) {
        int r = 1;
        ASSERT_OK(weft_join(taker[i], &r));
        ASSERT_OK(r);
    }
    ASSERT_OK(pthread_join(thread, NULL));
    ASSERT_EQ(load_relaxed(&field.taken), 3 * field.count);
    ASSERT_EQ(load_relaxed(&field.sum), all);
    weft_set_done(&field.set);
}

TEST(set_filled_and_emptied_from_everywhere)
{
    crew_each(from_everywhere);
}

static void hundred_thousand(struct crew *crew)
{
    int_set set = {0};
    int count = (int)test_scaled(100000);
    int64_t sum = 0;
    int got;
    (void)crew;
    for (int i = 0; i < count; i++)
        ASSERT_OK(weft_set_spawn(&set, answers_too, i));
    while (weft_set_join_next(&set, &got) > 0)
        sum += got;
    ASSERT_EQ(sum, (int64_t)count * (count - 1) / 2);
    for (int i = 0; i < count; i++)
        ASSERT_OK(weft_set_spawn(&set, waits));
    weft_set_cancel(&set);
    ASSERT_OK(weft_set_join(&set));
    weft_set_done(&set);
}

TEST_WITH(set_of_a_hundred_thousand, .timeout_s = 300)
{
    crew_each(hundred_thousand);
}

/* ---- limit --------------------------------------------------------------------------------------------- */

static int counts_itself(void)
{
    uint32_t now = fetch_add_relaxed(&at_once, 1) + 1;
    uint32_t seen = load_relaxed(&most);
    while (now > seen && !cas_relaxed(&most, &seen, now)) {
    }
    for (int i = 0; i < 3; i++)
        (void)weft_yield();
    fetch_sub_relaxed(&at_once, 1);
    return 1;
}

struct spawns_within {
    WEFT_FRAME(int);
    int_set *set;
    int i, count;
    struct weft_set_reserve place;
};
static weft_async(spawns_within)
{
    weft_begin;
    for (f->i = 0; f->i < f->count; f->i++) {
        weft_await(f->place, weft_set_reserve, f->set);
        if (f->place.ret < 0) weft_return(f->place.ret);
        if (f->i % 5 == 4) {
            weft_set_permit_drop(f->set);
        } else {
            ASSERT_OK(weft_set_permit_go(f->set, counts_itself));
        }
    }
    weft_return(0);
    weft_end;
}

static int calls_within(int_set *set, int count)
{
    for (int i = 0; i < count; i++) {
        int r = weft_set_go(set, counts_itself);
        if (r < 0) return r;
    }
    return 0;
}

static void limited(struct crew *crew)
{
    int_set set = {.limit = 3};
    weft_task *task[4];
    int count = 0;
    int one;
    (void)crew;

    store_relaxed(&at_once, 0);
    store_relaxed(&most, 0);
    for (int i = 0; i < 4; i++)
        task[i] = i % 2 ? weft_go(calls_within, &set, 100)
                        : weft_spawn(spawns_within, .set = &set, .count = 100);
    for (int i = 0; i < 4; i++) {
        int r = 1;
        ASSERT_OK(weft_join(task[i], &r));
        ASSERT_OK(r);
    }
    while (weft_set_join_next(&set, &one) > 0)
        count += one;
    ASSERT_EQ(count, 2 * 100 + 2 * 80);
    ASSERT_LE(load_relaxed(&most), 3);
    weft_set_done(&set);
}

TEST(set_never_runs_more_than_its_limit)
{
    crew_each(limited);
}

static int full_set(void)
{
    int_set set = {.limit = 2};
    weft_token stop = {0};
    int got;
    int r = 0;

    ASSERT_OK(weft_set_try_go(&set, waits_for, &stop));
    ASSERT_OK(weft_set_try_go(&set, waits_for, &stop));
    ASSERT_EQ(weft_set_try_go(&set, waits_for, &stop), -EAGAIN);
    ASSERT_EQ(weft_set_try_spawn(&set, waits), -EAGAIN);
    WEFT_TIMEOUT(weft_ms(5))
    r = weft_set_go(&set, waits_for, &stop); /* given up: it took nothing */
    ASSERT_EQ(r, -ETIME);
    ASSERT_EQ(weft_set_len(&set), 2);
    ASSERT_EQ(weft_set_running(&set), 2);
    (void)weft_token_cancel(&stop);
    ASSERT_OK(weft_set_go(&set, waits_for, &stop)); /* waits until one of them has ended */
    while ((r = weft_set_join_next(&set, &got)) > 0)
        ASSERT_OK(got);
    ASSERT_OK(r);
    weft_set_done(&set);
    weft_token_done(&stop);
    return 0;
}

TEST(set_that_is_full_refuses_or_waits)
{
    each_paused(full_set);
}

/* ---- all at once ---------------------------------------------------------------------------------------- */

static int cancels_all(void)
{
    int_set set = {0};
    weft_token never = {0};
    int got;

    for (int i = 0; i < 200; i++)
        ASSERT_OK(i % 2 ? weft_set_go(&set, waits_for, &never) : weft_set_spawn(&set, waits));
    weft_set_cancel(&set);
    for (int i = 0; i < 200; i++) {
        ASSERT_EQ(weft_set_join_next(&set, &got), 1);
        ASSERT_EQ(got, -ECANCELED);
    }
    ASSERT_OK(weft_set_go(&set, sleeps_for, 1)); /* whoever comes later is not cancelled */
    ASSERT_EQ(weft_set_join_next(&set, &got), 1);
    ASSERT_EQ(got, 1);
    weft_set_done(&set);
    weft_token_done(&never);
    return 0;
}

/* Some have ended by then: all come out, those with what they had. */
static int cancels_some(void)
{
    int_set set = {0};
    int got;
    int cancelled = 0;

    for (int i = 1; i <= 10; i++)
        ASSERT_OK(weft_set_spawn(&set, sleeps_for_too, i));
    ASSERT_OK(weft_sleep(weft_ms(5) + 1));
    weft_set_cancel(&set);
    ASSERT_EQ(weft_set_len(&set), 10);
    for (int i = 1; i <= 10; i++) {
        ASSERT_EQ(weft_set_join_next(&set, &got), 1);
        if (got < 0) cancelled++;
        if (i <= 5) ASSERT_EQ(got, i);
    }
    ASSERT_EQ(cancelled, 5);
    weft_set_done(&set);
    return 0;
}

TEST(set_cancel_leaves_results_that_stand)
{
    each_paused(cancels_some);
}

/* Every other one is cancelled by its reference, and all are known by their ids. */
static int refers_to_each(void)
{
    int_set set = {0};
    weft_task *ref[16];
    weft_task *task;
    bool seen[16] = {false};
    int got;

    for (int i = 0; i < 16; i++) {
        ASSERT_OK(i % 4 < 2 ? weft_set_go_ref(&ref[i], &set, sleeps_for, i)
                            : weft_set_try_spawn_ref(&ref[i], &set, sleeps_for_too, i));
        if (i % 2) weft_cancel(ref[i]);
    }
    while (weft_set_next(&set, &task) > 0) {
        int which = 0;
        while (weft_task_id(ref[which]) != weft_task_id(task))
            which++;
        ASSERT(!seen[which]);
        seen[which] = true;
        ASSERT_OK(weft_wait(ref[which])); /* it has ended */
        ASSERT_OK(weft_join(task, &got));
        ASSERT_EQ(got, which % 2 ? -ECANCELED : which);
    }
    for (int i = 0; i < 16; i++) {
        ASSERT(seen[i]);
        weft_unref(ref[i]);
    }
    weft_set_done(&set);
    return 0;
}

TEST(set_gives_references_to_members)
{
    each_paused(refers_to_each);
}

/* Taken out when the runtime is gone: what stop has cancelled. */
TEST(set_outlives_its_runtime)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        int_set set = {0};
        int got = 0;
        int count = 0;
        crew_start(&crew, crew_sizes[i]);
        for (int n = 0; n < 20; n++)
            ASSERT_OK(weft_set_spawn(&set, waits));
        crew_stop(&crew);
        ASSERT_EQ(weft_set_running(&set), 0);
        while (weft_set_join_next(&set, &got) > 0) {
            ASSERT_EQ(got, -ECANCELED);
            count++;
        }
        ASSERT_EQ(count, 20);
        weft_set_done(&set);
    }
}

TEST(set_cancel_asks_all)
{
    each_paused(cancels_all);
}

static int fails_after(int ms, int with)
{
    int r = weft_sleep(weft_ms(ms));
    return r < 0 ? r : with;
}

static int joins_all(void)
{
    int_set set = {0};

    ASSERT_OK(weft_set_join(&set)); /* empty */
    for (int i = 0; i < 300; i++)
        ASSERT_OK(weft_set_go(&set, sleeps_for, i));
    ASSERT_OK(weft_set_join(&set));
    ASSERT_EQ(weft_set_len(&set), 0);
    ASSERT_OK(weft_set_go(&set, sleeps_for, 3));
    ASSERT_OK(weft_set_go(&set, fails_after, 2, -EIO));
    ASSERT_EQ(weft_set_join(&set), -EIO); /* the failure, when all are over */
    weft_set_done(&set);
    return 0;
}

TEST(set_join_waits_for_all)
{
    each_paused(joins_all);
}

/* Told to stop, a join passes that on with its reason, and waits. */
static int deadline_on_join(void)
{
    int_set set = {0};
    weft_token never = {0};
    int r = 0;

    store_relaxed(&over, 0);
    for (int i = 0; i < 10; i++)
        ASSERT_OK(weft_set_go(&set, waits_for, &never));
    WEFT_TIMEOUT(weft_ms(5)) r = weft_set_join(&set);
    ASSERT_EQ(r, -ETIME);
    ASSERT_EQ(load_relaxed(&over), 10);
    ASSERT_EQ(weft_set_len(&set), 0);
    weft_set_done(&set);
    weft_token_done(&never);
    return 0;
}

TEST(set_join_passes_a_deadline_on)
{
    each_paused(deadline_on_join);
}

/* A member that is told to stop spawns another: it is born cancelled. */
static int spawns_when_stopped(int_set *set, weft_token *never)
{
    int r = weft_token_wait(never);
    ASSERT_OK(weft_set_try_go(set, waits_for, never));
    return r;
}

static int stops_all(void)
{
    int_set set = {0};
    weft_token never = {0};

    store_relaxed(&over, 0);
    for (int i = 0; i < 100; i++)
        ASSERT_OK(weft_set_go(&set, spawns_when_stopped, &set, &never));
    ASSERT_OK(weft_set_stop(&set));
    ASSERT_EQ(load_relaxed(&over), 100);
    ASSERT_EQ(weft_set_len(&set), 0);
    int got;
    ASSERT_OK(weft_set_go(&set, sleeps_for, 2)); /* it can be used again */
    ASSERT_EQ(weft_set_join_next(&set, &got), 1);
    ASSERT_EQ(got, 2);
    weft_set_done(&set);
    weft_token_done(&never);
    return 0;
}

TEST(set_stop_leaves_nobody)
{
    each_paused(stops_all);
}

struct all_stackless {
    WEFT_FRAME(int);
    int_set set;
    int i;
    struct weft_set_join join;
    struct weft_set_stop stop;
    struct weft_set_detach detach;
};
static weft_async(all_stackless)
{
    weft_begin;
    for (f->i = 0; f->i < 20; f->i++)
        ASSERT_OK(weft_set_try_spawn(&f->set, sleeps_for_too, f->i));
    weft_await(f->join, weft_set_join, &f->set);
    ASSERT_OK(f->join.ret);
    for (f->i = 0; f->i < 20; f->i++)
        ASSERT_OK(weft_set_try_spawn(&f->set, waits));
    weft_await(f->stop, weft_set_stop, &f->set);
    ASSERT_OK(f->stop.ret);
    for (f->i = 0; f->i < 20; f->i++)
        ASSERT_OK(weft_set_try_spawn(&f->set, sleeps_for_too, f->i));
    weft_await(f->detach, weft_set_detach, &f->set);
    ASSERT_OK(f->detach.ret);
    weft_set_done(&f->set);
    weft_return(0);
    weft_end;
}

static int stackless_ends_all(void)
{
    return weft_run(all_stackless);
}

TEST(set_join_stop_and_detach_are_awaited)
{
    each_paused(stackless_ends_all);
}

/* Members that were let go live on without the set, at whatever moment of their lives it happens. */
static void let_go(struct crew *crew)
{
    weft_token stop = {0};
    (void)crew;
    store_relaxed(&over, 0);
    for (uint64_t round = test_scaled(50); round > 0; round--) {
        int_set *set = calloc(1, sizeof(*set));
        for (int i = 0; i < 20; i++)
            ASSERT_OK(i % 2 ? weft_set_go(set, waits_for, &stop)
                            : weft_set_spawn(set, answers_too, i));
        ASSERT_OK(weft_set_detach(set));
        ASSERT_EQ(weft_set_len(set), 0);
        weft_set_done(set);
        memset(set, 0x5a, sizeof(*set));
        free(set);
    }
    (void)weft_token_cancel(&stop);
    CREW_UNTIL(load_relaxed(&over) == 10 * test_scaled(50));
    weft_stats stats;
    do {
        weft_rt_stats(crew->rt, &stats);
    } while (stats.completed < 20 * test_scaled(50));
    weft_token_done(&stop);
}

TEST(set_detach_lets_all_go)
{
    crew_each(let_go);
}

/* ---- select ------------------------------------------------------------------------------------------------ */

static int in_a_select(void)
{
    int_set set = {0};
    int got = 0;
    struct weft_set_join_next next;
    struct weft_sleep idle;

    ASSERT_OK(weft_set_go(&set, sleeps_for, 10));
    ASSERT_EQ(weft_select(weft_arm(next, weft_set_join_next, &set, &got),
                          weft_arm(idle, weft_sleep, weft_ms(5))),
              1);
    ASSERT_EQ(next.ret, -ECANCELED);
    ASSERT_EQ(weft_set_len(&set), 1);
    ASSERT_EQ(weft_select(weft_arm(next, weft_set_join_next, &set, &got),
                          weft_arm(idle, weft_sleep, weft_ms(50))),
              0);
    ASSERT_EQ(next.ret, 1);
    ASSERT_EQ(got, 10);
    ASSERT_EQ(weft_select(weft_arm(next, weft_set_join_next, &set, &got), weft_otherwise), 0);
    ASSERT_EQ(next.ret, 0);
    weft_set_done(&set);
    return 0;
}

TEST(set_next_is_an_arm)
{
    each_paused(in_a_select);
}

/* ---- refused, misused --------------------------------------------------------------------------------------- */

TEST(set_spawn_without_a_runtime)
{
    int_set set = {.limit = 1};
    ASSERT_EQ(weft_set_go(&set, answers, 1), -ENXIO);
    ASSERT_EQ(weft_set_try_spawn(&set, answers_too, 1), -ENXIO);
    ASSERT_EQ(weft_set_len(&set), 0); /* the place was given back */
    ASSERT_EQ(weft_set_go((int_set *)NULL, answers, 1), -EINVAL);
    weft_set_done(&set);
    weft_set_done((int_set *)NULL);
}

static void refused(struct crew *crew)
{
    int_set set = {0};
    (void)crew;
    ASSERT_EQ(weft_set_go_as((.pinned = true, .background = true), &set, answers, 1), -EINVAL);
    ASSERT_EQ(weft_set_len(&set), 0);
    weft_set_done(&set);
}

TEST(set_spawn_with_bad_options)
{
    crew_each(refused);
}

static void done_with_a_member(void *unused)
{
    int_set set = {0};
    (void)unused;
    (void)weft__set_try_reserve(weft_set_of(&set));
    weft_set_done(&set);
}

TEST(set_done_with_members_is_a_mistake)
{
    struct death d = death_of(done_with_a_member, NULL);
    ASSERT_EQ(d.signal, SIGABRT);
    ASSERT(strstr(d.said, "members_left_in_the_set"));
}
