/* SPDX-License-Identifier: MIT
 *
 * epoll - the backend that stands on readiness: each fd watched once, edge-triggered, for both directions.
 *
 * An fd costs two epoll_ctl in its life, one at each end. An edge is reported once, and the slot remembers it until a try finds
 * nothing more (slot.h, take.h).
 *
 * The port's event is watched edge-triggered too, and never drained: each signal is an edge of its own, and a read less for each
 * wake. But an edge goes to one waiter only. Who drives another's port and meets its event there has taken a wake that was meant for the
 * one who sleeps in it, and signals it anew; unless nobody does.
 * Threads: any.
 * Rejected: EPOLLEXCLUSIVE and a listener in every port (a connection is accepted once, by whoever waits for it); level-triggered (a
 * system call to be rid of what is not wanted now).
 */
#include "driver/driver.h"
#include "driver/news.h"
#include "driver/take.h"

#include "sys/epoll.h"
#include "sys/event.h"
#include "sys/fd.h"
#include "sys/futex.h"

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

static int epoll_wait_for(struct weft__port *port, struct weft__events *into, uint32_t most,
                          int64_t timeout_ns)
{
    struct epoll_event *events = (struct epoll_event *)(void *)into->room;
    if (most > WEFT__EPOLL_EVENTS) most = WEFT__EPOLL_EVENTS;
    int r = weft__epoll_wait(port->kernel, events, (int)most, timeout_ns);
    weft_assert(r >= 0 || r == -EINTR);
    into->count = r < 0 ? 0 : r;
    into->full = r == (int)most;
    return into->count;
}

/* ---- delivering ---- */

static uint32_t epoll_deliver(struct weft__port *port, const struct weft__events *events, bool own)
{
    const struct epoll_event *event = (const struct epoll_event *)(const void *)events->room;
    struct weft__news news;
    weft__news_begin(&news, port);
    for (int i = 0; i < events->count; i++) {
        uint64_t token = event[i].data.u64;
        if (token != EVENT_TOKEN)
            weft__news_add(&news, token, weft__ready_of(event[i].events));
        else if (!own)
            weft__port_pass_on(port);
    }
    return weft__news_end(&news);
}

static bool epoll_has(struct weft__port *port)
{
    if (!load_acquire(&port->open)) return false; /* [port-open] with open_port */
    return weft__fd_ready(port->kernel, WEFT__FD_IN) > 0;
}

const struct weft__driver_ops weft__driver_epoll = {
    .name = "epoll",
    .open = epoll_open,
    .close = epoll_close,
    .add = epoll_add,
    .del = epoll_del,
    .wait = epoll_wait_for,
    .deliver = epoll_deliver,
    .take = weft__take_direct,
    .has = epoll_has,
};
