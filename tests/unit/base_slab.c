/* SPDX-License-Identifier: MIT
 *
 * The slab by one thread that plays all owners: lists, classes, ids, batches, borrowing, sharing, adoption, failure.
 */
#include "base/slab.h"

#include "slab_fixture.h"
#include "types.h"

#include <signal.h>
#include <string.h>

_Static_assert(offsetof(struct weft_task, state) == offsetof(struct weft__block, state), "state");
_Static_assert(offsetof(struct weft_task, link) == offsetof(struct weft__block, link), "link");

#define BYTES 80
#define MANY  5000

struct fixture {
    struct source source;
    struct weft__slab_group group;
    struct weft__slab a;
    struct weft__slab b;
    struct weft__slab c;
    void *blocks[MANY];
};

static void start(struct fixture *f)
{
    group_start(&f->group, &f->source);
    weft__slab_init(&f->a, &f->group);
    weft__slab_init(&f->b, &f->group);
    weft__slab_init(&f->c, &f->group);
}

/* All blocks are dead, none is lost, and every span goes back to the source. */
static void finish(struct fixture *f)
{
    ASSERT_EQ(weft__slab_group_check(&f->group), 0);
    weft__slab_group_done(&f->group, false);
    ASSERT_EQ(f->source.mapped, 0);
}

static void make_many(struct fixture *f, struct weft__slab *slab, int count)
{
    for (int i = 0; i < count; i++)
        ASSERT(f->blocks[i] = make(slab, BYTES));
}

static void drop_many(struct fixture *f, struct weft__slab *slab, int count)
{
    for (int i = 0; i < count; i++)
        drop(slab, f->blocks[i]);
}

static uint32_t chunks(const struct fixture *f)
{
    return load_relaxed(&f->group.chunk_count);
}

TEST(slab_reuses_the_last_freed_first_and_keeps_its_word)
{
    static struct fixture f;
    start(&f);
    void *one = make(&f.a, BYTES);
    void *two = make(&f.a, BYTES);
    ASSERT(one != two);
    ASSERT_EQ(state_of(one) >> 32, 0);

    drop(&f.a, one);
    drop(&f.a, two);
    ASSERT_PTR(weft__slab_alloc(&f.a, BYTES), two);
    ASSERT_PTR(weft__slab_alloc(&f.a, BYTES), one);
    ASSERT_EQ(state_of(one), UINT64_C(1) << 32);
    weft__slab_free(&f.a, one);
    weft__slab_free(&f.a, two);
    finish(&f);
}

/* Every size gets a block that is its own: each is filled with a pattern, and all patterns are there at the end. */
TEST(slab_gives_each_size_a_block_that_overlaps_no_other)
{
    static struct fixture f;
    start(&f);
    for (size_t bytes = 1; bytes <= WEFT__SLAB_BLOCK_MAX; bytes++) {
        unsigned char *p = make(&f.a, bytes);
        ASSERT(p);
        ASSERT_EQ((uintptr_t)p % WEFT__SLAB_STEP, 0);
        ASSERT(weft__slab_class_bytes(weft__slab_class_of(bytes)) >= bytes);
        if (bytes > WEFT__SLAB_BLOCK_MIN)
            ASSERT(weft__slab_class_bytes(weft__slab_class_of(bytes)) < bytes + WEFT__SLAB_STEP);
        if (bytes > 8) memset(p + 8, (int)(bytes % 251), bytes - 8);
        f.blocks[bytes] = p;
    }
    for (size_t bytes = 1; bytes <= WEFT__SLAB_BLOCK_MAX; bytes++) {
        unsigned char *p = f.blocks[bytes];
        size_t wrong = 0;
        for (size_t i = 8; i < bytes; i++)
            wrong += p[i] != bytes % 251;
        ASSERT_EQ(wrong, 0);
        ASSERT_EQ(state_of(p), state_for(p, 0));
        drop(&f.a, p);
    }
    ASSERT_EQ(chunks(&f), WEFT__SLAB_CLASSES);
    finish(&f);
}

TEST(slab_id_finds_its_block_until_it_is_freed)
{
    static struct fixture f;
    start(&f);
    void *block = make(&f.a, BYTES);
    uint64_t id = weft__slab_id(block);
    ASSERT(id != 0);
    ASSERT_PTR(weft__slab_find(&f.group, id), block);

    drop(&f.a, block);
    ASSERT_NULL(weft__slab_find(&f.group, id));
    ASSERT_NULL(weft__slab_find(&f.group, id + 1)); /* the next generation, not yet born */
    ASSERT_PTR(make(&f.a, BYTES), block);
    ASSERT_NULL(weft__slab_find(&f.group, id));
    ASSERT_PTR(weft__slab_find(&f.group, weft__slab_id(block)), block);
    drop(&f.a, block);
    finish(&f);
}

/* Any number may be asked for: an id from outside is not to be trusted. */
TEST(slab_finds_nothing_for_a_number_that_is_no_id)
{
    static struct fixture f;
    start(&f);
    make_many(&f, &f.a, MANY);
    uint64_t found = 0;
    uint64_t random = test_seed() | 1;
    for (int i = 0; i < MANY; i++)
        ASSERT_PTR(weft__slab_find(&f.group, weft__slab_id(f.blocks[i])), f.blocks[i]);
    for (uint64_t chunk = 0; chunk < chunks(&f) + 2u; chunk++) {
        for (uint64_t place = 0; place < 4096; place++)
            found += weft__slab_find(&f.group, chunk << 44 | place << 32) != NULL;
    }
    ASSERT_EQ(found, MANY);
    for (int i = 0; i < 100000; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        void *block = weft__slab_find(&f.group, random);
        if (block) ASSERT_EQ(weft__slab_id(block), random);
    }
    drop_many(&f, &f.a, MANY);
    finish(&f);
}

static int count_visit(void *ctx, void *block, uint64_t state)
{
    ASSERT_EQ(state, state_for(block, state >> 32));
    ++*(int *)ctx;
    return 0;
}

static int stop_at_third(void *ctx, void *block, uint64_t state)
{
    (void)block;
    (void)state;
    return ++*(int *)ctx == 3 ? -7 : 0;
}

TEST(slab_walk_visits_the_living_and_stops_when_told)
{
    static struct fixture f;
    start(&f);
    int visits = 0;
    ASSERT_EQ(weft__slab_walk(&f.group, count_visit, &visits), 0);
    ASSERT_EQ(visits, 0);

    make_many(&f, &f.a, MANY);
    for (int i = 0; i < MANY; i += 3)
        drop(&f.b, f.blocks[i]);
    void *unborn = weft__slab_alloc(&f.a, BYTES);
    ASSERT_EQ(weft__slab_walk(&f.group, count_visit, &visits), 0);
    ASSERT_EQ(visits, MANY - (MANY + 2) / 3);

    visits = 0;
    ASSERT_EQ(weft__slab_walk(&f.group, stop_at_third, &visits), -7);
    ASSERT_EQ(visits, 3);
    weft__slab_free(&f.a, unborn);
    for (int i = 0; i < MANY; i++) {
        if (i % 3) drop(&f.a, f.blocks[i]);
    }
    finish(&f);
}

TEST(slab_sends_foreign_blocks_home_a_batch_at_a_time)
{
    static struct fixture f;
    start(&f);
    unsigned cls = weft__slab_class_of(BYTES);
    make_many(&f, &f.a, WEFT__SLAB_RETURN_BATCH + 1);
    for (int i = 0; i < WEFT__SLAB_RETURN_BATCH - 1; i++)
        drop(&f.b, f.blocks[i]);
    ASSERT_NULL(load_relaxed(&f.a.returned[cls]));

    drop(&f.b, f.blocks[WEFT__SLAB_RETURN_BATCH - 1]);
    ASSERT(load_relaxed(&f.a.returned[cls]));
    drop(&f.b, f.blocks[WEFT__SLAB_RETURN_BATCH]);
    ASSERT_EQ(weft__slab_counts(&f.b).batches_sent, 1);
    weft__slab_flush(&f.b);
    ASSERT_EQ(weft__slab_counts(&f.b).batches_sent, 2);
    weft__slab_flush(&f.b);
    ASSERT_EQ(weft__slab_counts(&f.b).batches_sent, 2);

    /* All come back to their home before it carves another. */
    uint64_t carved = load_relaxed(&f.a.classes[cls].open->carved);
    make_many(&f, &f.a, WEFT__SLAB_RETURN_BATCH + 1);
    ASSERT_EQ(load_relaxed(&f.a.classes[cls].open->carved), carved);
    drop_many(&f, &f.a, WEFT__SLAB_RETURN_BATCH + 1);
    finish(&f);
}

/* A thread that frees blocks of two homes and two classes in turns still pays one CAS per batch. */
TEST(slab_gathers_for_several_homes_and_classes_at_once)
{
    static struct fixture f;
    start(&f);
    for (int i = 0; i < 4 * WEFT__SLAB_RETURN_BATCH; i++) {
        f.blocks[i] = make(i & 1 ? &f.a : &f.b, i & 2 ? 64 : 112);
    }
    drop_many(&f, &f.c, 4 * WEFT__SLAB_RETURN_BATCH);
    ASSERT_EQ(weft__slab_counts(&f.c).batches_sent, 4);
    ASSERT_EQ(f.c.gathered, 0);
    finish(&f);
}

TEST(slab_takes_a_block_from_a_thread_that_has_none)
{
    static struct fixture f;
    start(&f);
    void *block = make(&f.a, BYTES);
    dead(block);
    weft__slab_free_outside(block);
    ASSERT_EQ(weft__slab_group_check(&f.group), 0);
    ASSERT_PTR(make(&f.a, BYTES), block);
    dead(block);
    weft__slab_free_outside(block);
    finish(&f);
}

TEST(slab_takes_a_foreign_block_back_before_it_has_left)
{
    static struct fixture f;
    start(&f);
    void *block = make(&f.a, BYTES);
    drop(&f.b, block);
    for (int i = 0; i < 1000; i++) {
        ASSERT_PTR(make(&f.b, BYTES), block);
        drop(&f.b, block);
    }
    ASSERT_EQ(weft__slab_counts(&f.b).batches_sent, 0);
    ASSERT_EQ(weft__slab_counts(&f.b).chunks, 0);
    finish(&f);
}

/* A root on one worker makes its children, moves, and the next worker frees them and makes the next generation: memory stays what it was. */
TEST(slab_memory_does_not_grow_when_a_root_migrates)
{
    static struct fixture f;
    start(&f);
    struct weft__slab *workers[] = {&f.a, &f.b, &f.c};
    make_many(&f, &f.a, MANY);
    uint32_t before = chunks(&f);
    for (int round = 1; round < 30; round++) {
        struct weft__slab *now = workers[round % 3];
        drop_many(&f, now, MANY);
        make_many(&f, now, MANY);
        weft__slab_flush(now);
    }
    /* Blocks that a worker has freed to itself stay with it: each may hold one generation's worth of the part that was its own. */
    ASSERT_LE(chunks(&f), before + 1);
    drop_many(&f, &f.a, MANY);
    finish(&f);
}

TEST(slab_shares_its_free_blocks_when_its_owner_goes_idle)
{
    static struct fixture f;
    start(&f);
    make_many(&f, &f.a, MANY);
    drop_many(&f, &f.a, MANY);
    uint32_t before = chunks(&f);
    weft__slab_share(&f.a);
    ASSERT_EQ(weft__slab_group_check(&f.group), 0);
    make_many(&f, &f.b, MANY);
    ASSERT_EQ(chunks(&f), before);
    drop_many(&f, &f.b, MANY);
    weft__slab_share(&f.b);
    make_many(&f, &f.a, MANY);
    ASSERT_EQ(chunks(&f), before);
    drop_many(&f, &f.a, MANY);
    finish(&f);
}

/* An owner that has done nothing since is let go at once; one that has freed is not. */
TEST(slab_shares_again_what_was_freed_since)
{
    static struct fixture f;
    start(&f);
    make_many(&f, &f.a, MANY);
    weft__slab_share(&f.a); /* nothing is free yet */
    drop_many(&f, &f.a, MANY);
    uint32_t before = chunks(&f);
    weft__slab_share(&f.a);
    weft__slab_share(&f.a);
    ASSERT_EQ(weft__slab_group_check(&f.group), 0);
    make_many(&f, &f.b, MANY);
    ASSERT_EQ(chunks(&f), before);
    drop_many(&f, &f.b, MANY);
    finish(&f);
}

static unsigned batches_in(const struct weft__block *batch)
{
    unsigned count = 0;
    for (; batch; batch = batch->batch)
        count++;
    return count;
}

TEST(slab_borrows_a_bounded_part_of_what_a_peer_has)
{
    static struct fixture f;
    start(&f);
    enum { BATCHES = MANY / WEFT__SLAB_RETURN_BATCH };
    unsigned cls = weft__slab_class_of(BYTES);
    make_many(&f, &f.a, BATCHES * WEFT__SLAB_RETURN_BATCH);
    drop_many(&f, &f.b, BATCHES * WEFT__SLAB_RETURN_BATCH);
    ASSERT_EQ(batches_in(load_relaxed(&f.a.returned[cls])), BATCHES);

    void *block = make(&f.c, BYTES);
    ASSERT_EQ(batches_in(load_relaxed(&f.a.returned[cls])), BATCHES - WEFT__SLAB_BORROW);
    ASSERT_EQ(batches_in(f.c.classes[cls].batches), WEFT__SLAB_BORROW - 1);
    drop(&f.c, block);
    finish(&f);
}

/* Spans double from one chunk to a huge page and stay there; the last ones are aligned for it. */
TEST(slab_asks_for_spans_in_doubling_sizes)
{
    static struct fixture f;
    start(&f);
    void *first = NULL;
    while (weft__slab_counts(&f.a).chunks < 3 * WEFT__SLAB_SPAN_MAX / WEFT__SLAB_CHUNK_BYTES) {
        struct weft__block *block = weft__slab_alloc(&f.a, WEFT__SLAB_BLOCK_MAX);
        *(void **)(block + 1) = first;
        first = block;
    }
    size_t expected = WEFT__SLAB_CHUNK_BYTES;
    for (uint32_t i = 0; i < f.source.maps; i++) {
        if (f.source.log_bytes[i] == sizeof(struct weft__slab_leaf)) continue;
        ASSERT_EQ(f.source.log_bytes[i], expected);
        ASSERT_EQ(f.source.log_align[i],
                  expected == WEFT__SLAB_SPAN_MAX ? expected : WEFT__SLAB_CHUNK_BYTES);
        if (expected < WEFT__SLAB_SPAN_MAX) expected *= 2;
    }
    ASSERT_EQ(expected, WEFT__SLAB_SPAN_MAX);
    while (first) {
        void *next = *(void **)((struct weft__block *)first + 1);
        weft__slab_free(&f.a, first);
        first = next;
    }
    finish(&f);
}

/* Each map fails in its turn: the answer is NULL, nothing is lost, and the next try works. */
TEST(slab_survives_each_failure_of_its_source)
{
    static struct fixture f;
    for (uint32_t nth = 1; nth <= 8; nth++) {
        start(&f);
        f.source.fail_from = nth;
        f.source.fail_count =
            2; /* a large span, and the small one instead; or a small one, twice */
        unsigned failures = 0;
        for (int i = 0; i < MANY; i++) {
            void *block = make(&f.a, WEFT__SLAB_BLOCK_MAX);
            for (; !block; block = make(&f.a, WEFT__SLAB_BLOCK_MAX)) {
                failures++;
                ASSERT_EQ(weft__slab_group_check(&f.group), i);
            }
            f.blocks[i] = block;
        }
        ASSERT(failures == 1 || failures == 2);
        drop_many(&f, &f.a, MANY);
        finish(&f);
    }
}

TEST(slab_makes_do_with_small_spans)
{
    static struct fixture f;
    start(&f);
    f.source.fail_above = WEFT__SLAB_CHUNK_BYTES;
    make_many(&f, &f.a, MANY);
    drop_many(&f, &f.a, MANY);
    finish(&f);
}

/* The heir gets all that the guest had: free blocks, gathered ones, the rest of its chunk and of its span. */
TEST(slab_adoption_loses_no_memory)
{
    static struct fixture f;
    start(&f);
    make_many(&f, &f.a, 10);
    drop_many(&f, &f.b, 10); /* in b's bins, home a */
    while (weft__slab_counts(&f.b).chunks < 2)
        ASSERT(weft__slab_alloc(&f.b, BYTES));
    uint64_t used = weft__slab_group_check(&f.group);
    weft__slab_adopt(&f.c, &f.b);
    ASSERT_EQ(weft__slab_group_check(&f.group), used);
    ASSERT_NULL(f.b.home_chunks);
    ASSERT_EQ(f.b.gathered, 0);

    /* The guest's span of two chunks has one left; c carves the open chunk, then that one, and maps nothing. */
    uint32_t maps = f.source.maps;
    while (weft__slab_counts(&f.c).chunks < 1)
        ASSERT(weft__slab_alloc(&f.c, BYTES));
    ASSERT_EQ(f.source.maps, maps);
    weft__slab_group_done(&f.group, true);
    ASSERT_EQ(f.source.mapped, 0);
}

TEST(slab_adoption_makes_the_heir_the_home)
{
    static struct fixture f;
    start(&f);
    unsigned cls = weft__slab_class_of(BYTES);
    make_many(&f, &f.b, 40);
    for (int i = 0; i < 5; i++)
        drop(&f.a, f.blocks[i]); /* on their way to b */
    weft__slab_adopt(&f.c, &f.b);
    for (int i = 5; i < 10; i++)
        drop(&f.a, f.blocks[i]); /* on their way to c */
    for (int i = 10; i < 40; i++)
        drop(&f.c, f.blocks[i]); /* c's own */
    ASSERT_EQ(weft__slab_counts(&f.c).batches_sent, 0);
    weft__slab_flush(&f.a);
    ASSERT_EQ(batches_in(load_relaxed(&f.b.returned[cls])), 1);
    ASSERT_EQ(batches_in(load_relaxed(&f.c.returned[cls])), 1);

    /* What came too late to the guest is not lost: whoever takes it over finds it, here another thread that uses it as its own slab. */
    uint32_t before = chunks(&f);
    for (int i = 0; i < 5; i++)
        f.blocks[i] = make(&f.b, BYTES);
    ASSERT_EQ(chunks(&f), before);
    ASSERT_NULL(load_relaxed(&f.b.returned[cls]));
    drop_many(&f, &f.b, 5);
    weft__slab_adopt(&f.a, &f.b);
    finish(&f);
}

TEST(slab_group_done_may_leave_the_living_if_told)
{
    static struct fixture f;
    start(&f);
    make_many(&f, &f.a, 10);
    weft__slab_group_done(&f.group, true);
    ASSERT_EQ(f.source.mapped, 0);
}

#if defined(WEFT_DEBUG)
TEST_WITH(slab_group_done_refuses_the_living, .timeout_s = 60, .signal = SIGABRT)
{
    static struct fixture f;
    start(&f);
    make_many(&f, &f.a, 10);
    weft__slab_group_done(&f.group, false);
}

TEST_WITH(slab_free_refuses_a_live_block, .timeout_s = 60, .signal = SIGABRT)
{
    static struct fixture f;
    start(&f);
    weft__slab_free(&f.a, make(&f.a, BYTES));
}
#endif

TEST_WITH(slab_alloc_refuses_more_than_a_block, .timeout_s = 60, .signal = SIGABRT)
{
    static struct fixture f;
    start(&f);
    weft__slab_alloc(&f.a, WEFT__SLAB_BLOCK_MAX + 1);
}
