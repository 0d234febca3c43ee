/* SPDX-License-Identifier: MIT
 *
 * Trackers, proven: who waits is let through when it is closed and empty, sees what was done before, and may free the tracker; whoever opens it
 * again meanwhile, and however the last tasks leave.
 */
#include "leaf.h"

#include "flow/member.c"
#include "flow/tracker.c"

#include <string.h>

static weft_tracker *tracker;
static int written[2];
static bool frees;

enum { HONEST, LAST_LEAVES_WITHOUT_THE_LOCK, CLOSES_WITHOUT_THE_LOCK };

void *weft__task_frame(weft_task *task)
{
    return task + 1;
}

int weft__spawn_refused(const weft_spawn_opts *opts)
{
    (void)opts;
    return -ENOMEM;
}

int weft_detach(weft_task *task)
{
    (void)task;
    return 0;
}

static weft_poll waits(struct actor *actor, weft_cx *cx)
{
    struct weft_tracker_wait *f = (void *)actor->frame;
    f->tracker = tracker;
    if (weft_tracker_wait_poll(f, cx) == WEFT_PENDING) return WEFT_PENDING;
    if (f->ret < 0) {
        given_up++;
        return WEFT_READY;
    }
    got++;
    model_assert(plain_read(&written[0]) == 1);
    model_assert(plain_read(&written[1]) == 1);
    if (frees) model_free(tracker);
    return WEFT_READY;
}

static void begin(unsigned count, uint32_t references)
{
    actors_begin();
    plain_write(&written[0], 0);
    plain_write(&written[1], 0);
    tracker = model_alloc(sizeof(*tracker));
    memset((void *)tracker, 0, sizeof(*tracker));
    weft__waitlist_init(&tracker_of(tracker)->list);
    store_relaxed(&tracker_of(tracker)->word, ONE * count);
    actors[0] = actor_new(waits, references);
    memset(actors[0]->frame, 0, sizeof(actors[0]->frame));
}

static void leaves(void *place)
{
    struct tracker *t = tracker_of(tracker);
    plain_write((int *)place, 1);
    if (model_mutant == LAST_LEAVES_WITHOUT_THE_LOCK) {
        if (fetch_sub_acq_rel(&t->word, ONE) == (ONE | CLOSED))
            (void)weft__waitlist_wake_all(&t->list, &weft__sched);
    } else {
        weft_tracker_leave(tracker);
    }
}

static void closes(void *place)
{
    struct tracker *t = tracker_of(tracker);
    if (place) plain_write((int *)place, 1);
    if (model_mutant == CLOSES_WITHOUT_THE_LOCK) {
        if (fetch_or_acquire(&t->word, CLOSED) == 0)
            (void)weft__waitlist_wake_all(&t->list, &weft__sched);
    } else {
        (void)weft_tracker_close(tracker);
    }
}

static void opens_again(void *arg)
{
    (void)arg;
    (void)weft_tracker_reopen(tracker);
}

/* ---- the cases ---- */

static void closed_while_one_leaves(void)
{
    begin(1, 0);
    frees = true;
    model_thread(actor_begin, actors[0]);
    model_thread(leaves, &written[0]);
    model_thread(closes, &written[1]);
    model_join();
    model_assert(got == 1);
}

static void two_leave(void)
{
    begin(2, 0);
    closes(NULL);
    frees = true;
    model_thread(actor_begin, actors[0]);
    model_thread(leaves, &written[0]);
    model_thread(leaves, &written[1]);
    model_join();
    model_assert(got == 1);
}

/* Opened again: whoever waited for that moment is let through, or waits on; and then it is closed for good. */
static void opened_again(void)
{
    begin(1, 1);
    plain_write(&written[1], 1);
    closes(NULL);
    frees = false;
    actor_run(actors[0]);
    model_thread(leaves, &written[0]);
    model_thread(opens_again, NULL);
    model_thread(actor_cancel, actors[0]);
    model_join();
    model_assert(got + given_up == 1);
    weft_tracker_done(tracker);
    model_free(tracker);
}

static const struct model_case cases[] = {
    {.name = "tracker: closed while the last one leaves", .run = closed_while_one_leaves, .preemptions = 3, .weaken = true},
    {.name = "tracker: two leave a closed one", .run = two_leave, .preemptions = 3, .weaken = true},
    {.name = "tracker: opened again, a waiter cancelled", .run = opened_again, .preemptions = 3, .weaken = true},
    {.name = "mutant: the last one leaves without the lock", .run = two_leave, .mutant = LAST_LEAVES_WITHOUT_THE_LOCK, .must_fail = true},
    {.name = "mutant: closed without the lock", .run = closed_while_one_leaves, .mutant = CLOSES_WITHOUT_THE_LOCK, .must_fail = true},
};

static const struct model_spare spare[] = {LEAF_SPARE, {"task/state.c", "", "proven by model_state"}, {NULL, NULL, NULL}};

int main(int argc, char **argv)
{
    return model_main_with(argc, argv, cases, MODEL_COUNT(cases), spare);
}
