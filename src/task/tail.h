/* SPDX-License-Identifier: MIT
 *
 * tail - what a scope's child has behind its frame: its place among its siblings.
 *
 *     | header 64 | frame, up to a multiple of 8 | tail 24 |       a large frame lies on the heap, with its tail
 * Others do not have one: task->scope says who has. In a pool's block there is always room, before the ext (ext.h).
 * Threads: the scope's lock guards it (sync/kin.h).
 */
#ifndef WEFT_TASK_TAIL_H
#define WEFT_TASK_TAIL_H

#include "base/list.h"
#include "types.h"

struct weft__tail {
    struct weft__link sibling; /* in the scope's children */
    struct weft_task *task;    /* whose tail it is         [constant] */
};

#define WEFT__TAIL_BYTES 24
_Static_assert(sizeof(struct weft__tail) == WEFT__TAIL_BYTES, "as the blocks of pools have it");

/* From the frame's first byte. */
static inline size_t weft__tail_at(const struct weft_site *site)
{
    return ((size_t)site->frame_bytes + 7) & ~(size_t)7;
}

static inline struct weft__tail *weft__tail_of(struct weft_task *task)
{
    const struct weft_site *site = task->site;
    char *place = (char *)(task + 1);
    char *frame = site->frame_bytes <= WEFT__FRAME_MAX ? place : *(char **)(void *)place;

    return (void *)(frame + weft__tail_at(site));
}

#endif
