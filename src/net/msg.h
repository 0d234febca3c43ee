/* SPDX-License-Identifier: MIT
 *
 * msg - operations on sockets of messages. A weft_udp and a weft_dgram is its slot.
 *
 * A message is moved whole by one call, so none of them is the reader or the writer: all enter the slot as one of several. A try that moved
 * something says nothing of what else is there; only -EAGAIN clears readiness (driver/slot.h). Waiting leaves: given up, nothing was moved.
 * What is received exists only in the poll that is READY with it, so nothing can be lost behind one, descriptors least of all.
 */
#ifndef WEFT_NET_MSG_H
#define WEFT_NET_MSG_H

#include "driver/op.h"
#include "net/addr.h"
#include "sync/leaf.h"

#include <stdbool.h>

/* One operation: its call, which takes `of` (the frame) and answers as sys/packet.h does. */
struct weft__msg_kind {
    struct weft__op_kind op; /* .tries is weft__msg_try */
    ssize_t (*call)(int fd, void *of);
};

struct weft__msg_trying {
    const struct weft__msg_kind *kind;
    void *of;
};

/* One try of any of them. */
ssize_t weft__msg_try(struct weft__fdslot *slot, void *arg);

#define WEFT__MSG_KIND(side_, as_, call_)                                                          \
    {.op = {.side = WEFT__SIDE_##side_,                                                            \
            .as = (as_),                                                                           \
            .bits = WEFT__READY_##side_ | WEFT__READY_##side_##_END,                               \
            .tries = weft__msg_try},                                                               \
     .call = (call_)}

static inline struct weft__fdslot *weft__msg_slot_of(const void *object)
{
    return (struct weft__fdslot *)(uintptr_t)object;
}

/* May it begin? 0; or the negative errno that it is answered with at once; or NOTHING: it has nothing to do, and is answered 0. */
enum { WEFT__MSG_NOTHING = 1 };

static inline int weft__msg_if(bool sound)
{
    return sound ? 0 : -EINVAL;
}

/* The poll of a frame. slot NULL: -EINVAL. */
weft_poll weft__msg_poll(struct weft__fdslot *slot, int why, const struct weft__msg_kind *kind,
                         void *of, struct weft_io *io, int32_t *at, weft_cx *cx, ssize_t *ret);

/* ---- operations --------------------------------------------------------------------------------------
 *
 * All of one but its call form, from what makes it another than the rest: its frame, its side, as what it enters the
 * slot, which slot, whether it may begin, and its system call on `fd`.
 *     WEFT__MSG_OPERATION(weft_udp_send, WRITE, SHARED, slot_of(f->udp), weft__msg_if(f->buf || !f->len),
 *                         weft__packet_send(fd, f->buf, f->len, NULL))
 *     ssize_t weft__udp_send(weft_udp *udp, const void *buf, size_t len)
 *     {
 *         return WEFT__RUN_FRAME(weft_udp_send, .udp = udp, .buf = buf, .len = len);
 *     }
 * A macro, since each frame is a type of its own. */
#define WEFT__MSG_OPERATION(name, side, as, slot, why, ...)                                        \
    static ssize_t name##_call(int fd, void *of)                                                   \
    {                                                                                              \
        struct name *f = of;                                                                       \
        return __VA_ARGS__;                                                                        \
    }                                                                                              \
    static const struct weft__msg_kind name##_kind =                                               \
        WEFT__MSG_KIND(side, WEFT__USE_##as, name##_call);                                         \
    weft_poll name##_poll(void *frame, weft_cx *cx)                                                \
    {                                                                                              \
        struct name *f = frame;                                                                    \
        ssize_t ret = 0;                                                                           \
        weft_poll answer =                                                                         \
            weft__msg_poll(slot, why, &name##_kind, f, &f->weft__io, &f->weft__at, cx, &ret);      \
        if (answer == WEFT_READY) f->ret = (__typeof__(f->ret))ret;                                \
        return answer;                                                                             \
    }

/* A slot of `fd` in a port of `rt` (NULL: the current one). Takes fd, also if it fails. */
int weft__msg_slot(weft_rt *rt, int fd, struct weft__fdslot **into);

#endif
