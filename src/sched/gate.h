/* SPDX-License-Identifier: MIT
 *
 * gate - threads outside that spawn, against a runtime that closes.
 *
 *     a thread outside     count + 1        fence   read the stage: closing? count - 1, refused
 *                          makes the task, enters it into the registry, pushes it; count - 1
 *     stop                 stage = CLOSING  fence   read the count, until it is zero
 * Each side writes one place and reads the other's: it is refused, or it is waited for, and what
 * it made is in the registry before the sweep that counts: one that begins when the gate was seen empty.
 * Arguments of a spawn are evaluated inside the gate, and may wait for a task: so stop sweeps before, too. Workers need no gate: what they spawn is
 * spawned by a task that lives, so that another sweep follows (stop.c).
 *
 * Threads: enter and leave by threads outside; shut and is_empty by who stops. Pairs: [rt-gate], [rt-stage].
 */
#ifndef WEFT_SCHED_GATE_H
#define WEFT_SCHED_GATE_H

#include "sched/sched.h"

/* From outside: be seen by a runtime that closes, or see that it does. True: inside, until
 * leave. */
static inline bool weft__gate_enter(struct weft_rt *rt)
{
    /* [rt-gate] with is_empty: it waits for us, or we see that it closes */
    fetch_add_acq_rel(&rt->gate, 1);
    mb_after_rmw(); /* [rt-gate] with shut: store buffering, our count against its stage */
    if (load_relaxed(&rt->stage) == WEFT__OPEN) return true; /* relaxed: ordered by the fence */
    fetch_sub_release(&rt->gate, 1);                         /* [rt-gate] with is_empty */
    return false;
}

static inline void weft__gate_leave(struct weft_rt *rt)
{
    fetch_sub_release(&rt->gate, 1); /* [rt-gate] with is_empty: the task is in the registry */
}

/* By who stops. Nobody gets in any more. */
static inline void weft__gate_shut(struct weft_rt *rt)
{
    store_release(&rt->stage, WEFT__CLOSING); /* [rt-stage] with the workers */
    fence_seq_cst(); /* [rt-gate] with enter: store buffering, our stage against their count */
}

/* By who shut it: is nobody inside any more? Once it is true it stays so. */
static inline bool weft__gate_is_empty(const struct weft_rt *rt)
{
    return load_acquire(&rt->gate) == 0; /* [rt-gate] with enter and leave: what they made is in the registry */
}

#endif
