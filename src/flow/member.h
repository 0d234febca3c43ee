/* SPDX-License-Identifier: MIT
 *
 * member - a task that belongs to something which is told of its end: a set, a tracker.
 *
 * The owner is the member's joiner, by a foreign waker that lies behind the member's own frame, in the same block. So the end of a task
 * that belongs to nobody costs nothing more, that of a member is told by the way that joiners are told by (task/join.h), and there is
 * no memory that could be lacking. What is told:
 *     result written; waker taken and claimed; COMPLETE set; delivered: wake gives up the waker's own reference, and the
 *     deliverer's, which goes last, calls `ended`
 * `ended` is the last touch of the member by the one who completes it: from there on it is its owner's, with the handle, and may be freed.
 *
 *     BORN     -> WATCHED  [watch]        the child runs; it will be told
 *     BORN     -> ENDED    [watch]        the child was faster: `ended` was called by who watches
 *     WATCHED  -> ENDED    [deliver]      by the child's worker
 *     WATCHED  -> ALONE    [let_go]       the child forgot it; `ended` will not be called
 *
 * Threads: watch and let_go by whoever has the handle, one at a time; ended by any, once, with no lock held.
 * Pairs: those of task/join.h and task/waker.h.
 * Rejected: a wrapper around the member's body (it tells before the task is complete, and stands between a console and the frame); a
 * hook at the end of every task; a node on the heap.
 * Rejected, too: one mechanism with a scope's children (sync/kin.h). A child of a scope has neither handle nor result to be taken out: it is counted
 * under the scope's lock before its block goes, by whoever polls it, and has no joiner at all, which is what makes it cheap; a member lives on behind its
 * end, as a handle with a result, until somebody takes it. As members, children would pay a join word and a reference each; as kin, members would
 * need both of those beside the lock. Neither has a word of its own to be proven: what they share is the state word's and the join word's.
 */
#ifndef WEFT_FLOW_MEMBER_H
#define WEFT_FLOW_MEMBER_H

#include "base/list.h"
#include "task/join.h"
#include "task/waker.h"

#include <weft/set.h>

struct weft__member {
    struct weft__foreign foreign; /* the joiner of `task` */
    struct weft__link link;       /* in a list of the owner's        [owner's lock] */
    void *owner;                  /*                                 [constant] */
    struct weft_task *task; /* whose block this lies in; the handle is the owner's    [constant] */
    uint64_t swept;         /* the last sweep that saw it      [owner's lock] */
    bool unwanted;          /* nobody takes it out             [owner's lock] */
    bool ended;             /* `ended` was called              [owner's lock] */
};
_Static_assert(sizeof(struct weft__member) == WEFT__MEMBER_BYTES, "sites make room for a member");

/* The kind of an owner. `ended` gets its member's waker. */
#define WEFT__MEMBER_OPS(ended) {.wake = weft__member_wake, .free = (ended)}
void weft__member_wake(struct weft__foreign *foreign);

static inline struct weft__member *weft__member_of(struct weft__foreign *foreign)
{
    return weft__container_of(foreign, struct weft__member, foreign);
}

/* Of a task whose site has room for `bytes` behind the frame: where they begin. */
static inline void *weft__behind_frame(struct weft_task *task, size_t bytes)
{
    return (char *)weft__task_frame(task) + task->site->frame_bytes - bytes;
}

/* BORN. */
void weft__member_init(struct weft__member *member, struct weft_task *task, void *owner,
                       const struct weft__foreign_ops *ops);

/* From now on its end is told; also if it has ended before. The member may be gone when this returns. Holds: no lock. */
void weft__member_watch(struct weft__member *member);

/* True: it is ALONE, and nothing of it will be touched. False: it is at its end, and `ended` is called, or was. */
static inline bool weft__member_let_go(struct weft__member *member)
{
    struct weft_waker waker = weft__waker_of_foreign(&member->foreign);
    return weft__join_withdraw(member->task, waker) == WEFT__JOIN_LEFT;
}

/* Asks it to stop. If it has to be pushed for that, it is in the chain. May be called under the owner's lock. */
void weft__member_cancel(struct weft__member *member, int why, struct weft__wake_chain *chain);

/* Of one that has ended: its failure, below zero, or 0. */
int weft__member_failure(const struct weft__member *member);

#endif
