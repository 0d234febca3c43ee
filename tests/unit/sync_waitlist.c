/* SPDX-License-Identifier: MIT
 *
 * The waitlist: turns in order, leaving with and without one, batches, the lock before the end; and
 * every misuse that it asserts.
 */
#include "sync/waitlist.h"

#include "task/state.h"
#include "test.h"

#include <signal.h>

#define MANY (2 * WEFT__WAKE_BATCH + 3)

/* A list, idle tasks that may wait on it, and a sched that counts per task. */
struct fixture {
    struct weft__waitlist list;
    struct weft_task tasks[MANY];
    struct weft__waiter waiters[MANY];
    unsigned pushed[MANY];
    unsigned order[MANY]; /* which task was pushed as the nth */
    unsigned count;
    unsigned chains;
    void (*on_chain)(struct fixture *f); /* called in the middle of a wake_all, with no lock held */
    struct weft__sched sched;
};

static void fixture_push(void *sched, struct weft_task *task)
{
    struct fixture *f = sched;
    unsigned index = (unsigned)(task - f->tasks);
    f->pushed[index]++;
    f->order[f->count++] = index;
}

static void fixture_push_chain(void *sched, struct weft_task *first, struct weft_task *last,
                               uint32_t count)
{
    struct fixture *f = sched;
    (void)last;
    f->chains++;
    ASSERT_LE(count, WEFT__WAKE_BATCH);
    for (struct weft_task *next; first; first = next) {
        next = load_relaxed(&first->link);
        fixture_push(sched, first);
    }
    if (f->on_chain) f->on_chain(f);
}

static const struct weft__sched_ops fixture_ops = {.push = fixture_push,
                                                   .push_chain = fixture_push_chain};
static struct fixture fixture;

/* The tasks 0 to count - 1 wait, in this order. */
static struct fixture *fixture_with(unsigned count)
{
    struct fixture *f = &fixture;

    f->sched = (struct weft__sched){&fixture_ops, f};
    weft__waitlist_init(&f->list);
    for (unsigned i = 0; i < MANY; i++) {
        weft__state_init(&f->tasks[i], 0);
        (void)weft__state_end_poll(&f->tasks[i]);
        weft__waiter_init(&f->waiters[i]);
        weft__waiter_check_out(&f->waiters[i]);
    }
    weft__waitlist_lock(&f->list);
    for (unsigned i = 0; i < count; i++)
        weft__waitlist_add(&f->list, &f->waiters[i], weft__waker_of(&f->tasks[i]));
    weft__waitlist_unlock(&f->list);
    return f;
}

TEST(waitlist_gives_turns_in_order)
{
    struct fixture *f = fixture_with(3);

    for (unsigned i = 0; i < 3; i++)
        ASSERT(weft__waitlist_wake_one(&f->list, &f->sched));
    ASSERT(!weft__waitlist_wake_one(&f->list, &f->sched));
    ASSERT_EQ(f->count, 3);
    for (unsigned i = 0; i < 3; i++)
        ASSERT_EQ(f->order[i], i);
    for (unsigned i = 0; i < 3; i++)
        ASSERT(weft__waitlist_leave(&f->list, &f->waiters[i]));
    weft__waitlist_done(&f->list);
}

TEST(waitlist_says_under_its_lock_who_waits)
{
    struct fixture *f = fixture_with(1);
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    weft__waitlist_lock(&f->list);
    ASSERT(!weft__waitlist_empty(&f->list));
    ASSERT(weft__waiter_queued(&f->list, &f->waiters[0]));
    ASSERT(!weft__waiter_has_turn(&f->list, &f->waiters[0]));
    ASSERT_PTR(weft__waitlist_give_turn(&f->list, &chain), &f->waiters[0]);
    ASSERT_NULL(weft__waitlist_give_turn(&f->list, &chain));
    ASSERT(weft__waitlist_empty(&f->list));
    ASSERT(!weft__waiter_queued(&f->list, &f->waiters[0]));
    ASSERT(weft__waiter_has_turn(&f->list, &f->waiters[0]));
    ASSERT_EQ(f->count, 0); /* claimed, not pushed */
    ASSERT(weft__waitlist_settle(&f->list, &f->waiters[0]));
    ASSERT(!weft__waiter_has_turn(&f->list, &f->waiters[0]));
    weft__waitlist_unlock_push(&f->list, &chain, &f->sched);
    ASSERT_EQ(f->pushed[0], 1);
    weft__waiter_check_out(&f->waiters[0]);
}

TEST(waitlist_leave_from_the_middle_takes_no_turn_along)
{
    struct fixture *f = fixture_with(3);

    ASSERT(!weft__waitlist_leave(&f->list, &f->waiters[1]));
    ASSERT(!weft__waitlist_leave(&f->list, &f->waiters[1])); /* it is out already */
    ASSERT(weft__waitlist_wake_one(&f->list, &f->sched));
    ASSERT(weft__waitlist_wake_one(&f->list, &f->sched));
    ASSERT(!weft__waitlist_wake_one(&f->list, &f->sched));
    ASSERT_EQ(f->pushed[0] + f->pushed[2], 2);
    ASSERT_EQ(f->pushed[1], 0);
}

TEST(waitlist_cancel_passes_a_turn_on)
{
    struct fixture *f = fixture_with(3);

    ASSERT(weft__waitlist_wake_one(&f->list, &f->sched));
    ASSERT(weft__waitlist_cancel(&f->list, &f->waiters[0], &f->sched));
    ASSERT_EQ(f->pushed[1], 1);
    ASSERT(!weft__waitlist_cancel(&f->list, &f->waiters[2],
                                  &f->sched)); /* had none: nothing to pass on */
    ASSERT(weft__waitlist_cancel(&f->list, &f->waiters[1],
                                 &f->sched)); /* the last: nobody to pass it to */
    ASSERT_EQ(f->count, 2);
    weft__waitlist_done(&f->list);
}

TEST(waitlist_one_that_was_overtaken_comes_first_again)
{
    struct fixture *f = fixture_with(2);

    ASSERT(weft__waitlist_wake_one(&f->list, &f->sched));
    weft__state_begin_poll(&f->tasks[0]);
    weft__waitlist_lock(&f->list);
    weft__waitlist_add_first(&f->list, &f->waiters[0], weft__waker_of(&f->tasks[0]));
    ASSERT(!weft__waiter_has_turn(&f->list, &f->waiters[0]));
    weft__waitlist_unlock(&f->list);
    (void)weft__state_end_poll(&f->tasks[0]);
    ASSERT(weft__waitlist_wake_one(&f->list, &f->sched));
    ASSERT_EQ(f->pushed[0], 2);
    ASSERT_EQ(f->pushed[1], 0);
}

TEST(waitlist_turn_of_a_task_that_runs_is_no_push)
{
    struct fixture *f = fixture_with(1);

    ASSERT_EQ(weft__state_claim(&f->tasks[0]), WEFT__STATE_ENQUEUE); /* woken by something else */
    ASSERT(weft__waitlist_wake_one(&f->list, &f->sched));
    ASSERT_EQ(f->count, 0);
    ASSERT(weft__waitlist_leave(&f->list, &f->waiters[0]));
}

/* An idle task runs by the waker's push alone, so its turn can be taken without the lock. */
TEST(waitlist_turn_of_an_idle_task_is_taken_without_the_lock)
{
    struct fixture *f = fixture_with(2);

    ASSERT(!weft__waiter_take_granted(&f->waiters[0])); /* queued */
    weft__waitlist_lock(&f->list);
    weft__waitlist_unlock_wake_first(&f->list, &f->sched);
    ASSERT_EQ(f->pushed[0], 1);
    ASSERT(weft__waiter_take_granted(&f->waiters[0]));
    ASSERT(!weft__waiter_take_granted(&f->waiters[0])); /* once */
    weft__waiter_check_out(&f->waiters[0]);
    ASSERT_EQ(weft__waitlist_wake_all(&f->list, &f->sched), 1);
    ASSERT(weft__waiter_take_granted(&f->waiters[1]));
    weft__waitlist_done(&f->list);
}

TEST(waitlist_turn_of_a_task_that_runs_wants_the_lock)
{
    struct fixture *f = fixture_with(2);

    for (unsigned i = 0; i < 2; i++)
        ASSERT_EQ(weft__state_claim(&f->tasks[i]), WEFT__STATE_ENQUEUE); /* by something else */
    ASSERT(weft__waitlist_wake_one(&f->list, &f->sched));
    ASSERT_EQ(weft__waitlist_wake_all(&f->list, &f->sched), 1);
    ASSERT_EQ(f->count, 0);
    for (unsigned i = 0; i < 2; i++) {
        ASSERT(!weft__waiter_take_granted(&f->waiters[i]));
        ASSERT(weft__waitlist_leave(&f->list, &f->waiters[i]));
    }
}

TEST(waitlist_granted_turn_can_also_be_passed_on)
{
    struct fixture *f = fixture_with(2);

    ASSERT(weft__waitlist_wake_one(&f->list, &f->sched));
    ASSERT(weft__waitlist_cancel(&f->list, &f->waiters[0], &f->sched));
    ASSERT(!weft__waiter_take_granted(&f->waiters[0]));
    ASSERT(weft__waiter_take_granted(&f->waiters[1]));
    weft__waitlist_done(&f->list);
}

TEST(waitlist_wake_all_goes_in_batches)
{
    struct fixture *f = fixture_with(MANY);

    ASSERT_EQ(weft__waitlist_wake_all(&f->list, &f->sched), MANY);
    ASSERT_EQ(f->chains, 3);
    for (unsigned i = 0; i < MANY; i++)
        ASSERT_EQ(f->order[i], i);
    ASSERT_EQ(weft__waitlist_wake_all(&f->list, &f->sched), 0);
    for (unsigned i = 0; i < MANY; i++)
        ASSERT(weft__waitlist_leave(&f->list, &f->waiters[i]));
    weft__waitlist_done(&f->list);
}

/* Between two batches one of the first comes back, and one of the last gives up. */
static void come_and_go(struct fixture *f)
{
    f->on_chain = NULL;
    ASSERT(weft__waitlist_leave(&f->list, &f->waiters[0]));
    weft__waitlist_lock(&f->list);
    ASSERT(weft__waitlist_empty(&f->list)); /* those still to come count as woken */
    weft__waitlist_add(&f->list, &f->waiters[0], weft__waker_of(&f->tasks[0]));
    weft__waitlist_unlock(&f->list);
    ASSERT(!weft__waitlist_leave(&f->list, &f->waiters[MANY - 1]));
}

TEST(waitlist_wake_all_is_for_those_who_waited_at_the_start)
{
    struct fixture *f = fixture_with(MANY);

    f->on_chain = come_and_go;
    ASSERT_EQ(weft__waitlist_wake_all(&f->list, &f->sched), MANY - 1);
    ASSERT_EQ(f->pushed[0], 1);
    ASSERT_EQ(f->pushed[MANY - 1], 0);
    weft__waitlist_lock(&f->list);
    ASSERT(weft__waiter_queued(&f->list, &f->waiters[0]));
    weft__waitlist_unlock(&f->list);
}

static void all_leave(struct fixture *f)
{
    f->on_chain = NULL;
    for (unsigned i = 0; i < MANY; i++)
        (void)weft__waitlist_leave(&f->list, &f->waiters[i]);
}

TEST(waitlist_wake_all_bears_that_all_leave_between_batches)
{
    struct fixture *f = fixture_with(MANY);

    f->on_chain = all_leave;
    ASSERT_EQ(weft__waitlist_wake_all(&f->list, &f->sched), WEFT__WAKE_BATCH);
    weft__waitlist_done(&f->list);
}

static unsigned rung;

static void ring(struct weft__foreign *foreign)
{
    (void)foreign;
    weft__lock_assert_none_held();
    rung++;
}

static void forget(struct weft__foreign *foreign)
{
    (void)foreign;
}

static const struct weft__foreign_ops bell_ops = {.wake = ring, .free = forget};

TEST(waitlist_foreign_wakers_wait_beside_tasks)
{
    struct fixture *f = fixture_with(1);
    struct weft__foreign bell;
    struct weft__waiter waiter;

    weft__foreign_init(&bell, &bell_ops);
    weft__waiter_init(&waiter);
    weft__waitlist_lock(&f->list);
    weft__waitlist_add_first(&f->list, &waiter, weft__waker_of_foreign(&bell));
    weft__waitlist_unlock(&f->list);
    ASSERT(weft__waitlist_wake_one(&f->list, &f->sched));
    ASSERT_EQ(rung, 1);
    ASSERT_EQ(f->count, 0);
    ASSERT(!weft__waiter_take_granted(&waiter)); /* its owner may poll at any time */
    ASSERT(weft__waitlist_cancel(&f->list, &waiter, &f->sched));
    ASSERT_EQ(f->pushed[0], 1);
    weft__foreign_unref(&bell);
}

#define MISUSE(name) TEST_WITH(name, .timeout_s = 60, .signal = SIGABRT)

MISUSE(waitlist_done_while_one_waits)
{
    struct fixture *f = fixture_with(1);
    weft__waitlist_done(&f->list);
}

static void done_between(struct fixture *f)
{
    all_leave(f);
    weft__waitlist_done(&f->list);
}

MISUSE(waitlist_done_between_two_batches)
{
    struct fixture *f = fixture_with(MANY);
    f->on_chain = done_between;
    (void)weft__waitlist_wake_all(&f->list, &f->sched);
}

MISUSE(waitlist_frame_that_dies_while_queued)
{
    struct fixture *f = fixture_with(1);
    weft__waiter_check_out(&f->waiters[0]);
}

MISUSE(waitlist_frame_that_dies_with_its_turn)
{
    struct fixture *f = fixture_with(1);
    (void)weft__waitlist_wake_one(&f->list, &f->sched);
    weft__waiter_check_out(&f->waiters[0]);
}

MISUSE(waitlist_wake_first_of_nobody)
{
    struct fixture *f = fixture_with(0);
    weft__waitlist_lock(&f->list);
    weft__waitlist_unlock_wake_first(&f->list, &f->sched);
}

MISUSE(waitlist_add_twice)
{
    struct fixture *f = fixture_with(1);
    weft__waitlist_lock(&f->list);
    weft__waitlist_add(&f->list, &f->waiters[0], weft__waker_of(&f->tasks[0]));
}

MISUSE(waitlist_add_without_a_waker)
{
    struct fixture *f = fixture_with(0);
    weft__waitlist_lock(&f->list);
    weft__waitlist_add(&f->list, &f->waiters[0], weft__waker_none());
}

#if defined(WEFT_DEBUG) /* the lock's owner is known in debug builds */
MISUSE(waitlist_add_without_the_lock)
{
    struct fixture *f = fixture_with(0);
    weft__waitlist_add(&f->list, &f->waiters[0], weft__waker_of(&f->tasks[0]));
}

MISUSE(waitlist_look_at_a_turn_without_the_lock)
{
    struct fixture *f = fixture_with(1);
    (void)weft__waiter_has_turn(&f->list, &f->waiters[0]);
}

MISUSE(waitlist_settle_without_the_lock)
{
    struct fixture *f = fixture_with(1);
    (void)weft__waitlist_settle(&f->list, &f->waiters[0]);
}

MISUSE(waitlist_give_turn_without_the_lock)
{
    struct fixture *f = fixture_with(0);
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    (void)weft__waitlist_give_turn(&f->list, &chain);
}

MISUSE(waitlist_empty_without_the_lock)
{
    struct fixture *f = fixture_with(0);
    (void)weft__waitlist_empty(&f->list);
}

MISUSE(waitlist_wake_all_without_the_lock)
{
    struct fixture *f = fixture_with(0);
    (void)weft__waitlist_unlock_wake_all(&f->list, &f->sched);
}

/* Under a lock a waker is at most claimed: also the one that is pushed on the spot, and a chain. */
static struct weft__lock outer = WEFT__LOCK_INIT(WEFT__RANK_CHAN);

MISUSE(waitlist_wakes_one_under_a_lock)
{
    struct fixture *f = fixture_with(1);
    weft__lock_take(&outer);
    (void)weft__waitlist_wake_one(&f->list, &f->sched);
}

MISUSE(waitlist_wakes_all_under_a_lock)
{
    struct fixture *f = fixture_with(2);
    weft__lock_take(&outer);
    (void)weft__waitlist_wake_all(&f->list, &f->sched);
}

#endif
