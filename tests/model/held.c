/* SPDX-License-Identifier: MIT
 *
 * What outlives a stop, proven: handles that are given back late, and a thread that still has a
 * sleeper to tell of the task that it pushed, touch the runtime's memory; it is freed once, behind
 * the last of them, whoever that is.
 */
#include "sched/held.h"

#include <stddef.h>

#define HOLDERS 4

/* As much of a runtime as is needed to see who touches it when. */
struct runtime {
    _Atomic int64_t held;
    unsigned touched[HOLDERS];
};

static struct runtime *rt;
static _Atomic bool pushed; /* the task is in its queue: it may run, and end */
static unsigned frees;

/* ---- broken twins ---- */

enum {
    HONEST,
    RELAXED, /* the count alone, and nothing comes before anything */
    ACQUIRE_ONLY,
    RELEASE_ONLY,
    PUSHES_UNHELD,  /* the pusher trusts the task that it gives away */
    HOLDS_TOO_LATE, /* behind the push */
    STOP_MISCOUNTS, /* a block that a handle refers to is not in the difference */
};

static bool change_by(int64_t change)
{
    switch (model_mutant) {
    case RELAXED:
        return fetch_add_relaxed(&rt->held, change) + change == 0;
    case ACQUIRE_ONLY:
        return fetch_add_acquire(&rt->held, change) + change == 0;
    case RELEASE_ONLY:
        return fetch_add_release(&rt->held, change) + change == 0;
    default:
        return weft__held_change(&rt->held, change);
    }
}

/* ---- the threads ---- */

static void touch(unsigned holder)
{
    plain_write(&rt->touched[holder], plain_read(&rt->touched[holder]) + 1);
}

/* As held_change in rt.c. */
static void change(int64_t by)
{
    if (!change_by(by)) return;
    frees++;
    model_free(rt);
}

static void handle_0(void *arg)
{
    (void)arg;
    touch(0);
    change(-1);
}

static void handle_1(void *arg)
{
    (void)arg;
    touch(1);
    change(-1);
}

static void pusher(void *arg)
{
    (void)arg;
    bool holds = model_mutant != PUSHES_UNHELD;
    bool in_time = model_mutant != HOLDS_TOO_LATE;
    if (holds && in_time) weft__held_one_more(&rt->held);
    store_release(&pushed, true);
    if (holds && !in_time) weft__held_one_more(&rt->held);
    touch(2);
    if (holds) change(-1);
}

/* `blocks`: that are still referred to, or were freed from outside. */
static void stop(int64_t blocks)
{
    touch(3);
    change(blocks - (model_mutant == STOP_MISCOUNTS) - WEFT__HELD_OPEN);
}

static void stopper_of_two_handles(void *arg)
{
    (void)arg;
    stop(2);
}

/* It has seen that the task ended. */
static void stopper_behind_a_push(void *arg)
{
    (void)arg;
    while (!load_acquire(&pushed))
        model_yield();
    stop(0);
}

static void stopper_of_both(void *arg)
{
    (void)arg;
    while (!load_acquire(&pushed))
        model_yield();
    stop(1);
}

static void begin(void)
{
    rt = model_alloc(sizeof(*rt));
    frees = 0;
    store_relaxed(&rt->held, WEFT__HELD_OPEN);
    store_relaxed(&pushed, false);
}

static void end(void)
{
    model_join();
    model_assert(frees == 1);
}

/* ---- the cases ---- */

static void two_handles(void)
{
    begin();
    model_thread(handle_0, NULL);
    model_thread(handle_1, NULL);
    model_thread(stopper_of_two_handles, NULL);
    end();
}

static void a_push(void)
{
    begin();
    model_thread(pusher, NULL);
    model_thread(stopper_behind_a_push, NULL);
    end();
}

static void a_push_and_a_handle(void)
{
    begin();
    model_thread(pusher, NULL);
    model_thread(handle_0, NULL);
    model_thread(stopper_of_both, NULL);
    end();
}

static const struct model_case cases[] = {
    {.name = "held: two handles against the stop",
     .run = two_handles,
     .unbounded = true,
     .weaken = true},
    {.name = "held: a push against the stop", .run = a_push, .unbounded = true, .weaken = true},
    {.name = "held: a push, a handle and the stop",
     .run = a_push_and_a_handle,
     .unbounded = true,
     .weaken = true},
    {.name = "mutant: relaxed",
     .run = two_handles,
     .unbounded = true,
     .mutant = RELAXED,
     .must_fail = true},
    {.name = "mutant: acquire without release",
     .run = two_handles,
     .unbounded = true,
     .mutant = ACQUIRE_ONLY,
     .must_fail = true},
    {.name = "mutant: release without acquire",
     .run = two_handles,
     .unbounded = true,
     .mutant = RELEASE_ONLY,
     .must_fail = true},
    {.name = "mutant: a push that holds nothing",
     .run = a_push,
     .unbounded = true,
     .mutant = PUSHES_UNHELD,
     .must_fail = true},
    {.name = "mutant: a push that holds too late",
     .run = a_push,
     .unbounded = true,
     .mutant = HOLDS_TOO_LATE,
     .must_fail = true},
    {.name = "mutant: the stop forgets a block",
     .run = two_handles,
     .unbounded = true,
     .mutant = STOP_MISCOUNTS,
     .must_fail = true},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
