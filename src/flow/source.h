/* SPDX-License-Identifier: MIT
 *
 * source - how one source asks another (weft/source.h).
 */
#ifndef WEFT_FLOW_SOURCE_H
#define WEFT_FLOW_SOURCE_H

#include "base/list.h"
#include "types.h"

#include <weft/source.h>

#include <string.h>

/* In weft__probes: it answers a look without registering anything (a program's own sources do not know what a look is); its items last until the next pull only;
 * it gives several at once, into an array. */
enum { WEFT__SOURCE_PROBES = 1, WEFT__SOURCE_LENDS = 2, WEFT__SOURCE_SEVERAL = 4 };

/* One poll of a pull. An answer costs the poll one operation, here if it did not beneath, as of a program's own source or generator. */
static inline weft_poll weft__source_poll(weft_source *source, void *into, weft_cx *cx)
{
    uint32_t budget = cx->budget;

    if (cx->probe && !(source->weft__probes & WEFT__SOURCE_PROBES)) return WEFT_PENDING;
    weft_poll poll = source->poll(source, into, cx);
    if (poll == WEFT_READY && budget > 0 && cx->budget == budget)
        cx->budget = weft__charged(budget);
    return poll;
}

/* Before a source is asked once more. False: the poll has used up its budget; it lets others run, and hears then whether it is to stop. */
static inline bool weft__source_may(weft_cx *cx)
{
    if (cx->budget > 0 || cx->probe) return true;
    cx->yielded = true;
    return false;
}

/* The same, told to stop: for a pull that has begun. */
static inline weft_poll weft__source_stop(weft_source *source, void *into, weft_cx *cx, int why)
{
    int outer = cx->why;
    if (!outer) cx->why = why;
    weft_poll poll = source->poll(source, into, cx);
    cx->why = outer;
    return poll;
}

#endif
