/* SPDX-License-Identifier: MIT
 *
 * guest - slabs for threads that are no workers: one for each such thread and runtime, found without a lock.
 *
 * A thread remembers its guests in a few *seats* of its own record, by the runtime's serial number, which no other runtime of the process ever has: a seat
 * whose runtime has ended is never mistaken for one of a runtime at the same address, and nobody has to clear it.
 *
 *     seat taken   first spawn of the thread in this runtime: an idle guest, else a new one              [lock]
 *     seat found   every further spawn: compares a number                                                [none]
 *     seat left    the thread ends, or wants the seat for another runtime: the guest becomes idle        [lock]
 *     adopted      somebody would map fresh memory: takes over what an idle guest has (base/slab.h)      [lock]
 *
 * ORDERS OF ENDING  Thread first: its guest waits in `idle` for the next thread or an adopter. Runtime first: close takes it out of the list of runtimes, and the
 * thread that ends later does not find the serial there. Both at once: the lock decides which of the two it is.
 * A guest stays until the runtime's memory goes, since blocks come home to it: there are as many as threads ever spawned at once.
 *
 * Threads: any. Locks: one for the process, rank slab. Pairs: none but the lock's.
 * Rejected: one slab for all threads outside, under a lock: a shared line at each spawn. A record on the heap for each pair of thread and runtime: who frees
 * it when the thread never ends (main) or the runtime never does?
 */
#ifndef WEFT_SCHED_GUEST_H
#define WEFT_SCHED_GUEST_H

#include "base/list.h"
#include "base/slab.h"

struct weft__lock;

struct weft__guest {
    struct weft__slab slab;         /* its thread's, or the lock's holder's while it is idle */
    struct weft__guest *next;       /* in `all`; constant */
    struct weft__guest *idle_next;  /* guarded by the lock */
};

/* The guests of one runtime. */
struct weft__guests {
    uint64_t serial;                /* constant */
    struct weft__slab_group *group; /* constant: the runtime's blocks */
    struct weft__guest *all;        /* guarded by the lock, as what follows */
    struct weft__guest *idle;       /* without a thread, with memory */
    struct weft__guest *adopted;    /* without a thread, without memory */
    struct weft__link link;         /* in the list of runtimes */
};

void weft__guests_init(struct weft__guests *guests, struct weft__slab_group *group);

/* No thread spawns any more; those that end later leave the runtime alone. */
void weft__guests_close(struct weft__guests *guests);

/* Frees them; the group is done. */
void weft__guests_done(struct weft__guests *guests);

/* Blocks they handed out, less those that their own threads freed. Once closed. */
uint64_t weft__guests_out(const struct weft__guests *guests);

/* The calling thread's, inside of the runtime's gate. NULL: no memory. */
struct weft__slab *weft__guest_slab(struct weft__guests *guests);

/* For the slab's source: a guest whose thread has ended, owned by the caller until it is given back without memory. NULL: none. */
struct weft__slab *weft__guests_spare_take(struct weft__guests *guests);
void weft__guests_spare_give(struct weft__guests *guests, struct weft__slab *slab);

/* For who freezes it around fork. */
struct weft__lock *weft__guest_lock(void);

/* How many there are. For tests. */
unsigned weft__guests_count(struct weft__guests *guests);

#endif
