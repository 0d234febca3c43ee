/* SPDX-License-Identifier: MIT
 *
 * A child is told -ETIME by a deadline, cleans up behind a shield, and answers that; meanwhile its task was cancelled, and the reason is another one. It gave up all
 * the same: what is around it says so, and does not take the answer for a result. On a clock that stands.
 */
#include "crew.h"
#include "test.h"

#include <errno.h>
#include <weft/weft.h>

#define LIMIT    weft_ms(10) /* the deadline */
#define CANCEL   weft_ms(30) /* the cancel */
#define CLEAN_UP weft_ms(50) /* from the deadline on */

static weft_event never;

struct tidy {
    WEFT_FRAME(int);
    struct weft_event_wait wait;
    struct weft_sleep sleep;
    struct weft_shield shield;
};
static weft_async(tidy)
{
    weft_begin;
    weft_await(f->wait, weft_event_wait, &never);
    weft_await(f->shield, weft_shield, WEFT_FOREVER, weft_arm(f->sleep, weft_sleep, CLEAN_UP));
    ASSERT_OK(f->sleep.ret);
    weft_return(f->wait.ret);
    weft_end;
}

enum { TIMEOUT, DEADLINE, SELECT, ALL, TRY_ALL, RUN, SHAPES };

struct around {
    WEFT_FRAME(int);
    int shape;
    int error;
    struct tidy tidy;
    struct weft_event_wait beside;
    struct weft_timeout timeout;
    struct weft_deadline deadline;
    struct weft_select select;
    struct weft_all all;
    struct weft_try_all try_all;
    struct weft_scope_run run;
    weft_scope scope;
};
static weft_async(around)
{
    weft_begin;
    switch (f->shape) {
    case TIMEOUT:
        weft_await(f->timeout, weft_timeout, LIMIT, weft_arm(f->tidy, tidy));
        ASSERT_EQ(f->timeout.ret, -ETIME);
        break;
    case DEADLINE:
        weft_await(f->deadline, weft_deadline, weft_later(weft_now(), LIMIT),
                   weft_arm(f->tidy, tidy));
        ASSERT_EQ(f->deadline.ret, -ETIME);
        break;
    case SELECT:
        weft_await(f->timeout, weft_timeout, LIMIT,
                   weft_arm(f->select, weft_select,
                            .arm = {weft_arm(f->tidy, tidy),
                                    weft_arm(f->beside, weft_event_wait, &never)}));
        ASSERT_EQ(f->select.ret, -ETIME); /* nobody has won */
        ASSERT_EQ(f->timeout.ret, -ETIME);
        break;
    case ALL:
        weft_await(f->timeout, weft_timeout, LIMIT,
                   weft_arm(f->all, weft_all, .arm = {weft_arm(f->tidy, tidy)}));
        ASSERT_EQ(f->all.ret, -ETIME);
        ASSERT_EQ(f->timeout.ret, -ETIME);
        break;
    case TRY_ALL:
        weft_await(f->timeout, weft_timeout, LIMIT,
                   weft_arm(f->try_all, weft_try_all, .arm = {weft_arm(f->tidy, tidy)}));
        ASSERT_EQ(f->try_all.ret, -ETIME);
        ASSERT_EQ(f->timeout.ret, -ETIME);
        break;
    default:
        weft_scope_init(&f->scope, .error = &f->error, .timeout = LIMIT);
        weft_await(f->run, weft_scope_run, &f->scope, weft_arm(f->tidy, tidy));
        ASSERT_OK(f->run.ret);
        ASSERT_EQ(f->error, -ETIME);
        break;
    }
    ASSERT_EQ(f->tidy.ret, -ETIME);
    weft_return(0);
    weft_end;
}

/* ---- the same in blocks, whose call forms are combinators inside ---- */

static int tidy_up(void)
{
    int r = weft_event_wait(&never);
    WEFT_SHIELD(WEFT_FOREVER) ASSERT_OK(weft_sleep(CLEAN_UP));
    return r;
}

struct tidy_fiber {
    WEFT_FRAME(int);
};
static weft_fiber(tidy_fiber)
{
    f->ret = tidy_up();
}

static int in_a_block(void)
{
    struct tidy_fiber t;
    struct weft_event_wait beside;
    int r = 0;
    WEFT_TIMEOUT(LIMIT)
    r = weft_select(weft_arm(t, tidy_fiber), weft_arm(beside, weft_event_wait, &never));
    ASSERT_EQ(r, -ETIME);
    ASSERT_EQ(t.ret, -ETIME);
    return 0;
}

static int cancelled_meanwhile(weft_task *t)
{
    int r = -1;
    ASSERT_OK(weft_sleep(CANCEL));
    weft_cancel(t);
    ASSERT_OK(weft_join(t, &r));
    return r;
}

static int all_shapes(void)
{
    for (int shape = 0; shape < SHAPES; shape++)
        ASSERT_OK(cancelled_meanwhile(weft_spawn(around, .shape = shape)));
    ASSERT_OK(cancelled_meanwhile(weft_go(in_a_block)));
    return 0;
}

TEST(who_gave_up_is_known_by_the_reason_it_was_told_first)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        int r = -1;
        crew_start_with(
            &crew,
            &(weft_rt_opts){.workers = crew_sizes[i], .seed = test_seed() | 1, .paused = true});
        weft_event_init(&never);
        ASSERT_OK(weft_join(weft_go(all_shapes), &r));
        ASSERT_OK(r);
        weft_event_done(&never);
        crew_stop(&crew);
    }
}
