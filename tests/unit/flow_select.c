/* SPDX-License-Identifier: MIT
 *
 * Combinators over arms that are turned by hand: who begins, who wins, who is told to stop, what is left behind.
 */
#include "flow/arm.h"

#include "base/rand.h"
#include "task/here.h"
#include "test.h"

#include <errno.h>

/* ---- a future that does as it is told, and is strict about how it is used ---- */

struct part {
    WEFT_FRAME(int);
    bool ready;    /* answers READY, with `value` */
    int value;     /* its result */
    int stubborn;  /* polls that it takes to stop */
    bool finishes; /* told to stop, it finishes all the same */
    bool begun;    /* private from here on */
    bool over;
    int polls;
    int probes;
    int told; /* the reason it stopped for */
};

static weft_poll part_over(struct part *f, int ret)
{
    f->over = true;
    f->begun = false;
    f->ret = ret;
    return WEFT_READY;
}

static weft_poll part_poll(void *frame, weft_cx *cx)
{
    struct part *f = frame;

    ASSERT(!f->over); /* READY is final */
    ASSERT(!cx->probe);
    ASSERT(cx->among);
    f->polls++;
    if (f->ready) return part_over(f, f->value);
    if (cx->why && f->finishes) return part_over(f, f->value);
    if (cx->why) f->told = cx->why;
    if (cx->why && f->stubborn-- <= 0) return part_over(f, cx->why);
    f->begun = true;
    return WEFT_PENDING;
}

/* The same by a name that says that it knows the probe. */
struct listener {
    WEFT_FRAME(int);
    struct part p;
};
#define WEFT__PROBES_listener ~, WEFT__ARM_PROBES

static weft_poll listener_poll(void *frame, weft_cx *cx)
{
    struct listener *f = frame;

    if (cx->probe) {
        ASSERT(!f->p.over);
        f->p.probes++;
        if (!f->p.ready) return WEFT_PENDING;
        f->ret = f->p.value;
        return part_over(&f->p, f->p.value);
    }
    weft_poll answer = part_poll(&f->p, cx);
    f->ret = f->p.ret;
    return answer;
}

struct wide {
    WEFT_FRAME(int64_t);
    int64_t value;
};
static weft_poll wide_poll(void *frame, weft_cx *cx)
{
    struct wide *f = frame;
    (void)cx;
    f->ret = f->value;
    return WEFT_READY;
}

struct text {
    WEFT_FRAME(const char *);
    bool begun;
};
static weft_poll text_poll(void *frame, weft_cx *cx)
{
    struct text *f = frame;
    f->begun = true;
    f->ret = "over";
    return cx->why ? WEFT_READY : WEFT_PENDING;
}

#define CX ((struct weft_cx){.waker = {16}, .budget = 128})

/* The frames are not in a stackless body, nor on a fiber: the select's is polled by hand. */
#define SELECT(s, ...) weft_start(s, weft_select, .arm = {__VA_ARGS__})

/* ---- select: who wins ---- */

TEST(select_takes_the_one_that_is_ready)
{
    struct weft_cx cx = CX;
    struct part a;
    struct part b;
    struct weft_select s;

    SELECT(s, weft_arm(a, part), weft_arm(b, part, .ready = true, .value = 7));
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_READY);
    ASSERT_EQ(s.ret, 1);
    ASSERT_EQ(b.ret, 7);
    ASSERT_EQ(a.ret, -ECANCELED);
    ASSERT(!a.begun); /* it never was, or it was stopped */
    ASSERT_EQ(cx.why, 0);
    ASSERT(!cx.probe && !cx.among);
}

TEST(select_waits_and_settles_the_losers)
{
    struct weft_cx cx = CX;
    struct part a;
    struct part b;
    struct part c;
    struct weft_select s;

    SELECT(s, weft_arm(a, part, .stubborn = 2), weft_arm(b, part),
           weft_arm(c, part, .finishes = true, .value = 9));
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_PENDING);
    ASSERT(a.begun && b.begun && c.begun);
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_PENDING); /* without cause */
    b.ready = true;
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_PENDING); /* a takes its time */
    ASSERT(b.over && c.over && !a.over);
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_PENDING);
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_READY);
    ASSERT_EQ(s.ret, 1);
    ASSERT_EQ(a.ret, -ECANCELED);
    ASSERT_EQ(c.ret, 9); /* it finished all the same */
}

TEST(select_probes_first_and_registers_nothing)
{
    struct weft_cx cx = CX;
    struct listener a;
    struct listener b;
    struct weft_select s;

    SELECT(s, weft_arm(a, listener), weft_arm(b, listener, .p = {.ready = true}));
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_READY);
    ASSERT_EQ(s.ret, 1);
    ASSERT_EQ(a.p.polls + b.p.polls, 0); /* nothing began, so nothing was undone */
    ASSERT_EQ(a.ret, -ECANCELED);
    SELECT(s, weft_arm(a, listener), weft_arm(b, listener));
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_PENDING);
    ASSERT_EQ(a.p.probes, 1);
    ASSERT_EQ(a.p.polls, 1);
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_PENDING);
    ASSERT_EQ(a.p.probes, 1); /* once: it has begun */
    a.p.ready = true;
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_READY);
    ASSERT_EQ(s.ret, 0);
    ASSERT_EQ(b.ret, -ECANCELED);
}

/* Each of three that are always ready wins about as often, one that listens no more than one that does not. */
TEST(select_is_fair)
{
    int won[3] = {0};
    weft__here()->draws = test_seed();
    for (int i = 0; i < 3000; i++) {
        struct weft_cx cx = CX;
        struct part a;
        struct listener b;
        struct part c;
        struct weft_select s;
        SELECT(s, weft_arm(a, part, .ready = true), weft_when(false, weft_arm(a, part)),
               weft_arm(b, listener, .p = {.ready = true}), weft_arm(c, part, .ready = true));
        ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_READY);
        won[s.ret > 1 ? s.ret - 1 : 0]++;
    }
    for (int i = 0; i < 3; i++) {
        ASSERT_GE(won[i], 850); /* 1,000 are expected; the deviation is 26 */
        ASSERT_LE(won[i], 1150);
    }
}

TEST(select_biased_looks_in_order)
{
    for (int i = 0; i < 50; i++) {
        struct weft_cx cx = CX;
        struct part a;
        struct part b;
        struct part c;
        struct weft_select s;
        weft_start(s, weft_select, .biased = true,
                   .arm = {weft_arm(a, part), weft_arm(b, part, .ready = true),
                           weft_arm(c, part, .ready = true)});
        ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_READY);
        ASSERT_EQ(s.ret, 1);
        ASSERT_EQ(a.polls, 2); /* begun, then stopped */
        ASSERT_EQ(c.polls, 0); /* never looked at */
        ASSERT_EQ(c.ret, -ECANCELED);
    }
}

/* ---- guards, otherwise, nobody ---- */

TEST(select_passes_over_what_is_not_wanted)
{
    struct weft_cx cx = CX;
    struct part a = {.ret = 77};
    struct part b;
    struct weft_select s;

    SELECT(s, weft_when(false, weft_arm(a, part, .ready = true)),
           weft_when(true, weft_arm(b, part)));
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_PENDING);
    b.ready = true;
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_READY);
    ASSERT_EQ(s.ret, 1);
    ASSERT_EQ(a.ret, 77); /* untouched */
}

TEST(select_of_nobody_is_refused)
{
    struct weft_cx cx = CX;
    struct part a;
    struct weft_select s;
    SELECT(s, weft_when(false, weft_arm(a, part)));
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_READY);
    ASSERT_EQ(s.ret, -EINVAL);
    ASSERT_EQ(weft__select(NULL, 0, false), -EINVAL);
    ASSERT_EQ(weft__select(NULL, 2, false), -EINVAL);
    struct weft_race race;
    weft_start(race, weft_race, NULL, 2);
    ASSERT_EQ(weft_race_poll(&race, &cx), WEFT_READY);
    ASSERT_EQ(race.ret, -EINVAL);
}

TEST(all_of_nobody_is_over_at_once)
{
    struct part a;
    weft_future none[] = {weft_when(false, weft_arm(a, part))};
    for (int fail_fast = 0; fail_fast < 2; fail_fast++) {
        ASSERT_EQ(weft__all(NULL, 0, fail_fast), 0);
        ASSERT_EQ(weft__all(none, 1, fail_fast), 0);
    }
}

TEST(select_otherwise)
{
    struct weft_cx cx = CX;
    struct part a;
    struct listener b;
    struct weft_select s;

    SELECT(s, weft_arm(a, part), weft_otherwise, weft_arm(b, listener));
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_READY);
    ASSERT_EQ(s.ret, 1);
    ASSERT_EQ(a.ret, -ECANCELED);
    ASSERT(a.over);
    ASSERT_EQ(b.p.polls, 0);
    SELECT(s, weft_arm(a, part), weft_otherwise, weft_arm(b, listener, .p = {.ready = true}));
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_READY);
    ASSERT_EQ(s.ret, 2);
    SELECT(s, weft_otherwise);
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_READY);
    ASSERT_EQ(s.ret, 0);
}

/* ---- stopped ---- */

TEST(select_that_is_stopped_at_first_begins_nothing)
{
    struct weft_cx cx = CX;
    struct part a;
    struct text t = {.ret = "mine"};
    struct weft_select s;

    cx.why = -ETIME;
    SELECT(s, weft_arm(a, part, .ready = true), weft_arm(t, text, .begun = false));
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_READY);
    ASSERT_EQ(s.ret, -ETIME);
    ASSERT_EQ(a.polls, 0);
    ASSERT_EQ(a.ret, -ETIME);
    ASSERT(!t.begun);
    ASSERT_EQ(cx.budget, 127); /* such answers cost */
}

TEST(select_that_is_stopped_stops_its_arms)
{
    struct weft_cx cx = CX;
    struct part a;
    struct part b;
    struct weft_select s;

    SELECT(s, weft_arm(a, part, .stubborn = 1), weft_arm(b, part));
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_PENDING);
    cx.why = -ETIME;
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_PENDING);
    ASSERT_EQ(a.told, -ETIME);
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_READY);
    ASSERT_EQ(s.ret, -ETIME);
    ASSERT_EQ(a.ret, -ETIME);
    ASSERT_EQ(b.ret, -ETIME);
}

TEST(select_that_is_stopped_loses_nothing_that_happened)
{
    struct weft_cx cx = CX;
    struct part a;
    struct part b;
    struct part c;
    struct weft_select s;

    SELECT(s, weft_arm(a, part), weft_arm(b, part, .finishes = true, .value = 5),
           weft_arm(c, part));
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_PENDING);
    cx.why = -ECANCELED;
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_READY);
    ASSERT_EQ(s.ret, 1);
    ASSERT_EQ(b.ret, 5);
    SELECT(s, weft_arm(a, part), weft_arm(b, part, .finishes = true, .value = -EIO),
           weft_arm(c, part));
    cx.why = 0;
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_PENDING);
    cx.why = -ECANCELED;
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_READY);
    ASSERT_EQ(s.ret, 1); /* an error of its own has happened, too */
}

/* A result that is no signed integer cannot say that it gave up: it counts as having happened. */
TEST(select_counts_a_result_that_cannot_say)
{
    struct weft_cx cx = CX;
    struct part a;
    struct text t;
    struct weft_select s;

    SELECT(s, weft_arm(a, part), weft_arm(t, text));
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_PENDING);
    cx.why = -ECANCELED;
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_READY);
    ASSERT_EQ(s.ret, 1);
    ASSERT_STR(t.ret, "over");
}

/* ---- nested, and by array ---- */

TEST(select_in_a_select)
{
    struct weft_cx cx = CX;
    struct part a;
    struct listener b;
    struct listener c;
    struct weft_select inner;
    struct weft_select s;

    SELECT(s, weft_arm(c, listener),
           weft_arm(inner, weft_select, .arm = {weft_arm(a, part), weft_arm(b, listener)}));
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_PENDING);
    ASSERT(a.begun && b.p.begun && c.p.begun);
    b.p.ready = true;
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_READY);
    ASSERT_EQ(s.ret, 1);
    ASSERT_EQ(inner.ret, 1);
    ASSERT_EQ(a.ret, -ECANCELED);
    ASSERT_EQ(c.ret, -ECANCELED);
    ASSERT(!a.begun && !c.p.begun);
}

TEST(select_that_loses_settles_its_own_arms)
{
    struct weft_cx cx = CX;
    struct part a;
    struct part b;
    struct part c;
    struct weft_select inner;
    struct weft_select s;

    SELECT(
        s, weft_arm(c, part),
        weft_arm(inner, weft_select, .arm = {weft_arm(a, part, .stubborn = 1), weft_arm(b, part)}));
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_PENDING);
    c.ready = true;
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_PENDING);
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_READY);
    ASSERT_EQ(s.ret, 0);
    ASSERT_EQ(inner.ret, -ECANCELED);
    ASSERT(a.over && b.over);
}

/* A probe goes down to where all listen, and no further. */
TEST(select_that_is_probed)
{
    struct weft_cx cx = CX;
    struct listener a;
    struct listener b;
    struct part p;
    struct weft_select inner;
    struct weft_select s;

    SELECT(s, weft_arm(a, listener),
           weft_arm(inner, weft_select, .arm = {weft_arm(b, listener, .p = {.ready = true})}));
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_READY);
    ASSERT_EQ(s.ret, 1);
    ASSERT_EQ(a.p.polls + b.p.polls, 0);
    cx.probe = true;
    SELECT(s, weft_arm(b, listener, .p = {.ready = true}), weft_arm(p, part));
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_PENDING);
    ASSERT_EQ(b.p.probes + p.polls, 0);
    cx.probe = false;
    ASSERT_EQ(weft_select_poll(&s, &cx), WEFT_READY);
    ASSERT_EQ(s.ret, 0);
}

TEST(race_of_many)
{
    enum { MANY = 100 };
    static struct part part[MANY];
    static weft_future arm[MANY];
    struct weft_cx cx = CX;
    struct weft_race r;

    for (int i = 0; i < MANY; i++)
        arm[i] = weft_arm(part[i], part);
    weft_start(r, weft_race, arm, MANY);
    ASSERT_EQ(weft_race_poll(&r, &cx), WEFT_PENDING);
    part[73].ready = true;
    ASSERT_EQ(weft_race_poll(&r, &cx), WEFT_READY);
    ASSERT_EQ(r.ret, 73);
    for (int i = 0; i < MANY; i++)
        ASSERT(part[i].over);
}

/* ---- all, try_all, then ---- */

TEST(all_waits_for_every_arm)
{
    struct weft_cx cx = CX;
    struct part a;
    struct part b;
    struct part c;
    struct weft_all all;

    weft_start(all, weft_all,
               .arm = {weft_arm(a, part), weft_when(false, weft_arm(c, part)),
                       weft_arm(b, part, .ready = true, .value = -EIO)});
    ASSERT_EQ(weft_all_poll(&all, &cx), WEFT_PENDING);
    ASSERT_EQ(b.polls, 1);
    a.ready = true;
    ASSERT_EQ(weft_all_poll(&all, &cx), WEFT_READY);
    ASSERT_EQ(all.ret, 0); /* the results are the arms' */
    ASSERT_EQ(b.ret, -EIO);
    weft_start(all, weft_all, .arm = {weft_when(false, weft_arm(c, part))});
    ASSERT_EQ(weft_all_poll(&all, &cx), WEFT_READY);
    ASSERT_EQ(all.ret, 0);
}

TEST(all_that_is_stopped_says_so_if_an_arm_gave_up)
{
    struct weft_cx cx = CX;
    struct part a;
    struct part b;
    struct weft_all all;

    weft_start(all, weft_all,
               .arm = {weft_arm(a, part), weft_arm(b, part, .finishes = true, .value = 3)});
    ASSERT_EQ(weft_all_poll(&all, &cx), WEFT_PENDING);
    cx.why = -ETIME;
    ASSERT_EQ(weft_all_poll(&all, &cx), WEFT_READY);
    ASSERT_EQ(all.ret, -ETIME);
    ASSERT_EQ(b.ret, 3);
    weft_start(all, weft_all,
               .arm = {weft_arm(a, part, .finishes = true), weft_arm(b, part, .finishes = true)});
    ASSERT_EQ(weft_all_poll(&all, &cx), WEFT_READY);
    ASSERT_EQ(all.ret, 0);
}

TEST(try_all_stops_the_others_at_the_first_failure)
{
    struct weft_cx cx = CX;
    struct part a;
    struct part b;
    struct part c;
    struct weft_try_all all;

    weft_start(all, weft_try_all,
               .arm = {weft_arm(a, part, .stubborn = 1), weft_arm(b, part), weft_arm(c, part)});
    ASSERT_EQ(weft_try_all_poll(&all, &cx), WEFT_PENDING);
    b.ready = true;
    b.value = -EIO;
    ASSERT_EQ(weft_try_all_poll(&all, &cx), WEFT_PENDING); /* b first, this time: all are told */
    ASSERT(c.over);
    ASSERT_EQ(weft_try_all_poll(&all, &cx), WEFT_READY);
    ASSERT_EQ(all.ret, -EIO);
    ASSERT_EQ(a.ret, -ECANCELED);
    ASSERT_EQ(c.ret, -ECANCELED);
}

TEST(try_all_begins_nothing_behind_one_that_fails_at_once)
{
    struct weft_cx cx = CX;
    struct part a;
    struct part b;
    struct wide w;
    struct weft_try_all all;

    weft_start(all, weft_try_all,
               .arm = {weft_arm(a, part), weft_arm(w, wide, -EPIPE), weft_arm(b, part)});
    ASSERT_EQ(weft_try_all_poll(&all, &cx),
              WEFT_READY); /* a was told at once: it has no other wake */
    ASSERT_EQ(all.ret, -EPIPE);
    ASSERT_EQ(a.ret, -ECANCELED);
    ASSERT_EQ(b.polls, 0);
    ASSERT_EQ(b.ret, -ECANCELED);
    weft_start(all, weft_try_all, .arm = {weft_arm(w, wide, 5000000000)});
    ASSERT_EQ(weft_try_all_poll(&all, &cx), WEFT_READY);
    ASSERT_EQ(all.ret, 0);
}

static weft_poll then_part_poll(void *frame, weft_cx *cx)
{
    bool among = cx->among;
    cx->among = true; /* part insists */
    weft_poll answer = part_poll(frame, cx);
    cx->among = among;
    return answer;
}

TEST(then_goes_on_while_nothing_fails)
{
    struct weft_cx cx = CX;
    struct part p[3] = {{.value = 1}, {.ready = true, .value = 2}, {.value = -EIO}};
    struct weft_then then = {.weft__at = 0};

    for (int i = 0; i < 3; i++)
        then.arm[i] = (weft_future){
            .poll = then_part_poll, .frame = &p[i], .ret_at = 4, .ret_bytes = 4, .ret_signed = 1};
    ASSERT_EQ(weft_then_poll(&then, &cx), WEFT_PENDING);
    ASSERT_EQ(p[1].polls, 0);
    p[0].ready = true;
    ASSERT_EQ(weft_then_poll(&then, &cx), WEFT_PENDING);
    ASSERT_EQ(p[1].ret, 2);
    ASSERT_EQ(p[2].polls, 1);
    p[2].ready = true;
    ASSERT_EQ(weft_then_poll(&then, &cx), WEFT_READY);
    ASSERT_EQ(then.ret, -EIO);
}

TEST(then_leaves_the_rest_unbegun)
{
    struct weft_cx cx = CX;
    struct part p[2] = {{.ready = true, .value = -EPIPE}, {.ready = true}};
    struct weft_then then = {.weft__at = 0};

    for (int i = 0; i < 2; i++)
        then.arm[i] = (weft_future){
            .poll = then_part_poll, .frame = &p[i], .ret_at = 4, .ret_bytes = 4, .ret_signed = 1};
    ASSERT_EQ(weft_then_poll(&then, &cx), WEFT_READY);
    ASSERT_EQ(then.ret, -EPIPE);
    ASSERT_EQ(p[1].polls, 0);
    ASSERT_EQ(p[1].ret, -ECANCELED);
}

/* ---- narrow results ---- */

TEST(arm_reads_results_of_every_width)
{
    struct {
        int32_t at;
        int8_t one;
        int16_t two;
        int32_t four;
        int64_t eight;
        unsigned plain;
    } f = {0, -5, -300, -70000, INT64_C(-5000000000), 7};
    const weft_future arm[] = {
        {.frame = &f, .ret_at = offsetof(__typeof__(f), one), .ret_bytes = 1, .ret_signed = 1},
        {.frame = &f, .ret_at = offsetof(__typeof__(f), two), .ret_bytes = 2, .ret_signed = 1},
        {.frame = &f, .ret_at = offsetof(__typeof__(f), four), .ret_bytes = 4, .ret_signed = 1},
        {.frame = &f, .ret_at = offsetof(__typeof__(f), eight), .ret_bytes = 8, .ret_signed = 1},
        {.frame = &f, .ret_at = offsetof(__typeof__(f), plain), .ret_bytes = 4}};
    const int64_t ret[] = {-5, -300, -70000, INT64_C(-5000000000), 0};
    for (int i = 0; i < 5; i++)
        ASSERT_EQ(weft__arm_ret(&arm[i]), ret[i]);
}
