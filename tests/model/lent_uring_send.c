/* SPDX-License-Identifier: MIT
 *
 * Sends that are handed in together while the ring's lock is lent to who sends, or to who gives up, closes or looks after the port: what uring_send.c proves holds all the same.
 */
#define WEFT_MODEL_REAL_BIAS
#include "uring_send_cases.h"

static const struct model_case cases[] = {
    CASE("lent: one", one_send, 1),
    CASE("lent: given up", given_up_send, 1),
    CASE("lent: closed", closed_send, 1),
    CASE("lent: no room", full_send, 1),
    CASE("lent: taken back, then another", another_send, 1),
    CASE("lent: given up while another looks after the port", given_up_robbed, 1),
    MUTANT("lent: taken back without a barrier", one_send, TAKES_BACK_WITHOUT_BARRIER),
    MUTANT("lent: the same by who gives up", given_up_send, TAKES_BACK_WITHOUT_BARRIER),
    MUTANT("lent: its answer is dropped", given_up_send, DROPS_ITS_ANSWER),
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
