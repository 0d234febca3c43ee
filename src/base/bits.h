/* SPDX-License-Identifier: MIT
 *
 * bits - powers of two, rounding and alignment, with the preconditions asserted.
 *
 * The asserts fold away where the arguments are constants. They are not for sizes that come from a
 * user: those are bounded by the caller first, because a rounding that would wrap is a bug here and
 * an error there.
 * Threads: none of its own.
 */
#ifndef WEFT_BASE_BITS_H
#define WEFT_BASE_BITS_H

#include "base/assert.h"

#include <stddef.h>
#include <stdint.h>

static inline bool weft__is_pow2(uint64_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

/* The largest multiple of `step`, a power of two, that is not above `n`. */
static inline size_t weft__round_down(size_t n, size_t step)
{
    weft_assert(weft__is_pow2(step));
    return n & ~(step - 1);
}

/* The smallest multiple of `step`, a power of two, that is not below `n`. */
static inline size_t weft__round_up(size_t n, size_t step)
{
    weft_assert(weft__is_pow2(step));
    weft_assert(n <= SIZE_MAX - (step - 1));
    return (n + (step - 1)) & ~(step - 1);
}

/* How many of `by` it takes to hold `n`. */
static inline uint64_t weft__div_up(uint64_t n, uint64_t by)
{
    weft_assert(by != 0);
    return n / by + (n % by != 0);
}

/* The exponent of the largest power of two that is not above `n`: 0 for 1, 6 for 64 and for 127. */
static inline unsigned weft__log2_down(uint64_t n)
{
    weft_assert(n != 0);
    return 63u - (unsigned)__builtin_clzll(n);
}

/* The exponent of the smallest power of two that is not below `n`: 0 for 1, 6 for 64, 7 for 65. */
static inline unsigned weft__log2_up(uint64_t n)
{
    return weft__log2_down(n) + !weft__is_pow2(n);
}

/* The smallest power of two that is not below `n`; `n` is at most 2^63. Zero counts as one. */
static inline uint64_t weft__pow2_up(uint64_t n)
{
    weft_assert(n <= UINT64_C(1) << 63);
    return n <= 1 ? 1 : UINT64_C(1) << weft__log2_up(n);
}

static inline unsigned weft__popcount(uint64_t word)
{
    return (unsigned)__builtin_popcountll(word);
}

/* The index of the lowest bit that is set; one is. */
static inline unsigned weft__lowest_bit(uint64_t word)
{
    weft_assert(word != 0);
    return (unsigned)__builtin_ctzll(word);
}

static inline bool weft__is_aligned(const void *p, size_t align)
{
    weft_assert(weft__is_pow2(align));
    return ((uintptr_t)p & (align - 1)) == 0;
}

/* The first address at or behind `p` that is a multiple of `align`. */
static inline void *weft__align_up(void *p, size_t align)
{
    return (char *)p + (weft__round_up((uintptr_t)p, align) - (uintptr_t)p);
}

#endif
