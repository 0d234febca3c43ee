/* SPDX-License-Identifier: MIT
 *
 * mem - memory from the kernel in whole pages: map, unmap, advise, guard.
 *
 * Mappings are private, zeroed and not counted against the commit limit before they are touched
 * (except where the system commits strictly).
 * Threads: any. Blocks: on the kernel's map lock alone. Sizes need not be multiples of a page,
 * addresses do.
 */
#ifndef WEFT_SYS_MEM_H
#define WEFT_SYS_MEM_H

#include <stddef.h>

/* Bytes of a page; constant for the life of the process. */
size_t weft__mem_page_bytes(void);

/* Gives `bytes` (not 0) of zeroed, readable and writable memory at a page, for weft__mem_unmap
 * with the same size.
 * Returns 0; -ENOMEM, also at the limit of mappings; -EAGAIN when memory is to be locked and may
 * not. */
int weft__mem_map(size_t bytes, void **into);

/* The same at a multiple of `align`, a power of two; nothing stays mapped beside it. */
int weft__mem_map_aligned(size_t bytes, size_t align, void **into);

/* Takes what a map gave, whole. NULL is fine. Returns 0; -ENOMEM if cutting the hole would take
 * the process over its limit of mappings: then the pages are given back, and the addresses alone
 * stay taken. */
int weft__mem_unmap(void *addr, size_t bytes);

/* Ask for huge pages, or for none. Advice: an error changes nothing. Returns 0; -EINVAL on a
 * kernel without them. */
int weft__mem_advise_huge(void *addr, size_t bytes);
int weft__mem_advise_no_huge(void *addr, size_t bytes);

/* Give the pages back; the memory reads as zero afterwards, and guards in it stay. Returns 0;
 * -EINVAL for locked memory, which stays as it is. */
int weft__mem_discard(void *addr, size_t bytes);

/* Make an access to the range die by SIGSEGV, at no cost in mappings (MADV_GUARD_INSTALL, Linux
 * 6.13). What was there is lost.
 * Returns 0; -EINVAL on an older kernel or, before 6.15, for locked memory; -ENOMEM. */
int weft__mem_guard(void *addr, size_t bytes);

/* Is weft__mem_guard there? Tries it on a page of its own. Returns 0, or the error that says why
 * not. */
int weft__mem_guard_probe(void);

/* The same effect by protection: splits the mapping, and so costs one or two of the process's
 * limited number of them.
 * Returns 0; -ENOMEM at that limit. */
int weft__mem_protect(void *addr, size_t bytes);

#endif
