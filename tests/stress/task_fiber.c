/* SPDX-License-Identifier: MIT
 *
 * Fibers that move: polled by several threads in turns, handed over by a lock, many at once.
 */
#include "task/fiber.h"

#include "sys/mem.h"
#include "task/call.h"
#include "task/here.h"
#include "test.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define THREADS     3
#define FIBERS      64
#define FIBERS_MANY UINT64_C(100000)

static struct weft__stacks pool;

static uint32_t random_below(uint64_t *state, uint32_t n)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 32) % n;
}

/* ---- migration ---- */

struct wanderer {
    pthread_mutex_t lock; /* the hand-over between its pollers; guards the next four */
    struct weft__go_frame frame;
    bool ended;
    uint32_t steps; /* written by the fiber, read by the next thread */
    uint64_t random;
    uint32_t stranger; /* a suspension that found an old thread's record */
};

static struct wanderer wanderers[FIBERS];
static _Atomic uint32_t left;

/* Frames of various depth are alive across the suspension, and are what they were after it. */
__attribute__((noinline)) static uint32_t descend(struct wanderer *w, uint32_t depth)
{
    unsigned char mark[96];

    memset(mark, (int)depth, sizeof(mark));
    if (depth > 0) return descend(w, depth - 1) + (mark[95] == depth ? 0 : 1);
    weft__fiber_suspend();
    /* The poller says by its cx who it is: here must be that thread's, and on this fiber. */
    if (weft__here()->fiber != w->frame.weft__fiber) w->stranger++;
    if (weft__here()->cx->waker.word != (uintptr_t)weft__here()) w->stranger++;
    return mark[0] == 0 ? 0 : 1;
}

static uint32_t wander(struct wanderer *w)
{
    uint32_t wrong = 0;
    uint32_t count = (uint32_t)test_scaled(400);

    for (uint32_t i = 0; i < count; i++) {
        wrong += descend(w, random_below(&w->random, 12));
        w->steps++;
    }
    return wrong;
}

static void poll_one(struct wanderer *w)
{
    /* The test's mark: a cx whose waker is the thread's record. Nobody wakes it. */
    struct weft_cx cx = {.waker = {(uintptr_t)weft__here()}, .budget = 128};

    pthread_mutex_lock(&w->lock);
    if (!w->ended && weft__go_poll(&w->frame, &cx) == WEFT_READY) {
        w->ended = true;
        fetch_sub_relaxed(&left, 1);
    }
    pthread_mutex_unlock(&w->lock);
}

static void *poller(void *arg)
{
    uint64_t random = (test_seed() ^ (uintptr_t)arg * UINT64_C(0x9e3779b97f4a7c15)) | 1;

    weft__here()->stacks = &pool;
    while (load_relaxed(&left) > 0)
        poll_one(&wanderers[random_below(&random, FIBERS)]);
    weft__here()->stacks = NULL;
    return NULL;
}

static void wanderers_begin(void)
{
    store_relaxed(&left, FIBERS);
    for (unsigned i = 0; i < FIBERS; i++) {
        struct wanderer *w = &wanderers[i];
        *w = (struct wanderer){.random = (test_seed() + i) | 1};
        pthread_mutex_init(&w->lock, NULL);
        w->frame.call =
            (weft_call){.fn = (void (*)(void))wander, .arg = {(uintptr_t)w}, .ret_bytes = 4};
    }
}

/* Any thread polls any fiber; each ends with its count, its frames whole, and never a trace of the
 * thread it was on before. */
TEST_WITH(fiber_moves_between_threads, .timeout_s = 300)
{
    struct weft__stacks_options o = {.stack_bytes = 64 * 1024};
    pthread_t threads[THREADS];

    ASSERT_OK(weft__stacks_init(&pool, &o));
    wanderers_begin();
    for (uintptr_t i = 0; i < THREADS; i++)
        ASSERT_OK(pthread_create(&threads[i], NULL, poller, (void *)(i + 1)));
    for (unsigned i = 0; i < THREADS; i++)
        ASSERT_OK(pthread_join(threads[i], NULL));
    for (unsigned i = 0; i < FIBERS; i++) {
        ASSERT_EQ(wanderers[i].frame.ret, 0);
        ASSERT_EQ(wanderers[i].steps, test_scaled(400));
        ASSERT_EQ(wanderers[i].stranger, 0);
        pthread_mutex_destroy(&wanderers[i].lock);
    }
    weft__stacks_check(&pool);
    ASSERT_EQ(pool.in_use_count, 0);
    weft__stacks_done(&pool);
}

/* ---- births and ends on different threads, fibers in fibers, four-byte frames ---- */

struct leaf_frame {
    int32_t weft__at;
    uint32_t ret;
};

static void leaf_body(void *arg)
{
    struct leaf_frame *leaf = arg;
    weft__fiber_suspend();
    leaf->ret = 1;
}

static weft_poll leaf_poll(void *frame, weft_cx *cx)
{
    return weft__fiber_poll(leaf_body, frame, cx);
}

static uint32_t branch(struct wanderer *w)
{
    uint32_t count = (uint32_t)test_scaled(200);

    for (uint32_t i = 0; i < count; i++) {
        struct leaf_frame leaf = {0};
        weft__run(leaf_poll, &leaf);
        w->steps += leaf.ret;
    }
    return 0;
}

/* The outer fiber moves, and the inner one with it, by the poll of the outer. */
TEST_WITH(fiber_in_fiber_moves_between_threads, .timeout_s = 300)
{
    struct weft__stacks_options o = {.stack_bytes = 64 * 1024};
    pthread_t threads[THREADS];

    ASSERT_OK(weft__stacks_init(&pool, &o));
    wanderers_begin();
    for (unsigned i = 0; i < FIBERS; i++)
        wanderers[i].frame.call.fn = (void (*)(void))branch;
    for (uintptr_t i = 0; i < THREADS; i++)
        ASSERT_OK(pthread_create(&threads[i], NULL, poller, (void *)(i + 1)));
    for (unsigned i = 0; i < THREADS; i++)
        ASSERT_OK(pthread_join(threads[i], NULL));
    for (unsigned i = 0; i < FIBERS; i++) {
        ASSERT_EQ(wanderers[i].steps, test_scaled(200));
        pthread_mutex_destroy(&wanderers[i].lock);
    }
    weft__stacks_check(&pool);
    ASSERT_EQ(pool.in_use_count, 0);
    weft__stacks_done(&pool);
}

/* ---- many ---- */

static uint64_t add_later(uint64_t a, uint64_t b)
{
    weft__fiber_suspend();
    return a + b;
}

/* Bytes that may still be taken, as the kernel estimates; UINT64_MAX where it does not say. */
static uint64_t memory_available(void)
{
    char line[128];
    uint64_t kib = UINT64_MAX / 1024;
    FILE *f = fopen("/proc/meminfo", "r");

    if (!f) return UINT64_MAX;
    while (fgets(line, sizeof(line), f)) {
        if (sscanf(line, "MemAvailable: %lu kB", &kib) == 1) break;
    }
    fclose(f);
    return kib * 1024;
}

static uint64_t fibers_many(void)
{
#if defined(WEFT__TSAN)
    return 4000; /* TSan has room for some 8,000 threads and fibers */
#else
    return test_scaled(FIBERS_MANY);
#endif
}

/* All alive at once, each suspended on a stack of its own; by mprotect they would need more
 * mappings than a process may have. */
TEST_WITH(fiber_a_hundred_thousand_at_once, .timeout_s = 600)
{
    struct weft__stacks_options o = {.stack_bytes = 64 * 1024, .guard = WEFT__STACK_GUARD_MADVISE};
    struct weft_cx cx = {.budget = 128};
    uint64_t count = fibers_many();
    int r = weft__mem_guard_probe();

    if (r < 0)
        TEST_SKIP("no MADV_GUARD_INSTALL on this kernel (%d), and mprotect ends near 32,000", r);
    if (memory_available() / 16384 < count)
        TEST_SKIP("less than 16 KiB of memory for each of %lu fibers", count);
    struct weft__go_frame *frames = calloc(count, sizeof(*frames));
    ASSERT(frames != NULL);
    ASSERT_OK(weft__stacks_init(&pool, &o));
    weft__here()->stacks = &pool;
    for (uint64_t i = 0; i < count; i++) {
        frames[i].call =
            (weft_call){.fn = (void (*)(void))add_later, .arg = {i, 1}, .ret_bytes = 8};
        ASSERT_EQ(weft__go_poll(&frames[i], &cx), WEFT_PENDING);
    }
    ASSERT_EQ(pool.in_use_count, count);
    for (uint64_t i = 0; i < count; i++) {
        ASSERT_EQ(weft__go_poll(&frames[i], &cx), WEFT_READY);
        ASSERT_EQ(frames[i].ret, i + 1);
    }
    weft__here()->stacks = NULL;
    weft__stacks_done(&pool);
    free(frames);
}
