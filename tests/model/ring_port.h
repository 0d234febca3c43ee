/* SPDX-License-Identifier: MIT
 *
 * ring_port - a port on io_uring and its worker, for model tests: the kernel is ring_kernel.h, the sleep
 * is the real one, and so are the backend, the driver, its slots and operations. The first that a test includes.
 */
#ifndef MODEL_RING_PORT_H
#define MODEL_RING_PORT_H

#define WEFT__EVENTS_MAX 8
#include "limits.h"
#undef WEFT__URING_BUFFERS
#define WEFT__URING_BUFFERS 4
#undef WEFT__URING_FLOOD
#define WEFT__URING_FLOOD WEFT__URING_BUFFERS
#undef WEFT__URING_FLOOD_LOOKS
#define WEFT__URING_FLOOD_LOOKS 1 /* it ends as soon as the kernel likes */

#define WEFT__NEWS_FEW 1 /* who waits is looked at before any news is told */

static int signal_event(int fd);
#define MODEL_EVENT_SIGNAL(fd) signal_event(fd)

#include "leaf.h"
#include "lent.h"

#include "driver/driver.h"
#include "driver/files.h"
#undef WEFT__PORT_FIRST
#define WEFT__PORT_FIRST 1 /* a chunk of one: two slots are two chunks */

#include "driver/uring.h"

#include "ring_kernel.h"

#undef weft__fault
#define weft__fault(kind) ((void)(kind), 0) /* no kernel is told to be an older one here */

#include "driver/driver.c"
#include "driver/news.c"
#include "driver/op.c"
#include "driver/slot.c"
#include "driver/take.c"
#include "driver/uring.c"
#include "driver/uring_answer.c"
#include "driver/uring_ask.c"
#include "driver/uring_fetched.c"

static bool sees_no_send; /* under way: for a twin */
#define weft__uring_is_sending(us) (!sees_no_send && weft__uring_is_sending(us))
#include "driver/uring_flood.c"
#undef weft__uring_is_sending

#define OFTEN 1 /* send, and it has a place */
#include "driver/uring_place.c"
#include "driver/uring_send.c"
#include "sched/park.c"

weft_poll weft__go_poll(void *arg, weft_cx *cx)
{
    (void)arg, (void)cx;
    return WEFT_READY; /* a name: there are no fibers here */
}

static struct weft__driver driver;
static struct weft__port port;

static int fd_of_slot(uint32_t index)
{
    return weft__port_slot(&port, index)->fd;
}

static struct weft__driver_ops verbs;
static unsigned worker; /* whose port it is; 0: nobody's */

static void stirs(struct weft__driver *d, uint32_t index)
{
    (void)d, (void)index;
}

static void calms(struct weft__driver *d)
{
    (void)d;
}

static enum weft__home who_is_home(struct weft__driver *d, uint32_t index)
{
    (void)d, (void)index;
    return model_self() == worker ? WEFT__HOME_SOON
           : worker               ? WEFT__HOME_ANOTHER
                                  : WEFT__HOME_NOBODY;
}

static _Atomic uint32_t to_end; /* actors that have not */
static struct weft__park park;

static void one_ends(void)
{
    if (fetch_sub_acq_rel(&to_end, 1) == 1) weft__unpark(&park);
}

/* Its worker, that has nothing else to do: as weft__io_park. */
static void works(void *arg)
{
    struct weft__events events;
    (void)arg;
    while (load_acquire(&to_end) > 0) {
        store_relaxed(&port.slept_in, true);
        bool sleeps = weft__park_elsewhere(&park, EVENT_FD);
        events.count = 0;
        if (sleeps) (void)verbs.wait(&port, &events, WEFT__EVENTS_MAX, WEFT__NEVER);
        store_relaxed(&port.slept_in, false);
        if (sleeps) (void)weft__park_back(&park);
        (void)verbs.deliver(&port, &events, true);
    }
}

/* Somebody who looks after the port of another, once. */
static void robs(void *arg)
{
    (void)arg;
    robber = model_self();
    (void)weft__port_turn(&port, WEFT__EVENTS_MAX, false);
}

/* What slots had before, which stays as it is, for the checker: there is an atomic in it. */
static void *retired[FILES];

static int add_anew(struct weft__port *p, struct weft__fdslot *slot)
{
    for (int i = 0; i < FILES && slot->more; i++) {
        if (retired[i]) continue;
        retired[i] = slot->more;
        slot->more = NULL;
    }
    return uring_add(p, slot);
}

/* `verbs` are there. */
static void port_made(uint32_t actor_count)
{
    verbs.add = add_anew;
    memset(retired, 0, sizeof(retired));
    memset(&driver, 0, sizeof(driver));
    memset(&port, 0, sizeof(port));
    driver.ops = &verbs;
    driver.stir = stirs;
    driver.calm = calms;
    driver.home = who_is_home;
    driver.port_count = 1;
    driver.ports = &port;
    store_relaxed(&driver.references, 1);
    port_init(&port, &driver, 0);
    store_relaxed(&to_end, actor_count);
    weft__park_init(&park);
    worker = 0;
}

static void port_freed(void)
{
    for (int i = 0; i < FILES; i++)
        weft__free(retired[i]);
    uring_free(&port);
}

static bool lends_slots; /* the locks of slots, too */

/* Behind the port's opening, for a first slot: whose the locks are. */
static void port_lends(struct weft__fdslot *slot)
{
    struct weft__uring *u __attribute__((unused)) = port.own;
    lends_lock(&u->lock, &u->row);
    if (lends_slots) lends(&slot->list);
}

static void slot_made(struct weft__fdslot *slot, unsigned index)
{
    memset(slot, 0, sizeof(*slot));
    weft__fdslot_init(slot, &port, index, row_bits(&driver));
    if (lends_slots) weft__bias_begin(&slot->list.lock, 0, &slot->list.row);
    store_relaxed(&port.chunk[index], slot);
}

#define MUTANT(text, run_, mutant_)                                                                \
    {.name = "mutant: " text,                                                                      \
     .run = (run_),                                                                                \
     .pct_depth = 4,                                                                               \
     .executions_max = 200000,                                                                     \
     .mutant = (mutant_),                                                                          \
     .must_fail = true}

#endif
