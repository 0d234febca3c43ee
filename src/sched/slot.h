/* SPDX-License-Identifier: MIT
 *
 * slot - what a worker runs before its ring: `next`, the one task that is the hottest in its cache; and
 * its *hand*, some of the ring's oldest, taken together by one read-modify-write instead of one each.
 *
 *     next   NULL -> t   [put, by the owner]      t -> NULL   [take, by the owner; steal, by anyone]
 *            s -> t      [put, which answers s: its caller pushes that to the ring]
 *     hand   all NULL -> tasks  [deal, by the owner]   each -> NULL  [play, by the owner; steal, by anyone]
 * Only the owner fills a place, so what the owner sees empty stays empty, and a plain store is enough there.
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
 * count, and the owner says `shared` when it has seen that: at a put or take that finds a task, before it deals,
 * and at its tick. Thieves wait for it (within_reach), so what lies in the slot behind a poll that is stuck
 * before that stays there; behind all later ones it is theirs.
 *
 * A take is no StoreLoad barrier: who looks for sleepers behind it needs a fence of its own
 * (weft__worker_offer, which is told so).
 *
 * THE HAND is dealt from a long ring only (WEFT__HAND_LEAST), so that there is enough left for thieves without
 * leave, who do not get at it; and not where the slot is shared: a read-modify-write each is what the ring
 * costs. Those in it are older than all in the ring, and a thief with leave takes them first.
 *
 * A thief may compare the address of a task that has been run meanwhile with that of a new one in the
 * same memory. It gets the new one then, which was put there to be taken; the acquire of its CAS, not
 * the look before, is what shows it the contents.
 *
 * Threads: put, take, deal and play by the owner; steal and the looks by anyone. Pairs: [slot] put -> steal, [slot-sb]
 * owner <-> thief, [slot-left] thief -> owner, [slot-shared] owner -> thief.
 * Rejected: a plain field. It is 1 ns faster, and what lies in it behind a poll that does not end is
 * out of everybody's reach. An exchange for each take, and for each put that finds the slot full: 6 to
 * 10 ns, at each poll, against a thief that hardly ever comes.
 */
#ifndef WEFT_SCHED_SLOT_H
#define WEFT_SCHED_SLOT_H

#include "base/assert.h"
#include "base/atomic.h"
#include "limits.h"
#include "sys/membarrier.h"
#include "types.h"

#define WEFT__SLOT_MOST     (1 + WEFT__HAND)     /* tasks in it */
#define WEFT__SLOT_FOR_GOOD UINT32_C(0x80000000) /* in `thieves`: no membarrier, now or later */

struct weft__slot {
    struct weft_task *_Atomic task; /* `next`; NULL when empty  [slot] */
    _Atomic uint32_t thieves;       /* how many are at it, and FOR_GOOD  [slot-sb] [slot-left] */
    _Atomic bool busy;              /* the owner is at it  [slot-sb] */
    _Atomic bool shared;            /* the owner has seen FOR_GOOD  [slot-shared] */
    uint8_t at;                     /* the owner's alone: hand[at, end) is left to play, as far as it knows */
    uint8_t end;
    struct weft_task *_Atomic hand[WEFT__HAND]; /* oldest first; NULL elsewhere  [slot] */
};

_Static_assert(WEFT__HAND >= 1 && WEFT__HAND <= UINT8_MAX, "a place in the hand is a byte");

/* `shared`: there is no membarrier. */
static inline void weft__slot_init(struct weft__slot *slot, bool shared)
{
    /* relaxed, all: nobody knows it yet */
    store_relaxed(&slot->task, NULL);
    store_relaxed(&slot->thieves, shared ? WEFT__SLOT_FOR_GOOD : 0);
    store_relaxed(&slot->busy, false);
    store_relaxed(&slot->shared, shared);
    slot->at = 0;
    slot->end = 0;
    for (unsigned i = 0; i < WEFT__HAND; i++) store_relaxed(&slot->hand[i], NULL);
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

/* Owner: thieves are there, or it is shared. Gives: what was in that place of the slot. */
struct weft_task *weft__slot_swap_shared(struct weft__slot *slot, struct weft_task *_Atomic *place, struct weft_task *t);

/* Owner: fill the slot if it is empty. False: it is not, and t is still the caller's. */
static inline bool weft__slot_try_put(struct weft__slot *slot, struct weft_task *t)
{
    if (load_relaxed(&slot->task)) return false; /* relaxed: nobody else fills it */
    store_release(&slot->task, t);               /* [slot] with steal: *t */
    return true;
}

/* Owner: fill the slot. Takes: t. Gives: what was in it, or NULL. */
static inline struct weft_task *weft__slot_put(struct weft__slot *slot, struct weft_task *t)
{
    if (weft__slot_try_put(slot, t)) return NULL;
    if (!weft__slot_hold(slot)) return weft__slot_swap_shared(slot, &slot->task, t);
    struct weft_task *before = load_relaxed(&slot->task); /* relaxed: our own, or what hold has shown */
    store_relaxed(&slot->task, t);                        /* relaxed: let_go publishes it, and *t */
    weft__slot_let_go(slot);
    return before;
}

/* Owner: empty one place. Gives: the task, or NULL: a thief was there. */
static inline struct weft_task *weft__slot_empty_place(struct weft__slot *slot, struct weft_task *_Atomic *place)
{
    if (!weft__slot_hold(slot)) return weft__slot_swap_shared(slot, place, NULL);
    struct weft_task *t = load_relaxed(place); /* relaxed: as in put */
    store_relaxed(place, NULL);                /* relaxed: NULL publishes nothing */
    weft__slot_let_go(slot);
    return t;
}

/* Owner: empty `next`. Gives: the task, or NULL. */
static inline struct weft_task *weft__slot_take(struct weft__slot *slot)
{
    if (!load_relaxed(&slot->task)) return NULL; /* relaxed: nobody else fills it */
    return weft__slot_empty_place(slot, &slot->task);
}

/* Owner: is there something to play? A thief may have made it less. */
static inline bool weft__slot_has_hand(const struct weft__slot *slot)
{
    return slot->at != slot->end;
}

/* Owner: the oldest of its hand. Gives: the task, or NULL: there is none any more. */
static inline struct weft_task *weft__slot_play(struct weft__slot *slot)
{
    while (weft__slot_has_hand(slot)) {
        struct weft_task *t = weft__slot_empty_place(slot, &slot->hand[slot->at++]);
        if (t) return t;
    }
    return NULL;
}

/* Owner, not at the slot: has a thief left its word? Then it has ours from now on. */
static inline bool weft__slot_is_shared(struct weft__slot *slot)
{
    if (__builtin_expect(!(load_relaxed(&slot->thieves) & WEFT__SLOT_FOR_GOOD), 1)) return false; /* relaxed: what is missed is seen at the next look */
    store_release(&slot->shared, true); /* [slot-shared] with steal: all that we did by stores */
    return true;
}

/* Owner, whose hand is empty: these, oldest first, WEFT__HAND at most. Takes: all of them. */
static inline void weft__slot_deal(struct weft__slot *slot, struct weft_task *const *tasks, uint32_t count)
{
    weft_dassert(!weft__slot_has_hand(slot) && count <= WEFT__HAND && !load_relaxed(&slot->shared)); /* relaxed: our own */
    for (uint32_t i = 0; i < count; i++) store_release(&slot->hand[i], tasks[i]); /* [slot] with steal: the task */
    slot->at = 0;
    slot->end = (uint8_t)count;
}

/* Owner: true: t is in the slot, and no thief can have it before let_go. */
static inline bool weft__slot_hold_if(struct weft__slot *slot, const struct weft_task *t)
{
    if (load_relaxed(&slot->task) != t) return false; /* relaxed: a guess */
    if (weft__slot_hold(slot) && load_relaxed(&slot->task) == t) return true; /* relaxed: as in put */
    weft__slot_let_go(slot);
    return false;
}

/* Anyone: take everything away from its owner. Gives: the tasks, those of the hand first; returns how many; 0 also if the owner was
 * quicker. About 10 us, unless it is empty. */
uint32_t weft__slot_steal(struct weft__slot *slot, struct weft_task *into[WEFT__SLOT_MOST]);

/* Anyone: a hint: is `next` empty? A sleeper that published itself and fenced misses no task that was put before the
 * owner's own last full fence. */
static inline bool weft__slot_empty(struct weft__slot *slot)
{
    return !load_relaxed(&slot->task); /* relaxed: a hint */
}

/* Anyone: a hint: how many are in the hand? */
static inline uint32_t weft__slot_hand(struct weft__slot *slot)
{
    uint32_t count = 0;
    for (unsigned i = 0; i < WEFT__HAND; i++) count += load_relaxed(&slot->hand[i]) != NULL; /* relaxed: a hint */
    return count;
}

/* Anyone: a hint. How many are there that steal could get? None while the owner is at it: it may have lost
 * its CPU just there, and a thief would come back again and again. */
static inline uint32_t weft__slot_within_reach(struct weft__slot *slot)
{
    if (load_relaxed(&slot->busy)) return 0; /* relaxed: a hint */
    /* relaxed, both: a hint, and neither is taken back */
    if ((load_relaxed(&slot->thieves) & WEFT__SLOT_FOR_GOOD) && !load_relaxed(&slot->shared)) return 0;
    return !weft__slot_empty(slot) + weft__slot_hand(slot);
}

#endif
