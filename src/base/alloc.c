/* SPDX-License-Identifier: MIT
 *
 * alloc - malloc, or the program's own allocator, behind a counter and a fault point.
 *
 * `chosen` is decided once, by the first of weft_set_allocator and the first allocation: NULL -> the program's, or NULL -> the heap's. So memory always goes back to
 * where it came from, and no lock is needed. The heap knows the sizes of its blocks; another allocator is told them, so each block from there has a note in front:
 *
 *     | unused, to keep the alignment | note: 16 bytes | memory, aligned ... |
 *     ^ what the allocator gave
 */
#include "base/alloc.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "base/fault.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#if defined(WEFT_DEBUG)
static _Atomic int64_t live;
#define LIVE_ADD(n) ((void)fetch_add_relaxed(&live, (n))) /* relaxed: a count, read when all is quiet */
#else
#define LIVE_ADD(n) ((void)(n))
#endif

struct note {
    size_t bytes;  /* of the whole */
    size_t before; /* from its beginning to the memory */
};

_Static_assert(sizeof(struct note) == 16, "a note leaves the memory behind it aligned to 16");

static const weft_allocator heap;                     /* stands for calloc, posix_memalign and free; never called */
static const weft_allocator *_Atomic chosen;          /* NULL: not decided yet  [alloc-chosen] */

int weft_set_allocator(const weft_allocator *allocator)
{
    const weft_allocator *undecided = NULL;
    if (!allocator || !allocator->alloc || !allocator->free) return -EINVAL;
    /* [alloc-chosen] with replacement: the struct as the program filled it in */
    return cas_release(&chosen, &undecided, allocator) ? 0 : -EBUSY;
}

static __attribute__((noinline)) const weft_allocator *choose_heap(void)
{
    const weft_allocator *there = NULL;
    /* [alloc-chosen] with set_allocator, if it was first */
    return cas_acquire(&chosen, &there, &heap) ? &heap : there;
}

/* The program's allocator; NULL: the heap. */
static const weft_allocator *replacement(void)
{
    const weft_allocator *a = load_acquire(&chosen); /* [alloc-chosen] with set_allocator */
    if (!a) a = choose_heap();
    return a == &heap ? NULL : a;
}

void weft_free(void *memory)
{
    weft__free(memory);
}

bool weft__alloc_replaced(void)
{
    return replacement() != NULL;
}

/* ---- the program's ---- */

static void *noted_alloc(const weft_allocator *a, size_t bytes, size_t align, size_t clear)
{
    if (align < sizeof(struct note)) align = sizeof(struct note);
    if (bytes > SIZE_MAX - align) return NULL;
    char *whole = a->alloc(a->ctx, align + bytes, align);
    if (!whole) return NULL;
    weft_assert(weft__is_aligned(whole, align));
    char *memory = whole + align;
    ((struct note *)(void *)memory)[-1] = (struct note){.bytes = align + bytes, .before = align};
    return memset(memory, 0, clear);
}

static void noted_free(const weft_allocator *a, void *memory)
{
    struct note note = ((struct note *)memory)[-1];
    a->free(a->ctx, (char *)memory - note.before, note.bytes);
}

void *weft__alloc_sized(size_t bytes, size_t align)
{
    const weft_allocator *a = replacement();
    weft_assert(a != NULL);
    if (weft__fault(WEFT__FAULT_ALLOC)) return NULL;
    void *memory = a->alloc(a->ctx, bytes, align);
    if (!memory) return NULL;
    weft_assert(weft__is_aligned(memory, align));
    LIVE_ADD(1);
    return memset(memory, 0, bytes);
}

void weft__free_sized(void *memory, size_t bytes)
{
    const weft_allocator *a = replacement();
    LIVE_ADD(-1);
    a->free(a->ctx, memory, bytes);
}

/* ---- either ---- */

/* Bytes up to which a block is malloc's and cleared here: glibc has those ready in a cache of the thread's, which calloc and posix_memalign pass by.
 * Doubled: larger ones are cleared that may come from the kernel clear. */
#define CACHED_MAX ((size_t)1024)

static void *heap_alloc(size_t bytes)
{
    if (bytes > CACHED_MAX) return calloc(1, bytes);
    void *memory = malloc(bytes);
    return memory ? memset(memory, 0, bytes) : NULL;
}

static void *heap_alloc_aligned(size_t bytes, size_t align, size_t clear)
{
    if (align <= _Alignof(max_align_t)) return heap_alloc(bytes);
    void *memory = NULL;
    if (posix_memalign(&memory, align, bytes) != 0) return NULL;
    return memset(memory, 0, clear);
}

void *weft__alloc(size_t bytes)
{
    if (weft__fault(WEFT__FAULT_ALLOC)) return NULL;
    const weft_allocator *a = replacement();
    void *memory = a ? noted_alloc(a, bytes, sizeof(struct note), bytes) : heap_alloc(bytes);
    if (memory) LIVE_ADD(1);
    return memory;
}

void *weft__alloc_aligned_part(size_t bytes, size_t align, size_t clear)
{
    weft_assert(weft__is_pow2(align));
    weft_assert(clear <= bytes);
    if (weft__fault(WEFT__FAULT_ALLOC)) return NULL;
    const weft_allocator *a = replacement();
    void *memory =
        a ? noted_alloc(a, bytes, align, clear) : heap_alloc_aligned(bytes, align, clear);
    if (memory) LIVE_ADD(1);
    return memory;
}

void *weft__alloc_aligned(size_t bytes, size_t align)
{
    return weft__alloc_aligned_part(bytes, align, bytes);
}

void weft__free(void *memory)
{
    if (!memory) return;
    const weft_allocator *a = replacement();
    LIVE_ADD(-1);
    if (a) {
        noted_free(a, memory);
    } else {
        free(memory);
    }
}

int64_t weft__alloc_live(void)
{
#if defined(WEFT_DEBUG)
    return load_relaxed(&live); /* relaxed: a count */
#else
    return 0;
#endif
}
