/* SPDX-License-Identifier: MIT
 *
 * member - how an owner is told of a task's end; the idea is in member.h.
 */
#include "flow/member.h"

#include <errno.h>
#include <string.h>

/* By the deliverer, which has a reference of its own, and drops it next. */
void weft__member_wake(struct weft__foreign *foreign)
{
    weft__foreign_unref(foreign);
}

void weft__member_init(struct weft__member *member, struct weft_task *task, void *owner,
                       const struct weft__foreign_ops *ops)
{
    weft__foreign_init(&member->foreign, ops);
    weft__link_init(&member->link);
    member->owner = owner;
    member->task = task;
    member->swept = 0;
    member->unwanted = false;
    member->ended = false;
}

void weft__member_watch(struct weft__member *member)
{
    struct weft_waker waker = weft__waker_of_foreign(&member->foreign);
    enum weft__join join = weft__join_poll(member->task, waker);

    weft_assert(join != WEFT__JOIN_YIELD); /* nobody else has joined it */
    if (join == WEFT__JOIN_READY) weft__foreign_unref(&member->foreign);
}

void weft__member_cancel(struct weft__member *member, int why, struct weft__wake_chain *chain)
{
    struct weft_task *task = member->task;
    if (weft__state_cancel_for(task, why) == WEFT__STATE_ENQUEUE)
        weft__wake_chain_add(chain, task); /* the right to enqueue it is ours */
}

/* The low bytes come first on the machines we run on, and the sign fills the rest. */
static int64_t result_of(const struct weft_task *task)
{
    const struct weft_site *site = task->site;
    const char *at = (const char *)weft__task_frame((struct weft_task *)(uintptr_t)task);
    int64_t result = 0;

    memcpy(&result, at + site->ret_at, site->ret_bytes);
    unsigned unused_bits = 64 - 8 * (unsigned)site->ret_bytes;
    return (int64_t)((uint64_t)result << unused_bits) >> unused_bits;
}

int weft__member_failure(const struct weft__member *member)
{
    const struct weft_task *task = member->task;
    if (!task->site->ret_signed) return 0;
    int64_t result = result_of(task);
    if (result >= 0) return 0;
    return result == weft__state_why(weft__state_look(task)) ? 0 : (int)result;
}
