/* SPDX-License-Identifier: MIT
 *
 * slot - the thief's side, and the owner's beside thieves; the idea is in slot.h.
 */
#include "sched/slot.h"

struct weft_task *weft__slot_swap_shared(struct weft__slot *slot, struct weft_task *_Atomic *place, struct weft_task *t)
{
    weft__slot_let_go(slot);
    (void)weft__slot_is_shared(slot);
    /* [slot] with steal: *t. No acquire: what comes out was put by this thread. */
    return exchange_release(place, t);
}

/* A thief that counts itself, before it touches the task: may it? */
static bool has_leave(struct weft__slot *slot)
{
    if (load_acquire(&slot->shared)) return true; /* [slot-shared] with is_shared */
    if (weft__membarrier() < 0) {                 /* [slot-sb] with hold: it sees our count, or we see it */
        fetch_or_relaxed(&slot->thieves, WEFT__SLOT_FOR_GOOD); /* relaxed: the owner's answer orders it */
        return false;
    }
    return !load_acquire(&slot->busy); /* [slot-sb] with let_go: the slot as it left it */
}

static struct weft_task *take_from_owner(struct weft_task *_Atomic *place)
{
    struct weft_task *t = load_relaxed(place); /* relaxed: a guess that the CAS verifies */

    if (!t) return NULL;
    return cas_acquire(place, &t, NULL) ? t : NULL; /* [slot] with put and deal: *t */
}

static uint32_t take_all(struct weft__slot *slot, struct weft_task **into)
{
    uint32_t count = 0;
    for (unsigned i = 0; i < WEFT__HAND; i++) {
        into[count] = take_from_owner(&slot->hand[i]);
        count += into[count] != NULL;
    }
    into[count] = take_from_owner(&slot->task);
    return count + (into[count] != NULL);
}

uint32_t weft__slot_steal(struct weft__slot *slot, struct weft_task *into[WEFT__SLOT_MOST])
{
    if (weft__slot_within_reach(slot) == 0) return 0;
    fetch_add_relaxed(&slot->thieves, 1); /* relaxed: the membarrier orders it */
    uint32_t count = has_leave(slot) ? take_all(slot, into) : 0;
    fetch_sub_release(&slot->thieves, 1); /* [slot-left] with hold: what we took */
    return count;
}
