/* SPDX-License-Identifier: MIT
 *
 * How waits at a channel end: one that is given up takes nothing and keeps nobody else waiting; the end reaches all, also behind permits;
 * and whoever has received may free the channel, also where the two meet.
 */
#include "chan_end_cases.h"

/* ---- the cases ---- */

static void offer_is_cancelled(void)
{
    begin(WEFT_CHAN_BOUNDED, 0);
    struct actor *one = actor(true, 1, 1, 1);
    run(one);
    model_thread(run_it, actor(false, 1, 0, 0));
    model_thread(cancel_it, one);
    model_join();
    if (ended < 2) run(actor(true, 1, 2, 0)); /* the receiver still waits */
    end();
}

/* Two places are reserved, one is used, the other dropped, and the channel closed: both receivers come to its end. */
static void last_permit_is_dropped(void)
{
    begin(WEFT_CHAN_BOUNDED, 2);
    run(actor(false, 9, 0, 0));
    model_thread(run_it, actor(false, 9, 0, 0));
    model_thread(run_it, actor_of(RESERVES, false, 0, 2, 0));
    model_thread(close_it, NULL);
    end();
}

/* Two receivers wait where sender and receiver meet, a message is left for the first, which is cancelled: somebody has it. */
static void tries_to_meet(void *unused)
{
    (void)unused;
    uint64_t value = 1;
    model_assert(weft__try_send((weft_chan *)(void *)chan, &value) == 0);
    sent[1]++;
}
static void hand_is_cancelled(void)
{
    begin(WEFT_CHAN_BOUNDED, 0);
    struct actor *one = actor(false, 1, 0, 1), *two = actor(false, 1, 0, 0);
    run(one);
    run(two);
    model_thread(tries_to_meet, NULL);
    model_thread(cancel_it, one);
    model_join();
    model_assert(received[1] == 1);
    if (ended < 2) run(actor(true, 1, 2, 0));
    end();
}

/* Who waits for the end is told, or was cancelled before. */
static void end_is_awaited(void)
{
    begin(WEFT_CHAN_BOUNDED, 1);
    struct actor *one = actor_of(AWAITS_END, false, 0, 0, 1);
    run(one);
    model_thread(cancel_it, one);
    model_thread(close_it, NULL);
    model_thread(run_it, actor_of(AWAITS_END, false, 0, 0, 0));
    end();
}

/* It wants both places, and one is taken; another waits behind it. */
static void two_are_reserved(void)
{
    begin(WEFT_CHAN_BOUNDED, 2);
    run(actor(true, 1, 1, 0));
    struct actor *wants_two = actor_of(RESERVES, false, 0, 2, 1);
    run(wants_two);
    run(actor(true, 1, 3, 0)); /* there is a place, but nobody passes */
    model_assert(ended == 1);
    model_thread(run_it, actor(false, 1, 0, 0));
    model_thread(cancel_it, wants_two);
    model_join();
    model_assert(sent[3] == 1);
    end();
}

static const struct model_case cases[] = {
    {.name = "chan: a message left for one that gives up",
     .run = hand_is_cancelled,
     .unbounded = true},
    {.name = "chan: the end is awaited", .run = end_is_awaited, .preemptions = 2},
    {.name = "chan: two places are reserved at once", .run = two_are_reserved, .preemptions = 3},
    {.name = "chan: a rendezvous is freed by who received",
     .run = rendezvous_is_freed,
     .preemptions = 3},
    {.name = "chan: the last permit is dropped", .run = last_permit_is_dropped, .preemptions = 2},
    {.name = "mutant: a close that tells nobody",
     .run = end_is_awaited,
     .mutant = CLOSE_TELLS_NO_WAITER,
     .must_fail = true},
    {.name = "mutant: a message left for one that gives up is lost",
     .run = hand_is_cancelled,
     .mutant = HANDED_RECEIVER_SWALLOWS,
     .must_fail = true},
    {.name = "chan: a cancelled receiver passes its turn on",
     .run = receiver_is_cancelled,
     .preemptions = 3},
    {.name = "chan: a cancelled sender leaves its place",
     .run = sender_is_cancelled,
     .preemptions = 3},
    {.name = "chan: an offer is taken or withdrawn", .run = offer_is_cancelled, .preemptions = 3},
    {.name = "chan: closed while it is used", .run = closes, .preemptions = 2},
    {.name = "chan: a oneshot is freed by who received", .run = oneshot_is_freed, .preemptions = 3},
    {.name = "chan: so is a bounded one", .run = bounded_is_freed, .preemptions = 3},
    {.name = "mutant: a cancelled receiver keeps its turn",
     .run = receiver_is_cancelled,
     .mutant = RECEIVER_SWALLOWS_ITS_TURN,
     .must_fail = true},
    {.name = "mutant: a cancelled sender keeps its place",
     .run = sender_is_cancelled,
     .mutant = SENDER_SWALLOWS_ITS_TURN,
     .must_fail = true},
    {.name = "mutant: a receive that looks for no sender",
     .run = sender_is_cancelled,
     .mutant = RECEIVE_ADMITS_NOBODY,
     .must_fail = true},
    {.name = "mutant: freed while the sender leaves",
     .run = bounded_is_freed,
     .mutant = FREE_TAKES_NO_LOCK,
     .must_fail = true},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
