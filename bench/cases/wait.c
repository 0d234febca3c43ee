/* SPDX-License-Identifier: MIT
 *
 * Cases about tasks that wait for one another.
 */
#include "leaves.h"
#include "root.h"

#include <stdlib.h>

/* ---- ping_pong: N pairs, a value there and back, a oneshot each way ----------------------------- */

struct pong {
    WEFT_FRAME(int);
    struct oneshot *there; /* both lie in the ping's frame, which ends once `back` has come */
    struct oneshot *back;
    struct weft_notify_wait wait;
};

static weft_async(pong)
{
    weft_begin;
    weft_await(f->wait, weft_notify_wait, &f->there->came);
    oneshot_send(f->back, f->there->value);
    weft_end;
}

struct ping {
    WEFT_FRAME(int);
    int64_t value;
    _Atomic int64_t *sum;
    struct latch *latch;
    struct oneshot there;
    struct oneshot back;
    struct weft_notify_wait wait;
};

static weft_async(ping)
{
    weft_begin;
    oneshot_init(&f->there);
    oneshot_init(&f->back);
    (void)weft_detach(weft_spawn(pong, &f->there, &f->back));
    oneshot_send(&f->there, f->value);
    weft_await(f->wait, weft_notify_wait, &f->back.came);
    /* relaxed: the latch publishes it */
    atomic_fetch_add_explicit(f->sum, f->back.value, memory_order_relaxed);
    latch_count(f->latch);
    weft_end;
}

/* ---- ping_pong_chan: the same by channels that carry one message, made for each pair ------------- */

typedef WEFT_CHAN(int64_t) reply;

union reply_move {
    struct weft_send tx;
    struct weft_recv rx;
};

/* Each frees the one that it receives from. */
struct pong_chan {
    WEFT_FRAME(int);
    reply *there;
    reply *back;
    int64_t value;
    union reply_move move;
};

static weft_async(pong_chan)
{
    weft_begin;
    weft_await(f->move.rx, weft_recv, weft_on(f->there, &f->value));
    weft_chan_free(f->there);
    weft_await(f->move.tx, weft_send, weft_on(f->back, &f->value));
    weft_end;
}

struct ping_chan {
    WEFT_FRAME(int);
    int64_t value;
    _Atomic int64_t *sum;
    struct latch *latch;
    reply *there;
    reply *back;
    union reply_move move;
};

static weft_async(ping_chan)
{
    weft_begin;
    if (weft_chan_oneshot(&f->there) < 0 || weft_chan_oneshot(&f->back) < 0) abort();
    (void)weft_detach(weft_spawn(pong_chan, f->there, f->back));
    weft_await(f->move.tx, weft_send, weft_on(f->there, &f->value));
    weft_await(f->move.rx, weft_recv, weft_on(f->back, &f->value));
    weft_chan_free(f->back);
    /* relaxed: the latch publishes it */
    atomic_fetch_add_explicit(f->sum, f->value, memory_order_relaxed);
    latch_count(f->latch);
    weft_end;
}

/* ---- both --------------------------------------------------------------------------------------- */

/* Of the cases that count on all workers: on a line of its own, so that whoever counts does not take away what another one reads. */
struct tally {
    _Alignas(64) struct latch latch;
    _Atomic int64_t sum;
};

static struct tally tally;

struct pairs {
    WEFT_FRAME(int64_t);
    uint64_t n;
    bool by_chan;
    struct weft_notify_wait wait;
};

static weft_async(pairs)
{
    weft_begin;
    latch_init(&tally.latch, f->n);
    atomic_store_explicit(&tally.sum, 0, memory_order_relaxed); /* relaxed: not shared yet */
    for (uint64_t i = 0; i < f->n; i++)
        (void)weft_detach(f->by_chan ? weft_spawn(ping_chan, (int64_t)i, &tally.sum, &tally.latch)
                                     : weft_spawn(ping, (int64_t)i, &tally.sum, &tally.latch));
    weft_await(f->wait, weft_notify_wait, &tally.latch.all);
    weft_return(atomic_load_explicit(&tally.sum, memory_order_relaxed)); /* relaxed: see above */
    weft_end;
}

BENCH(ping_pong, .n = 100000, .end = root_end)
{
    uint64_t start = root_start(b);
    return root_finish(b, start, weft_spawn(pairs, b->n, false), b->n, bench_sum_below(b->n));
}

BENCH(ping_pong_chan, .n = 100000, .end = root_end)
{
    uint64_t start = root_start(b);
    return root_finish(b, start, weft_spawn(pairs, b->n, true), b->n, bench_sum_below(b->n));
}

/* ---- switch: two tasks hand a token over, N rounds; nanoseconds per hand-over ------------------- */

/* It serves: rings, then waits for the answer. */
struct server {
    WEFT_FRAME(int64_t);
    uint64_t n;
    weft_notify *there;
    weft_notify *back;
    struct weft_notify_wait wait;
};

static weft_async(server)
{
    weft_begin;
    for (f->ret = 0; f->ret < (int64_t)f->n; f->ret++) {
        weft_notify_one(f->there);
        weft_await(f->wait, weft_notify_wait, f->back);
    }
    weft_end;
}

/* It returns: waits, then rings. */
struct returner {
    WEFT_FRAME(int64_t);
    uint64_t n;
    weft_notify *there;
    weft_notify *back;
    struct weft_notify_wait wait;
};

static weft_async(returner)
{
    weft_begin;
    for (f->ret = 0; f->ret < (int64_t)f->n; f->ret++) {
        weft_await(f->wait, weft_notify_wait, f->there);
        weft_notify_one(f->back);
    }
    weft_end;
}

struct game {
    WEFT_FRAME(int64_t);
    uint64_t n;
    weft_notify there;
    weft_notify back;
    weft_task *first;
    weft_task *second;
    int64_t part;
    struct weft_join join;
};

static weft_async(game)
{
    weft_begin;
    weft_notify_init(&f->there);
    weft_notify_init(&f->back);
    f->second = weft_spawn(returner, f->n, &f->there, &f->back);
    f->first = weft_spawn(server, f->n, &f->there, &f->back);
    weft_await(f->join, weft_join, f->first, &f->part);
    f->ret = f->part;
    weft_await(f->join, weft_join, f->second, &f->part);
    f->ret += f->part;
    weft_end;
}

BENCH(switch, .n = 500000, .end = root_end)
{
    uint64_t start = root_start(b);
    return root_finish(b, start, weft_spawn(game, b->n), 2 * b->n, 2 * b->n);
}
