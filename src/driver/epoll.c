/* SPDX-License-Identifier: MIT
 *
 * epoll - the backend that stands on readiness: each fd watched once, edge-triggered, for both directions.
 *
 * An fd costs two epoll_ctl in its life, one at each end. An edge is reported once, and the slot remembers it until a try finds
 * nothing more (slot.h). On byte streams a short read means drained, and a short write full: the try that would answer -EAGAIN is not
 * made (other descriptors promise nothing of the kind: a terminal gives line by line). Three cases in which it means something else are known by their signs: the peer has sent its end (the end comes behind the data,
 * and no edge does), urgent data (a read stops at its mark), a message with descriptors in it on a Unix socket (a read stops behind it).
 *
 * The port's event is watched edge-triggered too, and never drained: each signal is an edge of its own, and a read less for each
 * wake. But an edge goes to one waiter only. Who drives another's port and meets its event there has taken a wake that was meant for the
 * one who sleeps in it, and signals it anew; unless nobody does.
 *     EPOLLIN, EPOLLERR   READ             EPOLLOUT, EPOLLERR   WRITE            EPOLLPRI, EPOLLERR   URGENT
 *     EPOLLRDHUP          READ_END         EPOLLHUP             READ_END, WRITE_END
 * An error makes both sides try: the call they make says which it is. HUP is cleared by -EAGAIN like all else: a socket that is not
 * connected yet reports it, too.
 * Of descriptors that are neither socket nor pipe a short read says nothing: a terminal gives a line for each.
 * Threads: any.
 * Rejected: EPOLLEXCLUSIVE and a listener in every port (a connection is accepted once, by whoever waits for it); level-triggered (a
 * system call to be rid of what is not wanted now).
 */
#include "driver/driver.h"

#include "sys/epoll.h"
#include "sys/event.h"
#include "sys/fd.h"
#include "sys/futex.h"
#include "sys/pipe.h"
#include "sys/socket.h"

#define WATCHED (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET)

/* The token of the port's event: no slot has that number. */
#define EVENT_TOKEN UINT64_MAX

_Static_assert(sizeof(struct epoll_event) * WEFT__EVENTS_MAX <=
                   sizeof(((struct weft__events *)0)->room),
               "the events fit their room");

static int epoll_open(struct weft__port *port)
{
    int epoll;
    int event;
    int r = weft__epoll_open(&epoll);
    if (r < 0) return r;
    r = weft__event_open(&event);
    if (r < 0) goto out_epoll;
    r = weft__epoll_add(epoll, event, EPOLLIN | EPOLLET, EVENT_TOKEN);
    if (r < 0) goto out_event;
    port->kernel = epoll;
    port->event = event;
    return 0;

out_event:
    weft__fd_close(event);
out_epoll:
    weft__fd_close(epoll);
    return r;
}

static void epoll_close(struct weft__port *port)
{
    weft__fd_close(port->event);
    weft__fd_close(port->kernel);
    port->event = -1;
    port->kernel = -1;
}

static int epoll_add(struct weft__port *port, struct weft__fdslot *slot)
{
    return weft__epoll_add(port->kernel, slot->fd, WATCHED, weft__fdslot_token(slot));
}

/* It may be gone already: closed by somebody by its number. */
static void epoll_del(struct weft__port *port, struct weft__fdslot *slot)
{
    (void)weft__epoll_del(port->kernel, slot->fd);
}

static int epoll_wait_for(struct weft__port *port, struct weft__events *into, int64_t timeout_ns)
{
    struct epoll_event *events = (struct epoll_event *)(void *)into->room;
    int r = weft__epoll_wait(port->kernel, events, WEFT__EVENTS_MAX, timeout_ns);
    weft_assert(r >= 0 || r == -EINTR);
    into->count = r < 0 ? 0 : r;
    return into->count;
}

/* ---- delivering ---- */

static uint64_t ready_of(uint32_t events)
{
    uint64_t bits = 0;
    if (events & (EPOLLIN | EPOLLERR)) bits |= WEFT__READY_READ;
    if (events & (EPOLLOUT | EPOLLERR)) bits |= WEFT__READY_WRITE;
    if (events & (EPOLLPRI | EPOLLERR)) bits |= WEFT__READY_URGENT;
    if (events & EPOLLRDHUP) bits |= WEFT__READY_READ_END;
    if (events & EPOLLHUP) bits |= WEFT__READY_READ_END | WEFT__READY_WRITE_END;
    return bits;
}

/* It was for the one who sleeps there. If he does not, he has its token, and finds that before he sleeps again: given back, the event would be found again
 * by whoever looks after his port, and again. */
static void pass_on(struct weft__port *port)
{
    /* relaxed: he wrote it before whoever signalled saw that he sleeps, and the kernel keeps that order */
    if (load_relaxed(&port->slept_in)) (void)weft__event_signal(port->event);
}

static uint32_t epoll_deliver(struct weft__port *port, const struct weft__events *events, bool own)
{
    const struct epoll_event *event = (const struct epoll_event *)(const void *)events->room;
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    for (int i = 0; i < events->count; i++) {
        uint64_t token = event[i].data.u64;
        if (token == EVENT_TOKEN) {
            if (!own) pass_on(port);
            continue;
        }
        struct weft__fdslot *slot = weft__port_slot(port, (uint32_t)(token >> 32));
        weft_assert(slot); /* we made the token */
        weft__fdslot_ready(slot, (uint32_t)token, ready_of(event[i].events), &chain);
    }
    uint32_t woken = chain.count;
    weft__wake_chain_push(&chain, &weft__sched);
    return woken;
}

static bool epoll_has(struct weft__port *port)
{
    if (!load_acquire(&port->open)) return false; /* [port-open] with open_port */
    return weft__fd_ready(port->kernel, WEFT__FD_IN) > 0;
}

/* ---- taking ---- */

static ssize_t try_it(int fd, const struct weft__take *what, bool *cut)
{
    int got;
    switch (what->kind) {
    case WEFT__TAKE_RECV:
    case WEFT__TAKE_PEEK:
        return weft__socket_recv(fd, what->iov, what->count, what->kind == WEFT__TAKE_PEEK);
    case WEFT__TAKE_RECV_UNIX:
        return weft__socket_recv_unix(fd, what->iov, what->count, cut);
    case WEFT__TAKE_SEND:
        return weft__socket_send(fd, what->iov, what->count);
    case WEFT__TAKE_READ:
    case WEFT__TAKE_READ_ANY:
        return weft__pipe_read(fd, what->iov, what->count);
    case WEFT__TAKE_WRITE:
    case WEFT__TAKE_WRITE_ANY:
        return weft__pipe_write(fd, what->iov, what->count);
    case WEFT__TAKE_ACCEPT:
        break;
    }
    int r = weft__socket_accept(fd, what->from, &got);
    return r < 0 ? r : got;
}

/* Of what moved bytes, and fewer than it could have: is there nothing more? */
static bool means_drained(const struct weft__take *what, uint64_t seen, ssize_t moved, bool cut)
{
    if (what->kind == WEFT__TAKE_ACCEPT || what->kind == WEFT__TAKE_PEEK) return false;
    if (what->kind == WEFT__TAKE_READ_ANY || what->kind == WEFT__TAKE_WRITE_ANY) return false;
    if (moved <= 0 || (size_t)moved == what->bytes || cut) return false;
    return !(seen & (WEFT__READY_READ_END | WEFT__READY_URGENT));
}

static bool writes(const struct weft__take *what)
{
    return what->kind == WEFT__TAKE_SEND || what->kind == WEFT__TAKE_WRITE ||
           what->kind == WEFT__TAKE_WRITE_ANY;
}

static ssize_t epoll_take(struct weft__fdslot *slot, const struct weft__take *what)
{
    bool cut = false;
    uint64_t seen = weft__fdslot_look(slot);
    ssize_t r = try_it(slot->fd, what, &cut);
    if (r == -EAGAIN) {
        weft__fdslot_clear(slot, seen,
                           weft__ready_bits(writes(what) ? WEFT__SIDE_WRITE : WEFT__SIDE_READ));
    } else if (means_drained(what, seen, r, cut)) {
        weft__fdslot_clear(slot, seen, writes(what) ? WEFT__READY_WRITE : WEFT__READY_READ);
    }
    return r;
}

const struct weft__driver_ops weft__driver_epoll = {
    .name = "epoll",
    .open = epoll_open,
    .close = epoll_close,
    .add = epoll_add,
    .del = epoll_del,
    .wait = epoll_wait_for,
    .deliver = epoll_deliver,
    .take = epoll_take,
    .has = epoll_has,
};
