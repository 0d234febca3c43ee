/* SPDX-License-Identifier: MIT
 *
 * Foreign wakers, proven: each wake is followed by a call that sees what was written before it, calls may be fewer than wakes, and the waker is freed once,
 * after the last call.
 */
#include "task/state.c"
#include "task/waker.c"

struct bell {
    struct weft__foreign foreign;
    _Atomic unsigned seen;          /* messages that some call has seen */
};

static struct bell *bell;
static _Atomic unsigned messages;   /* written relaxed: the wake has to carry it */
static unsigned calls;
static unsigned frees;

/* ---- broken twins ---- */

enum { HONEST, CLAIM_TRUSTS_A_LOAD, CALLS_BEFORE_IT_CLEARS, NO_REFERENCE };

static void rung(struct weft__foreign *foreign)
{
    struct bell *b = (struct bell *)(void *)foreign;
    unsigned now = load_relaxed(&messages);
    unsigned seen = load_relaxed(&b->seen);
    while (seen < now && !cas_relaxed(&b->seen, &seen, now)) {
    }
    calls++;
}

static void freed(struct weft__foreign *foreign)
{
    struct bell *b = (struct bell *)(void *)foreign;
    frees++;
    model_free(b);
}

static const struct weft__foreign_ops ops = {.wake = rung, .free = freed};

static bool claim_by_load(void)
{
    if (load_acquire(&bell->foreign.state) & FOREIGN_CLAIMED) return false;
    return foreign_claim(&bell->foreign);
}

static void deliver_late(void)
{
    rung(&bell->foreign);
    (void)fetch_and_acq_rel(&bell->foreign.state, ~FOREIGN_CLAIMED);
    weft__foreign_unref(&bell->foreign);
}

static bool claim_without_reference(void)
{
    return !(fetch_or_acq_rel(&bell->foreign.state, FOREIGN_CLAIMED) & FOREIGN_CLAIMED);
}

static void deliver_without_reference(void)
{
    (void)fetch_and_acq_rel(&bell->foreign.state, ~FOREIGN_CLAIMED);
    rung(&bell->foreign);
}

static void wake(void)
{
    switch (model_mutant) {
    case CLAIM_TRUSTS_A_LOAD:
        if (claim_by_load()) foreign_deliver(&bell->foreign);
        break;
    case CALLS_BEFORE_IT_CLEARS:
        if (foreign_claim(&bell->foreign)) deliver_late();
        break;
    case NO_REFERENCE:
        if (claim_without_reference()) {
            weft__foreign_unref(&bell->foreign); /* the waiter lets go: its wake is under way */
            deliver_without_reference();
            return;
        }
        break;
    default: {
        struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
        weft__wake_chain_claim(&chain, weft__waker_of_foreign(&bell->foreign));
        weft__wake_chain_push(&chain, NULL);
    }
    }
    weft__foreign_unref(&bell->foreign);
}

/* Each holder has a reference, as the waiter that the waker belongs to has. */
static void holder(void *arg)
{
    (void)arg;
    fetch_add_relaxed(&messages, 1);
    wake();
}

static void begin(void)
{
    bell = model_alloc(sizeof(*bell));
    store_relaxed(&bell->seen, 0);
    store_relaxed(&messages, 0);
    calls = 0;
    frees = 0;
    weft__foreign_init(&bell->foreign, &ops);
    weft__foreign_ref(&bell->foreign);
    weft__foreign_ref(&bell->foreign);
}

static void two_wakes(void)
{
    begin();
    model_thread(holder, NULL);
    model_thread(holder, NULL);
    model_join();
    model_assert(load_relaxed(&bell->seen) == 2);
    model_assert(calls >= 1);
    weft__foreign_unref(&bell->foreign);
    model_assert(frees == 1);
}

static void owner_leaves(void *arg)
{
    (void)arg;
    weft__foreign_unref(&bell->foreign);
}

static void owner_leaves_meanwhile(void)
{
    begin();
    model_thread(holder, NULL);
    model_thread(holder, NULL);
    model_thread(owner_leaves, NULL);
    model_join();
    model_assert(frees == 1);
}

static const struct model_case cases[] = {
    {.name = "waker: two wakes of a foreign waker", .run = two_wakes, .unbounded = true, .weaken = true},
    {.name = "waker: its owner leaves meanwhile", .run = owner_leaves_meanwhile, .preemptions = 4, .weaken = true},
    {.name = "mutant: claim returns early on a load", .run = two_wakes, .unbounded = true, .mutant = CLAIM_TRUSTS_A_LOAD, .must_fail = true},
    {.name = "mutant: calls before it clears the claim", .run = two_wakes, .unbounded = true, .mutant = CALLS_BEFORE_IT_CLEARS, .must_fail = true},
    {.name = "mutant: delivers without a reference", .run = owner_leaves_meanwhile, .preemptions = 3, .mutant = NO_REFERENCE, .must_fail = true},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
