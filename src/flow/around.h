/* SPDX-License-Identifier: MIT
 *
 * around - regions as users write them: blocks of fibers and threads, and futures around a child frame.
 *
 * Both hold a region (task/region.h) and the leaf that makes it ask, in the place that struct weft__region_block leaves for them. A
 * block is linked from its fiber; a future derives its child's reason at each poll, and needs no link.
 */
#ifndef WEFT_FLOW_AROUND_H
#define WEFT_FLOW_AROUND_H

#include "task/region.h"

#include <weft/region.h>

struct weft__around {
    struct weft__region region;
    union {
        struct weft_token_wait token;
        struct weft_sleep sleep;
        struct weft_sleep_until until;
    } leaf;
};
_Static_assert(sizeof(struct weft__around) <= sizeof(struct weft__region_block),
               "a region fits its place");

static inline struct weft__around *weft__around_of(struct weft__region_block *block)
{
    return (struct weft__around *)(void *)block;
}

/* A token's leaf: weft_token_wait, but that it costs no budget, since a region is looked at with every poll of its task; and once it has begun it is registered. */
weft_pollfn weft__token_leaf_poll;

/* The poll of a future around a child, whose region was made at the first poll. */
weft_poll weft__around_poll(struct weft__around *around, weft_future *of, weft_cx *cx, int *ret);

#endif
