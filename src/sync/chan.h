/* SPDX-License-Identifier: MIT
 *
 * chan - a channel: a ring with two sides, each under a lock of its own.
 *
 *     sending side      tail, where the next message goes, and the receivers that wait for it     lock `receivers`
 *     receiving side    head, from where the next one is taken, and the senders that wait for room   lock `senders`
 *         head <= tail
 * A waiter hangs on the side of those who will wake it: a sender looks for receivers under the lock that it holds anyway,
 * and the other way round. So an operation that need not wait is one lock, on a line that only its own kind writes, and a
 * look at the other side's count once in a while: `room` and `tail_seen` are what is known of it.
 * Who must wait takes both locks, the receiving side's first, and looks again: then nothing moves.
 *
 * A RUN  is how many operations of a side may go ahead without a look at anything else: so many places, or messages, lie there
 * one behind the other, and nobody is to be woken for them. It is all that an operation asks for, once it has its lock.
 *     tail_run > 0  ->  the gate is open, and no receiver waits
 *     head_run > 0  ->  no sender waits
 * Whoever changes that takes the run back (calm_send, calm_recv); whoever finds none does all the looking, and opens another.
 *
 * GIVING WAY  A send or receive that finds its side's lock held has met a worker that takes it all the time: with a try for each operation the two take the line from
 * each other, and both are slower than one alone. So it lets its worker's other tasks run first, as one whose budget is spent, with nothing begun; those that use the other
 * side, or none, are not in the way. The next time it waits for the lock.
 *
 * A SIDE IS LENT to a worker that takes its lock often in a row: then that needs no read-modify-write, which is most of what a message costs (sys/bias.h). Whoever else comes
 * takes it back, at the price of microseconds (it does not give way first: a wait that is begun anew each time, in a weft_merge or a select, would do so for ever); each time that happens the next row has to be twice as long.
 * Who just looks (weft_chan_len, weft_chan_is_closed) takes no lock, unless 16 looks do not agree: it would take a side from its owner for a number.
 *
 * SENDERS IN TURN  A sender that finds no room, or others in the queue, joins the queue, and `gate` counts it. A turn is a
 * place that is kept for who has it, so that newcomers may go ahead beside it once nobody is queued any more:
 *     tail + reserved + turns - head <= capacity
 *     senders queued  ->  the first lacks places       at the end of each hold of both locks, and of each receive
 * so who has a turn finds its places, one or as many as it reserves, and may be cancelled: they go to the next.
 * Receivers may be overtaken; one that was goes back to where it stood: each has a number. Each message wakes one, if one waits.
 *
 * A RENDEZVOUS has no ring. Its senders wait with their message, and a receiver takes that of the first, under both locks;
 * the sender's turn says that it is taken. A sender that comes gives a receiver a turn to look. Who sends at once, to a receiver
 * that waits, cannot stay until it has come: it leaves the message in a small ring. So does nobody else, and if that receiver
 * gives up, the message is the next one's.
 * An UNBOUNDED one is a chain of blocks instead of a ring: `room` is what is left of the last one; the receiver frees
 * them. Blocks come and go with no lock held: they are the program's allocator's. A ONESHOT is closed by its first message. Who waits for the END hangs on a third list, under the sending side's lock.
 * Of a CLOSED one receivers wait for what permits may still bring, and no longer:
 *     closed, and reserved == 0  ->  no receiver waits without a turn
 *
 * FREED BY THE OTHER SIDE  Whoever has received may free the channel while the sender is on its way out. So the last touch
 * of every operation is the drop of a lock, and free takes both. A rendezvous' sender whose message was received has yet to take them: it is counted in
 * `turns`, and the last such takes down what was freed.
 *
 * Threads: any. LOCK ORDER: CHAN (receiving side), then WAITLIST (sending side); tasks are claimed under them and pushed
 * after. The locks are taken and dropped by bias.h alone: waitlist's functions that take or drop one themselves know the sending side's place (INNER), not the receiving side's, and are used for neither.
 * Pairs: [chan-tail], [chan-head], [chan-closed].
 * Rejected: a ring of slots with a number each (one read-modify-write a side as well, but a receiver can come to a place
 * that is claimed and not yet written, and must spin; permits and closing need a second word); one lock for
 * both sides (both cores write its line for every message); handing a message to a waiter (lost with it, or given back out
 * of order).
 */
#ifndef WEFT_SYNC_CHAN_H
#define WEFT_SYNC_CHAN_H

#include "sync/waitlist.h"

#include <weft/chan.h>

#include <stddef.h>

/* In `gate`. All of it zero: a sender that finds room may go ahead. */
#define WEFT__CHAN_CLOSED  UINT32_C(1)
#define WEFT__CHAN_SPECIAL UINT32_C(2) /* a rendezvous or oneshot: sends take the long way */
#define WEFT__CHAN_PENDING UINT32_C(4) /* one sender in the queue */

struct weft__chan {
    uint32_t capacity;      /* of a bounded one; 0: a rendezvous, or unbounded       [constant] */
    uint32_t msg_bytes;     /*                                                       [constant] */
    uint32_t slots;         /* places of the ring, or of a block                     [constant] */
    uint8_t kind;           /* enum weft_chan_kind                                   [constant] */
    uint8_t freed;          /* 1: the last sender that has a turn takes it down    [both sides] */
    _Atomic uint8_t closed; /* 1: `gate` says so      [sending side writes; chan-closed] */
    uint32_t came;          /* receivers that came to wait so far                [sending side] */
    uint32_t reserved;      /* places that permits have                          [sending side] */
    uint32_t turns;         /* places of senders whose turn it is                [sending side] */
    uint32_t gate;          /* why a sender may not go ahead                     [sending side] */
    char *ring;             /* its first place; NULL: unbounded, or none     [both sides write] */
    struct weft__link ends; /* those who wait for the end                     [sending side] */
    void *memory;           /* what it lies in, with the places of a bounded one     [constant] */

    /* the sending side: its lock is that of the receivers that wait */
    WEFT__CACHE_ALIGNED struct weft__waitlist receivers;
    _Atomic uint64_t tail; /* messages sent so far               [sending side writes; chan-tail] */
    char *tail_slot;       /* where the next one goes                              [sending side] */
    uint32_t tail_run;     /* so many may go ahead                                 [sending side] */
    uint32_t
        tail_left; /* places from behind the run to the ring's, or block's end [sending side] */
    uint32_t room; /* places that are free for certain, without the run    [sending side] */

    /* the receiving side: its lock is that of the senders that wait */
    WEFT__CACHE_ALIGNED struct weft__waitlist senders;
    _Atomic uint64_t head; /* messages received so far         [receiving side writes; chan-head] */
    char *head_slot;       /* where the next one lies                            [receiving side] */
    uint32_t head_run;     /* so many may go ahead                               [receiving side] */
    uint32_t head_left;    /* places from behind the run to the end              [receiving side] */
    uint32_t tail_seen;    /* the tail as it was last looked at: its low half    [receiving side] */
};

_Static_assert(sizeof(struct weft__chan) <= 192, "an idle channel is small");

static inline struct weft__chan *weft__chan_of(void *chan)
{
    return chan;
}

/* Of a place: rounded up to 8. */
static inline uint32_t weft__chan_slot_bytes(const struct weft__chan *c)
{
    return (c->msg_bytes + 7) & ~UINT32_C(7);
}

static inline void weft__chan_lock_send(struct weft__chan *c)
{
    if (weft__bias_take(&c->receivers.lock, weft__waitlist_me(), WEFT__BIAS_INNER))
        weft__waitlist_met(c, WEFT__WAITLIST_TAKEN_BACK);
}

static inline void weft__chan_unlock_send(struct weft__chan *c)
{
    weft__bias_drop(&c->receivers.lock, weft__waitlist_me(), WEFT__BIAS_INNER);
}

static inline void weft__chan_lock_recv(struct weft__chan *c)
{
    if (weft__bias_take(&c->senders.lock, weft__waitlist_me(), WEFT__BIAS_OUTER))
        weft__waitlist_met(c, WEFT__WAITLIST_TAKEN_BACK);
}

static inline void weft__chan_unlock_recv(struct weft__chan *c)
{
    weft__bias_drop(&c->senders.lock, weft__waitlist_me(), WEFT__BIAS_OUTER);
}

static inline void weft__chan_lock_both(struct weft__chan *c)
{
    weft__chan_lock_recv(c);
    weft__chan_lock_send(c);
}

/* holds: the sending side. The run is taken back: who sends has to look. */
static inline void weft__chan_calm_send(struct weft__chan *c)
{
    c->room += c->tail_run;
    c->tail_left += c->tail_run;
    c->tail_run = 0;
}

/* holds: the receiving side. The same for who receives. */
static inline void weft__chan_calm_recv(struct weft__chan *c)
{
    c->head_left += c->head_run;
    c->head_run = 0;
}

static inline bool weft__chan_meets(const struct weft__chan *c)
{
    return c->kind == WEFT_CHAN_BOUNDED && c->capacity == 0; /* a rendezvous */
}

/* Drops both, then pushes. */
void weft__chan_unlock_both(struct weft__chan *c, struct weft__wake_chain *chain);

/* Most messages are a word. */
static inline bool weft__chan_is_plain(const struct weft__chan *c)
{
    return c->msg_bytes == 8;
}

/* A word that may lie anywhere, into a place or out of it. The model checker watches places as words; messages are a word there. */
static inline void weft__chan_copy_word(char *slot, const void *from)
{
#if defined(WEFT_MODEL)
    plain_write((uint64_t *)(void *)slot, *(const uint64_t *)from);
#else
    __builtin_memcpy(slot, from, 8);
#endif
}

static inline void weft__chan_copy_word_out(void *to, const char *slot)
{
#if defined(WEFT_MODEL)
    *(uint64_t *)to = plain_read((const uint64_t *)(const void *)slot);
#else
    __builtin_memcpy(to, slot, 8);
#endif
}

static inline void weft__chan_copy_in(const struct weft__chan *c, char *slot, const void *from)
{
    if (weft__chan_is_plain(c)) {
        weft__chan_copy_word(slot, from);
    } else {
        __builtin_memcpy(slot, from, c->msg_bytes);
    }
}

static inline void weft__chan_copy_out(const struct weft__chan *c, void *to, const char *slot)
{
    if (weft__chan_is_plain(c)) {
        weft__chan_copy_word_out(to, slot);
    } else {
        __builtin_memcpy(to, slot, c->msg_bytes);
    }
}

/* A ring, or a block; NULL: there is no memory. Holds: nothing, as all that goes to the allocator. */
char *weft__chan_places_new(const struct weft__chan *c);

/* Of a rendezvous: places for those who send at once. False: there is no memory. */
bool weft__chan_hands_new(struct weft__chan *c);

/* Gives all of its memory back. Holds: nothing, and nobody else knows it any more. */
void weft__chan_take_down(struct weft__chan *c);

/* holds: both. Is there nothing to receive, now or later? */
bool weft__chan_at_end(struct weft__chan *c);

/* Places that are free and promised to nobody, with a head that may be old. holds: the sending side; of a bounded channel that
 * is open. */
static inline uint32_t weft__chan_free_room(const struct weft__chan *c, uint64_t head)
{
    uint64_t tail = load_relaxed(&c->tail); /* relaxed: written under the lock that is held */
    return c->capacity - (uint32_t)(tail + c->reserved + c->turns - head);
}

/* holds: both. The first sender in the queue gets a turn. False: there is none. */
bool weft__chan_give_sender(struct weft__chan *c, struct weft__wake_chain *chain);

/* holds: both. Turns for senders that wait, as far as there is room for them. */
void weft__chan_admit(struct weft__chan *c, struct weft__wake_chain *chain);

/* holds: both. No sends from now on; everybody who waits gets a turn, to see that: up to `most` of each side; receivers not while permits are out. False: some
 * are left. */
bool weft__chan_shut(struct weft__chan *c, uint32_t most, struct weft__wake_chain *chain);

/* In the `ret` of a rendezvous' sender that waits: a receiver has its message. [receiving side] */
#define WEFT__SEND_TAKEN 1

/* The frame that has this waiter, of a sender: weft_send and weft_reserve are one struct to this file. */
static inline struct weft_send *weft__send_of(struct weft__waiter *waiter)
{
    return weft__container_of((void *)waiter, struct weft_send, weft__waiter);
}

/* Places that it wants. */
static inline uint32_t weft__send_wants(const struct weft_send *f)
{
    return f->weft__spare ? (uint32_t)(uintptr_t)f->weft__spare : 1;
}

/* In weft__at of a send or receive that has not begun: it found its side's lock held, and let others run first. */
#define WEFT__CHAN_GAVE_WAY 3 /* odd, as every leaf's (weft/future.h) */

/* It finds its side's lock held: by another thread, in whose midst it would be. Is it to let others run first? Once an operation, so that each poll comes on; then it
 * waits for the lock. */
static inline bool weft__chan_gives_way(const struct weft__chan *c, int32_t *at, weft_cx *cx)
{
    if (*at != 0 || cx->probe || cx->budget == WEFT__UNBUDGETED) return false;
    weft__waitlist_met(c, 1);
    *at = WEFT__CHAN_GAVE_WAY;
    cx->yielded = true;
    return true;
}

/* Costs the poll one operation. False: it has none left; it lets others run first. */
static inline bool weft__chan_charge(weft_cx *cx)
{
    if (__builtin_expect(cx->budget == 0, 0)) {
        cx->yielded = true;
        return false;
    }
    cx->budget = weft__charged(cx->budget);
    return true;
}

#endif
