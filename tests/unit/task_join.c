/* SPDX-License-Identifier: MIT
 *
 * The join word: every arrow of the drawing in task/join.h, in each order of joiner and completer,
 * and every misuse that it asserts.
 *
 * The steps inside weft__join_complete cannot be stopped here one by one; the state between TAKEN
 * and COMPLETE is set up by hand, by a child that completes its join word only. The races
 * themselves are in tests/stress/task_join.c.
 */
#include "ending.h"
#include "test.h"

#include <signal.h>

static struct weft_task child_with_handle(void)
{
    struct weft_task t = {.site = NULL};
    weft__state_init(&t, 1);
    return t;
}

/* As the completer does first, where somebody waits. */
static void take(struct weft_task *child)
{
    (void)fetch_or_acq_rel(&child->state, WEFT__STATE_TAKEN); /* [join] with join_poll */
}

static struct weft_task running_joiner(void)
{
    struct weft_task t = {.site = NULL};
    weft__state_init(&t, 1);
    return t;
}

TEST(join_poll_before_the_end_waits_and_is_claimed)
{
    struct weft_task child = child_with_handle();
    struct weft_task joiner = running_joiner();

    ASSERT_EQ(weft__join_poll(&child, weft__waker_of(&joiner)), WEFT__JOIN_PENDING);
    ASSERT_EQ(weft__state_end_poll(&joiner), WEFT__STATE_NOTHING);
    struct weft__join_done done = ending_complete(&child);
    ASSERT_PTR(weft__waker_task(done.joiner), &joiner);
    ASSERT(!done.free);
    ASSERT_EQ(weft__join_poll(&child, weft__waker_of(&joiner)), WEFT__JOIN_READY);
    ASSERT_EQ(weft__state_unref(&child), WEFT__STATE_FREE);
}

TEST(join_poll_again_changes_nothing)
{
    struct weft_task child = child_with_handle();
    struct weft_task joiner = running_joiner();

    for (int i = 0; i < 3; i++)
        ASSERT_EQ(weft__join_poll(&child, weft__waker_of(&joiner)), WEFT__JOIN_PENDING);
    (void)weft__state_end_poll(&joiner);
    ASSERT_PTR(weft__waker_task(ending_complete(&child).joiner), &joiner);
}

TEST(join_complete_finds_the_joiner_running_and_leaves_it_a_poll)
{
    struct weft_task child = child_with_handle();
    struct weft_task joiner = running_joiner();

    ASSERT_EQ(weft__join_poll(&child, weft__waker_of(&joiner)), WEFT__JOIN_PENDING);
    ASSERT(weft__waker_is_none(ending_complete(&child).joiner));
    ASSERT_EQ(weft__state_end_poll(&joiner), WEFT__STATE_REQUEUE);
    ASSERT_EQ(weft__join_poll(&child, weft__waker_of(&joiner)), WEFT__JOIN_READY);
}

TEST(join_poll_after_the_end_is_ready_at_once)
{
    struct weft_task child = child_with_handle();
    struct weft_task joiner = running_joiner();

    ASSERT(weft__waker_is_none(ending_complete(&child).joiner));
    ASSERT_EQ(weft__join_poll(&child, weft__waker_of(&joiner)), WEFT__JOIN_READY);
    ASSERT_EQ(weft__join_withdraw(&child, weft__waker_of(&joiner)), WEFT__JOIN_READY);
}

TEST(join_between_taken_and_complete_yields)
{
    struct weft_task child = child_with_handle();
    struct weft_task joiner = running_joiner();

    take(&child);
    ASSERT_EQ(weft__join_poll(&child, weft__waker_of(&joiner)), WEFT__JOIN_YIELD);
    ASSERT_EQ(weft__join_withdraw(&child, weft__waker_of(&joiner)), WEFT__JOIN_YIELD);
    ASSERT_EQ(ending_alone(&child), WEFT__STATE_NOTHING);
    ASSERT_EQ(weft__join_poll(&child, weft__waker_of(&joiner)), WEFT__JOIN_READY);
}

TEST(join_withdraw_makes_the_completer_forget)
{
    struct weft_task child = child_with_handle();
    struct weft_task joiner = running_joiner();

    ASSERT_EQ(weft__join_withdraw(&child, weft__waker_of(&joiner)),
              WEFT__JOIN_LEFT); /* it never waited */
    ASSERT_EQ(weft__join_poll(&child, weft__waker_of(&joiner)), WEFT__JOIN_PENDING);
    ASSERT_EQ(weft__join_withdraw(&child, weft__waker_of(&joiner)), WEFT__JOIN_LEFT);
    (void)weft__state_end_poll(&joiner);
    ASSERT(weft__waker_is_none(ending_complete(&child).joiner));
    ASSERT(!(weft__state_look(&joiner) & WEFT__STATE_SCHED));
}

TEST(join_another_may_wait_after_one_has_left)
{
    struct weft_task child = child_with_handle();
    struct weft_task first = running_joiner();
    struct weft_task second = running_joiner();

    ASSERT_EQ(weft__join_poll(&child, weft__waker_of(&first)), WEFT__JOIN_PENDING);
    ASSERT_EQ(weft__join_withdraw(&child, weft__waker_of(&first)), WEFT__JOIN_LEFT);
    ASSERT_EQ(weft__join_poll(&child, weft__waker_of(&second)), WEFT__JOIN_PENDING);
    (void)weft__state_end_poll(&second);
    ASSERT_PTR(weft__waker_task(ending_complete(&child).joiner), &second);
}

TEST(join_detach_before_the_end_leaves_the_block_to_the_completer)
{
    struct weft_task child = child_with_handle();

    ASSERT_EQ(ending_detach(&child), WEFT__STATE_NOTHING);
    struct weft__join_done done = ending_complete(&child);
    ASSERT(done.free);
    ASSERT(weft__waker_is_none(done.joiner));
}

TEST(join_detach_after_the_end_frees)
{
    struct weft_task child = child_with_handle();

    struct weft__join_done done = ending_complete(&child);
    ASSERT(!done.free);
    ASSERT_EQ(ending_detach(&child), WEFT__STATE_FREE);
}

TEST(join_detach_between_taken_and_complete_leaves_it_to_the_completer)
{
    struct weft_task child = child_with_handle();

    take(&child);
    ASSERT_EQ(ending_detach(&child), WEFT__STATE_NOTHING);
    ASSERT_EQ(ending_alone(&child), WEFT__STATE_FREE);
}

TEST(join_detach_of_a_newborn)
{
    struct weft_task child = child_with_handle();

    ASSERT(weft__join_detach_newborn(&child));
    ASSERT_EQ(weft__state_references(&child), 0);
    ASSERT(weft__state_look(&child) & WEFT__STATE_DETACHED);
    ASSERT(ending_complete(&child).free);
}

/* Who has run may have given wakers away, and who is referred to or was cancelled others have met. */
TEST(join_detach_of_no_newborn)
{
    struct weft_task begun = child_with_handle();
    struct weft_task shared = child_with_handle();
    struct weft_task cancelled = child_with_handle();

    store_relaxed(&begun.polls, 1);
    ASSERT_OK(weft__state_ref(&shared));
    ASSERT_EQ(weft__state_cancel(&cancelled), WEFT__STATE_NOTHING);
    struct weft_task *children[] = {&begun, &shared, &cancelled};
    for (size_t i = 0; i < 3; i++) {
        uint64_t before = weft__state_look(children[i]);
        ASSERT(!weft__join_detach_newborn(children[i]));
        ASSERT_EQ(weft__state_look(children[i]), before);
    }
}

TEST(join_detach_leaves_a_watcher_waiting)
{
    struct weft_task child = child_with_handle();
    struct weft_task watcher = running_joiner();

    ASSERT_OK(weft__state_ref(&child));
    ASSERT_EQ(weft__join_poll(&child, weft__waker_of(&watcher)), WEFT__JOIN_PENDING);
    ASSERT_EQ(ending_detach(&child), WEFT__STATE_NOTHING);
    (void)weft__state_end_poll(&watcher);
    struct weft__join_done done = ending_complete(&child);
    ASSERT_PTR(weft__waker_task(done.joiner), &watcher);
    ASSERT(!done.free);
    ASSERT_EQ(weft__state_unref(&child), WEFT__STATE_FREE);
}

TEST(join_complete_of_a_task_detached_from_birth)
{
    struct weft_task child = {.site = NULL};
    weft__state_init(&child, 0);
    struct weft__join_done done = ending_complete(&child);
    ASSERT(done.free);
}

static unsigned rung;

static void ring(struct weft__foreign *foreign)
{
    (void)foreign;
    rung++;
}

static void forget(struct weft__foreign *foreign)
{
    (void)foreign;
}

TEST(join_a_foreign_waker_may_wait_too)
{
    static const struct weft__foreign_ops ops = {.wake = ring, .free = forget};
    struct weft__foreign thread;
    struct weft_task child = child_with_handle();

    weft__foreign_init(&thread, &ops);
    ASSERT_EQ(weft__join_poll(&child, weft__waker_of_foreign(&thread)), WEFT__JOIN_PENDING);
    struct weft__join_done done = ending_complete(&child);
    ASSERT_PTR(weft__waker_foreign(done.joiner), &thread);
    ASSERT_EQ(rung, 0);
    weft__waker_push(done.joiner, NULL);
    ASSERT_EQ(rung, 1);
    weft__foreign_unref(&thread);
}

#define MISUSE(name) TEST_WITH(name, .timeout_s = 60, .signal = SIGABRT)

MISUSE(join_poll_without_a_waker)
{
    struct weft_task child = child_with_handle();
    (void)weft__join_poll(&child, weft__waker_none());
}

MISUSE(join_poll_by_two_at_once)
{
    struct weft_task child = child_with_handle();
    struct weft_task first = running_joiner();
    struct weft_task second = running_joiner();

    (void)weft__join_poll(&child, weft__waker_of(&first));
    (void)weft__join_poll(&child, weft__waker_of(&second));
}

MISUSE(join_poll_of_a_detached_child)
{
    struct weft_task child = {.site = NULL};
    struct weft_task joiner = running_joiner();

    weft__state_init(&child, 2);
    (void)ending_detach(&child);
    (void)weft__join_poll(&child, weft__waker_of(&joiner));
}

MISUSE(join_withdraw_of_another_ones_wait)
{
    struct weft_task child = child_with_handle();
    struct weft_task first = running_joiner();
    struct weft_task second = running_joiner();

    (void)weft__join_poll(&child, weft__waker_of(&first));
    (void)weft__join_withdraw(&child, weft__waker_of(&second));
}

MISUSE(join_detach_twice)
{
    struct weft_task child = child_with_handle();
    ASSERT_OK(weft__state_ref(&child));
    (void)ending_detach(&child);
    (void)ending_detach(&child);
}

MISUSE(join_complete_twice)
{
    struct weft_task child = child_with_handle();
    (void)ending_complete(&child);
    (void)ending_complete(&child);
}
