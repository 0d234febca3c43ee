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
 * Every `tick_max` polls the worker first looks at the inject queue, and every 488 at such a tick it brings its overflow arrays round, whatever it has. At 32 since its last look at the background
 * queue at the latest, and not before 16, it looks there, whatever it found. Tasks of its inbox and those of its ring take turns, one by one. (To take from the inbox needs no read-modify-write, so the look behind it may be
 * old; a ring that has something to offer has its turn, and its look, at the next poll.)
 * Of a long ring it takes some at once, into its hand (slot.h), and runs one after the other: they are its oldest, so the order is the ring's, and they go before a
 * dive, too. Not where nobody would see that it is stuck with them.
 * The read-modify-write that takes tasks from the ring is the fence before the look for sleepers that counts (idle.h); behind the slot, which is emptied by a
 * store, the look has one of its own.
 * Threads: the owner, but for push from outside. Locks: none held while a task runs.
 */
#include "sched/poll.h"

#include "task/overflow.h"

/* Times in a row that `next` goes before a ring that has something. Doubled: two tasks that wake each other starve the ring twice as long. */
#define NEXT_STREAK_MAX 3

/* Polls between two times that the overflow arrays are brought round, at a tick: eight of 61, and about twice what a ring holds, since what has come in must have its turn before it goes
 * out again; else the same tasks miss theirs each time, and starve. It moves 250 tasks: halved, a thousand yielding tasks pay for it at each poll; doubled, those in the arrays wait twice
 * as long for those in the ring. */
#define ROUND_POLLS 488
_Static_assert(ROUND_POLLS > WEFT__RUNQ_CAP + WEFT__RUNQ_CAP / 2, "all that is in the ring runs between two rounds");

/* Ticks after which the ring's oldest has its turn, however deep fibers that join are (join.c): about 1,000 polls, as for tasks that run inside of joins. */
#define DIVED_MAX 16

/* ---- push ---- */

static __attribute__((noinline)) void push_ring_slow(struct weft__worker *w, struct weft_task *task)
{
    if (weft__overflow_spill(&w->over, &w->ring) >= 0 && weft__runq_push(&w->ring, task)) {
        weft__tally(&w->counts.spills, 1);
        return;
    }
    weft__inject_push(&w->rt->inject, task); /* no memory for an array: the inject queue needs none */
    fence_seq_cst();                         /* [idle-sb] with sleep: as any push from outside */
}

static inline void push_ring(struct weft__worker *w, struct weft_task *task)
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

void weft__worker_push_behind(struct weft__worker *w, struct weft_task *before)
{
    push_ring(w, before);
    if (weft__runq_holds(&w->ring, 2)) weft__worker_offer_pushed(w);
}

static __attribute__((noinline)) void push_before_others(struct weft__worker *w, struct weft_task *task)
{
    weft__worker_push_next(w, task);
}

/* Whatever needs a call is the end of a path: so the usual one, of a wake that finds the slot empty, saves no registers. */
static inline void push_here(struct weft__worker *w, struct weft_task *task)
{
    if (__builtin_expect(weft__is_placed(task), 0)) {
        weft__place_push(w->rt, w, task, true);
    } else if (!weft__slot_try_put(&w->next, task)) {
        push_before_others(w, task);
    }
}

void weft__worker_push(struct weft__worker *w, struct weft_task *task)
{
    push_here(w, task);
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
static __attribute__((noinline)) void push_held(struct weft_rt *rt, struct weft_task *task)
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
        push_here(w, task);
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
    if (w && weft__runq_holds(&w->ring, 2)) weft__worker_offer_pushed(w);
}

static const struct weft__sched_ops ops = {.push = push_anywhere, .push_chain = push_chain_anywhere};
const struct weft__sched weft__sched = {.ops = &ops};

/* ---- take ---- */

/* The overflow arrays are brought round. Gives one of their tasks, to run; NULL: they were empty. */
static struct weft_task *take_round(struct weft__worker *w)
{
    w->round = 0;
    if (weft__runq_holds(&w->ring, WEFT__RUNQ_CAP / 2 + 1)) (void)weft__overflow_spill(&w->over, &w->ring);
    return weft__overflow_refill(&w->over, &w->ring).run;
}

/* The fairness tick: what lies in the inject queue or behind a ring that never runs dry gets its turn. */
static struct weft_task *take_in_turn(struct weft__worker *w)
{
    w->round += w->tick;
    w->tick = 0;
    w->inline_ticks = 0;
    if (++w->dived >= DIVED_MAX) {
        w->dived = 0;
        w->oldest_due = true; /* and not only `dive` cleared: whoever is taken before it may dive again */
        w->next_streak = NEXT_STREAK_MAX;
    }
    (void)weft__slot_is_shared(&w->next);
    weft__shard_turn(w->shard, w->index);
    weft__worker_judge_gait(w);
    weft__theft_tick(w);
    (void)weft__worker_look(w);
    (void)weft__io_turn(w, w->shard->port);
    struct weft_task *task = weft__worker_take_inject(w);
    if (w->round < ROUND_POLLS || weft__overflow_count(&w->over) == 0) return task;
    struct weft_task *spilled = take_round(w);
    if (!task) return spilled;
    if (spilled) weft__worker_push_back(w, spilled); /* an inject queue that is never empty does not hold the arrays up */
    return task;
}

/* The next stretch ends with the tick, or when the background queue has waited long enough. */
void weft__worker_stretch(struct weft__worker *w)
{
    uint32_t left = w->tick < w->tick_max ? w->tick_max - w->tick : 1;
    uint32_t behind = WEFT__BACKGROUND_TICKS - w->background_tick;
    w->stretch.length = left < behind ? left : behind;
    w->stretch.left = w->stretch.length;
}

/* Not at the end of each stretch: a short tick, and timers that are armed, make them as short as one poll, and those in the background would have every other. */
static struct weft_task *take_background_in_turn(struct weft__worker *w)
{
    if (w->background_tick < WEFT__BACKGROUND_TICKS / 2) return NULL;
    w->background_tick = 0;
    return weft__worker_take_background(w);
}

/* The stretch is over: who is not in its ring? */
static __attribute__((noinline)) struct weft_task *look_elsewhere(struct weft__worker *w)
{
    w->tick += w->stretch.length;
    w->background_tick += w->stretch.length;
    weft__worker_look_hurried(w);
    struct weft_task *task = w->tick >= w->tick_max ? take_in_turn(w) : NULL;
    struct weft_task *behind = take_background_in_turn(w);
    weft__worker_stretch(w);
    if (!behind) return task;
    if (task) weft__worker_push_back(w, task); /* an inject queue that is never empty is no reason to pass over the other */
    return behind;
}

/* Behind the read-modify-write that took the task: the look for sleepers that counts. (Behind one of the hand it is a hint: the next that counts is as many polls
 * away, at most, as the hand has tasks.) A lone task is not offered. */
static inline struct weft_task *taken(struct weft__worker *w, struct weft_task *task)
{
    if (weft__runq_holds(&w->ring, 2)) weft__worker_offer(w, true);
    return task;
}

static inline struct weft_task *taken_from_slot(struct weft__worker *w, struct weft_task *task)
{
    if (weft__runq_holds(&w->ring, 2)) weft__worker_offer(w, false);
    return task;
}

_Static_assert(WEFT__HAND_LEAST >= 1 + WEFT__HAND + 2, "what is left is enough to be offered");

static __attribute__((noinline)) struct weft_task *deal(struct weft__worker *w)
{
    struct weft_task *got[1 + WEFT__HAND];
    uint32_t count = weft__runq_take_many(&w->ring, 1 + WEFT__HAND, got);
    if (count == 0) return NULL;
    weft__slot_deal(&w->next, got + 1, count - 1);
    return got[0];
}

/* Its hand is empty. */
static inline struct weft_task *take_from_ring(struct weft__worker *w)
{
    if (weft__runq_holds(&w->ring, WEFT__HAND_LEAST) && w->deals && !weft__slot_is_shared(&w->next)) return deal(w);
    return weft__runq_take_oldest(&w->ring);
}

/* Somebody waits for a child that has not begun: the newest, unless it has, or the oldest is due. */
static __attribute__((noinline)) struct weft_task *take_diving(struct weft__worker *w)
{
    if (w->oldest_due) {
        w->oldest_due = false;
        w->dive = 0;
        return weft__runq_take_oldest(&w->ring);
    }
    struct weft_task *task = weft__runq_take_newest(&w->ring);
    w->dive--;
    if (!task || load_relaxed(&task->polls) == 0) return task; /* relaxed: the taker holds the right to poll */
    w->dive = 0;
    weft__worker_push_back(w, task);
    return weft__runq_take_oldest(&w->ring);
}

static inline bool others_wait(struct weft__worker *w)
{
    return weft__slot_has_hand(&w->next) || weft__runq_holds(&w->ring, 1);
}

/* May `next` go before the ring? Where nobody waited at the end of a streak, another one begins. */
static inline bool next_may(struct weft__worker *w)
{
    if (__builtin_expect(w->next_streak < NEXT_STREAK_MAX, 1)) return true;
    if (others_wait(w)) return false;
    w->next_streak = 0;
    return true;
}

/* From slot or ring. */
static inline struct weft_task *take_queued(struct weft__worker *w)
{
    struct weft_task *task;
    if (next_may(w)) {
        task = weft__slot_take(&w->next);
        if (task) {
            w->next_streak++;
            return taken_from_slot(w, task);
        }
    }
    task = weft__slot_play(&w->next);
    if (!task) task = __builtin_expect(w->dive > 0, 0) ? take_diving(w) : take_from_ring(w);
    if (!task) return NULL;
    w->next_streak = 0;
    return taken(w, task);
}

static __attribute__((noinline)) struct weft_task *take_rest(struct weft__worker *w)
{
    struct weft_task *task = weft__slot_take(&w->next);
    if (task) return taken_from_slot(w, task);
    task = weft__overflow_refill(&w->over, &w->ring).run;
    if (!task) task = weft__inbox_take(&w->inbox); /* not its turn, but nobody else's either */
    return task ? taken(w, task) : NULL;
}

static inline __attribute__((always_inline)) struct weft_task *take(struct weft__worker *w)
{
    struct weft_task *task = NULL;
    if (__builtin_expect(--w->stretch.left == 0, 0)) task = look_elsewhere(w);
    if (!task && __builtin_expect(!weft__inbox_idle(&w->inbox), 0)) task = weft__inbox_take_in_turn(&w->inbox);
    if (__builtin_expect(task != NULL, 0)) return taken(w, task);
    task = take_queued(w);
    return __builtin_expect(task != NULL, 1) ? task : take_rest(w);
}

struct weft_task *weft__worker_take(struct weft__worker *w)
{
    return take(w);
}

/* ---- the loop ---- */

/* Part of the loop, however long it grows: as a function of its own it costs 20 instructions more. */
static inline __attribute__((always_inline)) void run(struct weft__worker *w, struct weft__here *here, struct weft_task *task)
{
    struct weft_cx cx;
    weft_poll answer = weft__poll_call(w, here, task, &cx);
    here->task = NULL;
    here->cx = NULL;
    if (answer == WEFT_READY) {
        weft__poll_ready(w, task);
        weft__poll_finish(w, task);
    } else {
        weft__poll_left(w, task, &cx);
    }
}

uint64_t weft__worker_run(struct weft__worker *w, struct weft_task *task, uint64_t most)
{
    struct weft__here *here = w->here;
    uint64_t left = most;
    for (; left > 0; left--) {
        if (!task) task = take(w);
        if (!task) break;
        run(w, here, task);
        task = NULL;
    }
    return most - left;
}

void weft__worker_main(void *arg)
{
    struct weft__worker *w = arg;
    struct weft_rt *rt = w->rt;
    struct weft__altstack altstack;

    if (!weft__rt_await_opening(rt)) return;
    bool names_overflows = weft__overflow_thread_init(&altstack) == 0; /* else fibers die without a name */

    w->here = weft__here();
    w->here->worker = w;
    w->here->number = w->number;
    w->here->keeper = &w->keeper;
    w->here->stacks = &rt->stacks;
    w->here->magazine = &w->magazine;
    w->here->draws = rt->opts.seed + w->index;
    struct weft__thread_stack stack = weft__thread_stack();
    weft__worker_inlines_on(w, stack.lo, stack.bytes);
    (void)weft__thread_set_timer_slack(1);
    weft__quit_watch();
    if (rt->opts.on_thread_start) rt->opts.on_thread_start(rt, w->index);
    if (w->here->worker != w) weft__orphan_returns(); /* the hook forked, and this is the child */
    weft__rt_begins(rt);
    for (struct weft_task *task = NULL;;) {
        (void)weft__worker_run(w, task, WEFT__ALL);
        task = weft__worker_find(w);
        if (!task) break;
    }
    weft__spent_flush(w);
    weft__slab_flush(&w->slab);
    w->here->number = 0;
    w->here->worker = NULL; /* what the hook spawns nobody would run: it is refused as any thread's is */
    w->here->entered = NULL; /* by a task, which did not leave it, or on another thread; it may be gone */
    w->here->keeper = NULL;
    w->here->stacks = NULL;
    w->here->magazine = NULL;
    if (rt->opts.on_thread_stop) rt->opts.on_thread_stop(rt, w->index);
    if (names_overflows) weft__overflow_thread_done(&altstack);
}
