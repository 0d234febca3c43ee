/* SPDX-License-Identifier: MIT
 *
 * Park: tokens, deadlines, signals and futex calls that return for no reason.
 */
#include "sched/park.h"
#include "sys/event.h"
#include "sys/fd.h"

#include "base/fault.h"
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

TEST(park_takes_a_token_that_is_there)
{
    struct weft__park p;
    weft__park_init(&p);
    weft__unpark(&p);
    ASSERT(weft__park(&p, WEFT__NEVER));
    ASSERT(!weft__park(&p, 0)); /* and it is gone */
}

TEST(park_stores_one_token_at_most)
{
    struct weft__park p;
    weft__park_init(&p);
    for (int i = 0; i < 3; i++)
        weft__unpark(&p);
    ASSERT(weft__park(&p, 0));
    ASSERT(!weft__park(&p, 0));
}

TEST(park_ends_at_a_deadline_that_has_passed)
{
    struct weft__park p;
    weft__park_init(&p);
    for (int i = 0; i < 3; i++)
        ASSERT(!weft__park(&p, i - 1));
    weft__unpark(&p); /* the word is as it was */
    ASSERT(weft__park(&p, 0));
}

/* Five milliseconds ahead: the thread sleeps, then comes back without a token, not before its time.
 * */
TEST(park_ends_at_a_deadline_and_not_before)
{
    struct weft__park p;
    struct timespec now;

    weft__park_init(&p);
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t deadline_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec + 5000000;
    ASSERT(!weft__park(&p, deadline_ns));
    clock_gettime(CLOCK_MONOTONIC, &now);
    ASSERT_GE((int64_t)now.tv_sec * 1000000000 + now.tv_nsec, deadline_ns);
}

static void *unpark_it(void *park)
{
    weft__unpark(park);
    return NULL;
}

TEST(park_is_ended_by_another_thread)
{
    struct weft__park p;
    pthread_t other;

    weft__park_init(&p);
    ASSERT_OK(pthread_create(&other, NULL, unpark_it, &p));
    ASSERT(weft__park(&p, WEFT__NEVER));
    ASSERT_OK(pthread_join(other, NULL));
    ASSERT(!weft__park(&p, 0));
}

#if defined(WEFT_FAULTS)
/* The first futex calls are interrupted, or return -EAGAIN as after a change that was undone: the
 * thread goes on waiting, and its token comes. */
TEST(park_sleeps_on_when_the_futex_returns_for_no_reason)
{
    static const int reasons[] = {-EINTR, -EAGAIN};
    for (int i = 0; i < 2; i++) {
        struct weft__park p;
        pthread_t other;

        weft__park_init(&p);
        weft__fault_arm(WEFT__FAULT_FUTEX_WAIT, 1, 5, reasons[i]);
        ASSERT(!weft__park(&p, 0));
        ASSERT_GE(weft__fault_calls(WEFT__FAULT_FUTEX_WAIT), 6);
        weft__fault_arm(WEFT__FAULT_FUTEX_WAIT, 1, 5, reasons[i]);
        ASSERT_OK(pthread_create(&other, NULL, unpark_it, &p));
        ASSERT(weft__park(&p, WEFT__NEVER));
        ASSERT_OK(pthread_join(other, NULL));
    }
    weft__fault_reset();
}

/* A futex that times out although there is no deadline: park believes it, and the word is EMPTY
 * again. */
TEST(park_word_is_whole_after_a_time_out)
{
    struct weft__park p;
    weft__park_init(&p);
    weft__fault_arm(WEFT__FAULT_FUTEX_WAIT, 1, 1, -ETIMEDOUT);
    ASSERT(!weft__park(&p, WEFT__NEVER));
    weft__fault_reset();
    weft__unpark(&p);
    ASSERT(weft__park(&p, WEFT__NEVER));
}

#define MISUSE(name) TEST_WITH(name, .timeout_s = 60, .signal = SIGABRT)

MISUSE(park_dies_of_a_futex_that_cannot_work)
{
    struct weft__park p;
    weft__park_init(&p);
    weft__fault_arm(WEFT__FAULT_FUTEX_WAIT, 1, 1, -EINVAL);
    (void)weft__park(&p, WEFT__NEVER);
}
#endif

TEST_WITH(park_is_for_one_thread, .timeout_s = 60, .signal = SIGABRT)
{
    struct weft__park p;
    weft__park_init(&p);
    store_relaxed(&p.word, UINT32_MAX); /* PARKED, by another */
    (void)weft__park(&p, 0);
}

/* ---- elsewhere ---- */

static bool is_signalled(int event)
{
    return weft__event_drain(event) == 1;
}

TEST(park_elsewhere_is_ended_by_its_event)
{
    struct weft__park park;
    int event;
    weft__park_init(&park);
    ASSERT_OK(weft__event_open(&event));
    weft__unpark(&park); /* before: the token is taken, and nothing is signalled */
    ASSERT(!weft__park_elsewhere(&park, event));
    ASSERT(!is_signalled(event));
    ASSERT(weft__park_elsewhere(&park, event));
    weft__unpark(&park); /* while it lasts */
    ASSERT(is_signalled(event));
    weft__unpark(&park); /* the token is there: once is enough */
    ASSERT(!is_signalled(event));
    ASSERT(weft__park_back(&park));
    ASSERT(weft__park_elsewhere(&park, event));
    ASSERT(!weft__park_back(&park)); /* without a token */
    weft__unpark(&park);
    ASSERT(!is_signalled(event));
    ASSERT(weft__park(&park, WEFT__NEVER)); /* the two ways of sleeping share it */
    weft__fd_close(event);
}
