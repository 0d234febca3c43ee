/* SPDX-License-Identifier: MIT
 *
 * The switch between two stacks, by itself: who goes on where, with what registers, and on how a
 * stack begins and must not end. Fibers, which are made of it, have tests of their own.
 *
 * The functions that switch are not instrumented: the sanitizers are told of stacks by the fibers'
 * hooks, and here are none.
 */
#include "task/context.h"

#include "death.h"
#include "test.h"

#include <fenv.h>
#include <pthread.h>
#include <string.h>

#define STACK_BYTES (64 * 1024)
#define BARE        WEFT__UNSANITIZED __attribute__((noinline)) static

static char stack_memory[2][STACK_BYTES] __attribute__((aligned(16)));

/* Two sides, and what they tell each other. */
struct pair {
    struct weft__context here;  /* the test's side */
    struct weft__context there; /* the other stack */
    void *frame;                /* of the first function there */
    int count;
    bool same;
};

BARE void go_there(struct pair *p)
{
    weft__context_swap(&p->here, &p->there);
}

BARE void go_back(struct pair *p)
{
    weft__context_swap(&p->there, &p->here);
}

static void begin(struct pair *p, int stack, void (*run)(void *))
{
    memset(p, 0, sizeof(*p));
    weft__context_init(&p->there, stack_memory[stack] + STACK_BYTES, run, p);
}

/* ---- there and back ------------------------------------------------------------------------------------ */

BARE void counts(void *arg)
{
    struct pair *p = arg;
    p->frame = __builtin_frame_address(0);
    for (;;) {
        p->count++;
        go_back(p);
    }
}

TEST(context_goes_there_and_back)
{
    struct pair p;
    begin(&p, 0, counts);
    for (int i = 1; i <= 1000; i++) {
        go_there(&p);
        ASSERT_EQ(p.count, i);
    }
}

/* As the ABI has it: a frame's address is a multiple of 16, and the stack is the one that was given. */
TEST(context_begins_on_an_aligned_stack)
{
    struct pair p;
    begin(&p, 0, counts);
    go_there(&p);
    ASSERT_EQ((uintptr_t)p.frame % 16, 0);
    ASSERT((char *)p.frame > stack_memory[0]);
    ASSERT((char *)p.frame < stack_memory[0] + STACK_BYTES);
    ASSERT((char *)p.frame > stack_memory[0] + STACK_BYTES - 1024);
}

TEST(context_two_stacks_do_not_mix)
{
    struct pair p;
    struct pair q;
    begin(&p, 0, counts);
    begin(&q, 1, counts);
    for (int i = 1; i <= 100; i++) {
        go_there(&p);
        go_there(&q);
        go_there(&q);
    }
    ASSERT_EQ(p.count, 100);
    ASSERT_EQ(q.count, 200);
}

/* ---- registers ------------------------------------------------------------------------------------------- */

/* Every register that a function may use has another value when this one goes back. */
BARE void spoils(void *arg)
{
    struct pair *p = arg;
    for (;;) {
#if defined(__x86_64__)
        __asm__ volatile("xorl %%ebx, %%ebx\n\txorl %%r12d, %%r12d\n\txorl %%r13d, %%r13d\n\t"
                         "xorl %%r14d, %%r14d\n\txorl %%r15d, %%r15d\n\t"
                         "pxor %%xmm0, %%xmm0\n\tpxor %%xmm1, %%xmm1\n\tpxor %%xmm6, %%xmm6\n\t"
                         "pxor %%xmm7, %%xmm7\n\tpxor %%xmm8, %%xmm8\n\tpxor %%xmm15, %%xmm15" ::
                             : "rbx", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm6", "xmm7",
                               "xmm8", "xmm15");
#elif defined(__aarch64__)
        __asm__ volatile("mov x19, xzr\n\tmov x20, xzr\n\tmov x21, xzr\n\tmov x22, xzr\n\t"
                         "mov x23, xzr\n\tmov x24, xzr\n\tmov x25, xzr\n\tmov x26, xzr\n\t"
                         "mov x27, xzr\n\tmov x28, xzr\n\tmovi d8, #0\n\tmovi d9, #0\n\t"
                         "movi d10, #0\n\tmovi d14, #0\n\tmovi d15, #0" ::
                             : "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28",
                               "d8", "d9", "d10", "d14", "d15");
#endif
        p->count++;
        go_back(p);
    }
}

/* More values alive across the switch than there are registers that a callee keeps. */
BARE bool keeps_whole_numbers(struct pair *p, const volatile long *v)
{
    long a = v[0], b = v[1], c = v[2], d = v[3], e = v[4], g = v[5], h = v[6], i = v[7];
    go_there(p);
    long first = a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * g + 7 * h + 8 * i;
    go_there(p);
    return first == a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * g + 7 * h + 8 * i &&
           first ==
               v[0] + 2 * v[1] + 3 * v[2] + 4 * v[3] + 5 * v[4] + 6 * v[5] + 7 * v[6] + 8 * v[7];
}

BARE bool keeps_fractions(struct pair *p, const volatile double *v)
{
    double a = v[0], b = v[1], c = v[2], d = v[3], e = v[4], g = v[5], h = v[6], i = v[7];
    go_there(p);
    return a == v[0] && b == v[1] && c == v[2] && d == v[3] && e == v[4] && g == v[5] &&
           h == v[6] && i == v[7];
}

TEST(context_values_survive_the_switch)
{
    static const volatile long whole[] = {3, 1 << 20, -5, 7, 1L << 40, -11, 13, 17};
    static const volatile double part[] = {.5, -.25, 1e300, 3.125, 1e-300, 7.5, -0.0, 9.75};
    struct pair p;
    begin(&p, 0, spoils);
    for (int round = 0; round < 100; round++) {
        ASSERT(keeps_whole_numbers(&p, whole));
        ASSERT(keeps_fractions(&p, part));
    }
}

/* The other way round: what is alive over there while this side computes. */
BARE void keeps_its_own(void *arg)
{
    struct pair *p = arg;
    for (int round = 1;; round++) {
        double x = round * .5;
        long y = round * 3L;
        go_back(p);
        p->same = x == round * .5 && y == round * 3L;
    }
}

TEST(context_values_over_there_survive_too)
{
    struct pair p;
    volatile double sum = 0;
    begin(&p, 0, keeps_its_own);
    go_there(&p);
    for (int i = 0; i < 100; i++) {
        sum = sum * 1.5 + i;
        go_there(&p);
        ASSERT(p.same);
    }
}

/* ---- what belongs to the thread ------------------------------------------------------------------------------ */

BARE void rounds_upward(void *arg)
{
    struct pair *p = arg;
    fesetround(FE_UPWARD);
    go_back(p);
    p->same = fegetround() == FE_DOWNWARD;
    go_back(p);
}

TEST(context_rounding_is_the_threads)
{
    struct pair p;
    begin(&p, 0, rounds_upward);
    int before = fegetround();
    go_there(&p);
    ASSERT_EQ(fegetround(), FE_UPWARD);
    fesetround(FE_DOWNWARD);
    go_there(&p);
    ASSERT(p.same);
    fesetround(before);
}

/* ---- another thread goes on ------------------------------------------------------------------------------------ */

BARE void *goes_on(void *arg)
{
    go_there(arg);
    return NULL;
}

TEST(context_goes_on_in_another_thread)
{
    struct pair p;
    pthread_t thread;
    begin(&p, 0, counts);
    go_there(&p);
    void *frame = p.frame;
    for (int i = 0; i < 5; i++) {
        ASSERT_OK(pthread_create(&thread, NULL, goes_on, &p));
        ASSERT_OK(pthread_join(thread, NULL));
    }
    go_there(&p);
    ASSERT_EQ(p.count, 7);
    ASSERT_PTR(p.frame, frame);
}

/* ---- how it must not end --------------------------------------------------------------------------------------- */

BARE void returns(void *arg)
{
    (void)arg;
}

static void lets_it_return(void *unused)
{
    static struct pair p; /* the other stack, which outlives this one's frames, knows its address */
    (void)unused;
    begin(&p, 0, returns);
    go_there(&p);
}

TEST(context_function_that_returns_is_trapped)
{
    struct death d = death_of(lets_it_return, NULL);
#if defined(__x86_64__)
    ASSERT_EQ(d.signal, SIGILL);
#else
    ASSERT_EQ(d.signal, SIGTRAP);
#endif
}
