/* SPDX-License-Identifier: MIT
 *
 * The notify, proven: a ring reaches one who waits, or is kept; a cancelled receiver passes it on; one that was told with all
 * others does not; and who is woken may free it.
 */
#include "notify_actors.h"

static const struct model_case cases[] = {
    {.name = "notify: a ring, and one who comes to wait and frees it", .run = ring_against_wait, .unbounded = true},
    {.name = "notify: a ring against a cancel", .run = ring_against_cancel, .unbounded = true},
    {.name = "notify: all are told, in batches, against a cancel", .run = all_against_cancel, .unbounded = true},
    {.name = "mutant: a cancelled receiver keeps the ring", .run = ring_against_cancel, .unbounded = true, .mutant = SWALLOWS_THE_RING, .must_fail = true},
    {.name = "mutant: what was for all is passed on", .run = all_against_cancel, .unbounded = true, .mutant = PASSES_ON_WHAT_WAS_FOR_ALL, .must_fail = true},
    {.name = "mutant: a ring that nobody hears is not kept", .run = ring_against_wait, .unbounded = true, .mutant = RINGS_WITHOUT_KEEPING, .must_fail = true},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
