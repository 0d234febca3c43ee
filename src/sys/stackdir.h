/* SPDX-License-Identifier: MIT
 *
 * stackdir - the directory of all mappings that hold stacks, searchable by address in a signal
 * handler.
 *
 * One directory per process: SIGSEGV knows an address and nothing else. Entries are written under a
 * lock and read without one, each behind a version that is odd while it changes. A reader skips
 * what changes: a mapping that is entered or removed at this moment has no stack in use, so it is
 * never the one that faulted. Blocks of entries are linked once and stay for the life of the
 * process, because a reader may be among them at any time; their number follows the most mappings
 * ever alive at once.
 *
 * Threads: add and remove by any, with no lock of rank slab held; find by any, also in a signal
 * handler. Pairs: [stackdir], [stackdir-block].
 * Rejected: a list of the pools (a handler cannot take their locks), entries freed with their pools
 * (a reader may be looking at them).
 */
#ifndef WEFT_SYS_STACKDIR_H
#define WEFT_SYS_STACKDIR_H

#include <stdbool.h>
#include <stddef.h>

struct weft__lock;
struct weft__stackdir_entry;

/* One mapping: `count` slots of slot_bytes each from `base` on, each with guard_bytes of guard
 * at its low end. */
struct weft__stackdir_span {
    char *base;
    size_t slot_bytes;
    size_t guard_bytes;
    size_t count;
    void *owner; /* the pool's tag; only handed back */
};

/* Enter a mapping. Gives: *into, for remove. Blocks: on a lock. Returns 0; -ENOMEM. */
int weft__stackdir_add(const struct weft__stackdir_span *span, struct weft__stackdir_entry **into);

/* Takes an entry; NULL is fine. Before the mapping goes. Blocks: on a lock. */
void weft__stackdir_remove(struct weft__stackdir_entry *entry);

/* For who freezes it around fork. */
struct weft__lock *weft__stackdir_lock(void);

/* The mapping that contains `addr`. Async-signal-safe. Returns whether there is one. */
bool weft__stackdir_find(const void *addr, struct weft__stackdir_span *into);

#endif
