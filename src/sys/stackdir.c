/* SPDX-License-Identifier: MIT
 *
 * stackdir - entries behind versions, in blocks that are never given back.
 */
#include "sys/stackdir.h"

#include "limits.h"
#include "sys/lock.h"
#include "sys/mem.h"

struct weft__stackdir_entry {
    _Atomic uint32_t version; /* odd while the fields below change  [stackdir] */
    _Atomic uintptr_t base;   /* as in the span; readable behind the version */
    _Atomic size_t slot_bytes;
    _Atomic size_t guard_bytes;
    _Atomic size_t count; /* 0: the entry is free */
    void *_Atomic owner;
    struct weft__stackdir_entry *next_free; /* guarded by the lock */
};

#define BLOCK_ENTRIES                                                                              \
    ((WEFT__STACKDIR_BLOCK_BYTES - sizeof(void *)) / sizeof(struct weft__stackdir_entry))

struct block {
    struct block *_Atomic next; /* older blocks; constant once published */
    struct weft__stackdir_entry entries[BLOCK_ENTRIES];
};

_Static_assert(sizeof(struct block) <= WEFT__STACKDIR_BLOCK_BYTES, "a block fits its mapping");

static struct weft__lock lock = WEFT__LOCK_INIT(WEFT__RANK_SLAB);
static struct block *_Atomic blocks;              /* newest first  [stackdir-block] */
static struct weft__stackdir_entry *free_entries; /* guarded by the lock */

/* holds: lock */
static int add_block(void)
{
    void *memory;
    weft__lock_assert_held(&lock);
    int r = weft__mem_map(WEFT__STACKDIR_BLOCK_BYTES, &memory);
    if (r < 0) return r;

    struct block *b = memory;
    for (size_t i = 0; i < BLOCK_ENTRIES; i++) {
        plain_write(&b->entries[i].next_free, plain_read(&free_entries));
        plain_write(&free_entries, &b->entries[i]);
    }
    store_relaxed(&b->next, load_relaxed(&blocks)); /* relaxed: only the lock's holder writes */
    store_release(&blocks, b); /* [stackdir-block] with find: publishes next and the entries */
    return 0;
}

/* holds: lock */
static void write_entry(struct weft__stackdir_entry *e, const struct weft__stackdir_span *span)
{
    weft__lock_assert_held(&lock);
    uint32_t version = load_relaxed(&e->version); /* relaxed: only holders of the lock write it */

    store_relaxed(&e->version, version + 1); /* relaxed: the fence orders it before the fields */
    fence_release(); /* [stackdir] with read_entry: who sees a new field sees the odd version */
    store_relaxed(&e->base, (uintptr_t)span->base);    /* relaxed: read behind the version */
    store_relaxed(&e->slot_bytes, span->slot_bytes);   /* relaxed: as above */
    store_relaxed(&e->guard_bytes, span->guard_bytes); /* relaxed: as above */
    store_relaxed(&e->owner, span->owner);             /* relaxed: as above */
    store_relaxed(&e->count, span->count);             /* relaxed: as above */
    store_release(&e->version, version + 2); /* [stackdir] with read_entry: publishes the fields */
}

/* False when the entry changed meanwhile. */
static bool read_entry(struct weft__stackdir_entry *e, struct weft__stackdir_span *into)
{
    uint32_t version = load_acquire(&e->version); /* [stackdir] with write_entry: sees its fields */

    if (version & 1) return false;
    into->base = (char *)load_relaxed(&e->base);       /* relaxed: the version is looked at again */
    into->slot_bytes = load_relaxed(&e->slot_bytes);   /* relaxed: as above */
    into->guard_bytes = load_relaxed(&e->guard_bytes); /* relaxed: as above */
    into->owner = load_relaxed(&e->owner);             /* relaxed: as above */
    into->count = load_relaxed(&e->count);             /* relaxed: as above */
    fence_acquire(); /* [stackdir] with write_entry: a newer field implies a newer version */
    return load_relaxed(&e->version) == version; /* relaxed: behind the fence */
}

int weft__stackdir_add(const struct weft__stackdir_span *span, struct weft__stackdir_entry **into)
{
    weft_assert(span->count > 0);
    weft_assert(span->guard_bytes < span->slot_bytes);
    int r = 0;

    weft__lock_take(&lock);
    if (!plain_read(&free_entries)) r = add_block();
    if (r == 0) {
        struct weft__stackdir_entry *e = plain_read(&free_entries);
        plain_write(&free_entries, plain_read(&e->next_free));
        write_entry(e, span);
        *into = e;
    }
    weft__lock_drop(&lock);
    return r;
}

void weft__stackdir_remove(struct weft__stackdir_entry *entry)
{
    if (!entry) return;
    weft__lock_take(&lock);
    write_entry(entry, &(struct weft__stackdir_span){0});
    plain_write(&entry->next_free, plain_read(&free_entries));
    plain_write(&free_entries, entry);
    weft__lock_drop(&lock);
}

struct weft__lock *weft__stackdir_lock(void)
{
    return &lock;
}

/* A lower address wraps to a large offset; a free entry contains nothing. */
static bool contains(const struct weft__stackdir_span *span, const void *addr)
{
    return (uintptr_t)addr - (uintptr_t)span->base < span->slot_bytes * span->count;
}

bool weft__stackdir_find(const void *addr, struct weft__stackdir_span *into)
{
    struct block *b =
        load_acquire(&blocks); /* [stackdir-block] with add_block: sees what is in it */

    for (; b; b = load_relaxed(&b->next)) { /* relaxed: constant since its block was published */
        for (size_t i = 0; i < BLOCK_ENTRIES; i++) {
            struct weft__stackdir_span span;
            if (!read_entry(&b->entries[i], &span) || !contains(&span, addr)) continue;
            *into = span;
            return true;
        }
    }
    return false;
}
