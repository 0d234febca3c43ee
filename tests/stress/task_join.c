/* SPDX-License-Identifier: MIT
 *
 * Join, withdraw and detach against completion, while others poll the joiner for no reason. Every
 * block is freed exactly once (AddressSanitizer, and the harness's count), every result is whole
 * (ThreadSanitizer: it is a plain field), and every joiner gets to its end (the watchdog).
 */
#include "base/alloc.h"
#include "base/list.h"
#include "pool.h"

#include <semaphore.h>

#define POLLERS 3
#define NUDGERS 2
#define SLOTS   8 /* parents alive at once */

enum plan { JOIN, JOIN_THEN_DETACH, DETACH, PLANS };

/* A parent or a child; the pool asks which. */
struct node {
    struct weft_task task;
    struct node *child; /* a parent's; NULL before its first poll */
    enum plan plan;
    uint32_t patience; /* polls before the plan changes, or before a child ends */
    uint32_t slot;     /* a parent's */
    uint32_t result;   /* a child's: plain, ordered by COMPLETE */
    bool is_parent;
    uint64_t random;
};

struct family {
    struct pool pool;
    pthread_mutex_t mutex; /* guards the slots */
    struct node *slots[SLOTS];
    bool over[SLOTS]; /* its parent has ended */
    sem_t ended;
    uint64_t nudges;          /* of each nudger */
    _Atomic uint32_t nudgers; /* started so far */
};

static _Atomic uint64_t nodes_freed;

static void node_free(struct weft_task *task)
{
    struct node *node = weft__container_of(task, struct node, task);

    ASSERT_EQ(node->result, 42);
    weft__state_free(task);
    fetch_add_relaxed(&nodes_freed, 1);
    weft__free(node);
}

static struct node *node_new(uint64_t random, uint32_t references)
{
    struct node *node = weft__alloc(sizeof(*node));

    node->random = random;
    node->patience = pool_random(&node->random, 3);
    weft__state_init(&node->task, references);
    return node;
}

static enum pool_poll child_poll(struct node *child)
{
    if (child->patience-- > 0) return POOL_YIELD;
    child->result = 42;
    return POOL_READY;
}

/* The child is complete: take the result, drop the handle. */
static enum pool_poll parent_take(struct pool *pool, struct node *parent)
{
    ASSERT_EQ(parent->child->result, 42);
    pool_unref(pool, &parent->child->task);
    parent->result = 42;
    return POOL_READY;
}

static enum pool_poll parent_detach(struct pool *pool, struct node *parent)
{
    if (ending_detach(&parent->child->task) == WEFT__STATE_FREE)
        pool->free(&parent->child->task);
    parent->result = 42;
    return POOL_READY;
}

static enum pool_poll parent_step(struct pool *pool, struct node *parent)
{
    struct weft_waker self = weft__waker_of(&parent->task);
    bool leave = parent->plan == JOIN_THEN_DETACH && parent->patience-- == 0;
    enum weft__join r = leave ? weft__join_withdraw(&parent->child->task, self)
                              : weft__join_poll(&parent->child->task, self);

    if (leave) parent->patience = 0; /* after a YIELD it tries to leave again */
    switch (r) {
    case WEFT__JOIN_READY:
        return parent_take(pool, parent);
    case WEFT__JOIN_LEFT:
        return parent_detach(pool, parent);
    case WEFT__JOIN_YIELD:
        return POOL_YIELD;
    case WEFT__JOIN_PENDING:
        break;
    }
    /* One that wants to leave before the end comes again by itself; the others wait for their wake.
     * */
    return parent->plan == JOIN_THEN_DETACH ? POOL_YIELD : POOL_PENDING;
}

static enum pool_poll parent_poll(struct pool *pool, struct node *parent)
{
    if (!parent->child) {
        parent->child = node_new(parent->random ^ 0x5555, 1);
        pool_push(pool, &parent->child->task);
    }
    if (parent->plan == DETACH) return parent_detach(pool, parent);
    return parent_step(pool, parent);
}

static void parent_over(struct family *f, uint32_t slot)
{
    pthread_mutex_lock(&f->mutex);
    f->over[slot] = true;
    pthread_mutex_unlock(&f->mutex);
    sem_post(&f->ended);
}

static enum pool_poll node_poll(struct pool *pool, struct weft_task *task, uint64_t word)
{
    struct node *node = weft__container_of(task, struct node, task);

    (void)word;
    if (!node->is_parent) return child_poll(node);
    enum pool_poll r = parent_poll(pool, node);
    if (r == POOL_READY) parent_over(pool->user, node->slot);
    return r;
}

/* Polls parents for no reason, with a reference of its own, also at and after their end. */
static void *nudger_run(void *arg)
{
    struct family *f = arg;
    uint64_t random = pool_seed(1000 + fetch_add_relaxed(&f->nudgers, 1));

    for (uint64_t i = 0; i < f->nudges; i++) {
        pthread_mutex_lock(&f->mutex);
        struct node *parent = f->slots[pool_random(&random, SLOTS)];
        if (parent) ASSERT_OK(weft__state_ref(&parent->task));
        pthread_mutex_unlock(&f->mutex);
        if (!parent) continue;
        for (uint32_t n = pool_random(&random, 4); n > 0; n--)
            pool_wake(&f->pool, &parent->task);
        pool_unref(&f->pool, &parent->task);
    }
    return NULL;
}

static struct node *take_over(struct family *f, uint32_t *slot)
{
    struct node *was = NULL;

    pthread_mutex_lock(&f->mutex);
    for (uint32_t i = 0; i < SLOTS && !was; i++) {
        if (!f->over[i]) continue;
        was = f->slots[i];
        f->slots[i] = NULL;
        f->over[i] = false;
        *slot = i;
    }
    pthread_mutex_unlock(&f->mutex);
    return was;
}

static void parent_spawn(struct family *f, uint32_t slot, uint64_t random)
{
    struct node *parent = node_new(random, 1); /* the slot's reference */

    parent->is_parent = true;
    parent->slot = slot;
    parent->plan = (enum plan)pool_random(&parent->random, PLANS);
    pthread_mutex_lock(&f->mutex);
    f->slots[slot] = parent;
    pthread_mutex_unlock(&f->mutex);
    pool_push(&f->pool, &parent->task);
}

/* A fixed number of parents, SLOTS at a time. */
static void family_live(struct family *f, uint64_t parents)
{
    uint64_t spawned = 0;

    for (; spawned < parents && spawned < SLOTS; spawned++) {
        parent_spawn(f, (uint32_t)spawned, pool_seed(spawned));
    }
    for (uint64_t ended = 0; ended < parents; ended++) {
        uint32_t slot = 0;
        while (sem_wait(&f->ended) != 0) {
        }
        struct node *was = take_over(f, &slot);
        pool_unref(&f->pool, &was->task); /* perhaps before its COMPLETE */
        if (spawned < parents) parent_spawn(f, slot, pool_seed(spawned++));
    }
}

static struct family family;

TEST_WITH(join_races_with_completion_and_nudges, .timeout_s = 120)
{
    struct family *f = &family;
    uint64_t parents = test_scaled(8000);
    pthread_t threads[NUDGERS];

    f->pool.poll = node_poll;
    f->pool.free = node_free;
    f->pool.user = f;
    f->nudges = test_scaled(16000);
    pthread_mutex_init(&f->mutex, NULL);
    sem_init(&f->ended, 0, 0);
    pool_start(&f->pool, POLLERS);
    for (unsigned i = 0; i < NUDGERS; i++) {
        ASSERT_OK(pthread_create(&threads[i], NULL, nudger_run, f));
    }
    family_live(f, parents);
    for (unsigned i = 0; i < NUDGERS; i++)
        pthread_join(threads[i], NULL);
    pool_stop(&f->pool);
    ASSERT_EQ(load_relaxed(&nodes_freed), 2 * parents);
    sem_destroy(&f->ended);
    pthread_mutex_destroy(&f->mutex);
}

/* ---- two threads, one child, nothing else: the narrow windows ---- */

struct duel {
    struct node *children[64];
    pthread_barrier_t start;
    pthread_barrier_t end;
    uint64_t rounds;
};

static void *duel_complete(void *arg)
{
    struct duel *d = arg;
    for (uint64_t r = 0; r < d->rounds; r++) {
        pthread_barrier_wait(&d->start);
        for (unsigned i = 0; i < 64; i++) {
            d->children[i]->result = 42;
            struct weft__join_done done = ending_complete(&d->children[i]->task);
            ASSERT(weft__waker_is_none(done.joiner));
            if (done.free) node_free(&d->children[i]->task);
        }
        pthread_barrier_wait(&d->end);
    }
    return NULL;
}

/* Detach against completion: exactly one of the two frees. */
TEST_WITH(join_detach_and_completion_free_once, .timeout_s = 120)
{
    static struct duel duel;
    pthread_t other;

    duel.rounds = test_scaled(1000);
    pthread_barrier_init(&duel.start, NULL, 2);
    pthread_barrier_init(&duel.end, NULL, 2);
    ASSERT_OK(pthread_create(&other, NULL, duel_complete, &duel));
    for (uint64_t r = 0; r < duel.rounds; r++) {
        for (unsigned i = 0; i < 64; i++)
            duel.children[i] = node_new(1, 1);
        pthread_barrier_wait(&duel.start);
        for (unsigned i = 64; i-- > 0;) { /* from the other end: they meet in the middle */
            if (ending_detach(&duel.children[i]->task) == WEFT__STATE_FREE) {
                node_free(&duel.children[i]->task);
            }
        }
        pthread_barrier_wait(&duel.end);
    }
    pthread_join(other, NULL);
    ASSERT_EQ(load_relaxed(&nodes_freed), duel.rounds * 64);
    pthread_barrier_destroy(&duel.start);
    pthread_barrier_destroy(&duel.end);
}
