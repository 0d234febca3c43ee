/* SPDX-License-Identifier: MIT
 *
 * sleep - let time pass: a leaf of 40 bytes, of which 32 are its timer.
 *
 * The argument lies where the timer has its deadline, and the number of the wheel, an odd one, in the
 * frame's `weft__at`; so weft_sleep and weft_sleep_until are one struct to this file.
 *     weft__at == 0     not begun
 *     weft__at == -1    not begun, and its argument is a deadline
 *     weft__at above    armed in that wheel, or fired and not yet taken
 * A waiting leaf: given up, it takes its timer out and settles at once.
 * A sleep that is over at its first poll costs budget, so that a loop of such still lets others run.
 */
#include <weft/time.h>

#include "time/keeper.h"

#include <errno.h>

/* What both frames are. */
struct sleep {
    int32_t at; /* weft__at: the wheel's home number */
    int ret;
    struct weft__timer timer; /* `when` is the argument */
};

#define SAME_PLACE(type, arg)                                                                      \
    _Static_assert(sizeof(struct type) == sizeof(struct sleep), "a sleep is 40 bytes");            \
    _Static_assert(offsetof(struct type, weft__at) == offsetof(struct sleep, at), "as above");     \
    _Static_assert(offsetof(struct type, ret) == offsetof(struct sleep, ret), "as above");         \
    _Static_assert(offsetof(struct type, arg) == offsetof(struct sleep, timer.when), "as above")

SAME_PLACE(weft_sleep, ns);
SAME_PLACE(weft_sleep_until, at);
_Static_assert(sizeof(struct weft_sleep) == 40, "a sleeping task fits a block of 128 bytes");

/* Its end was moved before it began: the argument is a deadline. Odd, as it must be, and no home. */
#define MOVED INT32_C(-1)

/* Polled once more, it is over at once. */
static weft_poll ends(struct sleep *f, int ret)
{
    f->at = 0;
    f->timer.when = 0;
    f->ret = ret;
    return WEFT_READY;
}

/* Told to stop before it began. */
static __attribute__((noinline)) weft_poll is_told(struct sleep *f, weft_cx *cx)
{
    return weft__told_yields(cx) ? WEFT_PENDING : ends(f, weft__told(cx));
}

/* Over before it began. Without budget it lets others run first. */
static __attribute__((noinline)) weft_poll ends_at_once(struct sleep *f, weft_cx *cx)
{
    if (cx->budget == 0) {
        cx->yielded = true;
        return WEFT_PENDING;
    }
    if (cx->budget != WEFT__UNBUDGETED) cx->budget--;
    return ends(f, 0);
}

static inline __attribute__((always_inline)) void arm_after(struct sleep *f, struct weft__keeper *keeper, struct weft_waker waker)
{
    weft__timer_init(&f->timer);
    weft__keeper_arm_after(keeper, &f->timer, f->timer.when, waker, &f->at);
}

/* On a thread that is no worker. */
static __attribute__((noinline)) weft_poll begins_outside(struct sleep *f, weft_cx *cx)
{
    struct weft__keeper *keeper = weft__keeper_here();
    if (!keeper) return ends(f, -ENOMEM);
    arm_after(f, keeper, cx->waker);
    return WEFT_PENDING;
}

/* The two are apart from each other, and from the poll; and this one saves no registers at all: what it calls besides, it jumps to. */
static __attribute__((noinline)) weft_poll begins_after(struct sleep *f, weft_cx *cx)
{
    if (cx->why) return is_told(f, cx);
    if (cx->probe) return WEFT_PENDING; /* what it is asked for is whether it is over, and it has not begun */
    if (f->timer.when <= 0) return ends_at_once(f, cx);
    struct weft__keeper *keeper = weft__here()->keeper;
    if (__builtin_expect(!keeper, 0)) return begins_outside(f, cx);
    arm_after(f, keeper, cx->waker);
    return WEFT_PENDING;
}

static __attribute__((noinline)) weft_poll begins_at(struct sleep *f, weft_cx *cx)
{
    if (cx->why) return is_told(f, cx);
    if (cx->probe) return WEFT_PENDING; /* as above */
    struct weft__keeper *keeper = weft__keeper_here();
    if (!keeper) return ends(f, -ENOMEM);
    weft__timer_init(&f->timer);
    weft__keeper_arm_at(keeper, &f->timer, f->timer.when, cx->waker, &f->at);
    return WEFT_PENDING;
}

/* Asked again for a reason that is none of its business; or its timer fired, and another was first to wake the task. */
static __attribute__((noinline)) weft_poll is_asked(struct sleep *f)
{
    return weft__keeper_fired(weft__keeper_here(), &f->timer, f->at) ? ends(f, 0) : WEFT_PENDING;
}

/* Given up, not as its wheel's owner, or not on a worker. */
static __attribute__((noinline)) weft_poll is_given_up(struct sleep *f, weft_cx *cx)
{
    return ends(f, weft__keeper_cancel(weft__keeper_here(), &f->timer, f->at) ? 0 : weft__told(cx));
}

/* Polled again. */
static weft_poll goes_on(struct sleep *f, weft_cx *cx)
{
    if (weft__timer_take_granted(&f->timer)) return ends(f, 0);
    if (!cx->why) return is_asked(f);
    const struct weft__keeper *keeper = weft__here()->keeper;
    bool fired;
    if (!keeper || f->at != keeper->home || !weft__wheel_try_cancel(keeper->own, &f->timer, &fired))
        return is_given_up(f, cx);
    return ends(f, fired ? 0 : weft__told(cx));
}

weft_poll weft_sleep_poll(void *frame, weft_cx *cx)
{
    struct sleep *f = frame;
    if (f->at > 0) return goes_on(f, cx);
    return f->at == MOVED ? begins_at(f, cx) : begins_after(f, cx);
}

weft_poll weft_sleep_until_poll(void *frame, weft_cx *cx)
{
    struct sleep *f = frame;
    return f->at > 0 ? goes_on(f, cx) : begins_at(f, cx);
}

/* ---- reset ----------------------------------------------------------------------------------- */

/* One that is under way is armed anew where it is polled now: its waker is the one it had. */
static void move_end(struct sleep *f, int64_t when)
{
    if (f->at <= 0) {
        f->at = MOVED;
        f->timer.when = when;
        return;
    }
    struct weft__keeper *keeper = weft__keeper_here();
    /* relaxed: the waker's part of it changes with arm alone, by this task */
    struct weft_waker waker = {load_relaxed(&f->timer.word) & ~WEFT__TIMER_BITS};
    (void)weft__keeper_cancel(keeper, &f->timer, f->at);
    weft__keeper_arm_at(keeper, &f->timer, when, waker, &f->at);
}

void weft_sleep_reset(struct weft_sleep *sleep, weft_time at)
{
    move_end((struct sleep *)(void *)sleep, at);
}

void weft_sleep_until_reset(struct weft_sleep_until *sleep, weft_time at)
{
    move_end((struct sleep *)(void *)sleep, at);
}
