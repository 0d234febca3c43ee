/* SPDX-License-Identifier: MIT
 *
 * pool - the plainest scheduler that polls real tasks on real threads: one queue under a mutex.
 *
 * For stress tests of what lies below the real one. It follows the protocol of task/state.h to the
 * letter and adds no cleverness that could hide a fault; a queue's mutex orders push and pop only.
 */
#ifndef WEFT_TESTS_POOL_H
#define WEFT_TESTS_POOL_H

#include "ending.h"
#include "task/join.h"
#include "task/state.h"
#include "task/waker.h"
#include "task/watchers.h"
#include "test.h"

#include <pthread.h>

enum pool_poll { POOL_PENDING, POOL_READY, POOL_YIELD };

#define POOL_THREADS_MAX 8

struct pool {
    pthread_mutex_t mutex; /* guards the next four */
    pthread_cond_t more;
    struct weft_task *first;
    struct weft_task *last;
    bool stop;
    enum pool_poll (*poll)(struct pool *pool, struct weft_task *task, uint64_t word);
    void (*free)(struct weft_task *task); /* the state word said FREE */
    struct weft__sched sched;
    void *user;
    pthread_t threads[POOL_THREADS_MAX];
    unsigned thread_count;
};

static inline void pool_push_chain(void *sched, struct weft_task *first, struct weft_task *last,
                                   uint32_t count)
{
    struct pool *pool = sched;

    (void)count;
    store_relaxed(&last->link, NULL);
    pthread_mutex_lock(&pool->mutex);
    if (pool->last) {
        store_relaxed(&pool->last->link, first);
    } else {
        pool->first = first;
    }
    pool->last = last;
    pthread_cond_broadcast(&pool->more);
    pthread_mutex_unlock(&pool->mutex);
}

static inline void pool_push(void *sched, struct weft_task *task)
{
    pool_push_chain(sched, task, task, 1);
}

/* NULL: the pool was stopped, and the queue is empty. */
static inline struct weft_task *pool_pop(struct pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    while (!pool->first && !pool->stop)
        pthread_cond_wait(&pool->more, &pool->mutex);
    struct weft_task *task = pool->first;
    if (task) pool->first = load_relaxed(&task->link);
    if (!pool->first) pool->last = NULL;
    pthread_mutex_unlock(&pool->mutex);
    return task;
}

static inline void pool_end(struct pool *pool, struct weft_task *task)
{
    struct weft__join_done done = ending_complete(task);
    if (done.free) pool->free(task);
    weft__waker_push(done.joiner, &pool->sched);
    if (done.watched) weft__watchers_wake(task, &pool->sched);
}

static inline void pool_run_one(struct pool *pool, struct weft_task *task)
{
    uint64_t word = weft__state_begin_poll(task);

    weft__state_check(word);
    switch (pool->poll(pool, task, word)) {
    case POOL_PENDING:
        if (weft__state_end_poll(task) == WEFT__STATE_REQUEUE) pool_push(pool, task);
        break;
    case POOL_YIELD:
        pool_push(pool, task);
        break;
    case POOL_READY:
        pool_end(pool, task);
        break;
    }
}

static inline void *pool_thread(void *arg)
{
    struct pool *pool = arg;
    for (struct weft_task *task; (task = pool_pop(pool));)
        pool_run_one(pool, task);
    return NULL;
}

static const struct weft__sched_ops pool_ops = {.push = pool_push, .push_chain = pool_push_chain};

/* poll, free and user are set by the caller before. */
static inline void pool_start(struct pool *pool, unsigned threads)
{
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->more, NULL);
    pool->sched = (struct weft__sched){&pool_ops, pool};
    pool->thread_count = threads;
    for (unsigned i = 0; i < threads; i++) {
        ASSERT_OK(pthread_create(&pool->threads[i], NULL, pool_thread, pool));
    }
}

/* All that is queued is still run, and what that wakes. */
static inline void pool_stop(struct pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    pool->stop = true;
    pthread_cond_broadcast(&pool->more);
    pthread_mutex_unlock(&pool->mutex);
    for (unsigned i = 0; i < pool->thread_count; i++)
        pthread_join(pool->threads[i], NULL);
    pool_thread(pool); /* a thread that left early may have been pushed to by one that stayed */
    pthread_cond_destroy(&pool->more);
    pthread_mutex_destroy(&pool->mutex);
}

static inline void pool_wake(struct pool *pool, struct weft_task *task)
{
    if (weft__state_claim(task) == WEFT__STATE_ENQUEUE) pool_push(pool, task);
}

static inline void pool_cancel(struct pool *pool, struct weft_task *task)
{
    if (weft__state_cancel(task) == WEFT__STATE_ENQUEUE) pool_push(pool, task);
}

static inline void pool_unref(struct pool *pool, struct weft_task *task)
{
    if (weft__state_unref(task) == WEFT__STATE_FREE) pool->free(task);
}

/* A stream of numbers of its own for each thread or task: seed and a number give it. */
static inline uint64_t pool_seed(uint64_t index)
{
    return (test_seed() ^ index * UINT64_C(0x9e3779b97f4a7c15)) | 1;
}

/* 0..n-1 */
static inline uint32_t pool_random(uint64_t *state, uint32_t n)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 32) % n;
}

#endif
