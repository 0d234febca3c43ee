/* SPDX-License-Identifier: MIT
 *
 * The clocks: monotonic, and the coarse one never ahead.
 */
#include "sys/clock.h"
#include "test.h"

#include <time.h>

TEST(clock_never_goes_back)
{
    int64_t last = weft__clock_now();
    int64_t last_coarse = weft__clock_coarse();
    bool good = true;
    for (int i = 0; i < 100000; i++) {
        int64_t coarse = weft__clock_coarse();
        int64_t now = weft__clock_now();
        good = good && now >= last && coarse >= last_coarse && coarse <= now;
        last = now;
        last_coarse = coarse;
    }
    ASSERT(good);
}

/* It is the clock that absolute futex time-outs are on. */
TEST(clock_is_the_monotonic_one)
{
    struct timespec before;
    struct timespec after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    int64_t now = weft__clock_now();
    clock_gettime(CLOCK_MONOTONIC, &after);
    ASSERT_GE(now, before.tv_sec * WEFT__NS_PER_S + before.tv_nsec);
    ASSERT_LE(now, after.tv_sec * WEFT__NS_PER_S + after.tv_nsec);
}
