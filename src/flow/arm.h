/* SPDX-License-Identifier: MIT
 *
 * arm - how combinators handle what they run: one future at a time, with a reason of its own.
 *
 *     UNBEGUN -> BEGUN     [poll]           PENDING; from here on it is polled until it is OVER
 *     UNBEGUN -> UNBEGUN   [probe]          PENDING, and nothing was registered
 *     any     -> OVER      [poll, probe]    READY, the result stands in the frame
 *     UNBEGUN -> OVER      [refuse]         it never began; the result says why, if it can, and so do those of the arms inside it
 *
 * A result tells whether an arm GAVE UP: it is a signed integer, and what the arm was told to stop with, in this poll or in one before:
 * while it cleans up, whoever asked may be overruled from further out. All else has
 * happened, also an error, and also a result that is no signed integer: that one cannot say it.
 * `cx` is changed in place, for the length of a poll: a fiber beneath finds it by its address.
 * Threads: the poller's.
 */
#ifndef WEFT_FLOW_ARM_H
#define WEFT_FLOW_ARM_H

#include "base/assert.h"
#include "types.h"

#include <weft/select.h>

#include <errno.h>
#include <string.h>

enum { WEFT__ARM_UNBEGUN, WEFT__ARM_BEGUN, WEFT__ARM_OVER };

/* It is there, and no stand-in for "nobody". */
static inline bool weft__arm_runs(const weft_future *arm)
{
    return arm->poll && !(arm->kind & WEFT__ARM_OTHERWISE);
}

static inline bool weft__arm_is(const weft_future *arm, uint8_t state)
{
    return weft__arm_runs(arm) && arm->weft__state == state;
}

/* The reasons that there are, as bits of `weft__told`. */
static inline uint8_t weft__arm_told_bit(int64_t why)
{
    return why == -ECANCELED ? 1 : why == -ETIME ? 2 : 0;
}

/* One poll, told `why`. `among`: beside others of the same task. True: it is OVER. */
static inline bool weft__arm_poll(weft_future *arm, weft_cx *cx, int why, bool among)
{
    int outer_why = cx->why;
    bool outer_among = cx->among;

    weft_dassert(!cx->probe);
    if (why) arm->weft__told |= weft__arm_told_bit(why);
    cx->why = why;
    cx->among |= among;
    weft_poll answer = arm->poll(arm->frame, cx);
    cx->why = outer_why;
    cx->among = outer_among;
    arm->weft__state = answer == WEFT_READY ? WEFT__ARM_OVER : WEFT__ARM_BEGUN;
    return answer == WEFT_READY;
}

/* One look at an arm that listens to it. True: it is OVER. */
static inline bool weft__arm_probe(weft_future *arm, weft_cx *cx)
{
    bool outer = cx->probe;

    weft_dassert(arm->kind & WEFT__ARM_PROBES);
    cx->probe = true;
    weft_poll answer = arm->poll(arm->frame, cx);
    cx->probe = outer;
    if (answer == WEFT_READY) arm->weft__state = WEFT__ARM_OVER;
    return answer == WEFT_READY;
}

/* The result of an arm that is OVER, if it is a signed integer; else 0. The low bytes come first on the machines we run
 * on, and the sign fills the rest. */
static inline int64_t weft__arm_ret(const weft_future *arm)
{
    int64_t ret = 0;

    if (!arm->ret_signed) return 0;
    memcpy(&ret, (const char *)arm->frame + arm->ret_at, arm->ret_bytes);
    unsigned unused_bits = 64 - 8 * arm->ret_bytes;
    return (int64_t)((uint64_t)ret << unused_bits) >> unused_bits;
}

/* The failure of an arm that is OVER: below zero, or 0. */
static inline int weft__arm_failure(const weft_future *arm)
{
    int64_t ret = weft__arm_ret(arm);
    return ret < 0 ? (int)ret : 0;
}

/* Why an arm that is OVER gave up; 0: it did not. */
static inline int weft__arm_gave_up(const weft_future *arm)
{
    int64_t ret = arm->weft__told ? weft__arm_ret(arm) : 0;
    return arm->weft__told & weft__arm_told_bit(ret) ? (int)ret : 0;
}

/* Is this no poll, but word to a combinator that it will not begin? */
static inline bool weft__arm_is_refused(const weft_cx *cx)
{
    return cx->probe && cx->why;
}

/* It never began, and will not. A combinator tells its own arms. */
static inline void weft__arm_refuse(weft_future *arm, weft_cx *cx, int why)
{
    struct weft_cx word = {
        .why = why, .probe = true, .budget = WEFT__UNBUDGETED, .waker = cx->waker};
    int64_t wide = why;

    if (arm->kind & WEFT__ARM_NESTS) (void)arm->poll(arm->frame, &word);
    if (arm->ret_signed) memcpy((char *)arm->frame + arm->ret_at, &wide, arm->ret_bytes);
    arm->weft__state = WEFT__ARM_OVER;
}

/* All that have not begun. */
static inline void weft__arms_refuse(weft_future *arms, size_t count, weft_cx *cx, int why)
{
    for (size_t i = 0; i < count; i++) {
        if (!weft__arm_is(&arms[i], WEFT__ARM_UNBEGUN) || (arms[i].kind & WEFT__ARM_KEPT)) continue;
        weft__arm_refuse(&arms[i], cx, why);
    }
}

#endif
