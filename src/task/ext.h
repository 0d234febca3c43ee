/* SPDX-License-Identifier: MIT
 *
 * ext - where a task's ext lies (types.h): on the heap, and for a task in a pool at the end of its block.
 */
#ifndef WEFT_TASK_EXT_H
#define WEFT_TASK_EXT_H

#include "base/alloc.h"
#include "base/slab.h"
#include "task/tail.h"
#include "types.h"

/* Left at the end of a pool's blocks; the macros of weft/pool.h count on it. The tail of a scope's child comes first. */
#define WEFT__EXT_BYTES 64
_Static_assert(WEFT__TAIL_BYTES + sizeof(struct weft__ext) <= WEFT__EXT_BYTES,
               "tail and ext fit behind a pooled frame");

/* Gives an ext of zeroes, not yet the task's; NULL: no memory. weft__ext_free takes it. */
static inline struct weft__ext *weft__ext_new(struct weft_task *task)
{
    if (!weft__slab_pooled(task)) return weft__alloc(sizeof(struct weft__ext));
    struct weft__ext *ext = (void *)((char *)task + weft__slab_chunk_of(task)->block_bytes -
                                     WEFT__EXT_BYTES + WEFT__TAIL_BYTES);
    *ext = (struct weft__ext){0};
    return ext;
}

static inline void weft__ext_free(struct weft_task *task)
{
    if (!weft__slab_pooled(task)) weft__free(task->ext);
}

#endif
