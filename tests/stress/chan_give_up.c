/* SPDX-License-Identifier: MIT
 *
 * Every wait of chan.h and cast.h is cancelled at every moment of its life (give_up.h), and every message, place and cursor is accounted
 * for: on 1, 2 and 4 workers and a current-thread runtime, by tasks of both kinds.
 */
#include <weft/weft.h>

union frames {
    struct weft_send send;
    struct weft_recv recv;
    struct weft_recv_many many;
    struct weft_reserve reserve;
    struct weft_reserve_many reserve_many;
    struct weft_chan_closed closed;
    struct weft_broadcast_recv hear;
    struct weft_watch_changed see;
};

#include "give_up.h"

typedef WEFT_CHAN(uint64_t) word_chan;
typedef WEFT_BROADCAST(uint64_t) word_cast;

static struct world {
    word_chan *chan;
    word_cast *cast;
    struct wire {
        word_chan *chan;          /* a oneshot, for one receiver after the other, until it comes */
        word_chan *_Atomic to_do; /* its sender's side, which is used once  [wire] */
        _Atomic bool taken;       /* by a receiver                          [wire-taken] */
    } wire[LIVE];
    _Atomic uint64_t given; /* sums of what was sent, and of what was received; relaxed: counts */
    _Atomic uint64_t taken;
} w;

static void world_init(void)
{
    w = (struct world){.chan = NULL};
}

/* ---- channels: sums of what went in and of what came out ---- */

static void chan_make(void)
{
    ASSERT_OK(weft_chan_new(2, &w.chan));
}
static void meet_make(void)
{
    ASSERT_OK(weft_chan_new(0, &w.chan));
}
static void unbounded_make(void)
{
    ASSERT_OK(weft_chan_unbounded(&w.chan));
}
static void
feed_receive(uint64_t *random) /* NOLINT(readability-non-const-parameter): one of a table */
{
    uint64_t value;
    (void)random;
    if (weft_try_recv(w.chan, &value) == 1) count(&w.taken, value);
}
/* Never a second one beside one that lies there: if nobody is told of it, it lies there for ever. */
static void feed_send(uint64_t *random)
{
    uint64_t value = 1 + pool_random(random, 1000);
    if (weft_chan_len(w.chan) > 0) return;
    if (weft_try_send(w.chan, &value) == 0) count(&w.given, value);
}
static void feed_sends(uint64_t *random)
{
    for (int i = 0; i < 2; i++) {
        uint64_t value = 1 + pool_random(random, 1000);
        if (weft_try_send(w.chan, &value) == 0) count(&w.given, value);
    }
}
static void chan_even(void)
{
    uint64_t value;
    while (weft_try_recv(w.chan, &value) == 1)
        count(&w.taken, value);
    ASSERT_EQ(read_count(&w.given), read_count(&w.taken));
    ASSERT_EQ(weft_chan_len(w.chan), 0);
    weft_chan_free(w.chan);
}
static void send_begin(struct attempt *a)
{
    a->value = 1 + pool_random(&a->random, 1000);
    a->f.send = (struct weft_send){.chan = w.chan, .msg = &a->value};
}
static weft_poll send_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(send, weft_send);
}
static void send_got(struct attempt *a)
{
    count(&w.given, a->value);
}
static void recv_begin(struct attempt *a)
{
    a->f.recv = (struct weft_recv){.chan = w.chan, .into = &a->value};
}
static weft_poll recv_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(recv, weft_recv);
}
static void recv_got(struct attempt *a)
{
    ASSERT_EQ(a->ret, 1);
    count(&w.taken, a->value);
}
static void many_begin(struct attempt *a)
{
    a->f.many = (struct weft_recv_many){.chan = w.chan, .into = a->values, .max = 3};
}
static weft_poll many_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(many, weft_recv_many);
}
static void many_got(struct attempt *a)
{
    for (int i = 0; i < a->ret; i++)
        count(&w.taken, a->values[i]);
}
static void reserve_begin(struct attempt *a)
{
    a->value = 1 + pool_random(&a->random, 1000);
    a->f.reserve = (struct weft_reserve){.chan = w.chan};
}
static weft_poll reserve_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(reserve, weft_reserve);
}
static void permit_used(struct attempt *a)
{
    if (pool_random(&a->random, 2)) {
        ASSERT_OK(weft_permit_send(w.chan, &a->value));
        count(&w.given, a->value);
    } else {
        ASSERT_OK(weft_permit_drop(w.chan));
    }
}
static void reserve_many_begin(struct attempt *a)
{
    a->value = 1 + pool_random(&a->random, 1000);
    a->f.reserve_many = (struct weft_reserve_many){.chan = w.chan, .count = 2};
}
static weft_poll reserve_many_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(reserve_many, weft_reserve_many);
}
static void permits_used(struct attempt *a)
{
    permit_used(a);
    permit_used(a);
}
static void permits_even(void)
{
    ASSERT_EQ(weft_permit_drop(w.chan), -EINVAL); /* none is left */
    chan_even();
}
static void closed_begin(struct attempt *a)
{
    a->f.closed = (struct weft_chan_closed){.chan = w.chan};
}
static weft_poll closed_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(closed, weft_chan_closed);
}
static void closed_last(void)
{
    ASSERT_OK(weft_chan_close(w.chan));
}

/* ---- oneshots: who gives up leaves the message, sent or not, to the next ---- */

static void wire_new(struct wire *wire)
{
    ASSERT_OK(weft_chan_oneshot(&wire->chan));
    store_release(&wire->to_do, wire->chan); /* [wire] with feed_oneshot: it is made */
}
static void wires_make(void)
{
    for (int i = 0; i < LIVE; i++)
        wire_new(&w.wire[i]);
}
static void feed_oneshot(uint64_t *random)
{
    uint64_t value = 1 + pool_random(random, 1000);
    struct wire *wire = &w.wire[pool_random(random, LIVE)];
    word_chan *chan = load_acquire(&wire->to_do); /* [wire] with wire_new */
    if (!chan) return;
    store_relaxed(&wire->to_do, NULL); /* relaxed: who receives stores the next one behind this */
    count(&w.given, value);
    ASSERT_OK(weft_send(chan, &value)); /* from here on it is the receiver's */
}
static void oneshot_begin(struct attempt *a)
{
    uint32_t i = pool_random(&a->random, LIVE);
    bool free = false;
    while (!cas_acquire(&w.wire[i].taken, &free, true)) { /* [wire-taken] with who had it before */
        free = false;
        i = (i + 1) % LIVE;
    }
    a->made = &w.wire[i];
    a->f.recv = (struct weft_recv){.chan = w.wire[i].chan, .into = &a->value};
}
static weft_poll oneshot_poll(struct attempt *a, weft_cx *cx)
{
    struct wire *wire = a->made;
    if (weft_recv_poll(&a->f.recv, cx) == WEFT_PENDING) return WEFT_PENDING;
    a->ret = a->f.recv.ret;
    if (a->ret == 1) {
        count(&w.taken, a->value);
        weft_chan_free(wire->chan);
        wire_new(wire);
    }
    store_release(&wire->taken, false); /* [wire-taken] with oneshot_begin: its channel */
    return WEFT_READY;
}
static void oneshot_got(struct attempt *a)
{
    ASSERT_EQ(a->ret, 1); /* nobody closes: there is no end without a message */
}
static void wires_even(void)
{
    for (int i = 0; i < LIVE; i++) {
        uint64_t value;
        if (weft_try_recv(w.wire[i].chan, &value) == 1) count(&w.taken, value);
        weft_chan_free(w.wire[i].chan);
    }
    ASSERT_EQ(read_count(&w.given), read_count(&w.taken));
}

/* ---- broadcast, watch: one that gave up has its cursor where it was ---- */

static void cast_make(void)
{
    ASSERT_OK(weft_broadcast_new(2, &w.cast));
}
static void watch_make(void)
{
    ASSERT_OK(weft_watch_new(&(uint64_t){0}, &w.cast));
}
static void hear_begin(struct attempt *a)
{
    a->at = a->was = weft_broadcast_now(w.cast);
    a->f.hear = (struct weft_broadcast_recv){.cast = w.cast, .at = &a->at, .into = &a->value};
}
static weft_poll hear_poll(struct attempt *a, weft_cx *cx)
{
    if (weft_broadcast_recv_poll(&a->f.hear, cx) == WEFT_PENDING) return WEFT_PENDING;
    a->ret = a->f.hear.ret == -EOVERFLOW ? 2 : a->f.hear.ret;
    if (a->ret == -ECANCELED) ASSERT_EQ(a->at.next, a->was.next);
    return WEFT_READY;
}
static void hear_got(struct attempt *a)
{
    if (a->ret == 1) ASSERT_EQ(a->value, a->was.next + 1); /* the first one behind the cursor */
    if (a->ret == 2) ASSERT_EQ(a->at.next - a->at.missed, a->was.next);
}
static void
cast_feed(uint64_t *random) /* NOLINT(readability-non-const-parameter): one of a table */
{
    (void)random;
    ASSERT_OK(weft_broadcast_send(w.cast, &(uint64_t){++accounts.fed}));
}
static void see_begin(struct attempt *a)
{
    a->at = a->was = weft_watch_now(w.cast);
    a->f.see = (struct weft_watch_changed){.watch = w.cast, .seen = &a->at, .into = &a->value};
}
static weft_poll see_poll(struct attempt *a, weft_cx *cx)
{
    if (weft_watch_changed_poll(&a->f.see, cx) == WEFT_PENDING) return WEFT_PENDING;
    a->ret = a->f.see.ret;
    if (a->ret == -ECANCELED) ASSERT_EQ(a->at.next, a->was.next);
    return WEFT_READY;
}
static void see_got(struct attempt *a)
{
    ASSERT_EQ(a->value, a->at.next - 1);
    ASSERT_EQ(a->at.next - a->at.missed, a->was.next + 1);
}
static void cast_even(void)
{
    weft_broadcast_free(w.cast);
}

/* ---- all of them ---- */

static const struct shape shapes[] = {
    {"send", chan_make, send_begin, send_poll, send_got, feed_receive, NULL, chan_even},
    {"send to meet", meet_make, send_begin, send_poll, send_got, feed_receive, NULL, chan_even},
    {"receive", chan_make, recv_begin, recv_poll, recv_got, feed_send, NULL, chan_even},
    {"receive to meet", meet_make, recv_begin, recv_poll, recv_got, feed_send, NULL, chan_even},
    {"receive unbounded", unbounded_make, recv_begin, recv_poll, recv_got, feed_send, NULL,
     chan_even},
    {"receive oneshot", wires_make, oneshot_begin, oneshot_poll, oneshot_got, feed_oneshot, NULL,
     wires_even},
    {"receive many", chan_make, many_begin, many_poll, many_got, feed_sends, NULL, chan_even},
    {"reserve", chan_make, reserve_begin, reserve_poll, permit_used, feed_receive, NULL,
     permits_even},
    {"reserve many", chan_make, reserve_many_begin, reserve_many_poll, permits_used, feed_receive,
     NULL, permits_even},
    {"end", chan_make, closed_begin, closed_poll, nothing, nothing_fed, closed_last, chan_even},
    {"broadcast", cast_make, hear_begin, hear_poll, hear_got, cast_feed, NULL, cast_even},
    {"watch", watch_make, see_begin, see_poll, see_got, cast_feed, NULL, cast_even},
};

static void all_shapes(struct crew *crew)
{
    give_up_all(shapes, sizeof(shapes) / sizeof(shapes[0]), crew);
}

TEST_WITH(chan_give_up_at_every_moment, .timeout_s = 300)
{
    crew_each(all_shapes);
}
