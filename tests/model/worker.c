/* SPDX-License-Identifier: MIT
 *
 * The worker's loop, proven as it is (worker_loop.h): every task is polled once, whole; no worker sleeps
 * upon one; all leave when the runtime stops, and give their rights back. idle.c proves the protocol with
 * a loop of its own; here the loop is find.c's and worker.c's. Workers that have fds are worker_port.c's.
 */
#include "worker_loop.h"

/* ---- who pushes ---- */

static void outsider_pushes_two(void *arg)
{
    (void)arg;
    push(0, 0);
    push(1, 0);
}

/* The first, for worker 0 alone, lasts until the second, for anybody, has begun. */
static void outsider_pushes_both(void *arg)
{
    (void)arg;
    push_home_of(0, 0, 2);
    push(1, 0);
}

/* ---- the cases ---- */

static void two_from_outside(void)
{
    begin(1, 2);
    model_thread(worker_runs, &workers[0]);
    model_thread(outsider_pushes_two, NULL);
    end();
}

static void pinned_then_anybodys(void)
{
    begin(2, 2);
    model_thread(worker_runs, &workers[0]);
    model_thread(worker_runs, &workers[1]);
    model_thread(outsider_pushes_both, NULL);
    end();
}

/* Worker 1 polls job 0, which pushes three more and ends; then job 1, which lasts until another of
 * them has begun: worker 0, whatever it is doing, has to come and take it. */
static void backlog_of(unsigned count)
{
    begin(2, count);
    (void)job_new(0, 0);
    for (unsigned i = 1; i < goal; i++)
        (void)job_new(i, i == 1 ? 3 : 0);
    jobs[0].spawns = true;
    (void)weft__slot_put(&workers[1].next, &jobs[0].task);
    model_thread(worker_runs, &workers[0]);
    model_thread(worker_runs, &workers[1]);
    end();
}

static void a_backlog_is_shared(void)
{
    backlog_of(4);
}

/* Job 2 is in the hand behind job 1: it is one of the others that has to come. */
static void behind_a_hand(void)
{
    backlog_of(5);
}

static const struct model_case cases[] = {
    {.name = "worker: a task from outside",
     .run = one_from_outside,
     .preemptions = 3,
     .weaken = true},
    {.name = "worker: two from outside", .run = two_from_outside, .preemptions = 2},
    {.name = "worker: a pinned task from outside",
     .run = pinned_from_outside,
     .preemptions = 3,
     .weaken = true},
    {.name = "worker: stopped while it falls asleep",
     .run = stopped,
     .preemptions = 3,
     .weaken = true},
    {.name = "worker: two workers, one from outside",
     .run = two_workers_one_from_outside,
     AT_RANDOM},
    {.name = "worker: a long pinned task, then anybody's", .run = pinned_then_anybodys, AT_RANDOM},
    {.name = "worker: a backlog is shared", .run = a_backlog_is_shared, .preemptions = 1},
    {.name = "worker: a backlog is shared, at random", .run = a_backlog_is_shared, AT_RANDOM},
    {.name = "worker: a backlog behind a hand is shared", .run = behind_a_hand, .preemptions = 1},
    {.name = "worker: a backlog behind a hand is shared, at random", .run = behind_a_hand, AT_RANDOM},
    {.name = "worker: two are stopped", .run = two_stopped, .preemptions = 1},
    {.name = "worker: two are stopped, at random",
     .run = two_stopped,
     .pct_depth = 3,
     .executions_max = 2000,
     .weaken = true},
    {.name = "mutant: the re-scan leaves the inject queue out",
     .run = one_from_outside,
     .mutant = INJECT_NOT_SCANNED,
     .must_fail = true,
     .why = "lost"},
    {.name = "mutant: the re-scan leaves the inbox out",
     .run = pinned_from_outside,
     .mutant = INBOX_NOT_SCANNED,
     .must_fail = true,
     .why = "lost"},
    {.name = "mutant: the re-scan leaves the rings out",
     .run = a_backlog_is_shared,
     AT_RANDOM,
     .mutant = RINGS_NOT_SCANNED,
     .must_fail = true,
     .why = "lost"},
    {.name = "mutant: a thread outside looks without a fence",
     .run = one_from_outside,
     .mutant = OUTSIDER_WITHOUT_FENCE,
     .must_fail = true,
     .why = "lost"},
    {.name = "mutant: no fence between inbox and look",
     .run = pinned_from_outside,
     .mutant = INBOX_WITHOUT_FENCE,
     .must_fail = true,
     .why = "lost"},
    {.name = "mutant: an offer looks without a fence",
     .run = a_backlog_is_shared,
     AT_RANDOM,
     .mutant = OFFER_WITHOUT_FENCE,
     .must_fail = true,
     .why = "lost"},
    {.name = "mutant: a searcher keeps its right",
     .run = two_from_outside,
     .preemptions = 2,
     .mutant = RIGHT_KEPT,
     .must_fail = true,
     .why = "lost"},
    {.name = "mutant: a searcher passes nothing on",
     .run = pinned_then_anybodys,
     AT_RANDOM,
     .mutant = FINDER_KEEPS_QUIET,
     .must_fail = true,
     .why = "lost"},
    {.name = "mutant: stopped after the wake",
     .run = stopped,
     .mutant = STOPS_AFTER_THE_WAKE,
     .must_fail = true,
     .why = "lost"},
};

static const struct model_spare spare[] = {
    {"sched/find.c", "load_acquire(&rt->stage)",
     "the look before the park: the loop comes to the other one next, and that one leaves"},
    {"sched/idle.c", "fetch_add_release(word_of",
     "[idle-own]: nothing that a waker reads here was written late"},
    {"sched/idle.c", "cas_acquire(of", "the same"},
    {"sched/idle.c", "mb_after_rmw()", "in search_end: it takes two workers, as in idle.c"},
    {"sched/inject.c", "", "inject has a model test of its own"},
    {"sched/park.c", "", "so has park"},
    {"sched/watch.c", "", "so has watch, and nobody dozes here"},
    {"sched/poll.h", "store_release((&w->counts.completed",
     "[rt-ended] is for the one who stops a runtime with tasks"},
    {"sched/sched.h", "store_release(&w->rests", "[clock-rest] is clock_idle's: nobody moves a clock here"},
    {"task/join.h", "", "join has a model test of its own: nobody joins here"},
    {"task/state.h", "", "so has state"},
    {NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
    return model_main_with(argc, argv, cases, MODEL_COUNT(cases), spare);
}
