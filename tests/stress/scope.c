/* SPDX-License-Identifier: MIT
 *
 * Scopes at random: children of both kinds that end, fail, sleep, do not listen, start siblings and stop the whole, while the owner, which is
 * a fiber, a stackless task or a plain thread, is cancelled, late, leaves early or waits. Every child that was started began once and ended before the scope
 * did; what it had borrowed is given back to the allocator at that moment, so that a late touch is a use after free (ASan), and every write is seen (TSan).
 */
#include "crew.h"
#include "pool.h"
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

#define CHILDREN_MAX 64

/* What a round borrows: gone when its scope has ended. */
struct home {
    weft_scope scope; /* of a stackless owner */
    int error;
    uint64_t random;           /* of the owner */
    _Atomic uint32_t next;     /* the number of the next child */
    _Atomic uint32_t accepted; /* spawns that answered 0 */
    _Atomic uint32_t started;
    _Atomic uint32_t ended;
    unsigned char begun[CHILDREN_MAX]; /* plain, both: each child's own until it has ended */
    int wrote[CHILDREN_MAX];
};

static _Atomic uint64_t children_over; /* of all rounds; relaxed, all: counts */
static _Atomic uint64_t scopes_over;
static _Atomic uint64_t scopes_stopped;

enum { ENDS, FAILS, SLEEPS, DEAF, PARENT, STOPS, FAILS_ALL, KINDS };

static bool start_one(struct home *h, weft_scope *s, uint64_t *random);

static void child_begins(struct home *h, uint32_t i)
{
    fetch_add_relaxed(&h->started, 1);
    h->begun[i]++;
}

static int child_ends(struct home *h, uint32_t i, int r)
{
    h->wrote[i] = 1;
    fetch_add_relaxed(&h->ended, 1);
    fetch_add_relaxed(&children_over, 1);
    return r;
}

/* ---- as a fiber ---- */

static int child(struct home *h, weft_scope *s, uint32_t i, int kind, uint64_t random)
{
    child_begins(h, i);
    for (uint32_t k = pool_random(&random, 4); k > 0; k--)
        (void)weft_yield();
    switch (kind) {
    case FAILS:
        return child_ends(h, i, -EIO);
    case SLEEPS: {
        int r = weft_sleep(weft_us(pool_random(&random, 2000)));
        WEFT_SHIELD(WEFT_FOREVER)(void) weft_yield(); /* clean-up that waits */
        return child_ends(h, i, r);
    }
    case DEAF:
        for (uint32_t k = pool_random(&random, 30); k > 0; k--)
            (void)weft_yield();
        break;
    case PARENT:
        while (pool_random(&random, 3) > 0 && start_one(h, s, &random))
            (void)weft_yield();
        break;
    case STOPS:
        weft_scope_cancel(s);
        break;
    case FAILS_ALL:
        weft_scope_fail(s, -EPROTO);
        break;
    default:
        break;
    }
    return child_ends(h, i, 0);
}

/* ---- stackless ---- */

struct child_stackless {
    WEFT_FRAME(int);
    struct home *h;
    weft_scope *s;
    uint32_t i;
    int kind;
    uint64_t random;
    uint32_t k;
    struct weft_yield yield;
    struct weft_sleep sleep;
};
static weft_async(child_stackless)
{
    weft_begin;
    child_begins(f->h, f->i);
    for (f->k = pool_random(&f->random, f->kind == DEAF ? 30 : 4); f->k > 0; f->k--)
        weft_await(f->yield, weft_yield);
    if (f->kind == FAILS) weft_return(child_ends(f->h, f->i, -EIO));
    if (f->kind == SLEEPS) {
        weft_await(f->sleep, weft_sleep, weft_us(pool_random(&f->random, 2000)));
        weft_return(child_ends(f->h, f->i, f->sleep.ret));
    }
    if (f->kind == PARENT) {
        while (pool_random(&f->random, 3) > 0 && start_one(f->h, f->s, &f->random))
            weft_await(f->yield, weft_yield);
    }
    if (f->kind == STOPS) weft_scope_cancel(f->s);
    if (f->kind == FAILS_ALL) weft_scope_fail(f->s, -EPROTO);
    weft_return(child_ends(f->h, f->i, 0));
    weft_end;
}

/* False: there are enough. A spawn that is refused took nothing. */
static bool start_one(struct home *h, weft_scope *s, uint64_t *random)
{
    uint32_t i = fetch_add_relaxed(&h->next, 1);
    int kind = (int)pool_random(random, KINDS);
    uint64_t seed = *random | 1;
    if (i >= CHILDREN_MAX) return false;
    if (kind >= STOPS && pool_random(random, 8) > 0) kind = SLEEPS; /* not too often */
    int r = pool_random(random, 2) ? weft_try_go_in(s, child, h, s, i, kind, seed)
                                   : weft_try_spawn_in(s, child_stackless, h, s, i, kind, seed);
    if (r == 0) fetch_add_relaxed(&h->accepted, 1);
    if (r < 0) ASSERT_EQ(r, -EAGAIN);
    return true;
}

/* ---- the owners ---- */

static struct home *home_new(uint64_t seed)
{
    struct home *h = calloc(1, sizeof(*h));
    ASSERT(h);
    h->random = seed | 1;
    return h;
}

/* The scope has ended: all that were started have been, once, and are over. */
static void home_over(struct home *h, int stopped)
{
    uint32_t begun = 0;
    uint32_t accepted = load_relaxed(&h->accepted);
    for (int i = 0; i < CHILDREN_MAX; i++) {
        ASSERT_LE(h->begun[i], 1);
        ASSERT_EQ(h->wrote[i], h->begun[i]);
        begun += h->begun[i];
    }
    ASSERT_EQ(begun, accepted);
    ASSERT_EQ(load_relaxed(&h->started), accepted);
    ASSERT_EQ(load_relaxed(&h->ended), accepted);
    if (stopped) fetch_add_relaxed(&scopes_stopped, 1);
    fetch_add_relaxed(&scopes_over, 1);
    memset(h, 0xdd, sizeof(*h));
    free(h);
}

static void body(struct home *h, weft_scope *s)
{
    for (uint32_t k = pool_random(&h->random, 12); k > 0; k--) {
        (void)start_one(h, s, &h->random);
        if (pool_random(&h->random, 3) == 0) (void)weft_yield();
    }
    if (pool_random(&h->random, 6) == 0) weft_scope_cancel(s);
    if (pool_random(&h->random, 3) == 0) (void)weft_sleep(weft_us(pool_random(&h->random, 200)));
}

static uint32_t random_limit(struct home *h)
{
    return pool_random(&h->random, 3) ? 0 : 1 + pool_random(&h->random, 4);
}

static void leaves_some_way(struct home *h, int *reason)
{
    bool one = pool_random(&h->random, 2);
    bool first = pool_random(&h->random, 4) == 0;
    weft_time time = pool_random(&h->random, 4) ? 0 : weft_us(1 + pool_random(&h->random, 300));
    WEFT_SCOPE(s, .error = one ? &h->error : NULL, .timeout = time, .limit = random_limit(h),
               .first_success = first)
    {
        body(h, s);
        *reason = weft_scope_reason(s);
        switch (pool_random(&h->random, 6)) {
        case 0:
            goto out;
        case 1:
            return;
        case 2:
            continue;
        default:
            break; /* the switch */
        }
        if (pool_random(&h->random, 3) == 0) break;
    }
out:
    (void)weft_yield();
}

static int owner_fiber(uint64_t seed)
{
    struct home *h = home_new(seed);
    int reason = 0;
    if (pool_random(&h->random, 4) == 0) {
        WEFT_TIMEOUT(weft_us(pool_random(&h->random, 200))) leaves_some_way(h, &reason);
    } else {
        leaves_some_way(h, &reason);
    }
    home_over(h, reason);
    return 0;
}

struct owner_stackless {
    WEFT_FRAME(int);
    uint64_t seed;
    struct home *h;
    uint32_t k;
    struct weft_yield yield;
    struct weft_sleep sleep;
    struct weft_scope_join end;
};
static weft_async(owner_stackless)
{
    weft_begin;
    f->h = home_new(f->seed);
    weft_scope_init(&f->h->scope, .error = f->seed & 8 ? &f->h->error : NULL,
                    .timeout = f->seed & 48 ? 0 : weft_us(100), .limit = random_limit(f->h),
                    .first_success = (f->seed & 192) == 0);
    for (f->k = pool_random(&f->h->random, 12); f->k > 0; f->k--) {
        (void)start_one(f->h, &f->h->scope, &f->h->random);
        if (pool_random(&f->h->random, 3) == 0) weft_await(f->yield, weft_yield);
    }
    if (pool_random(&f->h->random, 4) == 0) weft_await(f->sleep, weft_sleep, weft_us(50));
    if (pool_random(&f->h->random, 6) == 0) weft_scope_cancel(&f->h->scope);
    weft_await(f->end, weft_scope_join, &f->h->scope);
    if (f->end.ret != 0) weft_return(-EIO);
    home_over(f->h, weft_scope_reason(&f->h->scope));
    weft_return(0);
    weft_end;
}

struct owner_thread {
    weft_rt *rt;
    uint64_t seed;
    pthread_t thread;
};

static void *owner_thread(void *arg)
{
    struct owner_thread *o = arg;
    (void)weft_rt_enter(o->rt);
    for (int i = 0; i < 4; i++)
        ASSERT_OK(owner_fiber(o->seed + (uint64_t)i * 1000003));
    (void)weft_rt_enter(NULL);
    return NULL;
}

/* ---- rounds ---- */

#define OWNERS 8

static void one_round(struct crew *crew, uint64_t *random)
{
    struct owner_thread thread = {.rt = crew->rt, .seed = *random};
    weft_task *task[OWNERS];

    ASSERT_OK(pthread_create(&thread.thread, NULL, owner_thread, &thread));
    for (int i = 0; i < OWNERS; i++) {
        uint64_t seed =
            ((uint64_t)pool_random(random, UINT32_MAX) << 32) | pool_random(random, UINT32_MAX);
        task[i] =
            pool_random(random, 2) ? weft_go(owner_fiber, seed) : weft_spawn(owner_stackless, seed);
        ASSERT(task[i]);
    }
    for (int i = 0; i < OWNERS; i++) {
        for (uint32_t k = pool_random(random, 20); k > 0; k--)
            sched_yield();
        if (pool_random(random, 2)) weft_cancel(task[pool_random(random, OWNERS)]);
    }
    for (int i = 0; i < OWNERS; i++) {
        int r = 1;
        ASSERT_OK(weft_join(task[i], &r));
        ASSERT_EQ(r, 0);
    }
    ASSERT_OK(pthread_join(thread.thread, NULL));
}

static void rounds(struct crew *crew)
{
    uint64_t random = pool_seed((uint64_t)crew->workers + 2);
    for (uint64_t i = 0; i < test_scaled(60); i++)
        one_round(crew, &random);
}

TEST_WITH(scopes_at_random, .timeout_s = 300)
{
    crew_each(rounds);
    ASSERT_GE(load_relaxed(&scopes_over), 4 * test_scaled(60) * (OWNERS + 4));
    ASSERT_GE(load_relaxed(&scopes_stopped), 1);
    ASSERT_GE(load_relaxed(&children_over), load_relaxed(&scopes_over));
}

/* ---- one child is told at every moment ---- */

/* A scope of one child and a stop that comes after ever more turns of both: whatever the child was doing, it begins, is told or is over, and ends
 * before the scope does. */
static int told_once(_Atomic uint32_t *moments, int *lent)
{
    int r = 0;
    fetch_add_relaxed(moments, 1);
    while (r == 0 && fetch_add_relaxed(moments, 1) < 200)
        r = weft_yield();
    *lent += 1;
    return r == -ECANCELED ? r : 0;
}

static int stops_after(_Atomic uint32_t *moments, uint32_t when)
{
    for (uint32_t i = 0; i < 200; i++) {
        int *lent = calloc(1, sizeof(*lent));
        ASSERT(lent);
        store_relaxed(moments, 0);
        WEFT_SCOPE(s)
        {
            ASSERT_OK(weft_go_in(s, told_once, moments, lent));
            for (uint32_t k = 0; k < when + i % 3; k++)
                (void)weft_yield();
            if (i % 2) break;
            weft_scope_cancel(s);
        }
        ASSERT_EQ(*lent, 1);
        free(lent);
    }
    return 0;
}

static void every_moment(struct crew *crew)
{
    static _Atomic uint32_t moments[8];
    weft_task *task[8];
    (void)crew;
    for (uint32_t i = 0; i < 8; i++)
        task[i] = weft_go(stops_after, &moments[i], i);
    for (uint32_t i = 0; i < 8; i++)
        ASSERT_OK(weft_join(task[i], NULL));
}

TEST(scope_stopped_at_every_moment)
{
    crew_each(every_moment);
}
