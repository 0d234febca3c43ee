/* SPDX-License-Identifier: MIT
 *
 * Wake against poll against completion, on real threads.
 */
#include "base/alloc.h"
#include "base/list.h"
#include "pool.h"
#include "sched/park.h"

#define WAKERS  3
#define TASKS   4
#define POLLERS 2

/* ---- every wake is followed by a poll that sees what was written before it ---- */

struct letter_box {
    struct weft_task task;
    _Atomic uint32_t sent[WAKERS]; /* by the waker, relaxed: the wake alone makes it visible */
};

struct writer {
    struct post *post;
    unsigned index;
    struct weft__park park;
    _Atomic uint32_t read; /* the newest number that a poll has seen */
};

struct post {
    struct pool pool;
    struct letter_box boxes[TASKS];
    struct writer writers[WAKERS];
};

static enum pool_poll box_poll(struct pool *pool, struct weft_task *task, uint64_t word)
{
    struct post *post = pool->user;
    struct letter_box *box = weft__container_of(task, struct letter_box, task);

    (void)word;
    for (unsigned i = 0; i < WAKERS; i++) {
        struct writer *w = &post->writers[i];
        uint32_t sent = load_relaxed(&box->sent[i]);
        uint32_t read = load_relaxed(&w->read);
        if (sent > read && cas_relaxed(&w->read, &read, sent)) weft__unpark(&w->park);
    }
    return POOL_PENDING;
}

/* Sends to one box after the other and waits each time until a poll has seen it: a lost wake is a
 * hang, which the watchdog ends. */
static void *writer_run(void *arg)
{
    struct writer *w = arg;
    uint64_t random = pool_seed(w->index);
    uint32_t count = (uint32_t)test_scaled(5000);

    for (uint32_t i = 1; i <= count; i++) {
        struct letter_box *box = &w->post->boxes[pool_random(&random, TASKS)];
        store_relaxed(&box->sent[w->index], i);
        pool_wake(&w->post->pool, &box->task);
        while (load_relaxed(&w->read) < i)
            weft__park(&w->park, WEFT__NEVER);
    }
    return NULL;
}

static struct post post;

TEST_WITH(state_every_wake_is_seen_by_a_poll, .timeout_s = 120)
{
    pthread_t threads[WAKERS];

    post.pool.poll = box_poll;
    post.pool.user = &post;
    for (unsigned i = 0; i < WAKERS; i++) {
        post.writers[i].post = &post;
        post.writers[i].index = i;
        weft__park_init(&post.writers[i].park);
    }
    pool_start(&post.pool, POLLERS);
    for (unsigned i = 0; i < TASKS; i++) {
        weft__state_init(&post.boxes[i].task, 1);
        pool_push(&post.pool, &post.boxes[i].task);
    }
    for (unsigned i = 0; i < WAKERS; i++) {
        ASSERT_OK(pthread_create(&threads[i], NULL, writer_run, &post.writers[i]));
    }
    for (unsigned i = 0; i < WAKERS; i++)
        pthread_join(threads[i], NULL);
    pool_stop(&post.pool);
    for (unsigned i = 0; i < TASKS; i++) {
        ASSERT_EQ(weft__state_look(&post.boxes[i].task) & WEFT__STATE_FLAGS, WEFT__STATE_ALIVE);
    }
}

/* ---- the frame goes from waker to poll and back without any lock of its own ---- */

struct ball {
    struct weft_task task;
    uint64_t value; /* plain: ordered by the state word alone */
    uint64_t copy;
    struct weft__park back;
};

static enum pool_poll ball_poll(struct pool *pool, struct weft_task *task, uint64_t word)
{
    struct ball *ball = weft__container_of(task, struct ball, task);

    (void)pool;
    (void)word;
    if (ball->value == ball->copy) return POOL_PENDING; /* the first poll, or an extra one */
    ball->copy = ball->value;
    weft__unpark(&ball->back); /* from inside the poll: the next wake may find it still SCHED */
    return POOL_PENDING;
}

TEST_WITH(state_carries_a_plain_frame_both_ways, .timeout_s = 120)
{
    struct pool pool = {.poll = ball_poll};
    struct ball ball = {.value = 0};
    uint64_t count = test_scaled(10000);

    weft__park_init(&ball.back);
    weft__state_init(&ball.task, 0);
    (void)weft__state_end_poll(&ball.task);
    pool_start(&pool, POLLERS);
    for (uint64_t i = 1; i <= count; i++) {
        ball.value = i;
        pool_wake(&pool, &ball.task);
        weft__park(&ball.back, WEFT__NEVER);
        ASSERT_EQ(ball.copy, i);
    }
    pool_stop(&pool);
}

/* ---- wakes, cancels, completion and the last reference, in every order ---- */

struct mortal {
    struct weft_task task;
    uint32_t polls_left;
    uint32_t result; /* plain: read by whoever frees it */
};

static _Atomic uint32_t mortals_freed;

static enum pool_poll mortal_poll(struct pool *pool, struct weft_task *task, uint64_t word)
{
    struct mortal *m = weft__container_of(task, struct mortal, task);

    (void)pool;
    if (m->polls_left > 0 && !(word & WEFT__STATE_CANCELLED)) {
        m->polls_left--;
        return POOL_PENDING;
    }
    m->result = 42;
    return POOL_READY;
}

static void mortal_free(struct weft_task *task)
{
    struct mortal *m = weft__container_of(task, struct mortal, task);

    ASSERT_EQ(m->result, 42);
    weft__state_free(task);
    ASSERT_EQ(weft__state_generation(task), 1);
    fetch_add_relaxed(&mortals_freed, 1);
    weft__free(m);
}

struct crowd {
    struct pool *pool;
    struct mortal **mortals;
    uint32_t count;
    uint64_t random;
};

/* Wakes each some times, also when it has long ended, cancels it, and lets go. */
static void *crowd_run(void *arg)
{
    struct crowd *c = arg;

    for (uint32_t i = 0; i < c->count; i++) {
        struct weft_task *task = &c->mortals[i]->task;
        for (uint32_t wakes = pool_random(&c->random, 4); wakes > 0; wakes--)
            pool_wake(c->pool, task);
        if (pool_random(&c->random, 8) == 0 && weft__state_ref(task) == 0)
            pool_unref(c->pool, task);
        pool_cancel(c->pool, task); /* so that each ends */
        pool_unref(c->pool, task);
    }
    return NULL;
}

TEST_WITH(state_completion_races_with_wakes_and_references, .timeout_s = 120)
{
    struct pool pool = {.poll = mortal_poll, .free = mortal_free};
    uint32_t count = (uint32_t)test_scaled(5000);
    struct mortal **mortals = malloc(count * sizeof(*mortals));
    struct crowd crowds[WAKERS];
    pthread_t threads[WAKERS];
    uint64_t random = pool_seed(99);

    for (uint32_t i = 0; i < count; i++) {
        mortals[i] = weft__alloc(sizeof(struct mortal));
        mortals[i]->polls_left = pool_random(&random, 4);
        weft__state_init(&mortals[i]->task, WAKERS);
    }
    pool_start(&pool, POLLERS);
    for (unsigned i = 0; i < WAKERS; i++) {
        crowds[i] = (struct crowd){&pool, mortals, count, pool_seed(i)};
        ASSERT_OK(pthread_create(&threads[i], NULL, crowd_run, &crowds[i]));
    }
    for (uint32_t i = 0; i < count; i++)
        pool_push(&pool, &mortals[i]->task);
    for (unsigned i = 0; i < WAKERS; i++)
        pthread_join(threads[i], NULL);
    pool_stop(&pool);
    ASSERT_EQ(load_relaxed(&mortals_freed), count);
    free(mortals);
}
