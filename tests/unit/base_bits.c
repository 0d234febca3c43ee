/* SPDX-License-Identifier: MIT
 *
 * Powers of two, rounding and alignment: each against the definition, at the edges.
 */
#include "base/bits.h"
#include "death.h"
#include "test.h"

TEST(bits_pow2_is_one_bit)
{
    ASSERT(!weft__is_pow2(0));
    for (unsigned i = 0; i < 64; i++) {
        uint64_t n = UINT64_C(1) << i;
        ASSERT(weft__is_pow2(n));
        ASSERT_EQ(weft__log2_down(n), i);
        ASSERT_EQ(weft__log2_up(n), i);
        ASSERT(weft__pow2_up(n) == n);
        ASSERT_EQ(weft__lowest_bit(n), i);
        ASSERT_EQ(weft__popcount(n), 1);
    }
    ASSERT(!weft__is_pow2(3));
    ASSERT(!weft__is_pow2(UINT64_MAX));
    ASSERT_EQ(weft__popcount(UINT64_MAX), 64);
    ASSERT_EQ(weft__popcount(0), 0);
}

/* Between two powers the logarithm rounds as its name says. */
TEST(bits_log2_rounds_as_named)
{
    ASSERT_EQ(weft__log2_down(65), 6);
    ASSERT_EQ(weft__log2_up(65), 7);
    ASSERT_EQ(weft__log2_down(127), 6);
    ASSERT_EQ(weft__log2_up(127), 7);
    ASSERT_EQ(weft__log2_down(UINT64_MAX), 63);
    ASSERT_EQ(weft__log2_up(UINT64_MAX), 64);
    ASSERT_EQ(weft__pow2_up(0), 1);
    ASSERT_EQ(weft__pow2_up(5), 8);
    ASSERT_EQ(weft__lowest_bit(12), 2);
}

TEST(bits_rounding_meets_its_definition)
{
    for (size_t step = 1; step <= 64; step *= 2) {
        for (size_t n = 0; n < 300; n++) {
            size_t down = weft__round_down(n, step);
            size_t up = weft__round_up(n, step);
            ASSERT(down % step == 0 && down <= n && n - down < step);
            ASSERT(up % step == 0 && up >= n && up - n < step);
            ASSERT_EQ(weft__div_up(n, step), up / step);
        }
    }
    ASSERT(weft__round_up(SIZE_MAX - 4095, 4096) == SIZE_MAX - 4095);
    ASSERT(weft__div_up(UINT64_MAX, 2) == UINT64_C(1) << 63);
}

TEST(bits_alignment_of_addresses)
{
    _Alignas(64) static char memory[256];
    ASSERT(weft__is_aligned(memory, 64));
    ASSERT(!weft__is_aligned(memory + 1, 2));
    ASSERT_PTR(weft__align_up(memory, 64), memory);
    ASSERT_PTR(weft__align_up(memory + 1, 64), memory + 64);
    ASSERT_PTR(weft__align_up(memory + 64, 64), memory + 64);
}

static void *volatile sink;
static volatile size_t number;

static void round_by_three(void *arg)
{
    (void)arg;
    number = weft__round_up(10, 3);
}

static void round_past_the_end(void *arg)
{
    (void)arg;
    number = weft__round_up(SIZE_MAX - 1, 4096);
}

static void log_of_nothing(void *arg)
{
    (void)arg;
    number = weft__log2_down(0);
}

static void align_by_nothing(void *arg)
{
    sink = weft__align_up(arg, 0);
}

/* A wrong argument is a bug of the caller, and says so. */
TEST(bits_preconditions_are_asserted)
{
    static void (*const wrong[])(void *) = {round_by_three, round_past_the_end, log_of_nothing,
                                            align_by_nothing};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct death d = death_of(wrong[i], NULL);
        ASSERT_EQ(d.signal, SIGABRT);
        ASSERT(strstr(d.said, "base/bits.h"));
    }
}
