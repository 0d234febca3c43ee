/* SPDX-License-Identifier: MIT
 *
 * handbell - a wait that any thread can end: the test's own, another worker's, or a foreign one.
 *
 *     r = weft_run(bell_wait, .bell = &bell);          in a fiber
 *     weft_await(f->wait, bell_wait, .bell = &bell);   in a stackless task
 *     bell_ring(&bell);                                anywhere
 * One waits at a time. A ring that nobody waits for is kept, one at most. Cancelled, the wait ends with -ECANCELED.
 */
#ifndef WEFT_TESTS_HANDBELL_H
#define WEFT_TESTS_HANDBELL_H

#include "test.h"

#include <pthread.h>
#include <weft/task.h>

struct bell {
    pthread_mutex_t mutex; /* guards the next two */
    weft_waker waker;      /* a reference, or none */
    bool rung;
};

static inline void bell_init(struct bell *bell)
{
    pthread_mutex_init(&bell->mutex, NULL);
    bell->waker = (weft_waker){0};
    bell->rung = false;
}

/* holds: the mutex. Gives the reference. */
static inline weft_waker bell_forget(struct bell *bell)
{
    weft_waker waker = bell->waker;
    bell->waker = (weft_waker){0};
    return waker;
}

static inline void bell_ring(struct bell *bell)
{
    pthread_mutex_lock(&bell->mutex);
    weft_waker waker = bell_forget(bell);
    bell->rung = true;
    pthread_mutex_unlock(&bell->mutex);
    weft_waker_wake(waker);
    weft_waker_unref(waker);
}

struct bell_wait {
    WEFT_FRAME(int);
    struct bell *bell;
};

__attribute__((unused)) static weft_poll bell_wait_poll(void *frame, weft_cx *cx)
{
    struct bell_wait *f = frame;
    weft_waker old = {0};

    f->ret = weft_cx_cancelled(cx);
    pthread_mutex_lock(&f->bell->mutex);
    bool over = f->bell->rung || f->ret < 0;
    if (f->bell->rung) f->ret = 0;
    if (over) {
        f->bell->rung = false;
        old = bell_forget(f->bell);
    } else if (f->bell->waker.word == 0) {
        f->bell->waker = weft_waker_ref(weft_cx_waker(cx));
    }
    pthread_mutex_unlock(&f->bell->mutex);
    weft_waker_unref(old);
    return over ? WEFT_READY : WEFT_PENDING;
}

#endif
