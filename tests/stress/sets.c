/* SPDX-License-Identifier: MIT
 *
 * Sets, keyed sets, trackers, delay queues and sources are given up at every moment.
 *
 * ON A CLOCK THAT STANDS  each wait lasts for LIFE; it is given up at each time from 0 to LIFE + 1, by a cancel, a deadline or both, so also exactly when it
 * would be over; and beside it a rival waits for the same thing. Then everything is accounted for: the thing was had by one of the two, or is still there;
 * every member has ended; no timer is armed.
 * ON A CLOCK THAT RUNS  tasks of both kinds and threads put in and take out, under time-outs of microseconds, while others cancel them: what went in comes
 * out once.
 * On 1, 2 and 4 workers and a current-thread runtime.
 */
#include "crew.h"
#include "pool.h"
#include "test.h"

#include "sched/sched.h"

#include <errno.h>
#include <string.h>
#include <weft/weft.h>

#define LIFE INT64_C(12)

typedef WEFT_CHAN(int) int_chan;
typedef WEFT_SET(int) int_set;
typedef WEFT_KEYED(int, int) int_keyed;
typedef WEFT_DELAY(int) int_delay;

enum {
    SET_NEXT,
    SET_HANDLE,
    SET_JOIN,
    SET_STOP,
    SET_DETACH,
    SET_RESERVE,
    KEYED_NEXT,
    TRACKER,
    DELAY,
    PULL_MERGE,
    PULL_CHUNKS,
    PULL_WITHIN,
    PULL_THROTTLE,
    PULL_FILTER,
    SHAPES
};
enum { BY_CANCEL = 1, BY_DEADLINE = 2, WAYS = 4 };

/* What one trial is about. */
struct stage {
    int_set set;
    int_keyed keyed;
    weft_tracker tracker;
    int_delay *delay;
    int_chan *chan[2];
    struct weft_from from[2];
    weft_source *of[2];
    struct weft_merge merge;
    struct weft_chunks chunks;
    struct weft_within within;
    struct weft_throttle throttle;
    struct weft_filter filter;
    int late[2];
    _Atomic int32_t members; /* that have not ended    relaxed, all: counts */
    _Atomic int32_t had;     /* things that were had */
};

static int member(struct stage *s, int64_t ns)
{
    int r = weft_sleep(ns);
    fetch_sub_relaxed(&s->members, 1);
    return r < 0 ? r : 5;
}

static int feeder(struct stage *s, int64_t ns)
{
    int item = 1;
    (void)weft_sleep(ns);
    ASSERT_OK(weft_send(s->chan[0], &item));
    fetch_sub_relaxed(&s->members, 1);
    return 0;
}

static void one_member(struct stage *s)
{
    fetch_add_relaxed(&s->members, 1);
}

static int keeps_all(void *ctx, void *item)
{
    (void)ctx;
    (void)item;
    return 1;
}

static void stage_set(struct stage *s, int shape)
{
    int key = 3;
    int item = 4;

    memset((void *)s, 0, sizeof(*s));
    s->set.limit = shape == SET_RESERVE;
    ASSERT_OK(weft_delay_new(&s->delay));
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(weft_chan_new(4, &s->chan[i]));
        s->from[i] = weft_from(s->chan[i]);
        s->of[i] = &s->from[i].source;
    }
    s->merge = weft_merge(s->of, 2, s->late);
    s->chunks = weft_chunks(s->of[0], 2, LIFE / 2);
    s->within = weft_within(s->of[0], 2 * LIFE);
    s->throttle = weft_throttle(s->of[0], 1);
    s->throttle.weft__next = weft_now() + LIFE;
    s->filter = weft_filter(s->of[0], keeps_all, NULL);
    switch (shape) {
    case SET_NEXT:
    case SET_HANDLE:
    case SET_JOIN:
    case SET_STOP:
    case SET_DETACH:
    case SET_RESERVE:
        one_member(s);
        ASSERT_OK(weft_set_go(&s->set, member, s, LIFE));
        break;
    case KEYED_NEXT:
        one_member(s);
        ASSERT_OK(weft_keyed_go(&s->keyed, &key, member, s, LIFE));
        break;
    case TRACKER:
        one_member(s);
        ASSERT_OK(weft_tracker_go(&s->tracker, member, s, LIFE));
        (void)weft_tracker_close(&s->tracker);
        break;
    case DELAY:
        ASSERT_OK(weft_delay_insert(s->delay, &item, LIFE, NULL));
        break;
    default:
        one_member(s);
        ASSERT_OK(weft_tracker_go(&s->tracker, feeder, s, shape == PULL_THROTTLE ? 0 : LIFE));
        break;
    }
}

/* ---- what is given up: 0, or why; what was had is counted ---- */

struct attempt {
    WEFT_FRAME(int);
    struct stage *s;
    int shape;
    int key;
    int got[2];
    weft_task *task;
    struct weft_set_join_next next;
    struct weft_set_next handle;
    struct weft_set_join join;
    struct weft_set_stop stop;
    struct weft_set_detach detach;
    struct weft_set_reserve place;
    struct weft_keyed_join_next keyed;
    struct weft_tracker_wait wait;
    struct weft_delay_next delay;
    struct weft_pull pull;
};

static int had_if(struct stage *s, int ret)
{
    if (ret > 0) fetch_add_relaxed(&s->had, ret);
    return ret > 0 ? 0 : ret;
}

static weft_source *source_of(struct stage *s, int shape)
{
    switch (shape) {
    case PULL_MERGE:
        return &s->merge.source;
    case PULL_CHUNKS:
        return &s->chunks.source;
    case PULL_WITHIN:
        return &s->within.source;
    case PULL_THROTTLE:
        return &s->throttle.source;
    default:
        return &s->filter.source;
    }
}

static weft_async(attempt)
{
    weft_begin;
    switch (f->shape) {
    case SET_NEXT:
        weft_await(f->next, weft_set_join_next, &f->s->set, &f->got[0]);
        weft_return(had_if(f->s, f->next.ret));
    case SET_HANDLE:
        weft_await(f->handle, weft_set_next, &f->s->set, &f->task);
        if (f->handle.ret > 0) {
            ASSERT(weft_done(f->task));
            ASSERT_OK(weft_detach(f->task));
        }
        weft_return(had_if(f->s, f->handle.ret));
    case SET_JOIN:
        weft_await(f->join, weft_set_join, &f->s->set);
        ASSERT_EQ(load_relaxed(&f->s->members), 0);
        weft_return(f->join.ret);
    case SET_STOP:
        weft_await(f->stop, weft_set_stop, &f->s->set);
        ASSERT_EQ(load_relaxed(&f->s->members), 0);
        weft_return(f->stop.ret);
    case SET_DETACH:
        weft_await(f->detach, weft_set_detach, &f->s->set);
        ASSERT_EQ(weft_set_len(&f->s->set), 0);
        weft_return(f->detach.ret);
    case SET_RESERVE:
        weft_await(f->place, weft_set_reserve, &f->s->set);
        if (f->place.ret == 0) fetch_add_relaxed(&f->s->had, 1);
        if (f->place.ret == 0) weft_set_permit_drop(&f->s->set);
        weft_return(f->place.ret);
    case KEYED_NEXT:
        weft_await(f->keyed, weft_keyed_join_next, &f->s->keyed, &f->key, &f->got[0]);
        if (f->keyed.ret > 0) ASSERT_EQ(f->key, 3);
        weft_return(had_if(f->s, f->keyed.ret));
    case TRACKER:
        weft_await(f->wait, weft_tracker_wait, &f->s->tracker);
        weft_return(f->wait.ret);
    case DELAY:
        weft_await(f->delay, weft_delay_next, weft_on(f->s->delay, &f->got[0]));
        weft_return(had_if(f->s, f->delay.ret));
    default:
        weft_await(f->pull, weft_pull, source_of(f->s, f->shape), &f->got[0]);
        weft_return(had_if(f->s, f->pull.ret));
    }
    weft_end;
}

struct trial {
    struct stage stage;
    int shape;
    unsigned ways;
    int64_t at;
    bool fiber;
    bool rival;
};

static int tries_on_a_fiber(struct trial *t)
{
    int r = 0;
    WEFT_DEADLINE(t->ways & BY_DEADLINE ? weft_now() + t->at : WEFT_FOREVER)
    {
        r = weft_run(attempt, .s = &t->stage, .shape = t->shape);
    }
    return r;
}

struct tries {
    WEFT_FRAME(int);
    struct trial *t;
    struct attempt attempt;
    struct weft_deadline deadline;
};
static weft_async(tries)
{
    weft_begin;
    weft_await(f->deadline, weft_deadline,
               f->t->ways & BY_DEADLINE ? weft_now() + f->t->at : WEFT_FOREVER,
               weft_arm(f->attempt, attempt, .s = &f->t->stage, .shape = f->t->shape));
    weft_return(f->attempt.ret);
    weft_end;
}

/* What two may wait for at once; a source is one task's. */
static bool may_have_a_rival(int shape)
{
    return shape == SET_NEXT || shape == SET_HANDLE || shape == SET_RESERVE ||
           shape == KEYED_NEXT || shape == TRACKER || shape == DELAY;
}

static bool is_had_once(int shape)
{
    return shape != SET_JOIN && shape != SET_STOP && shape != SET_DETACH && shape != TRACKER;
}

/* It is never cancelled: it got the thing, or heard of the end. */
static void end_rival(weft_task *rival)
{
    int r = 1;
    ASSERT_OK(weft_join(rival, &r));
    ASSERT_GE(r, 0);
}

static int remains(struct trial *t)
{
    struct stage *s = &t->stage;
    int left = (int)weft_set_len(&s->set) + (int)weft_keyed_len(&s->keyed) +
               (int)weft_delay_len(s->delay) + (int)weft_chan_len(s->chan[0]) +
               __builtin_popcountll(s->merge.weft__late);
    ASSERT_OK(weft_set_stop(&s->set));
    ASSERT_OK(weft_keyed_stop(&s->keyed));
    (void)weft_tracker_close(&s->tracker);
    ASSERT_OK(weft_tracker_wait(&s->tracker));
    weft_set_done(&s->set);
    weft_keyed_done(&s->keyed);
    weft_tracker_done(&s->tracker);
    weft_delay_free(s->delay);
    weft_chan_free(s->chan[0]);
    weft_chan_free(s->chan[1]);
    return left;
}

/* On one task, so that the clock moves by what it sleeps. */
static int gives_up(struct trial *t)
{
    struct stage *s = &t->stage;
    weft_task *rival = NULL;
    int r = 0;

    stage_set(s, t->shape);
    if (t->rival) rival = weft_spawn(attempt, .s = s, .shape = t->shape);
    weft_task *task = t->fiber ? weft_go(tries_on_a_fiber, t) : weft_spawn(tries, t);
    ASSERT_OK(weft_sleep(t->at));
    if (t->ways & BY_CANCEL) weft_cancel(task);
    ASSERT_OK(weft_sleep(2 * LIFE)); /* all that was to happen has */
    if (t->shape == DELAY)
        ASSERT_OK(weft_delay_close(s->delay)); /* who came second hears of the end */
    ASSERT_OK(weft_join(task, &r));
    if (rival) end_rival(rival);
    int had = load_relaxed(&s->had);
    int left = remains(t);
    if (t->shape == SET_RESERVE) {
        ASSERT_EQ(had, (r == 0) + t->rival);
    } else if (is_had_once(t->shape)) {
        ASSERT_EQ(had + left, 1);
        if (t->rival) ASSERT_EQ(had, 1); /* whoever gives up leaves it to the other */
    }
    ASSERT_EQ(load_relaxed(&s->members), 0);
    return r;
}

static void expect(const struct trial *t, int r)
{
    if (r == 0) return;
    ASSERT(t->ways != 0);
    if (r == -ECANCELED) ASSERT(t->ways & BY_CANCEL);
    if (r != -ECANCELED) ASSERT_EQ(r, -ETIME);
    if (r == -ETIME) ASSERT(t->ways & BY_DEADLINE);
}

static void at_every_moment(int workers)
{
    struct crew crew;
    uint64_t random = pool_seed((uint64_t)workers + 2);
    weft_rt_opts opts = {.workers = workers, .seed = test_seed() | 1, .paused = true};

    crew_start_with(&crew, &opts);
    for (uint64_t n = test_scaled(800); n > 0; n--) {
        static struct trial t;
        int r = 1;
        t.shape = (int)pool_random(&random, SHAPES);
        t.ways = pool_random(&random, WAYS);
        t.at = pool_random(&random, (uint32_t)LIFE + 2);
        t.fiber = pool_random(&random, 2);
        t.rival = may_have_a_rival(t.shape) && pool_random(&random, 2);
        ASSERT_OK(weft_join(weft_go(gives_up, &t), &r));
        expect(&t, r);
        for (uint32_t i = 0; i <= crew.rt->worker_count; i++)
            ASSERT(weft__wheel_idle(&crew.rt->wheels[i]));
    }
    crew_stop(&crew);
}

TEST_WITH(sets_given_up_at_every_moment, .timeout_s = 300)
{
    for (size_t i = 0; i < CREW_SIZES; i++)
        at_every_moment(crew_sizes[i]);
}

/* ---- on a clock that runs ------------------------------------------------------------------------------------ */

struct mill {
    int_set set;
    int_delay *delay;
    _Atomic uint64_t in;
    _Atomic uint64_t out;
    _Atomic uint64_t in_delay;
    _Atomic uint64_t out_delay;
    uint64_t rounds;
};
static struct mill *mill;

static int grain(int us)
{
    if (us > 0) (void)weft_sleep(weft_us(us));
    return 1;
}

static int fills(int number)
{
    uint64_t random = pool_seed((uint64_t)number + 20);
    for (uint64_t n = 0; n < mill->rounds; n++) {
        int item = (int)n;
        int r = 0;
        WEFT_TIMEOUT(weft_us(pool_random(&random, 200)))
        r = weft_set_go(&mill->set, grain, (int)pool_random(&random, 30));
        if (r == 0) fetch_add_relaxed(&mill->in, 1);
        if (r < 0) ASSERT_EQ(r, -ETIME);
        ASSERT_OK(weft_delay_insert(mill->delay, &item, weft_us(pool_random(&random, 50)), NULL));
        fetch_add_relaxed(&mill->in_delay, 1);
    }
    return 0;
}

/* Takes from both, whichever is first, and gives up soon. */
static int grinds(int number)
{
    uint64_t random = pool_seed((uint64_t)number + 40);
    bool delay_over = false;
    bool set_over = false;
    while (!delay_over || !set_over) {
        struct weft_set_join_next next;
        struct weft_delay_next item;
        struct weft_sleep idle;
        int a = 0;
        int b = 0;
        int which = weft_select(
            weft_when(!set_over, weft_arm(next, weft_set_join_next, &mill->set, &a)),
            weft_when(!delay_over, weft_arm(item, weft_delay_next, weft_on(mill->delay, &b))),
            weft_arm(idle, weft_sleep, weft_us(pool_random(&random, 60))));
        ASSERT(which >= 0);
        if (!set_over && next.ret > 0) fetch_add_relaxed(&mill->out, 1);
        if (!delay_over && item.ret > 0) fetch_add_relaxed(&mill->out_delay, 1);
        if (which == 1 && item.ret == 0) delay_over = true;
        if (delay_over && which == 0 && next.ret == 0) set_over = true;
    }
    return 0;
}

static void mills(struct crew *crew)
{
    struct mill m = {.rounds = test_scaled(200)};
    weft_task *filler[3];
    weft_task *grinder[3];
    int r;
    (void)crew;

    mill = &m;
    m.set.limit = 4;
    ASSERT_OK(weft_delay_new(&m.delay));
    for (int i = 0; i < 3; i++) {
        filler[i] = weft_go(fills, i);
        grinder[i] = weft_go(grinds, i);
    }
    for (int i = 0; i < 3; i++)
        ASSERT_OK(weft_join(filler[i], &r));
    ASSERT_OK(weft_delay_close(m.delay));
    for (int i = 0; i < 3; i++)
        ASSERT_OK(weft_join(grinder[i], &r));
    ASSERT_EQ(load_relaxed(&m.in), load_relaxed(&m.out));
    ASSERT_EQ(load_relaxed(&m.in_delay), load_relaxed(&m.out_delay));
    weft_set_done(&m.set);
    weft_delay_free(m.delay);
}

TEST_WITH(sets_lose_nobody_under_time_outs, .timeout_s = 300)
{
    crew_each(mills);
}
