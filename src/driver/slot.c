/* SPDX-License-Identifier: MIT
 *
 * slot - the transitions of one fd's word, its waiters and its users; the drawing is in slot.h.
 */
#include "driver/slot.h"

static inline bool is_ready(uint64_t word, uint64_t bits)
{
    return word & (bits | WEFT__READY_OVER);
}

void weft__fdslot_open(struct weft__fdslot *slot, int fd)
{
    uint64_t generation =
        load_relaxed(&slot->word) & ~UINT64_C(0xffffffff); /* relaxed: ours alone */

    slot->fd = fd;
    store_relaxed(&slot->users,
                  0); /* relaxed, both: the call that makes the kernel know it publishes */
    store_relaxed(&slot->word, generation | WEFT__READY_READ | WEFT__READY_WRITE);
}

/* ---- waking ---- */

/* The generation is looked at under the lock: a waiter of the next one cannot be in the list as long as it
 * is the same. */
static void give_side_turns(struct weft__fdslot *slot, enum weft__side side, uint32_t generation,
                            struct weft__wake_chain *chain)
{
    struct weft__waitlist *list = &slot->waiters[side];

    weft__waitlist_lock(list);
    uint64_t word = load_relaxed(&slot->word); /* relaxed: the lock orders it against waiters */
    if (weft__fdslot_generation(word) == generation) {
        while (!weft__waitlist_empty(list)) /* one, as a rule */
            (void)weft__waitlist_give_turn(list, chain);
    }
    weft__waitlist_unlock(list);
}

/* With the word as it was, and what is new in it: whose wait is over by that? Urgent data is awaited among readers, beside
 * those that want any, and so is the end by who waits for it alone: both always wake. */
static void tell(struct weft__fdslot *slot, uint64_t was, uint64_t fresh, uint32_t generation,
                 struct weft__wake_chain *chain)
{
    uint64_t reads = weft__ready_bits(WEFT__SIDE_READ);
    uint64_t writes = weft__ready_bits(WEFT__SIDE_WRITE);
    if (((fresh & reads) && !is_ready(was, reads)) ||
        (fresh & (WEFT__READY_URGENT | WEFT__READY_READ_END)))
        give_side_turns(slot, WEFT__SIDE_READ, generation, chain);
    if ((fresh & writes) && !is_ready(was, writes))
        give_side_turns(slot, WEFT__SIDE_WRITE, generation, chain);
}

void weft__fdslot_ready(struct weft__fdslot *slot, uint32_t generation, uint64_t bits,
                        struct weft__wake_chain *chain)
{
    uint64_t word = load_relaxed(&slot->word); /* relaxed: the CAS orders */
    uint64_t next;
    do {
        if (weft__fdslot_generation(word) != generation) return; /* of a connection that is gone */
        uint64_t tick = (word + WEFT__READY_TICK) & WEFT__READY_TICKS;
        next = (word & ~WEFT__READY_TICKS) | tick | bits;
        /* [fd-ready] with look, clear: a try behind the look finds what the event was about */
    } while (!cas_acq_rel(&slot->word, &word, next));
    tell(slot, word, next & ~word, generation, chain);
}

/* ---- operations ---- */

bool weft__fdslot_wait(struct weft__fdslot *slot, enum weft__side side, uint64_t bits,
                       struct weft__waiter *waiter, struct weft_waker waker)
{
    struct weft__waitlist *list = &slot->waiters[side];

    weft__waitlist_lock(list);
    /* relaxed: who makes it ready takes the lock behind that, and then finds the waiter, or came before */
    bool waits = !is_ready(load_relaxed(&slot->word), bits);
    if (waits) weft__waitlist_add(list, waiter, waker);
    weft__waitlist_unlock(list);
    return waits;
}

bool weft__fdslot_takes_turn(struct weft__fdslot *slot, enum weft__side side,
                             struct weft__waiter *waiter)
{
    struct weft__waitlist *list = &slot->waiters[side];

    weft__waitlist_lock(list);
    bool turn = weft__waiter_has_turn(list, waiter);
    if (turn) (void)weft__waitlist_settle(list, waiter);
    weft__waitlist_unlock(list);
    return turn;
}

void weft__fdslot_give_up(struct weft__fdslot *slot, enum weft__side side,
                          struct weft__waiter *waiter)
{
    (void)weft__waitlist_leave(&slot->waiters[side],
                               waiter); /* all were told: a turn is nobody else's */
}

/* ---- ending ---- */

/* Marks the word, and tells all. */
static void end_it(struct weft__fdslot *slot, uint64_t bit, uint64_t generations)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    uint64_t word =
        load_relaxed(&slot->word); /* relaxed, both: whoever sees it takes the lock, or leaves */
    uint64_t next;
    do {
        next = (word | bit) + generations;
    } while (!cas_relaxed(&slot->word, &word, next));
    for (int side = 0; side < WEFT__SIDES; side++)
        give_side_turns(slot, (enum weft__side)side, weft__fdslot_generation(next), &chain);
    weft__wake_chain_push(&chain, &weft__sched);
}

static void end_closed(struct weft__fdslot *slot)
{
    end_it(slot, WEFT__READY_CLOSED, UINT64_C(1) << 32);
}

bool weft__fdslot_close(struct weft__fdslot *slot)
{
    uint32_t users = load_relaxed(&slot->users); /* relaxed, both: the leave orders */
    do {
        if (users & WEFT__USE_CLOSED) return false;
    } while (!cas_relaxed(&slot->users, &users, (users | WEFT__USE_CLOSED) + WEFT__USE_SHARED));
    end_closed(slot);
    return true;
}

int weft__fdslot_close_alone(struct weft__fdslot *slot)
{
    uint32_t nobody = 0;
    /* acquire: [fd-use] with leave: they are through */
    if (!cas_acquire(&slot->users, &nobody, WEFT__USE_CLOSED | WEFT__USE_SHARED))
        return nobody & WEFT__USE_CLOSED ? -EBADF : -EBUSY;
    end_closed(slot);
    return 0;
}

void weft__fdslot_down(struct weft__fdslot *slot)
{
    end_it(slot, WEFT__READY_DOWN, 0);
}
