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

/* The poll of a frame. `sound`: its arguments make sense. */
weft_poll weft__msg_poll(struct weft__fdslot *slot, bool sound, const struct weft__msg_kind *kind,
                         void *of, struct weft_io *io, int32_t *at, weft_cx *cx, ssize_t *ret);

/* A slot of `fd` in a port of `rt` (NULL: the current one). Takes fd, also if it fails. */
int weft__msg_slot(weft_rt *rt, int fd, struct weft__fdslot **into);

#endif
