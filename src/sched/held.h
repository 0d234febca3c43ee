/* SPDX-License-Identifier: MIT
 *
 * held - how many still need a runtime's memory; whoever is the last gives it back.
 *
 *     held = WEFT__HELD_OPEN - blocks freed from outside + threads in a push   while it is open
 *     held = blocks that are still referred to           + threads in a push   once it has stopped
 * Stop adds the difference, blocks outside less WEFT__HELD_OPEN, so that the word is zero once
 * only: it cannot be before stop, and nobody who holds nothing may come back after it.
 *
 * Threads: any. Pairs: [rt-held].
 */
#ifndef WEFT_SCHED_HELD_H
#define WEFT_SCHED_HELD_H

#include "base/atomic.h"

/* In `held` until the runtime has stopped. More than there can ever be blocks and threads. */
#define WEFT__HELD_OPEN (INT64_C(1) << 62)

/* By one for whom something else still holds it. */
static inline void weft__held_one_more(_Atomic int64_t *held)
{
    fetch_add_relaxed(held, 1); /* relaxed: something else still holds the runtime */
}

/* The caller's last touch. True: it was everybody's, and the caller frees the memory. */
static inline bool weft__held_change(_Atomic int64_t *held, int64_t change)
{
    /* [rt-held] with itself: every last touch comes before the memory goes */
    return fetch_add_acq_rel(held, change) + change == 0;
}

#endif
