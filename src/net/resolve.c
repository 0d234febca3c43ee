/* SPDX-License-Identifier: MIT
 *
 * resolve - names to addresses: weft/dns.h.
 *
 * The query is an owning job (weft/blocking.h) in the runtime's lane of names: it lies on the heap with copies of all that it needs. Given up, the frame leaves it
 * to its thread, which frees it when the system has answered at last.
 * Where another resolver is in use (net/resolver.h), it is asked for hosts that are no numbers; a service by name is still the system's to know:
 *     SYSTEM     the lane: host and service
 *     SERVICE    the lane: what the number of the service is; then HOST
 *     HOST       the resolver
 * Rejected: a resolver of our own (it would have to know all that the system's does: hosts, search lists, mDNS, what a container has put there).
 */
#include <weft/dns.h>

#include "base/alloc.h"
#include "net/resolver.h"
#include "sync/leaf.h"
#include "sys/resolve.h"
#include "task/call.h"
#include "task/lane.h"

#include <string.h>

_Static_assert(sizeof(weft_addr_list) == sizeof(struct weft__address_list), "one is the other");
_Static_assert(sizeof(weft_addr) == sizeof(struct weft__address), "as above");
_Static_assert((int)WEFT_FAMILY_V4 == (int)WEFT__FAMILY_V4, "as above");
_Static_assert((int)WEFT_FAMILY_V6 == (int)WEFT__FAMILY_V6, "as above");

/* What the job owns. */
struct lookup {
    struct weft__query query; /* its texts lie behind */
    struct weft__address_list *found;
    char text[];
};

static struct lookup *lookup_new(const struct weft__query *q)
{
    size_t host = strlen(q->host) + 1;
    size_t service = q->service ? strlen(q->service) + 1 : 0;
    struct lookup *l = weft__alloc(sizeof(*l) + host + service);
    if (!l) return NULL;
    l->query = *q;
    l->query.host = memcpy(l->text, q->host, host);
    if (service) l->query.service = memcpy(l->text + host, q->service, service);
    return l;
}

static void lookup_free(struct lookup *l)
{
    weft__free(l->found);
    weft__free(l);
}

static void lookup_dispose(void *lookup, int64_t ret)
{
    (void)ret;
    lookup_free(lookup);
}

/* By a thread of the pool. */
static int64_t lookup_run(struct lookup *l)
{
    return weft__resolve(&l->query, &l->found);
}

/* ---- the frame ---- */

enum stage { SYSTEM, SERVICE, HOST };

static weft_poll ends(struct weft_resolve *f, int ret)
{
    f->weft__at = 0;
    f->ret = ret;
    return WEFT_READY;
}

static weft_poll gives(struct weft_resolve *f, struct weft__address_list *list, int ret)
{
    if (ret == 0) *f->into = (weft_addr_list *)(void *)list;
    return ends(f, ret);
}

static struct weft__query query_of(const struct weft_resolve *f)
{
    struct weft__query q = {.host = f->host, .service = f->service};
    if (!f->opts) return q;
    q.family = (enum weft__family)f->opts->family;
    q.datagrams = f->opts->datagrams;
    return q;
}

/* PENDING: the job is written, and waits to be begun. */
static weft_poll job_begins(struct weft_resolve *f, const struct weft__query *q,
                            struct weft_lane *lane)
{
    struct lookup *l = lookup_new(q);
    if (!l) return ends(f, -ENOMEM);
    f->weft__lookup = l;
    f->weft__job = (struct weft_blocking){
        .call = {(void (*)(void))lookup_run, {(uintptr_t)l}, sizeof(int64_t), 1},
        .lane = lane,
        .dispose = lookup_dispose,
        .name = "weft_resolve",
    };
    f->weft__at = WEFT__LEAF_WAITS;
    return WEFT_PENDING;
}

static weft_poll host_begins(struct weft_resolve *f)
{
    f->weft__stage = HOST;
    f->weft__lookup = weft__resolver_begin(f->weft__resolver, f->host, f->opts);
    if (!f->weft__lookup) return ends(f, -ENOMEM);
    f->weft__at = WEFT__LEAF_WAITS;
    return WEFT_PENDING;
}

/* Takes a list whose first address has the port. */
static void keep_port(struct weft_resolve *f, struct weft__address_list *list)
{
    f->weft__port = weft__address_port(&list->addr[0]);
    weft__free(list);
}

/* Not of the system: its lane is for a service by name alone, beside a host that asks nobody. */
static weft_poll resolver_begins(struct weft_resolve *f, struct weft_lane *lane)
{
    struct weft__address_list *list = NULL;
    struct weft__query q = query_of(f);
    q.host = "127.0.0.1";
    q.family = WEFT__FAMILY_ANY;
    int r = weft__resolve_numbers(&q, &list);
    if (r == -EAGAIN) {
        f->weft__stage = SERVICE;
        return job_begins(f, &q, lane);
    }
    if (r < 0) return ends(f, r);
    keep_port(f, list);
    return host_begins(f);
}

/* PENDING: somebody is to be asked. */
static weft_poll begins(struct weft_resolve *f)
{
    struct weft__address_list *list = NULL;
    struct weft__query q = query_of(f);
    weft_rt *rt = f->opts ? f->opts->rt : NULL;
    int r = weft__resolve_numbers(&q, &list);
    if (r != -EAGAIN) return gives(f, list, r);
    struct weft_lane *lane = weft__lane_of_names(rt);
    if (!lane) { /* a plain thread, which may block */
        r = weft__resolve(&q, &list);
        return gives(f, list, r);
    }
    f->weft__stage = SYSTEM;
    f->weft__resolver = weft__resolver_of(f->opts);
    if (!f->weft__resolver || weft__resolve_is_number(f->host)) return job_begins(f, &q, lane);
    return resolver_begins(f, lane);
}

static weft_poll job_goes_on(struct weft_resolve *f, weft_cx *cx)
{
    if (weft_blocking_poll(&f->weft__job, cx) == WEFT_PENDING) return WEFT_PENDING;
    int ret = (int)f->weft__job.ret;
    if (ret == -ECANCELED || ret == -ETIME) return ends(f, ret); /* the job has disposed of it */
    struct lookup *l = f->weft__lookup;
    struct weft__address_list *list = l->found;
    l->found = NULL;
    lookup_free(l);
    if (f->weft__stage == SYSTEM || ret < 0) return gives(f, list, ret);
    keep_port(f, list);
    return host_begins(f);
}

static weft_poll host_goes_on(struct weft_resolve *f, weft_cx *cx)
{
    int ret;
    weft_addr_list *list = NULL;
    weft_poll answer = weft__resolver_poll(f->weft__lookup, cx, f->weft__port, &ret, &list);
    return answer == WEFT_PENDING ? WEFT_PENDING
                                  : gives(f, (struct weft__address_list *)(void *)list, ret);
}

static weft_poll goes_on(struct weft_resolve *f, weft_cx *cx)
{
    if (f->weft__stage != HOST) {
        weft_poll answer = job_goes_on(f, cx);
        if (answer == WEFT_READY || f->weft__stage != HOST) return answer;
    }
    return host_goes_on(f, cx);
}

weft_poll weft_resolve_poll(void *frame, weft_cx *cx)
{
    struct weft_resolve *f = frame;
    if (!f->weft__at) {
        if (cx->why) return weft__told_yields(cx) ? WEFT_PENDING : ends(f, weft_cx_cancelled(cx));
        bool known = !f->opts || (unsigned)f->opts->family <= WEFT_FAMILY_V6;
        if (!f->host || !f->host[0] || !f->into || !known) return ends(f, -EINVAL);
        if (!weft__leaf_may(cx)) return WEFT_PENDING;
        if (begins(f) == WEFT_READY) return WEFT_READY;
    }
    return goes_on(f, cx);
}

int weft__resolve_names(const char *host, const char *service, const weft_resolve_opts *opts,
                        weft_addr_list **into)
{
    struct weft_resolve f = {.host = host, .service = service, .opts = opts, .into = into};
    int r = weft__run_from(weft_resolve_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}
