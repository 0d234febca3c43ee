/* SPDX-License-Identifier: MIT
 *
 * Sends that are handed in together, proven: whoever gives one up, at whatever moment and on
 * whichever thread, is told what was sent, and from then on nobody reads its buffer; one that waits
 * is woken; a close in the middle leaves the kernel without the buffer.
 */
#include "uring_send_cases.h"

static const struct model_case cases[] = {
    CASE("one", one_send, 1),
    CASE("given up", given_up_send, 2),
    CASE("given up while another looks after the port", given_up_robbed, 1),
    CASE("closed", closed_send, 2),
    CASE("no room", full_send, 2),
    CASE("taken back, then another", another_send, 1),
    MUTANT("given up and not taken back", given_up_send, KEEPS_IT_ASKED),
    MUTANT("its answer is dropped", given_up_send, DROPS_ITS_ANSWER),
    MUTANT("taken back and not ready", another_send, STAYS_UNREADY),
    {.name = "mutant: learns what was the case before it looked",
     .run = full_send,
     .pct_depth = 7,
     .executions_max = 1000000,
     .mutant = LEARNS_TOO_LATE,
     .must_fail = true},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
