/* SPDX-License-Identifier: MIT
 *
 * Deadlines, timeouts and shields on runtimes whose clock stands: who is told what, when exactly, and for how long. Both kinds of task; and plain
 * threads, on the real clock, where no time decides.
 */
#include "bell.h"
#include "box.h"
#include "still.h"
#include "test.h"

#include <errno.h>
#include <weft/weft.h>

static int join_int(weft_task *t)
{
    int r = 1;
    ASSERT_OK(weft_join(t, &r));
    return r;
}

/* The body says what is wrong by a line of its own. */
#define CHECK(fact)                                                                                \
    do {                                                                                           \
        if (!(fact)) return __LINE__;                                                              \
    } while (0)

/* A test whose body runs as a fiber; 0 is well. */
#define ON_A_FIBER(name)                                                                           \
    static int name##_body(void);                                                                  \
    static void name##_in_crew(struct crew *crew)                                                  \
    {                                                                                              \
        (void)crew;                                                                                \
        ASSERT_EQ(join_int(weft_go(name##_body)), 0);                                              \
    }                                                                                              \
    TEST(name)                                                                                     \
    {                                                                                              \
        still_each(name##_in_crew);                                                                \
    }                                                                                              \
    static int name##_body(void)

/* ---- one deadline ---- */

ON_A_FIBER(deadline_bounds_a_wait)
{
    weft_time began = weft_now();
    int r = 1;
    WEFT_TIMEOUT(weft_ms(5)) r = weft_sleep(weft_secs(3600));
    CHECK(r == -ETIME);
    CHECK(weft_now() - began == weft_ms(5));
    CHECK(weft_sleep(weft_ms(1)) == 0); /* outside nobody asks */
    WEFT_DEADLINE(began + weft_ms(9)) r = weft_sleep(weft_secs(3600));
    CHECK(r == -ETIME);
    CHECK(weft_now() - began == weft_ms(9));
    WEFT_TIMEOUT(weft_ms(5)) r = weft_sleep(weft_ms(4));
    CHECK(r == 0);
    CHECK(weft_now() - began == weft_ms(13));
    return 0;
}

ON_A_FIBER(deadline_sticks_until_its_block_is_left)
{
    int first = 1;
    int second = 1;
    int third = 1;
    WEFT_TIMEOUT(weft_ms(5)) {
        first = weft_sleep(weft_ms(50));
        second = weft_sleep(weft_ms(50));
        third = weft_yield();
    }
    CHECK(first == -ETIME && second == -ETIME && third == -ETIME);
    CHECK(weft_yield() == 0);
    return 0;
}

/* What is ready at once is done, however little time there is; what is not is cut short. */
ON_A_FIBER(deadline_of_no_time)
{
    struct box box;
    int r = 1;
    box_init(&box);
    box_put(&box);
    box_put(&box);
    WEFT_TIMEOUT(0) r = weft_run(box_take, &box);
    CHECK(r == 0);
    WEFT_DEADLINE(weft_now() - weft_secs(1)) r = weft_run(box_take, &box);
    CHECK(r == 0);
    WEFT_TIMEOUT(0) r = weft_run(box_take, &box);
    CHECK(r == -ETIME);
    WEFT_TIMEOUT(-5) r = weft_run(box_take, &box);
    CHECK(r == -ETIME);
    WEFT_DEADLINE(weft_now() - weft_secs(1)) r = weft_run(box_take, &box);
    CHECK(r == -ETIME);
    WEFT_TIMEOUT(WEFT_FOREVER) r = weft_sleep(weft_secs(100));
    CHECK(r == 0);
    CHECK(box_done(&box) == 0);
    return 0;
}

/* ---- nested ---- */

ON_A_FIBER(deadline_nested_the_inner_is_first)
{
    weft_time began = weft_now();
    int in = 1;
    int between = 1;
    WEFT_TIMEOUT(weft_ms(20)) {
        WEFT_TIMEOUT(weft_ms(5)) in = weft_sleep(weft_ms(100));
        CHECK(weft_now() - began == weft_ms(5));
        between = weft_sleep(weft_ms(5));
        CHECK(weft_now() - began == weft_ms(10));
        WEFT_TIMEOUT(weft_ms(50)) in = in == -ETIME ? weft_sleep(weft_ms(100)) : 1;
    }
    CHECK(between == 0);
    CHECK(in == -ETIME);
    CHECK(weft_now() - began == weft_ms(20)); /* the outer one */
    return 0;
}

/* A retry loop inside ends by itself once the outer deadline has passed: its next wait fails, too. */
ON_A_FIBER(deadline_over_a_retry_loop)
{
    weft_time began = weft_now();
    int tries = 0;
    int r = 0;
    WEFT_TIMEOUT(weft_ms(25)) {
        do {
            WEFT_TIMEOUT(weft_ms(10)) r = weft_sleep(weft_secs(1));
            tries++;
        } while (r == -ETIME && weft_yield() == 0);
    }
    CHECK(r == -ETIME && tries == 3);
    CHECK(weft_now() - began == weft_ms(25));
    return 0;
}

/* ---- two at the same instant: the outermost answers ---- */

/* Behind the shield both ask. */
static int asked_by_both(weft_token *token, bool token_is_outer)
{
    int r = 1;

    if (token_is_outer) {
        WEFT_UNTIL(token) {
            WEFT_TIMEOUT(weft_ms(5)) {
                r = weft_sleep(weft_ms(4));
                if (r == 0) WEFT_SHIELD(WEFT_FOREVER) r = weft_sleep(weft_ms(2));
                if (r == 0) r = weft_yield();
            }
        }
    } else {
        WEFT_TIMEOUT(weft_ms(5)) {
            WEFT_UNTIL(token) {
                r = weft_sleep(weft_ms(4));
                if (r == 0) WEFT_SHIELD(WEFT_FOREVER) r = weft_sleep(weft_ms(2));
                if (r == 0) r = weft_yield();
            }
        }
    }
    return r;
}

static int cancels_at(weft_token *token, weft_time ns)
{
    int r = weft_sleep(ns);
    (void)weft_token_cancel(token);
    return r;
}

ON_A_FIBER(deadline_and_token_at_once)
{
    for (int outer = 0; outer < 2; outer++) {
        weft_token token = {0};
        int r = 1;
        weft_task *t = weft_go(cancels_at, &token, weft_ms(5));
        CHECK(asked_by_both(&token, outer) == (outer ? -ECANCELED : -ETIME));
        CHECK(weft_join(t, &r) == 0 && r == 0);
        weft_token_done(&token);
    }
    return 0;
}

struct asked {
    WEFT_FRAME(int);
    struct weft_sleep sleep;
    struct weft_sleep nap;
    struct weft_shield shield;
    struct weft_yield pause;
};
static weft_async(asked)
{
    weft_begin;
    weft_await(f->sleep, weft_sleep, weft_ms(4));
    if (f->sleep.ret < 0) weft_return(1);
    weft_await(f->shield, weft_shield, WEFT_FOREVER, weft_arm(f->nap, weft_sleep, weft_ms(2)));
    if (f->shield.ret < 0) weft_return(2);
    weft_await(f->pause, weft_yield);
    weft_return(f->pause.ret);
    weft_end;
}

/* Whoever answers, both regions and who is inside of them say the same. */
struct asked_by_both_too {
    WEFT_FRAME(int);
    weft_token *token;
    bool token_is_outer;
    struct asked in;
    struct weft_timeout to;
    struct weft_until until;
};
static weft_async(asked_by_both_too)
{
    weft_begin;
    if (f->token_is_outer) {
        weft_await(f->until, weft_until, f->token,
                   weft_arm(f->to, weft_timeout, weft_ms(5), weft_arm(f->in, asked)));
    } else {
        weft_await(f->to, weft_timeout, weft_ms(5),
                   weft_arm(f->until, weft_until, f->token, weft_arm(f->in, asked)));
    }
    if (f->to.ret != f->in.ret) weft_return(3);
    if (f->until.ret != f->in.ret) weft_return(4);
    weft_return(f->in.ret);
    weft_end;
}

ON_A_FIBER(deadline_and_token_at_once_stackless)
{
    for (int outer = 0; outer < 2; outer++) {
        weft_token token = {0};
        int cancels = 1;
        int asked = 1;
        weft_task *t = weft_go(cancels_at, &token, weft_ms(5));
        weft_task *s = weft_spawn(asked_by_both_too, &token, outer);
        CHECK(weft_join(s, &asked) == 0 && asked == (outer ? -ECANCELED : -ETIME));
        CHECK(weft_join(t, &cancels) == 0 && cancels == 0);
        weft_token_done(&token);
    }
    return 0;
}

/* ---- the task's own cancel is outside of everything ---- */

static _Atomic bool waits;

static int is_cancelled_inside(void)
{
    int in = 1;
    WEFT_TIMEOUT(weft_ms(50)) {
        store_relaxed(&waits, true);
        in = weft_sleep(weft_ms(10));
        (void)weft_sleep(weft_ms(100));
    }
    return in == -ECANCELED && weft_yield() == -ECANCELED ? 0 : 1;
}

struct is_cancelled_too {
    WEFT_FRAME(int);
    struct weft_sleep sleep;
    struct weft_timeout to;
    struct weft_yield pause;
};
static weft_async(is_cancelled_too)
{
    weft_begin;
    weft_await(f->to, weft_timeout, weft_ms(50), weft_arm(f->sleep, weft_sleep, weft_secs(10)));
    if (f->to.ret != -ECANCELED || f->sleep.ret != -ECANCELED) weft_return(1);
    weft_await(f->pause, weft_yield);
    weft_return(f->pause.ret == -ECANCELED ? 0 : 2);
    weft_end;
}

static void cancel_inside(struct crew *crew)
{
    (void)crew;
    ASSERT_OK(weft_clock_resume(NULL));
    store_relaxed(&waits, false);
    weft_task *t = weft_go(is_cancelled_inside);
    weft_task *s = weft_spawn(is_cancelled_too);
    weft_cancel(s);
    weft_cancel(t);
    ASSERT_EQ(join_int(t), 0);
    ASSERT_EQ(join_int(s), 0);
}

TEST(deadline_inside_of_a_cancelled_task)
{
    still_each(cancel_inside);
}

/* ---- shields ---- */

static int cleans_up(struct bell *bell)
{
    weft_time began;
    int r = weft_run(hear, .bell = bell);
    CHECK(r == -ECANCELED);
    CHECK(weft_sleep(1) == -ECANCELED);
    began = weft_now();
    WEFT_SHIELD(weft_ms(10)) {
        r = weft_sleep(weft_ms(4));
        CHECK(r == 0);
        WEFT_TIMEOUT(weft_ms(2)) r = weft_sleep(weft_secs(9));
        CHECK(r == -ETIME);
        CHECK(weft_now() - began == weft_ms(6));
        CHECK(weft_yield() == 0);
        CHECK(weft_sleep(weft_secs(9)) == -ETIME); /* its own time is over */
        CHECK(weft_now() - began == weft_ms(10));
        CHECK(weft_yield() == -ETIME);
    }
    CHECK(weft_yield() == -ECANCELED); /* as before */
    return 0;
}

struct says_goodbye {
    WEFT_FRAME(int);
    weft_time ns;
    struct weft_sleep sleep;
};
static weft_async(says_goodbye)
{
    weft_begin;
    weft_await(f->sleep, weft_sleep, f->ns);
    weft_return(f->sleep.ret);
    weft_end;
}

struct cleans_up_too {
    WEFT_FRAME(int);
    struct bell *bell;
    weft_time began;
    struct hear hear;
    struct says_goodbye bye;
    struct weft_shield sh;
};
static weft_async(cleans_up_too)
{
    weft_begin;
    weft_await(f->hear, hear, .bell = f->bell);
    if (f->hear.ret != -ECANCELED) weft_return(1);
    f->began = weft_now();
    weft_await(f->sh, weft_shield, weft_ms(10), weft_arm(f->bye, says_goodbye, weft_ms(4)));
    if (f->sh.ret != 0 || f->bye.ret != 0 || weft_now() - f->began != weft_ms(4)) weft_return(2);
    weft_await(f->sh, weft_shield, weft_ms(10), weft_arm(f->bye, says_goodbye, weft_secs(1)));
    if (f->sh.ret != -ETIME || f->bye.ret != -ETIME || weft_now() - f->began != weft_ms(14)) weft_return(3);
    weft_await(f->bye, says_goodbye, weft_secs(1));
    weft_return(f->bye.ret == -ECANCELED ? 0 : 4);
    weft_end;
}

static void shield_under_cancel(struct crew *crew)
{
    (void)crew;
    for (int kind = 0; kind < 2; kind++) {
        struct bell bell;
        bell_init(&bell);
        weft_task *t = kind ? weft_go(cleans_up, &bell) : weft_spawn(cleans_up_too, &bell);
        CREW_UNTIL(bell_awaited(&bell));
        weft_cancel(t);
        ASSERT_EQ(join_int(t), 0);
        bell_done(&bell);
    }
}

TEST(shield_gives_clean_up_a_time_of_its_own)
{
    still_each(shield_under_cancel);
}

/* The deadline outside runs on while a shield is up, and is heard behind it. */
ON_A_FIBER(shield_does_not_stop_the_clock)
{
    weft_time began = weft_now();
    int in = 1;
    int behind = 1;
    WEFT_TIMEOUT(weft_ms(5)) {
        WEFT_SHIELD(weft_ms(100)) in = weft_sleep(weft_ms(8));
        CHECK(weft_now() - began == weft_ms(8));
        behind = weft_sleep(weft_ms(8));
    }
    CHECK(in == 0 && behind == -ETIME);
    CHECK(weft_now() - began == weft_ms(8));
    return 0;
}

/* ---- stackless ---- */

struct stackless {
    WEFT_FRAME(int);
    weft_time began;
    struct box box;
    struct weft_sleep sleep;
    struct box_take take;
    struct weft_timeout to;
    struct weft_timeout inner;
    struct weft_deadline at;
    struct weft_select sel;
    weft_token token;
    struct weft_until until;
};
static weft_async(stackless)
{
    weft_begin;
    box_init(&f->box);
    f->began = weft_now();
    weft_await(f->to, weft_timeout, weft_ms(5), weft_arm(f->sleep, weft_sleep, weft_secs(60)));
    if (f->to.ret != -ETIME || f->sleep.ret != -ETIME || weft_now() - f->began != weft_ms(5)) weft_return(1);
    weft_await(f->to, weft_timeout, weft_ms(5), weft_arm(f->sleep, weft_sleep, weft_ms(4)));
    if (f->to.ret != 0 || f->sleep.ret != 0 || weft_now() - f->began != weft_ms(9)) weft_return(2);
    weft_await(f->at, weft_deadline, f->began + weft_ms(12), weft_arm(f->sleep, weft_sleep, weft_ms(4)));
    if (f->at.ret != -ETIME || weft_now() - f->began != weft_ms(12)) weft_return(3);
    box_put(&f->box);
    weft_await(f->to, weft_timeout, 0, weft_arm(f->take, box_take, &f->box));
    if (f->to.ret != 0 || f->take.ret != 0) weft_return(4);
    weft_await(f->to, weft_timeout, 0, weft_arm(f->take, box_take, &f->box));
    if (f->to.ret != -ETIME || f->take.ret != -ETIME) weft_return(5);
    /* nested: the inner one passes first, then the outer one */
    weft_await(f->to, weft_timeout, weft_ms(50),
               weft_arm(f->inner, weft_timeout, weft_ms(5), weft_arm(f->sleep, weft_sleep, weft_secs(1))));
    if (f->to.ret != 0 || f->inner.ret != -ETIME) weft_return(6);
    weft_await(f->to, weft_timeout, weft_ms(5),
               weft_arm(f->inner, weft_timeout, weft_ms(50), weft_arm(f->sleep, weft_sleep, weft_secs(1))));
    if (f->to.ret != -ETIME || f->inner.ret != -ETIME) weft_return(7);
    /* in a select: the first to pass */
    f->began = weft_now();
    weft_await(f->sel, weft_select, .arm = {
        weft_arm(f->to, weft_timeout, weft_ms(9), weft_arm(f->take, box_take, &f->box)),
        weft_arm(f->inner, weft_timeout, weft_ms(3), weft_arm(f->sleep, weft_sleep, weft_secs(1)))});
    if (f->sel.ret != 1 || f->to.ret != -ECANCELED || f->inner.ret != -ETIME || weft_now() - f->began != weft_ms(3)) weft_return(8);
    /* over a select, and over nobody */
    weft_await(f->to, weft_timeout, weft_ms(2), weft_arm(f->sel, weft_select, .arm = {weft_arm(f->take, box_take, &f->box)}));
    if (f->to.ret != -ETIME || f->sel.ret != -ETIME || f->take.ret != -ETIME) weft_return(9);
    weft_await(f->to, weft_timeout, weft_ms(2), weft_when(false, weft_arm(f->take, box_take, &f->box)));
    if (f->to.ret != -EINVAL) weft_return(10);
    weft_token_init(&f->token, NULL);
    weft_await(f->until, weft_until, &f->token,
               weft_arm(f->to, weft_timeout, weft_ms(2), weft_arm(f->take, box_take, &f->box)));
    if (f->until.ret != 0 || f->to.ret != -ETIME) weft_return(11);
    weft_token_done(&f->token);
    weft_return(box_done(&f->box) == 0 ? 0 : 12);
    weft_end;
}

static void stackless_too(struct crew *crew)
{
    (void)crew;
    ASSERT_EQ(join_int(weft_spawn(stackless)), 0);
}

TEST(deadline_around_a_child_frame)
{
    still_each(stackless_too);
}

/* ---- the reason travels ---- */

static int sleeps_long(void)
{
    return weft_sleep(weft_secs(100));
}

static int stubborn_child(weft_time *ended)
{
    int r = weft_sleep(weft_secs(100));
    WEFT_SHIELD(weft_secs(1)) (void)weft_sleep(weft_ms(7));
    *ended = weft_now();
    return r == -ETIME ? 5 : -1;
}

ON_A_FIBER(deadline_passes_through_a_join)
{
    weft_time began = weft_now();
    weft_time ended = 0;
    int r = 1;
    int joined = 1;
    WEFT_TIMEOUT(weft_ms(5)) joined = weft_join(weft_go(sleeps_long), &r);
    CHECK(joined == 0 && r == -ETIME); /* the child was told the same */
    WEFT_TIMEOUT(weft_ms(5)) joined = weft_join(weft_go(stubborn_child, &ended), &r);
    CHECK(joined == 0 && r == 5); /* a deadline bounds the request, not the return */
    CHECK(ended - began == weft_ms(5 + 5 + 7));
    WEFT_SHIELD(weft_ms(5)) joined = weft_join(weft_go(sleeps_long), &r);
    CHECK(joined == 0 && r == -ETIME);
    return 0;
}

/* A task that ends with what it was stopped with has not failed, and nobody is told. */
static int unread(void)
{
    weft_task *t = weft_go(sleeps_long);
    struct weft_join j;
    struct weft_timeout to;
    int r = 0;
    weft_arm(to, weft_timeout, weft_ms(3), weft_arm(j, weft_join, t, &r));
    (void)weft__run(weft_timeout_poll, &to);
    CHECK(to.ret == 0 && j.ret == 0 && r == -ETIME);
    return 0;
}

static void nobody_is_told(struct crew *crew)
{
    struct weft_stats stats;
    ASSERT_EQ(join_int(weft_go(unread)), 0);
    weft_rt_stats(crew->rt, &stats);
    ASSERT_EQ(stats.unread_failures, 0);
}

TEST(deadline_is_no_failure_of_who_was_stopped_by_it)
{
    still_each(nobody_is_told);
}

/* ---- late success ---- */

ON_A_FIBER(deadline_that_comes_too_late)
{
    struct bell bell;
    int r = 1;
    bell_init(&bell);
    bell_ring(&bell);
    WEFT_TIMEOUT(weft_ms(5)) {
        CHECK(weft_sleep(weft_ms(100)) == -ETIME);
        r = weft_run(hear, .bell = &bell); /* had happened already: it says so */
    }
    CHECK(r == 0);
    bell_done(&bell);
    return 0;
}

/* ---- a loop with a timer that is kept ---- */

static int idle_timer(weft_time idle, int puts)
{
    struct box box;
    struct box_take take;
    struct weft_sleep quiet;
    int got = 0;
    int which;

    box_init(&box);
    for (int i = 0; i < puts; i++)
        box_put(&box);
    weft_start(quiet, weft_sleep, idle);
    while ((which = weft_select(weft_arm(take, box_take, &box), weft_keep(quiet, weft_sleep))) == 0)
        got++;
    weft_settle(quiet, weft_sleep);
    return which == 1 && got == puts && box_done(&box) == 0 ? 0 : 1;
}

ON_A_FIBER(keeps_a_timer)
{
    weft_time began = weft_now();
    CHECK(idle_timer(weft_ms(5), 20) == 0);
    CHECK(weft_now() - began == weft_ms(5)); /* one timer, not one for each round */
    weft_interval every = weft_interval_at(weft_now() + weft_ms(2), weft_ms(2));
    struct weft_tick tick;
    struct weft_sleep end;
    int ticks = 0;
    weft_start(tick, weft_tick, &every);
    weft_start(end, weft_sleep, weft_ms(9));
    began = weft_now();
    while (weft_select(weft_keep(tick, weft_tick), weft_keep(end, weft_sleep)) == 0)
        ticks++;
    weft_settle(tick, weft_tick);
    weft_settle(end, weft_sleep);
    CHECK(ticks == 4 && weft_now() - began == weft_ms(9));
    return 0;
}

/* ---- plain threads ---- */

TEST(deadline_on_a_plain_thread)
{
    int r = 1;
    WEFT_TIMEOUT(weft_ms(1)) {
        r = weft_sleep(weft_secs(3600));
        ASSERT_EQ(r, -ETIME);
        r = weft_sleep(weft_secs(3600)); /* another call, another waker: it still asks */
    }
    ASSERT_EQ(r, -ETIME);
    ASSERT_OK(weft_sleep(1));
    WEFT_TIMEOUT(weft_ms(20)) {
        r = 0;
        for (int i = 0; i < 1000000 && r == 0; i++)
            r = weft_sleep(weft_us(100)); /* each shorter than the whole: its time is not begun anew */
    }
    ASSERT_EQ(r, -ETIME);
    WEFT_UNTIL(NULL) WEFT_SHIELD(weft_ms(1)) r = weft_sleep(weft_secs(3600));
    ASSERT_EQ(r, -ETIME);
    ASSERT_EQ(idle_timer(weft_ms(2), 50), 0);
}
