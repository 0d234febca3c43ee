/* SPDX-License-Identifier: MIT
 *
 * rand - seeding, bounded draws without bias, and the shuffle.
 */
#include "base/rand.h"

uint64_t weft__rand_split(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

void weft__rand_seed(struct weft__rand *r, uint64_t seed)
{
    /* splitmix64 is a bijection of a counter: four draws in a row are four different words, so
     * at most one of them is zero. */
    for (int i = 0; i < 4; i++)
        r->word[i] = weft__rand_split(&seed);
}

/* Lemire's method: the high half of draw * bound is the answer, unless the low half falls into
 * the part where some answers would get one draw more than others. That part is smaller than
 * bound, so the division is rarely made and the loop rarely turns. */
uint64_t weft__rand_below(struct weft__rand *r, uint64_t bound)
{
    weft_assert(bound != 0);
    unsigned __int128 product = (unsigned __int128)weft__rand_u64(r) * bound;
    if ((uint64_t)product < bound) {
        uint64_t unfair = (0 - bound) % bound; /* 2^64 mod bound */
        while ((uint64_t)product < unfair)
            product = (unsigned __int128)weft__rand_u64(r) * bound;
    }
    return (uint64_t)(product >> 64);
}

bool weft__rand_chance(struct weft__rand *r, uint64_t num, uint64_t den)
{
    return weft__rand_below(r, den) < num;
}

static void swap(char *a, char *b, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        char held = a[i];
        a[i] = b[i];
        b[i] = held;
    }
}

void weft__rand_shuffle(struct weft__rand *r, void *items, size_t count, size_t item_bytes)
{
    char *base = items;
    for (size_t left = count; left > 1; left--) {
        size_t pick = (size_t)weft__rand_below(r, left);
        if (pick != left - 1)
            swap(base + pick * item_bytes, base + (left - 1) * item_bytes, item_bytes);
    }
}
