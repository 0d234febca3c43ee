/* SPDX-License-Identifier: MIT
 *
 * guest - seats, and the way of a guest from thread to thread; the idea is in guest.h.
 */
#include "sched/guest.h"

#include "base/alloc.h"
#include "sys/lock.h"
#include "sys/thread.h"
#include "task/here.h"

/* Runtimes in which one thread can have a guest at once. Doubled: 64 bytes more in every thread; a thread that spawns into more of them in turns takes the
 * lock at each. */
#define SEATS 4

struct seat {
    uint64_t serial;           /* of the runtime; 0: nobody sits here */
    struct weft__guest *guest; /* only to be followed by who knows that the runtime lives */
};

/* One thread's seats, the one taken last in front. */
struct seats {
    struct weft__thread_exit exit;
    struct seat seat[SEATS];
};

static struct weft__lock lock = WEFT__LOCK_INIT(WEFT__RANK_SLAB);
static struct weft__link runtimes = WEFT__LIST_INIT(runtimes); /* guarded by the lock */

struct weft__lock *weft__guest_lock(void)
{
    return &lock;
}
static _Atomic uint64_t serials;

static _Thread_local struct seats record __attribute__((tls_model("initial-exec")));

/* Opaque, for the reason in here.h. */
WEFT__OPAQUE static struct seats *seats_here(void)
{
    struct seats *seats = &record;
    __asm__ volatile("" : "+r"(seats));
    return seats;
}

/* ---- runtimes ---- */

void weft__guests_init(struct weft__guests *guests, struct weft__slab_group *group)
{
    *guests = (struct weft__guests){.group = group};
    guests->serial = fetch_add_relaxed(&serials, 1) + 1; /* relaxed: only its value counts */
    weft__link_init(&guests->link);
    weft__lock_take(&lock);
    weft__list_push_back(&runtimes, &guests->link);
    weft__lock_drop(&lock);
}

void weft__guests_close(struct weft__guests *guests)
{
    weft__lock_take(&lock);
    weft__list_remove(&guests->link);
    weft__lock_drop(&lock);
}

void weft__guests_done(struct weft__guests *guests)
{
    while (guests->all) {
        struct weft__guest *guest = guests->all;
        guests->all = guest->next;
        weft__free(guest);
    }
}

uint64_t weft__guests_out(const struct weft__guests *guests)
{
    uint64_t count = 0;
    for (const struct weft__guest *guest = guests->all; guest; guest = guest->next) {
        const struct weft__slab *slab = &guest->slab;
        count += load_relaxed(&slab->allocated) -
                 load_relaxed(&slab->freed); /* relaxed, both: who wrote them has been waited for */
    }
    return count;
}

unsigned weft__guests_count(struct weft__guests *guests)
{
    unsigned count = 0;
    weft__lock_take(&lock);
    for (const struct weft__guest *guest = guests->all; guest; guest = guest->next)
        count++;
    weft__lock_drop(&lock);
    return count;
}

/* holds: lock */
static struct weft__guests *guests_of(uint64_t serial)
{
    weft__lock_assert_held(&lock);
    weft__list_each (it, &runtimes) {
        struct weft__guests *guests = weft__container_of(it, struct weft__guests, link);
        if (guests->serial == serial) return guests;
    }
    return NULL;
}

/* ---- guests ---- */

/* holds: lock */
static struct weft__guest *pop(struct weft__guest **list)
{
    weft__lock_assert_held(&lock);
    struct weft__guest *guest = *list;
    if (guest) *list = guest->idle_next;
    return guest;
}

static struct weft__guest *guest_new(struct weft__guests *guests)
{
    struct weft__guest *guest = weft__alloc_aligned(sizeof(*guest), WEFT__CACHE_LINE);
    if (!guest) return NULL;
    weft__slab_init(&guest->slab, guests->group);
    weft__lock_take(&lock);
    guest->next = guests->all;
    guests->all = guest;
    weft__lock_drop(&lock);
    return guest;
}

static struct weft__guest *guest_get(struct weft__guests *guests)
{
    weft__lock_take(&lock);
    struct weft__guest *guest = pop(&guests->idle);
    if (!guest) guest = pop(&guests->adopted);
    weft__lock_drop(&lock);
    return guest ? guest : guest_new(guests);
}

/* Shared, so that until it is reused or adopted others can borrow what it has. */
static void guest_put(struct weft__guests *guests, struct weft__guest *guest)
{
    weft__lock_assert_held(&lock);
    weft__slab_share(&guest->slab);
    guest->idle_next = guests->idle;
    guests->idle = guest;
}

struct weft__slab *weft__guests_spare_take(struct weft__guests *guests)
{
    weft__lock_take(&lock);
    struct weft__guest *guest = pop(&guests->idle);
    weft__lock_drop(&lock);
    return guest ? &guest->slab : NULL;
}

void weft__guests_spare_give(struct weft__guests *guests, struct weft__slab *slab)
{
    struct weft__guest *guest = weft__container_of(slab, struct weft__guest, slab);
    weft__lock_take(&lock);
    guest->idle_next = guests->adopted;
    guests->adopted = guest;
    weft__lock_drop(&lock);
}

/* ---- seats ---- */

/* Only the lock knows whether the runtime is still there, and keeps it from closing. */
static void seat_leave(struct seat *seat)
{
    if (seat->serial == 0) return;
    weft__lock_take(&lock);
    struct weft__guests *guests = guests_of(seat->serial);
    if (guests) guest_put(guests, seat->guest);
    weft__lock_drop(&lock);
    *seat = (struct seat){0};
}

/* The thread ends. One that spawns in a destructor that runs after this one takes a seat again, and is called again. */
static void leave_all(struct weft__thread_exit *exit)
{
    struct seats *seats = weft__container_of(exit, struct seats, exit);
    for (unsigned i = 0; i < SEATS; i++)
        seat_leave(&seats->seat[i]);
}

/* The one in front, behind which the others move up; whoever sat longest leaves. */
static struct seat *seat_free(struct seats *seats)
{
    seat_leave(&seats->seat[SEATS - 1]);
    for (unsigned i = SEATS - 1; i > 0; i--)
        seats->seat[i] = seats->seat[i - 1];
    return &seats->seat[0];
}

static __attribute__((noinline)) struct weft__slab *seat_take(struct seats *seats,
                                                              struct weft__guests *guests)
{
    if (weft__thread_at_exit(&seats->exit, leave_all) < 0) return NULL;
    struct weft__guest *guest = guest_get(guests);
    if (!guest) return NULL;
    *seat_free(seats) = (struct seat){.serial = guests->serial, .guest = guest};
    return &guest->slab;
}

struct weft__slab *weft__guest_slab(struct weft__guests *guests)
{
    struct seats *seats = seats_here();
    for (unsigned i = 0; i < SEATS; i++) {
        if (seats->seat[i].serial == guests->serial) return &seats->seat[i].guest->slab;
    }
    return seat_take(seats, guests);
}
