/* SPDX-License-Identifier: MIT
 *
 * stack_sizes - a pool for each size that was asked for.
 */
#include "sys/stack_sizes.h"

#include "base/alloc.h"
#include "base/atomic.h"

#include <errno.h>

void weft__stack_sizes_init(struct weft__stack_sizes *sizes, struct weft__stacks *usual)
{
    sizes->usual = usual;
    for (unsigned i = 0; i < WEFT__STACK_SIZES; i++)
        store_relaxed(&sizes->pools[i], NULL); /* relaxed: not shared yet */
}

static void pool_free(struct weft__stacks *pool)
{
    if (!pool) return;
    weft__stacks_done(pool);
    weft__free(pool);
}

void weft__stack_sizes_done(struct weft__stack_sizes *sizes)
{
    for (unsigned i = 0; i < WEFT__STACK_SIZES; i++)
        pool_free(load_relaxed(&sizes->pools[i])); /* relaxed: nobody else is there */
}

static size_t slots_for(size_t stack_bytes)
{
    size_t slots = WEFT__STACK_MAP_BYTES / stack_bytes;
    if (slots < 1) return 1;
    return slots < WEFT__STACK_CHUNK_SLOTS ? slots : WEFT__STACK_CHUNK_SLOTS;
}

static int pool_new(size_t stack_bytes, struct weft__stacks **into)
{
    struct weft__stacks_options o = {.stack_bytes = stack_bytes,
                                     .chunk_slots = slots_for(stack_bytes)};
    struct weft__stacks *pool = weft__alloc(sizeof(*pool));
    if (!pool) return -ENOMEM;
    int r = weft__stacks_init(pool, &o);
    if (r < 0) {
        weft__free(pool);
        return r;
    }
    *into = pool;
    return 0;
}

static int pool_of(struct weft__stacks *_Atomic *at, size_t stack_bytes, struct weft__stacks **into)
{
    struct weft__stacks *there =
        load_acquire(at); /* [stack-size] with the CAS below: the pool is made */
    struct weft__stacks *made = NULL;
    int r = there ? 0 : pool_new(stack_bytes, &made);
    if (r < 0) return r;
    /* [stack-size] with the load above: publishes the pool, or sees the one of who was first */
    if (made && cas_acq_rel(at, &there, made)) there = made;
    if (made && made != there) pool_free(made);
    *into = there;
    return 0;
}

int weft__stack_sizes_get(struct weft__stack_sizes *sizes, size_t bytes, struct weft__stacks **into)
{
    unsigned bits = WEFT__STACK_MIN_BITS;
    while (bits <= WEFT__STACK_MAX_BITS && (size_t)1 << bits < bytes)
        bits++;
    if (bits > WEFT__STACK_MAX_BITS) return -EINVAL;
    if (sizes->usual->stack_bytes >= bytes && sizes->usual->stack_bytes <= (size_t)1 << bits) {
        *into = sizes->usual;
        return 0;
    }
    return pool_of(&sizes->pools[bits - WEFT__STACK_MIN_BITS], (size_t)1 << bits, into);
}

/* The first pool with more than `keep`; NULL: none. */
static struct weft__stacks *warm_pool(struct weft__stack_sizes *sizes, size_t keep)
{
    if (weft__stacks_are_warm(sizes->usual, keep)) return sizes->usual;
    for (unsigned i = 0; i < WEFT__STACK_SIZES; i++) {
        struct weft__stacks *pool =
            load_acquire(&sizes->pools[i]); /* [stack-size] with pool_of: the pool is made */
        if (pool && weft__stacks_are_warm(pool, keep)) return pool;
    }
    return NULL;
}

size_t weft__stack_sizes_trim_some(struct weft__stack_sizes *sizes, size_t keep)
{
    struct weft__stacks *pool = warm_pool(sizes, keep);
    return pool ? weft__stacks_trim_some(pool, keep) : 0;
}

bool weft__stack_sizes_are_warm(struct weft__stack_sizes *sizes, size_t keep)
{
    return warm_pool(sizes, keep) != NULL;
}
