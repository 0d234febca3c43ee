/* SPDX-License-Identifier: MIT
 *
 * slab_dir - the directory of a group's chunks, and what is read through it: ids, the walk, the check, the end. The idea is in slab.h.
 */
#include "base/slab_dir.h"

/* ---- directory ------------------------------------------------------------------------------------------------------------------------- */

struct weft__slab_chunk *weft__slab_chunk_at(const struct weft__slab_group *group, uint32_t index)
{
    if (index >= WEFT__SLAB_CHUNKS_MAX) return NULL;
    /* [slab-leaf] with leaf_of: the leaf's zeroes. */
    struct weft__slab_leaf *leaf = load_acquire(&group->top[index / WEFT__SLAB_LEAF]);
    if (!leaf) return NULL;
    /* [slab-chunk] with chunk_append: the chunk's header. */
    return load_acquire(&leaf->slot[index % WEFT__SLAB_LEAF]);
}

static struct weft__slab_leaf *leaf_of(struct weft__slab_group *group, uint32_t index)
{
    struct weft__slab_leaf *_Atomic *at = &group->top[index / WEFT__SLAB_LEAF];
    struct weft__slab_leaf *there = load_acquire(at); /* [slab-leaf] with the CAS below */
    if (there) return there;

    const struct weft__slab_source *source = &group->source;
    struct weft__slab_leaf *leaf = source->map(source->ctx, sizeof(*leaf), WEFT__CACHE_LINE);
    if (!leaf) return NULL;
    /* [slab-leaf] with chunk_at and the load above: publishes the zeroes, or sees the winner's. */
    if (cas_acq_rel(at, &there, leaf)) return leaf;
    source->unmap(source->ctx, leaf, sizeof(*leaf));
    return there;
}

/* The leaf is there before the index is taken, so that a failure leaves no hole.
 * Lock-free: a failed CAS means that another chunk was appended. */
bool weft__slab_chunk_append(struct weft__slab_group *group, struct weft__slab_chunk *chunk)
{
    /* relaxed, also in the CAS: the count orders nothing, the slots do. */
    uint32_t index = load_relaxed(&group->chunk_count);
    struct weft__slab_leaf *leaf;
    do {
        if (index == WEFT__SLAB_CHUNKS_MAX) return false;
        leaf = leaf_of(group, index);
        if (!leaf) return false;
    } while (!cas_relaxed(&group->chunk_count, &index, index + 1));
    plain_write(&chunk->index, index);
    /* [slab-chunk] with chunk_at: publishes the header. */
    store_release(&leaf->slot[index % WEFT__SLAB_LEAF], chunk);
    return true;
}

bool weft__slab_group_prepare(struct weft__slab_group *group)
{
    return leaf_of(group, 0) != NULL;
}

/* ---- pools ----------------------------------------------------------------------------------------------------------------------------- */

/* In the slots that pools have left: a chunk without blocks. */
static struct weft__slab_chunk vacant = {.first = sizeof(vacant), .block_bytes = WEFT__SLAB_BLOCK_MIN, .cls = WEFT__SLAB_POOLED};

static struct weft__slab_chunk *_Atomic *slot_at(struct weft__slab_group *group, uint32_t index)
{
    struct weft__slab_leaf *leaf = load_acquire(&group->top[index / WEFT__SLAB_LEAF]); /* [slab-leaf] with leaf_of */
    return leaf ? &leaf->slot[index % WEFT__SLAB_LEAF] : NULL;
}

struct weft__slab_chunk *weft__slab_chunk_pooled(void *memory, struct weft__slab_group *group, struct weft__slab_pool *pool,
                                                 uint32_t block_bytes, uint32_t block_count)
{
    struct weft__slab_chunk *chunk = memory;
    weft_assert(weft__slab_chunk_of(memory) == chunk);
    *chunk = (struct weft__slab_chunk){.pool = pool};
    plain_write(&chunk->cls, WEFT__SLAB_POOLED);
    plain_write(&chunk->first, (uint32_t)sizeof(*chunk));
    plain_write(&chunk->block_bytes, block_bytes);
    plain_write(&chunk->block_count, block_count);
    plain_write(&chunk->group, group);
    for (uint32_t at = 0; at < block_count; at++) {
        struct weft__block *block = weft__slab_chunk_block(chunk, at);
        store_relaxed(&block->state, (uint64_t)group->first_generation << 32); /* relaxed, both: not published yet */
    }
    store_relaxed(&chunk->carved, block_count);
    return chunk;
}

static bool enter_vacant(struct weft__slab_group *group, struct weft__slab_chunk *chunk)
{
    uint32_t count = load_relaxed(&group->chunk_count); /* relaxed: what was left is below, by those before us */
    for (uint32_t i = 0; i < count; i++) {
        struct weft__slab_chunk *_Atomic *slot = slot_at(group, i);
        if (!slot || load_relaxed(slot) != &vacant) continue; /* relaxed: only we change a vacant one */
        plain_write(&chunk->index, i);
        store_release(slot, chunk); /* [slab-chunk] with chunk_at: publishes the header */
        group->vacant_count--;
        return true;
    }
    return false;
}

bool weft__slab_chunk_enter(struct weft__slab_group *group, struct weft__slab_chunk *chunk)
{
    if (group->vacant_count && enter_vacant(group, chunk)) return true;
    return weft__slab_chunk_append(group, chunk);
}

void weft__slab_chunk_leave(struct weft__slab_group *group, struct weft__slab_chunk *chunk)
{
    for (uint32_t at = 0; at < plain_read(&chunk->block_count); at++) {
        uint64_t state = load_relaxed(&weft__slab_chunk_block(chunk, at)->state); /* relaxed: the pool has seen the block come back */
        weft_assert((state & WEFT__SLAB_FLAGS) == 0);
        if (state >> 32 >= group->first_generation) group->first_generation = (uint32_t)(state >> 32) + 1;
    }
    store_relaxed(slot_at(group, plain_read(&chunk->index)), &vacant); /* relaxed: the fence orders it */
    group->vacant_count++;
    fence_seq_cst(); /* [slab-leave] with read_begin: store buffering, our slot against their count */
}

bool weft__slab_is_read(const struct weft__slab_group *group)
{
    return load_acquire(&group->readers) != 0; /* [slab-leave] with read_end: they are out of the chunk */
}

void weft__slab_read_begin(struct weft__slab_group *group)
{
    fetch_add_relaxed(&group->readers, 1); /* relaxed: the fence orders it */
    fence_seq_cst();                       /* [slab-leave] with leave: it sees us, or we do not see its chunk */
}

void weft__slab_read_end(struct weft__slab_group *group)
{
    fetch_sub_release(&group->readers, 1); /* [slab-leave] with is_read */
}

/* ---- registry -------------------------------------------------------------------------------------------------------------------------- */

uint64_t weft__slab_id_of(const void *memory, uint32_t generation)
{
    const struct weft__slab_chunk *chunk = weft__slab_chunk_of(memory);
    uint64_t place = (uint64_t)((const char *)memory - (const char *)chunk) / WEFT__SLAB_STEP;

    return (uint64_t)plain_read(&chunk->index) << 44 | place << 32 | generation;
}

uint64_t weft__slab_id(const void *memory)
{
    const struct weft__block *block = memory;
    /* relaxed: the caller keeps the block, so the generation does not change. */
    return weft__slab_id_of(memory, (uint32_t)(load_relaxed(&block->state) >> 32));
}

/* The block at this offset of the chunk, or NULL if none begins there or it was never used. */
static struct weft__block *block_at(const struct weft__slab_chunk *chunk, uint32_t offset)
{
    uint32_t first = plain_read(&chunk->first);
    uint32_t bytes = plain_read(&chunk->block_bytes);

    if (offset < first || (offset - first) % bytes != 0) return NULL;
    uint32_t at = (offset - first) / bytes;
    /* relaxed: what is beyond is zero, and so free as well. */
    return at < load_relaxed(&chunk->carved) ? weft__slab_chunk_block(chunk, at) : NULL;
}

static struct weft__block *find(const struct weft__slab_group *group, uint64_t id)
{
    const struct weft__slab_chunk *chunk = weft__slab_chunk_at(group, (uint32_t)(id >> 44));
    if (!chunk) return NULL;
    struct weft__block *block = block_at(chunk, (uint32_t)(id >> 32 & 0xfff) * WEFT__SLAB_STEP);
    if (!block) return NULL;

    /* [slab-state] with the user's release store: what it wrote before. */
    uint64_t state = load_acquire(&block->state);
    bool live = (state & WEFT__SLAB_FLAGS) && state >> 32 == (id & UINT32_MAX);
    return live ? block : NULL;
}

void *weft__slab_find(struct weft__slab_group *group, uint64_t id)
{
    weft__slab_read_begin(group);
    struct weft__block *block = find(group, id);
    weft__slab_read_end(group);
    return block;
}

static int walk_chunk(const struct weft__slab_chunk *chunk, int (*visit)(void *, void *, uint64_t),
                      void *ctx)
{
    /* relaxed: what is beyond is zero, and its pages are better not touched. */
    uint32_t carved = load_relaxed(&chunk->carved);
    for (uint32_t at = 0; at < carved; at++) {
        struct weft__block *block = weft__slab_chunk_block(chunk, at);
        /* [slab-state] with the user's release store: what it wrote before. */
        uint64_t state = load_acquire(&block->state);
        int r = state & WEFT__SLAB_FLAGS ? visit(ctx, block, state) : 0;
        if (r) return r;
    }
    return 0;
}

/* No order is needed between the count and the slots: an append that happened before the walk is seen in both, since neither ever goes back;
 * one that goes on beside it may be missed. */
int weft__slab_walk(struct weft__slab_group *group,
                    int (*visit)(void *ctx, void *block, uint64_t state), void *ctx)
{
    int r = 0;
    weft__slab_read_begin(group);
    uint32_t count = load_relaxed(&group->chunk_count); /* relaxed: see above */
    for (uint32_t i = 0; i < count && r == 0; i++) {
        const struct weft__slab_chunk *chunk = weft__slab_chunk_at(group, i);
        if (chunk) r = walk_chunk(chunk, visit, ctx);
    }
    weft__slab_read_end(group);
    return r;
}

/* ---- group ----------------------------------------------------------------------------------------------------------------------------- */

void weft__slab_group_init(struct weft__slab_group *group, const struct weft__slab_source *source)
{
    *group = (struct weft__slab_group){.source = *source};
    for (unsigned i = 0; i < WEFT__SLAB_TOP; i++) {
        store_relaxed(&group->top[i], NULL); /* relaxed: not shared yet */
    }
}

/* Blocks of a list; each is free and of the class. */
static uint64_t check_list(const struct weft__block *block, unsigned cls)
{
    uint64_t count = 0;
    for (; block;
         block = load_relaxed(&block->link)) { /* relaxed, here and below: nobody else is there */
        weft_assert((load_relaxed(&block->state) & WEFT__SLAB_FLAGS) == 0);
        weft_assert(weft__slab_chunk_of(block)->cls == cls);
        count++;
    }
    return count;
}

static uint64_t check_batches(const struct weft__block *batch, unsigned cls)
{
    uint64_t count = 0;
    for (; batch; batch = batch->batch) {
        count += check_list(batch, cls);
    }
    return count;
}

static uint64_t check_slab(const struct weft__slab *slab)
{
    uint64_t count = 0;
    for (unsigned cls = 0; cls < WEFT__SLAB_CLASSES; cls++) {
        count += check_list(slab->classes[cls].free, cls);
        count += check_batches(slab->classes[cls].batches, cls);
        count += check_batches(load_relaxed(&slab->returned[cls]), cls);
    }
    for (unsigned i = 0; i < WEFT__SLAB_BINS; i++) {
        uint64_t gathered = check_list(slab->bins[i].first, slab->bins[i].cls);
        weft_assert(gathered == slab->bins[i].count);
        count += gathered;
    }
    return count;
}

uint64_t weft__slab_group_check(struct weft__slab_group *group)
{
    uint64_t carved = 0;
    uint64_t free = 0;
    uint64_t used = 0;

    for (uint32_t i = 0; i < load_relaxed(&group->chunk_count); i++) {
        const struct weft__slab_chunk *chunk = weft__slab_chunk_at(group, i);
        if (chunk->cls != WEFT__SLAB_POOLED) carved += load_relaxed(&chunk->carved); /* relaxed: nobody else is there */
    }
    for (struct weft__slab *slab = load_relaxed(&group->slabs); slab; slab = slab->next) {
        struct weft__slab_counts counts = weft__slab_counts(slab);
        used += counts.allocated - counts.freed; /* below zero for some slabs; the sum wraps back */
        free += check_slab(slab);
    }
    weft_assert(carved == free + used);
    return used;
}

__attribute__((unused)) static int stop_at_live(void *ctx, void *block, uint64_t state)
{
    (void)ctx;
    (void)block;
    return (state & WEFT__SLAB_FLAGS) != 0;
}

/* Leaves in the directory only the first chunk of each span: the headers of the others go with it. */
static void forget_inner_chunks(struct weft__slab_group *group)
{
    for (uint32_t i = 0; i < load_relaxed(&group->chunk_count);
         i++) { /* relaxed, here and below: nobody else is there */
        if (weft__slab_chunk_at(group, i)->span_bytes) continue;
        struct weft__slab_leaf *leaf = load_relaxed(&group->top[i / WEFT__SLAB_LEAF]);
        store_relaxed(&leaf->slot[i % WEFT__SLAB_LEAF], NULL);
    }
}

void weft__slab_group_done(struct weft__slab_group *group, bool may_live)
{
    struct weft__slab_source *source = &group->source;

    weft_dassert(may_live || weft__slab_walk(group, stop_at_live, NULL) == 0);
    forget_inner_chunks(group);
    for (uint32_t i = 0; i < load_relaxed(&group->chunk_count);
         i++) { /* relaxed, here and below: nobody else is there */
        struct weft__slab_chunk *chunk = weft__slab_chunk_at(group, i);
        if (!chunk) continue;
        weft__slab_unpoison(chunk, chunk->span_bytes);
        source->unmap(source->ctx, chunk, chunk->span_bytes);
    }
    for (unsigned i = 0; i < WEFT__SLAB_TOP; i++) {
        struct weft__slab_leaf *leaf = load_relaxed(&group->top[i]);
        if (leaf) source->unmap(source->ctx, leaf, sizeof(*leaf));
    }
    *group = (struct weft__slab_group){.source = *source};
}
