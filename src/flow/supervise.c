/* SPDX-License-Identifier: MIT
 *
 * supervise - children that are started anew when one of them has failed, so many times within so long.
 *
 * A scope with one outcome for each start, in a loop: all else is the scope's. The times of the last restarts are kept, as
 * many as there may be, so that the window is exact: one more is too many if the oldest of them lies within it.
 * Threads: the poller's. Rejected: counting in windows that begin anew (twice as many restarts around their border); a
 * supervisor that knows its children one by one (a list of them, and of what to do with each: a scope of supervisors is that).
 */
#include "flow/scope.h"
#include "task/call.h"
#include "types.h"

#include <weft/time.h>

#include <errno.h>

/* Counts it. False: one too many. */
static bool may_restart(struct weft_supervise *f)
{
    weft_time now = weft_now();
    if (f->restarts == 0) return false;

    weft_time *oldest = &f->weft__when[f->weft__count % f->restarts];
    bool many = f->weft__count >= f->restarts;
    if (many && (f->within == 0 || now - *oldest <= f->within)) return false;
    *oldest = now;
    f->weft__count++;
    return true;
}

static void start(struct weft_supervise *f)
{
    weft_scope_init(&f->weft__scope, .error = &f->weft__error);
    int r = f->start(&f->weft__scope, f->arg);
    if (r < 0) (void)weft_scope_fail(&f->weft__scope, r);
}

weft_async(weft_supervise)
{
    weft_begin;
    if (!f->start || f->restarts > WEFT_RESTARTS_MAX || f->within < 0) weft_return(-EINVAL);
    for (;;) {
        start(f);
        weft_await(f->weft__end, weft_scope_join, &f->weft__scope);
        if (weft__cx->why) weft_return(weft_cx_cancelled(weft__cx));
        if (f->weft__error == 0 || !may_restart(f)) weft_return(f->weft__error);
        weft_await(f->weft__sleep, weft_sleep,
                   f->pause); /* none costs budget: no loop without end in one poll */
        if (f->weft__sleep.ret < 0) weft_return(f->weft__sleep.ret);
    }
    weft_end;
}

int weft__supervise(int (*fn)(weft_scope *scope, void *arg), void *arg, uint32_t restarts,
                    weft_time within)
{
    struct weft_supervise f = {.start = fn, .arg = arg, .restarts = restarts, .within = within};
    int r = weft__run_from(weft_supervise_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}
