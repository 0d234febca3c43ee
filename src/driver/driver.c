/* SPDX-License-Identifier: MIT
 *
 * driver - ports, their slots, and the beginning and end of an fd; the idea is in driver.h.
 */
#include "driver/driver.h"

#include "base/alloc.h"
#include "driver/files.h"
#include "sync/leaf.h"
#include "sys/fd.h"

#include <stdio.h>

/* ---- memory ---- */

static void port_init(struct weft__port *port, struct weft__driver *driver, uint32_t index)
{
    port->driver = driver;
    port->index = index;
    port->kernel = -1;
    port->event = -1;
    weft__lock_init(&port->lock, WEFT__RANK_DRIVER);
}

int weft__driver_new(const struct weft__driver_ops *ops, uint32_t port_count, struct weft__driver **into)
{
    struct weft__driver *driver = weft__alloc(sizeof(*driver));
    if (!driver) return -ENOMEM;
    driver->ports = weft__alloc_aligned(port_count * sizeof(struct weft__port), WEFT__CACHE_LINE);
    if (!driver->ports) {
        weft__free(driver);
        return -ENOMEM;
    }
    driver->ops = ops;
    driver->port_count = port_count;
    store_relaxed(&driver->references, 1); /* relaxed: not shared yet */
    for (uint32_t i = 0; i < port_count; i++)
        port_init(&driver->ports[i], driver, i);
    *into = driver;
    return 0;
}

static void port_free(struct weft__port *port)
{
    for (uint32_t i = 0; i < port->made; i++)
        weft__free(weft__port_slot(port, i)->more);
    for (uint32_t k = 0; k < WEFT__PORT_CHUNKS; k++)
        weft__free(load_relaxed(&port->chunk[k])); /* relaxed: nobody else is there */
    weft__free(load_relaxed(&port->files)); /* relaxed: the same */
    if (port->driver->ops->free) port->driver->ops->free(port);
}

static void driver_free(struct weft__driver *driver)
{
    for (uint32_t i = 0; i < driver->port_count; i++)
        port_free(&driver->ports[i]);
    weft__free(driver->ports);
    weft__free(driver);
}

static void driver_unref(struct weft__driver *driver)
{
    /* [driver-ref] with unref: each holder's last touch of the driver */
    if (fetch_sub_acq_rel(&driver->references, 1) == 1) driver_free(driver);
}

/* ---- slots ---- */

/* The row of a slot's lock at first: 1,024 times, some 200 requests. Once more: a connection that stays pays for a read-modify-write each time for twice as long; once less: one
 * that goes from worker to worker pays 14 us for a hundred requests, at first (sys/bias.h). Where there is one worker it goes nowhere, and six requests
 * are enough: who pays is a thread outside that closes connections, 14 us for each. Debug builds lend sooner, so that
 * their tests are about it. */
static uint8_t row_bits(const struct weft__driver *driver)
{
#if defined(WEFT_DEBUG)
    (void)driver;
    return 3;
#else
    return driver->port_count == 1 ? 5 : 10;
#endif
}

/* Holds: port->lock. */
static struct weft__fdslot *make_chunk(struct weft__port *port, uint32_t chunk)
{
    size_t count = weft__chunk_slots(chunk);
    struct weft__fdslot *slots =
        weft__alloc_aligned(count * sizeof(struct weft__fdslot), WEFT__CACHE_LINE);
    if (!slots) return NULL;
    for (size_t i = 0; i < count; i++) {
        uint32_t index = (uint32_t)i + weft__chunk_slots(chunk) - WEFT__PORT_FIRST;
        weft__fdslot_init(&slots[i], port, index, row_bits(port->driver));
    }
    store_release(&port->chunk[chunk], slots); /* [port-chunk] with slot: the slots are made */
    return slots;
}

/* Holds: port->lock. NULL: no memory. */
static struct weft__fdslot *make_slot(struct weft__port *port)
{
    uint32_t index = port->made;
    uint32_t chunk = weft__chunk_of(index);
    if (chunk >= WEFT__PORT_CHUNKS) return NULL;
    /* relaxed: made under the lock that we hold */
    if (!load_relaxed(&port->chunk[chunk]) && !make_chunk(port, chunk)) return NULL;
    port->made++;
    return weft__port_slot(port, index);
}

/* Holds: port->lock. */
static struct weft__fdslot *take_slot(struct weft__port *port)
{
    if (port->free_first == 0) return make_slot(port);
    struct weft__fdslot *slot = weft__port_slot(port, port->free_first - 1);
    port->free_first = slot->next_free;
    return slot;
}

/* Holds: port->lock. */
static void give_slot(struct weft__port *port, struct weft__fdslot *slot)
{
    slot->next_free = port->free_first;
    port->free_first = slot->index + 1;
}

/* ---- beginning ---- */

/* Holds: port->lock. */
static int open_port(struct weft__port *port)
{
    if (port->down) return -ESHUTDOWN;
    if (load_relaxed(&port->open)) return 0; /* relaxed: written under the lock */
    int r = port->driver->ops->open(port);
    if (r == 0) store_release(&port->open, true); /* [port-open] with who waits: kernel and event */
    return r;
}

/* Holds: port->lock. Not later: once the lock is free the runtime may stop, and be gone. */
static void count_in(struct weft__port *port)
{
    (void)fetch_add_relaxed(&port->driver->references,
                            1); /* relaxed: the caller's runtime holds it, or its listener */
    /* relaxed: who sleeps elsewhere is stirred, and that carries it */
    if (fetch_add_relaxed(&port->fds, 1) == 0) port->driver->stir(port->driver, port->index);
}

/* Holds: port->lock. Behind it the caller still holds the driver. */
static void count_out(struct weft__port *port)
{
    bool last = weft__port_count_down(port, 1);
    if (last && !port->down) port->driver->calm(port->driver);
}

static int add_slot(struct weft__port *port, int fd, bool counts, struct weft__fdslot **into)
{
    weft__lock_take(&port->lock);
    int r = open_port(port);
    struct weft__fdslot *slot = r < 0 ? NULL : take_slot(port);
    if (!slot) goto out;
    weft__fdslot_open(slot, fd);
    slot->shape = WEFT__SHAPE_ANY;
    r = port->driver->ops->add(port, slot);
    if (r < 0) {
        /* relaxed: as the opening. Who still has it from before finds that it is closed */
        store_relaxed(&slot->users, WEFT__USE_CLOSED);
        give_slot(port, slot);
        goto out;
    }
    for (size_t i = 0; i < sizeof(slot->face) / sizeof(slot->face[0]); i++)
        slot->face[i] = NULL;
    if (counts) count_in(port);
    *into = slot;
out:
    weft__lock_drop(&port->lock);
    return r < 0 ? r : slot ? 0 : -ENOMEM;
}

int weft__driver_add(struct weft__port *port, int fd, struct weft__fdslot **into)
{
    if (port->lost) return -ECHILD;
    return add_slot(port, fd, true, into);
}

int weft__port_watch(struct weft__port *port, int fd, struct weft__fdslot **into)
{
    return add_slot(port, fd, false, into);
}

void weft__port_count_in(struct weft__port *port)
{
    /* relaxed: who sleeps elsewhere is stirred, and that carries it */
    if (fetch_add_relaxed(&port->fds, 1) == 0) port->driver->stir(port->driver, port->index);
}

void weft__port_count_out(struct weft__port *port, uint32_t count)
{
    if (count > 0 && weft__port_count_down(port, count)) port->driver->calm(port->driver);
}

/* ---- end ---- */

/* Holds: port->lock. Behind it the driver's reference goes. */
static void put_back(struct weft__port *port, struct weft__fdslot *slot)
{
    give_slot(port, slot);
    count_out(port);
}

void weft__driver_dispose(struct weft__fdslot *slot)
{
    struct weft__port *port = slot->port;
    struct weft__driver *driver = port->driver;

    weft__fd_close(slot->fd);
    weft__fdslot_renew(slot, row_bits(driver));
    weft__lock_take(&port->lock);
    bool gone = !driver->ops->let_go || driver->ops->let_go(port, slot);
    if (gone) put_back(port, slot);
    weft__lock_drop(&port->lock);
    if (gone) driver_unref(driver);
}

void weft__port_give_back(struct weft__fdslot *slot, bool locked)
{
    struct weft__port *port = slot->port;
    struct weft__driver *driver = port->driver;

    if (!locked) weft__lock_take(&port->lock);
    put_back(port, slot);
    if (!locked) weft__lock_drop(&port->lock);
    driver_unref(driver); /* locked: the port is being stopped, by a runtime that holds it */
}

/* Before the fd is closed: it may live on in another process, or under another number, and would go on to report. */
static void forget(struct weft__fdslot *slot)
{
    struct weft__port *port = slot->port;
    weft__lock_take(&port->lock);
    if (!port->down) port->driver->ops->del(port, slot);
    weft__lock_drop(&port->lock);
}

/* In the child of a fork locks may be held by nobody, and the slot stays as it is: its memory is a copy that nobody uses. */
static void close_lost(struct weft__fdslot *slot)
{
    uint32_t users = fetch_or_relaxed(
        &slot->users, WEFT__USE_CLOSED); /* relaxed: a process of one thread, as far as this goes */
    if (!(users & WEFT__USE_CLOSED)) weft__fd_close(slot->fd);
}

static _Thread_local const char *closes_what = "something that has a descriptor";
static _Thread_local const char *closes_at;

void weft__driver_closes(const char *what, const char *at)
{
    if (!at) return;
    closes_what = what;
    closes_at = at;
}

/* The second hits whoever has the slot by then, or will have. */
__attribute__((cold)) static void closed_twice(void)
{
    char text[96];
    (void)snprintf(text, sizeof(text), "%s is closed once more", closes_what);
    weft__misuse(text, closes_at);
}

void weft__driver_close(struct weft__fdslot *slot)
{
    if (weft__driver_is_lost(slot)) {
        close_lost(slot);
        return;
    }
    if (!weft__fdslot_close(slot)) closed_twice();
    forget(slot);
    weft__driver_leave(slot, WEFT__USE_SHARED);
}

int weft__driver_release(struct weft__fdslot *slot)
{
    if (weft__driver_is_lost(slot)) return -ECHILD;
    int r = weft__fdslot_close_alone(slot);
    if (r < 0) return r;
    int fd = slot->fd;
    forget(slot);
    slot->fd = -1; /* the last leave has nothing to close; and it is ours */
    weft__driver_leave(slot, WEFT__USE_SHARED);
    return fd;
}

/* ---- the runtime ---- */

uint32_t weft__port_turn(struct weft__port *port, uint32_t most, bool own)
{
    struct weft__events events;
    const struct weft__driver_ops *ops = port->driver->ops;

    if (!load_acquire(&port->open)) return 0; /* [port-open] with open_port */
    uint32_t woken;
    do { /* what nobody waits for is no answer while there may be more */
        if (ops->wait(port, &events, most, 0) <= 0) return 0;
        most -= (uint32_t)events.count < most ? (uint32_t)events.count : most;
        woken = ops->deliver(port, &events, own);
    } while (woken == 0 && events.full && most > 0);
    return woken;
}

int weft__driver_open(struct weft__driver *driver)
{
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < driver->port_count; i++) {
        weft__lock_take(&driver->ports[i].lock);
        r = open_port(&driver->ports[i]);
        weft__lock_drop(&driver->ports[i].lock);
    }
    return r;
}

static void stop_port(struct weft__port *port)
{
    weft__files_close(port);
    weft__lock_take(&port->lock);
    bool open = load_relaxed(&port->open); /* relaxed, both: written under the lock */
    port->down = true;
    store_relaxed(&port->open, false);
    if (open) port->driver->ops->close(port);
    uint32_t made = port->made;
    weft__lock_drop(&port->lock);
    for (uint32_t i = 0; i < made;
         i++) /* the free ones too, whom it does not harm: none is opened any more */
        weft__fdslot_down(weft__port_slot(port, i));
}

void weft__driver_stop(struct weft__driver *driver)
{
    for (uint32_t i = 0; i < driver->port_count; i++)
        stop_port(&driver->ports[i]);
}

void weft__driver_let_go(struct weft__driver *driver)
{
    driver_unref(driver);
}

void weft__driver_lose(struct weft__driver *driver)
{
    for (uint32_t i = 0; i < driver->port_count; i++) {
        struct weft__port *port = &driver->ports[i];
        port->lost = true;
        if (driver->ops->lose) driver->ops->lose(port);
    }
}
