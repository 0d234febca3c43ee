/* SPDX-License-Identifier: MIT
 *
 * counted - a waker that counts, and a poll's context with it: for tests that poll by hand, on no task.
 *
 *     struct counted c;
 *     struct weft_cx cx = cx_of(&c);
 *     ... poll(&frame, &cx) ...
 *     ASSERT_EQ(c.wakes, 1);
 * For waits that take a waker alone: counted_waker(&c).
 */
#ifndef WEFT_TESTS_COUNTED_H
#define WEFT_TESTS_COUNTED_H

#include "base/list.h"
#include "task/waker.h"
#include "types.h"

struct counted {
    struct weft__foreign foreign;
    int wakes;
};

static inline void counted_wake(struct weft__foreign *foreign)
{
    weft__container_of(foreign, struct counted, foreign)->wakes++;
}

static inline void counted_free(struct weft__foreign *foreign)
{
    (void)foreign;
}

static const struct weft__foreign_ops counted_ops = {.wake = counted_wake, .free = counted_free};

static inline struct weft_waker counted_waker(struct counted *c)
{
    *c = (struct counted){.wakes = 0};
    weft__foreign_init(&c->foreign, &counted_ops);
    return weft__waker_of_foreign(&c->foreign);
}

static inline struct weft_cx cx_of(struct counted *c)
{
    return (struct weft_cx){.waker = counted_waker(c), .budget = 128};
}

#endif
