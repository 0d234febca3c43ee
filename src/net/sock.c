/* SPDX-License-Identifier: MIT
 *
 * sock - addresses and options, as users see them; and as they are set on what is made here.
 */
#include "net/sock.h"

#include "sys/socket.h"

#include <errno.h>

/* ---- addresses ---- */

int weft_addr_parse(const char *text, weft_addr *into)
{
    if (!text || !into) return -EINVAL;
    return weft__address_parse(text, weft__addr_inside(into));
}

int weft_addr_print(const weft_addr *addr, char *into, size_t bytes)
{
    if (!addr || (!into && bytes > 0)) return -EINVAL;
    return weft__address_print((const struct weft__address *)(const void *)addr, into, bytes);
}

int weft_addr_port(const weft_addr *addr)
{
    return addr ? weft__address_port((const struct weft__address *)(const void *)addr) : -1;
}

int weft_sock_local(weft_stream *stream, weft_addr *into)
{
    int fd = weft_stream_fd(stream);
    if (fd < 0) return fd;
    return into ? weft__socket_local(fd, weft__addr_inside(into)) : -EINVAL;
}

int weft_sock_peer(weft_stream *stream, weft_addr *into)
{
    int fd = weft_stream_fd(stream);
    if (fd < 0) return fd;
    return into ? weft__socket_peer(fd, weft__addr_inside(into)) : -EINVAL;
}

/* ---- options ---- */

static const enum weft__socket_option options[] = {
    [WEFT_SOCK_NODELAY] = WEFT__SOCKET_NODELAY,
    [WEFT_SOCK_KEEPALIVE] = WEFT__SOCKET_KEEPALIVE,
    [WEFT_SOCK_KEEPALIVE_S] = WEFT__SOCKET_KEEPIDLE,
    [WEFT_SOCK_PROBE_S] = WEFT__SOCKET_KEEPINTVL,
    [WEFT_SOCK_PROBES] = WEFT__SOCKET_KEEPCNT,
    [WEFT_SOCK_LINGER_S] = WEFT__SOCKET_LINGER,
    [WEFT_SOCK_REUSE_ADDRESS] = WEFT__SOCKET_REUSEADDR,
    [WEFT_SOCK_REUSE_PORT] = WEFT__SOCKET_REUSEPORT,
    [WEFT_SOCK_RECV_BYTES] = WEFT__SOCKET_RECVBUF,
    [WEFT_SOCK_SEND_BYTES] = WEFT__SOCKET_SENDBUF,
    [WEFT_SOCK_TOS] = WEFT__SOCKET_TOS,
};
#define OPTIONS (sizeof(options) / sizeof(options[0]))

int weft_sock_set(weft_stream *stream, enum weft_sock_option option, int value)
{
    int fd = weft_stream_fd(stream);
    if (fd < 0) return fd;
    return (size_t)option < OPTIONS ? weft__socket_set(fd, options[option], value) : -EINVAL;
}

int weft_sock_get(weft_stream *stream, enum weft_sock_option option, int *into)
{
    int fd = weft_stream_fd(stream);
    if (fd < 0) return fd;
    if ((size_t)option >= OPTIONS || !into) return -EINVAL;
    return weft__socket_get(fd, options[option], into);
}

/* The kernel's MAX_TCP_KEEPIDLE. */
#define KEEPALIVE_MAX_S 32767

bool weft__sock_sound(const weft_net_opts *opts)
{
    return opts->backlog >= 0 && opts->keepalive_s >= 0 && opts->keepalive_s <= KEEPALIVE_MAX_S;
}

void weft__sock_prepare(int fd, const struct weft__sock_wishes *wishes)
{
    if (!wishes->tcp) return;
    if (!wishes->nagle) (void)weft__socket_set(fd, WEFT__SOCKET_NODELAY, 1);
    if (wishes->keepalive_s <= 0) return;
    (void)weft__socket_set(fd, WEFT__SOCKET_KEEPALIVE, 1);
    (void)weft__socket_set(fd, WEFT__SOCKET_KEEPIDLE, wishes->keepalive_s);
}

int weft__sock_buffers(int fd, const weft_net_opts *opts)
{
    int r = 0;
    if (opts->recv_bytes > 0) r = weft__socket_set(fd, WEFT__SOCKET_RECVBUF, (int)opts->recv_bytes);
    if (r == 0 && opts->send_bytes > 0)
        r = weft__socket_set(fd, WEFT__SOCKET_SENDBUF, (int)opts->send_bytes);
    return r;
}
