/* SPDX-License-Identifier: MIT
 *
 * resolve - names to addresses, by the C library: /etc/hosts, name servers, whatever the system is told to ask.
 *
 * What is a number already is computed on the spot, and nobody is asked. Errors of getaddrinfo(3) are errnos here:
 *     EAI_NONAME, EAI_NODATA, EAI_ADDRFAMILY   -ENOENT             no such name, or none of that family
 *     EAI_SERVICE; a number that is no port    -EPROTONOSUPPORT    no such service
 *     EAI_AGAIN                                -EAGAIN             no answer for now
 *     EAI_FAIL                                 -EIO                a server says that it cannot
 *     EAI_FAMILY, EAI_SOCKTYPE                 -EAFNOSUPPORT
 *     EAI_OVERFLOW                             -ENAMETOOLONG
 *     EAI_MEMORY                               -ENOMEM
 *     EAI_SYSTEM                               its errno
 *     any other                                -EINVAL
 * Threads: any. Blocks: weft__resolve, for as long as the system's resolver does.
 */
#ifndef WEFT_SYS_RESOLVE_H
#define WEFT_SYS_RESOLVE_H

#include "sys/address.h"

#include <stdbool.h>

enum weft__family { WEFT__FAMILY_ANY, WEFT__FAMILY_V4, WEFT__FAMILY_V6 };

struct weft__query {
    const char *host;
    const char *service; /* NULL: port 0 */
    enum weft__family family;
    bool datagrams; /* a service by name is that of UDP */
};

struct weft__address_list {
    size_t count; /* at least one */
    struct weft__address *addr;
};

/* In one piece, for weft__free, its addresses not written yet. NULL: no memory. */
struct weft__address_list *weft__address_list_new(size_t count);

/* Gives a list in one piece, for weft__free. Returns 0; -ENOMEM; else as above. */
int weft__resolve(const struct weft__query *query, struct weft__address_list **into);

/* The same of numbers alone. Blocks: never. -EAGAIN: it has to be asked for. */
int weft__resolve_numbers(const struct weft__query *query, struct weft__address_list **into);

/* The system would ask nobody for this host: it is a number, also in the forms of old ("127.1"), or could only be one. */
bool weft__resolve_is_number(const char *host);

#endif
