/* SPDX-License-Identifier: MIT
 *
 * ending - the end of a task and of its handle, as the runtime brings them about, for tests that
 * have tasks and no runtime. Also for model tests: only the library's own atomics.
 */
#ifndef TESTS_HARNESS_ENDING_H
#define TESTS_HARNESS_ENDING_H

#include "task/join.h"

/* The child's poll answered READY. */
static inline struct weft__join_done ending_complete(struct weft_task *child)
{
    struct weft__join_done done;
    uint64_t word = weft__join_ending(child);
    while (!weft__join_end(child, &word, &done)) {}
    return done;
}

/* The same of one that nobody waits for. */
static inline enum weft__state_next ending_alone(struct weft_task *task)
{
    struct weft__join_done done = ending_complete(task);
    weft_assert(weft__waker_is_none(done.joiner));
    return done.free ? WEFT__STATE_FREE : WEFT__STATE_NOTHING;
}

static inline enum weft__state_next ending_detach(struct weft_task *child)
{
    enum weft__state_next next;
    uint64_t word = weft__state_look(child);
    while (!weft__join_detach(child, &word, &next)) {}
    return next;
}

#endif
