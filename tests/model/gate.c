/* SPDX-License-Identifier: MIT
 *
 * The gate, proven: a thread outside is refused by a runtime that closes, or what it spawned is in
 * the registry before the sweep begins. The registry is plain memory here: who gets in too late,
 * or is not waited for, races with the sweep.
 */
#include "sched/gate.h"

#define SPAWNERS 2

static struct weft_rt rt;
static unsigned registry[SPAWNERS]; /* 1: a task is entered */
static bool spawned[SPAWNERS];
static bool swept[SPAWNERS]; /* the sweep came across it */

void weft__thread_yield(void)
{
    model_yield();
}

/* ---- broken twins ---- */

enum {
    HONEST,
    ENTERS_WITHOUT_FENCE,
    CLOSES_WITHOUT_FENCE,
    LOOKS_BEFORE_IT_COUNTS, /* the stage is read first */
    LEAVES_TOO_EARLY,       /* before the task is in the registry */
    WAITS_BEFORE_IT_CLOSES,
};

static bool enter_without_fence(void)
{
    fetch_add_acq_rel(&rt.gate, 1);
    if (load_relaxed(&rt.stage) == WEFT__OPEN) return true;
    fetch_sub_release(&rt.gate, 1);
    return false;
}

static bool look_then_count(void)
{
    if (load_relaxed(&rt.stage) != WEFT__OPEN) return false;
    fetch_add_acq_rel(&rt.gate, 1);
    fence_seq_cst();
    return true;
}

static bool enter(void)
{
    if (model_mutant == ENTERS_WITHOUT_FENCE) return enter_without_fence();
    if (model_mutant == LOOKS_BEFORE_IT_COUNTS) return look_then_count();
    return weft__gate_enter(&rt);
}

static void wait_until_empty(void)
{
    while (load_acquire(&rt.gate) != 0)
        model_yield();
}

static void close_gate(void)
{
    if (model_mutant == CLOSES_WITHOUT_FENCE) {
        store_release(&rt.stage, WEFT__CLOSING);
        wait_until_empty();
    } else if (model_mutant == WAITS_BEFORE_IT_CLOSES) {
        wait_until_empty();
        store_release(&rt.stage, WEFT__CLOSING);
        fence_seq_cst();
    } else {
        weft__gate_shut(&rt);
        while (!weft__gate_is_empty(&rt))
            model_yield();
    }
}

/* ---- the threads ---- */

static void spawn(unsigned i)
{
    if (!enter()) return;
    if (model_mutant == LEAVES_TOO_EARLY) weft__gate_leave(&rt);
    spawned[i] = true;
    plain_write(&registry[i], 1);
    if (model_mutant != LEAVES_TOO_EARLY) weft__gate_leave(&rt);
}

static void spawner_0(void *arg)
{
    (void)arg;
    spawn(0);
}

static void spawner_1(void *arg)
{
    (void)arg;
    spawn(1);
}

/* The stop gives the memory back behind the sweep, so that looking is not all: it writes. */
static void sweep(void)
{
    for (unsigned i = 0; i < SPAWNERS; i++) {
        swept[i] = plain_read(&registry[i]) == 1;
        plain_write(&registry[i], 2);
    }
}

static void stopper(void *arg)
{
    (void)arg;
    close_gate();
    sweep();
}

static void begin(void)
{
    store_relaxed(&rt.gate, 0);
    store_relaxed(&rt.stage, WEFT__OPEN);
    for (unsigned i = 0; i < SPAWNERS; i++) {
        plain_write(&registry[i], 0);
        spawned[i] = false;
        swept[i] = false;
    }
}

static void end(void)
{
    model_join();
    model_assert(load_relaxed(&rt.gate) == 0);
    for (unsigned i = 0; i < SPAWNERS; i++)
        model_assert(spawned[i] == swept[i]);
}

/* ---- the cases ---- */

static void one_spawner(void)
{
    begin();
    model_thread(spawner_0, NULL);
    model_thread(stopper, NULL);
    end();
}

static void two_spawners(void)
{
    begin();
    model_thread(spawner_0, NULL);
    model_thread(spawner_1, NULL);
    model_thread(stopper, NULL);
    end();
}

static const struct model_case cases[] = {
    {.name = "gate: a spawn against the close",
     .run = one_spawner,
     .unbounded = true,
     .weaken = true},
    {.name = "gate: two spawns against the close",
     .run = two_spawners,
     .unbounded = true,
     .weaken = true},
    {.name = "mutant: no fence between count and look",
     .run = one_spawner,
     .unbounded = true,
     .mutant = ENTERS_WITHOUT_FENCE,
     .must_fail = true,
     .why = "race"},
    {.name = "mutant: no fence between stage and wait",
     .run = one_spawner,
     .unbounded = true,
     .mutant = CLOSES_WITHOUT_FENCE,
     .must_fail = true,
     .why = "race"},
    {.name = "mutant: looks before it counts",
     .run = one_spawner,
     .unbounded = true,
     .mutant = LOOKS_BEFORE_IT_COUNTS,
     .must_fail = true},
    {.name = "mutant: leaves before the task is entered",
     .run = one_spawner,
     .unbounded = true,
     .mutant = LEAVES_TOO_EARLY,
     .must_fail = true,
     .why = "race"},
    {.name = "mutant: waits before it closes",
     .run = one_spawner,
     .unbounded = true,
     .mutant = WAITS_BEFORE_IT_CLOSES,
     .must_fail = true},
};

static const struct model_spare spare[] = {
    {"sched/gate.h", "fetch_add_acq_rel(&rt->gate",
     "the fence behind it orders all that this would"},
    {"sched/gate.h", "fetch_sub_release(&rt->gate",
     "of the two the one that is refused: it has made nothing"},
    {"sched/gate.h", "store_release(&rt->stage", "for the workers: worker.c has them"},
    {NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
    return model_main_with(argc, argv, cases, MODEL_COUNT(cases), spare);
}
