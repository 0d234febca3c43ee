/* SPDX-License-Identifier: MIT
 *
 * stack - a pool of stacks: slots of equal size carved from large mappings, each with a guard at
 * its low end.
 *
 *     base                                                        a mapping ("chunk") of 64 slots
 *     | guard | stack ............ | guard | stack ............ | ...
 *             ^ lo                 ^ lo + bytes: where the stack begins to grow down
 * A slot is in use, *warm* (used since its pages were last given back) or *cold* (no pages but
 * perhaps the guard's). Get prefers the warmest, then a cold one, then a new chunk. Put is a list
 * operation: no syscall. Trim gives the pages of the longest unused warm ones back.
 *     in use + warm + cold = slots of all chunks
 * Chunks stay until the pool is done; their addresses cost nothing while they are cold.
 *
 * Guards: by MADV_GUARD_INSTALL they cost no mapping, so there may be as many stacks as memory
 * allows, and 64 KiB each, more than a frame usually skips. By mprotect each costs two of the
 * process's 65,530 mappings, so a pool ends near 32,000 stacks, and a guard is one page. Which one
 * is found out when the pool begins. A slot gets its guard at its first get, so a new chunk costs
 * two syscalls, not sixty-six.
 *
 * Threads: get, put and trim by any; init and done by the owner. Guarded by a lock of rank slab; no
 * syscall is made under it.
 * Rejected: one mapping per stack (a mapping each, 8 us), links inside the free stacks (touch their
 * pages, lost by trim, at the mercy of an overflow).
 */
#ifndef WEFT_SYS_STACK_H
#define WEFT_SYS_STACK_H

#include "base/list.h"
#include "limits.h"
#include "sys/lock.h"

#include <stddef.h>
#include <stdint.h>

struct weft__stack_chunk;

enum weft__stack_guard {
    WEFT__STACK_GUARD_AUTO, /* MADVISE where the kernel has it, else MPROTECT */
    WEFT__STACK_GUARD_MADVISE,
    WEFT__STACK_GUARD_MPROTECT,
};

/* One stack; lives in its chunk's table for as long as the pool. */
struct weft__stack {
    struct weft__link link;          /* in warm or cold while free; guarded by the pool's lock */
    char *lo;                        /* constant; the guard ends here */
    uint32_t units;                  /* constant; usable bytes from lo, by WEFT__STACK_UNIT */
    bool guarded;                    /* written by whoever got it first */
    bool in_use;                     /* or in a magazine; guarded by the pool's lock */
};

#define WEFT__STACK_UNIT ((size_t)4096) /* pages are as large, or some of these */

static inline size_t weft__stack_bytes(const struct weft__stack *s)
{
    return s->units * WEFT__STACK_UNIT;
}

struct weft__stacks {
    struct weft__lock lock; /* rank slab; guards the next six */
    struct weft__link warm; /* free, used since trimmed; last used first */
    struct weft__link cold; /* free, without pages */
    struct weft__stack_chunk *chunks;
    size_t warm_count;
    size_t slot_count; /* in all chunks */
    size_t in_use_count;
    size_t stack_bytes;           /* constant; usable bytes of each, whole pages */
    size_t guard_bytes;           /* constant */
    size_t chunk_slots;           /* constant */
    enum weft__stack_guard guard; /* constant; not AUTO */
};

struct weft__stacks_options {
    size_t stack_bytes; /* usable; rounded up to whole pages; not 0 */
    size_t chunk_slots; /* 0: WEFT__STACK_CHUNK_SLOTS */
    enum weft__stack_guard guard;
};

/* Make an empty pool. Blocks: no; maps and unmaps one page to learn how guards are made.
 * Returns 0; -EINVAL for a size that no address space holds; -ENOMEM; with MADVISE asked for,
 * -EINVAL where the kernel lacks it. */
int weft__stacks_init(struct weft__stacks *pool, const struct weft__stacks_options *o);

/* Unmap everything; no stack is in use any more. */
void weft__stacks_done(struct weft__stacks *pool);

/* Get a stack with its guard in place. Its contents are whatever the last user left, or zero.
 * Gives: *into, for put. Blocks: no; up to four syscalls when the slot is new. Returns 0;
 * -ENOMEM when memory or the number of mappings is at its end; the pool is as good as before. */
int weft__stack_get(struct weft__stacks *pool, struct weft__stack **into);

/* Takes a stack that nobody runs on any more. Blocks: no; makes no syscall. Cannot fail. */
void weft__stack_put(struct weft__stacks *pool, struct weft__stack *stack);

/* A few stacks of one pool in the hands of one thread: most fibers begin with the stack of one that has just ended there, and nobody else is
 * asked. For the pool they are in use. */
struct weft__stack_magazine {
    struct weft__stacks *pool; /* constant */
    uint32_t count;
    struct weft__stack *stack[WEFT__STACK_MAGAZINE];
};

/* get and put by the owner of a magazine, which may be NULL, or another pool's: then it is not used. */
int weft__stack_get_by(struct weft__stack_magazine *magazine, struct weft__stacks *pool, struct weft__stack **into);
void weft__stack_put_by(struct weft__stack_magazine *magazine, struct weft__stacks *pool, struct weft__stack *stack);

/* The owner, or whoever comes after it: all of them back to the pool. */
void weft__stack_magazine_flush(struct weft__stack_magazine *magazine);

/* Give the pages of free stacks back to the kernel, all but those of the `keep` last used.
 * Guards stay. Blocks: no, but costs about 2 us a stack. Safe beside get and put: what is being
 * trimmed is out of the pool for that moment. Returns how many stacks were trimmed. */
size_t weft__stacks_trim(struct weft__stacks *pool, size_t keep);

/* The same of WEFT__STACK_TRIM_BATCH at most: for who looks up in between. 0: there are no more. */
size_t weft__stacks_trim_some(struct weft__stacks *pool, size_t keep);

/* Are there more than `keep` that trim would give back? */
bool weft__stacks_are_warm(struct weft__stacks *pool, size_t keep);

/* What an address has to do with stacks. */
struct weft__stack_hit {
    const void *owner; /* the pool (struct weft__stacks) */
    char *guard_lo;    /* of the slot that contains the address */
    size_t guard_bytes;
    char *lo; /* = guard_lo + guard_bytes */
    size_t bytes;
    size_t index;  /* of the slot in its chunk */
    bool in_guard; /* an access there is an overflow */
};

/* Which slot of any pool of this process contains `addr`. Async-signal-safe; takes no lock.
 * Returns whether there is one. */
bool weft__stack_find(const void *addr, struct weft__stack_hit *into);

/* Walk the pool and assert that every slot is in exactly one place. For tests; takes the lock. */
void weft__stacks_check(struct weft__stacks *pool);

#endif
