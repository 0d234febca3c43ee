/* SPDX-License-Identifier: MIT
 *
 * Tokens by hand: the tree, who is told and who is not, hooks, and the wait as a leaf that is polled on no task.
 */
#include "base/list.h"
#include "counted.h"
#include "limits.h"
#include "task/waker.h"
#include "test.h"
#include "types.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <weft/token.h>

#define WAIT_FOR(t) ((struct weft_token_wait){.token = (t)})

/* ---- one token ---- */

TEST(token_zero_is_a_token)
{
    static weft_token token;
    ASSERT_EQ(weft_token_reason(&token), 0);
    ASSERT(weft_token_cancel(&token));
    ASSERT(!weft_token_cancel(&token));
    ASSERT_EQ(weft_token_reason(&token), -ECANCELED);
    weft_token_done(&token);
}

TEST(token_keeps_its_first_reason)
{
    weft_token token;
    weft_token_init(&token, NULL);
    ASSERT(!weft_token_cancel_for(&token, 0));
    ASSERT(!weft_token_cancel_for(&token, 5));
    ASSERT(weft_token_cancel_for(&token, -ESHUTDOWN));
    ASSERT(!weft_token_cancel_for(&token, -EIO));
    ASSERT_EQ(weft_token_reason(&token), -ESHUTDOWN);
    weft_token_done(&token);
    weft_token_done(NULL);
    ASSERT_EQ(weft_token_reason(NULL), 0);
    ASSERT(!weft_token_cancel(NULL));
}

TEST(token_wakes_all_who_wait_once)
{
    weft_token token = {0};
    struct counted c[3];
    struct weft_token_wait wait[3];
    struct weft_cx cx[3];

    for (int i = 0; i < 3; i++) {
        cx[i] = cx_of(&c[i]);
        wait[i] = WAIT_FOR(&token);
        ASSERT_EQ(weft_token_wait_poll(&wait[i], &cx[i]), WEFT_PENDING);
        ASSERT_EQ(weft_token_wait_poll(&wait[i], &cx[i]), WEFT_PENDING); /* without cause */
    }
    ASSERT(weft_token_cancel(&token));
    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(c[i].wakes, 1);
        ASSERT_EQ(weft_token_wait_poll(&wait[i], &cx[i]), WEFT_READY);
        ASSERT_EQ(wait[i].ret, 0);
        ASSERT_EQ(weft_token_wait_poll(&wait[i], &cx[i]),
                  WEFT_READY); /* over, it begins anew, and is over */
    }
    weft_token_done(&token);
}

TEST(token_probe_registers_nothing)
{
    weft_token token = {0};
    struct counted c;
    struct weft_cx cx = cx_of(&c);
    struct weft_token_wait wait = WAIT_FOR(&token);

    cx.probe = true;
    ASSERT_EQ(weft_token_wait_poll(&wait, &cx), WEFT_PENDING);
    ASSERT_EQ(wait.weft__at, 0);
    weft_token_cancel(&token);
    ASSERT_EQ(c.wakes, 0);
    ASSERT_EQ(weft_token_wait_poll(&wait, &cx), WEFT_READY);
    ASSERT_EQ(wait.ret, 0);
    weft_token_done(&token);
}

TEST(token_wait_that_is_stopped_leaves)
{
    weft_token token = {0};
    struct counted c;
    struct weft_cx cx = cx_of(&c);
    struct weft_token_wait wait = WAIT_FOR(&token);

    cx.why = -ETIME;
    ASSERT_EQ(weft_token_wait_poll(&wait, &cx), WEFT_READY); /* told before it began */
    ASSERT_EQ(wait.ret, -ETIME);
    cx.why = 0;
    ASSERT_EQ(weft_token_wait_poll(&wait, &cx), WEFT_PENDING);
    cx.why = -ECANCELED;
    ASSERT_EQ(weft_token_wait_poll(&wait, &cx), WEFT_READY);
    ASSERT_EQ(wait.ret, -ECANCELED);
    ASSERT_EQ(wait.weft__at, 0);
    weft_token_cancel(&token);
    ASSERT_EQ(c.wakes, 0);
    weft_token_done(&token); /* nobody is left on it */
}

TEST(token_wait_that_is_stopped_tells_what_had_happened)
{
    weft_token token = {0};
    struct counted c;
    struct weft_cx cx = cx_of(&c);
    struct weft_token_wait wait = WAIT_FOR(&token);

    ASSERT_EQ(weft_token_wait_poll(&wait, &cx), WEFT_PENDING);
    weft_token_cancel(&token);
    cx.why = -ECANCELED;
    ASSERT_EQ(weft_token_wait_poll(&wait, &cx), WEFT_READY);
    ASSERT_EQ(wait.ret, 0);
    weft_token_done(&token);
}

TEST(token_wait_for_none_is_refused)
{
    struct counted c;
    struct weft_cx cx = cx_of(&c);
    struct weft_token_wait wait = WAIT_FOR(NULL);
    ASSERT_EQ(weft_token_wait_poll(&wait, &cx), WEFT_READY);
    ASSERT_EQ(wait.ret, -EINVAL);
}

/* ---- the tree ---- */

TEST(token_cancels_its_children)
{
    weft_token parent = {0};
    weft_token child;
    weft_token grandchild;
    weft_token_init(&child, &parent);
    weft_token_init(&grandchild, &child);
    ASSERT(weft_token_cancel_for(&parent, -EIO));
    ASSERT_EQ(weft_token_reason(&child), -EIO);
    ASSERT_EQ(weft_token_reason(&grandchild), -EIO);
    ASSERT(!weft_token_cancel(&child));
    weft_token_done(&grandchild);
    weft_token_done(&child);
    weft_token_done(&parent);
}

TEST(token_child_does_not_cancel_its_parent)
{
    weft_token parent = {0};
    weft_token child[2];
    weft_token_init(&child[0], &parent);
    weft_token_init(&child[1], &parent);
    ASSERT(weft_token_cancel(&child[0]));
    ASSERT_EQ(weft_token_reason(&parent), 0);
    ASSERT_EQ(weft_token_reason(&child[1]), 0);
    ASSERT(weft_token_cancel_for(&parent, -EIO));
    ASSERT_EQ(weft_token_reason(&child[0]), -ECANCELED); /* it had its own */
    weft_token_done(&child[0]);
    weft_token_done(&child[1]);
    weft_token_done(&parent);
}

TEST(token_child_of_a_cancelled_one_is_born_so)
{
    weft_token parent = {0};
    weft_token child;
    weft_token_cancel(&parent);
    weft_token_init(&child, &parent);
    ASSERT_EQ(weft_token_reason(&child), -ECANCELED);
    weft_token_done(&child);
    weft_token_done(&parent);
}

TEST(token_grandchild_is_cancelled_when_its_parent_is_gone)
{
    weft_token root = {0};
    weft_token child;
    weft_token grandchild[2];
    weft_token_init(&child, &root);
    weft_token_init(&grandchild[0], &child);
    weft_token_init(&grandchild[1], &child);
    weft_token_done(&child);
    weft_token_cancel(&root);
    for (int i = 0; i < 2; i++) {
        ASSERT_EQ(weft_token_reason(&grandchild[i]), -ECANCELED);
        weft_token_done(&grandchild[i]);
    }
    weft_token_done(&root);
}

/* A tree of 3 levels and 3 children each; one of the middle is cancelled: it and its own, and nobody else, are woken. */
TEST(token_cancels_descendants_only)
{
    weft_token tree[13] = {{{0}}}; /* parent of n: (n - 1) / 3 */
    struct weft_token_wait wait[13];
    struct counted c[13];
    struct weft_cx cx[13];

    for (int i = 0; i < 13; i++) {
        weft_token_init(&tree[i], i ? &tree[(i - 1) / 3] : NULL);
        cx[i] = cx_of(&c[i]);
        wait[i] = WAIT_FOR(&tree[i]);
        ASSERT_EQ(weft_token_wait_poll(&wait[i], &cx[i]), WEFT_PENDING);
    }
    weft_token_cancel(&tree[2]);
    for (int i = 0; i < 13; i++) {
        bool told = i == 2 || (i > 0 && (i - 1) / 3 == 2);
        ASSERT_EQ(c[i].wakes, told);
        ASSERT_EQ(weft_token_reason(&tree[i]) != 0, told);
    }
    weft_token_cancel(&tree[0]);
    for (int i = 12; i >= 0; i--) {
        ASSERT_EQ(c[i].wakes, 1);
        ASSERT_EQ(weft_token_wait_poll(&wait[i], &cx[i]), WEFT_READY);
        weft_token_done(&tree[i]);
    }
}

/* More than one batch: the lock is let go in between, and everybody is told all the same. */
TEST(token_wakes_many)
{
    enum { MANY = 3 * WEFT__WAKE_BATCH + 5 };
    weft_token token = {0};
    static struct weft_token_wait wait[MANY];
    static struct counted c[MANY];

    for (int i = 0; i < MANY; i++) {
        struct weft_cx cx = cx_of(&c[i]);
        wait[i] = WAIT_FOR(&token);
        ASSERT_EQ(weft_token_wait_poll(&wait[i], &cx), WEFT_PENDING);
    }
    weft_token_cancel(&token);
    for (int i = 0; i < MANY; i++) {
        struct weft_cx cx = {.waker = weft__waker_of_foreign(&c[i].foreign)};
        ASSERT_EQ(c[i].wakes, 1);
        ASSERT_EQ(weft_token_wait_poll(&wait[i], &cx), WEFT_READY);
    }
    weft_token_done(&token);
}

/* ---- hooks ---- */

struct ran {
    weft_token_hook hook;
    weft_token *token;
    int times;
    int reason;
    int off; /* what hook_off said inside of it */
    struct ran *other;
};

static void runs(void *arg)
{
    struct ran *r = arg;
    r->times++;
    r->reason = weft_token_reason(r->token);
    if (r->other) r->off = weft_token_hook_off(&r->other->hook);
}

TEST(token_hooks_run_before_waiters_are_woken)
{
    weft_token token = {0};
    weft_token child;
    struct ran a = {.hook = {.fn = runs, .arg = &a}, .token = &token};
    struct ran b = {.hook = {.fn = runs, .arg = &b}, .token = &child};

    weft_token_init(&child, &token);
    ASSERT(!weft_token_hook_on(&token, &a.hook));
    ASSERT(!weft_token_hook_on(&child, &b.hook));
    weft_token_cancel_for(&token, -EIO);
    ASSERT_EQ(a.times, 1);
    ASSERT_EQ(b.times, 1);
    ASSERT_EQ(a.reason, -EIO);
    ASSERT_EQ(weft_token_hook_off(&a.hook), 1);
    ASSERT_EQ(weft_token_hook_off(&a.hook), 1);
    ASSERT_EQ(weft_token_hook_off(&b.hook), 1);
    weft_token_done(&child);
    weft_token_done(&token);
}

TEST(token_hook_that_is_off_does_not_run)
{
    weft_token token = {0};
    struct ran a = {.hook = {.fn = runs, .arg = &a}, .token = &token};

    ASSERT_EQ(weft_token_hook_off(&a.hook), 1); /* it was never on */
    weft_token_hook_on(&token, &a.hook);
    ASSERT_EQ(weft_token_hook_off(&a.hook), 0);
    weft_token_cancel(&token);
    ASSERT_EQ(a.times, 0);
    ASSERT(weft_token_hook_on(&token, &a.hook)); /* of a cancelled one it runs at once */
    ASSERT_EQ(a.times, 1);
    ASSERT_EQ(weft_token_hook_off(&a.hook), 1);
    weft_token_done(&token);
}

TEST(token_hook_takes_another_off)
{
    weft_token token = {0};
    struct ran b = {.hook = {.fn = runs, .arg = &b}, .token = &token};
    struct ran a = {.hook = {.fn = runs, .arg = &a}, .token = &token, .other = &b};

    weft_token_hook_on(&token, &a.hook);
    weft_token_hook_on(&token, &b.hook);
    weft_token_cancel(&token);
    ASSERT_EQ(a.times, 1);
    ASSERT_EQ(a.off, 0);
    ASSERT_EQ(b.times, 0); /* a was the first, and took it off */
    ASSERT_EQ(weft_token_hook_off(&a.hook), 1);
    weft_token_done(&token);
}

TEST(token_hook_cannot_wait_for_itself)
{
    weft_token token = {0};
    struct ran a = {.hook = {.fn = runs, .arg = &a}, .token = &token, .other = &a};

    weft_token_hook_on(&token, &a.hook);
    weft_token_cancel(&token);
    ASSERT_EQ(a.off, -EDEADLK);
    ASSERT_EQ(weft_token_hook_off(&a.hook), 1);
    weft_token_done(&token);
}

static _Atomic int stage;

static void runs_until_told(void *arg)
{
    (void)arg;
    store_release(&stage, 1);
    while (load_acquire(&stage) < 2)
        sched_yield();
    store_release(&stage, 3);
}

static void *takes_off(void *arg)
{
    while (load_acquire(&stage) < 1)
        sched_yield();
    store_release(&stage, 2);
    ASSERT_EQ(weft_token_hook_off((weft_token_hook *)arg), 1);
    ASSERT_EQ(load_acquire(&stage), 3); /* it was over */
    return NULL;
}

TEST(token_hook_off_waits_for_one_that_runs)
{
    weft_token token = {0};
    weft_token_hook hook = {.fn = runs_until_told};
    pthread_t thread;

    weft_token_hook_on(&token, &hook);
    ASSERT_OK(pthread_create(&thread, NULL, takes_off, &hook));
    weft_token_cancel(&token);
    ASSERT_OK(pthread_join(thread, NULL));
    weft_token_done(&token);
}

/* ---- mistakes ---- */

TEST_WITH(token_done_while_somebody_waits, .signal = SIGABRT)
{
    weft_token token = {0};
    struct counted c;
    struct weft_cx cx = cx_of(&c);
    struct weft_token_wait wait = WAIT_FOR(&token);
    (void)weft_token_wait_poll(&wait, &cx);
    weft_token_done(&token);
}

TEST_WITH(token_done_before_its_child, .signal = SIGABRT)
{
    weft_token token = {0};
    weft_token child;
    weft_token_init(&child, &token);
    weft_token_done(&token);
}

TEST_WITH(token_done_with_a_hook, .signal = SIGABRT)
{
    weft_token token = {0};
    weft_token_hook hook = {.fn = runs};
    weft_token_hook_on(&token, &hook);
    weft_token_done(&token);
}
