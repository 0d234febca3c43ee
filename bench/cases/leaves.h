/* SPDX-License-Identifier: MIT
 *
 * leaves - two small things to wait for, made of the library's notify: a value that comes once, and a count of tasks that are still to come.
 *
 * The read-modify-writes of one hand-over by a notify that somebody waits for:
 *     weft_notify_one   lock, claim                    weft_notify_wait   lock; none when it is woken
 * and one for the task that goes idle in between.
 */
#ifndef WEFT_BENCH_LEAVES_H
#define WEFT_BENCH_LEAVES_H

#include <weft/weft.h>

#include <stdatomic.h>

/* A value that is sent once; the receiver waits until it came. */
struct oneshot {
    weft_notify came;
    int64_t value; /* written before it is told */
};

static inline void oneshot_init(struct oneshot *one)
{
    weft_notify_init(&one->came);
}

static inline void oneshot_send(struct oneshot *one, int64_t value)
{
    one->value = value;
    weft_notify_one(&one->came);
}

/* Counts down; the last one tells. */
struct latch {
    _Atomic uint64_t left;
    weft_notify all;
};

static inline void latch_init(struct latch *latch, uint64_t count)
{
    atomic_store_explicit(&latch->left, count, memory_order_relaxed); /* relaxed: not shared yet */
    weft_notify_init(&latch->all);
}

static inline void latch_count(struct latch *latch)
{
    /* acq_rel: the last one has seen what all others did */
    if (atomic_fetch_sub_explicit(&latch->left, 1, memory_order_acq_rel) == 1)
        weft_notify_one(&latch->all);
}

static inline uint64_t latch_left(struct latch *latch)
{
    return atomic_load_explicit(&latch->left, memory_order_relaxed); /* relaxed: it was told */
}

#endif
