/* SPDX-License-Identifier: MIT
 *
 * clock - two clocks of the kernel, as one number each.
 */
#include "sys/clock.h"

#include "base/assert.h"

#include <time.h>

static int64_t read_clock(clockid_t id)
{
    struct timespec now;
    int r = clock_gettime(id, &now);
    weft_assert(r == 0); /* both clocks are there since Linux 2.6.32 */
    return (int64_t)now.tv_sec * WEFT__NS_PER_S + now.tv_nsec;
}

int64_t weft__clock_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t weft__clock_coarse(void)
{
    return read_clock(CLOCK_MONOTONIC_COARSE);
}
