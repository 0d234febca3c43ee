/* SPDX-License-Identifier: MIT
 *
 * Tests that fail on purpose, one for each thing the harness has to notice. harness.sh runs them one at a time and reads what is said.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

TEST(passes)
{
    ASSERT_EQ(1, 1);
}

TEST(asserts)
{
    ASSERT_EQ(6 * 7, 41);
}

/* Its name contains the one above: asking for `asserts` must not run it. */
TEST(asserts_twice)
{
    ASSERT(false);
}

TEST(breaks_an_invariant)
{
    weft_assert(1 + 1 == 3);
}

TEST(leaks_an_fd)
{
    ASSERT_GE(open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
}

TEST(closes_what_it_did_not_open)
{
    close(0);
}

static void *volatile kept; /* reachable, so that the harness is the one who complains and not LeakSanitizer */

TEST(leaks_memory)
{
    kept = weft__alloc(24);
}

static void *sleep_for_ever(void *arg)
{
    pause();
    return arg;
}

TEST(leaves_a_thread)
{
    pthread_t thread;
    ASSERT_OK(pthread_create(&thread, NULL, sleep_for_ever, NULL));
    ASSERT_OK(pthread_detach(thread));
}

TEST_WITH(hangs, .timeout_s = 0.2)
{
    for (;;) pause();
}

TEST_WITH(does_not_die, .signal = SIGABRT)
{
    ASSERT_EQ(1, 1);
}

TEST_WITH(dies_as_it_should, .signal = SIGABRT)
{
    weft_assert(1 + 1 == 3);
}

TEST(skips)
{
    TEST_SKIP("there are only %d moons", 2);
}

TEST_WITH(skips_a_death, .signal = SIGABRT)
{
    TEST_SKIP("nobody has to die");
}

TEST(prints_its_seed)
{
    printf("seed %llu\n", (unsigned long long)test_seed());
}

/* Fails for some seeds only: with enough rounds one of them comes up, and its command must bring it back. */
TEST(fails_for_a_quarter_of_all_seeds)
{
    ASSERT_NE(test_seed() >> 62, 3);
}
