/* SPDX-License-Identifier: MIT
 *
 * Scopes on real runtimes: a block, or a stackless function, never ends before its children do; however it is left, whoever is
 * cancelled, and wherever the children were started from. On fibers, on plain threads, in frames.
 */
#include "crew.h"
#include "test.h"

#include <errno.h>
#include <string.h>
#include <weft/weft.h>

static _Atomic uint32_t begun; /* children; relaxed, all: counts */
static _Atomic uint32_t over;
static _Atomic int heard; /* what the last child was told */

static void begin(void)
{
    store_relaxed(&begun, 0);
    store_relaxed(&over, 0);
    store_relaxed(&heard, 0);
}

/* ---- children of both kinds ---- */

/* Ends after some turns, and writes to what it borrowed. */
static int works(int *borrowed)
{
    fetch_add_relaxed(&begun, 1);
    for (int i = 0; i < 3; i++)
        (void)weft_yield();
    *borrowed += 1;
    fetch_add_relaxed(&over, 1);
    return 0;
}

/* Waits until it is told to stop; then cleans up, for which it waits, too. */
static int stays(int *borrowed)
{
    fetch_add_relaxed(&begun, 1);
    int r = weft_sleep(weft_secs(3600));
    store_relaxed(&heard, r);
    WEFT_SHIELD(WEFT_FOREVER) for (int i = 0; i < 3; i++)(void) weft_yield();
    *borrowed += 1;
    fetch_add_relaxed(&over, 1);
    return r;
}

struct stays_stackless {
    WEFT_FRAME(int);
    int *borrowed;
    struct weft_sleep sleep;
    struct weft_sleep nap;
    struct weft_shield shield;
};
static weft_async(stays_stackless)
{
    weft_begin;
    fetch_add_relaxed(&begun, 1);
    weft_await(f->sleep, weft_sleep, weft_secs(3600));
    store_relaxed(&heard, f->sleep.ret);
    weft_await(f->shield, weft_shield, WEFT_FOREVER, weft_arm(f->nap, weft_sleep, weft_us(10)));
    *f->borrowed += 1;
    fetch_add_relaxed(&over, 1);
    weft_return(f->sleep.ret);
    weft_end;
}

static int stay(weft_scope *s, int *borrowed, bool stackless)
{
    return stackless ? weft_spawn_in(s, stays_stackless, borrowed) : weft_go_in(s, stays, borrowed);
}

/* All of them run: they have something to be told. */
static void until_begun(uint32_t count)
{
    while (load_relaxed(&begun) < count) {
        WEFT_SHIELD(WEFT_FOREVER)(void) weft_sleep(weft_us(10));
    }
}

/* A body on a fiber, and on the test's thread. */
static void on_both(int (*body)(void))
{
    int r = -1;
    begin();
    ASSERT_OK(weft_join(weft_go(body), &r));
    ASSERT_EQ(r, 0);
    begin();
    ASSERT_EQ(body(), 0);
}

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

static void ways_out(struct crew *crew)
{
    (void)crew;
    on_both(end_waits);
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

struct owner_stackless {
    WEFT_FRAME(int);
    int *done;
    weft_scope children;
    struct weft_scope_join end;
    struct weft_yield yield;
};
static weft_async(owner_stackless)
{
    weft_begin;
    if (weft_spawn_in(&f->children, stays_stackless, f->done) < 0) weft_return(-EIO);
    if (weft_go_in(&f->children, stays, f->done + 1) < 0) weft_return(-EIO);
    weft_await(f->end, weft_scope_join, &f->children);
    if (f->end.ret != 0 || f->done[0] != 1 || f->done[1] != 1) weft_return(-EIO);
    weft_await(f->yield, weft_yield);
    weft_return(f->yield.ret);
    weft_end;
}

static void owner_cancelled(struct crew *crew)
{
    int (*const owners[])(int *) = {owner_waits_at_the_end, owner_waits_in_the_body,
                                    owner_is_shielded};
    (void)crew;
    for (int kind = 0; kind < 4; kind++) {
        int done[2] = {0};
        int r = 0;
        begin();
        weft_task *t = kind < 3 ? weft_go(owners[kind], done) : weft_spawn(owner_stackless, done);
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

/* ---- from where children come ---- */

static int grows(weft_scope *s, int depth, int *leaves)
{
    if (depth == 0) {
        fetch_add_relaxed((_Atomic int *)leaves, 1);
        return 0;
    }
    for (int i = 0; i < 2; i++)
        ASSERT_OK(weft_go_in(s, grows, s, depth - 1, leaves));
    return 0;
}

static int children_of_children(void)
{
    int leaves = 0;
    WEFT_SCOPE(s) ASSERT_OK(weft_go_in(s, grows, s, 6, &leaves));
    ASSERT_EQ(leaves, 64);
    return 0;
}

struct helper {
    weft_rt *rt;
    weft_scope *scope;
    int done[16];
};

static void *helps(void *arg)
{
    struct helper *h = arg;
    weft_rt *outer = weft_rt_enter(h->rt);
    for (int i = 0; i < 16; i++)
        ASSERT_OK(weft_go_in(h->scope, works, &h->done[i]));
    (void)weft_rt_enter(outer);
    return NULL;
}

static void from_threads(struct crew *crew)
{
    struct helper helper[3] = {0};
    pthread_t thread[3];
    WEFT_SCOPE(s)
    {
        for (int i = 0; i < 3; i++) {
            helper[i].rt = crew->rt;
            helper[i].scope = s;
            ASSERT_OK(pthread_create(&thread[i], NULL, helps, &helper[i]));
        }
        for (int i = 0; i < 3; i++)
            ASSERT_OK(pthread_join(thread[i], NULL));
    }
    for (int i = 0; i < 48; i++)
        ASSERT_EQ(helper[i / 16].done[i % 16], 1);
    on_both(children_of_children);
}

TEST(scope_takes_children_from_anywhere)
{
    crew_each(from_threads);
}

/* ---- mistakes ---- */

static int joins_its_own(weft_scope *s)
{
    ASSERT_EQ(weft_scope_join(s), -EDEADLK);
    return 0;
}

struct joins_its_own_stackless {
    WEFT_FRAME(int);
    weft_scope *s;
    struct weft_scope_join end;
};
static weft_async(joins_its_own_stackless)
{
    weft_begin;
    weft_await(f->end, weft_scope_join, f->s);
    if (f->end.ret == -EDEADLK) fetch_add_relaxed(&over, 1);
    weft_return(0);
    weft_end;
}

static int child_joins(void)
{
    WEFT_SCOPE(s)
    {
        ASSERT_OK(weft_go_in(s, joins_its_own, s));
        ASSERT_OK(weft_spawn_in(s, joins_its_own_stackless, s));
    }
    ASSERT_EQ(load_relaxed(&over), 1);
    ASSERT_EQ(weft_scope_join(NULL), -EINVAL);
    ASSERT_EQ(weft_go_in(NULL, stops, NULL), -EINVAL);
    ASSERT(!weft_scope_cancel(NULL));
    ASSERT_EQ(weft_scope_reason(NULL), 0);
    ASSERT_EQ(weft_scope_count(NULL), 0);
    return 0;
}

static int waits_too(weft_scope *s)
{
    int r = weft_scope_join(s);
    if (r == -EBUSY) weft_scope_cancel(s); /* or both would wait for ever */
    return r;
}

struct waits_alone {
    WEFT_FRAME(int);
    weft_scope *s;
    struct weft_scope_join end;
};
static weft_async(waits_alone)
{
    weft_begin;
    weft_await(f->end, weft_scope_join, f->s);
    if (f->end.ret == -EBUSY) weft_scope_cancel(f->s);
    weft_return(f->end.ret == -EBUSY ? 1 : f->end.ret);
    weft_end;
}

static void two_wait(struct crew *crew)
{
    int done = 0;
    int r = 0;
    weft_scope s;
    (void)crew;
    begin();
    weft_scope_init(&s, .limit = 0);
    ASSERT_OK(weft_go_in(&s, stays, &done));
    weft_task *one = weft_spawn(waits_alone, &s);
    weft_task *other = weft_go(waits_too, &s);
    int r1 = 0;
    ASSERT_OK(weft_join(other, &r));
    ASSERT_OK(weft_join(one, &r1));
    ASSERT_EQ((r == -EBUSY) + (r1 == 1), 1); /* one of them was too late */
    ASSERT_EQ(done, 1);
}

static void mistakes(struct crew *crew)
{
    on_both(child_joins);
    two_wait(crew);
}

TEST(scope_refuses_mistakes)
{
    crew_each(mistakes);
}

TEST(scope_without_a_runtime)
{
    int done = 0;
    WEFT_SCOPE(s) ASSERT_EQ(weft_go_in(s, stays, &done), -ENXIO);
    ASSERT_EQ(done, 0);
}

/* ---- what else a child can be ---- */

struct large {
    WEFT_FRAME(int);
    int *done;
    char much[4000];
    struct weft_yield yield;
};
static weft_async(large)
{
    weft_begin;
    memset(f->much, 1, sizeof(f->much));
    weft_await(f->yield, weft_yield);
    *f->done += f->much[3999];
    weft_return(0);
    weft_end;
}

struct tiny {
    WEFT_FRAME(signed char);
    int *done;
};
static weft_async(tiny)
{
    weft_begin;
    *f->done += 1;
    weft_return(0);
    weft_end;
}

static void *gives_a_pointer(int *done)
{
    *done += 1;
    return done;
}

static int all_sizes(void)
{
    int done[6] = {0};
    WEFT_SCOPE(s) {
        ASSERT_OK(weft_spawn_in(s, large, .done = &done[0]));
        ASSERT_OK(weft_spawn_in(s, tiny, &done[1]));
        ASSERT_OK(weft_go_in(s, gives_a_pointer, &done[2]));
        ASSERT_OK(weft_go_in_as(s, (.name = "named", .stack_bytes = 64 * 1024), works, &done[3]));
        ASSERT_EQ(weft_go_in_as(s, (.pinned = true, .background = true), works, &done[3]), -EINVAL);
        ASSERT_OK(weft_spawn_in_as(s, (.pinned = true), tiny, &done[4]));
        ASSERT_OK(weft_spawn_in_as(s, (.background = true), large, .done = &done[5]));
    }
    for (int i = 0; i < 6; i++)
        ASSERT_EQ(done[i], 1);
    return 0;
}

/* A child is complete, for whoever refers to it, before the scope's end; and a pool can be ended. */
static weft_task *_Atomic kept;

static int keeps_itself(void)
{
    store_release(&kept, weft_ref(weft_self()));
    return (int)weft_sleep(weft_secs(3600)) + ECANCELED;
}

static int watches(void)
{
    weft_task *t;
    while (!(t = load_acquire(&kept)))
        (void)weft_yield();
    int r = weft_wait(t);
    ASSERT(weft_done(t));
    return r;
}

static int referred_to(void)
{
    int r = -1;
    store_relaxed(&kept, NULL);
    weft_task *watcher = weft_go(watches);
    WEFT_SCOPE(s)
    {
        ASSERT_OK(weft_go_in(s, keeps_itself));
        while (!load_acquire(&kept))
            (void)weft_sleep(weft_us(10));
        break;
    }
    ASSERT(weft_done(load_acquire(&kept)));
    ASSERT_OK(weft_join(watcher, &r));
    ASSERT_EQ(r, 0);
    weft_unref(load_acquire(&kept));
    return 0;
}

static void in_a_pool(struct crew *crew)
{
    static char memory[WEFT_POOL_GO_BYTES(8)];
    weft_pool pool;
    int done[64] = {0};
    int i = 0;
    weft_pool_opts opts = {.rt = crew->rt};
    ASSERT_OK(weft_pool_init(&pool, memory, sizeof(memory), &opts));
    WEFT_SCOPE(s)
    {
        for (; i < 64 && weft_pool_used(&pool) < weft_pool_capacity(&pool); i++)
            ASSERT_OK(weft_go_in_as(s, (.name = "pooled", .pool = &pool), works, &done[i]));
        ASSERT_GE(i, 8);
    }
    ASSERT_EQ(weft_pool_used(&pool), 0);
    ASSERT_OK(weft_pool_done(&pool));
}

static void kinds(struct crew *crew)
{
    on_both(all_sizes);
    on_both(referred_to);
    in_a_pool(crew);
}

TEST(scope_of_children_of_all_kinds)
{
    crew_each(kinds);
}

/* A scope in a frame can be used again; and as a value on a fiber's stack, by call. */
static int again(void)
{
    weft_scope s = {0};
    int done = 0;
    for (int i = 0; i < 3; i++) {
        ASSERT_OK(weft_go_in(&s, works, &done));
        ASSERT_EQ(weft_scope_join(&s), 0);
        ASSERT_EQ(weft_scope_count(&s), 0);
        ASSERT_EQ(done, i + 1);
    }
    ASSERT_EQ(weft_scope_join(&s), 0);
    return 0;
}

static void used_again(struct crew *crew)
{
    (void)crew;
    on_both(again);
}

TEST(scope_used_again)
{
    crew_each(used_again);
}

/* What waits in the blocking pool's queue is taken out with the scope that its task is in. */
static _Atomic bool let_go;
static _Atomic bool holds;

static int blocks_a_thread(void)
{
    store_relaxed(&holds, true);
    while (!load_relaxed(&let_go))
        sched_yield();
    return 0;
}

static int queued(void)
{
    int r = (int)weft_blocking(blocks_a_thread);
    if (r == -ECANCELED) fetch_add_relaxed(&over, 1);
    return r;
}

TEST(scope_cancels_queued_blocking_work)
{
    struct crew crew;
    weft_rt_opts opts = {.workers = 2, .blocking_threads = 1};
    crew_start_with(&crew, &opts);
    begin();
    store_relaxed(&let_go, false);
    weft_task *hog = weft_go(queued);
    int r = -1;
    CREW_UNTIL(load_relaxed(&holds));
    WEFT_SCOPE(s)
    {
        for (int i = 0; i < 10; i++)
            ASSERT_OK(weft_go_in(s, queued));
        break;
    }
    ASSERT_EQ(load_relaxed(&over), 10); /* none of them waits for the hog */
    store_relaxed(&let_go, true);
    ASSERT_OK(weft_join(hog, &r));
    ASSERT_EQ(r, 0);
    crew_stop(&crew);
}

/* A tree of scopes goes by its depth: few of its tasks have begun at any time. Of a worker's own, so one worker. */
static _Atomic int alive;
static _Atomic int alive_most;

static void comes(void)
{
    int now = fetch_add_relaxed(&alive, 1) + 1;
    if (now > load_relaxed(&alive_most)) store_relaxed(&alive_most, now);
}

static int branches(int depth)
{
    comes();
    if (depth > 0) {
        WEFT_SCOPE(s)
        {
            ASSERT_OK(weft_go_in(s, branches, depth - 1));
            ASSERT_OK(weft_go_in(s, branches, depth - 1));
        }
    }
    fetch_sub_relaxed(&alive, 1);
    return 0;
}

struct branches_stackless {
    WEFT_FRAME(int);
    int depth;
    weft_scope s;
    struct weft_scope_join end;
};
static weft_async(branches_stackless)
{
    weft_begin;
    comes();
    if (f->depth > 0) {
        ASSERT_OK(weft_spawn_in(&f->s, branches_stackless, f->depth - 1));
        ASSERT_OK(weft_spawn_in(&f->s, branches_stackless, f->depth - 1));
        weft_await(f->end, weft_scope_join, &f->s);
    }
    fetch_sub_relaxed(&alive, 1);
    weft_return(0);
    weft_end;
}

TEST(scope_trees_go_by_their_depth)
{
    struct crew crew;
    crew_start(&crew, 1);
    for (int stackless = 0; stackless < 2; stackless++) {
        store_relaxed(&alive_most, 0);
        weft_task *t = stackless ? weft_spawn(branches_stackless, 10) : weft_go(branches, 10);
        ASSERT_OK(weft_join(t, NULL));
        ASSERT_EQ(load_relaxed(&alive), 0);
        ASSERT_LE(load_relaxed(&alive_most), 200); /* of 2,047 */
    }
    crew_stop(&crew);
}
