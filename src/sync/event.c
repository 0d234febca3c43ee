/* SPDX-License-Identifier: MIT
 *
 * event - a flag, and a count, that many wait for together.
 *
 * Both are one thing: a condition that becomes true under the list's lock, and then wakes all. A waiter looks under the
 * lock only, so that it comes behind whoever made it true, and may free the whole.
 *     wait group: without the lock the count goes down to 1, never to 0
 *
 * Threads: any. LOCK ORDER: its waitlist alone. Pairs: [event] set -> is_set; [wg] finish -> the last one, who wakes.
 * Rejected: a look without the lock for who comes late (it could free the event while the setter still has its lock).
 */
#include "sync/leaf.h"
#include "task/call.h"

#include <weft/sync.h>

#include <errno.h>

struct event {
    struct weft__waitlist list;
    _Atomic uint32_t is_set; /* written under the lock    [event] */
};
_Static_assert(sizeof(struct event) <= sizeof(weft_event), "an event fits its place");

struct wg {
    _Atomic uint64_t count; /* [wg] */
    struct weft__waitlist list;
};
_Static_assert(sizeof(struct wg) == sizeof(weft_wg), "a wait group fits its place");
_Static_assert(offsetof(struct wg, list) == offsetof(weft_wg, weft__list), "as above");

static struct event *event_of(const weft_event *event)
{
    return (struct event *)(uintptr_t)event;
}

static struct wg *wg_of(const weft_wg *wg)
{
    return (struct wg *)(uintptr_t)wg;
}

/* ---- both ------------------------------------------------------------------------------------------ */

/* What both frames are. */
struct wait {
    int32_t at;
    int ret;
    void *of;
    void *weft__waiter[3];
};
_Static_assert(sizeof(struct wait) == sizeof(struct weft_event_wait), "as said");
_Static_assert(sizeof(struct wait) == sizeof(struct weft_wg_wait), "as said");

static weft_poll ends(struct wait *f, int ret)
{
    f->at = 0;
    f->ret = ret;
    return WEFT_READY;
}

typedef bool is_over(const void *of); /* holds: the lock */

static weft_poll begins(struct wait *f, weft_cx *cx, struct weft__waitlist *list, is_over *over)
{
    weft__waiter_init(WEFT__LEAF_WAITER(f));
    weft__leaf_lock(list);
    bool is = over(f->of);
    if (!is && !cx->probe) {
        f->at = WEFT__LEAF_WAITS;
        weft__waitlist_add(list, WEFT__LEAF_WAITER(f), cx->waker);
    }
    weft__waitlist_unlock(list);
    return is ? ends(f, 0) : WEFT_PENDING;
}

static weft_poll goes_on(struct wait *f, weft_cx *cx, struct weft__waitlist *list, is_over *over)
{
    struct weft__waiter *waiter = WEFT__LEAF_WAITER(f);

    if (weft__waiter_take_granted(waiter)) return ends(f, 0);
    weft__leaf_lock(list);
    bool is = weft__waiter_has_turn(list, waiter) || over(f->of);
    if (is || cx->why) (void)weft__waitlist_settle(list, waiter); /* its turn is nobody else's */
    weft__waitlist_unlock(list);
    if (is) return ends(f, 0);
    return cx->why ? ends(f, weft_cx_cancelled(cx)) : WEFT_PENDING;
}

static weft_poll wait_poll(struct wait *f, weft_cx *cx, struct weft__waitlist *list, is_over *over)
{
    if (f->at) return goes_on(f, cx, list, over);
    if (cx->why) return weft__told_yields(cx) ? WEFT_PENDING : ends(f, weft_cx_cancelled(cx));
    return weft__leaf_may(cx) ? begins(f, cx, list, over) : WEFT_PENDING;
}

/* ---- event ----------------------------------------------------------------------------------------- */

void weft_event_init(weft_event *event)
{
    weft__waitlist_init(&event_of(event)->list);
    store_relaxed(&event_of(event)->is_set, 0); /* relaxed: not shared yet */
}

void weft__event_done(weft_event *event, const char *caller)
{
    if (event) weft__leaf_done(&event_of(event)->list, "an event", caller);
}

void weft_event_set(weft_event *event)
{
    struct event *e = event_of(event);

    weft__leaf_lock(&e->list);
    store_release(&e->is_set, 1); /* [event] with is_set */
    (void)weft__waitlist_unlock_wake_all(&e->list, &weft__sched);
}

void weft_event_reset(weft_event *event)
{
    struct event *e = event_of(event);

    weft__leaf_lock(&e->list);
    store_relaxed(&e->is_set, 0); /* relaxed: there is nothing to see */
    weft__waitlist_unlock(&e->list);
}

bool weft_event_is_set(const weft_event *event)
{
    return load_acquire(&event_of(event)->is_set); /* [event] with set */
}

static bool event_is_over(const void *of)
{
    return load_relaxed(&event_of(of)->is_set); /* relaxed: under the lock */
}

weft_poll weft_event_wait_poll(void *frame, weft_cx *cx)
{
    struct wait *f = frame;
    if (!f->of) return ends(f, -EINVAL);
    return wait_poll(f, cx, &event_of(f->of)->list, event_is_over);
}

int weft__event_wait(weft_event *event)
{
    struct weft_event_wait f = {.event = event};
    int r = weft__run_from(weft_event_wait_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

/* ---- wait group ------------------------------------------------------------------------------------ */

void weft_wg_init(weft_wg *wg, uint64_t count)
{
    weft__waitlist_init(&wg_of(wg)->list);
    store_relaxed(&wg_of(wg)->count, count); /* relaxed: not shared yet */
}

void weft__wg_done(weft_wg *wg, const char *caller)
{
    if (wg) weft__leaf_done(&wg_of(wg)->list, "a wait group", caller);
}

void weft_wg_add(weft_wg *wg, uint64_t count)
{
    (void)fetch_add_relaxed(&wg_of(wg)->count, count); /* relaxed: it has not begun */
}

static inline void check_any(uint64_t count, const char *at)
{
    if (__builtin_expect(count == 0, 0))
        weft__misuse("a wait group is finished once more than was added", at);
}

/* Down to 1. False: it is the last. */
static bool count_down(struct wg *w, const char *at)
{
    uint64_t count = load_relaxed(&w->count); /* relaxed: the CAS orders */
    do {
        check_any(count, at);
        if (count == 1) return false;
        /* [wg] with finish, the last one: what was done */
    } while (!cas_release(&w->count, &count, count - 1));
    return true;
}

void weft__wg_finish(weft_wg *wg, const char *caller)
{
    struct wg *w = wg_of(wg);

    if (count_down(w, caller)) return;
    weft__leaf_lock(&w->list);
    /* [wg] with count_down and the last of a round before: whoever is woken sees it all */
    uint64_t count = fetch_sub_acq_rel(&w->count, 1);
    check_any(count, caller);
    if (count == 1) {
        (void)weft__waitlist_unlock_wake_all(&w->list, &weft__sched);
    } else {
        weft__waitlist_unlock(&w->list); /* more were added meanwhile */
    }
}

uint64_t weft_wg_count(const weft_wg *wg)
{
    return load_relaxed(&wg_of(wg)->count); /* relaxed: a look */
}

static bool wg_is_over(const void *of)
{
    return load_relaxed(&wg_of(of)->count) == 0; /* relaxed: it becomes 0 under the lock */
}

weft_poll weft_wg_wait_poll(void *frame, weft_cx *cx)
{
    struct wait *f = frame;
    if (!f->of) return ends(f, -EINVAL);
    return wait_poll(f, cx, &wg_of(f->of)->list, wg_is_over);
}

int weft__wg_wait(weft_wg *wg)
{
    struct weft_wg_wait f = {.wg = wg};
    int r = weft__run_from(weft_wg_wait_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}
