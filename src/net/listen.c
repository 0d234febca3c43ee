/* SPDX-License-Identifier: MIT
 *
 * listen - sockets that wait for connections: made, asked, closed.
 */
#include "net/listen.h"

#include "sys/fd.h"
#include "sys/socket.h"

#include <errno.h>
#include <limits.h>

/* ---- making ---- */

/* Buffers before listen: those that are accepted inherit them, and TCP tells its peer so early. */
static int prepare(int fd, const weft_net_opts *opts, bool tcp)
{
    int r = weft__sock_buffers(fd, opts);
    if (r == 0 && tcp && !opts->fresh_port) r = weft__socket_set(fd, WEFT__SOCKET_REUSEADDR, 1);
    if (r == 0 && tcp && opts->reuse_port) r = weft__socket_set(fd, WEFT__SOCKET_REUSEPORT, 1);
    return r;
}

/* "[::]:80" is both kinds unless it says otherwise, whatever the system's default is. */
static void choose_kinds(int fd, const weft_net_opts *opts)
{
    (void)weft__socket_set(fd, WEFT__SOCKET_V6ONLY, opts->v6_only); /* IPv4 has no such option */
}

static int listen_on(int fd, const weft_net_opts *opts, const struct weft__address *addr, bool tcp)
{
    int r = prepare(fd, opts, tcp);
    if (r < 0) return r;
    if (tcp) choose_kinds(fd, opts);
    r = weft__socket_bind(fd, addr);
    /* the kernel cuts it at net.core.somaxconn */
    return r < 0 ? r : weft__socket_listen(fd, opts->backlog > 0 ? opts->backlog : INT_MAX);
}

/* Takes fd if it succeeds. */
static int new_listener(const weft_net_opts *opts, int fd, bool tcp, weft_listener **into)
{
    struct weft__port *port = NULL;
    struct weft__fdslot *slot = NULL;
    int r = weft__driver_here(opts->rt, false, &port);
    if (r == 0) r = weft__driver_add(port, fd, &slot);
    if (r < 0) return r;
    weft__listening_of(slot)->wishes = (struct weft__sock_wishes){
        .tcp = tcp,
        .nagle = opts->nagle,
        .keepalive_s = opts->keepalive_s,
    };
    *into = (weft_listener *)(void *)slot;
    return 0;
}

static int listen_at(const weft_net_opts *opts, const struct weft__address *addr, bool tcp,
                     weft_listener **into)
{
    static const weft_net_opts none;
    int fd = -1;
    if (!opts) opts = &none;
    if (!weft__sock_sound(opts)) return -EINVAL;
    int r = weft__socket_open(addr, &fd);
    if (r < 0) return r;
    r = listen_on(fd, opts, addr, tcp);
    if (r == 0) r = new_listener(opts, fd, tcp, into);
    if (r < 0) {
        weft__fd_close(fd);
        return r;
    }
    /* nobody else accepts from it, as from one that was inherited: connections may be fetched ahead */
    weft__listener_slot(*into)->shape = WEFT__SHAPE_LISTENER;
    return 0;
}

int weft_tcp_listen_with(const weft_net_opts *opts, const char *address, weft_listener **into)
{
    struct weft__address addr;
    if (!address || !into) return -EINVAL;
    int r = weft__address_parse(address, &addr);
    return r < 0 ? r : listen_at(opts, &addr, true, into);
}

int weft_unix_listen_with(const weft_net_opts *opts, const char *path, weft_listener **into)
{
    struct weft__address addr;
    if (!path || !into) return -EINVAL;
    int r = weft__address_of_path(path, &addr);
    return r < 0 ? r : listen_at(opts, &addr, false, into);
}

int weft_tcp_listen(const char *address, weft_listener **into)
{
    return weft_tcp_listen_with(NULL, address, into);
}

int weft_unix_listen(const char *path, weft_listener **into)
{
    return weft_unix_listen_with(NULL, path, into);
}

int weft_listener_of_fd(const weft_net_opts *opts, int fd, weft_listener **into)
{
    static const weft_net_opts none;
    struct weft__address addr;
    bool packets = false;
    if (!into || (opts && !weft__sock_sound(opts))) return -EINVAL;
    int r = weft__socket_listens(fd, &packets);
    if (r == 0) r = weft__socket_local(fd, &addr);
    if (r < 0) return r;
    int unblocked = weft__fd_unblock(fd);
    r = unblocked;
    if (r >= 0) r = new_listener(opts ? opts : &none, fd, weft__address_port(&addr) >= 0, into);
    if (r == 0) weft__listening_of(weft__listener_slot(*into))->packets = packets;
    if (r < 0)
        weft__fd_put_back(fd, unblocked); /* it is not ours, and perhaps others have it, too */
    return r;
}

/* ---- asking, closing ---- */

int weft_listener_addr(const weft_listener *listener, weft_addr *into)
{
    if (!listener || !into) return -EINVAL;
    return weft__socket_local(weft_listener_fd(listener), weft__addr_inside(into));
}

int weft_listener_print(const weft_listener *listener, char *into, size_t bytes)
{
    weft_addr addr;
    int r = weft_listener_addr(listener, &addr);
    return r < 0 ? r : weft_addr_print(&addr, into, bytes);
}

int weft_listener_fd(const weft_listener *listener)
{
    return listener ? ((const struct weft__fdslot *)(const void *)listener)->fd : -EINVAL;
}

void weft__listener_close(weft_listener *listener, const char *caller)
{
    weft__driver_closes("a listener", caller);
    if (listener) weft__driver_close(weft__listener_slot(listener));
}
