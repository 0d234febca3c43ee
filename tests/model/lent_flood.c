/* SPDX-License-Identifier: MIT
 *
 * The same as lent_ahead.c while floods begin and end, at any moment: the stream goes over to calls, by the steps of the other backend, and back, under whoever reads and writes it. Bytes come in
 * order, each once; whoever waits is woken; who is given up has taken nothing.
 */
#define FLOODS 1
#include "ahead_cases.h"

static weft_poll reads_and_answers(struct actor *actor, weft_cx *cx)
{
    struct reading *r = (void *)actor->frame;
    while (next_byte[0] < wanted) {
        ssize_t n = 0;
        if (read_poll(r, cx, &n) == WEFT_PENDING) return WEFT_PENDING;
        bool first = next_byte[0] == 0;
        has_read(r, n);
        if (first) actor_begin(actor_new(writes_two, 0));
    }
    one_ends();
    return WEFT_READY;
}

/* What was handed in is under way when the one who reads goes over to calls. */
static void read_and_answered(void)
{
    begin(WEFT__SHAPE_STREAM, 2, 2, 0);
    store_relaxed(&((struct weft__uring *)port.own)->flood, false); /* relaxed: alone */
    worker = 1;
    actor_begin(actor_at(slot, reads_and_answers));
    model_thread(works, NULL);
    model_thread(two_come, (void *)(intptr_t)FIRST_FD);
    model_join();
    model_assert(next_byte[0] == 2);
    model_assert(sent_out == 2);
    worker = 0;
    finish(true);
}

static const struct model_case cases[] = {
    RANDOMISED("by calls: one byte", one_byte),
    RANDOMISED("by calls: three bytes", three_bytes),
    RANDOMISED("by calls: two bytes", two_bytes),
    RANDOMISED("by calls: two bytes by one read", two_bytes_at_once),
    RANDOMISED("by calls: read while it is told", stirred),
    RANDOMISED("by calls: given up", given_up_reader),
    CASE("by calls: a request that ends by itself", ended_request),
    RANDOMISED("by calls: told by another", robbed),
    CASE("by calls: closed", closed_reader),
    CASE("by calls: closed with a byte there", closed_with_a_byte),
    RANDOMISED("by calls: closed, and another opened", reopened),
    {.name = "uring: by calls: read and written, randomised", .run = read_and_written, .pct_depth = 4},
    CASE("by calls: read, and answered", read_and_answered),
    CASE("by calls: its runtime stops", stopped_reader),
    MUTANT("by calls: taken back without a barrier", robbed, TAKES_BACK_WITHOUT_BARRIER),
    MUTANT("by calls: a lesson of a later look", robbed, LOOKS_BEHIND),
    MUTANT("by calls: goes back, and nobody tries", three_bytes, GOES_BACK_SILENTLY),
    {.name = "mutant: by calls: while a send is under way",
     .run = read_and_answered,
     .pct_depth = 4,
     .executions_max = 200000,
     .mutant = WATCHES_ITS_SENDS,
     .must_fail = true,
     .why = "endless loop"}, /* its answer is never taken */
};

int main(int argc, char **argv)
{
    read_poll = reads_by_steps;
    return steps_main(argc, argv, cases, MODEL_COUNT(cases));
}
