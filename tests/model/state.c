/* SPDX-License-Identifier: MIT
 *
 * The task's state word, proven: every wake is followed by a poll that sees what was written before it; one poller at a time; the block is freed
 * exactly once, by the last who could touch it.
 *
 * The queue between claim and poll is a list of one under the checker's lock, and a thread that is told to enqueue polls the task itself: the shortest
 * way a scheduler could take. The task waits for `goal` messages; each waker adds one message, then wakes it.
 */
#include "../harness/ending.h"
#include "task/join.c"
#include "task/state.c"
#include "task/waker.c"

static struct weft_task *task;
static _Atomic unsigned messages;   /* written relaxed: the wake has to carry it */
static unsigned goal;
static int frame;                   /* only the poller may touch it */
static int reason;                  /* why it is cancelled: written before the cancel */
static bool done;
static unsigned polls;

/* ---- broken twins ---- */

enum { HONEST, CLAIM_TRUSTS_A_LOAD, BEGIN_WITHOUT_ACQUIRE, END_BY_STORE, UNREF_BY_LOAD, CANCEL_IN_TWO_STEPS };

static enum weft__state_next claim_by_load(void)
{
    uint64_t word = load_acquire(&task->state);
    if (word & (WEFT__STATE_NOTIFIED | WEFT__STATE_COMPLETE)) return WEFT__STATE_NOTHING;
    return weft__state_claim(task);
}

static enum weft__state_next end_poll_by_store(void)
{
    uint64_t word = load_acquire(&task->state);
    if (word & WEFT__STATE_NOTIFIED) {
        store_release(&task->state, word & ~WEFT__STATE_NOTIFIED);
        return WEFT__STATE_REQUEUE;
    }
    store_release(&task->state, word & ~WEFT__STATE_SCHED); /* a claim in between is lost */
    return WEFT__STATE_NOTHING;
}

static enum weft__state_next unref_by_load(void)
{
    uint64_t word = fetch_sub_acq_rel(&task->state, WEFT__STATE_REF);
    if (weft__state_references_of(word) != 1) return WEFT__STATE_NOTHING;
    return weft__state_is_complete(task) ? WEFT__STATE_FREE : WEFT__STATE_NOTHING; /* looks again, after the reference is gone */
}

static enum weft__state_next claim(void)
{
    return model_mutant == CLAIM_TRUSTS_A_LOAD ? claim_by_load() : weft__state_claim(task);
}

static enum weft__state_next end_poll(void)
{
    return model_mutant == END_BY_STORE ? end_poll_by_store() : weft__state_end_poll(task);
}

static uint64_t begin_poll(void)
{
    if (model_mutant == BEGIN_WITHOUT_ACQUIRE) return fetch_and_relaxed(&task->state, ~WEFT__STATE_NOTIFIED);
    return weft__state_begin_poll(task);
}

static enum weft__state_next cancel(void)
{
    if (model_mutant == CANCEL_IN_TWO_STEPS) { /* the poll between the two does not see why it was woken */
        enum weft__state_next next = weft__state_claim(task);
        (void)fetch_or_acq_rel(&task->state, WEFT__STATE_CANCELLED);
        return next;
    }
    return weft__state_cancel(task);
}

/* ---- a task and its poller ---- */

static void free_task(void)
{
    weft__state_free(task);
    model_free(task);
}

static void unref(void)
{
    enum weft__state_next next = model_mutant == UNREF_BY_LOAD ? unref_by_load() : weft__state_unref(task);
    if (next == WEFT__STATE_FREE) free_task();
}

/* READY once all messages are there, or once it is cancelled. */
static bool poll_once(uint64_t word)
{
    plain_write(&frame, plain_read(&frame) + 1);
    polls++;
    if (word & WEFT__STATE_CANCELLED) model_assert(plain_read(&reason) == 1);
    return load_relaxed(&messages) >= goal || (word & WEFT__STATE_CANCELLED);
}

/* The caller holds the right to poll. */
static void run(void)
{
    do {
        if (!poll_once(begin_poll())) continue;
        done = true;
        if (ending_alone(task) == WEFT__STATE_FREE) free_task();
        return;
    } while (end_poll() == WEFT__STATE_REQUEUE);
}

static void begin(unsigned references, unsigned messages_to_come)
{
    task = model_alloc(sizeof(*task));
    store_relaxed(&messages, 0);
    plain_write(&frame, 0);
    plain_write(&reason, 0);
    goal = messages_to_come;
    done = false;
    polls = 0;
    weft__state_init(task, references);
}

static void waker(void *arg)
{
    (void)arg;
    fetch_add_relaxed(&messages, 1);
    if (claim() == WEFT__STATE_ENQUEUE) run();
    unref();
}

static void first_poll(void *arg)
{
    (void)arg;
    run();
}

static void canceller(void *arg)
{
    if (arg) plain_write(&reason, 1);
    if (cancel() == WEFT__STATE_ENQUEUE) run();
    unref();
}

/* ---- the cases ---- */

static void one_waker(void)
{
    begin(1, 1);
    model_thread(waker, NULL);
    run();
    model_join();
    model_assert(done);
}

static void two_wakers(void)
{
    begin(2, 2);
    model_thread(waker, NULL);
    model_thread(waker, NULL);
    run();
    model_join();
    model_assert(done);
}

/* The wake comes while the task is queued: between the claim and the poll. */
static void wake_while_queued(void)
{
    begin(2, 2);
    model_thread(first_poll, NULL);
    model_thread(waker, NULL);
    model_thread(waker, NULL);
    model_join();
    model_assert(done);
}

static void cancel_against_poll(void)
{
    begin(1, 1); /* the message never comes */
    model_thread(canceller, &reason);
    run();
    model_join();
    model_assert(done);
}

static void cancel_against_wake(void)
{
    begin(2, 1);
    model_thread(canceller, &reason);
    model_thread(waker, NULL);
    run();
    model_join();
    model_assert(done);
}

static void two_cancels(void)
{
    begin(2, 1);
    plain_write(&reason, 1);
    model_thread(canceller, NULL);
    model_thread(canceller, NULL);
    run();
    model_join();
    model_assert(done);
}

static void holder(void *arg)
{
    (void)arg;
    unref();
}

/* Three references go while the task completes; the result is read by whoever sees it complete. */
static void references_against_complete(void)
{
    begin(2, 0);
    model_thread(holder, NULL);
    model_thread(holder, NULL);
    run();
    model_join();
    model_assert(done);
}

static void ref_and_unref(void *arg)
{
    (void)arg;
    int r = weft__state_ref(task);
    model_assert(r == 0);
    unref();
    unref();
}

static void references_come_and_go(void)
{
    begin(2, 0);
    model_thread(ref_and_unref, NULL);
    model_thread(holder, NULL);
    run();
    model_join();
}

/* A sweep cancels by id while the task, to which nobody refers, completes and its block is used again. */
static uint32_t swept_generation;

static void sweeper(void *arg)
{
    (void)arg;
    if (weft__state_cancel_id(task, swept_generation) == WEFT__STATE_ENQUEUE) run();
}

static void sweep_against_reuse(void)
{
    task = model_alloc(sizeof(*task));
    store_relaxed(&messages, 0);
    plain_write(&frame, 0);
    goal = 0;
    done = false;
    weft__state_init(task, 0);
    swept_generation = weft__state_generation(task);
    model_thread(sweeper, NULL);
    (void)weft__state_begin_poll(task);
    enum weft__state_next next = ending_alone(task);
    model_assert(next == WEFT__STATE_FREE);
    weft__state_free(task);
    weft__state_init(task, 1); /* the next life of the block */
    model_assert(!weft__state_is_cancelled(task));
    model_join();
    model_assert(!weft__state_is_cancelled(task));
    model_assert(weft__state_generation(task) == swept_generation + 1);
    (void)weft__state_begin_poll(task);
    (void)ending_alone(task);
    unref();
}

static const struct model_case cases[] = {
    {.name = "state: one waker", .run = one_waker, .unbounded = true, .weaken = true},
    {.name = "state: two wakers", .run = two_wakers, .preemptions = 4, .weaken = true},
    {.name = "state: wakes while queued", .run = wake_while_queued, .preemptions = 3, .weaken = true},
    {.name = "state: cancel against poll", .run = cancel_against_poll, .unbounded = true, .weaken = true},
    {.name = "state: cancel against wake and poll", .run = cancel_against_wake, .preemptions = 4, .weaken = true},
    {.name = "state: two cancels", .run = two_cancels, .preemptions = 4, .weaken = true},
    {.name = "state: references against completion", .run = references_against_complete, .preemptions = 4, .weaken = true},
    {.name = "state: references come and go", .run = references_come_and_go, .unbounded = true, .weaken = true},
    {.name = "state: a sweep against the block's next life", .run = sweep_against_reuse, .unbounded = true, .weaken = true},
    {.name = "mutant: claim returns early on a load", .run = two_wakers, .preemptions = 4, .mutant = CLAIM_TRUSTS_A_LOAD, .must_fail = true},
    {.name = "mutant: poll begins without acquire", .run = wake_while_queued, .preemptions = 3, .mutant = BEGIN_WITHOUT_ACQUIRE, .must_fail = true},
    {.name = "mutant: poll ends by a store", .run = one_waker, .unbounded = true, .mutant = END_BY_STORE, .must_fail = true},
    {.name = "mutant: unref looks again", .run = references_against_complete, .unbounded = true, .mutant = UNREF_BY_LOAD, .must_fail = true},
    {.name = "mutant: cancel in two steps", .run = cancel_against_poll, .unbounded = true, .mutant = CANCEL_IN_TWO_STEPS, .must_fail = true},
};

static const struct model_spare spare[] = {
    {"task/state.h", "store_release(&task->state, word)", "for those who walk the registry without having met a queue: model_slab has that store"},
    {NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
    return model_main_with(argc, argv, cases, MODEL_COUNT(cases), spare);
}
