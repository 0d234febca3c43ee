/* SPDX-License-Identifier: MIT
 *
 * keeper - the time-keeper of whoever polls: which wheel its timers go to, and what time it is.
 *
 *     struct weft__keeper *k = weft__keeper_here();               at each poll anew: tasks move
 *     weft__keeper_arm_after(k, &f->timer, ns, cx->waker, &f->home);     remember where it is
 *     ...
 *     if (weft__timer_take_granted(&f->timer)) -> it has fired           cheap; try this first
 *     if (weft__keeper_fired(k, &f->timer, f->home)) -> it has fired, too; else PENDING
 *     (void)weft__keeper_cancel(k, &f->timer, f->home)                   given up: it is OUT
 * A timer is armed in the wheel of the worker that polls, and may be cancelled on another worker of
 * the same runtime, or fire there. So its owner keeps the wheel's number, an odd one: a leaf written
 * by hand may keep it as its `weft__at`.
 *
 * A worker's keeper is part of it. A plain thread that waits has one of its own, made when it first
 * needs one and given back when the wait is over; its wheel is looked at in between (task/call.c).
 * Threads: the keeper's own.
 */
#ifndef WEFT_TIME_KEEPER_H
#define WEFT_TIME_KEEPER_H

#include "task/here.h"
#include "time/wheel.h"

/* Of a thread that is no worker. NULL: no memory for one. In sched/keep.c: it knows the runtime that
 * was entered. */
struct weft__keeper *weft__keeper_outside(void);

/* Of this thread, which polls; NULL: no memory for one, only on threads that are no workers. */
static inline struct weft__keeper *weft__keeper_here(void)
{
    struct weft__keeper *keeper = weft__here()->keeper;
    return __builtin_expect(keeper != NULL, 1) ? keeper : weft__keeper_outside();
}

/* What time it is on the keeper's clock. Reads it: some 25 ns. */
static inline int64_t weft__keeper_now(const struct weft__keeper *keeper)
{
    return keeper->now(keeper);
}

static inline struct weft__wheel *weft__keeper_wheel(const struct weft__keeper *keeper,
                                                     int32_t home)
{
    weft_dassert(home & 1);
    return &keeper->wheels[(uint32_t)home >> 1];
}

/* Of the wheel with that number. */
static inline int32_t weft__keeper_home(uint32_t number)
{
    return (int32_t)(number << 1 | 1);
}

/* The worker looks at its wheel as soon as the poll that runs is over. */
static inline int32_t weft__keeper_hurry(struct weft__keeper *keeper)
{
    struct weft__stretch *stretch = keeper->stretch;
    stretch->length -= stretch->left - 1; /* those that were made, and the next */
    stretch->left = 1;
    stretch->hurried = true;
    return keeper->home;
}

/* Arm, for a deadline on the keeper's clock or a time from the end of this poll on. Says where: the
 * home, an odd number. Nothing is left to do behind the arm, so that it can be a jump. */
static inline void weft__keeper_arm_at(struct weft__keeper *keeper, struct weft__timer *timer,
                                       int64_t when, struct weft_waker waker, int32_t *home)
{
    *home = weft__keeper_hurry(keeper);
    keeper->stretch->exact = true;
    weft__wheel_arm_at(keeper->own, timer, when, waker);
}

static inline void weft__keeper_arm_after(struct weft__keeper *keeper, struct weft__timer *timer,
                                          int64_t ns, struct weft_waker waker, int32_t *home)
{
    *home = weft__keeper_hurry(keeper);
    weft__wheel_arm_after(keeper->own, timer, ns, waker);
}

/* Is it over, though nothing was granted? True: the timer is OUT. */
static inline bool weft__keeper_fired(const struct weft__keeper *keeper, struct weft__timer *timer,
                                      int32_t home)
{
    if (home == keeper->home) return weft__wheel_fired(keeper->own, timer, WEFT__BY_OWNER);
    return weft__wheel_fired(weft__keeper_wheel(keeper, home), timer, WEFT__BY_ANY);
}

/* Give it up, of which nothing was granted: the timer is OUT. True: it had fired. */
static inline bool weft__keeper_cancel(const struct weft__keeper *keeper, struct weft__timer *timer,
                                       int32_t home)
{
    if (home == keeper->home) return weft__wheel_cancel(keeper->own, timer, WEFT__BY_OWNER);
    return weft__wheel_cancel(weft__keeper_wheel(keeper, home), timer, WEFT__BY_ANY);
}

#endif
