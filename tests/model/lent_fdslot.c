/* SPDX-License-Identifier: MIT
 *
 * One fd's slot while its lock is lent to who reads, or to who closes it or tells of an event: what fdslot.c proves holds all the same, and a slot that begins
 * anew is given back by nobody but whose it is.
 */
#define WEFT_MODEL_REAL_BIAS
#include "fdslot_actors.h"

enum {
    TELLS_BY_THE_WORD = TAKES_BACK_WITHOUT_BARRIER + 1, /* whoever's the lock is */
    RENEWS_ANOTHERS,                                    /* gives back what is not its own */
};

/* ---- broken twins ---- */

static void event_by_the_word(void *arg)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    if (model_mutant != TELLS_BY_THE_WORD) {
        byte_comes(arg);
        return;
    }
    (void)fetch_add_acq_rel(&kernel, 1);
    weft__lock_take_brief(&slot.list.lock);
    say_ready();
    tell(&slot, WEFT__READY_READ, &chain);
    weft__lock_drop_brief(&slot.list.lock);
    weft__wake_chain_push(&chain, &weft__sched);
}

static void renew(void)
{
    struct weft__lock *lock = &slot.list.lock;

    if (model_mutant != RENEWS_ANOTHERS) {
        weft__fdslot_renew(&slot, ROW_BITS);
        return;
    }
    weft__lock_take_brief(lock);
    store_relaxed(&lock->owner, 0);
    weft__lock_drop_brief(lock);
}

/* ---- cases ---- */

static void one_byte_by_the_word(void)
{
    begin(1, 0);
    model_thread(actor_begin, actors[0]);
    model_thread(event_by_the_word, NULL);
    model_join();
    model_assert(got == 1);
    finish();
}

/* It begins anew beside late events of the last generation, while its lock is theirs who bring them, or is given to them. */
static void begins_anew(void *arg)
{
    (void)arg;
    renew();
    weft__fdslot_open(&slot, 2);
    descriptor = model_alloc(sizeof(*descriptor));
    actor_run(actors[0]);
}

static void stale_events(void *arg)
{
    stale_event(arg);
    stale_event(arg);
}

static void reopened_beside(void)
{
    begin(1, 0);
    closes(NULL);
    lends(&slot.list);
    model_thread(begins_anew, NULL);
    model_thread(stale_events, NULL);
    model_join();
    model_assert(got == 0 && given_up == 0);
    (void)fetch_add_acq_rel(&kernel, 1);
    reports(1);
    model_assert(got == 1);
    finish();
}

static const struct model_case cases[] = {
    {.name = "lent: one byte", .run = one_byte, .unbounded = true},
    {.name = "lent: two bytes", .run = two_bytes, .preemptions = 1},
    {.name = "lent: two bytes, at random", .run = two_bytes, .pct_depth = 4},
    {.name = "lent: two bytes, said where it leaves", .run = two_bytes_learnt, .preemptions = 1},
    {.name = "lent: given up", .run = stopped_reader, .preemptions = 2},
    {.name = "lent: closed", .run = closed_reader, .preemptions = 3},
    {.name = "lent: closed beside an event", .run = closed_beside_an_event, .preemptions = 1},
    {.name = "lent: closed beside an event, at random",
     .run = closed_beside_an_event,
     .pct_depth = 4},
    {.name = "lent: begins anew beside late events", .run = reopened_beside, .preemptions = 2},
    {.name = "mutant: taken back without a barrier",
     .run = one_byte,
     .mutant = TAKES_BACK_WITHOUT_BARRIER,
     .must_fail = true},
    {.name = "mutant: the same by a close",
     .run = closed_reader,
     .mutant = TAKES_BACK_WITHOUT_BARRIER,
     .must_fail = true},
    {.name = "mutant: an event by the word alone",
     .run = one_byte_by_the_word,
     .mutant = TELLS_BY_THE_WORD,
     .must_fail = true},
    {.name = "mutant: begins anew, whoever's it is",
     .run = reopened_beside,
     .mutant = RENEWS_ANOTHERS,
     .must_fail = true},
    {.name = "mutant: queues without a look",
     .run = one_byte,
     .mutant = QUEUES_BLINDLY,
     .must_fail = true},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
