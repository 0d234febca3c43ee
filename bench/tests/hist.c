/* SPDX-License-Identifier: MIT
 *
 * The histogram of the load (load/hist.h): every value has a place, none is off by more than 0.8 %, parts are found.
 */
#include "load/hist.h"

#include <stdbool.h>
#include <stdio.h>

static int failures;

static void check(bool right, const char *what, uint64_t value)
{
    if (right) return;
    printf("FAILED: %s: %llu\n", what, (unsigned long long)value);
    failures++;
}

/* What a place tells is not below the value, above it by one step at most, and the next value's is not before it. */
static void test_place(uint64_t value)
{
    size_t place = hist_place(value);
    uint64_t told = hist_value(place);

    check(place < HIST_PLACES, "no place", value);
    check(told >= value, "told too little", value);
    check(told - value <= value / HIST_STEPS, "told too much", value);
    if (value < UINT64_MAX) check(hist_place(value + 1) - place <= 1, "a gap behind", value);
}

static void test_places(void)
{
    for (uint64_t value = 0; value < 5000; value++)
        test_place(value);
    for (unsigned bit = 12; bit < 64; bit++) {
        uint64_t power = UINT64_C(1) << bit;
        test_place(power - 1);
        test_place(power);
        test_place(power + power / 3);
    }
    test_place(UINT64_MAX);
}

static void test_parts(void)
{
    static struct hist h;
    check(hist_at(&h, 0.5) == 0, "of nothing", 0);
    for (uint64_t value = 1; value <= 100; value++)
        hist_add(&h, value);
    hist_add(&h, 1000000);
    check(hist_at(&h, 0.5) == 51, "p50", hist_at(&h, 0.5));
    check(hist_at(&h, 0.99) == 100, "p99", hist_at(&h, 0.99));
    check(hist_at(&h, 0.999) == 1000000, "p99.9 is the largest", hist_at(&h, 0.999));
    check(h.max == 1000000 && h.count == 101, "all are there", h.count);
}

int main(void)
{
    test_places();
    test_parts();
    return failures > 0;
}
