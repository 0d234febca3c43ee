/* SPDX-License-Identifier: MIT
 *
 * set - what a task set is inside, for it and for those that are built on it (flow/keyed.c).
 *
 * One lock guards all: those who run, those who have ended, those who wait. The wait list's own head is used only while turns are given; who
 * waits for a member hangs in `takers`, who waits for a place in `spawners`, and moves over when it is his turn.
 *     members that run + places reserved == running        ended list's length == ended_count
 *     limit == 0 or running + promised <= limit            running + ended_count == 0  =>  no taker without a turn
 *
 * A MEMBER  reserved -> live [add] -> ended [member_ended] -> out [take]. It is told of by its own waker (flow/member.h). The completer's last
 * touch of the member is `ended`, and of the set the drop of its lock: so whoever takes the last member out may end the set, with its memory.
 * UNWANTED members are not put among the ended: their handle is dropped when they end.
 * TURNS  As everywhere (sync/waitlist.h) a taker's turn is leave to look, never the thing itself: each member that ends gives one, and the last
 * member that is taken out gives all takers theirs, to hear that there is nobody. A spawner's turn is a place that is kept for it, so that nobody
 * passes who comes later: `promised` counts them. Who gives up passes on.
 * SWEEPS  To cancel all, or to let all go, is a walk that lets the lock go every WEFT__WAKE_BATCH. `live` is ordered by the last sweep that saw
 * the member: a sweep takes from the front, and puts back at the end, until it meets one that it has seen. New members are as if just seen.
 * STOPPING  While a join that was told to stop, or a stop, is under way, members are cancelled as they are added.
 *
 * Threads: any. LOCK ORDER: its wait list alone. Pairs: those of flow/member.h; the rest is the lock's.
 * Rejected: watchers (task/watchers.h) for members, which tell that one has ended, not which; a queue of the ended without a lock (places and
 * turns need one anyway, and a member's end takes it once).
 */
#ifndef WEFT_FLOW_SET_H
#define WEFT_FLOW_SET_H

#include "flow/member.h"
#include "sync/leaf.h"

struct weft__set {
    size_t limit;               /* constant */
    struct weft__waitlist list; /* the lock; and who is given a turn just now */
    struct weft__link live;   /* members that run                           [lock, as all below] */
    struct weft__link ended;  /* members to be taken out, the first first */
    struct weft__link takers; /* who waits for one of them */
    struct weft__link spawners; /* who waits for a place */
    size_t running;
    size_t ended_count;
    size_t promised;   /* places of spawners whose turn it is */
    uint64_t sweep;    /* the newest sweep's number */
    uint32_t stopping; /* joins and stops that have cancelled the members */
    int why;           /* with what */
    /* A member is taken out, or let go; NULL: nobody wants to know. Called under the lock. */
    void (*leaves)(struct weft__set *set, struct weft__member *member);
};
_Static_assert(sizeof(struct weft__set) <= offsetof(weft_set, weft_of), "a set fits its place");
_Static_assert(offsetof(struct weft__set, limit) == offsetof(weft_set, limit), "as above");

static inline struct weft__set *weft__set_of(const void *set)
{
    return (struct weft__set *)(uintptr_t)set;
}

void weft__set_lock(struct weft__set *s);

/* Holds: the lock. */
static inline void weft__set_tell_leaves(struct weft__set *s, struct weft__member *member)
{
    if (s->leaves) s->leaves(s, member);
}

/* Holds: the lock. After every change: those who can go on now are given turns. */
void weft__set_hand_on(struct weft__set *s, struct weft__wake_chain *chain);

/* Holds: the lock, and drops it. */
static inline void weft__set_unlock(struct weft__set *s, struct weft__wake_chain *chain)
{
    weft__set_hand_on(s, chain);
    weft__waitlist_unlock_push(&s->list, chain, &weft__sched);
}

/* Holds: the lock. A reserved place becomes a member; if the set stops, it is cancelled. */
void weft__set_enlist(struct weft__set *s, struct weft__member *member,
                      struct weft__wake_chain *chain);

/* Holds: the lock. The first that has ended, which is the caller's from now on; NULL: none. */
struct weft__member *weft__set_take(struct weft__set *s);

/* Holds: the lock. Nobody will take it out. True: it has ended, and is the caller's; false: its handle is dropped when it ends. */
bool weft__set_drop(struct weft__set *s, struct weft__member *member);

extern const struct weft__foreign_ops weft__set_member_ops __attribute__((visibility("hidden")));

/* ---- one who waits ---------------------------------------------------------------------------------- */

/* What the frames have in common; on the stack of a poll. */
struct weft__set_wait {
    struct weft__set *set;
    struct weft__link *queue; /* takers or spawners */
    int32_t *at;              /* weft__at */
    struct weft__waiter *waiter;
    /* Holds: the lock. Takes what it came for: 0 or above; -EAGAIN: it must wait; else an error, and it does not wait. */
    int (*look)(struct weft__set_wait *wait, bool has_turn);
    struct weft__member *member; /* what it took */
    size_t bytes;                /* that its result must have, with `sized` */
    bool sized;
};

/* -EAGAIN: PENDING; else what `look` answered, or why it was stopped. */
int weft__set_wait_poll(struct weft__set_wait *wait, weft_cx *cx);

/* The same at once, and without a wait. */
int weft__set_wait_try(struct weft__set_wait *wait);

/* A `look` for takers: 1: a member; 0: there is none, and none will be. */
int weft__set_look_next(struct weft__set_wait *wait, bool has_turn);

/* Takes a member that is out of the set: its result goes to `into`, if that is not NULL. 1; -ENOMEM: it is a fiber that never ran. */
int weft__member_join(struct weft__member *member, void *into);

#endif
