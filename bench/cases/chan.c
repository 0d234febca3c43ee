/* SPDX-License-Identifier: MIT
 *
 * Cases about channels: N messages in all through one of 1,024.
 */
#include "root.h"

typedef WEFT_CHAN(uint64_t) word_chan;

enum { PRODUCERS_MAX = 4, CONSUMERS_MAX = 4 };

struct producer {
    WEFT_FRAME(int);
    word_chan *chan;
    uint64_t count;
    uint64_t i;
    struct weft_send tx;
};
static weft_async(producer)
{
    weft_begin;
    for (f->i = 0; f->i < f->count; f->i++)
        weft_await(f->tx, weft_send, weft_on(f->chan, &f->i));
    weft_return(0);
    weft_end;
}

struct consumer {
    WEFT_FRAME(int64_t);
    word_chan *chan;
    uint64_t value;
    int64_t sum;
    struct weft_recv rx;
};
static weft_async(consumer)
{
    weft_begin;
    for (;;) {
        weft_await(f->rx, weft_recv, weft_on(f->chan, &f->value));
        if (f->rx.ret <= 0) break;
        f->sum += (int64_t)f->value;
    }
    weft_return(f->sum);
    weft_end;
}

/* Its result is the sum of what was received. */
struct messages {
    WEFT_FRAME(int64_t);
    uint64_t each;
    unsigned producers;
    unsigned consumers;
    unsigned i;
    word_chan *chan;
    int sent;
    int64_t part;
    weft_task *tx[PRODUCERS_MAX];
    weft_task *rx[CONSUMERS_MAX];
    struct weft_join join;
};
static weft_async(messages)
{
    weft_begin;
    if (weft_chan_new(1024, &f->chan) < 0) weft_return(-1);
    for (f->i = 0; f->i < f->producers; f->i++)
        f->tx[f->i] = weft_spawn(producer, f->chan, f->each);
    for (f->i = 0; f->i < f->consumers; f->i++)
        f->rx[f->i] = weft_spawn(consumer, f->chan);
    for (f->i = 0; f->i < f->producers; f->i++)
        weft_await(f->join, weft_join, f->tx[f->i], &f->sent);
    weft_chan_close(f->chan);
    f->ret = 0;
    for (f->i = 0; f->i < f->consumers; f->i++) {
        weft_await(f->join, weft_join, f->rx[f->i], &f->part);
        f->ret += f->part;
    }
    weft_chan_free(f->chan);
    weft_return(f->ret);
    weft_end;
}

static double run(struct bench *b, unsigned producers, unsigned consumers)
{
    uint64_t each = b->n / producers;
    uint64_t start = root_start(b);
    return root_finish(b, start, weft_spawn(messages, each, producers, consumers), each * producers,
                       producers * bench_sum_below(each));
}

BENCH(mpsc, .n = 2000000, .end = root_end)
{
    return run(b, 1, 1);
}

BENCH(mpsc4, .n = 2000000, .end = root_end)
{
    return run(b, 4, 1);
}

BENCH(mpmc, .n = 2000000, .end = root_end)
{
    return run(b, 4, 4);
}
