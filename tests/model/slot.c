/* SPDX-License-Identifier: MIT
 *
 * The slot, proven: whatever is put into `next` or dealt to the hand comes out once and whole, by put, take, play or steal; with a
 * membarrier, without one, and with one that is taken away. A hand of one: the places know nothing of each other.
 */
#define WEFT__HAND 1

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

static uint32_t steal_twin(struct weft_task **into)
{
    if (model_mutant == THIEF_WAITS_FOR_NOBODY) {
        fetch_or_relaxed(&slot.thieves, WEFT__SLOT_FOR_GOOD);
        return take_all(&slot, into);
    }
    if (model_mutant == THIEF_LEAVES_NO_COUNT) {
        return has_leave(&slot) ? take_all(&slot, into) : 0;
    }
    fetch_add_relaxed(&slot.thieves, 1);
    (void)weft__membarrier();
    uint32_t count = take_all(&slot, into);
    fetch_sub_release(&slot.thieves, 1);
    return count;
}

static void steal(void)
{
    struct weft_task *stolen[WEFT__SLOT_MOST];
    bool twin = model_mutant == THIEF_WAITS_FOR_NOBODY || model_mutant == THIEF_LEAVES_NO_COUNT ||
                model_mutant == THIEF_LOOKS_FOR_NOBODY;
    uint32_t count = twin ? steal_twin(stolen) : weft__slot_steal(&slot, stolen);
    for (uint32_t i = 0; i < count; i++)
        got(stolen[i]);
}

static struct weft_task *take_blindly(struct weft_task *_Atomic *place)
{
    struct weft_task *t = load_relaxed(place);
    if (!t) return NULL;
    (void)weft__slot_hold(&slot);
    t = load_relaxed(place);
    store_relaxed(place, NULL);
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
    if (model_mutant == OWNER_LOOKS_FOR_NOBODY) return take_blindly(&slot.task);
    if (model_mutant == OWNER_SAYS_IT_AT_ONCE) return take_and_say_it();
    return weft__slot_take(&slot);
}

static struct weft_task *play(void)
{
    if (model_mutant != OWNER_LOOKS_FOR_NOBODY) return weft__slot_play(&slot);
    slot.at = slot.end;
    return take_blindly(&slot.hand[0]);
}

static void deal(size_t i)
{
    struct weft_task *t = fresh(i);
    weft__slot_deal(&slot, &t, 1);
}

/* ---- the test's own words ---- */

static void begin(bool shared)
{
    memset(taken, 0, sizeof(taken));
    for (size_t i = 0; i < TASKS; i++)
        plain_write(&tasks[i].ext, NULL);
    filtered = 0;
    weft__slot_init(&slot, shared);
}

static void end(size_t count)
{
    model_join();
    got(weft__slot_take(&slot));
    got(weft__slot_play(&slot));
    for (size_t i = 0; i < count; i++)
        model_assert(taken[i] == 1);
    model_assert((load_relaxed(&slot.thieves) & ~WEFT__SLOT_FOR_GOOD) == 0);
    model_assert(!load_relaxed(&slot.busy));
}

static void thief(void *arg)
{
    (void)arg;
    steal();
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

static void deals_and_plays(void)
{
    deal(0);
    got(play());
    deal(1);
    got(weft__slot_put(&slot, fresh(2)));
    got(play());
    end(3);
}

static void hand_against_a_thief(void)
{
    begin(false);
    model_thread(thief, NULL);
    deals_and_plays();
}

static void hand_against_two_thieves(void)
{
    begin(false);
    model_thread(thief, NULL);
    model_thread(thief, NULL);
    deal(0);
    got(play());
    deal(1);
    got(play());
    end(2);
}

/* What was dealt before is played, or stolen once the owner has given its word. */
static void hand_taken_away(void)
{
    begin(false);
    filtered = ~0u;
    deal(0);
    model_thread(thief_comes_twice, NULL);
    got(weft__slot_put(&slot, fresh(1)));
    got(weft__slot_put(&slot, fresh(2)));
    got(play());
    end(3);
}

/* An owner that finds nothing in its slot says it as well. */
static void hand_dealt_when_asked(void)
{
    begin(false);
    filtered = ~0u;
    model_thread(thief_comes_twice, NULL);
    if (!weft__slot_is_shared(&slot)) deal(0);
    got(weft__slot_put(&slot, fresh(1)));
    (void)weft__slot_is_shared(&slot);
    got(play());
    bool dealt = plain_read(&tasks[0].ext) == &tasks[0];
    model_join();
    got(weft__slot_take(&slot));
    got(weft__slot_play(&slot));
    model_assert(taken[0] == dealt && taken[1] == 1);
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
    steal();
    model_assert(taken[0] == 0);
    model_assert(!weft__slot_within_reach(&slot));
    got(weft__slot_put(&slot, fresh(1)));
    model_assert(weft__slot_within_reach(&slot));
    steal();
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
    {.name = "slot: a hand against a thief", .run = hand_against_a_thief, .unbounded = true, .weaken = true},
    {.name = "slot: a hand against two thieves", .run = hand_against_two_thieves, .preemptions = 2},
    {.name = "slot: a hand while the membarrier is taken away", .run = hand_taken_away, .preemptions = 3},
    {.name = "slot: a hand, of who asks whether it is shared", .run = hand_dealt_when_asked, .preemptions = 3, .weaken = true},
    {.name = "slot: a task is changed in it against a thief", .run = changed_against_a_thief, .unbounded = true, .weaken = true},
    {.name = "slot: a task is changed in it while the membarrier is taken away", .run = changed_while_shared, .preemptions = 3},
    {.name = "mutant: a thief without a membarrier", .run = against_a_thief, .unbounded = true, .mutant = THIEF_WITHOUT_MEMBARRIER, .must_fail = true},
    {.name = "mutant: a thief does not look for the owner", .run = against_a_thief, .unbounded = true, .mutant = THIEF_LOOKS_FOR_NOBODY, .must_fail = true},
    {.name = "mutant: a thief does not count itself", .run = against_a_thief, .unbounded = true, .mutant = THIEF_LEAVES_NO_COUNT, .must_fail = true},
    {.name = "mutant: a hand, a thief without a membarrier", .run = hand_against_a_thief, .unbounded = true, .mutant = THIEF_WITHOUT_MEMBARRIER, .must_fail = true},
    {.name = "mutant: a hand, a thief does not look for the owner", .run = hand_against_a_thief, .unbounded = true, .mutant = THIEF_LOOKS_FOR_NOBODY, .must_fail = true},
    {.name = "mutant: a hand, the owner does not look for thieves", .run = hand_against_a_thief, .unbounded = true, .mutant = OWNER_LOOKS_FOR_NOBODY, .must_fail = true},
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
