/* SPDX-License-Identifier: MIT
 *
 * Membarrier: announces itself, also in a child after fork, and says what is wrong.
 */
#include "sys/membarrier.h"

#include "base/atomic.h"
#include "base/fault.h"
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

static void skip_where_there_is_none(void)
{
    int r = weft__membarrier();
    if (r == -ENOSYS || r == -EINVAL || r == -EPERM) TEST_SKIP("no membarrier here");
}

TEST(membarrier_works_again_and_again_and_after_fork)
{
    int status = 1;
    skip_where_there_is_none();
    ASSERT_OK(weft__membarrier());
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(weft__membarrier() == 0 ? 0 : 1);
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
}

struct pair {
    _Atomic uint64_t first;
    _Atomic uint64_t second;
    _Atomic bool quit;
};

static void *writes_in_order(void *arg)
{
    struct pair *p = arg;
    for (uint64_t i = 1; !load_relaxed(&p->quit); i++) {
        store_relaxed(&p->first, i);
        store_relaxed(&p->second, i);
    }
    return NULL;
}

/* What was seen of the second store tells of the first, although the writer has no fence. */
TEST(membarrier_orders_what_was_seen_before_it)
{
    struct pair p = {.quit = false};
    pthread_t writer;
    skip_where_there_is_none();
    ASSERT_OK(pthread_create(&writer, NULL, writes_in_order, &p));
    while (load_relaxed(&p.second) == 0)
        sched_yield();
    for (uint64_t i = 0; i < test_scaled(20000); i++) {
        uint64_t second = load_relaxed(&p.second);
        ASSERT_OK(weft__membarrier());
        ASSERT(load_relaxed(&p.first) >= second);
    }
    store_relaxed(&p.quit, true);
    ASSERT_OK(pthread_join(writer, NULL));
}

#if defined(WEFT_FAULTS)
TEST(membarrier_that_the_kernel_refuses)
{
    weft__fault_arm(WEFT__FAULT_MEMBARRIER, 1, 1, -ENOSYS);
    ASSERT_EQ(weft__membarrier(), -ENOSYS);
    weft__fault_reset();
}
#endif
