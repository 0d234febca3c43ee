/* SPDX-License-Identifier: MIT
 *
 * tracker - a count of tasks, and a flag: who waits is let through when nothing is counted and the flag is up.
 *
 * Both lie in one word, the flag in its lowest bit. The word comes to CLOSED, which is what all wait for, under the list's lock only:
 *     without the lock it is counted up, and down, but never down from one while it is closed
 * so that who is let through, and looks under the lock, comes behind the last touch of whoever let it through, and may free the whole. Down to
 * nothing while it is open needs no lock: nobody is let through by that.
 * A task that is counted is a member (flow/member.h): at its end its handle is dropped first, and then it is counted off; so the memory of all is
 * free when the wait is over.
 *
 * Threads: any. LOCK ORDER: its wait list alone. Pairs: [tracker] count_down -> the one who brings it to CLOSED, who wakes.
 * Rejected: a wait group (sync/event.c) and a flag beside it (between the look at one and the other both may change).
 */
#include "flow/member.h"
#include "sync/leaf.h"
#include "task/call.h"
#include "task/refused.h"

#include <weft/tracker.h>

#include <errno.h>

#define CLOSED UINT64_C(1)
#define ONE    UINT64_C(2)

struct tracker {
    _Atomic uint64_t word;      /* twice the count, and CLOSED    [tracker] */
    struct weft__waitlist list; /* who waits */
};
_Static_assert(sizeof(struct tracker) <= sizeof(weft_tracker), "a tracker fits its place");

static struct tracker *tracker_of(const weft_tracker *tracker)
{
    return (struct tracker *)(uintptr_t)tracker;
}

/* ---- counting --------------------------------------------------------------------------------- */

void weft_tracker_enter(weft_tracker *tracker)
{
    (void)fetch_add_relaxed(&tracker_of(tracker)->word, ONE); /* relaxed: it has not begun */
}

static inline void check_any(uint64_t word, const char *at)
{
    if (__builtin_expect(word < ONE, 0))
        weft__misuse("a tracker is left once more than it was entered", at);
}

/* False: it is the last one, and the tracker is closed. */
static bool count_down(struct tracker *t, const char *at)
{
    uint64_t word = load_relaxed(&t->word); /* relaxed: the CAS orders */
    do {
        check_any(word, at);
        if (word == (ONE | CLOSED)) return false;
        /* [tracker] with leave, by the last one, and close: what was done */
    } while (!cas_release(&t->word, &word, word - ONE));
    return true;
}

/* Holds: the lock, and drops it. */
static void unlock_and_let_through(struct tracker *t, uint64_t word)
{
    if (word == CLOSED) {
        (void)weft__waitlist_unlock_wake_all(&t->list, &weft__sched);
    } else {
        weft__waitlist_unlock(&t->list);
    }
}

void weft__tracker_leave(weft_tracker *tracker, const char *caller)
{
    struct tracker *t = tracker_of(tracker);

    if (count_down(t, caller)) return;
    weft__leaf_lock(&t->list);
    /* [tracker] with count_down: whoever is woken sees it all; what this one did is published by the lock */
    uint64_t word = fetch_sub_acquire(&t->word, ONE);
    check_any(word, caller);
    unlock_and_let_through(t, word - ONE);
}

bool weft_tracker_close(weft_tracker *tracker)
{
    struct tracker *t = tracker_of(tracker);

    weft__leaf_lock(&t->list);
    uint64_t word = fetch_or_acquire(&t->word, CLOSED); /* [tracker] with count_down, as above */
    unlock_and_let_through(t, word | CLOSED);
    return !(word & CLOSED);
}

bool weft_tracker_reopen(weft_tracker *tracker)
{
    /* relaxed: who waits is not concerned */
    return fetch_and_relaxed(&tracker_of(tracker)->word, ~CLOSED) & CLOSED;
}

bool weft_tracker_is_closed(const weft_tracker *tracker)
{
    return load_relaxed(&tracker_of(tracker)->word) & CLOSED; /* relaxed: a look */
}

size_t weft_tracker_len(const weft_tracker *tracker)
{
    return load_relaxed(&tracker_of(tracker)->word) / ONE; /* relaxed: a look */
}

/* ---- tasks ------------------------------------------------------------------------------------ */

/* The last touch of the tracker comes last: the memory is free when somebody is let through. */
static void member_ended(struct weft__foreign *foreign)
{
    struct weft__member *member = weft__member_of(foreign);
    weft_tracker *tracker = member->owner;

    (void)weft_detach(member->task);
    weft__tracker_leave(tracker, NULL);
}

static const struct weft__foreign_ops member_ops = WEFT__MEMBER_OPS(member_ended);

int weft__tracker_add(weft_tracker *tracker, weft_task *task, const weft_spawn_opts *opts)
{
    if (!task) {
        int why = weft__spawn_refused(opts);
        weft__tracker_leave(tracker, NULL);
        return why;
    }
    struct weft__member *member = weft__behind_frame(task, sizeof(*member));
    weft__member_init(member, task, tracker, &member_ops);
    weft__member_watch(member);
    return 0;
}

/* ---- waiting ---------------------------------------------------------------------------------- */

static weft_poll ends(struct weft_tracker_wait *f, int ret)
{
    f->weft__at = 0;
    f->ret = ret;
    return WEFT_READY;
}

/* Holds: the lock. */
static bool is_over(const struct tracker *t)
{
    return load_relaxed(&t->word) == CLOSED; /* relaxed: it becomes that under the lock */
}

static weft_poll begins(struct weft_tracker_wait *f, struct tracker *t, weft_cx *cx)
{
    weft__waiter_init(WEFT__LEAF_WAITER(f));
    weft__leaf_lock(&t->list);
    bool is = is_over(t);
    if (!is && !cx->probe) {
        f->weft__at = WEFT__LEAF_WAITS;
        weft__waitlist_add(&t->list, WEFT__LEAF_WAITER(f), cx->waker);
    }
    weft__waitlist_unlock(&t->list);
    return is ? ends(f, 0) : WEFT_PENDING;
}

/* A turn is the answer, whatever has happened since. */
static weft_poll goes_on(struct weft_tracker_wait *f, struct tracker *t, weft_cx *cx)
{
    struct weft__waiter *waiter = WEFT__LEAF_WAITER(f);

    if (weft__waiter_take_granted(waiter)) return ends(f, 0);
    weft__leaf_lock(&t->list);
    bool is = weft__waiter_has_turn(&t->list, waiter) || is_over(t);
    if (is || cx->why)
        (void)weft__waitlist_settle(&t->list, waiter); /* its turn is nobody else's */
    weft__waitlist_unlock(&t->list);
    if (is) return ends(f, 0);
    return cx->why ? ends(f, weft_cx_cancelled(cx)) : WEFT_PENDING;
}

weft_poll weft_tracker_wait_poll(void *frame, weft_cx *cx)
{
    struct weft_tracker_wait *f = frame;
    struct tracker *t = tracker_of(f->tracker);

    if (!t) return ends(f, -EINVAL);
    if (f->weft__at) return goes_on(f, t, cx);
    if (cx->why) return weft__told_yields(cx) ? WEFT_PENDING : ends(f, weft_cx_cancelled(cx));
    return weft__leaf_may(cx) ? begins(f, t, cx) : WEFT_PENDING;
}

int weft__tracker_wait(weft_tracker *tracker)
{
    struct weft_tracker_wait f = {.tracker = tracker};
    int r = weft__run_from(weft_tracker_wait_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

void weft__tracker_done(weft_tracker *tracker, const char *caller)
{
    if (!tracker) return;
    if (weft_tracker_len(tracker) > 0) weft__misuse("a tracker that still counts is ended", caller);
    weft__leaf_done(&tracker_of(tracker)->list, "a tracker", caller);
}
