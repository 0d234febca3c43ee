/* SPDX-License-Identifier: MIT
 *
 * A scope around an arm, for stackless tasks, and children that are started anew when they fail.
 */
#include "crew.h"
#include "death.h"
#include "still.h"
#include "test.h"

#include <errno.h>
#include <string.h>
#include <weft/weft.h>

static _Atomic uint32_t begun; /* relaxed, all: counts */
static _Atomic uint32_t told;

static void begin(void)
{
    store_relaxed(&begun, 0);
    store_relaxed(&told, 0);
}

static int stays(void)
{
    fetch_add_relaxed(&begun, 1);
    int r = weft_sleep(weft_secs(3600));
    if (r < 0) fetch_add_relaxed(&told, 1);
    return r;
}

static int gives(int r)
{
    fetch_add_relaxed(&begun, 1);
    return r;
}

/* ---- the arm ---- */

enum { ENDS, FAILS, WAITS, CANCELS, CHILD_FAILS };

struct inside {
    WEFT_FRAME(int);
    weft_scope *s;
    int what;
    struct weft_sleep sleep;
};
static weft_async(inside)
{
    weft_begin;
    if (weft_go_in(f->s, stays) < 0) weft_return(-ENOMEM);
    if (f->what == ENDS) {
        weft_scope_cancel(f->s); /* or its end would wait for ever */
        weft_return(7);
    }
    while (load_relaxed(&begun) == 0)
        weft_await(f->sleep, weft_sleep, weft_us(10));
    if (f->what == FAILS) weft_return(-EPROTO);
    if (f->what == CANCELS) weft_scope_cancel(f->s);
    if (f->what == CHILD_FAILS && weft_go_in(f->s, gives, -EIO) < 0) weft_return(-ENOMEM);
    weft_await(f->sleep, weft_sleep, weft_secs(3600));
    weft_return(f->sleep.ret);
    weft_end;
}

struct owner {
    WEFT_FRAME(int);
    int what;
    weft_time timeout;
    int error;
    weft_scope s;
    struct inside inside;
    struct weft_scope_run run;
    struct weft_yield yield;
    int *outcome; /* error, the arm's result, what the task is told behind it */
};
static weft_async(owner)
{
    weft_begin;
    f->error = 1;
    weft_scope_init(&f->s, .error = &f->error, .timeout = f->timeout);
    weft_await(f->run, weft_scope_run, &f->s, weft_arm(f->inside, inside, &f->s, f->what));
    f->outcome[0] = f->error;
    f->outcome[1] = f->inside.ret;
    weft_await(f->yield, weft_yield);
    f->outcome[2] = f->yield.ret;
    weft_return(f->run.ret);
    weft_end;
}

static void expect(int what, weft_time timeout, bool cancel, int error, int arm, int behind)
{
    int got[3] = {1, 1, 1};
    int r = 1;
    begin();
    weft_task *t = weft_spawn(owner, .what = what, .timeout = timeout, .outcome = got);
    if (cancel) {
        CREW_UNTIL(load_relaxed(&begun) > 0);
        weft_cancel(t);
    }
    ASSERT_OK(weft_join(t, &r));
    ASSERT_EQ(r, 0);
    ASSERT_EQ(got[0], error);
    ASSERT_EQ(got[1], arm);
    ASSERT_EQ(got[2], behind);
    ASSERT_EQ(load_relaxed(&told), 1); /* the child that stays */
}

static void arms(struct crew *crew)
{
    (void)crew;
    expect(ENDS, 0, false, -ECANCELED, 7, 0);
    expect(FAILS, 0, false, -EPROTO, -EPROTO, 0);
    expect(CANCELS, 0, false, -ECANCELED, -ECANCELED, 0);
    expect(CHILD_FAILS, 0, false, -EIO, -ECANCELED, 0);
    expect(WAITS, weft_ms(2), false, -ETIME, -ETIME, 0);
    expect(WAITS, 0, true, -ECANCELED, -ECANCELED, -ECANCELED);
}

TEST(scope_around_an_arm)
{
    crew_each(arms);
}

/* As an arm of a select that is never begun, or passed over; and from a fiber. */
struct nests {
    WEFT_FRAME(int);
    weft_scope s;
    struct inside inside;
    struct weft_scope_run run;
    struct weft_yield yield;
    struct weft_then then;
};
static weft_async(nests)
{
    weft_begin;
    weft_await(f->run, weft_scope_run, &f->s,
               weft_when(false, weft_arm(f->inside, inside, &f->s, ENDS)));
    if (f->run.ret != -EINVAL) weft_return(-EIO);
    weft_await(
        f->then, weft_then,
        .arm = {weft_arm(f->run, weft_scope_run, NULL, weft_arm(f->inside, inside, &f->s, ENDS)),
                weft_arm(f->yield, weft_yield)});
    if (f->then.ret != -EINVAL) weft_return(-EIO);
    weft_return(0);
    weft_end;
}

static int by_call(void)
{
    weft_scope s = {0};
    struct inside f;
    begin();
    ASSERT_EQ(weft_run(weft_scope_run, &s, weft_arm(f, inside, &s, ENDS)), 0);
    ASSERT_EQ(f.ret, 7);
    ASSERT_EQ(load_relaxed(&told), 1);
    return weft_run(nests);
}

static void calls(struct crew *crew)
{
    int r = -1;
    (void)crew;
    ASSERT_OK(weft_join(weft_go(by_call), &r));
    ASSERT_EQ(r, 0);
    ASSERT_EQ(by_call(), 0);
}

TEST(scope_around_an_arm_by_call)
{
    crew_each(calls);
}

/* ---- supervise ---- */

struct plan {
    uint32_t starts; /* so far */
    uint32_t good;   /* the start that succeeds */
    int error;
};

static int fails_or_not(bool good, int error)
{
    return good ? 0 : error;
}

/* A sibling that would stay for ever goes down with the one that fails. */
static int start_two(weft_scope *s, void *arg)
{
    struct plan *p = arg;
    bool good = ++p->starts == p->good;
    int r = good ? 0 : weft_go_in(s, stays);
    return r < 0 ? r : weft_go_in(s, fails_or_not, good, p->error);
}

static int start_nothing(weft_scope *s, void *arg)
{
    struct plan *p = arg;
    int r = weft_go_in(s, stays); /* it is stopped, too */
    return ++p->starts == p->good ? r : p->error;
}

static int supervised(void)
{
    struct plan third = {.good = 3, .error = -EIO};
    ASSERT_EQ(weft_supervise(start_two, &third, 5, weft_secs(3600)), 0);
    ASSERT_EQ(third.starts, 3);
    struct plan never = {.good = 0, .error = -EPIPE};
    ASSERT_EQ(weft_supervise(start_two, &never, 4, 0), -EPIPE);
    ASSERT_EQ(never.starts, 5); /* and four restarts */
    struct plan none = {.good = 0, .error = -EPIPE};
    ASSERT_EQ(weft_supervise(start_nothing, &none, 0, 0), -EPIPE);
    ASSERT_EQ(none.starts, 1);
    ASSERT_EQ(weft_supervise(NULL, NULL, 1, 0), -EINVAL);
    ASSERT_EQ(weft_supervise(start_two, &never, WEFT_RESTARTS_MAX + 1, 0), -EINVAL);
    ASSERT_EQ(weft_supervise(start_two, &never, 1, -1), -EINVAL);
    return 0;
}

/* In a scope: what one supervisor gives up on is the failure of all. */
static int whole_fails(void)
{
    struct plan bad = {.good = 0, .error = -EIO};
    struct plan well = {.good = 1};
    int r = 1;
    WEFT_SCOPE(s, .error = &r)
    {
        ASSERT_OK(weft_go_in(s, stays));
        ASSERT_OK(weft_spawn_in(s, weft_supervise, .start = start_two, .arg = &well));
        ASSERT_OK(weft_spawn_in(s, weft_supervise, .start = start_two, .arg = &bad, .restarts = 2));
    }
    ASSERT_EQ(r, -EIO);
    ASSERT_EQ(bad.starts, 3);
    ASSERT_EQ(well.starts, 1);
    return 0;
}

static int start_stays(weft_scope *s, void *arg)
{
    (void)arg;
    return weft_go_in(s, stays);
}

static int told_to_stop(void)
{
    int r = 1;
    WEFT_TIMEOUT(weft_ms(2)) r = weft_supervise(start_stays, NULL, 3, 0);
    ASSERT_EQ(r, -ETIME);
    return 0;
}

static void supervisors(struct crew *crew)
{
    int (*const all[])(void) = {supervised, whole_fails, told_to_stop};
    (void)crew;
    for (int i = 0; i < 3; i++) {
        int r = -1;
        ASSERT_OK(weft_join(weft_go(all[i]), &r));
        ASSERT_EQ(r, 0);
        ASSERT_EQ(all[i](), 0);
    }
}

TEST(supervised_children_are_started_anew)
{
    crew_each(supervisors);
}

/* On a clock that stands: the window slides. Two restarts within ten seconds are allowed; each child lives for six, then for four and a half. */
struct lives {
    weft_time life;
    uint32_t starts;
};

static int lives_for(weft_time life)
{
    (void)weft_sleep(life);
    return -EIO;
}

static int start_lives(weft_scope *s, void *arg)
{
    struct lives *l = arg;
    if (++l->starts == 8) l->life = weft_ms(4500);
    return weft_go_in(s, lives_for, l->life);
}

struct supervises {
    WEFT_FRAME(int);
    struct lives *lives;
    struct weft_supervise sup;
};
static weft_async(supervises)
{
    weft_begin;
    weft_await(f->sup, weft_supervise, .start = start_lives, .arg = f->lives, .restarts = 2,
               .within = weft_secs(10), .pause = weft_ms(1));
    weft_return(f->sup.ret == -EIO ? 0 : -1);
    weft_end;
}

static void window_slides(struct crew *crew)
{
    struct lives lives = {.life = weft_secs(6)};
    int r = 1;
    (void)crew;
    ASSERT_OK(weft_join(weft_spawn(supervises, &lives), &r));
    ASSERT_EQ(r, 0);
    ASSERT_EQ(lives.starts, 9); /* 6 + 4.5 s after the last but one, not 4.5 + 4.5 */
}

TEST(supervised_within_a_window)
{
    still_each(window_slides);
}
