/* SPDX-License-Identifier: MIT
 *
 * The idle protocol, proven: work that was pushed is taken, whoever was falling asleep at that moment. Stranded work shows as a lost wake-up: all
 * workers sleep and nobody will wake them.
 *
 * The workers here do what a worker's loop does between two polls: take, search, publish sleep, re-scan, park. Work is a counter pushed by RMW (the
 * inject queue), or a ring of one owner pushed by plain stores. Two kinds of load: items that are done as soon as they are taken, and items that last until
 * all have been taken, so that one worker cannot do for two.
 */
#include "sched/idle.c"
#include "sched/park.c"

#define WORKERS_MAX 3

static struct weft__idle idle;
static struct weft__park parks[WORKERS_MAX];
static unsigned workers;

static _Atomic unsigned injected;   /* pushed by RMW, by anyone */
static _Atomic unsigned inbox[WORKERS_MAX]; /* pushed by RMW, by anyone; for one worker alone */
static _Atomic unsigned tail;       /* pushed by plain stores, by the ring's owner */
static _Atomic unsigned head;
static _Atomic unsigned taken;
static _Atomic bool stop;
static unsigned goal;
static bool items_last;             /* until all are taken */
static bool own_last;               /* those of an inbox do, the others do not */

/* ---- broken twins ---- */

enum {
    HONEST,
    NO_RESCAN,                      /* publishes that it sleeps, and parks */
    RESCAN_BEFORE_PUBLISHING,
    RIGHT_CLEARED_TOO_LATE,         /* the searching right as a flag of the worker, cleared after the sleep was published */
    FINDER_KEEPS_QUIET,             /* the last searcher finds work and wakes nobody */
    HINT_ONLY,                      /* a worker that pushes trusts the look without a fence */
    NO_FENCE_OUTSIDE,               /* a thread outside looks without a fence */
    INBOX_LIKE_INJECT,              /* work for one worker wakes anyone */
    INBOX_NOT_SCANNED,              /* the re-scan does not look there */
    INBOX_NO_FENCE,                 /* who pushed there looks without a fence */
    INBOX_WITHOUT_RIGHT,            /* the sleeper's bit is taken off, and it is not counted as a searcher */
    INBOX_FINDER_KEEPS_QUIET,       /* a worker that was woken for its inbox passes no search on */
};

static _Atomic bool right[WORKERS_MAX]; /* of RIGHT_CLEARED_TOO_LATE */

/* What a waker reads of a sleeper: where it parks. Written before the sleep is published. */
static _Atomic bool place_known[WORKERS_MAX];

/* ---- work ---- */

static bool mine_visible(uint32_t id)
{
    return model_mutant != INBOX_NOT_SCANNED && load_relaxed(&inbox[id]) > 0;
}

static bool work_visible(void)
{
    return load_relaxed(&injected) > 0 || load_relaxed(&tail) > load_relaxed(&head);
}

static bool take_from(_Atomic unsigned *count)
{
    unsigned n = load_relaxed(count);
    while (n > 0)
        if (cas_acq_rel(count, &n, n - 1)) return true;
    return false;
}

static bool steal(void)
{
    unsigned h = load_acquire(&head);
    while (load_acquire(&tail) > h)
        if (cas_acq_rel(&head, &h, h + 1)) return true;
    return false;
}

static void unpark(uint32_t worker)
{
    if (worker == WEFT__IDLE_NOBODY) return;
    model_assert(load_relaxed(&place_known[worker]));
    if (model_mutant == RIGHT_CLEARED_TOO_LATE) store_release(&right[worker], true);
    weft__unpark(&parks[worker]);
}

static void finish_one(bool lasts)
{
    if (fetch_add_acq_rel(&taken, 1) + 1 == goal) {
        store_release(&stop, true);
        for (uint32_t i = 0; i < workers; i++) weft__unpark(&parks[i]);
    }
    while (lasts && load_acquire(&taken) < goal) model_yield(); /* a long poll */
}

/* ---- a worker ---- */

static void found(uint32_t id, bool *searching, bool lasts)
{
    if (*searching) {
        *searching = false;
        if (model_mutant == INBOX_FINDER_KEEPS_QUIET) {
            (void)weft__idle_search_end(&idle, id);
        } else if (weft__idle_search_end(&idle, id) && model_mutant != FINDER_KEEPS_QUIET && work_visible()) unpark(weft__idle_wake_one(&idle, id));
    }
    finish_one(lasts);
}

/* Sleeps until there is a reason not to; true: it holds the searching right. */
static bool sleep_until_woken(uint32_t id, bool searching)
{
    bool early = model_mutant == RESCAN_BEFORE_PUBLISHING && work_visible();
    store_relaxed(&place_known[id], true);
    weft__idle_sleep(&idle, id, searching);
    if (model_mutant == RIGHT_CLEARED_TOO_LATE) store_release(&right[id], false);
    bool look = model_mutant == NO_RESCAN ? false : model_mutant == RESCAN_BEFORE_PUBLISHING ? early : work_visible() || mine_visible(id);
    if (!look && !load_relaxed(&stop)) (void)weft__park(&parks[id], WEFT__NEVER);
    bool took_itself_out = weft__idle_unsleep(&idle, id);
    if (model_mutant == RIGHT_CLEARED_TOO_LATE && !took_itself_out) return load_acquire(&right[id]);
    return true;
}

static void worker_loop(uint32_t id)
{
    bool searching = weft__idle_search_begin(&idle, id);
    while (!load_acquire(&stop)) {
        if (take_from(&inbox[id])) {
            found(id, &searching, items_last || own_last);
        } else if (take_from(&injected) || steal()) {
            found(id, &searching, items_last);
        } else {
            searching = sleep_until_woken(id, searching);
        }
    }
    if (searching) (void)weft__idle_search_end(&idle, id);
}

static void worker_0(void *arg)
{
    (void)arg;
    worker_loop(0);
}

static void worker_1(void *arg)
{
    (void)arg;
    worker_loop(1);
}

/* ---- submitters ---- */

static void outsider_pushes_one(void *arg)
{
    (void)arg;
    fetch_add_release(&injected, 1);
    unpark(model_mutant == NO_FENCE_OUTSIDE ? weft__idle_wake_one(&idle, WEFT__IDLE_NOBODY) : weft__idle_submit(&idle));
}

static void outsider_pushes_two(void *arg)
{
    outsider_pushes_one(arg);
    outsider_pushes_one(arg);
}

/* As the idle word would be left by one who forgot that a woken worker searches. */
static bool wake_without_right(uint32_t worker)
{
    if (!weft__idle_wake(&idle, worker)) return false;
    (void)weft__idle_search_end(&idle, worker);
    return true;
}

static bool wake_without_fence(uint32_t worker)
{
    uint64_t word = load_relaxed(word_of(&idle, worker));
    while (word & bit_of(worker))
        if (cas_acquire(word_of(&idle, worker), &word, word - bit_of(worker) + SEARCHER)) return true;
    return false;
}

static void push_to(uint32_t worker)
{
    fetch_add_release(&inbox[worker], 1);
    switch (model_mutant) {
    case INBOX_LIKE_INJECT: unpark(weft__idle_submit(&idle)); return;
    case INBOX_NO_FENCE: if (wake_without_fence(worker)) unpark(worker); return;
    case INBOX_WITHOUT_RIGHT: if (wake_without_right(worker)) unpark(worker); return;
    default: if (weft__idle_wake(&idle, worker)) unpark(worker);
    }
}

static void outsider_pushes_to_1(void *arg)
{
    (void)arg;
    push_to(1);
}

static void outsider_pushes_to_0(void *arg)
{
    (void)arg;
    push_to(0);
}

/* One for worker 0 alone, then one for anybody. */
static void outsider_pushes_both(void *arg)
{
    push_to(0);
    outsider_pushes_one(arg);
}

/* Worker 1 is in a poll that pushes two tasks, pops one by RMW, and then polls for ever: the other one is for somebody else. */
static void worker_pushes_two(void *arg)
{
    (void)arg;
    store_release(&tail, 1);
    if (weft__idle_hint(&idle)) unpark(weft__idle_wake_one(&idle, 1));
    store_release(&tail, 2);
    if (weft__idle_hint(&idle)) unpark(weft__idle_wake_one(&idle, 1));
    bool got = steal(); /* its own oldest, by the same CAS */
    if (model_mutant == HINT_ONLY ? weft__idle_hint(&idle) : weft__idle_look(&idle)) unpark(weft__idle_wake_one(&idle, 1));
    if (got) finish_one(items_last);
}

static void begin(unsigned worker_count, unsigned items, bool last)
{
    workers = worker_count;
    goal = items;
    items_last = last;
    own_last = false;
    weft__idle_init(&idle, worker_count);
    for (unsigned i = 0; i < worker_count; i++) {
        weft__park_init(&parks[i]);
        store_relaxed(&right[i], true);
        store_relaxed(&place_known[i], false);
        store_relaxed(&inbox[i], 0);
    }
    store_relaxed(&injected, 0);
    store_relaxed(&tail, 0);
    store_relaxed(&head, 0);
    store_relaxed(&taken, 0);
    store_relaxed(&stop, false);
}

static void end(void)
{
    model_join();
    model_assert(load_relaxed(&taken) == goal);
    model_assert(weft__idle_searching(&idle) == 0); /* every right was given back */
    model_assert(weft__idle_sleeping(&idle) == 0);
}

/* ---- the cases ---- */

static void one_worker_one_item(void)
{
    begin(1, 1, false);
    model_thread(worker_0, NULL);
    model_thread(outsider_pushes_one, NULL);
    end();
}

static void one_worker_two_items(void)
{
    begin(1, 2, false);
    model_thread(worker_0, NULL);
    model_thread(outsider_pushes_two, NULL);
    end();
}

static void two_workers_one_item(void)
{
    begin(2, 1, false);
    model_thread(worker_0, NULL);
    model_thread(worker_1, NULL);
    model_thread(outsider_pushes_one, NULL);
    end();
}

static void two_workers_two_long_items(void)
{
    begin(2, 2, true);
    model_thread(worker_0, NULL);
    model_thread(worker_1, NULL);
    model_thread(outsider_pushes_two, NULL);
    end();
}

static void a_worker_pushes(void)
{
    begin(2, 2, true);
    model_thread(worker_0, NULL);
    model_thread(worker_pushes_two, NULL);
    end();
}

static void one_worker_its_own(void)
{
    begin(1, 1, false);
    model_thread(worker_0, NULL);
    model_thread(outsider_pushes_to_0, NULL);
    end();
}

static void two_workers_one_for_1(void)
{
    begin(2, 1, false);
    model_thread(worker_0, NULL);
    model_thread(worker_1, NULL);
    model_thread(outsider_pushes_to_1, NULL);
    end();
}

/* The first lasts until the second is taken. Whoever was woken for its own must not be counted on for the other one and then keep quiet. */
static void two_workers_own_and_anybodys(void)
{
    begin(2, 2, false);
    own_last = true;
    model_thread(worker_0, NULL);
    model_thread(worker_1, NULL);
    model_thread(outsider_pushes_both, NULL);
    end();
}

static const struct model_case cases[] = {
    {.name = "idle: one worker, one item from outside", .run = one_worker_one_item, .preemptions = 5, .weaken = true},
    {.name = "idle: one worker, two items from outside", .run = one_worker_two_items, .preemptions = 3, .weaken = true},
    {.name = "idle: a worker pushes inside a long poll", .run = a_worker_pushes, .preemptions = 2, .weaken = true},
    {.name = "idle: two workers, one item from outside", .run = two_workers_one_item, .preemptions = 2},
    {.name = "idle: two workers, two long items from outside", .run = two_workers_two_long_items, .preemptions = 1, .weaken = true},
    {.name = "idle: two workers, two long items, randomised", .run = two_workers_two_long_items, .pct_depth = 4, .executions_max = 200000},
    {.name = "inbox: one worker, one item of its own", .run = one_worker_its_own, .preemptions = 5, .weaken = true},
    {.name = "inbox: two workers, one item for the second", .run = two_workers_one_for_1, .preemptions = 2},
    {.name = "inbox: a long item for worker 0, then one for anybody", .run = two_workers_own_and_anybodys, .preemptions = 1, .weaken = true},
    {.name = "inbox: the same, randomised", .run = two_workers_own_and_anybodys, .pct_depth = 4, .executions_max = 200000},
    {.name = "mutant: work for one worker wakes anyone", .run = two_workers_one_for_1, .preemptions = 2, .mutant = INBOX_LIKE_INJECT, .must_fail = true,
     .why = "lost"},
    {.name = "mutant: the re-scan leaves the inbox out", .run = one_worker_its_own, .preemptions = 3, .mutant = INBOX_NOT_SCANNED, .must_fail = true,
     .why = "lost"},
    {.name = "mutant: no fence between inbox and look", .run = one_worker_its_own, .preemptions = 3, .mutant = INBOX_NO_FENCE, .must_fail = true,
     .why = "lost"},
    {.name = "mutant: woken for its inbox, not counted as a searcher", .run = one_worker_its_own, .preemptions = 3, .mutant = INBOX_WITHOUT_RIGHT,
     .must_fail = true},
    {.name = "mutant: woken for its inbox, passes no search on", .run = two_workers_own_and_anybodys, .preemptions = 2,
     .mutant = INBOX_FINDER_KEEPS_QUIET, .must_fail = true, .why = "lost"},
    {.name = "mutant: no re-scan", .run = one_worker_one_item, .preemptions = 3, .mutant = NO_RESCAN, .must_fail = true, .why = "lost"},
    {.name = "mutant: re-scan before publishing", .run = one_worker_one_item, .preemptions = 3, .mutant = RESCAN_BEFORE_PUBLISHING, .must_fail = true,
     .why = "lost"},
    {.name = "mutant: searching flag cleared after publishing", .run = one_worker_two_items, .preemptions = 3, .mutant = RIGHT_CLEARED_TOO_LATE,
     .must_fail = true},
    {.name = "mutant: the last searcher keeps quiet", .run = two_workers_two_long_items, .preemptions = 2, .mutant = FINDER_KEEPS_QUIET, .must_fail = true,
     .why = "lost"},
    {.name = "mutant: a pushing worker trusts the hint", .run = a_worker_pushes, .preemptions = 3, .mutant = HINT_ONLY, .must_fail = true, .why = "lost"},
    {.name = "mutant: a thread outside looks without a fence", .run = one_worker_one_item, .preemptions = 3, .mutant = NO_FENCE_OUTSIDE, .must_fail = true,
     .why = "lost"},
};

static const struct model_spare spare[] = {
    {"sched/park.c", "", "park has a model test of its own"},
    {NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
    return model_main_with(argc, argv, cases, MODEL_COUNT(cases), spare);
}
