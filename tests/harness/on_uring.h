/* SPDX-License-Identifier: MIT
 *
 * on_uring - a runtime on io_uring, entered; where that does not work the test is skipped, and says why.
 */
#ifndef HARNESS_ON_URING_H
#define HARNESS_ON_URING_H

#include "sched/sched.h"
#include "test.h"

#include <weft/weft.h>

#include <stdio.h>
#include <string.h>

static inline weft_rt *on_uring(int workers)
{
    weft_rt *rt;
    const char *why;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = workers, .driver = WEFT_DRIVER_IO_URING}, &rt));
    if (strcmp(weft_rt_driver(rt, &why), "io_uring") != 0) {
        static char reason[128];
        snprintf(reason, sizeof reason, "%s", why ? why : "WEFT_DRIVER asks for the other driver");
        ASSERT_OK(weft_rt_stop(rt, -1));
        TEST_SKIP("%s", reason);
    }
    (void)weft_rt_enter(rt);
    return rt;
}

/* The polls of its one worker count as quick, however slow the machine is: before anything of it is watched. */
static inline void counts_as_quick(weft_rt *rt)
{
    rt->workers[0].gait.slow_ns = INT64_MAX;
}

static inline weft_rt *on_uring_quick(void)
{
    weft_rt *rt = on_uring(1);
    counts_as_quick(rt);
    return rt;
}

static inline void stops(weft_rt *rt)
{
    (void)weft_rt_enter(NULL);
    ASSERT_OK(weft_rt_stop(rt, -1));
}

#endif
