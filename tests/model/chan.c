/* SPDX-License-Identifier: MIT
 *
 * Channels, proven at capacity 0, 1 and 2, and in blocks: every message that was sent is received once, by somebody, in order; who waits
 * stops the other side's run. Waits that are given up, the end and what is freed are chan_end.c's.
 */
#include "chan_actors.h"

/* ---- the cases ---- */

/* The ring goes round: the places are written, read and written again. */
static void goes_round(size_t capacity, unsigned count)
{
    begin(WEFT_CHAN_BOUNDED, capacity);
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
    model_thread(run_it, actor(true, 2, 1, 0));
    model_thread(run_it, actor(false, 2, 0, 0));
    end();
    model_assert(last_value == 2);
}

/* At once, so that the two sides meet without a wait: only the counts order the places. */
static void tries_to_send(void *unused)
{
    (void)unused;
    for (uint64_t value = 1; value <= 3; value++)
        if (weft__try_send((weft_chan *)(void *)chan, &value) == 0) sent[value]++;
}
static void tries_to_receive(void *unused)
{
    uint64_t value;

    (void)unused;
    weft__chan_lock_recv(
        chan); /* take_one, without what comes when it finds nothing: that takes both locks */
    for (unsigned i = 0; i < 2; i++)
        if (take_some(chan, (char *)&value, 1, &(struct spent){NULL})) received[value]++;
    weft__chan_unlock_recv(chan);
}
static void by_tries(void)
{
    begin(WEFT_CHAN_BOUNDED, 1);
    model_thread(tries_to_send, NULL);
    model_thread(tries_to_receive, NULL);
    end();
}

static void two_senders(void)
{
    begin(WEFT_CHAN_BOUNDED, 1);
    model_thread(run_it, actor(true, 1, 1, 0));
    model_thread(run_it, actor(true, 1, 2, 0));
    model_thread(run_it, actor(false, 2, 0, 0));
    end();
}

static void two_receivers(void)
{
    begin(WEFT_CHAN_BOUNDED, 2);
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
    model_thread(run_it,
                 actor(true, 2, 3, 0)); /* the second waits for what the receiver's run frees */
    model_thread(run_it, actor(false, 2, 0, 0));
    end();
    model_assert(last_value == 2);
}

static const struct model_case cases[] = {
    {.name = "chan: runs are taken back", .run = runs_are_taken_back, .preemptions = 3},
    {.name = "chan: also of who receives",
     .run = runs_of_receivers_are_taken_back,
     .preemptions = 3},
    {.name = "mutant: a receiver waits, a sender goes on",
     .run = runs_are_taken_back,
     .mutant = RECEIVER_LEAVES_THE_RUN,
     .must_fail = true},
    {.name = "mutant: a sender waits, a receiver goes on",
     .run = runs_of_receivers_are_taken_back,
     .mutant = SENDER_LEAVES_THE_RUN,
     .must_fail = true},
    {.name = "chan: round a ring of one", .run = capacity_1, .preemptions = 3},
    {.name = "chan: round a ring of two", .run = capacity_2, .preemptions = 3},
    {.name = "chan: a rendezvous", .run = capacity_0, .preemptions = 3},
    {.name = "chan: unbounded, from block to block", .run = blocks, .unbounded = true},
    {.name = "chan: the counts order the places",
     .run = by_tries,
     .unbounded = true,
     .weaken = true},
    {.name = "chan: two senders, one place", .run = two_senders, .preemptions = 2},
    {.name = "chan: two receivers", .run = two_receivers, .preemptions = 2},
    {.name = "mutant: a receiver looks, lets go and queues",
     .run = capacity_1,
     .mutant = RECEIVER_QUEUES_LATE,
     .must_fail = true},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
