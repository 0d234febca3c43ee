/* SPDX-License-Identifier: MIT
 *
 * region - leaves that ask, and the chain of blocks; the idea is in region.h.
 */
#include "task/region.h"

#include "base/assert.h"
#include "task/fiber.h"
#include "task/here.h"

#include <errno.h>

/* ---- one region ---------------------------------------------------------------------------------- */

void weft__region_init(struct weft__region *region, weft_pollfn *poll, void *leaf, int why,
                       bool shield)
{
    *region = (struct weft__region){.poll = poll, .leaf = leaf, .why = why, .shield = shield};
}

/* `cx` is changed in place: a fiber beneath finds it by this address. A leaf costs no budget: one that has to ask
 * for some could neither begin nor settle without, and others of the same task may have spent it. */
static bool leaf_is_over(struct weft__region *region, weft_cx *cx, int why)
{
    int outer = cx->why;
    uint32_t budget = cx->budget;
    cx->why = why;
    cx->budget = WEFT__UNBUDGETED;
    weft_poll answer = region->poll(region->leaf, cx);
    cx->why = outer;
    cx->budget = budget;
    return answer == WEFT_READY;
}

bool weft__region_asks(struct weft__region *region, weft_cx *cx)
{
    bool outer = cx->probe;

    if (region->asks || !region->poll) return region->asks;
    cx->probe |= !region->begun; /* a look registers nothing */
    region->asks = leaf_is_over(region, cx, 0);
    cx->probe = outer;
    if (region->asks) region->begun = false;
    return region->asks;
}

bool weft__region_begin(struct weft__region *region, weft_cx *cx)
{
    if (region->begun || region->asks || !region->poll) return false;
    region->begun = true;
    return weft__region_asks(region, cx);
}

void weft__region_settle(struct weft__region *region, weft_cx *cx)
{
    if (!region->begun) return;
    bool over = leaf_is_over(region, cx, -ECANCELED);
    weft_assert(over); /* a waiting leaf settles at once */
    region->begun = false;
}

/* ---- blocks -------------------------------------------------------------------------------------- */

static struct weft__region **chain_here(void)
{
    struct weft__here *here = weft__here();
    return here->fiber ? &here->fiber->regions : &here->regions;
}

void weft__region_enter(struct weft__region *region)
{
    struct weft__region **chain = chain_here();
    region->fiber = weft__here()->fiber;
    region->outer = *chain;
    region->relays = region->told || (region->outer && region->outer->relays);
    *chain = region;
}

void weft__region_leave(struct weft__region *region)
{
    struct weft__here *here = weft__here();

    if (here->fiber != region->fiber)
        return; /* it forked, and this is the child: all leaves are lost */
    struct weft__region **chain = chain_here();
    weft_assert(*chain == region); /* blocks are left in the order in which they were entered */
    *chain = region->outer;
    if (region->begun) weft__region_settle(region, here->cx);
}

/* Up to the nearest shield: what lies beyond is not heard. */
static int look_at_all(struct weft__region *innermost, weft_cx *cx)
{
    int why = 0;

    for (struct weft__region *r = innermost; r; r = r->outer) {
        if (weft__region_asks(r, cx)) why = r->why;
        if (r->shield) return why;
    }
    return cx->why ? cx->why : why;
}

/* Those who relay hear what comes from further out, each up to the nearest shield around itself. */
static __attribute__((noinline)) void tell_all(struct weft__region *innermost, weft_cx *cx)
{
    for (struct weft__region *r = innermost; r && r->relays; r = r->outer) {
        int why = r->told ? look_at_all(r->outer, cx) : 0;
        if (why) r->told(r, why);
    }
}

/* All of them. True: one that is heard asks now. */
static bool begin_all(struct weft__region *innermost, weft_cx *cx)
{
    bool heard = true;
    bool asks = false;

    for (struct weft__region *r = innermost; r && !r->begun; r = r->outer) {
        if (weft__region_begin(r, cx)) asks |= heard;
        if (r->shield) heard = false;
    }
    return asks;
}

weft_poll weft__regions_poll(struct weft__region *innermost, weft_pollfn *poll, void *frame,
                             weft_cx *cx)
{
    int outer = cx->why;
    weft_poll answer;

    do { /* again at most once for each region: what asks has begun */
        if (__builtin_expect(innermost && innermost->relays, 0)) tell_all(innermost, cx);
        cx->why = look_at_all(innermost, cx);
        answer = poll(frame, cx);
        cx->why = outer;
    } while (answer == WEFT_PENDING && begin_all(innermost, cx));
    return answer;
}

void weft__regions_pause(struct weft__region *innermost, weft_cx *cx)
{
    for (struct weft__region *r = innermost; r; r = r->outer)
        weft__region_settle(r, cx);
}
