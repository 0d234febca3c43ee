/* SPDX-License-Identifier: MIT
 *
 * Scopes on real runtimes: a block, or a stackless function, never ends before its children do; however it is left, whoever is
 * cancelled or stops it. On fibers, on plain threads, in frames. Where children come from, and what they may be: scope_children.c.
 */
#include "brood.h"

/* ---- the ways out ---- */

static int end_waits(void)
{
    int done[4] = {0};
    WEFT_SCOPE(s)
    {
        for (int i = 0; i < 4; i++)
            ASSERT_OK(weft_go_in(s, works, &done[i]));
    }
    for (int i = 0; i < 4; i++)
        ASSERT_EQ(done[i], 1);
    ASSERT_EQ(load_relaxed(&over), 4);
    return 0;
}

static int continue_waits(void)
{
    int done = 0;
    WEFT_SCOPE(s)
    {
        ASSERT_OK(weft_go_in(s, works, &done));
        if (s) continue;
        ASSERT(!"reached");
    }
    ASSERT_EQ(done, 1);
    return 0;
}

static int break_cancels(void)
{
    for (int stackless = 0; stackless < 2; stackless++) {
        int done[3] = {0};
        int rounds = 0;
        for (; rounds < 2; rounds++) {
            begin();
            WEFT_SCOPE(s)
            {
                for (int i = 0; i < 3; i++)
                    ASSERT_OK(stay(s, &done[i], stackless));
                until_begun(3);
                break; /* the scope, not the loop */
            }
            ASSERT_EQ(load_relaxed(&over), 3);
            ASSERT_EQ(load_relaxed(&heard), -ECANCELED);
        }
        ASSERT_EQ(rounds, 2);
        ASSERT_EQ(done[0] + done[1] + done[2], 6);
    }
    return 0;
}

static int returns_from_inside(int *done, int *seen)
{
    WEFT_SCOPE(s)
    {
        ASSERT_OK(weft_go_in(s, stays, done));
        until_begun(1);
        return *seen = *done + 7; /* computed before the wait */
    }
    return -1;
}

static int return_cancels(void)
{
    int done = 0;
    int seen = 0;
    ASSERT_EQ(returns_from_inside(&done, &seen), 7);
    ASSERT_EQ(done, 1);
    return 0;
}

static int goto_cancels(void)
{
    int done[2] = {0};
    WEFT_SCOPE(outer)
    {
        ASSERT_OK(weft_go_in(outer, stays, &done[0]));
        WEFT_SCOPE(inner)
        {
            ASSERT_OK(weft_go_in(inner, stays, &done[1]));
            until_begun(2);
            goto out; /* of both */
        }
        ASSERT(!"reached");
    }
    ASSERT(!"reached");
out:
    ASSERT_EQ(done[0] + done[1], 2);
    return 0;
}

static int nothing_inside(void)
{
    WEFT_SCOPE(s)
    {
        ASSERT_EQ(weft_scope_count(s), 0);
    }
    WEFT_SCOPE(s)
    {
        if (s) break;
    }
    return 0;
}

/* Children that write to their owner's frame, while it waits in there for their end; and the owner reads it behind that. */
struct lends_its_frame {
    WEFT_FRAME(int);
    int done[2];
    weft_scope children;
    struct weft_scope_join end;
};
static weft_async(lends_its_frame)
{
    weft_begin;
    ASSERT_OK(weft_go_in(&f->children, works, &f->done[0]));
    ASSERT_OK(weft_spawn_in(&f->children, works_stackless, &f->done[1]));
    weft_await(f->end, weft_scope_join, &f->children);
    weft_return(f->end.ret == 0 && f->done[0] == 1 && f->done[1] == 1 ? 0 : -EIO);
    weft_end;
}

static int frame_waits(void)
{
    for (int i = 0; i < 20; i++) {
        if (i % 2) { /* its own, and one on the caller's stack */
            int r = -1;
            ASSERT_OK(weft_join(weft_spawn(lends_its_frame), &r));
            ASSERT_OK(r);
        } else {
            ASSERT_OK(weft_run(lends_its_frame));
        }
    }
    ASSERT_EQ(load_relaxed(&over), 40);
    return 0;
}

static void ways_out(struct crew *crew)
{
    (void)crew;
    on_both(end_waits);
    on_both(frame_waits);
    on_both(continue_waits);
    on_both(break_cancels);
    on_both(return_cancels);
    on_both(goto_cancels);
    on_both(nothing_inside);
}

TEST(scope_waits_however_it_is_left)
{
    crew_each(ways_out);
}

/* ---- who is cancelled inside ---- */

static int owner_waits_at_the_end(int *done)
{
    WEFT_SCOPE(s) ASSERT_OK(weft_go_in(s, stays, done));
    ASSERT_EQ(*done, 1);
    return weft_yield(); /* the cancel is still there */
}

static int owner_waits_in_the_body(int *done)
{
    int r = 0;
    WEFT_SCOPE(s)
    {
        ASSERT_OK(weft_go_in(s, stays, done));
        r = weft_sleep(weft_secs(3600));
        ASSERT_EQ(weft_scope_reason(s), -ECANCELED); /* it was passed on at once */
    }
    ASSERT_EQ(*done, 1);
    return r;
}

/* The body does not listen for a while; its children are told all the same. */
static int owner_is_shielded(int *done)
{
    int r = 0;
    WEFT_SCOPE(s)
    {
        ASSERT_OK(weft_go_in(s, stays, done));
        WEFT_SHIELD(WEFT_FOREVER) while (load_relaxed(&over) == 0) r = weft_sleep(weft_ms(1));
        ASSERT_EQ(r, 0);
    }
    return weft_yield();
}

/* Its children borrow from its own frame, which must not go before they have. */
struct owner_stackless {
    WEFT_FRAME(int);
    int done[2];
    weft_scope children;
    struct weft_scope_join end;
    struct weft_yield yield;
};
static weft_async(owner_stackless)
{
    weft_begin;
    if (weft_spawn_in(&f->children, stays_stackless, &f->done[0]) < 0) weft_return(-EIO);
    if (weft_go_in(&f->children, stays, &f->done[1]) < 0) weft_return(-EIO);
    weft_await(f->end, weft_scope_join, &f->children);
    if (f->end.ret != 0 || f->done[0] != 1 || f->done[1] != 1) weft_return(-EIO);
    weft_await(f->yield, weft_yield);
    weft_return(f->yield.ret);
    weft_end;
}

/* Scopes in frames inside of one: its end comes behind the last leaf's, whether its task is told to stop or it stops itself. */
enum { OWNERS = 3, LEAVES = 2 * OWNERS };

struct owner_of_owners {
    WEFT_FRAME(int);
    bool stops_itself;
    weft_scope owners;
    struct weft_scope_join end;
    struct weft_yield yield;
};
static weft_async(owner_of_owners)
{
    weft_begin;
    for (int i = 0; i < OWNERS; i++)
        ASSERT_OK(weft_spawn_in(&f->owners, owner_stackless));
    while (f->stops_itself && load_relaxed(&begun) < LEAVES)
        weft_await(f->yield, weft_yield);
    if (f->stops_itself) ASSERT(weft_scope_cancel(&f->owners));
    weft_await(f->end, weft_scope_join, &f->owners);
    ASSERT_OK(f->end.ret);
    ASSERT_EQ(load_relaxed(&over), LEAVES); /* each was told, and has cleaned up */
    weft_await(f->yield, weft_yield);
    weft_return(f->yield.ret);
    weft_end;
}

static void outermost_cancelled(struct crew *crew)
{
    (void)crew;
    for (int stops_itself = 0; stops_itself < 2; stops_itself++) {
        int r = 1;
        begin();
        weft_task *t = weft_spawn(owner_of_owners, stops_itself);
        CREW_UNTIL(load_relaxed(&begun) == LEAVES);
        if (!stops_itself) weft_cancel(t);
        ASSERT_OK(weft_join(t, &r));
        ASSERT_EQ(r, stops_itself ? 0 : -ECANCELED);
        ASSERT_EQ(load_relaxed(&heard), -ECANCELED);
    }
}

TEST(scope_in_a_frame_passes_a_cancel_through_others)
{
    crew_each(outermost_cancelled);
}

static void owner_cancelled(struct crew *crew)
{
    int (*const owners[])(int *) = {owner_waits_at_the_end, owner_waits_in_the_body,
                                    owner_is_shielded};
    (void)crew;
    for (int kind = 0; kind < 4; kind++) {
        int done = 0;
        int r = 0;
        begin();
        weft_task *t = kind < 3 ? weft_go(owners[kind], &done) : weft_spawn(owner_stackless);
        CREW_UNTIL(load_relaxed(&begun) == (kind < 3 ? 1 : 2));
        weft_cancel(t);
        ASSERT_OK(weft_join(t, &r));
        ASSERT_EQ(r, -ECANCELED);
        ASSERT_EQ(load_relaxed(&heard), -ECANCELED);
    }
}

TEST(scope_passes_a_cancel_of_its_owner_on)
{
    crew_each(owner_cancelled);
}

static int late_at_the_end(void)
{
    int done = 0;
    int r = 0;
    WEFT_TIMEOUT(weft_us(500))
    {
        WEFT_SCOPE(s)
        {
            ASSERT_OK(weft_go_in(s, stays, &done));
        }
        r = weft_yield();
    }
    ASSERT_EQ(done, 1);
    ASSERT_EQ(r, -ETIME);
    ASSERT_EQ(load_relaxed(&heard), -ETIME);
    return 0;
}

static int late_in_the_body(void)
{
    int done = 0;
    WEFT_TIMEOUT(weft_us(500)) WEFT_SCOPE(s)
    {
        ASSERT_OK(weft_go_in(s, stays, &done));
        ASSERT_EQ(weft_sleep(weft_secs(3600)), -ETIME);
        ASSERT_EQ(weft_scope_reason(s), -ETIME);
    }
    ASSERT_EQ(done, 1);
    ASSERT_EQ(load_relaxed(&heard), -ETIME);
    return 0;
}

static void late(struct crew *crew)
{
    (void)crew;
    on_both(late_at_the_end);
    on_both(late_in_the_body);
}

TEST(scope_passes_a_deadline_further_out_on)
{
    crew_each(late);
}

/* ---- stop ---- */

static int body_hears(void)
{
    int done[2] = {0};
    WEFT_SCOPE(s)
    {
        ASSERT_EQ(weft_scope_reason(s), 0);
        ASSERT_OK(weft_go_in(s, stays, &done[0]));
        ASSERT_OK(weft_spawn_in(s, stays_stackless, &done[1]));
        until_begun(2);
        ASSERT_EQ(weft_scope_count(s), 2);
        ASSERT(weft_scope_cancel(s));
        ASSERT(!weft_scope_cancel(s));
        ASSERT(!weft_scope_fail(s, -EIO));
        ASSERT_EQ(weft_scope_reason(s), -ECANCELED);
        ASSERT_EQ(weft_yield(), -ECANCELED);
        ASSERT_EQ(weft_sleep(weft_secs(3600)), -ECANCELED);
    }
    ASSERT_EQ(done[0] + done[1], 2);
    ASSERT_EQ(weft_yield(), 0); /* it does not outlive the block */
    return 0;
}

static int stops(weft_scope *s)
{
    fetch_add_relaxed(&begun, 1);
    ASSERT(weft_scope_cancel(s));
    return 0;
}

static int child_stops_body(void)
{
    WEFT_SCOPE(s)
    {
        ASSERT_OK(weft_go_in(s, stops, s));
        ASSERT_EQ(weft_sleep(weft_secs(3600)), -ECANCELED);
    }
    return 0;
}

static int born_cancelled(void)
{
    int done[2] = {0};
    WEFT_SCOPE(s)
    {
        weft_scope_cancel(s);
        ASSERT_OK(weft_go_in(s, stays, &done[0]));
        ASSERT_OK(weft_spawn_in(s, stays_stackless, &done[1]));
    }
    ASSERT_EQ(done[0] + done[1], 2); /* they have started, all the same */
    ASSERT_EQ(load_relaxed(&heard), -ECANCELED);
    return 0;
}

/* The inner one hears of the outer; not the other way. */
static int nested(void)
{
    int done[3] = {0};
    WEFT_SCOPE(outer)
    {
        ASSERT_OK(weft_go_in(outer, stays, &done[0]));
        WEFT_SCOPE(inner)
        {
            ASSERT_OK(weft_go_in(inner, stays, &done[1]));
            until_begun(2);
            weft_scope_cancel(inner);
            ASSERT_EQ(weft_yield(), -ECANCELED);
        }
        ASSERT_EQ(weft_yield(), 0);
        ASSERT_EQ(done[0], 0);
        WEFT_SCOPE(inner)
        {
            ASSERT_OK(weft_go_in(inner, stays, &done[2]));
            until_begun(3);
            weft_scope_cancel(outer);
            ASSERT_EQ(weft_yield(), -ECANCELED);
            ASSERT_EQ(weft_scope_reason(inner), -ECANCELED);
        }
        ASSERT_EQ(done[2], 1);
    }
    ASSERT_EQ(done[0], 1);
    return 0;
}

static void stop_and_look(struct crew *crew)
{
    (void)crew;
    on_both(body_hears);
    on_both(child_stops_body);
    on_both(born_cancelled);
    on_both(nested);
}

TEST(scope_cancelled_by_whoever)
{
    crew_each(stop_and_look);
}
