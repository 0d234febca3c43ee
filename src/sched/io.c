/* SPDX-License-Identifier: MIT
 *
 * io - turning ports and sleeping in them; the idea is in io.h.
 */
#include "sched/io.h"

#include "base/err.h"
#include "sched/sched.h"
#include "sys/clock.h"
#include "sys/fd.h"

#include <errno.h>
#include <stdio.h>

/* ---- the driver of a runtime ---- */

/* A port has its first fd, or is behind, and its worker may sleep, elsewhere or there. If it is this thread, it does not, and sees to it before it does. */
static void stir(struct weft__driver *driver, uint32_t port)
{
    struct weft_rt *rt = driver->rt;
    struct weft__worker *w = &rt->workers[port];
    if (weft__here()->worker == w) return;
    weft__unpark(&w->park);
    if (rt->current_thread) weft__rt_signal(rt);
}

/* A clock that stands is held by fds: it may be moved now. */
static void calm(struct weft__driver *driver)
{
    struct weft_rt *rt = driver->rt;
    weft__clock_nudge(rt);
    if (rt->current_thread && weft__clock_stands(&rt->clock)) weft__rt_signal(rt);
}

/* A worker's thread comes back to its port before it sleeps; who turns a current-thread runtime may not come back at all. */
static enum weft__home home(struct weft__driver *driver, uint32_t port)
{
    const struct weft_rt *rt = driver->rt;
    if (rt->current_thread) return WEFT__HOME_NOBODY;
    const struct weft__worker *w = &rt->workers[port];
    if (weft__here()->worker != w) return WEFT__HOME_ANOTHER;
    return w->gait.slow ? WEFT__HOME_SELF : WEFT__HOME_SOON;
}

static int driver_by(struct weft_rt *rt, const struct weft__driver_ops *ops)
{
    int r = weft__driver_new(ops, rt->worker_count, &rt->driver);
    if (r < 0) return r;
    rt->driver->home = home;
    rt->driver->rt = rt;
    rt->driver->stir = stir;
    rt->driver->calm = calm;
    rt->driver->files_wanted = rt->opts.files != WEFT_FILES_POOL;
    rt->driver->turned_by_others = rt->current_thread;
    return 0;
}

/* With all of its rings: a program may forbid them to itself as soon as its runtime is there, or have memory for one and not for the next. */
static int driver_by_uring(struct weft_rt *rt)
{
    int r = weft__driver_uring_probe();
    if (r == 0) r = driver_by(rt, &weft__driver_uring);
    if (r < 0) return r;
    r = weft__driver_open(rt->driver);
    if (r == 0) return 0;
    weft__io_stop(rt);
    weft__io_done(rt);
    return r;
}

/* The one that was asked for, if it works here. */
int weft__io_new(struct weft_rt *rt)
{
    if (rt->opts.driver != WEFT_DRIVER_IO_URING) return driver_by(rt, &weft__driver_epoll);
    int r = driver_by_uring(rt);
    if (r == 0) return 0;
    snprintf(rt->driver_why, sizeof(rt->driver_why), "io_uring does not work here: %s (%s)", weft__err_text(r), weft__err_name(r));
    fprintf(stderr, "weft: %s; sockets go by epoll\n", rt->driver_why);
    return driver_by(rt, &weft__driver_epoll);
}

const char *weft_rt_driver(const weft_rt *rt, const char **why)
{
    if (why) *why = rt && rt->driver_why[0] ? rt->driver_why : NULL;
    return rt ? rt->driver->ops->name : "none";
}

void weft__io_stop(struct weft_rt *rt)
{
    weft__driver_stop(rt->driver);
}

void weft__io_done(struct weft_rt *rt)
{
    weft__driver_let_go(rt->driver);
}

bool weft__io_is_watched(const struct weft_rt *rt)
{
    for (uint32_t i = 0; i < rt->driver->port_count; i++)
        if (weft__port_is_watched(&rt->driver->ports[i])) return true;
    return false;
}

/* Of a runtime that may be stopping: the caller is a task of it, or has entered it, and it is not gone. */
int weft__driver_here(struct weft_rt *rt, bool spread, struct weft__port **into)
{
    const struct weft__worker *w = weft__here()->worker;
    if (!rt) rt = weft_rt_current();
    if (!rt) return -ENXIO;
    if (weft__rt_is_lost(rt)) return -ECHILD;
    if (load_relaxed(&rt->stage) == WEFT__STOPPED)
        return -ESHUTDOWN; /* relaxed: a hint; add looks again */
    bool here = w && w->rt == rt && !spread;
    uint32_t next =
        here ? w->index : fetch_add_relaxed(&rt->driver->next_port, 1); /* relaxed: any will do */
    *into = &rt->driver->ports[next % rt->driver->port_count];
    return 0;
}

struct weft__port *weft__driver_mine(void)
{
    const struct weft__worker *w = weft__here()->worker;
    return w ? w->shard->port : NULL;
}

/* ---- turns ---- */

#define EVENTS_FILL (WEFT__RUNQ_CAP / 4 * 3)

/* What fills the ring to three quarters, and no more: in the kernel those that are ready stay in their order, while a ring that is full puts its older half behind
 * all that comes. So only a few, while some lie there, who have waited longer, or others keep the ring filled. */
static uint32_t events_wanted(struct weft__worker *w)
{
    uint64_t queued = weft__runq_length(&w->ring) + weft__overflow_count(&w->over);
    if (queued + WEFT__EVENTS_LEAST >= EVENTS_FILL) return WEFT__EVENTS_LEAST;
    uint64_t room = EVENTS_FILL - queued;
    return room < WEFT__EVENTS_MAX ? (uint32_t)room : WEFT__EVENTS_MAX;
}

uint32_t weft__io_turn(struct weft__worker *w, struct weft__port *port)
{
    if (weft__port_idle(port)) return 0;
    return weft__port_turn(port, events_wanted(w), port == w->shard->port);
}

bool weft__io_has(struct weft__port *port)
{
    return !weft__port_idle(port) && port->driver->ops->has(port);
}

int64_t weft__io_next_look(const struct weft__port *port)
{
    bool (*behind)(const struct weft__port *) = port->driver->ops->behind;
    bool soon = behind && !weft__port_idle(port) && behind(port);
    return soon ? weft__clock_now() + WEFT__URING_AGAIN_NS : WEFT__NEVER;
}

/* ---- sleeping ---- */

static int64_t left_until(int64_t deadline_ns)
{
    if (deadline_ns == WEFT__NEVER) return WEFT__NEVER;
    int64_t left = deadline_ns - weft__clock_now();
    return left < 0 ? 0 : left;
}

/* Its event may be an old one, of a token that was taken without it: then the caller looks around once for nothing. */
bool weft__io_park(struct weft__worker *w, int64_t deadline_ns, struct weft__events *into)
{
    struct weft__port *port = w->shard->port;
    into->count = 0;
    /* acquire: [port-open] with open_port. Not open: it has its fd in a moment, and who adds it stirs us */
    if (weft__port_idle(port) || !load_acquire(&port->open))
        return weft__park(&w->park, deadline_ns);
    store_relaxed(&port->slept_in, true); /* relaxed: park_elsewhere publishes it [park-event] */
    bool sleeps = weft__park_elsewhere(&w->park, port->event); /* else the token was there */
    if (sleeps) (void)port->driver->ops->wait(port, into, WEFT__EVENTS_MAX, left_until(deadline_ns));
    store_relaxed(&port->slept_in,
                  false); /* relaxed: who still reads true brings an event too many */
    if (!sleeps) return true;
    return weft__park_back(&w->park) || into->count > 0;
}

void weft__io_deliver(struct weft__worker *w, const struct weft__events *events)
{
    struct weft__port *port = w->shard->port;
    if (events->count > 0) (void)port->driver->ops->deliver(port, events, true);
}
