/* SPDX-License-Identifier: MIT
 *
 * place - tasks that do not go anywhere: pinned to a worker, part of a local set, or in the background.
 *
 * The place is in the header (task/place.h), on the line that every push has at hand, and a task without a place
 * pays one branch.
 *     a worker       its inbox (inbox.h); pushed by another thread: that worker is told, and nobody else
 *     background     one queue per runtime, served by workers that find nothing else, not even to steal, and by each worker
 *                    every 32nd poll; one at a time, since nothing of it may lie where it passes for ordinary work
 * A placed task is never in a ring, a slot or an overflow array. A push there would let a thief run it.
 *
 * PIN BLOCKS give a running task a place for a while. PIN_BLOCK says that the place is such
 * a one. The fiber counts the blocks that it is in, and the outermost keeps the place to go back to:
 *     no block       -> PIN_BLOCK, this worker     [outermost enter]     unless it is pinned already
 *     PIN_BLOCK      -> the place before           [outermost leave]
 *     PIN_BLOCK      -> this worker, for life      [weft_local_here; a second fiber of the same task enters]
 * The last line is there because two fibers need not leave in the order they came; a count for each task would need
 * memory, and a block that can fail is none.
 *
 * Threads: a task's place is changed by the task alone. Pairs: [idle-sb].
 * Rejected: the place in `ext` (an allocation per pinned task, and a second line to look at for each push of any
 * task); a queue per local set (a set that is to be scheduled as a whole, and the same thread at the end).
 */
#include "sched/pool.h"
#include "sched/sched.h"

#include "task/fiber.h"

#include <weft/local.h>

/* ---- push ---- */

static void push_home(struct weft_rt *rt, struct weft__worker *w, struct weft_task *task,
                      uint32_t index)
{
    struct weft__worker *home = &rt->workers[index];
    if (home == w) {
        weft__inbox_push(&home->inbox, task);
        return;
    }
    weft__inbox_push_remote(&home->inbox, task);
    if (weft__idle_wake(&rt->idle, index)) weft__rt_unpark(rt, index);
}

static void push_background(struct weft_rt *rt, struct weft_task *task, bool tell)
{
    weft__inject_push(&rt->background, task);
    if (tell) weft__rt_unpark(rt, weft__idle_submit(&rt->idle));
}

void weft__place_push(struct weft_rt *rt, struct weft__worker *w, struct weft_task *task, bool tell)
{
    uint32_t place = weft__place_look(task) & WEFT__PLACE;
    if (place == WEFT__PLACE_BACKGROUND) {
        push_background(rt, task, tell);
    } else {
        push_home(rt, w, task, place - 1);
    }
    if (!w && rt->current_thread) weft__rt_signal(rt);
}

/* ---- take ---- */

/* What it leaves behind may have been seen by a sleeper that trusted us with it: then that one is told. */
struct weft_task *weft__worker_take_background(struct weft__worker *w)
{
    struct weft_rt *rt = w->rt;
    struct weft_task *task = NULL;

    if (weft__inject_idle(&rt->background)) return NULL;
    if (weft__inject_pop(&rt->background, 1, &task) == 0) return NULL;
    if (!weft__inject_idle(&rt->background)) weft__rt_unpark(rt, weft__idle_submit(&rt->idle));
    return task;
}

bool weft__worker_keeps_waiting(struct weft__worker *w)
{
    struct weft_rt *rt = w->rt;
    return !weft__inject_idle(&rt->inject) || !weft__inject_idle(&rt->background) ||
           !weft__inbox_idle(&w->inbox);
}

/* ---- birth ---- */

struct weft_rt *weft__place_rt(const weft_spawn_opts *opts)
{
    return opts->local ? opts->local->rt : opts->rt;
}

/* A pool says itself whose tasks are in it. */
static bool pool_fits(const weft_spawn_opts *opts)
{
    const struct weft_rt *rt = weft__pool_rt(opts->pool);
    const struct weft_rt *asked = weft__place_rt(opts);
    return rt && (!asked || asked == rt);
}

bool weft__place_is_sound(const weft_spawn_opts *opts)
{
    const weft_local *local = opts->local;
    if (opts->background && (opts->pinned || local)) return false;
    if (opts->pool && !pool_fits(opts)) return false;
    if (!local) return true;
    return local->rt && (!opts->rt || opts->rt == local->rt) &&
           local->weft__worker < local->rt->worker_count;
}

static uint32_t home_of(struct weft_rt *rt, const struct weft__worker *w,
                        const weft_spawn_opts *opts)
{
    if (opts->local) return opts->local->weft__worker;
    if (w) return w->index;
    return fetch_add_relaxed(&rt->next_home, 1) % rt->worker_count; /* relaxed: a count */
}

uint32_t weft__place_at_birth(struct weft_rt *rt, const struct weft__worker *w,
                              const weft_spawn_opts *opts)
{
    uint32_t flags = opts->unbudgeted ? WEFT__PLACE_NO_BUDGET : 0;
    if (opts->background) flags |= WEFT__PLACE_BACKGROUND;
    if (opts->pinned || opts->local) flags |= weft__place_home(home_of(rt, w, opts));
    return flags;
}

/* ---- local sets ---- */

weft_local weft_local_here(void)
{
    struct weft__here *here = weft__here();
    weft_local local = {0};
    if (!here->task || !here->worker) return local;
    weft__place_change(here->task, weft__place_home(here->worker->index));
    local.rt = here->worker->rt;
    local.weft__worker = here->worker->index;
    return local;
}

weft_local weft_local_at(weft_rt *rt, unsigned worker)
{
    weft_local local = {0};
    if (!rt) rt = weft_rt_current();
    if (!rt || worker >= rt->worker_count) return local;
    local.rt = rt;
    local.weft__worker = worker;
    return local;
}

bool weft_local_is_here(const weft_local *local)
{
    const struct weft__worker *w = weft__here()->worker;
    return local && w && local->rt == w->rt && local->weft__worker == w->index;
}

/* ---- pin blocks ---- */

static bool is_pinned(uint32_t word)
{
    uint32_t place = word & WEFT__PLACE;
    return place && place != WEFT__PLACE_BACKGROUND;
}

struct weft__pin weft__pin_enter(void)
{
    struct weft__here *here = weft__here();
    struct weft__fiber *f = here->fiber;
    struct weft__pin pin = {.weft__fiber = f, .once = true};

    if (!f || f->pin_blocks++ > 0 || !here->task || !here->worker) return pin;
    uint32_t word = weft__place_look(here->task); /* the place is written by this thread only */
    uint32_t home = weft__place_home(here->worker->index);
    pin.weft__before = word & WEFT__PLACE;
    if (!is_pinned(word)) {
        weft__place_change(here->task, home | WEFT__PLACE_PIN_BLOCK);
    } else if (word & WEFT__PLACE_PIN_BLOCK) {
        weft__place_change(here->task, home); /* by another fiber of this task */
    }
    return pin;
}

void weft__pin_leave(struct weft__pin *pin)
{
    struct weft__fiber *f = pin->weft__fiber;

    if (!f || --f->pin_blocks > 0 || !f->task) return;
    if (weft__place_look(f->task) & WEFT__PLACE_PIN_BLOCK)
        weft__place_change(f->task, (uint32_t)pin->weft__before);
}
