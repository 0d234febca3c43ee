/* SPDX-License-Identifier: MIT
 *
 * Nothing is lost, whenever somebody gives up: senders and receivers of both kinds, some of them inside selects, some with
 * permits, some in batches, are cancelled at random moments, or at each one of a small scenario in turn, and every message
 * is accounted for. Each sender counts what it was told was sent, each receiver what it got; at the end both are the same, by number
 * and by sum, and messages of one sender came in order.
 *
 * A lost wake shows as a hang: receivers stay until the channel is closed, and it is closed when all senders have ended.
 */
#include "crew.h"
#include "pool.h"
#include "test.h"

#include <string.h>
#include <weft/weft.h>

enum { SENDERS = 8, RECEIVERS = 6 };

struct letter {
    uint32_t from;
    uint32_t number; /* of those that this sender has sent */
};
typedef WEFT_CHAN(struct letter) letter_chan;

struct world {
    letter_chan *chan;
    uint32_t letters;      /* that each sender tries to send */
    bool places;           /* it knows reserve */
    _Atomic uint64_t sent; /* as the senders were told; relaxed, all: read at the end */
    _Atomic uint64_t sent_sum;
    _Atomic uint64_t received;
    _Atomic uint64_t received_sum;
    _Atomic uint64_t out_of_order;
    _Atomic uint64_t given_up;
    _Atomic uint32_t next[SENDERS]; /* the least number that may come, with a single receiver */
    bool one_receiver;
};
static struct world *w;

static uint64_t worth(struct letter l)
{
    return (uint64_t)l.from * 1000003 + l.number;
}

static void was_sent(struct letter l)
{
    fetch_add_relaxed(&w->sent, 1);
    fetch_add_relaxed(&w->sent_sum, worth(l));
}

static void was_received(struct letter l)
{
    fetch_add_relaxed(&w->received, 1);
    fetch_add_relaxed(&w->received_sum, worth(l));
    if (!w->one_receiver) return;
    if (load_relaxed(&w->next[l.from]) > l.number) fetch_add_relaxed(&w->out_of_order, 1);
    store_relaxed(&w->next[l.from], l.number + 1);
}

/* ---- senders: one letter each round, by one of several ways ---- */

struct sends {
    WEFT_FRAME(int);
    uint32_t from;
    uint64_t random;
    uint32_t i;
    struct letter letter;
    struct weft_send tx;
    struct weft_reserve place;
    struct weft_yield pause;
    struct weft_sleep late;
    struct weft_select sel;
};

static int told(struct letter l, int ret)
{
    if (ret == 0) was_sent(l);
    if (ret == -ECANCELED || ret == -ETIME) fetch_add_relaxed(&w->given_up, 1);
    return ret;
}

/* A frame that is through is scribbled over, so that a late touch shows. */
#define SCRIBBLE(frame) memset(&(frame), 0xa5, sizeof(frame))

static weft_async(sends)
{
    weft_begin;
    for (f->i = 0; f->i < w->letters; f->i++) {
        f->letter = (struct letter){f->from, f->i};
        switch (pool_random(&f->random, w->places ? 4 : 3)) {
        case 0: /* plainly */
            weft_await(f->tx, weft_send, weft_on(w->chan, &f->letter));
            f->ret = told(f->letter, f->tx.ret);
            SCRIBBLE(f->tx);
            break;
        case 1: /* beside something that is over soon */
            weft_await(f->sel, weft_select,
                       .arm = {weft_arm(f->tx, weft_send, w->chan, &f->letter),
                               weft_arm(f->pause, weft_yield)});
            f->ret = told(f->letter, f->tx.ret);
            SCRIBBLE(f->tx);
            break;
        case 2: /* beside a clock */
            weft_await(
                f->sel, weft_select,
                .arm = {weft_arm(f->tx, weft_send, w->chan, &f->letter),
                        weft_arm(f->late, weft_sleep, weft_us(pool_random(&f->random, 50)))});
            f->ret = told(f->letter, f->tx.ret);
            SCRIBBLE(f->tx);
            break;
        default: /* with a permit, which is sometimes given back */
            weft_await(f->place, weft_reserve, w->chan);
            f->ret = f->place.ret;
            if (f->ret == 0 && pool_random(&f->random, 3) == 0) {
                f->ret = weft_permit_drop(w->chan);
            } else if (f->ret == 0) {
                f->ret = told(f->letter, weft_permit_send(w->chan, &f->letter));
            }
            SCRIBBLE(f->place);
            break;
        }
        if (f->ret == -ECANCELED && weft_cx_cancelled(weft__cx)) break;
        if (f->ret < 0 && f->ret != -ECANCELED) weft_return(f->ret);
    }
    weft_return(0);
    weft_end;
}

static int sends_on_fiber(uint32_t from, uint64_t random)
{
    int r = 0;

    for (uint32_t i = 0; i < w->letters; i++) {
        struct letter letter = {from, i};
        if (pool_random(&random, 2)) {
            r = told(letter, weft_send(w->chan, &letter));
        } else {
            WEFT_TIMEOUT(weft_us(pool_random(&random, 50)))
            r = told(letter, weft_send(w->chan, &letter));
        }
        if (r == -ECANCELED) return 0;
        if (r < 0 && r != -ETIME) return r;
    }
    return 0;
}

/* ---- receivers: until the end; those that are cancelled leave early ---- */

struct receives {
    WEFT_FRAME(int);
    uint64_t random;
    struct letter letter;
    struct letter many[5];
    struct weft_recv rx;
    struct weft_recv_many rx_many;
    struct weft_yield pause;
    struct weft_sleep late;
    struct weft_select sel;
};
static weft_async(receives)
{
    weft_begin;
    for (;;) {
        switch (pool_random(&f->random, 4)) {
        case 0:
            weft_await(f->rx, weft_recv, weft_on(w->chan, &f->letter));
            break;
        case 1:
            weft_await(f->sel, weft_select,
                       .arm = {weft_arm(f->rx, weft_recv, w->chan, &f->letter),
                               weft_arm(f->pause, weft_yield)});
            break;
        case 2:
            weft_await(
                f->sel, weft_select,
                .arm = {weft_arm(f->rx, weft_recv, w->chan, &f->letter),
                        weft_arm(f->late, weft_sleep, weft_us(pool_random(&f->random, 50)))});
            break;
        default:
            weft_await(f->rx_many, weft_recv_many, weft_on(w->chan, f->many), 5);
            for (ssize_t i = 0; i < f->rx_many.ret; i++)
                was_received(f->many[i]);
            f->rx.ret = (int)f->rx_many.ret;
            SCRIBBLE(f->rx_many);
            f->letter.from = UINT32_MAX;
            break;
        }
        f->ret = f->rx.ret;
        SCRIBBLE(f->rx);
        if (f->ret > 0 && f->letter.from != UINT32_MAX) was_received(f->letter);
        f->letter.from = 0;
        if (f->ret == 0) break;
        if (f->ret == -ECANCELED) fetch_add_relaxed(&w->given_up, 1);
        if (f->ret == -ECANCELED && weft_cx_cancelled(weft__cx)) break;
        if (f->ret < 0 && f->ret != -ECANCELED) weft_return(f->ret);
    }
    weft_return(0);
    weft_end;
}

static int receives_on_fiber(uint64_t random)
{
    struct letter letter;
    int r = 1;

    while (r > 0 || r == -ETIME) {
        if (pool_random(&random, 2)) {
            r = weft_recv(w->chan, &letter);
        } else {
            WEFT_TIMEOUT(weft_us(pool_random(&random, 50))) r = weft_recv(w->chan, &letter);
        }
        if (r > 0) was_received(letter);
        if (r < 0) fetch_add_relaxed(&w->given_up, 1);
    }
    return r == -ECANCELED ? 0 : r;
}

/* ---- one world ---- */

static weft_task *a_sender(uint32_t i, uint64_t random)
{
    uint64_t seed = pool_seed(random + i);
    return i % 2 ? weft_go(sends_on_fiber, i, seed) : weft_spawn(sends, i, seed);
}

static weft_task *a_receiver(uint32_t i, uint64_t random)
{
    uint64_t seed = pool_seed(random + 100 + i);
    return i % 2 ? weft_go(receives_on_fiber, seed) : weft_spawn(receives, seed);
}

static void expect_joined(weft_task *t)
{
    int r = -1;
    ASSERT_OK(weft_join(t, &r));
    ASSERT_EQ(r, 0);
}

/* What nobody received is still in it. */
static void drain(void)
{
    struct letter letter;
    int r;

    while ((r = weft_try_recv(w->chan, &letter)) > 0)
        was_received(letter);
    ASSERT_EQ(r, 0);
}

static void account(void)
{
    drain();
    ASSERT_EQ(load_relaxed(&w->sent), load_relaxed(&w->received));
    ASSERT_EQ(load_relaxed(&w->sent_sum), load_relaxed(&w->received_sum));
    ASSERT_EQ(load_relaxed(&w->out_of_order), 0);
    weft_chan_free(w->chan);
}

static void world_begin(struct world *world, enum weft_chan_kind kind, size_t capacity)
{
    weft_chan *chan;

    memset(world, 0, sizeof(*world));
    ASSERT_OK(weft_chan_new_sized(kind, sizeof(struct letter), capacity, &chan));
    world->chan = (letter_chan *)(void *)chan;
    world->places = kind == WEFT_CHAN_BOUNDED && capacity > 0;
    w = world;
}

/* Senders and receivers are cancelled at random; one receiver at least stays until the end. */
static void storm(enum weft_chan_kind kind, size_t capacity, uint32_t receivers)
{
    struct world world;
    uint64_t random = pool_seed(capacity + receivers);
    weft_task *tx[SENDERS], *rx[RECEIVERS];

    world_begin(&world, kind, capacity);
    world.letters = (uint32_t)test_scaled(200);
    world.one_receiver = receivers == 1;
    for (uint32_t i = 0; i < receivers; i++)
        rx[i] = a_receiver(i, random);
    for (uint32_t i = 0; i < SENDERS; i++)
        tx[i] = a_sender(i, random);
    for (uint32_t i = 0; i < SENDERS + receivers; i++) {
        for (uint32_t n = pool_random(&random, 2000); n > 0; n--)
            cpu_pause();
        if (pool_random(&random, 2)) weft_cancel(tx[pool_random(&random, SENDERS)]);
        if (receivers > 1 && pool_random(&random, 2))
            weft_cancel(rx[1 + pool_random(&random, receivers - 1)]);
    }
    for (uint32_t i = 0; i < SENDERS; i++)
        expect_joined(tx[i]);
    ASSERT_OK(weft_chan_close(w->chan));
    for (uint32_t i = 0; i < receivers; i++)
        expect_joined(rx[i]);
    account();
}

static void storms(struct crew *crew)
{
    static const size_t capacities[] = {0, 1, 2, 16};

    (void)crew;
    for (size_t i = 0; i < 4; i++) {
        storm(WEFT_CHAN_BOUNDED, capacities[i], RECEIVERS);
        storm(WEFT_CHAN_BOUNDED, capacities[i], 1);
    }
    storm(WEFT_CHAN_UNBOUNDED, 0, RECEIVERS);
    storm(WEFT_CHAN_UNBOUNDED, 0, 1);
}
TEST_WITH(chan_loses_nothing_in_a_storm_of_cancels, .timeout_s = 300)
{
    crew_each(storms);
}

/* ---- every moment of a small scenario ---- */

/* Two senders and two receivers with three letters each at a channel that is nearly always full or empty. One of the four is
 * cancelled after so many yields of the one who cancels, from none up to more than the scenario has. */
struct cancels {
    WEFT_FRAME(int);
    weft_task *victim;
    uint32_t after;
    struct weft_yield pause;
};
static weft_async(cancels)
{
    weft_begin;
    while (f->after-- > 0)
        weft_await(f->pause, weft_yield);
    weft_cancel(f->victim);
    weft_return(0);
    weft_end;
}

static void moment(size_t capacity, uint32_t who, uint32_t after)
{
    struct world world;
    uint64_t random = pool_seed(after);
    weft_task *t[4];

    world_begin(&world, WEFT_CHAN_BOUNDED, capacity);
    world.letters = 3;
    for (uint32_t i = 0; i < 2; i++)
        t[i] = a_receiver(i, random);
    for (uint32_t i = 0; i < 2; i++)
        t[2 + i] = a_sender(i, random);
    weft_ref(t[who]);
    weft_task *canceller = weft_spawn(cancels, t[who], after);
    expect_joined(canceller);
    weft_unref(t[who]);
    expect_joined(t[2]);
    expect_joined(t[3]);
    ASSERT_OK(weft_chan_close(w->chan));
    expect_joined(t[0]);
    expect_joined(t[1]);
    account();
}

static void moments(struct crew *crew)
{
    (void)crew;
    for (size_t capacity = 0; capacity <= 2; capacity++)
        for (uint32_t who = 0; who < 4; who++)
            for (uint32_t after = 0; after < test_scaled(40); after++)
                moment(capacity, who, after);
}
TEST_WITH(chan_loses_nothing_at_any_moment, .timeout_s = 300)
{
    crew_each(moments);
}

/* ---- a fast producer and a slow consumer ---- */

/* However fast one side is, no more than the capacity lies in between. */
static int counts_up(letter_chan *chan, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct letter letter = {0, i};
        int r = weft_send(chan, &letter);
        if (r < 0) return r;
        was_sent(letter);
    }
    return weft_chan_close(chan);
}
static void stays_bounded(struct crew *crew)
{
    struct world world;
    struct letter letter;
    uint32_t count = (uint32_t)test_scaled(5000);
    uint32_t next = 0;

    (void)crew;
    world_begin(&world, WEFT_CHAN_BOUNDED, 8);
    weft_task *tx = weft_go(counts_up, w->chan, count);
    while (weft_recv(w->chan, &letter) > 0) {
        ASSERT_EQ(letter.number, next++);
        ASSERT_LE(load_relaxed(&w->sent), next + 8);
        ASSERT_LE(weft_chan_len(w->chan), 8);
    }
    ASSERT_EQ(next, count);
    expect_joined(tx);
    weft_chan_free(w->chan);
}
TEST(chan_bounds_a_fast_producer)
{
    crew_each(stays_bounded);
}
