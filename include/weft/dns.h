/* SPDX-License-Identifier: MIT
 *
 * dns - names to addresses, and connections by name.
 *
 *     weft_addr_list *list;
 *     r = weft_resolve("example.org", "https", NULL, &list);
 *     for (size_t i = 0; r == 0 && i < list->count; i++) print(&list->addr[i]);
 *     weft_free(list);
 *
 *     r = weft_tcp_connect("example.org:https", &c);      net.h: the same, and connected to whoever answers first
 *
 * A host that is a number ("127.0.0.1", "::1", "fe80::1%eth0") with a port that is one asks nobody, and is answered on the spot. All else is asked of the system
 * (/etc/hosts, name servers) on threads of its own, 16 at most for each runtime: names that nobody answers hold up neither files nor other blocking jobs.
 * GIVEN UP  A wait that is cancelled ends at once; the system's answer is then thrown away when it comes. Until then its thread is busy, and a
 * stop of the runtime waits for it.
 * ANOTHER RESOLVER than the system's is put in its place by weft_resolver_use, or for one query by .resolver: that of c-ares (weft/cares.h), which asks
 * name servers from the runtime itself and leaves nothing behind when it is given up, or one of the program's own. Numbers ask nobody as before.
 */
#ifndef WEFT_DNS_H
#define WEFT_DNS_H

#include <weft/alloc.h>
#include <weft/blocking.h>
#include <weft/net.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_addr_list {
    size_t count; /* at least one */
    weft_addr *addr;
} weft_addr_list;

enum weft_family { WEFT_FAMILY_ANY, WEFT_FAMILY_V4, WEFT_FAMILY_V6 };

typedef struct weft_resolver weft_resolver;

/* Zero is the default of each. */
typedef struct weft_resolve_opts {
    weft_rt *
        rt; /* NULL: the current one; where there is none, a plain thread asks the system by itself */
    enum weft_family family;
    bool datagrams; /* a service by name is that of UDP */
    const weft_resolver *resolver; /* NULL: the one that all use */
} weft_resolve_opts;

/* weft_resolve(host, service, opts, &list): all addresses of a host, best first. `service`: a port or a name; NULL: port 0. `opts`: NULL is none. Gives a list, for
 * weft_free. Borrows the rest.
 * Returns 0; -ENOENT: no such name, or no address of that family; -EPROTONOSUPPORT: no such service or port; -EAGAIN: nobody answers now, or no thread could
 * be started; -EIO: a name server says that it cannot; -EAFNOSUPPORT; -ENAMETOOLONG; -ENOMEM; -ECANCELED, -ETIME; -ESHUTDOWN; -ECHILD; -EINVAL: no host, or none
 * that could be one; -EDEADLK in a stackless poll (call form); and what the system says, for the rest. */
struct weft_resolve {
    WEFT_FRAME(int);
    const char *host;
    const char *service;
    const weft_resolve_opts *opts;
    weft_addr_list **into;
    void *weft__lookup WEFT__ZERO;
    const weft_resolver *weft__resolver WEFT__ZERO;
    int weft__stage WEFT__ZERO;
    int weft__port WEFT__ZERO;
    struct weft_blocking weft__job WEFT__ZERO;
};
WEFT_API weft_pollfn weft_resolve_poll;
WEFT_API int weft__resolve_names(const char *host, const char *service,
                                 const weft_resolve_opts *opts, weft_addr_list **into)
    __attribute__((warn_unused_result));
#define weft_resolve(host, service, opts, into)                                                    \
    (WEFT__CALL_FORM("weft_resolve()"), weft__resolve_names(host, service, opts, into))

/* weft_tcp_connect_any(addrs, count, &stream): connect to whichever of these answers first, as RFC 8305 has it: the families take turns, the first one's
 * first; the next address is tried when one has failed, or has not answered for 250 ms, while those before it go on. The first connection wins, the others are
 * given up and closed. Gives a stream. Borrows addrs. weft_tcp_connect by a name does this with what the name stands for.
 * Returns 0; else what went wrong with the first address; -EINVAL: there is none; -ENOMEM; else as weft_tcp_connect. Awaited, it takes .opts, too. */
struct weft_tcp_connect_any {
    WEFT_FRAME(int);
    const weft_addr *addrs;
    size_t count;
    weft_stream **into;
    const weft_net_opts *opts WEFT__ZERO;
    void *weft__race WEFT__ZERO;
};
WEFT_API weft_pollfn weft_tcp_connect_any_poll;
WEFT_API int weft__tcp_connect_any(const weft_addr *addrs, size_t count, weft_stream **into)
    __attribute__((warn_unused_result));
#define weft_tcp_connect_any(addrs, count, into)                                                   \
    (WEFT__CALL_FORM("weft_tcp_connect_any()"), weft__tcp_connect_any(addrs, count, into))

/* ---- another resolver --------------------------------------------------------------------------------------------------------
 *
 * A resolver is a future that finds the addresses of a host. Its frame begins with WEFT_LOOKUP, so it may be a stackless function:
 *
 *     struct finds {
 *         WEFT_LOOKUP;                                   f->host, f->family ...; then what it keeps
 *         struct weft_sleep sleep;
 *     };
 *     static weft_async(finds) { ... weft_return(weft_addr_list_new(addrs, count, &f->found)); ... }
 *     static const weft_resolver mine = {sizeof(struct finds), finds_poll};
 *     weft_resolver_use(&mine);
 *
 * It is asked for hosts that are no numbers. The frame is zero but for the host, the family, the runtime and the resolver, all borrowed until it is READY. Its result
 * is that of weft_resolve, and with 0 it gives `found`, whose ports weft_resolve writes. Told to stop, it settles at once, as all that waits does.
 */
#define WEFT_LOOKUP                                                                                \
    WEFT_FRAME(int);                                                                               \
    const weft_resolver *resolver;                                                                 \
    const char *host;                                                                              \
    weft_rt *rt;                                                                                   \
    enum weft_family family;                                                                       \
    weft_addr_list *found

struct weft_lookup {
    WEFT_LOOKUP;
};

struct weft_resolver {
    size_t frame_bytes; /* from sizeof(struct weft_lookup) on */
    weft_pollfn *poll;
};

/* All queries that name no other go to this one from now on; NULL: to the system. Pins *resolver until another is in its place and those
 * that have begun with it are over. Context: anywhere. Gives back what it was before. */
WEFT_API const weft_resolver *weft_resolver_use(const weft_resolver *resolver);

/* Gives a list of copies, for weft_free. Returns 0; -ENOENT: there are none; -ENOMEM; -EINVAL for NULL. */
WEFT_API int weft_addr_list_new(const weft_addr *addrs, size_t count, weft_addr_list **into)
    __attribute__((warn_unused_result));

/* The address in a struct sockaddr of the system's, which has so many bytes. Returns 0; -EINVAL: it is none of the internet, or too short. */
WEFT_API int weft_addr_from(const void *sockaddr, size_t bytes, weft_addr *into);

#ifdef __cplusplus
}
#endif

#endif
