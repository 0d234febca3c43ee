/* SPDX-License-Identifier: MIT
 *
 * cabinet - what tests of files by io_uring share: a folder of their own, names in it, and whether there is a ring at all.
 */
#ifndef WEFT_TESTS_CABINET_H
#define WEFT_TESTS_CABINET_H

#include "crew.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weft/weft.h>

static char dir[64];

static inline void dir_make(void)
{
    bool memory = access("/dev/shm", W_OK) == 0; /* which is faster to sync */
    snprintf(dir, sizeof(dir), "%s", memory ? "/dev/shm/weft-fr-XXXXXX" : "/tmp/weft-fr-XXXXXX");
    ASSERT(mkdtemp(dir));
}

struct name {
    char text[96];
};

static inline struct name name_of(const char *what, int number)
{
    struct name n;
    snprintf(n.text, sizeof(n.text), "%s/%s%d", dir, what, number);
    return n;
}

static inline weft_stats stats_of(const struct crew *crew)
{
    weft_stats stats;
    weft_rt_stats(crew->rt, &stats);
    return stats;
}

/* Tests of the ring itself: where there is none there is nothing to see. */
static inline void need_ring(void)
{
    weft_rt *rt;
    unsetenv("WEFT_FILES"); /* what a test asks for, it gets */
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
    int r = weft_rt_files(rt);
    ASSERT_OK(weft_rt_stop(rt, -1));
    if (r < 0) TEST_SKIP("no io_uring here: %d", r);
}

/* The least that takes the ring: one request that is not done on the spot. */
static inline int makes_one(int number)
{
    struct name n = name_of("m", number);
    return weft_fs_mkdir(n.text, 0700);
}

#endif
