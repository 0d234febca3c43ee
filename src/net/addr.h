/* SPDX-License-Identifier: MIT
 *
 * addr - weft_addr and the address of src/sys are one struct to this folder.
 */
#ifndef WEFT_NET_ADDR_H
#define WEFT_NET_ADDR_H

#include "sys/address.h"

#include <weft/net.h>

_Static_assert(sizeof(weft_addr) == sizeof(struct weft__address), "one is the other");
_Static_assert(offsetof(weft_addr, weft__data) == offsetof(struct weft__address, data), "as above");
_Static_assert(WEFT_ADDR_TEXT == WEFT__ADDRESS_TEXT, "as above");

static inline struct weft__address *weft__addr_inside(weft_addr *addr)
{
    return (struct weft__address *)(void *)addr;
}

static inline const struct weft__address *weft__addr_within(const weft_addr *addr)
{
    return (const struct weft__address *)(const void *)addr;
}

#endif
