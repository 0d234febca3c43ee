/* SPDX-License-Identifier: MIT
 *
 * Sets and trackers by hand: places, turns and who passes them on, looks that register nothing, with leaves that are polled on no task.
 */
#include "flow/set.h"

#include "counted.h"
#include "test.h"

#include <errno.h>
#include <signal.h>
#include <weft/tracker.h>

/* ---- places ---- */

TEST(set_places_are_given_in_turn)
{
    weft_set set = {.limit = 1};
    struct counted c[3];
    struct weft_cx cx[3];
    struct weft_set_reserve place[3];

    ASSERT_OK(weft__set_try_reserve(&set));
    for (int i = 0; i < 3; i++) {
        cx[i] = cx_of(&c[i]);
        place[i] = (struct weft_set_reserve){.set = &set};
        ASSERT_EQ(weft_set_reserve_poll(&place[i], &cx[i]), WEFT_PENDING);
        ASSERT_EQ(weft_set_reserve_poll(&place[i], &cx[i]), WEFT_PENDING); /* for no reason */
    }
    weft_set_permit_drop(&set);
    ASSERT_EQ(c[0].wakes, 1);
    ASSERT_EQ(c[1].wakes, 0);
    ASSERT_EQ(weft__set_try_reserve(&set), -EAGAIN); /* nobody passes while one waits */
    ASSERT_EQ(c[1].wakes, 0);                        /* and nobody is woken by that */
    cx[0].why = -ECANCELED;                          /* it had a turn, and gives up */
    ASSERT_EQ(weft_set_reserve_poll(&place[0], &cx[0]), WEFT_READY);
    ASSERT_EQ(place[0].ret, -ECANCELED);
    ASSERT_EQ(c[1].wakes, 1);
    ASSERT_EQ(weft_set_reserve_poll(&place[1], &cx[1]), WEFT_READY);
    ASSERT_OK(place[1].ret);
    cx[2].why = -ETIME; /* it had none */
    ASSERT_EQ(weft_set_reserve_poll(&place[2], &cx[2]), WEFT_READY);
    ASSERT_EQ(place[2].ret, -ETIME);
    weft_set_permit_drop(&set);
    weft_set_done(&set);
}

/* A turn is a place that is kept, also when nobody else is queued: who comes later does not pass. */
TEST(set_turn_keeps_a_place)
{
    weft_set set = {.limit = 2};
    struct counted c[2];
    struct weft_cx cx[2];
    struct weft_set_reserve place[2];

    for (int i = 0; i < 2; i++)
        ASSERT_OK(weft__set_try_reserve(&set));
    for (int i = 0; i < 2; i++) {
        cx[i] = cx_of(&c[i]);
        place[i] = (struct weft_set_reserve){.set = &set};
        ASSERT_EQ(weft_set_reserve_poll(&place[i], &cx[i]), WEFT_PENDING);
    }
    weft_set_permit_drop(&set);
    weft_set_permit_drop(&set);
    ASSERT_EQ(c[0].wakes, 1);
    ASSERT_EQ(c[1].wakes, 1);
    ASSERT_EQ(weft__set_try_reserve(&set), -EAGAIN); /* both are free, and not for this one */
    cx[1].why = -ECANCELED;                          /* it gives its place up */
    ASSERT_EQ(weft_set_reserve_poll(&place[1], &cx[1]), WEFT_READY);
    ASSERT_EQ(place[1].ret, -ECANCELED);
    ASSERT_OK(weft__set_try_reserve(&set));
    ASSERT_EQ(weft__set_try_reserve(&set), -EAGAIN);
    ASSERT_EQ(weft_set_reserve_poll(&place[0], &cx[0]), WEFT_READY);
    ASSERT_OK(place[0].ret);
    weft_set_permit_drop(&set);
    weft_set_permit_drop(&set);
    weft_set_done(&set);
}

TEST(set_takers_hear_that_nobody_is_left)
{
    weft_set set = {0};
    struct counted c[2];
    struct weft_cx cx[2];
    struct weft_set_join_next next[2];
    struct weft_set_join join = {.set = &set};
    struct counted jc;
    struct weft_cx jcx = cx_of(&jc);

    ASSERT_OK(weft__set_try_reserve(&set));
    for (int i = 0; i < 2; i++) {
        cx[i] = cx_of(&c[i]);
        next[i] = (struct weft_set_join_next){.set = &set};
        ASSERT_EQ(weft_set_join_next_poll(&next[i], &cx[i]), WEFT_PENDING);
    }
    ASSERT_EQ(weft_set_join_poll(&join, &jcx), WEFT_PENDING);
    ASSERT_EQ(weft_set_len(&set), 1);
    weft_set_permit_drop(&set); /* the task was never made */
    ASSERT_EQ(c[0].wakes + c[1].wakes + jc.wakes, 3);
    for (int i = 0; i < 2; i++) {
        ASSERT_EQ(weft_set_join_next_poll(&next[i], &cx[i]), WEFT_READY);
        ASSERT_OK(next[i].ret);
    }
    ASSERT_EQ(weft_set_join_poll(&join, &jcx), WEFT_READY);
    ASSERT_OK(join.ret);
    weft_set_done(&set);
}

TEST(set_looks_register_nothing)
{
    weft_set set = {.limit = 1};
    struct counted c;
    struct weft_cx cx = cx_of(&c);
    struct weft_set_join_next next = {.set = &set};
    struct weft_set_reserve place = {.set = &set};
    struct weft_set_join join = {.set = &set};

    cx.probe = true;
    ASSERT_EQ(weft_set_join_next_poll(&next, &cx), WEFT_READY); /* it is empty */
    ASSERT_OK(next.ret);
    ASSERT_EQ(weft_set_join_poll(&join, &cx), WEFT_READY);
    ASSERT_EQ(weft_set_reserve_poll(&place, &cx), WEFT_READY); /* it took the place */
    ASSERT_OK(place.ret);
    ASSERT_EQ(weft_set_reserve_poll(&place, &cx), WEFT_PENDING);
    ASSERT_EQ(weft_set_join_next_poll(&next, &cx), WEFT_PENDING);
    ASSERT_EQ(weft_set_join_poll(&join, &cx), WEFT_PENDING);
    weft_set_permit_drop(&set);
    cx.budget = 0; /* without budget a look sees nothing, and does not yield */
    ASSERT_EQ(weft_set_join_next_poll(&next, &cx), WEFT_PENDING);
    ASSERT(!cx.yielded);
    cx.probe = false;
    ASSERT_EQ(weft_set_join_next_poll(&next, &cx), WEFT_PENDING);
    ASSERT(cx.yielded);
    ASSERT_EQ(c.wakes, 0);
    weft_set_done(&set);
}

TEST(set_told_before_it_begins)
{
    weft_set set = {0};
    struct counted c;
    struct weft_cx cx = cx_of(&c);
    struct weft_set_join_next next = {.set = &set};

    cx.why = -ETIME;
    ASSERT_EQ(weft_set_join_next_poll(&next, &cx), WEFT_READY);
    ASSERT_EQ(next.ret, -ETIME);
    struct weft_set_stop nobody = {.set = NULL};
    ASSERT_EQ(weft_set_stop_poll(&nobody, &cx), WEFT_READY);
    ASSERT_EQ(nobody.ret, -EINVAL);
    weft_set_cancel((weft_set *)NULL);
    weft_set_cancel(&set);
    weft_set_done(&set);
}

TEST_WITH(set_done_while_one_waits_aborts, .signal = SIGABRT)
{
    weft_set set = {.limit = 1};
    struct counted c;
    struct weft_cx cx = cx_of(&c);
    struct weft_set_reserve place = {.set = &set};
    struct weft__set *s = weft__set_of(&set);

    ASSERT_OK(weft__set_try_reserve(&set));
    ASSERT_EQ(weft_set_reserve_poll(&place, &cx), WEFT_PENDING);
    s->running = 0;
    weft_set_done(&set);
}

/* ---- trackers ---- */

TEST(tracker_turn_is_the_answer)
{
    weft_tracker tracker = {0};
    struct counted c[2];
    struct weft_cx cx[2];
    struct weft_tracker_wait wait[2];

    weft_tracker_enter(&tracker);
    for (int i = 0; i < 2; i++) {
        cx[i] = cx_of(&c[i]);
        wait[i] = (struct weft_tracker_wait){.tracker = &tracker};
        ASSERT_EQ(weft_tracker_wait_poll(&wait[i], &cx[i]), WEFT_PENDING);
    }
    (void)weft_tracker_close(&tracker);
    ASSERT_EQ(c[0].wakes, 0);
    weft_tracker_leave(&tracker);
    ASSERT_EQ(c[0].wakes + c[1].wakes, 2);
    (void)weft_tracker_reopen(&tracker); /* too late for those who had their turn */
    cx[0].why = -ECANCELED;
    ASSERT_EQ(weft_tracker_wait_poll(&wait[0], &cx[0]), WEFT_READY);
    ASSERT_OK(wait[0].ret);
    ASSERT_EQ(weft_tracker_wait_poll(&wait[1], &cx[1]), WEFT_READY);
    ASSERT_OK(wait[1].ret);
    ASSERT_EQ(weft_tracker_wait_poll(&wait[1], &cx[1]), WEFT_PENDING); /* open */
    cx[1].why = -ECANCELED;
    ASSERT_EQ(weft_tracker_wait_poll(&wait[1], &cx[1]), WEFT_READY);
    ASSERT_EQ(wait[1].ret, -ECANCELED);
    weft_tracker_done(&tracker);
}
