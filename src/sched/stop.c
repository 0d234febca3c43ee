/* SPDX-License-Identifier: MIT
 *
 * stop - shutdown: a gate, then sweeps.
 *
 *     1  stage = CLOSING: tasks are born cancelled, threads outside are refused
 *     2  is nobody inside the gate, nor inside on_thread_start? Then what they spawned is in the registry
 *     3  sweep the registry: cancel every task that lives and lacks the bit, push those that slept
 *     4  if any lived, or somebody was inside, let them run and go on with 2: who is inside a spawn may wait for a task
 *     5  a sweep that began after the gate was empty found none, and as many have ended as were spawned: done
 * Every task starts, even so, meets -ECANCELED at its first await and unwinds. A worker that spawns while its look at the stage is old makes a task that is not
 * cancelled; the running task that spawned it lives, so another sweep follows. A sweep alone does not tell that nobody lives: a task can spawn into a block
 * that the sweep has passed, and end before the sweep comes to its own. What does not stop by the deadline is named and left alone: it may be
 * running, and nothing is ever freed under itself.
 */
#include "sched/stop.h"

#include "base/err.h"
#include "sched/gate.h"
#include "sched/snapshot.h"
#include "sys/clock.h"

#include <errno.h>
#include <stdio.h>

/* Tasks that are named. Doubled: a server whose clients all hang fills twice as many screens. */
#define NAMED_MAX 32

struct sweep {
    struct weft_rt *rt;
    uint64_t live;
    uint64_t named;
    bool name_them;
};

/* It may end at any moment: then there is nothing to say. True: something was said. */
static bool name_it(const struct weft_task *task, uint64_t state)
{
    struct weft__snapshot s;
    char scope[WEFT__SNAPSHOT_SCOPE_TEXT];
    int r = weft__snapshot_take(task, state, &s);
    if (r == 0) {
        fprintf(stderr, "weft: task '%s' (spawned at %s:%u%s) does not stop\n", s.name, s.file,
                s.site.line, weft__snapshot_scope(&s, scope));
    } else if (r != -ESRCH) {
        fprintf(stderr, "weft: a task does not stop; its name cannot be read: %s\n", weft__err_name(r));
    }
    return r != -ESRCH;
}

static int visit(void *ctx, void *block, uint64_t state)
{
    struct sweep *s = ctx;
    struct weft_task *task = block;
    if (state & WEFT__STATE_COMPLETE) return 0;
    s->live++;
    if (s->name_them && s->named < NAMED_MAX) s->named += name_it(task, state);
    if (weft__state_cancel_id(task, weft__state_generation_of(state)) == WEFT__STATE_ENQUEUE) weft__rt_push_outside(s->rt, task, task);
    return 0;
}

/* Whoever was met had ended before it could be named, and others were there. */
static void say_they_breed(void)
{
    fprintf(stderr, "weft: tasks that spawn others and end do not stop\n");
}

static uint64_t sweep_once(struct weft_rt *rt, bool name_them)
{
    struct sweep s = {.rt = rt, .name_them = name_them};
    (void)weft__slab_walk(&rt->blocks, visit, &s);
    if (s.named == NAMED_MAX && s.live > NAMED_MAX) fprintf(stderr, "weft: %llu more tasks do not stop\n", (unsigned long long)(s.live - NAMED_MAX));
    if (name_them && s.live > 0 && s.named == 0) say_they_breed();
    return s.live;
}

/* Has every task ended that was ever spawned? The ends are read first: then each spawn by a task whose end was seen is seen as well, and
 *     ends as read <= ends at the moment between <= spawns at that moment <= spawns as read
 * so that equal means none was alive at that moment, and nobody was there to spawn another. */
static bool all_ended(const struct weft_rt *rt)
{
    uint64_t ends = 0;
    uint64_t spawns = 0;
    for (uint32_t i = 0; i < rt->worker_count; i++) ends += load_acquire(&rt->workers[i].counts.completed); /* [rt-ended] with finish */
    for (uint32_t i = 0; i < rt->worker_count; i++) spawns += load_relaxed(&rt->workers[i].counts.spawned); /* relaxed, both: ordered by the acquires, */
    spawns += load_relaxed(&rt->spawned_outside);                                                           /* and by the gate */
    return ends == spawns;
}

/* Is every worker past its on_thread_start? A hook spawns on no task's behalf: one that comes late would spawn behind the last sweep. */
static bool all_begun(const struct weft_rt *rt)
{
    if (rt->current_thread || !rt->opts.on_thread_start) return true;
    return load_acquire(&rt->begun) == rt->worker_count; /* [rt-begun] with begins */
}

/* Between two sweeps: a current-thread runtime is turned, others are given a moment. */
static void let_them_run(struct weft_rt *rt, unsigned round)
{
    _Atomic uint32_t nobody = 0;
    int64_t pause_ns = round < 10 ? 50000 : WEFT__NS_PER_MS;
    if (rt->current_thread && weft_rt_turn(rt, pause_ns) >= 0) return; /* else another thread turns it */
    (void)weft__futex_wait(&nobody, 0, weft__clock_now() + pause_ns);
}

/* Time is up: names them. Nobody there to be named: they have ended just now, or dodge the sweeps. */
static int give_up(struct weft_rt *rt)
{
    bool begun = all_begun(rt);
    bool outside = !weft__gate_is_empty(rt);
    if (!begun) fprintf(stderr, "weft: on_thread_start of '%s' does not return\n", rt->name);
    if (outside) fprintf(stderr, "weft: a thread does not finish the arguments of its spawn into '%s'\n", rt->name);
    if (sweep_once(rt, true) == 0 && begun && !outside) {
        if (all_ended(rt)) return 0;
        say_they_breed();
    }
    return -ETIME;
}

/* One sweep, whoever is still about. */
static bool is_over(struct weft_rt *rt)
{
    bool nobody_outside = weft__gate_is_empty(rt) && all_begun(rt);
    uint64_t live = sweep_once(rt, false);
    return nobody_outside && live == 0 && all_ended(rt);
}

int weft__stop_tasks(struct weft_rt *rt, int64_t timeout_ns)
{
    int64_t until = weft__clock_later(weft__clock_now(), timeout_ns);
    weft__gate_shut(rt);
    for (unsigned round = 0; !is_over(rt); round++) {
        if (weft__clock_now() >= until) return give_up(rt);
        let_them_run(rt, round);
    }
    return 0;
}

/* ---- who stops ---- */

/* Does this thread stand inside a poll of the runtime's, directly or below turns of others that such a poll makes? Or is it one of its blocking pool? */
static bool is_inside(const struct weft_rt *rt)
{
    for (const struct weft__worker *w = weft__here()->worker; w; w = w->outer)
        if (w->rt == rt) return true;
    return weft__blocking_is_thread_of(&rt->blocking);
}

int weft__stop_begins(struct weft_rt *rt)
{
    if (is_inside(rt) && !weft__rt_is_lost(rt)) return -EDEADLK;
    int r = weft__fork_stops(rt);
    if (r == -EINVAL)
        fputs("weft: weft_rt_stop: there is no such runtime; was it stopped before?\n", stderr);
    return r;
}
