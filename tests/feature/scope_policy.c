/* SPDX-License-Identifier: MIT
 *
 * What a scope can be asked for: one outcome for all, the first success, a time, a number of children at once. For fibers, plain
 * threads and stackless tasks.
 */
#include "crew.h"
#include "death.h"
#include "still.h"
#include "test.h"

#include <errno.h>
#include <string.h>
#include <weft/weft.h>

static _Atomic uint32_t begun; /* relaxed, all: counts */
static _Atomic uint32_t over;
static _Atomic uint32_t told; /* children that were */
static _Atomic uint32_t at_once;
static _Atomic uint32_t most;

static void begin(void)
{
    store_relaxed(&begun, 0);
    store_relaxed(&over, 0);
    store_relaxed(&told, 0);
    store_relaxed(&at_once, 0);
    store_relaxed(&most, 0);
}

static void on_both(int (*body)(void))
{
    int r = -1;
    begin();
    ASSERT_OK(weft_join(weft_go(body), &r));
    ASSERT_EQ(r, 0);
    begin();
    ASSERT_EQ(body(), 0);
}

static int stays(void)
{
    fetch_add_relaxed(&begun, 1);
    int r = weft_sleep(weft_secs(3600));
    if (r < 0) fetch_add_relaxed(&told, 1);
    fetch_add_relaxed(&over, 1);
    return r;
}

static int gives(int r)
{
    fetch_add_relaxed(&begun, 1);
    (void)weft_yield();
    fetch_add_relaxed(&over, 1);
    return r;
}

struct gives_stackless {
    WEFT_FRAME(long);
    long r;
    struct weft_yield yield;
};
static weft_async(gives_stackless)
{
    weft_begin;
    weft_await(f->yield, weft_yield);
    weft_return(f->r);
    weft_end;
}

static void until(_Atomic uint32_t *count, uint32_t n)
{
    while (load_relaxed(count) < n) {
        WEFT_SHIELD(WEFT_FOREVER)(void) weft_sleep(weft_us(10));
    }
}

/* ---- one outcome ---- */

static int first_failure_stops_all(void)
{
    int r = 1;
    WEFT_SCOPE(s, .error = &r)
    {
        for (int i = 0; i < 3; i++)
            ASSERT_OK(weft_go_in(s, stays));
        until(&begun, 3);
        ASSERT_OK(weft_go_in(s, gives, 0)); /* a success changes nothing */
        until(&over, 1);
        ASSERT_EQ(weft_scope_reason(s), 0);
        ASSERT_OK(weft_spawn_in(s, gives_stackless, -EIO));
        ASSERT_EQ(weft_sleep(weft_secs(3600)), -ECANCELED); /* the block, too */
    }
    ASSERT_EQ(r, -EIO);
    ASSERT_EQ(load_relaxed(&told), 3);
    return 0;
}

static int fails_while_the_end_waits(void)
{
    int r = 1;
    WEFT_SCOPE(s, .error = &r)
    {
        ASSERT_OK(weft_go_in(s, stays));
        ASSERT_OK(weft_go_in(s, gives, -EPIPE));
    }
    ASSERT_EQ(r, -EPIPE);
    return 0;
}

static int all_well(void)
{
    int r = 1;
    WEFT_SCOPE(s, .error = &r)
    {
        ASSERT_OK(weft_go_in(s, gives, 0));
        ASSERT_OK(weft_go_in(s, gives, 7));
    }
    ASSERT_EQ(r, 0);
    return 0;
}

/* Stopped by its own block, by somebody inside, by an error of the block's own. */
static int stopped(void)
{
    int r[3] = {1, 1, 1};
    WEFT_SCOPE(s, .error = &r[0])
    {
        ASSERT_OK(weft_go_in(s, stays));
        break;
    }
    ASSERT_EQ(r[0], -ECANCELED);
    WEFT_SCOPE(s, .error = &r[1])
    {
        ASSERT_OK(weft_go_in(s, stays));
        weft_scope_cancel(s);
    }
    ASSERT_EQ(r[1], -ECANCELED);
    WEFT_SCOPE(s, .error = &r[2])
    {
        ASSERT_OK(weft_go_in(s, stays));
        ASSERT(!weft_scope_fail(s, 1)); /* no error */
        ASSERT(weft_scope_fail(s, -EPROTO));
        ASSERT_EQ(weft_yield(), -ECANCELED);
        break;
    }
    ASSERT_EQ(r[2], -EPROTO);
    return 0;
}

static int stopped_from_further_out(void)
{
    int r = 1;
    WEFT_TIMEOUT(weft_us(100)) WEFT_SCOPE(s, .error = &r) ASSERT_OK(weft_go_in(s, stays));
    ASSERT_EQ(r, -ETIME);
    ASSERT_EQ(load_relaxed(&told), 1);
    return 0;
}

struct together {
    WEFT_FRAME(int);
    int r;
    weft_scope s;
    struct weft_scope_join end;
};
static weft_async(together)
{
    weft_begin;
    weft_scope_init(&f->s, .error = &f->r);
    if (weft_go_in(&f->s, stays) < 0) weft_return(-EIO);
    if (weft_spawn_in(&f->s, gives_stackless, -EPIPE) < 0) weft_return(-EIO);
    weft_await(f->end, weft_scope_join, &f->s);
    if (f->end.ret != 0) weft_return(-EIO);
    weft_return(f->r == -EPIPE ? 0 : -EIO);
    weft_end;
}

static int together_by_call(void)
{
    return weft_run(together);
}

static void outcomes(struct crew *crew)
{
    (void)crew;
    on_both(first_failure_stops_all);
    on_both(fails_while_the_end_waits);
    on_both(all_well);
    on_both(stopped);
    on_both(stopped_from_further_out);
    on_both(together_by_call);
}

TEST(scope_with_one_outcome)
{
    crew_each(outcomes);
}

/* What does not go into the outcome is not lost: children on their own, and failures behind the first. */
static int fails_when_told(void)
{
    fetch_add_relaxed(&begun, 1);
    (void)weft_sleep(weft_secs(3600));
    return -ENOSPC;
}

static int unread_failures(void)
{
    int r = 1;
    WEFT_SCOPE(s) ASSERT_OK(weft_go_in(s, gives, -EIO));
    WEFT_SCOPE(s, .error = &r)
    {
        ASSERT_OK(weft_go_in(s, fails_when_told));
        until(&begun, 2);
        ASSERT_OK(weft_go_in(s, gives, -EPIPE));
    }
    ASSERT_EQ(r, -EPIPE);
    return 0;
}

static void with_a_crew(void *arg)
{
    struct crew crew;
    int (*body)(void) = *(int (**)(void))arg;
    int r = -1;
    begin();
    crew_start(&crew, 2);
    ASSERT_OK(weft_join(weft_go(body), &r));
    crew_stop(&crew);
    _exit(r);
}

TEST(scope_reports_failures_that_nobody_reads)
{
    int (*body)(void) = unread_failures;
    struct death d = death_of(with_a_crew, &body);
    ASSERT_EQ(d.signal, 0);
    ASSERT_EQ(d.code, 0);
    ASSERT(strstr(d.said, "task 'gives'"));
    ASSERT(strstr(d.said, "ended with EIO, and nobody reads it"));
    ASSERT(strstr(d.said, "task 'fails_when_told'"));
    ASSERT(strstr(d.said, "ended with ENOSPC, and nobody reads it"));
    ASSERT(!strstr(d.said, "EPIPE"));
}

/* ---- the first success ---- */

static int first_success_stops_all(void)
{
    int r = 1;
    WEFT_SCOPE(s, .error = &r, .first_success = true)
    {
        ASSERT_OK(weft_go_in(s, stays));
        ASSERT_OK(weft_go_in(s, gives, -EIO));
        until(&over, 1);
        ASSERT_EQ(weft_scope_reason(s), 0); /* a failure changes nothing */
        ASSERT_OK(weft_spawn_in(s, gives_stackless, 5));
        ASSERT_EQ(weft_sleep(weft_secs(3600)), -ECANCELED);
    }
    ASSERT_EQ(r, 0);
    ASSERT_EQ(load_relaxed(&told), 1);
    return 0;
}

static int none_succeeds(void)
{
    int r[3] = {1, 1, 1};
    WEFT_SCOPE(s, .error = &r[0], .first_success = true)
    {
        ASSERT_OK(weft_go_in(s, gives, -EIO));
        while (weft_scope_count(s) > 0) /* it has ended, not only said that it will */
            (void)weft_yield();
        ASSERT_OK(weft_go_in(s, gives, -EPIPE));
    }
    ASSERT_EQ(r[0], -EIO);
    WEFT_SCOPE(s, .error = &r[1], .first_success = true) ASSERT_EQ(weft_scope_count(s), 0);
    ASSERT_EQ(r[1], -ECHILD);
    WEFT_SCOPE(s, .error = &r[2], .first_success = true)
    {
        ASSERT_OK(weft_go_in(s, stays));
        break;
    }
    ASSERT_EQ(r[2], -ECANCELED);
    return 0;
}

/* Its owner is a frame; the outcome is the answer. The last child decides. */
struct first_of {
    WEFT_FRAME(int);
    long last;
    int r;
    weft_scope s;
    struct weft_yield yield;
    struct weft_scope_join end;
};
static weft_async(first_of)
{
    weft_begin;
    f->r = 1;
    weft_scope_init(&f->s, .error = &f->r, .first_success = true);
    ASSERT_OK(weft_spawn_in(&f->s, gives_stackless, -EIO));
    while (weft_scope_count(&f->s) > 0) /* it has ended, not only said that it will */
        weft_await(f->yield, weft_yield);
    ASSERT_EQ(weft_scope_reason(&f->s), 0);                /* a failure changes nothing */
    if (f->last >= 0) ASSERT_OK(weft_go_in(&f->s, stays)); /* else nobody stops it */
    ASSERT_OK(weft_spawn_in(&f->s, gives_stackless, f->last));
    weft_await(f->end, weft_scope_join, &f->s);
    ASSERT_OK(f->end.ret);
    weft_return(f->r);
    weft_end;
}

static int frame_until_the_first_success(void)
{
    int r = 1;
    ASSERT_OK(weft_join(weft_spawn(first_of, 5), &r));
    ASSERT_EQ(r, 0);
    ASSERT_EQ(load_relaxed(&told), 1);
    ASSERT_OK(weft_join(weft_spawn(first_of, -EPIPE), &r));
    ASSERT_EQ(r, -EIO); /* the first, if all fail */
    return 0;
}

static void successes(struct crew *crew)
{
    (void)crew;
    on_both(first_success_stops_all);
    on_both(none_succeeds);
    on_both(frame_until_the_first_success);
}

TEST(scope_until_the_first_success)
{
    crew_each(successes);
}

/* ---- time ---- */

static int times_out_in_the_body(void)
{
    int r = 1;
    weft_time start = weft_now();
    WEFT_SCOPE(s, .error = &r, .timeout = weft_ms(20))
    {
        ASSERT_OK(weft_go_in(s, stays));
        ASSERT_EQ(weft_sleep(weft_secs(3600)), -ETIME);
        ASSERT_EQ(weft_scope_reason(s), -ETIME);
    }
    ASSERT_EQ(r, -ETIME);
    ASSERT_EQ(load_relaxed(&told), 1);
    ASSERT_GE(weft_now() - start, weft_ms(20));
    ASSERT_EQ(weft_yield(), 0);
    return 0;
}

static int times_out_at_the_end(void)
{
    int r = 1;
    WEFT_SCOPE(s, .error = &r, .deadline = weft_later(weft_now(), weft_ms(5)), .limit = 3)
    {
        for (int i = 0; i < 3; i++)
            ASSERT_OK(weft_go_in(s, stays));
    }
    ASSERT_EQ(r, -ETIME);
    ASSERT_EQ(load_relaxed(&told), 3);
    return 0;
}

/* A rest that is computed and below zero: it has passed, and is not taken for none. */
static int timed_out_before(void)
{
    const weft_time past[] = {-1, -weft_now(), INT64_MIN};
    for (size_t i = 0; i < 3; i++) {
        int r = 1;
        store_relaxed(&told, 0);
        WEFT_SCOPE(s, .error = &r, .timeout = past[i]) ASSERT_OK(weft_go_in(s, stays));
        ASSERT_EQ(r, -ETIME);
        WEFT_SCOPE(s, .error = &r, .deadline = past[i]) ASSERT_OK(weft_go_in(s, stays));
        ASSERT_EQ(r, -ETIME);
        ASSERT_EQ(load_relaxed(&told), 2);
    }
    return 0;
}

static int in_time(void)
{
    int r = 1;
    for (int i = 0; i < 3; i++) {
        WEFT_SCOPE(s, .error = &r, .timeout = weft_secs(3600))
        {
            ASSERT_OK(weft_go_in(s, gives, 0));
            ASSERT_EQ(weft_sleep(weft_us(1)), 0);
        }
        ASSERT_EQ(r, 0);
    }
    return 0;
}

struct timed {
    WEFT_FRAME(int);
    int r;
    weft_scope s;
    struct weft_scope_join end;
    struct weft_yield yield;
};
static weft_async(timed)
{
    weft_begin;
    weft_scope_init(&f->s, .error = &f->r, .timeout = weft_ms(10));
    if (weft_go_in(&f->s, stays) < 0) weft_return(-EIO);
    weft_await(f->end, weft_scope_join, &f->s);
    weft_await(f->yield, weft_yield);
    weft_return(f->r == -ETIME && f->yield.ret == 0 ? 0 : -EIO);
    weft_end;
}

static int timed_by_call(void)
{
    return weft_run(timed);
}

static void times(struct crew *crew)
{
    (void)crew;
    on_both(times_out_in_the_body);
    on_both(times_out_at_the_end);
    on_both(timed_out_before);
    on_both(in_time);
    on_both(timed_by_call);
}

TEST(scope_with_a_time)
{
    crew_each(times);
}

static int still_times_out(void)
{
    int r = 1;
    weft_time start = weft_now();
    WEFT_SCOPE(s, .error = &r, .timeout = weft_secs(5)) ASSERT_OK(weft_go_in(s, stays));
    ASSERT_EQ(r, -ETIME);
    ASSERT_EQ(weft_now() - start, weft_secs(5)); /* as soon as that, and not before */
    return 0;
}

static void on_a_clock_that_stands(struct crew *crew)
{
    int r = -1;
    (void)crew;
    ASSERT_OK(weft_join(weft_go(still_times_out), &r));
    ASSERT_EQ(r, 0);
}

TEST(scope_with_a_time_to_the_nanosecond)
{
    still_each(on_a_clock_that_stands);
}

/* ---- so many at once ---- */

static int crowds(void)
{
    uint32_t now = fetch_add_relaxed(&at_once, 1) + 1;
    if (now > load_relaxed(&most))
        store_relaxed(&most, now); /* near enough: it only has to find one too many */
    for (int i = 0; i < 3; i++)
        (void)weft_yield();
    fetch_sub_relaxed(&at_once, 1);
    fetch_add_relaxed(&over, 1);
    return 0;
}

static int limited(void)
{
    WEFT_SCOPE(s, .limit = 3)
    {
        for (int i = 0; i < 50; i++) {
            ASSERT_OK(weft_go_in(s, crowds));
            ASSERT_LE(weft_scope_count(s), 3);
        }
    }
    ASSERT_LE(load_relaxed(&most), 3);
    ASSERT_EQ(load_relaxed(&over), 50);
    return 0;
}

static int full(void)
{
    WEFT_SCOPE(s, .limit = 2)
    {
        ASSERT_OK(weft_go_in(s, stays));
        ASSERT_OK(weft_try_go_in(s, stays));
        ASSERT_EQ(weft_try_go_in(s, stays), -EAGAIN);
        ASSERT_EQ(weft_try_spawn_in(s, gives_stackless, 0), -EAGAIN);
        WEFT_TIMEOUT(weft_us(100)) ASSERT_EQ(weft_go_in(s, stays), -ETIME); /* it took nothing */
        WEFT_TIMEOUT(weft_us(100)) ASSERT_EQ(weft_scope_room(s), -ETIME);
        ASSERT_EQ(weft_scope_count(s), 2);
        weft_scope_cancel(s);
        WEFT_SHIELD(WEFT_FOREVER) ASSERT_OK(weft_scope_room(s));
        ASSERT_OK(weft_try_go_in(s, stays)); /* born cancelled */
    }
    ASSERT_EQ(load_relaxed(&told), 3);
    return 0;
}

static int spawns_beside(weft_scope *s)
{
    for (int i = 0; i < 10; i++)
        ASSERT_OK(weft_go_in(s, crowds));
    return 0;
}

/* Several wait for room at once; all get it in the end. */
static int several_wait_for_room(void)
{
    weft_task *t[3];
    WEFT_SCOPE(s, .limit = 2)
    {
        for (int i = 0; i < 3; i++)
            t[i] = weft_go(spawns_beside, s);
        for (int i = 0; i < 3; i++)
            ASSERT_OK(weft_join(t[i], NULL));
    }
    ASSERT_LE(load_relaxed(&most), 2);
    ASSERT_EQ(load_relaxed(&over), 30);
    return 0;
}

static int child_wants_room(weft_scope *s)
{
    ASSERT_EQ(weft_go_in(s, crowds), -EDEADLK);
    return 0;
}

static int the_one_child(void)
{
    WEFT_SCOPE(s, .limit = 1) ASSERT_OK(weft_go_in(s, child_wants_room, s));
    return 0;
}

struct limited_stackless {
    WEFT_FRAME(int);
    int left;
    int r;
    weft_scope s;
    struct weft_scope_room room;
    struct weft_scope_join end;
};
static weft_async(limited_stackless)
{
    weft_begin;
    weft_scope_init(&f->s, .limit = 2);
    for (f->left = 30; f->left > 0;) {
        f->r = weft_go_in(&f->s, crowds); /* it never waits here */
        if (f->r == 0) {
            f->left--;
            continue;
        }
        if (f->r != -EAGAIN) break;
        weft_await(f->room, weft_scope_room, &f->s);
        if (f->room.ret < 0) break;
    }
    weft_await(f->end, weft_scope_join, &f->s);
    weft_return(f->left == 0 ? 0 : -EIO); /* fast children leave room for all: full() has one that does not */
    weft_end;
}

static int limited_by_call(void)
{
    int r = weft_run(limited_stackless);
    ASSERT_LE(load_relaxed(&most), 2);
    ASSERT_EQ(load_relaxed(&over), 30);
    return r;
}

struct wants_room {
    WEFT_FRAME(int);
    weft_scope *s;
    struct weft_scope_room room;
};
static weft_async(wants_room)
{
    weft_begin;
    weft_await(f->room, weft_scope_room, f->s);
    weft_return(f->room.ret);
    weft_end;
}

/* One of those who wait for room is cancelled, another one does not use it: nobody else waits for that. */
static int room_is_passed_on(void)
{
    weft_task *t[4];
    int r[4];
    weft_scope s;
    weft_scope_init(&s, .limit = 1);
    ASSERT_OK(weft_go_in(&s, stays));
    for (int i = 0; i < 4; i++)
        t[i] = weft_spawn(wants_room, &s);
    weft_cancel(t[0]);
    ASSERT_OK(weft_join(t[0], &r[0]));
    ASSERT_EQ(r[0], -ECANCELED);
    weft_scope_cancel(&s);
    for (int i = 1; i < 4; i++) {
        ASSERT_OK(weft_join(t[i], &r[i]));
        ASSERT_EQ(r[i], 0);
    }
    return weft_scope_join(&s);
}

static void limits(struct crew *crew)
{
    (void)crew;
    on_both(limited);
    on_both(full);
    on_both(several_wait_for_room);
    on_both(the_one_child);
    on_both(limited_by_call);
    on_both(room_is_passed_on);
}

TEST(scope_with_a_limit)
{
    crew_each(limits);
}
