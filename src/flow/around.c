/* SPDX-License-Identifier: MIT
 *
 * around - the two shapes of a region, and those that a token makes; the idea is in around.h.
 */
#include "flow/around.h"

#include "flow/arm.h"

/* ---- a future around a child --------------------------------------------------------------------- */

static weft_poll over(struct weft__around *around, const weft_future *of, weft_cx *cx, int *ret)
{
    weft__region_settle(&around->region, cx);
    *ret = weft__arm_gave_up(of);
    return WEFT_READY;
}

static weft_poll nobody(int *ret)
{
    *ret = -EINVAL;
    return WEFT_READY;
}

static weft_poll refuse(weft_future *of, weft_cx *cx, int *ret)
{
    weft__arm_refuse(of, cx, cx->why);
    *ret = cx->why;
    return WEFT_READY;
}

/* Nothing begins, neither the child nor the region. */
static weft_poll probe(struct weft__around *around, weft_future *of, weft_cx *cx, int *ret)
{
    if (weft__arm_is_refused(cx)) return refuse(of, cx, ret);
    if (!(of->kind & WEFT__ARM_PROBES) || weft__region_asks(&around->region, cx))
        return WEFT_PENDING;
    return weft__arm_probe(of, cx) ? over(around, of, cx, ret) : WEFT_PENDING;
}

weft_poll weft__around_poll(struct weft__around *around, weft_future *of, weft_cx *cx, int *ret)
{
    struct weft__region *region = &around->region;

    if (!weft__arm_runs(of)) return nobody(ret);
    if (cx->probe) return probe(around, of, cx, ret);
    do { /* twice at most: what asks has begun */
        (void)weft__region_asks(region, cx);
        int why = weft__region_why(region, cx->why);
        if (weft__arm_poll(of, cx, why, false)) return over(around, of, cx, ret);
    } while (weft__region_begin(region, cx));
    return WEFT_PENDING;
}

void weft__region_block_leave(struct weft__region_block *block)
{
    weft__region_leave(&weft__around_of(block)->region);
}

/* ---- tokens -------------------------------------------------------------------------------------- */

static struct weft__around *until_init(struct weft__region_block *block, weft_token *token)
{
    struct weft__around *around = weft__around_of(block);
    weft_pollfn *poll = token ? weft__token_leaf_poll : NULL;

    around->leaf.token = (struct weft_token_wait){.token = token};
    weft__region_init(&around->region, poll, &around->leaf.token, -ECANCELED, false);
    return around;
}

void weft__until_enter(struct weft__region_block *block, weft_token *token)
{
    weft__region_enter(&until_init(block, token)->region);
}

weft_poll weft_until_poll(void *frame, weft_cx *cx)
{
    struct weft_until *f = frame;

    if (!f->weft__at) (void)until_init(&f->weft__b, f->token);
    f->weft__at = 1;
    return weft__around_poll(weft__around_of(&f->weft__b), &f->of, cx, &f->ret);
}
