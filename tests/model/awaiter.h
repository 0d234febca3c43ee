/* SPDX-License-Identifier: MIT
 *
 * awaiter - a task for model tests of what is handed over to who awaits it: the real state word and the
 * real waker, and for its worker a thread of its own, which parks while the task is not queued.
 *
 * Its thread goes through the polls by hand: awaiter_first_poll, then awaiter_next_poll for as long as the
 * answer is to wait; both tell the state word, which says whether it was cancelled meanwhile.
 *
 *     static struct awaiter a;                awaiter_init(&a) in each execution
 *     ... weft__waker_of(&a.task) ...         woken by way of awaiter_sched
 *     model_thread(awaiter_cancel, &a);       as weft_cancel
 */
#ifndef MODEL_AWAITER_H
#define MODEL_AWAITER_H

#include "sched/park.c"
#include "task/state.c"
#include "task/waker.c"

struct awaiter {
    struct weft_task task;  /* as much of it as its state */
    struct weft__park park; /* where its thread sleeps while it is not queued */
};

static void awaiter_init(struct awaiter *a)
{
    store_relaxed(&a->task.state, 0); /* of the execution before */
    weft__state_init(&a->task, 1);
    weft__park_init(&a->park);
}

static void awaiter_push(void *unused, struct weft_task *task)
{
    (void)unused;
    weft__unpark(&weft__container_of(task, struct awaiter, task)->park);
}

static void awaiter_push_chain(void *unused, struct weft_task *first, struct weft_task *last,
                               uint32_t count)
{
    model_assert(first == last && count == 1);
    awaiter_push(unused, first);
}

static const struct weft__sched_ops awaiter_ops = {.push = awaiter_push,
                                                   .push_chain = awaiter_push_chain};
static const struct weft__sched awaiter_sched = {.ops = &awaiter_ops};

static void awaiter_cancel(void *awaiter)
{
    struct awaiter *a = awaiter;
    if (weft__state_cancel(&a->task) == WEFT__STATE_ENQUEUE) awaiter_push(NULL, &a->task);
}

static uint64_t awaiter_first_poll(struct awaiter *a)
{
    return weft__state_begin_poll(&a->task);
}

static uint64_t awaiter_next_poll(struct awaiter *a)
{
    if (weft__state_end_poll(&a->task) != WEFT__STATE_REQUEUE)
        (void)weft__park(&a->park, WEFT__NEVER);
    return weft__state_begin_poll(&a->task);
}

static const struct model_spare awaiter_spare[] = {
    {"task/state.h", "", "state has a model test of its own"},
    {"sched/park.c", "", "park has a model test of its own"},
    {NULL, NULL, NULL},
};

#endif
