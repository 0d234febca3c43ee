/* SPDX-License-Identifier: MIT
 *
 * The slab, proven at one class, three blocks a chunk: a block has one user at a time, who sees that the one before is done with it, whichever way it
 * came; and whoever walks or finds sees only what was published.
 *
 * The user of a block writes plain memory in it: two users at once, or a new one not ordered after the old, is a race.
 */
#define WEFT__SLAB_BLOCK_MAX   64
#define WEFT__SLAB_CHUNK_BYTES 256
#define WEFT__SLAB_SPAN_MAX    256
#define WEFT__SLAB_TOP_BITS    1
#define WEFT__SLAB_LEAF_BITS   1
#define WEFT__SLAB_BINS        1
#define WEFT__SLAB_BORROW      1
#ifndef WEFT__SLAB_RETURN_BATCH
#define WEFT__SLAB_RETURN_BATCH 1
#endif
#include "base/slab.c"
#include "base/slab_dir.c"

#include <string.h>

struct item {
    struct weft__block block;
    void *owner;                    /* plain: the current user's mark */
};

static struct weft__slab_group group;
static struct weft__slab a, b, c, d;

/* ---- a source of memory: an arena, zeroed before each execution ---- */

static _Alignas(256) char arena[6][256];
static unsigned arena_used;

static void *map(void *ctx, size_t bytes, size_t align)
{
    (void)ctx;
    (void)align;
    model_assert(bytes <= 256);
    return arena_used < 6 ? arena[arena_used++] : NULL;
}

static void unmap(void *ctx, void *memory, size_t bytes)
{
    (void)ctx;
    (void)memory;
    (void)bytes;
}

/* ---- broken twins ---- */

enum { HONEST, POPS_ONE_BY_CAS, LOOKS_INSTEAD_OF_EXCHANGE, FREES_TO_ITSELF };

/* Takes one batch off the stack: between the look at the top and the CAS it may have been taken, used, and come back, with another one below. */
static bool pop_one(struct weft__slab *s)
{
    struct weft__block *top = load_acquire(&s->returned[0]);
    while (top) {
        struct weft__block *below = plain_read(&top->batch);
        if (!cas_acq_rel(&s->returned[0], &top, below)) continue;
        plain_write(&top->batch, NULL);
        store_relaxed(&top->link, NULL);
        s->classes[0].batches = top;
        return begin_batch(&s->classes[0]);
    }
    return false;
}

static bool take_by_store(struct weft__slab *s)
{
    struct weft__block *all = load_acquire(&s->returned[0]);
    if (!all) return false;
    store_release(&s->returned[0], NULL);
    s->classes[0].batches = all;
    return begin_batch(&s->classes[0]);
}

static void refill_brokenly(struct weft__slab *s)
{
    if (s->classes[0].free || s->classes[0].batches) return;
    if (model_mutant == POPS_ONE_BY_CAS) (void)pop_one(s);
    if (model_mutant == LOOKS_INSTEAD_OF_EXCHANGE) (void)take_by_store(s);
}

/* ---- users ---- */

static struct item *get(struct weft__slab *s)
{
    refill_brokenly(s);
    struct item *i = weft__slab_alloc(s, sizeof(*i));
    model_assert(i);
    plain_write(&i->owner, s);
    return i;
}

static void put(struct weft__slab *s, struct item *i)
{
    plain_write(&i->owner, NULL);
    if (model_mutant == FREES_TO_ITSELF) {
        struct weft__slab *home = load_relaxed(&weft__slab_chunk_of(i)->home);
        store_relaxed(&i->block.link, home->classes[0].free); /* the home's own list, which has no lock */
        plain_write(&i->block.batch, NULL);
        home->classes[0].free = &i->block;
        return;
    }
    weft__slab_free(s, i);
}

static struct item *items[3];
static bool c_joined;
static bool d_joined;

/* The third slab joins late, in the cases that are about it. */
static void c_joins(void)
{
    weft__slab_init(&c, &group);
    c_joined = true;
}

static void begin(void)
{
    static const struct weft__slab_source source = {.map = map, .unmap = unmap};
    memset(arena, 0, sizeof(arena));
    arena_used = 0;
    weft__slab_group_init(&group, &source);
    weft__slab_init(&a, &group);
    weft__slab_init(&b, &group);
    c_joined = false;
    d_joined = false;
    for (int i = 0; i < 3; i++) items[i] = get(&a); /* the chunk is full */
}

static void end(uint64_t in_use)
{
    model_join();
    weft__slab_flush(&a);
    weft__slab_flush(&b);
    if (c_joined) weft__slab_flush(&c);
    if (d_joined) weft__slab_flush(&d);
    uint64_t used = weft__slab_group_check(&group);
    model_assert(used == in_use);
}

static void b_frees_two(void *arg)
{
    (void)arg;
    put(&b, items[0]);
    put(&b, items[1]);
}

static void b_frees_one(void *arg)
{
    (void)arg;
    put(&b, items[0]);
}

static void c_frees_one(void *arg)
{
    (void)arg;
    put(&c, items[1]);
}

static void c_gets_one(void *arg)
{
    (void)arg;
    (void)get(&c);
}

static void b_frees_and_gets(void *arg)
{
    (void)arg;
    put(&b, items[0]);
    put(&b, items[1]);
    struct item *i = get(&b);
    put(&b, i);
}

/* ---- the cases ---- */

static void foreign_free_against_alloc(void)
{
    begin();
    model_thread(b_frees_two, NULL);
    (void)get(&a);
    (void)get(&a);
    end(3);
}

static void two_foreign_frees_against_alloc(void)
{
    begin();
    c_joins();
    model_thread(b_frees_one, NULL);
    model_thread(c_frees_one, NULL);
    (void)get(&a);
    (void)get(&a);
    end(3);
}

static void borrower_against_owner(void)
{
    begin();
    c_joins();
    model_thread(b_frees_two, NULL);
    model_thread(c_gets_one, NULL);
    (void)get(&a);
    end(3);
}

static void free_and_get_against_owner(void)
{
    begin();
    model_thread(b_frees_and_gets, NULL);
    (void)get(&a);
    put(&a, get(&a));
    end(2);
}

/* A guest's thread has ended; its blocks are adopted while somebody frees one of them. */
static void adoption_against_foreign_free(void)
{
    begin();
    model_thread(b_frees_one, NULL);
    c_joins();
    weft__slab_adopt(&c, &a);
    (void)get(&c);
    end(3);
}

static void c_joins_and_gets(void *arg)
{
    (void)arg;
    c_joins();
    (void)get(&c);
}

static void d_joins_and_gets(void *arg)
{
    (void)arg;
    weft__slab_init(&d, &group);
    d_joined = true;
    (void)get(&d);
}

static void b_gets_one(void *arg)
{
    (void)arg;
    (void)get(&b);
}

/* A slab joins the group while others look for peers to borrow from. */
static void a_slab_joins(void)
{
    begin();
    model_thread(c_joins_and_gets, NULL);
    model_thread(b_gets_one, NULL);
    end(5);
}

/* Two join at once: the younger looks at the older one. */
static void two_slabs_join(void)
{
    begin();
    model_thread(c_joins_and_gets, NULL);
    model_thread(d_joins_and_gets, NULL);
    end(5);
}

/* The owner lends its own free blocks; a borrower comes after all that the owner did with them. */
static void share_against_a_borrower(void)
{
    begin();
    put(&a, items[0]);
    model_thread(b_gets_one, NULL);
    put(&a, items[1]);
    weft__slab_share(&a);
    end(2);
}

/* ---- the registry ---- */

#define LIVE (UINT64_C(7) << 32 | 1)

static unsigned visited;

static int visit(void *ctx, void *block, uint64_t state)
{
    (void)ctx;
    model_assert(state == LIVE);
    model_assert(plain_read(&((struct item *)block)->owner) == &b);
    visited++;
    return 0;
}

static void walker(void *arg)
{
    (void)arg;
    (void)weft__slab_walk(&group, visit, NULL);
}

static uint64_t made_id;

static void finder(void *arg)
{
    (void)arg;
    struct item *i = weft__slab_find(&group, (uint64_t)1 << 44 | (uint64_t)4 << 32 | 7); /* the second chunk's first block */
    if (i) model_assert(plain_read(&i->owner) == &b);
}

static void walk_against_a_new_chunk(void)
{
    begin();
    visited = 0;
    model_thread(walker, NULL);
    model_thread(finder, NULL);
    struct item *i = get(&b); /* from a chunk that is made now */
    store_release(&i->block.state, LIVE); /* [slab-state] with walk and find, as the task's state word does it */
    made_id = weft__slab_id(i);
    model_assert(made_id == ((uint64_t)1 << 44 | (uint64_t)4 << 32 | 7));
    end(4);
    model_assert(visited <= 1);
    visited = 0;
    (void)weft__slab_walk(&group, visit, NULL);
    model_assert(visited == 1);
}

/* ---- a pool's chunk leaves ---- */

static _Alignas(256) char ground[256];

static void pool_free(struct weft__slab_pool *pool, struct weft__block *block)
{
    (void)pool;
    (void)block;
    model_assert(false); /* nothing is freed here */
}

static void finder_in_the_pool(void *arg)
{
    (void)arg;
    struct item *i = weft__slab_find(&group, (uint64_t)1 << 44 | (uint64_t)4 << 32);
    model_assert(!i); /* never lived */
}

/* Whoever is told that nobody reads any more writes to the memory: a reader that is still there is a race. */
static void chunk_leaves_against_readers(void)
{
    static struct weft__slab_pool pool = {.free = pool_free};
    begin();
    struct weft__slab_chunk *chunk = weft__slab_chunk_pooled(ground, &group, &pool, 64, 1);
    model_assert(weft__slab_chunk_enter(&group, chunk));
    visited = 0;
    model_thread(walker, NULL);
    model_thread(finder_in_the_pool, NULL);
    weft__slab_chunk_leave(&group, chunk);
    if (!weft__slab_is_read(&group)) plain_write(&chunk->first, 0);
    model_join();
    model_assert(!weft__slab_is_read(&group));
    model_assert(visited == 0);
}

static const struct model_case cases[] = {
    {.name = "slab: a pool's chunk leaves while others read", .run = chunk_leaves_against_readers, .preemptions = 2, .weaken = true},
    {.name = "slab: foreign frees against the owner's alloc", .run = foreign_free_against_alloc, .unbounded = true, .weaken = true},
    {.name = "slab: two who free against the owner's alloc", .run = two_foreign_frees_against_alloc, .unbounded = true, .weaken = true},
    {.name = "slab: a borrower against the owner", .run = borrower_against_owner, .preemptions = 2, .weaken = true},
    {.name = "slab: free and get against the owner", .run = free_and_get_against_owner, .preemptions = 3, .weaken = true},
    {.name = "slab: adoption against a foreign free", .run = adoption_against_foreign_free, .unbounded = true, .weaken = true},
    {.name = "slab: another slab joins meanwhile", .run = a_slab_joins, .preemptions = 2, .weaken = true},
    {.name = "slab: two slabs join at once", .run = two_slabs_join, .preemptions = 2, .weaken = true},
    {.name = "slab: the owner shares, another borrows", .run = share_against_a_borrower, .unbounded = true, .weaken = true},
    {.name = "slab: walk and find against a new chunk", .run = walk_against_a_new_chunk, .preemptions = 2, .weaken = true},
    {.name = "mutant: takes one batch by CAS", .run = borrower_against_owner, .preemptions = 2, .mutant = POPS_ONE_BY_CAS, .must_fail = true},
    {.name = "mutant: takes all by a store", .run = foreign_free_against_alloc, .unbounded = true, .mutant = LOOKS_INSTEAD_OF_EXCHANGE, .must_fail = true},
    {.name = "mutant: frees into the home's own list", .run = foreign_free_against_alloc, .unbounded = true, .mutant = FREES_TO_ITSELF, .must_fail = true},
};

static const struct model_spare spare[] = {
    {"base/slab_dir.c", "load_acquire(&group->top", "a leaf comes zeroed from a source that nobody else has seen; kept for sources that zero used memory"},
    {"base/slab_dir.c", "load_acquire(at)", "as above"},
    {"base/slab_dir.c", "cas_acq_rel(at, leaf)", "as above"},
    {NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
    return model_main_with(argc, argv, cases, MODEL_COUNT(cases), spare);
}
