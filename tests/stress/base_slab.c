/* SPDX-License-Identifier: MIT
 *
 * The slab under real threads: owners that hand blocks to each other, walkers beside them, guests that come and go.
 *
 * Blocks change hands through a table of slots: a thread puts a block into a random slot by an exchange and gets what was there, which it frees or
 * keeps. A block in use holds the mark of its user, so that a block handed out twice is seen at once.
 */
#include "base/slab.h"

#include "slab_fixture.h"
#include "sys/lock.h"

#include <pthread.h>
#include <string.h>

#define OWNERS_MAX 4
#define SLOTS      1024
#define HELD       64
#define GUESTS     3

struct shared {
    struct source source;
    struct weft__slab_group group;
    struct weft__slab slabs[OWNERS_MAX];
    struct weft__block *_Atomic slots[SLOTS]; /* [slot]: exchange on both sides */
    _Atomic uint64_t ids[SLOTS];              /* ids that were right at some time */
    _Atomic bool stop;
    _Atomic uint32_t walks;
    uint64_t rounds;
};

struct owner {
    struct shared *shared;
    struct weft__slab *slab;
    uint64_t random;
    pthread_t thread;
};

static uint64_t next_random(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *random >> 33;
}

static void fatal_if(bool bad)
{
    if (bad) abort(); /* Check's asserts are for the test's own thread */
}

/* The word after the slab's part tells whose the block is: its own address while in use, zero while free. */
static _Atomic uintptr_t *mark_of(void *block)
{
    return (_Atomic uintptr_t *)((struct weft__block *)block + 1);
}

static struct weft__block *take(struct weft__slab *slab, uint64_t random)
{
    static const size_t sizes[] = {64, 80, 128, 400};
    struct weft__block *block = weft__slab_alloc(slab, sizes[random % 4]);
    fatal_if(!block);
    fatal_if(state_of(block) & WEFT__SLAB_FLAGS);
    fatal_if(exchange_relaxed(mark_of(block), (uintptr_t)block) ==
             (uintptr_t)block); /* relaxed: the hand-over orders it */
    born(block);
    return block;
}

/* Without a slab: as a thread that has none. */
static void give(struct weft__slab *slab, struct weft__block *block)
{
    fatal_if(exchange_relaxed(mark_of(block), 0) !=
             (uintptr_t)block); /* relaxed: the hand-over orders it */
    fatal_if(state_of(block) != state_for(block, state_of(block) >> 32));
    dead(block);
    if (slab) {
        weft__slab_free(slab, block);
    } else {
        weft__slab_free_outside(block);
    }
}

/* One step: make a block, swap it with what lies in a slot, free that. Now and then flush, share, or put NULL. */
static void step(struct shared *s, struct weft__slab *slab, uint64_t *random)
{
    uint64_t dice = next_random(random);
    struct weft__block *block = dice % 16 ? take(slab, dice >> 8) : NULL;
    if (block) store_relaxed(&s->ids[dice % SLOTS], weft__slab_id(block)); /* relaxed: a number */
    block =
        exchange_acq_rel(&s->slots[next_random(random) % SLOTS], block); /* [slot] with itself */
    if (block) give(dice % 64 == 3 ? NULL : slab, block);
    if (dice % 1024 == 1) weft__slab_flush(slab);
    if (dice % 4096 == 2) weft__slab_share(slab);
}

static void *own(void *arg)
{
    struct owner *o = arg;
    struct weft__block *held[HELD] = {0};
    for (uint64_t i = 0; i < o->shared->rounds; i++) {
        struct weft__block **mine = &held[next_random(&o->random) % HELD];
        step(o->shared, o->slab, &o->random);
        if (*mine) give(o->slab, *mine);
        *mine = take(o->slab, next_random(&o->random));
    }
    for (int i = 0; i < HELD; i++) {
        if (held[i]) give(o->slab, held[i]);
    }
    weft__slab_flush(o->slab);
    return NULL;
}

static struct shared *shared_start(unsigned owners, uint64_t rounds)
{
    static struct shared s;
    memset(&s, 0, sizeof(s));
    s.rounds = rounds;
    group_start(&s.group, &s.source);
    for (unsigned i = 0; i < owners; i++)
        weft__slab_init(&s.slabs[i], &s.group);
    return &s;
}

static void owners_run(struct shared *s, struct owner *owners, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        owners[i] = (struct owner){.shared = s, .slab = &s->slabs[i], .random = test_seed() + i};
        ASSERT_OK(pthread_create(&owners[i].thread, NULL, own, &owners[i]));
    }
}

static void owners_join(struct owner *owners, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        ASSERT_OK(pthread_join(owners[i].thread, NULL));
}

static void shared_finish(struct shared *s)
{
    for (int i = 0; i < SLOTS; i++) {
        struct weft__block *block = load_acquire(&s->slots[i]); /* [slot] */
        if (block) give(&s->slabs[0], block);
    }
    ASSERT_EQ(weft__slab_group_check(&s->group), 0);
    weft__slab_group_done(&s->group, false);
    ASSERT_EQ(s->source.mapped, 0);
}

/* No block is handed out twice and none is lost, whoever frees it. */
TEST_WITH(slab_hands_each_block_to_one_user_at_a_time, .timeout_s = 120)
{
    struct owner owners[OWNERS_MAX];
    struct shared *s = shared_start(OWNERS_MAX, test_scaled(60000));
    owners_run(s, owners, OWNERS_MAX);
    owners_join(owners, OWNERS_MAX);
    shared_finish(s);
}

/* ---- a walker beside them -------------------------------------------------------------------------------------------------------------- */

#define PINNED 500

struct walker {
    struct shared *shared;
    struct weft__block *pinned[PINNED]; /* live all the time */
    uint32_t *generations;              /* last seen, by chunk and place */
    unsigned pinned_seen;
    pthread_t thread;
};

#define CHUNKS_SEEN 64

static int check_visit(void *ctx, void *block, uint64_t state)
{
    struct walker *w = ctx;
    struct weft__slab_chunk *chunk = weft__slab_chunk_of(block);
    uint32_t place = (uint32_t)((uintptr_t)block % WEFT__SLAB_CHUNK_BYTES / WEFT__SLAB_STEP);
    uint32_t generation = (uint32_t)(state >> 32);

    fatal_if(state != state_for(block, generation));
    if (chunk->index < CHUNKS_SEEN) { /* a block's generations never go back */
        uint32_t *seen = &w->generations[chunk->index * 4096 + place];
        fatal_if(generation < *seen);
        *seen = generation;
    }
    if (chunk->block_bytes == 96) w->pinned_seen++;
    return 0;
}

static void check_find(struct walker *w, uint64_t id)
{
    struct weft__block *block = weft__slab_find(&w->shared->group, id);
    if (!block) return;
    uint64_t state = load_acquire(&block->state); /* [slab-state]: it may be a later one by now */
    bool good = state == state_for(block, state >> 32) || (state & UINT32_MAX) == 0;
    fatal_if(!good);
    fatal_if(state >> 32 < (id & UINT32_MAX));
}

static void *walk(void *arg)
{
    struct walker *w = arg;
    struct shared *s = w->shared;
    do {
        w->pinned_seen = 0;
        fatal_if(weft__slab_walk(&s->group, check_visit, w) != 0);
        fatal_if(w->pinned_seen != PINNED);
        for (int i = 0; i < SLOTS; i++)
            check_find(w, load_relaxed(&s->ids[i])); /* relaxed: a number */
        for (int i = 0; i < PINNED; i++)
            fatal_if(weft__slab_find(&s->group, weft__slab_id(w->pinned[i])) != w->pinned[i]);
        fetch_add_relaxed(&s->walks, 1); /* relaxed: a count */
    } while (!load_relaxed(&s->stop)); /* relaxed: seen sooner or later */
    return NULL;
}

/* Three owners; the walker checks that every word it sees is one that was written, that generations grow, and that it meets each of the blocks
 * that live throughout exactly once. */
TEST_WITH(slab_walk_sees_only_what_was_written, .timeout_s = 120)
{
    struct owner owners[3];
    struct shared *s = shared_start(4, test_scaled(60000));
    struct walker w = {.shared = s, .generations = calloc(CHUNKS_SEEN * 4096, sizeof(uint32_t))};

    ASSERT(w.generations);
    for (int i = 0; i < PINNED; i++)
        ASSERT(w.pinned[i] = make(&s->slabs[3], 96));
    ASSERT_OK(pthread_create(&w.thread, NULL, walk, &w));
    owners_run(s, owners, 3);
    owners_join(owners, 3);
    store_relaxed(&s->stop, true); /* relaxed: the join orders what matters */
    ASSERT_OK(pthread_join(w.thread, NULL));
    ASSERT_GE(s->walks, 1);
    for (int i = 0; i < PINNED; i++)
        drop(&s->slabs[0], w.pinned[i]);
    free(w.generations);
    shared_finish(s);
}

/* ---- a root that migrates -------------------------------------------------------------------------------------------------------------- */

#define CHILDREN 4000

struct relay {
    struct shared *shared;
    _Atomic uint32_t turn; /* [turn]: whose move it is, counted up; hands over the children */
    uint32_t turns;
    struct weft__block *children[CHILDREN];
};

struct runner {
    struct relay *relay;
    uint32_t number;
    pthread_t thread;
};

static void turn_wait(struct relay *r, uint32_t number)
{
    for (;;) {
        uint32_t turn = load_acquire(&r->turn); /* [turn] with turn_pass */
        if (turn % 2 == number || turn >= r->turns) return;
        (void)weft__futex_wait(&r->turn, turn, WEFT__NEVER);
    }
}

static void turn_pass(struct relay *r)
{
    store_release(&r->turn,
                  load_relaxed(&r->turn) +
                      1); /* [turn] with turn_wait; relaxed: only the one whose turn it is writes */
    (void)weft__futex_wake(&r->turn, 1);
}

/* Frees what the other made and makes as many of its own: each generation could be taken from what has just been freed. */
static void *run(void *arg)
{
    struct runner *me = arg;
    struct relay *r = me->relay;
    struct weft__slab *slab = &r->shared->slabs[me->number];
    for (;;) {
        turn_wait(r, me->number);
        if (load_relaxed(&r->turn) >= r->turns)
            return NULL; /* relaxed: nobody writes any more, or this thread does */
        for (int i = 0; i < CHILDREN; i++) {
            if (r->children[i]) give(slab, r->children[i]);
        }
        for (int i = 0; i < CHILDREN; i++)
            r->children[i] = take(slab, 1);
        weft__slab_flush(slab);
        turn_pass(r);
    }
}

TEST_WITH(slab_memory_of_a_root_that_migrates_is_bounded, .timeout_s = 120)
{
    static struct relay r;
    struct runner runners[2];
    r = (struct relay){.shared = shared_start(2, 0), .turns = (uint32_t)test_scaled(400) + 4};

    for (uint32_t i = 0; i < 2; i++) {
        runners[i] = (struct runner){.relay = &r, .number = i};
        ASSERT_OK(pthread_create(&runners[i].thread, NULL, run, &runners[i]));
    }
    for (uint32_t i = 0; i < 2; i++)
        ASSERT_OK(pthread_join(runners[i].thread, NULL));
    uint32_t needed = CHILDREN / (WEFT__SLAB_CHUNK_BYTES / 80 - 13) + 1;
    ASSERT_LE(load_relaxed(&r.shared->group.chunk_count), needed + 1);
    for (int i = 0; i < CHILDREN; i++)
        give(&r.shared->slabs[0], r.children[i]);
    shared_finish(r.shared);
}

/* ---- guests that come and go ----------------------------------------------------------------------------------------------------------- */

struct guest {
    struct shared *shared;
    struct weft__slab slab;
    uint64_t random;
    pthread_t thread;
};

static void *visit_group(void *arg)
{
    struct guest *g = arg;
    for (uint64_t i = 0; i < g->shared->rounds; i++)
        step(g->shared, &g->slab, &g->random);
    return NULL; /* without a flush: what it has gathered is adopted too */
}

/* Foreign threads work beside an owner, end, are adopted by it while others still free blocks of theirs, and their slabs serve the next ones. */
TEST_WITH(slab_adopts_guests_while_others_free, .timeout_s = 120)
{
    static struct guest guests[GUESTS];
    struct shared *s = shared_start(2, test_scaled(1000));
    uint64_t random = test_seed() ^ 0x9e37;

    for (int i = 0; i < GUESTS; i++) {
        memset(&guests[i], 0, sizeof(guests[i]));
        guests[i].shared = s;
        weft__slab_init(&guests[i].slab, &s->group);
    }
    for (uint64_t round = 0; round < test_scaled(60) + 2; round++) {
        struct guest *g = &guests[round % GUESTS];
        if (round >= GUESTS) {
            ASSERT_OK(pthread_join(g->thread, NULL));
            weft__slab_adopt(&s->slabs[round % 2], &g->slab);
        }
        g->random = test_seed() + round;
        ASSERT_OK(pthread_create(&g->thread, NULL, visit_group, g));
        for (int i = 0; i < 500; i++)
            step(s, &s->slabs[round % 2], &random);
    }
    for (int i = 0; i < GUESTS; i++) {
        ASSERT_OK(pthread_join(guests[i].thread, NULL));
        weft__slab_adopt(&s->slabs[0], &guests[i].slab);
    }
    shared_finish(s);
}
