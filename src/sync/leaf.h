/* SPDX-License-Identifier: MIT
 *
 * leaf - what the leaves on the waitlist share: zero as a list, budget, the two ends of a wait.
 *
 * A primitive is initialised by a constant in the program's source, where the list's head cannot point at itself: it is
 * zero, and becomes a list under the lock, the first time that somebody takes it.
 *
 * A leaf's `weft__at` is 0 before it waits and when it is over, WEFT__LEAF_WAITS in between; odd, as it must be.
 * Threads: any. Rejected: initialisers that name the list's head (they could not be copied, nor stand in an array).
 */
#ifndef WEFT_SYNC_LEAF_H
#define WEFT_SYNC_LEAF_H

#include "sync/holder.h"
#include "sync/waitlist.h"

enum { WEFT__LEAF_WAITS = 1 };

/* Takes the lock of a list that may be zero so far: one that is lent is not. */
static inline void weft__leaf_lock(struct weft__waitlist *list)
{
    weft__waitlist_lock(list);
    if (__builtin_expect(!list->head.next, 0)) weft__waitlist_begin(list);
}

/* By its word, if it is free. False: weft__leaf_lock takes it. */
static inline bool weft__leaf_try_word(struct weft__waitlist *list)
{
    if (!weft__waitlist_try_word(list)) return false;
    if (__builtin_expect(!list->head.next, 0)) weft__waitlist_begin(list);
    return true;
}

/* holds: the lock that guards the head. Somebody waits there, where nobody may: says who; the caller aborts. */
static inline void weft__leaf_report_waiter(struct weft__link *head, const char *what,
                                            const char *at)
{
#if defined(WEFT_MODEL)
    (void)head, (void)what, (void)at;
#else
    struct weft__link *first = weft__list_first(head);
    if (!first) return;
    struct weft__waiter *waiter = weft__container_of(first, struct weft__waiter, link);
    uintptr_t word = load_relaxed(&waiter->word); /* relaxed: the lock orders it */
    weft__holder_report_waiter((struct weft_waker){word & ~WEFT__WAITER_BITS}, what, at);
#endif
}

/* As weft__waitlist_done, of a list that may be zero, and of `what`, ended at `at`. */
static inline void weft__leaf_done(struct weft__waitlist *list, const char *what, const char *at)
{
    weft__leaf_lock(list);
    weft__leaf_report_waiter(&list->head, what, at);
    weft__waitlist_unlock(list);
    weft__waitlist_done(list);
}

/* Before a leaf takes something at once. False: the poll has used up its budget; it lets others run and is polled again. A look is told no, too: the poll behind
 * it yields; but a select pays for the looks of its arms, and they have no bound. */
static inline bool weft__leaf_may(weft_cx *cx)
{
    if (__builtin_expect(cx->budget == 0, 0)) {
        cx->yielded |= !cx->probe;
        return false;
    }
    cx->budget = weft__charged(cx->budget);
    return true;
}

/* The place that a frame has for its waiter. */
#define WEFT__LEAF_WAITER(f)                                                                       \
    ({                                                                                             \
        _Static_assert(sizeof((f)->weft__waiter) == sizeof(struct weft__waiter),                   \
                       "a waiter fits its place");                                                 \
        (struct weft__waiter *)(void *)(f)->weft__waiter;                                          \
    })

#endif
