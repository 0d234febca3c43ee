/* SPDX-License-Identifier: MIT
 *
 * Loops that ignore that they were told to stop: whatever they wait for, they let others run; and who
 * goes on for long is named.
 */
#include "crew.h"
#include "death.h"
#include "test.h"

#include "sched/sched.h"

#include <errno.h>
#include <string.h>
#include <weft/weft.h>

static _Atomic bool gate; /* relaxed, all: flags and counts */
static _Atomic uint32_t told;
static weft_token never;

enum { YIELD, SLEEP, SLEEP_UNTIL, TICK, TOKEN, WAIT, BLOCKING, SELECT, TIMEOUT, WAITS };

static int nothing(void)
{
    return 0;
}

static void note(int64_t r)
{
    if (r == -ECANCELED || r == -ETIME) fetch_add_relaxed(&told, 1);
}

/* ---- as fibers ---- */

static int waits_once(int kind, weft_task *endless, weft_interval *every)
{
    struct weft_sleep sleep;
    struct weft_token_wait token;
    switch (kind) {
    case SLEEP:
        return weft_sleep(weft_secs(3600));
    case SLEEP_UNTIL:
        return weft_sleep_until(WEFT_FOREVER);
    case TICK:
        return weft_tick(every);
    case TOKEN:
        return weft_token_wait(&never);
    case WAIT:
        return weft_wait(endless);
    case BLOCKING:
        return weft_blocking(nothing);
    case SELECT:
        return weft_select(weft_arm(sleep, weft_sleep, weft_secs(3600)),
                           weft_arm(token, weft_token_wait, &never));
    case TIMEOUT:
        WEFT_TIMEOUT(weft_secs(3600)) return weft_sleep(weft_secs(7200));
        return 0;
    default:
        return weft_yield();
    }
}

static int deaf_fiber(int kind, weft_task *endless)
{
    weft_interval every = weft_interval_at(WEFT_FOREVER, weft_secs(1));
    while (!load_relaxed(&gate))
        note(waits_once(kind, endless, &every));
    return 1;
}

/* ---- stackless ---- */

struct deaf_stackless {
    WEFT_FRAME(int);
    int kind;
    weft_task *endless;
    weft_interval every;
    struct weft_yield yield;
    struct weft_sleep sleep;
    struct weft_sleep_until until;
    struct weft_tick tick;
    struct weft_token_wait token;
    struct weft_wait wait;
    struct weft_blocking job;
    struct weft_select sel;
    struct weft_timeout to;
};
static weft_async(deaf_stackless)
{
    weft_begin;
    f->every = weft_interval_at(WEFT_FOREVER, weft_secs(1));
    while (!load_relaxed(&gate)) {
        switch (f->kind) {
        case SLEEP:
            weft_await(f->sleep, weft_sleep, weft_secs(3600));
            note(f->sleep.ret);
            break;
        case SLEEP_UNTIL:
            weft_await(f->until, weft_sleep_until, WEFT_FOREVER);
            note(f->until.ret);
            break;
        case TICK:
            weft_await(f->tick, weft_tick, &f->every);
            note(f->tick.ret);
            break;
        case TOKEN:
            weft_await(f->token, weft_token_wait, &never);
            note(f->token.ret);
            break;
        case WAIT:
            weft_await(f->wait, weft_wait, f->endless);
            note(f->wait.ret);
            break;
        case BLOCKING:
            weft_await(f->job, weft_blocking, weft_bind(nothing));
            note(f->job.ret);
            break;
        case SELECT:
            weft_await(f->sel, weft_select,
                       .arm = {weft_arm(f->sleep, weft_sleep, weft_secs(3600)),
                               weft_arm(f->token, weft_token_wait, &never)});
            note(f->sel.ret);
            break;
        case TIMEOUT:
            weft_await(f->to, weft_timeout, weft_secs(3600),
                       weft_arm(f->sleep, weft_sleep, weft_secs(7200)));
            note(f->to.ret);
            break;
        default:
            weft_await(f->yield, weft_yield);
            note(f->yield.ret);
            break;
        }
    }
    weft_return(1);
    weft_end;
}

/* ---- they yield ---- */

static int sleeps_for_ever(void)
{
    return weft_sleep(WEFT_FOREVER);
}

static int answers_seven(void)
{
    return 7;
}

static int opens_the_gate(void)
{
    store_relaxed(&gate, true);
    return 0;
}

/* More of them than workers: they must let the one through that sets them free. */
static void deaf_ones(int kind, weft_task *endless)
{
    enum { COUNT = 5 };
    weft_task *task[2 * COUNT];
    int got;

    store_relaxed(&gate, false);
    store_relaxed(&told, 0);
    for (int i = 0; i < COUNT; i++) {
        task[2 * i] = weft_go(deaf_fiber, kind, endless);
        task[2 * i + 1] = weft_spawn(deaf_stackless, .kind = kind, .endless = endless);
    }
    for (int i = 0; i < 2 * COUNT; i++)
        weft_cancel(task[i]);
    CREW_UNTIL(load_relaxed(&told) > 3000); /* many budgets */
    for (int i = 0; i < 10; i++)
        ASSERT_OK(weft_join(weft_go(answers_seven), &got));
    ASSERT_OK(weft_join(weft_go(opens_the_gate), &got));
    for (int i = 0; i < 2 * COUNT; i++) {
        ASSERT_OK(weft_join(task[i], &got));
        ASSERT_EQ(got, 1);
    }
}

static void deaf_of_all_kinds(struct crew *crew)
{
    int r = 0;
    (void)crew;
    weft_task *endless = weft_go(sleeps_for_ever);
    for (int kind = 0; kind < WAITS; kind++)
        deaf_ones(kind, endless);
    weft_cancel(endless);
    ASSERT_OK(weft_join(endless, &r));
    ASSERT_EQ(r, -ECANCELED);
}

TEST(deaf_loops_let_others_run_whatever_they_wait_for)
{
    crew_each(deaf_of_all_kinds);
}

/* The same inside of a block whose time is over. */
static int deaf_in_a_block(void)
{
    WEFT_DEADLINE(weft_now() - 1)
    {
        while (!load_relaxed(&gate))
            note(weft_sleep(weft_secs(3600)));
    }
    return 1;
}

static void deaf_blocks(struct crew *crew)
{
    weft_task *task[6];
    int got;

    (void)crew;
    store_relaxed(&gate, false);
    store_relaxed(&told, 0);
    for (int i = 0; i < 6; i++)
        task[i] = weft_go(deaf_in_a_block);
    CREW_UNTIL(load_relaxed(&told) > 10000);
    ASSERT_OK(weft_join(weft_go(opens_the_gate), &got));
    for (int i = 0; i < 6; i++)
        ASSERT_OK(weft_join(task[i], &got));
}

TEST(deaf_loops_behind_a_deadline_let_others_run)
{
    crew_each(deaf_blocks);
}

/* ---- and are named ---- */

static bool somebody_was_named(struct weft_rt *rt)
{
    weft__lock_take(&rt->deaf.lock);
    bool named = rt->deaf.named_count > 0;
    weft__lock_drop(&rt->deaf.lock);
    return named;
}

static void goes_on_and_on(void *arg)
{
    const int *workers = arg;
    struct crew crew;
    int got;

    store_relaxed(&gate, false);
    crew_start(&crew, *workers);
    crew.rt->deaf.after_ns = weft_ms(5);
    weft_task *t = weft_go_as((.name = "stubborn"), deaf_fiber, (int)SLEEP, (weft_task *)NULL);
    weft_cancel(t);
    while (!somebody_was_named(crew.rt))
        sched_yield();
    store_relaxed(&gate, true);
    ASSERT_OK(weft_join(t, &got));
    crew_stop(&crew);
}

TEST(deaf_loop_that_goes_on_is_named_once)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        int workers = crew_sizes[i];
        struct death d = death_of(goes_on_and_on, &workers);
        ASSERT_EQ(d.signal, 0);
        ASSERT_EQ(d.code, 0);
        const char *line = strstr(d.said, "weft: task 'stubborn' (spawned at ");
        ASSERT(line != NULL);
        ASSERT(strstr(line, "cancel_deaf.c:"));
        ASSERT(strstr(line, "was told to stop, and goes on"));
        ASSERT(!strstr(line + 1, "weft: task 'stubborn'")); /* once */
    }
}

/* Clean-up that is refused a thousand times, and ends, is nobody's business. */
static int cleans_up(void)
{
    int refused = weft_sleep(WEFT_FOREVER) == -ECANCELED;
    for (int i = 1; i < 1000; i++)
        refused += weft_sleep(1) == -ECANCELED;
    return refused;
}

static void brief(struct crew *crew)
{
    int refused = 0;
    crew->rt->deaf.after_ns = weft_secs(3600); /* it is time that counts, not how often */
    weft_task *t = weft_go(cleans_up);
    weft_cancel(t);
    ASSERT_OK(weft_join(t, &refused));
    ASSERT_EQ(refused, 1000);
    ASSERT(!somebody_was_named(crew->rt));
}

TEST(deaf_for_a_moment_is_nobodys_business)
{
    crew_each(brief);
}
