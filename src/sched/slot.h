/* SPDX-License-Identifier: MIT
 *
 * slot - a worker's `next`: the one task that it runs before its ring, the hottest in its cache.
 *
 *     NULL -> t   [put, by the owner]      t -> NULL   [take, by the owner; steal, by anyone]
 *     s -> t      [put, which answers s: its caller pushes that to the ring]
 * Only the owner fills it, so what the owner sees empty stays empty, and a plain store is enough there;
 * emptying is always a read-modify-write, since owner and thieves run for the task. That the owner's
 * take is one has a second use: it is the StoreLoad barrier in the worker's loop, before the look for
 * sleepers (mb_after_rmw), in those polls that no CAS of the ring begins.
 *
 * A thief may compare the address of a task that has been run meanwhile with that of a new one in the
 * same memory. It gets the new one then, which was put there to be taken; the acquire of its CAS, not
 * the look before, is what shows it the contents.
 *
 * Threads: put and take by the owner; steal and empty by anyone. Pair: [slot] put -> steal.
 * Rejected: a plain field. It is 1-2 ns faster, and what lies in it behind a poll that does not end is
 * out of everybody's reach.
 */
#ifndef WEFT_SCHED_SLOT_H
#define WEFT_SCHED_SLOT_H

#include "base/atomic.h"
#include "types.h"

struct weft__slot {
    struct weft_task *_Atomic task; /* NULL when empty  [slot] */
};

static inline void weft__slot_init(struct weft__slot *slot)
{
    store_relaxed(&slot->task, NULL); /* relaxed: not shared yet */
}

/* Owner: fill the slot. Takes: t. Gives: what was in it, or NULL. */
static inline struct weft_task *weft__slot_put(struct weft__slot *slot, struct weft_task *t)
{
    if (!load_relaxed(&slot->task)) {  /* relaxed: nobody else fills it */
        store_release(&slot->task, t); /* [slot] with steal: *t */
        return NULL;
    }
    /* [slot] with steal: *t. No acquire: what comes out was put by this thread. */
    return exchange_release(&slot->task, t);
}

/* Owner: empty the slot. Gives: the task, or NULL. It gets a task by a read-modify-write. */
static inline struct weft_task *weft__slot_take(struct weft__slot *slot)
{
    if (!load_relaxed(&slot->task)) return NULL; /* relaxed: nobody else fills it */
    /* relaxed: what comes out was put by this thread, and NULL publishes nothing */
    return exchange_relaxed(&slot->task, NULL);
}

/* Anyone: take the task away from its owner. Gives: the task; NULL also if the owner was quicker. */
static inline struct weft_task *weft__slot_steal(struct weft__slot *slot)
{
    struct weft_task *t = load_relaxed(&slot->task); /* relaxed: a guess that the CAS verifies */

    if (!t) return NULL;
    return cas_acquire(&slot->task, &t, NULL) ? t : NULL; /* [slot] with put: *t */
}

/* Anyone: a hint. A sleeper that published itself and fenced misses no task that was put before the
 * owner's own last full fence. */
static inline bool weft__slot_empty(struct weft__slot *slot)
{
    return !load_relaxed(&slot->task); /* relaxed: a hint */
}

#endif
