/* SPDX-License-Identifier: MIT
 *
 * clock - pause, resume, advance, and the clock that moves when all is idle; the idea is in clock.h.
 */
#include "sched/clock.h"

#include "sched/sched.h"
#include "sys/thread.h"

#include <weft/time.h>

#include <errno.h>

void weft__clock_init(struct weft__clock *clock, bool paused)
{
    weft__lock_init(&clock->lock, WEFT__RANK_RT);
    store_relaxed(&clock->shift, 0); /* relaxed, all: not shared yet */
    store_relaxed(&clock->holds, 0);
    store_relaxed(&clock->moving, WEFT__CLOCK_LEFT);
    store_relaxed(&clock->frozen, paused ? weft__clock_now() : WEFT__CLOCK_RUNS);
}

/* ---- wheels ----
 *
 * Each is entered, also one that seems to be empty: so whoever arms there next does it, and reads the clock, behind our move of it. */

/* The earliest deadline of all; INT64_MIN: one of them has something to do before that is known. */
static int64_t earliest(struct weft_rt *rt)
{
    int64_t first = WEFT__NEVER;
    for (uint32_t i = 0; i <= rt->worker_count; i++) {
        int64_t next = weft__wheel_next(&rt->wheels[i], WEFT__BY_ANY);
        if (next < first) first = next;
    }
    return first;
}

/* Everything that is due at the time that it is. */
static uint32_t fire_all(struct weft_rt *rt)
{
    uint32_t fired = 0;
    for (uint32_t i = 0; i <= rt->worker_count; i++) {
        do {
            fired += weft__wheel_look(rt, &rt->wheels[i]);
        } while (weft__wheel_next(&rt->wheels[i], WEFT__BY_ANY) <= weft__clock_read(&rt->clock));
    }
    return fired;
}

/* ---- idle ---- */

static bool queues_are_empty(struct weft_rt *rt)
{
    if (!weft__inject_empty(&rt->inject) || !weft__inject_empty(&rt->background)) return false;
    for (uint32_t i = 0; i < rt->worker_count; i++) {
        struct weft__worker *w = &rt->workers[i];
        if (weft__worker_queued(w) > 0 || !weft__inbox_empty(&w->inbox)) return false;
    }
    return true;
}

static bool turned_here(const struct weft_rt *rt)
{
    const struct weft__here *here = weft__here();
    return here->worker && here->worker->rt == rt;
}

/* Do all workers sleep? A current-thread runtime's does for who turns it, since that one asks; for others, if nobody turns it. */
static bool all_sleep(struct weft_rt *rt)
{
    /* acquire: [rt-stage] with stop: who sees it stopped sees all that was done before */
    if (load_acquire(&rt->stage) == WEFT__STOPPED) return true;
    if (!rt->current_thread) return weft__idle_all_sleep(&rt->idle);
    /* acquire: [rt-turn] with the end of the last turn: its rest */
    return turned_here(rt) || !load_acquire(&rt->turning);
}

/* What nobody turns does not happen; but a job may run between two turns. */
static bool nothing_goes_on(struct weft_rt *rt)
{
    if (load_relaxed(&rt->stage) == WEFT__STOPPED) return true; /* relaxed: all_sleep has acquired it */
    if (weft__io_is_watched(rt) || weft__clock_is_held(rt)) return false;
    if (rt->current_thread && !turned_here(rt) && !weft__here()->waits) return true;
    return queues_are_empty(rt);
}

/* How often a worker has gone to sleep, or been left by who turned it. */
static uint32_t rests_so_far(struct weft_rt *rt)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < rt->worker_count; i++)
        sum += load_acquire(&rt->workers[i].rests); /* [clock-rest] with worker_rests: what it has held by then */
    return sum;
}

bool weft__clock_is_held(struct weft_rt *rt)
{
    /* acquire: [clock-holds] with release: who held it is awake */
    if (load_acquire(&rt->clock.holds) == 0) return false;
    return weft__blocking_holds(&rt->blocking, &rt->clock.holds);
}

void weft__clock_nudge(struct weft_rt *rt)
{
    if (!weft__clock_stands(&rt->clock)) return;
    if (rt->current_thread) {
        weft__unpark(&rt->workers[0].park);
    } else {
        weft__rt_unpark(rt, weft__idle_submit(&rt->idle));
    }
}

struct move {
    struct weft_rt *rt;
    int64_t limit;
};

/* All sleep before anything is looked at, and behind the last look, and nobody fell asleep in between: else a task may have been woken, armed a timer, begun a job and
 * waited, and the job would not be waited for. (Who sees what such a task did, by the wheel's lock or [clock-holds], sees its worker awake, or one rest more.) */
static bool move_if_idle(void *move)
{
    struct weft_rt *rt = ((struct move *)move)->rt;
    int64_t limit = ((struct move *)move)->limit;
    int64_t now = load_relaxed(&rt->clock.frozen); /* relaxed: the CAS tells if it is old */
    if (now == WEFT__CLOCK_RUNS || !all_sleep(rt)) return false;
    uint32_t rests = rests_so_far(rt);
    if (!nothing_goes_on(rt)) return false;
    if (fire_all(rt) > 0) return true; /* they are for the time that it is */
    int64_t next = earliest(rt);
    if (next == WEFT__NEVER || !all_sleep(rt) || rests_so_far(rt) != rests) return false;
    if (next > limit) next = limit;
    /* relaxed: a time, and nothing else */
    if (next > now && !cas_relaxed(&rt->clock.frozen, &now, next)) return false;
    return fire_all(rt) > 0 || next > now;
}

bool weft__clock_move_idle(struct weft_rt *rt, int64_t limit)
{
    if (__builtin_expect(!weft__clock_stands(&rt->clock), 1)) return false;
    return weft__clock_move_by(&rt->clock, move_if_idle, &(struct move){.rt = rt, .limit = limit});
}

bool weft__clock_move_outside(struct weft_rt *rt)
{
    bool moved = weft__clock_move_idle(rt, WEFT__NEVER);
    weft__clock_nudge(rt);
    return moved;
}

/* Whoever moves it just now may have looked before the runtime stopped, and may be rung: it moves nothing, and does not look again. */
void weft__clock_run_out(struct weft_rt *rt)
{
    while (weft__clock_stands(&rt->clock) && earliest(rt) != WEFT__NEVER)
        if (!weft__clock_move_idle(rt, WEFT__NEVER)) weft__thread_yield();
}

/* ---- what the program says ---- */

static struct weft_rt *rt_of(weft_rt *rt)
{
    if (!rt) rt = weft_rt_current();
    return rt;
}

/* The workers sleep until a time that is not theirs any more. */
static void rouse(struct weft_rt *rt)
{
    for (uint32_t i = 0; i < rt->worker_count; i++)
        weft__unpark(&rt->workers[i].park);
    if (rt->current_thread) weft__rt_signal(rt);
}

int weft_clock_pause(weft_rt *rt)
{
    rt = rt_of(rt);
    if (!rt) return -ENXIO;
    if (weft__rt_is_lost(rt)) return -ECHILD;
    struct weft__clock *clock = &rt->clock;
    weft__lock_take(&clock->lock);
    bool runs = !weft__clock_stands(clock);
    if (runs)
        store_relaxed(&clock->frozen,
                      weft__clock_read(clock)); /* relaxed: a time, and nothing else */
    weft__lock_drop(&clock->lock);
    if (runs) rouse(rt);
    return runs ? 0 : -EALREADY;
}

/* Holds: the clock's lock. It may be moved for being idle meanwhile. */
static void let_run(struct weft__clock *clock)
{
    int64_t now = load_relaxed(&clock->frozen); /* relaxed: the CAS tells if it is old */
    do {
        store_relaxed(&clock->shift, now - weft__clock_now()); /* relaxed: ordered by the CAS */
    } while (
        !cas_release(&clock->frozen, &now, WEFT__CLOCK_RUNS)); /* [rt-clock] with read: the shift */
}

int weft_clock_resume(weft_rt *rt)
{
    rt = rt_of(rt);
    if (!rt) return -ENXIO;
    if (weft__rt_is_lost(rt)) return -ECHILD;
    struct weft__clock *clock = &rt->clock;
    weft__lock_take(&clock->lock);
    bool stands = weft__clock_stands(clock);
    if (stands) let_run(clock);
    weft__lock_drop(&clock->lock);
    if (stands) rouse(rt);
    return stands ? 0 : -EALREADY;
}

/* One step: to the next deadline, or to the end. False: that was the last. */
static bool step_towards(struct weft_rt *rt, int64_t target)
{
    int64_t now = load_relaxed(&rt->clock.frozen); /* relaxed: the CAS tells if it is old */
    if (now == WEFT__CLOCK_RUNS || now >= target) return false;
    (void)fire_all(rt);
    int64_t next = earliest(rt);
    if (next > target) next = target;
    if (next > now)
        (void)cas_relaxed(&rt->clock.frozen, &now, next); /* relaxed: a time, and nothing else */
    (void)fire_all(rt);
    return true;
}

int weft_clock_advance(weft_rt *rt, weft_time ns)
{
    int64_t target;

    rt = rt_of(rt);
    if (!rt) return -ENXIO;
    if (weft__rt_is_lost(rt)) return -ECHILD;
    int64_t now = load_relaxed(&rt->clock.frozen); /* relaxed: a time, and nothing else */
    if (now == WEFT__CLOCK_RUNS || ns < 0) return -EINVAL;
    if (__builtin_add_overflow(now, ns, &target)) target = WEFT__NEVER - 1;
    while (step_towards(rt, target)) {
    }
    return 0;
}
