/* SPDX-License-Identifier: MIT
 *
 * slab - what happens when the owner's free list is dry or the block is somebody else's. The idea is in slab.h.
 *
 * A dry list is filled from what is nearest, and fresh memory comes last:
 *     batches -> bins -> returned (1 exchange) -> open chunk -> peers' returned (1 exchange and 1 CAS) -> rest of the span
 *     -> what a guest left whose thread has ended -> the source
 * Borrowing stands before mapping because of a root that moves to another worker: its children's blocks go home to the old worker, which has no
 * use for them, while the new one would map as much again. A borrowed block keeps its home, and goes there when it is freed; if it is wanted
 * before its batch is full, the bin gives it back, so that a pair of alloc and free stays in the cache and off the peer's line.
 *
 * Returned stacks: pushed by CAS, only ever taken whole. That is why there is no ABA problem (a push needs nothing but that the top is still what it
 * linked to) and why nobody follows a link that another thread may change.
 */
#include "base/slab_dir.h"

#include <stddef.h>

/* Half of what a task costs that ends far from home was a look at its home's number, on a line that home writes with each block. */
_Static_assert(offsetof(struct weft__slab, group) % WEFT__CACHE_LINE == 0 &&
                   offsetof(struct weft__slab, group) > offsetof(struct weft__slab, freed_outside),
               "what is constant lies on a line that nobody writes");

/* Chunks of an adopted span that nobody has used; lies in the first of them. */
struct weft__slab_rest {
    struct weft__slab_rest *next;
    char *end;
};

/* ---- chunks and spans ------------------------------------------------------------------------------------------------------------------ */

/* A span of the wished size, or of one chunk where that much is not to be had. */
static bool span_map(struct weft__slab *slab)
{
    const struct weft__slab_source *source = &slab->group->source;
    size_t bytes = slab->span_bytes;
    size_t align = bytes == WEFT__SLAB_SPAN_MAX ? WEFT__SLAB_SPAN_MAX : WEFT__SLAB_CHUNK_BYTES;
    char *span = source->map(source->ctx, bytes, align);

    if (!span && bytes > WEFT__SLAB_CHUNK_BYTES) {
        bytes = WEFT__SLAB_CHUNK_BYTES;
        span = source->map(source->ctx, bytes, WEFT__SLAB_CHUNK_BYTES);
    }
    if (!span) return false;
    weft_assert((uintptr_t)span % WEFT__SLAB_CHUNK_BYTES == 0);
    slab->span_at = span;
    slab->span_end = span + bytes;
    slab->span_unlisted = bytes;
    return true;
}

static bool span_open(struct weft__slab *slab)
{
    if (slab->span_at != slab->span_end) return true;
    struct weft__slab_rest *rest = slab->rests;
    if (!rest) return span_map(slab);
    slab->rests = rest->next;
    slab->span_at = (char *)rest;
    slab->span_end = rest->end;
    return true;
}

/* The chunk at the head of the span has entered the directory, from which group_done finds the span again. */
static void span_advance(struct weft__slab *slab)
{
    slab->span_at += WEFT__SLAB_CHUNK_BYTES;
    if (!slab->span_unlisted) return;
    size_t twice = 2 * slab->span_unlisted;
    slab->span_bytes = twice < WEFT__SLAB_SPAN_MAX ? twice : WEFT__SLAB_SPAN_MAX;
    slab->span_unlisted = 0;
}

/* A span of which the directory knows nothing would be lost: give it back. */
static void span_abandon(struct weft__slab *slab)
{
    const struct weft__slab_source *source = &slab->group->source;
    if (!slab->span_unlisted) return;
    source->unmap(source->ctx, slab->span_at, slab->span_unlisted);
    slab->span_at = slab->span_end = NULL;
    slab->span_unlisted = 0;
}

static void chunk_init(struct weft__slab_chunk *chunk, struct weft__slab *slab, unsigned cls)
{
    uint32_t block_bytes = (uint32_t)weft__slab_class_bytes(cls);
    uint32_t first = sizeof(*chunk);

    store_relaxed(&chunk->home, slab); /* relaxed: not published yet */
    store_relaxed(&chunk->carved, 0);  /* relaxed: not published yet */
    plain_write(&chunk->first, first);
    plain_write(&chunk->block_bytes, block_bytes);
    plain_write(&chunk->block_count, (WEFT__SLAB_CHUNK_BYTES - first) / block_bytes);
    plain_write(&chunk->cls, cls);
    plain_write(&chunk->span_bytes, slab->span_unlisted);
    plain_write(&chunk->group, slab->group);
}

static bool chunk_new(struct weft__slab *slab, unsigned cls)
{
    if (!span_open(slab)) return false;
    struct weft__slab_chunk *chunk = weft__slab_chunk_of(slab->span_at);
    chunk_init(chunk, slab, cls);
    if (!weft__slab_chunk_append(slab->group, chunk)) {
        span_abandon(slab);
        return false;
    }
    weft__slab_poison(chunk + 1, WEFT__SLAB_CHUNK_BYTES - plain_read(&chunk->first));
    span_advance(slab);
    chunk->home_next = slab->home_chunks;
    slab->home_chunks = chunk;
    chunk->open_next = slab->classes[cls].open;
    slab->classes[cls].open = chunk;
    weft__slab_count(&slab->chunks, 1);
    return true;
}

/* The next block that was never used; the class has an open chunk, and open chunks have such blocks. */
static void *carve(struct weft__slab *slab, struct weft__slab_class *list)
{
    struct weft__slab_chunk *chunk = list->open;
    uint32_t at = load_relaxed(&chunk->carved); /* relaxed: this thread is the only writer */
    struct weft__block *block = weft__slab_chunk_block(chunk, at);

    weft_dassert(at < chunk->block_count);
    weft__slab_unpoison(block, chunk->block_bytes);
    /* relaxed: the block's first word has been zero since before the chunk was published. */
    store_relaxed(&chunk->carved, at + 1);
    if (at + 1 == chunk->block_count) list->open = chunk->open_next;
    weft__slab_count(&slab->allocated, 1);
    return block;
}

/* ---- blocks that change hands ---------------------------------------------------------------------------------------------------------- */

/* One CAS for a whole chain. Lock-free: a failed CAS means that somebody else returned a batch, or the stack was taken. */
static void send_home(struct weft__slab *home, unsigned cls, struct weft__block *first)
{
    struct weft__block *top = load_relaxed(&home->returned[cls]); /* relaxed: only compared */
    do {
        plain_write(&first->batch, top);
        /* [slab-return] with take_all: publishes the chain and the state words in it. */
    } while (!cas_release(&home->returned[cls], &top, first));
}

static void bin_send(struct weft__slab *slab, struct weft__slab_bin *bin)
{
    if (!bin->first) return;
    send_home(bin->home, bin->cls, bin->first);
    weft__slab_count(&slab->batches_sent, 1);
    slab->gathered -= bin->count;
    bin->first = NULL;
    bin->count = 0;
}

static void bin_add(struct weft__slab *slab, struct weft__slab_bin *bin, struct weft__block *block)
{
    store_relaxed(&block->link, bin->first); /* relaxed: send_home publishes it */
    bin->first = block;
    bin->count++;
    slab->gathered++;
    if (bin->count == WEFT__SLAB_RETURN_BATCH) bin_send(slab, bin);
}

void weft__slab_free_foreign(struct weft__slab *slab, struct weft__block *block,
                             struct weft__slab_chunk *chunk)
{
    uint32_t cls = plain_read(&chunk->cls);
    if (cls == WEFT__SLAB_POOLED) {
        chunk->pool->free(chunk->pool, block);
        return;
    }
    /* [slab-home] with adopt: the new home is initialised. */
    struct weft__slab *home = load_acquire(&chunk->home);

    weft__slab_poison(block + 1, plain_read(&chunk->block_bytes) - sizeof(*block));
    struct weft__slab_bin *bin = &slab->bins[(plain_read(&home->number) + cls) % WEFT__SLAB_BINS];
    if (bin->home != home || bin->cls != cls) {
        bin_send(slab, bin);
        bin->home = home;
        bin->cls = cls;
    }
    bin_add(slab, bin, block);
    weft__slab_count(&slab->freed, 1);
}

void weft__slab_free_outside(void *memory)
{
    struct weft__block *block = memory;
    struct weft__slab_chunk *chunk = weft__slab_chunk_of(memory);

    if (plain_read(&chunk->cls) == WEFT__SLAB_POOLED) {
        chunk->pool->free(chunk->pool, block);
        return;
    }
    struct weft__slab *home = load_acquire(&chunk->home); /* [slab-home] with adopt */
    /* relaxed: the caller wrote the state, or acquired it; send_home publishes the link. */
    weft_dassert((load_relaxed(&block->state) & WEFT__SLAB_FLAGS) == 0);
    store_relaxed(&block->link, NULL);
    weft__slab_poison(block + 1, plain_read(&chunk->block_bytes) - sizeof(*block));
    fetch_add_relaxed(&home->freed_outside, 1); /* relaxed: a count */
    send_home(home, plain_read(&chunk->cls), block);
}

void weft__slab_flush(struct weft__slab *slab)
{
    for (unsigned i = 0; slab->gathered && i < WEFT__SLAB_BINS; i++) {
        bin_send(slab, &slab->bins[i]);
    }
}

static bool begin_batch(struct weft__slab_class *list)
{
    struct weft__block *first = list->batches;
    if (!first) return false;
    list->batches = plain_read(&first->batch);
    list->free = first;
    return true;
}

/* A foreign block that is wanted again before it was sent need not travel. */
static bool take_from_bins(struct weft__slab *slab, unsigned cls)
{
    for (unsigned i = 0; slab->gathered && i < WEFT__SLAB_BINS; i++) {
        struct weft__slab_bin *bin = &slab->bins[i];
        if (!bin->first || bin->cls != cls) continue;
        slab->classes[cls].free = bin->first;
        slab->gathered -= bin->count;
        bin->first = NULL;
        bin->count = 0;
        return true;
    }
    return false;
}

static struct weft__block *take_all(struct weft__slab *slab, unsigned cls)
{
    /* relaxed: a look that spares the exchange, which decides. */
    if (!load_relaxed(&slab->returned[cls])) return NULL;
    /* [slab-return] with send_home and lend: the chains, and the state words in them. */
    return exchange_acquire(&slab->returned[cls], NULL);
}

static bool take_returned(struct weft__slab *slab, unsigned cls)
{
    slab->classes[cls].batches = take_all(slab, cls);
    return begin_batch(&slab->classes[cls]);
}

/* Makes batches borrowable, if the slab has none there: an empty stack needs no search for the chain's end. */
static bool lend(struct weft__slab *slab, unsigned cls, struct weft__block *batches)
{
    struct weft__block *none = NULL;
    /* [slab-return] with take_all: hands on what this thread wrote or acquired. */
    return cas_release(&slab->returned[cls], &none, batches);
}

/* Takes the peer's whole stack, since that is the only sound way, and lends back what is beyond WEFT__SLAB_BORROW batches. If somebody has returned a
 * batch in between, the peer is not empty-handed, and the borrower keeps the lot: it has just run dry of this class. */
static bool borrow_from(struct weft__slab *slab, struct weft__slab *peer, unsigned cls)
{
    struct weft__block *first = take_all(peer, cls);
    struct weft__block *last = first;
    if (!first) return false;

    for (unsigned n = 1; n < WEFT__SLAB_BORROW && plain_read(&last->batch); n++) {
        last = plain_read(&last->batch);
    }
    struct weft__block *rest = plain_read(&last->batch);
    if (rest && lend(peer, cls, rest)) plain_write(&last->batch, NULL);
    slab->classes[cls].batches = first;
    return begin_batch(&slab->classes[cls]);
}

/* Begins with the neighbour in the list, so that several borrowers do not all come to the same peer first. */
static bool borrow(struct weft__slab *slab, unsigned cls)
{
    for (struct weft__slab *peer = plain_read(&slab->next); peer; peer = plain_read(&peer->next)) {
        if (borrow_from(slab, peer, cls)) return true;
    }
    /* [slab-peer] with slab_init: the peers are initialised. */
    struct weft__slab *newest = load_acquire(&slab->group->slabs);
    for (struct weft__slab *peer = newest; peer != slab; peer = plain_read(&peer->next)) {
        if (borrow_from(slab, peer, cls)) return true;
    }
    return false;
}

/* Would the next chunk be mapped? Then rather take over what a guest has left. Returns whether it took something. */
static bool adopt_spare(struct weft__slab *slab)
{
    const struct weft__slab_source *source = &slab->group->source;
    if (!source->spare_take || slab->rests || slab->span_at != slab->span_end) return false;
    struct weft__slab *spare = source->spare_take(source->ctx);
    if (!spare) return false;
    weft__slab_adopt(slab, spare);
    source->spare_give(source->ctx, spare);
    return true;
}

void *weft__slab_alloc_slow(struct weft__slab *slab, unsigned cls)
{
    struct weft__slab_class *c = &slab->classes[cls];
    size_t bytes = weft__slab_class_bytes(cls);

    weft_assert(!c->free);
    if (begin_batch(c) || take_from_bins(slab, cls) || take_returned(slab, cls)) {
        return weft__slab_alloc(slab, bytes);
    }
    if (c->open) return carve(slab, c);
    if (borrow(slab, cls)) return weft__slab_alloc(slab, bytes);
    while (adopt_spare(slab)) {
        if (begin_batch(c)) return weft__slab_alloc(slab, bytes);
        if (c->open) return carve(slab, c);
    }
    if (chunk_new(slab, cls)) return carve(slab, c);
    return NULL;
}

/* ---- life of a slab -------------------------------------------------------------------------------------------------------------------- */

void weft__slab_init(struct weft__slab *slab, struct weft__slab_group *group)
{
    *slab = (struct weft__slab){.group = group, .span_bytes = WEFT__SLAB_CHUNK_BYTES};
    for (unsigned i = 0; i < WEFT__SLAB_CLASSES; i++) {
        store_relaxed(&slab->returned[i], NULL); /* relaxed: not published yet */
    }
    /* relaxed: only its value counts. */
    plain_write(&slab->number, fetch_add_relaxed(&group->slab_count, 1));
    struct weft__slab *older = load_relaxed(&group->slabs); /* relaxed: a guess, the CAS decides */
    do {
        plain_write(&slab->next, older);
        /* [slab-peer] with borrow and with this: publishes the slab, and sees the older ones. */
    } while (!cas_acq_rel(&group->slabs, &older, slab));
}

/* The free list becomes the foremost batch; an owner that still has returned blocks lying there has lent enough. One that has neither allocated nor freed since all was
 * shared has nothing: a worker that serves connections sleeps often, and has no memory to give. */
void weft__slab_share(struct weft__slab *slab)
{
    weft__slab_flush(slab);
    /* relaxed, both: our own */
    uint64_t did = load_relaxed(&slab->allocated) + load_relaxed(&slab->freed);
    bool all = true;
    if (did == slab->shared_at) return;
    for (unsigned cls = 0; cls < WEFT__SLAB_CLASSES; cls++) {
        struct weft__slab_class *c = &slab->classes[cls];
        if (c->free) {
            plain_write(&c->free->batch, c->batches);
            c->batches = c->free;
            c->free = NULL;
        }
        if (c->batches && lend(slab, cls, c->batches)) c->batches = NULL;
        all &= !c->batches;
    }
    if (all) slab->shared_at = did;
}

static void adopt_batches(struct weft__slab_class *into, struct weft__block *batches)
{
    struct weft__block *last = batches;
    if (!batches) return;
    while (plain_read(&last->batch)) {
        last = plain_read(&last->batch);
    }
    plain_write(&last->batch, into->batches);
    into->batches = batches;
}

static void adopt_class(struct weft__slab *into, struct weft__slab *guest, unsigned cls)
{
    struct weft__slab_class *from = &guest->classes[cls];
    struct weft__slab_class *to = &into->classes[cls];

    if (from->free) plain_write(&from->free->batch, NULL);
    adopt_batches(to, from->free);
    adopt_batches(to, from->batches);
    adopt_batches(to, take_all(guest, cls));
    while (from->open) {
        struct weft__slab_chunk *chunk = from->open;
        from->open = chunk->open_next;
        chunk->open_next = to->open;
        to->open = chunk;
    }
    from->free = NULL;
    from->batches = NULL;
}

static void adopt_rest(struct weft__slab *into, char *at, char *end)
{
    struct weft__slab_rest *rest = (void *)at;
    if (at == end) return;
    rest->end = end;
    rest->next = into->rests;
    into->rests = rest;
}

static void adopt_spans(struct weft__slab *into, struct weft__slab *guest)
{
    weft_assert(!guest->span_unlisted); /* only inside of chunk_new */
    adopt_rest(into, guest->span_at, guest->span_end);
    guest->span_at = guest->span_end = NULL;
    guest->span_bytes = WEFT__SLAB_CHUNK_BYTES; /* the next user begins small again */
    while (guest->rests) {
        struct weft__slab_rest *rest = guest->rests;
        guest->rests = rest->next;
        adopt_rest(into, (char *)rest, rest->end);
    }
}

void weft__slab_adopt(struct weft__slab *into, struct weft__slab *guest)
{
    weft_assert(into != guest);
    weft_assert(into->group == guest->group);
    weft__slab_flush(guest);
    for (unsigned cls = 0; cls < WEFT__SLAB_CLASSES; cls++) {
        adopt_class(into, guest, cls);
    }
    while (guest->home_chunks) {
        struct weft__slab_chunk *chunk = guest->home_chunks;
        guest->home_chunks = chunk->home_next;
        store_release(&chunk->home, into); /* [slab-home] with free_foreign: it is initialised */
        chunk->home_next = into->home_chunks;
        into->home_chunks = chunk;
    }
    adopt_spans(into, guest);
}

struct weft__slab_counts weft__slab_counts(const struct weft__slab *slab)
{
    return (struct weft__slab_counts){
        /* relaxed, all of them: counts, each right for itself. */
        .allocated = load_relaxed(&slab->allocated),
        .freed = load_relaxed(&slab->freed) + load_relaxed(&slab->freed_outside),
        .batches_sent = load_relaxed(&slab->batches_sent),
        .chunks = load_relaxed(&slab->chunks),
    };
}
