/* SPDX-License-Identifier: MIT
 *
 * resolver - who is asked for names in the system's place: the second half of weft/dns.h.
 *
 * One word says who all use; a query reads it once, when it begins. The frame of the resolver's future lies on the heap, for as long as it is asked.
 * A resolver knows hosts: what a service's number is, is asked of the system as ever, before the host is (net/resolve.c), and the ports are written
 * into the addresses behind it.
 * Threads: any. Pairs: [resolver] use -> of: what the resolver is made of.
 */
#ifndef WEFT_NET_RESOLVER_H
#define WEFT_NET_RESOLVER_H

#include <weft/dns.h>

/* Who is asked; NULL: the system. */
const weft_resolver *weft__resolver_of(const weft_resolve_opts *opts);

/* A frame, to be polled by weft__resolver_poll; NULL: no memory. Borrows the host. */
struct weft_lookup *weft__resolver_begin(const weft_resolver *resolver, const char *host,
                                         const weft_resolve_opts *opts);

/* READY: the frame is gone, *ret is its answer, and if that is 0 *found is its list, with these ports. */
weft_poll weft__resolver_poll(struct weft_lookup *lookup, weft_cx *cx, int port, int *ret,
                              weft_addr_list **found);

#endif
