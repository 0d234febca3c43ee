/* SPDX-License-Identifier: MIT
 *
 * give_up - waits that are cancelled at every moment of their lives, and the accounts that must be even afterwards.
 *
 * One shape of wait at a time: a few tasks of both kinds wait, a thread outside feeds what they wait for and cancels some of them, at random
 * and as fast as it can. At last it feeds until all have ended: one that was forgotten is waited for in vain, and the watchdog says so.
 * Then the shape's own account must be even.
 *
 *     union frames { ... };                             the frames of the file's waits
 *     #include "give_up.h"
 *     static const struct shape shapes[] = {...};
 *     crew_each(...) -> give_up_all(shapes, COUNT, crew);
 */
#ifndef WEFT_TESTS_GIVE_UP_H
#define WEFT_TESTS_GIVE_UP_H

#include "crew.h"
#include "pool.h"
#include "test.h"

#include <errno.h>

enum { LIVE = 6, STEPS = 100 };

/* What every shape counts; made anew for each. */
static struct accounts {
    _Atomic uint64_t
        ok; /* waits that got what they waited for; relaxed, these: counts, read at the end */
    _Atomic uint64_t inside; /* who may be there alone */
    uint64_t guarded;        /* by the lock of the shape */
    uint64_t fed;            /* the thread outside: its own */
    bool outside_has_it;
} accounts;

struct attempt {
    WEFT_FRAME(int);
    const struct shape *shape;
    uint64_t random;
    bool begun;
    int stage; /* of a shape with two waits */
    uint64_t value;
    uint64_t values[3];
    weft_cursor at, was;
    void *made;
    union frames f;
};

struct shape {
    const char *name;
    void (*make)(void);
    void (*begin)(struct attempt *a);
    weft_poll (*poll)(struct attempt *a, weft_cx *cx); /* sets ret */
    void (*got)(struct attempt *a);                    /* it was answered 0 or more */
    void (*feed)(uint64_t *random);                    /* a step by the thread outside */
    void (*last)(void); /* once, when all is to end; NULL: it is fed */
    void (*even)(void); /* the account; frees what was made */
};

static void count(_Atomic uint64_t *of, uint64_t by)
{
    fetch_add_relaxed(of, by);
}

static __attribute__((unused)) uint64_t read_count(_Atomic uint64_t *of)
{
    return load_relaxed(of);
}

static __attribute__((unused)) void alone_for_a_moment(void)
{
    ASSERT_EQ(fetch_add_relaxed(&accounts.inside, 1), 0);
    accounts.guarded++;
    ASSERT_EQ(fetch_sub_relaxed(&accounts.inside, 1), 1);
}

#define POLLED(member, fn)                                                                         \
    weft_poll answer = fn##_poll(&a->f.member, cx);                                                \
    if (answer == WEFT_READY) a->ret = (int)a->f.member.ret;                                       \
    return answer

static void nothing(struct attempt *a)
{
    (void)a;
}

static void
nothing_fed(uint64_t *random) /* NOLINT(readability-non-const-parameter): one of a table */
{
    (void)random;
}

static void world_init(void); /* all that the file has beside the accounts is as new */

static weft_poll attempt_poll(void *frame, weft_cx *cx)
{
    struct attempt *a = frame;
    if (!a->begun) {
        a->begun = true;
        a->shape->begin(a);
    }
    if (a->shape->poll(a, cx) == WEFT_PENDING) return WEFT_PENDING;
    if (a->ret >= 0) {
        count(&accounts.ok, 1);
        a->shape->got(a);
    } else {
        ASSERT_EQ(a->ret, -ECANCELED);
    }
    return WEFT_READY;
}

static int on_a_fiber(const struct shape *shape, uint64_t random)
{
    struct attempt a = {.shape = shape, .random = random};
    ASSERT_OK(weft__run(attempt_poll, &a));
    return a.ret;
}

/* ---- the thread outside ---- */

static weft_task *attempt_new(const struct shape *shape, uint64_t *random)
{
    uint64_t its = ((uint64_t)pool_random(random, UINT32_MAX) << 20) | 1;
    return pool_random(random, 2) ? weft_go(on_a_fiber, shape, its)
                                  : weft_spawn(attempt, .shape = shape, .random = its);
}

static void attempt_join(weft_task *task)
{
    int r = 1;
    ASSERT_OK(weft_join(task, &r));
    ASSERT(r >= 0 || r == -ECANCELED);
}

/* It lets time pass, of all lengths from none. */
static void dawdle(uint64_t *random)
{
    uint32_t turns = pool_random(random, 3) ? 0 : pool_random(random, 200);
    for (uint32_t i = 0; i < turns; i++)
        cpu_pause();
    if (pool_random(random, 8) == 0) sched_yield();
}

/* One that has not ended by itself is cancelled, now or then; what can end is fed. */
static void end_all(const struct shape *shape, weft_task **task, uint64_t *random)
{
    unsigned victim = pool_random(random, LIVE); /* perhaps whose turn it is just now */
    if (shape->last) shape->last();
    if (task[victim]) weft_cancel(task[victim]);
    for (unsigned i = 0; i < LIVE; i++) {
        if (!task[i]) continue;
        if (shape->feed == nothing_fed && !shape->last)
            weft_cancel(task[i]); /* nobody else comes */
        while (!weft_done(task[i])) {
            if (!shape->last) shape->feed(random);
            sched_yield();
        }
        attempt_join(task[i]);
    }
}

static void give_up_often(const struct shape *shape, uint64_t *random)
{
    weft_task *task[LIVE] = {NULL};

    accounts = (struct accounts){.fed = 0};
    world_init();
    shape->make();
    for (int n = 0; n < STEPS; n++) {
        unsigned i = pool_random(random, LIVE);
        uint32_t what = pool_random(random, 4);
        if (!task[i]) {
            task[i] = attempt_new(shape, random);
        } else if (what == 0 || (what == 1 && weft_done(task[i]))) {
            weft_cancel(task[i]);
            attempt_join(task[i]);
            task[i] = NULL;
        } else {
            shape->feed(random);
        }
        dawdle(random);
    }
    end_all(shape, task, random);
    shape->even();
}

static void give_up_rounds(const struct shape *shapes, size_t count_of, struct crew *crew,
                           uint64_t full)
{
    uint64_t random = pool_seed((uint64_t)crew->workers + 3);
    for (uint64_t rounds = test_scaled(full); rounds > 0; rounds--)
        for (size_t i = 0; i < count_of; i++)
            give_up_often(&shapes[i], &random);
}

static __attribute__((unused)) void give_up_all(const struct shape *shapes, size_t count_of,
                                                struct crew *crew)
{
    give_up_rounds(shapes, count_of, crew, 20);
}

#endif
