/* SPDX-License-Identifier: MIT
 *
 * keep - looking at wheels; the idea is in keep.h.
 */
#include "sched/keep.h"

#include "base/alloc.h"
#include "sched/sched.h"

#include <weft/time.h>

#include <errno.h>

/* ---- a runtime's wheels ---- */

int weft__wheels_new(struct weft_rt *rt)
{
    size_t count = rt->worker_count + 1; /* the last is for threads outside */

    rt->wheels = weft__alloc_aligned(count * sizeof(struct weft__wheel), WEFT__CACHE_LINE);
    if (!rt->wheels) return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        weft__wheel_init(&rt->wheels[i], weft__clock_read(&rt->clock));
    for (uint32_t i = 0; i < rt->worker_count; i++)
        weft__wheel_favour(&rt->wheels[i]);
    return 0;
}

void weft__wheels_free(struct weft_rt *rt)
{
    for (uint32_t i = 0; i <= rt->worker_count; i++)
        weft__wheel_done(&rt->wheels[i]);
    weft__free(rt->wheels);
}

uint32_t weft__wheel_look(struct weft_rt *rt, struct weft__wheel *wheel)
{
    struct weft__reading reading;

    if (weft__wheel_idle(wheel)) return 0;
    bool some = weft__wheel_gather(wheel, &reading, WEFT__BY_ANY);
    int64_t now = weft__clock_read(&rt->clock);
    if (!some && !weft__wheel_due(wheel, now)) return 0;
    return weft__wheel_expire(wheel, &reading, now, WEFT__WHEEL_BATCH, &weft__sched, WEFT__BY_ANY);
}

/* ---- workers ---- */

/* A look that is there to give sleeps their deadlines turns the wheel only for what has been due so long: a worker whose tasks all sleep looks behind each poll, and
 * a turn for one timer costs as much as for ten. */
#define HURRIED_SLACK_NS INT64_C(4096)

static int64_t worker_now(const struct weft__keeper *keeper)
{
    const struct weft__worker *w = weft__container_of(keeper, struct weft__worker, keeper);
    return weft__clock_read(&w->rt->clock);
}

void weft__keeper_init(struct weft__worker *w)
{
    w->keeper = (struct weft__keeper){
        .wheels = w->rt->wheels,
        .stretch = &w->stretch,
        .own = &w->rt->wheels[w->index],
        .home = weft__keeper_home(w->index),
        .now = worker_now,
    };
}

/* `slack`: so late may be what is due, until the next look. */
static inline uint32_t worker_look(struct weft__worker *w, int64_t slack)
{
    struct weft__wheel *wheel = w->keeper.own;
    if (weft__wheel_idle(wheel)) return 0;
    int64_t now = weft__clock_read(&w->rt->clock);
    if (!weft__wheel_due(wheel, now - slack) && weft__wheel_stamp(wheel, now)) return 0;
    return weft__wheel_expire(wheel, NULL, now, WEFT__WHEEL_BATCH, &weft__sched, WEFT__BY_OWNER);
}

uint32_t weft__worker_look(struct weft__worker *w)
{
    return worker_look(w, 0);
}

int64_t weft__worker_next_look(struct weft__worker *w)
{
    struct weft__wheel *wheel = &w->rt->wheels[w->index];
    if (weft__wheel_idle(wheel)) return WEFT__NEVER;
    return weft__clock_to_system(&w->rt->clock, weft__wheel_next(wheel, WEFT__BY_OWNER));
}

void weft__worker_look_hurried(struct weft__worker *w)
{
    if (!w->stretch.hurried) return;
    int64_t slack = w->stretch.exact ? 0 : HURRIED_SLACK_NS;
    w->stretch.hurried = false;
    w->stretch.exact = false;
    (void)worker_look(w, slack);
}

bool weft__worker_has_due(const struct weft__worker *w)
{
    const struct weft__wheel *wheel = &w->rt->wheels[w->index];
    return !weft__wheel_idle(wheel) && weft__wheel_due(wheel, weft__clock_read(&w->rt->clock));
}

/* ---- threads outside ---- */

/* A thread's keeper, and what it needs. */
struct outside {
    struct weft__keeper keeper;
    struct weft_rt *rt;        /* that it had entered when the wait began, held; NULL: none */
    struct weft__wheel *wheel; /* its own, once it needed one; NULL: not yet */
    struct weft__stretch stretch;    /* nobody looks at it */
};

static struct outside *outside_of(const struct weft__keeper *keeper)
{
    return weft__container_of(keeper, struct outside, keeper);
}

static int64_t outside_now(const struct weft__keeper *keeper)
{
    const struct weft_rt *rt = outside_of(keeper)->rt;
    return rt ? weft__clock_read(&rt->clock) : weft__clock_now();
}

/* On the system's clock, in the thread's own wheel. */
static int64_t look_alone(struct weft__wheel *wheel)
{
    struct weft__reading reading;

    if (weft__wheel_idle(wheel)) return WEFT__NEVER;
    (void)weft__wheel_gather(wheel, &reading, WEFT__BY_OWNER);
    (void)weft__wheel_expire(wheel, &reading, weft__clock_now(), WEFT__WHEEL_BATCH, &weft__sched, WEFT__BY_OWNER);
    int64_t next = weft__wheel_next(wheel, WEFT__BY_OWNER);
    return next < 0 ? 0 : next;
}

/* Of a clock that stands in a runtime that has stopped: nobody but us moves it. */
static bool look_again_at_once(const struct weft_rt *rt, int64_t next)
{
    if (next == WEFT__NEVER || !weft__clock_stands(&rt->clock)) return false;
    return load_relaxed(&rt->stage) == WEFT__STOPPED; /* relaxed: a hint; the next look acquires */
}

/* While the clock stands, a thread looks again after this time: if it runs from then on, nobody rings threads outside. Doubled: one may be late by twice as much
 * in the only case, a resume beside its sleep. */
#define STANDS_NS INT64_C(10000000)

/* In the wheel of all threads that have entered the runtime. If its clock stands, this thread may be
 * all that it has to wait for; if not, somebody is awake, or sleeps without having seen our timer. */
static int64_t look_with_others(struct weft_rt *rt)
{
    struct weft__wheel *wheel = &rt->wheels[rt->worker_count];

    if (weft__wheel_idle(wheel)) return WEFT__NEVER;
    (void)weft__wheel_look(rt, wheel);
    if (weft__clock_move_outside(rt)) return 0;
    int64_t next = weft__wheel_next(wheel, WEFT__BY_ANY);
    if (look_again_at_once(rt, next)) return 0;
    if (weft__clock_stands(&rt->clock)) return weft__clock_now() + STANDS_NS;
    return weft__clock_to_system(&rt->clock, next);
}

static int64_t outside_look(struct weft__keeper *keeper)
{
    struct outside *o = outside_of(keeper);
    return o->rt ? look_with_others(o->rt) : look_alone(o->wheel);
}

/* If it has stopped, the thread has left it as well: behind this its memory is gone. */
static void let_go(struct weft__here *here, struct weft_rt *rt)
{
    /* [rt-stage] with stop */
    if (load_acquire(&rt->stage) == WEFT__STOPPED && here->entered == rt) here->entered = NULL;
    weft__rt_release(rt);
}

static void outside_done(struct weft__keeper *keeper)
{
    struct outside *o = outside_of(keeper);
    struct weft__here *here = weft__here();

    here->own_keeper = NULL;
    if (o->wheel) weft__wheel_done(o->wheel);
    weft__free(o->wheel);
    if (o->rt) let_go(here, o->rt);
    weft__free(o);
}

static bool own_wheel(struct outside *o)
{
    o->wheel = weft__alloc_aligned(sizeof(*o->wheel), WEFT__CACHE_LINE);
    if (!o->wheel) return false;
    weft__wheel_init(o->wheel, weft__clock_now());
    o->keeper.wheels = o->wheel;
    o->keeper.own = o->wheel;
    o->keeper.home = weft__keeper_home(0);
    return true;
}

/* The runtime may stop meanwhile: its wheels and its clock are there until we let go of them. */
static void shared_wheel(struct outside *o, struct weft_rt *rt)
{
    weft__rt_hold(rt);
    o->rt = rt;
    o->keeper.wheels = rt->wheels;
    o->keeper.own = &rt->wheels[rt->worker_count];
    o->keeper.home = weft__keeper_home(rt->worker_count);
}

/* The one that this thread has entered, if it has a clock that anybody moves. */
static struct weft_rt *entered(const struct weft__here *here)
{
    struct weft_rt *rt = here->entered;
    return rt && !weft__rt_is_lost(rt) ? rt : NULL;
}

static struct outside *outside_new(struct weft__here *here)
{
    struct weft_rt *rt = entered(here);
    struct outside *o = weft__alloc(sizeof(*o));

    if (!o) return NULL;
    o->keeper = (struct weft__keeper){
        .stretch = &o->stretch,
        .now = outside_now,
        .look = outside_look,
        .done = outside_done,
    };
    if (rt) {
        shared_wheel(o, rt);
    } else if (!own_wheel(o)) {
        weft__free(o);
        return NULL;
    }
    here->own_keeper = &o->keeper;
    return o;
}

struct weft__keeper *weft__keeper_outside(void)
{
    struct weft__here *here = weft__here();
    if (here->own_keeper) return here->own_keeper;
    struct outside *o = outside_new(here);
    return o ? &o->keeper : NULL;
}

weft_time weft_now(void)
{
    const struct weft__here *here = weft__here();
    const struct weft_rt *rt = here->worker ? here->worker->rt : entered(here);
    return rt ? weft__clock_read(&rt->clock) : weft__clock_now();
}
