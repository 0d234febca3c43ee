/* SPDX-License-Identifier: MIT
 *
 * once - one does it, the others wait until it is done, or until it is their turn to try.
 *
 *     NEW  -> RUNS   [enter]            the first to come
 *     RUNS -> DONE   [leave(true)]      wakes all
 *     RUNS -> NEW    [leave(false)]     nobody waits
 *     RUNS -> NEXT   [leave(false)]     wakes the first; it is kept for that one: who comes later stands in line
 *     NEXT -> RUNS   [enter]            by who has the turn
 *     NEXT -> NEXT, NEW   [give up]     by the same: the turn goes to the next, or there is none
 * The doing lies between two calls, so it may await, and be of either kind.
 *
 * Threads: any. LOCK ORDER: its waitlist alone. Pairs: [once] leave -> enter, is_done: what was done.
 * Rejected: a function to call (a second form of it for stackless code, and a frame for that to live in).
 */
#include "limits.h"
#include "sync/holder.h"
#include "sync/leaf.h"
#include "task/call.h"

#include <weft/sync.h>
#include <weft/time.h>

#include <errno.h>

enum { NEW, RUNS, NEXT, DONE };

struct once {
    struct weft__waitlist list;
    _Atomic uint32_t state; /* written under the lock        [once] */
    uint32_t
        looked; /* when it was last asked whether the holder lives; a coarse time  [list.lock] */
    struct weft__holder holder; /* who is at it               [holder; others look] */
};
_Static_assert(sizeof(struct once) <= sizeof(weft_once), "a once fits its place");

static struct once *once_of(const weft_once *once)
{
    return (struct once *)(uintptr_t)once;
}

static bool is_done(const struct once *o)
{
    return load_acquire(&o->state) == DONE; /* [once] with leave: what was done */
}

bool weft_once_is_done(const weft_once *once)
{
    return is_done(once_of(once));
}

static weft_poll ends(struct weft_once_enter *f, int ret)
{
    f->weft__at = 0;
    f->ret = ret;
    return WEFT_READY;
}

/* Holds: the lock. 0, 1; -EBUSY: somebody is at it, or will be. */
static int try_enter(struct once *o, const char *at, bool has_turn)
{
    uint32_t state = load_relaxed(&o->state); /* relaxed, all: under the lock */
    if (state == DONE) return 0;
    if (state == RUNS || (state == NEXT && !has_turn)) return -EBUSY;
    store_relaxed(&o->state, RUNS);
    weft__holder_take(&o->holder, at);
    return 1;
}

/* Holds: the lock. Is it time to ask whether the holder lives? */
static bool time_to_look(struct once *o, int64_t now)
{
    uint32_t coarse = (uint32_t)(now / WEFT__MUTEX_PATIENCE_NS);
    bool is = o->looked != coarse;
    o->looked = coarse;
    return is;
}

static weft_poll begins(struct weft_once_enter *f, weft_cx *cx)
{
    struct once *o = once_of(f->once);

    if (!cx->among && weft__holder_is_me(&o->holder))
        return ends(f, weft__holder_misuse(&o->holder, "a once is entered once more",
                                           f->weft__caller, -EDEADLK));
    int64_t now = weft_now(); /* without the lock */
    bool look = false;
    weft__waiter_init(WEFT__LEAF_WAITER(f));
    weft__leaf_lock(&o->list);
    int r = try_enter(o, f->weft__caller, false);
    if (r == -EBUSY && !cx->probe) {
        f->weft__at = WEFT__LEAF_WAITS;
        weft__waitlist_add(&o->list, WEFT__LEAF_WAITER(f), cx->waker);
        look = time_to_look(o, now);
    }
    weft__waitlist_unlock(&o->list);
    if (look) (void)weft__holder_report_ended(&o->holder, "once", o); /* it waits: it is there */
    return r == -EBUSY ? WEFT_PENDING : ends(f, r);
}

/* Holds: the lock. It has failed, or who was to try has given up: the first in line is next. */
static void next_tries(struct once *o, struct weft__wake_chain *chain)
{
    bool next = weft__waitlist_give_turn(&o->list, chain);
    store_relaxed(&o->state, next ? NEXT : NEW); /* relaxed: under the lock */
}

/* A turn that nobody uses goes on, if it is one to try. */
static weft_poll gives_up(struct weft_once_enter *f, weft_cx *cx)
{
    struct once *o = once_of(f->once);
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    weft__leaf_lock(&o->list);
    bool had_turn = weft__waitlist_settle(&o->list, WEFT__LEAF_WAITER(f));
    /* relaxed: under the lock */
    if (had_turn && load_relaxed(&o->state) == NEXT) next_tries(o, &chain);
    weft__waitlist_unlock_push(&o->list, &chain, &weft__sched);
    return ends(f, weft_cx_cancelled(cx));
}

static weft_poll goes_on(struct weft_once_enter *f, weft_cx *cx)
{
    struct once *o = once_of(f->once);
    int r = -EBUSY;

    if (cx->why) return gives_up(f, cx);
    weft__leaf_lock(&o->list);
    if (!weft__waiter_queued(&o->list, WEFT__LEAF_WAITER(f))) {
        (void)weft__waitlist_settle(&o->list, WEFT__LEAF_WAITER(f));
        r = try_enter(o, f->weft__caller, true);
        weft_assert(r >= 0); /* it was kept for this one, or is done */
    }
    weft__waitlist_unlock(&o->list);
    return r == -EBUSY ? WEFT_PENDING : ends(f, r);
}

weft_poll weft_once_enter_poll(void *frame, weft_cx *cx)
{
    struct weft_once_enter *f = frame;

    if (f->weft__at) return goes_on(f, cx);
    if (cx->why) return weft__told_yields(cx) ? WEFT_PENDING : ends(f, weft_cx_cancelled(cx));
    if (!f->once) return ends(f, -EINVAL);
    if (!weft__leaf_may(cx)) return WEFT_PENDING;
    return is_done(once_of(f->once)) ? ends(f, 0) : begins(f, cx);
}

int weft__once_enter(weft_once *once, const char *caller)
{
    struct weft_once_enter f = {.once = once, .weft__caller = caller};
    int r = weft__run_from(weft_once_enter_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

static int leave(struct once *o, bool done, const char *caller)
{
    if (!weft__holder_is_me(&o->holder))
        return weft__holder_misuse(&o->holder, "a once is left", caller, -EPERM);
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    weft__leaf_lock(&o->list);
    weft__holder_leave(&o->holder);
    if (done) {
        store_release(&o->state, DONE); /* [once] with is_done */
        (void)weft__waitlist_unlock_wake_all(&o->list, &weft__sched);
    } else {
        next_tries(o, &chain);
        weft__waitlist_unlock_push(&o->list, &chain, &weft__sched);
    }
    return 0;
}

int weft__once_leave(weft_once *once, bool done, const char *caller)
{
    return once ? leave(once_of(once), done, caller) : -EINVAL;
}

/* ---- cell ------------------------------------------------------------------------------------------ */

weft_poll weft_cell_enter_poll(void *frame, weft_cx *cx)
{
    struct weft_cell_enter *f = frame;
    struct weft_once_enter *enter = &f->weft__enter;

    if (!f->cell) {
        f->ret = -EINVAL;
        return WEFT_READY;
    }
    if (!f->weft__at)
        *enter =
            (struct weft_once_enter){.once = &f->cell->weft__once, .weft__caller = f->weft__caller};
    weft_poll answer = weft_once_enter_poll(enter, cx);
    f->weft__at = enter->weft__at;
    f->ret = enter->ret;
    if (answer == WEFT_READY && f->ret == 0 && f->into) *f->into = f->cell->weft__value;
    return answer;
}

int weft__cell_enter(weft_cell *cell, void **into, const char *caller)
{
    struct weft_cell_enter f = {.cell = cell, .into = into, .weft__caller = caller};
    int r = weft__run_from(weft_cell_enter_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

int weft__cell_leave(weft_cell *cell, void *value, const char *caller)
{
    if (!cell) return -EINVAL;
    struct once *o = once_of(&cell->weft__once);
    if (weft__holder_is_me(&o->holder)) cell->weft__value = value;
    return leave(o, value != NULL, caller);
}

void *weft_cell_get(const weft_cell *cell)
{
    return cell && is_done(once_of(&cell->weft__once)) ? cell->weft__value : NULL;
}
