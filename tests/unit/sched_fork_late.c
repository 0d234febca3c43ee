/* SPDX-License-Identifier: MIT
 *
 * The handlers of fork in a process that could not have them before main: the first runtime brings them. Forks beside that
 * moment, and two runtimes that are the first at once.
 *
 * This program has a pthread_atfork of its own, which fails until a test begins and then does what the test wants
 * to happen in the middle of it.
 */
#include "child.h"
#include "crew.h"
#include "sched/pool.h"
#include "sched/sched.h"
#include "test.h"

#include <errno.h>

/* ThreadSanitizer has handlers of its own, which it registers before it can run a line of this program. */
#if defined(__GLIBC__) && !defined(WEFT__TSAN)

extern void *__dso_handle;
int __register_atfork(void (*before)(void), void (*parent)(void), void (*child)(void), void *dso);

static bool begun;                /* a test has; written while there is one thread */
static void (*meanwhile)(void);   /* called by each registration before it is done; NULL: nothing */
static _Atomic int registrations; /* relaxed: a count */

/* The names are the C library's: clang-tidy compares them. */
int pthread_atfork(void (*__prepare)(void), void (*__parent)(void), void (*__child)(void))
{
    if (!begun) return ENOMEM;
    fetch_add_relaxed(&registrations, 1);
    if (meanwhile) meanwhile();
    return __register_atfork(__prepare, __parent, __child, &__dso_handle);
}

static void begin(void (*what)(void))
{
    begun = true;
    meanwhile = what;
}

static void runtime_works(void)
{
    weft_rt *rt;
    CHILD_NEEDS(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt) == 0);
    CHILD_NEEDS(weft_rt_stop(rt, -1) == 0);
}

/* ---- a fork in the middle of it ---------------------------------------------------------------------------------- */

static _Atomic int childs_code;

static void *forks(void *unused)
{
    (void)unused;
    pid_t child = fork();
    if (child == 0) {
        meanwhile = NULL;
        runtime_works();
        _exit(6);
    }
    store_relaxed(&childs_code, exit_code_of(child));
    return NULL;
}

static void another_thread_forks(void)
{
    pthread_t thread;
    ASSERT_OK(pthread_create(&thread, NULL, forks, NULL));
    ASSERT_OK(pthread_join(thread, NULL));
}

/* The child has no handlers, and must not find a lock that the building thread holds. */
TEST(fork_beside_the_first_runtime_leaves_no_lock_held)
{
    if (!DEATH_CHILD_MAY_ALLOCATE) TEST_SKIP("its child could wait for the sanitizer's allocator");
    begin(another_thread_forks);
    runtime_works();
    ASSERT(ended_by(load_relaxed(&childs_code), 6));
    ASSERT_EQ(load_relaxed(&registrations), 1);
}

/* ---- twice --------------------------------------------------------------------------------------------------------- */

/* Until both are about to register. */
static void wait_for_the_other(void)
{
    CREW_UNTIL(load_relaxed(&registrations) >= 2);
}

static void *builds(void *unused)
{
    (void)unused;
    runtime_works();
    return NULL;
}

static void child_finds_all_as_it_should_be(void *arg)
{
    weft_rt *rt = arg;
    meanwhile = NULL;
    CHILD_NEEDS(weft__rt_is_lost(rt));
    CHILD_NEEDS(weft__lock_try_take(weft__pool_lock()));
    weft__lock_drop(weft__pool_lock());
    if (DEATH_CHILD_MAY_ALLOCATE) runtime_works();
}

TEST(fork_handlers_that_are_there_twice_work_once)
{
    pthread_t thread[2];
    weft_rt *rt;
    begin(wait_for_the_other);
    for (int i = 0; i < 2; i++)
        ASSERT_OK(pthread_create(&thread[i], NULL, builds, NULL));
    for (int i = 0; i < 2; i++)
        ASSERT_OK(pthread_join(thread[i], NULL));
    ASSERT_EQ(load_relaxed(&registrations), 2);
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1}, &rt));
    for (int i = 0; i < 3; i++) {
        struct death d = death_of(child_finds_all_as_it_should_be, rt);
        ASSERT_STR(d.said, "");
        ASSERT_OK(d.signal);
        ASSERT(ended_by(d.code, 0));
    }
    ASSERT_OK(weft_rt_stop(rt, -1));
}

/* ---- not at all ---------------------------------------------------------------------------------------------------- */

TEST(fork_handlers_that_cannot_be_had_are_tried_again)
{
    weft_rt *rt;
    ASSERT_EQ(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt), -ENOMEM);
    begin(NULL);
    runtime_works();
    runtime_works();
    ASSERT_EQ(load_relaxed(&registrations), 1);
}

#else
TEST(fork_handlers_that_cannot_be_replaced)
{
    TEST_SKIP("pthread_atfork can be replaced in programs with glibc and without ThreadSanitizer");
}
#endif
