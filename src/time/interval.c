/* SPDX-License-Identifier: MIT
 *
 * interval - ticks a period apart, and what becomes of those that were missed.
 *
 * The interval knows when the next tick is; to wait for it is to sleep until then. So it holds nothing
 * between two ticks, and one that is given up changes nothing. When a tick was missed is a question
 * for the clock, which is read once for each tick that has come.
 */
#include <weft/time.h>

#include "task/call.h"
#include "time/keeper.h"

#include <errno.h>

/* The tick at `due` is taken at `now`: when is the next? */
static int64_t next_after(const weft_interval *every, int64_t due, int64_t now)
{
    int64_t next = weft_later(due, every->period);

    if (next > now || every->missed == WEFT_MISSED_BURST) return next;
    if (every->missed == WEFT_MISSED_DELAY) return weft_later(now, every->period);
    return weft_later(due, ((now - due) / every->period + 1) * every->period);
}

/* Polled once more, it waits for the next tick. */
static weft_poll ends(struct weft_tick *f, int ret)
{
    f->weft__at = 0;
    f->ret = ret;
    return WEFT_READY;
}

static weft_poll comes(struct weft_tick *f, int64_t due, int64_t now)
{
    f->every->next = next_after(f->every, due, now);
    f->every->ticks++;
    return ends(f, 0);
}

/* What has come already is taken without a timer, at the price of budget. */
static weft_poll begins(struct weft_tick *f, weft_cx *cx)
{
    if (!f->every || f->every->period <= 0) return ends(f, -EINVAL);
    if (cx->why) return weft__told_yields(cx) ? WEFT_PENDING : ends(f, weft_cx_cancelled(cx));
    struct weft__keeper *keeper = weft__keeper_here();
    if (!keeper) return ends(f, -ENOMEM);
    int64_t now = weft__keeper_now(keeper);
    int64_t due = f->every->next == WEFT__AT_ONCE ? now : f->every->next;
    if (due > now && cx->probe) return WEFT_PENDING;
    if (due > now) {
        f->weft__until = (struct weft_sleep_until){.at = due};
        f->weft__at = 1;
        return WEFT_PENDING;
    }
    if (cx->budget == 0) {
        cx->yielded |= !cx->probe;
        return WEFT_PENDING;
    }
    if (cx->budget != WEFT__UNBUDGETED) cx->budget--;
    return comes(f, due, now);
}

weft_poll weft_tick_poll(void *frame, weft_cx *cx)
{
    struct weft_tick *f = frame;

    if (!f->weft__at) {
        weft_poll answer = begins(f, cx);
        if (answer == WEFT_READY || !f->weft__at) return answer;
    }
    if (weft_sleep_until_poll(&f->weft__until, cx) == WEFT_PENDING) return WEFT_PENDING;
    if (f->weft__until.ret < 0) return ends(f, f->weft__until.ret);
    return comes(f, f->every->next, weft__keeper_now(weft__keeper_here()));
}

int weft__tick(weft_interval *every)
{
    struct weft_tick f = {.every = every};
    int r = weft__run_from(weft_tick_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}
