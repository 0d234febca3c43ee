/* SPDX-License-Identifier: MIT
 *
 * scope_run - a scope around an arm: the block of stackless tasks.
 *
 *     NEW  -> BODY    [first poll]
 *     BODY -> END     [the arm is over: its failure may be that of the whole]
 *     END  -> over    [no children]
 * In BODY it listens as the end does: what it is told, and the scope's deadline, stop the scope. The arm is told what comes
 * from further out, or else why the scope was stopped, for which a waiter of its own is among the scope's bodies from the first
 * PENDING on. A stop that comes before that waiter is queued, and behind the look, has the arm polled again.
 * Threads: the poller's.
 */
#include "flow/scope.h"

#include "flow/arm.h"

#include <errno.h>

enum { NEW, BODY, BODY_WAITS, END };

static weft_poll over(struct weft_scope_run *f, int ret)
{
    f->ret = ret;
    return WEFT_READY;
}

static weft_poll refuse(struct weft_scope_run *f, weft_cx *cx)
{
    weft__arm_refuse(&f->of, cx, cx->why);
    return over(f, cx->why);
}

/* 0, or why not. */
static int begin(struct weft_scope_run *f, weft_cx *cx)
{
    if (!f->scope || !weft__arm_runs(&f->of)) return -EINVAL;
    if (weft__kin_is_lost(weft__scope_kin(f->scope))) return -ECHILD;
    f->weft__end = (struct weft_scope_join){.scope = f->scope};
    weft__waiter_init(WEFT__LEAF_WAITER(f));
    f->weft__stage = BODY;
    return weft__scope_join_begins(&f->weft__end, cx);
}

static void body_ends(struct weft_scope_run *f)
{
    struct weft__kin *kin = weft__scope_kin(f->scope);
    int failure = weft__arm_gave_up(&f->of) ? 0 : weft__arm_failure(&f->of);

    if (f->weft__stage == BODY_WAITS) weft__kin_body_settle(kin, WEFT__LEAF_WAITER(f));
    f->weft__stage = END;
    if (failure && kin->policy == WEFT__KIN_TOGETHER)
        (void)weft__kin_stop(kin, -ECANCELED, failure);
}

/* True: the arm has to be polled again: the scope was stopped just now. */
static bool stopped_meanwhile(struct weft_scope_run *f, weft_cx *cx, int why)
{
    struct weft__kin *kin = weft__scope_kin(f->scope);

    if (why || f->weft__stage == BODY_WAITS) return false;
    if (!weft__kin_body_begin(kin, WEFT__LEAF_WAITER(f), cx->waker)) return true;
    f->weft__stage = BODY_WAITS;
    return false;
}

/* True: the arm is over. */
static bool body_poll(struct weft_scope_run *f, weft_cx *cx)
{
    int why;

    do { /* twice at most: a scope is stopped once */
        weft__scope_listens(&f->weft__end, cx);
        why = cx->why ? cx->why : weft__kin_reason(weft__scope_kin(f->scope));
        if (weft__arm_poll(&f->of, cx, why, false)) {
            body_ends(f);
            return true;
        }
    } while (stopped_meanwhile(f, cx, why));
    return false;
}

weft_poll weft_scope_run_poll(void *frame, weft_cx *cx)
{
    struct weft_scope_run *f = frame;

    if (cx->probe) return weft__arm_is_refused(cx) ? refuse(f, cx) : WEFT_PENDING;
    if (f->weft__stage == NEW) {
        int r = begin(f, cx);
        if (r < 0) return over(f, r);
    }
    if (f->weft__stage != END && !body_poll(f, cx)) return WEFT_PENDING;
    if (weft_scope_join_poll(&f->weft__end, cx) == WEFT_PENDING) return WEFT_PENDING;
    return over(f, f->weft__end.ret);
}
