/* SPDX-License-Identifier: MIT
 *
 * The biased lock, proven: one holder at a time, whose writes the next one sees, whichever door they come by; favour is put out, and given again.
 */
#define WEFT_MODEL_REAL_BIASED
#define WEFT__BIASED_SPINS 0 /* a spinning model thread waits for a write, and would never come to sleep */
#define WEFT__BIASED_AGAIN 2
#include "sys/biased.c"

static struct weft__biased lock;
static int guarded;
static _Atomic int favoured; /* entries of owners, by favour */

/* ---- broken twins ---- */

enum { HONEST, LOOKS_ONCE, FENCES_NOTHING, PUTS_OUT_WITHOUT_LOCK, LOOKS_BEFORE_IT_SAYS, FAVOURS_AS_IT_LEAVES };

/* Does not wait for the owner. */
static bool enter_hasty(void)
{
    weft__lock_take_brief(&lock.lock);
    store_relaxed(&lock.favours, 0);
    (void)weft__membarrier();
    (void)load_acquire(&lock.inside);
    return false;
}

/* Two that come at once: the second finds no favour, and does not wait. */
static bool enter_early(void)
{
    if (load_relaxed(&lock.favours)) {
        store_relaxed(&lock.favours, 0);
        (void)weft__membarrier();
        wait_until_outside(&lock);
    }
    weft__lock_take_brief(&lock.lock);
    return false;
}

/* The owner has no fence of its own. */
static bool enter_unfenced(void)
{
    weft__lock_take_brief(&lock.lock);
    store_relaxed(&lock.favours, 0);
    wait_until_outside(&lock);
    return false;
}

static bool enter_looking_first(void)
{
    if (load_relaxed(&lock.favours)) {
        store_relaxed(&lock.inside, 1);
        fence_light();
        return true;
    }
    weft__biased_enter_slow(&lock, WEFT__BY_OWNER);
    return false;
}

static bool enter(enum weft__door door)
{
    if (model_mutant == LOOKS_ONCE && door == WEFT__BY_ANY) return enter_hasty();
    if (model_mutant == FENCES_NOTHING && door == WEFT__BY_ANY) return enter_unfenced();
    if (model_mutant == PUTS_OUT_WITHOUT_LOCK && door == WEFT__BY_ANY) return enter_early();
    if (model_mutant == LOOKS_BEFORE_IT_SAYS && door == WEFT__BY_OWNER) return enter_looking_first();
    return weft__biased_enter(&lock, door);
}

static void leave(bool by_favour)
{
    weft__biased_leave(&lock, by_favour);
    /* without the lock: another may just have put it out, and be in */
    if (model_mutant == FAVOURS_AS_IT_LEAVES && !by_favour) store_relaxed(&lock.favours, 1);
}

/* ---- the cases ---- */

static void add_one(enum weft__door door)
{
    bool by_favour = enter(door);
    plain_write(&guarded, plain_read(&guarded) + 1);
    leave(by_favour);
    if (by_favour) (void)fetch_add_relaxed(&favoured, 1);
}

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

static void begins(bool favours)
{
    weft__biased_init(&lock, WEFT__RANK_NONE);
    if (favours) weft__biased_favour(&lock);
    plain_write(&guarded, 0);
    store_relaxed(&favoured, 0);
}

static void meet(int owners, int others, int each)
{
    begins(true);
    model_thread(owner_adds, &owners);
    for (int i = 0; i < others; i++)
        model_thread(other_adds, &each);
    model_join();
    model_assert(plain_read(&guarded) == owners + others * each);
    model_assert(load_relaxed(&lock.inside) == 0);
}

static void owner_and_one(void)
{
    meet(2, 1, 1);
}

static void owner_and_two(void)
{
    meet(2, 2, 1);
}

/* It has come twice in a row since, and is favoured again; and that is put out once more. */
static void favoured_again(void)
{
    meet(4, 1, 2);
}

/* Whoever comes last finds the other's writes, also where nobody has ever met. */
static void alone(void)
{
    begins(true);
    add_one(WEFT__BY_OWNER);
    model_assert(load_relaxed(&favoured) == 1);
    add_one(WEFT__BY_ANY);
    add_one(WEFT__BY_OWNER);
    add_one(WEFT__BY_OWNER);
    model_assert(load_relaxed(&favoured) == 1);
    add_one(WEFT__BY_OWNER);
    model_assert(load_relaxed(&favoured) == 2);
    model_assert(plain_read(&guarded) == 5);
}

/* The ownership is handed on, with an order of its own, while another comes. */
static _Atomic bool handed;

static void first_owner(void *unused)
{
    (void)unused;
    add_one(WEFT__BY_OWNER);
    store_release(&handed, true);
}

static void next_owner(void *unused)
{
    (void)unused;
    if (load_acquire(&handed)) add_one(WEFT__BY_OWNER);
}

static void owners_in_turn(void)
{
    static int once = 1;
    begins(true);
    store_relaxed(&handed, false);
    model_thread(first_owner, NULL);
    model_thread(next_owner, NULL);
    model_thread(other_adds, &once);
    model_join();
    model_assert(plain_read(&guarded) >= 2);
}

static void favours_nobody(void)
{
    static int once = 1;
    begins(false);
    model_thread(owner_adds, &once);
    model_thread(owner_adds, &once);
    model_thread(other_adds, &once);
    model_join();
    model_assert(plain_read(&guarded) == 3);
    model_assert(load_relaxed(&lock.favours) == 0);
}

static const struct model_case cases[] = {
    {.name = "biased: the owner, and one other", .run = owner_and_one, .unbounded = true, .weaken = true},
    {.name = "biased: the owner, and two others", .run = owner_and_two, .preemptions = 3},
    {.name = "biased: favoured again", .run = favoured_again, .preemptions = 3, .weaken = true},
    {.name = "biased: one after another", .run = alone, .unbounded = true},
    {.name = "biased: owners in turn", .run = owners_in_turn, .preemptions = 3},
    {.name = "biased: a lock that favours nobody has one door", .run = favours_nobody, .preemptions = 3},
    {.name = "mutant: does not wait for the owner", .run = owner_and_one, .unbounded = true, .mutant = LOOKS_ONCE, .must_fail = true},
    {.name = "mutant: no membarrier", .run = owner_and_one, .unbounded = true, .mutant = FENCES_NOTHING, .must_fail = true},
    {.name = "mutant: puts the favour out without the lock", .run = owner_and_two, .preemptions = 3, .mutant = PUTS_OUT_WITHOUT_LOCK, .must_fail = true},
    {.name = "mutant: looks before it says that it is inside", .run = owner_and_one, .unbounded = true, .mutant = LOOKS_BEFORE_IT_SAYS, .must_fail = true},
    {.name = "mutant: favours itself behind the lock", .run = favoured_again, .preemptions = 3, .mutant = FAVOURS_AS_IT_LEAVES, .must_fail = true},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
