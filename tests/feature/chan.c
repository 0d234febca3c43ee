/* SPDX-License-Identifier: MIT
 *
 * Channels as programs use them, by fibers, stackless tasks and plain threads, on every shape of runtime: what arrives, in which
 * order, and what is given up. What is special to one kind of channel is in chan_kinds.c.
 */
#include "ints.h"

struct triple { /* 24 bytes: no word */
    uint64_t a, b, c;
};
typedef WEFT_CHAN(struct triple) triple_chan;

/* ---- both kinds of both sides ---- */

/* Two senders and two receivers, one of each kind: what arrives is what was sent. */
static void all_arrives_through(int_chan *chan)
{
    weft_task *rx[2] = {weft_go(sums, chan), weft_spawn(sums_too, chan)};
    weft_task *tx[2] = {weft_go(sends, chan, 0, 1000), weft_spawn(sends_too, chan, 1000, 1000)};

    ASSERT_EQ(joined(tx[0]), 1000);
    ASSERT_EQ(joined(tx[1]), 1000);
    ASSERT_OK(weft_chan_close(chan));
    ASSERT_EQ(joined(rx[0]) + joined(rx[1]), 1999 * 1000);
    ASSERT_EQ(weft_chan_len(chan), 0);
    weft_chan_free(chan);
}

static void arrives(struct crew *crew)
{
    int_chan *unbounded;

    (void)crew;
    all_arrives_through(chan_of(1));
    all_arrives_through(chan_of(3));
    all_arrives_through(chan_of(64));
    all_arrives_through(chan_of(0));
    ASSERT_OK(weft_chan_unbounded(&unbounded));
    all_arrives_through(unbounded);
}
TEST(chan_all_arrives)
{
    crew_each(arrives);
}

/* A plain thread on each side, without a runtime. */
static void *thread_sends(void *chan)
{
    ASSERT_EQ(sends(chan, 1, 2000), 2000);
    return NULL;
}
TEST(chan_between_plain_threads)
{
    const size_t capacities[] = {0, 1, 7};

    for (size_t i = 0; i < 3; i++) {
        int_chan *chan = chan_of(capacities[i]);
        pthread_t sender;
        int value;
        ASSERT_OK(pthread_create(&sender, NULL, thread_sends, chan));
        for (int n = 0; n < 2000; n++) {
            ASSERT_EQ(weft_recv(chan, &value), 1);
            ASSERT_EQ(value, n + 1); /* in order */
        }
        ASSERT_OK(pthread_join(sender, NULL));
        weft_chan_free(chan);
    }
}

/* A thread outside sends to tasks. */
static void from_outside(struct crew *crew)
{
    int_chan *chan = chan_of(2);
    weft_task *rx = weft_spawn(sums_too, chan);

    (void)crew;
    ASSERT_EQ(sends(chan, 0, 500), 500);
    ASSERT_OK(weft_chan_close(chan));
    ASSERT_EQ(joined(rx), 499 * 250);
    weft_chan_free(chan);
}
TEST(chan_from_a_thread_to_a_task)
{
    crew_each(from_outside);
}

/* ---- order ---- */

/* Messages of one sender come in order, whoever sends beside it; each is larger than a word. */
static int sends_triples(triple_chan *chan, uint64_t who)
{
    for (uint64_t i = 0; i < 500; i++) {
        struct triple t = {who, i, who ^ i};
        int r = weft_send(chan, &t);
        if (r < 0) return r;
    }
    return 0;
}
static void in_order(struct crew *crew)
{
    triple_chan *chan;
    struct triple t;
    uint64_t next[3] = {0};
    weft_task *tx[3];

    (void)crew;
    ASSERT_OK(weft_chan_new(5, &chan));
    for (uint64_t i = 0; i < 3; i++)
        tx[i] = weft_go(sends_triples, chan, i);
    for (int n = 0; n < 1500; n++) {
        ASSERT_EQ(weft_recv(chan, &t), 1);
        ASSERT_EQ(t.b, next[t.a]++);
        ASSERT_EQ(t.c, t.a ^ t.b);
    }
    for (int i = 0; i < 3; i++)
        ASSERT_EQ(joined(tx[i]), 0);
    weft_chan_free(chan);
}
TEST(chan_keeps_the_order_of_a_sender)
{
    crew_each(in_order);
}

/* Senders that wait are served in the order in which they came; who comes later does not pass, not even by a try. */
static int sends_one(int_chan *chan, int value)
{
    return weft_send(chan, &value);
}
static void first_come(struct crew *crew)
{
    weft_task *tx[4];
    int value;

    for (size_t capacity = 0; capacity < 3; capacity++) {
        int_chan *chan = chan_of(capacity);
        for (int i = 0; i < (int)capacity; i++)
            ASSERT_OK(weft_try_send(chan, &(int){i}));
        for (int i = 0; i < 4; i++) {
            tx[i] = weft_go(sends_one, chan, (int)capacity + i);
            ASSERT_OK(weft_sleep(weft_ms(1))); /* the clock stands: it moves when all wait */
        }
        ASSERT_EQ(weft_try_send(chan, &(int){99}), -EAGAIN);
        for (int i = 0; i < (int)capacity + 4; i++) {
            ASSERT_EQ(weft_recv(chan, &value), 1);
            ASSERT_EQ(value, i);
            ASSERT_OK(
                weft_sleep(weft_ms(1))); /* who was given the place has put its message there */
        }
        for (int i = 0; i < 4; i++)
            ASSERT_EQ(joined(tx[i]), 0);
        weft_chan_free(chan);
    }
    (void)crew;
}
TEST(chan_senders_first_come_first_served)
{
    still_task_each(first_come);
}

/* ---- at once ---- */

TEST(chan_try)
{
    int_chan *chan = chan_of(2);
    int value = 0;

    ASSERT_EQ(weft_try_recv(chan, &value), -EAGAIN);
    ASSERT_OK(weft_try_send(chan, &(int){1}));
    ASSERT_OK(weft_try_send(chan, &(int){2}));
    ASSERT_EQ(weft_try_send(chan, &(int){3}), -EAGAIN);
    ASSERT_EQ(weft_chan_len(chan), 2);
    ASSERT_EQ(weft_try_recv(chan, &value), 1);
    ASSERT_EQ(value, 1);
    ASSERT_OK(weft_try_send(chan, &(int){3}));
    for (int i = 2; i <= 3; i++) {
        ASSERT_EQ(weft_try_recv(chan, &value), 1);
        ASSERT_EQ(value, i);
    }
    ASSERT_EQ(weft_try_recv(chan, &value), -EAGAIN);
    weft_chan_free(chan);
}

/* ---- the end ---- */

TEST(chan_closed_is_drained_then_at_its_end)
{
    int_chan *chan = chan_of(4);
    int value;

    ASSERT(!weft_chan_is_closed(chan));
    ASSERT_OK(weft_send(chan, &(int){1}));
    ASSERT_OK(weft_send(chan, &(int){2}));
    ASSERT_OK(weft_chan_close(chan));
    ASSERT(weft_chan_is_closed(chan));
    ASSERT_EQ(weft_chan_close(chan), -EALREADY);
    ASSERT_EQ(weft_send(chan, &(int){3}), -EPIPE);
    ASSERT_EQ(weft_try_send(chan, &(int){3}), -EPIPE);
    ASSERT_EQ(weft_reserve(chan), -EPIPE);
    ASSERT_EQ(weft_recv(chan, &value), 1);
    ASSERT_EQ(value, 1);
    ASSERT_EQ(weft_try_recv(chan, &value), 1);
    ASSERT_EQ(value, 2);
    for (int i = 0; i < 2; i++) {
        ASSERT_EQ(weft_recv(chan, &value), 0);
        ASSERT_EQ(weft_try_recv(chan, &value), 0);
    }
    weft_chan_free(chan);
}

/* A close answers everybody who waits: more of them than one batch of wakes. */
enum { CROWD = 150 };
static void close_wakes(struct crew *crew)
{
    int_chan *empty = chan_of(1), *full = chan_of(1);
    weft_task *rx[CROWD], *tx[CROWD];

    (void)crew;
    ASSERT_OK(weft_try_send(full, &(int){0}));
    for (int i = 0; i < CROWD; i++) {
        rx[i] = i % 2 ? weft_go(sums, empty) : weft_spawn(sums_too, empty);
        tx[i] = i % 2 ? weft_go(sends, full, 1, 1) : weft_spawn(sends_too, full, 1, 1);
    }
    ASSERT_OK(weft_sleep(weft_ms(1)));
    ASSERT_OK(weft_chan_close(empty));
    ASSERT_OK(weft_chan_close(full));
    for (int i = 0; i < CROWD; i++) {
        ASSERT_EQ(joined(rx[i]), 0);
        ASSERT_EQ(joined(tx[i]), -EPIPE);
    }
    ASSERT_EQ(weft_chan_len(full), 1);
    weft_chan_free(empty);
    weft_chan_free(full); /* with a message in it */
}
TEST(chan_close_wakes_all)
{
    still_task_each(close_wakes);
}

/* ---- cancelled, timed out ---- */

static void given_up(struct crew *crew)
{
    int_chan *chan = chan_of(1), *meet = chan_of(0);
    int value;

    (void)crew;
    weft_task *rx = weft_go(sums, chan), *rx2 = weft_spawn(sums_too, meet);
    ASSERT_OK(weft_sleep(weft_ms(1)));
    weft_cancel(rx);
    weft_cancel(rx2);
    ASSERT_EQ(joined(rx), -ECANCELED);
    ASSERT_EQ(joined(rx2), -ECANCELED);

    ASSERT_OK(weft_try_send(chan, &(int){1}));
    weft_task *tx = weft_go(sends, chan, 2, 1), *tx2 = weft_spawn(sends_too, meet, 2, 1);
    ASSERT_OK(weft_sleep(weft_ms(1)));
    weft_cancel(tx);
    weft_cancel(tx2);
    ASSERT_EQ(joined(tx), -ECANCELED);
    ASSERT_EQ(joined(tx2), -ECANCELED);
    ASSERT_EQ(weft_recv(chan, &value), 1);
    ASSERT_EQ(value, 1);
    ASSERT_EQ(weft_try_recv(chan, &value), -EAGAIN);
    ASSERT_EQ(weft_try_recv(meet, &value), -EAGAIN);

    WEFT_TIMEOUT(weft_ms(5)) ASSERT_EQ(weft_recv(chan, &value), -ETIME);
    WEFT_TIMEOUT(weft_ms(5)) ASSERT_EQ(weft_send(meet, &value), -ETIME);
    weft_chan_free(chan);
    weft_chan_free(meet);
}
TEST(chan_given_up_takes_nothing)
{
    still_task_each(given_up);
}

/* A sender that was given a turn and is cancelled before it runs: the place goes to the next one. */
struct one_then_cancels {
    WEFT_FRAME(int);
    int_chan *chan;
    weft_task *first;
    int value;
    struct weft_recv rx;
};
static weft_async(one_then_cancels)
{
    weft_begin;
    weft_await(f->rx, weft_recv, f->chan, &f->value); /* room: the first sender has its turn, */
    weft_cancel(f->first);                            /* and has not come yet, on one worker */
    weft_return(f->rx.ret);
    weft_end;
}
static void turn_goes_on(struct crew *crew)
{
    int_chan *chan = chan_of(1);
    int value;

    (void)crew;
    ASSERT_OK(weft_try_send(chan, &(int){0}));
    weft_task *one = weft_go(sends, chan, 1, 1);
    ASSERT_OK(weft_sleep(weft_ms(1)));
    weft_task *two = weft_go(sends, chan, 2, 1);
    ASSERT_OK(weft_sleep(weft_ms(1)));
    ASSERT_EQ(joined(weft_spawn(one_then_cancels, chan, one)), 1);
    int r = joined(one);
    if (r == 1) {
        ASSERT_EQ(weft_recv(chan, &value), 1);
        ASSERT_EQ(value, 1);
    } else {
        ASSERT_EQ(r, -ECANCELED);
    }
    ASSERT_EQ(weft_recv(chan, &value), 1);
    ASSERT_EQ(value, 2);
    ASSERT_EQ(joined(two), 1);
    weft_chan_free(chan);
}
TEST(chan_cancelled_turn_goes_to_the_next_sender)
{
    still_task_each(turn_goes_on);
}

/* ---- select ---- */

static int selects(int_chan *a, int_chan *b, int_chan *full)
{
    int x = 0, y = 0, z = 7, got[2] = {0};
    struct weft_recv ra, rb;
    struct weft_send tx;

    while (got[0] + got[1] < 200) {
        int which = weft_select(weft_arm(ra, weft_recv, a, &x), weft_arm(rb, weft_recv, b, &y),
                                weft_arm(tx, weft_send, full, &z));
        if (which < 0) return which;
        ASSERT_EQ(tx.ret, -ECANCELED);
        ASSERT_EQ(which == 0 ? rb.ret : ra.ret, -ECANCELED); /* the loser took nothing */
        ASSERT_EQ(which == 0 ? ra.ret : rb.ret, 1);
        ASSERT_EQ(which == 0 ? x : y, got[which]++);
    }
    return weft_select(weft_arm(ra, weft_recv, a, &x), weft_otherwise);
}
static void select_loses_nothing(struct crew *crew)
{
    int_chan *a = chan_of(3), *b = chan_of(0), *full = chan_of(1);

    (void)crew;
    ASSERT_OK(weft_try_send(full, &(int){0}));
    weft_task *rx = weft_go(selects, a, b, full);
    weft_task *ta = weft_go(sends, a, 0, 100), *tb = weft_spawn(sends_too, b, 0, 100);
    ASSERT_EQ(joined(ta), 100);
    ASSERT_EQ(joined(tb), 100);
    ASSERT_EQ(joined(rx), 1);
    ASSERT_EQ(weft_chan_len(full), 1);
    weft_chan_free(a);
    weft_chan_free(b);
    weft_chan_free(full);
}
TEST(chan_select_loses_nothing)
{
    crew_each(select_loses_nothing);
}

/* Sender and receiver of a rendezvous meet, each inside a select. */
static int offers(int_chan *meet, int value)
{
    struct weft_send tx;
    struct weft_sleep late;
    int r = weft_select(weft_arm(tx, weft_send, meet, &value),
                        weft_arm(late, weft_sleep, weft_secs(99)));
    return r == 0 ? tx.ret : -1;
}
static void meets_in_selects(struct crew *crew)
{
    int_chan *meet = chan_of(0);
    struct weft_recv rx;
    struct weft_sleep late;
    int value;

    (void)crew;
    for (int i = 0; i < 50; i++) {
        weft_task *tx = weft_go(offers, meet, i);
        if (i % 2) ASSERT_OK(weft_sleep(weft_ms(1)));
        int which = weft_select(weft_arm(rx, weft_recv, meet, &value),
                                weft_arm(late, weft_sleep, weft_secs(99)));
        ASSERT_EQ(which, 0);
        ASSERT_EQ(rx.ret, 1);
        ASSERT_EQ(value, i);
        ASSERT_EQ(joined(tx), 0);
    }
    weft_chan_free(meet);
}
TEST(chan_rendezvous_meets_in_selects)
{
    still_task_each(meets_in_selects);
}

/* ---- misuse ---- */

TEST(chan_bad_arguments)
{
    weft_chan *chan = NULL;
    int value = 0;

    ASSERT_EQ(weft_chan_new_sized(WEFT_CHAN_BOUNDED, 0, 1, &chan), -EINVAL);
    ASSERT_EQ(weft_chan_new_sized(WEFT_CHAN_BOUNDED, 4, 1, NULL), -EINVAL);
    ASSERT_EQ(weft_chan_new_sized(WEFT_CHAN_BOUNDED, (1 << 20) + 1, 1, &chan), -EINVAL);
    ASSERT_EQ(weft_chan_new_sized(WEFT_CHAN_BOUNDED, 4, SIZE_MAX, &chan), -EINVAL);
    ASSERT_EQ(weft_send(chan, &value), -EINVAL);
    ASSERT_EQ(weft_recv(chan, &value), -EINVAL);
    ASSERT_EQ(weft_try_send(chan, &value), -EINVAL);
    ASSERT_EQ(weft_try_recv(chan, &value), -EINVAL);
    ASSERT_EQ(weft_reserve(chan), -EINVAL);
    ASSERT_EQ(weft_permit_send(chan, &value), -EINVAL);
    ASSERT_EQ(weft_permit_drop(chan), -EINVAL);
    ASSERT_EQ(weft_recv_many(chan, &value, 1), -EINVAL);
    ASSERT_EQ(weft_chan_close(chan), -EINVAL);
    weft_chan_free(chan);
    for (int kind = WEFT_CHAN_UNBOUNDED; kind <= WEFT_CHAN_ONESHOT; kind++) { /* it is not looked at */
        ASSERT_OK(weft_chan_new_sized((enum weft_chan_kind)kind, sizeof(int), SIZE_MAX, &chan));
        ASSERT_OK(weft_try_send(chan, &value));
        weft_chan_free(chan);
    }
    ASSERT_OK(weft_chan_new_sized(WEFT_CHAN_BOUNDED, sizeof(int), 1, &chan));
    ASSERT_EQ(weft_send(chan, NULL), -EINVAL);
    ASSERT_EQ(weft_recv(chan, NULL), -EINVAL);
    ASSERT_OK(weft_send(chan, &(int){3}));
    ASSERT_EQ(weft_recv(chan, &value), 1);
    ASSERT_EQ(value, 3);
    weft_chan_free(chan);
}

/* A task that sends without end, to a channel that always has room, lets others run. */
static _Atomic bool stop_sending;
static int sends_for_ever(int_chan *chan)
{
    int n = 0;
    while (!load_relaxed(&stop_sending)) { /* relaxed: a flag */
        int value, r = weft_send(chan, &n);
        if (r == 0) r = weft_recv(chan, &value);
        if (r < 0) return r;
    }
    return 0;
}
static void stops_it(void)
{
    store_relaxed(&stop_sending, true);
}
static void costs_budget(struct crew *crew)
{
    int_chan *chan = chan_of(2);

    (void)crew;
    store_relaxed(&stop_sending, false);
    weft_task *t = weft_go(sends_for_ever, chan);
    ASSERT_OK(weft_detach(weft_go(stops_it)));
    ASSERT_EQ(joined(t), 0);
    weft_chan_free(chan);
}
TEST(chan_operations_cost_budget)
{
    crew_each(costs_budget);
}
