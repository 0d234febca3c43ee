/* SPDX-License-Identifier: MIT
 *
 * Every wait and every combinator is given up at every moment of its life (trial.h): by a cancel of the
 * task, by a deadline, by a token, and by several of them at the same instant; of a lock and of a
 * channel also when it would just get what it waits for.
 *
 * Then everything is accounted for: the task has ended and says what is possible at that time; whoever
 * it had spawned has ended; jobs that began have ended, and what they owned was disposed of or kept,
 * once. On 1, 2 and 4 workers and a current-thread runtime, both kinds of task.
 */
#include "base/atomic.h"
#include "test.h"

#include <weft/weft.h>

#define LIFE INT64_C(12)

enum {
    SLEEP,
    UNTIL,
    TICK,
    TOKEN,
    WAIT,
    JOIN,
    JOB,
    OWNING,
    SELECT,
    RACE,
    ALL,
    TRY_ALL,
    THEN,
    NESTED,
    SCOPE,
    SCOPE_RUN,
    SCOPE_ROOM,
    SUPERVISED,
    SHIELD,
    LOCK, /* these three: what they wait for comes at the end of their life */
    RECEIVE,
    SEND,
    SHAPES
};

/* What must be zero in the end. relaxed, all: counts */
static _Atomic int32_t children;
static _Atomic int32_t jobs;
static _Atomic int32_t owned;

static int child(int64_t ns)
{
    int r = weft_sleep(ns);
    fetch_sub_relaxed(&children, 1);
    return r;
}

static weft_task *child_new(int64_t ns)
{
    fetch_add_relaxed(&children, 1);
    return weft_go(child, ns);
}

static int child_in(weft_scope *scope, void *ns)
{
    fetch_add_relaxed(&children, 1);
    return weft_go_in(scope, child, *(int64_t *)ns);
}

/* A job that waits as long, on the runtime's clock. */
static int64_t job(int64_t ns)
{
    fetch_add_relaxed(&jobs, 1);
    int r = weft_sleep(ns);
    fetch_sub_relaxed(&jobs, 1);
    return r;
}

static int64_t owning_job(_Atomic int32_t *count)
{
    (void)count;
    return job(LIFE);
}

static void dispose(void *count, int64_t ret)
{
    (void)ret;
    fetch_sub_relaxed((_Atomic int32_t *)count, 1);
}

/* ---- what is given up ---- */

typedef WEFT_CHAN(uint64_t) word_chan;
static weft_token never;
static weft_mutex mutex;
static word_chan *chan; /* of one place */

struct attempt {
    WEFT_FRAME(int);
    int shape;
    uint64_t word;
    struct weft_lock lock;
    struct weft_recv rx;
    struct weft_send tx;
    weft_interval every;
    weft_task *task;
    weft_future arms[3];
    struct weft_sleep sleep, other;
    struct weft_sleep_until until;
    struct weft_tick tick;
    struct weft_token_wait token;
    struct weft_wait wait;
    struct weft_join join;
    struct weft_blocking job;
    struct weft_select sel;
    struct weft_race race;
    struct weft_all all;
    struct weft_try_all try_all;
    struct weft_then then;
    struct weft_shield shield;
    int error;
    int64_t life;
    weft_scope scope;
    struct weft_scope_join end;
    struct weft_scope_run run;
    struct weft_scope_room room;
    struct weft_supervise sup;
};
static weft_async(attempt)
{
    weft_begin;
    switch (f->shape) {
    case SLEEP:
        weft_await(f->sleep, weft_sleep, LIFE);
        weft_return(f->sleep.ret);
    case UNTIL:
        weft_await(f->until, weft_sleep_until, weft_now() + LIFE);
        weft_return(f->until.ret);
    case TICK:
        f->every = weft_interval_at(weft_now() + LIFE, 1);
        weft_await(f->tick, weft_tick, &f->every);
        ASSERT_EQ(f->every.ticks, f->tick.ret == 0); /* given up, it was not taken */
        weft_return(f->tick.ret);
    case TOKEN:
        weft_await(f->token, weft_token_wait, &never);
        weft_return(f->token.ret);
    case WAIT:
        f->task = child_new(LIFE);
        weft_await(f->wait, weft_wait, f->task);
        f->ret = f->wait.ret;
        weft_cancel(f->task);
        weft_await(f->join, weft_join, f->task, (int *)NULL);
        weft_return(f->ret);
    case JOIN:
        weft_await(f->join, weft_join, child_new(LIFE), &f->ret);
        ASSERT_EQ(f->join.ret, 0);
        weft_return(f->ret);
    case JOB:
        weft_await(f->job, weft_blocking, weft_bind(job, LIFE));
        weft_return((int)f->job.ret);
    case OWNING:
        fetch_add_relaxed(&owned, 1);
        weft_await(f->job, weft_blocking, .call = weft_bind(owning_job, &owned),
                   .dispose = dispose);
        if (f->job.ret == 0) fetch_sub_relaxed(&owned, 1); /* else it is not ours any more */
        weft_return((int)f->job.ret);
    case SELECT:
        weft_await(f->sel, weft_select,
                   .arm = {weft_arm(f->token, weft_token_wait, &never),
                           weft_arm(f->sleep, weft_sleep, LIFE),
                           weft_arm(f->join, weft_join, child_new(LIFE + 3), (int *)NULL)});
        if (f->join.ret < 0) { /* it never began, and the handle is still ours */
            weft_cancel(f->join.task);
            weft_await(f->join, weft_join, f->join.task, (int *)NULL);
        }
        weft_return(f->sel.ret < 0 ? f->sel.ret : 0);
    case RACE:
        f->arms[0] = weft_arm(f->sleep, weft_sleep, LIFE);
        f->arms[1] = weft_arm(f->token, weft_token_wait, &never);
        f->arms[2] = weft_arm(f->job, weft_blocking, weft_bind(job, INT64_C(2)));
        weft_await(f->race, weft_race, f->arms, 3);
        weft_return(f->race.ret < 0 ? f->race.ret : 0);
    case ALL:
        weft_await(
            f->all, weft_all,
            .arm = {weft_arm(f->sleep, weft_sleep, LIFE), weft_arm(f->other, weft_sleep, 3)});
        weft_return(f->all.ret);
    case TRY_ALL:
        weft_await(f->try_all, weft_try_all,
                   .arm = {weft_arm(f->sleep, weft_sleep, LIFE),
                           weft_arm(f->job, weft_blocking, weft_bind(job, INT64_C(3)))});
        weft_return(f->try_all.ret);
    case THEN:
        weft_await(
            f->then, weft_then,
            .arm = {weft_arm(f->other, weft_sleep, 5), weft_arm(f->sleep, weft_sleep, LIFE - 5)});
        weft_return(f->then.ret);
    case NESTED:
        f->sel = (struct weft_select){.arm = {weft_arm(f->sleep, weft_sleep, LIFE),
                                              weft_arm(f->token, weft_token_wait, &never)}};
        f->arms[0] = WEFT__FUTURE(f->sel, weft_select, WEFT__PROBES(weft_select));
        f->arms[1] = weft_arm(f->other, weft_sleep, LIFE + 2);
        weft_await(f->race, weft_race, f->arms, 2);
        weft_return(f->race.ret < 0 ? f->race.ret : 0);
    case LOCK:
        weft_await(f->lock, weft_lock, &mutex);
        if (f->lock.ret == 0) ASSERT_OK(weft_unlock(&mutex));
        weft_return(f->lock.ret);
    case RECEIVE:
        weft_await(f->rx, weft_recv, weft_on(chan, &f->word));
        weft_return(f->rx.ret == 1 ? 0 : f->rx.ret);
    case SEND:
        weft_await(f->tx, weft_send, weft_on(chan, &f->word));
        weft_return(f->tx.ret);
    case SCOPE:
    case SCOPE_RUN:
    case SCOPE_ROOM:
        f->life = LIFE;
        weft_scope_init(&f->scope, .error = &f->error, .limit = f->shape == SCOPE_ROOM);
        ASSERT_OK(child_in(&f->scope, &f->life));
        if (f->shape == SCOPE_RUN) {
            weft_await(f->run, weft_scope_run, &f->scope, weft_arm(f->sleep, weft_sleep, 3));
            weft_return(f->error);
        }
        if (f->shape == SCOPE_ROOM) {
            weft_await(f->room, weft_scope_room, &f->scope);
            weft_scope_cancel(&f->scope);
        }
        weft_await(f->end, weft_scope_join, &f->scope);
        weft_return(f->shape == SCOPE_ROOM ? f->room.ret : f->error);
    case SUPERVISED:
        f->life = LIFE;
        weft_await(f->sup, weft_supervise, .start = child_in, .arg = &f->life);
        weft_return(f->sup.ret);
    default: /* half of it cannot be given up */
        weft_await(f->shield, weft_shield, WEFT_FOREVER, weft_arm(f->other, weft_sleep, 5));
        ASSERT_EQ(f->shield.ret, 0);
        weft_await(f->sleep, weft_sleep, LIFE - 5);
        weft_return(f->sleep.ret);
    }
    weft_end;
}

#include "trial.h"

/* ---- who gives it up ---- */

/* What is waited for is somebody else's, until the end of the wait's life. */
static void keeps_from_it(int shape)
{
    if (shape == LOCK) ASSERT_OK(weft_lock(&mutex));
    if (shape == SEND) ASSERT_OK(weft_try_send(chan, &(uint64_t){1}));
}
static void lets_have_it(int shape)
{
    uint64_t word;
    if (shape == LOCK) ASSERT_OK(weft_unlock(&mutex));
    if (shape == RECEIVE) ASSERT_OK(weft_try_send(chan, &(uint64_t){1}));
    if (shape == SEND) ASSERT_EQ(weft_try_recv(chan, &word), 1);
}

/* The lock is free again; the message is received, or lies there; or was sent, or not. */
static void is_accounted_for(int shape, int r)
{
    uint64_t word;
    ASSERT_OK(weft_try_lock(&mutex));
    ASSERT_OK(weft_unlock(&mutex));
    ASSERT_EQ(weft_chan_len(chan), (shape == RECEIVE && r < 0) || (shape == SEND && r == 0));
    if (weft_chan_len(chan) > 0) ASSERT_EQ(weft_try_recv(chan, &word), 1);
}

static int gives_up_what_is_kept_from_it(struct trial *t)
{
    keeps_from_it(t->shape);
    int r = trial_run(t, lets_have_it);
    is_accounted_for(t->shape, r);
    return r;
}

/* The others end by themselves. They are joined at once: who was spawned does not wait for its own end. */
static int gives_up_what_ends(struct trial *t)
{
    int r = 0;
    weft_task *task = trial_start(t);
    ASSERT_OK(weft_sleep(t->at));
    trial_stop(t, task);
    if (t->shape == TOKEN && t->ways == 0) {
        ASSERT_OK(weft_sleep(LIFE));
        (void)weft_token_cancel(&never);
    }
    ASSERT_OK(weft_join(task, &r));
    return r;
}

static int gives_up(struct trial *t)
{
    bool kept = t->shape == LOCK || t->shape == RECEIVE || t->shape == SEND;

    weft_token_init(&never, NULL);
    weft_mutex_init(&mutex);
    ASSERT_OK(weft_chan_new(1, &chan));
    int r = kept ? gives_up_what_is_kept_from_it(t) : gives_up_what_ends(t);
    weft_chan_free(chan);
    weft_mutex_done(&mutex);
    weft_token_done(&never);
    return r;
}

/* ---- accounting ---- */

static void nothing_is_left(void)
{
    CREW_UNTIL(load_relaxed(&owned) == 0); /* a job that was left behind ends in its time */
    ASSERT_EQ(load_relaxed(&children), 0);
    ASSERT_EQ(load_relaxed(&jobs), 0);
}

/* What is given up and ends all the same is a success: a job that has begun, a child that was told. */
static bool may_end_all_the_same(int shape)
{
    return shape == JOB || shape == RACE || shape == SELECT;
}

TEST_WITH(give_up_at_every_moment, .timeout_s = 300)
{
    static const struct trials all = {
        .gives_up = gives_up,
        .shape_count = SHAPES,
        .count = 800, /* of some 4000 that there are */
        .may_end_all_the_same = may_end_all_the_same,
        .nothing_is_left = nothing_is_left,
    };
    trials_on_each(&all);
}
