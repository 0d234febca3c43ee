/* SPDX-License-Identifier: MIT
 *
 * stack_sizes - pools of stacks by size: the usual one, and one for each power of two that somebody has asked for.
 *
 * A pool is made at its first use and stays until the end, as its chunks do; there are no more than the powers of two between the limits. What is asked for is
 * rounded up. A large size has few stacks in a mapping: WEFT__STACK_MAP_BYTES of addresses at most, or one stack.
 *
 * Threads: get by any; init and done by the owner. No locks. Pairs: [stack-size].
 * Rejected: a mapping for each stack of an unusual size: 8 us a fiber; who asks for one usually asks for many.
 */
#ifndef WEFT_SYS_STACK_SIZES_H
#define WEFT_SYS_STACK_SIZES_H

#include "sys/stack.h"

#define WEFT__STACK_SIZES (WEFT__STACK_MAX_BITS - WEFT__STACK_MIN_BITS + 1)

struct weft__stack_sizes {
    struct weft__stacks *usual; /* constant; borrowed */
    struct weft__stacks *_Atomic pools[WEFT__STACK_SIZES]; /* NULL: nobody has asked  [stack-size] */
};

/* Borrows the usual pool until done. */
void weft__stack_sizes_init(struct weft__stack_sizes *sizes, struct weft__stacks *usual);

/* All but the usual one. No stack is in use any more. */
void weft__stack_sizes_done(struct weft__stack_sizes *sizes);

/* The pool whose stacks have `bytes` (not 0) or more. Returns 0; -EINVAL for more than 2^WEFT__STACK_MAX_BITS; -ENOMEM. */
int weft__stack_sizes_get(struct weft__stack_sizes *sizes, size_t bytes, struct weft__stacks **into);

/* Of all pools, the usual one too: give the pages of some free stacks back, but leave `keep` in each. Returns how many; 0: there are no more. By anyone. */
size_t weft__stack_sizes_trim_some(struct weft__stack_sizes *sizes, size_t keep);

/* Would it find any? */
bool weft__stack_sizes_are_warm(struct weft__stack_sizes *sizes, size_t keep);

#endif
