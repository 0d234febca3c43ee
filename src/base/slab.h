/* SPDX-License-Identifier: MIT
 *
 * slab - the memory of tasks, which is also their registry: blocks that are found by walking, never listed.
 *
 * A *group* (one per runtime) owns all memory and a directory of *chunks*: 64 KiB, one size class each, never unmapped and never moved while the
 * group lives. A *slab* (one per worker, and one per foreign thread that spawns: a guest) hands the blocks out, without any read-modify-write:
 *
 *     free[class] -> block -> block            the owner's own, plain, last in first out
 *     batches[class] -> batch -> batch         whole chains that came home, or were borrowed; the owner's own
 *     returned[class] -> batch -> batch        what others freed: pushed by one CAS a batch, taken whole by one exchange
 *     bins: chains on their way to other homes, WEFT__SLAB_RETURN_BATCH blocks at most
 *     open[class] -> chunk                     blocks from `carved` on were never used
 *
 * INVARIANT  A block that was carved is in use or on exactly one of these lists of exactly one slab:
 *                carved = in use + free + batches + returned + bins          over all slabs of the group
 *            A chunk's *home* is no ownership, only the place where its blocks are sent when somebody else frees them. So any slab may hold
 *            and hand out any block: that is what makes borrowing from a peer and adopting a guest's memory sound.
 *
 * First word of a block: flags 16 (zero: free), references 16, generation 32. It is its user's: zero when the block is first carved, never written
 * by the slab afterwards. The user makes a block live by a release store of non-zero flags, and frees it by clearing them and raising the generation
 * before weft__slab_free: an old id then finds nothing, and readers see the pair of flags and generation that was written, whatever happens next.
 * Second word: the link of a list; atomic, for those who look at tasks while they are freed. Third word of the first block of a batch: next batch.
 *
 * A *pool* is chunks in the caller's memory, of one block size of any kind. They are in the directory like others, so that their blocks have ids and are walked; but no
 * slab is their home, and who frees a block of theirs gives it to the pool. They alone may leave: see slab_dir.h.
 *
 * Threads: one owner per slab for alloc, free, flush, share, adopt; find, walk and the counters by anybody at any time. No locks.
 * Pairs: [slab-return], [slab-chunk], [slab-leaf], [slab-peer], [slab-home], [slab-state], [slab-leave] (docs/MEMORY_MODEL.md).
 * Cost: alloc and own free are 0 RMWs. Cache lines: alloc 3 (counters, class, block), own free 4 (the chunk's header as well), all of them the
 * owner's; the link is on the line that the user writes anyway. A foreign free adds 1/32 CAS on the home's line, taking back 1 exchange a run-dry.
 * Rejected: one returned stack for all classes: the owner then walks every block that comes home, cold, to sort it, and a borrower takes what it
 * does not need, without bound. A lock around the directory: base has none, and a CAS on the count does it. Headers at different offsets, against
 * cache sets that all chunks share: no difference for a million blocks in 1,250 chunks, freed in random order.
 */
#ifndef WEFT_BASE_SLAB_H
#define WEFT_BASE_SLAB_H

#include "base/assert.h"
#include "base/atomic.h"
#include "base/sanitize.h"
#include "limits.h"

#include <stddef.h>
#include <stdint.h>

#if defined(WEFT__ASAN)
#include <sanitizer/asan_interface.h>
#define weft__slab_poison(p, bytes)   ASAN_POISON_MEMORY_REGION((p), (bytes))
#define weft__slab_unpoison(p, bytes) ASAN_UNPOISON_MEMORY_REGION((p), (bytes))
#else
#define weft__slab_poison(p, bytes)   ((void)(p), (void)(bytes))
#define weft__slab_unpoison(p, bytes) ((void)(p), (void)(bytes))
#endif

#define WEFT__SLAB_BLOCK_MIN  64
#define WEFT__SLAB_STEP       16
#define WEFT__SLAB_CLASSES    ((WEFT__SLAB_BLOCK_MAX - WEFT__SLAB_BLOCK_MIN) / WEFT__SLAB_STEP + 1)
#define WEFT__SLAB_LEAF       (1u << WEFT__SLAB_LEAF_BITS)
#define WEFT__SLAB_TOP        (1u << WEFT__SLAB_TOP_BITS)
#define WEFT__SLAB_CHUNKS_MAX (1u << (WEFT__SLAB_LEAF_BITS + WEFT__SLAB_TOP_BITS))
#define WEFT__SLAB_FLAGS      UINT64_C(0xffff)
#define WEFT__SLAB_POOLED     UINT32_MAX /* for a class, in the chunks of pools */

_Static_assert(WEFT__SLAB_CHUNK_BYTES / WEFT__SLAB_STEP <= 1 << 12,
               "an id has 12 bits for the block");
_Static_assert(WEFT__SLAB_LEAF_BITS + WEFT__SLAB_TOP_BITS <= 20, "an id has 20 bits for the chunk");
_Static_assert(WEFT__SLAB_SPAN_MAX % WEFT__SLAB_CHUNK_BYTES == 0, "a span is whole chunks");

struct weft__slab;
struct weft__slab_group;
struct weft__block;

/* Whoever has chunks in memory of its own. */
struct weft__slab_pool {
    void (*free)(struct weft__slab_pool *pool, struct weft__block *block); /* by any thread */
};

/* Where memory comes from. `map` gives zeroed memory or NULL; `unmap` takes it back, as it was given. Called by any owner of a slab at any time.
 * `spare_take`, if there is one, gives a slab of the group that nobody owns any more, or NULL; it is asked before `map`, adopted, and given back empty. */
struct weft__slab_source {
    void *(*map)(void *ctx, size_t bytes, size_t align);
    void (*unmap)(void *ctx, void *memory, size_t bytes);
    void *ctx;
    struct weft__slab *(*spare_take)(void *ctx);
    void (*spare_give)(void *ctx, struct weft__slab *slab);
};

/* What the slab knows of a block. The task's header begins in the same way. */
struct weft__block {
    _Atomic uint64_t state;           /* the user's, see above  [slab-state] */
    struct weft__block *_Atomic link; /* next of its list; the user's while in use */
    const void *kept;                 /* the user's, also while it is free: it tells who was there last */
    struct weft__block *batch;        /* next batch, in a batch's first block  [slab-return] */
};

/* The header of a chunk, one line, written by its owner while it carves, else only read. Constant unless said otherwise. */
struct weft__slab_chunk {
    struct weft__slab *_Atomic home;    /* where its blocks are sent; by adoption  [slab-home] */
    _Atomic uint32_t carved;            /* [owner of its open list] blocks ever given out; grows */
    uint32_t block_count;               /* that fit */
    uint32_t block_bytes;               /* of the class */
    uint32_t first;                     /* offset of the first block from the chunk's start */
    uint32_t index;                     /* in the directory; constant from publication on */
    uint32_t cls;                       /* size class; WEFT__SLAB_POOLED: no slab's */
    union {
        struct weft__slab_chunk *open_next; /* [owner] chunks with blocks never used */
        struct weft__slab_pool *pool;       /* of a pooled chunk; constant */
    };
    struct weft__slab_chunk *home_next; /* [owner] chunks of this home */
    size_t span_bytes;                  /* of the span that begins here; 0: it begins elsewhere */
    struct weft__slab_group *group;     /* constant: from a block to its runtime in one step */
};

_Static_assert(sizeof(struct weft__slab_chunk) == WEFT__CACHE_LINE, "a header is one cache line");

struct weft__slab_class {
    struct weft__block *free;      /* [owner] ends with NULL */
    struct weft__block *batches;   /* [owner] taken and not yet begun */
    struct weft__slab_chunk *open; /* [owner] newest first; full ones are dropped */
};

/* Foreign blocks on their way home, of one home and one class. */
struct weft__slab_bin {
    struct weft__slab *home;   /* meaningless while empty, as is the class */
    struct weft__block *first; /* NULL: the bin is empty */
    uint32_t cls;              /* size class */
    uint32_t count;            /* below WEFT__SLAB_RETURN_BATCH */
};

struct weft__slab {
    /* The owner writes, on every alloc and free; others read the counters. Only sums over all slabs
     * tell what is in use: a block counts where it was allocated and where it was freed. */
    WEFT__CACHE_ALIGNED _Atomic uint64_t allocated;
    _Atomic uint64_t freed;               /* by this owner */
    _Atomic uint64_t batches_sent;        /* by this owner, to other homes */
    _Atomic uint64_t chunks;              /* made by this owner */
    uint32_t gathered;                    /* [owner] blocks in the bins */
    struct weft__slab_chunk *home_chunks; /* [owner] those whose home this is */

    /* The owner's, when lists run dry. */
    char *span_at;        /* next chunk of the span; == span_end: none */
    char *span_end;       /* the end of the span */
    size_t span_bytes;    /* of the next span: doubles */
    size_t span_unlisted; /* of this one until its first chunk is in the directory; then 0 */
    struct weft__slab_rest *rests; /* of adopted spans */
    uint64_t shared_at;            /* allocated + freed when all was shared */
    struct weft__slab_class classes[WEFT__SLAB_CLASSES];
    struct weft__slab_bin bins[WEFT__SLAB_BINS];

    /* Anybody's. [slab-return] */
    WEFT__CACHE_ALIGNED struct weft__block *_Atomic returned[WEFT__SLAB_CLASSES];
    _Atomic uint64_t freed_outside; /* blocks of this home freed by threads that have no slab */

    /* Constant, and read with each block that is freed far from home: not on a line that somebody writes. */
    WEFT__CACHE_ALIGNED struct weft__slab_group *group;
    struct weft__slab *next; /* older slab of the group */
    uint32_t number;         /* in the group */
};

struct weft__slab_leaf {
    struct weft__slab_chunk *_Atomic slot[WEFT__SLAB_LEAF]; /* [slab-chunk] */
};

struct weft__slab_group {
    struct weft__slab_source source;
    struct weft__slab *_Atomic slabs; /* newest first; none ever leaves  [slab-peer] */
    _Atomic uint32_t slab_count;      /* numbers handed out */
    _Atomic uint32_t chunk_count;     /* slots handed out; the last ones may not be filled yet */
    _Atomic uint32_t readers;         /* inside of walk or find  [slab-leave] */
    uint32_t vacant_count;            /* slots that pools have left; guarded by those who enter and leave, as the next */
    uint32_t first_generation;        /* of the next pool's blocks: beyond all that have left */
    struct weft__slab_leaf *_Atomic top[WEFT__SLAB_TOP]; /* [slab-leaf] */
};

/* ---- group ----------------------------------------------------------------------------------------------------------------------------- */

void weft__slab_group_init(struct weft__slab_group *group, const struct weft__slab_source *source);

/* Map now what the first chunk would: the directory's first leaf. Returns whether there was memory. */
bool weft__slab_group_prepare(struct weft__slab_group *group);

/* Unmaps everything. Nobody uses the group, its slabs or its blocks any more; a thread inside of weft__slab_free still does.
 * Debug builds assert that no block is live, unless `may_live`. */
void weft__slab_group_done(struct weft__slab_group *group, bool may_live);

/* Asserts the invariant above over all lists. Only while nobody allocates or frees. Returns the number of blocks in use. */
uint64_t weft__slab_group_check(struct weft__slab_group *group);

/* ---- slab ------------------------------------------------------------------------------------------------------------------------------ */

/* Joins the group. Pins: *slab, until the group is done: others send blocks home to it at any time. A thread that ends leaves it to be adopted,
 * and then it may serve another thread; whoever makes guests keeps the idle ones and so has as many as ever ran at once. */
void weft__slab_init(struct weft__slab *slab, struct weft__slab_group *group);

/* Send home what the owner has gathered; before it parks, and before its thread ends. */
void weft__slab_flush(struct weft__slab *slab);

/* Put the owner's own free blocks where peers can borrow them; for an owner that goes idle for long. It takes back what is left when it runs dry. */
void weft__slab_share(struct weft__slab *slab);

/* Called by the owner of `into`, for a guest whose thread has ended (joined, or handed over by a lock): takes over its free blocks, chunks and the
 * rest of its span, and makes `into` the home of its chunks. The guest stays valid and empty: as the target of frees that have read the old home
 * (peers borrow those), and for another thread to use. */
void weft__slab_adopt(struct weft__slab *into, struct weft__slab *guest);

struct weft__slab_counts {
    uint64_t allocated;
    uint64_t freed;
    uint64_t batches_sent;
    uint64_t chunks;
};

struct weft__slab_counts weft__slab_counts(const struct weft__slab *slab);

/* ---- registry -------------------------------------------------------------------------------------------------------------------------- */

/* The block's id: chunk 20 | place in the chunk, in 16 bytes, 12 | generation 32. Never 0. Called by a thread that keeps the block from being freed. */
uint64_t weft__slab_id(const void *memory);

/* The same of the block's user of that generation, who may be gone. */
uint64_t weft__slab_id_of(const void *memory, uint32_t generation);

/* The live block of this id, or NULL. Any number may be asked for. The block may be freed right after: before the caller uses it, it takes a
 * reference by a CAS on the state word that compares the generation; or it copies, and looks at the generation again. */
void *weft__slab_find(struct weft__slab_group *group, uint64_t id);

/* Between the two no memory of a pool goes, wherever it is read: around find and the use of what it found. They nest. */
void weft__slab_read_begin(struct weft__slab_group *group);
void weft__slab_read_end(struct weft__slab_group *group);

/* Visit every block with non-zero flags; `state` is the word that was seen, and it may have changed since. Blocks that are live from before the walk
 * to its end are visited once; others may be or not. Stops when `visit` answers other than 0, and returns that. */
int weft__slab_walk(struct weft__slab_group *group,
                    int (*visit)(void *ctx, void *block, uint64_t state), void *ctx);

/* ---- alloc and free -------------------------------------------------------------------------------------------------------------------- */

void *weft__slab_alloc_slow(struct weft__slab *slab, unsigned cls);
void weft__slab_free_foreign(struct weft__slab *slab, struct weft__block *block,
                             struct weft__slab_chunk *chunk);

/* Takes a block from a thread that has no slab: it goes home, or to its pool, at once, for two read-modify-writes. */
void weft__slab_free_outside(void *memory);

static inline unsigned weft__slab_class_of(size_t bytes)
{
    if (bytes <= WEFT__SLAB_BLOCK_MIN) return 0;
    return (unsigned)((bytes - WEFT__SLAB_BLOCK_MIN + WEFT__SLAB_STEP - 1) / WEFT__SLAB_STEP);
}

static inline size_t weft__slab_class_bytes(unsigned cls)
{
    return WEFT__SLAB_BLOCK_MIN + (size_t)cls * WEFT__SLAB_STEP;
}

/* The chunk in which an address lies: chunks are aligned to their size, and begin with their header. */
static inline struct weft__slab_chunk *weft__slab_chunk_of(const void *address)
{
    uintptr_t offset = (uintptr_t)address % WEFT__SLAB_CHUNK_BYTES;
    return (void *)((char *)(uintptr_t)address - offset);
}

/* Does the block belong to a pool? Asked by who has it. */
static inline bool weft__slab_pooled(const void *block)
{
    return plain_read(&weft__slab_chunk_of(block)->cls) == WEFT__SLAB_POOLED;
}

/* relaxed: one writer, and readers want a number, not an order. */
static inline void weft__slab_count(_Atomic uint64_t *counter, uint64_t n)
{
    own_add(counter, n);
}

/* As weft__slab_alloc, if a block lies ready, else NULL: for who has another way then. */
static inline void *weft__slab_alloc_ready(struct weft__slab *slab, size_t bytes)
{
    weft_assert(bytes <= WEFT__SLAB_BLOCK_MAX);
    unsigned cls = weft__slab_class_of(bytes);
    struct weft__block *block = slab->classes[cls].free;

    if (__builtin_expect(!block, 0)) return NULL;
    slab->classes[cls].free = load_relaxed(&block->link); /* relaxed: this thread's own list */
    weft__slab_count(&slab->allocated, 1);
    weft__slab_unpoison(block, weft__slab_class_bytes(cls));
    return block;
}

/* Gives a block of at least `bytes`, its first word as its last user left it (zero at first), the rest undefined; NULL when there is no memory, and
 * then nothing has changed. More than WEFT__SLAB_BLOCK_MAX is the caller's business. */
static inline void *weft__slab_alloc(struct weft__slab *slab, size_t bytes)
{
    void *block = weft__slab_alloc_ready(slab, bytes);
    return __builtin_expect(block != NULL, 1) ? block : weft__slab_alloc_slow(slab, weft__slab_class_of(bytes));
}

/* Takes a block of the group, whoever allocated it; its flags are zero and its generation is the next user's. `slab` is the calling thread's. */
static inline void weft__slab_free(struct weft__slab *slab, void *memory)
{
    struct weft__block *block = memory;
    struct weft__slab_chunk *chunk = weft__slab_chunk_of(memory);

    /* relaxed: the caller wrote the state, or acquired it; the home is looked at again. */
    weft_dassert((load_relaxed(&block->state) & WEFT__SLAB_FLAGS) == 0);
    if (__builtin_expect(load_relaxed(&chunk->home) != slab, 0)) {
        weft__slab_free_foreign(slab, block, chunk);
        return;
    }
    struct weft__slab_class *list = &slab->classes[plain_read(&chunk->cls)];
    store_relaxed(&block->link, list->free); /* relaxed: this thread's own list */
    list->free = block;
    weft__slab_count(&slab->freed, 1);
    weft__slab_poison(block + 1, plain_read(&chunk->block_bytes) - sizeof(*block));
}

#endif
