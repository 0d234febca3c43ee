/* SPDX-License-Identifier: MIT
 *
 * errno is the program's: errors are answers, and a thread that calls the library finds errno as it was, whatever was asked of the kernel meanwhile.
 */
#include "base/fault.h"
#include "crew.h"
#include "death.h"
#include "filter.h"
#include "test.h"

#include <errno.h>
#include <weft/weft.h>

#define OURS 1234 /* no error of the kernel's */

#define LEAVES_ERRNO(answer, ...)                                                                  \
    do {                                                                                           \
        errno = OURS;                                                                              \
        int r_ = (__VA_ARGS__);                                                                    \
        int now_ = errno;                                                                          \
        ASSERT_EQ(r_, answer);                                                                     \
        ASSERT_EQ(now_, OURS);                                                                     \
    } while (0)

static int answers(int value)
{
    return value;
}

/* The CPUs' limits are read, and the kernel is asked what it knows. */
TEST(errno_of_a_build)
{
    weft_rt *rt = NULL;
    LEAVES_ERRNO(-EINVAL, weft_rt_new(&(weft_rt_opts){.stack_bytes = 1}, &rt));
    LEAVES_ERRNO(0, weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
    LEAVES_ERRNO(0, weft_rt_stop(rt, -1));
    LEAVES_ERRNO(0, weft_rt_new(&(weft_rt_opts){.workers = 2}, &rt));
    LEAVES_ERRNO(0, weft_rt_stop(rt, -1));
}

/* It sleeps to its timeout; once more with an fd, where an event is drained that nobody has signalled. */
TEST(errno_of_a_turn)
{
    weft_rt *rt;
    int got;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
    LEAVES_ERRNO(0, weft_rt_turn(rt, 1000));
    ASSERT_GE(weft_rt_fd(rt), 0);
    for (int i = 0; i < 3; i++)
        LEAVES_ERRNO(0, weft_rt_turn(rt, 1000));
    weft_task *task = weft_go_as((.rt = rt), answers, 5);
    LEAVES_ERRNO(1, weft_rt_turn(rt, -1));
    LEAVES_ERRNO(0, weft_join(task, &got));
    ASSERT_EQ(got, 5);
    ASSERT_OK(weft_rt_stop(rt, -1));
}

static weft_event rung;

static void *rings(void *waiter)
{
    CREW_UNTIL(load_acquire((_Atomic bool *)waiter));
    weft_event_set(&rung);
    return NULL;
}

/* It parks until it is late, until another thread wakes it, and not at all. */
TEST(errno_of_a_threads_waits)
{
    pthread_t ringer;
    _Atomic bool waits = false;
    LEAVES_ERRNO(0, weft_sleep(1000));
    WEFT_TIMEOUT(1000) LEAVES_ERRNO(-ETIME, weft_event_wait(&rung));
    for (int i = 0; i < 20; i++) {
        weft_event_init(&rung);
        store_relaxed(&waits, false);
        ASSERT_OK(pthread_create(&ringer, NULL, rings, &waits));
        store_release(&waits, true);
        LEAVES_ERRNO(0, weft_event_wait(&rung));
        ASSERT_OK(pthread_join(ringer, NULL));
        LEAVES_ERRNO(0, weft_event_wait(&rung));
        weft_event_done(&rung);
    }
}

/* ---- before main ---- */

enum { NO_FILTERS = 3, NOT_BEGUN };

/* No answer of membarrier's. */
#define NOT_HERE ENOTBLK

/* Looked at by this program as the test below starts it. */
TEST(errno_as_main_has_found_it)
{
    ASSERT_NE(test_errno_at_start(), NOT_HERE);
}

static void begins_anew(void *unused)
{
    (void)unused;
    unsetenv("WEFT_TEST_REPEAT");
    if (!filter_denies(SYS_membarrier, NOT_HERE)) _exit(NO_FILTERS);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    execl("/proc/self/exe", "feature_errno", "errno_as_main_has_found_it", NULL);
    _exit(NOT_BEGUN);
}

/* The library announces its membarriers before main; the kernel may refuse. */
TEST(errno_of_a_start_where_there_is_no_membarrier)
{
    if (getenv("WEFT_TEST_UNDER")) TEST_SKIP("Valgrind would not follow");
    struct death d = death_of(begins_anew, NULL);
    if (d.code == NO_FILTERS) TEST_SKIP("no seccomp here");
    if (d.code != 0) fputs(d.said, stderr);
    ASSERT_EQ(d.code, 0);
    ASSERT_EQ(d.signal, 0);
}
