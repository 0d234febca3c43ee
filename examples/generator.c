/* SPDX-License-Identifier: MIT
 *
 * generator - a stackless function that hands out one item after the other.
 *
 * It runs only while somebody asks for the next item. `ret` is 1 with each item, 0 at the end, or an
 * errno, as read(2) answers.
 */
#include <stdio.h>
#include <weft/weft.h>

struct fibonacci {
    WEFT_ITEMS(long); /* `item` is a long */
    long limit;       /* argument: no item is above it */
    long a, b;
    struct weft_yield pause;
};
static weft_async(fibonacci)
{
    weft_begin;
    f->b = 1;
    while (f->a <= f->limit) {
        weft_emit(f->a);                  /* suspended until the next one is asked for */
        if (f->ret < 0) break;            /* whoever asks has had enough */
        weft_await(f->pause, weft_yield); /* a generator may await, as any function */
        long next = f->a + f->b;          /* no await between here and its last use */
        f->a = f->b;
        f->b = next;
    }
    weft_end;
}

/* Stackless: the sum of the items, until there are none. */
struct add_all {
    WEFT_FRAME(long);
    long limit, sum;
    struct fibonacci fib;
};
static weft_async(add_all)
{
    weft_begin;
    weft_start(f->fib, fibonacci, .limit = f->limit);
    for (;;) {
        weft_await_next(f->fib, fibonacci);
        if (f->fib.ret <= 0) break;
        f->sum += f->fib.item;
    }
    weft_return(f->fib.ret < 0 ? f->fib.ret : f->sum);
    weft_end;
}

/* Leaving early: a generator that has begun is brought to its end, so that it can tidy up. */
struct first_above {
    WEFT_FRAME(long);
    long bound, found;
    struct fibonacci fib;
};
static weft_async(first_above)
{
    weft_begin;
    weft_start(f->fib, fibonacci, .limit = 1L << 60);
    do {
        weft_await_next(f->fib, fibonacci);
    } while (f->fib.ret > 0 && f->fib.item <= f->bound);
    f->found = f->fib.ret > 0 ? f->fib.item : f->fib.ret;
    weft_await_settled(f->fib, fibonacci);
    weft_return(f->found);
    weft_end;
}

static int app(void)
{
    struct fibonacci fib; /* in a fiber it may lie on the stack */
    weft_start(fib, fibonacci, .limit = 50);
    while (weft_next(fib, fibonacci) > 0)
        printf("%ld ", fib.item);
    printf("\nsum %ld\n", weft_run(add_all, .limit = 50));
    printf("first above 1000: %ld\n", weft_run(first_above, .bound = 1000));
    return fib.ret;
}

WEFT_MAIN(app)
