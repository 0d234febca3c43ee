/* SPDX-License-Identifier: MIT
 *
 * memory - the allocator, as the checker has it: it tells what is read behind its end, and what is left.
 */
#ifndef MODEL_MEMORY_H
#define MODEL_MEMORY_H

#include "base/alloc.h"
#include "model.h"

void *weft__alloc(size_t bytes)
{
    return model_alloc(bytes);
}

void *weft__alloc_aligned(size_t bytes, size_t align)
{
    (void)align;
    return model_alloc(bytes);
}

void *weft__alloc_aligned_part(size_t bytes, size_t align, size_t clear)
{
    (void)align;
    (void)clear;
    return model_alloc(bytes);
}

void weft__free(void *memory)
{
    if (memory) model_free(memory);
}

#endif
