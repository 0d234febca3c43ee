/* SPDX-License-Identifier: MIT
 *
 * resolver - another resolver than the system's: put in place, asked; the idea is in resolver.h.
 */
#include "net/resolver.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "net/addr.h"
#include "sys/resolve.h"

#include <weft/rt.h>

#include <string.h>

static const weft_resolver *_Atomic in_use; /* [resolver] */

const weft_resolver *weft_resolver_use(const weft_resolver *resolver)
{
    return exchange_acq_rel(&in_use, resolver); /* [resolver] with weft__resolver_of, and with itself */
}

const weft_resolver *weft__resolver_of(const weft_resolve_opts *opts)
{
    if (opts && opts->resolver) return opts->resolver;
    return load_acquire(&in_use); /* [resolver] with weft_resolver_use */
}

struct weft_lookup *weft__resolver_begin(const weft_resolver *resolver, const char *host,
                                         const weft_resolve_opts *opts)
{
    weft_assert(resolver->frame_bytes >= sizeof(struct weft_lookup));
    struct weft_lookup *lookup = weft__alloc(resolver->frame_bytes);
    if (!lookup) return NULL;
    lookup->resolver = resolver;
    lookup->host = host;
    lookup->rt = opts && opts->rt ? opts->rt : weft_rt_current();
    lookup->family = opts ? opts->family : WEFT_FAMILY_ANY;
    return lookup;
}

static void set_ports(weft_addr_list *list, int port)
{
    for (size_t i = 0; i < list->count; i++)
        weft__address_set_port(weft__addr_inside(&list->addr[i]), port);
}

weft_poll weft__resolver_poll(struct weft_lookup *lookup, weft_cx *cx, int port, int *ret,
                              weft_addr_list **found)
{
    if (lookup->resolver->poll(lookup, cx) == WEFT_PENDING) return WEFT_PENDING;
    *ret = lookup->ret;
    if (lookup->ret == 0) {
        weft_assert(lookup->found); /* 0 comes with a list */
        *found = lookup->found;
        set_ports(*found, port);
    }
    weft__free(lookup);
    return WEFT_READY;
}

/* ---- for those who write one ---- */

int weft_addr_list_new(const weft_addr *addrs, size_t count, weft_addr_list **into)
{
    if (!into || (!addrs && count > 0)) return -EINVAL;
    if (count == 0) return -ENOENT;
    struct weft__address_list *list = weft__address_list_new(count);
    if (!list) return -ENOMEM;
    memcpy(list->addr, addrs, count * sizeof(weft_addr));
    *into = (weft_addr_list *)(void *)list;
    return 0;
}

int weft_addr_from(const void *sockaddr, size_t bytes, weft_addr *into)
{
    if (!sockaddr || !into) return -EINVAL;
    return weft__address_of_sockaddr(sockaddr, bytes, weft__addr_inside(into));
}
