/* SPDX-License-Identifier: MIT
 *
 * listen - a listener is its slot; what its connections are made with lies in the face.
 *     face[0]   struct weft__listening, in place
 */
#ifndef WEFT_NET_LISTEN_H
#define WEFT_NET_LISTEN_H

#include "base/atomic.h"
#include "driver/driver.h"
#include "net/sock.h"

struct weft__listening {
    struct weft__sock_wishes wishes; /* constant */
    _Atomic bool starved_told;       /* that there are no descriptors; once */
    bool packets;                    /* constant: its connections are no streams (unix.c) */
};

_Static_assert(sizeof(struct weft__listening) <= sizeof(((struct weft__fdslot *)0)->face),
               "it fits");

static inline struct weft__fdslot *weft__listener_slot(weft_listener *listener)
{
    return (struct weft__fdslot *)(void *)listener;
}

static inline struct weft__listening *weft__listening_of(struct weft__fdslot *slot)
{
    return (struct weft__listening *)(void *)slot->face;
}

/* As weft_accept_poll, of a listener of any kind. */
weft_poll weft__accept_any_poll(struct weft_accept *f, weft_cx *cx);

#endif
