/* SPDX-License-Identifier: MIT
 *
 * msg - the one poll of all operations on messages; the idea is in msg.h.
 */
#include "net/msg.h"

#include "sys/fd.h"

ssize_t weft__msg_try(struct weft__fdslot *slot, void *arg)
{
    const struct weft__msg_trying *t = arg;
    uint64_t seen = weft__fdslot_look(slot);
    ssize_t r = t->kind->call(slot->fd, t->of);
    if (r == -EAGAIN) weft__fdslot_clear(slot, seen, t->kind->op.bits);
    return r;
}

weft_poll weft__msg_poll(struct weft__fdslot *slot, int why, const struct weft__msg_kind *kind,
                         void *of, struct weft_io *io, int32_t *at, weft_cx *cx, ssize_t *ret)
{
    struct weft__msg_trying t = {.kind = kind, .of = of};
    if (!slot && why == 0) why = -EINVAL;
    if (why) {
        *ret = why == WEFT__MSG_NOTHING ? 0 : why;
        return WEFT_READY;
    }
    weft_poll answer = weft__op_poll(slot, weft__op_of(io), &kind->op, &t, NULL, NULL, cx, ret);
    *at = answer == WEFT_PENDING ? WEFT__LEAF_WAITS : 0;
    return answer;
}

int weft__msg_slot(weft_rt *rt, int fd, struct weft__fdslot **into)
{
    struct weft__port *port;
    int r = weft__driver_here(rt, false, &port);
    if (r == 0) r = weft__driver_add(port, fd, into);
    if (r < 0) weft__fd_close(fd);
    return r;
}
