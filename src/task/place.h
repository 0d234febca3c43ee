/* SPDX-License-Identifier: MIT
 *
 * place - where a task goes when it is pushed, and what else few tasks are: sixteen bits of the header.
 *
 *     bits 0..7   0: anywhere; 1 + n: to worker n alone; WEFT__PLACE_BACKGROUND: the queue of those that can wait
 *     NO_BUDGET   its polls have no budget; for life
 *     PIN_BLOCK   the place lasts until the end of a WEFT_PINNED
 *     BOXED       its frame is too large for the block, which holds a pointer to it; for life
 *
 * Written by the spawner before publication, and by the task itself while it runs. Read by whoever pushes: that one has
 * made, polled or claimed the task, and the claim acquires what the last poll left ([state-poll]). So plain relaxed loads
 * and stores do, beside the state word on a line that is at hand.
 * Rejected: bits of the state word (a read-modify-write to change them, and the flags are few).
 */
#ifndef WEFT_TASK_PLACE_H
#define WEFT_TASK_PLACE_H

#include "limits.h"
#include "types.h"

#define WEFT__PLACE            UINT32_C(0x00ff)
#define WEFT__PLACE_BACKGROUND UINT32_C(0x00ff)
#define WEFT__PLACE_NO_BUDGET  UINT32_C(0x0100)
#define WEFT__PLACE_PIN_BLOCK  UINT32_C(0x0200)
#define WEFT__PLACE_BOXED      UINT32_C(0x0400)

_Static_assert(WEFT__WORKERS_MAX < WEFT__PLACE_BACKGROUND,
               "every worker is a place, and none is the background");

/* Place and all else. */
static inline uint32_t weft__place_look(const struct weft_task *task)
{
    return load_relaxed(&task->place); /* relaxed: see above */
}

/* Does it go to a place of its own when it is pushed? */
static inline bool weft__is_placed(const struct weft_task *task)
{
    return weft__place_look(task) & WEFT__PLACE;
}

/* The place of a task that only worker `index` polls. */
static inline uint32_t weft__place_home(uint32_t index)
{
    return index + 1;
}

/* During the task's poll: another place, with or without PIN_BLOCK. */
static inline void weft__place_change(struct weft_task *task, uint32_t place)
{
    uint32_t kept = weft__place_look(task) & (WEFT__PLACE_NO_BUDGET | WEFT__PLACE_BOXED);
    store_relaxed(&task->place, (uint16_t)(kept | place)); /* relaxed: the end of this poll releases it */
}

#endif
