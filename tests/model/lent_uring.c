/* SPDX-License-Identifier: MIT
 *
 * Sockets on io_uring while the ring's lock is lent to its worker, or to who reads, closes or looks after the port: what uring.c proves holds all the same.
 */
#define WEFT_MODEL_REAL_BIAS
#include "uring_actors.h"

static const struct model_case cases[] = {
    CASE("lent: three bytes", three_bytes),
    RANDOMISED("lent: one byte", one_byte),
    RANDOMISED("lent: read while it is fetched", stirred),
    RANDOMISED("lent: a request that ends by itself", ended_request),
    RANDOMISED("lent: fetched by another", robbed),
    RANDOMISED("lent: two accepters", two_accepters),
    RANDOMISED("lent: closed", closed_reader),
    RANDOMISED("lent: closed, and another opened", reopened),
    MUTANT("lent: taken back without a barrier", robbed, TAKES_BACK_WITHOUT_BARRIER),
    MUTANT("lent: the same by a close", closed_reader, TAKES_BACK_WITHOUT_BARRIER),
    MUTANT("lent: a last answer without a word", ended_request, LAST_ANSWER_IS_SILENT),
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
