/* SPDX-License-Identifier: MIT
 *
 * A lock that belongs to somebody, proven: one holder at a time, whose writes the next one sees, whether the owner comes by its record or others by the word; whether it
 * is given away, taken back, given to another meanwhile; and its memory may be freed by who has taken it back.
 */
#define WEFT_MODEL_REAL_LOCK
#define WEFT__LOCK_LOOKS 0
#define WEFT__LOCK_SPINS                                                                           \
    0 /* a spinning model thread waits for a write, and would never come to sleep */
#include "sys/membarrier.h"

enum {
    HONEST,
    TAKES_BACK_WITHOUT_BARRIER,
    TAKES_BACK_WITHOUT_WAITING,
    OWNER_LOOKS_FIRST_ONLY, /* it marks what it holds, and does not look again */
    GIVEN_BEHIND_THE_DROP,  /* the owner is written when the word is free again */
    MARK_IN_THE_LOCK,       /* one mark for all owners: a late one wipes out another's */
};

#undef weft__membarrier
#define weft__membarrier() (model_mutant == TAKES_BACK_WITHOUT_BARRIER ? 0 : model_membarrier())

#include "sys/bias.c"
#include "sys/lock.c"

enum { OUTER, INNER };

static struct weft__lock *lock;
static int *guarded;
static _Atomic uint32_t midst;
static bool by_mark[3]; /* the twin that marks: how each number holds it */

/* ---- broken twins ---- */

static void take_back_at_once(void)
{
    weft__lock_take_brief(lock);
    if (load_relaxed(&lock->owner) == 0) return;
    store_relaxed(&lock->owner, 0);
    (void)weft__membarrier();
}

static bool take_own_blindly(uint16_t number)
{
    if (load_relaxed(&lock->owner) != number) return false;
    store_relaxed(&weft__bias_records[number].holds[OUTER], lock);
    return true;
}

/* One record for all of them, as if it were a mark in the lock. */
static bool take_own_marking(uint16_t number)
{
    const void *_Atomic *holds = &weft__bias_records[0].holds[OUTER];

    if (number == 0 || load_relaxed(&lock->owner) != number) return false;
    store_relaxed(holds, lock);
    if (load_relaxed(&lock->owner) == number) return true;
    store_release(holds, NULL);
    return false;
}

static void take_marking(uint16_t number)
{
    by_mark[number] = take_own_marking(number);
    if (by_mark[number]) return;
    weft__lock_take_brief(lock);
    if (load_relaxed(&lock->owner) == 0) return;
    store_relaxed(&lock->owner, 0);
    (void)weft__membarrier();
    while (load_acquire(&weft__bias_records[0].holds[OUTER]) == lock)
        cpu_pause();
}

/* ---- one operation ---- */

static void take(uint16_t number)
{
    if (model_mutant == MARK_IN_THE_LOCK) {
        take_marking(number);
    } else if (model_mutant == OWNER_LOOKS_FIRST_ONLY && number && take_own_blindly(number)) {
        return;
    } else if (model_mutant == TAKES_BACK_WITHOUT_WAITING && load_relaxed(&lock->owner) != number) {
        take_back_at_once();
    } else {
        (void)weft__bias_take(lock, number, OUTER);
    }
}

static bool has_word(uint16_t number)
{
    if (model_mutant == MARK_IN_THE_LOCK) return !by_mark[number];
    return weft__bias_has_word(lock, number, OUTER);
}

static void drop(uint16_t number, bool by_word)
{
    if (model_mutant == MARK_IN_THE_LOCK && by_word) {
        weft__lock_drop_brief(lock);
    } else if (model_mutant == MARK_IN_THE_LOCK) {
        store_release(&weft__bias_records[0].holds[OUTER], NULL);
    } else {
        weft__bias_drop(lock, number, OUTER);
    }
}

/* A barrier may fall into the midst of it. */
static void touch(void)
{
    int before = plain_read(guarded);
    (void)load_relaxed(&midst);
    plain_write(guarded, before + 1);
}

/* `gives`: the lock is this number's from then on. */
static void once(uint16_t number, bool gives)
{
    take(number);
    touch();
    bool by_word = has_word(number);
    if (gives && by_word && model_mutant != GIVEN_BEHIND_THE_DROP) weft__bias_give(lock, number);
    drop(number, by_word);
    if (gives && by_word && model_mutant == GIVEN_BEHIND_THE_DROP) weft__bias_give(lock, number);
}

/* ---- threads ---- */

static void owner_twice(void *unused)
{
    (void)unused;
    once(1, true);
    once(1, false);
}

static void other(void *unused)
{
    (void)unused;
    once(0, false);
}

static void other_tries(void *unused)
{
    (void)unused;
    if (!weft__bias_try_take_word(lock, OUTER)) return;
    touch();
    drop(0, true);
}

static void next_owner(void *unused)
{
    (void)unused;
    once(2, true);
    once(2, false);
}

static void owner_once(void *unused)
{
    (void)unused;
    once(1, false);
}

static void other_frees(void *unused)
{
    (void)unused;
    take(0);
    bool last = plain_read(guarded) == 1; /* the owner has been, and is on its way out */
    drop(0, true);
    if (!last) return;
    model_free(lock);
    lock = NULL;
}

/* ---- cases ---- */

static void begin(uint16_t owner)
{
    struct weft__bias_row row;

    lock = model_alloc(sizeof(*lock));
    guarded = model_alloc(sizeof(*guarded));
    weft__lock_init(lock, WEFT__RANK_NONE);
    weft__bias_init(lock, &row);
    for (unsigned i = 0; i < 3; i++)
        for (unsigned place = 0; place < WEFT__BIAS_PLACES; place++)
            store_relaxed(&weft__bias_records[i].holds[place], NULL);
    store_relaxed(&barrier, THERE); /* what the kernel said is kept from execution to execution */
    store_relaxed(&lock->owner, owner);
    plain_write(guarded, 0);
}

static void end(int least, int most)
{
    model_join();
    model_assert(plain_read(guarded) >= least);
    model_assert(plain_read(guarded) <= most);
    model_assert(load_relaxed(&lock->word) == 0);
    model_free(lock);
    model_free(guarded);
}

/* It belongs to the first, and the other takes it back. */
static void taken_back(void)
{
    begin(1);
    model_thread(owner_once, NULL);
    model_thread(other, NULL);
    end(2, 2);
}

/* It is given away and taken back, in any order. */
static void given(void)
{
    begin(0);
    model_thread(owner_twice, NULL);
    model_thread(other, NULL);
    end(3, 3);
}

static void tried(void)
{
    begin(0);
    model_thread(owner_twice, NULL);
    model_thread(other_tries, NULL);
    end(2, 3);
}

/* It belongs to one, is taken back and given to the next, while the first is late: and then takes it back. */
static void given_to_another(void)
{
    begin(1);
    model_thread(owner_once, NULL);
    model_thread(next_owner, NULL);
    end(3, 3);
}

static void beside_a_third(void)
{
    begin(1);
    model_thread(owner_once, NULL);
    model_thread(next_owner, NULL);
    model_thread(other, NULL);
    end(4, 4);
}

/* Who has come behind the owner frees the lock: the owner's drop does not touch it. */
static void freed(void)
{
    begin(1);
    model_thread(owner_once, NULL);
    model_thread(other_frees, NULL);
    model_join();
    if (lock) model_free(lock);
    model_free(guarded);
}

/* A number that is freed, and given to another worker, which owns what the first one did. */
static void bears_a_number(void *unused)
{
    (void)unused;
    uint16_t number = weft__bias_number_new();
    if (number == 0) return;
    once(number, false);
    weft__bias_number_free(number);
}
static void numbers(void)
{
    begin(1);
    store_relaxed(&taken[0], ~UINT64_C(2)); /* 1 alone is free */
    store_relaxed(&taken[1], ~UINT64_C(0));
    model_thread(bears_a_number, NULL);
    model_thread(bears_a_number, NULL);
    end(1, 2);
    model_assert(load_relaxed(&taken[0]) == ~UINT64_C(2));
}

static const struct model_case cases[] = {
    {.name = "bias: taken back from its owner",
     .run = taken_back,
     .unbounded = true,
     .weaken = true},
    {.name = "bias: given away and taken back", .run = given, .preemptions = 3},
    {.name = "bias: a try beside its owner", .run = tried, .preemptions = 3},
    {.name = "bias: given to another meanwhile", .run = given_to_another, .preemptions = 3},
    {.name = "bias: the same beside a third",
     .run = beside_a_third,
     .pct_depth = 4,
     .executions_max = 100000},
    {.name = "bias: freed by who comes behind its owner", .run = freed, .unbounded = true},
    {.name = "bias: a number goes from worker to worker",
     .run = numbers,
     .unbounded = true,
     .weaken = true},
    {.name = "mutant: taken back without a barrier",
     .run = taken_back,
     .mutant = TAKES_BACK_WITHOUT_BARRIER,
     .must_fail = true},
    {.name = "mutant: taken back without waiting",
     .run = taken_back,
     .mutant = TAKES_BACK_WITHOUT_WAITING,
     .must_fail = true},
    {.name = "mutant: an owner that does not look again",
     .run = taken_back,
     .mutant = OWNER_LOOKS_FIRST_ONLY,
     .must_fail = true},
    {.name = "mutant: given away behind the drop",
     .run = given,
     .mutant = GIVEN_BEHIND_THE_DROP,
     .must_fail = true},
    {.name = "mutant: a mark that all owners share",
     .run = given_to_another,
     .mutant = MARK_IN_THE_LOCK,
     .must_fail = true},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
