/* SPDX-License-Identifier: MIT
 *
 * Lent sides: those of a channel are lent to workers and taken back all the time: by tasks that are stolen, and by a thread that takes them. Every message comes once, those of a sender in
 * their order, on 1, 2 and 4 workers and a current-thread runtime, by tasks of both kinds, of messages of a word and larger ones.
 */
#include "crew.h"
#include "sync/chan.h"
#include "sys/membarrier.h"
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <weft/weft.h>

enum { SENDERS = 4, RECEIVERS = 4, CAPACITY = 256 };

struct msg {
    uint64_t sender;
    uint64_t number;
};

static struct world {
    weft_chan *chan;
    size_t msg_bytes;
    uint64_t each;
    _Atomic bool over;
    uint64_t received[RECEIVERS]; /* by the receiver alone, until it is joined */
} w;

/* A word has both halves. */
static void pack(void *into, struct msg m)
{
    uint64_t word = m.sender << 56 | m.number;
    memcpy(into, w.msg_bytes == 8 ? (void *)&word : (void *)&m, w.msg_bytes);
}

static struct msg unpack(const void *from)
{
    struct msg m;
    uint64_t word;
    if (w.msg_bytes == sizeof(m)) {
        memcpy(&m, from, sizeof(m));
        return m;
    }
    memcpy(&word, from, sizeof(word));
    return (struct msg){.sender = word >> 56, .number = word & ((UINT64_C(1) << 56) - 1)};
}

/* Numbers of one sender rise, for each receiver. */
static void got(uint64_t next[SENDERS], const void *bytes)
{
    struct msg m = unpack(bytes);
    ASSERT_LE(m.sender, SENDERS - 1);
    ASSERT_GE(m.number, next[m.sender]);
    next[m.sender] = m.number + 1;
}

/* ---- fibers ---- */

static int fiber_sends(int sender)
{
    for (uint64_t i = 0; i < w.each; i++) {
        char bytes[sizeof(struct msg)];
        pack(bytes, (struct msg){(uint64_t)sender, i});
        ASSERT_OK(weft_send(w.chan, bytes));
    }
    return 0;
}

static int fiber_receives(int receiver)
{
    uint64_t next[SENDERS] = {0};
    char bytes[sizeof(struct msg)];
    while (weft_recv(w.chan, bytes) > 0) {
        got(next, bytes);
        w.received[receiver]++;
    }
    return 0;
}

/* ---- stackless tasks ---- */

struct sends {
    WEFT_FRAME(int);
    uint64_t sender;
    uint64_t i;
    char bytes[sizeof(struct msg)];
    struct weft_send tx;
};
static weft_async(sends)
{
    weft_begin;
    for (f->i = 0; f->i < w.each; f->i++) {
        pack(f->bytes, (struct msg){f->sender, f->i});
        weft_await(f->tx, weft_send, w.chan, f->bytes);
        ASSERT_OK(f->tx.ret);
    }
    weft_return(0);
    weft_end;
}

struct receives {
    WEFT_FRAME(int);
    uint64_t receiver;
    uint64_t next[SENDERS];
    char bytes[sizeof(struct msg)];
    struct weft_recv rx;
};
static weft_async(receives)
{
    weft_begin;
    for (;;) {
        weft_await(f->rx, weft_recv, w.chan, f->bytes);
        if (f->rx.ret <= 0) break;
        got(f->next, f->bytes);
        w.received[f->receiver]++;
    }
    weft_return(0);
    weft_end;
}

/* ---- all of them ---- */

/* A thread that is no worker: whoever has a side loses it. */
static void *comes_in(void *unused)
{
    struct weft__chan *c = weft__chan_of(w.chan);
    (void)unused;
    while (!load_relaxed(&w.over)) { /* relaxed: it is joined */
        ASSERT_LE(weft_chan_len(w.chan), CAPACITY);
        weft__chan_lock_both(c);
        weft__chan_unlock_send(c);
        weft__chan_unlock_recv(c);
        for (int i = 0; i < 50; i++)
            sched_yield();
    }
    return NULL;
}

static void starts(bool fibers, weft_task *tx[SENDERS], weft_task *rx[RECEIVERS])
{
    for (int i = 0; i < SENDERS; i++)
        tx[i] = fibers ? weft_go(fiber_sends, i) : weft_spawn(sends, (uint64_t)i);
    for (int i = 0; i < RECEIVERS; i++)
        rx[i] = fibers ? weft_go(fiber_receives, i) : weft_spawn(receives, (uint64_t)i);
}

static void round_of(bool fibers, size_t msg_bytes)
{
    weft_task *tx[SENDERS];
    weft_task *rx[RECEIVERS];
    pthread_t thread;
    uint64_t received = 0;
    int r;

    w = (struct world){.msg_bytes = msg_bytes, .each = test_scaled(20000)};
    ASSERT_OK(weft_chan_new_sized(WEFT_CHAN_BOUNDED, msg_bytes, CAPACITY, &w.chan));
    starts(fibers, tx, rx);
    ASSERT_OK(pthread_create(&thread, NULL, comes_in, NULL));
    for (int i = 0; i < SENDERS; i++)
        ASSERT_OK(weft_join(tx[i], &r));
    ASSERT_OK(weft_chan_close(w.chan));
    for (int i = 0; i < RECEIVERS; i++)
        ASSERT_OK(weft_join(rx[i], &r));
    store_relaxed(&w.over, true); /* relaxed: it is joined */
    ASSERT_OK(pthread_join(thread, NULL));
    for (int i = 0; i < RECEIVERS; i++)
        received += w.received[i];
    ASSERT_EQ(received, SENDERS * w.each);
    ASSERT_EQ(weft_chan_len(w.chan), 0);
    weft_chan_free(w.chan);
}

static void lent(struct crew *crew)
{
    (void)crew;
    round_of(false, 8);
    round_of(true, 8);
    round_of(false, sizeof(struct msg));
    round_of(true, sizeof(struct msg));
}

TEST(chan_lent_loses_nothing_and_keeps_order)
{
    crew_each(lent);
}

/* Alone, a worker is lent both sides, and who comes from outside takes them back: so the test above is about something. Who just looks takes nothing. */
static void alone(struct crew *crew)
{
    (void)crew;
    weft_task *tx, *rx;
    int r;

    w = (struct world){.msg_bytes = 8, .each = 4 << WEFT__BIAS_LENT_BITS};
    ASSERT_OK(weft_chan_new_sized(WEFT_CHAN_BOUNDED, 8, CAPACITY, &w.chan));
    tx = weft_spawn(sends, 0);
    rx = weft_spawn(receives, 0);
    ASSERT_OK(weft_join(tx, &r));
    struct weft__chan *c = weft__chan_of(w.chan);
    ASSERT_EQ(c->receivers.lock.bits, WEFT__BIAS_LENT_BITS);
    ASSERT_LE(weft_chan_len(w.chan), CAPACITY);
    ASSERT(!weft_chan_is_closed(w.chan));
    ASSERT(weft__bias_is_given(&c->receivers.lock));
    ASSERT(weft__bias_is_given(&c->senders.lock));
    ASSERT_OK(weft_chan_close(w.chan));
    ASSERT(weft_chan_is_closed(w.chan));
    ASSERT_OK(weft_join(rx, &r));
    ASSERT_EQ(w.received[0], w.each);
    ASSERT_EQ(c->receivers.lock.bits, WEFT__BIAS_LENT_BITS + 1);
    ASSERT_EQ(c->senders.lock.bits, WEFT__BIAS_LENT_BITS + 1);
    weft_chan_free(w.chan);
}

TEST(chan_lent_to_a_worker_that_is_alone)
{
    struct crew crew;

    if (weft__membarrier() < 0) TEST_SKIP("no membarrier here");
    crew_start(&crew, 1);
    alone(&crew);
    crew_stop(&crew);
}

/* ---- begun anew each time ---- */

typedef WEFT_CHAN(uint64_t) numbers;

enum { FEW = 100, MANY_MORE = 20000, URGENT = 7 };

/* So often in a row that the receiving side is lent to the worker. */
static int uses_alone(numbers *chan)
{
    uint64_t v = 1;
    for (int i = 0; i < 2000; i++) {
        ASSERT_OK(weft_send(chan, &v));
        ASSERT_EQ(weft_recv(chan, &v), 1);
    }
    return 0;
}

/* A merge begins its receives anew with each pull, and ends the one that lost: an owner that comes no more is no reason to leave a source out. */
static int pulls_both(numbers *urgent, numbers *usual)
{
    struct weft_from from[2] = {weft_from(urgent), weft_from(usual)};
    weft_source *of[2] = {&from[0].source, &from[1].source};
    uint64_t late[2];
    struct weft_merge both = weft_merge(of, 2, late);
    int urgents = 0;
    for (int i = 0; i < MANY_MORE && urgents < FEW; i++) {
        uint64_t v = 0;
        if (weft_pull(&both.source, &v) != 1) return -EIO;
        urgents += v == URGENT;
    }
    return urgents;
}

static void serves_both(struct crew *crew)
{
    numbers *urgent;
    numbers *usual;
    uint64_t v = URGENT;
    int r = 0;
    (void)crew;
    ASSERT_OK(weft_chan_new(1024, &urgent));
    ASSERT_OK(weft_chan_new(MANY_MORE, &usual));
    ASSERT_OK(weft_join(weft_go(uses_alone, urgent), &r));
    for (int i = 0; i < FEW; i++)
        ASSERT_OK(weft_try_send(urgent, &v));
    v = 1;
    for (int i = 0; i < MANY_MORE; i++)
        ASSERT_OK(weft_try_send(usual, &v));
    ASSERT_EQ(pulls_both(urgent, usual), FEW); /* by a thread, whom nothing is lent to */
    weft_chan_free(urgent);
    weft_chan_free(usual);
}

TEST(chan_lent_to_who_comes_no_more_is_served_in_a_merge)
{
    crew_each(serves_both);
}
