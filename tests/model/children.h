/* SPDX-License-Identifier: MIT
 *
 * children - members of a set, for model tests of sets: a task, its result, and what a member has behind its frame. Nobody polls
 * them: child_ends is all that their worker does. What a set asks of the runtime is here as well.
 *
 *     #define CHILD_BEHIND sizeof(struct weft__member)        what lies behind the frame, said before this is included
 *     struct child *child = child_new(1);                     1: its result
 *     model_thread(child_ends, child);
 */
#ifndef MODEL_CHILDREN_H
#define MODEL_CHILDREN_H

#include "leaf.h"

#include "flow/member.c"
#include "flow/set.c"

struct child {
    struct weft_task task;
    _Alignas(16) int result;
    int ends_with;                          /* constant */
    _Alignas(16) char behind[CHILD_BEHIND]; /* the member is its end */
};
_Static_assert(CHILD_BEHIND % 16 == 0, "nothing lies behind the member");
static const struct weft_site site = {.frame_bytes = sizeof(struct child) - sizeof(struct weft_task), .ret_bytes = sizeof(int)};
static struct child *children[2];
static unsigned freed; /* children */

static void child_free(struct weft_task *task)
{
    weft__state_free(task);
    model_free(task);
    freed++;
}

void *weft__task_frame(weft_task *task)
{
    return task + 1;
}

weft_task *weft_ref(weft_task *task)
{
    return task; /* nobody asks for one */
}

int weft__spawn_refused(const weft_spawn_opts *opts)
{
    (void)opts;
    return -ENOMEM;
}

int weft_detach(weft_task *task)
{
    if (ending_detach(task) == WEFT__STATE_FREE) child_free(task);
    return 0;
}

/* It has ended: that is all that is asked for. */
weft_poll weft_join_poll(void *frame, weft_cx *cx)
{
    struct weft_join *f = frame;
    struct child *child = (void *)f->task;
    (void)cx;
    model_assert(weft__state_is_complete(f->task));
    int result = plain_read(&child->result);
    model_assert(result == child->ends_with);
    if (f->into) *(int *)f->into = result;
    if (weft__state_unref(f->task) == WEFT__STATE_FREE) child_free(f->task);
    f->ret = 0;
    return WEFT_READY;
}

static struct child *child_new(int ends_with)
{
    struct child *child = model_alloc(sizeof(*child));
    weft__state_init(&child->task, 1);
    child->task.site = &site;
    child->ends_with = ends_with;
    plain_write(&child->result, 0);
    return child;
}

/* As its worker ends it. */
static void child_ends(void *arg)
{
    struct child *child = arg;
    plain_write(&child->result, child->ends_with);
    struct weft__join_done done = ending_complete(&child->task);
    weft__waker_push(done.joiner, &weft__sched);
    if (done.free) child_free(&child->task);
}

#endif
