/* SPDX-License-Identifier: MIT
 *
 * Wakers: claim and push of tasks and foreign wakers, and chains of both.
 */
#include "task/waker.h"

#include "base/list.h"
#include "sys/lock.h"
#include "task/state.h"
#include "test.h"

#include <signal.h>

/* A sched that writes down what it is given. */
struct record {
    struct weft_task *pushed[8];
    unsigned count;
    unsigned singles;
    unsigned chains;
};

static void record_push(void *sched, struct weft_task *task)
{
    struct record *r = sched;
    r->pushed[r->count++] = task;
    r->singles++;
}

static void record_push_chain(void *sched, struct weft_task *first, struct weft_task *last,
                              uint32_t count)
{
    struct record *r = sched;
    struct weft_task *at = first;

    for (uint32_t i = 0; i < count; i++) {
        if (i + 1 == count) ASSERT_PTR(at, last);
        r->pushed[r->count++] = at;
        at = load_relaxed(&at->link);
    }
    ASSERT_NULL(at);
    r->chains++;
}

static const struct weft__sched_ops record_ops = {.push = record_push,
                                                  .push_chain = record_push_chain};

static struct weft_task idle_task(void)
{
    struct weft_task t = {.site = NULL};
    weft__state_init(&t, 0);
    (void)weft__state_end_poll(&t);
    return t;
}

/* A foreign waker that counts, and that may be woken again from within its own wake. */
struct bell {
    struct weft__foreign foreign;
    unsigned rung;
    unsigned freed;
    unsigned echoes; /* wakes still to come from within */
    const struct weft__sched *sched;
};

static void bell_wake(struct weft__foreign *foreign)
{
    struct bell *b = weft__container_of(foreign, struct bell, foreign);
    b->rung++;
    if (b->echoes == 0) return;
    b->echoes--;
    weft__waker_wake(weft__waker_of_foreign(foreign), b->sched);
}

static void bell_free(struct weft__foreign *foreign)
{
    weft__container_of(foreign, struct bell, foreign)->freed++;
}

static const struct weft__foreign_ops bell_ops = {.wake = bell_wake, .free = bell_free};

TEST(waker_is_one_word_that_knows_its_kind)
{
    struct weft_task t = idle_task();
    struct bell b = {.rung = 0};

    ASSERT_EQ(sizeof(struct weft_waker), sizeof(void *));
    ASSERT(weft__waker_is_none(weft__waker_none()));
    ASSERT_NULL(weft__waker_task(weft__waker_none()));
    ASSERT_PTR(weft__waker_task(weft__waker_of(&t)), &t);
    ASSERT_NULL(weft__waker_foreign(weft__waker_of(&t)));
    ASSERT_PTR(weft__waker_foreign(weft__waker_of_foreign(&b.foreign)), &b.foreign);
    ASSERT_NULL(weft__waker_task(weft__waker_of_foreign(&b.foreign)));
}

TEST(waker_pushes_a_task_once_for_two_wakes)
{
    struct record r = {.count = 0};
    const struct weft__sched sched = {&record_ops, &r};
    struct weft_task t = idle_task();

    struct weft_waker first = weft__waker_claim(weft__waker_of(&t));
    struct weft_waker second = weft__waker_claim(weft__waker_of(&t));
    ASSERT(weft__waker_is_none(second));
    weft__waker_push(second, &sched);
    ASSERT_EQ(r.count, 0);
    weft__waker_push(first, &sched);
    ASSERT_EQ(r.count, 1);
    ASSERT_PTR(r.pushed[0], &t);
}

TEST(waker_chain_keeps_the_order_of_claims)
{
    struct record r = {.count = 0};
    const struct weft__sched sched = {&record_ops, &r};
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    struct weft_task t[3];

    for (int i = 0; i < 3; i++)
        t[i] = idle_task();
    for (int i = 0; i < 3; i++)
        weft__wake_chain_claim(&chain, weft__waker_of(&t[i]));
    weft__wake_chain_claim(&chain,
                           weft__waker_of(&t[1])); /* already claimed: not in the chain twice */
    ASSERT_EQ(chain.count, 3);
    weft__wake_chain_push(&chain, &sched);
    ASSERT_EQ(r.chains, 1);
    ASSERT_EQ(r.count, 3);
    for (int i = 0; i < 3; i++)
        ASSERT_PTR(r.pushed[i], &t[i]);
    weft__wake_chain_push(&chain, &sched); /* empty now */
    ASSERT_EQ(r.count, 3);
}

TEST(waker_chain_of_one_is_a_push)
{
    struct record r = {.count = 0};
    const struct weft__sched sched = {&record_ops, &r};
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    struct weft_task t = idle_task();

    weft__wake_chain_claim(&chain, weft__waker_of(&t));
    weft__wake_chain_push(&chain, &sched);
    ASSERT_EQ(r.singles, 1);
    ASSERT_EQ(r.chains, 0);
}

TEST(waker_foreign_is_claimed_once_and_rung_after)
{
    struct record r = {.count = 0};
    const struct weft__sched sched = {&record_ops, &r};
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    struct bell b[2] = {{.rung = 0}, {.rung = 0}};

    for (int i = 0; i < 2; i++)
        weft__foreign_init(&b[i].foreign, &bell_ops);
    for (int i = 0; i < 2; i++)
        weft__wake_chain_claim(&chain, weft__waker_of_foreign(&b[i].foreign));
    weft__wake_chain_claim(
        &chain, weft__waker_of_foreign(&b[0].foreign)); /* covered by the delivery to come */
    ASSERT_EQ(b[0].rung + b[1].rung, 0);
    weft__wake_chain_push(&chain, &sched);
    for (int i = 0; i < 2; i++)
        ASSERT_EQ(b[i].rung, 1);
    ASSERT_EQ(r.count, 0);
    weft__waker_wake(weft__waker_of_foreign(&b[0].foreign), &sched); /* free to be claimed again */
    ASSERT_EQ(b[0].rung, 2);
    for (int i = 0; i < 2; i++)
        weft__foreign_unref(&b[i].foreign);
    for (int i = 0; i < 2; i++)
        ASSERT_EQ(b[i].freed, 1);
}

TEST(waker_foreign_lives_until_its_delivery)
{
    struct record r = {.count = 0};
    const struct weft__sched sched = {&record_ops, &r};
    struct bell b = {.rung = 0};

    weft__foreign_init(&b.foreign, &bell_ops);
    struct weft_waker claimed = weft__waker_claim(weft__waker_of_foreign(&b.foreign));
    weft__foreign_ref(&b.foreign);
    weft__foreign_unref(&b.foreign);
    weft__foreign_unref(&b.foreign); /* the owner goes */
    ASSERT_EQ(b.freed, 0);
    weft__waker_push(claimed, &sched);
    ASSERT_EQ(b.rung, 1);
    ASSERT_EQ(b.freed, 1);
}

TEST(waker_foreign_that_is_woken_from_within_its_wake_is_rung_again)
{
    struct record r = {.count = 0};
    const struct weft__sched sched = {&record_ops, &r};
    struct bell b = {.echoes = 2, .sched = &sched};

    weft__foreign_init(&b.foreign, &bell_ops);
    weft__waker_wake(weft__waker_of_foreign(&b.foreign), &sched);
    ASSERT_EQ(b.rung, 3);
    weft__foreign_unref(&b.foreign);
    ASSERT_EQ(b.freed, 1);
}

#define MISUSE(name) TEST_WITH(name, .timeout_s = 60, .signal = SIGABRT)

MISUSE(waker_claim_of_none)
{
    (void)weft__waker_claim(weft__waker_none());
}

MISUSE(waker_foreign_unref_by_one_too_many)
{
    struct bell b = {.rung = 0};
    weft__foreign_init(&b.foreign, &bell_ops);
    weft__foreign_unref(&b.foreign);
    weft__foreign_unref(&b.foreign);
}

MISUSE(waker_foreign_ref_without_having_one)
{
    struct bell b = {.rung = 0};
    weft__foreign_init(&b.foreign, &bell_ops);
    weft__foreign_unref(&b.foreign);
    weft__foreign_ref(&b.foreign);
}

MISUSE(waker_foreign_claim_without_a_reference)
{
    struct bell b = {.rung = 0};
    weft__foreign_init(&b.foreign, &bell_ops);
    weft__foreign_unref(&b.foreign);
    (void)weft__waker_claim(weft__waker_of_foreign(&b.foreign));
}

MISUSE(waker_foreign_delivered_twice)
{
    struct record r = {.count = 0};
    const struct weft__sched sched = {&record_ops, &r};
    struct bell b = {.rung = 0};

    weft__foreign_init(&b.foreign, &bell_ops);
    struct weft_waker claimed = weft__waker_claim(weft__waker_of_foreign(&b.foreign));
    weft__waker_push(claimed, &sched);
    weft__waker_push(claimed, &sched);
}

#if defined(WEFT_DEBUG)
MISUSE(waker_push_under_a_lock)
{
    struct record r = {.count = 0};
    const struct weft__sched sched = {&record_ops, &r};
    struct weft__lock lock = WEFT__LOCK_INIT(WEFT__RANK_WAITLIST);
    struct weft_task t = idle_task();

    weft__lock_take(&lock);
    weft__waker_push(weft__waker_claim(weft__waker_of(&t)), &sched);
}

MISUSE(waker_chain_push_under_a_lock)
{
    struct record r = {.count = 0};
    const struct weft__sched sched = {&record_ops, &r};
    struct weft__lock lock = WEFT__LOCK_INIT(WEFT__RANK_WAITLIST);
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    weft__lock_take(&lock);
    weft__wake_chain_push(&chain, &sched);
}

MISUSE(waker_of_an_address_that_has_no_room_for_the_tag)
{
    static char block[2 * sizeof(struct weft_task)];
    (void)weft__waker_of((struct weft_task *)(void *)(block + 1 + ((uintptr_t)block & 1)));
}
#endif
