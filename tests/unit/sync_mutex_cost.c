/* SPDX-License-Identifier: MIT
 *
 * What a mutex costs that nobody else wants: two atomic read-modify-writes at most to take it and to give it back, for a plain thread, for a
 * fiber, and by the poll. Counted, not timed: a child is led through it one instruction at a time, between two breakpoints of its own.
 */
#include "base/atomic.h"
#include "base/sanitize.h"
#include "child.h"
#include "counted.h"
#include "test.h"

#include <weft/weft.h>

#if defined(__x86_64__) && defined(__linux__)

#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>

/* ---- what is counted ---- */

static weft_mutex mutex;

static void nothing(void)
{
}

/* Two of them, beside what is none: a load, a store, an exchange of registers. */
static void two(void)
{
    static _Atomic uint32_t word;
    (void)fetch_add_relaxed(&word, 1);
    (void)exchange_relaxed(&word, load_relaxed(&word));
    store_release(&word, 3);
    __asm__ volatile("xchg %%ecx, %%edx" ::: "rcx", "rdx");
}

static void called(void)
{
    CHILD_NEEDS(weft_lock(&mutex) == 0);
    CHILD_NEEDS(weft_unlock(&mutex) == 0);
}

static void polled(void)
{
    struct counted waker;
    struct weft_cx cx = cx_of(&waker);
    struct weft_lock f = {.mutex = &mutex};
    CHILD_NEEDS(weft_lock_poll(&f, &cx) == WEFT_READY);
    CHILD_NEEDS(f.ret == 0);
    CHILD_NEEDS(weft_unlock(&mutex) == 0);
}

/* ---- the child ---- */

enum { MAY_NOT = 77, BREAKPOINT = 0xcc };

/* Once before: what is done the first time only is not what it costs. */
static void goes_through(void (*body)(void))
{
    body();
    __asm__ volatile("int3" ::: "memory");
    body();
    __asm__ volatile("int3" ::: "memory");
}

/* Of a runtime that this thread turns: it is the one that is led. */
static void goes_through_on_a_fiber(void (*body)(void))
{
    weft_rt *rt;
    CHILD_NEEDS(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt) == 0);
    (void)weft_rt_enter(rt);
    CHILD_NEEDS(weft_detach(weft_go(goes_through, body)) == 0);
    CHILD_NEEDS(weft_rt_turn(rt, -1) >= 0);
}

static void child_does(void (*way)(void (*body)(void)), void (*body)(void))
{
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(MAY_NOT);
    way(body);
    _exit(0);
}

/* Waits until it has come to a breakpoint, or one step further. False: it may not be led. */
static bool traps(pid_t child)
{
    int status;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == MAY_NOT) return false;
    if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
        ck_abort_msg("the child is not where it should be: status 0x%x", (unsigned)status);
    return true;
}

/* What it executes next. It is a fork of ours, and has the same code at the same place. */
static const unsigned char *next_of(pid_t child)
{
    long at = ptrace(PTRACE_PEEKUSER, child, offsetof(struct user, regs.rip), NULL);
    ASSERT_NE(at, -1);
    return (const unsigned char *)(uintptr_t)at;
}

/* One with a lock prefix, or an exchange with memory, which is one without it. */
static bool is_rmw(const unsigned char *code)
{
    static const unsigned char prefixes[] = {0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65,
                                             0x66, 0x67, 0xf0, 0xf2, 0xf3};
    for (; memchr(prefixes, *code, sizeof(prefixes)); code++)
        if (*code == 0xf0) return true;
    if ((*code & 0xf0) == 0x40) code++;                /* a REX prefix, the last of all */
    return (code[0] & 0xfe) == 0x86 && code[1] < 0xc0; /* xchg; its operand is no register */
}

/* From the first breakpoint to the second. */
static int count_in(pid_t child)
{
    int count = 0;
    for (const unsigned char *code; *(code = next_of(child)) != BREAKPOINT;) {
        count += is_rmw(code);
        ASSERT_OK(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL));
        ASSERT(traps(child));
    }
    return count;
}

/* How many atomic read-modify-writes the body does, gone through in that way. */
static int rmws_of(void (*way)(void (*body)(void)), void (*body)(void))
{
    int status;
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) child_does(way, body);
    if (!traps(child)) TEST_SKIP("a process may not trace its child here");
    int count = count_in(child);
    ASSERT_OK(kill(child, SIGKILL));
    ASSERT_EQ(waitpid(child, &status, 0), child);
    return count;
}

static void need_steps(void)
{
#if defined(WEFT__ASAN) || defined(WEFT__TSAN) || defined(WEFT__MSAN)
    TEST_SKIP("a sanitizer does more than the program says");
#endif
    if (getenv("WEFT_TEST_UNDER")) TEST_SKIP("Valgrind executes the program, not the processor");
}

/* ---- the tests ---- */

TEST(mutex_cost_is_counted_right)
{
    need_steps();
    ASSERT_EQ(rmws_of(goes_through, nothing), 0);
    ASSERT_EQ(rmws_of(goes_through, two), 2);
    ASSERT_EQ(rmws_of(goes_through_on_a_fiber, two), 2);
}

/* None would be no lock. */
static void expect_two_at_most(int rmws)
{
    ASSERT_GE(rmws, 1);
    ASSERT_LE(rmws, 2);
}

TEST(mutex_costs_two_atomics)
{
    need_steps();
    expect_two_at_most(rmws_of(goes_through, called));
    expect_two_at_most(rmws_of(goes_through_on_a_fiber, called));
    expect_two_at_most(rmws_of(goes_through, polled));
}

#else

TEST(mutex_costs_two_atomics)
{
    TEST_SKIP("it reads the instructions of x86-64, as Linux lets it");
}

#endif
