/* SPDX-License-Identifier: MIT
 *
 * The slab at its bounds: a directory of four chunks with a handful of blocks each, compiled into this program with limits of its own.
 */
#define WEFT__SLAB_CHUNK_BYTES  512
#define WEFT__SLAB_SPAN_MAX     1024
#define WEFT__SLAB_BLOCK_MAX    80
#define WEFT__SLAB_TOP_BITS     1
#define WEFT__SLAB_LEAF_BITS    1
#define WEFT__SLAB_RETURN_BATCH 2
#define WEFT__SLAB_BINS         1
#define WEFT__SLAB_BORROW       1

#include "base/slab.c"
#include "base/slab_dir.c"

#include "slab_fixture.h"

#define MANY 64

/* As many as the directory can know; then NULL, and again blocks as soon as some are freed. */
static unsigned fill(struct weft__slab *slab, void **blocks)
{
    unsigned count = 0;
    while ((blocks[count] = make(slab, 64)))
        count++;
    return count;
}

TEST(slab_full_directory_is_an_answer_and_not_the_end)
{
    struct source source;
    struct weft__slab_group group;
    struct weft__slab slab;
    void *blocks[MANY];

    group_start(&group, &source);
    weft__slab_init(&slab, &group);
    unsigned count = fill(&slab, blocks);
    ASSERT_EQ(load_relaxed(&group.chunk_count), WEFT__SLAB_CHUNKS_MAX);
    ASSERT_EQ(weft__slab_group_check(&group), count);
    ASSERT_NULL(make(&slab, 80)); /* another class needs a chunk of its own */

    for (unsigned i = 0; i < count; i++)
        ASSERT_PTR(weft__slab_find(&group, weft__slab_id(blocks[i])), blocks[i]);
    for (unsigned i = 0; i < count; i++)
        drop(&slab, blocks[i]);
    ASSERT_EQ(fill(&slab, blocks), count);
    for (unsigned i = 0; i < count; i++)
        drop(&slab, blocks[i]);
    ASSERT_EQ(weft__slab_group_check(&group), 0);
    weft__slab_group_done(&group, false);
    ASSERT_EQ(source.mapped, 0);
}

/* Two owners use up the directory together; the span that one has mapped and cannot list is not lost. */
TEST(slab_full_directory_leaves_no_span_behind)
{
    struct source source;
    struct weft__slab_group group;
    struct weft__slab slabs[2];
    void *blocks[2][MANY];

    group_start(&group, &source);
    weft__slab_init(&slabs[0], &group);
    weft__slab_init(&slabs[1], &group);
    unsigned count = fill(&slabs[0], blocks[0]);
    uint32_t mapped = source.mapped;
    ASSERT_EQ(fill(&slabs[1], blocks[1]), 0);
    ASSERT_EQ(source.mapped, mapped);

    for (unsigned i = 0; i < count; i++)
        drop(&slabs[1], blocks[0][i]); /* the last ones stay in its bin */
    ASSERT_EQ(fill(&slabs[1], blocks[1]), count);
    for (unsigned i = 0; i < count; i++)
        drop(&slabs[1], blocks[1][i]);
    ASSERT_EQ(weft__slab_group_check(&group), 0);
    weft__slab_group_done(&group, false);
    ASSERT_EQ(source.mapped, 0);
}

/* The class changes with each free: the one bin is sent each time, and nothing is lost. */
TEST(slab_one_bin_serves_all_homes_and_classes)
{
    struct source source;
    struct weft__slab_group group;
    struct weft__slab slabs[2];
    void *blocks[8];

    group_start(&group, &source);
    weft__slab_init(&slabs[0], &group);
    weft__slab_init(&slabs[1], &group);
    for (int i = 0; i < 8; i++)
        ASSERT(blocks[i] = make(&slabs[0], i & 1 ? 64 : 80));
    for (int i = 0; i < 8; i++)
        drop(&slabs[1], blocks[i]);
    ASSERT_EQ(weft__slab_counts(&slabs[1]).batches_sent, 7);
    ASSERT_EQ(weft__slab_group_check(&group), 0);
    weft__slab_adopt(&slabs[0], &slabs[1]);
    ASSERT_EQ(weft__slab_group_check(&group), 0);
    weft__slab_group_done(&group, false);
    ASSERT_EQ(source.mapped, 0);
}

/* ---- chunks of pools ---- */

static _Alignas(WEFT__SLAB_CHUNK_BYTES) char ground[5][WEFT__SLAB_CHUNK_BYTES];

static void nothing_comes_back(struct weft__slab_pool *pool, struct weft__block *block)
{
    (void)pool;
    (void)block;
    ASSERT(false);
}

static struct weft__slab_pool test_pool = {.free = nothing_comes_back};

static int count_one(void *ctx, void *block, uint64_t state)
{
    (void)block;
    (void)state;
    ++*(unsigned *)ctx;
    return 0;
}

/* Four places: a fifth chunk finds none, unless one has left; ids of the one that left find nothing in the next. */
TEST(slab_pooled_chunks_use_places_again)
{
    struct source source;
    struct weft__slab_group group;
    struct weft__slab_chunk *chunk[5];
    unsigned seen = 0;
    group_start(&group, &source);
    for (int i = 0; i < 5; i++) {
        chunk[i] = weft__slab_chunk_pooled(ground[i], &group, &test_pool, 192, 2);
        ASSERT_EQ(weft__slab_chunk_enter(&group, chunk[i]), i < 4);
    }
    void *block = weft__slab_chunk_block(chunk[2], 1);
    born(block);
    uint64_t id = weft__slab_id(block);
    ASSERT_PTR(weft__slab_find(&group, id), block);
    ASSERT_OK(weft__slab_walk(&group, count_one, &seen));
    ASSERT_EQ(seen, 1);
    dead(block);
    weft__slab_chunk_leave(&group, chunk[2]);
    ASSERT(!weft__slab_is_read(&group));
    ASSERT_NULL(weft__slab_find(&group, id));
    chunk[4] = weft__slab_chunk_pooled(ground[4], &group, &test_pool, 192, 2);
    ASSERT(weft__slab_chunk_enter(&group, chunk[4]));
    ASSERT_EQ(chunk[4]->index, 2);
    block = weft__slab_chunk_block(chunk[4], 1);
    born(block);
    ASSERT_NULL(weft__slab_find(&group, id));
    ASSERT_PTR(weft__slab_find(&group, weft__slab_id(block)), block);
    dead(block);
    weft__slab_group_done(&group, false);
    ASSERT_EQ(source.mapped, 0);
}
