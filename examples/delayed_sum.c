/* SPDX-License-Identifier: MIT
 *
 * delayed_sum - one function in the three forms that weft knows: as a fiber, stackless, by hand.
 *
 * The delay is a tenth of a second, and the three wait at the same time.
 */
#include <stdio.h>
#include <weft/weft.h>

/* ---- as a fiber: ordinary C on a stack of its own. weft_sleep() suspends it, whoever called it. */

static int delayed_sum(int a, int b) /* below zero is an errno */
{
    int r = weft_sleep(weft_ms(100)); /* 0, or -ECANCELED if somebody asked this task to stop */
    return r < 0 ? r : a + b;
}

/* ---- stackless: a struct that holds what lives across a suspension, and a body that picks up where
 * it left off. It costs as much memory as the struct says. The name may be the same as above: one is
 * a function, this one is a struct. */

struct delayed_sum {
    WEFT_FRAME(int);         /* where it stands, and its result, `ret` */
    int a, b;                /* arguments */
    struct weft_sleep sleep; /* what it awaits lives inside it */
};

static weft_async(delayed_sum) /* in the body the struct is called f */
{
    weft_begin;
    weft_await(f->sleep, weft_sleep, .ns = weft_ms(100));
    if (f->sleep.ret < 0) weft_return(f->sleep.ret);
    weft_return(f->a + f->b);
    weft_end;
}

/* ---- by hand: what weft_async writes for you. Polled, it is READY, or it sees to it that somebody
 * wakes its task and is PENDING: here the sleep does, which it polls in turn. */

struct hand_sum {
    WEFT_FRAME(int);
    int a, b;
    struct weft_sleep sleep;
};

static weft_poll hand_sum_poll(void *frame, weft_cx *cx)
{
    struct hand_sum *f = frame;
    if (weft_sleep_poll(&f->sleep, cx) == WEFT_PENDING) return WEFT_PENDING;
    f->ret = f->sleep.ret < 0 ? f->sleep.ret : f->a + f->b;
    return WEFT_READY;
}

/* ---- each of them as a task of its own; who joins a task need not know what it is. */

static int print_sum(const char *form, weft_task *task)
{
    int sum;
    int r = weft_join(task, &sum); /* -ECHILD if it could not be started: the handle is NULL then */
    if (r < 0) return r;
    printf("%s: %d\n", form, sum);
    return sum < 0 ? sum : 0;
}

static int app(void)
{
    weft_task *fiber = weft_go(delayed_sum, 3, 4);
    weft_task *stackless = weft_spawn(delayed_sum, .a = 3, .b = 4);
    weft_task *by_hand = weft_spawn(hand_sum, .a = 3, .b = 4, .sleep = {.ns = weft_ms(100)});
    int r = print_sum("fiber", fiber);
    int s = print_sum("stackless", stackless); /* a handle is spent, whatever came of the others */
    int t = print_sum("by hand", by_hand);
    return r < 0 ? r : s < 0 ? s : t;
}

WEFT_MAIN(app) /* a runtime with a worker per CPU, and app as its first fiber */
