/* SPDX-License-Identifier: MIT
 *
 * chan_cases - messages that go through a channel, for model tests of it: with sides that are nobody's, and with lent ones.
 */
#ifndef MODEL_CHAN_CASES_H
#define MODEL_CHAN_CASES_H

#include "chan_actors.h"

/* The ring goes round: the places are written, read and written again. */
static void goes_round(size_t capacity, unsigned count)
{
    begin(WEFT_CHAN_BOUNDED, capacity);
    lends_both();
    model_thread(run_it, actor(true, count, 1, 0));
    model_thread(run_it, actor(false, count, 0, 0));
    end();
    model_assert(last_value == count); /* in order */
}

static void capacity_1(void)
{
    goes_round(1, 3);
}

static void capacity_2(void)
{
    goes_round(2, 3);
}

static void capacity_0(void)
{
    goes_round(0, 2);
}

/* One block each: the receiver frees behind the sender. */
static void blocks(void)
{
    begin(WEFT_CHAN_UNBOUNDED, 0);
    lends_both();
    model_thread(run_it, actor(true, 2, 1, 0));
    model_thread(run_it, actor(false, 2, 0, 0));
    end();
    model_assert(last_value == 2);
}

static void two_senders(void)
{
    begin(WEFT_CHAN_BOUNDED, 1);
    lends_both();
    model_thread(run_it, actor(true, 1, 1, 0));
    model_thread(run_it, actor(true, 1, 2, 0));
    model_thread(run_it, actor(false, 2, 0, 0));
    end();
}

static void two_receivers(void)
{
    begin(WEFT_CHAN_BOUNDED, 2);
    lends_both();
    model_thread(run_it, actor(false, 1, 0, 0));
    model_thread(run_it, actor(false, 1, 0, 0));
    model_thread(run_it, actor(true, 2, 1, 0));
    end();
}

/* A run is open on each side while others come to wait: a ring of three, so that one operation leaves a run behind. */
static void runs_are_taken_back(void)
{
    begin(WEFT_CHAN_BOUNDED, 3);
    uint64_t value = 1;
    model_assert(weft__try_send((weft_chan *)(void *)chan, &value) == 0);
    sent[1]++;
    lends_both();
    model_thread(run_it, actor(true, 2, 2, 0));
    model_thread(run_it, actor(false, 3, 0, 0));
    end();
    model_assert(last_value == 3);
}

static void runs_of_receivers_are_taken_back(void)
{
    begin(WEFT_CHAN_BOUNDED, 2);
    for (uint64_t value = 1; value <= 2; value++) {
        model_assert(weft__try_send((weft_chan *)(void *)chan, &value) == 0);
        sent[value]++;
    }
    lends_both();
    model_thread(run_it,
                 actor(true, 2, 3, 0)); /* the second waits for what the receiver's run frees */
    model_thread(run_it, actor(false, 2, 0, 0));
    end();
    model_assert(last_value == 2);
}

#endif
