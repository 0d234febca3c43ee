/* SPDX-License-Identifier: MIT
 *
 * accept - the next connection of a listener.
 *
 * WHAT GOES WRONG BESIDE IT  A connection may end while it waits in the kernel's queue, and accept(2) then reports its error: the next one is
 * taken instead. A process without descriptors (EMFILE, ENFILE, ENOMEM, ENOBUFS) takes nothing, and the queue stays as it is: readiness would say
 * at once that there is something, and a loop would burn its core until somebody closes. So the accept sleeps, from 5 ms up to 100 ms, and
 * tries again; a server is neither ended nor spun by it.
 *
 * Connections are spread over the shards, whichever worker accepts: each is then woken where its events are read.
 * A waiting leaf: given up, it has taken no connection.
 * Rejected: a spare descriptor that is closed to accept and close one connection (libuv's: other threads take the descriptor first, and the
 * client that could have waited is turned away).
 */
#include "driver/op.h"
#include "io/fdstream.h"
#include "net/listen.h"
#include "sync/leaf.h"
#include "sys/fd.h"

#include <weft/time.h>

#include <errno.h>
#include <stdio.h>

#define PAUSE_MIN_US 5000
#define PAUSE_MAX_US 100000

enum { PAUSES = WEFT__LEAF_WAITS + 2 }; /* weft__at, odd as it must be: it sleeps */

/* The frame's room for a sleep. */
struct pausing {
    struct weft_sleep sleep;
    int32_t next_us; /* how long the last one was; 0: there was none */
    bool held;       /* the accept has entered the listener's slot, for all of its life */
};

_Static_assert(sizeof(struct pausing) <= sizeof(((struct weft_accept *)0)->weft__pause), "it fits");

static struct pausing *pausing_of(struct weft_accept *f)
{
    return (struct pausing *)(void *)f->weft__pause;
}

/* ---- one try ---- */

static bool passes(ssize_t r)
{
    switch (-r) { /* accept(2): "treat them like EAGAIN by retrying" */
    case ECONNABORTED:
    case ENETDOWN:
    case EPROTO:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
    case ETIMEDOUT:
    case EPERM: /* a firewall's word */
        return true;
    default:
        return false;
    }
}

static bool starves(ssize_t r)
{
    return r == -EMFILE || r == -ENFILE || r == -ENOMEM || r == -ENOBUFS;
}

/* A connection that nobody could wait for any more is left where it is: taken, its peer would find it closed. */
static ssize_t tries(struct weft__fdslot *slot, void *arg)
{
    struct weft__take take = {.kind = WEFT__TAKE_ACCEPT};
    (void)arg;
    if (weft__fdslot_look(slot) & WEFT__READY_DOWN) return -ESHUTDOWN;
    return weft__driver_try(slot, &take);
}

static const struct weft__op_kind accepts = {
    .side = WEFT__SIDE_READ,
    .as = WEFT__USE_SHARED,
    .bits = WEFT__READY_READ | WEFT__READY_READ_END,
    .tries = tries,
};

/* ---- what comes of it ---- */

static void tell_starved(struct weft__listening *l, ssize_t r)
{
    if (exchange_relaxed(&l->starved_told, true))
        return; /* relaxed: one line, whose does not matter */
    fprintf(stderr, "weft: accept: %s; connections wait until there are\n",
            r == -EMFILE || r == -ENFILE ? "no descriptors are left" : "no memory is left");
}

/* In the port whose turn it is; or in the listener's own, if that one cannot be opened now. */
static int add_spread(struct weft__fdslot *listener, int fd, enum weft__fdstream_kind kind,
                      weft_stream **into)
{
    struct weft__driver *driver = listener->port->driver;
    uint32_t next = fetch_add_relaxed(&driver->next_port, 1); /* relaxed: any will do */
    struct weft__port *port = &driver->ports[next % driver->port_count];
    int r = weft__fdstream_new(port, fd, kind, into);
    bool elsewhere = r < 0 && port != listener->port;
    return elsewhere ? weft__fdstream_new(listener->port, fd, kind, into) : r;
}

static int welcome(struct weft__fdslot *listener, int fd, weft_stream **into)
{
    struct weft__sock_wishes wishes = weft__listening_of(listener)->wishes;
    weft__sock_prepare(fd, &wishes);
    int r = add_spread(listener, fd, wishes.tcp ? WEFT__FDSTREAM_TCP : WEFT__FDSTREAM_UNIX, into);
    if (r < 0) weft__fd_close(fd);
    return r;
}

/* ---- the frame ---- */

/* Between a try and the next pause it is in no list: but a close that comes then must leave it the slot. */
static int holds(struct weft_accept *f)
{
    struct weft__fdslot *slot = weft__listener_slot(f->listener);
    struct pausing *p = pausing_of(f);
    if (p->held) return 0;
    int r = weft__driver_is_lost(slot) ? -ECHILD : weft__fdslot_enter(slot, WEFT__USE_SHARED);
    p->held = r == 0;
    return r;
}

static void lets_go(struct weft_accept *f)
{
    struct pausing *p = pausing_of(f);
    if (p->held) weft__driver_leave(weft__listener_slot(f->listener), WEFT__USE_SHARED);
    p->held = false;
    f->weft__at = 0;
}

static weft_poll ends(struct weft_accept *f, int ret)
{
    lets_go(f);
    f->ret = ret;
    return WEFT_READY;
}

static weft_poll pauses(struct weft_accept *f, weft_cx *cx)
{
    struct pausing *p = pausing_of(f);
    if (weft_sleep_poll(&p->sleep, cx) == WEFT_PENDING) return WEFT_PENDING;
    int r = p->sleep.ret;
    p->sleep = (struct weft_sleep){.ns = 0};
    if (r < 0) return ends(f, r);
    f->weft__at = WEFT__LEAF_WAITS; /* to try again */
    return WEFT_READY;
}

/* Behind a try that failed for want of something. */
static void begin_pause(struct weft_accept *f, ssize_t why)
{
    struct pausing *p = pausing_of(f);
    tell_starved(weft__listening_of(weft__listener_slot(f->listener)), why);
    p->next_us = p->next_us == 0 ? PAUSE_MIN_US : p->next_us * 2;
    if (p->next_us > PAUSE_MAX_US) p->next_us = PAUSE_MAX_US;
    p->sleep = (struct weft_sleep){.ns = p->next_us * INT64_C(1000)};
    f->weft__at = PAUSES;
}

/* PENDING, READY; or PENDING with a pause begun. */
static weft_poll accepts_one(struct weft_accept *f, weft_cx *cx)
{
    struct weft__fdslot *slot = weft__listener_slot(f->listener);
    for (;;) {
        ssize_t got = 0;
        weft_poll answer =
            weft__op_poll(slot, weft__op_of(&f->weft__io), &accepts, NULL, NULL, NULL, cx, &got);
        f->weft__at = answer == WEFT_PENDING ? WEFT__LEAF_WAITS : 0;
        if (answer == WEFT_PENDING) return WEFT_PENDING;
        if (got >= 0) return ends(f, welcome(slot, (int)got, f->into));
        if (starves(got)) {
            begin_pause(f, got);
            return WEFT_PENDING;
        }
        if (!passes(got)) return ends(f, (int)got);
    }
}

/* Tries and pauses, in turns. */
static weft_poll goes_on(struct weft_accept *f, weft_cx *cx)
{
    for (;;) {
        if (f->weft__at == PAUSES) {
            weft_poll answer = pauses(f, cx);
            if (answer == WEFT_PENDING || f->weft__at == 0) return answer;
        }
        weft_poll answer = accepts_one(f, cx);
        if (answer == WEFT_READY || f->weft__at != PAUSES || cx->probe) return answer;
    }
}

weft_poll weft__accept_any_poll(struct weft_accept *f, weft_cx *cx)
{
    if (!f->listener || !f->into) return ends(f, -EINVAL);
    int r = holds(f);
    if (r < 0) return ends(f, r);
    weft_poll answer = goes_on(f, cx);
    if (cx->probe && answer == WEFT_PENDING) lets_go(f); /* a look leaves nothing behind */
    return answer;
}

weft_poll weft_accept_poll(void *frame, weft_cx *cx)
{
    struct weft_accept *f = frame;
    bool packets = f->listener && weft__listening_of(weft__listener_slot(f->listener))->packets;
    if (packets && !f->weft__at) return ends(f, -EOPNOTSUPP);
    return weft__accept_any_poll(f, cx);
}
