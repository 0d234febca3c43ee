/* SPDX-License-Identifier: MIT
 *
 * A clock that stands, proven: whoever falls asleep last moves it, also if it comes while another one looks, who does not
 * know of it yet. If nobody did, all would sleep for ever: that shows as a lost wake-up.
 *
 * A worker marks itself asleep by a read-modify-write of one word, as in idle.h, and looks, with the real right to do so; who
 * finds all asleep moves the clock, and rings. The others sleep until then.
 */
#include "sched/clock.h"
#include "sched/park.c"

#define WORKERS 3

static struct weft__clock clock_;
static struct weft__park parks[WORKERS];
static _Atomic uint32_t asleep;
static _Atomic uint32_t moves;
static unsigned workers;
static unsigned fired; /* what is looked at and moved: plain, since one at a time does */

enum { HONEST, DOES_NOT_LOOK_AGAIN, ASKS_WITHOUT_ORDER };

/* As move_if_idle: the time is moved once, and who sleeps is rung. */
static bool move(void *unused)
{
    (void)unused;
    unsigned before = plain_read(&fired);
    if (load_relaxed(&asleep) < workers) return false;
    plain_write(&fired, before + 1);
    fetch_add_relaxed(&moves, 1);
    for (unsigned i = 0; i < workers; i++)
        weft__unpark(&parks[i]);
    return true;
}

/* Tells nobody that it has asked. */
static bool keep_still_alone(void)
{
    uint32_t was = WEFT__CLOCK_LEFT;
    return cas_acquire(&clock_.moving, &was, WEFT__CLOCK_MOVING);
}

/* It is told, but not that this one sleeps. */
static bool keep_still_relaxed(void)
{
    uint32_t was = WEFT__CLOCK_LEFT;
    uint32_t next;
    do
        next = was == WEFT__CLOCK_LEFT ? WEFT__CLOCK_MOVING : WEFT__CLOCK_ASKED;
    while (!cas_acquire(&clock_.moving, &was, next));
    return was == WEFT__CLOCK_LEFT;
}

static bool move_twin(void)
{
    if (model_mutant == HONEST) return weft__clock_move_by(&clock_, move, NULL);
    if (!(model_mutant == DOES_NOT_LOOK_AGAIN ? keep_still_alone() : keep_still_relaxed()))
        return false;
    do {
        if (!move(NULL)) continue;
        weft__clock_let_move(&clock_);
        return true;
    } while (weft__clock_look_again(&clock_));
    return false;
}

/* As sleep_until_woken, once. */
static void worker(void *arg)
{
    struct weft__park *park = arg;
    fetch_add_acq_rel(&asleep, 1);
    if (!move_twin()) (void)weft__park(park, WEFT__NEVER);
}

static void all_fall_asleep(unsigned count)
{
    workers = count;
    store_relaxed(&clock_.moving, WEFT__CLOCK_LEFT);
    plain_write(&fired, 0);
    store_relaxed(&asleep, 0);
    store_relaxed(&moves, 0);
    for (unsigned i = 0; i < count; i++)
        weft__park_init(&parks[i]);
    for (unsigned i = 0; i < count; i++)
        model_thread(worker, &parks[i]);
    model_join();
    model_assert(load_relaxed(&moves) >= 1);
}

static void two(void)
{
    all_fall_asleep(2);
}

static void three(void)
{
    all_fall_asleep(3);
}

static const struct model_case cases[] = {
    {.name = "clock: two fall asleep", .run = two, .weaken = true},
    {.name = "clock: three fall asleep", .run = three, .preemptions = 2},
    {.name = "mutant: it is not looked again for who has asked",
     .run = two,
     .mutant = DOES_NOT_LOOK_AGAIN,
     .must_fail = true},
    {.name = "mutant: who asks does not say that it sleeps",
     .run = two,
     .mutant = ASKS_WITHOUT_ORDER,
     .must_fail = true},
};

static const struct model_spare spare[] = {
    {"sched/park.c", "", "park has a model test of its own"},
    {NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
    return model_main_with(argc, argv, cases, MODEL_COUNT(cases), spare);
}
