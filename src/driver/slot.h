/* SPDX-License-Identifier: MIT
 *
 * slot - the driver's record of one fd: what it is ready for, who waits for it, who still uses it.
 *
 * ONE LOCK guards all of it. It is held for nanoseconds, and lent to the worker that takes it often in a row (sync/waitlist.h): most connections are read, written and
 * reported by one worker, for which the five times that a request takes it are plain stores.
 *
 * THE WORD  What anybody may look at without the lock:
 *     bits 0..7     ready: what the fd is ready for, as far as anybody knows
 *     bits 8..31    tick: one more with each event
 *     bits 32..63   generation: one more with each close
 * A fresh fd counts as ready for everything: whoever wants something tries first, and only -EAGAIN makes
 * it wait.
 *     event    READY -> READY | bits, tick + 1     [ready]          unless the generation is another
 *     drained  READY -> READY & ~bits              [clear, finish]  unless the tick is another than before the try
 *     closed   -> CLOSED, generation + 1           [close]
 * TICK  Between a try that answered -EAGAIN and the clear a new edge may come. It is reported once: cleared
 * away, it never comes again, and the reader sleeps upon its data. So a clear names the word that it saw
 * *before* the try, and does nothing if there was an event since.
 * GENERATION  An event is on its way while its fd is closed; the number, and the slot, may be another
 * connection's when it arrives. The event's token carries the generation, so it finds another in the word
 * and wakes nobody.
 *
 * WAITERS  Two queues, for reading and for writing. A waiter queues if the word is not ready there; whoever makes it ready gives all
 * of that queue a turn.
 *
 * USERS  An operation *enters* the slot before it touches the fd, and leaves it behind: at most one as the
 * reader, one as the writer, any number of others. A close marks `users`, wakes all waiters, takes the fd out
 * of the kernel's list and leaves; whoever leaves last closes the fd itself and gives the slot back. So a
 * number never changes hands under a call that uses it.
 *
 * Pairs: [fd-ready] whoever writes the word -> look: a try is not older than the look before it. All else is the lock's.
 * Threads: any. LOCK ORDER: rank WAITLIST. Memory: a port's (driver.h); it stays while the port does, so that a late event finds a slot.
 * Rejected: a pointer as the token (memory must then outlive every thread that may hold an event: Tokio's list of
 * pending releases); interest that is changed for each wait (a system call each, EPOLLONESHOT likewise); a compare-and-swap for each of word and users, and
 * a lock for each queue (eight read-modify-writes a request, and three protocols to be shown right beside each other).
 */
#ifndef WEFT_DRIVER_SLOT_H
#define WEFT_DRIVER_SLOT_H

#include "base/assert.h"
#include "base/atomic.h"
#include "sync/waitlist.h"

#include <errno.h>
#include <stddef.h>

struct weft__port;

/* ---- the word ---- */

#define WEFT__READY_READ  UINT64_C(0x01)
#define WEFT__READY_WRITE UINT64_C(0x02)
#define WEFT__READY_READ_END                                                                       \
    UINT64_C(                                                                                      \
        0x04) /* the peer sends no more, or is gone: a short read is no sign of being drained */
#define WEFT__READY_WRITE_END UINT64_C(0x08) /* the peer is gone */
#define WEFT__READY_URGENT    UINT64_C(0x10) /* out of band, for whoever waits for that */
#define WEFT__READY_DOWN      UINT64_C(0x40) /* its runtime has stopped: no event comes any more */
#define WEFT__READY_CLOSED    UINT64_C(0x80)
#define WEFT__READY_BITS      UINT64_C(0xff)
#define WEFT__READY_TICK      UINT64_C(0x100)
#define WEFT__READY_TICKS     UINT64_C(0xffffff00)

enum weft__side {
    WEFT__SIDE_READ,
    WEFT__SIDE_WRITE,
    WEFT__SIDES,
};

/* What ends a wait on a side. */
#define WEFT__READY_OVER (WEFT__READY_DOWN | WEFT__READY_CLOSED)
static inline uint64_t weft__ready_bits(enum weft__side side)
{
    return side == WEFT__SIDE_READ ? WEFT__READY_READ | WEFT__READY_READ_END
                                   : WEFT__READY_WRITE | WEFT__READY_WRITE_END;
}

/* ---- users ---- */

#define WEFT__USE_SHARED UINT32_C(1)         /* one of several */
#define WEFT__USE_READER (UINT32_C(1) << 28) /* the one that reads */
#define WEFT__USE_WRITER (UINT32_C(1) << 29)
#define WEFT__USE_CLOSED (UINT32_C(1) << 30)

/* What a backend may know of an fd, to fetch from it ahead. */
enum weft__shape {
    WEFT__SHAPE_ANY,
    WEFT__SHAPE_STREAM,   /* a socket of bytes, that carries no descriptors */
    WEFT__SHAPE_LISTENER,
};

/* The first line is all that a request of a stream touches on epoll: its face's table of functions, too. */
struct weft__fdslot {
    WEFT__CACHE_ALIGNED struct weft__waitlist list; /* its lock is the slot's; who waits to read */
    _Atomic uint64_t word;   /* ready, tick, generation       [lock writes; fd-ready] */
    _Atomic uint32_t users;  /* WEFT__USE_...                 [lock; others look] */
    int fd;                  /* constant while it is open */
    struct weft__port *port; /* constant */
    void *face[4];           /* the owner's: what it shows to users */
    struct weft__link writers; /* who waits to write            [lock] */
    void *more;              /* the backend's, for as long as the port lives */
    uint32_t index;          /* constant: in the port */
    enum weft__shape shape;  /* the owner's, written before its first operation */
    uint32_t next_free;      /* while it is free: the next one, + 1  [port's lock] */
    _Atomic bool direct;     /* relaxed: just now it is read and written by calls alone, and events come by themselves. The backend's, under its own lock; when that ends both sides are made ready behind it */
};

_Static_assert(sizeof(struct weft__fdslot) == (size_t)2 * WEFT__CACHE_LINE, "a descriptor costs two lines");
_Static_assert(offsetof(struct weft__fdslot, face) + sizeof(void *) == WEFT__CACHE_LINE, "a request touches one");

/* What a try has found: nothing more of `bits` is there, unless something came since `seen`, the look before it. */
struct weft__lesson {
    uint64_t seen;
    uint64_t bits; /* of the word; 0: it tells nothing */
};

/* ---- looking ---- */

static inline uint64_t weft__fdslot_look(const struct weft__fdslot *slot)
{
    return load_acquire(&slot->word); /* [fd-ready] with ready: the try comes behind it */
}

static inline uint32_t weft__fdslot_generation(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

static inline uint64_t weft__fdslot_token(const struct weft__fdslot *slot)
{
    uint64_t word = load_relaxed(&slot->word); /* relaxed: not shared yet, or held */
    return (uint64_t)slot->index << 32 | weft__fdslot_generation(word);
}

/* ---- holds: the slot's lock ---- */

static inline struct weft__link *weft__fdslot_queue(struct weft__fdslot *slot, enum weft__side side)
{
    return side == WEFT__SIDE_READ ? &slot->list.head : &slot->writers;
}

static inline bool weft__fdslot_is_ready(const struct weft__fdslot *slot, uint64_t bits)
{
    return load_relaxed(&slot->word) & (bits | WEFT__READY_OVER); /* relaxed: written under the lock */
}

static inline int weft__fdslot_enter_held(struct weft__fdslot *slot, uint32_t as)
{
    uint32_t users = load_relaxed(&slot->users); /* relaxed, both: the lock orders it */
    if (__builtin_expect(users & WEFT__USE_CLOSED, 0)) return -EBADF;
    if (__builtin_expect(as != WEFT__USE_SHARED && (users & as), 0)) return -EBUSY;
    store_relaxed(&slot->users, users + as);
    return 0;
}

static inline bool weft__fdslot_wait_held(struct weft__fdslot *slot, enum weft__side side,
                                          uint64_t bits, struct weft__waiter *waiter,
                                          struct weft_waker waker)
{
    if (weft__fdslot_is_ready(slot, bits)) return false;
    weft__waitlist_add_new_at(&slot->list, weft__fdslot_queue(slot, side), waiter, waker);
    return true;
}

static inline int weft__fdslot_begin_held(struct weft__fdslot *slot, uint32_t as,
                                          enum weft__side side, uint64_t bits,
                                          struct weft__waiter *waiter, struct weft_waker waker)
{
    int r = weft__fdslot_enter_held(slot, as);
    if (r < 0 || weft__waker_is_none(waker)) return r;
    return weft__fdslot_wait_held(slot, side, bits, waiter, waker) ? 1 : 0;
}

/* The try behind the look `seen` found nothing more of these. */
static inline void weft__fdslot_clear_held(struct weft__fdslot *slot, uint64_t seen, uint64_t bits)
{
    uint64_t word = load_relaxed(&slot->word);     /* relaxed: the lock orders it */
    if ((word ^ seen) & ~WEFT__READY_BITS) return; /* something came since, or it is closed */
    store_release(&slot->word, word & ~bits); /* [fd-ready] with look: what the event before it told goes along */
}

static inline bool weft__fdslot_leave_held(struct weft__fdslot *slot, uint32_t as)
{
    uint32_t users = load_relaxed(&slot->users); /* relaxed, both: the lock orders it */
    weft_dassert(as == WEFT__USE_SHARED ? (users & (WEFT__USE_READER - 1)) > 0 : (users & as) != 0);
    store_relaxed(&slot->users, users - as);
    return users - as == WEFT__USE_CLOSED;
}

/* ---- the driver ---- */

/* The memory of one, before its first fd. `row_bits`: of its lock (sys/bias.h). */
void weft__fdslot_init(struct weft__fdslot *slot, struct weft__port *port, uint32_t index,
                       uint8_t row_bits);

/* One that was free, for an fd of its own: ready for everything, entered by nobody. */
void weft__fdslot_open(struct weft__fdslot *slot, int fd);

/* One whose last user has left, before it is free for another fd: what its worker was lent is given back, or the next one's would begin by taking it. */
void weft__fdslot_renew(struct weft__fdslot *slot, uint8_t row_bits);

/* An event of a generation: more is ready. Whoever waits for it goes into the chain, to be pushed when no
 * lock is held. */
void weft__fdslot_ready(struct weft__fdslot *slot, uint32_t generation, uint64_t bits,
                        struct weft__wake_chain *chain);

/* ---- operations ---- */

/* Begin to use it. Returns 0; -EBADF: it is closed; -EBUSY: there is a reader, or a writer, already. */
int weft__fdslot_enter(struct weft__fdslot *slot, uint32_t as);

/* The same of an operation that would wait at once if it is ready for none of `bits`; with no waker it does not. Returns 1: it has begun, and waits. */
static inline int weft__fdslot_begin(struct weft__fdslot *slot, uint32_t as, enum weft__side side,
                                     uint64_t bits, struct weft__waiter *waiter,
                                     struct weft_waker waker)
{
    uint8_t me = weft__waitlist_me();
    enum weft__waitlist_way way = weft__waitlist_hold(&slot->list, me);
    int r = weft__fdslot_begin_held(slot, as, side, bits, waiter, waker);
    weft__waitlist_drop(&slot->list, me, way);
    return r;
}

/* The end of an operation, and what its last try has found: nothing more of these, which may be none. True: it was the last, of a slot that is closed: the caller disposes of it. */
static inline bool weft__fdslot_finish(struct weft__fdslot *slot, uint32_t as, uint64_t seen,
                                       uint64_t bits)
{
    uint8_t me = weft__waitlist_me();
    enum weft__waitlist_way way = weft__waitlist_hold(&slot->list, me);
    if (bits) weft__fdslot_clear_held(slot, seen, bits);
    bool last = weft__fdslot_leave_held(slot, as);
    weft__waitlist_drop(&slot->list, me, way);
    return last;
}

/* The try behind the look `seen` found nothing more of these. */
void weft__fdslot_clear(struct weft__fdslot *slot, uint64_t seen, uint64_t bits);

/* Queue unless it is ready for one of `bits`, behind what a try has found, if it says so. False: it is, or it is over. The caller has entered. */
bool weft__fdslot_wait(struct weft__fdslot *slot, enum weft__side side, uint64_t bits,
                       const struct weft__lesson *lesson, struct weft__waiter *waiter,
                       struct weft_waker waker);

/* Is the wait over? True: the waiter is out of the list. Most turns show without the lock. */
bool weft__fdslot_takes_turn(struct weft__fdslot *slot, struct weft__waiter *waiter);
static inline bool weft__fdslot_has_turn(struct weft__fdslot *slot, struct weft__waiter *waiter)
{
    return weft__waiter_take_granted(waiter) || weft__fdslot_takes_turn(slot, waiter);
}

/* Give the wait up: the waiter is out of the list. */
void weft__fdslot_give_up(struct weft__fdslot *slot, struct weft__waiter *waiter);

/* ---- ending ---- */

/* No operation can enter any more; those that wait are woken. The caller has entered as one of several, by
 * this call, and leaves. Returns false: it was closed already, and was not entered. */
bool weft__fdslot_close(struct weft__fdslot *slot);

/* As close, if nobody else is inside. Returns 0; -EBUSY; -EBADF. */
int weft__fdslot_close_alone(struct weft__fdslot *slot);

/* Its runtime has stopped. Who waits is told. */
void weft__fdslot_down(struct weft__fdslot *slot);

#endif
