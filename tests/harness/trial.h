/* SPDX-License-Identifier: MIT
 *
 * trial - waits that are given up at every moment of their lives, on a clock that stands: by a cancel
 * of the task, by a deadline, by a token, and by several of them at the same instant.
 *
 * A wait lasts for LIFE at most; it is given up at each time from 0 to LIFE + 1, so also exactly when it
 * would be over. What it answers must be possible at that time; no timer stays armed, nothing holds the
 * clock, and the token aborts if somebody is left on it. What else must be even is the file's to say.
 * One trial at a time: what its wait waits for may be static. Seeded; drawn anew each time.
 *
 *     #define LIFE INT64_C(12)
 *     struct attempt { WEFT_FRAME(int); int shape; ... };     the waits, by their number
 *     static weft_async(attempt) { ... }
 *     #include "trial.h"
 *     static int gives_up(struct trial *t) { ... int r = trial_run(t, what_comes); ... return r; }
 *     static const struct trials all = {.gives_up = gives_up, .shape_count = SHAPES, .count = 800};
 *     TEST(...) { trials_on_each(&all); }
 */
#ifndef WEFT_TESTS_TRIAL_H
#define WEFT_TESTS_TRIAL_H

#include "crew.h"
#include "pool.h"
#include "sched/sched.h"
#include "test.h"

#include <errno.h>
#include <weft/weft.h>

enum { BY_CANCEL = 1, BY_DEADLINE = 2, BY_TOKEN = 4, WAYS = 8 };

struct trial {
    int shape;
    unsigned ways;
    int64_t at; /* when it is given up, since its beginning */
    bool fiber;
    weft_token stop;
};

struct trials {
    int (*gives_up)(
        struct trial *t); /* on a fiber, which has the clock; answers what the wait did */
    int shape_count;
    uint64_t count;                          /* on each crew, in a plain build */
    bool (*may_end_all_the_same)(int shape); /* given up, it may succeed; NULL: none does */
    void (*nothing_is_left)(void);           /* behind a trial; NULL: the runtime says it all */
};

/* ---- one wait ---- */

static int64_t trial_deadline(const struct trial *t)
{
    return t->ways & BY_DEADLINE ? weft_now() + t->at : WEFT_FOREVER;
}

static int tries_on_a_fiber(struct trial *t)
{
    int r = 0;
    WEFT_DEADLINE(trial_deadline(t))
    {
        WEFT_UNTIL(&t->stop) r = weft_run(attempt, .shape = t->shape);
    }
    return r;
}

struct tries {
    WEFT_FRAME(int);
    struct trial *t;
    struct attempt attempt;
    struct weft_until until;
    struct weft_deadline deadline;
};
static weft_async(tries)
{
    weft_begin;
    f->attempt = (struct attempt){.shape = f->t->shape};
    f->until = (struct weft_until){.token = &f->t->stop,
                                   .of = WEFT__FUTURE(f->attempt, attempt, WEFT__PROBES(attempt))};
    weft_await(f->deadline, weft_deadline, trial_deadline(f->t),
               WEFT__FUTURE(f->until, weft_until, WEFT__PROBES(weft_until)));
    weft_return(f->attempt.ret);
    weft_end;
}

static weft_task *trial_start(struct trial *t)
{
    return t->fiber ? weft_go(tries_on_a_fiber, t) : weft_spawn(tries, t);
}

static void trial_stop(struct trial *t, weft_task *task)
{
    if (t->ways & BY_CANCEL) weft_cancel(task);
    if (t->ways & BY_TOKEN) (void)weft_token_cancel(&t->stop);
}

/* What is waited for comes at the end of the wait's life. Both times may be the same: then either
 * comes first. All on this task, so that the clock moves by what it sleeps. */
static int trial_run(struct trial *t, void (*comes)(int shape))
{
    int r = 0;
    bool first = t->at < LIFE || (t->at == LIFE && t->fiber);
    weft_task *task = trial_start(t);

    ASSERT_OK(weft_sleep(first ? t->at : LIFE));
    if (first) trial_stop(t, task);
    if (t->at < LIFE) ASSERT_OK(weft_sleep(LIFE - t->at));
    comes(t->shape);
    if (t->at > LIFE) ASSERT_OK(weft_sleep(t->at - LIFE));
    if (!first) trial_stop(t, task);
    ASSERT_OK(weft_join(task, &r));
    return r;
}

/* ---- many ---- */

/* Before the end of its life it was given up, behind it not; at the same time both may be. */
static void trial_expect(const struct trials *trials, const struct trial *t, int r)
{
    if (r == 0) {
        bool all_the_same = trials->may_end_all_the_same && trials->may_end_all_the_same(t->shape);
        ASSERT(t->ways == 0 || t->at >= LIFE || all_the_same);
    } else if (r == -ECANCELED) {
        ASSERT(t->ways & (BY_CANCEL | BY_TOKEN));
    } else {
        ASSERT_EQ(r, -ETIME);
        ASSERT(t->ways & BY_DEADLINE);
    }
}

static void trial_is_over(const struct trials *trials, struct weft_rt *rt)
{
    if (trials->nothing_is_left) trials->nothing_is_left();
    CREW_UNTIL(load_relaxed(&rt->clock.holds) == 0); /* relaxed: a count */
    for (uint32_t i = 0; i <= rt->worker_count; i++)
        ASSERT(weft__wheel_idle(&rt->wheels[i]));
}

static void trial_one(const struct trials *trials, struct weft_rt *rt, struct trial *t)
{
    int r = 1;
    ASSERT_OK(weft_join(weft_go(trials->gives_up, t), &r));
    trial_expect(trials, t, r);
    weft_token_done(&t->stop);
    trial_is_over(trials, rt);
}

static void trials_on(const struct trials *trials, int workers)
{
    struct crew crew;
    uint64_t random = pool_seed((uint64_t)workers + 2);
    weft_rt_opts opts = {.workers = workers, .seed = test_seed() | 1, .paused = true};

    crew_start_with(&crew, &opts);
    for (uint64_t n = test_scaled(trials->count); n > 0; n--) {
        struct trial t = {
            .shape = (int)pool_random(&random, (uint32_t)trials->shape_count),
            .ways = pool_random(&random, WAYS),
            .at = pool_random(&random, (uint32_t)LIFE + 2),
            .fiber = pool_random(&random, 2),
        };
        trial_one(trials, crew.rt, &t);
    }
    crew_stop(&crew);
}

static void trials_on_each(const struct trials *trials)
{
    for (size_t i = 0; i < CREW_SIZES; i++)
        trials_on(trials, crew_sizes[i]);
}

#endif
