/* SPDX-License-Identifier: MIT
 *
 * alloc - the library's way to the heap: fails when it is told to, and counts what is alive.
 *
 * All small memory of the library comes from here. In test builds the nth allocation can be made to fail (base/fault.h) and the live count is what
 * the test harness compares before and after a test.
 */
#ifndef WEFT_BASE_ALLOC_H
#define WEFT_BASE_ALLOC_H

#include <stddef.h>
#include <stdint.h>

/* Gives `bytes` of zeroed memory, aligned for any object; NULL when there is none. */
void *weft__alloc(size_t bytes);

/* The same, aligned to `align`, a power of two. */
void *weft__alloc_aligned(size_t bytes, size_t align);

/* Takes what weft__alloc or weft__alloc_aligned gave; NULL is fine. */
void weft__free(void *memory);

/* Blocks alive now. Zero in builds without WEFT_DEBUG. */
int64_t weft__alloc_live(void);

#endif
