/* SPDX-License-Identifier: MIT
 *
 * Crowds (sched/theft.h), with the real loop (worker_loop.h): a worker gathers the ring of another that polls
 * from it, runs dry, searches, falls asleep or leaves meanwhile. Every task is polled once, whoever has it in
 * the end, and no worker sleeps upon one.
 *
 * Both workers come to their tick at each take. The clock stands still, so whoever has met others is in a crowd.
 */
#include "worker_loop.h"

/* A worker that judges at each take, with these in its ring; they meet others. */
static void has_crowd(uint32_t worker, unsigned first, unsigned count)
{
    struct weft__worker *w = &workers[worker];
    w->tick_max = 1;
    w->theft.met_since = NOW;
    weft__worker_stretch(w);
    for (unsigned i = first; i < first + count; i++) {
        struct weft_task *task = job_new(i, 0);
        jobs[i].meets = true;
        model_assert(weft__runq_push(&w->ring, task));
    }
}

static void has_stolen_from(uint32_t worker, uint32_t victim, bool says_so)
{
    workers[worker].theft.victim = &workers[victim];
    if (says_so) store_relaxed(&workers[worker].shun.crowd, 1);
}

/* It has met others before its first take. */
static void meets_and_runs(void *worker)
{
    meet();
    worker_runs(worker);
}

/* ---- the cases ---- */

/* Worker 1 has stolen two, and says that they are in the way; worker 0 comes for them at once. */
static void one_gathers(void)
{
    begin(2, 3);
    has_crowd(0, 0, 1);
    has_crowd(1, 1, 2);
    has_stolen_from(1, 0, true);
    model_thread(meets_and_runs, &workers[0]);
    model_thread(worker_runs, &workers[1]);
    end();
}

/* It says so at its tick, or not before it has run dry. */
static void one_says_so(void)
{
    begin(2, 4);
    has_crowd(0, 0, 2);
    has_crowd(1, 2, 2);
    has_stolen_from(1, 0, false);
    model_thread(meets_and_runs, &workers[0]);
    model_thread(meets_and_runs, &workers[1]);
    end();
}

/* Both have stolen, from each other, and say so: one of them gathers. */
static void both_have_stolen(void)
{
    begin(2, 4);
    has_crowd(0, 0, 2);
    has_crowd(1, 2, 2);
    has_stolen_from(0, 1, true);
    has_stolen_from(1, 0, true);
    model_thread(meets_and_runs, &workers[0]);
    model_thread(meets_and_runs, &workers[1]);
    end();
}

static void outsider_pushes_last(void *unused)
{
    (void)unused;
    push(2, 0);
}

/* Worker 1 is left with nothing, and falls asleep while somebody pushes from outside. */
static void gathered_while_it_falls_asleep(void)
{
    begin(2, 3);
    has_crowd(0, 0, 1);
    has_crowd(1, 1, 1);
    has_stolen_from(1, 0, true);
    model_thread(meets_and_runs, &workers[0]);
    model_thread(worker_runs, &workers[1]);
    model_thread(outsider_pushes_last, NULL);
    end();
}

static const struct model_case cases[] = {
    {.name = "crowd: gathered", .run = one_gathers, AT_RANDOM},
    {.name = "crowd: said and gathered", .run = one_says_so, AT_RANDOM},
    {.name = "crowd: both have stolen", .run = both_have_stolen, AT_RANDOM},
    {.name = "crowd: gathered while it falls asleep", .run = gathered_while_it_falls_asleep, AT_RANDOM},
    {.name = "mutant: gathers by a store",
     .run = one_gathers,
     .preemptions = 1,
     .mutant = GATHERS_BY_A_STORE,
     .must_fail = true},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
