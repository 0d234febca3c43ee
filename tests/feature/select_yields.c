/* SPDX-License-Identifier: MIT
 *
 * A loop of selects over what is always ready lets others run: what a look finds costs budget, as what a poll finds does, and without any left the select waits
 * for its next turn.
 */
#include "crew.h"
#include "test.h"

#include <weft/weft.h>

typedef WEFT_SET(int) int_set;

static _Atomic bool heard;
static weft_event event = WEFT_EVENT_INIT;
static weft_sem sem = WEFT_SEM_INIT(1);
static int_set empty;
static weft_tracker tracker;

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
        ASSERT_OK(which);
    }
    return 0;
}

static void lets_others_run(int workers)
{
    struct crew crew;
    int r = 1;
    crew_start(&crew, workers);
    weft_event_set(&event);
    (void)weft_tracker_close(&tracker);
    for (int over = 0; over < 4; over++) {
        ASSERT_OK(weft_join(weft_go(loops, over), &r));
        ASSERT_OK(r);
    }
    crew_stop(&crew);
}

TEST(select_loop_over_what_is_ready_yields)
{
    lets_others_run(1);
    lets_others_run(-1);
}
