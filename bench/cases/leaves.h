/* SPDX-License-Identifier: MIT
 *
 * leaves - the smallest things to wait for, on the library's waitlist: a bell that keeps one ring, a
 * value that comes once, a count of tasks that are still to come.
 *
 * They are what a notify, a oneshot and a latch of the library cost, cancellation included, and not
 * less. The read-modify-writes of one hand-over, in a bell that somebody waits for:
 *     ring   lock, claim, unlock            wait   lock, unlock; none when it is woken
 * and one for the task that goes idle in between. bell_wait is awaited, or called by weft_run.
 */
#ifndef WEFT_BENCH_LEAVES_H
#define WEFT_BENCH_LEAVES_H

#include "sync/waitlist.h"

#include <weft/weft.h>

#include <stdatomic.h>

struct bell {
    struct weft__waitlist list;
    bool rung; /* while nobody waited; guarded by the list's lock */
};

void bell_init(struct bell *bell);

/* Wakes one, or keeps the ring for who comes next. Whoever is woken may free the bell. */
void bell_ring(struct bell *bell);

struct bell_wait {
    WEFT_FRAME(int); /* 0, or why it was stopped */
    struct bell *bell;
    struct weft__waiter waiter;
};
weft_pollfn bell_wait_poll;

/* A value that is sent once; the receiver waits for the bell. */
struct oneshot {
    struct bell bell;
    int64_t value; /* written before the bell is rung */
};

static inline void oneshot_init(struct oneshot *one)
{
    bell_init(&one->bell);
}

static inline void oneshot_send(struct oneshot *one, int64_t value)
{
    one->value = value;
    bell_ring(&one->bell);
}

/* Counts down; the last one tells. */
struct latch {
    _Atomic uint64_t left;
    struct bell all;
};

static inline void latch_init(struct latch *latch, uint64_t count)
{
    atomic_store_explicit(&latch->left, count, memory_order_relaxed); /* relaxed: not shared yet */
    bell_init(&latch->all);
}

static inline void latch_count(struct latch *latch)
{
    /* acq_rel: the last one has seen what all others did */
    if (atomic_fetch_sub_explicit(&latch->left, 1, memory_order_acq_rel) == 1) bell_ring(&latch->all);
}

static inline uint64_t latch_left(struct latch *latch)
{
    return atomic_load_explicit(&latch->left, memory_order_relaxed); /* relaxed: the bell was heard */
}

#endif
