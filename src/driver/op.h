/* SPDX-License-Identifier: MIT
 *
 * op - one operation on a slot, from its first poll to its end: enter, try, wait, try again, leave.
 *
 *     BEGINS   not entered; `as` is 0
 *     TRIES    entered, in no list
 *     WAITS    entered, in its side's list
 *     BEGINS -> TRIES    [first poll]      answered at once if it was told to stop, or may not enter
 *     BEGINS -> WAITS    [first poll]      nothing is there, as the last one has found: one hold of the slot's lock for both
 *     TRIES  -> WAITS    [nothing there]   unless it is a probe: then back to BEGINS
 *     WAITS  -> TRIES    [has its turn]
 *     any    -> BEGINS   [settles: leaves]
 * Behind its runtime's stop no event tells what is ready, so each try is made, and one that finds nothing is the end: it would wait for ever.
 * A waiting leaf: given up, it has taken nothing, and settles at once. One that moves everything goes on as the same reader or writer.
 * A try that brings something costs budget; so a stream that never runs dry still lets others run.
 * Lives in the frame of the operation, as struct weft_io. Threads: the poller's.
 */
#ifndef WEFT_DRIVER_OP_H
#define WEFT_DRIVER_OP_H

#include "driver/driver.h"
#include "sync/leaf.h"

#include <weft/stream.h>

struct weft__op {
    struct weft__waiter waiter;
    uint32_t as; /* WEFT__USE_...; 0: not begun */
    bool waits;
};

_Static_assert(sizeof(struct weft__op) <= sizeof(struct weft_io), "an operation fits its room");

static inline struct weft__op *weft__op_of(struct weft_io *io)
{
    return (struct weft__op *)(void *)io;
}

/* What kind of operation: constant. `tries` is one try; it answers -EAGAIN if there is nothing, and has then cleared what is not ready, or says so (struct weft__lesson). */
struct weft__op_kind {
    enum weft__side side;
    uint32_t as;
    uint64_t bits; /* of the word: what it waits for */
    ssize_t (*tries)(struct weft__fdslot *slot, void *arg);
    bool soon; /* a try may leave its buffer with the backend, and is taken back before the end (unsend, driver.h) */
};

/* Of one that moves everything: until `want` is reached. `done`, 0 at the first poll, stays between polls, and is the caller's. */
struct weft__op_all {
    size_t want;
    size_t *done;
};

/* A poll. `all`: NULL is one try that brings something. `lesson`: where its tries say what they have found; NULL: they clear the word themselves. READY: *ret is what the last try answered, or of all what was wanted, or less at the end; or why not. */
weft_poll weft__op_poll(struct weft__fdslot *slot, struct weft__op *op,
                        const struct weft__op_kind *kind, void *arg, const struct weft__op_all *all,
                        struct weft__lesson *lesson, weft_cx *cx, ssize_t *ret);

/* ---- the loop ----
 *
 * Inline, so that a kind which is known where it is compiled costs nothing to look up, and its try no call: reads and writes of sockets are written out where
 * they are polled (io/fdstream.c), all others go by weft__op_poll. What is not the way of a request is apart. */

/* Not entered. */
static inline weft_poll weft__op_answers(ssize_t *ret, ssize_t answer)
{
    *ret = answer;
    return WEFT_READY;
}

/* The slot may be gone behind it. */
static inline weft_poll weft__op_settles(struct weft__fdslot *slot, struct weft__op *op,
                                         uint32_t as, const struct weft__lesson *lesson,
                                         ssize_t *ret, ssize_t answer)
{
    op->as = 0;
    if (__builtin_expect(weft__fdslot_finish(slot, as, lesson ? lesson->seen : 0,
                                             lesson ? lesson->bits : 0), 0))
        weft__driver_dispose(slot);
    return weft__op_answers(ret, answer);
}

/* It waits at once, unless it is a look, or lets others run first. */
static inline int weft__op_begins(struct weft__fdslot *slot, struct weft__op *op,
                                  const struct weft__op_kind *kind, const weft_cx *cx)
{
    if (weft__driver_is_lost(slot)) return -ECHILD;
    bool may_wait = !cx->probe && cx->budget != 0;
    int r = weft__fdslot_begin(slot, kind->as, kind->side, kind->bits, &op->waiter,
                               may_wait ? cx->waker : weft__waker_none());
    if (r < 0) return r;
    op->as = kind->as;
    op->waits = r > 0;
    return 0;
}

/* Nothing is there, as a try has found, or an earlier one: `lesson` is NULL. PENDING: it waits. READY: it is to try again. */
static inline weft_poll weft__op_waits(struct weft__fdslot *slot, struct weft__op *op,
                                       const struct weft__op_kind *kind,
                                       const struct weft__lesson *lesson, weft_cx *cx)
{
    op->waits = weft__fdslot_wait(slot, kind->side, kind->bits, lesson, &op->waiter, cx->waker);
    if (!op->waits) return WEFT_READY;
    weft__driver_arm(slot, kind->side, kind->bits);
    return WEFT_PENDING;
}

/* A look that found nothing leaves no trace. */
weft_poll weft__op_withdraws(struct weft__fdslot *slot, struct weft__op *op);

/* It was told to stop. */
weft_poll weft__op_gives_up(struct weft__fdslot *slot, struct weft__op *op,
                            const struct weft__op_kind *kind, const struct weft__op_all *all,
                            weft_cx *cx, ssize_t *ret);

/* A try has brought something, or an error. True: that is the end of it. */
static inline bool weft__op_is_over(const struct weft__op_all *all, ssize_t *got)
{
    if (!all || *got < 0) return true;
    *all->done += (size_t)*got;
    bool over = *got == 0 || *all->done == all->want;
    *got = (ssize_t)*all->done;
    return over;
}

/* Nothing more comes of it, for this reason; unless a try that was left with the backend has brought something: then that counts. */
static inline weft_poll weft__op_ends(struct weft__fdslot *slot, struct weft__op *op,
                                      const struct weft__op_kind *kind,
                                      const struct weft__op_all *all, ssize_t *ret, ssize_t why)
{
    ssize_t got = kind->soon ? weft__driver_unsend(slot) : -EAGAIN;
    if (got == -EAGAIN || !weft__op_is_over(all, &got)) got = why;
    return weft__op_settles(slot, op, op->as, NULL, ret, got);
}

/* It had begun when somebody forked, perhaps its own try, which may be the program's function; and this is the child: the slot is a copy, whose lock may be held by nobody, and its number
 * another file's by now. What the try brought counts. */
static inline weft_poll weft__op_loses(struct weft__op *op, ssize_t *ret, ssize_t got)
{
    op->as = 0;
    return weft__op_answers(ret, got == -EAGAIN ? -ECHILD : got);
}

static inline void weft__op_learns(struct weft__fdslot *slot, const struct weft__lesson *lesson)
{
    if (lesson && lesson->bits) weft__fdslot_clear(slot, lesson->seen, lesson->bits);
}

static inline __attribute__((always_inline)) weft_poll weft__op_tries(
    struct weft__fdslot *slot, struct weft__op *op, const struct weft__op_kind *kind, void *arg,
    const struct weft__op_all *all, struct weft__lesson *lesson, weft_cx *cx, ssize_t *ret)
{
    for (;;) {
        uint64_t word = weft__fdslot_look(slot);
        if (__builtin_expect(word & WEFT__READY_CLOSED, 0))
            return weft__op_ends(slot, op, kind, all, ret, -EBADF);
        if (word & (kind->bits | WEFT__READY_DOWN)) {
            if (lesson) lesson->seen = word;
            ssize_t got = kind->tries(slot, arg);
            if (weft__driver_is_lost(slot)) return weft__op_loses(op, ret, got);
            if (__builtin_expect(got == -EAGAIN, 0)) { /* not ready any more, unless something came since */
                if (word & WEFT__READY_DOWN)
                    return weft__op_ends(slot, op, kind, all, ret, -ESHUTDOWN);
                if (cx->probe)
                    weft__op_learns(slot, lesson);
                else if (weft__op_waits(slot, op, kind, lesson, cx) == WEFT_PENDING)
                    return WEFT_PENDING;
                continue;
            }
            if (weft__op_is_over(all, &got))
                return weft__op_settles(slot, op, kind->as, lesson, ret, got);
            weft__op_learns(slot, lesson);
            if (!weft__leaf_may(cx)) return WEFT_PENDING;
        } else {
            if (cx->probe) return weft__op_withdraws(slot, op);
            if (weft__op_waits(slot, op, kind, NULL, cx) == WEFT_PENDING) return WEFT_PENDING;
        }
    }
}

/* weft__op_poll, of a constant `kind`. */
static inline __attribute__((always_inline)) weft_poll weft__op_poll_as(
    struct weft__fdslot *slot, struct weft__op *op, const struct weft__op_kind *kind, void *arg,
    const struct weft__op_all *all, struct weft__lesson *lesson, weft_cx *cx, ssize_t *ret)
{
    if (__builtin_expect(cx->why != 0, 0)) return weft__op_gives_up(slot, op, kind, all, cx, ret);
    if (!op->as) {
        int r = weft__op_begins(slot, op, kind, cx);
        if (r < 0) return weft__op_answers(ret, r);
        /* Entered before it lets others run: they may close the slot, which must not become another's meanwhile. */
        if (!weft__leaf_may(cx)) return cx->probe ? weft__op_withdraws(slot, op) : WEFT_PENDING;
        if (op->waits) {
            weft__driver_arm(slot, kind->side, kind->bits);
            return WEFT_PENDING;
        }
    } else {
        if (weft__driver_is_lost(slot)) return weft__op_loses(op, ret, -EAGAIN);
        if (op->waits && !weft__fdslot_has_turn(slot, &op->waiter)) return WEFT_PENDING;
        op->waits = false;
    }
    return weft__op_tries(slot, op, kind, arg, all, lesson, cx, ret);
}

#endif
