/* SPDX-License-Identifier: MIT
 *
 * The children of a scope, one step at a time: who is linked and counted, who is told what, who gets a turn.
 */
#include "sync/kin.h"

#include "counted.h"
#include "task/orphan.h"
#include "test.h"

#include <errno.h>
#include <string.h>

#define FRAME_BYTES 20 /* no multiple of 8 */

static const struct weft_site site = {.name = "child", .frame_bytes = FRAME_BYTES};

struct child {
    _Alignas(16) struct weft_task task;
    char frame[24];
    char tail[WEFT__TAIL_BYTES];
};

static void child_init(struct child *c, struct weft__kin *kin)
{
    memset(c, 0, sizeof(*c));
    c->task.site = &site;
    c->task.scope = (uintptr_t)kin;
    weft__state_init(&c->task, 0);
}

static int why_of(struct child *c)
{
    return weft__state_why(weft__state_look(&c->task));
}

TEST(kin_finds_the_tail_behind_the_frame)
{
    struct child c;
    struct weft__kin kin = {.policy = WEFT__KIN_ALONE};
    child_init(&c, &kin);
    ASSERT_PTR(weft__tail_of(&c.task), (void *)c.tail);
    ASSERT_EQ(weft__tail_at(&site), 24);
    ASSERT_PTR(weft__kin_of(&c.task), &kin);
}

/* Zero is one without children: its end is over at once, and it can be stopped. */
TEST(kin_that_is_zero)
{
    struct weft__kin kin = {.policy = WEFT__KIN_ALONE};
    struct weft__waiter waiter;
    struct counted counted;
    int error = 1;
    struct weft_waker waker = counted_waker(&counted);
    weft__waiter_init(&waiter);
    ASSERT_EQ(weft__kin_end_poll(&kin, &waiter, waker, &error), WEFT__KIN_OVER);
    ASSERT_EQ(error, 0);
    ASSERT(weft__kin_reserve(&kin));
    weft__kin_unreserve(&kin);
    ASSERT_EQ(weft__kin_reason(&kin), 0);
    ASSERT(weft__kin_stop(&kin, -ETIME, -ETIME));
    ASSERT(!weft__kin_stop(&kin, -ECANCELED, -ECANCELED));
    ASSERT_EQ(weft__kin_reason(&kin), -ETIME);
    ASSERT_EQ(weft__kin_end_poll(&kin, &waiter, waker, &error), WEFT__KIN_OVER);
    ASSERT_EQ(error, -ETIME);
    weft__waiter_check_out(&waiter);
}

TEST(kin_end_waits_for_the_last_child)
{
    struct weft__kin kin = {.policy = WEFT__KIN_ALONE};
    struct child c[2];
    struct weft__waiter waiter, other;
    struct counted counted;
    int error = 1;
    struct weft_waker waker = counted_waker(&counted);
    weft__waiter_init(&waiter);
    weft__waiter_init(&other);
    for (int i = 0; i < 2; i++) {
        child_init(&c[i], &kin);
        weft__kin_add(&kin, &c[i].task);
    }
    ASSERT_EQ(load_relaxed(&kin.count), 2);
    ASSERT_EQ(weft__kin_end_poll(&kin, &waiter, waker, &error), WEFT__KIN_WAITS);
    ASSERT_EQ(weft__kin_end_poll(&kin, &waiter, waker, &error), WEFT__KIN_WAITS);
    ASSERT_EQ(weft__kin_end_poll(&kin, &other, waker, &error), WEFT__KIN_BUSY);
    weft__kin_leave(&kin, &c[0].task);
    ASSERT_EQ(counted.wakes, 0);
    weft__kin_unlink(&kin, &c[1].task);
    ASSERT(weft__list_empty(&kin.children));
    ASSERT_EQ(weft__kin_end_poll(&kin, &waiter, waker, &error),
              WEFT__KIN_WAITS); /* it is counted still */
    weft__kin_count_down(&kin);
    ASSERT_EQ(counted.wakes, 1);
    weft__kin_add(&kin, &c[0].task); /* between the turn and the poll */
    ASSERT_EQ(weft__kin_end_poll(&kin, &waiter, waker, &error), WEFT__KIN_WAITS);
    weft__kin_leave(&kin, &c[0].task);
    ASSERT_EQ(counted.wakes, 2);
    ASSERT_EQ(weft__kin_end_poll(&kin, &waiter, waker, &error), WEFT__KIN_OVER);
    weft__waiter_check_out(&waiter);
}

TEST(kin_stop_tells_children_and_body)
{
    struct weft__kin kin = {.policy = WEFT__KIN_ALONE};
    struct child c[3];
    struct weft__waiter body;
    struct counted counted;
    struct weft_waker waker = counted_waker(&counted);
    weft__waiter_init(&body);
    for (int i = 0; i < 3; i++)
        child_init(&c[i], &kin);
    weft__kin_add(&kin, &c[0].task);
    weft__kin_add(&kin, &c[1].task);
    weft__kin_leave(&kin, &c[0].task);
    ASSERT(weft__kin_body_begin(&kin, &body, waker));
    ASSERT(weft__kin_stop(&kin, -ECANCELED, -ECANCELED));
    ASSERT_EQ(counted.wakes, 1);
    weft__kin_body_settle(&kin, &body);
    weft__waiter_check_out(&body);
    ASSERT(!weft__kin_body_begin(&kin, &body, waker)); /* it would wait for ever */
    ASSERT_EQ(why_of(&c[0]), 0);                       /* it had ended */
    ASSERT_EQ(why_of(&c[1]), -ECANCELED);
    weft__kin_add(&kin, &c[2].task);
    ASSERT_EQ(why_of(&c[2]), -ECANCELED); /* born so */
    weft__kin_leave(&kin, &c[2].task);
    weft__kin_leave(&kin, &c[1].task);
}

static int end_of(struct weft__kin *kin)
{
    struct weft__waiter waiter;
    int error = 1;
    weft__waiter_init(&waiter);
    ASSERT_EQ(weft__kin_end_poll(kin, &waiter, weft__waker_none(), &error), WEFT__KIN_OVER);
    return error;
}

TEST(kin_policies)
{
    int into;
    struct weft__kin alone = {.policy = WEFT__KIN_ALONE};
    ASSERT(!weft__kin_fails(&alone, -EIO));
    ASSERT_EQ(weft__kin_reason(&alone), 0);
    ASSERT_EQ(end_of(&alone), 0);

    struct weft__kin together = {.policy = WEFT__KIN_TOGETHER, .into = &into};
    ASSERT(weft__kin_fails(&together, -EIO));
    ASSERT_EQ(weft__kin_reason(&together), -ECANCELED);
    ASSERT(!weft__kin_fails(&together, -EPIPE)); /* to be told */
    ASSERT_EQ(end_of(&together), -EIO);

    struct weft__kin stopped = {.policy = WEFT__KIN_TOGETHER, .into = &into};
    ASSERT(weft__kin_stop(&stopped, -ETIME, -ETIME));
    ASSERT(!weft__kin_fails(&stopped, -EIO));
    ASSERT_EQ(end_of(&stopped), -ETIME);

    struct weft__kin first = {.policy = WEFT__KIN_FIRST, .into = &into};
    ASSERT_EQ(end_of(&first), -ECHILD);
    ASSERT(weft__kin_fails(&first, -EIO));
    ASSERT(weft__kin_fails(&first, -EPIPE));
    ASSERT_EQ(weft__kin_reason(&first), 0);
    ASSERT_EQ(end_of(&first), -EIO);
    weft__kin_wins(&first);
    weft__kin_wins(&first);
    ASSERT_EQ(weft__kin_reason(&first), -ECANCELED);
    ASSERT_EQ(end_of(&first), 0);
}

/* With a limit: places are reserved, given back, and passed on for as long as there are any. */
TEST(kin_with_a_limit)
{
    struct weft__kin kin = {.limit = 2};
    struct weft__waiter w[3];
    struct counted counted[3];
    struct weft_waker waker[3];
    struct child c;
    for (int i = 0; i < 3; i++) {
        waker[i] = counted_waker(&counted[i]);
        weft__waiter_init(&w[i]);
    }
    ASSERT(weft__kin_reserve(&kin));
    ASSERT(weft__kin_room_poll(&kin, &w[0], waker[0]));
    ASSERT(weft__kin_reserve(&kin));
    ASSERT(!weft__kin_reserve(&kin));
    child_init(&c, &kin);
    weft__kin_add(&kin, &c.task); /* one of the two */
    ASSERT_EQ(load_relaxed(&kin.count), 2);
    for (int i = 0; i < 3; i++)
        ASSERT(!weft__kin_room_poll(&kin, &w[i], waker[i]));
    weft__kin_unreserve(&kin);
    ASSERT_EQ(counted[0].wakes, 1);
    ASSERT_EQ(counted[1].wakes, 0);
    weft__kin_room_settle(&kin, &w[0]); /* it was cancelled with its turn */
    ASSERT_EQ(counted[1].wakes, 1);
    ASSERT(weft__kin_room_poll(&kin, &w[1], waker[1])); /* it does not use it */
    ASSERT_EQ(counted[2].wakes, 1);
    ASSERT(weft__kin_reserve(&kin)); /* somebody else was faster */
    ASSERT(!weft__kin_room_poll(&kin, &w[2], waker[2]));
    weft__kin_leave(&kin, &c.task);
    ASSERT_EQ(counted[2].wakes, 2);
    ASSERT(weft__kin_room_poll(&kin, &w[2], waker[2]));
    weft__kin_unreserve(&kin);
    ASSERT_EQ(end_of(&kin), 0);
}

TEST(kin_is_lost_in_the_child_of_a_fork)
{
    struct weft__kin kin = {.policy = WEFT__KIN_ALONE};
    struct child c;
    child_init(&c, &kin);
    ASSERT(!weft__kin_is_lost(&kin));
    weft__kin_add(&kin, &c.task);
    ASSERT(!weft__kin_is_lost(&kin));
    weft__forks++;
    ASSERT(weft__kin_is_lost(&kin));
    struct weft__kin fresh = {.policy = WEFT__KIN_ALONE};
    ASSERT(!weft__kin_is_lost(&fresh));
    weft__forks--;
    weft__kin_leave(&kin, &c.task);
}
