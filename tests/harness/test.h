/* SPDX-License-Identifier: MIT
 *
 * test - how a test file reads: TEST(name) { ... ASSERT_EQ(a, b); }, no list to keep, no main to write.
 *
 * Stands on Check: each test runs in a forked child with a time limit. The harness adds that a test fails when it leaves fds open, memory of the
 * library's allocator unfreed or threads running, and that a failure prints the command, with seed and test, that reproduces it.
 *
 *     ./build/dev/tests/unit_base_list                    all tests of the file
 *     ./build/dev/tests/unit_base_list list_splice        the test of that name, else those whose name contains the word
 *     WEFT_TEST_SEED=7 ./build/dev/tests/stress_sched_runq
 *     WEFT_TEST_REPEAT=200 ...                            each test so many times, each with a process and a seed of its own
 *     WEFT_TEST_NO_FORK=1 gdb --args ...                  all in this process, for a debugger
 *     WEFT_TEST_SLOW=1 ...                                smaller loads and longer limits, as under a sanitizer
 * Exit codes: 0 passed, 1 failed, 2 no such test, 77 nothing ran because every test skipped itself.
 */
#ifndef WEFT_TESTS_TEST_H
#define WEFT_TESTS_TEST_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* A test of a behaviour. The limit is a watchdog for hangs, never what decides: generous, and longer under sanitizers. */
#define TEST(name) TEST_WITH(name, .timeout_s = 60)

/* TEST_WITH(name, .timeout_s = 300, .signal = SIGABRT, .threads_may_stay = true) { ... } */
#define TEST_WITH(name, ...)                                                                                           \
    static void name(void);                                                                                            \
    static struct test_case name##_case;                                                                               \
    static void name##_in_check(int round)                                                                             \
    {                                                                                                                  \
        test_run_body(&name##_case, name, round);                                                                      \
    }                                                                                                                  \
    static const TTest name##_ttest = {#name, name##_in_check, __FILE__, __LINE__};                                    \
    static struct test_case name##_case = {.ttest = &name##_ttest, __VA_ARGS__};                                       \
    __attribute__((constructor)) static void name##_register(void)                                                     \
    {                                                                                                                  \
        test_register(&name##_case);                                                                                   \
    }                                                                                                                  \
    static void name(void)

struct test_case {
    const TTest *ttest;
    double timeout_s;               /* watchdog */
    int signal;                     /* the test must die by this signal (a death test) */
    bool threads_may_stay;
    bool fds_may_stay;
    bool memory_may_stay;
    struct test_case *next;
};

void test_register(struct test_case *c);
void test_run_body(const struct test_case *c, void (*body)(void), int round);

/* The seed of this run: WEFT_TEST_SEED, or a fresh one; every further round of WEFT_TEST_REPEAT has another, which follows from it.
 * Printed when a test fails. */
uint64_t test_seed(void);

/* errno, as main has found it: what ran before may have left something there. */
int test_errno_at_start(void);

/* How much of a heavy load to run here: `full` in a plain build, less under TSan, ASan or Valgrind. */
uint64_t test_scaled(uint64_t full);

/* Leave the test as skipped, with a reason that the log shows. Called by the test's own thread, before it has started anything:
 * what it holds is not looked for. */
#define TEST_SKIP(...) test_skip(__VA_ARGS__)
__attribute__((noreturn, format(printf, 1, 2))) void test_skip(const char *why, ...);

#define ASSERT(fact)      ck_assert(fact)
#define ASSERT_EQ(a, b)   ck_assert_int_eq((intmax_t)(a), (intmax_t)(b))
#define ASSERT_NE(a, b)   ck_assert_int_ne((intmax_t)(a), (intmax_t)(b))
#define ASSERT_LE(a, b)   ck_assert_int_le((intmax_t)(a), (intmax_t)(b))
#define ASSERT_GE(a, b)   ck_assert_int_ge((intmax_t)(a), (intmax_t)(b))
#define ASSERT_PTR(a, b)  ck_assert_ptr_eq((a), (b))
#define ASSERT_NULL(p)    ck_assert_ptr_null(p)
#define ASSERT_STR(a, b)  ck_assert_str_eq((a), (b))
#define ASSERT_OK(call)   ck_assert_int_eq((intmax_t)(call), 0)

#endif
