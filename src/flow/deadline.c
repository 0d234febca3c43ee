/* SPDX-License-Identifier: MIT
 *
 * deadline - regions of time: timeouts, deadlines, shields.
 *
 * The leaf is a sleep, so a deadline block costs a timer only from its first suspension on, and one that is left before it has
 * passed takes the timer out again: arm and cancel, the fate of most, are a few nanoseconds each.
 * On a plain thread each call has a waker of its own, for which leaves begin anew; so the time of a timeout is fixed when the block
 * is entered, and its leaf is a sleep until then.
 * WEFT_FOREVER has no leaf. A thread that has no memory for its timers finds its deadlines passed: to wait without the bound that
 * was asked for would be worse.
 */
#include "flow/around.h"
#include "task/here.h"

#include <errno.h>

static struct weft__around *init_after(struct weft__region_block *block, weft_time ns, bool shield)
{
    struct weft__around *around = weft__around_of(block);
    weft_pollfn *poll = ns == WEFT_FOREVER ? NULL : weft_sleep_poll;

    around->leaf.sleep = (struct weft_sleep){.ns = ns};
    weft__region_init(&around->region, poll, &around->leaf.sleep, -ETIME, shield);
    return around;
}

static struct weft__around *init_at(struct weft__region_block *block, weft_time at, bool shield)
{
    struct weft__around *around = weft__around_of(block);
    weft_pollfn *poll = at == WEFT_FOREVER ? NULL : weft_sleep_until_poll;

    around->leaf.until = (struct weft_sleep_until){.at = at};
    weft__region_init(&around->region, poll, &around->leaf.until, -ETIME, shield);
    return around;
}

/* ---- blocks -------------------------------------------------------------------------------------- */

static void enter_after(struct weft__region_block *block, weft_time ns, bool shield)
{
    bool on_fiber = weft__here()->fiber || ns == WEFT_FOREVER;
    struct weft__around *around = on_fiber ? init_after(block, ns, shield)
                                           : init_at(block, weft_later(weft_now(), ns), shield);
    weft__region_enter(&around->region);
}

void weft__timeout_enter(struct weft__region_block *block, weft_time ns)
{
    enter_after(block, ns, false);
}

void weft__shield_enter(struct weft__region_block *block, weft_time ns)
{
    enter_after(block, ns, true);
}

void weft__deadline_enter(struct weft__region_block *block, weft_time at)
{
    weft__region_enter(&init_at(block, at, false)->region);
}

/* ---- around a child ------------------------------------------------------------------------------ */

weft_poll weft_timeout_poll(void *frame, weft_cx *cx)
{
    struct weft_timeout *f = frame;

    if (!f->weft__at) (void)init_after(&f->weft__b, f->ns, false);
    f->weft__at = 1;
    return weft__around_poll(weft__around_of(&f->weft__b), &f->of, cx, &f->ret);
}

weft_poll weft_shield_poll(void *frame, weft_cx *cx)
{
    struct weft_shield *f = frame;

    if (!f->weft__at) (void)init_after(&f->weft__b, f->ns, true);
    f->weft__at = 1;
    return weft__around_poll(weft__around_of(&f->weft__b), &f->of, cx, &f->ret);
}

weft_poll weft_deadline_poll(void *frame, weft_cx *cx)
{
    struct weft_deadline *f = frame;

    if (!f->weft__at) (void)init_at(&f->weft__b, f->at, false);
    f->weft__at = 1;
    return weft__around_poll(weft__around_of(&f->weft__b), &f->of, cx, &f->ret);
}
