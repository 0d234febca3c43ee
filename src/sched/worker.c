/* SPDX-License-Identifier: MIT
 *
 * worker - a thread that polls tasks: take one, poll it, finish it or let it go.
 *
 * WHERE A TASK GOES
 *     woken or spawned by a running task     `next`; its occupant to the ring's tail; nobody is told while the ring holds fewer than two
 *     yields, or is woken during its poll    the ring's tail
 *     from any other thread                  the inject queue; one sleeper is told
 *     ring full                              half of it to the worker's own overflow arrays; without memory for these, to the inject queue
 *     it has a place of its own (place.c)    there, whoever pushes it: never to where a thief could take it from
 * `next` keeps what was just woken in the cache, and makes fork-join go depth first. It goes before the ring at most three times in a row while others wait.
 * Every `tick_max` polls the worker first looks at the inject queue and brings its overflow arrays round, whatever it has. Every 32nd it looks at the
 * background queue. Tasks of its inbox and those of its ring take turns, one by one. (To take from the inbox needs no read-modify-write, so the look behind it may be
 * old; a ring that has something to offer has its turn, and its look, at the next poll.)
 * The read-modify-write that takes a task from ring or slot is the fence before the look for sleepers that counts (idle.h).
 * Threads: the owner, but for push from outside. Locks: none held while a task runs.
 */
#include "sched/sched.h"

#include "sys/clock.h"
#include "task/fiber.h"
#include "task/frame.h"
#include "task/local.h"
#include "task/orphan.h"
#include "task/overflow.h"
#include "task/watchers.h"

#include <errno.h>
#include <string.h>

/* Times in a row that `next` goes before a ring that has something. Doubled: two tasks that wake each other starve the ring twice as long. */
#define NEXT_STREAK_MAX 3

/* Ticks between two times that the overflow arrays are brought round. It moves 250 tasks: halved, a thousand yielding tasks pay for it at each poll; doubled, those
 * in the arrays wait twice as long for those in the ring. */
#define ROUNDS_MAX 8

/* ---- push ---- */

static void push_ring_slow(struct weft__worker *w, struct weft_task *task)
{
    if (weft__overflow_spill(&w->over, &w->ring) >= 0 && weft__runq_push(&w->ring, task)) {
        weft__tally(&w->counts.spills, 1);
        return;
    }
    weft__inject_push(&w->rt->inject, task); /* no memory for an array: the inject queue needs none */
    fence_seq_cst();                         /* [idle-sb] with sleep: as any push from outside */
}

static void push_ring(struct weft__worker *w, struct weft_task *task)
{
    if (!weft__runq_push(&w->ring, task)) push_ring_slow(w, task);
}

void weft__worker_push_back(struct weft__worker *w, struct weft_task *task)
{
    if (__builtin_expect(weft__is_placed(task), 0)) {
        weft__place_push(w->rt, w, task, false);
    } else {
        push_ring(w, task);
    }
}

void weft__worker_push(struct weft__worker *w, struct weft_task *task)
{
    if (__builtin_expect(weft__is_placed(task), 0)) {
        weft__place_push(w->rt, w, task, true);
        return;
    }
    struct weft_task *before = weft__slot_put(&w->next, task);
    if (!before) return;
    push_ring(w, before);
    if (weft__runq_length(&w->ring) >= 2) weft__worker_offer(w);
}

void weft__rt_unpark(struct weft_rt *rt, uint32_t worker)
{
    if (worker == WEFT__IDLE_NOBODY) return;
    weft__unpark(&rt->workers[worker].park);
}

void weft__rt_push_outside(struct weft_rt *rt, struct weft_task *first, struct weft_task *last)
{
    if (__builtin_expect(weft__is_placed(first), 0)) {
        weft_assert(first == last);
        weft__place_push(rt, NULL, first, true);
        return;
    }
    weft__inject_push_chain(&rt->inject, first, last);
    weft__rt_unpark(rt, weft__idle_submit(&rt->idle));
    if (rt->current_thread) weft__rt_signal(rt);
}

/* Once it is pushed the task may run, end, and its runtime stop before we have told a sleeper: what we still touch is held. */
static void push_held(struct weft_rt *rt, struct weft_task *task)
{
    weft__rt_hold(rt);
    weft__rt_push_outside(rt, task, task);
    weft__rt_release(rt);
}

static void push_anywhere(void *unused, struct weft_task *task)
{
    (void)unused;
    struct weft_rt *rt = weft__rt_of(task);
    struct weft__worker *w = weft__here()->worker;
    if (w && w->rt == rt) {
        weft__worker_push(w, task);
    } else {
        push_held(rt, task);
    }
}

/* A batch goes to the ring: `next` is for one. */
static void push_chain_anywhere(void *unused, struct weft_task *first, struct weft_task *last, uint32_t count)
{
    (void)last;
    struct weft__worker *w = weft__here()->worker;
    for (struct weft_task *t = first; count-- > 0;) {
        struct weft_task *after = load_relaxed(&t->link); /* relaxed: the chain is ours until it is pushed */
        if (w && w->rt == weft__rt_of(t) && !weft__is_placed(t)) {
            push_ring(w, t);
        } else {
            push_anywhere(unused, t);
        }
        t = after;
    }
    if (w && weft__runq_length(&w->ring) >= 2) weft__worker_offer(w);
}

static const struct weft__sched_ops ops = {.push = push_anywhere, .push_chain = push_chain_anywhere};
const struct weft__sched weft__sched = {.ops = &ops};

/* ---- take ---- */

static struct weft_task *take_next(struct weft__worker *w)
{
    if (w->next_streak >= NEXT_STREAK_MAX && weft__runq_length(&w->ring) > 0) return NULL;
    struct weft_task *task = weft__slot_take(&w->next);
    if (task) w->next_streak++;
    return task;
}

/* The fairness tick: what lies in the inject queue or behind a ring that never runs dry gets its turn. */
static struct weft_task *take_in_turn(struct weft__worker *w)
{
    if (weft__worker_was_hurried(w)) return NULL;
    w->tick = 0;
    weft__shard_turn(w->shard, w->index);
    (void)weft__worker_look(w);
    struct weft_task *task = weft__worker_take_inject(w);
    if (!task) task = weft__worker_take_background(w);
    if (!task && ++w->rounds >= ROUNDS_MAX && weft__overflow_count(&w->over) > 0) {
        w->rounds = 0;
        if (weft__runq_length(&w->ring) > WEFT__RUNQ_CAP / 2) (void)weft__overflow_spill(&w->over, &w->ring);
        task = weft__overflow_refill(&w->over, &w->over, &w->ring).run;
    }
    return task;
}

struct weft_task *weft__worker_take(struct weft__worker *w)
{
    struct weft_task *task = NULL;
    w->inline_ticks = 0;
    if (++w->tick >= w->tick_max) task = take_in_turn(w);
    if (!task && __builtin_expect(++w->since_background >= WEFT__BACKGROUND_TICKS, 0)) task = weft__worker_take_background(w);
    if (!task && __builtin_expect(!weft__inbox_idle(&w->inbox), 0)) task = weft__inbox_take_in_turn(&w->inbox);
    if (!task) task = take_next(w);
    if (!task) {
        task = weft__runq_take_oldest(&w->ring);
        if (task) w->next_streak = 0;
    }
    if (!task) task = weft__slot_take(&w->next);
    if (!task) task = weft__overflow_refill(&w->over, &w->over, &w->ring).run;
    if (!task) task = weft__inbox_take(&w->inbox); /* not its turn, but nobody else's either */
    return task;
}

/* ---- poll ---- */

/* Of a task whose result is a signed integer. */
static int64_t result_of(struct weft_task *task)
{
    const struct weft_site *site = task->site;
    const char *at = (const char *)weft__frame_of(task) + site->ret_at;

    switch (site->ret_bytes) {
    case 1: return *(const signed char *)at;
    case 2: return *(const int16_t *)(const void *)at;
    case 4: return *(const int32_t *)(const void *)at;
    default: return *(const int64_t *)(const void *)at;
    }
}

int64_t weft__task_failure(struct weft_task *task)
{
    if (!task->site->ret_signed) return weft__fiber_never_ran(task) ? -ENOMEM : 0;
    int64_t result = result_of(task);
    if (result != -ECANCELED && result != -ETIME) return result < 0 ? result : 0;
    if (result == weft__state_why(weft__state_look(task))) return 0;
    /* relaxed: while a runtime closes all are asked, also whoever the sweep has not come to yet */
    bool closing = load_relaxed(&weft__rt_of(task)->stage) != WEFT__OPEN;
    return closing && result == -ECANCELED ? 0 : result;
}

static __attribute__((noinline)) void end_locals(struct weft__worker *w, struct weft_task *task)
{
    weft__locals_end(task);
    if (w->here->worker != w) weft__orphan_returns(); /* one of their functions forked, and this is the child */
}

static __attribute__((noinline)) void tell_end(struct weft__worker *w, const struct weft_task *task)
{
    if (w->rt->opts.on_task_end) w->rt->opts.on_task_end(w->rt, task);
    if (w->here->worker != w) weft__orphan_returns(); /* the hook forked, and this is the child */
}

/* Somebody else holds the handle, or nobody does. */
static void finish(struct weft__worker *w, struct weft_task *task)
{
    struct weft__join_done done;
    const struct weft_site *site = task->site;
    uint64_t word = weft__join_ending(task);
    int64_t failure = 0;

    do {
        if (word & WEFT__STATE_DETACHED) failure = weft__task_failure(task);
    } while (!weft__join_end(task, &word, &done));
    if (!weft__waker_is_none(done.joiner)) weft__waker_push(done.joiner, &weft__sched);
    if (__builtin_expect(done.watched, 0)) weft__watchers_wake(task, &weft__sched);
    if (__builtin_expect(failure != 0, 0)) weft__unread_add(&w->rt->unread, site, failure);
    if (done.free) weft__task_free_on(w, task);
}

void weft__worker_run(struct weft__worker *w, struct weft_task *task, const struct weft_task *joined)
{
    struct weft__here *here = w->here;
    struct weft_task *outer_task = here->task;
    struct weft_cx *outer_cx = here->cx;
    uint64_t word = weft__state_begin_poll(task);
    struct weft_cx cx = {
        .waker = weft__waker_of(task),
        .why = weft__state_why(word),
        .budget = __builtin_expect(weft__place_look(task) & WEFT__PLACE_NO_BUDGET, 0) ? WEFT__UNBUDGETED : w->budget,
    };

    weft_dassert(!here->fiber); /* on a fiber's stack nothing is run but its own frames */
    here->task = task;
    here->cx = &cx;
    store_relaxed(&task->polls, load_relaxed(&task->polls) + 1); /* relaxed: the poller writes, others only look */
    weft__scribble();
    weft_poll answer = task->site->poll(weft__frame_of(task), &cx);
    if (__builtin_expect(here->worker != w, 0)) weft__orphan_returns(); /* it forked, and this is the child */
    if (answer == WEFT_READY && __builtin_expect(task->ext != NULL, 0)) end_locals(w, task);
    here->task = outer_task;
    here->cx = outer_cx;
    weft__tally(&w->counts.polls, 1);
    if (answer == WEFT_READY) {
        if (__builtin_expect(w->task_hooks, 0)) tell_end(w, task);
        /* [rt-ended] with stop: all that it spawned is counted. Before the joiner can know: who has joined finds it counted. */
        store_release(&w->counts.completed, load_relaxed(&w->counts.completed) + 1); /* relaxed: we alone write it */
        if (task != joined || !weft__state_complete_own(task)) finish(w, task);
    } else if (cx.yielded || weft__state_end_poll(task) == WEFT__STATE_REQUEUE) {
        weft__worker_push_back(w, task);
    }
}

/* ---- the loop ---- */

void weft__worker_main(void *arg)
{
    struct weft__worker *w = arg;
    struct weft_rt *rt = w->rt;
    struct weft_task *task;
    struct weft__altstack altstack;
    bool names_overflows = weft__overflow_thread_init(&altstack) == 0; /* else fibers die without a name */

    w->here = weft__here();
    w->here->worker = w;
    w->here->keeper = &w->keeper;
    w->here->stacks = &rt->stacks;
    w->here->draws = rt->opts.seed + w->index;
    w->stack_lo = weft__thread_stack_lo();
    (void)weft__thread_set_timer_slack(1);
    weft__quit_watch();
    if (rt->opts.on_thread_start) rt->opts.on_thread_start(rt, w->index);
    if (w->here->worker != w) weft__orphan_returns(); /* the hook forked, and this is the child */
    for (;;) {
        task = weft__worker_take(w);
        if (task) {
            /* Behind the read-modify-write that took the task: the look for sleepers that counts. A lone task is not offered. */
            if (weft__runq_length(&w->ring) >= 2) weft__worker_offer(w);
        } else {
            task = weft__worker_find(w);
            if (!task) break;
        }
        weft__worker_run(w, task, NULL);
    }
    weft__spent_flush(w);
    weft__slab_flush(&w->slab);
    w->here->worker = NULL; /* what the hook spawns nobody would run: it is refused as any thread's is */
    w->here->keeper = NULL;
    w->here->stacks = NULL;
    if (rt->opts.on_thread_stop) rt->opts.on_thread_stop(rt, w->index);
    if (names_overflows) weft__overflow_thread_done(&altstack);
}
