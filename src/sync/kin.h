/* SPDX-License-Identifier: MIT
 *
 * kin - the children of one scope: a list under a lock, who waits for its end, and how it is stopped.
 *
 * A child is linked by its tail (task/tail.h) before it is published, and unlinked at its end. So whoever
 * holds the lock can reach every child that has not ended, without references: a child that is linked has
 * not been freed. Three kinds of waiters stand under the same lock, each with a list of its own:
 *     list.head   who wants room, in a scope with a limit
 *     ends        who waits until there are no children: the scope's end, one at a time
 *     bodies      who is inside the block, and is to be told that the scope was stopped
 * A turn is given by moving the waiter to list.head, from where the waitlist gives it.
 *     count  = children that are linked, or at their end + places that are reserved
 *     reason != 0  =>  every child that is linked was told; no body waits
 *
 * STOPPED ONCE  The first to come sets `reason`, what children and body are told, and `error`, what came of
 * the whole; those who come later change nothing. Under the lock the children are cancelled, that is claimed;
 * they are pushed after the drop. A child that is added later finds the reason, and is born cancelled.
 *
 * WHO RACES WITH WHOM   completer C (a child's poller), joiner J (the end), stopper X, spawner S
 *   C C    both want to be the last. The count changes under the lock: one of them finds it zero.
 *   C J    J looks under the lock. Before C: it queues, and C gives it a turn. After C: it finds zero. C's
 *          last touch of the scope is the drop of the lock that it counted under, and J has had that lock
 *          since: when J answers, the scope may go. J never believes a turn, nor a count that it saw without
 *          the lock.
 *   C X    X reaches a child that is linked: C has not unlinked it, so the block is there, and a cancel
 *          of one that is READY changes a word that nobody looks at. C unlinks first: X does not see it.
 *   X J    J may answer while X still pushes: X has dropped the lock, and holds claimed tasks alone. Of
 *          those J has waited for: none can end before X has pushed it.
 *   X X    one sets the reason.
 *   S X    S before X, under the lock: X cancels the child, which is SCHED and not yet pushed: it is marked.
 *          S after X: S marks it itself. S pushes it in both cases.
 *   S J    S is inside the block, a child (then it is counted itself), or somebody who knows that the scope
 *          is not over; so J does not find zero while S is here. A new child after J's turn and before its
 *          poll: J looks again, and waits.
 *   S S    each links under the lock. With a limit each reserves first, and the count does not pass it.
 *   C S    with a limit: C gives a turn if there is room now. A turn that is not used is passed on as long
 *          as there is room (see room_poll), so nobody waits beside a free place.
 * A child that others refer to, or whose block lies in the program's pool, is unlinked, then ends, then is
 * counted: behind the scope's end weft_done is true of it, and the pool can be ended.
 *
 * Threads: any. LOCK ORDER: rank WAITLIST, alone. Cost: one lock to add, one to end; no read-modify-write beside.
 * Pairs: [scope-stop] stop -> reason: what was written before the scope was stopped. The rest is the lock's.
 * Rejected: a count without a lock (the list needs one, and whoever takes the count to zero would touch the
 * scope once more to wake); a reference to each child (two more read-modify-writes, and a joiner's word for
 * each, which is what members of a set need and pay: flow/member.h); children as watchers; lists by worker (a stop would have to freeze
 * all of them).
 */
#ifndef WEFT_SYNC_KIN_H
#define WEFT_SYNC_KIN_H

#include "sync/leaf.h"
#include "task/lent.h"
#include "task/tail.h"

enum weft__kin_policy {
    WEFT__KIN_ALONE,    /* children are on their own */
    WEFT__KIN_TOGETHER, /* the first failure stops the rest, and is what came of it */
    WEFT__KIN_FIRST,    /* the first success stops the rest */
};

/* Zero is one without options. */
struct weft__kin {
    struct weft__waitlist list; /* the lock of all; those who want room */
    struct weft__link children; /* by their tails                            [lock, as all down to won] */
    struct weft__link ends;
    struct weft__link bodies;
    _Atomic uint32_t count; /* others look */
    _Atomic uint32_t forks; /* 1 + weft__forks, since its first child; others look */
    _Atomic int reason;     /* 0, -ECANCELED, -ETIME; written once                   [scope-stop] */
    int error;              /* what came of it so far */
    bool won;               /* FIRST: one has succeeded */
    uint8_t policy;         /* enum weft__kin_policy                      [constant, as the rest] */
    uint32_t limit;         /* children at a time; 0: any number */
    struct weft__lent lent; /* where the scope stands in the program      [its link: lent.h] */
    int64_t deadline;       /* on the clock of weft_now; 0: none */
    int *into;              /* where `error` goes at the end; NULL: nobody asks */
};

static inline struct weft__kin *weft__kin_of(const struct weft_task *task)
{
    return (struct weft__kin *)task->scope;
}

/* Its children stayed with the parent of a fork, and its lock may be held for ever. */
bool weft__kin_is_lost(const struct weft__kin *kin);

/* Why it was stopped; 0: it was not. */
static inline int weft__kin_reason(const struct weft__kin *kin)
{
    return load_acquire(&kin->reason); /* [scope-stop] with stop */
}

/* ---- birth ---- */

/* Takes one of the places that a limit leaves; without a limit there is nothing to take. False: it is full. */
bool weft__kin_reserve(struct weft__kin *kin);

/* Gives a place back that was not used. */
void weft__kin_unreserve(struct weft__kin *kin);

/* A task that was made, is SCHED and not yet pushed. `reserved`: with the place that reserve took. */
void weft__kin_add(struct weft__kin *kin, struct weft_task *task);

/* ---- end: by the child's poller ---- */

/* A child has failed. True: that is what became of the scope, whose rest is stopped, or it does not matter to it. False: to
 * be reported as any failure that nobody reads. */
bool weft__kin_fails(struct weft__kin *kin, int failure);

/* A child has succeeded: for FIRST. */
void weft__kin_wins(struct weft__kin *kin);

/* It is over, and nobody but the caller can reach its block. */
void weft__kin_leave(struct weft__kin *kin, struct weft_task *task);

/* The same in two steps, for what must happen in between. */
void weft__kin_unlink(struct weft__kin *kin, struct weft_task *task);
void weft__kin_count_down(struct weft__kin *kin);

/* ---- stop and wait ---- */

/* Tell children and body. False: it was stopped before. */
bool weft__kin_stop(struct weft__kin *kin, int why, int error);

/* The end. READY: there are no children; the waiter is out; `*error` is what came of it. BUSY: another one waits. */
enum weft__kin_end { WEFT__KIN_WAITS, WEFT__KIN_OVER, WEFT__KIN_BUSY };
enum weft__kin_end weft__kin_end_poll(struct weft__kin *kin, struct weft__waiter *waiter,
                                      struct weft_waker waker, int *error);

/* A body waits to be told. False: the scope was stopped already. */
bool weft__kin_body_begin(struct weft__kin *kin, struct weft__waiter *waiter,
                          struct weft_waker waker);
void weft__kin_body_settle(struct weft__kin *kin, struct weft__waiter *waiter);

/* Room for one more. True: there was, a moment ago, and the waiter is out; else it is queued. */
bool weft__kin_room_poll(struct weft__kin *kin, struct weft__waiter *waiter,
                         struct weft_waker waker);
void weft__kin_room_settle(struct weft__kin *kin, struct weft__waiter *waiter);

/* ---- sched/join.c ---- */

/* Somebody waits for several children: for a while the worker here takes the newest task first, so that a tree of scopes is
 * gone through by its depth, and not all of it has stacks and frames at once. */
void weft__join_dives(void);

/* ---- sched/spawn.c: blocks for children, and their publication ---- */

/* A block with a tail, whose scope is `kin`; NULL: weft__task_why_not tells. */
struct weft_task *weft__task_new_in(struct weft__kin *kin, const struct weft_site *site,
                                    const weft_spawn_opts *opts);

/* -ENXIO, -EINVAL, -ESHUTDOWN or -ENOMEM. */
int weft__task_why_not(const weft_spawn_opts *opts);

/* Adds it to its scope and publishes it: from then on it is its scope's. */
void weft__task_start_in(struct weft_task *task);

#endif
