/* SPDX-License-Identifier: MIT
 *
 * Park and unpark between real threads: no token is lost, and what was written before it is seen. A lost token shows as a hang, which the watchdog ends.
 */
#include "base/assert.h"
#include "sched/park.h"
#include "sys/clock.h"
#include "test.h"

#include <pthread.h>

#define SENDERS 3

static struct weft__park here;
static struct weft__park there;
static uint64_t ball;               /* plain: ordered by the tokens alone */
static uint64_t rounds;
static _Atomic uint64_t sent;

static void *returner(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < rounds; i++) {
        bool woken = weft__park(&there, WEFT__NEVER); /* one token a round: the other side waits for ours */
        weft_assert(woken);
        weft_assert(ball % 2 == 1);
        ball++;
        weft__unpark(&here);
    }
    return NULL;
}

/* Two threads hand a plain number to each other: each writes it only when it is its turn. */
TEST(park_ping_pong_carries_plain_memory)
{
    pthread_t other;
    rounds = test_scaled(20000);
    weft__park_init(&here);
    weft__park_init(&there);
    ball = 0;
    ASSERT_OK(pthread_create(&other, NULL, returner, NULL));
    for (uint64_t i = 0; i < rounds; i++) {
        ball++;
        weft__unpark(&there);
        bool woken = weft__park(&here, WEFT__NEVER);
        weft_assert(woken);
        weft_assert(ball == 2 * i + 2);
    }
    ASSERT_OK(pthread_join(other, NULL));
}

static void *sender(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < rounds; i++) {
        fetch_add_relaxed(&sent, 1); /* relaxed: the token carries it */
        weft__unpark(&here);
    }
    return NULL;
}

/* Many senders, one sleeper: tokens merge, but the last message is always seen. */
TEST(park_many_senders_lose_no_message)
{
    pthread_t threads[SENDERS];
    rounds = test_scaled(100000);
    weft__park_init(&here);
    store_relaxed(&sent, 0); /* relaxed: not shared yet */
    for (int i = 0; i < SENDERS; i++) ASSERT_OK(pthread_create(&threads[i], NULL, sender, NULL));
    while (load_relaxed(&sent) < SENDERS * rounds) (void)weft__park(&here, WEFT__NEVER); /* relaxed: behind the token */
    for (int i = 0; i < SENDERS; i++) ASSERT_OK(pthread_join(threads[i], NULL));
}

/* Timed parks that mostly time out, against tokens: a token that comes at the last moment is taken, or is there for the next park. */
TEST(park_timed_against_tokens)
{
    pthread_t one;
    rounds = test_scaled(20000);
    weft__park_init(&here);
    store_relaxed(&sent, 0); /* relaxed: not shared yet */
    ASSERT_OK(pthread_create(&one, NULL, sender, NULL));
    while (load_relaxed(&sent) < rounds) (void)weft__park(&here, weft__clock_now() + 1000); /* relaxed: a count */
    ASSERT_OK(pthread_join(one, NULL));
    (void)weft__park(&here, weft__clock_now());
    ASSERT(!weft__park(&here, weft__clock_now()));
}
