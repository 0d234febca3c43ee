/* SPDX-License-Identifier: MIT
 *
 * chan_actors - a channel and tasks that use it, for model tests: they send, receive, wait for the end or reserve places, one
 * operation after the other, and everything that was sent and received is counted.
 *
 *     begin(WEFT_CHAN_BOUNDED, 1);
 *     model_thread(run_it, actor(true, 2, 1, 0));    sends 1 and 2
 *     model_thread(run_it, actor(false, 2, 0, 0));   receives two
 *     end();                                         all have ended, and what was sent was received
 * Each task is one block: header and the frame of one send or receive at a time. A claimed task is polled on the spot by whoever pushes it.
 */
#ifndef MODEL_CHAN_ACTORS_H
#define MODEL_CHAN_ACTORS_H

#define WEFT__CHAN_BLOCK 1
#define WEFT__CHAN_HANDS 1
#include "lent.h"
#include "memory.h"
#include "../harness/ending.h"
#include "sync/waitlist.c"
#include "task/join.c"
#include "task/state.c"
#include "task/waker.c"

#include "sync/chan.c"
#include "sync/chan_recv.c"
#include "sync/chan_send.c"

enum {
    HONEST,
    RECEIVER_SWALLOWS_ITS_TURN, /* cancelled, it passes it to nobody */
    SENDER_SWALLOWS_ITS_TURN,
    RECEIVER_QUEUES_LATE, /* it looks and queues under two holds of the locks */
    RECEIVE_ADMITS_NOBODY,
    FREE_TAKES_NO_LOCK,
    RECEIVER_LEAVES_THE_RUN, /* it queues, and those who send go on without a look */
    SENDER_LEAVES_THE_RUN,
    CLOSE_TELLS_NO_WAITER,    /* who waits for the end is not told */
    HANDED_RECEIVER_SWALLOWS, /* a message left for it goes to nobody when it gives up */
    MANY_ADMIT_NOBODY,        /* places are freed, and no sender is told */
};

/* ---- what the channel stands on ---- */

int weft_cx_cancelled(weft_cx *cx)
{
    return cx->why;
}

/* ---- tasks ---- */

/* Beside those who send and receive: one that waits for the end; one that reserves two places, uses one and drops the other;
 * one that receives up to two at a time. */
enum trade { PLAIN, AWAITS_END, RESERVES, RECEIVES_MANY };

struct actor {
    struct weft_task task;
    enum trade trade;
    bool sends;
    bool frees;     /* the channel, when it has received */
    unsigned left;  /* messages to send, or to receive at most */
    uint64_t value; /* the next one to send, or the last one that was received */
    uint64_t many[2];
    union {
        struct weft_send tx;
        struct weft_recv rx;
        struct weft_recv_many many;
        struct weft_chan_closed closed;
        struct weft_reserve_many reserve;
    } f;
};

enum { ACTORS = 6, VALUES = 16, BUDGET = 100 };

static struct weft__chan *chan;
static struct actor *actors[ACTORS];
static unsigned actor_count;
static unsigned sent[VALUES], received[VALUES]; /* by value */
static unsigned arrived_as[VALUES];             /* of what is received by many: 1 is the first */
static unsigned arrived;
static unsigned ended;
static unsigned last_answer[ACTORS]; /* 0 - it, for errors */
static uint64_t last_value;

static void run(struct actor *a);

static void push(void *unused, struct weft_task *task)
{
    (void)unused;
    run((struct actor *)(void *)task);
}

static void push_chain(void *unused, struct weft_task *first, struct weft_task *last,
                       uint32_t count)
{
    (void)unused;
    (void)last;
    for (struct weft_task *t = first; count-- > 0;) {
        struct weft_task *next = load_relaxed(&t->link); /* relaxed: the chain is this thread's */
        run((struct actor *)(void *)t);
        t = next;
    }
}

static const struct weft__sched_ops ops = {.push = push, .push_chain = push_chain};
const struct weft__sched weft__sched = {.ops = &ops};

/* ---- broken twins ---- */

/* The turn of who gives up is lost. */
static weft_poll give_up_alone(struct actor *a, weft_cx *cx)
{
    struct weft__waitlist *list = a->sends ? &chan->senders : &chan->receivers;
    struct weft__waiter *waiter =
        a->sends ? (void *)a->f.tx.weft__waiter : (void *)a->f.rx.weft__waiter;

    weft__chan_lock_both(chan);
    bool had_turn = weft__waitlist_settle(list, waiter);
    if (a->sends && had_turn) chan->turns--;
    if (a->sends && !had_turn) chan->gate -= WEFT__CHAN_PENDING;
    weft__chan_unlock_send(chan);
    weft__chan_unlock_recv(chan);
    a->f.rx.ret = cx->why;
    return WEFT_READY;
}

/* It finds nothing, lets go, and then queues. */
static weft_poll recv_queues_late(struct actor *a, weft_cx *cx)
{
    if (a->f.rx.weft__at) return weft_recv_poll(&a->f.rx, cx);
    int r = weft__try_recv((weft_chan *)(void *)chan, &a->value);
    if (r != -EAGAIN) {
        a->f.rx.ret = r;
        return WEFT_READY;
    }
    struct weft__waiter *waiter = (void *)a->f.rx.weft__waiter;
    weft__chan_lock_send(chan);
    weft__waiter_init(waiter);
    weft__waitlist_add(&chan->receivers, waiter, cx->waker);
    a->f.rx.weft__at = 1;
    weft__chan_unlock_send(chan);
    return WEFT_PENDING;
}

static weft_poll recv_admits_nobody(struct actor *a)
{
    weft__chan_lock_recv(chan);
    uint64_t count = take_some(chan, (char *)&a->value, 1, &(struct spent){NULL});
    weft__chan_unlock_recv(chan);
    model_assert(count == 1);
    a->f.rx.ret = 1;
    return WEFT_READY;
}

static weft_poll recv_many_admits_nobody(struct actor *a, weft_cx *cx)
{
    if (a->f.many.weft__at) return weft_recv_many_poll(&a->f.many, cx);
    weft__chan_lock_recv(chan);
    uint64_t count = take_some(chan, a->f.many.into, a->f.many.max, &(struct spent){NULL});
    weft__chan_unlock_recv(chan);
    if (count == 0) return weft_recv_many_poll(&a->f.many, cx);
    a->f.many.ret = (ssize_t)count;
    return WEFT_READY;
}

/* It waits, and the other side's run is what it was before. */
static weft_poll leaves_the_run(struct actor *a, weft_cx *cx)
{
    weft__chan_lock_both(chan);
    uint32_t run = a->sends ? chan->head_run : chan->tail_run;
    uint64_t at = load_relaxed(a->sends ? &chan->head : &chan->tail); /* relaxed: under the locks */
    weft__chan_unlock_send(chan);
    weft__chan_unlock_recv(chan);
    weft_poll answer = a->sends ? weft_send_poll(&a->f.tx, cx) : weft_recv_poll(&a->f.rx, cx);
    if (answer == WEFT_READY || run == 0) return answer;
    weft__chan_lock_both(chan);
    bool as_it_was =
        at == load_relaxed(a->sends ? &chan->head : &chan->tail); /* relaxed: as above */
    if (a->sends && as_it_was && chan->head_run == 0) {
        chan->head_run = run;
        chan->head_left -= run;
    }
    if (!a->sends && as_it_was && chan->tail_run == 0) {
        chan->tail_run = run;
        chan->tail_left -= run;
        chan->room -= run;
    }
    weft__chan_unlock_send(chan);
    weft__chan_unlock_recv(chan);
    return answer;
}

/* ---- one operation after the other ---- */

static void begin_operation(struct actor *a)
{
    if (a->trade == AWAITS_END) {
        a->f.closed = (struct weft_chan_closed){.chan = chan};
    } else if (a->trade == RESERVES) {
        a->f.reserve = (struct weft_reserve_many){.chan = chan, .count = 2};
    } else if (a->trade == RECEIVES_MANY) {
        a->f.many = (struct weft_recv_many){.chan = chan, .into = a->many, .max = 2};
    } else if (a->sends) {
        a->f.tx = (struct weft_send){.chan = chan, .msg = &a->value};
    } else {
        a->f.rx = (struct weft_recv){.chan = chan, .into = &a->value};
    }
}

static weft_poll poll_operation(struct actor *a, weft_cx *cx)
{
    bool waits = a->f.tx.weft__at;
    if (a->trade == AWAITS_END) return weft_chan_closed_poll(&a->f.closed, cx);
    if (a->trade == RESERVES) return weft_reserve_many_poll(&a->f.reserve, cx);
    if (a->trade == RECEIVES_MANY && model_mutant == MANY_ADMIT_NOBODY)
        return recv_many_admits_nobody(a, cx);
    if (a->trade == RECEIVES_MANY) return weft_recv_many_poll(&a->f.many, cx);
    if (cx->why && waits && !a->sends && model_mutant == HANDED_RECEIVER_SWALLOWS)
        return give_up_alone(a, cx);
    if (cx->why && waits &&
        model_mutant == (a->sends ? SENDER_SWALLOWS_ITS_TURN : RECEIVER_SWALLOWS_ITS_TURN))
        return give_up_alone(a, cx);
    if (model_mutant == RECEIVER_LEAVES_THE_RUN && !a->sends) return leaves_the_run(a, cx);
    if (model_mutant == SENDER_LEAVES_THE_RUN && a->sends) return leaves_the_run(a, cx);
    if (a->sends) return weft_send_poll(&a->f.tx, cx);
    if (model_mutant == RECEIVER_QUEUES_LATE) return recv_queues_late(a, cx);
    if (model_mutant == RECEIVE_ADMITS_NOBODY) return recv_admits_nobody(a);
    return weft_recv_poll(&a->f.rx, cx);
}

/* Who gave way to the holder of a lock is polled again; it does so once. */
static weft_poll poll_again(struct actor *a, weft_cx *cx)
{
    weft_poll answer = poll_operation(a, cx);
    if (answer == WEFT_READY || !cx->yielded) return answer;
    cx->yielded = false;
    answer = poll_operation(a, cx);
    model_assert(!cx->yielded);
    return answer;
}

/* True: go on with the next one. */
static bool account_many(struct actor *a)
{
    ssize_t count = a->f.many.ret;

    for (ssize_t i = 0; i < count; i++) {
        received[a->many[i]]++;
        arrived_as[a->many[i]] = ++arrived;
    }
    if (count > 0) a->left -= (unsigned)count;
    return count > 0 && a->left > 0;
}

/* As above. */
static bool account(struct actor *a, unsigned number)
{
    if (a->trade == RECEIVES_MANY) return account_many(a);
    int ret = a->f.tx.ret;

    last_answer[number] = (unsigned)-ret;
    if (a->trade == RESERVES && ret == 0) {
        model_assert(weft__permit_send((weft_chan *)(void *)chan, &a->value) == 0);
        sent[a->value]++;
        model_assert(weft__permit_drop((weft_chan *)(void *)chan) == 0);
    }
    if (a->trade != PLAIN) return false;
    if (a->sends && ret == 0) sent[a->value++]++;
    if (!a->sends && ret == 1) {
        received[a->value]++;
        last_value = a->value;
        a->left--;
        if (a->frees) {
            if (model_mutant == FREE_TAKES_NO_LOCK) {
                weft__free(chan->memory);
            } else {
                weft__chan_free((weft_chan *)(void *)chan, NULL);
            }
            chan = NULL;
        }
        return a->left > 0;
    }
    if (a->sends && ret == 0) return --a->left > 0;
    return false;
}

static unsigned number_of(const struct actor *a)
{
    for (unsigned i = 0; i < actor_count; i++)
        if (actors[i] == a) return i;
    return 0;
}

static bool poll_actor(struct actor *a)
{
    uint64_t word = weft__state_begin_poll(&a->task);
    struct weft_cx cx = {.waker = weft__waker_of(&a->task), .budget = BUDGET};
    unsigned number = number_of(a);

    cx.why = word & WEFT__STATE_CANCELLED ? -ECANCELED : 0;
    do {
        if (poll_again(a, &cx) == WEFT_PENDING) return false;
        if (!account(a, number)) return true;
        begin_operation(a);
    } while (true);
}

/* The caller holds the right to poll it. */
static void run(struct actor *a)
{
    do {
        if (!poll_actor(a)) continue;
        ended++;
        if (ending_alone(&a->task) == WEFT__STATE_FREE) {
            weft__state_free(&a->task);
            model_free(a);
        }
        return;
    } while (weft__state_end_poll(&a->task) == WEFT__STATE_REQUEUE);
}

static void run_it(void *actor)
{
    run(actor);
}

static void begin(enum weft_chan_kind kind, size_t capacity)
{
    weft_chan *made;
    model_assert(weft_chan_new_sized(kind, 8, capacity, &made) == 0);
    chan = weft__chan_of(made);
    for (unsigned i = 0; i < VALUES; i++)
        sent[i] = received[i] = arrived_as[i] = 0;
    actor_count = ended = arrived = 0;
}

/* What the threads find is set up. */
static inline void lends_both(void)
{
    lends(&chan->receivers);
    lends(&chan->senders);
}

static struct actor *actor_of(enum trade trade, bool sends, unsigned count, uint64_t value,
                              uint32_t references)
{
    struct actor *a = model_alloc(sizeof(*a));
    weft__state_init(&a->task, references);
    a->trade = trade;
    a->sends = sends;
    a->left = count;
    a->value = value;
    begin_operation(a);
    actors[actor_count++] = a;
    return a;
}

static struct actor *actor(bool sends, unsigned count, uint64_t value, uint32_t references)
{
    return actor_of(PLAIN, sends, count, value, references);
}

/* All have ended, and what was sent was received, or lies there. */
static void end(void)
{
    uint64_t value;

    model_join();
    model_assert(ended == actor_count);
    if (chan) {
        while (weft__try_recv((weft_chan *)(void *)chan, &value) > 0)
            received[value]++;
        weft__chan_free((weft_chan *)(void *)chan, NULL);
    }
    for (unsigned i = 0; i < VALUES; i++)
        model_assert(sent[i] == received[i]);
}

#endif
