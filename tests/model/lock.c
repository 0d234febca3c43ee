/* SPDX-License-Identifier: MIT
 *
 * The futex lock, proven: one holder at a time, whose writes the next one sees, and no sleeper is forgotten.
 */
#define WEFT_MODEL_REAL_LOCK
#define WEFT__LOCK_LOOKS 0
#define WEFT__LOCK_SPINS 0 /* a spinning model thread waits for a write, and would never come to sleep */
#include "sys/lock.c"

static struct weft__lock lock;
static int guarded;
static bool brief; /* taken and dropped by the brief ones */

/* ---- broken twins ---- */

enum { HONEST, FORGETS_THE_OTHER_SLEEPER, WAKES_BEFORE_IT_DROPS, SLEEPS_WITHOUT_MARK, SLEEPS_WITHOUT_END };

/* Takes the lock as "held, nobody sleeps" after having slept: a second sleeper is never woken. */
static void take_forgetful(void)
{
    for (;;) {
        uint32_t free = 0;
        if (cas_acquire(&lock.word, &free, 1)) return;
        if (free == 2 || exchange_acquire(&lock.word, 2) != 0) {
            (void)weft__futex_wait(&lock.word, 2, WEFT__NEVER);
        } else {
            return;
        }
    }
}

static void take_without_mark(void)
{
    uint32_t free = 0;
    while (!cas_acquire(&lock.word, &free, 1)) {
        (void)weft__futex_wait(&lock.word, free, WEFT__NEVER);
        free = 0;
    }
}

static void drop_after_waking(void)
{
    if (load_relaxed(&lock.word) == 2) (void)weft__futex_wake(&lock.word, 1);
    store_release(&lock.word, 0);
}

/* The brief one's sleeper, but as if each drop would wake it. */
static void take_without_end(void)
{
    uint32_t free = 0;
    if (cas_acquire(&lock.word, &free, 1)) return;
    while (exchange_acquire(&lock.word, 2) != 0) (void)weft__futex_wait(&lock.word, 2, WEFT__NEVER);
}

static void take(void)
{
    if (brief) {
        if (model_mutant == SLEEPS_WITHOUT_END) {
            take_without_end();
        } else {
            weft__lock_take_brief(&lock);
        }
        return;
    }
    if (model_mutant == FORGETS_THE_OTHER_SLEEPER) {
        take_forgetful();
    } else if (model_mutant == SLEEPS_WITHOUT_MARK) {
        take_without_mark();
    } else {
        weft__lock_take(&lock);
    }
}

static void drop(void)
{
    if (brief) {
        weft__lock_drop_brief(&lock);
        return;
    }
    if (model_mutant == WAKES_BEFORE_IT_DROPS) {
        drop_after_waking();
    } else {
        weft__lock_drop(&lock);
    }
}

/* ---- the cases ---- */

static void add_one(void *arg)
{
    (void)arg;
    take();
    plain_write(&guarded, plain_read(&guarded) + 1);
    drop();
}

static void add_one_if_free(void *arg)
{
    (void)arg;
    if (!weft__lock_try_take(&lock)) return;
    plain_write(&guarded, plain_read(&guarded) + 1);
    drop();
}

static void holders(void (*other)(void *), int threads, int least)
{
    weft__lock_init(&lock, WEFT__RANK_NONE);
    plain_write(&guarded, 0);
    for (int i = 1; i < threads; i++) model_thread(add_one, NULL);
    model_thread(other, NULL);
    model_join();
    model_assert(plain_read(&guarded) >= least);
    model_assert(plain_read(&guarded) <= threads);
    model_assert(load_relaxed(&lock.word) == 0);
}

static void two(void)
{
    brief = false; /* a case that failed halfway has left it as it was */
    holders(add_one, 2, 2);
}

static void three(void)
{
    brief = false;
    holders(add_one, 3, 3);
}

static void two_brief(void)
{
    brief = true;
    holders(add_one, 2, 2);
}

static void three_brief(void)
{
    brief = true;
    holders(add_one, 3, 3);
}

static void one_tries(void)
{
    brief = false;
    holders(add_one_if_free, 3, 2);
}

static const struct model_case cases[] = {
    {.name = "lock: two holders", .run = two, .unbounded = true, .weaken = true},
    {.name = "lock: two holders, spurious wakes", .run = two, .unbounded = true, .spurious = 2},
    {.name = "lock: three holders", .run = three, .preemptions = 2},
    {.name = "lock: two take, one tries", .run = one_tries, .preemptions = 3, .weaken = true},
    {.name = "brief: two holders", .run = two_brief, .preemptions = 4, .weaken = true},
    {.name = "brief: three holders", .run = three_brief, .preemptions = 2},
    {.name = "mutant: a brief sleeper waits to be woken", .run = two_brief, .preemptions = 3, .mutant = SLEEPS_WITHOUT_END, .must_fail = true, .why = "lost"},
    {.name = "mutant: forgets that another may sleep", .run = three, .preemptions = 3, .mutant = FORGETS_THE_OTHER_SLEEPER, .must_fail = true, .why = "lost"},
    {.name = "mutant: wakes before it drops", .run = two, .unbounded = true, .mutant = WAKES_BEFORE_IT_DROPS, .must_fail = true},
    {.name = "mutant: sleeps without leaving a mark", .run = two, .unbounded = true, .mutant = SLEEPS_WITHOUT_MARK, .must_fail = true, .why = "lost"},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
