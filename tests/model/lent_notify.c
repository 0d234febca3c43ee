/* SPDX-License-Identifier: MIT
 *
 * The notify while its lock is lent to who rings, or to who waits, and taken back by the other: what notify.c proves holds all the same.
 */
#define WEFT_MODEL_REAL_BIAS
#include "notify_actors.h"

enum { KEEPS_UNDER_ANOTHER_HOLD = TAKES_BACK_WITHOUT_BARRIER + 1 };

/* It looks who waits by its loan, lets go, and then keeps the ring. */
static void rings_in_two_holds(void *arg)
{
    struct notify *n = notify_of(bell);
    uint8_t me = weft__waitlist_me();

    if (!weft__waitlist_try_loan(&n->list, me)) {
        rings(arg);
        return;
    }
    plain_write(&written, 1);
    bool nobody_waits = weft__waitlist_empty(&n->list);
    weft__waitlist_drop(&n->list, me, WEFT__BY_LOAN);
    if (nobody_waits) {
        enum weft__waitlist_way way = weft__waitlist_hold(&n->list, me);
        n->kept = true;
        weft__waitlist_drop(&n->list, me, way);
    } else {
        weft_notify_one(bell);
    }
}

static void ring_by_loan(void)
{
    begin(1, 0);
    lends(&notify_of(bell)->list);
    model_thread(model_mutant == KEEPS_UNDER_ANOTHER_HOLD ? rings_in_two_holds : rings, NULL);
    model_thread(actor_begin, actors[0]);
    model_join();
    model_assert(got == 1);
    end();
}

/* It waits; another reason to poll it comes beside the ring. */
static void nudges(void *arg)
{
    struct actor *actor = arg;
    if (weft__state_claim(&actor->task) == WEFT__STATE_ENQUEUE) actor_run(actor);
    if (weft__state_unref(&actor->task) == WEFT__STATE_FREE) actor_free(actor);
}

static void ring_against_nudge(void)
{
    begin(1, 1);
    frees = true;
    actor_run(actors[0]);
    lends(&notify_of(bell)->list);
    model_thread(rings, NULL);
    model_thread(nudges, actors[0]);
    model_join();
    model_assert(got == 1);
}

/* By the first two rings it is given to a worker, once more if it was taken back. */
static void rings_twice(void *arg)
{
    (void)arg;
    weft_notify_one(bell);
    weft_notify_one(bell);
}

static void given_again(void)
{
    begin(1, 0);
    plain_write(&written, 1);
    lends(&notify_of(bell)->list);
    model_thread(rings_twice, NULL);
    model_thread(actor_begin, actors[0]);
    model_thread(rings_twice, NULL); /* has no number */
    model_join();
    model_assert(got == 1);
    end();
}

static const struct model_case cases[] = {
    {.name = "lent: a ring, and one who comes to wait and frees it",
     .run = ring_against_wait,
     .unbounded = true},
    {.name = "lent: a ring against a poll for no reason",
     .run = ring_against_nudge,
     .unbounded = true},
    {.name = "lent: a ring against a cancel", .run = ring_against_cancel, .unbounded = true},
    {.name = "lent: all are told, in batches, against a cancel",
     .run = all_against_cancel,
     .unbounded = true},
    {.name = "lent: rings in a row, by two",
     .run = given_again,
     .pct_depth = 4,
     .executions_max = 60000},
    {.name = "mutant: taken back without a barrier",
     .run = ring_against_wait,
     .mutant = TAKES_BACK_WITHOUT_BARRIER,
     .must_fail = true},
    {.name = "mutant: the same against a cancel",
     .run = ring_against_cancel,
     .mutant = TAKES_BACK_WITHOUT_BARRIER,
     .must_fail = true},
    {.name = "mutant: looks by its loan, lets go and keeps",
     .run = ring_by_loan,
     .mutant = KEEPS_UNDER_ANOTHER_HOLD,
     .must_fail = true},
    {.name = "mutant: a cancelled receiver keeps the ring",
     .run = ring_against_cancel,
     .mutant = SWALLOWS_THE_RING,
     .must_fail = true},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
