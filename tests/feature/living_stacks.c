/* SPDX-License-Identifier: MIT
 *
 * Living with stacks that are not the thread's own: a runtime may be turned on a coroutine of makecontext, or on the
 * alternate stack of a signal. Nobody knows how large those are, so nothing is run inside a join there.
 */
#include "crew.h"
#include "sched/sched.h"
#include "sys/thread.h"
#include "tasks.h"
#include "test.h"

#include <signal.h>
#include <ucontext.h>

/* ThreadSanitizer follows only the stacks that it is told of. */
#if defined(WEFT__TSAN)
#define MAY_SWITCH false
#else
#define MAY_SWITCH true
#endif

/* How many children it runs inside of joins, on the stack on which it is called. */
static uint64_t inlined_here(weft_rt *rt)
{
    weft_stats before;
    weft_stats after;
    int got = 0;
    weft_rt_stats(rt, &before);
    weft_task *task = weft_spawn_as((.rt = rt), forks, 8);
    while (!weft_done(task))
        ASSERT_GE(weft_rt_turn(rt, 0), 0);
    ASSERT_OK(weft_join(task, &got));
    ASSERT_EQ(got, 256);
    weft_rt_stats(rt, &after);
    return after.inlined - before.inlined;
}

struct stranger {
    weft_rt *rt;
    char *stack; /* in the frame of the test's own thread, above all stacks of other threads */
    size_t stack_bytes;
    void (*way)(struct stranger *s); /* to get there */
    uint64_t inlined[3]; /* on the thread's own stack, the other one, and its own again */
};
static struct stranger *stranger; /* of the coroutine or the handler */

static void elsewhere(void)
{
    stranger->inlined[1] = inlined_here(stranger->rt);
}

static void by_coroutine(struct stranger *s)
{
    static ucontext_t own;
    static ucontext_t other;
    ASSERT_OK(getcontext(&other));
    other.uc_stack.ss_sp = s->stack;
    other.uc_stack.ss_size = s->stack_bytes;
    other.uc_link = &own;
    makecontext(&other, elsewhere, 0);
    ASSERT_OK(swapcontext(&own, &other));
}

static void handler(int signal)
{
    (void)signal;
    elsewhere();
}

/* Raised by the thread itself, between two turns: nothing of the library is interrupted. */
static void by_signal(struct stranger *s)
{
    stack_t stack = {.ss_sp = s->stack, .ss_size = s->stack_bytes};
    stack_t before;
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    ASSERT_OK(sigaltstack(&stack, &before));
    ASSERT_OK(sigaction(SIGUSR1, &action, NULL));
    ASSERT_OK(raise(SIGUSR1));
    ASSERT_OK(sigaltstack(&before, NULL));
}

static void *switches(void *arg)
{
    struct stranger *s = arg;
    struct weft__thread_stack own = weft__thread_stack();
    ASSERT(s->stack >= own.lo + own.bytes); /* else its low end alone would tell */
    s->inlined[0] = inlined_here(s->rt);
    s->way(s);
    s->inlined[2] = inlined_here(s->rt);
    return NULL;
}

static void nothing_is_inlined_there(void (*way)(struct stranger *))
{
    char stack[256 * 1024];
    struct stranger s = {.stack = stack, .stack_bytes = sizeof(stack), .way = way};
    pthread_t thread;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &s.rt));
    stranger = &s;
    ASSERT_OK(pthread_create(&thread, NULL, switches, &s));
    ASSERT_OK(pthread_join(thread, NULL));
    ASSERT_GE(s.inlined[0], 1);
    ASSERT_EQ(s.inlined[1], 0);
    ASSERT_GE(s.inlined[2], 1);
    ASSERT_OK(weft_rt_stop(s.rt, -1));
}

TEST(stack_of_a_coroutine_runs_no_children_in_joins)
{
    if (!MAY_SWITCH) TEST_SKIP("this sanitizer does not follow makecontext");
    nothing_is_inlined_there(by_coroutine);
}

TEST(stack_of_a_signal_runs_no_children_in_joins)
{
    if (!MAY_SWITCH) TEST_SKIP("this sanitizer runs signal handlers late");
    nothing_is_inlined_there(by_signal);
}
