/* SPDX-License-Identifier: MIT
 *
 * slab_fixture - a source of memory that counts, remembers and fails on demand, and blocks that live and die as tasks do.
 *
 * Include base/slab.h (or slab.c, with bounds of one's own) first.
 */
#ifndef WEFT_TESTS_SLAB_FIXTURE_H
#define WEFT_TESTS_SLAB_FIXTURE_H

#include "base/alloc.h"
#include "test.h"

#define SOURCE_LOG 64

/* The counters are atomic: owners of several slabs ask for memory at once. */
struct source {
    _Atomic uint32_t maps;        /* calls of map, failed ones too */
    _Atomic uint32_t mapped;      /* maps that are not unmapped */
    uint32_t fail_from;           /* the call that fails first, from 1; 0: none */
    uint32_t fail_count;          /* how many in a row */
    size_t fail_above;            /* larger ones fail as well; 0: none */
    size_t log_bytes[SOURCE_LOG]; /* of the first calls */
    size_t log_align[SOURCE_LOG];
};

static void *source_map(void *ctx, size_t bytes, size_t align)
{
    struct source *s = ctx;
    uint32_t call = fetch_add_relaxed(&s->maps, 1); /* relaxed, here and below: counts */
    if (call < SOURCE_LOG) {
        s->log_bytes[call] = bytes;
        s->log_align[call] = align;
    }
    if (s->fail_from && call + 1 >= s->fail_from && call + 1 - s->fail_from < s->fail_count)
        return NULL;
    if (s->fail_above && bytes > s->fail_above) return NULL;
    void *memory = weft__alloc_aligned(bytes, align);
    if (memory) fetch_add_relaxed(&s->mapped, 1);
    return memory;
}

static void source_unmap(void *ctx, void *memory, size_t bytes)
{
    struct source *s = ctx;
    (void)bytes;
    fetch_sub_relaxed(&s->mapped, 1);
    weft__free(memory);
}

static inline void group_start(struct weft__slab_group *group, struct source *s)
{
    *s = (struct source){0};
    weft__slab_group_init(group, &(struct weft__slab_source){.map = source_map, .unmap = source_unmap, .ctx = s});
}

static inline uint64_t state_of(const void *block)
{
    return load_relaxed(
        &((const struct weft__block *)block)->state); /* relaxed: the test's own block */
}

/* What a live block's word says besides the generation: the references are a mix of the generation and the address, so that no reader can take
 * a torn or stale word for a good one. */
static inline uint64_t state_for(const void *block, uint64_t generation)
{
    uint64_t mix = (generation * UINT64_C(0x9e3779b97f4a7c15)) ^
                   ((uintptr_t)block * UINT64_C(0xd6e8feb86659fd93));
    return generation << 32 | (mix >> 48) << 16 | 1;
}

static inline void born(void *block)
{
    struct weft__block *b = block;
    store_release(&b->state,
                  state_for(block, state_of(block) >> 32)); /* [slab-state] with walk, find */
}

static inline void dead(void *block)
{
    struct weft__block *b = block;
    uint64_t generation = (state_of(block) >> 32) + 1;
    store_release(&b->state, generation << 32); /* [slab-state] with walk, find */
}

static inline void *make(struct weft__slab *slab, size_t bytes)
{
    void *block = weft__slab_alloc(slab, bytes);
    if (block) born(block);
    return block;
}

static inline void drop(struct weft__slab *slab, void *block)
{
    dead(block);
    weft__slab_free(slab, block);
}

#endif
