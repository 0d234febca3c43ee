/* SPDX-License-Identifier: MIT
 *
 * Join, proven: the joiner is woken, sees the result, and neither block is freed under somebody who still touches it, although the joiner may be polled
 * for another reason at any moment, may leave, and the handle may be dropped while the child ends.
 *
 * Whoever gets the right to poll the joiner polls it on the spot. The result lies in the child's own block, as plain memory.
 */
#include "../harness/ending.h"
#include "task/join.c"
#include "task/state.c"
#include "task/waker.c"

static struct weft_task *child;
static struct weft_task *joiner;
static bool joined;
static bool leaves;                 /* the joiner gives up at its second poll */
static unsigned joiner_polls;

/* ---- broken twins ---- */

enum { HONEST, COMPLETE_FIRST, WAITS_ON_TAKEN, LEAVES_AT_ONCE, CLAIM_TRUSTS_A_LOAD, TOUCHES_AFTER_COMPLETE, ENDS_BY_ADDITION, DETACH_LOOKS_RELAXED };

/* Takes the joiner's waker, if there is one, and completes before or after; claims it when told to. */
static struct weft_waker taken(void)
{
    uint64_t word = fetch_or_acq_rel(&child->state, WEFT__STATE_TAKEN);
    uintptr_t waker = load_relaxed(&child->join);
    return word & WEFT__STATE_JOINER ? (struct weft_waker){waker} : weft__waker_none();
}

static bool completed(void)
{
    uint64_t word = fetch_add_acq_rel(&child->state, WEFT__STATE_COMPLETE - WEFT__STATE_SCHED);
    return weft__state_references_of(word) == 0;
}

static struct weft_waker claimed(struct weft_waker waker)
{
    return weft__waker_is_none(waker) ? waker : weft__waker_claim(waker);
}

static struct weft__join_done complete_first(void)
{
    struct weft__join_done d = {.joiner = weft__waker_none()};
    d.free = completed();
    d.joiner = claimed(taken());
    return d;
}

static struct weft__join_done claim_by_load(void)
{
    struct weft_waker waker = taken();
    struct weft__join_done d = {.joiner = weft__waker_none()};
    if (!(load_acquire(&joiner->state) & WEFT__STATE_NOTIFIED)) d.joiner = claimed(waker);
    d.free = completed();
    return d;
}

static struct weft__join_done touch_after_complete(void)
{
    struct weft_waker waker = taken();
    struct weft__join_done d = {.joiner = weft__waker_none()};
    d.free = completed();
    d.joiner = claimed(waker); /* the joiner may have seen COMPLETE, and be gone */
    return d;
}

/* Looks for a joiner once, and ends the child whatever comes meanwhile. */
static struct weft__join_done end_by_addition(void)
{
    struct weft__join_done d = {.joiner = weft__waker_none()};
    if (load_acquire(&child->state) & WEFT__STATE_JOINER) d.joiner = claimed(taken());
    d.free = completed();
    return d;
}

static struct weft__join_done complete(void)
{
    if (model_mutant == COMPLETE_FIRST) return complete_first();
    if (model_mutant == CLAIM_TRUSTS_A_LOAD) return claim_by_load();
    if (model_mutant == TOUCHES_AFTER_COMPLETE) return touch_after_complete();
    if (model_mutant == ENDS_BY_ADDITION) return end_by_addition();
    return ending_complete(child);
}

static enum weft__join join_poll(void)
{
    enum weft__join r = weft__join_poll(child, weft__waker_of(joiner));
    return r == WEFT__JOIN_YIELD && model_mutant == WAITS_ON_TAKEN ? WEFT__JOIN_PENDING : r;
}

static enum weft__join withdraw(void)
{
    enum weft__join r = weft__join_withdraw(child, weft__waker_of(joiner));
    return r == WEFT__JOIN_YIELD && model_mutant == LEAVES_AT_ONCE ? WEFT__JOIN_LEFT : r;
}

/* ---- the joiner ---- */

static void free_task(struct weft_task *t)
{
    weft__state_free(t);
    model_free(t);
}

static void unref(struct weft_task *t)
{
    if (weft__state_unref(t) == WEFT__STATE_FREE) free_task(t);
}

/* Whoever drops the handle of a complete child reads its result first. */
static void drop_handle(void)
{
    uint64_t word = load_acquire(&child->state);
    enum weft__state_next next;
    do {
        if (word & WEFT__STATE_COMPLETE) model_assert(plain_read(&child->ext) == &joined);
    } while (!weft__join_detach(child, &word, &next));
    if (next == WEFT__STATE_FREE) free_task(child);
}

static void joiner_ends(void)
{
    if (ending_alone(joiner) == WEFT__STATE_FREE) free_task(joiner);
}

static enum weft__join poll_joiner(void)
{
    joiner_polls++;
    if (leaves && joiner_polls > 1) return withdraw();
    return join_poll();
}

/* The caller holds the right to poll it. */
static void run_joiner(void)
{
    for (;;) {
        (void)weft__state_begin_poll(joiner);
        switch (poll_joiner()) {
        case WEFT__JOIN_READY:
            model_assert(plain_read(&child->ext) == &joined);
            unref(child);
            joined = true;
            joiner_ends();
            return;
        case WEFT__JOIN_LEFT:
            drop_handle();
            joined = true;
            joiner_ends();
            return;
        case WEFT__JOIN_YIELD:
            model_yield();
            continue;
        case WEFT__JOIN_PENDING:
            if (weft__state_end_poll(joiner) != WEFT__STATE_REQUEUE) return;
        }
    }
}

/* ---- the threads ---- */

static void child_ends(void *arg)
{
    (void)arg;
    plain_write(&child->ext, &joined);
    struct weft__join_done d = complete();
    if (d.free) free_task(child);
    if (!weft__waker_is_none(d.joiner)) run_joiner();
}

static void joiner_is_polled(void *arg)
{
    (void)arg;
    run_joiner();
}

/* A wake that has nothing to do with the child; its holder has a reference to the joiner. */
static void spurious_wake(void *arg)
{
    (void)arg;
    if (weft__state_claim(joiner) == WEFT__STATE_ENQUEUE) run_joiner();
    unref(joiner);
}

static void handle_is_dropped(void *arg)
{
    (void)arg;
    drop_handle();
}

static void begin(uint32_t joiner_references, bool joiner_leaves)
{
    child = model_alloc(sizeof(*child));
    joiner = model_alloc(sizeof(*joiner));
    joined = false;
    leaves = joiner_leaves;
    joiner_polls = 0;
    weft__state_init(child, 1);
    weft__state_init(joiner, joiner_references);
}

static void end(void)
{
    model_join();
    model_assert(joined);
}

/* ---- the cases ---- */

static void join_against_end(void)
{
    begin(0, false);
    model_thread(joiner_is_polled, NULL);
    model_thread(child_ends, NULL);
    end();
}

static void join_polled_for_another_reason(void)
{
    begin(1, false);
    model_thread(joiner_is_polled, NULL);
    model_thread(child_ends, NULL);
    model_thread(spurious_wake, NULL);
    end();
}

static void joiner_leaves_while_child_ends(void)
{
    begin(1, true);
    model_thread(joiner_is_polled, NULL);
    model_thread(child_ends, NULL);
    model_thread(spurious_wake, NULL);
    end();
}

static void younger_joiner(void *arg)
{
    (void)arg;
    joiner = model_alloc(sizeof(*joiner));
    weft__state_init(joiner, 0);
    run_joiner();
}

/* The joiner is born after the child: its address in the join word has to bring its contents along. */
static void joiner_younger_than_child(void)
{
    child = model_alloc(sizeof(*child));
    joined = false;
    leaves = false;
    joiner_polls = 0;
    weft__state_init(child, 1);
    model_thread(younger_joiner, NULL);
    model_thread(child_ends, NULL);
    end();
}

static void handle_dropped_while_child_ends(void)
{
    child = model_alloc(sizeof(*child));
    weft__state_init(child, 1);
    model_thread(handle_is_dropped, NULL);
    model_thread(child_ends, NULL);
    model_join();
}

/* The joiner runs the child itself, while a sweep asks it to stop. */
static void sweep(void *arg)
{
    (void)arg;
    model_assert(weft__state_cancel_id(child, 0) == WEFT__STATE_NOTHING);
}

static void inline_joiner(void *arg)
{
    (void)arg;
    (void)weft__state_begin_poll(child);
    plain_write(&child->ext, &joined);
    uint64_t word = weft__join_ending(child);
    model_assert(weft__state_is_own(word));
    weft__state_end_free(child, word);
    joined = true;
}

static void child_run_by_its_joiner(void)
{
    child = model_alloc(sizeof(*child));
    joined = false;
    weft__state_init(child, 1);
    model_thread(inline_joiner, NULL);
    model_thread(sweep, NULL);
    end();
    model_free(child);
}

/* The same beside another holder, who looks at the child's frame and lets go. */
static void holder_lets_go(void *arg)
{
    (void)arg;
    (void)plain_read(&child->scope);
    unref(child);
}

static void inline_joiner_beside_holder(void *arg)
{
    (void)arg;
    (void)weft__state_begin_poll(child);
    plain_write(&child->ext, &joined);
    uint64_t word = weft__join_ending(child);
    if (weft__state_is_own(word)) {
        (void)plain_read(&child->scope);
        weft__state_end_free(child, word);
        model_free(child);
    } else {
        (void)ending_alone(child);
        unref(child);
    }
    joined = true;
}

static void child_run_beside_a_holder(void)
{
    child = model_alloc(sizeof(*child));
    joined = false;
    plain_write(&child->scope, 0);
    weft__state_init(child, 2);
    model_thread(inline_joiner_beside_holder, NULL);
    model_thread(holder_lets_go, NULL);
    end();
}

static void detached_from_birth(void)
{
    child = model_alloc(sizeof(*child));
    weft__state_init(child, 0);
    model_thread(child_ends, NULL);
    model_join();
}

/* The child is queued when it is detached: whoever polls it meets it behind that, by a queue. */
static _Atomic int queued;

static void child_ends_from_queue(void *arg)
{
    while (!load_acquire(&queued)) model_yield(); /* [queued] with detacher */
    child_ends(arg);
}

static void detach_newborn(void)
{
    bool newborn = model_mutant == DETACH_LOOKS_RELAXED ? false : weft__join_detach_newborn(child);
    if (model_mutant == DETACH_LOOKS_RELAXED) {
        uint64_t word = load_relaxed(&child->state);
        newborn = weft__state_references_of(word) == 1;
        if (newborn) store_release(&child->state, (word | WEFT__STATE_DETACHED) - WEFT__STATE_REF);
    }
    if (!newborn) handle_is_dropped(NULL);
    store_release(&queued, 1); /* [queued] with the poller */
}

static void newborn_has(uint32_t references, void (*poller)(void *))
{
    child = model_alloc(sizeof(*child));
    store_relaxed(&child->polls, 0);
    plain_write(&child->scope, 0);
    store_relaxed(&queued, 0);
    weft__state_init(child, references);
    model_thread(poller, NULL);
}

static void newborn_detached_beside_a_holder(void)
{
    newborn_has(2, child_ends_from_queue);
    model_thread(holder_lets_go, NULL);
    detach_newborn();
    model_join();
}

/* What a sweep writes and the detach overwrites is for the next sweep to say; nobody is told to push the child, and nobody is told to free it twice. */
static void sweep_newborn(void *arg)
{
    (void)arg;
    model_assert(weft__state_cancel_id(child, 0) == WEFT__STATE_NOTHING);
}

static void child_is_buried_from_queue(void *arg)
{
    (void)arg;
    while (!load_acquire(&queued)) model_yield(); /* [queued] with detacher */
    (void)weft__state_begin_poll(child);
    uint64_t word = weft__join_ending(child);
    model_assert(weft__state_references_of(word) == 0 && (word & WEFT__STATE_DETACHED));
    weft__state_end_free(child, word);
}

static void newborn_detached_beside_a_sweep(void)
{
    newborn_has(1, child_is_buried_from_queue);
    model_thread(sweep_newborn, NULL);
    detach_newborn();
    model_join();
    model_assert(weft__state_generation(child) == 1);
    model_free(child); /* a sweep knows blocks that are free: they stay mapped */
}

/* A second holder looks whether the child is finished and reads the result then; the handle is dropped. */
static void watcher(void *arg)
{
    (void)arg;
    if (weft__state_is_complete(child)) model_assert(plain_read(&child->ext) == &joined);
    unref(child);
}

static void finished_seen_by_another(void)
{
    child = model_alloc(sizeof(*child));
    weft__state_init(child, 2);
    model_thread(watcher, NULL);
    model_thread(handle_is_dropped, NULL);
    model_thread(child_ends, NULL);
    model_join();
}

static const struct model_case cases[] = {
    {.name = "join: the joiner against the child's end", .run = join_against_end, .unbounded = true, .weaken = true},
    {.name = "join: the joiner is younger than the child", .run = joiner_younger_than_child, .unbounded = true, .weaken = true},
    {.name = "join: the joiner polled for another reason", .run = join_polled_for_another_reason, .preemptions = 3, .weaken = true},
    {.name = "join: the joiner leaves while the child ends", .run = joiner_leaves_while_child_ends, .preemptions = 3, .weaken = true},
    {.name = "join: the handle is dropped while the child ends", .run = handle_dropped_while_child_ends, .unbounded = true, .weaken = true},
    {.name = "join: the child is run by its joiner", .run = child_run_by_its_joiner, .unbounded = true},
    {.name = "join: the child is run by its joiner, beside a holder", .run = child_run_beside_a_holder, .unbounded = true, .weaken = true},
    {.name = "join: detached from birth", .run = detached_from_birth, .unbounded = true, .weaken = true},
    {.name = "join: a newborn is detached beside a holder", .run = newborn_detached_beside_a_holder, .unbounded = true, .weaken = true},
    {.name = "join: a newborn is detached beside a sweep", .run = newborn_detached_beside_a_sweep, .unbounded = true},
    {.name = "mutant: a newborn is detached by a look that acquires nothing", .run = newborn_detached_beside_a_holder, .unbounded = true,
     .mutant = DETACH_LOOKS_RELAXED, .must_fail = true},
    {.name = "join: another holder looks", .run = finished_seen_by_another, .unbounded = true, .weaken = true},
    {.name = "mutant: complete before the joiner is claimed", .run = join_polled_for_another_reason, .preemptions = 3, .mutant = COMPLETE_FIRST,
     .must_fail = true},
    {.name = "mutant: the end is an addition, not a comparison", .run = join_against_end, .unbounded = true, .mutant = ENDS_BY_ADDITION, .must_fail = true},
    {.name = "mutant: joiner waits on a taken word", .run = join_polled_for_another_reason, .preemptions = 3, .mutant = WAITS_ON_TAKEN, .must_fail = true},
    {.name = "mutant: joiner claimed after the child is complete", .run = join_polled_for_another_reason, .preemptions = 3,
     .mutant = TOUCHES_AFTER_COMPLETE, .must_fail = true},
    {.name = "mutant: joiner leaves without waiting for the claim", .run = joiner_leaves_while_child_ends, .preemptions = 3, .mutant = LEAVES_AT_ONCE,
     .must_fail = true},
    {.name = "mutant: claim returns early on a load", .run = join_polled_for_another_reason, .preemptions = 4, .mutant = CLAIM_TRUSTS_A_LOAD,
     .must_fail = true},
};

static const struct model_spare spare[] = {
    {"task/state.h", "store_release(&task->state, word)", "for those who walk the registry without having met a queue: model_slab has that store"},
    {"task/join.h", "store_release(&child->state, (word |", "the same; a queue publishes it to the poller"},
    {NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
    return model_main_with(argc, argv, cases, MODEL_COUNT(cases), spare);
}
