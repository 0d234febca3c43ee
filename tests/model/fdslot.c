/* SPDX-License-Identifier: MIT
 *
 * One fd's slot and the operations on it, proven: no edge is cleared away that nobody has tried, no waiter sleeps upon its data, a close answers who waits
 * and closes the descriptor when nobody uses it, an event of the last generation tells nobody anything.
 */
#include "fdslot_actors.h"

static void reopened(void)
{
    begin(1, 0);
    closes(NULL);
    weft__fdslot_open(&slot, 2);
    descriptor = model_alloc(sizeof(*descriptor));
    model_thread(actor_begin, actors[0]);
    model_thread(stale_event, NULL);
    model_join();
    model_assert(got == 0 && given_up == 0);
    model_assert(in_vain == 1); /* its first try; nobody has told it of another's byte */
    (void)fetch_add_acq_rel(&kernel, 1);
    reports(1);
    model_assert(got == 1);
    finish();
}

static const struct model_case cases[] = {
    {.name = "fdslot: one byte", .run = one_byte, .unbounded = true},
    {.name = "fdslot: two bytes", .run = two_bytes, .preemptions = 2},
    {.name = "fdslot: two bytes, said where it leaves", .run = two_bytes_learnt, .preemptions = 2},
    {.name = "fdslot: given up", .run = stopped_reader, .preemptions = 3},
    {.name = "fdslot: closed", .run = closed_reader, .unbounded = true},
    {.name = "fdslot: closed beside an event", .run = closed_beside_an_event, .preemptions = 2},
    {.name = "fdslot: an event of the last generation", .run = reopened, .unbounded = true},
    {.name = "mutant: clears what came since",
     .run = one_byte,
     .unbounded = true,
     .mutant = CLEARS_BLINDLY,
     .must_fail = true},
    {.name = "mutant: a lesson of a later look",
     .run = two_bytes_learnt,
     .preemptions = 2,
     .mutant = LOOKS_BEHIND_THE_TRY,
     .must_fail = true},
    {.name = "mutant: an event without a tick",
     .run = two_bytes,
     .preemptions = 3,
     .mutant = EVENT_WITHOUT_TICK,
     .must_fail = true},
    {.name = "mutant: wakes, then says why",
     .run = one_byte,
     .unbounded = true,
     .mutant = WAKES_TOO_EARLY,
     .must_fail = true},
    {.name = "mutant: queues without a look",
     .run = one_byte,
     .unbounded = true,
     .mutant = QUEUES_BLINDLY,
     .must_fail = true},
    {.name = "mutant: closes under a call",
     .run = closed_reader,
     .unbounded = true,
     .mutant = CLOSES_AT_ONCE,
     .must_fail = true},
    {.name = "mutant: an event is an event",
     .run = reopened,
     .unbounded = true,
     .mutant = FORGETS_GENERATIONS,
     .must_fail = true},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
