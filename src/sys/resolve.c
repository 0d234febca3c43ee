/* SPDX-License-Identifier: MIT
 *
 * resolve - getaddrinfo, its answers and its errors; the table is in resolve.h.
 */
#include "sys/resolve.h"

#include "base/alloc.h"
#include "base/fault.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

struct weft__address_list *weft__address_list_new(size_t count)
{
    struct weft__address_list *list =
        weft__alloc(sizeof(*list) + count * sizeof(struct weft__address));
    if (!list) return NULL;
    list->count = count;
    list->addr = (struct weft__address *)(void *)(list + 1);
    return list;
}

/* ---- numbers ---- */

static bool fits(const struct weft__address *addr, enum weft__family family)
{
    sa_family_t is = ((const struct sockaddr *)(const void *)addr->data)->sa_family;
    return family == WEFT__FAMILY_ANY || (family == WEFT__FAMILY_V6) == (is == AF_INET6);
}

int weft__resolve_numbers(const struct weft__query *query, struct weft__address_list **into)
{
    char text[128]; /* the longest number is shorter: INET6_ADDRSTRLEN, an interface, a port */
    struct weft__address addr;
    const char *host = query->host;
    const char *port = query->service ? query->service : "0";
    bool six = strchr(host, ':');
    int length = snprintf(text, sizeof(text), six ? "[%s]:%s" : "%s:%s", host, port);
    if (length >= (int)sizeof(text) || host[0] == '*' || host[0] == '[') return -EAGAIN;
    if (weft__address_parse(text, &addr) < 0) return -EAGAIN;
    if (!fits(&addr, query->family)) return -ENOENT;
    struct weft__address_list *list = weft__address_list_new(1);
    if (!list) return -ENOMEM;
    list->addr[0] = addr;
    *into = list;
    return 0;
}

bool weft__resolve_is_number(const char *host)
{
    struct in_addr four;
    return strchr(host, ':') || inet_aton(host, &four);
}

/* ---- names ---- */

static int error_of(int eai, int error)
{
    switch (eai) {
    case 0:
        return 0;
    case EAI_NONAME:
    case EAI_NODATA:
    case EAI_ADDRFAMILY:
        return -ENOENT;
    case EAI_SERVICE:
        return -EPROTONOSUPPORT;
    case EAI_AGAIN:
        return -EAGAIN;
    case EAI_FAIL:
        return -EIO;
    case EAI_FAMILY:
    case EAI_SOCKTYPE:
        return -EAFNOSUPPORT;
    case EAI_OVERFLOW:
        return -ENAMETOOLONG;
    case EAI_MEMORY:
        return -ENOMEM;
    case EAI_SYSTEM:
        return error ? -error : -EIO;
    default:
        return -EINVAL;
    }
}

/* A port, or something with a letter in it, as the names of services have. What else strtoul(3) can make something of the C library takes for a port, and of its value the
 * lowest 16 bits: "99999" would be 34463, "-1" the last of all, and "" 0. */
static bool could_be_service(const char *text)
{
    unsigned value = 0;
    bool is_number = *text != '\0';
    for (; *text; text++) {
        if ((*text | 32) >= 'a' && (*text | 32) <= 'z') return true;
        if (*text < '0' || *text > '9') is_number = false;
        else if (value <= 65535) value = value * 10 + (unsigned)(*text - '0');
    }
    return is_number && value <= 65535;
}

static int ask(const struct weft__query *query, struct addrinfo **into)
{
    static const int families[] = {AF_UNSPEC, AF_INET, AF_INET6};
    struct addrinfo hints = {
        .ai_family = families[query->family],
        .ai_socktype =
            query->datagrams ? SOCK_DGRAM : SOCK_STREAM, /* else each comes three times */
    };
    if (query->service && !could_be_service(query->service)) return -EPROTONOSUPPORT;
    int r = weft__fault(WEFT__FAULT_RESOLVE);
    if (r < 0) return r;
    errno = 0;
    int eai = getaddrinfo(query->host, query->service, &hints, into);
    return error_of(eai, errno);
}

static bool is_internet(const struct addrinfo *a)
{
    return a->ai_family == AF_INET || a->ai_family == AF_INET6;
}

static size_t count_of(const struct addrinfo *a)
{
    size_t count = 0;
    for (; a; a = a->ai_next)
        count += is_internet(a);
    return count;
}

/* In the order of the system, which is that of RFC 6724. */
static int copy(const struct addrinfo *a, struct weft__address_list **into)
{
    size_t count = count_of(a);
    struct weft__address_list *list = count > 0 ? weft__address_list_new(count) : NULL;
    struct weft__address *to = list ? list->addr : NULL;
    if (!list) return count > 0 ? -ENOMEM : -ENOENT;
    for (; a; a = a->ai_next) {
        if (!is_internet(a)) continue;
        to->bytes = a->ai_addrlen;
        memcpy(to->data, a->ai_addr, a->ai_addrlen);
        to++;
    }
    *into = list;
    return 0;
}

int weft__resolve(const struct weft__query *query, struct weft__address_list **into)
{
    struct addrinfo *found = NULL;
    int r = ask(query, &found);
    if (r < 0) return r;
    r = copy(found, into);
    freeaddrinfo(found);
    return r;
}
