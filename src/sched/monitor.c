/* SPDX-License-Identifier: MIT
 *
 * monitor - the loop: look, judge, give leave, wait; the idea is in monitor.h and watch.h.
 */
#include "sched/monitor.h"

#include "sched/sched.h"
#include "sys/clock.h"

#include <stdio.h>

/* ---- a look ---- */

static struct weft__look look_at(struct weft__worker *w)
{
    return (struct weft__look){
        .polls = load_relaxed(&w->counts.polls), /* relaxed, both: counts */
        .turns = load_relaxed(&w->shard->turns),
        .queued = weft__worker_within_reach(w) + weft__worker_has_due(w) + weft__io_has(w->shard->port),
    };
}

/* True: it stands still, and may be robbed from now on. */
static bool judge(struct weft__worker *w, int64_t at)
{
    struct weft__look now = look_at(w);
    bool still = weft__look_stands_still(&w->seen, &now);
    w->seen = now;
    weft__deaf_look(&w->rt->deaf, w, now.polls, at);
    if (still) {
        weft__leave_give(&w->leave, now.polls);
    } else {
        weft__leave_take_back(&w->leave);
    }
    return still;
}

/* One sleeper is woken for all who stand still: whoever finds work wakes the next, if there is more. */
static uint32_t look_round(struct weft_rt *rt)
{
    uint32_t still = 0;
    int64_t at = weft__clock_now();
    for (uint32_t i = 0; i < rt->worker_count; i++)
        still += judge(&rt->workers[i], at);
    /* What was only requeued to a shared queue told nobody, and its worker may be stuck by now. */
    bool waiting = !weft__inject_idle(&rt->background) || !weft__inject_idle(&rt->inject);
    if (still > 0 || waiting) weft__rt_unpark(rt, weft__idle_submit(&rt->idle));
    return still;
}

/* ---- stacks ---- */

static bool all_asleep(const struct weft_rt *rt)
{
    return weft__idle_sleeping(&rt->idle) == rt->worker_count;
}

void weft__monitor_trim(struct weft_rt *rt)
{
    size_t trimmed = 1;
    while (trimmed > 0 && all_asleep(rt) && weft__watch_goes_on(&rt->monitor.watch)) {
        if (load_relaxed(&rt->stage) == WEFT__STOPPED) break; /* relaxed: looked at again by whoever leaves */
        trimmed = weft__stack_sizes_trim_some(&rt->stack_sizes, WEFT__STACK_KEEP);
    }
}

/* ---- the loop ---- */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t after(int64_t now, int64_t wait_ns)
{
    return wait_ns == WEFT__NEVER ? WEFT__NEVER : now + wait_ns;
}

/* Waits until the next look, printing whenever that is due. False: stop. */
static bool rest_until(struct weft_rt *rt, int64_t until, uint32_t still)
{
    struct weft__monitor *m = &rt->monitor;
    for (;;) {
        int64_t next = earlier(until, m->trace.next_at);
        if (!weft__watch_rest(&m->watch, next)) return false;
        int64_t now = weft__clock_now();
        weft__trace_line(&m->trace, rt, still, now);
        if (now >= until) return true;
    }
}

static bool wait_for_next(struct weft_rt *rt, enum weft__pace_next pace, uint32_t still)
{
    struct weft__monitor *m = &rt->monitor;
    int64_t short_ns = m->interval_ns / WEFT__PACE_ALERT_PART;
    int64_t now = weft__clock_now();
    if (pace == WEFT__PACE_DOZE) {
        weft__monitor_trim(rt);
        while (weft__watch_doze(&m->watch, &rt->idle, m->trace.next_at))
            weft__trace_line(&m->trace, rt, still, weft__clock_now());
    }
    return rest_until(rt, after(now, pace == WEFT__PACE_SHORT ? short_ns : m->interval_ns), still);
}

static void monitor_main(void *arg)
{
    struct weft_rt *rt = arg;
    struct weft__monitor *m = &rt->monitor;
    enum weft__pace_next pace = WEFT__PACE_LONG;
    uint32_t still = 0;

    while (wait_for_next(rt, pace, still)) {
        still = look_round(rt);
        pace = weft__pace_after(&m->pace, still > 0, all_asleep(rt));
    }
}

/* ---- start and stop ---- */

bool weft__monitor_watches(const struct weft_rt *rt)
{
    return rt->worker_count > 1 && rt->opts.monitor_us > 0;
}

int weft__monitor_start(struct weft_rt *rt)
{
    struct weft__monitor *m = &rt->monitor;
    bool helps = weft__monitor_watches(rt);
    char name[WEFT__THREAD_NAME_BYTES];

    if (rt->current_thread || (!helps && rt->opts.schedtrace_ms == 0)) return 0;
    m->interval_ns = helps ? rt->opts.monitor_us * INT64_C(1000) : WEFT__NEVER;
    snprintf(name, sizeof(name), "%.11s-mon", rt->name);
    int r = weft__thread_start(&m->thread, &(struct weft__thread_options){.name = name},
                               monitor_main, rt);
    m->running = r == 0;
    return r;
}

void weft__monitor_stop(struct weft_rt *rt)
{
    struct weft__monitor *m = &rt->monitor;
    if (!m->running) return;
    weft__watch_stop(&m->watch);
    weft__thread_join(&m->thread);
    m->running = false;
}
