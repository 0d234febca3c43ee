/* SPDX-License-Identifier: MIT
 *
 * A loop over what is always ready lets others run: what a look finds costs budget, as what a poll finds does, and without any left it waits for its next
 * turn. But a look is never told "no" for want of budget: "otherwise" wins only where nothing is ready.
 */
#include "crew.h"
#include "test.h"

#include <errno.h>
#include <weft/weft.h>

typedef WEFT_SET(int) int_set;

static _Atomic bool heard;
static weft_event event = WEFT_EVENT_INIT;
static weft_sem sem = WEFT_SEM_INIT(1);
static int_set empty;
static weft_tracker tracker;
static weft_token over_token;
static weft_task *ended;

static void says(void)
{
    store_relaxed(&heard, true); /* relaxed: a flag of the test's */
}

/* On one worker: who loops sees the flag only if it lets the other run. */
static int loops(int over)
{
    struct weft_event_wait wait;
    struct weft_sem_acquire acquire;
    struct weft_set_join_next next;
    struct weft_tracker_wait all;
    struct weft_sleep sleep;
    int got;

    store_relaxed(&heard, false);
    ASSERT_OK(weft_detach(weft_go(says)));
    while (!load_relaxed(&heard)) {
        int which = 0;
        if (over == 0) which = weft_select(weft_arm(wait, weft_event_wait, &event));
        if (over == 1) {
            which = weft_select(weft_arm(acquire, weft_sem_acquire, &sem, 1));
            weft_sem_release(&sem, 1);
        }
        if (over == 2) which = weft_select(weft_arm(next, weft_set_join_next, &empty, &got));
        if (over == 3) which = weft_select(weft_arm(all, weft_tracker_wait, &tracker));
        if (over == 4) which = weft_wait(ended);
        if (over == 5) which = weft_token_wait(&over_token);
        if (over == 6)
            which = weft_select(weft_arm(sleep, weft_sleep, weft_secs(3600)), weft_otherwise) - 1;
        if (over == 7) WEFT_SCOPE(nobody) continue;
        ASSERT_OK(which);
    }
    return 0;
}

static int is_done(void)
{
    return 0;
}

static void lets_others_run(int workers)
{
    struct crew crew;
    int r = 1;
    crew_start(&crew, workers);
    weft_event_set(&event);
    (void)weft_tracker_close(&tracker);
    weft_token_cancel(&over_token);
    weft_task *task = weft_go(is_done);
    ended = weft_ref(task);
    ASSERT_OK(weft_join(task, &r));
    for (int over = 0; over < 8; over++) {
        ASSERT_OK(weft_join(weft_go(loops, over), &r));
        ASSERT_OK(r);
    }
    weft_unref(ended);
    crew_stop(&crew);
}

TEST(select_loop_over_what_is_ready_yields)
{
    lets_others_run(1);
    lets_others_run(-1);
}

/* ---- otherwise ---- */

/* Many budgets long, with several arms of which the last one is ready. */
static int drains(void)
{
    struct weft_sem_acquire no, neither;
    struct weft_event_wait yes;
    weft_sem none = WEFT_SEM_INIT(0);

    for (int i = 0; i < 2000; i++)
        ASSERT_EQ(weft_select_biased(weft_arm(no, weft_sem_acquire, &none, 1),
                                     weft_arm(neither, weft_sem_acquire, &none, 1),
                                     weft_arm(yes, weft_event_wait, &event), weft_otherwise),
                  2);
    return 0;
}

struct drains_stackless {
    WEFT_FRAME(int);
    int i;
    weft_sem none;
    struct weft_sem_acquire no;
    struct weft_event_wait yes;
    struct weft_select sel;
};
static weft_async(drains_stackless)
{
    weft_begin;
    for (; f->i < 2000; f->i++) {
        weft_await(f->sel, weft_select,
                   .arm = {weft_arm(f->no, weft_sem_acquire, &f->none, 1),
                           weft_arm(f->yes, weft_event_wait, &event), weft_otherwise});
        if (f->sel.ret != 1) weft_return(-EIO);
    }
    weft_return(0);
    weft_end;
}

static void never_otherwise(struct crew *crew)
{
    int r = -1;
    (void)crew;
    weft_event_set(&event);
    ASSERT_OK(weft_join(weft_go(drains), &r));
    ASSERT_OK(r);
    ASSERT_OK(weft_join(weft_spawn(drains_stackless), &r));
    ASSERT_OK(r);
}

TEST(select_takes_otherwise_only_where_nothing_is_ready)
{
    crew_each(never_otherwise);
}
