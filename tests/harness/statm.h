/* SPDX-License-Identifier: MIT
 *
 * statm - how much memory this process has, mapped and resident, as the kernel says.
 *
 * The first call has stdio make its buffer: a test that compares calls once before it begins.
 */
#ifndef WEFT_TESTS_STATM_H
#define WEFT_TESTS_STATM_H

#include "test.h"

#include <stdio.h>
#include <unistd.h>

struct statm {
    size_t total_bytes;
    size_t resident_bytes;
};

static inline struct statm statm(void)
{
    size_t total = 0;
    size_t resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    ASSERT(f);
    int got = fscanf(f, "%zu %zu", &total, &resident);
    (void)fclose(f);
    ASSERT_EQ(got, 2);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (struct statm){.total_bytes = total * page, .resident_bytes = resident * page};
}

#endif
