/* SPDX-License-Identifier: MIT
 *
 * Task sets on real runtimes: members of both kinds, taken out in the order of their ends, by fibers, stackless tasks and
 * threads; limits; a large set; and what misuse is told. What is done to all members at once: set_all.c.
 */
#include "death.h"
#include "flock.h"
#include "tasks.h"

static _Atomic uint32_t at_once; /* relaxed, both: counts */
static _Atomic uint32_t most;

/* ---- order ------------------------------------------------------------------------------------------ */

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
