/* SPDX-License-Identifier: MIT
 *
 * Tokens as regions, on real runtimes: what is inside stops when the token is cancelled, wherever it is just then, and hears it until the block
 * is left; by either kind of task, and on a plain thread.
 */
#include "bell.h"
#include "crew.h"
#include "test.h"

#include <errno.h>
#include <weft/weft.h>

static weft_token stop;
static struct bell bell;
static _Atomic uint32_t inside; /* that wait, or are about to */

static void begin(void)
{
    weft_token_init(&stop, NULL);
    store_relaxed(&inside, 0);
}

/* ---- a wait inside of a token, in three forms ---- */

static int waits_until(void)
{
    int r = 1;
    fetch_add_relaxed(&inside, 1);
    WEFT_UNTIL(&stop) r = weft_run(hear, .bell = &bell);
    if (weft_yield() != 0) return -EBUSY; /* the block is left: nobody asks any more */
    return r;
}

struct awaits_until {
    WEFT_FRAME(int);
    struct hear hear;
    struct weft_until until;
    struct weft_yield pause;
};
static weft_async(awaits_until)
{
    weft_begin;
    fetch_add_relaxed(&inside, 1);
    weft_await(f->until, weft_until, &stop, weft_arm(f->hear, hear, .bell = &bell));
    if (f->until.ret != (f->hear.ret < 0 ? f->hear.ret : 0)) weft_return(-EINVAL);
    weft_await(f->pause, weft_yield);
    if (f->pause.ret != 0) weft_return(-EBUSY);
    weft_return(f->hear.ret);
    weft_end;
}

static void *waits_on_thread(void *into)
{
    *(int *)into = waits_until();
    return NULL;
}

/* ---- cancelled while it waits, before it, and not at all ---- */

static int join_int(weft_task *t)
{
    int r = 1;
    ASSERT_OK(weft_join(t, &r));
    return r;
}

static void cancelled_while_waiting(struct crew *crew)
{
    (void)crew;
    for (int kind = 0; kind < 2; kind++) {
        begin();
        bell_init(&bell);
        weft_task *t = kind ? weft_go(waits_until) : weft_spawn(awaits_until);
        CREW_UNTIL(bell_awaited(&bell));
        ASSERT(weft_token_cancel(&stop));
        ASSERT_EQ(join_int(t), -ECANCELED);
        weft_token_done(&stop);
        bell_done(&bell);
    }
}

TEST(until_a_token_is_cancelled)
{
    crew_each(cancelled_while_waiting);
}

static void cancelled_before(struct crew *crew)
{
    (void)crew;
    for (int kind = 0; kind < 2; kind++) {
        begin();
        bell_init(&bell);
        bell_ring(&bell); /* it would be ready at once */
        weft_token_cancel(&stop);
        int r = join_int(kind ? weft_go(waits_until) : weft_spawn(awaits_until));
        ASSERT(r == 0 || r == -ECANCELED); /* hear answers what happened, if it did */
        weft_token_done(&stop);
        bell_done(&bell);
    }
}

TEST(until_a_token_that_is_cancelled_already)
{
    crew_each(cancelled_before);
}

static void not_cancelled(struct crew *crew)
{
    (void)crew;
    for (int kind = 0; kind < 2; kind++) {
        begin();
        bell_init(&bell);
        weft_task *t = kind ? weft_go(waits_until) : weft_spawn(awaits_until);
        CREW_UNTIL(bell_awaited(&bell));
        bell_ring(&bell);
        ASSERT_EQ(join_int(t), 0);
        weft_token_done(&stop); /* nobody is left on it */
        bell_done(&bell);
    }
}

TEST(until_the_end)
{
    crew_each(not_cancelled);
}

TEST(until_on_a_plain_thread)
{
    for (int cancels = 0; cancels < 2; cancels++) {
        pthread_t thread;
        int r = 1;
        begin();
        bell_init(&bell);
        ASSERT_OK(pthread_create(&thread, NULL, waits_on_thread, &r));
        CREW_UNTIL(bell_awaited(&bell));
        if (cancels) {
            weft_token_cancel(&stop);
        } else {
            bell_ring(&bell);
        }
        ASSERT_OK(pthread_join(thread, NULL));
        ASSERT_EQ(r, cancels ? -ECANCELED : 0);
        weft_token_done(&stop);
        bell_done(&bell);
    }
}

/* A loop of calls that are ready at once hears the token, too. */
static int never_suspends(void)
{
    int rounds = 0;
    weft_token own = {0};
    WEFT_UNTIL(&own)
    {
        for (;;) {
            struct weft_token_wait w;
            if (++rounds == 5) weft_token_cancel(&own);
            if (weft_select(weft_arm(w, weft_token_wait, &stop), weft_otherwise) < 0) break;
        }
    }
    weft_token_done(&own);
    return rounds;
}

static void looks_without_waiting(struct crew *crew)
{
    (void)crew;
    begin();
    ASSERT_EQ(join_int(weft_go(never_suspends)), 5);
    weft_token_done(&stop);
}

TEST(until_is_heard_by_what_never_suspends)
{
    crew_each(looks_without_waiting);
}

/* ---- every way out of a block ---- */

static int leaves_by(int way)
{
    weft_token own = {0};
    struct bell b;
    int rounds = 0;

    bell_init(&b);
    bell_ring(&b);
    for (int i = 0; i < 3; i++) {
        WEFT_UNTIL(&own)
        {
            rounds++;
            if (weft_yield() != 0) goto out; /* suspends: the token is waited for */
            if (way == 1) break;
            if (way == 2) continue;
            if (way == 3) goto out;
            rounds += 10;
        }
        WEFT_UNTIL(&own) if (weft_yield() != 0) goto out;
    }
out:
    bell_done(&b);
    weft_token_done(&own); /* aborts if a block left its waiter */
    return rounds;
}

static int returns_from_block(weft_token *own)
{
    WEFT_UNTIL(own)
    {
        WEFT_UNTIL(own) return weft_yield() == 0 ? 7 : -1;
    }
    return -1;
}

static int leaves(void)
{
    weft_token own = {0};
    if (leaves_by(0) != 33 || leaves_by(1) != 3 || leaves_by(2) != 3 || leaves_by(3) != 1)
        return -EINVAL;
    if (returns_from_block(&own) != 7) return -EBADE;
    weft_token_done(&own);
    return 0;
}

static void every_way(struct crew *crew)
{
    (void)crew;
    ASSERT_EQ(join_int(weft_go(leaves)), 0);
}

TEST(until_is_left_in_every_way)
{
    crew_each(every_way);
    ASSERT_EQ(leaves(), 0); /* and on a plain thread */
}

/* ---- nested, and beside the task's own cancel ---- */

static int nested(weft_token *outer, weft_token *inner)
{
    int in = 1;
    int between = 1;
    WEFT_UNTIL(outer)
    {
        WEFT_UNTIL(inner) in = weft_run(hear, .bell = &bell);
        between = weft_yield();
    }
    int out = weft_yield();
    return (in == -ECANCELED) | (between == -ECANCELED) << 1 | (out == -ECANCELED) << 2;
}

/* Who asks: the inner one, the outer one, or the task. Each is heard inside of its own block, and nowhere else. */
static void who_asks(struct crew *crew)
{
    (void)crew;
    for (int who = 0; who < 3; who++) {
        weft_token outer = {0};
        weft_token inner = {0};
        bell_init(&bell);
        weft_task *t = weft_go(nested, &outer, &inner);
        CREW_UNTIL(bell_awaited(&bell));
        if (who == 0) weft_token_cancel(&inner);
        if (who == 1) weft_token_cancel(&outer);
        if (who == 2) weft_cancel(t);
        ASSERT_EQ(join_int(t), who == 0 ? 1 : who == 1 ? 3 : 7);
        weft_token_done(&outer);
        weft_token_done(&inner);
        bell_done(&bell);
    }
}

TEST(until_reaches_as_far_as_its_block)
{
    crew_each(who_asks);
}

/* ---- many wait for one token, tasks come and go ---- */

#define MANY 200

static void many_wait(struct crew *crew)
{
    weft_task *t[MANY];
    (void)crew;
    begin();
    bell_init(&bell);
    for (int i = 0; i < MANY; i++) {
        t[i] = i % 2 ? weft_go(weft__token_wait, &stop) : weft_spawn(weft_token_wait, &stop);
    }
    weft_token_cancel(&stop);
    for (int i = 0; i < MANY; i++)
        ASSERT_EQ(join_int(t[i]), 0);
    weft_token_done(&stop);
    bell_done(&bell);
}

TEST(token_is_waited_for_by_many)
{
    crew_each(many_wait);
}
