/* SPDX-License-Identifier: MIT
 *
 * test - run a test of your own on a runtime whose clock stands.
 *
 *     static int times_out(void)
 *     {
 *         weft_time before = weft_now();
 *         if (fetch_with_retries("nowhere") != -ETIMEDOUT) return -EBADMSG;
 *         return weft_now() - before == weft_mins(5) ? 0 : -ETIME;     five minutes, at no time at all
 *     }
 *     WEFT_TEST_MAIN(times_out)          or weft_test_run(times_out) inside a test of any framework
 *
 * The test is a fiber on a current-thread runtime with a fixed seed: all of it happens on the calling thread, and in
 * the same order each time, as long as nothing comes from other threads or from the kernel. Its clock stands, and moves
 * to the next deadline when nothing else is left to do (time.h). It is not part of weft.h.
 */
#ifndef WEFT_TEST_H
#define WEFT_TEST_H

#include <weft/time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Run the test to its end, then stop its runtime: tasks that it leaves behind are cancelled and waited for.
 * Returns what the test returned; -EDEADLK, with one line on stderr, if it waits and nothing is left that could end
 * the wait (a blocking job, a timer, a task that can run): it was then cancelled. What only another thread could bring is
 * taken for nothing: such a test wants a runtime of its own. -EBUSY in a task or a turn; -ENOMEM and what weft_rt_new answers.
 * Context: a plain thread. */
WEFT_API int weft_test_run(int (*test)(void));

/* The same as a whole program: names the error, and exits with 1. */
WEFT_API int weft__test_main(int (*test)(void), const char *name);
#define WEFT_TEST_MAIN(test)                                                                       \
    int main(void)                                                                                 \
    {                                                                                              \
        return weft__test_main(test, #test);                                                       \
    }

#ifdef __cplusplus
}
#endif

#endif
