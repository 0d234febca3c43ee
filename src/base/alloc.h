/* SPDX-License-Identifier: MIT
 *
 * alloc - the library's way to the heap: fails when it is told to, and counts what is alive.
 *
 * All memory of the library but what needs to be mapped comes from here; the program may put an allocator of its own behind it (weft/alloc.h). In test builds the nth allocation can be made to fail (base/fault.h) and the live count is what
 * the test harness compares before and after a test.
 */
#ifndef WEFT_BASE_ALLOC_H
#define WEFT_BASE_ALLOC_H

#include <weft/alloc.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Gives `bytes` of zeroed memory, aligned for any object; NULL when there is none. */
void *weft__alloc(size_t bytes);

/* The same, aligned to `align`, a power of two. */
void *weft__alloc_aligned(size_t bytes, size_t align);

/* The same, but only the first `clear` bytes are zero. What is behind them is written before it is read, and costs no memory until then. */
void *weft__alloc_aligned_part(size_t bytes, size_t align, size_t clear);

/* Takes what weft__alloc or weft__alloc_aligned gave; NULL is fine. */
void weft__free(void *memory);

/* Has the program an allocator of its own? The answer does not change any more. */
bool weft__alloc_replaced(void);

/* Where it has: zeroed memory, aligned to `align`, a power of two from 16 on, without a byte of overhead, for weft__free_sized with the same size. What otherwise
 * would be mapped comes from here. */
void *weft__alloc_sized(size_t bytes, size_t align);
void weft__free_sized(void *memory, size_t bytes);

/* Blocks alive now. Zero in builds without WEFT_DEBUG. */
int64_t weft__alloc_live(void);

#endif
