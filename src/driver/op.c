/* SPDX-License-Identifier: MIT
 *
 * op - the one loop of all operations, for those whose kind is found when they are polled; the drawing is in op.h.
 */
#include "driver/op.h"

weft_poll weft__op_withdraws(struct weft__fdslot *slot, struct weft__op *op)
{
    uint32_t as = op->as;
    op->as = 0;
    weft__driver_leave(slot, as);
    return WEFT_PENDING;
}

weft_poll weft__op_gives_up(struct weft__fdslot *slot, struct weft__op *op,
                            const struct weft__op_kind *kind, const struct weft__op_all *all,
                            weft_cx *cx, ssize_t *ret)
{
    if (!op->as)
        return weft__told_yields(cx) ? WEFT_PENDING : weft__op_answers(ret, weft_cx_cancelled(cx));
    if (weft__driver_is_lost(slot)) return weft__op_loses(op, ret, -EAGAIN);
    if (op->waits) weft__fdslot_give_up(slot, &op->waiter);
    return weft__op_ends(slot, op, kind, all, ret, weft_cx_cancelled(cx));
}

weft_poll weft__op_poll(struct weft__fdslot *slot, struct weft__op *op,
                        const struct weft__op_kind *kind, void *arg, const struct weft__op_all *all,
                        struct weft__lesson *lesson, weft_cx *cx, ssize_t *ret)
{
    return weft__op_poll_as(slot, op, kind, arg, all, lesson, cx, ret);
}
