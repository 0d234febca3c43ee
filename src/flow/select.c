/* SPDX-License-Identifier: MIT
 *
 * select - the first of several arms to finish; the others are stopped and awaited before it says so.
 *
 *     NEW       nothing has begun
 *     WAITS     every arm has begun, none is over
 *     SETTLES   one has won, or the select was stopped: each arm that has begun is told to stop until it is over
 *
 *     NEW     -> SETTLES  [first_look]   an arm is ready at once: those not looked at never begin
 *     NEW     -> WAITS    [begin_rest]   nobody is
 *     WAITS   -> SETTLES  [wait_on]      an arm is over, or the task is told to stop
 *     SETTLES -> READY    [settle]       all that began are over
 *
 * THE FIRST LOOK goes round once, from a place that is drawn. An arm that listens is probed: it answers without
 * registering anything, so a loop whose message is there arms no timer and takes no lock of a token. An arm that
 * does not, a user's function, is polled for good in its turn: were it left to a second round, the others would
 * always win. Only if the look finds nobody do the probed ones begin.
 * A select that is itself probed looks only if all its arms listen; else it says PENDING and waits to be polled.
 *
 * STOPPED  Arms then answer what they were told, or what had happened all the same. The first of the latter wins,
 * for nothing that has happened may be lost; with none of them the select answers why.
 * KEPT arms hold nothing. They are never told to stop here; their owner settles them.
 *
 * Threads: the poller's.
 * Rejected: a waker for each arm, to poll only those that were woken (an allocation, or a word and a lock more in each
 * leaf; a handful of arms is polled in less); a random order (a draw per arm: a random place to begin with is as fair to
 * each arm that is always ready, if not to each pair).
 */
#include "flow/arm.h"
#include "sync/leaf.h"
#include "task/call.h"
#include "task/here.h"

#include <weft/time.h>

enum { NEW, WAITS, SETTLES };

/* What one poll works on. */
struct round {
    struct weft__selecting *s;
    weft_future *arms;
    size_t count;
    bool biased;
};

static bool is_kept(const weft_future *arm)
{
    return arm->kind & WEFT__ARM_KEPT;
}

static bool wins(const struct round *r, size_t i)
{
    r->s->won = (int32_t)i + 1;
    return true;
}

/* The place of an arm that runs, each as likely as the others. */
static size_t draw(const struct round *r)
{
    uint32_t running = r->s->running;
    if (r->biased || running < 2) return 0;

    uint32_t skip = weft__here_draw(running);
    size_t at = 0;
    while (!weft__arm_runs(&r->arms[at]) || skip-- > 0)
        at++;
    return at;
}

/* ---- NEW ----------------------------------------------------------------------------------------- */

/* A probe is paid by the select: one that says no because the budget is spent would have "otherwise" win over what is there. */
static bool probes(weft_future *arm, weft_cx *cx)
{
    uint32_t budget = cx->budget;
    cx->budget = WEFT__UNBUDGETED;
    bool over = weft__arm_probe(arm, cx);
    cx->budget = budget;
    return over;
}

static bool looks_at(weft_future *arm, weft_cx *cx)
{
    if (!weft__arm_runs(arm)) return false;
    return arm->kind & WEFT__ARM_PROBES ? probes(arm, cx) : weft__arm_poll(arm, cx, 0, true);
}

static bool first_look(const struct round *r, weft_cx *cx)
{
    size_t at = draw(r);

    for (size_t n = 0; n < r->count; n++, at++) {
        if (at == r->count) at = 0;
        if (looks_at(&r->arms[at], cx)) return wins(r, at);
    }
    return false;
}

static bool begin_rest(const struct round *r, weft_cx *cx)
{
    for (size_t i = 0; i < r->count; i++) {
        if (!weft__arm_is(&r->arms[i], WEFT__ARM_UNBEGUN)) continue;
        if (weft__arm_poll(&r->arms[i], cx, 0, true)) return wins(r, i);
    }
    return false;
}

static bool otherwise(const struct round *r)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->arms[i].poll && (r->arms[i].kind & WEFT__ARM_OTHERWISE)) return wins(r, i);
    return false;
}

/* Counts those that run; what they have in common is in `common`. False: no arm is there. */
static bool any_arm(const struct round *r, uint8_t *common)
{
    bool any = false;

    *common = UINT8_MAX;
    r->s->running = 0;
    for (size_t i = 0; i < r->count; i++) {
        any |= r->arms[i].poll != NULL;
        if (!weft__arm_runs(&r->arms[i])) continue;
        *common &= r->arms[i].kind;
        r->s->running++;
    }
    return any;
}

/* ---- WAITS --------------------------------------------------------------------------------------- */

static bool poll_round(const struct round *r, weft_cx *cx)
{
    size_t at = draw(r);

    for (size_t n = 0; n < r->count; n++, at++) {
        if (at == r->count) at = 0;
        if (!weft__arm_is(&r->arms[at], WEFT__ARM_BEGUN)) continue;
        if (weft__arm_poll(&r->arms[at], cx, 0, true)) return wins(r, at);
    }
    return false;
}

/* ---- SETTLES ------------------------------------------------------------------------------------- */

/* An arm that was told to stop is over. With no winner yet, one that did something is it. */
static void settled(const struct round *r, size_t i)
{
    if (r->s->won == 0 && !weft__arm_gave_up(&r->arms[i])) (void)wins(r, i);
}

/* True: all are over. */
static bool settle(const struct round *r, weft_cx *cx)
{
    int why = cx->why ? cx->why : r->s->why ? r->s->why : -ECANCELED;
    bool all = true;

    for (size_t i = 0; i < r->count; i++) {
        if (!weft__arm_is(&r->arms[i], WEFT__ARM_BEGUN) || is_kept(&r->arms[i])) continue;
        if (weft__arm_poll(&r->arms[i], cx, why, true)) {
            settled(r, i);
        } else {
            all = false;
        }
    }
    return all;
}

static weft_poll answer(const struct round *r, weft_cx *cx, int *ret)
{
    int won = r->s->won;

    weft__arms_refuse(r->arms, r->count, cx, r->s->why ? r->s->why : -ECANCELED);
    *ret = won > 0 ? won - 1 : r->s->why;
    return WEFT_READY;
}

/* ---- the whole ----------------------------------------------------------------------------------- */

static weft_poll refuse(const struct round *r, weft_cx *cx, int why, int *ret)
{
    weft__arms_refuse(r->arms, r->count, cx, why);
    *ret = why;
    return WEFT_READY;
}

/* PENDING: it was probed, or lets others run before it answers, and stays NEW. */
static weft_poll begins(const struct round *r, weft_cx *cx, int *ret)
{
    uint8_t common;
    if (cx->why && weft__told_yields(cx)) return WEFT_PENDING;
    int why = weft_cx_cancelled(cx);

    if (!any_arm(r, &common)) return refuse(r, cx, -EINVAL, ret);
    if (why) return refuse(r, cx, why, ret);
    if (cx->probe && !(common & WEFT__ARM_PROBES)) return WEFT_PENDING;
    if (!weft__leaf_may(cx)) return WEFT_PENDING; /* so a loop of selects lets others run */
    if (first_look(r, cx) || otherwise(r)) {
        r->s->stage = SETTLES;
    } else if (!cx->probe) {
        r->s->stage = begin_rest(r, cx) ? SETTLES : WAITS;
    }
    return WEFT_PENDING;
}

static void wait_on(const struct round *r, weft_cx *cx)
{
    if (cx->why) {
        r->s->why = cx->why;
        r->s->stage = SETTLES;
    } else if (poll_round(r, cx)) {
        r->s->stage = SETTLES;
    }
}

/* Probed arms alone have begun nothing, so a probe never comes to settle one. */
static weft_poll select_on(const struct round *r, weft_cx *cx, int *ret)
{
    if (r->s->stage == WAITS) wait_on(r, cx);
    if (r->s->stage == NEW && begins(r, cx, ret) == WEFT_READY) return WEFT_READY;
    if (r->s->stage != SETTLES || !settle(r, cx)) return WEFT_PENDING;
    return answer(r, cx, ret);
}

weft_poll weft_select_poll(void *frame, weft_cx *cx)
{
    struct weft_select *f = frame;
    struct round r = {&f->weft__s, f->arm, WEFT_ARMS_MAX, f->biased};
    return select_on(&r, cx, &f->ret);
}

weft_poll weft_race_poll(void *frame, weft_cx *cx)
{
    struct weft_race *f = frame;
    struct round r = {&f->weft__s, f->arms, f->arms ? f->count : 0, f->biased};
    return select_on(&r, cx, &f->ret);
}

weft_poll weft__otherwise_poll(void *frame, weft_cx *cx)
{
    (void)frame;
    (void)cx;
    return WEFT_READY; /* nobody asks: a select looks at the kind */
}

/* ---- on a fiber or a thread ---------------------------------------------------------------------- */

/* A kept arm has the waker of this call, which a plain thread does not have again: there it is settled behind each select, and begins
 * anew with the next. So that a sleep comes to its end all the same, that is fixed beforehand. */
static void fix_kept(weft_future *arms, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct weft_sleep *sleep = arms[i].frame;
        if (!is_kept(&arms[i]) || arms[i].poll != weft_sleep_poll || sleep->weft__at != 0) continue;
        weft_sleep_reset(sleep, weft_later(weft_now(), sleep->ns));
    }
}

static void settle_kept(const weft_future *arm)
{
    struct weft_sleep *sleep = arm->frame; /* as weft_sleep_until, if it is one of them */
    bool sleeps = arm->poll == weft_sleep_poll || arm->poll == weft_sleep_until_poll;
    weft_time end = sleeps ? sleep->ns : 0;
    bool over = sleep->weft__at == 0;

    (void)weft__settle(arm->poll, arm->frame, arm->frame);
    if (sleeps && !over) weft_sleep_reset(sleep, end);
}

static int select_on_thread(struct weft_race *f, const void *caller)
{
    fix_kept(f->arms, f->count);
    int r = weft__run_from(weft_race_poll, f, caller);
    for (size_t i = 0; r == 0 && i < f->count; i++)
        if (f->arms[i].poll && is_kept(&f->arms[i])) settle_kept(&f->arms[i]);
    return r;
}

int weft__select(weft_future *arms, size_t count, bool biased)
{
    struct weft_race f = {.arms = arms, .count = arms ? count : 0, .biased = biased};
    const void *caller = __builtin_return_address(0);
    int r = weft__here()->fiber ? weft__run_from(weft_race_poll, &f, caller)
                                : select_on_thread(&f, caller);
    return r < 0 ? r : f.ret;
}

struct settling {
    WEFT_FRAME(int);
    weft_pollfn *poll;
    void *frame;
};

static weft_poll settling_poll(void *frame, weft_cx *cx)
{
    struct settling *f = frame;
    return weft__poll_stop(f->poll, f->frame, cx);
}

/* `at` is the frame's first word: zero if nothing has begun. */
int weft__settle(weft_pollfn *poll, void *frame, const int32_t *at)
{
    if (*at == 0) return 0;
    struct settling f = {.poll = poll, .frame = frame};
    return weft__run_from(settling_poll, &f, __builtin_return_address(0));
}
