/* SPDX-License-Identifier: MIT
 *
 * find - what a worker does when it has nothing: look at the inject queue, search the others, sleep.
 *
 * SHARING IS JUDGED BY WORK  To wake a sleeper costs the waker 5 us, and a thief of tiny tasks slows both sides down. So a worker offers what it has beyond its
 * next task only after it has been busy for 20 us with a backlog (it looks at the clock once in eight polls, or 32 pushes, or less), and a worker
 * whose tasks were not worth a theft is shunned for a while (theft.h). Neither can starve anybody: long tasks pass both tests at once. What lies in the ring of a worker that is awake cannot be lost, only shared later; so a
 * sleeper's re-scan leaves the ring of one that is shunned alone, as it leaves lone tasks alone: their worker is about to run them.
 * LEAVE  Unless the monitor has seen that it is not: behind a poll that does not end, everything may be taken, `next` too, by anyone, shunned or not (watch.h). Such a
 * theft is a rescue, and not judged.
 * ONE SPINNER  One worker at a time searches; it does so for `spin_us` at most, less if that was in vain lately (search.h), then sleeps. Who is woken inherits the right to search.
 * The order of publishing, fencing, looking and parking is idle.h's.
 */
#include "sched/sched.h"

#include "sys/clock.h"
#include "task/orphan.h"

#define SHARE_AFTER_NS  INT64_C(20000)    /* busy this long with a backlog before it is offered */
#define OFFER_SKIP_MAX  8                 /* polls between two looks at the clock, where somebody sleeps. Doubled: long ones that follow short ones are shared that much later */
#define OFFER_SKIP_BUSY 4                 /* polls between two looks for sleepers, while there are none */
#define INJECT_BATCH    32                /* tasks taken from the inject queue at once; what else lies there is for others */

/* ---- offering ---- */

static void offer_now(struct weft__worker *w)
{
    uint32_t thief = weft__idle_wake_one(&w->rt->idle, w->index);
    if (thief == WEFT__IDLE_NOBODY) return;
    weft__tally(&w->counts.wakes, 1);
    weft__rt_unpark(w->rt, thief);
}

/* How many more polls until the 20 us are over, as far as one can tell: not by the spawns of one poll, which say nothing of how long those will take, and by a few
 * short ones for a few. */
static uint32_t polls_until(int64_t left_ns, int64_t elapsed_ns, uint64_t polls)
{
    if (polls == 0) return 0;
    uint64_t each = (uint64_t)elapsed_ns / polls;
    uint64_t more = each > 0 ? (uint64_t)left_ns / each : OFFER_SKIP_MAX;
    if (more > polls) more = polls;
    return more < OFFER_SKIP_MAX ? (uint32_t)more : OFFER_SKIP_MAX;
}

void weft__worker_offer_slow(struct weft__worker *w, bool behind_rmw)
{
    if (!(behind_rmw ? weft__idle_look(&w->rt->idle) : weft__idle_look_fenced(&w->rt->idle))) {
        w->backlog_since = 0;
        w->offer_in = OFFER_SKIP_BUSY;
        return;
    }
    int64_t now = weft__clock_now();
    uint64_t polls = load_relaxed(&w->counts.polls); /* relaxed: our own */
    if (w->backlog_since == 0) {
        w->backlog_since = now;
        w->backlog_polls = polls;
        return;
    }
    int64_t elapsed = now - w->backlog_since;
    if (elapsed < SHARE_AFTER_NS) {
        w->offer_in = polls_until(SHARE_AFTER_NS - elapsed, elapsed, polls - w->backlog_polls);
        return;
    }
    w->backlog_since = 0;
    if (!weft__shunned(&w->shun, now)) offer_now(w);
}

/* ---- the inject queue ---- */

struct weft_task *weft__worker_take_inject(struct weft__worker *w)
{
    struct weft_task *got[INJECT_BATCH];
    if (weft__inject_idle(&w->rt->inject)) return NULL;
    uint32_t count = weft__inject_pop(&w->rt->inject, INJECT_BATCH, got);
    for (uint32_t i = 1; i < count; i++) weft__worker_push_back(w, got[i]);
    return count ? got[0] : NULL;
}

/* ---- gait ---- */

static void gait_begins(struct weft__worker *w)
{
    if (weft__port_idle(w->shard->port)) return;
    w->gait.since = weft__clock_now();
    w->gait.polls = load_relaxed(&w->counts.polls); /* relaxed: our own */
}

/* At each tick, and when it has run dry: so a clock read is shared by many polls, or is nothing beside the sleep that follows. */
void weft__worker_judge_gait(struct weft__worker *w)
{
    struct weft__gait *gait = &w->gait;
    if (weft__port_idle(w->shard->port)) return; /* nobody asks */
    int64_t before = gait->since;
    uint64_t made = load_relaxed(&w->counts.polls) - gait->polls; /* relaxed: our own */
    gait_begins(w);
    if (before != 0 && made > 0) gait->slow = (gait->since - before) / (int64_t)made > gait->slow_ns;
}

/* ---- theft ---- */

static bool may_rob(const struct weft__worker *victim)
{
    return weft__leave_stands(&victim->leave, &victim->counts.polls);
}

/* What its owner keeps before its ring: by a thief with leave. */
static struct weft__haul haul_from_slot(struct weft__worker *w, struct weft__worker *victim)
{
    struct weft_task *got[WEFT__SLOT_MOST];
    uint32_t count = weft__slot_steal(&victim->next, got);
    for (uint32_t i = 1; i < count; i++) weft__worker_push_back(w, got[i]);
    return (struct weft__haul){.run = count ? got[0] : NULL, .count = count};
}

static struct weft__haul haul_from(struct weft__worker *w, struct weft__worker *victim, bool rob)
{
    struct weft__haul haul = {0};
    if (rob && weft__slot_hand(&victim->next) > 0) haul = haul_from_slot(w, victim); /* the oldest that it has */
    if (haul.run) return haul;
    haul = weft__runq_steal_half(&victim->ring, &w->ring, rob);
    haul.count += (uint32_t)weft__overflow_take_half(&w->over, &victim->over);
    if (!haul.run) haul.run = weft__overflow_refill(&w->over, &w->ring).run;
    if (haul.run || !rob) return haul;
    return haul_from_slot(w, victim);
}

static struct weft_task *steal_from(struct weft__worker *w, struct weft__worker *victim, int64_t now)
{
    bool rob = may_rob(victim);
    if (!rob && weft__shunned(&victim->shun, now)) return NULL;
    uint32_t fired = rob ? weft__wheel_look(w->rt, &w->rt->wheels[victim->index]) : 0;
    if (rob) fired += weft__io_turn(w, victim->shard->port);
    struct weft__haul haul = haul_from(w, victim, rob);
    if (!haul.run) return fired ? weft__worker_take(w) : NULL;
    weft__tally(&w->counts.steals, 1);
    weft__tally(&w->counts.stolen, haul.count);
    if (rob) weft__tally(&w->counts.rescued, haul.count);
    weft__theft_begins(w, victim, haul.count, !rob);
    return haul.run;
}

static struct weft_task *steal(struct weft__worker *w, int64_t now)
{
    struct weft_rt *rt = w->rt;
    uint32_t start = (uint32_t)weft__rand_below(&w->rand, rt->worker_count);
    for (uint32_t i = 0; i < rt->worker_count; i++) {
        struct weft__worker *victim = &rt->workers[(start + i) % rt->worker_count];
        struct weft_task *task = victim == w ? NULL : steal_from(w, victim, now);
        if (task) return task;
    }
    return NULL;
}

/* Would steal_from get something? */
static bool has_work(struct weft__worker *victim, int64_t now)
{
    if (may_rob(victim))
        return weft__worker_within_reach(victim) > 0 || weft__worker_has_due(victim) ||
               weft__io_has(victim->shard->port);
    return !weft__shunned(&victim->shun, now) && (weft__runq_length(&victim->ring) >= 2 || weft__overflow_count(&victim->over) > 0);
}

static bool others_have_work(struct weft__worker *w, int64_t now)
{
    struct weft_rt *rt = w->rt;
    for (uint32_t i = 0; i < rt->worker_count; i++) {
        struct weft__worker *other = &rt->workers[i];
        if (other != w && has_work(other, now)) return true;
    }
    return false;
}

bool weft__worker_sees_work(struct weft__worker *w)
{
    if (!weft__inject_empty(&w->rt->inject) || !weft__inject_empty(&w->rt->background)) return true;
    if (w->rt->worker_count == 1) return false; /* there are no others: no clock is read for them */
    return others_have_work(w, weft__clock_now());
}

/* ---- searching ---- */

static struct weft_task *look_everywhere(struct weft__worker *w, int64_t now)
{
    struct weft_task *task = weft__inbox_take(&w->inbox);
    if (!task) task = weft__worker_take_inject(w);
    if (!task) task = steal(w, now);
    if (!task) task = weft__worker_take_background(w);
    return task;
}

/* Somebody else searches: what needs no search. */
static struct weft_task *look_around(struct weft__worker *w)
{
    struct weft_task *task = weft__inbox_take(&w->inbox);
    if (!task) task = weft__worker_take_inject(w);
    if (!task) task = weft__worker_take_background(w);
    return task;
}

/* Looks again and again until then. `sched_yield` now and then: the one we wait for may need this very CPU. */
static struct weft_task *look_until(struct weft__worker *w, int64_t now, int64_t until)
{
    for (unsigned round = 1;; round++, now = weft__clock_now()) {
        struct weft_task *task = look_everywhere(w, now);
        if (task || now >= until) {
            weft__search_over(&w->search, task != NULL, round);
            return task;
        }
        if (load_relaxed(&w->rt->stage) == WEFT__STOPPED) return NULL; /* relaxed: looked at again before sleeping */
        for (int i = 0; i < 8; i++) cpu_pause();
        if (round % 8 == 0) weft__thread_yield();
    }
}

static struct weft_task *spin(struct weft__worker *w)
{
    int64_t now = weft__clock_now();
    if (!weft__port_idle(w->shard->port)) return look_everywhere(w, now); /* it sleeps where the kernel can tell it (io.h): once around */
    int64_t until = now + weft__search_ns(&w->search, (int64_t)w->rt->opts.spin_us * 1000);
    int64_t look = weft__worker_next_look(w);
    return look_until(w, now, look < until ? look : until);
}

/* It has found something: give the right to search back, and pass the search on if there is more. */
static void stop_searching(struct weft__worker *w)
{
    if (!w->searching) return;
    w->searching = false;
    if (weft__idle_search_end(&w->rt->idle, w->index) && weft__worker_sees_work(w)) offer_now(w);
}

/* ---- sleeping ---- */

/* Where no monitor sees that all sleep, who has slept for so long gives the pages of free stacks back. Halved: programs that do something once in a second have cold
 * stacks each time. */
#define QUIET_NS INT64_C(1000000000)

static void park(struct weft__worker *w, struct weft__events *events)
{
    struct weft_rt *rt = w->rt;
    int64_t until = weft__worker_next_look(w);
    if (!weft__monitor_watches(rt) && weft__stack_sizes_are_warm(&rt->stack_sizes, WEFT__STACK_KEEP)) {
        int64_t quiet = weft__clock_now() + QUIET_NS;
        if (quiet < until) {
            if (weft__io_park(w, quiet, events)) return; /* woken */
            weft__monitor_trim(rt);
        }
    }
    (void)weft__io_park(w, until, events);
}

static void sleep_until_woken(struct weft__worker *w)
{
    struct weft_rt *rt = w->rt;
    bool searching = w->searching;
    struct weft__events events; /* what it is woken by: delivered when it is awake */

    events.count = 0;
    weft__slab_flush(&w->slab);
    weft__slab_share(&w->slab);
    weft__stack_magazine_flush(&w->magazine); /* others may need them, and else nobody could trim them */
    w->searching = false;
    weft__worker_rests(w);
    weft__idle_sleep(&rt->idle, w->index, searching);
    bool work = weft__worker_sees_work(w) || !weft__inbox_empty(&w->inbox);
    /* acquire: [rt-stage] with stop: who sees it stopped sees all that was done before */
    if (!work && load_acquire(&rt->stage) != WEFT__STOPPED && !weft__clock_move_idle(rt, WEFT__NEVER)) {
        weft__tally(&w->counts.parks, 1);
        park(w, &events);
    }
    (void)weft__idle_unsleep(&rt->idle, w->index);
    w->searching = true;
    weft__watch_stir(&rt->monitor.watch);
    weft__io_deliver(w, &events);
}

/* What a hook woke lies in our own queues, where this worker would sleep upon it. */
static struct weft_task *call_hook(struct weft__worker *w, void (*hook)(weft_rt *, unsigned))
{
    if (!hook) return NULL;
    hook(w->rt, w->index);
    if (w->here->worker != w) weft__orphan_returns(); /* it forked, and this is the child */
    return weft__worker_take(w);
}

/* Sleeps, between its hooks. A task: they brought one. */
static struct weft_task *sleep_with_hooks(struct weft__worker *w)
{
    struct weft_task *task = call_hook(w, w->rt->opts.on_thread_park);
    if (!task) sleep_until_woken(w);
    struct weft_task *other = call_hook(w, w->rt->opts.on_thread_unpark);
    if (!task) return other;
    if (other) weft__worker_push_back(w, other);
    return task;
}

/* ---- timers ---- */

/* What its wheel brings, or the clock that was moved because all was idle; it lies in its own queues. */
static struct weft_task *take_fired(struct weft__worker *w)
{
    (void)weft__worker_look(w);
    return weft__worker_queued(w) > 0 ? weft__worker_take(w) : NULL;
}

static bool timer_is_due(struct weft__worker *w)
{
    int64_t look = weft__worker_next_look(w);
    return look != WEFT__NEVER && look <= weft__clock_now();
}

struct weft_task *weft__worker_find(struct weft__worker *w)
{
    struct weft_rt *rt = w->rt;
    bool slept = false;
    w->backlog_since = 0;
    w->offer_in = 0;
    weft__worker_judge_gait(w);
    for (;;) {
        weft__theft_ends(w);
        weft__shard_turn(w->shard, w->index);
        struct weft_task *task = take_fired(w);
        if (!task && !w->searching) w->searching = weft__idle_search_begin(&rt->idle, w->index);
        if (!task) task = w->searching ? spin(w) : look_around(w);
        bool stopped = !task && load_acquire(&rt->stage) == WEFT__STOPPED; /* [rt-stage] with stop */
        if (!task && !stopped && !timer_is_due(w)) {
            if (slept) weft__tally(&w->counts.spurious, 1); /* woken for nothing */
            task = sleep_with_hooks(w);
            slept = true;
        }
        if (task || stopped) {
            if (!slept)
                (void)weft__io_turn(
                    w,
                    w->shard->port); /* it does not sleep, and its fds are not to wait for that */
            stop_searching(w);
            gait_begins(w);
            return task;
        }
    }
}
