/* SPDX-License-Identifier: MIT
 *
 * A scope's children: from wherever they are started, of every kind, in trees; on their own, unless asked otherwise; and the mistakes that are refused.
 */
#include "brood.h"

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

/* ---- on their own ---- */

static weft_event failed;

static int goes_on(int *done)
{
    fetch_add_relaxed(&begun, 1);
    int r = weft_event_wait(&failed);
    if (r == 0) *done += 1;
    return r;
}

struct goes_on_stackless {
    WEFT_FRAME(int);
    int *done;
    struct weft_event_wait wait;
};
static weft_async(goes_on_stackless)
{
    weft_begin;
    fetch_add_relaxed(&begun, 1);
    weft_await(f->wait, weft_event_wait, &failed);
    if (f->wait.ret == 0) *f->done += 1;
    weft_return(f->wait.ret);
    weft_end;
}

static int fails(void)
{
    return -EIO;
}

struct fails_stackless {
    WEFT_FRAME(int);
};
static weft_async(fails_stackless)
{
    weft_begin;
    weft_return(-EIO);
    weft_end;
}

/* One fails, and has ended: those beside it are told nothing, nor is the block, nor one that comes later. */
static int failure_stops_nobody(void)
{
    for (int stackless = 0; stackless < 2; stackless++) {
        int done[4] = {0};
        begin();
        weft_event_init(&failed);
        WEFT_SCOPE(s)
        {
            ASSERT_OK(weft_go_in(s, goes_on, &done[0]));
            ASSERT_OK(weft_spawn_in(s, goes_on_stackless, &done[1]));
            until_begun(2);
            ASSERT_OK(stackless ? weft_spawn_in(s, fails_stackless) : weft_go_in(s, fails));
            while (weft_scope_count(s) > 2)
                ASSERT_OK(weft_yield());
            ASSERT_EQ(weft_scope_reason(s), 0);
            ASSERT_OK(weft_go_in(s, goes_on, &done[2]));
            ASSERT_OK(weft_spawn_in(s, goes_on_stackless, &done[3]));
            until_begun(4);
            ASSERT_OK(weft_sleep(weft_us(10)));
            ASSERT_EQ(weft_scope_count(s), 4);
            weft_event_set(&failed);
        }
        for (int i = 0; i < 4; i++)
            ASSERT_EQ(done[i], 1);
        weft_event_done(&failed);
    }
    return 0;
}

static void on_their_own(struct crew *crew)
{
    (void)crew;
    on_both(failure_stops_nobody);
}

TEST(scope_children_are_on_their_own)
{
    crew_each(on_their_own);
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
    ASSERT_EQ(weft_go_in(NULL, works, NULL), -EINVAL);
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

/* ---- one whose turn came to nothing ---- */

static int waits_for(weft_notify *bell)
{
    return weft_notify_wait(bell);
}

static int joins_behind(weft_notify *bell, weft_scope *s)
{
    int r = weft_notify_wait(bell);
    return r < 0 ? r : weft_scope_join(s);
}

static void turn(weft_rt *rt)
{
    while (weft_rt_turn(rt, 0) > 0) {
    }
}

/* The scope has ended, which the joiner is told; before it looks, another child is there, and another joiner. Its turn is spent, and it is refused. Joiners run when this
 * thread turns them, children when they like. */
static void joins_too_late(struct crew *crew)
{
    weft_scope s;
    weft_notify bells[3] = {WEFT_NOTIFY_INIT, WEFT_NOTIFY_INIT, WEFT_NOTIFY_INIT};
    weft_rt *turned;
    int r = 1;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &turned));
    weft_scope_init(&s, .limit = 0);
    ASSERT_OK(weft_go_in(&s, waits_for, &bells[0]));
    (void)weft_rt_enter(turned);
    weft_task *first = weft_spawn(waits_alone, &s);
    weft_task *other = weft_go(joins_behind, &bells[2], &s);
    (void)weft_rt_enter(crew->rt);
    turn(turned);
    weft_notify_one(&bells[2]); /* the other one is polled first */
    weft_notify_one(&bells[0]);
    CREW_UNTIL(weft_scope_count(&s) == 0);
    ASSERT_OK(weft_go_in(&s, waits_for, &bells[1]));
    CREW_UNTIL((turn(turned), weft_done(first)));
    CREW_UNTIL((turn(turned), weft_done(other))); /* whoever was refused has cancelled the scope */
    ASSERT_OK(weft_join(first, &r));
    ASSERT_EQ(r, 1);
    ASSERT_OK(weft_join(other, &r));
    ASSERT_EQ(r, 0);
    ASSERT_OK(weft_rt_stop(turned, -1));
}

TEST(scope_joiner_whose_turn_came_to_nothing)
{
    crew_each(joins_too_late);
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
enum { JOBS = 10 };

static weft_rt *with_one_thread; /* in its blocking pool */
static _Atomic bool let_go;      /* relaxed, all: flags and a count */
static _Atomic bool holds;
static _Atomic uint32_t ran;

static int blocks_a_thread(void)
{
    store_relaxed(&holds, true);
    while (!load_relaxed(&let_go))
        sched_yield();
    return 0;
}

static int hogs(void)
{
    return weft_blocking(blocks_a_thread);
}

static int runs(void)
{
    fetch_add_relaxed(&ran, 1);
    return 0;
}

static int queued(void)
{
    int r = weft_blocking(runs);
    if (r == -ECANCELED) fetch_add_relaxed(&over, 1);
    return r;
}

struct queued_stackless {
    WEFT_FRAME(int);
    struct weft_blocking job;
};
static weft_async(queued_stackless)
{
    weft_begin;
    weft_await(f->job, weft_blocking, weft_bind(runs));
    if (f->job.ret == -ECANCELED) fetch_add_relaxed(&over, 1);
    weft_return((int)f->job.ret);
    weft_end;
}

static uint64_t jobs_queued(void)
{
    weft_stats stats;
    weft_rt_stats(with_one_thread, &stats);
    return stats.blocking_queued;
}

/* All of them are in the queue, behind one that stays, when their scope is left. */
static int leaves_the_queued(void)
{
    for (int stackless = 0; stackless < 2; stackless++) {
        begin();
        WEFT_SCOPE(s)
        {
            for (int i = 0; i < JOBS; i++)
                ASSERT_OK(stackless ? weft_spawn_in(s, queued_stackless) : weft_go_in(s, queued));
            while (jobs_queued() < JOBS)
                ASSERT_OK(weft_sleep(weft_us(10)));
            ASSERT_EQ(load_relaxed(&over), 0);
            break;
        }
        ASSERT_EQ(load_relaxed(&over), JOBS); /* none of them waits for the hog */
        ASSERT_EQ(jobs_queued(), 0);
    }
    return 0;
}

TEST(scope_cancels_queued_blocking_work)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        int r = -1;
        weft_rt_opts opts = {
            .workers = crew_sizes[i], .seed = test_seed() | 1, .blocking_threads = 1};
        crew_start_with(&crew, &opts);
        with_one_thread = crew.rt;
        store_relaxed(&let_go, false);
        store_relaxed(&holds, false);
        weft_task *hog = weft_go(hogs);
        CREW_UNTIL(load_relaxed(&holds));
        on_both(leaves_the_queued);
        store_relaxed(&let_go, true);
        ASSERT_OK(weft_join(hog, &r));
        ASSERT_EQ(r, 0);
        crew_stop(&crew);
        ASSERT_EQ(load_relaxed(&ran), 0); /* nor behind it */
    }
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
