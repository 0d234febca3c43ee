/* SPDX-License-Identifier: MIT
 *
 * ear - a foreign waker that counts how often it was woken: for tests of waits by one thread, without a runtime.
 *
 *     struct ear ear;
 *     struct weft_waker waker = ear_init(&ear);
 *     ...                                            ear.heard
 */
#ifndef WEFT_TESTS_EAR_H
#define WEFT_TESTS_EAR_H

#include "base/list.h"
#include "task/waker.h"

struct ear {
    struct weft__foreign foreign;
    unsigned heard;
};

static inline void ear_hears(struct weft__foreign *foreign)
{
    weft__container_of(foreign, struct ear, foreign)->heard++;
}

static inline void ear_free(struct weft__foreign *foreign)
{
    (void)foreign;
}

static const struct weft__foreign_ops ear_ops = {.wake = ear_hears, .free = ear_free};

static inline struct weft_waker ear_init(struct ear *ear)
{
    ear->heard = 0;
    weft__foreign_init(&ear->foreign, &ear_ops);
    return weft__waker_of_foreign(&ear->foreign);
}

#endif
