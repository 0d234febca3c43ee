/* SPDX-License-Identifier: MIT
 *
 * leaf - tasks for model tests of what stands on the wait list, with the real list, state word and wakers.
 *
 * An actor is a task in one block, header and frame; whoever gets the right to poll it polls it on the spot. Its body is a
 * function that polls the leaf in `frame`, and answers as it does; once it is over the block is freed. A cancel needs a reference:
 * actor_new(body, 1), then actor_cancel in one of the threads.
 */
#ifndef MODEL_LEAF_H
#define MODEL_LEAF_H

#ifndef WEFT__WAKE_BATCH
#define WEFT__WAKE_BATCH 1
#endif
#include "../harness/ending.h"
#include "sync/waitlist.c"
#include "task/call.h"
#include "task/join.c"
#include "task/state.c"
#include "task/waker.c"

#include <errno.h>

struct actor {
    struct weft_task task;
    weft_poll (*body)(struct actor *actor, weft_cx *cx);
    _Alignas(16) char frame[192];
};

static struct actor *current[MODEL_THREADS_MAX]; /* whose poll each thread is in */
static struct actor *actors[4];
static unsigned got;
static unsigned given_up;

int weft__run_from(weft_pollfn *poll, void *frame, const void *caller)
{
    (void)poll;
    (void)frame;
    (void)caller;
    return -EDEADLK; /* nobody calls */
}

int weft_cx_cancelled(weft_cx *cx)
{
    return cx->why;
}

static void actor_free(struct actor *actor)
{
    weft__state_free(&actor->task);
    model_free(actor);
}

static weft_poll actor_poll(struct actor *actor)
{
    struct actor *outer = current[model_self()];
    weft_cx cx = {
        .waker = weft__waker_of(&actor->task),
        .why = weft__state_why(weft__state_begin_poll(&actor->task)),
        .budget = WEFT__UNBUDGETED,
    };
    current[model_self()] = actor;
    weft_poll answer = actor->body(actor, &cx);
    current[model_self()] = outer;
    return answer;
}

/* The caller holds the right to poll it. */
static void actor_run(struct actor *actor)
{
    do {
        if (actor_poll(actor) == WEFT_PENDING) continue;
        if (ending_alone(&actor->task) == WEFT__STATE_FREE) actor_free(actor);
        return;
    } while (weft__state_end_poll(&actor->task) == WEFT__STATE_REQUEUE);
}

static void actor_push(void *unused, struct weft_task *task)
{
    (void)unused;
    actor_run((struct actor *)(void *)task);
}

static void actor_push_chain(void *unused, struct weft_task *first, struct weft_task *last, uint32_t count)
{
    (void)unused;
    (void)last;
    for (struct weft_task *t = first; count-- > 0;) {
        struct weft_task *next = load_relaxed(&t->link);
        actor_run((struct actor *)(void *)t);
        t = next;
    }
}

static const struct weft__sched_ops actor_ops = {.push = actor_push, .push_chain = actor_push_chain};
const struct weft__sched weft__sched = {.ops = &actor_ops};

static const struct weft_site actor_site; /* no fiber, nor has it a box */

static struct actor *actor_new(weft_poll (*body)(struct actor *, weft_cx *), uint32_t references)
{
    struct actor *actor = model_alloc(sizeof(*actor));
    weft__state_init(&actor->task, references);
    actor->task.site = &actor_site;
    actor->body = body;
    return actor;
}

/* As threads. */
static void actor_begin(void *actor)
{
    actor_run(actor);
}

__attribute__((unused)) static void actor_cancel(void *arg)
{
    struct actor *actor = arg;
    if (weft__state_cancel(&actor->task) == WEFT__STATE_ENQUEUE) actor_run(actor);
    if (weft__state_unref(&actor->task) == WEFT__STATE_FREE) actor_free(actor);
}

static void actors_begin(void)
{
    got = 0;
    given_up = 0;
    for (unsigned i = 0; i < MODEL_THREADS_MAX; i++)
        current[i] = NULL;
}

/* What lies below is proven by tests of its own (state.c, join.c, waitlist.c), and met here by the way. */
#define LEAF_SPARE {"task/state.h", "", "proven by model_state"}, {"task/join.h", "", "proven by model_join"}

#endif
