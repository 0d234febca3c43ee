/* SPDX-License-Identifier: MIT
 *
 * sock - options, as connections of either kind are made with them.
 */
#ifndef WEFT_NET_SOCK_H
#define WEFT_NET_SOCK_H

#include "net/addr.h"

#include <stdbool.h>

/* What every connection gets, packed into a word, so that a listener remembers it for those it accepts. */
struct weft__sock_wishes {
    bool tcp;
    bool nagle;
    int keepalive_s;
};

/* Numbers that no socket takes are told before there is one: of a connection that is there nobody is told. */
bool weft__sock_sound(const weft_net_opts *opts);

/* Of a fresh connection. What it does not know is no error: the connection is there. */
void weft__sock_prepare(int fd, const struct weft__sock_wishes *wishes);

/* Buffers: before connect and listen. Returns 0, or what setting answers. */
int weft__sock_buffers(int fd, const weft_net_opts *opts);

#endif
