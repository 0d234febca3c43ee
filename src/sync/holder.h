/* SPDX-License-Identifier: MIT
 *
 * holder - who has a lock: one word, written by plain stores, for messages and for the refusal of mistakes.
 *
 *     a task      its address, with 16 bits of its block's generation above it: a task that comes later is another holder
 *     a thread    the address of its record (task/here.h), with the low bit set
 *     nobody      0
 * The word holds no reference. What it says of another task is looked at by weft__peek alone: task and runtime may be gone.
 * Threads: any. Under WEFT_MODEL, where all threads are one, the test says who it is.
 */
#ifndef WEFT_SYNC_HOLDER_H
#define WEFT_SYNC_HOLDER_H

#include "base/atomic.h"

#include <stdint.h>

#if defined(WEFT_MODEL)
uintptr_t weft__holder_self(void);

static inline bool weft__holder_may_block(void)
{
    return false;
}
#else
#include "task/here.h"
#include "task/state.h"

#define WEFT__HOLDER_THREAD    ((uintptr_t)1)
#define WEFT__HOLDER_GEN_SHIFT 48 /* addresses of a process end below, unless it asks for more */

static inline uintptr_t weft__holder_self(void)
{
    struct weft__here *here = weft__here();
    struct weft_task *task = here->task;
    if (!task) return (uintptr_t)here | WEFT__HOLDER_THREAD;
    return (uintptr_t)task | (uintptr_t)weft__state_generation(task) << WEFT__HOLDER_GEN_SHIFT;
}

/* A plain thread outside of everything: nobody tells it to stop, and it has nobody to let run. */
static inline bool weft__holder_may_block(void)
{
    const struct weft__here *here = weft__here();
    return !here->fiber && !here->cx && !here->task && !here->regions;
}
#endif

/* The holder is a task that has ended: says so, by its name if that is still there. True: it was said. */
bool weft__holder_report_ended(uintptr_t holder, const char *what, const void *lock);

/* `what` was done to a lock that `holder` has, and self should not have: one line that names both, and from where it was
 * called if that is known. Debug builds abort. Gives `error` back. */
int weft__holder_misuse(uintptr_t holder, const char *what, const void *caller, int error);

#endif
