/* SPDX-License-Identifier: MIT
 *
 * delayed_sum - one function in the three forms that weft knows: as a fiber, stackless, by hand.
 *
 * "Delayed" should mean a second of sleep. There are no timers yet, so each form gives way to others
 * a few times instead: it is suspended and comes back, which is all that a sleep does to a function.
 */
#include <stdio.h>
#include <weft/weft.h>

enum { A_FEW = 3 };

/* ---- as a fiber: ordinary C on a stack of its own. weft_yield() suspends it, whoever called it. */

static int delayed_sum(int a, int b) /* below zero is an errno */
{
    for (int i = 0; i < A_FEW; i++) {
        int r = weft_yield(); /* 0, or -ECANCELED if somebody asked this task to stop */
        if (r < 0) return r;
    }
    return a + b;
}

/* ---- stackless: a struct that holds what lives across a suspension, and a body that picks up where
 * it left off. It costs as much memory as the struct says. The name may be the same as above: one is
 * a function, this one is a struct. */

struct delayed_sum {
    WEFT_FRAME(int);         /* where it stands, and its result, `ret` */
    int a, b;                /* arguments */
    int i;                   /* a local would not survive the await */
    struct weft_yield pause; /* what it awaits lives inside it */
};

static weft_async(delayed_sum) /* in the body the struct is called f */
{
    weft_begin;
    for (f->i = 0; f->i < A_FEW; f->i++) {
        weft_await(f->pause, weft_yield);
        if (f->pause.ret < 0) weft_return(f->pause.ret);
    }
    weft_return(f->a + f->b);
    weft_end;
}

/* ---- by hand: what weft_async writes for you. Polled, it is READY, or it sees to it that somebody
 * wakes its task and is PENDING. This one wakes itself at once. */

struct hand_sum {
    WEFT_FRAME(int);
    int a, b, polls;
};

static weft_poll hand_sum_poll(void *frame, weft_cx *cx)
{
    struct hand_sum *f = frame;
    if ((f->ret = weft_cx_cancelled(cx)) < 0) return WEFT_READY;
    if (f->polls++ == A_FEW) {
        f->ret = f->a + f->b;
        return WEFT_READY;
    }
    weft_waker_wake(weft_cx_waker(cx));
    return WEFT_PENDING;
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
    int r = print_sum("fiber", weft_go(delayed_sum, 3, 4));
    if (r == 0) r = print_sum("stackless", weft_spawn(delayed_sum, .a = 3, .b = 4));
    if (r == 0) r = print_sum("by hand", weft_spawn(hand_sum, .a = 3, .b = 4));
    return r;
}

WEFT_MAIN(app) /* a runtime with a worker per CPU, and app as its first fiber */
