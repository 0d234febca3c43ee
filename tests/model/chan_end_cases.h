/* SPDX-License-Identifier: MIT
 *
 * chan_end_cases - waits that are given up, and channels that end, for model tests of it: with sides that are nobody's, and with lent ones.
 */
#ifndef MODEL_CHAN_END_CASES_H
#define MODEL_CHAN_END_CASES_H

#include "chan_actors.h"

static void cancel_it(void *actor)
{
    struct actor *a = actor;
    if (weft__state_cancel(&a->task) == WEFT__STATE_ENQUEUE) run(a);
    if (weft__state_unref(&a->task) == WEFT__STATE_FREE) {
        weft__state_free(&a->task);
        model_free(a);
    }
}

/* Two receivers wait, a message comes, the first is cancelled: one of them has it, and the second never waits in vain. */
static void receiver_is_cancelled(void)
{
    begin(WEFT_CHAN_BOUNDED, 1);
    struct actor *one = actor(false, 1, 0, 1), *two = actor(false, 1, 0, 0);
    run(one);
    run(two);
    lends_both();
    model_thread(run_it, actor(true, 1, 1, 0));
    model_thread(cancel_it, one);
    model_join();
    model_assert(received[1] == 1); /* it does not lie there while the second waits */
    if (ended < 3) run(actor(true, 1, 2, 0));
    end();
}

/* The channel is full and two senders wait; one message is taken, the first sender cancelled: the place is used. */
static void sender_is_cancelled(void)
{
    begin(WEFT_CHAN_BOUNDED, 1);
    run(actor(true, 1, 1, 0));
    struct actor *one = actor(true, 1, 2, 1), *two = actor(true, 1, 3, 0);
    run(one);
    run(two);
    lends_both();
    model_thread(run_it, actor(false, 1, 0, 0));
    model_thread(cancel_it, one);
    model_join();
    model_assert(sent[2] + sent[3] >= 1);
    if (ended < 4) run(actor(false, 1, 0, 0));
    end();
}

static void close_it(void *unused)
{
    (void)unused;
    if (model_mutant == CLOSE_TELLS_NO_WAITER) {
        weft__chan_lock_both(chan);
        chan->gate |= WEFT__CHAN_CLOSED;
        weft__chan_unlock_send(chan);
        weft__chan_unlock_recv(chan);
        return;
    }
    (void)weft__chan_close((weft_chan *)(void *)chan);
}

/* Senders are refused or have sent, receivers are at the end or have received. */
static void closes(void)
{
    begin(WEFT_CHAN_BOUNDED, 1);
    lends_both();
    model_thread(run_it, actor(true, 2, 1, 0));
    model_thread(run_it, actor(false, 9, 0, 0));
    model_thread(close_it, NULL);
    end();
}

static void oneshot_is_freed(void)
{
    begin(WEFT_CHAN_ONESHOT, 1);
    struct actor *receiver = actor(false, 1, 0, 0);
    receiver->frees = true;
    lends_both();
    model_thread(run_it, actor(true, 1, 1, 0));
    model_thread(run_it, receiver);
    end();
}

static void bounded_is_freed(void)
{
    begin(WEFT_CHAN_BOUNDED, 1);
    struct actor *receiver = actor(false, 1, 0, 0);
    receiver->frees = true;
    lends_both();
    model_thread(run_it, actor(true, 1, 1, 0));
    model_thread(run_it, receiver);
    end();
}

/* The sender waits, and comes to see that it has sent when the channel was freed. */
static void rendezvous_is_freed(void)
{
    begin(WEFT_CHAN_BOUNDED, 0);
    struct actor *receiver = actor(false, 1, 0, 0);
    receiver->frees = true;
    lends_both();
    model_thread(run_it, actor(true, 1, 1, 0));
    model_thread(run_it, receiver);
    end();
}

#endif
