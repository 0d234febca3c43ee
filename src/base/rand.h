/* SPDX-License-Identifier: MIT
 *
 * rand - the only randomness in the library: a seeded generator that its owner keeps.
 *
 * xoshiro256** with its state filled by splitmix64, so that seeds that differ in one bit give
 * streams that have nothing in common. The same seed gives the same stream on every machine: a
 * failing run is repeated by its seed. Not for secrets.
 * Threads: none of its own; a worker has its own state, and there is no global one.
 * Rejected: a global generator (a shared write on every steal, and runs that cannot be repeated);
 * rand() and random() (locks, libc's choice).
 */
#ifndef WEFT_BASE_RAND_H
#define WEFT_BASE_RAND_H

#include "base/assert.h"

#include <stddef.h>
#include <stdint.h>

struct weft__rand {
    uint64_t word[4]; /* never all zero: the generator would stay there */
};

/* One step of splitmix64: moves *state on and gives 64 well mixed bits. For deriving the seeds
 * of many generators from one. */
uint64_t weft__rand_split(uint64_t *state);

/* Fill the state from a seed; any seed will do, also 0. */
void weft__rand_seed(struct weft__rand *r, uint64_t seed);

static inline uint64_t weft__rand_rotl(uint64_t word, unsigned by)
{
    return word << by | word >> (64 - by);
}

/* The next 64 bits. Inline: a thief draws its victim with this. */
static inline uint64_t weft__rand_u64(struct weft__rand *r)
{
    uint64_t *s = r->word;
    uint64_t drawn = weft__rand_rotl(s[1] * 5, 7) * 9;
    uint64_t shifted = s[1] << 17;

    weft_dassert((s[0] | s[1] | s[2] | s[3]) != 0); /* it was seeded */
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = weft__rand_rotl(s[3], 45);
    return drawn;
}

/* A number in [0, bound), all equally likely; bound is not 0. Draws once, except with a chance
 * of bound / 2^64. */
uint64_t weft__rand_below(struct weft__rand *r, uint64_t bound);

/* True in `num` of `den` draws; den is not 0. */
bool weft__rand_chance(struct weft__rand *r, uint64_t num, uint64_t den);

/* Put `count` items of `item_bytes` each into an order drawn at random; every order is equally
 * likely. */
void weft__rand_shuffle(struct weft__rand *r, void *items, size_t count, size_t item_bytes);

#endif
