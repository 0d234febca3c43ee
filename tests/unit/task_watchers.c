/* SPDX-License-Identifier: MIT
 *
 * Watchers step by step: each arrow that watchers.h draws, and what it answers. The steps inside of a
 * child's end cannot be stopped here one by one; model_watchers does that.
 */
#include "task/watchers.h"

#include "ending.h"
#include "test.h"

#include <string.h>

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
    memset(w, 0, sizeof(*w));
    sleeping(&w->task);
    ASSERT(!weft__watchers_add(child, &w->watcher, weft__waker_of(&w->task)));
}

static struct weft__join_done end(struct weft_task *child)
{
    struct weft__join_done done = ending_complete(child);
    weft__waker_push(done.joiner, &note);
    if (done.watched) weft__watchers_wake(child, &note);
    return done;
}

static bool is_watched(const struct weft_task *child)
{
    return weft__state_look(child) & WEFT__STATE_WATCHED;
}

/* ---- waiting and being woken ---- */

TEST(watchers_are_woken_in_the_order_they_came)
{
    struct weft_task child = child_of(1);
    struct watching w[3];
    ASSERT(!is_watched(&child));
    for (int i = 0; i < 3; i++)
        watch(&child, &w[i]);
    ASSERT(is_watched(&child));
    for (int i = 0; i < 3; i++)
        ASSERT(!weft__watchers_again(&child, &w[i].watcher));
    struct weft__join_done done = end(&child);
    ASSERT(done.watched);
    ASSERT(!done.free);
    ASSERT_EQ(pushed_count, 3);
    for (int i = 0; i < 3; i++) {
        ASSERT_PTR(pushed[i], &w[i].task);
        ASSERT(weft__watchers_again(&child, &w[i].watcher));
    }
}

TEST(watchers_of_a_complete_child_are_ready)
{
    struct weft_task child = child_of(1);
    struct weft__watcher w;
    ASSERT(!end(&child).watched);
    ASSERT(weft__watchers_add(&child, &w, (struct weft_waker){16}));
    ASSERT(!is_watched(&child));
}

/* The same task in two arms of one frame is pushed once. */
TEST(watchers_with_one_waker_wake_it_once)
{
    struct weft_task child = child_of(1);
    struct watching w;
    struct weft__watcher second;
    watch(&child, &w);
    ASSERT(!weft__watchers_add(&child, &second, weft__waker_of(&w.task)));
    (void)end(&child);
    ASSERT_EQ(pushed_count, 1);
    ASSERT(weft__watchers_again(&child, &second));
    ASSERT(weft__watchers_again(&child, &w.watcher));
}

/* ---- beside a joiner ---- */

static void expect_both(struct weft_task *child, struct weft_task *joiner, struct watching *w)
{
    ASSERT_EQ(weft__join_poll(child, weft__waker_of(joiner)), WEFT__JOIN_PENDING); /* once more */
    (void)end(child);
    ASSERT_EQ(pushed_count, 2);
    ASSERT_PTR(pushed[0], joiner);
    ASSERT_PTR(pushed[1], &w->task);
    weft__watchers_leave(&w->watcher);
}

TEST(watchers_after_the_joiner)
{
    struct weft_task child = child_of(2);
    struct weft_task joiner;
    struct watching w;
    sleeping(&joiner);
    ASSERT_EQ(weft__join_poll(&child, weft__waker_of(&joiner)), WEFT__JOIN_PENDING);
    watch(&child, &w);
    expect_both(&child, &joiner, &w);
}

TEST(watchers_before_the_joiner)
{
    struct weft_task child = child_of(2);
    struct weft_task joiner;
    struct watching w;
    sleeping(&joiner);
    watch(&child, &w);
    ASSERT_EQ(weft__join_poll(&child, weft__waker_of(&joiner)), WEFT__JOIN_PENDING);
    expect_both(&child, &joiner, &w);
}

TEST(watchers_stay_when_the_joiner_withdraws)
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
    ASSERT(weft__watchers_again(&child, &w.watcher));
}

/* The joiner that runs the child itself: not while somebody else refers to it, nor if somebody ever watched. */
TEST(watchers_are_seen_by_a_joiner_that_runs_the_child)
{
    struct weft_task child = child_of(2);
    struct watching w;
    watch(&child, &w);
    ASSERT(!weft__state_is_own(weft__join_ending(&child)));
    weft__watchers_leave(&w.watcher);
    ASSERT_EQ(weft__state_unref(&child), WEFT__STATE_NOTHING);
    ASSERT(!weft__state_is_own(weft__join_ending(&child)));
    ASSERT(end(&child).watched);
    ASSERT_EQ(pushed_count, 0);
}

/* ---- giving up ---- */

/* Whichever of three leaves, the others and the joiner stay. */
TEST(watchers_may_leave_each_for_itself)
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
        weft__watchers_leave(&w[gone].watcher);
        (void)end(&child);
        ASSERT_EQ(pushed_count, 3);
        ASSERT_PTR(pushed[0], &joiner);
        ASSERT_PTR(pushed[1], &w[gone == 0].task);
        ASSERT_PTR(pushed[2], &w[gone == 2 ? 1 : 2].task);
        for (unsigned i = 0; i < 3; i++)
            if (i != gone) ASSERT(weft__watchers_again(&child, &w[i].watcher));
    }
}

/* One that leaves between the child's end and its own poll. */
TEST(watchers_may_leave_after_the_end)
{
    struct weft_task child = child_of(1);
    struct watching w;
    watch(&child, &w);
    struct weft__join_done done = ending_complete(&child);
    ASSERT(done.watched);
    weft__watchers_leave(&w.watcher);
    weft__watchers_wake(&child, &note);
    ASSERT_EQ(pushed_count, 0);
}

/* ---- the handle is dropped, the block is used anew ---- */

TEST(watchers_keep_a_detached_child)
{
    struct watching w;
    struct weft_task child = child_of(2);
    watch(&child, &w);
    ASSERT_EQ(ending_detach(&child), WEFT__STATE_NOTHING);
    struct weft__join_done done = end(&child);
    ASSERT(done.watched);
    ASSERT(!done.free);
    ASSERT_EQ(pushed_count, 1);
    ASSERT(weft__watchers_again(&child, &w.watcher));
    ASSERT_EQ(weft__state_unref(&child), WEFT__STATE_FREE);
}

/* The completer comes late: its child's block is another task's, and that one's watcher looks again. */
TEST(watchers_of_the_blocks_next_task_are_woken_for_nothing)
{
    struct weft_task child = child_of(1);
    struct watching old;
    struct watching young;
    watch(&child, &old);
    ASSERT(ending_complete(&child).watched);
    ASSERT(weft__watchers_again(&child, &old.watcher));
    ASSERT_EQ(weft__state_unref(&child), WEFT__STATE_FREE);
    weft__state_free(&child);
    weft__state_init(&child, 1);
    ASSERT(!is_watched(&child));
    watch(&child, &young);
    weft__watchers_wake(&child, &note);
    ASSERT_EQ(pushed_count, 1);
    ASSERT_PTR(pushed[0], &young.task);
    ASSERT(!weft__watchers_again(&child, &young.watcher));
    weft__watchers_leave(&young.watcher);
}

/* ---- many children ---- */

enum { KIDS = 2 * WEFT__WATCH_BUCKETS };

static struct watching grid[KIDS][2];
static struct weft_task kids[KIDS];

/* More children than buckets: each wakes its own, and the others go on waiting. */
TEST(watchers_of_children_that_share_buckets_do_not_mix)
{
    for (int c = 0; c < KIDS; c++) {
        kids[c] = child_of(1);
        watch(&kids[c], &grid[c][0]);
        watch(&kids[c], &grid[c][1]);
    }
    for (int c = KIDS - 1; c >= 0; c--) {
        pushed_count = 0;
        (void)end(&kids[c]);
        ASSERT_EQ(pushed_count, 2);
        ASSERT_PTR(pushed[0], &grid[c][0].task);
        ASSERT_PTR(pushed[1], &grid[c][1].task);
        for (int i = 0; i < 2; i++)
            ASSERT(weft__watchers_again(&kids[c], &grid[c][i].watcher));
        if (c > 0) ASSERT(!weft__watchers_again(&kids[c - 1], &grid[c - 1][0].watcher));
    }
}

/* ---- fork ---- */

TEST(watchers_are_forgotten)
{
    struct weft_task child = child_of(1);
    struct watching lost;
    struct watching w;
    watch(&child, &lost);
    weft__watchers_forget();
    watch(&child, &w);
    (void)end(&child);
    ASSERT_EQ(pushed_count, 1);
    ASSERT_PTR(pushed[0], &w.task);
    ASSERT(weft__watchers_again(&child, &w.watcher));
}
