/* SPDX-License-Identifier: MIT
 *
 * Recursion through boxes, and generators: to the end, left early, asked again after the end, consumed by both kinds.
 */
#include "face.h"

struct fib {
    WEFT_FRAME(long);
    int n;
    long sum;
    struct fib *kid;
    struct countdown pause;
};

static weft_async(fib)
{
    weft_begin;
    weft_await(f->pause, countdown, f->n % 2);
    if (f->pause.ret < 0) weft_return(f->pause.ret);
    if (f->n < 2) weft_return(f->n);
    weft_await_boxed(f->kid, fib, f->n - 1);
    f->sum = weft_unbox(f->kid);
    if (f->sum < 0) weft_return(f->sum);
    weft_await_boxed(f->kid, fib, .n = f->n - 2);
    CHECK(f->kid);
    f->sum += weft_unbox(f->kid);
    CHECK(!f->kid);
    weft_return(f->sum);
    weft_end;
}

struct squares {
    WEFT_ITEMS(long);
    int from, to;
    int *closed;
    struct countdown nap;
};

static weft_async(squares)
{
    weft_begin;
    for (; f->from < f->to; f->from++) {
        weft_await(f->nap, countdown, 1);
        if ((f->ret = f->nap.ret) < 0) break;
        weft_emit((long)f->from * f->from);
    }
    if (f->closed) ++*f->closed;
    weft_end;
}

/* Awaits nothing, so it learns from f->ret that it has to stop. */
struct naturals {
    WEFT_ITEMS(int);
    int next;
    int *closed;
};

static weft_async(naturals)
{
    weft_begin;
    while (f->ret == 0)
        weft_emit(f->next++);
    ++*f->closed;
    weft_end;
}

struct sum {
    WEFT_FRAME(int);
    long total;
    int closed;
    struct squares sq;
    struct naturals nat;
};

static weft_async(sum)
{
    weft_begin;
    weft_start(f->sq, squares, .from = 1, .to = 1000, .closed = &f->closed);
    weft_await_settled(f->sq, squares); /* it never began: nothing happens */
    CHECK_EQ(f->closed, 0);
    for (;;) {
        weft_await_next(f->sq, squares);
        if (f->sq.ret <= 0 || (f->total += f->sq.item) > 100) break;
    }
    CHECK_EQ(f->total, 1 + 4 + 9 + 16 + 25 + 36 + 49);
    weft_await_settled(f->sq, squares);
    CHECK_EQ(f->sq.ret, -ECANCELED);
    weft_await_settled(f->sq, squares); /* it is over: nothing happens */
    CHECK_EQ(f->closed, 1);

    weft_start(f->nat, naturals, .closed = &f->closed);
    for (f->total = 0; f->total < 10;) {
        weft_await_next(f->nat, naturals);
        CHECK_EQ(f->nat.ret, 1);
        f->total += f->nat.item;
    }
    weft_await_settled(f->nat, naturals);
    CHECK_EQ(f->closed, 2);
    CHECK(f->nat.ret <= 0);
    weft_return((int)f->total);
    weft_end;
}

static int app(void)
{
    struct squares sq;
    long total = 0;

    CHECK_EQ(weft_run(fib, 12), 144);
    weft_start(sq, squares, 1, 6);
    while (weft_next(sq, squares) > 0)
        total += sq.item;
    CHECK_EQ(total, 55);
    CHECK_EQ(sq.ret, 0);
    CHECK_EQ(weft_next(sq, squares), 0); /* the end stays the end */
    CHECK_EQ(weft_run(sum), 10);
    return 0;
}

WEFT_MAIN(app)
