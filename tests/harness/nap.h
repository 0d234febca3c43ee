/* SPDX-License-Identifier: MIT
 *
 * nap - a task that sleeps and answers how long it did, by the runtime's clock; or why it was woken.
 *
 *     ASSERT_EQ(joined(weft_go(sleeps, weft_ms(5))), weft_ms(5));      on a clock that stands (still.h)
 */
#ifndef WEFT_TESTS_NAP_H
#define WEFT_TESTS_NAP_H

#include "test.h"

#include <weft/task.h>
#include <weft/time.h>

static inline int64_t sleeps(int64_t ns)
{
    weft_time before = weft_now();
    int r = weft_sleep(ns);
    return r < 0 ? r : weft_now() - before;
}

static inline int64_t joined(weft_task *task)
{
    int64_t ret = 0;
    ASSERT_OK(weft_join(task, &ret));
    return ret;
}

#endif
