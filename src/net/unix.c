/* SPDX-License-Identifier: MIT
 *
 * unix - datagrams and packets of Unix sockets: weft/unix.h. A weft_dgram is its slot; the operations are those of net/msg.h.
 *
 * A FULL QUEUE  The kernel wakes who sends to its connected peer when that has read; it does not wake who sends to anybody else, nor
 * who connects: those are tried again (pause.h). A send_to that pauses has entered the slot for all of its life, so that a close that comes
 * meanwhile leaves it the slot.
 */
#include <weft/unix.h>

#include "io/fdstream.h"
#include "net/listen.h"
#include "net/msg.h"
#include "net/pause.h"
#include "sys/fd.h"
#include "sys/packet.h"
#include "sys/socket.h"
#include "task/call.h"

static struct weft__fdslot *slot_of(const weft_dgram *dgram)
{
    return weft__msg_slot_of(dgram);
}

/* ---- making ---- */

int weft_addr_of_path(const char *path, weft_addr *into)
{
    if (!path || !into) return -EINVAL;
    return weft__address_of_path(path, weft__addr_inside(into));
}

/* Takes fd. */
static int new_dgram(int fd, weft_dgram **into)
{
    struct weft__fdslot *slot;
    int r = weft__msg_slot(NULL, fd, &slot);
    if (r == 0) *into = (weft_dgram *)(void *)slot;
    return r;
}

int weft_dgram_bind(const char *path, weft_dgram **into)
{
    struct weft__address addr;
    int fd = -1;
    if (!into) return -EINVAL;
    int r = path ? weft__address_of_path(path, &addr) : 0;
    if (r == 0) r = weft__packet_open_unix(WEFT__PACKET_DGRAM, &fd);
    if (r < 0) return r;
    r = path ? weft__socket_bind(fd, &addr) : 0;
    if (r == 0) return new_dgram(fd, into);
    weft__fd_close(fd);
    return r;
}

int weft_dgram_connect(weft_dgram *dgram, const char *path)
{
    struct weft__address addr;
    if (!dgram) return -EINVAL;
    if (!path) return weft__packet_disconnect(slot_of(dgram)->fd);
    int r = weft__address_of_path(path, &addr);
    return r < 0 ? r : weft__socket_connect(slot_of(dgram)->fd, &addr);
}

static int new_pair(enum weft__packet_kind kind, weft_dgram **a, weft_dgram **b)
{
    weft_dgram *first = NULL;
    int fds[2] = {-1, -1};
    if (!a || !b) return -EINVAL;
    int r = weft__packet_pair(kind, fds);
    if (r < 0) return r;
    r = new_dgram(fds[0], &first);
    if (r < 0) {
        weft__fd_close(fds[1]);
        return r;
    }
    r = new_dgram(fds[1], b);
    if (r < 0) {
        weft__dgram_close(first, NULL);
        return r;
    }
    *a = first;
    return 0;
}

int weft_dgram_pair(weft_dgram **a, weft_dgram **b)
{
    return new_pair(WEFT__PACKET_DGRAM, a, b);
}

int weft_packet_pair(weft_dgram **a, weft_dgram **b)
{
    return new_pair(WEFT__PACKET_SEQ, a, b);
}

int weft_packet_listen(const char *path, weft_listener **into)
{
    struct weft__address addr;
    struct weft__fdslot *slot;
    int fd = -1;
    if (!path || !into) return -EINVAL;
    int r = weft__address_of_path(path, &addr);
    if (r == 0) r = weft__packet_open(&addr, WEFT__PACKET_SEQ, &fd);
    if (r < 0) return r;
    r = weft__socket_bind(fd, &addr);
    if (r == 0) r = weft__socket_listen(fd, INT_MAX); /* the kernel cuts it */
    if (r < 0) {
        weft__fd_close(fd);
        return r;
    }
    r = weft__msg_slot(NULL, fd, &slot);
    if (r < 0) return r;
    weft__listening_of(slot)->packets = true;
    *into = (weft_listener *)(void *)slot;
    return 0;
}

void weft__dgram_close(weft_dgram *dgram, const char *caller)
{
    weft__driver_closes("a datagram socket", caller);
    if (dgram) weft__driver_close(slot_of(dgram));
}

int weft_dgram_local(const weft_dgram *dgram, weft_addr *into)
{
    if (!dgram || !into) return -EINVAL;
    return weft__socket_local(slot_of(dgram)->fd, weft__addr_inside(into));
}

int weft_dgram_fd(const weft_dgram *dgram)
{
    return dgram ? slot_of(dgram)->fd : -EINVAL;
}

/* ---- accepting ---- */

/* A connection is accepted as any other; what was made a stream is its slot, and that is what a weft_dgram is. */
weft_poll weft_packet_accept_poll(void *frame, weft_cx *cx)
{
    struct weft_packet_accept *f = frame;
    if (!f->weft__at) {
        bool streams =
            f->listener && !weft__listening_of(weft__listener_slot(f->listener))->packets;
        f->ret = !f->listener || !f->into ? -EINVAL : -EOPNOTSUPP;
        if (!f->into || !f->listener || streams) return WEFT_READY;
        f->weft__accept = (struct weft_accept){.listener = f->listener, .into = &f->weft__stream};
    }
    weft_poll answer = weft__accept_any_poll(&f->weft__accept, cx);
    bool waits = answer == WEFT_PENDING && !cx->probe;
    f->weft__at = waits ? WEFT__LEAF_WAITS : 0;
    if (answer == WEFT_PENDING) return WEFT_PENDING;
    f->ret = f->weft__accept.ret;
    if (f->ret == 0) *f->into = (weft_dgram *)(void *)weft__fdstream_slot(f->weft__stream);
    return WEFT_READY;
}

int weft__packet_accept(weft_listener *listener, weft_dgram **into)
{
    return WEFT__RUN_FRAME(weft_packet_accept, .listener = listener, .into = into);
}

/* ---- connecting ---- */

/* `weft__fd` is the socket, + 1, so that zero is none. */
static weft_poll connect_ends(struct weft_packet_connect *f, int ret)
{
    int fd = f->weft__fd - 1;
    f->weft__fd = 0;
    f->weft__at = 0;
    if (ret == 0) {
        ret = new_dgram(fd, f->into);
    } else {
        weft__fd_close(fd);
    }
    f->ret = ret;
    return WEFT_READY;
}

static int connect_opens(struct weft_packet_connect *f)
{
    struct weft__port *port;
    int fd = -1;
    if (f->weft__fd > 0) return 0;
    int r = weft__driver_here(NULL, false, &port);
    if (r == 0) r = weft__packet_open_unix(WEFT__PACKET_SEQ, &fd);
    if (r == 0) f->weft__fd = fd + 1;
    return r;
}

/* READY: decided. PENDING: a pause has begun. */
static weft_poll connect_tries(struct weft_packet_connect *f)
{
    struct weft__address addr;
    int r = weft__address_of_path(f->path, &addr);
    if (r == 0) r = connect_opens(f);
    if (r == 0) r = weft__socket_connect(f->weft__fd - 1, &addr);
    if (r != -EAGAIN) return connect_ends(f, r);
    weft__pause_begin(WEFT__PAUSE_OF(f), &f->weft__tries);
    f->weft__at = WEFT__LEAF_WAITS;
    return WEFT_PENDING;
}

weft_poll weft_packet_connect_poll(void *frame, weft_cx *cx)
{
    struct weft_packet_connect *f = frame;
    if (!f->weft__at) {
        if (cx->why)
            return weft__told_yields(cx) ? WEFT_PENDING : connect_ends(f, weft_cx_cancelled(cx));
        if (!f->path || !f->into) return connect_ends(f, -EINVAL);
        if (!weft__leaf_may(cx)) return WEFT_PENDING;
        if (connect_tries(f) == WEFT_READY) return WEFT_READY;
    }
    for (;;) {
        struct weft_sleep *pause = WEFT__PAUSE_OF(f);
        if (weft_sleep_poll(pause, cx) == WEFT_PENDING) return WEFT_PENDING;
        if (pause->ret < 0) return connect_ends(f, pause->ret);
        if (connect_tries(f) == WEFT_READY) return WEFT_READY;
    }
}

int weft__packet_connect(const char *path, weft_dgram **into)
{
    return WEFT__RUN_FRAME(weft_packet_connect, .path = path, .into = into);
}

/* ---- messages ---- */

WEFT__MSG_OPERATION(weft_dgram_send, WRITE, SHARED, slot_of(f->dgram),
                    weft__msg_if(f->buf || !f->len), weft__packet_send(fd, f->buf, f->len, NULL))

WEFT__MSG_OPERATION(weft_dgram_recv, READ, SHARED, slot_of(f->dgram),
                    weft__msg_if(f->buf || !f->len), weft__packet_recv(fd, f->buf, f->len, NULL))

WEFT__MSG_OPERATION(weft_dgram_recv_from, READ, SHARED, slot_of(f->dgram),
                    weft__msg_if(f->from && (f->buf || !f->len)),
                    weft__packet_recv(fd, f->buf, f->len, weft__addr_inside(f->from)))

ssize_t weft__dgram_send(weft_dgram *dgram, const void *buf, size_t len)
{
    return WEFT__RUN_FRAME(weft_dgram_send, .dgram = dgram, .buf = buf, .len = len);
}

ssize_t weft__dgram_recv(weft_dgram *dgram, void *buf, size_t len)
{
    return WEFT__RUN_FRAME(weft_dgram_recv, .dgram = dgram, .buf = buf, .len = len);
}

ssize_t weft__dgram_recv_from(weft_dgram *dgram, void *buf, size_t len, weft_addr *from)
{
    return WEFT__RUN_FRAME(weft_dgram_recv_from, .dgram = dgram, .buf = buf, .len = len,
                           .from = from);
}

/* ---- to anybody ---- */

static weft_poll send_to_answers(struct weft_dgram_send_to *f, ssize_t ret)
{
    f->ret = ret;
    return WEFT_READY;
}

/* It has entered. */
static weft_poll send_to_ends(struct weft_dgram_send_to *f, ssize_t ret)
{
    f->weft__at = 0;
    f->weft__tries = 0;
    weft__driver_leave(slot_of(f->dgram), WEFT__USE_SHARED);
    return send_to_answers(f, ret);
}

/* READY: decided. PENDING: a pause has begun. */
static weft_poll send_to_tries(struct weft_dgram_send_to *f)
{
    struct weft__fdslot *slot = slot_of(f->dgram);
    uint64_t word = weft__fdslot_look(slot);
    if (weft__driver_is_lost(slot)) return send_to_ends(f, -ECHILD); /* somebody forked meanwhile */
    if (word & WEFT__READY_CLOSED) return send_to_ends(f, -EBADF);
    ssize_t r = weft__packet_send(slot->fd, f->buf, f->len, weft__addr_within(f->to));
    if (r != -EAGAIN) return send_to_ends(f, r);
    if (word & WEFT__READY_DOWN) return send_to_ends(f, -ESHUTDOWN);
    weft__pause_begin(WEFT__PAUSE_OF(f), &f->weft__tries);
    return WEFT_PENDING;
}

static weft_poll send_to_begins(struct weft_dgram_send_to *f, weft_cx *cx)
{
    bool sound = f->dgram && f->to && f->to->bytes > 0 && (f->buf || !f->len);
    if (cx->why)
        return weft__told_yields(cx) ? WEFT_PENDING : send_to_answers(f, weft_cx_cancelled(cx));
    if (!sound) return send_to_answers(f, -EINVAL);
    struct weft__fdslot *slot = slot_of(f->dgram);
    int r = weft__driver_is_lost(slot) ? -ECHILD : weft__fdslot_enter(slot, WEFT__USE_SHARED);
    if (r < 0) return send_to_answers(f, r);
    f->weft__at = WEFT__LEAF_WAITS;
    if (weft__leaf_may(cx)) return send_to_tries(f);
    *WEFT__PAUSE_OF(f) =
        (struct weft_sleep){.ns = 0}; /* entered: others run now, and may close it */
    return WEFT_PENDING;
}

weft_poll weft_dgram_send_to_poll(void *frame, weft_cx *cx)
{
    struct weft_dgram_send_to *f = frame;
    if (!f->weft__at) {
        weft_poll answer = send_to_begins(f, cx);
        if (answer == WEFT_READY || !f->weft__at) return answer;
    }
    for (;;) {
        struct weft_sleep *pause = WEFT__PAUSE_OF(f);
        if (weft_sleep_poll(pause, cx) == WEFT_PENDING) return WEFT_PENDING;
        if (pause->ret < 0) return send_to_ends(f, pause->ret);
        if (send_to_tries(f) == WEFT_READY) return WEFT_READY;
    }
}

ssize_t weft__dgram_send_to(weft_dgram *dgram, const void *buf, size_t len, const weft_addr *to)
{
    return WEFT__RUN_FRAME(weft_dgram_send_to, .dgram = dgram, .buf = buf, .len = len, .to = to);
}
