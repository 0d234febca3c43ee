/* SPDX-License-Identifier: MIT
 *
 * slot - a worker's `next`: the one task that it runs before its ring, the hottest in its cache.
 *
 *     NULL -> t   [put, by the owner]      t -> NULL   [take, by the owner; steal, by anyone]
 *     s -> t      [put, which answers s: its caller pushes that to the ring]
 * Only the owner fills it, so what the owner sees empty stays empty, and a plain store is enough there.
 * For what is in it owner and thieves run. The owner is there at each poll, a thief once in a stuck poll
 * (watch.h), so the thief pays for both: the owner says that it is at the slot, and looks for thieves,
 * with no more than the compiler's fence between the two; a thief says so too, has every thread pass a
 * full fence (sys/membarrier.h), and looks for the owner.
 *
 *     owner    busy = true         light fence   read thieves    0: loads and stores; else a
 *              ... busy = false                                  read-modify-write, as everybody
 *     thief    thieves + 1         membarrier    read busy       false: CAS; true: leaves empty-handed
 *              ... thieves - 1
 *
 * WHY BOTH CANNOT BE AT IT  The owner's fence happens at the place where the membarrier finds it. Before
 * its `busy`: what it reads behind that is not older than the thief's count, and it takes the other way.
 * Behind it: the thief sees `busy`, or that the owner has left, with all that it did. [slot-sb]
 * Once the count is 0 again the owner sees what the last thief did [slot-left]. A thief that leaves
 * strands nothing: the owner moves, and takes the task itself; or it was putting one there, in a poll
 * that is stuck behind it, and the monitor finds that at its next look.
 *
 * WITHOUT MEMBARRIER  The slot is *shared*: all use read-modify-writes, for good. So it is from the start
 * where the kernel has none. Where it is taken away later (a filter), the first thief leaves FOR_GOOD in the
 * count, and the owner says `shared` when it has seen that. Thieves wait for it (within_reach), so what
 * lies in the slot behind the poll that is stuck at that moment stays there; behind all later ones it is theirs.
 *
 * A take is no StoreLoad barrier: who looks for sleepers behind it needs a fence of its own
 * (weft__worker_offer, which is told so).
 *
 * A thief may compare the address of a task that has been run meanwhile with that of a new one in the
 * same memory. It gets the new one then, which was put there to be taken; the acquire of its CAS, not
 * the look before, is what shows it the contents.
 *
 * Threads: put and take by the owner; steal and empty by anyone. Pairs: [slot] put -> steal, [slot-sb]
 * owner <-> thief, [slot-left] thief -> owner, [slot-shared] owner -> thief.
 * Rejected: a plain field. It is 1 ns faster, and what lies in it behind a poll that does not end is
 * out of everybody's reach. An exchange for each take, and for each put that finds the slot full: 6 to
 * 10 ns, at each poll, against a thief that hardly ever comes.
 */
#ifndef WEFT_SCHED_SLOT_H
#define WEFT_SCHED_SLOT_H

#include "base/assert.h"
#include "base/atomic.h"
#include "sys/membarrier.h"
#include "types.h"

#define WEFT__SLOT_FOR_GOOD UINT32_C(0x80000000) /* in `thieves`: no membarrier, now or later */

struct weft__slot {
    struct weft_task *_Atomic task; /* NULL when empty  [slot] */
    _Atomic uint32_t thieves;       /* how many are at it, and FOR_GOOD  [slot-sb] [slot-left] */
    _Atomic bool busy;              /* the owner is at it  [slot-sb] */
    _Atomic bool shared;            /* the owner has seen FOR_GOOD  [slot-shared] */
};

/* `shared`: there is no membarrier. */
static inline void weft__slot_init(struct weft__slot *slot, bool shared)
{
    /* relaxed, all: nobody knows it yet */
    store_relaxed(&slot->task, NULL);
    store_relaxed(&slot->thieves, shared ? WEFT__SLOT_FOR_GOOD : 0);
    store_relaxed(&slot->busy, false);
    store_relaxed(&slot->shared, shared);
}

/* Owner: true: until let_go it has the slot to itself. */
static inline bool weft__slot_hold(struct weft__slot *slot)
{
    store_relaxed(&slot->busy, true); /* relaxed: the thief's fence orders it */
    fence_light();                    /* [slot-sb] with steal: it sees us, or we its count */
    return __builtin_expect(load_acquire(&slot->thieves) == 0, 1); /* [slot-left] with steal: what it left */
}

static inline void weft__slot_let_go(struct weft__slot *slot)
{
    store_release(&slot->busy, false); /* [slot-sb] with steal: the slot as we leave it, and the task in it */
}

/* Owner: thieves are there, or it is shared. Gives: what was in the slot. */
struct weft_task *weft__slot_swap_shared(struct weft__slot *slot, struct weft_task *t);

/* Owner: fill the slot. Takes: t. Gives: what was in it, or NULL. */
static inline struct weft_task *weft__slot_put(struct weft__slot *slot, struct weft_task *t)
{
    if (!load_relaxed(&slot->task)) {  /* relaxed: nobody else fills it */
        store_release(&slot->task, t); /* [slot] with steal: *t */
        return NULL;
    }
    if (!weft__slot_hold(slot)) return weft__slot_swap_shared(slot, t);
    struct weft_task *before = load_relaxed(&slot->task); /* relaxed: our own, or what hold has shown */
    store_relaxed(&slot->task, t);                        /* relaxed: let_go publishes it, and *t */
    weft__slot_let_go(slot);
    return before;
}

/* Owner: empty the slot. Gives: the task, or NULL. */
static inline struct weft_task *weft__slot_take(struct weft__slot *slot)
{
    if (!load_relaxed(&slot->task)) return NULL; /* relaxed: nobody else fills it */
    if (!weft__slot_hold(slot)) return weft__slot_swap_shared(slot, NULL);
    struct weft_task *t = load_relaxed(&slot->task); /* relaxed: as in put */
    store_relaxed(&slot->task, NULL);                /* relaxed: NULL publishes nothing */
    weft__slot_let_go(slot);
    return t;
}

/* Owner: true: t is in the slot, and no thief can have it before let_go. */
static inline bool weft__slot_hold_if(struct weft__slot *slot, const struct weft_task *t)
{
    if (load_relaxed(&slot->task) != t) return false; /* relaxed: a guess */
    if (weft__slot_hold(slot) && load_relaxed(&slot->task) == t) return true; /* relaxed: as in put */
    weft__slot_let_go(slot);
    return false;
}

/* Anyone: take the task away from its owner. Gives: the task; NULL also if the owner was quicker. About
 * 10 us, unless it is empty. */
struct weft_task *weft__slot_steal(struct weft__slot *slot);

/* Anyone: a hint. A sleeper that published itself and fenced misses no task that was put before the
 * owner's own last full fence. */
static inline bool weft__slot_empty(struct weft__slot *slot)
{
    return !load_relaxed(&slot->task); /* relaxed: a hint */
}

/* Anyone: a hint. Is there something that steal could get? Not while the owner is at it: it may have lost
 * its CPU just there, and a thief would come back again and again. */
static inline bool weft__slot_within_reach(struct weft__slot *slot)
{
    if (weft__slot_empty(slot) || load_relaxed(&slot->busy)) return false; /* relaxed: a hint */
    /* relaxed, both: a hint, and neither is taken back */
    return !(load_relaxed(&slot->thieves) & WEFT__SLOT_FOR_GOOD) || load_relaxed(&slot->shared);
}

#endif
