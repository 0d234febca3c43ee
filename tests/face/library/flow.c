/* SPDX-License-Identifier: MIT
 *
 * Regions and combinators as the page writes them: every macro, in both forms, at every level of optimisation.
 */
#include "../face.h"

static weft_token stop;

/* ---- stackless ---- */

struct waits {
    WEFT_FRAME(int);
    int left;
    struct countdown down;
};
static weft_async(waits)
{
    weft_begin;
    weft_await(f->down, countdown, f->left);
    weft_return(f->down.ret);
    weft_end;
}

struct stackless {
    WEFT_FRAME(int);
    int i;
    int wins;
    struct waits a;
    struct waits b;
    struct weft_sleep sleep;
    struct weft_token_wait quit;
    struct weft_select sel;
    struct weft_select inner;
    struct weft_race race;
    struct weft_all all;
    struct weft_try_all try_all;
    struct weft_then then;
    struct weft_timeout to;
    struct weft_deadline at;
    struct weft_shield sh;
    struct weft_until until;
    weft_future arms[2];
};
static weft_async(stackless)
{
    weft_begin;
    weft_await(f->sel, weft_select, .arm = {weft_arm(f->a, waits, 3), weft_arm(f->b, waits, .left = 30)});
    CHECK_EQ(f->sel.ret, 0);
    CHECK_EQ(f->a.ret, 0);
    CHECK_EQ(f->b.ret, -ECANCELED);
    weft_await(f->sel, weft_select, .biased = true,
               .arm = {weft_when(f->i == 1, weft_arm(f->a, waits, 0)), weft_arm(f->b, waits), weft_otherwise});
    CHECK_EQ(f->sel.ret, 1);
    weft_start(f->quit, weft_token_wait, &stop);
    for (f->i = 0; f->i < 3; f->i++) {
        weft_await(f->sel, weft_select, .arm = {weft_keep(f->quit, weft_token_wait), weft_arm(f->a, waits, f->i)});
        switch (f->sel.ret) {
        case 1: f->wins++; break;
        default: weft_return(f->sel.ret);
        }
    }
    weft_await_settled(f->quit, weft_token_wait);
    CHECK_EQ(f->wins, 3);
    weft_await(f->sel, weft_select, .arm = {weft_arm(f->inner, weft_select, .arm = {weft_arm(f->a, waits, 2)}), weft_arm(f->b, waits, 50)});
    CHECK_EQ(f->sel.ret + f->inner.ret, 0);
    f->arms[0] = weft_arm(f->a, waits, 20);
    f->arms[1] = weft_arm(f->b, waits, 2);
    weft_await(f->race, weft_race, f->arms, 2);
    CHECK_EQ(f->race.ret, 1);
    weft_await(f->all, weft_all, .arm = {weft_arm(f->a, waits, 2), weft_arm(f->b, waits, 1)});
    CHECK_EQ(f->all.ret, 0);
    weft_await(f->try_all, weft_try_all, .arm = {weft_arm(f->a, waits, 2), weft_arm(f->to, weft_timeout, 1, weft_arm(f->sleep, weft_sleep, weft_secs(99)))});
    CHECK_EQ(f->try_all.ret, -ETIME);
    weft_await(f->then, weft_then, .arm = {weft_arm(f->a, waits, 2), weft_arm(f->b, waits, 1)});
    CHECK_EQ(f->then.ret, 0);
    weft_await(f->at, weft_deadline, weft_now(), weft_arm(f->sleep, weft_sleep, weft_secs(99)));
    CHECK_EQ(f->at.ret, -ETIME);
    weft_await(f->sh, weft_shield, weft_secs(99), weft_arm(f->a, waits, 2));
    CHECK_EQ(f->sh.ret, 0);
    weft_await(f->until, weft_until, &stop, weft_arm(f->a, waits, 2));
    CHECK_EQ(f->until.ret, 0);
    weft_return(f->wins);
    weft_end;
}

/* ---- fibers ---- */

static int leaves_by_return(void)
{
    int r;
    WEFT_TIMEOUT(weft_secs(99)) r = weft_yield();
    WEFT_UNTIL(&stop) WEFT_SHIELD(weft_secs(9)) return r + 7;
    return -1;
}

static int on_fiber(void)
{
    struct waits a;
    struct waits b;
    struct weft_sleep quiet;
    int r = 1;
    int rounds = 0;

    WEFT_TIMEOUT(1) r = weft_sleep(weft_secs(99));
    CHECK_EQ(r, -ETIME);
    WEFT_DEADLINE(weft_now()) {
        WEFT_SHIELD(1) r = weft_sleep(weft_secs(99));
        CHECK_EQ(r, -ETIME);
        WEFT_TIMEOUT(weft_secs(9)) continue;
        break;
    }
    CHECK_EQ(leaves_by_return(), 7);
    r = weft_select(weft_arm(a, waits, 20), weft_when(r < 0, weft_arm(b, waits, .left = 2)));
    CHECK_EQ(r, 1);
    CHECK_EQ(weft_select_biased(weft_arm(a, waits, 20), weft_otherwise), 1);
    weft_start(quiet, weft_sleep, weft_secs(99));
    while (weft_select(weft_arm(a, waits, 1), weft_keep(quiet, weft_sleep)) == 0 && ++rounds < 3)
        weft_sleep_reset(&quiet, weft_now() + weft_secs(99));
    weft_settle(quiet, weft_sleep);
    CHECK_EQ(rounds, 3);
    CHECK_EQ(weft_all(weft_arm(a, waits, 1), weft_arm(b, waits)), 0);
    CHECK_EQ(weft_try_all(weft_arm(a, waits, 1), weft_arm(b, waits)), 0);
    CHECK_EQ(weft_then(weft_arm(a, waits, 1), weft_arm(b, waits)), 0);
    return 0;
}

static int app(void)
{
    int r = 1;
    CHECK_EQ(weft_join(weft_spawn(stackless), &r), 0);
    CHECK_EQ(r, 3);
    CHECK_EQ(weft_join(weft_go(on_fiber), &r), 0);
    CHECK_EQ(r, 0);
    weft_token_done(&stop);
    return 0;
}

WEFT_MAIN(app)
