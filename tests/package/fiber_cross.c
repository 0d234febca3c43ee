/* SPDX-License-Identifier: MIT
 *
 * Fibers on a processor that is not this one: plain asserts, because the test library is not there
 * for it. Exits 0, or dies at the line that did not hold. With an argument it overflows a fiber's stack.
 */
#include "task/call.h"
#include "task/fiber.h"
#include "task/here.h"
#include "task/overflow.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define HOLDS(fact) ((fact) ? (void)0 : (printf("line %d: %s\n", __LINE__, #fact), exit(1)))

static const struct weft_site site = {.name = "digger", .file = "mine.c", .line = 42};
static struct weft_task task = {.site = &site};
static struct weft__stacks pool;
static struct weft_cx cx = {.budget = 128};

/* Integers and doubles live in registers that the callee must save. */
__attribute__((noinline)) static double hold(unsigned depth, double a, double b)
{
    double c = a * 2;
    double d = b * 3;
    long n = (long)depth * 7;

    if (depth > 0) d += hold(depth - 1, a + 1, b + 1);
    weft__fiber_suspend();
    return a + b + c + d + (double)n;
}

static int64_t weigh(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t f)
{
    double first = hold(8, 1, 2);
    double second = hold(8, 1, 2);
    if (first != second) return -1;
    return a + 10 * b + 100 * c + 1000 * d + 10000 * e + 100000 * f;
}

static int64_t nested(int64_t depth)
{
    weft__fiber_suspend();
    if (depth == 0) return 0;
    struct weft__go_frame inner = {
        .call = {.fn = (void (*)(void))nested, .arg = {(uint64_t)depth - 1}, .ret_bytes = 8}};
    weft__run(weft__go_poll, &inner);
    return (int64_t)inner.ret + 1;
}

struct turns {
    struct weft__go_frame frame;
    weft_poll answer;
};

static void *poll_once(void *arg)
{
    struct turns *t = arg;
    weft__here()->task = &task;
    t->answer = weft__go_poll(&t->frame, &cx);
    return NULL;
}

/* A new thread for each poll. */
static int64_t drive(void (*fn)(void), const uint64_t arg[6])
{
    struct turns t = {.frame = {.call = {.fn = fn, .ret_bytes = 8}}};
    pthread_t thread;

    for (unsigned i = 0; i < 6; i++)
        t.frame.call.arg[i] = arg[i];
    poll_once(&t);
    while (t.answer == WEFT_PENDING) {
        HOLDS(pthread_create(&thread, NULL, poll_once, &t) == 0);
        HOLDS(pthread_join(thread, NULL) == 0);
    }
    return (int64_t)t.frame.ret;
}

__attribute__((noinline)) static int64_t dig(int64_t depth)
{
    volatile char spoil[512];
    spoil[0] = (char)depth;
    return depth < 0 ? 0 : dig(depth + 1) + spoil[0];
}

int main(int argc, char **argv)
{
    struct weft__stacks_options o = {.stack_bytes = 128 * 1024};
    struct weft__altstack a;

    (void)argv;
    HOLDS(weft__overflow_thread_init(&a) == 0);
    HOLDS(weft__stacks_init(&pool, &o) == 0);
    weft__here()->stacks = &pool;
    if (argc > 1) return (int)drive((void (*)(void))dig, (const uint64_t[6]){1});
    HOLDS(drive((void (*)(void))weigh, (const uint64_t[6]){1, 2, 3, 4, 5, 6}) == 654321);
    HOLDS(drive((void (*)(void))nested, (const uint64_t[6]){12}) == 12);
    HOLDS(pool.in_use_count == 0);
    weft__overflow_thread_done(&a);
    weft__stacks_done(&pool);
    return 0;
}
