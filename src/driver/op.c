/* SPDX-License-Identifier: MIT
 *
 * op - the one loop of all operations; the drawing is in op.h.
 */
#include "driver/op.h"

#include "sync/leaf.h"

/* Not entered. */
static weft_poll answers(ssize_t *ret, ssize_t answer)
{
    *ret = answer;
    return WEFT_READY;
}

static weft_poll settles(struct weft__fdslot *slot, struct weft__op *op, ssize_t *ret,
                         ssize_t answer)
{
    uint32_t as = op->as;
    op->as = 0;
    weft__driver_leave(slot, as); /* it may be gone now */
    return answers(ret, answer);
}

static int begins(struct weft__fdslot *slot, struct weft__op *op, const struct weft__op_kind *kind)
{
    if (weft__driver_is_lost(slot)) return -ECHILD;
    int r = weft__fdslot_enter(slot, kind->as);
    if (r < 0) return r;
    weft__waiter_init(&op->waiter);
    op->as = kind->as;
    op->waits = false;
    op->done = 0;
    return 0;
}

/* Nothing is there. PENDING: it waits. READY: it is to try again. */
static weft_poll waits(struct weft__fdslot *slot, struct weft__op *op,
                       const struct weft__op_kind *kind, weft_cx *cx)
{
    op->waits = weft__fdslot_wait(slot, kind->side, kind->bits, &op->waiter, cx->waker);
    if (op->waits) weft__driver_arm(slot, kind->side, kind->bits);
    return op->waits ? WEFT_PENDING : WEFT_READY;
}

/* A look that found nothing leaves no trace. */
static weft_poll withdraws(struct weft__fdslot *slot, struct weft__op *op)
{
    uint32_t as = op->as;
    op->as = 0;
    weft__driver_leave(slot, as);
    return WEFT_PENDING;
}

/* A try has brought something, or an error. True: that is the end of it. */
static bool is_over(struct weft__op *op, const struct weft__op_kind *kind, size_t want,
                    ssize_t *got)
{
    if (!kind->all || *got < 0) return true;
    op->done += (size_t)*got;
    bool over = *got == 0 || op->done == want;
    *got = (ssize_t)op->done;
    return over;
}

static weft_poll tries(struct weft__fdslot *slot, struct weft__op *op,
                       const struct weft__op_kind *kind, void *arg, size_t want, weft_cx *cx,
                       ssize_t *ret)
{
    for (;;) {
        uint64_t word = weft__fdslot_look(slot);
        if (word & WEFT__READY_CLOSED) return settles(slot, op, ret, -EBADF);
        if (word & kind->bits) {
            ssize_t got = kind->tries(slot, op, arg);
            if (got == -EAGAIN) continue; /* not ready any more, unless something came since */
            if (is_over(op, kind, want, &got)) return settles(slot, op, ret, got);
            if (!weft__leaf_may(cx)) return WEFT_PENDING;
        } else {
            if (word & WEFT__READY_DOWN) return settles(slot, op, ret, -ESHUTDOWN);
            if (cx->probe) return withdraws(slot, op);
            if (waits(slot, op, kind, cx) == WEFT_PENDING) return WEFT_PENDING;
        }
    }
}

weft_poll weft__op_poll(struct weft__fdslot *slot, struct weft__op *op,
                        const struct weft__op_kind *kind, void *arg, size_t want, weft_cx *cx,
                        ssize_t *ret)
{
    if (!op->as) {
        if (cx->why)
            return weft__told_yields(cx) ? WEFT_PENDING : answers(ret, weft_cx_cancelled(cx));
        int r = begins(slot, op, kind);
        if (r < 0) return answers(ret, r);
        /* Entered before it lets others run: they may close the slot, which must not become another's meanwhile. */
        if (!weft__leaf_may(cx)) return cx->probe ? withdraws(slot, op) : WEFT_PENDING;
    } else if (cx->why) {
        if (op->waits) weft__fdslot_give_up(slot, kind->side, &op->waiter);
        return settles(slot, op, ret, weft_cx_cancelled(cx));
    } else if (op->waits) {
        if (!weft__fdslot_has_turn(slot, kind->side, &op->waiter)) return WEFT_PENDING;
        op->waits = false;
    }
    return tries(slot, op, kind, arg, want, cx, ret);
}
