/* SPDX-License-Identifier: MIT
 *
 * park - one thread sleeps until another hands it a token.
 *
 *     EMPTY     running, no token
 *     NOTIFIED  running, a token is stored: the next park returns at once
 *     PARKED    asleep, or about to be
 *
 *     EMPTY    -> PARKED     [park]             sleeps
 *     NOTIFIED -> EMPTY      [park]             the token was there; one subtraction does either
 *     any      -> NOTIFIED   [unpark]           a syscall only if it was PARKED
 *     NOTIFIED -> EMPTY      [park, woken]      took the token
 *     PARKED   -> EMPTY      [park, timed out]  without one
 * At most one token is stored: two unparks before a park end that one park only. A token is never
 * lost: unpark is a read-modify-write, and park goes back to EMPTY by another, which sees it. So a
 * park may return for a reason that is long past, and its caller looks again, always.
 *
 * Pairs: [park] unpark -> park: what was written before the unpark, by each of several.
 * Threads: park by the owner; unpark by anyone. The owner's memory outlives the last unpark; the
 * kernel may be asked about it a moment later, which is harmless (sys/futex.h).
 */
#ifndef WEFT_SCHED_PARK_H
#define WEFT_SCHED_PARK_H

#include "base/atomic.h"
#include "sys/futex.h"

struct weft__park {
    _Atomic uint32_t word; /* EMPTY, NOTIFIED or PARKED  [park] */
};

void weft__park_init(struct weft__park *park);

/* Take a token, waiting for it until `deadline_ns` (monotonic; WEFT__NEVER: no end). True: took it.
 * False: the deadline passed without one. Blocks: yes. */
bool weft__park(struct weft__park *park, int64_t deadline_ns);

/* Hand a token over. Blocks: no. A syscall only if the thread sleeps. */
void weft__unpark(struct weft__park *park);

#endif
