/* SPDX-License-Identifier: MIT
 *
 * Wakers in foreign hands: kept by a thread, used at the wrong time, by several at once, too often.
 */
#include "crew.h"
#include "test.h"

#include <errno.h>

/* ---- a leaf by hand: it is ready when a foreign thread has said so ------------------------------------- */

struct bell {
    pthread_mutex_t mutex; /* guards waker and rung */
    weft_waker waker;      /* a reference, or none */
    bool rung;
    _Atomic uint32_t polls;
};

static void bell_init(struct bell *bell)
{
    pthread_mutex_init(&bell->mutex, NULL);
    bell->waker = (weft_waker){0};
    bell->rung = false;
    store_relaxed(&bell->polls, 0);
}

struct hear {
    WEFT_FRAME(int);
    struct bell *bell;
};
static weft_poll hear_poll(void *frame, weft_cx *cx)
{
    struct hear *f = frame;
    struct bell *bell = f->bell;
    fetch_add_relaxed(&bell->polls, 1);
    if ((f->ret = weft_cx_cancelled(cx)) < 0) return WEFT_READY;
    pthread_mutex_lock(&bell->mutex);
    bool rung = bell->rung;
    if (!rung && bell->waker.word == 0) bell->waker = weft_waker_ref(weft_cx_waker(cx));
    pthread_mutex_unlock(&bell->mutex);
    return rung ? WEFT_READY : WEFT_PENDING;
}

static int hears(struct bell *bell)
{
    return weft_run(hear, .bell = bell);
}

static weft_task *listener_of(struct bell *bell, int kind)
{
    return kind ? weft_go(hears, bell) : weft_spawn(hear, .bell = bell);
}

/* Takes the kept waker; it is there once the task has been polled. */
static weft_waker bell_take(struct bell *bell)
{
    for (;;) {
        pthread_mutex_lock(&bell->mutex);
        weft_waker waker = bell->waker;
        pthread_mutex_unlock(&bell->mutex);
        if (waker.word) return waker;
        sched_yield();
    }
}

static void bell_ring(struct bell *bell)
{
    pthread_mutex_lock(&bell->mutex);
    bell->rung = true;
    pthread_mutex_unlock(&bell->mutex);
}

/* ---- rung by another thread ------------------------------------------------------------------------------ */

static void rings_once(struct crew *crew)
{
    (void)crew;
    for (int round = 0; round < 50; round++) {
        struct bell bell;
        int got;
        bell_init(&bell);
        weft_task *task = listener_of(&bell, round % 2);
        weft_waker waker = bell_take(&bell);
        bell_ring(&bell);
        weft_waker_wake(waker);
        ASSERT_OK(weft_join(task, &got));
        ASSERT_OK(got);
        weft_waker_wake(waker); /* the task has ended, and its handle is spent */
        weft_waker_wake(waker);
        weft_waker_unref(waker);
    }
}

TEST(waker_kept_by_a_thread_outlives_the_task)
{
    crew_each(rings_once);
}

static void too_early(struct crew *crew)
{
    (void)crew;
    for (int kind = 0; kind < 2; kind++) {
        struct bell bell;
        int got;
        bell_init(&bell);
        weft_task *task = listener_of(&bell, kind);
        weft_waker waker = bell_take(&bell);
        for (int i = 0; i < 100; i++) { /* for nothing: it is polled, and waits on */
            uint32_t before = load_relaxed(&bell.polls);
            weft_waker_wake(waker);
            weft_waker_wake(waker);
            CREW_UNTIL(load_relaxed(&bell.polls) > before);
        }
        ASSERT(!weft_done(task));
        bell_ring(&bell);
        weft_waker_wake(waker);
        ASSERT_OK(weft_join(task, &got));
        weft_waker_unref(waker);
    }
}

TEST(waker_used_for_nothing_brings_a_poll_and_no_end)
{
    crew_each(too_early);
}

/* ---- four at once ------------------------------------------------------------------------------------------ */

struct ringer {
    pthread_t thread;
    struct bell *bells;
    uint32_t count;
    bool last; /* it also says that the bell was rung */
};

static void *ring_all(void *arg)
{
    struct ringer *me = arg;
    for (uint32_t i = 0; i < me->count; i++) {
        weft_waker waker = bell_take(&me->bells[i]);
        weft_waker_wake(waker);
        if (me->last) bell_ring(&me->bells[i]);
        weft_waker_wake(waker);
    }
    return NULL;
}

static void by_four(struct crew *crew)
{
    uint32_t count = (uint32_t)test_scaled(400);
    struct bell *bells = calloc(count, sizeof(*bells));
    weft_task **task = calloc(count, sizeof(*task));
    struct ringer r[4];
    (void)crew;
    for (uint32_t i = 0; i < count; i++) {
        bell_init(&bells[i]);
        task[i] = listener_of(&bells[i], i % 2);
    }
    for (int i = 0; i < 4; i++) {
        r[i] = (struct ringer){.bells = bells, .count = count, .last = i == 3};
        ASSERT_OK(pthread_create(&r[i].thread, NULL, ring_all, &r[i]));
    }
    for (uint32_t i = 0; i < count; i++) {
        int got;
        ASSERT_OK(weft_join(task[i], &got));
        ASSERT_OK(got);
    }
    for (int i = 0; i < 4; i++)
        ASSERT_OK(pthread_join(r[i].thread, NULL));
    for (uint32_t i = 0; i < count; i++)
        weft_waker_unref(bells[i].waker);
    free(bells);
    free(task);
}

TEST(waker_used_by_four_threads_at_once)
{
    crew_each(by_four);
}

/* ---- during the poll ------------------------------------------------------------------------------------------ */

struct countdown {
    WEFT_FRAME(int);
    int left;
};
static weft_poll countdown_poll(void *frame, weft_cx *cx)
{
    struct countdown *f = frame;
    if ((f->ret = weft_cx_cancelled(cx)) < 0) return WEFT_READY;
    if (f->left-- == 0) return WEFT_READY;
    weft_waker_wake(weft_cx_waker(cx));
    weft_waker_wake(weft_cx_waker(cx));
    return WEFT_PENDING;
}

static int counts_down(int left)
{
    return weft_run(countdown, .left = left);
}

static void during_the_poll(struct crew *crew)
{
    int got = 1;
    (void)crew;
    ASSERT_OK(weft_join(weft_spawn(countdown, .left = 1000), &got));
    ASSERT_OK(got);
    ASSERT_OK(weft_join(weft_go(counts_down, 1000), &got));
    ASSERT_OK(got);
    ASSERT_OK(weft_run(countdown, .left = 1000)); /* a thread's own waker */
}

TEST(waker_used_during_the_poll_brings_another)
{
    crew_each(during_the_poll);
}

/* ---- after the runtime ------------------------------------------------------------------------------------------ */

/* A reference keeps the task's memory, whatever becomes of the runtime: a wake that comes too late is
 * harmless, and the last reference gives the memory back. */
TEST(waker_outlives_the_runtime)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        struct bell bell;
        struct bell other;
        bell_init(&bell);
        bell_init(&other);
        crew_start(&crew, crew_sizes[i]);
        weft_task *task = listener_of(&bell, 0);
        weft_task *ref = weft_ref(task);
        ASSERT_OK(weft_detach(task));
        ASSERT_OK(weft_detach(listener_of(&other, 1)));
        weft_waker waker = bell_take(&bell);
        weft_waker other_waker = bell_take(&other);
        crew_stop(&crew); /* cancels both */
        weft_waker_wake(waker);
        weft_waker_wake(other_waker);
        weft_waker_unref(waker);
        weft_waker_unref(other_waker);
        ASSERT(weft_done(ref));
        weft_cancel(ref);
        weft_unref(ref);
    }
}

static int answers_seven(void)
{
    return 7;
}

/* A handle is a reference as well: its result can be taken when the runtime is gone. */
TEST(handle_outlives_the_runtime)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        int got = 0;
        crew_start(&crew, crew_sizes[i]);
        weft_task *task = weft_go(answers_seven);
        weft_task *other = weft_go(answers_seven);
        CREW_UNTIL(weft_done(task) && weft_done(other));
        crew_stop(&crew);
        ASSERT_OK(weft_join(task, &got));
        ASSERT_EQ(got, 7);
        ASSERT_OK(weft_detach(other));
    }
}
