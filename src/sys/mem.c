/* SPDX-License-Identifier: MIT
 *
 * mem - mmap, munmap, madvise and mprotect, each behind its fault point.
 */
#include "sys/mem.h"

#include "base/assert.h"
#include "base/bits.h"
#include "base/fault.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

size_t weft__mem_page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t whole_pages(size_t bytes)
{
    return weft__round_up(bytes, weft__mem_page_bytes());
}

int weft__mem_map(size_t bytes, void **into)
{
    weft_assert(bytes > 0);
    int r = weft__fault(WEFT__FAULT_MMAP);
    if (r < 0) return r;
    if (bytes > SIZE_MAX / 2) return -ENOMEM; /* and rounding cannot wrap */

    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *addr = mmap(NULL, whole_pages(bytes), PROT_READ | PROT_WRITE, flags, -1, 0);
    if (addr == MAP_FAILED) return -errno;
    *into = addr;
    return 0;
}

static int unmap_pages(void *addr, size_t bytes)
{
    int r = weft__fault(WEFT__FAULT_MUNMAP);
    if (r < 0) return r;
    return munmap(addr, bytes) < 0 ? -errno : 0;
}

int weft__mem_unmap(void *addr, size_t bytes)
{
    if (!addr) return 0;
    int r = unmap_pages(addr, whole_pages(bytes));
    weft_assert(r != -EINVAL); /* it was a mapping */
    if (r < 0) (void)weft__mem_discard(addr, bytes);
    return r;
}

/* Map enough to contain an aligned span wherever it falls, then give back both ends. */
int weft__mem_map_aligned(size_t bytes, size_t align, void **into)
{
    weft_assert(weft__is_pow2(align));
    size_t page = weft__mem_page_bytes();
    if (align <= page) return weft__mem_map(bytes, into);
    if (bytes > SIZE_MAX / 4 || align > SIZE_MAX / 4) return -ENOMEM;

    void *whole = NULL;
    size_t kept = whole_pages(bytes);
    size_t total = kept + align - page;
    int r = weft__mem_map(total, &whole);
    if (r < 0) return r;
    char *first = weft__align_up(whole, align);
    size_t before = (size_t)(first - (char *)whole);
    size_t after = total - before - kept;

    /* What is unmapped may be another thread's mapping a moment later: each failure gives back
     * exactly what is still ours. */
    if (before > 0) r = unmap_pages(whole, before);
    if (r < 0) {
        (void)weft__mem_unmap(whole, total);
        return r;
    }
    if (after > 0) r = unmap_pages(first + kept, after);
    if (r < 0) {
        (void)weft__mem_unmap(first, kept + after);
        return r;
    }
    *into = first;
    return 0;
}

static int advise(void *addr, size_t bytes, int advice, int fault)
{
    if (fault < 0) return fault;
    return madvise(addr, whole_pages(bytes), advice) < 0 ? -errno : 0;
}

int weft__mem_advise_huge(void *addr, size_t bytes)
{
    return advise(addr, bytes, MADV_HUGEPAGE, weft__fault(WEFT__FAULT_MADVISE));
}

int weft__mem_advise_no_huge(void *addr, size_t bytes)
{
    return advise(addr, bytes, MADV_NOHUGEPAGE, weft__fault(WEFT__FAULT_MADVISE));
}

int weft__mem_discard(void *addr, size_t bytes)
{
    return advise(addr, bytes, MADV_DONTNEED, weft__fault(WEFT__FAULT_MADVISE));
}

int weft__mem_guard(void *addr, size_t bytes)
{
    return advise(addr, bytes, MADV_GUARD_INSTALL, weft__fault(WEFT__FAULT_GUARD));
}

int weft__mem_guard_probe(void)
{
    void *page = NULL;
    size_t bytes = weft__mem_page_bytes();
    int r = weft__mem_map(bytes, &page);
    if (r < 0) return r;
    r = weft__mem_guard(page, bytes);
    (void)weft__mem_unmap(page, bytes);
    return r;
}

int weft__mem_protect(void *addr, size_t bytes)
{
    int r = weft__fault(WEFT__FAULT_MPROTECT);
    if (r < 0) return r;
    return mprotect(addr, whole_pages(bytes), PROT_NONE) < 0 ? -errno : 0;
}
