/* SPDX-License-Identifier: MIT
 *
 * A lock that belongs to somebody, proven, lent or kept: one holder at a time, whose writes the next one sees, whether the owner comes by its mark or others by the word;
 * whether it is given away, taken back, given to another meanwhile; and its memory may be freed by who has taken it back.
 */
#define WEFT_MODEL_REAL_BIAS
#define WEFT__BIAS_KEPT_BITS 0 /* two entries in a row, once it was taken back */
#include "sys/membarrier.h"

enum {
    HONEST,
    TAKES_BACK_WITHOUT_BARRIER,
    TAKES_BACK_WITHOUT_WAITING,
    TAKES_BACK_WITHOUT_THE_WORD, /* and then takes that: a second one finds no owner, and does not wait */
    OWNER_LOOKS_FIRST_ONLY, /* it marks what it holds, and does not look again */
    GIVEN_BEHIND_THE_DROP,  /* the owner is written when the word is free again */
    MARK_IN_THE_LOCK,       /* lent, with one mark for all owners: a late one wipes out another's */
};

#undef weft__membarrier
#define weft__membarrier() (model_mutant == TAKES_BACK_WITHOUT_BARRIER ? 0 : model_membarrier())

#include "sys/bias.c"

enum { OUTER };

static struct weft__bias *b; /* a lent one is its `lock` alone */
static int *guarded;
static _Atomic uint32_t midst;
static bool by_mark[3]; /* the twin that marks: how each number holds it */

/* ---- the protocol's broken twins ---- */

/* By its word; whoever's it was. */
static void take_back_at_once(void)
{
    weft__lock_take_brief(&b->lock);
    if (load_relaxed(&b->lock.owner) == 0) return;
    store_relaxed(&b->lock.owner, 0);
    (void)weft__membarrier();
}

static void take_back_early(weft__bias_mark *mark)
{
    if (load_relaxed(&b->lock.owner) != 0) weft__bias_take_back(&b->lock, mark, 1);
    weft__lock_take_brief(&b->lock);
}

static bool take_own_blindly(uint8_t number, weft__bias_mark *mark)
{
    if (load_relaxed(&b->lock.owner) != number) return false;
    store_relaxed(mark, &b->lock);
    return true;
}

static void take_marking(uint8_t number)
{
    by_mark[number] = number != 0 && load_relaxed(&b->lock.owner) == number &&
                      weft__bias_take_own(&b->lock, number, &b->mark);
    if (by_mark[number]) return;
    weft__lock_take_brief(&b->lock);
    if (load_relaxed(&b->lock.owner) != 0) weft__bias_take_back(&b->lock, &b->mark, 1);
}

/* ---- lent: one operation ---- */

static void take(uint8_t number)
{
    bool is_owner = load_relaxed(&b->lock.owner) == number;

    if (model_mutant == MARK_IN_THE_LOCK) {
        take_marking(number);
    } else if (model_mutant == OWNER_LOOKS_FIRST_ONLY && number &&
               take_own_blindly(number, weft__bias_mark_of(number, OUTER))) {
        return;
    } else if (model_mutant == TAKES_BACK_WITHOUT_WAITING && !is_owner) {
        take_back_at_once();
    } else if (model_mutant == TAKES_BACK_WITHOUT_THE_WORD && !is_owner) {
        take_back_early(weft__bias_mark_of(1, OUTER));
    } else {
        (void)weft__bias_take(&b->lock, number, OUTER);
    }
}

static bool has_word(uint8_t number)
{
    if (model_mutant == MARK_IN_THE_LOCK) return !by_mark[number];
    return weft__bias_has_word(&b->lock, number, OUTER);
}

static void drop(uint8_t number, bool by_word)
{
    if (model_mutant == MARK_IN_THE_LOCK && by_word) {
        weft__lock_drop_brief(&b->lock);
    } else if (model_mutant == MARK_IN_THE_LOCK) {
        weft__bias_drop_own(&b->lock, &b->mark);
    } else {
        weft__bias_drop(&b->lock, number, OUTER);
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
static void once(uint8_t number, bool gives)
{
    take(number);
    touch();
    bool by_word = has_word(number);
    if (gives && by_word && model_mutant != GIVEN_BEHIND_THE_DROP)
        weft__bias_give(&b->lock, number);
    drop(number, by_word);
    if (gives && by_word && model_mutant == GIVEN_BEHIND_THE_DROP)
        weft__bias_give(&b->lock, number);
}

/* ---- lent: threads ---- */

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
    if (!weft__bias_try_take_word(&b->lock)) return;
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

/* And then takes another lock that is its own, at the same place: its mark names that one from then on. */
static void owner_goes_on(void *next)
{
    struct weft__lock *lock = next;
    owner_once(NULL);
    (void)weft__bias_take(lock, 1, OUTER);
    weft__bias_drop(lock, 1, OUTER);
}

static void other_frees(void *unused)
{
    (void)unused;
    take(0);
    bool last = plain_read(guarded) == 1; /* the owner has been, and is on its way out */
    drop(0, true);
    if (!last) return;
    model_free(b);
    b = NULL;
}

/* ---- lent: cases ---- */

static void begin(void)
{
    b = model_alloc(sizeof(*b));
    guarded = model_alloc(sizeof(*guarded));
    weft__bias_init(b, WEFT__RANK_NONE);
    for (uint8_t i = 0; i < 3; i++)
        store_relaxed(weft__bias_mark_of(i, OUTER), NULL);
    store_relaxed(&barrier, THERE); /* what the kernel said is kept from execution to execution */
    plain_write(guarded, 0);
}

static void lent_to(uint8_t owner)
{
    begin();
    store_relaxed(&b->lock.owner, owner);
}

static void end(int least, int most)
{
    model_join();
    model_assert(plain_read(guarded) >= least);
    model_assert(plain_read(guarded) <= most);
    model_assert(load_relaxed(&b->mark) == NULL);
    model_free(b);
    model_free(guarded);
}

/* It belongs to the first, and the other takes it back. */
static void taken_back(void)
{
    lent_to(1);
    model_thread(owner_once, NULL);
    model_thread(other, NULL);
    end(2, 2);
}

static void taken_back_behind_another(void)
{
    struct weft__bias *next = model_alloc(sizeof(*next));
    lent_to(1);
    weft__bias_init(next, WEFT__RANK_NONE);
    store_relaxed(&next->lock.owner, 1);
    model_thread(owner_goes_on, &next->lock);
    model_thread(other, NULL);
    end(2, 2);
    model_free(next);
}

static void taken_back_by_one_of_two(void)
{
    lent_to(1);
    model_thread(owner_once, NULL);
    model_thread(other, NULL);
    model_thread(other, NULL);
    end(3, 3);
}

/* It is given away and taken back, in any order. */
static void given(void)
{
    lent_to(0);
    model_thread(owner_twice, NULL);
    model_thread(other, NULL);
    end(3, 3);
}

static void tried(void)
{
    lent_to(0);
    model_thread(owner_twice, NULL);
    model_thread(other_tries, NULL);
    end(2, 3);
}

/* It belongs to one, is taken back and given to the next, while the first is late: and then takes it back. */
static void given_to_another(void)
{
    lent_to(1);
    model_thread(owner_once, NULL);
    model_thread(next_owner, NULL);
    end(3, 3);
}

static void beside_a_third(void)
{
    lent_to(1);
    model_thread(owner_once, NULL);
    model_thread(next_owner, NULL);
    model_thread(other, NULL);
    end(4, 4);
}

/* Who has come behind the owner frees the lock: the owner's drop does not touch it. */
static void freed(void)
{
    lent_to(1);
    model_thread(owner_once, NULL);
    model_thread(other_frees, NULL);
    model_join();
    if (b) model_free(b);
    model_free(guarded);
}

/* A number that is freed, and given to another worker, which owns what the first one did. */
static void bears_a_number(void *unused)
{
    (void)unused;
    uint8_t number = weft__bias_number_new();
    if (number == 0) return;
    once(number, false);
    weft__bias_number_free(number);
}

static void numbers(void)
{
    lent_to(1);
    store_relaxed(&numbers_taken[0], ~UINT64_C(2)); /* 1 alone is free */
    store_relaxed(&numbers_taken[1], ~UINT64_C(0));
    model_thread(bears_a_number, NULL);
    model_thread(bears_a_number, NULL);
    end(1, 2);
    model_assert(load_relaxed(&numbers_taken[0]) == ~UINT64_C(2));
}

/* ---- kept: one entry ---- */

static _Atomic int favoured; /* entries of owners, by favour */

static bool enter(enum weft__door door)
{
    bool other_comes = door == WEFT__BY_ANY;

    if (model_mutant == TAKES_BACK_WITHOUT_WAITING && other_comes) {
        take_back_at_once();
    } else if (model_mutant == TAKES_BACK_WITHOUT_THE_WORD && other_comes) {
        take_back_early(&b->mark);
    } else if (model_mutant == OWNER_LOOKS_FIRST_ONLY && !other_comes) {
        if (take_own_blindly(WEFT__BIAS_KEEPER, &b->mark)) return true;
        weft__bias_enter_slow(b, door);
    } else {
        return weft__bias_enter(b, door);
    }
    return false;
}

static void leave(bool by_favour)
{
    weft__bias_leave(b, by_favour);
    /* without the lock: another may just have taken it back, and be in */
    if (model_mutant == GIVEN_BEHIND_THE_DROP && !by_favour)
        store_relaxed(&b->lock.owner, WEFT__BIAS_KEEPER);
}

static void add_one(enum weft__door door)
{
    bool by_favour = enter(door);
    touch();
    leave(by_favour);
    if (by_favour) (void)fetch_add_relaxed(&favoured, 1);
}

/* ---- kept: threads and cases ---- */

static void owner_adds(void *times)
{
    for (int i = 0; i < *(int *)times; i++)
        add_one(WEFT__BY_OWNER);
}

static void other_adds(void *times)
{
    for (int i = 0; i < *(int *)times; i++)
        add_one(WEFT__BY_ANY);
}

static void kept(void)
{
    begin();
    weft__bias_favour(b);
    store_relaxed(&favoured, 0);
}

static void meet(int owners, int others, int each)
{
    kept();
    model_thread(owner_adds, &owners);
    for (int i = 0; i < others; i++)
        model_thread(other_adds, &each);
    end(owners + others * each, owners + others * each);
}

static void owner_and_one(void)
{
    meet(2, 1, 1);
}

static void owner_and_two(void)
{
    meet(2, 2, 1);
}

/* It has come twice in a row since, and is favoured again; and that is taken back once more. */
static void favoured_again(void)
{
    meet(4, 1, 2);
}

/* Whoever comes last finds the other's writes, also where nobody has ever met. */
static void alone(void)
{
    kept();
    add_one(WEFT__BY_OWNER);
    model_assert(load_relaxed(&favoured) == 1);
    add_one(WEFT__BY_ANY);
    add_one(WEFT__BY_OWNER);
    add_one(WEFT__BY_OWNER);
    model_assert(load_relaxed(&favoured) == 1);
    add_one(WEFT__BY_OWNER);
    model_assert(load_relaxed(&favoured) == 2);
    end(5, 5);
}

/* The ownership is handed on, with an order of its own, while another comes. */
static _Atomic bool handed;

static void first_owner(void *unused)
{
    (void)unused;
    add_one(WEFT__BY_OWNER);
    store_release(&handed, true);
}

static void second_owner(void *unused)
{
    (void)unused;
    if (load_acquire(&handed)) add_one(WEFT__BY_OWNER);
}

static void owners_in_turn(void)
{
    static int one = 1;
    kept();
    store_relaxed(&handed, false);
    model_thread(first_owner, NULL);
    model_thread(second_owner, NULL);
    model_thread(other_adds, &one);
    end(2, 3);
}

static void favours_nobody(void)
{
    static int one = 1;
    begin();
    model_thread(owner_adds, &one);
    model_thread(owner_adds, &one);
    model_thread(other_adds, &one);
    end(3, 3);
}

#define MUTANT(what, case_, ...)                                                                   \
    {.name = "mutant: " what, .run = case_, .must_fail = true, .mutant = __VA_ARGS__}

static const struct model_case cases[] = {
    {.name = "lent: taken back from its owner",
     .run = taken_back,
     .unbounded = true,
     .weaken = true},
    {.name = "lent: taken back from an owner that goes on to the next",
     .run = taken_back_behind_another,
     .unbounded = true,
     .weaken = true},
    {.name = "lent: two others at once", .run = taken_back_by_one_of_two, .preemptions = 3},
    {.name = "lent: given away and taken back", .run = given, .unbounded = true},
    {.name = "lent: a try beside its owner", .run = tried, .unbounded = true},
    {.name = "lent: given to another meanwhile", .run = given_to_another, .preemptions = 4},
    {.name = "lent: the same beside a third",
     .run = beside_a_third,
     .pct_depth = 4,
     .executions_max = 100000},
    {.name = "lent: freed by who comes behind its owner", .run = freed, .unbounded = true},
    {.name = "lent: a number goes from worker to worker",
     .run = numbers,
     .unbounded = true,
     .weaken = true},
    {.name = "kept: the owner, and one other",
     .run = owner_and_one,
     .unbounded = true,
     .weaken = true},
    {.name = "kept: the owner, and two others", .run = owner_and_two, .preemptions = 3},
    {.name = "kept: favoured again", .run = favoured_again, .preemptions = 3, .weaken = true},
    {.name = "kept: one after another", .run = alone, .unbounded = true},
    {.name = "kept: owners in turn", .run = owners_in_turn, .preemptions = 3},
    {.name = "kept: one that favours nobody has one door", .run = favours_nobody, .preemptions = 3},
    MUTANT("lent, taken back without a barrier", taken_back, TAKES_BACK_WITHOUT_BARRIER),
    MUTANT("lent, taken back without waiting", taken_back, TAKES_BACK_WITHOUT_WAITING),
    MUTANT("lent, taken back without the word", taken_back_by_one_of_two,
           TAKES_BACK_WITHOUT_THE_WORD),
    MUTANT("lent, an owner that does not look again", taken_back, OWNER_LOOKS_FIRST_ONLY),
    MUTANT("lent, given away behind the drop", given, GIVEN_BEHIND_THE_DROP),
    MUTANT("lent, a mark that all owners share", given_to_another, MARK_IN_THE_LOCK,
           .preemptions = 3),
    MUTANT("kept, taken back without a barrier", owner_and_one, TAKES_BACK_WITHOUT_BARRIER),
    MUTANT("kept, taken back without waiting", owner_and_one, TAKES_BACK_WITHOUT_WAITING),
    MUTANT("kept, taken back without the word", owner_and_two, TAKES_BACK_WITHOUT_THE_WORD),
    MUTANT("kept, an owner that does not look again", owner_and_one, OWNER_LOOKS_FIRST_ONLY),
    MUTANT("kept, given behind the drop", favoured_again, GIVEN_BEHIND_THE_DROP),
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
