/* SPDX-License-Identifier: MIT
 *
 * direct - the steps of a request: a read or a write of one buffer, on a TCP stream.
 *
 * The loop of op.h does all of an operation. Here is what nearly every one of these does, as its steps without the loop: it begins with the slot's lock lent to this
 * worker, waits at once or, if it is a send that is handed in with others, behind its try, is woken by a push, and its one call, or the backend's verb, brings what was wanted. A step that finds anything else has done nothing, and the loop goes on from there, in
 * the states that op.h draws:
 *     BEGINS -> TRIES, WAITS   [opens]
 *     WAITS  -> TRIES          [opens]
 *     TRIES  -> BEGINS         [leaves]
 *     TRIES  -> WAITS          [waits]
 * Whoever puts them together (stream.c) makes all else the end of a path, in a function of its own, so that the usual way calls nobody but the kernel. And what
 * has made a system call returns by a jump (WEFT__JUMPS_BACK): behind the kernel's calls the processor has forgotten ours, and predicts each return to one wrongly, 15 to 20 cycles.
 * Threads: the poller's.
 */
#ifndef WEFT_IO_DIRECT_H
#define WEFT_IO_DIRECT_H

#include "driver/op.h"
#include "driver/take.h"
#include "io/fdstream.h"
#include "task/context.h"

enum weft__direct {
    WEFT__DIRECT_ELSE, /* ask the loop */
    WEFT__DIRECT_TRIES,
    WEFT__DIRECT_WAITS,
};

static inline enum weft__direct weft__direct_begins(struct weft__fdslot *slot, struct weft__op *op,
                                                    uint32_t as, enum weft__side side, weft_cx *cx)
{
    uint8_t me = weft__waitlist_me();
    if (__builtin_expect(cx->why != 0 || cx->probe || cx->budget == 0, 0)) return WEFT__DIRECT_ELSE;
    if (weft__driver_is_lost(slot) || !weft__waitlist_try_loan(&slot->list, me))
        return WEFT__DIRECT_ELSE;
    int r = weft__fdslot_begin_held(slot, as, side, weft__ready_bits(side), &op->waiter, cx->waker);
    weft__waitlist_drop(&slot->list, me, WEFT__BY_LOAN);
    if (__builtin_expect(r < 0, 0)) return WEFT__DIRECT_ELSE;
    op->as = as;
    op->waits = r > 0;
    cx->budget = weft__charged(cx->budget);
    return r > 0 ? WEFT__DIRECT_WAITS : WEFT__DIRECT_TRIES; /* who fetches ahead arms it */
}

static inline enum weft__direct weft__direct_resumes(const struct weft__fdslot *slot,
                                                     struct weft__op *op, const weft_cx *cx)
{
    if (__builtin_expect(cx->why != 0 || !op->waits, 0)) return WEFT__DIRECT_ELSE;
    if (weft__driver_is_lost(slot)) return WEFT__DIRECT_ELSE;
    if (!weft__waiter_take_granted(&op->waiter)) return WEFT__DIRECT_ELSE;
    op->waits = false;
    return WEFT__DIRECT_TRIES;
}

/* A poll up to its system call. */
static inline __attribute__((always_inline)) enum weft__direct
weft__direct_opens(struct weft__fdslot *slot, struct weft__op *op, uint32_t as,
                   enum weft__side side, weft_cx *cx)
{
    return op->as ? weft__direct_resumes(slot, op, cx) : weft__direct_begins(slot, op, as, side, cx);
}

/* Is that a call's turn? `word` is the look before it. */
static inline bool weft__direct_may(uint64_t word, enum weft__side side)
{
    return __builtin_expect((word & weft__ready_bits(side)) && !(word & WEFT__READY_CLOSED), 1);
}

/* A try has found nothing, so it waits. False: something has come since, and it is to try again. */
static inline bool weft__direct_waits(struct weft__fdslot *slot, struct weft__op *op,
                                      enum weft__side side, const struct weft__lesson *lesson,
                                      weft_cx *cx)
{
    uint64_t bits = weft__ready_bits(side);
    op->waits = weft__fdslot_wait(slot, side, bits, lesson, &op->waiter, cx->waker);
    if (op->waits) weft__driver_arm(slot, side, bits);
    return op->waits;
}

/* The rare end of an operation that is over. READY. */
__attribute__((noinline)) weft_poll weft__direct_leaves_by_word(struct weft__fdslot *slot,
                                                                uint32_t as, uint64_t seen,
                                                                uint64_t bits);

/* It is over, and its frame says so; its try, behind the look `seen`, has found nothing more of `bits`. READY. By the loan nobody has come since that look, and so nobody has
 * closed it: whoever comes takes the loan back, and none is given within a try. */
static inline __attribute__((always_inline)) weft_poll
weft__direct_leaves(struct weft__fdslot *slot, uint32_t as, uint64_t seen, uint64_t bits)
{
    uint8_t me = weft__waitlist_me();
    if (__builtin_expect(!weft__waitlist_try_loan(&slot->list, me), 0))
        return weft__direct_leaves_by_word(slot, as, seen, bits);
    if (bits) weft__fdslot_clear_held(slot, seen, bits);
    bool last __attribute__((unused)) = weft__fdslot_leave_held(slot, as);
    weft_dassert(!last);
    weft__waitlist_drop(&slot->list, me, WEFT__BY_LOAN);
    return WEFT_READY;
}

#endif
