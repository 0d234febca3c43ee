/* SPDX-License-Identifier: MIT
 *
 * all - several arms at once until every one is over; and one after the other.
 *
 * All that are not over are polled each time, and another one first: the arms have one budget, and who comes first may use it up. With
 * fail_fast the first failure turns the rest: arms that have begun are told to stop, the others never begin.
 *     not over, none failed   polled with the task's own reason
 *     begun, one failed       polled with the task's reason, else -ECANCELED
 *     unbegun, one failed     refused
 * In the poll in which one fails those that had their turn before it have another, to be told: no wake of theirs need ever come.
 * The first poll begins arms in order, so with one that fails at once those behind it never begin.
 * Threads: the poller's.
 */
#include "flow/arm.h"
#include "task/call.h"

static weft_poll refuse(weft_future *arms, size_t count, weft_cx *cx, int *ret)
{
    weft__arms_refuse(arms, count, cx, cx->why);
    *ret = cx->why;
    return WEFT_READY;
}

/* ---- all ----------------------------------------------------------------------------------------- */

static void one_over(struct weft__gathering *s, const weft_future *arm, bool fail_fast)
{
    int why = weft__arm_gave_up(arm);
    if (why) s->why = why;
    if (fail_fast && s->failed == 0) s->failed = weft__arm_failure(arm);
}

/* Each that is not over, once. True: all are. `untold`: one waits on that had its turn before any had
 * failed. */
static bool all_round(struct weft__gathering *s, weft_future *arms, size_t count, bool fail_fast,
                      weft_cx *cx, bool *untold)
{
    bool over = true;
    uint32_t first = UINT32_MAX;

    for (size_t k = 0; k < count; k++) {
        size_t i = s->next + k < count ? s->next + k : s->next + k - count;
        weft_future *arm = &arms[i];
        if (!weft__arm_runs(arm) || arm->weft__state == WEFT__ARM_OVER) continue;
        if (first == UINT32_MAX) first = (uint32_t)i;
        if (s->failed && arm->weft__state == WEFT__ARM_UNBEGUN) {
            weft__arm_refuse(arm, cx, cx->why ? cx->why : -ECANCELED);
            continue;
        }
        int why = s->failed && cx->why == 0 ? -ECANCELED : cx->why;
        if (weft__arm_poll(arm, cx, why, true)) {
            one_over(s, arm, fail_fast);
        } else {
            over = false;
            *untold |= !why;
        }
    }
    s->next = first + 1; /* none: 0 again */
    return over;
}

static weft_poll all_poll(struct weft__gathering *s, weft_future *arms, size_t count,
                          bool fail_fast, weft_cx *cx, int *ret)
{
    if (weft__arm_is_refused(cx)) return refuse(arms, count, cx, ret);
    bool over, untold;
    do { /* twice at most: behind the first failure all are told */
        untold = false;
        over = all_round(s, arms, count, fail_fast, cx, &untold);
    } while (s->failed && untold);
    *ret = s->failed ? s->failed : s->why;
    return over ? WEFT_READY : WEFT_PENDING;
}

weft_poll weft_all_poll(void *frame, weft_cx *cx)
{
    struct weft_all *f = frame;
    return all_poll(&f->weft__s, f->arm, WEFT_ARMS_MAX, false, cx, &f->ret);
}

weft_poll weft_try_all_poll(void *frame, weft_cx *cx)
{
    struct weft_try_all *f = frame;
    return all_poll(&f->weft__s, f->arm, WEFT_ARMS_MAX, true, cx, &f->ret);
}

struct all_of {
    WEFT_FRAME(int);
    weft_future *arms;
    size_t count;
    bool fail_fast;
    struct weft__gathering s;
};

static weft_poll all_of_poll(void *frame, weft_cx *cx)
{
    struct all_of *f = frame;
    return all_poll(&f->s, f->arms, f->count, f->fail_fast, cx, &f->ret);
}

int weft__all(weft_future *arms, size_t count, bool fail_fast)
{
    struct all_of f = {.arms = arms, .count = count, .fail_fast = fail_fast};
    int r = weft__run_from(all_of_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

/* ---- then ---------------------------------------------------------------------------------------- */

static weft_poll then_poll(uint32_t *next, weft_future *arms, size_t count, weft_cx *cx, int *ret)
{
    if (weft__arm_is_refused(cx)) return refuse(arms, count, cx, ret);
    for (*ret = 0; *next < count && *ret == 0; ++*next) {
        weft_future *arm = &arms[*next];
        if (!weft__arm_runs(arm)) continue;
        if (!weft__arm_poll(arm, cx, cx->why, false)) return WEFT_PENDING;
        *ret = weft__arm_failure(arm);
    }
    weft__arms_refuse(arms, count, cx, -ECANCELED);
    return WEFT_READY;
}

weft_poll weft_then_poll(void *frame, weft_cx *cx)
{
    struct weft_then *f = frame;
    return then_poll(&f->weft__next[0], f->arm, WEFT_ARMS_MAX, cx, &f->ret);
}

struct then_of {
    WEFT_FRAME(int);
    weft_future *arms;
    size_t count;
    uint32_t next;
};

static weft_poll then_of_poll(void *frame, weft_cx *cx)
{
    struct then_of *f = frame;
    return then_poll(&f->next, f->arms, f->count, cx, &f->ret);
}

int weft__then(weft_future *arms, size_t count)
{
    struct then_of f = {.arms = arms, .count = count};
    int r = weft__run_from(then_of_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}
