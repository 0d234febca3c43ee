/* SPDX-License-Identifier: MIT
 *
 * poll - one poll of a task on its worker, and what follows from it.
 *
 *     weft__poll_call      the poll
 *     weft__poll_left      PENDING: the task waits, or goes to the ring's tail
 *     weft__poll_ready     READY: it is counted as ended;
 *     weft__poll_finish    its joiner is woken, its watchers too, its block freed if nobody has it
 * The loop makes polls one after the other (worker.c), a join makes them inside of another (join.c). They are inline, because half of what a
 * small task costs would else be the saving of registers.
 * Threads: the worker. Locks: none held while a task runs.
 */
#ifndef WEFT_SCHED_POLL_H
#define WEFT_SCHED_POLL_H

#include "sched/sched.h"
#include "task/fiber.h"
#include "task/frame.h"
#include "task/holds.h"
#include "task/lent.h"
#include "task/linked.h"
#include "task/orphan.h"

#include <errno.h>

/* The rare ends; poll.c. */
void weft__poll_end_locals(struct weft__worker *w, struct weft_task *task);
void weft__poll_tell_end(struct weft__worker *w, const struct weft_task *task);
void weft__poll_finish_seen(struct weft__worker *w, struct weft_task *task, uint64_t word);
void weft__poll_finish_scoped(struct weft__worker *w, struct weft_task *task);

/* What few tasks are. Gives the frame. */
static inline void *weft__poll_unusual(struct weft_task *task, struct weft_cx *cx)
{
    if (weft__place_look(task) & WEFT__PLACE_NO_BUDGET) cx->budget = WEFT__UNBUDGETED;
    return weft__frame_of(task);
}

/* The poll itself, with `here` telling of it. `cx` is the caller's, who then puts back what `here` told before. */
static inline weft_poll weft__poll_call(struct weft__worker *w, struct weft__here *here, struct weft_task *task, struct weft_cx *cx)
{
    void *frame = task + 1;
    weft_dassert(!here->fiber); /* on a fiber's stack nothing is run but its own frames */
    *cx = (struct weft_cx){.waker = weft__waker_of(task), .why = 0, .budget = w->budget};
    uint64_t word = weft__state_begin_poll(task);
    if (__builtin_expect(word & WEFT__STATE_CANCELLED, 0)) cx->why = weft__state_why(word);
    if (__builtin_expect(weft__place_look(task) & (WEFT__PLACE_NO_BUDGET | WEFT__PLACE_BOXED), 0)) frame = weft__poll_unusual(task, cx);
    here->task = task;
    here->cx = cx;
    own_add(&task->polls, 1); /* the poller writes, others only look */
    weft__scribble();
    weft_poll answer = task->site->poll(frame, cx);
    if (__builtin_expect(here->worker != w, 0)) weft__orphan_returns(); /* it forked, and this is the child */
    weft__tally(&w->counts.polls, 1);
    if (answer == WEFT_READY && __builtin_expect(task->ext != NULL, 0)) weft__poll_end_locals(w, task);
    return answer;
}

/* It answered PENDING. */
static inline void weft__poll_left(struct weft__worker *w, struct weft_task *task, const struct weft_cx *cx)
{
    if (!cx->yielded && weft__state_end_poll(task) != WEFT__STATE_REQUEUE) return;
    if (__builtin_expect(cx->deaf, 0)) weft__deaf_seen(&w->rt->deaf, task);
    weft__worker_push_back(w, task);
}

/* It answered READY: what is done for any task that ends, before anybody can know. */
static inline void weft__poll_ready(struct weft__worker *w, struct weft_task *task)
{
    weft__lent_check(weft__frame_of(task), task->site->frame_bytes, task);
    weft__linked_check(task);
    weft__holds_check(task);
    if (__builtin_expect(w->task_hooks, 0)) weft__poll_tell_end(w, task);
    /* [rt-ended] with stop: all that it spawned is counted. Before the joiner can know: who has joined finds it counted. */
    own_add_release(&w->counts.completed, 1);
}

/* Might it have failed? No for most: then nobody has to be told. */
static inline bool weft__poll_may_have_failed(struct weft_task *task)
{
    const struct weft_site *site = task->site;
    const void *at = (const char *)weft__frame_of(task) + site->ret_at;
    if (!site->ret_signed) return weft__fiber_never_ran(task);
    if (site->ret_bytes == 4) return *(const int32_t *)at < 0;
    return site->ret_bytes != 8 || *(const int64_t *)at < 0;
}

/* A task that nobody looks at any more: its life ends with its poll. `word` is of weft__join_ending. */
static inline void weft__poll_bury(struct weft__worker *w, struct weft_task *task, uint64_t word)
{
    if (__builtin_expect(weft__has_extras(task), 0)) weft__task_strip(task);
#if defined(WEFT_DEBUG)
    if (weft__spent_waits(task)) {
        (void)weft__state_complete_unseen(task, word);
        task = weft__spent_put(&w->spent, task);
        if (!task) return;
        word = weft__state_look(task);
    }
#endif
    weft__state_end_free(task, word);
    weft__slab_free(&w->slab, task);
}

/* Behind weft__poll_ready. */
static inline void weft__poll_finish(struct weft__worker *w, struct weft_task *task)
{
    if (__builtin_expect(task->scope != 0, 0)) {
        weft__poll_finish_scoped(w, task);
        return;
    }
    uint64_t word = weft__join_ending(task);
    if ((word & (WEFT__STATE_REFS | WEFT__STATE_WATCHED)) == 0) {
        if (!weft__poll_may_have_failed(task)) {
            weft__poll_bury(w, task, word);
            return;
        }
    } else if (!(word & (WEFT__STATE_JOINER | WEFT__STATE_DETACHED | WEFT__STATE_WATCHED))) {
        if (weft__join_end_alone(task, &word)) return;
    }
    weft__poll_finish_seen(w, task, word);
}

#endif
