/* SPDX-License-Identifier: MIT
 *
 * Channels, proven at capacity 0, 1 and 2, and in blocks: every message that was sent is received once, by somebody, in order; who waits
 * stops the other side's run. Waits that are given up, the end and what is freed are chan_end.c's.
 */
#include "chan_cases.h"

/* ---- the cases ---- */

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

/* A full ring, two who send into it, and one that takes all that is there, until it has so many. */
static void many_are_received(unsigned sent_by_one, unsigned count)
{
    begin(WEFT_CHAN_BOUNDED, 2);
    run(actor(true, 2, 1, 0));
    model_thread(run_it, actor(true, sent_by_one, 3, 0));
    model_thread(run_it, actor(true, 1, 5, 0));
    model_thread(run_it, actor_of(RECEIVES_MANY, false, count, 0, 0));
    model_join();
    model_assert(ended == actor_count); /* so both have sent */
    model_assert(arrived == count);
    model_assert(arrived_as[1] == 1 && arrived_as[2] == 2);
}

static void all_are_received(void)
{
    many_are_received(2, 5);
    model_assert(arrived_as[3] < arrived_as[4]); /* each sender's in its order */
    run(actor(true, 2, 6, 0));                   /* both places are free */
    model_assert(sent[7] == 1);
    end();
}

static void both_places_are_given_back(void)
{
    many_are_received(1, 2);
    run(actor_of(RECEIVES_MANY, false, 2, 0, 0));
    model_assert(arrived == 4);
    end();
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
    {.name = "chan: many are received, two send", .run = all_are_received, .preemptions = 2},
    {.name = "chan: two are received at once, two wait",
     .run = both_places_are_given_back,
     .preemptions = 2},
    {.name = "mutant: many are received, and no sender is told",
     .run = all_are_received,
     .mutant = MANY_ADMIT_NOBODY,
     .must_fail = true},
    {.name = "mutant: the same of two that wait",
     .run = both_places_are_given_back,
     .mutant = MANY_ADMIT_NOBODY,
     .must_fail = true},
    {.name = "mutant: a receiver looks, lets go and queues",
     .run = capacity_1,
     .mutant = RECEIVER_QUEUES_LATE,
     .must_fail = true},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
