/* SPDX-License-Identifier: MIT
 *
 * pipeline - three stages, a channel between each two, and the end that travels through them.
 *
 * Numbers come out of the first stage, are squared in the second by three tasks at once, and added up in the last. Each stage reads until
 * its channel's end and then closes the next one. The last number is asked for with a time-out, as one would of a machine.
 * The middle stage is stackless, the others are fibers: a channel does not mind.
 */
#include <stdio.h>
#include <weft/weft.h>

#define NUMBERS  1000
#define SQUARERS 3

typedef WEFT_CHAN(long) long_chan;

static int produce(long_chan *out)
{
    int r = 0;
    for (long i = 1; r == 0 && i <= NUMBERS; i++)
        r = weft_send(out, &i);
    weft_chan_close(out); /* what is in it is still received */
    return r;
}

struct square {
    WEFT_FRAME(int);
    long_chan *in, *out;
    long value;
    struct weft_recv rx;
    struct weft_send tx;
};
static weft_async(square)
{
    weft_begin;
    for (;;) {
        weft_await(f->rx, weft_recv, weft_on(f->in, &f->value));
        if (f->rx.ret <= 0) weft_return(f->rx.ret); /* 0: the end */
        f->value *= f->value;
        weft_await(f->tx, weft_send, weft_on(f->out, &f->value));
        if (f->tx.ret < 0) weft_return(f->tx.ret);
    }
    weft_end;
}

static int square_all(long_chan *in, long_chan *out)
{
    weft_task *worker[SQUARERS];
    int r = 0;

    for (int i = 0; i < SQUARERS; i++)
        worker[i] = weft_spawn(square, in, out);
    for (int i = 0; i < SQUARERS; i++) {
        int one = 0, joined = weft_join(worker[i], &one);
        if (r == 0) r = joined < 0 ? joined : one;
    }
    weft_chan_close(out);
    return r;
}

static int app(void)
{
    long_chan *numbers, *squares;
    long value, sum = 0;
    int r = weft_chan_new(16, &numbers);
    if (r < 0) return r;
    if ((r = weft_chan_new(16, &squares)) < 0) goto out_numbers;

    weft_task *first = weft_go(produce, numbers), *middle = weft_go(square_all, numbers, squares);
    WEFT_TIMEOUT(weft_secs(60))
    {
        while ((r = weft_recv(squares, &value)) > 0)
            sum += value;
    }
    if (r < 0) { /* the stages learn it from their channels */
        weft_chan_close(numbers);
        weft_chan_close(squares);
    }
    printf("sum of squares: %ld\n", sum);
    int one = weft_join(first, NULL), two = weft_join(middle, NULL);
    if (r == 0) r = one < 0 ? one : two;
    weft_chan_free(squares);
out_numbers:
    weft_chan_free(numbers);
    return r;
}

WEFT_MAIN(app)
