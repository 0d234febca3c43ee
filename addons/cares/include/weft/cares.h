/* SPDX-License-Identifier: MIT
 *
 * cares - names by c-ares: name servers are asked by the runtime itself, without a thread for each name.
 *
 *     weft_resolver *dns;
 *     r = weft_cares_new(NULL, &dns);
 *     weft_resolver_use(dns);                            from now on, all names: weft_resolve, weft_tcp_connect ...
 *     ...
 *     weft_resolver_use(NULL);                           behind the last query
 *     weft_cares_free(dns);
 *
 * An optional component: a library of its own, weft_cares, which is there if c-ares was when weft was built. In CMake:
 * target_link_libraries(app PRIVATE weft::cares weft::weft).
 *
 * What is different from the system's resolver (weft/dns.h): any number of names are asked for at once, where that has 16 threads. A query that is given up is over, with its sockets, and
 * nothing waits for it, not the stop of the runtime either. It knows /etc/hosts and name servers, as /etc/resolv.conf has them, read anew for each query;
 * nothing else of what /etc/nsswitch.conf may name (mDNS, LDAP, a daemon's own socket). What it answers, and how it fails, is the same.
 */
#ifndef WEFT_CARES_H
#define WEFT_CARES_H

#include <weft/dns.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero is the default of each. */
typedef struct weft_cares_opts {
    const char *servers; /* "192.0.2.1:53,[2001:db8::1]"; NULL: those of /etc/resolv.conf */
    unsigned timeout_ms; /* for the first try with a server, then doubled; 0: 5,000 */
    unsigned tries;      /* with each server; 0: 2 */
    bool tcp;            /* never by UDP */
} weft_cares_opts;

/* Gives a resolver, for weft_cares_free. Borrows the options. Context: anywhere.
 * Returns 0; -EINVAL: no into, or no list of servers; -ENOMEM. */
int weft_cares_new(const weft_cares_opts *opts, weft_resolver **into)
    __attribute__((warn_unused_result));

/* Takes it. No query may be under way, nor begin any more. NULL is fine. */
void weft_cares_free(weft_resolver *resolver);

#ifdef __cplusplus
}
#endif

#endif
