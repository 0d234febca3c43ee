/* SPDX-License-Identifier: MIT
 *
 * Assertions: a false fact ends the process and says which; a true one costs its evaluation; levels
 * that are off evaluate nothing.
 */
#include "base/assert.h"
#include "death.h"
#include "test.h"

static int evaluated;

static bool fact(bool answer)
{
    evaluated++;
    return answer;
}

TEST(assert_true_fact_goes_on)
{
    weft_assert(fact(true));
    ASSERT_EQ(evaluated, 1);
}

TEST_WITH(assert_false_fact_aborts, .signal = SIGABRT)
{
    weft_assert(fact(false));
}

static void two_is_three(void *arg)
{
    (void)arg;
    int two = 2;
    weft_assert(two == 3);
}

TEST(assert_says_where_and_what)
{
    struct death d = death_of(two_is_three, NULL);
    ASSERT_EQ(d.signal, SIGABRT);
    ASSERT(strstr(d.said, "base_assert.c:"));
    ASSERT(strstr(d.said, "two == 3"));
}

#define WHAT_THERE_IS_ROOM_FOR 3

static void two_is_all_there_is_room_for(void *arg)
{
    (void)arg;
    int two = 2;
    weft_assert(two == WHAT_THERE_IS_ROOM_FOR);
}

/* Constants keep their names in the message. */
TEST(assert_says_it_as_written)
{
    struct death d = death_of(two_is_all_there_is_room_for, NULL);
    ASSERT(strstr(d.said, "two == WHAT_THERE_IS_ROOM_FOR"));
}

static void say_task(void)
{
    static const char text[] = "task 7 was running\n";
    (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
}

static void fail_with_hook(void *arg)
{
    weft__assert_hook = say_task;
    two_is_three(arg);
}

TEST(assert_hook_speaks_before_the_end)
{
    struct death d = death_of(fail_with_hook, NULL);
    ASSERT_EQ(d.signal, SIGABRT);
    ASSERT(strstr(d.said, "two == 3"));
    ASSERT(strstr(d.said, "task 7 was running"));
}

static void fail_again(void)
{
    two_is_three(NULL);
}

static void fail_with_failing_hook(void *arg)
{
    weft__assert_hook = fail_again;
    two_is_three(arg);
}

/* An assert that fails in the hook ends the process after two messages, not after endless
 * recursion. */
TEST(assert_hook_that_fails_ends_it_too)
{
    struct death d = death_of(fail_with_failing_hook, NULL);
    ASSERT_EQ(d.signal, SIGABRT);
    char *first = strstr(d.said, "two == 3");
    ASSERT(first);
    char *second = strstr(first + 1, "two == 3");
    ASSERT(second);
    ASSERT_NULL(strstr(second + 1, "two == 3"));
}

#if defined(WEFT_DEBUG)
TEST_WITH(assert_debug_level_is_on, .signal = SIGABRT)
{
    weft_dassert(fact(false));
}
#else
TEST(assert_debug_level_is_off)
{
    weft_dassert(fact(false));
    ASSERT_EQ(evaluated, 0);
}
#endif

#if defined(WEFT_EXPENSIVE)
TEST_WITH(assert_expensive_level_is_on, .signal = SIGABRT)
{
    weft_xassert(fact(false));
}
#else
TEST(assert_expensive_level_is_off)
{
    weft_xassert(fact(false));
    ASSERT_EQ(evaluated, 0);
}
#endif
