/* SPDX-License-Identifier: MIT
 *
 * A channel by hand: what it costs, what happens when there is no memory, who is admitted when, and mistakes that end the process.
 */
#include "base/alloc.h"
#include "base/fault.h"
#include "counted.h"
#include "sync/chan.h"
#include "task/state.h"
#include "test.h"

#include <errno.h>
#include <signal.h>
#include <weft/cast.h>

static struct weft__chan *chan_of(enum weft_chan_kind kind, size_t capacity)
{
    weft_chan *chan;
    ASSERT_OK(weft_chan_new_sized(kind, 8, capacity, &chan));
    return weft__chan_of(chan);
}

static weft_chan *public_of(struct weft__chan *c)
{
    return (weft_chan *)(void *)c;
}

TEST(chan_idle_costs_under_256_bytes)
{
    ASSERT_LE(sizeof(struct weft__chan), 255);
}

/* Frames are of one size for as long as the library keeps its name. */
TEST(chan_frames_keep_their_size)
{
    ASSERT_EQ(sizeof(struct weft_send), 56);
    ASSERT_EQ(sizeof(struct weft_recv), 56);
    ASSERT_EQ(sizeof(struct weft_reserve), 56);
    ASSERT_EQ(sizeof(struct weft_recv_many), 72);
    ASSERT_EQ(sizeof(struct weft_reserve_many), 80);
    ASSERT_EQ(sizeof(struct weft_chan_closed), 40);
}

/* ---- polls by hand: one task that is never run, and frames that wait in its name ---- */

struct hand {
    struct weft_task task;
    struct weft_cx cx;
};

static void hand_init(struct hand *h)
{
    *h = (struct hand){.cx = {.budget = WEFT__UNBUDGETED}};
    weft__state_init(&h->task, 1); /* it counts as running: a wake is noted, and pushes nothing */
    h->cx.waker = weft__waker_of(&h->task);
}

/* Who finds the lock of its side held lets others run first: once, having begun nothing, and not where nobody could run. */
TEST(chan_gives_way_to_who_holds_the_lock)
{
    struct weft__chan *c = chan_of(WEFT_CHAN_BOUNDED, 2);
    struct hand h;
    uint64_t msg = 1, got = 0;
    struct weft_send tx = {.chan = c, .msg = &msg};
    struct weft_recv rx = {.chan = c, .into = &got};

    hand_init(&h);
    h.cx.budget = 10;
    weft__chan_lock_both(c);
    ASSERT_EQ(weft_send_poll(&tx, &h.cx), WEFT_PENDING);
    ASSERT(h.cx.yielded);
    h.cx.yielded = false;
    ASSERT_EQ(weft_recv_poll(&rx, &h.cx), WEFT_PENDING);
    ASSERT(h.cx.yielded);
    h.cx.yielded = false;
    ASSERT_EQ(h.cx.budget, 10); /* it was for nothing */
    weft__chan_unlock_send(c);
    weft__chan_unlock_recv(c);

    ASSERT_EQ(weft_send_poll(&tx, &h.cx), WEFT_READY);
    ASSERT_OK(tx.ret);
    ASSERT_EQ(weft_recv_poll(&rx, &h.cx), WEFT_READY);
    ASSERT_EQ(rx.ret, 1);
    ASSERT_EQ(got, 1);
    ASSERT_EQ(tx.weft__at, 0);
    ASSERT_EQ(rx.weft__at, 0);

    weft__chan_lock_both(c);
    ASSERT_EQ(weft_send_poll(&tx, &h.cx), WEFT_PENDING);
    ASSERT_EQ(weft_recv_poll(&rx, &h.cx), WEFT_PENDING);
    weft__chan_unlock_send(c);
    weft__chan_unlock_recv(c);
    h.cx.why = -ECANCELED; /* given up meanwhile: nothing was begun */
    ASSERT_EQ(weft_send_poll(&tx, &h.cx), WEFT_READY);
    ASSERT_EQ(tx.ret, -ECANCELED);
    ASSERT_EQ(weft_recv_poll(&rx, &h.cx), WEFT_READY);
    ASSERT_EQ(rx.ret, -ECANCELED);
    ASSERT_EQ(weft_chan_len(public_of(c)), 0);
    weft_chan_free(public_of(c));
}

/* A turn is a place that is kept: newcomers go ahead beside it, and wait while somebody is queued. */
TEST(chan_turn_keeps_a_place)
{
    struct weft__chan *c = chan_of(WEFT_CHAN_BOUNDED, 2);
    struct hand one, two;
    uint64_t msg = 1, got;
    struct weft_send a = {.chan = c, .msg = &msg}, b = {.chan = c, .msg = &msg};

    hand_init(&one);
    hand_init(&two);
    ASSERT_OK(weft_try_send(public_of(c), &msg));
    ASSERT_OK(weft_try_send(public_of(c), &msg));
    ASSERT_EQ(weft_send_poll(&a, &one.cx), WEFT_PENDING);
    ASSERT_EQ(weft_send_poll(&b, &two.cx), WEFT_PENDING);
    ASSERT_EQ(c->gate, 2 * WEFT__CHAN_PENDING);
    ASSERT_EQ(weft_try_recv(public_of(c), &got), 1);
    ASSERT_EQ(c->turns, 1);
    ASSERT_EQ(weft_try_send(public_of(c), &msg), -EAGAIN); /* there is a place, and it is a's */
    ASSERT_EQ(weft_send_poll(&b, &two.cx), WEFT_PENDING);  /* polled for no reason */
    ASSERT_EQ(weft_try_recv(public_of(c), &got), 1);
    ASSERT_EQ(c->turns, 2);
    ASSERT_EQ(weft_try_send(public_of(c), &msg), -EAGAIN);
    two.cx.why = -ECANCELED;
    ASSERT_EQ(weft_send_poll(&b, &two.cx), WEFT_READY);
    ASSERT_EQ(b.ret, -ECANCELED);
    ASSERT_EQ(c->turns, 1);
    ASSERT_OK(weft_try_send(public_of(c), &msg)); /* b's place is free, and nobody is queued */
    ASSERT_EQ(weft_send_poll(&a, &one.cx), WEFT_READY);
    ASSERT_EQ(a.ret, 0);
    ASSERT_EQ(weft_chan_len(public_of(c)), 2);
    ASSERT_EQ(c->gate, 0);
    weft_chan_free(public_of(c));
}

/* A run is what may go ahead without a look: up to the end of the ring, of what is free, or there; and none while somebody waits. */
TEST(chan_runs_end_where_somebody_waits)
{
    struct weft__chan *c = chan_of(WEFT_CHAN_BOUNDED, 4);
    struct hand h;
    uint64_t msg = 1, got;
    struct weft_recv rx = {.chan = c, .into = &got};
    struct weft_send tx = {.chan = c, .msg = &msg};

    hand_init(&h);
    ASSERT_EQ(c->tail_run, 0);
    ASSERT_OK(weft_try_send(public_of(c), &msg)); /* the first one looks, for the others */
    ASSERT_EQ(c->tail_run, 3);
    ASSERT_EQ(weft_try_recv(public_of(c), &got), 1);
    ASSERT_EQ(c->head_run, 0); /* there was but one */

    ASSERT_EQ(weft_recv_poll(&rx, &h.cx), WEFT_PENDING);
    ASSERT_EQ(c->tail_run, 0); /* who sends has one to wake */
    ASSERT_EQ(c->tail_left, 3);
    ASSERT_OK(weft_try_send(public_of(c), &msg));
    ASSERT_EQ(weft_recv_poll(&rx, &h.cx), WEFT_READY);

    for (int i = 0; i < 4; i++)
        ASSERT_OK(weft_try_send(public_of(c), &msg));
    ASSERT_EQ(c->tail_run, 0); /* full */
    ASSERT_EQ(weft_try_recv(public_of(c), &got), 1);
    ASSERT_EQ(c->head_run, 1); /* and one more to the end of the ring */
    ASSERT_OK(weft_try_send(public_of(c), &msg));
    ASSERT_EQ(weft_send_poll(&tx, &h.cx), WEFT_PENDING);
    ASSERT_EQ(c->head_run, 0); /* who receives has one to wake */
    ASSERT_EQ(weft_try_recv(public_of(c), &got), 1);
    ASSERT_EQ(c->turns, 1);
    ASSERT_EQ(weft_send_poll(&tx, &h.cx), WEFT_READY);
    ASSERT_EQ(weft_chan_len(public_of(c)), 4);
    weft_chan_free(public_of(c));
}

/* ---- receivers that wait, by hand ---- */

enum { WAITERS = 3 };

/* Receivers that wait, each with a waker of its own. */
struct waiting {
    struct counted c[WAITERS];
    struct weft_cx cx[WAITERS];
    struct weft_recv rx[WAITERS];
    uint64_t got[WAITERS];
};

static void waiting_begin(struct waiting *w, struct weft__chan *c)
{
    for (int i = 0; i < WAITERS; i++) {
        w->cx[i] = cx_of(&w->c[i]);
        w->got[i] = 0;
        w->rx[i] = (struct weft_recv){.chan = c, .into = &w->got[i]};
        ASSERT_EQ(weft_recv_poll(&w->rx[i], &w->cx[i]), WEFT_PENDING);
    }
}

/* Exactly this one is woken, and receives that. */
static void waiting_receives(struct waiting *w, int who, uint64_t value)
{
    for (int i = 0; i < WAITERS; i++) {
        ASSERT_EQ(w->c[i].wakes, i == who);
        w->c[i].wakes = 0;
    }
    ASSERT_EQ(weft_recv_poll(&w->rx[who], &w->cx[who]), WEFT_READY);
    ASSERT_EQ(w->rx[who].ret, 1);
    ASSERT_EQ(w->got[who], value);
}

/* Two were woken, and both overtaken: in whichever order they find that out, they are where they were, before the third. */
TEST(chan_overtaken_receivers_keep_their_order)
{
    for (int turned = 0; turned < 2; turned++) {
        struct weft__chan *c = chan_of(WEFT_CHAN_BOUNDED, 4);
        struct waiting w;
        uint64_t got;

        waiting_begin(&w, c);
        for (uint64_t i = 0; i < 2; i++)
            ASSERT_OK(weft_try_send(public_of(c), &i));
        for (uint64_t i = 0; i < 2; i++) {
            ASSERT_EQ(weft_try_recv(public_of(c), &got), 1);
            ASSERT_EQ(got, i);
        }
        for (int i = 0; i < 2; i++) {
            int who = turned ? 1 - i : i;
            ASSERT_EQ(w.c[who].wakes, 1);
            w.c[who].wakes = 0;
            ASSERT_EQ(weft_recv_poll(&w.rx[who], &w.cx[who]), WEFT_PENDING);
        }
        for (uint64_t i = 0; i < WAITERS; i++) {
            ASSERT_OK(weft_try_send(public_of(c), &i));
            waiting_receives(&w, (int)i, i);
        }
        weft_chan_free(public_of(c));
    }
}

/* A close tells no receiver as long as permits are out: there is nothing to see, and they keep their order. Nor does it go round in circles with more of them
 * than it wakes at a time. */
TEST(chan_close_with_permits_wakes_no_receiver)
{
    struct weft__chan *c = chan_of(WEFT_CHAN_BOUNDED, 4);
    struct waiting w;

    ASSERT_OK(weft_reserve_many(public_of(c), 4));
    waiting_begin(&w, c);
    ASSERT_OK(weft_chan_close(public_of(c)));
    for (uint64_t i = 0; i < WAITERS; i++) {
        ASSERT_OK(weft_permit_send(public_of(c), &i));
        waiting_receives(&w, (int)i, i);
    }
    ASSERT_OK(weft_permit_drop(public_of(c)));
    weft_chan_free(public_of(c));
}

/* The last permit of a closed channel is dropped while a message lies there, whose receiver has not come: the others are told of the end all the same. */
TEST(chan_last_permit_ends_it_for_all)
{
    struct weft__chan *c = chan_of(WEFT_CHAN_BOUNDED, 2);
    struct waiting w;
    uint64_t msg = 7;
    int received = 0;

    ASSERT_OK(weft_reserve_many(public_of(c), 2));
    waiting_begin(&w, c);
    ASSERT_OK(weft_chan_close(public_of(c)));
    for (int i = 0; i < WAITERS; i++) /* there may be more to come */
        ASSERT_EQ(weft_recv_poll(&w.rx[i], &w.cx[i]), WEFT_PENDING);
    ASSERT_OK(weft_permit_send(public_of(c), &msg));
    ASSERT_OK(weft_permit_drop(public_of(c)));
    for (int i = 0; i < WAITERS; i++) {
        ASSERT_EQ(weft_recv_poll(&w.rx[i], &w.cx[i]), WEFT_READY);
        received += w.rx[i].ret;
    }
    ASSERT_EQ(received, 1);
    weft_chan_free(public_of(c));
}

/* Where sender and receiver meet, too, whoever has received may free it: what a sender has not seen yet stays until it has. */
TEST(chan_rendezvous_freed_before_the_sender_looks)
{
    for (int told = 0; told < 2; told++) {
        struct weft__chan *c = chan_of(WEFT_CHAN_BOUNDED, 0);
        struct counted one, two;
        struct weft_cx cx[2] = {cx_of(&one), cx_of(&two)};
        uint64_t msg = 7, got[2];
        struct weft_send tx[2] = {{.chan = c, .msg = &msg}, {.chan = c, .msg = &msg}};

        for (int i = 0; i < 2; i++)
            ASSERT_EQ(weft_send_poll(&tx[i], &cx[i]), WEFT_PENDING);
        ASSERT_EQ(weft_recv_many(public_of(c), got, 2), 2);
#if defined(WEFT_DEBUG)
        int64_t live = weft__alloc_live();
#endif
        weft_chan_free(public_of(c));
#if defined(WEFT_DEBUG)
        ASSERT_EQ(weft__alloc_live(), live);
#endif
        cx[1].why = told ? -ECANCELED : 0; /* also one that is told to stop has sent */
        for (int i = 0; i < 2; i++) {
            ASSERT_EQ(weft_send_poll(&tx[i], &cx[i]), WEFT_READY);
            ASSERT_OK(tx[i].ret);
        }
#if defined(WEFT_DEBUG)
        ASSERT_EQ(weft__alloc_live(), live - 1);
#endif
    }
}

/* Closed, nobody goes ahead. */
TEST(chan_runs_end_with_the_channel)
{
    struct weft__chan *c = chan_of(WEFT_CHAN_BOUNDED, 4);
    uint64_t msg = 1;

    ASSERT_OK(weft_try_send(public_of(c), &msg));
    ASSERT_EQ(c->tail_run, 3);
    ASSERT_OK(weft_chan_close(public_of(c)));
    ASSERT_EQ(c->tail_run, 0);
    ASSERT_EQ(weft_try_send(public_of(c), &msg), -EPIPE);
    weft_chan_free(public_of(c));
}

/* A probe registers nothing; ready, it has happened. */
TEST(chan_probe_registers_nothing)
{
    struct weft__chan *c = chan_of(WEFT_CHAN_BOUNDED, 1);
    struct hand h;
    uint64_t msg = 7, got = 0;
    struct weft_recv rx = {.chan = c, .into = &got};
    struct weft_send tx = {.chan = c, .msg = &msg};

    hand_init(&h);
    h.cx.probe = true;
    ASSERT_EQ(weft_recv_poll(&rx, &h.cx), WEFT_PENDING);
    ASSERT_EQ(rx.weft__at, 0);
    ASSERT_EQ(weft_send_poll(&tx, &h.cx), WEFT_READY);
    tx = (struct weft_send){.chan = c, .msg = &msg};
    ASSERT_EQ(weft_send_poll(&tx, &h.cx), WEFT_PENDING);
    ASSERT_EQ(tx.weft__at, 0);
    ASSERT_EQ(c->gate, 0);
    ASSERT_EQ(weft_recv_poll(&rx, &h.cx), WEFT_READY);
    ASSERT_EQ(got, 7);
    weft_chan_free(public_of(c)); /* it would abort if anybody waited */
}

/* First polled when it is told to stop already, an operation does nothing, even if it could. */
TEST(chan_told_to_stop_begins_nothing)
{
    struct weft__chan *c = chan_of(WEFT_CHAN_BOUNDED, 2);
    struct hand h;
    uint64_t msg = 7, got = 0;
    struct weft_recv rx = {.chan = c, .into = &got};
    struct weft_send tx = {.chan = c, .msg = &msg};
    struct weft_reserve place = {.chan = c};

    hand_init(&h);
    ASSERT_OK(weft_try_send(public_of(c), &msg));
    h.cx.why = -ETIME;
    ASSERT_EQ(weft_recv_poll(&rx, &h.cx), WEFT_READY);
    ASSERT_EQ(weft_send_poll(&tx, &h.cx), WEFT_READY);
    ASSERT_EQ(weft_reserve_poll(&place, &h.cx), WEFT_READY);
    ASSERT_EQ(rx.ret, -ETIME);
    ASSERT_EQ(tx.ret, -ETIME);
    ASSERT_EQ(place.ret, -ETIME);
    ASSERT_EQ(weft_chan_len(public_of(c)), 1);
    ASSERT_EQ(c->reserved, 0);
    weft_chan_free(public_of(c));
}

/* Without budget it asks to be polled again, and has done nothing. */
TEST(chan_without_budget_yields)
{
    struct weft__chan *c = chan_of(WEFT_CHAN_BOUNDED, 2);
    struct hand h;
    uint64_t msg = 7;
    struct weft_send tx = {.chan = c, .msg = &msg};

    hand_init(&h);
    h.cx.budget = 1;
    ASSERT_EQ(weft_send_poll(&tx, &h.cx), WEFT_READY);
    ASSERT_EQ(h.cx.budget, 0);
    ASSERT_EQ(weft_send_poll(&tx, &h.cx), WEFT_PENDING);
    ASSERT(h.cx.yielded);
    ASSERT_EQ(weft_chan_len(public_of(c)), 1);
    weft_chan_free(public_of(c));
}

/* ---- mistakes ---- */

TEST_WITH(chan_freed_under_a_waiter_aborts, .signal = SIGABRT)
{
    struct weft__chan *c = chan_of(WEFT_CHAN_BOUNDED, 1);
    struct hand h;
    uint64_t got;
    struct weft_recv rx = {.chan = c, .into = &got};

    hand_init(&h);
    ASSERT_EQ(weft_recv_poll(&rx, &h.cx), WEFT_PENDING);
    weft_chan_free(public_of(c));
}

#if defined(WEFT_FAULTS)
/* Whichever allocation fails, nothing is left behind, and an unbounded channel goes on when there is memory again. */
TEST(chan_without_memory)
{
    weft_chan *chan = NULL;
    weft_cast *cast = NULL;
    uint64_t msg = 1, got;

    weft__fault_arm(WEFT__FAULT_ALLOC, 1, 1, -ENOMEM);
    ASSERT_EQ(weft_chan_new_sized(WEFT_CHAN_BOUNDED, 8, 4, &chan), -ENOMEM);
    for (uint32_t nth = 1; nth <= 2; nth++) {
        weft__fault_arm(WEFT__FAULT_ALLOC, nth, 1, -ENOMEM);
        ASSERT_EQ(weft_chan_new_sized(WEFT_CHAN_UNBOUNDED, 8, 0, &chan), -ENOMEM);
    }
    weft__fault_arm(WEFT__FAULT_ALLOC, 1, 2, -ENOMEM);
    ASSERT_EQ(weft_broadcast_new_sized(8, 4, &cast), -ENOMEM);
    ASSERT_EQ(weft_watch_new_sized(8, &msg, &cast), -ENOMEM);
    weft__fault_reset();

    ASSERT_OK(weft_chan_new_sized(WEFT_CHAN_UNBOUNDED, 8, 0, &chan));
    uint64_t sent = 0, received = 0;
    for (int i = 0; i < 200; i++) {
        weft__fault_arm(WEFT__FAULT_ALLOC, 1, UINT32_MAX, -ENOMEM);
        int r = weft_try_send(chan, &msg);
        weft__fault_reset();
        if (r == -ENOMEM) r = weft_try_send(chan, &msg);
        ASSERT_OK(r);
        sent++;
    }
    while (weft_try_recv(chan, &got) > 0)
        received++;
    ASSERT_EQ(sent, received);
    weft_chan_free(chan);
}

/* A rendezvous gets places when somebody sends to one who waits, and not before; without memory it says so, and the other waits on. */
TEST(chan_rendezvous_without_memory)
{
    struct weft__chan *c = chan_of(WEFT_CHAN_BOUNDED, 0);
    struct hand h;
    uint64_t msg = 5, got = 0;
    struct weft_recv rx = {.chan = c, .into = &got};

    hand_init(&h);
    ASSERT_EQ(weft_try_send(public_of(c), &msg), -EAGAIN);
    ASSERT_NULL(c->ring);
    ASSERT_EQ(weft_recv_poll(&rx, &h.cx), WEFT_PENDING);
    weft__fault_arm(WEFT__FAULT_ALLOC, 1, 1, -ENOMEM);
    ASSERT_EQ(weft_try_send(public_of(c), &msg), -ENOMEM);
    weft__fault_reset();
    ASSERT_EQ(weft_recv_poll(&rx, &h.cx), WEFT_PENDING);
    ASSERT_OK(weft_try_send(public_of(c), &msg));
    ASSERT_EQ(weft_recv_poll(&rx, &h.cx), WEFT_READY);
    ASSERT_EQ(got, 5);
    weft_chan_free(public_of(c));
}
#endif
