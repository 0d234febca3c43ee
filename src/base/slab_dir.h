/* SPDX-License-Identifier: MIT
 *
 * slab_dir - how a chunk enters the directory of its group, is found there, and leaves again, if it is a pool's.
 *
 * LEAVING  A walker may be in the middle of a chunk that leaves. So readers are counted: leave puts an empty chunk in the slot, and the memory may be reused once a look
 * finds no reader, since whoever comes later finds the empty one. Slots are used again; the next pool's generations begin beyond those of all that left, so that an old id
 * finds nothing. Pairs: [slab-leave].
 */
#ifndef WEFT_BASE_SLAB_DIR_H
#define WEFT_BASE_SLAB_DIR_H

#include "base/slab.h"

/* The chunk of this index, or NULL: none, or not there yet. */
struct weft__slab_chunk *weft__slab_chunk_at(const struct weft__slab_group *group, uint32_t index);

/* Gives the chunk an index and makes it findable. Returns whether there was room, and memory for a leaf of the directory. */
bool weft__slab_chunk_append(struct weft__slab_group *group, struct weft__slab_chunk *chunk);

/* ---- pools: one enters or leaves at a time, the caller sees to that ---- */

/* Makes a chunk of `memory`, aligned as chunks are: its header, and `block_count` free blocks of `block_bytes`, a multiple of 16, behind it. */
struct weft__slab_chunk *weft__slab_chunk_pooled(void *memory, struct weft__slab_group *group, struct weft__slab_pool *pool,
                                                 uint32_t block_bytes, uint32_t block_count);

/* Makes it findable. Returns false: no room in the directory, or no memory for it. */
bool weft__slab_chunk_enter(struct weft__slab_group *group, struct weft__slab_chunk *chunk);

/* Its blocks are free, and nobody will hand them out. Readers may still be in it while weft__slab_is_read says so. */
void weft__slab_chunk_leave(struct weft__slab_group *group, struct weft__slab_chunk *chunk);
bool weft__slab_is_read(const struct weft__slab_group *group);

/* Its block number `at`; not beyond block_count. */
static inline struct weft__block *weft__slab_chunk_block(const struct weft__slab_chunk *chunk, uint32_t at)
{
    size_t offset = plain_read(&chunk->first) + (size_t)at * plain_read(&chunk->block_bytes);
    return (void *)((char *)(uintptr_t)chunk + offset);
}

#endif
