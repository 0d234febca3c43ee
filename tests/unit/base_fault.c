/* SPDX-License-Identifier: MIT
 *
 * The fault seam: the nth call fails, so many times, with the chosen error; kinds do not touch each
 * other.
 */
#include "base/fault.h"

#include "base/atomic.h"
#include "death.h"
#include "test.h"

#include <errno.h>
#include <pthread.h>

#if defined(WEFT_FAULTS)

TEST(fault_nothing_fails_unarmed)
{
    for (int kind = 0; kind < WEFT__FAULT_COUNT; kind++)
        ASSERT_EQ(weft__fault(kind), 0);
}

TEST(fault_nth_call_fails_once)
{
    for (uint32_t nth = 1; nth <= 5; nth++) {
        weft__fault_arm(WEFT__FAULT_MMAP, nth, 1, -ENOMEM);
        for (uint32_t call = 1; call <= 8; call++)
            ASSERT_EQ(weft__fault(WEFT__FAULT_MMAP), call == nth ? -ENOMEM : 0);
        ASSERT_EQ(weft__fault_calls(WEFT__FAULT_MMAP), 8);
    }
}

TEST(fault_fails_as_often_as_asked)
{
    weft__fault_arm(WEFT__FAULT_READ, 3, 2, -EIO);
    static const int answers[] = {0, 0, -EIO, -EIO, 0, 0};
    for (int i = 0; i < 6; i++)
        ASSERT_EQ(weft__fault(WEFT__FAULT_READ), answers[i]);

    weft__fault_arm(WEFT__FAULT_READ, 2, UINT32_MAX, -EAGAIN);
    ASSERT_EQ(weft__fault(WEFT__FAULT_READ), 0);
    for (int i = 0; i < 1000; i++)
        ASSERT_EQ(weft__fault(WEFT__FAULT_READ), -EAGAIN);
}

TEST(fault_kinds_are_apart_and_reset_clears_all)
{
    weft__fault_arm(WEFT__FAULT_OPEN, 1, UINT32_MAX, -EMFILE);
    ASSERT_EQ(weft__fault(WEFT__FAULT_WRITE), 0);
    ASSERT_EQ(weft__fault(WEFT__FAULT_OPEN), -EMFILE);
    weft__fault_reset();
    ASSERT_EQ(weft__fault_calls(WEFT__FAULT_OPEN), 0);
    ASSERT_EQ(weft__fault(WEFT__FAULT_OPEN), 0);
    ASSERT_EQ(weft__fault_calls(WEFT__FAULT_OPEN), 1);
}

TEST(fault_zero_disarms_and_counts)
{
    weft__fault_arm(WEFT__FAULT_OPEN, 0, UINT32_MAX, -EMFILE);
    for (int i = 0; i < 10; i++)
        ASSERT_EQ(weft__fault(WEFT__FAULT_OPEN), 0);
    ASSERT_EQ(weft__fault_calls(WEFT__FAULT_OPEN), 10);
}

TEST(fault_kinds_have_names)
{
    ASSERT_STR(weft__fault_name(WEFT__FAULT_ALLOC), "ALLOC");
    ASSERT_STR(weft__fault_name(WEFT__FAULT_EPOLL_PWAIT2), "EPOLL_PWAIT2");
    ASSERT_STR(weft__fault_name(WEFT__FAULT_COUNT), "?");
}

static void arm_with_success(void *arg)
{
    (void)arg;
    weft__fault_arm(WEFT__FAULT_OPEN, 1, 1, 0);
}

TEST(fault_must_be_an_error)
{
    ASSERT_EQ(death_of(arm_with_success, NULL).signal, SIGABRT);
}

static _Atomic int failed;

static void *call_many(void *arg)
{
    for (uint64_t i = 0; i < *(uint64_t *)arg; i++) {
        int r = weft__fault(WEFT__FAULT_WRITE);
        if (r == -EPIPE) (void)fetch_add_relaxed(&failed, 1); /* relaxed: read after join */
    }
    return NULL;
}

/* With four threads calling, exactly the 10th to the 26th call of all of them fail. */
TEST(fault_nth_is_the_nth_of_all_threads)
{
    pthread_t threads[4];
    uint64_t calls = test_scaled(20000);

    weft__fault_arm(WEFT__FAULT_WRITE, 10, 17, -EPIPE);
    for (int i = 0; i < 4; i++)
        ASSERT_OK(pthread_create(&threads[i], NULL, call_many, &calls));
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ASSERT_EQ(load_relaxed(&failed), 17); /* relaxed: all are joined */
    ASSERT_EQ(weft__fault_calls(WEFT__FAULT_WRITE), 4 * calls);
}

#else

/* The seam is a constant 0 in this build: usable where a constant is wanted, so nothing is left
 * of it. */
TEST(fault_costs_nothing)
{
    ASSERT_EQ(weft__fault(WEFT__FAULT_ALLOC), 0);
    ASSERT(__builtin_constant_p(weft__fault(WEFT__FAULT_ALLOC)));
}

#endif
