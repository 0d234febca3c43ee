/* SPDX-License-Identifier: MIT
 *
 * slot - the transitions of one fd's word, its waiters and its users; the drawing is in slot.h.
 */
#include "driver/slot.h"

void weft__fdslot_init(struct weft__fdslot *slot, struct weft__port *port, uint32_t index,
                       uint8_t row_bits)
{
    weft__waitlist_init(&slot->list);
    slot->list.lock.bits = row_bits;
    weft__link_init(&slot->writers);
    slot->port = port;
    slot->index = index;
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

void weft__fdslot_renew(struct weft__fdslot *slot, uint8_t row_bits)
{
    weft__bias_renew(&slot->list.lock, weft__waitlist_me(), row_bits);
}

/* ---- holds: the slot's lock ---- */

static void give_side_turns(struct weft__fdslot *slot, enum weft__side side, struct weft__wake_chain *chain)
{
    struct weft__link *queue = weft__fdslot_queue(slot, side);
    while (!weft__list_empty(queue)) /* one, as a rule */
        (void)weft__waitlist_give_turn_at(&slot->list, queue, chain);
}

/* With what is new in the word: whose wait is over by that? Urgent data is awaited among readers, beside those that want any, and so is the end by who waits for it alone. */
static void tell(struct weft__fdslot *slot, uint64_t fresh, struct weft__wake_chain *chain)
{
    uint64_t reads = weft__ready_bits(WEFT__SIDE_READ) | WEFT__READY_URGENT;
    if (fresh & reads) give_side_turns(slot, WEFT__SIDE_READ, chain);
    if (fresh & weft__ready_bits(WEFT__SIDE_WRITE)) give_side_turns(slot, WEFT__SIDE_WRITE, chain);
}

/* Nothing comes any more: marks the word, and tells all. */
static void end_held(struct weft__fdslot *slot, uint64_t bit, uint64_t generations,
                     struct weft__wake_chain *chain)
{
    uint64_t word = load_relaxed(&slot->word);              /* relaxed: the lock orders it */
    store_release(&slot->word, (word | bit) + generations); /* [fd-ready] with look: as in clear */
    for (int side = 0; side < WEFT__SIDES; side++)
        give_side_turns(slot, (enum weft__side)side, chain);
}

static void close_held(struct weft__fdslot *slot, struct weft__wake_chain *chain)
{
    uint32_t users = load_relaxed(&slot->users); /* relaxed, both: the lock orders it */
    store_relaxed(&slot->users, (users | WEFT__USE_CLOSED) + WEFT__USE_SHARED);
    end_held(slot, WEFT__READY_CLOSED, UINT64_C(1) << 32, chain);
}

/* ---- the driver ---- */

void weft__fdslot_ready(struct weft__fdslot *slot, uint32_t generation, uint64_t bits,
                        struct weft__wake_chain *chain)
{
    uint8_t me = weft__waitlist_me();
    enum weft__waitlist_way way = weft__waitlist_hold(&slot->list, me);
    uint64_t word = load_relaxed(&slot->word); /* relaxed: the lock orders it */

    if (weft__fdslot_generation(word) == generation) { /* else of a connection that is gone */
        uint64_t tick = (word + WEFT__READY_TICK) & WEFT__READY_TICKS;
        uint64_t next = (word & ~WEFT__READY_TICKS) | tick | bits;
        store_release(&slot->word, next); /* [fd-ready] with look: a try behind it finds what the event was about */
        tell(slot, next & ~word, chain);
    }
    weft__waitlist_drop(&slot->list, me, way);
}

/* ---- operations ---- */

int weft__fdslot_enter(struct weft__fdslot *slot, uint32_t as)
{
    uint8_t me = weft__waitlist_me();
    enum weft__waitlist_way way = weft__waitlist_hold(&slot->list, me);
    int r = weft__fdslot_enter_held(slot, as);
    weft__waitlist_drop(&slot->list, me, way);
    return r;
}

void weft__fdslot_clear(struct weft__fdslot *slot, uint64_t seen, uint64_t bits)
{
    uint8_t me = weft__waitlist_me();
    enum weft__waitlist_way way = weft__waitlist_hold(&slot->list, me);
    weft__fdslot_clear_held(slot, seen, bits);
    weft__waitlist_drop(&slot->list, me, way);
}

bool weft__fdslot_wait(struct weft__fdslot *slot, enum weft__side side, uint64_t bits,
                       const struct weft__lesson *lesson, struct weft__waiter *waiter,
                       struct weft_waker waker)
{
    uint8_t me = weft__waitlist_me();
    enum weft__waitlist_way way = weft__waitlist_hold(&slot->list, me);
    if (lesson && lesson->bits) weft__fdslot_clear_held(slot, lesson->seen, lesson->bits);
    bool waits = weft__fdslot_wait_held(slot, side, bits, waiter, waker);
    weft__waitlist_drop(&slot->list, me, way);
    return waits;
}

bool weft__fdslot_takes_turn(struct weft__fdslot *slot, struct weft__waiter *waiter)
{
    weft__waitlist_lock(&slot->list);
    bool turn = weft__waiter_has_turn(&slot->list, waiter);
    if (turn) (void)weft__waitlist_settle(&slot->list, waiter);
    weft__waitlist_unlock(&slot->list);
    return turn;
}

void weft__fdslot_give_up(struct weft__fdslot *slot, struct weft__waiter *waiter)
{
    (void)weft__waitlist_leave(&slot->list, waiter); /* all were told: a turn is nobody else's */
}

/* ---- ending ---- */

bool weft__fdslot_close(struct weft__fdslot *slot)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    weft__waitlist_lock(&slot->list);
    bool open = !(load_relaxed(&slot->users) & WEFT__USE_CLOSED); /* relaxed: the lock orders it */
    if (open) close_held(slot, &chain);
    weft__waitlist_unlock_push(&slot->list, &chain, &weft__sched);
    return open;
}

int weft__fdslot_close_alone(struct weft__fdslot *slot)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    weft__waitlist_lock(&slot->list);
    uint32_t users = load_relaxed(&slot->users); /* relaxed: the lock orders it */
    if (users == 0) close_held(slot, &chain);
    weft__waitlist_unlock_push(&slot->list, &chain, &weft__sched);
    if (users == 0) return 0;
    return users & WEFT__USE_CLOSED ? -EBADF : -EBUSY;
}

void weft__fdslot_down(struct weft__fdslot *slot)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    weft__waitlist_lock(&slot->list);
    end_held(slot, WEFT__READY_DOWN, 0, &chain);
    weft__waitlist_unlock_push(&slot->list, &chain, &weft__sched);
}
