/* SPDX-License-Identifier: MIT
 *
 * cond - wait for a change of what a mutex guards: queue, unlock, be woken, lock.
 *
 *     0       -> WAITS     queued, then unlocked: whoever changes something under the mutex from now on finds it
 *     WAITS   -> RELOCKS   it has a turn, or is to stop; `ret` says which, and is not touched any more
 *     RELOCKS -> 0         the mutex is held again
 * The lock behind the wait is not to be stopped: a caller that comes back holds the mutex, whatever happened. A turn from
 * wake_one is owed to somebody: one that is cancelled with it passes it on.
 *
 * Threads: any. LOCK ORDER: its waitlist alone; the mutex is unlocked and locked with none held.
 */
#include "sync/holder.h"
#include "sync/leaf.h"
#include "sync/mutex.h"
#include "task/call.h"

#include <errno.h>

enum { WAITS = WEFT__LEAF_WAITS, RELOCKS = 3 };

_Static_assert(sizeof(struct weft__waitlist) <= sizeof(weft_cond), "a list fits its place");

static struct weft__waitlist *list_of(weft_cond *cond)
{
    return (struct weft__waitlist *)(void *)cond;
}

void weft_cond_init(weft_cond *cond)
{
    weft__waitlist_init(list_of(cond));
}

void weft__cond_done(weft_cond *cond, const char *caller)
{
    if (cond) weft__leaf_done(list_of(cond), "a condition", caller);
}

void weft_cond_wake_one(weft_cond *cond)
{
    struct weft__waitlist *list = list_of(cond);

    weft__leaf_lock(list);
    struct weft__link *first = weft__list_first(&list->head);
    if (!first) {
        weft__waitlist_unlock(list);
        return;
    }
    weft__container_of(first, struct weft_cond_wait, weft__waiter)->weft__one = cond;
    weft__waitlist_unlock_wake_first(list, &weft__sched);
}

uint32_t weft_cond_wake_all(weft_cond *cond)
{
    weft__leaf_lock(list_of(cond));
    return weft__waitlist_unlock_wake_all(list_of(cond), &weft__sched);
}

/* ---- wait ------------------------------------------------------------------------------------------ */

static weft_poll ends(struct weft_cond_wait *f, int ret)
{
    f->weft__at = 0;
    f->ret = ret;
    return WEFT_READY;
}

static weft_poll begins(struct weft_cond_wait *f, weft_cx *cx)
{
    if (cx->why) return weft__told_yields(cx) ? WEFT_PENDING : ends(f, weft_cx_cancelled(cx));
    if (!f->cond || !f->mutex) return ends(f, -EINVAL);
    if (!weft__mutex_is_mine(f->mutex))
        return ends(f, weft__mutex_misuse(f->mutex, "a condition is waited for without its mutex",
                                          f->weft__caller, -EPERM));
    if (cx->probe) return WEFT_PENDING;
    weft__waiter_init(WEFT__LEAF_WAITER(f));
    f->weft__one = NULL;
    f->weft__at = WAITS;
    weft__leaf_lock(list_of(f->cond));
    weft__waitlist_add(list_of(f->cond), WEFT__LEAF_WAITER(f), cx->waker);
    weft__waitlist_unlock(list_of(f->cond));
    (void)weft__unlock(f->mutex, f->weft__caller);
    return WEFT_PENDING;
}

/* Is the wait over, one way or the other? Then it is in no list. */
static bool woken(struct weft_cond_wait *f, weft_cx *cx)
{
    struct weft__waitlist *list = list_of(f->cond);

    f->ret = cx->why ? weft_cx_cancelled(cx) : 0;
    if (f->ret < 0) {
        if (weft__waitlist_leave(list, WEFT__LEAF_WAITER(f)) && f->weft__one)
            weft_cond_wake_one(f->cond);
        return true;
    }
    if (weft__waiter_take_granted(WEFT__LEAF_WAITER(f))) return true;
    weft__leaf_lock(list);
    bool turn = weft__waiter_has_turn(list, WEFT__LEAF_WAITER(f));
    if (turn) (void)weft__waitlist_settle(list, WEFT__LEAF_WAITER(f));
    weft__waitlist_unlock(list);
    return turn;
}

static weft_poll relocks(struct weft_cond_wait *f, weft_cx *cx)
{
    int why = cx->why;
    cx->why = 0;
    weft_poll answer = weft_lock_poll(&f->weft__lock, cx);
    cx->why = why;
    return answer == WEFT_READY ? ends(f, f->ret) : WEFT_PENDING;
}

weft_poll weft_cond_wait_poll(void *frame, weft_cx *cx)
{
    struct weft_cond_wait *f = frame;

    if (!f->weft__at) return begins(f, cx);
    if (f->weft__at == WAITS) {
        if (!woken(f, cx)) return WEFT_PENDING;
        f->weft__lock = (struct weft_lock){.mutex = f->mutex, .weft__caller = f->weft__caller};
        f->weft__at = RELOCKS;
    }
    return relocks(f, cx);
}

int weft__cond_wait(weft_cond *cond, weft_mutex *mutex, const char *caller)
{
    struct weft_cond_wait f = {.cond = cond, .mutex = mutex, .weft__caller = caller};
    int r = weft__run_from(weft_cond_wait_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}
