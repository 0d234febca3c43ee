/* SPDX-License-Identifier: MIT
 *
 * address - parsing and printing; the forms are in address.h.
 */
#include "sys/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

/* ---- parsing ---- */

/* Digits alone, up to 65535. Returns the number, or -1. */
static int parse_port(const char *text)
{
    int port = 0;
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 5 || text[digits]) return -1;
    for (size_t i = 0; i < digits; i++)
        port = port * 10 + (text[i] - '0');
    return port <= UINT16_MAX ? port : -1;
}

static void put_v4(struct weft__address *into, struct in_addr addr, int port)
{
    struct sockaddr_in in = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)port),
        .sin_addr = addr,
    };
    *into = (struct weft__address){.bytes = sizeof(in)};
    memcpy(into->data, &in, sizeof(in));
}

static void put_v6(struct weft__address *into, struct in6_addr addr, uint32_t scope, int port)
{
    struct sockaddr_in6 in = {
        .sin6_family = AF_INET6,
        .sin6_port = htons((uint16_t)port),
        .sin6_addr = addr,
        .sin6_scope_id = scope,
    };
    *into = (struct weft__address){.bytes = sizeof(in)};
    memcpy(into->data, &in, sizeof(in));
}

/* The interface behind the %, by name or number. 0: there is none of that name. */
static uint32_t parse_scope(const char *text)
{
    uint32_t index = if_nametoindex(text);
    if (index > 0) return index;
    int number = parse_port(text);
    return number > 0 ? (uint32_t)number : 0;
}

/* host: "::1" or "fe80::1%eth0", cut at its %. */
static int parse_v6(char *host, int port, struct weft__address *into)
{
    struct in6_addr addr;
    uint32_t scope = 0;
    char *percent = strchr(host, '%');
    if (percent) {
        *percent = '\0';
        scope = parse_scope(percent + 1);
        if (scope == 0) return -EINVAL;
    }
    if (inet_pton(AF_INET6, host, &addr) != 1) return -EINVAL;
    put_v6(into, addr, scope, port);
    return 0;
}

static int parse_v4(const char *host, int port, struct weft__address *into)
{
    struct in_addr addr = {.s_addr = htonl(INADDR_ANY)};
    bool any = host[0] == '\0' || strcmp(host, "*") == 0;
    if (!any && inet_pton(AF_INET, host, &addr) != 1) return -EINVAL;
    put_v4(into, addr, port);
    return 0;
}

int weft__address_parse(const char *text, struct weft__address *into)
{
    char host[INET6_ADDRSTRLEN + IF_NAMESIZE + 4];
    const char *colon = strrchr(text, ':');
    if (!colon) return -EINVAL;
    size_t length = (size_t)(colon - text);
    int port = parse_port(colon + 1);
    if (port < 0 || length >= sizeof(host)) return -EINVAL;
    memcpy(host, text, length);
    host[length] = '\0';
    if (host[0] != '[') return parse_v4(host, port, into);
    if (host[length - 1] != ']') return -EINVAL;
    host[length - 1] = '\0';
    return parse_v6(host + 1, port, into);
}

int weft__address_of_path(const char *path, struct weft__address *into)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    size_t length = strlen(path);
    bool abstract = path[0] == '@';
    if (length == 0 || (abstract && length == 1)) return -EINVAL;
    if (length >= sizeof(un.sun_path) + abstract) return -ENAMETOOLONG;
    memcpy(un.sun_path, path, length);
    if (abstract) un.sun_path[0] = '\0'; /* its length is its end; it has no other */
    size_t bytes = offsetof(struct sockaddr_un, sun_path) + length + !abstract;
    *into = (struct weft__address){.bytes = (uint32_t)bytes};
    memcpy(into->data, &un, bytes);
    return 0;
}

/* ---- printing ---- */

static int family_of(const struct weft__address *addr)
{
    struct sockaddr sa;
    if (addr->bytes < sizeof(sa.sa_family)) return AF_UNSPEC;
    memcpy(&sa, addr->data, sizeof(sa));
    return sa.sa_family;
}

static int print_v4(const struct weft__address *addr, char *into, size_t bytes)
{
    struct sockaddr_in in;
    char host[INET_ADDRSTRLEN];
    memcpy(&in, addr->data, sizeof(in));
    (void)inet_ntop(AF_INET, &in.sin_addr, host, sizeof(host));
    return snprintf(into, bytes, "%s:%u", host, ntohs(in.sin_port));
}

static int print_v6(const struct weft__address *addr, char *into, size_t bytes)
{
    struct sockaddr_in6 in;
    char host[INET6_ADDRSTRLEN];
    memcpy(&in, addr->data, sizeof(in));
    (void)inet_ntop(AF_INET6, &in.sin6_addr, host, sizeof(host));
    if (in.sin6_scope_id == 0) return snprintf(into, bytes, "[%s]:%u", host, ntohs(in.sin6_port));
    return snprintf(into, bytes, "[%s%%%u]:%u", host, in.sin6_scope_id, ntohs(in.sin6_port));
}

/* An abstract name may hold any byte: those that do not print are escaped. */
static int print_unix(const struct weft__address *addr, char *into, size_t bytes)
{
    char text[WEFT__ADDRESS_TEXT];
    size_t at = 0;
    size_t path = offsetof(struct sockaddr_un, sun_path);
    if (addr->bytes <= path) return snprintf(into, bytes, "unnamed");
    bool abstract = addr->data[path] == '\0';
    if (abstract) text[at++] = '@';
    for (size_t i = path + abstract; i < addr->bytes; i++) {
        unsigned char c = addr->data[i];
        if (!abstract && c == '\0') break;
        bool plain = c >= ' ' && c < 0x7f;
        at += (size_t)snprintf(text + at, sizeof(text) - at, plain ? "%c" : "\\x%02x", c);
    }
    text[at] = '\0';
    return snprintf(into, bytes, "%s", text);
}

int weft__address_print(const struct weft__address *addr, char *into, size_t bytes)
{
    switch (family_of(addr)) {
    case AF_INET:
        return print_v4(addr, into, bytes);
    case AF_INET6:
        return print_v6(addr, into, bytes);
    case AF_UNIX:
        return print_unix(addr, into, bytes);
    default:
        return snprintf(into, bytes, "%s", "");
    }
}

int weft__address_port(const struct weft__address *addr)
{
    struct sockaddr_in in;
    int family = family_of(addr);
    if (family != AF_INET && family != AF_INET6) return -1;
    memcpy(&in, addr->data, sizeof(in)); /* the port of both lies in the same place */
    return ntohs(in.sin_port);
}

/* ---- the kernel's own ---- */

int weft__address_of_sockaddr(const void *sockaddr, size_t bytes, struct weft__address *into)
{
    sa_family_t family;
    if (bytes < sizeof(struct sockaddr)) return -EINVAL;
    memcpy(&family, (const char *)sockaddr + offsetof(struct sockaddr, sa_family), sizeof(family));
    size_t wanted = family == AF_INET    ? sizeof(struct sockaddr_in)
                    : family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                         : SIZE_MAX;
    if (bytes < wanted) return -EINVAL;
    *into = (struct weft__address){.bytes = (uint32_t)wanted};
    memcpy(into->data, sockaddr, wanted);
    return 0;
}

void weft__address_set_port(struct weft__address *addr, int port)
{
    _Static_assert(offsetof(struct sockaddr_in, sin_port) ==
                       offsetof(struct sockaddr_in6, sin6_port),
                   "one place for both");
    in_port_t number = htons((uint16_t)port);
    memcpy(addr->data + offsetof(struct sockaddr_in, sin_port), &number, sizeof(number));
}
