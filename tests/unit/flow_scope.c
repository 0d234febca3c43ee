/* SPDX-License-Identifier: MIT
 *
 * The faces of a scope, polled by hand and without a runtime: options, the end, room, the block, an arm inside. What needs tasks
 * that run is in feature/scope, scope_policy and scope_run.
 */
#include "flow/scope.h"

#include "flow/arm.h"
#include "task/here.h"
#include "task/region.h"
#include "test.h"

#include <errno.h>
#include <string.h>

static const struct weft_site site = {.name = "child"};

struct child {
    _Alignas(16) struct weft_task task;
    char tail[WEFT__TAIL_BYTES];
};

static void child_add(struct child *c, weft_scope *s)
{
    memset(c, 0, sizeof(*c));
    c->task.site = &site;
    c->task.scope = (uintptr_t)s;
    weft__state_init(&c->task, 0);
    weft__kin_add(weft__scope_kin(s), &c->task);
}

static void child_ends(struct child *c)
{
    weft__kin_leave(weft__kin_of(&c->task), &c->task);
}

static int why_of(struct child *c)
{
    return weft__state_why(weft__state_look(&c->task));
}

/* Somebody who polls by hand: a foreign waker that counts. */
static struct weft__foreign poller;
static unsigned woken;

static void poller_wakes(struct weft__foreign *foreign)
{
    (void)foreign;
    woken++;
}

static void poller_goes(struct weft__foreign *foreign)
{
    (void)foreign;
}

static const struct weft__foreign_ops poller_ops = {.wake = poller_wakes, .free = poller_goes};

static weft_cx cx_of(int why)
{
    static bool made;
    if (!made) weft__foreign_init(&poller, &poller_ops);
    made = true;
    return (weft_cx){.waker = weft__waker_of_foreign(&poller), .why = why, .budget = 100};
}

TEST(scope_options)
{
    weft_scope s;
    int error = 1;
    const struct weft__kin *kin = weft__scope_kin(&s);

    weft_scope_init(&s, .limit = 3);
    ASSERT_EQ(kin->limit, 3);
    ASSERT_EQ(kin->policy, WEFT__KIN_ALONE);
    ASSERT_EQ(kin->deadline, 0);
    ASSERT(strstr(kin->lent.file, "flow_scope.c"));
    weft_scope_init(&s, .error = &error, .deadline = 77, .timeout = weft_secs(3600));
    ASSERT_EQ(kin->policy, WEFT__KIN_TOGETHER);
    ASSERT_EQ(kin->deadline, 77); /* the earlier of the two */
    ASSERT_PTR(kin->into, &error);
    weft_scope_init(&s, .timeout = WEFT_FOREVER, .first_success = true);
    ASSERT_EQ(kin->policy, WEFT__KIN_FIRST);
    ASSERT_EQ(kin->deadline, 0);
    ASSERT_EQ(error, 1);
}

TEST(scope_join_by_hand)
{
    weft_scope s = {0};
    struct child c;
    weft_cx cx = cx_of(0);
    struct weft_scope_join f = {.scope = &s};

    ASSERT_EQ(weft_scope_join_poll(&f, &cx), WEFT_READY); /* nobody is there */
    ASSERT_EQ(f.ret, 0);
    child_add(&c, &s);
    f = (struct weft_scope_join){.scope = &s};
    woken = 0;
    ASSERT_EQ(weft_scope_join_poll(&f, &cx), WEFT_PENDING);
    ASSERT_EQ(weft_scope_join_poll(&f, &cx), WEFT_PENDING);
    ASSERT_EQ(f.weft__at % 2, 1); /* as it must be */
    ASSERT_EQ(why_of(&c), 0);
    cx = cx_of(-ETIME);
    ASSERT_EQ(weft_scope_join_poll(&f, &cx), WEFT_PENDING); /* told, it passes it on, and waits */
    ASSERT_EQ(why_of(&c), -ETIME);
    ASSERT_EQ(weft_scope_reason(&s), -ETIME);
    ASSERT_EQ(woken, 0);
    child_ends(&c);
    ASSERT_EQ(woken, 1);
    ASSERT_EQ(weft_scope_join_poll(&f, &cx), WEFT_READY);
    ASSERT_EQ(f.ret, 0);
    ASSERT_EQ(f.weft__at, 0);
}

TEST(scope_join_of_its_own_child)
{
    weft_scope s = {0};
    struct child c;
    struct weft_scope_join f = {.scope = &s};
    child_add(&c, &s);
    weft_cx cx = {.waker = weft__waker_of(&c.task), .budget = 100};
    ASSERT_EQ(weft_scope_join_poll(&f, &cx), WEFT_READY);
    ASSERT_EQ(f.ret, -EDEADLK);
    child_ends(&c);
}

TEST(scope_room_by_hand)
{
    weft_scope s;
    struct child c;
    weft_cx cx = cx_of(0);
    struct weft_scope_room f = {.scope = &s};

    weft_scope_init(&s, .limit = 1);
    ASSERT_EQ(weft_scope_room_poll(&f, &cx), WEFT_READY);
    ASSERT_EQ(f.ret, 0);
    ASSERT(weft__kin_reserve(weft__scope_kin(&s)));
    child_add(&c, &s);
    ASSERT_EQ(weft_scope_room_poll(&f, &cx), WEFT_PENDING);
    cx = cx_of(-ECANCELED);
    ASSERT_EQ(weft_scope_room_poll(&f, &cx), WEFT_READY); /* given up while it waits */
    ASSERT_EQ(f.ret, -ECANCELED);
    cx = cx_of(0);
    ASSERT_EQ(weft_scope_room_poll(&f, &cx), WEFT_PENDING);
    woken = 0;
    child_ends(&c);
    ASSERT_EQ(woken, 1);
    ASSERT_EQ(weft_scope_room_poll(&f, &cx), WEFT_READY);
    ASSERT_EQ(f.ret, 0);
    f.scope = NULL;
    ASSERT_EQ(weft_scope_room_poll(&f, &cx), WEFT_READY);
    ASSERT_EQ(f.ret, -EINVAL);
}

/* On this thread: each block is a region, inside the one around it, and none is left behind. */
TEST(scope_blocks_are_regions)
{
    const struct weft__here *here = weft__here();
    int r = 1;
    ASSERT_NULL(here->regions);
    WEFT_SCOPE(outer)
    {
        const struct weft__region *first = here->regions;
        ASSERT(first && first->told && first->relays);
        WEFT_TIMEOUT(weft_secs(3600)) ASSERT(here->regions->relays); /* one further out does */
        WEFT_SCOPE(inner, .error = &r, .timeout = weft_secs(3600))
        {
            ASSERT_PTR(here->regions->outer->outer, first); /* its deadline lies in between */
            weft_scope_cancel(outer);
            ASSERT_EQ(weft_yield(), -ECANCELED);
            ASSERT_EQ(weft_scope_reason(inner), -ECANCELED);
        }
        ASSERT_EQ(r, -ECANCELED);
        ASSERT_PTR(here->regions, first);
    }
    ASSERT_NULL(here->regions);
}

/* ---- an arm inside ---- */

struct inside {
    WEFT_FRAME(int);
    int told;
    bool ready;
};
static weft_poll inside_poll(void *frame, weft_cx *cx)
{
    struct inside *f = frame;
    f->told = cx->why;
    f->ret = cx->why;
    return cx->why || f->ready ? WEFT_READY : WEFT_PENDING;
}

TEST(scope_run_by_hand)
{
    weft_scope s = {0};
    struct child c;
    struct inside in;
    weft_cx cx = cx_of(0);

    child_add(&c, &s);
    struct weft_scope_run f = {.scope = &s, .of = weft_arm(in, inside)};
    woken = 0;
    ASSERT_EQ(weft_scope_run_poll(&f, &cx), WEFT_PENDING);
    ASSERT(weft_scope_cancel(&s));
    ASSERT_EQ(woken, 1); /* the arm is to hear it */
    ASSERT_EQ(weft_scope_run_poll(&f, &cx), WEFT_PENDING);
    ASSERT_EQ(in.told, -ECANCELED);
    child_ends(&c);
    ASSERT_EQ(woken, 2);
    ASSERT_EQ(weft_scope_run_poll(&f, &cx), WEFT_READY);
    ASSERT_EQ(f.ret, 0);
}

/* Stopped before its first poll, told from further out, refused, and without an arm. */
TEST(scope_run_that_hardly_begins)
{
    weft_scope s = {0};
    struct inside in;
    weft_cx cx = cx_of(0);
    weft_scope_cancel(&s);
    struct weft_scope_run f = {.scope = &s, .of = weft_arm(in, inside)};
    ASSERT_EQ(weft_scope_run_poll(&f, &cx),
              WEFT_READY); /* it has begun all the same, and was told */
    ASSERT_EQ(in.told, -ECANCELED);

    weft_scope late = {0};
    cx = cx_of(-ETIME);
    f = (struct weft_scope_run){.scope = &late, .of = weft_arm(in, inside)};
    ASSERT_EQ(weft_scope_run_poll(&f, &cx), WEFT_READY);
    ASSERT_EQ(in.told, -ETIME);
    ASSERT_EQ(weft_scope_reason(&late), -ETIME);

    cx.probe = true;
    f = (struct weft_scope_run){.scope = &late, .of = weft_arm(in, inside)};
    ASSERT_EQ(weft_scope_run_poll(&f, &cx), WEFT_READY);
    ASSERT_EQ(f.ret, -ETIME);
    ASSERT_EQ(in.told, 0); /* it never began */
    ASSERT_EQ(in.ret, -ETIME);

    cx = cx_of(0);
    f = (struct weft_scope_run){.scope = &late};
    ASSERT_EQ(weft_scope_run_poll(&f, &cx), WEFT_READY);
    ASSERT_EQ(f.ret, -EINVAL);
}

/* In a scope with one outcome what the arm answers may be it. */
TEST(scope_run_of_an_arm_that_fails)
{
    weft_scope s;
    struct inside in;
    int error = 1;
    weft_cx cx = cx_of(0);
    weft_scope_init(&s, .error = &error);
    struct weft_scope_run f = {.scope = &s, .of = weft_arm(in, inside)};
    f.of.ret_at = offsetof(struct inside, told); /* a result that is not what it was told */
    in.ready = true;
    ASSERT_EQ(weft_scope_run_poll(&f, &cx), WEFT_READY);
    ASSERT_EQ(error, 0);
    weft_scope_init(&s, .error = &error);
    f = (struct weft_scope_run){.scope = &s, .of = weft_arm(in, inside)};
    ASSERT_EQ(weft_scope_run_poll(&f, &cx), WEFT_PENDING);
    ASSERT(weft_scope_fail(&s, -EIO));
    ASSERT_EQ(weft_scope_run_poll(&f, &cx), WEFT_READY);
    ASSERT_EQ(error, -EIO);
}
