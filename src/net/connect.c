/* SPDX-License-Identifier: MIT
 *
 * connect - streams to somewhere: TCP, which takes a while, and Unix, which does not.
 *
 * TCP: the connection is begun, and only then watched: a socket that is not connected reports that its peer is gone. It is
 * writable when it is decided, and its error says how. Unix: decided at once, unless the listener's queue is full; the kernel has no readiness
 * for that, so it is tried again, from 1 ms to 64 ms apart.
 * By name: a race (race.h), whose attempts are these frames again, each with one address.
 * Waiting leaves: given up, the socket is closed and there is no connection.
 */
#include "driver/op.h"
#include "io/fdstream.h"
#include "net/pause.h"
#include "net/race.h"
#include "net/sock.h"
#include "sync/leaf.h"
#include "sys/fd.h"
#include "sys/socket.h"
#include "task/call.h"

#include <errno.h>

static const weft_net_opts no_opts;

/* ---- TCP ---- */

static weft_poll ends(struct weft_tcp_connect *f, int ret)
{
    if (ret < 0 && f->weft__stream) weft__stream_close(f->weft__stream, NULL);
    if (ret == 0) *f->into = f->weft__stream;
    f->weft__stream = NULL;
    f->weft__at = 0;
    f->ret = ret;
    return WEFT_READY;
}

/* A socket that is on its way: 0, or an error and it is closed. */
static int set_out(int fd, const weft_net_opts *opts, const struct weft__address *addr)
{
    struct weft__sock_wishes wishes = {
        .tcp = weft__address_port(addr) >= 0,
        .nagle = opts->nagle,
        .keepalive_s = opts->keepalive_s,
    };
    int r = weft__sock_sound(opts) ? weft__sock_buffers(fd, opts) : -EINVAL;
    if (r < 0) return r;
    weft__sock_prepare(fd, &wishes);
    return weft__socket_connect(fd, addr);
}

/* Where to. -EINVAL: no address, or a name. */
static int where(const struct weft_tcp_connect *f, struct weft__address *into)
{
    if (!f->weft__to) return weft__address_parse(f->address, into);
    *into = *(const struct weft__address *)(const void *)f->weft__to;
    return 0;
}

/* The stream is there, connected or about to be; or, by name, the race is. */
static int begins(struct weft_tcp_connect *f)
{
    const weft_net_opts *opts = f->opts ? f->opts : &no_opts;
    struct weft__address addr;
    struct weft__port *port = NULL;
    int fd = -1;
    int r = where(f, &addr);
    if (r < 0 && weft__race_is_name(f->address))
        return weft__race_new(f->address, NULL, 0, f->opts, (struct weft__race **)&f->weft__race);
    if (r == 0) r = weft__driver_here(opts->rt, false, &port);
    if (r == 0) r = weft__socket_open(&addr, &fd);
    if (r < 0) return r;
    r = set_out(fd, opts, &addr);
    if (r == 0 || r == -EINPROGRESS)
        r = weft__fdstream_new(port, fd, WEFT__FDSTREAM_TCP, &f->weft__stream);
    if (r < 0) weft__fd_close(fd);
    return r;
}

/* Is it decided? A connection has a peer; an error is taken out of the socket by whoever asks. */
static ssize_t tries(struct weft__fdslot *slot, void *arg)
{
    struct weft__address peer;
    uint64_t seen = weft__fdslot_look(slot);
    (void)arg;
    int r = weft__socket_error(slot->fd);
    if (r == 0) r = weft__socket_peer(slot->fd, &peer);
    if (r != -ENOTCONN) return r;
    weft__fdslot_clear(slot, seen, weft__ready_bits(WEFT__SIDE_WRITE));
    return -EAGAIN;
}

static const struct weft__op_kind connects = {
    .side = WEFT__SIDE_WRITE,
    .as = WEFT__USE_WRITER,
    .bits = WEFT__READY_WRITE | WEFT__READY_WRITE_END,
    .tries = tries,
};

static weft_poll races(struct weft_tcp_connect *f, weft_cx *cx)
{
    int ret;
    if (weft__race_poll(f->weft__race, cx, &f->weft__stream, &ret) == WEFT_PENDING)
        return WEFT_PENDING;
    f->weft__race = NULL;
    return ends(f, ret);
}

weft_poll weft_tcp_connect_poll(void *frame, weft_cx *cx)
{
    struct weft_tcp_connect *f = frame;
    ssize_t got = 0;
    if (!f->weft__stream && !f->weft__race) {
        if (cx->why) return weft__told_yields(cx) ? WEFT_PENDING : ends(f, weft_cx_cancelled(cx));
        if ((!f->address && !f->weft__to) || !f->into) return ends(f, -EINVAL);
        int r = begins(f);
        if (r < 0) return ends(f, r);
        f->weft__at = WEFT__LEAF_WAITS;
    }
    if (f->weft__race) return races(f, cx);
    struct weft__fdslot *slot = weft__fdstream_slot(f->weft__stream);
    weft_poll answer =
        weft__op_poll(slot, weft__op_of(&f->weft__io), &connects, NULL, NULL, NULL, cx, &got);
    return answer == WEFT_PENDING ? WEFT_PENDING : ends(f, (int)got);
}

int weft__tcp_connect(const char *address, weft_stream **into)
{
    struct weft_tcp_connect f = {.address = address, .into = into};
    int r = weft__run_from(weft_tcp_connect_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

/* ---- Unix ---- */

static struct weft_sleep *pause_of(struct weft_unix_connect *f)
{
    return WEFT__PAUSE_OF(f);
}

/* `fd` is the socket, + 1 in the frame, so that zero is none. */
static weft_poll unix_ends(struct weft_unix_connect *f, int ret)
{
    if (f->weft__fd > 0 && ret < 0) weft__fd_close(f->weft__fd - 1);
    f->weft__fd = 0;
    f->weft__at = 0;
    f->ret = ret;
    return WEFT_READY;
}

static weft_poll unix_connected(struct weft_unix_connect *f)
{
    struct weft__port *port = NULL;
    int r = weft__driver_here(f->opts ? f->opts->rt : NULL, false, &port);
    if (r == 0) r = weft__fdstream_new(port, f->weft__fd - 1, WEFT__FDSTREAM_UNIX, f->into);
    return unix_ends(f, r);
}

static int unix_opens(struct weft_unix_connect *f, const struct weft__address *addr)
{
    struct weft__port *port = NULL;
    int fd = -1;
    if (f->weft__fd > 0) return 0;
    int r = weft__driver_here(f->opts ? f->opts->rt : NULL, false, &port);
    if (r == 0) r = weft__socket_open(addr, &fd);
    if (r < 0) return r;
    f->weft__fd = fd + 1;
    return weft__sock_buffers(fd, f->opts ? f->opts : &no_opts);
}

/* The listener's queue is full. */
static void unix_pauses(struct weft_unix_connect *f)
{
    weft__pause_begin(pause_of(f), &f->weft__tries);
    f->weft__at = WEFT__LEAF_WAITS;
}

/* READY: decided. PENDING: a pause has begun. */
static weft_poll unix_tries(struct weft_unix_connect *f)
{
    struct weft__address addr;
    int r = weft__address_of_path(f->path, &addr);
    if (r == 0) r = unix_opens(f, &addr);
    if (r == 0) r = weft__socket_connect(f->weft__fd - 1, &addr);
    if (r == 0) return unix_connected(f);
    if (r != -EAGAIN) return unix_ends(f, r);
    unix_pauses(f);
    return WEFT_PENDING;
}

weft_poll weft_unix_connect_poll(void *frame, weft_cx *cx)
{
    struct weft_unix_connect *f = frame;
    if (!f->weft__at) {
        if (cx->why)
            return weft__told_yields(cx) ? WEFT_PENDING : unix_ends(f, weft_cx_cancelled(cx));
        if (!f->path || !f->into) return unix_ends(f, -EINVAL);
        if (!weft__leaf_may(cx)) return WEFT_PENDING;
        if (unix_tries(f) == WEFT_READY) return WEFT_READY;
    }
    for (;;) {
        if (weft_sleep_poll(pause_of(f), cx) == WEFT_PENDING) return WEFT_PENDING;
        if (pause_of(f)->ret < 0) return unix_ends(f, pause_of(f)->ret);
        if (unix_tries(f) == WEFT_READY) return WEFT_READY;
    }
}

int weft__unix_connect(const char *path, weft_stream **into)
{
    struct weft_unix_connect f = {.path = path, .into = into};
    int r = weft__run_from(weft_unix_connect_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

int weft_unix_pair(weft_stream **a, weft_stream **b)
{
    static const enum weft__fdstream_kind kinds[] = {WEFT__FDSTREAM_UNIX, WEFT__FDSTREAM_UNIX};
    weft_stream *ends_of[2] = {NULL};
    int fds[2] = {-1, -1};
    if (!a || !b) return -EINVAL;
    int r = weft__socket_pair(fds);
    if (r == 0) r = weft__fdstream_pair(fds, kinds, ends_of);
    if (r < 0) return r;
    *a = ends_of[0];
    *b = ends_of[1];
    return 0;
}
