/* SPDX-License-Identifier: MIT
 *
 * pool - tasks in the program's own storage: chunks like any other, whose blocks nobody else hands out.
 *
 *     memory      first multiple of 64 KiB
 *     | not used | header | block | block | ...     | header | block | ... | rest |
 *     block = task header 64 | pointer to the frame 16, if it is over 1 KiB | frame | ext
 *
 * All blocks have one size, so that a pool holds the same number of tasks whatever ran in it before. A task is found from there as from any other block: the chunk says
 * the group, hence the runtime; and the frame by the same rule (weft__frame_of), a large one behind a pointer that here points into the block itself.
 *
 * INVARIANT  free + in use = capacity. `in_use` goes down as the last touch of a block's end: at zero the program may have its memory back.
 * A pool holds the runtime ([rt-held]) from init to done, so its blocks are not counted there one by one.
 *
 * Threads: any. Locks: the pool's own, rank slab; init and done take one for the process. Pairs: [pool-use].
 * Rejected: size classes in a pool: what fits would depend on what came before. A fall-back to the heap: the bound is what a pool is for.
 */
#ifndef WEFT_SCHED_POOL_H
#define WEFT_SCHED_POOL_H

#include "base/slab.h"
#include "sys/lock.h"
#include "types.h"

#include <weft/pool.h>

/* What lies behind a weft_pool. */
struct weft__pool {
    struct weft__slab_pool slab_pool;
    struct weft_rt *rt;              /* constant from init to done; NULL: not made, or done */
    struct weft__slab_chunk *chunks; /* constant; by home_next */
    struct weft__lock lock;          /* guards free */
    struct weft__block *free;
    _Atomic size_t in_use;           /* [pool-use] */
    size_t capacity;                 /* constant, as the rest */
    size_t frame_bytes;              /* largest frame */
    size_t block_bytes;
    _Atomic bool said;               /* that a frame is too large */
};

_Static_assert(sizeof(struct weft__pool) <= sizeof(struct weft_pool), "a weft_pool has room for it");

/* A free block for a task of this site, its frame's place settled; NULL: full, or the frame is too large, which is said once. */
struct weft_task *weft__pool_take(struct weft_pool *pool, const struct weft_site *site);

/* Whose tasks are in it; NULL: it is not made, or done. */
struct weft_rt *weft__pool_rt(const struct weft_pool *pool);


/* For who freezes it around fork. */
struct weft__lock *weft__pool_lock(void);

#endif
