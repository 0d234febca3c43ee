/* SPDX-License-Identifier: MIT
 *
 * slab_dir - how the files of the slab enter a chunk into the directory of its group, and find it there.
 */
#ifndef WEFT_BASE_SLAB_DIR_H
#define WEFT_BASE_SLAB_DIR_H

#include "base/slab.h"

/* The chunk of this index, or NULL: none, or not there yet. */
struct weft__slab_chunk *weft__slab_chunk_at(const struct weft__slab_group *group, uint32_t index);

/* Gives the chunk an index and makes it findable. Returns whether there was room, and memory for a leaf of the directory. */
bool weft__slab_chunk_append(struct weft__slab_group *group, struct weft__slab_chunk *chunk);

/* Its block number `at`; not beyond block_count. */
static inline struct weft__block *weft__slab_chunk_block(const struct weft__slab_chunk *chunk, uint32_t at)
{
    size_t offset = plain_read(&chunk->first) + (size_t)at * plain_read(&chunk->block_bytes);
    return (void *)((char *)(uintptr_t)chunk + offset);
}

#endif
