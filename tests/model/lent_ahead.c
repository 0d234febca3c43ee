/* SPDX-License-Identifier: MIT
 *
 * Reads by steps (io/direct.h) of what io_uring fetches ahead, while the slot's lock, and the ring's, are lent to who reads, to another, or to nobody: bytes come in order and
 * wake whoever waits for them, as uring.c proves of the loop; who is given up has taken nothing.
 */
#include "ahead_cases.h"

static const struct model_case cases[] = {
    CASE("ahead: three bytes", three_bytes),
    RANDOMISED("ahead: two bytes", two_bytes),
    RANDOMISED("ahead: two bytes by one read", two_bytes_at_once),
    RANDOMISED("ahead: read while it is fetched", stirred),
    RANDOMISED("ahead: given up", given_up_reader),
    CASE("ahead: a request that ends by itself", ended_request),
    RANDOMISED("ahead: fetched by another", robbed),
    CASE("ahead: closed", closed_reader),
    CASE("ahead: closed with a byte there", closed_with_a_byte),
    RANDOMISED("ahead: closed, and another opened", reopened),
    {.name = "uring: ahead: read and written, randomised", .run = read_and_written, .pct_depth = 4},
    CASE("ahead: its runtime stops", stopped_reader),
    MUTANT("ahead: taken back without a barrier", robbed, TAKES_BACK_WITHOUT_BARRIER),
    MUTANT("ahead: the same by a close", closed_reader, TAKES_BACK_WITHOUT_BARRIER),
    MUTANT("ahead: enters a lock that is not its own", robbed, ENTERS_UNLENT),
    MUTANT("ahead: waits without a look", two_bytes, WAITS_BLINDLY),
    MUTANT("ahead: a lesson of a later look", robbed, LOOKS_BEHIND),
    MUTANT("ahead: waits at once, and has asked for nothing", two_bytes, BEGINS_UNARMED),
    MUTANT("ahead: the same behind a try", one_byte, WAITS_UNARMED),
    MUTANT("ahead: the last one leaves it to nobody", closed_with_a_byte, DISPOSES_NOT),
    MUTANT("ahead: what is kept, then what is asked", stirred, KEPT_BEFORE_ASKED),
    MUTANT("ahead: a last answer without a word", ended_request, LAST_ANSWER_IS_SILENT),
};

int main(int argc, char **argv)
{
    read_poll = reads_by_steps;
    return steps_main(argc, argv, cases, MODEL_COUNT(cases));
}
