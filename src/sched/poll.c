/* SPDX-License-Identifier: MIT
 *
 * poll - the ends of a poll that are rare, or long enough to be called (poll.h).
 */
#include "sched/poll.h"

#include "sync/kin.h"
#include "task/local.h"
#include "task/watchers.h"

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

void weft__poll_end_locals(struct weft__worker *w, struct weft_task *task)
{
    weft__locals_end(task);
    if (w->here->worker != w) weft__orphan_returns(); /* one of their functions forked, and this is the child */
}

void weft__poll_tell_end(struct weft__worker *w, const struct weft_task *task)
{
    if (w->rt->opts.on_task_end) w->rt->opts.on_task_end(w->rt, task);
    if (w->here->worker != w) weft__orphan_returns(); /* the hook forked, and this is the child */
}

/* Somebody else holds the handle; or nobody does, and it failed. */
void weft__poll_finish_seen(struct weft__worker *w, struct weft_task *task, uint64_t word)
{
    struct weft__join_done done;
    const struct weft_site *site = task->site;
    int64_t failure = 0;

    do {
        if (word & WEFT__STATE_DETACHED) failure = weft__task_failure(task);
    } while (!weft__join_end(task, &word, &done));
    if (!weft__waker_is_none(done.joiner)) weft__waker_push(done.joiner, &weft__sched);
    if (__builtin_expect(done.watched, 0)) weft__watchers_wake(task, &weft__sched);
    if (__builtin_expect(failure != 0, 0)) weft__unread_add(&w->rt->unread, site, failure);
    if (done.free) weft__task_free_on(w, task);
}

/* ---- a scope's child ---- */

/* It did what it was there for: not to have been stopped is more than not to have failed. */
static bool has_succeeded(struct weft_task *task)
{
    return task->site->ret_signed ? result_of(task) >= 0 : !weft__fiber_never_ran(task);
}

/* What its scope has to know before it can be over. */
static void tell_scope(struct weft__worker *w, struct weft__kin *kin, struct weft_task *task)
{
    int64_t failure = weft__poll_may_have_failed(task) ? weft__task_failure(task) : 0;

    if (kin->policy == WEFT__KIN_FIRST && has_succeeded(task)) weft__kin_wins(kin);
    if (failure && !weft__kin_fails(kin, (int)failure))
        weft__unread_add(&w->rt->unread, task->site, failure);
}

/* Others refer to it, or its memory is the program's: when the scope is over it is complete, and its block given back. */
static void finish_before_scope(struct weft__worker *w, struct weft__kin *kin,
                                struct weft_task *task, uint64_t word)
{
    struct weft__join_done done;

    weft__kin_unlink(kin, task);
    while (!weft__join_end(task, &word, &done)) {
    }
    if (done.watched) weft__watchers_wake(task, &weft__sched);
    if (done.free) weft__task_free_on(w, task);
    weft__kin_count_down(kin);
}

void weft__poll_finish_scoped(struct weft__worker *w, struct weft_task *task)
{
    struct weft__kin *kin = weft__kin_of(task);

    tell_scope(w, kin, task);
    uint64_t word = weft__join_ending(task);
    if ((word & (WEFT__STATE_REFS | WEFT__STATE_WATCHED)) || weft__slab_pooled(task)) {
        finish_before_scope(w, kin, task, word);
        return;
    }
    weft__kin_leave(kin, task);
    weft__poll_bury(w, task, word);
}
