/* SPDX-License-Identifier: MIT
 *
 * Members by hand: told of an end before and after it, once; let go; cancelled by the chain; what is a failure.
 */
#include "flow/member.h"

#include "ending.h"
#include "test.h"

#include <errno.h>

struct child {
    struct weft_task task;
    _Alignas(16) int64_t result;
    _Alignas(16) struct weft__member member;
};

static struct weft_site site = {.frame_bytes = sizeof(struct child) - sizeof(struct weft_task),
                                .ret_bytes = 8,
                                .ret_signed = 1};
static unsigned ended;
static unsigned pushed;

static void has_ended(struct weft__foreign *foreign)
{
    ASSERT(weft__state_is_complete(weft__member_of(foreign)->task));
    ended++;
}

static const struct weft__foreign_ops ops = WEFT__MEMBER_OPS(has_ended);

static void count_push(void *unused, struct weft_task *task)
{
    (void)unused;
    (void)task;
    pushed++;
}

static void count_push_chain(void *unused, struct weft_task *first, struct weft_task *last,
                             uint32_t count)
{
    (void)unused;
    for (struct weft_task *t = first; t; t = load_relaxed(&t->link)) {
        pushed++;
        count--;
        if (t == last) break;
    }
    ASSERT_EQ(count, 0);
}

static const struct weft__sched_ops sched_ops = {.push = count_push,
                                                 .push_chain = count_push_chain};
static const struct weft__sched sched = {.ops = &sched_ops};

/* A child with a handle, whose poll is under way. */
static struct weft__member *child_new(struct child *child)
{
    *child = (struct child){.task = {.site = &site}};
    weft__state_init(&child->task, 1);
    (void)weft__state_begin_poll(&child->task);
    ASSERT_PTR(weft__behind_frame(&child->task, sizeof(child->member)), &child->member);
    weft__member_init(&child->member, &child->task, NULL, &ops);
    return &child->member;
}

static void child_ends(struct child *child)
{
    struct weft__join_done done = ending_complete(&child->task);
    weft__waker_push(done.joiner, &sched);
    ASSERT(!done.free);
}

TEST(member_is_told_of_its_end_once)
{
    struct child child;
    struct weft__member *member = child_new(&child);
    weft__member_watch(member);
    ASSERT_EQ(ended, 0);
    child_ends(&child);
    ASSERT_EQ(ended, 1);
    ASSERT(!weft__member_let_go(member));
}

TEST(member_that_was_faster_is_told_by_who_watches)
{
    struct child child;
    struct weft__member *member = child_new(&child);
    child_ends(&child);
    ASSERT_EQ(ended, 0);
    weft__member_watch(member);
    ASSERT_EQ(ended, 1);
}

TEST(member_that_was_let_go_is_not_told_of)
{
    struct child child;
    struct weft__member *member = child_new(&child);
    weft__member_watch(member);
    ASSERT(weft__member_let_go(member));
    child_ends(&child);
    ASSERT_EQ(ended, 0);
}

TEST(member_cancel_goes_through_the_chain)
{
    struct child child[3];
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    for (int i = 0; i < 3; i++) {
        (void)child_new(&child[i]);
        if (i < 2) (void)weft__state_end_poll(&child[i].task); /* the third one runs */
        weft__member_cancel(&child[i].member, -ETIME, &chain);
        ASSERT_EQ(weft__state_why(weft__state_look(&child[i].task)), -ETIME);
    }
    ASSERT_EQ(chain.count, 2);
    weft__wake_chain_push(&chain, &sched);
    ASSERT_EQ(pushed, 2);
    weft__member_cancel(&child[0].member, -ETIME, &chain); /* the second time does nothing */
    ASSERT_EQ(chain.count, 0);
}

TEST(member_failure_is_a_result_below_zero)
{
    struct child child;
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    struct weft__member *member = child_new(&child);

    child.result = 5;
    ASSERT_EQ(weft__member_failure(member), 0);
    child.result = -EIO;
    ASSERT_EQ(weft__member_failure(member), -EIO);
    child.result = -ECANCELED;
    ASSERT_EQ(weft__member_failure(member), -ECANCELED); /* nobody has cancelled it */
    weft__member_cancel(member, -ECANCELED, &chain);
    ASSERT_EQ(weft__member_failure(member), 0);
    child.result = -ETIME;
    ASSERT_EQ(weft__member_failure(member), -ETIME);
    site.ret_signed = 0;
    ASSERT_EQ(weft__member_failure(member), 0);
    site.ret_signed = 1;
    site.ret_bytes = 2;
    *(int16_t *)(void *)&child.result = -EIO;
    ASSERT_EQ(weft__member_failure(member), -EIO);
    site.ret_bytes = 8;
}
