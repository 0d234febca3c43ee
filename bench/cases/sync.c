/* SPDX-License-Identifier: MIT
 *
 * Cases about what tasks share: locks.
 */
#include "root.h"

/* ---- mutex: N tasks, each locks, adds one and unlocks 10,000 times ------------------------------ */

#define LOCKS_EACH 10000

static weft_mutex mutex = WEFT_MUTEX_INIT;
static uint64_t counter; /* guarded by it */

struct adder {
    WEFT_FRAME(int64_t);
    uint32_t left;
    struct weft_lock lock;
};

static weft_async(adder)
{
    weft_begin;
    for (f->left = LOCKS_EACH; f->left > 0; f->left--) {
        weft_await(f->lock, weft_lock, &mutex);
        if (f->lock.ret < 0) weft_return(f->lock.ret);
        counter++;
        (void)weft_unlock(&mutex);
    }
    weft_return(LOCKS_EACH);
    weft_end;
}

static void spawn_adders(weft_task **tasks, uint64_t n, uint64_t arg)
{
    (void)arg;
    for (uint64_t i = 0; i < n; i++)
        tasks[i] = weft_spawn(adder);
}

BENCH(mutex, .n = 100, .end = root_end)
{
    counter = 0;
    uint64_t start = root_start(b);
    double value = root_finish(b, start, root_all(spawn_adders, b->n, 0), b->n * LOCKS_EACH,
                               b->n * LOCKS_EACH);
    bench_check(b, counter, b->n * LOCKS_EACH); /* the sum of what they say, and what they did */
    return value;
}
