/* SPDX-License-Identifier: MIT
 *
 * The `next` slot, proven: whatever is put there comes out once and whole, by put, take or steal; with a membarrier, without one,
 * and with one that is taken away.
 */
#include "sched/slot.h"

#include <errno.h>
#include <string.h>

enum {
    HONEST,
    THIEF_WITHOUT_MEMBARRIER, /* its look at the owner may be older than its count */
    THIEF_LOOKS_FOR_NOBODY,   /* and takes beside the owner */
    THIEF_LEAVES_NO_COUNT,    /* the owner does not see it */
    THIEF_WAITS_FOR_NOBODY,   /* without a membarrier, before the owner has said that it knows */
    OWNER_LOOKS_FOR_NOBODY,   /* and takes by a store beside a thief */
    OWNER_SAYS_IT_AT_ONCE,    /* `shared` for a thief that goes away again */
    OWNER_HOLDS_NOTHING,      /* and writes to a task that a thief may have */
};

static unsigned filtered; /* a set of threads: their membarriers fail */

#undef weft__membarrier
#define weft__membarrier()                                                                         \
    (filtered >> model_self() & 1 ? -ENOSYS                                                        \
     : model_mutant == THIEF_WITHOUT_MEMBARRIER ? 0                                                \
                                                : model_membarrier())
#include "sched/slot.c"

#define TASKS 4
#include "once.h"

static struct weft__slot slot;

/* ---- broken twins ---- */

static struct weft_task *steal_twin(void)
{
    if (model_mutant == THIEF_WAITS_FOR_NOBODY) {
        fetch_or_relaxed(&slot.thieves, WEFT__SLOT_FOR_GOOD);
        return take_from_owner(&slot);
    }
    if (model_mutant == THIEF_LEAVES_NO_COUNT) {
        return has_leave(&slot) ? take_from_owner(&slot) : NULL;
    }
    fetch_add_relaxed(&slot.thieves, 1);
    (void)weft__membarrier();
    struct weft_task *t = take_from_owner(&slot);
    fetch_sub_release(&slot.thieves, 1);
    return t;
}

static struct weft_task *steal(void)
{
    bool twin = model_mutant == THIEF_WAITS_FOR_NOBODY || model_mutant == THIEF_LEAVES_NO_COUNT ||
                model_mutant == THIEF_LOOKS_FOR_NOBODY;
    return twin ? steal_twin() : weft__slot_steal(&slot);
}

static struct weft_task *take_blindly(void)
{
    struct weft_task *t = load_relaxed(&slot.task);
    if (!t) return NULL;
    (void)weft__slot_hold(&slot);
    t = load_relaxed(&slot.task);
    store_relaxed(&slot.task, NULL);
    weft__slot_let_go(&slot);
    return t;
}

static struct weft_task *take_and_say_it(void)
{
    if (load_relaxed(&slot.thieves)) store_release(&slot.shared, true);
    return weft__slot_take(&slot);
}

static struct weft_task *take(void)
{
    if (model_mutant == OWNER_LOOKS_FOR_NOBODY) return take_blindly();
    if (model_mutant == OWNER_SAYS_IT_AT_ONCE) return take_and_say_it();
    return weft__slot_take(&slot);
}

/* ---- the test's own words ---- */

static void begin(bool shared)
{
    memset(taken, 0, sizeof(taken));
    filtered = 0;
    weft__slot_init(&slot, shared);
}

static void end(size_t count)
{
    model_join();
    got(weft__slot_take(&slot));
    for (size_t i = 0; i < count; i++)
        model_assert(taken[i] == 1);
    model_assert((load_relaxed(&slot.thieves) & ~WEFT__SLOT_FOR_GOOD) == 0);
    model_assert(!load_relaxed(&slot.busy));
}

static void thief(void *arg)
{
    (void)arg;
    got(steal());
}

static void thief_comes_twice(void *arg)
{
    thief(arg);
    thief(arg);
}

/* ---- the cases ---- */

static void puts_and_takes(void)
{
    got(weft__slot_put(&slot, fresh(0)));
    got(weft__slot_put(&slot, fresh(1)));
    got(take());
    got(weft__slot_put(&slot, fresh(2)));
    end(3);
}

static void takes_twice(void)
{
    got(weft__slot_put(&slot, fresh(0)));
    got(take());
    got(weft__slot_put(&slot, fresh(1)));
    got(take());
    end(2);
}

static void against_a_thief(void)
{
    begin(false);
    model_thread(thief, NULL);
    puts_and_takes();
}

static void against_two_thieves(void)
{
    begin(false);
    model_thread(thief, NULL);
    model_thread(thief, NULL);
    takes_twice();
}

static void shared(void)
{
    begin(true);
    model_thread(thief, NULL);
    puts_and_takes();
}

static bool hold_if(struct weft_task *t)
{
    if (model_mutant == OWNER_HOLDS_NOTHING) return load_relaxed(&slot.task) == t;
    return weft__slot_hold_if(&slot, t);
}

/* The owner writes to a task that is in the slot, as who detaches a newborn does. A thief sees all of it, or gets another. */
static void changes(size_t i)
{
    if (!hold_if(&tasks[i])) return;
    plain_write(&tasks[i].scope, 1);
    plain_write(&tasks[i].ext, NULL);
    plain_write(&tasks[i].ext, &tasks[i]);
    if (model_mutant != OWNER_HOLDS_NOTHING) weft__slot_let_go(&slot);
}

static void changed_against_a_thief(void)
{
    begin(false);
    model_thread(thief, NULL);
    got(weft__slot_put(&slot, fresh(0)));
    changes(0);
    got(weft__slot_put(&slot, fresh(1)));
    changes(1);
    end(2);
}

static void changed_while_shared(void)
{
    begin(false);
    filtered = ~0u;
    model_thread(thief_comes_twice, NULL);
    got(weft__slot_put(&slot, fresh(0)));
    got(weft__slot_put(&slot, fresh(1)));
    changes(1);
    end(2);
}

/* The first call is answered by an error; what is stolen is stolen by the second, if the owner has seen it. */
static void taken_away(void)
{
    begin(false);
    filtered = ~0u;
    model_thread(thief_comes_twice, NULL);
    puts_and_takes();
}

/* One has it still, for another it is gone. */
static void taken_away_between(void)
{
    begin(false);
    filtered = 1u << 2;
    model_thread(thief, NULL);
    model_thread(thief, NULL);
    takes_twice();
}

/* What a thief is told to be out of reach it does not run after for ever; what it is not told, it gets. */
static void nobody_else_is_there(void)
{
    begin(false);
    got(weft__slot_put(&slot, fresh(0)));
    model_assert(weft__slot_within_reach(&slot));
    filtered = ~0u;
    got(steal());
    model_assert(taken[0] == 0);
    model_assert(!weft__slot_within_reach(&slot));
    got(weft__slot_put(&slot, fresh(1)));
    model_assert(weft__slot_within_reach(&slot));
    got(steal());
    model_assert(taken[1] == 1);
    end(2);
}

static const struct model_case cases[] = {
    {.name = "slot: put and take against a thief", .run = against_a_thief, .unbounded = true, .weaken = true},
    {.name = "slot: put and take against two thieves", .run = against_two_thieves, .preemptions = 2, .weaken = true},
    {.name = "slot: no membarrier", .run = shared, .preemptions = 3, .weaken = true},
    {.name = "slot: the membarrier is taken away", .run = taken_away, .preemptions = 3, .weaken = true},
    {.name = "slot: it is taken away between two thieves", .run = taken_away_between, .preemptions = 2},
    {.name = "slot: within reach, and not", .run = nobody_else_is_there, .unbounded = true},
    {.name = "slot: a task is changed in it against a thief", .run = changed_against_a_thief, .unbounded = true, .weaken = true},
    {.name = "slot: a task is changed in it while the membarrier is taken away", .run = changed_while_shared, .preemptions = 3},
    {.name = "mutant: a thief without a membarrier", .run = against_a_thief, .unbounded = true, .mutant = THIEF_WITHOUT_MEMBARRIER, .must_fail = true},
    {.name = "mutant: a thief does not look for the owner", .run = against_a_thief, .unbounded = true, .mutant = THIEF_LOOKS_FOR_NOBODY, .must_fail = true},
    {.name = "mutant: a thief does not count itself", .run = against_a_thief, .unbounded = true, .mutant = THIEF_LEAVES_NO_COUNT, .must_fail = true},
    {.name = "mutant: a thief does not wait for the owner's word", .run = taken_away, .preemptions = 3, .mutant = THIEF_WAITS_FOR_NOBODY, .must_fail = true},
    {.name = "mutant: the owner does not look for thieves", .run = against_a_thief, .unbounded = true, .mutant = OWNER_LOOKS_FOR_NOBODY, .must_fail = true},
    {.name = "mutant: the owner changes a task that it does not hold", .run = changed_against_a_thief, .unbounded = true, .mutant = OWNER_HOLDS_NOTHING, .must_fail = true},
    {.name = "mutant: a task is changed, a thief without a membarrier", .run = changed_against_a_thief, .unbounded = true, .mutant = THIEF_WITHOUT_MEMBARRIER, .must_fail = true},
    {.name = "mutant: the owner gives its word to a thief that leaves", .run = taken_away_between, .preemptions = 3, .mutant = OWNER_SAYS_IT_AT_ONCE, .must_fail = true},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
