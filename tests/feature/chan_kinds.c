/* SPDX-License-Identifier: MIT
 *
 * The kinds of channels and what is special to them: rendezvous, oneshot, unbounded; permits, many at once, waiting for the end.
 */
#include "ints.h"

/* ---- rendezvous ---- */

static int receives(int_chan *chan)
{
    int value = 0, r = weft_recv(chan, &value);
    return r == 1 ? value : r;
}
struct receives_too {
    WEFT_FRAME(int);
    int_chan *chan;
    int value;
    struct weft_recv rx;
};
static weft_async(receives_too)
{
    weft_begin;
    weft_await(f->rx, weft_recv, weft_on(f->chan, &f->value));
    weft_return(f->rx.ret == 1 ? f->value : f->rx.ret);
    weft_end;
}

/* A send lasts until somebody has received; a try is refused while nobody waits to. */
static void rendezvous(struct crew *crew)
{
    int_chan *meet = chan_of(0);
    int value = 0;

    (void)crew;
    ASSERT_EQ(weft_try_send(meet, &(int){1}), -EAGAIN);
    ASSERT_EQ(weft_reserve(meet), -EINVAL);
    weft_task *tx = weft_go(sends, meet, 1, 1);
    ASSERT_OK(weft_sleep(weft_ms(1)));
    ASSERT(!weft_done(tx));
    ASSERT_EQ(weft_chan_len(meet), 0);
    ASSERT_EQ(weft_try_recv(meet, &value), 1);
    ASSERT_EQ(value, 1);
    ASSERT_EQ(joined(tx), 1);
    weft_chan_free(meet);
}
TEST(chan_rendezvous_waits_for_the_receiver)
{
    still_task_each(rendezvous);
}

/* Arms of one select are no strangers to each other: one that sends and one that receives meet, and both say so, whichever has won. */
static int meets_itself(int_chan *meet)
{
    struct weft_send tx;
    struct weft_recv rx;
    int got = 0;
    int won = weft_select(weft_arm(tx, weft_send, weft_on(meet, &(int){7})),
                          weft_arm(rx, weft_recv, weft_on(meet, &got)));

    ASSERT(won == 0 || won == 1);
    ASSERT_OK(tx.ret);
    ASSERT_EQ(rx.ret, 1);
    return got;
}
static void select_meets_itself(struct crew *crew)
{
    int_chan *meet = chan_of(0);
    (void)crew;
    ASSERT_EQ(joined(weft_go(meets_itself, meet)), 7);
    weft_chan_free(meet);
}
TEST(chan_rendezvous_of_two_arms_of_one_select)
{
    still_task_each(select_meets_itself);
}

/* Who waits to receive is sent to at once, one message each; the next one is refused. */
static void tries_to_meet(struct crew *crew)
{
    int_chan *meet = chan_of(0);
    weft_task *rx[3];
    int sum = 0;

    (void)crew;
    for (int i = 0; i < 3; i++)
        rx[i] = i == 1 ? weft_spawn(receives_too, meet) : weft_go(receives, meet);
    ASSERT_OK(weft_sleep(weft_ms(1)));
    for (int i = 1; i <= 3; i++)
        ASSERT_OK(weft_try_send(meet, &i));
    ASSERT_EQ(weft_try_send(meet, &(int){4}), -EAGAIN);
    for (int i = 0; i < 3; i++)
        sum += joined(rx[i]);
    ASSERT_EQ(sum, 6);
    ASSERT_EQ(weft_try_send(meet, &(int){5}), -EAGAIN);
    weft_chan_free(meet);
}
TEST(chan_rendezvous_try_meets_who_waits)
{
    still_task_each(tries_to_meet);
}

/* The receiver gives up just then: the message waits for the next one, before those of senders that came later; also across a close. */
static void left_for_another(struct crew *crew)
{
    (void)crew;
    for (int closed = 0; closed < 2; closed++) {
        int_chan *meet = chan_of(0);
        int value = 0;
        weft_task *rx = weft_go(receives, meet);

        ASSERT_OK(weft_sleep(weft_ms(1)));
        ASSERT_OK(weft_try_send(meet, &(int){7}));
        weft_cancel(rx);
        int got = joined(rx); /* it came first, or the cancel did */
        weft_task *tx = weft_go(sends, meet, 8, 1);
        ASSERT_OK(weft_sleep(weft_ms(1)));
        if (closed) ASSERT_OK(weft_chan_close(meet));
        if (got == -ECANCELED) {
            ASSERT_EQ(weft_chan_len(meet), 1);
            ASSERT_EQ(weft_recv(meet, &value), 1);
            ASSERT_EQ(value, 7);
        } else {
            ASSERT_EQ(got, 7);
        }
        if (!closed) ASSERT_EQ(weft_recv(meet, &value), 1);
        ASSERT_EQ(joined(tx), closed ? -EPIPE : 1);
        if (closed) ASSERT_EQ(weft_recv(meet, &value), 0);
        weft_chan_free(meet);
    }
}
TEST(chan_rendezvous_left_for_another)
{
    still_task_each(left_for_another);
}

/* ---- the end, waited for ---- */

static int awaits_end(int_chan *chan)
{
    return weft_chan_closed(chan);
}
struct awaits_end_too {
    WEFT_FRAME(int);
    int_chan *chan;
    struct weft_chan_closed closed;
};
static weft_async(awaits_end_too)
{
    weft_begin;
    weft_await(f->closed, weft_chan_closed, f->chan);
    weft_return(f->closed.ret);
    weft_end;
}
static void end_for_senders(struct crew *crew)
{
    enum { WAITERS = 150 }; /* more than are woken at once */
    int_chan *chan = chan_of(1);
    weft_task *task[WAITERS];
    int value;

    (void)crew;
    for (int i = 0; i < WAITERS; i++)
        task[i] = i % 2 ? weft_spawn(awaits_end_too, chan) : weft_go(awaits_end, chan);
    ASSERT_OK(weft_sleep(weft_ms(1)));
    ASSERT_OK(weft_try_send(chan, &(int){1}));
    weft_cancel(task[0]);
    ASSERT_EQ(joined(task[0]), -ECANCELED);
    ASSERT(!weft_done(task[1]));
    ASSERT_OK(weft_chan_close(chan));
    for (int i = 1; i < WAITERS; i++)
        ASSERT_EQ(joined(task[i]), 0);
    ASSERT_OK(weft_chan_closed(chan));
    ASSERT_EQ(weft_recv(chan, &value), 1); /* what lies there is still received */
    weft_chan_free(chan);
}
TEST(chan_end_is_told_to_senders)
{
    still_task_each(end_for_senders);
    ASSERT_EQ(weft_chan_closed((int_chan *)NULL), -EINVAL);
}

/* A oneshot is closed by its message. */
static void end_of_oneshot(struct crew *crew)
{
    int_chan *reply;
    (void)crew;
    ASSERT_OK(weft_chan_oneshot(&reply));
    weft_task *task = weft_go(awaits_end, reply);
    ASSERT_OK(weft_sleep(weft_ms(1)));
    ASSERT_OK(weft_send(reply, &(int){1}));
    ASSERT_EQ(joined(task), 0);
    weft_chan_free(reply);
}
TEST(chan_end_of_a_oneshot)
{
    still_task_each(end_of_oneshot);
}

/* ---- oneshot ---- */

static int replies(int_chan *reply, int value)
{
    return weft_send(reply, &value);
}
/* Whoever has received frees it, while the sender is on its way out. */
static void oneshot(struct crew *crew)
{
    int value;

    (void)crew;
    for (int i = 0; i < 200; i++) {
        int_chan *reply;
        ASSERT_OK(weft_chan_oneshot(&reply));
        weft_task *tx = weft_go(replies, reply, i);
        ASSERT_EQ(weft_recv(reply, &value), 1);
        ASSERT_EQ(value, i);
        if (i % 2) {
            ASSERT_EQ(weft_recv(reply, &value), 0);
            ASSERT_EQ(weft_send(reply, &value), -EPIPE);
        }
        weft_chan_free(reply);
        ASSERT_EQ(joined(tx), 0);
    }
}
TEST(chan_oneshot_freed_by_who_received)
{
    crew_each(oneshot);
}

/* The same where the two meet: the sender waits, and has not seen yet that its message was received. */
static void meets_and_frees(struct crew *crew)
{
    int value;

    (void)crew;
    for (int i = 0; i < 200; i++) {
        int_chan *reply = chan_of(0);
        weft_task *tx = weft_go(replies, reply, i);
        if (i % 2) weft_yield();
        ASSERT_EQ(weft_recv(reply, &value), 1);
        ASSERT_EQ(value, i);
        weft_chan_free(reply);
        ASSERT_EQ(joined(tx), 0);
    }
}
TEST(chan_rendezvous_freed_by_who_received)
{
    crew_each(meets_and_frees);
}

/* All who wait for the one message are answered: one by it, the others by the end. */
static void oneshot_for_many(struct crew *crew)
{
    int_chan *reply;
    weft_task *rx[5];
    int sum = 0;

    (void)crew;
    ASSERT_OK(weft_chan_oneshot(&reply));
    for (int i = 0; i < 5; i++)
        rx[i] = weft_go(sums, reply);
    ASSERT_OK(weft_sleep(weft_ms(1)));
    ASSERT_OK(weft_send(reply, &(int){42}));
    for (int i = 0; i < 5; i++)
        sum += joined(rx[i]);
    ASSERT_EQ(sum, 42);
    weft_chan_free(reply);
}
TEST(chan_oneshot_ends_for_all)
{
    still_task_each(oneshot_for_many);
}

/* ---- permits ---- */

static int reserves(int_chan *chan, int value)
{
    int r = weft_reserve(chan);
    return r < 0 ? r : weft_permit_send(chan, &value);
}
struct reserves_too {
    WEFT_FRAME(int);
    int_chan *chan;
    int value;
    struct weft_reserve place;
};
static weft_async(reserves_too)
{
    weft_begin;
    weft_await(f->place, weft_reserve, f->chan);
    weft_return(f->place.ret < 0 ? f->place.ret : weft_permit_send(f->chan, &f->value));
    weft_end;
}
static void permits(struct crew *crew)
{
    int_chan *chan = chan_of(2);
    int value;

    (void)crew;
    ASSERT_EQ(weft_permit_send(chan, &(int){1}), -EINVAL);
    ASSERT_EQ(weft_permit_drop(chan), -EINVAL);
    ASSERT_OK(weft_reserve(chan));
    ASSERT_OK(weft_reserve(chan));
    ASSERT_EQ(weft_try_send(chan, &(int){1}), -EAGAIN); /* full of nothing */
    ASSERT_EQ(weft_chan_len(chan), 0);
    weft_task *tx = weft_go(reserves, chan, 2), *tx2 = weft_spawn(reserves_too, chan, 3);
    ASSERT_OK(weft_sleep(weft_ms(1)));
    ASSERT_OK(weft_permit_send(chan, &(int){1}));
    ASSERT_EQ(weft_recv(chan, &value), 1);
    ASSERT_EQ(value, 1);
    ASSERT_OK(weft_permit_drop(chan));
    ASSERT_EQ(joined(tx), 0);
    ASSERT_EQ(joined(tx2), 0);
    ASSERT_EQ(weft_recv(chan, &value), 1);
    ASSERT_EQ(weft_recv(chan, &value), 1);
    weft_chan_free(chan);
}
TEST(chan_permits_keep_a_place)
{
    still_task_each(permits);
}

/* The end of a closed channel waits for its permits, and comes to all with the last of them, used or not; also if what another one sent lies there still. */
static void permits_at_the_end(struct crew *crew)
{
    enum { DROPPED, USED, USED_THEN_DROPPED, DROPPED_THEN_USED, WAYS };
    for (int way = 0; way < WAYS; way++) {
        int_chan *chan = chan_of(2);
        weft_task *rx[3];
        int sum = 0;

        ASSERT_OK(weft_reserve_many(chan, way > USED ? 2 : 1));
        for (int i = 0; i < 3; i++)
            rx[i] = i == 1 ? weft_spawn(sums_too, chan) : weft_go(sums, chan);
        ASSERT_OK(weft_sleep(weft_ms(1)));
        ASSERT_OK(weft_chan_close(chan));
        ASSERT_OK(weft_sleep(weft_ms(1)));
        for (int i = 0; i < 3; i++)
            ASSERT(!weft_done(rx[i]));
        if (way == DROPPED_THEN_USED) ASSERT_OK(weft_permit_drop(chan));
        if (way != DROPPED) ASSERT_OK(weft_permit_send(chan, &(int){5}));
        if (way == DROPPED || way == USED_THEN_DROPPED) ASSERT_OK(weft_permit_drop(chan));
        for (int i = 0; i < 3; i++)
            sum += joined(rx[i]);
        ASSERT_EQ(sum, way == DROPPED ? 0 : 5);
        weft_chan_free(chan);
    }
    (void)crew;
}
TEST(chan_end_waits_for_permits)
{
    still_task_each(permits_at_the_end);
}

static int reserves_many(int_chan *chan, int count)
{
    return weft_reserve_many(chan, (size_t)count);
}
struct reserves_many_too {
    WEFT_FRAME(int);
    int_chan *chan;
    int count;
    struct weft_reserve_many places;
};
static weft_async(reserves_many_too)
{
    weft_begin;
    weft_await(f->places, weft_reserve_many, f->chan, (size_t)f->count);
    weft_return(f->places.ret);
    weft_end;
}

/* All places at once, or none; who wants many is not passed by those who want one; cancelled, it lets them by. */
static void many_permits(struct crew *crew)
{
    int_chan *chan = chan_of(4);
    int value;

    (void)crew;
    ASSERT_EQ(weft_reserve_many(chan, 0), -EINVAL);
    ASSERT_EQ(weft_reserve_many(chan, 5), -EINVAL);
    ASSERT_EQ(weft_reserve_many((int_chan *)NULL, 1), -EINVAL);
    for (int cancelled = 0; cancelled < 2; cancelled++) {
        ASSERT_OK(weft_try_send(chan, &(int){1}));
        ASSERT_OK(weft_try_send(chan, &(int){2}));
        weft_task *three =
            cancelled ? weft_spawn(reserves_many_too, chan, 3) : weft_go(reserves_many, chan, 3);
        ASSERT_OK(weft_sleep(weft_ms(1)));
        weft_task *one = weft_go(sends, chan, 3, 1);
        ASSERT_OK(weft_sleep(weft_ms(1)));
        ASSERT_EQ(weft_try_send(chan, &(int){9}), -EAGAIN); /* two are free, and not for this one */
        ASSERT(!weft_done(three) && !weft_done(one));
        if (cancelled) {
            weft_cancel(three);
            ASSERT_EQ(joined(three), -ECANCELED);
            ASSERT_EQ(joined(one), 1);
            ASSERT_EQ(weft_recv(chan, &value), 1);
        } else {
            ASSERT_EQ(weft_recv(chan, &value), 1);
            ASSERT_EQ(joined(three), 0);
            ASSERT_OK(weft_sleep(weft_ms(1)));
            ASSERT(!weft_done(one)); /* one message, three permits */
            ASSERT_OK(weft_permit_drop(chan));
            ASSERT_EQ(joined(one), 1);
            ASSERT_OK(weft_permit_drop(chan));
            ASSERT_OK(weft_permit_drop(chan));
            ASSERT_EQ(weft_permit_drop(chan), -EINVAL);
        }
        for (int i = 2; i <= 3; i++) {
            ASSERT_EQ(weft_recv(chan, &value), 1);
            ASSERT_EQ(value, i);
        }
    }
    weft_chan_free(chan);
}
TEST(chan_permits_many_at_once)
{
    still_task_each(many_permits);
}

/* ---- many at once ---- */

struct takes_many {
    WEFT_FRAME(int);
    int_chan *chan;
    int buf[7];
    int next;
    struct weft_recv_many rx;
};
static weft_async(takes_many)
{
    weft_begin;
    for (;;) {
        weft_await(f->rx, weft_recv_many, weft_on(f->chan, f->buf), 7);
        if (f->rx.ret <= 0) weft_return(f->rx.ret < 0 ? (int)f->rx.ret : f->next);
        for (ssize_t i = 0; i < f->rx.ret; i++)
            if (f->buf[i] != f->next++) weft_return(-EILSEQ);
    }
    weft_end;
}
static void batches(struct crew *crew)
{
    int buf[10];

    (void)crew;
    for (size_t capacity = 0; capacity < 40; capacity += 13) {
        int_chan *chan = chan_of(capacity);
        weft_task *rx = weft_spawn(takes_many, chan);
        ASSERT_EQ(sends(chan, 0, 1000), 1000);
        ASSERT_OK(weft_chan_close(chan));
        ASSERT_EQ(joined(rx), 1000);
        weft_chan_free(chan);
    }
    int_chan *chan = chan_of(4);
    ASSERT_EQ(sends(chan, 1, 4), 4);
    ASSERT_EQ(weft_recv_many(chan, buf, 3), 3);
    ASSERT_EQ(buf[0] + buf[1] + buf[2], 6);
    ASSERT_EQ(weft_recv_many(chan, buf, 10), 1);
    ASSERT_EQ(buf[0], 4);
    ASSERT_EQ(weft_recv_many(chan, buf, 0), -EINVAL);
    weft_chan_free(chan);
}
TEST(chan_recv_many)
{
    crew_each(batches);
}

/* ---- unbounded ---- */

static void without_bound(struct crew *crew)
{
    int_chan *chan;
    int value;

    (void)crew;
    ASSERT_OK(weft_chan_unbounded(&chan));
    ASSERT_EQ(weft_reserve(chan), -EINVAL);
    for (int i = 0; i < 1000; i++)
        ASSERT_OK(weft_try_send(chan, &i));
    ASSERT_EQ(weft_chan_len(chan), 1000);
    for (int i = 0; i < 500; i++) {
        ASSERT_EQ(weft_recv(chan, &value), 1);
        ASSERT_EQ(value, i);
    }
    weft_chan_free(chan); /* with the other half in it */
}
TEST(chan_unbounded)
{
    crew_each(without_bound);
}
