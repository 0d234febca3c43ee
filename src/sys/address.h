/* SPDX-License-Identifier: MIT
 *
 * address - where a socket is: text on one side, the kernel's struct on the other.
 *
 *     "127.0.0.1:80"   "[::1]:80"   "[fe80::1%eth0]:80"   ":80" and "*:80": every address of the machine
 *     "/run/app.sock"  "relative.sock"   "@name": an abstract one, which is no file and ends with its sockets
 * Numbers only: names are for a resolver to turn into these.
 * Threads: any; everything here is computation, but for the name of an interface behind %.
 */
#ifndef WEFT_SYS_ADDRESS_H
#define WEFT_SYS_ADDRESS_H

#include <stddef.h>
#include <stdint.h>

#define WEFT__ADDRESS_BYTES 128

struct weft__address {
    uint32_t bytes; /* of `data` that count; 0: none */
    uint32_t spare;
    _Alignas(8) unsigned char data[WEFT__ADDRESS_BYTES]; /* a sockaddr */
};

/* The longest text of an address, with its end: an abstract name of 107 bytes whose every byte is escaped. */
#define WEFT__ADDRESS_TEXT 448

/* Of an internet address with its port. Returns 0; -EINVAL: it is none. */
int weft__address_parse(const char *text, struct weft__address *into);

/* Of a socket in the file system, or an abstract one. Returns 0; -EINVAL: empty; -ENAMETOOLONG. */
int weft__address_of_path(const char *path, struct weft__address *into);

/* As text, cut at `bytes`; "" for none, "unnamed" for a Unix socket without a name. Returns its whole length. */
int weft__address_print(const struct weft__address *addr, char *into, size_t bytes);

/* Its port; -1: it has none. */
int weft__address_port(const struct weft__address *addr);

/* Of an internet address. */
void weft__address_set_port(struct weft__address *addr, int port);

/* Of the kernel's struct, with `bytes` of it. Returns 0; -EINVAL: it is none of the internet, or too short. */
int weft__address_of_sockaddr(const void *sockaddr, size_t bytes, struct weft__address *into);

#endif
