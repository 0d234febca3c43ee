/* SPDX-License-Identifier: MIT
 *
 * What monitor and workers say to each other, proven.
 *
 * Leave: a worker in a poll that does not end puts a lone task into its slot. The monitor sees it
 * and gives leave, *once*; whatever the other worker is doing at that moment, it takes the task. In
 * the library the monitor comes back after a millisecond and would heal a leave that was missed;
 * here nobody does, so a missed one shows as a lost wake-up. If the poll ends meanwhile its owner
 * takes the task itself: one of the two gets it.
 * Doze: the monitor may sleep only while all workers do. A worker that polls for ever and a monitor
 * that sleeps beside it are a lost wake-up.
 */
#include "sched/watch.c"
#include "sched/idle.c"
#include "sched/park.c"
#include "sched/slot.c"

static struct weft__idle idle;
static struct weft__park parks[2];
static struct weft__watch watch;

/* ---- broken twins ---- */

enum {
    HONEST,
    LEAVE_AFTER_THE_WAKE,    /* the sleeper is woken first, and finds no leave */
    RESCAN_PASSES_LEAVES_BY, /* a worker on its way to sleep looks for other work only */
    LEAVE_WITHOUT_A_FENCE,   /* the look for sleepers is older than the leave */
    DOZES_UNSEEN,            /* the monitor looks before it says that it sleeps */
    STIRS_WITHOUT_A_FENCE,   /* the worker's look is older than its bit */
};

/* ---- leave ---- */

static struct weft__slot slot;
static struct weft__leave leave;
static _Atomic uint64_t polls;
static struct weft_task lone;
static int lone_frame; /* written by its spawner, read by who runs it */
static _Atomic unsigned taken;
static _Atomic bool poll_ends;

static void run_lone(struct weft_task *task)
{
    model_assert(task == &lone);
    model_assert(plain_read(&lone_frame) == 1);
    fetch_add_release(&taken, 1);
}

/* Worker 1: spawns, and goes on polling until the child has run, or for a while only. */
static void victim(void *arg)
{
    bool returns = arg != NULL;
    plain_write(&lone_frame, 1);
    struct weft_task *before = weft__slot_put(&slot, &lone);
    model_assert(!before);
    while (!returns && !load_acquire(&taken))
        model_yield();
    store_relaxed(&polls, 1); /* the poll ends: the leave is void, and it takes what is left */
    struct weft_task *own = weft__slot_take(&slot);
    if (own) run_lone(own);
    store_release(&poll_ends, true);
    weft__unpark(&parks[0]);
}

static bool may_rob(void)
{
    return weft__leave_stands(&leave, &polls);
}

static void sleep_until_woken(bool searching)
{
    weft__idle_sleep(&idle, 0, searching);
    bool look = model_mutant != RESCAN_PASSES_LEAVES_BY && may_rob() && weft__slot_within_reach(&slot);
    if (!look && !load_acquire(&poll_ends)) (void)weft__park(&parks[0], WEFT__NEVER);
    (void)weft__idle_unsleep(&idle, 0);
}

/* Worker 0: has nothing; searches, sleeps, searches. */
static void thief(void *arg)
{
    bool searching = weft__idle_search_begin(&idle, 0);
    struct weft_task *task = NULL;
    (void)arg;
    while (!task && !load_acquire(&poll_ends)) {
        struct weft_task *got[WEFT__SLOT_MOST];
        if (may_rob() && weft__slot_steal(&slot, got)) task = got[0];
        if (task) break;
        sleep_until_woken(searching);
        searching = true;
    }
    if (searching) (void)weft__idle_search_end(&idle, 0);
    if (task) run_lone(task);
}

static uint32_t submit(void)
{
    if (model_mutant == LEAVE_WITHOUT_A_FENCE) return weft__idle_wake_one(&idle, WEFT__IDLE_NOBODY);
    return weft__idle_submit(&idle);
}

/* The monitor: looks until it sees the task, or that the poll has ended; helps once. */
static void helps_once(void *arg)
{
    (void)arg;
    uint64_t seen = load_relaxed(&polls);
    while (weft__slot_empty(&slot)) {
        if (load_acquire(&poll_ends)) return;
        model_yield();
    }
    if (model_mutant != LEAVE_AFTER_THE_WAKE) weft__leave_give(&leave, seen);
    uint32_t sleeper = submit();
    if (sleeper != WEFT__IDLE_NOBODY) weft__unpark(&parks[sleeper]);
    if (model_mutant == LEAVE_AFTER_THE_WAKE) weft__leave_give(&leave, seen);
}

static void begin(uint32_t workers)
{
    weft__idle_init(&idle, workers);
    weft__watch_init(&watch);
    for (int i = 0; i < 2; i++)
        weft__park_init(&parks[i]);
    weft__slot_init(&slot, false);
    store_relaxed(&leave.word, 0);
    store_relaxed(&polls, 0);
    store_relaxed(&taken, 0);
    store_relaxed(&poll_ends, false);
    plain_write(&lone_frame, 0);
}

static void leave_end(void)
{
    model_join();
    model_assert(load_relaxed(&taken) == 1);
    model_assert(weft__idle_searching(&idle) == 0);
    model_assert(weft__idle_sleeping(&idle) == 0);
}

static void poll_that_does_not_end(void)
{
    begin(2);
    model_thread(victim, NULL);
    model_thread(thief, NULL);
    model_thread(helps_once, NULL);
    leave_end();
}

static void poll_that_ends_meanwhile(void)
{
    begin(2);
    model_thread(victim, &lone);
    model_thread(thief, NULL);
    model_thread(helps_once, NULL);
    leave_end();
}

/* ---- doze ---- */

static _Atomic unsigned injected;
static _Atomic bool looked;

static void outsider(void *arg)
{
    (void)arg;
    fetch_add_release(&injected, 1);
    uint32_t sleeper = weft__idle_submit(&idle);
    if (sleeper != WEFT__IDLE_NOBODY) weft__unpark(&parks[sleeper]);
}

static void stir(void)
{
    if (model_mutant != STIRS_WITHOUT_A_FENCE) {
        weft__watch_stir(&watch);
    } else if (load_relaxed(&watch.asleep) && exchange_relaxed(&watch.asleep, false)) {
        weft__unpark(&watch.park);
    }
}

/* Sleeps, is woken or finds the item by its re-scan, and polls it until the monitor has looked. */
static void sleeper(void *arg)
{
    (void)arg;
    weft__idle_sleep(&idle, 0, false);
    if (load_relaxed(&injected) == 0) (void)weft__park(&parks[0], WEFT__NEVER);
    (void)weft__idle_unsleep(&idle, 0);
    stir();
    while (!load_acquire(&looked))
        model_yield();
}

static void doze(int64_t until)
{
    if (model_mutant != DOZES_UNSEEN) {
        (void)weft__watch_doze(&watch, &idle, until);
        return;
    }
    bool all = weft__idle_sleeping(&idle) == idle.worker_count;
    store_relaxed(&watch.asleep, true);
    fence_seq_cst();
    if (all) (void)weft__park(&watch.park, until);
    store_relaxed(&watch.asleep, false);
}

/* The monitor dozes, at first with the deadline of a trace, and then looks. */
static void dozes(void *timed)
{
    if (timed) doze(1);
    doze(WEFT__NEVER);
    store_release(&looked, true);
}

static void doze_begin(void)
{
    begin(1);
    store_relaxed(&injected, 0);
    store_relaxed(&looked, false);
}

static void doze_and_stir(void)
{
    doze_begin();
    model_thread(sleeper, NULL);
    model_thread(dozes, NULL);
    model_thread(outsider, NULL);
    model_join();
}

static void doze_timed_and_stir(void)
{
    doze_begin();
    model_thread(sleeper, NULL);
    model_thread(dozes, &lone);
    model_thread(outsider, NULL);
    model_join();
}

static void stops(void *arg)
{
    (void)arg;
    weft__watch_stop(&watch);
}

static void monitor_until_stopped(void *arg)
{
    (void)arg;
    do {
        (void)weft__watch_doze(&watch, &idle, WEFT__NEVER);
    } while (weft__watch_rest(&watch, WEFT__NEVER));
}

/* Wherever it rests, it stops. */
static void stop_ends_it(void)
{
    doze_begin();
    weft__idle_sleep(&idle, 0, false);
    model_thread(monitor_until_stopped, NULL);
    model_thread(stops, NULL);
    model_join();
}

static const struct model_case cases[] = {
    {.name = "leave: a poll that does not end",
     .run = poll_that_does_not_end,
     .preemptions = 3,
     .weaken = true},
    {.name = "leave: a poll that ends meanwhile",
     .run = poll_that_ends_meanwhile,
     .preemptions = 2},
    {.name = "doze: a worker leaves its sleep",
     .run = doze_and_stir,
     .preemptions = 3,
     .weaken = true},
    {.name = "doze: with a deadline", .run = doze_timed_and_stir, .preemptions = 2, .spurious = 1},
    {.name = "doze: stop", .run = stop_ends_it, .unbounded = true, .spurious = 1},
    {.name = "mutant: the leave comes after the wake",
     .run = poll_that_does_not_end,
     .preemptions = 3,
     .mutant = LEAVE_AFTER_THE_WAKE,
     .must_fail = true},
    {.name = "mutant: the re-scan passes leaves by",
     .run = poll_that_does_not_end,
     .preemptions = 3,
     .mutant = RESCAN_PASSES_LEAVES_BY,
     .must_fail = true},
    {.name = "mutant: no fence behind the leave",
     .run = poll_that_does_not_end,
     .preemptions = 3,
     .mutant = LEAVE_WITHOUT_A_FENCE,
     .must_fail = true},
    {.name = "mutant: the monitor dozes unseen",
     .run = doze_and_stir,
     .preemptions = 3,
     .mutant = DOZES_UNSEEN,
     .must_fail = true},
    {.name = "mutant: stirs without a fence",
     .run = doze_and_stir,
     .preemptions = 3,
     .mutant = STIRS_WITHOUT_A_FENCE,
     .must_fail = true},
};

static const struct model_spare spare[] = {
    {"sched/park.c", "", "park has a model test of its own"},
    {"sched/idle.c", "", "idle has a model test of its own"},
    {"sched/slot.h", "", "the slot has a model test of its own"},
    {"sched/slot.c", "", "the same"},
    {NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
    return model_main_with(argc, argv, cases, MODEL_COUNT(cases), spare);
}
