/* SPDX-License-Identifier: MIT
 *
 * alloc - malloc behind a counter and a fault point.
 */
#include "base/alloc.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "base/fault.h"

#include <stdlib.h>
#include <string.h>

#if defined(WEFT_DEBUG)
static _Atomic int64_t live;
#define LIVE_ADD(n) ((void)fetch_add_relaxed(&live, (n))) /* relaxed: a count, read when all is quiet */
#else
#define LIVE_ADD(n) ((void)(n))
#endif

void *weft__alloc(size_t bytes)
{
    if (weft__fault(WEFT__FAULT_ALLOC)) return NULL;
    void *memory = calloc(1, bytes);
    if (memory) LIVE_ADD(1);
    return memory;
}

void *weft__alloc_aligned(size_t bytes, size_t align)
{
    void *memory = NULL;
    weft_assert(weft__is_pow2(align));
    if (align < sizeof(void *)) align = sizeof(void *); /* less would be an error of posix_memalign's, and look like no memory */
    if (weft__fault(WEFT__FAULT_ALLOC)) return NULL;
    if (posix_memalign(&memory, align, bytes) != 0) return NULL;
    memset(memory, 0, bytes);
    LIVE_ADD(1);
    return memory;
}

void weft__free(void *memory)
{
    if (memory) LIVE_ADD(-1);
    free(memory);
}

int64_t weft__alloc_live(void)
{
#if defined(WEFT_DEBUG)
    return load_relaxed(&live); /* relaxed: a count */
#else
    return 0;
#endif
}
