/* SPDX-License-Identifier: MIT
 *
 * The futex: each answer of wait, and how many wake says it woke.
 */
#include "base/fault.h"
#include "sys/clock.h"
#include "sys/futex.h"
#include "sys/thread.h"
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

static _Atomic uint32_t word;

TEST(futex_does_not_sleep_on_another_value)
{
    ASSERT_EQ(weft__futex_wait(&word, 1, WEFT__NEVER), -EAGAIN);
}

TEST(futex_deadline_is_absolute_and_never_early)
{
    ASSERT_EQ(weft__futex_wait(&word, 0, 0), -ETIMEDOUT);
    ASSERT_EQ(weft__futex_wait(&word, 0, -1), -ETIMEDOUT);
    ASSERT_EQ(weft__futex_wait(&word, 0, weft__clock_now()), -ETIMEDOUT);
    int64_t deadline_ns = weft__clock_now() + 2 * WEFT__NS_PER_MS;
    int r;
    do
        r = weft__futex_wait(&word, 0, deadline_ns);
    while (r == 0); /* for no reason */
    ASSERT_EQ(r, -ETIMEDOUT);
    ASSERT_GE(weft__clock_now(), deadline_ns);
}

TEST(futex_wake_finds_nobody)
{
    if (getenv("WEFT_TEST_UNDER")) TEST_SKIP("Valgrind objects to an address that is no memory, which is the point");
    ASSERT_EQ(weft__futex_wake(&word, 1), 0);
    ASSERT_EQ(weft__futex_wake(NULL, 1), 0); /* memory that is gone */
}

struct sleeper {
    struct weft__thread thread;
    int answer;
};

static void sleep_on_word(void *arg)
{
    struct sleeper *s = arg;
    s->answer = weft__futex_wait(&word, 0, WEFT__NEVER);
}

/* Three sleep, and wake(2) and wake(1) find them all between them. Until they are all asleep
 * wake finds fewer: those count too. */
TEST(futex_wake_counts_whom_it_wakes)
{
    struct sleeper all[3] = {0};
    int woken = 0;

    for (int i = 0; i < 3; i++)
        ASSERT_OK(weft__thread_start(&all[i].thread, &(struct weft__thread_options){0},
                                     sleep_on_word, &all[i]));
    while (woken < 3) {
        int some = weft__futex_wake(&word, 2);
        ASSERT_LE(some, 2);
        woken += some;
        weft__thread_yield();
    }
    for (int i = 0; i < 3; i++)
        weft__thread_join(&all[i].thread);
    ASSERT_EQ(woken, 3);
    for (int i = 0; i < 3; i++)
        ASSERT_EQ(all[i].answer, 0);
}

static void nothing(int number)
{
    (void)number;
}

static _Atomic int interrupted;

static void *sleep_until_interrupted(void *arg)
{
    (void)arg;
    while (weft__futex_wait(&word, 0, WEFT__NEVER) != -EINTR)
        continue;
    store_relaxed(&interrupted, 1); /* relaxed: a flag, nothing hangs on it */
    return NULL;
}

/* A handler that ran ends the wait; signals are sent until one has found the thread asleep. */
TEST(futex_wait_is_interrupted_by_a_handler)
{
    struct sigaction action = {.sa_handler = nothing};
    pthread_t thread;

    sigaction(SIGUSR1, &action, NULL);
    ASSERT_OK(pthread_create(&thread, NULL, sleep_until_interrupted, NULL));
    while (!load_relaxed(&interrupted)) { /* relaxed: a flag */
        pthread_kill(thread, SIGUSR1);
        weft__thread_yield();
    }
    pthread_join(thread, NULL);
}

#if defined(WEFT_FAULTS)
TEST(futex_wait_fails_when_told)
{
    weft__fault_arm(WEFT__FAULT_FUTEX_WAIT, 1, 1, -EINTR);
    ASSERT_EQ(weft__futex_wait(&word, 0, WEFT__NEVER), -EINTR);
    ASSERT_EQ(weft__futex_wait(&word, 1, WEFT__NEVER), -EAGAIN);
}
#endif
