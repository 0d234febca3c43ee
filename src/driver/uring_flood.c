/* SPDX-License-Identifier: MIT
 *
 * uring_flood - while more answers come than are looked at soon, streams are watched by an epoll; the idea is in uring.h.
 *
 * A request that is in the kernel looks at its socket there as soon as something has come: at the end of whatever system call its thread makes next. Of thousands that are ready each is in no
 * cache any more when its task runs, and comes into one again to be read and to be sent to. An epoll notes that there is something, looks when it is asked, and is asked for a few: who is told has its
 * socket at hand. Measured, 8,000 connections, times the bare ring: polled in the ring 1.07, as fibers 1.09; by this 1.035 and 1.05.
 *     NONE -> EPOLL       [watch]     by who is about to wait: at once, since the kernel's answers go to nobody in particular
 *     EPOLL -> EPOLL      [look]      edges, of both sides, as on the other backend: nobody arms
 *     EPOLL -> NONE       [unwatch]   by who looks behind the flood, with the next that is told of it; by who closes. At once, too: an edge that is on its way finds its
 *                                     generation gone, or makes a side ready that need not be
 * DIRECT  From watch to unwatch the slot says so, and who reads or writes goes by calls, by the shorter steps of the other backend (io/stream.c). What the ring has for it is taken before, and no send of it is under way: so no
 * byte is overtaken, and none is sent twice. Who has seen `direct` a moment too long waits for an event that would not come: so unwatch comes first, and then both sides are made ready.
 * WHO LOOKS  Whoever comes by, in a flood. Behind one, and while its worker sleeps in the ring, a request there watches the epoll: it answers once, and then whoever comes by looks until it is asked for anew. The
 * port's worker alone asks; has another taken its answer, the worker is told by the port's event.
 * A current-thread runtime has no epoll here, nor has a port that could not open one: streams are polled in the ring, as is one that the epoll does not take.
 */
#include "driver/take.h"
#include "driver/uring.h"
#include "sys/epoll.h"
#include "sys/fd.h"
#include "task/warm.h"

void weft__uring_flood_open(struct weft__port *port, struct weft__uring *u)
{
    u->epoll = -1;
    if (port->driver->turned_by_others || weft__epoll_open(&u->epoll) < 0) u->epoll = -1;
    store_relaxed(&u->no_watch, u->epoll < 0); /* relaxed: not shared yet */
}

void weft__uring_flood_close(struct weft__uring *u)
{
    if (u->epoll >= 0) weft__fd_close(u->epoll);
    u->epoll = -1;
    store_relaxed(&u->no_watch, true); /* relaxed, both: hints */
    store_relaxed(&u->in_epoll, 0);
}

/* ---- slots ---- */

static void count_watched(struct weft__uring *u, uint32_t more)
{
    store_relaxed(&u->in_epoll, load_relaxed(&u->in_epoll) + more); /* relaxed, both: under the lock; elsewhere a hint */
}

/* Nothing is left to take from the ring, and none of its sends is under way: from here on all is calls. */
static bool may_go_by_calls(const struct weft__uring_slot *us)
{
    return !weft__uring_is_sending(us) && us->count == 0 && us->error == 0;
}

bool weft__uring_watch(struct weft__uring *u, struct weft__uring_slot *us)
{
    const uint32_t events = EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP | EPOLLET;
    if (!may_go_by_calls(us)) return false;
    if (u->epoll < 0 || weft__epoll_add(u->epoll, us->slot->fd, events, us->token) < 0) {
        store_relaxed(&u->no_watch, true); /* relaxed: a hint. The next flood asks again */
        return false;
    }
    weft__uring_stop(u, us, WEFT__URING_POLL_READ | WEFT__URING_POLL_WRITE); /* they would report the same again */
    weft__uring_set_asked(us, weft__uring_asked(us) | WEFT__URING_EPOLL);
    store_relaxed(&us->slot->direct, true); /* relaxed: see there */
    count_watched(u, 1);
    return true;
}

void weft__uring_unwatch(struct weft__uring *u, struct weft__uring_slot *us)
{
    if (!(weft__uring_asked(us) & WEFT__URING_EPOLL)) return;
    weft__uring_set_asked(us, weft__uring_asked(us) & ~(uint32_t)WEFT__URING_EPOLL);
    store_relaxed(&us->slot->direct, false); /* relaxed: see there */
    if (u->epoll < 0) return; /* closed, with all that was in it */
    (void)weft__epoll_del(u->epoll, us->slot->fd); /* it may be gone: closed by its number */
    count_watched(u, UINT32_MAX);
}

/* ---- the flood ---- */

/* It ends when there are a quarter of what it began with, and the epoll has brought few, again and again: who is watched has to ask anew for what is fetched, and would ask for the epoll again in
 * the next one. */
static bool goes_on(struct weft__uring *u)
{
    bool much = weft__ring_left(&u->ring) > WEFT__URING_FLOOD / 4;
    u->calm_looks = much ? 0 : u->calm_looks + 1;
    return u->calm_looks < WEFT__URING_FLOOD_LOOKS;
}

void weft__uring_note_flood(struct weft__uring *u)
{
    bool before = load_relaxed(&u->flood); /* relaxed, both: a hint */
    bool now = before ? goes_on(u) : weft__ring_left(&u->ring) > WEFT__URING_FLOOD;
    if (now == before) return;
    u->calm_looks = 0;
    store_relaxed(&u->no_watch, u->epoll < 0); /* relaxed: a hint */
    store_relaxed(&u->flood, now);
}

static struct weft__fdslot *slot_told(struct weft__port *port, const struct epoll_event *event)
{
    return weft__port_slot(port, (uint32_t)(event->data.u64 >> 32));
}

/* Behind a flood its streams go back, each with what it is told next. Both sides are tried: who has begun to wait since relies on the epoll. What the epoll says of one that is closed, whose file somebody else
 * holds still and whose number was another's by then, is of nobody. */
static uint64_t goes_back(struct weft__port *port, struct weft__uring *u, const struct epoll_event *event)
{
    struct weft__uring_slot *us = weft__uring_more_of(slot_told(port, event));
    if (load_relaxed(&u->flood) || us->token != event->data.u64) return 0; /* relaxed: under the lock */
    weft__uring_unwatch(u, us);
    return WEFT__READY_READ | WEFT__READY_WRITE;
}

void weft__uring_look(struct weft__port *port, struct weft__uring *u, struct weft__events *into, uint32_t most)
{
    struct epoll_event events[WEFT__EPOLL_EVENTS];
    uint32_t room = most - (uint32_t)into->count;
    if (room > WEFT__EPOLL_EVENTS) room = WEFT__EPOLL_EVENTS;
    if (room == 0 || !weft__uring_must_look(u)) return;
    int count = weft__epoll_wait(u->epoll, events, (int)room, 0);
    weft_assert(count >= 0 || count == -EINTR);
    if (count == (int)room) {
        u->calm_looks = 0;
        into->full = true;
    }
    for (int i = 0; i < count; i++)
        weft__warm_line(slot_told(port, &events[i]), 1);
    for (int i = 0; i < count; i++)
        weft__uring_put(into, events[i].data.u64, weft__ready_of(events[i].events) | goes_back(port, u, &events[i]));
}
