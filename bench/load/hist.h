/* SPDX-License-Identifier: MIT
 *
 * hist - a histogram of times: exact below 128 ns, then 128 steps to each power of two, so that what it answers is right within 0.8 %.
 *
 * One thread. Fixed memory: a run of a second and one of an hour cost the same.
 */
#ifndef WEFT_BENCH_LOAD_HIST_H
#define WEFT_BENCH_LOAD_HIST_H

#include <stddef.h>
#include <stdint.h>

#define HIST_STEP_BITS 7
#define HIST_STEPS     (1u << HIST_STEP_BITS)
#define HIST_PLACES    ((64 - HIST_STEP_BITS + 1) * HIST_STEPS)

struct hist {
    uint64_t count;
    uint64_t max;
    uint64_t at[HIST_PLACES];
};

static inline size_t hist_place(uint64_t value)
{
    if (value < HIST_STEPS) return (size_t)value;
    unsigned shift = 63u - (unsigned)__builtin_clzll(value) - HIST_STEP_BITS;
    return (size_t)(shift + 1) * HIST_STEPS + (size_t)(value >> shift) - HIST_STEPS;
}

/* The largest value of a place. */
static inline uint64_t hist_value(size_t place)
{
    if (place < HIST_STEPS) return place;
    unsigned shift = (unsigned)(place / HIST_STEPS) - 1;
    uint64_t step = place % HIST_STEPS + HIST_STEPS;
    return ((step + 1) << shift) - 1;
}

static inline void hist_add(struct hist *h, uint64_t value)
{
    h->count++;
    h->at[hist_place(value)]++;
    if (value > h->max) h->max = value;
}

/* The value that `part` of all, 0.99 say, do not exceed. */
static inline uint64_t hist_at(const struct hist *h, double part)
{
    uint64_t seen = 0;
    for (size_t i = 0; i < HIST_PLACES; i++) {
        seen += h->at[i];
        if (h->at[i] > 0 && (double)seen >= part * (double)h->count)
            return hist_value(i) < h->max ? hist_value(i) : h->max;
    }
    return h->max;
}

#endif
