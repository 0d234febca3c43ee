/* SPDX-License-Identifier: MIT
 *
 * fiber - what a switch costs, and a poll around it.
 *
 *     switch    one way, between two contexts, nothing around it
 *     poll      weft__go_poll of a fiber that suspends at once: two switches, and here saved and put back
 *     many      the same over 1,000 fibers in turns: their stacks' tops meet in the cache
 *     life      a fiber's birth, one poll and end, on a warm stack
 *     call      weft__run on a plain thread, of a frame that is ready at once
 * Best of two hundred short rounds, in ns per operation: on a busy machine some of them are not interrupted.
 */
#include "task/fiber.h"
#include "task/call.h"
#include "task/here.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS   200
#define SWITCHES 500000u
#define POLLS    100000u
#define LIVES    20000u
#define MANY     1000u

static struct weft__stacks pool;
static struct weft__context main_context;
static struct weft__context other_context;
static struct weft__go_frame many[MANY];

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void other(void *arg)
{
    (void)arg;
    for (;;)
        weft__context_swap(&other_context, &main_context);
}

static void bench_switch(void)
{
    for (unsigned i = 0; i < SWITCHES / 2; i++)
        weft__context_swap(&main_context, &other_context);
}

static void suspend_forever(void)
{
    while (weft__here()->cx->why == 0)
        weft__fiber_suspend();
}

static void poll_in_turns(unsigned count)
{
    struct weft_cx cx = {.budget = 128};
    for (unsigned i = 0; i < POLLS; i += count) {
        for (unsigned k = 0; k < count; k++)
            (void)weft__go_poll(&many[k], &cx);
    }
}

static void bench_poll(void)
{
    poll_in_turns(1);
}

static void bench_many(void)
{
    poll_in_turns(MANY);
}

static void nothing(void)
{
}

static void bench_life(void)
{
    struct weft_cx cx = {.budget = 128};
    for (unsigned i = 0; i < LIVES; i++) {
        struct weft__go_frame frame = {.call = {.fn = nothing}};
        (void)weft__go_poll(&frame, &cx);
    }
}

static weft_poll ready_poll(void *frame, weft_cx *cx)
{
    (void)frame;
    (void)cx;
    return WEFT_READY;
}

static void bench_call(void)
{
    for (unsigned i = 0; i < LIVES; i++)
        weft__run(ready_poll, NULL);
}

static void best_of(const char *name, void (*run)(void), unsigned count)
{
    double best = 1e18;
    for (unsigned i = 0; i < ROUNDS; i++) {
        double start = now_ns();
        run();
        double each = (now_ns() - start) / count;
        if (each < best) best = each;
    }
    printf("%-8s %6.2f ns\n", name, best);
}

static void prepare(void)
{
    struct weft__stacks_options o = {.stack_bytes = 64 * 1024};
    struct weft__stack *stack;

    if (weft__stacks_init(&pool, &o) < 0 || weft__stack_get(&pool, &stack) < 0) exit(1);
    weft__here()->stacks = &pool;
    weft__context_init(&other_context, stack->lo + weft__stack_bytes(stack), other, NULL);
    for (unsigned i = 0; i < MANY; i++)
        many[i].call.fn = suspend_forever;
}

int main(void)
{
    prepare();
    best_of("switch", bench_switch, SWITCHES);
    best_of("poll", bench_poll, POLLS);
    best_of("many", bench_many, POLLS);
    best_of("life", bench_life, LIVES);
    best_of("call", bench_call, LIVES);
    return 0; /* the fibers end with the process */
}
