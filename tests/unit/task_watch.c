/* SPDX-License-Identifier: MIT
 *
 * Watchers step by step: each transition of the join word that watch.h draws, and what it answers.
 * The steps inside of a child's end cannot be stopped here one by one; model_watch does that.
 */
#include "task/watch.h"

#include "death.h"
#include "test.h"

#include <signal.h>

/* ---- a scheduler that notes who was pushed ---- */

static struct weft_task *pushed[256];
static unsigned pushed_count;

static void note_push(void *self, struct weft_task *task)
{
    (void)self;
    pushed[pushed_count++] = task;
}

static void note_chain(void *self, struct weft_task *first, struct weft_task *last, uint32_t count)
{
    (void)last;
    for (struct weft_task *t = first; count-- > 0;) {
        struct weft_task *next = load_relaxed(&t->link);
        note_push(self, t);
        t = next;
    }
}

static const struct weft__sched_ops note_ops = {.push = note_push, .push_chain = note_chain};
static const struct weft__sched note = {.ops = &note_ops};

/* ---- tasks ---- */

struct watching {
    struct weft_task task;
    struct weft__watcher watcher;
};

static struct weft_task child_of(uint32_t references)
{
    struct weft_task child = {.site = NULL};
    weft__state_init(&child, references);
    weft__join_init(&child, references == 0);
    return child;
}

/* A task that sleeps: it can be claimed. */
static void sleeping(struct weft_task *task)
{
    *task = (struct weft_task){.site = NULL};
    weft__state_init(task, 1);
    (void)weft__state_end_poll(task);
}

static void watch(struct weft_task *child, struct watching *w)
{
    *w = (struct watching){.watcher = {.waker = 0}};
    sleeping(&w->task);
    ASSERT_EQ(weft__watch_add(child, &w->watcher, weft__waker_of(&w->task)), WEFT__JOIN_PENDING);
}

static struct weft__join_done end(struct weft_task *child)
{
    struct weft__join_done done = weft__join_complete(child);
    weft__waker_push(done.joiner, &note);
    if (done.watched) weft__watch_wake(child, &note);
    return done;
}

static uintptr_t word_of(const struct weft_task *child)
{
    return load_relaxed(&child->join);
}

/* ---- waiting and being woken ---- */

TEST(watch_wakes_all_in_the_order_they_came)
{
    struct weft_task child = child_of(1);
    struct watching w[3];
    for (int i = 0; i < 3; i++)
        watch(&child, &w[i]);
    for (int i = 0; i < 3; i++)
        ASSERT_EQ(weft__watch_again(&child, &w[i].watcher), WEFT__JOIN_PENDING);
    struct weft__join_done done = end(&child);
    ASSERT(done.watched);
    ASSERT(!done.unread);
    ASSERT(!done.free);
    ASSERT_EQ(pushed_count, 3);
    for (int i = 0; i < 3; i++) {
        ASSERT_PTR(pushed[i], &w[i].task);
        ASSERT_EQ(weft__watch_again(&child, &w[i].watcher), WEFT__JOIN_READY);
    }
}

TEST(watch_wakes_more_than_a_batch)
{
    struct weft_task child = child_of(1);
    static struct watching w[3 * WEFT__WAKE_BATCH];
    for (unsigned i = 0; i < 3 * WEFT__WAKE_BATCH; i++)
        watch(&child, &w[i]);
    (void)end(&child);
    ASSERT_EQ(pushed_count, 3 * WEFT__WAKE_BATCH);
    for (unsigned i = 0; i < pushed_count; i++)
        ASSERT_PTR(pushed[i], &w[i].task);
}

TEST(watch_of_a_complete_child_is_ready)
{
    struct weft_task child = child_of(1);
    struct weft__watcher w = {.waker = 0};
    ASSERT(!end(&child).watched);
    ASSERT_EQ(weft__watch_add(&child, &w, (struct weft_waker){16}), WEFT__JOIN_READY);
}

TEST(watch_of_a_taken_child_yields)
{
    struct weft_task child = child_of(1);
    struct weft__watcher w = {.waker = 0};
    store_relaxed(&child.join, WEFT__JOIN_TAKEN);
    ASSERT_EQ(weft__watch_add(&child, &w, (struct weft_waker){16}), WEFT__JOIN_YIELD);
    ASSERT_EQ(word_of(&child), WEFT__JOIN_TAKEN);
    (void)weft__state_complete(&child);
    ASSERT_EQ(weft__watch_add(&child, &w, (struct weft_waker){16}), WEFT__JOIN_READY);
}

/* ---- beside a joiner ---- */

static void expect_both(struct weft_task *child, struct weft_task *joiner, struct watching *w)
{
    ASSERT_EQ(weft__join_poll(child, weft__waker_of(joiner)), WEFT__JOIN_PENDING); /* once more */
    (void)end(child);
    ASSERT_EQ(pushed_count, 2);
    ASSERT_PTR(pushed[0], joiner);
    ASSERT_PTR(pushed[1], &w->task);
}

TEST(watch_after_the_joiner)
{
    struct weft_task child = child_of(2);
    struct weft_task joiner;
    struct watching w;
    sleeping(&joiner);
    ASSERT_EQ(weft__join_poll(&child, weft__waker_of(&joiner)), WEFT__JOIN_PENDING);
    watch(&child, &w);
    expect_both(&child, &joiner, &w);
}

TEST(watch_before_the_joiner)
{
    struct weft_task child = child_of(2);
    struct weft_task joiner;
    struct watching w;
    sleeping(&joiner);
    watch(&child, &w);
    ASSERT_EQ(weft__join_poll(&child, weft__waker_of(&joiner)), WEFT__JOIN_PENDING);
    expect_both(&child, &joiner, &w);
}

TEST(watch_joiner_withdraws)
{
    struct weft_task child = child_of(2);
    struct weft_task joiner;
    struct watching w;
    sleeping(&joiner);
    watch(&child, &w);
    ASSERT_EQ(weft__join_poll(&child, weft__waker_of(&joiner)), WEFT__JOIN_PENDING);
    ASSERT_EQ(weft__join_withdraw(&child, weft__waker_of(&joiner)), WEFT__JOIN_LEFT);
    (void)end(&child);
    ASSERT_EQ(pushed_count, 1);
    ASSERT_PTR(pushed[0], &w.task);
}

/* ---- giving up ---- */

TEST(watch_last_leaves_and_the_word_is_as_before)
{
    struct weft_task child = child_of(1);
    struct watching w;
    struct weft_task joiner;

    watch(&child, &w);
    weft__watch_leave(&child, &w.watcher);
    ASSERT_EQ(word_of(&child), WEFT__JOIN_NONE);

    sleeping(&joiner);
    ASSERT_EQ(weft__join_poll(&child, weft__waker_of(&joiner)), WEFT__JOIN_PENDING);
    watch(&child, &w);
    weft__watch_leave(&child, &w.watcher);
    ASSERT_EQ(word_of(&child), weft__waker_of(&joiner).word);
    weft__watch_leave(&child, &w.watcher); /* it is out: nothing happens */
    (void)end(&child);
    ASSERT_EQ(pushed_count, 1);
    ASSERT_PTR(pushed[0], &joiner);
}

/* Whichever of three leaves, the others and the joiner stay. */
TEST(watch_each_of_three_may_leave)
{
    for (unsigned gone = 0; gone < 3; gone++) {
        struct weft_task child = child_of(2);
        struct weft_task joiner;
        struct watching w[3];
        pushed_count = 0;
        for (int i = 0; i < 3; i++)
            watch(&child, &w[i]);
        sleeping(&joiner);
        ASSERT_EQ(weft__join_poll(&child, weft__waker_of(&joiner)), WEFT__JOIN_PENDING);
        weft__watch_leave(&child, &w[gone].watcher);
        (void)end(&child);
        ASSERT_EQ(pushed_count, 3);
        ASSERT_PTR(pushed[0], &joiner);
        ASSERT_PTR(pushed[1], &w[gone == 0].task);
        ASSERT_PTR(pushed[2], &w[gone == 2 ? 1 : 2].task);
    }
}

/* ---- the handle is dropped ---- */

TEST(watch_and_let_go_in_any_order_leaves_the_report_to_the_completer)
{
    struct watching w;
    struct weft_task child = child_of(2);
    watch(&child, &w);
    ASSERT(!weft__join_let_go(&child));
    ASSERT_EQ(weft__state_unref(&child), WEFT__STATE_NOTHING);
    struct weft__join_done done = end(&child);
    ASSERT(done.unread);
    ASSERT(done.watched);

    child = child_of(2);
    ASSERT(!weft__join_let_go(&child));
    watch(&child, &w);
    done = end(&child);
    ASSERT(done.unread);
    ASSERT(done.watched);
}

TEST(watch_last_leaves_a_child_that_was_let_go)
{
    struct watching w;
    struct weft_task child = child_of(2);
    watch(&child, &w);
    ASSERT(!weft__join_let_go(&child));
    weft__watch_leave(&child, &w.watcher);
    ASSERT_EQ(word_of(&child), WEFT__JOIN_DETACHED);
    struct weft__join_done done = end(&child);
    ASSERT(done.unread);
    ASSERT(!done.watched);
}

TEST(watch_let_go_after_the_end_leaves_the_report_to_the_owner)
{
    struct watching w;
    struct weft_task child = child_of(2);
    watch(&child, &w);
    ASSERT(!end(&child).unread);
    ASSERT(weft__join_let_go(&child));
}

/* ---- many children ---- */

static struct watching grid[200][2];
static struct weft_task kids[200];

/* More children than buckets: each wakes its own, and the others go on waiting. */
TEST(watch_children_that_share_buckets_do_not_mix)
{
    for (int c = 0; c < 200; c++) {
        kids[c] = child_of(1);
        watch(&kids[c], &grid[c][0]);
        watch(&kids[c], &grid[c][1]);
    }
    for (int c = 199; c >= 0; c--) {
        pushed_count = 0;
        (void)end(&kids[c]);
        ASSERT_EQ(pushed_count, 2);
        ASSERT_PTR(pushed[0], &grid[c][0].task);
        ASSERT_PTR(pushed[1], &grid[c][1].task);
        if (c > 0)
            ASSERT_EQ(weft__watch_again(&kids[c - 1], &grid[c - 1][0].watcher), WEFT__JOIN_PENDING);
    }
}

/* ---- misuse ---- */

TEST_WITH(watch_let_go_twice, .signal = SIGABRT)
{
    struct watching w;
    struct weft_task child = child_of(2);
    watch(&child, &w);
    (void)weft__join_let_go(&child);
    (void)weft__join_let_go(&child);
}

TEST_WITH(watch_two_joiners, .signal = SIGABRT)
{
    struct watching w;
    struct weft_task one;
    struct weft_task two;
    struct weft_task child = child_of(2);
    sleeping(&one);
    sleeping(&two);
    watch(&child, &w);
    (void)weft__join_poll(&child, weft__waker_of(&one));
    (void)weft__join_poll(&child, weft__waker_of(&two));
}
