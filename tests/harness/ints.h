/* SPDX-License-Identifier: MIT
 *
 * ints - channels of numbers for tests: those who send them and those who sum them up, of both kinds.
 */
#ifndef WEFT_TESTS_INTS_H
#define WEFT_TESTS_INTS_H

#include "crew.h"
#include "still.h"
#include "test.h"

#include <weft/weft.h>

typedef WEFT_CHAN(int) int_chan;

static inline int sends(int_chan *chan, int from, int count)
{
    for (int i = 0; i < count; i++) {
        int value = from + i;
        int r = weft_send(chan, &value);
        if (r < 0) return r;
    }
    return count;
}

struct sends_too {
    WEFT_FRAME(int);
    int_chan *chan;
    int from, count;
    int i, value;
    struct weft_send tx;
};
static __attribute__((unused)) weft_async(sends_too)
{
    weft_begin;
    for (f->i = 0; f->i < f->count; f->i++) {
        f->value = f->from + f->i;
        weft_await(f->tx, weft_send, weft_on(f->chan, &f->value));
        if (f->tx.ret < 0) weft_return(f->tx.ret);
    }
    weft_return(f->i);
    weft_end;
}

/* The sum until the end; below zero: an error. */
static inline int sums(int_chan *chan)
{
    int value, sum = 0, r;
    while ((r = weft_recv(chan, &value)) > 0)
        sum += value;
    return r < 0 ? r : sum;
}

struct sums_too {
    WEFT_FRAME(int);
    int_chan *chan;
    int value, sum;
    struct weft_recv rx;
};
static __attribute__((unused)) weft_async(sums_too)
{
    weft_begin;
    for (;;) {
        weft_await(f->rx, weft_recv, .chan = f->chan, .into = &f->value);
        if (f->rx.ret <= 0) weft_return(f->rx.ret < 0 ? f->rx.ret : f->sum);
        f->sum += f->value;
    }
    weft_end;
}

static inline int joined(weft_task *t)
{
    int ret = -1000;
    ASSERT_OK(weft_join(t, &ret));
    return ret;
}

static inline int_chan *chan_of(size_t capacity)
{
    int_chan *chan;
    ASSERT_OK(weft_chan_new(capacity, &chan));
    return chan;
}

#endif
