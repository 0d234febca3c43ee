/* SPDX-License-Identifier: MIT
 *
 * still - a crew whose clock stands: hours of sleep in no time, and times that are exact.
 *
 *     static void sleeps(struct crew *crew) { ... }
 *     TEST(sleep_lasts) { still_each(sleeps); }
 */
#ifndef WEFT_TESTS_STILL_H
#define WEFT_TESTS_STILL_H

#include "crew.h"

#include <weft/time.h>

static inline void still_each(void (*body)(struct crew *crew))
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        weft_rt_opts opts = {.workers = crew_sizes[i], .seed = test_seed() | 1, .paused = true};
        crew_start_with(&crew, &opts);
        body(&crew);
        crew_stop(&crew);
    }
}

#endif
