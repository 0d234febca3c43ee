/* SPDX-License-Identifier: MIT
 *
 * stuck - a place where plain threads block until a test lets them go.
 *
 *     static int job(struct stuck *s) { stuck_here(s); return 7; }
 *     stuck_until(&s, 2);      two are in it
 *     stuck_open(&s);          they go, and whoever comes later does not stay
 */
#ifndef WEFT_TESTS_STUCK_H
#define WEFT_TESTS_STUCK_H

#include <pthread.h>
#include <stdbool.h>

struct stuck {
    pthread_mutex_t mutex;
    pthread_cond_t change;
    unsigned inside;
    unsigned most; /* that were inside at once */
    unsigned came;
    bool open;
};

#define STUCK_INIT {.mutex = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER}

static inline void stuck_here(struct stuck *s)
{
    pthread_mutex_lock(&s->mutex);
    s->came++;
    if (++s->inside > s->most) s->most = s->inside;
    pthread_cond_broadcast(&s->change);
    while (!s->open)
        pthread_cond_wait(&s->change, &s->mutex);
    s->inside--;
    pthread_mutex_unlock(&s->mutex);
}

static inline void stuck_until(struct stuck *s, unsigned inside)
{
    pthread_mutex_lock(&s->mutex);
    while (s->inside < inside)
        pthread_cond_wait(&s->change, &s->mutex);
    pthread_mutex_unlock(&s->mutex);
}

static inline void stuck_open(struct stuck *s)
{
    pthread_mutex_lock(&s->mutex);
    s->open = true;
    pthread_cond_broadcast(&s->change);
    pthread_mutex_unlock(&s->mutex);
}

static inline unsigned stuck_came(struct stuck *s)
{
    pthread_mutex_lock(&s->mutex);
    unsigned came = s->came;
    pthread_mutex_unlock(&s->mutex);
    return came;
}

#endif
