/* SPDX-License-Identifier: MIT
 *
 * Sockets on io_uring, proven: a request that ends, for whatever reason and at whatever moment,
 * leaves nobody asleep upon what has come; bytes come in the order in which they were sent, by
 * whichever way each was read; what was accepted for one is not forgotten by another; a slot is not
 * another connection's while the kernel has a request of it.
 */
#include "uring_actors.h"

static const struct model_case cases[] = {
    CASE("one byte", one_byte),
    CASE("three bytes", three_bytes),
    RANDOMISED("read while it is fetched", stirred),
    CASE("a request that ends by itself", ended_request),
    RANDOMISED("fetched by another", robbed),
    CASE("two accepters", two_accepters),
    CASE("closed", closed_reader),
    CASE("closed, and another opened", reopened),
    MUTANT("a last answer without a word", ended_request, LAST_ANSWER_IS_SILENT),
    MUTANT("ends behind the wake", three_bytes, ENDS_BEHIND_THE_WAKE),
    MUTANT("reads while asked", stirred, READS_WHILE_ASKED),
    MUTANT("what is kept, then what is asked", stirred, KEPT_BEFORE_ASKED),
    MUTANT("looks too late", two_accepters, LOOKS_TOO_LATE),
    MUTANT("lets go blindly", reopened, LETS_GO_BLINDLY),
    MUTANT("fetched, and kept", robbed, KEEPS_THE_ANSWER),
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
