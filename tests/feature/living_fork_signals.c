/* SPDX-License-Identifier: MIT
 *
 * Fork in a program that listens to signals: the child hears its own on a runtime of its own, the parent those that it is sent; also while other threads
 * open and close, and signals come.
 */
#include "child.h"
#include "crew.h"

#include <signal.h>
#include <weft/signal.h>

/* Twice: when the last is closed all is as it was, and can be begun anew. */
static void child_hears(int number)
{
    for (int i = 0; i < 2; i++) {
        weft_signal *s;
        CHILD_NEEDS(weft_signal_open(number, &s) == 0);
        CHILD_NEEDS(raise(number) == 0);
        CHILD_NEEDS(weft_signal_wait(s) == 1);
        weft_signal_close(s);
    }
}

static void child_listens(weft_signal *parents)
{
    weft_rt *rt;
    if (!DEATH_CHILD_MAY_ALLOCATE) return;
    CHILD_NEEDS(weft_rt_new(&(weft_rt_opts){.workers = 1}, &rt) == 0);
    (void)weft_rt_enter(rt);
    CHILD_NEEDS(weft_signal_wait(parents) == -ECHILD);
    child_hears(SIGUSR2);
    weft_signal_close(parents); /* which takes nothing from those that follow */
    child_hears(SIGUSR1);
    CHILD_NEEDS(weft_rt_stop(rt, -1) == 0);
}

static void listens_on_both_sides(struct crew *crew)
{
    weft_signal *s;
    (void)crew;
    ASSERT_OK(weft_signal_open(SIGUSR1, &s));
    pid_t child = fork();
    if (child == 0) {
        child_listens(s);
        raise(SIGUSR1); /* does what it does by default */
        _exit(CHILD_WRONG);
    }
    ASSERT_EQ(exit_code_of(child), 1000 + SIGUSR1);
    ASSERT_OK(raise(SIGUSR1));
    ASSERT_EQ(weft_signal_wait(s), 1);
    weft_signal_close(s);
}

TEST_WITH(fork_child_hears_signals_of_its_own, .timeout_s = 120)
{
    crew_each(listens_on_both_sides);
}

/* ---- while others listen ---- */

struct listener {
    pthread_t thread;
    weft_rt *rt;
    _Atomic bool *quit; /* relaxed: a flag */
    int wrong;
};

static void *comes_and_goes(void *arg)
{
    struct listener *me = arg;
    (void)weft_rt_enter(me->rt);
    while (!load_relaxed(me->quit)) {
        weft_signal *s;
        if (weft_signal_open(SIGUSR1, &s) < 0) {
            me->wrong++;
            continue;
        }
        pthread_kill(pthread_self(), SIGUSR1);
        me->wrong += weft_signal_wait(s) != 1;
        weft_signal_close(s);
    }
    (void)weft_rt_enter(NULL);
    return NULL;
}

/* Ends by SIGKILL: what the others' threads had in hand is lost here, which leak checkers at an exit would object to. */
static void child_of_listeners(void)
{
    weft_rt *rt;
    if (DEATH_CHILD_MAY_ALLOCATE) {
        CHILD_NEEDS(weft_rt_new(&(weft_rt_opts){.workers = 1}, &rt) == 0);
        (void)weft_rt_enter(rt);
        child_hears(SIGUSR1);
    }
    raise(SIGKILL);
}

TEST_WITH(fork_beside_threads_that_listen, .timeout_s = 240)
{
    struct listener crowd[2];
    _Atomic bool quit = false;
    weft_rt *rt;
    signal(SIGUSR1, SIG_IGN); /* between a close and the next open */
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1}, &rt));
    for (int i = 0; i < 2; i++) {
        crowd[i] = (struct listener){.rt = rt, .quit = &quit};
        ASSERT_OK(pthread_create(&crowd[i].thread, NULL, comes_and_goes, &crowd[i]));
    }
    for (uint64_t i = 0; i < test_scaled(100); i++) {
        pid_t child = fork();
        if (child == 0) child_of_listeners();
        ASSERT_EQ(exit_code_of(child), 1000 + SIGKILL);
    }
    store_relaxed(&quit, true);
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(pthread_join(crowd[i].thread, NULL));
        ASSERT_OK(crowd[i].wrong);
    }
    ASSERT_OK(weft_rt_stop(rt, -1));
}
