/* SPDX-License-Identifier: MIT
 *
 * A channel while its sides are lent, each to who sends or to who receives, and taken back by the other, who may hold one as its owner and the other by the
 * word: what chan.c and chan_end.c prove holds all the same.
 */
#define WEFT_MODEL_REAL_BIAS
#include "lent.h"

enum {
    ONE_PLACE_FOR_BOTH = TAKES_BACK_WITHOUT_BARRIER + 1
}; /* the second mark wipes out the first one's */

static inline unsigned outer_place(void)
{
    return model_mutant == ONE_PLACE_FOR_BOTH ? WEFT__BIAS_INNER : WEFT__BIAS_OUTER;
}
#define WEFT__BIAS_OUTER outer_place()

#include "chan_cases.h"
#include "chan_end_cases.h"

static const struct model_case cases[] = {
    {.name = "lent: runs are taken back", .run = runs_are_taken_back, .preemptions = 2},
    {.name = "lent: also of who receives",
     .run = runs_of_receivers_are_taken_back,
     .preemptions = 2},
    {.name = "lent: round a ring of one", .run = capacity_1, .preemptions = 2},
    {.name = "lent: round a ring of two", .run = capacity_2, .preemptions = 2},
    {.name = "lent: a rendezvous", .run = capacity_0, .preemptions = 2},
    {.name = "lent: unbounded, from block to block", .run = blocks, .preemptions = 2},
    {.name = "lent: two senders, one place", .run = two_senders, .preemptions = 1},
    {.name = "lent: two receivers", .run = two_receivers, .preemptions = 1},
    {.name = "lent: a cancelled receiver passes its turn on",
     .run = receiver_is_cancelled,
     .preemptions = 2},
    {.name = "lent: a cancelled sender leaves its place",
     .run = sender_is_cancelled,
     .preemptions = 2},
    {.name = "lent: closed while it is used", .run = closes, .pct_depth = 4},
    {.name = "lent: a oneshot is freed by who received", .run = oneshot_is_freed, .preemptions = 2},
    {.name = "lent: so is a bounded one", .run = bounded_is_freed, .preemptions = 2},
    {.name = "lent: and a rendezvous", .run = rendezvous_is_freed, .preemptions = 2},
    {.name = "mutant: taken back without a barrier",
     .run = capacity_1,
     .mutant = TAKES_BACK_WITHOUT_BARRIER,
     .must_fail = true},
    {.name = "mutant: the same by who frees it",
     .run = bounded_is_freed,
     .mutant = TAKES_BACK_WITHOUT_BARRIER,
     .must_fail = true},
    {.name = "mutant: one place for both sides",
     .run = capacity_1,
     .preemptions = 1,
     .mutant = ONE_PLACE_FOR_BOTH,
     .must_fail = true},
    {.name = "mutant: a receiver looks, lets go and queues",
     .run = capacity_1,
     .mutant = RECEIVER_QUEUES_LATE,
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
