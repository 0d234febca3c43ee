/* SPDX-License-Identifier: MIT
 *
 * pool - cutting the program's memory into chunks, and handing its blocks out; the idea is in pool.h.
 */
#include "sched/pool.h"

#include "base/bits.h"
#include "base/slab_dir.h"
#include "sched/sched.h"
#include "task/ext.h"

#include <errno.h>
#include <stdio.h>

/* Of a pool that is told no size. */
#define FRAME_BYTES_DEFAULT 128

_Static_assert(sizeof(struct weft__go_frame) <= FRAME_BYTES_DEFAULT, "as weft/pool.h promises");
_Static_assert(WEFT__POOL_CHUNK == WEFT__SLAB_CHUNK_BYTES, "the macros count on it");
_Static_assert(sizeof(struct weft__slab_chunk) == 64 && sizeof(struct weft_task) == 64,
               "the macros count on it");
_Static_assert(WEFT__FRAME_MAX == 1024, "the macros count on it");
_Static_assert(WEFT__POOL_PER_CHUNK(65328u) == 1 && WEFT__POOL_PER_CHUNK(65329u) == 0,
               "as weft/pool.h promises");

/* Who enters a directory or leaves it; pools are made and ended seldom. */
static struct weft__lock directory_lock = WEFT__LOCK_INIT(WEFT__RANK_RT);

struct weft__lock *weft__pool_lock(void)
{
    return &directory_lock;
}

static struct weft__pool *inside(const struct weft_pool *pool)
{
    return (struct weft__pool *)(uintptr_t)pool;
}

/* ---- blocks ---- */

static void block_put(struct weft__pool *p, struct weft__block *block)
{
    weft__slab_poison(block + 1, p->block_bytes - sizeof(*block));
    weft__lock_take(&p->lock);
    store_relaxed(
        &block->link,
        p->free); /* relaxed: guarded by the lock; atomic for those who look at tasks while they are freed */
    p->free = block;
    weft__lock_drop(&p->lock);
}

/* By whoever freed a task. */
static void block_free(struct weft__slab_pool *slab_pool, struct weft__block *block)
{
    struct weft__pool *p = weft__container_of(slab_pool, struct weft__pool, slab_pool);
    block_put(p, block);
    fetch_sub_release(&p->in_use, 1); /* [pool-use] with done: the last touch of pool and memory */
}

static struct weft__block *block_get(struct weft__pool *p)
{
    weft__lock_take(&p->lock);
    struct weft__block *block = p->free;
    if (block) {
        p->free = load_relaxed(&block->link); /* relaxed: guarded by the lock */
        fetch_add_relaxed(&p->in_use, 1);     /* relaxed: who ends the pool does not spawn there */
    }
    weft__lock_drop(&p->lock);
    if (block) weft__slab_unpoison(block, p->block_bytes);
    return block;
}

static void say_too_large(struct weft__pool *p, const struct weft_site *site)
{
    if (exchange_relaxed(&p->said, true)) return; /* relaxed: nothing hangs on who speaks */
    fprintf(
        stderr,
        "weft: '%s' (spawned at %s:%u) has a frame of %u bytes, its pool's blocks hold %zu: see frame_bytes\n",
        site->name, site->file, site->line, site->frame_bytes, p->frame_bytes);
}

struct weft_task *weft__pool_take(struct weft_pool *pool, const struct weft_site *site)
{
    struct weft__pool *p = inside(pool);
    if (site->frame_bytes > p->frame_bytes) {
        say_too_large(p, site);
        return NULL;
    }
    struct weft_task *task = (void *)block_get(p);
    if (!task || site->frame_bytes <= WEFT__FRAME_MAX) return task;
    void **box = (void *)(task + 1);
    *box = (char *)box + 16;
    return task;
}

struct weft_rt *weft__pool_rt(const struct weft_pool *pool)
{
    return inside(pool)->rt;
}

/* ---- making ---- */

static void chunk_add(struct weft__pool *p, char *at, size_t bytes)
{
    uint32_t count = (uint32_t)((bytes - sizeof(struct weft__slab_chunk)) / p->block_bytes);
    struct weft__slab_chunk *chunk =
        weft__slab_chunk_pooled(at, &p->rt->blocks, &p->slab_pool, (uint32_t)p->block_bytes, count);
    for (uint32_t i = count; i-- > 0;)
        block_put(p, weft__slab_chunk_block(chunk, i)); /* the lowest comes out first */
    chunk->home_next = p->chunks;
    p->chunks = chunk;
    p->capacity += count;
}

static void chunks_make(struct weft__pool *p, char *memory, size_t bytes)
{
    char *end = memory + bytes;
    size_t skipped = -(uintptr_t)memory % WEFT__SLAB_CHUNK_BYTES;
    if (skipped >= bytes) return;
    for (char *at = memory + skipped; at < end;) {
        size_t room = (size_t)(end - at) < WEFT__SLAB_CHUNK_BYTES ? (size_t)(end - at)
                                                                  : WEFT__SLAB_CHUNK_BYTES;
        if (room >= sizeof(struct weft__slab_chunk) + p->block_bytes) chunk_add(p, at, room);
        at += room;
    }
}

static void blocks_unpoison(const struct weft__slab_chunk *chunk)
{
    for (; chunk; chunk = chunk->home_next) {
        weft__slab_unpoison(chunk + 1, (size_t)chunk->block_count * chunk->block_bytes);
    }
}

/* holds: directory_lock. Those up to `end`, from the first. */
static void chunks_leave(struct weft__pool *p, const struct weft__slab_chunk *end)
{
    for (struct weft__slab_chunk *c = p->chunks; c != end; c = c->home_next)
        weft__slab_chunk_leave(&p->rt->blocks, c);
}

/* holds: directory_lock */
static bool chunks_enter(struct weft__pool *p)
{
    for (struct weft__slab_chunk *c = p->chunks; c; c = c->home_next) {
        if (weft__slab_chunk_enter(&p->rt->blocks, c)) continue;
        chunks_leave(p, c);
        return false;
    }
    return true;
}

/* The memory is the program's again: what was marked in it is cleared once nobody looks through it any more. */
static void memory_release(struct weft__pool *p)
{
    while (weft__slab_is_read(&p->rt->blocks))
        weft__thread_yield();
    blocks_unpoison(p->chunks);
}

static int build(struct weft__pool *p, void *memory, size_t bytes)
{
    weft__lock_take(&directory_lock);
    chunks_make(p, memory, bytes);
    int r = p->capacity == 0 ? -ENOSPC : chunks_enter(p) ? 0 : -ENOMEM;
    weft__lock_drop(&directory_lock);
    if (r < 0) memory_release(p);
    return r;
}

int weft_pool_init(weft_pool *pool, void *memory, size_t bytes, const weft_pool_opts *opts)
{
    struct weft__pool *p = inside(pool);
    struct weft_rt *rt = opts && opts->rt ? opts->rt : weft_rt_current();
    size_t frame_bytes = opts && opts->frame_bytes ? opts->frame_bytes : FRAME_BYTES_DEFAULT;
    if (!pool || !memory || frame_bytes > WEFT__SLAB_CHUNK_BYTES ||
        WEFT__POOL_PER_CHUNK(frame_bytes) == 0)
        return -EINVAL;
    if (!rt) return -ENXIO;
    if (weft__rt_is_lost(rt)) return -ECHILD;

    *p = (struct weft__pool){
        .slab_pool = {.free = block_free},
        .rt = rt,
        .frame_bytes = weft__round_up(frame_bytes, 16),
        .block_bytes = WEFT__POOL_BLOCK(frame_bytes),
    };
    weft__lock_init(&p->lock, WEFT__RANK_SLAB);
    int r = build(p, memory, bytes);
    if (r < 0) {
        p->rt = NULL;
        return r;
    }
    weft__rt_hold(rt);
    return 0;
}

/* ---- ending ---- */

int weft_pool_done(weft_pool *pool)
{
    struct weft__pool *p = inside(pool);
    if (!p || !p->rt) return -EINVAL;
    if (weft__rt_is_lost(p->rt)) return -ECHILD; /* what others were doing to it at the fork stays half done */
    if (load_acquire(&p->in_use) != 0)
        return -EBUSY; /* [pool-use] with block_free: nobody touches a block any more */
    struct weft_rt *rt = p->rt;
    weft__lock_take(&directory_lock);
    chunks_leave(p, NULL);
    weft__lock_drop(&directory_lock);
    memory_release(p);
    p->rt = NULL;
    weft__rt_release(rt);
    return 0;
}

/* ---- looking ---- */

size_t weft_pool_capacity(const weft_pool *pool)
{
    return pool ? inside(pool)->capacity : 0;
}

size_t weft_pool_used(const weft_pool *pool)
{
    return pool ? load_relaxed(&inside(pool)->in_use) : 0; /* relaxed: a count */
}
