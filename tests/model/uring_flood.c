/* SPDX-License-Identifier: MIT
 *
 * Sockets on io_uring while floods begin and end, at any moment, proven: a stream that was polled is fetched ahead again, or is polled still. Nobody is left asleep upon what has come; bytes
 * keep their order by whichever way each was read; who is closed leaves nothing behind.
 */
#define FLOODS 1
#include "uring_actors.h"

static const struct model_case cases[] = {
    RANDOMISED("flood: one byte", one_byte),
    CASE("flood: three bytes", three_bytes),
    RANDOMISED("flood: read while it is fetched", stirred),
    CASE("flood: a request that ends by itself", ended_request),
    RANDOMISED("flood: fetched by another", robbed),
    CASE("flood: closed", closed_reader),
    CASE("flood: closed, and another opened", reopened),
    MUTANT("flood: a last answer without a word", ended_request, LAST_ANSWER_IS_SILENT),
    MUTANT("flood: goes back, and nobody tries", three_bytes, GOES_BACK_SILENTLY),
    MUTANT("flood: nobody guards a sleeper", three_bytes, SLEEPS_UNGUARDED),
    MUTANT("flood: a guard's answer is another's", robbed, TELLS_NO_WORKER),
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
