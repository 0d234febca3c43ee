/* SPDX-License-Identifier: MIT
 *
 * The locks of the process around fork: a child finds them free, and what they guard whole.
 */
#include "base/atomic.h"
#include "death.h"
#include "sched/pool.h"
#include "sched/sched.h"
#include "sys/bias.h"
#include "sys/lock.h"
#include "sys/segv.h"
#include "sys/signals.h"
#include "sys/stackdir.h"
#include "task/fiberdir.h"
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

/* In the child the other threads are neither running nor joined. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "report_thread_leaks=0:die_after_fork=0";
}

/* ---- a lock that another thread holds when fork is called ------------------------------------------------- */

struct holder {
    struct weft__lock *lock;
    _Atomic bool holds;  /* relaxed, both: flags */
    _Atomic bool forked;
};

/* Holds it until the fork sleeps for it, or is over: one that does not wait has then copied a lock that is held. */
static void *holds_until_the_fork(void *arg)
{
    struct holder *h = arg;
    weft__lock_take(h->lock);
    store_relaxed(&h->holds, true);
    while (load_relaxed(&h->lock->word) != 2 && !load_relaxed(&h->forked)) /* relaxed: looked at again and again */
        sched_yield();
    weft__lock_drop(h->lock);
    return NULL;
}

static int child_finds_it_free(struct holder *h)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        bool free = weft__lock_try_take(h->lock);
        if (free) weft__lock_drop(h->lock);
        _exit(free ? 0 : 1);
    }
    store_relaxed(&h->forked, true);
    ASSERT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Also before there is any runtime. */
TEST(fork_waits_for_the_locks_of_the_process)
{
    struct weft__lock *locks[] = {weft__pool_lock(),     weft__guest_lock(), weft__fiberdir_lock(),
                                  weft__stackdir_lock(), weft__segv_lock(),  weft__signals_lock()};
    for (size_t i = 0; i < sizeof(locks) / sizeof(locks[0]); i++) {
        struct holder h = {.lock = locks[i]};
        pthread_t thread;
        ASSERT_OK(pthread_create(&thread, NULL, holds_until_the_fork, &h));
        while (!load_relaxed(&h.holds))
            sched_yield();
        ASSERT_OK(child_finds_it_free(&h));
        ASSERT_OK(pthread_join(thread, NULL));
        ASSERT(weft__lock_try_take(locks[i])); /* the parent's is free as well */
        weft__lock_drop(locks[i]);
    }
}

/* ---- the list ------------------------------------------------------------------------------------------------ */

static void child_asks(void *arg)
{
    struct weft_rt **rt = arg;
    if (!weft__forked || !weft__rt_is_lost(rt[0]) || !weft__rt_is_lost(rt[1])) _exit(1);
    if (weft_rt_stop(rt[0], 0) != -ECHILD) _exit(2);
    if (!DEATH_CHILD_MAY_ALLOCATE) return;
    weft_rt *fresh; /* the list is whole: it takes and gives */
    if (weft_rt_new(&(weft_rt_opts){.workers = -1}, &fresh) < 0) _exit(3);
    if (weft__rt_is_lost(fresh) || weft_rt_stop(fresh, 0) < 0) _exit(4);
}

TEST(fork_loses_each_runtime_in_the_child_alone)
{
    struct weft_rt *rt[2];
    for (int i = 0; i < 2; i++)
        ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = i ? 1 : -1}, &rt[i]));
    ASSERT_OK(death_of(child_asks, rt).code);
    ASSERT(!weft__forked);
    for (int i = 0; i < 2; i++) {
        ASSERT(!weft__rt_is_lost(rt[i]));
        ASSERT_OK(weft_rt_stop(rt[i], -1));
    }
}

static void child_takes_all_numbers(void *unused)
{
    unsigned count = 0;
    (void)unused;
    while (weft__bias_number_new() != 0)
        count++;
    _exit(count == WEFT__BIAS_NUMBERS - 1 ? 0 : 1);
}

/* Workers of a fresh runtime are lent channels as the parent's are, and those of a grandchild's. */
TEST(fork_leaves_the_numbers_of_workers_to_the_child)
{
    weft_rt *rt;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 4}, &rt));
    ASSERT_OK(death_of(child_takes_all_numbers, NULL).code);
    ASSERT_OK(weft_rt_stop(rt, -1));
}

static void child_of_none(void *unused)
{
    (void)unused;
    _exit(weft__forked);
}

TEST(fork_without_runtimes_changes_nothing)
{
    weft_rt *rt;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1}, &rt));
    ASSERT_OK(weft_rt_stop(rt, -1));
    ASSERT_OK(death_of(child_of_none, NULL).code);
}
