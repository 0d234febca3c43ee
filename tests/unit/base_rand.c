/* SPDX-License-Identifier: MIT
 *
 * The generator: known answers, repeatability, bounds without bias, fair shuffles.
 */
#include "base/rand.h"
#include "test.h"

#include <string.h>

/* Published answers of splitmix64 and of xoshiro256** from the state 1, 2, 3, 4. */
TEST(rand_gives_the_known_answers)
{
    static const uint64_t split[] = {UINT64_C(6457827717110365317), UINT64_C(3203168211198807973),
                                     UINT64_C(9817491932198370423)};
    static const uint64_t drawn[] = {11520,
                                     0,
                                     1509978240,
                                     UINT64_C(1215971899390074240),
                                     UINT64_C(1216172134540287360),
                                     UINT64_C(607988272756665600)};
    uint64_t state = 1234567;
    struct weft__rand r = {.word = {1, 2, 3, 4}};

    for (size_t i = 0; i < 3; i++)
        ASSERT(weft__rand_split(&state) == split[i]);
    for (size_t i = 0; i < 6; i++)
        ASSERT(weft__rand_u64(&r) == drawn[i]);
}

TEST(rand_same_seed_same_stream)
{
    struct weft__rand a;
    struct weft__rand b;
    struct weft__rand other;
    int same = 0;

    weft__rand_seed(&a, test_seed());
    weft__rand_seed(&b, test_seed());
    weft__rand_seed(&other, test_seed() ^ 1);
    for (int i = 0; i < 1000; i++) {
        uint64_t drawn = weft__rand_u64(&a);
        ASSERT(drawn == weft__rand_u64(&b));
        same += drawn == weft__rand_u64(&other);
    }
    ASSERT_LE(same, 1);
}

TEST(rand_any_seed_will_do)
{
    static const uint64_t seeds[] = {0, 1, UINT64_MAX, UINT64_C(0x9e3779b97f4a7c15),
                                     UINT64_C(0) - UINT64_C(0x9e3779b97f4a7c15)};
    for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++) {
        struct weft__rand r;
        weft__rand_seed(&r, seeds[i]);
        ASSERT(r.word[0] | r.word[1] | r.word[2] | r.word[3]);
        ASSERT(weft__rand_u64(&r) != weft__rand_u64(&r));
    }
}

TEST(rand_below_stays_below)
{
    static const uint64_t bounds[] = {
        1, 2, 3, 7, 64, 1000, UINT64_C(1) << 63, (UINT64_C(1) << 63) + 1, UINT64_MAX};
    struct weft__rand r;

    weft__rand_seed(&r, test_seed());
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++)
        for (int n = 0; n < 1000; n++)
            ASSERT(weft__rand_below(&r, bounds[i]) < bounds[i]);
}

/* With 3/4 of 2^64 as the bound, a draw taken modulo the bound would fall into its lower third half
 * of the time instead of a third of it, and one scaled down without a second draw would as often be
 * a multiple of three. 30,000 fixed draws; the allowance is ten standard deviations. */
TEST(rand_below_has_no_bias)
{
    struct weft__rand r;
    uint64_t quarter = UINT64_C(1) << 62;
    int low = 0;
    int multiples = 0;

    weft__rand_seed(&r, 42);
    for (int i = 0; i < 30000; i++) {
        uint64_t drawn = weft__rand_below(&r, 3 * quarter);
        low += drawn < quarter;
        multiples += drawn % 3 == 0;
    }
    ASSERT_GE(low, 10000 - 800);
    ASSERT_LE(low, 10000 + 800);
    ASSERT_GE(multiples, 10000 - 800);
    ASSERT_LE(multiples, 10000 + 800);
}

TEST(rand_chance_at_its_ends_is_certain)
{
    struct weft__rand r;
    weft__rand_seed(&r, test_seed());
    for (int i = 0; i < 1000; i++) {
        ASSERT(weft__rand_chance(&r, 5, 5));
        ASSERT(!weft__rand_chance(&r, 0, 5));
    }
}

static void shuffle_three(struct weft__rand *r, int counts[6])
{
    char items[] = "abc";
    static const char *const orders[] = {"abc", "acb", "bac", "bca", "cab", "cba"};

    weft__rand_shuffle(r, items, 3, 1);
    for (int i = 0; i < 6; i++)
        counts[i] += strcmp(items, orders[i]) == 0;
}

/* Of three items each of the six orders comes up as often as the others: 10,000 times in 60,000,
 * give or take nine standard deviations. */
TEST(rand_shuffle_is_fair)
{
    struct weft__rand r;
    int counts[6] = {0};
    int total = 0;

    weft__rand_seed(&r, 7);
    for (int i = 0; i < 60000; i++)
        shuffle_three(&r, counts);
    for (int i = 0; i < 6; i++) {
        ASSERT_GE(counts[i], 10000 - 820);
        ASSERT_LE(counts[i], 10000 + 820);
        total += counts[i];
    }
    ASSERT_EQ(total, 60000);
}

/* Nothing is lost or doubled, whatever the size of an item; none and one are left alone. */
TEST(rand_shuffle_permutes)
{
    struct weft__rand r;
    struct pair {
        int key;
        int twice;
    } items[100];
    bool seen[100] = {false};

    weft__rand_seed(&r, test_seed());
    for (int i = 0; i < 100; i++)
        items[i] = (struct pair){i, 2 * i};
    weft__rand_shuffle(&r, items, 100, sizeof(items[0]));
    for (int i = 0; i < 100; i++) {
        ASSERT_EQ(items[i].twice, 2 * items[i].key);
        ASSERT(!seen[items[i].key]);
        seen[items[i].key] = true;
    }
    weft__rand_shuffle(&r, items, 0, sizeof(items[0]));
    weft__rand_shuffle(&r, items, 1, sizeof(items[0]));
}
