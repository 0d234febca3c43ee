/* SPDX-License-Identifier: MIT
 *
 * race - a connection to one of several addresses: RFC 8305, inside one task.
 *
 *     RESOLVES   by name only: the list is asked for
 *     RUNS       attempts, of which each is a weft_tcp_connect of its own, in the list's order with the families in turns
 *     ENDS       it is decided; who still runs is told to stop, and settles
 *     RESOLVES -> RUNS    [the list is there]
 *     RUNS     -> ENDS    [one is connected; all have failed; told to stop]
 * The next attempt begins when one has failed, or when the last one to begin has not answered for 250 ms. A loser's socket is closed by the attempt
 * itself, whether it was connected meanwhile or not. Every poll polls all attempts that run: there are few.
 * Lives on the heap: a connection to a number, which is most, needs none of it.
 */
#ifndef WEFT_NET_RACE_H
#define WEFT_NET_RACE_H

#include <weft/dns.h>

struct weft__race;

/* May it be a name with a service: "host:port"? */
bool weft__race_is_name(const char *address);

/* Of a name, or with NULL of addresses, which are borrowed. Returns 0; -ENOMEM. */
int weft__race_new(const char *name, const weft_addr *addrs, size_t count,
                   const weft_net_opts *opts, struct weft__race **into);

/* READY: *ret, and if that is 0 *stream; the race is gone. */
weft_poll weft__race_poll(struct weft__race *race, weft_cx *cx, weft_stream **stream, int *ret);

#endif
