/* SPDX-License-Identifier: MIT
 *
 * park - one thread sleeps until another hands it a token.
 *
 *     EMPTY      running, no token
 *     NOTIFIED   running, a token is stored: the next park returns at once
 *     PARKED     asleep on the futex, or about to be
 *     ELSEWHERE  asleep in something else, or about to be: an event is in there that ends it
 *
 *     EMPTY    -> PARKED     [park]             sleeps
 *     NOTIFIED -> EMPTY      [park]             the token was there; one subtraction does either
 *     any      -> NOTIFIED   [unpark]           a syscall only if it was PARKED or ELSEWHERE
 *     NOTIFIED -> EMPTY      [park, woken]      took the token
 *     PARKED   -> EMPTY      [park, timed out]  without one
 *     EMPTY     -> ELSEWHERE [park_elsewhere]   the owner goes to wait where the event is
 *     NOTIFIED or ELSEWHERE -> EMPTY  [park_back]  with a token, or without
 * At most one token is stored: two unparks before a park end that one park only. A token is never
 * lost: unpark is a read-modify-write, and park goes back to EMPTY by another, which sees it. So a
 * park may return for a reason that is long past, and its caller looks again, always.
 *
 * ELSEWHERE the signal comes behind the token: a wait that begins after it ends at once, since the event stays until the
 * wait has brought it; one that ended for another reason leaves it there, and the next wait ends early, once.
 *
 * Pairs: [park] unpark -> park: what was written before the unpark, by each of several.
 *        [park-event] park_elsewhere -> unpark: which event it is.
 * Threads: park by the owner; unpark by anyone. The owner's memory outlives the last unpark; the
 * kernel may be asked about it a moment later, which is harmless (sys/futex.h).
 */
#ifndef WEFT_SCHED_PARK_H
#define WEFT_SCHED_PARK_H

#include "base/atomic.h"
#include "sys/futex.h"

struct weft__park {
    _Atomic uint32_t word; /* EMPTY, NOTIFIED, PARKED or ELSEWHERE  [park] */
    _Atomic int event;     /* ELSEWHERE: what ends it (sys/event.h)  [park-event] */
};

void weft__park_init(struct weft__park *park);

/* Take a token, waiting for it until `deadline_ns` (monotonic; WEFT__NEVER: no end). True: took it.
 * False: the deadline passed without one. Blocks: yes. */
bool weft__park(struct weft__park *park, int64_t deadline_ns);

/* The owner is about to wait where `event` is watched. False: a token was there, and is taken: it does not wait. */
bool weft__park_elsewhere(struct weft__park *park, int event);

/* It has waited there. True: took a token. */
bool weft__park_back(struct weft__park *park);

/* Hand a token over. Blocks: no. A syscall only if the thread sleeps. */
void weft__unpark(struct weft__park *park);

#endif
