/* SPDX-License-Identifier: MIT
 *
 * alloc - where the library's memory comes from.
 *
 * The default is the C library's heap, and for the memory of tasks the kernel. A program may put one allocator of its own
 * in the place of both, before it uses anything else of the library.
 *
 * From the kernel in any case: the stacks of fibers (they need guards), signal stacks, and what the C library takes for
 * threads. A task in a pool (pool.h) takes nothing at all.
 */
#ifndef WEFT_ALLOC_H
#define WEFT_ALLOC_H

#include <weft/api.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Both are called by any thread, several at once, with no lock of the library held, and must not call the library. So they may wait
 * for locks of their own, also those that a handler of pthread_atfork takes. */
typedef struct weft_allocator {
    /* Gives `bytes` (not 0) at a multiple of `align`: a power of two from 16 to 2 MiB; mostly 16 and 64, and 64 KiB or
     * 2 MiB for the blocks of tasks. The contents do not matter. NULL: there is none, an answer like any other. */
    void *(*alloc)(void *ctx, size_t bytes, size_t align);
    /* Takes back what alloc gave, with the same `bytes`. Never NULL. */
    void (*free)(void *ctx, void *memory, size_t bytes);
    void *ctx;
} weft_allocator;

/* All memory of the library comes from `allocator` from now on. Pins *allocator for the rest of the process.
 * Context: any thread, once, before the first runtime, task or other object.
 * Returns 0; -EBUSY: the library has used memory already, or has an allocator; -EINVAL: NULL, or a function is missing. */
WEFT_API int weft_set_allocator(const weft_allocator *allocator);

/* Takes memory that the library gave with these words, "for weft_free". NULL is fine. Context: anywhere but in a signal handler. */
WEFT_API void weft_free(void *memory);

#ifdef __cplusplus
}
#endif

#endif
