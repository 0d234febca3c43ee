/* SPDX-License-Identifier: MIT
 *
 * bell - a wait that any thread can end, the test's own, another worker's or a foreign one: what timers and I/O will be, by hand.
 *
 *     struct bell bell;                               in the test
 *     weft_await(f->hear, hear, .bell = &bell);       in a task: 0 once rung, -ECANCELED; one waits at a time
 *     r = weft_run(hear, .bell = &bell);              in a fiber
 *     bell_ring(&bell);                               anywhere: ends the wait that is on, or the next one
 * A ring that nobody waits for is kept, one at most. With .deaf the wait does not hear that it is cancelled.
 */
#ifndef WEFT_TESTS_BELL_H
#define WEFT_TESTS_BELL_H

#include "base/atomic.h"
#include "test.h"

#include <pthread.h>
#include <weft/fiber.h>
#include <weft/task.h>

struct bell {
    pthread_mutex_t mutex; /* guards the next two */
    weft_waker waker;      /* a reference to who waits, or none */
    bool rung;
    _Atomic uint32_t polls; /* relaxed: a count */
};

static inline void bell_init(struct bell *bell)
{
    ASSERT_OK(pthread_mutex_init(&bell->mutex, NULL));
    bell->waker = (weft_waker){0};
    bell->rung = false;
    store_relaxed(&bell->polls, 0);
}

static inline weft_waker bell_take_waker(struct bell *bell, bool rung)
{
    pthread_mutex_lock(&bell->mutex);
    weft_waker waker = bell->waker;
    bell->waker = (weft_waker){0};
    bell->rung |= rung;
    pthread_mutex_unlock(&bell->mutex);
    return waker;
}

static inline void bell_ring(struct bell *bell)
{
    weft_waker waker = bell_take_waker(bell, true);
    weft_waker_wake(waker);
    weft_waker_unref(waker);
}

/* Wakes who waits, without a reason. */
static inline void bell_nudge(struct bell *bell)
{
    pthread_mutex_lock(&bell->mutex);
    weft_waker waker = weft_waker_ref(bell->waker);
    pthread_mutex_unlock(&bell->mutex);
    weft_waker_wake(waker);
    weft_waker_unref(waker);
}

/* Does somebody wait? */
static inline bool bell_awaited(struct bell *bell)
{
    pthread_mutex_lock(&bell->mutex);
    bool awaited = bell->waker.word != 0;
    pthread_mutex_unlock(&bell->mutex);
    return awaited;
}

static inline void bell_done(struct bell *bell)
{
    weft_waker_unref(bell_take_waker(bell, false));
    ASSERT_OK(pthread_mutex_destroy(&bell->mutex));
}

struct hear {
    WEFT_FRAME(int);
    struct bell *bell;
    bool deaf;
};
__attribute__((unused)) static weft_poll hear_poll(void *frame, weft_cx *cx)
{
    struct hear *f = frame;
    struct bell *bell = f->bell;
    fetch_add_relaxed(&bell->polls, 1);
    f->ret = weft_cx_cancelled(cx);
    if (f->deaf) f->ret = 0;
    pthread_mutex_lock(&bell->mutex);
    bool ready = bell->rung || f->ret < 0;
    if (bell->rung) f->ret = 0; /* it had happened already */
    bell->rung = false;
    weft_waker old = bell->waker;
    bell->waker = ready ? (weft_waker){0} : weft_waker_ref(weft_cx_waker(cx));
    pthread_mutex_unlock(&bell->mutex);
    weft_waker_unref(old);
    return ready ? WEFT_READY : WEFT_PENDING;
}

#endif
