/* SPDX-License-Identifier: MIT
 *
 * overflow - where a worker's ring spills to: arrays of tasks, its own, which others may take whole.
 *
 * When the ring is full, its owner moves the older half into an array and appends that to a list under
 * a lock of its own; when the ring has run dry it takes its oldest array back. So a burst stays with the
 * worker that made it, at one lock per array instead of a shared read-modify-write per task, and a
 * neighbour with nothing to do takes half of them in one go.
 *     arrays are in the order of their spills, oldest first; so are the tasks of an array
 *     no array in the list is empty;  count == sum of (end - first)
 * An array belongs to the list, or to whoever took it. When it is empty its holder keeps it as a spare
 * of its own, or frees it: a steady spill and take-back allocates nothing, and after a burst each worker
 * keeps 1 KiB.
 *
 * A ring that yielding tasks keep filled never runs dry. So at its fairness interval the worker brings
 * the arrays round: it spills if the ring is more than half full, and refills. It needs the spare only.
 *
 * Out of memory loses no task: a spill allocates first, and answers -ENOMEM with the ring as it was. The
 * caller then gives the task in its hand to the inject queue, which needs no memory.
 *
 * WHO MAY MISS WHAT  `count` is stored under the lock and read without it [overflow-count]. Both are
 * relaxed: the lock publishes the arrays, the count only says whether the lock is worth taking.
 *     owner     misses nothing: it alone adds, so what it reads is too much at worst, and costs a lock
 *     thief     may miss an array spilled a moment ago: the owner is awake, and the next look sees it
 *     sleeper   has published itself and fenced: it sees every spill before the owner's own last full
 *               fence; for a later one the owner's look behind that fence sees the sleeper
 *
 * Threads: spill, unpack and refill by the owner; take and take_half by anyone.
 * Lock: WEFT__RANK_OVERFLOW, held for a few stores.
 * Rejected: spilling to the inject queue (spawn 20 ns instead of 11, and two workers slower than one,
 * since tasks change worker with each spill); an intrusive chain (a taker would chase cold pointers to
 * find where its part ends); one array filled by several spills (the owner would hold the lock while it
 * packs).
 */
#ifndef WEFT_SCHED_OVERFLOW_H
#define WEFT_SCHED_OVERFLOW_H

#include "limits.h"
#include "sched/runq.h"
#include "sys/lock.h"
#include "types.h"

_Static_assert(WEFT__OVERFLOW_BATCH >= 1, "an array holds a task");

/* Tasks moved by one spill: half the ring, or what an array holds if that is less. */
#define WEFT__OVERFLOW_SPILL                                                                       \
    (WEFT__OVERFLOW_BATCH < WEFT__RUNQ_CAP / 2 ? WEFT__OVERFLOW_BATCH : WEFT__RUNQ_CAP / 2)

struct weft__overflow_array {
    struct weft__overflow_array *next; /* the next younger one */
    uint32_t first;                    /* task[first, end) are queued, oldest first */
    uint32_t end;
    struct weft_task *task[WEFT__OVERFLOW_BATCH];
};

struct weft__overflow {
    struct weft__lock lock; /* WEFT__RANK_OVERFLOW */
    _Atomic uint64_t count; /* tasks in all arrays; stored under it  [overflow-count] */
    struct weft__overflow_array *oldest; /* NULL when empty; guarded by lock */
    struct weft__overflow_array *newest; /* meaningless when empty; guarded by lock */
    struct weft__overflow_array *spare;  /* an empty array or NULL; the owner's alone */
};

void weft__overflow_init(struct weft__overflow *o);

/* Owner, or the last who knows it: frees the spare. No task may be left. */
void weft__overflow_done(struct weft__overflow *o);

/* Owner of both: move up to WEFT__OVERFLOW_SPILL of the ring's oldest tasks into an array.
 * Returns how many; 0 if thieves emptied the ring meanwhile; -ENOMEM, having moved nothing. */
int weft__overflow_spill(struct weft__overflow *o, struct weft__runq *ring);

/* Anyone: the oldest array, with a task in it at least, or NULL. Gives: the array, for unpack. */
struct weft__overflow_array *weft__overflow_take(struct weft__overflow *from);

/* Owner of `own`: the older half of another's arrays, WEFT__OVERFLOW_HAUL of them at most, becomes the
 * youngest of `own`. A thief that took one at a time would be back at once, again and again.
 * Returns how many tasks that are. */
uint64_t weft__overflow_take_half(struct weft__overflow *own, struct weft__overflow *from);

/* Owner of `own` and `into`: one task of the array to run, the others into the ring. Takes: the array.
 * What the ring has no room for stays in it, and it becomes the oldest of `own`.
 * Gives: the oldest task, to run; the count is of what left the array. */
struct weft__haul weft__overflow_unpack(struct weft__overflow *own,
                                        struct weft__overflow_array *array,
                                        struct weft__runq *into);

/* Owner of both: take the oldest array and unpack it. */
struct weft__haul weft__overflow_refill(struct weft__overflow *own, struct weft__runq *into);

/* Anyone: about how many tasks are here; the file's note says who may miss what. */
static inline uint64_t weft__overflow_count(struct weft__overflow *o)
{
    return load_relaxed(&o->count); /* relaxed: a hint  [overflow-count] */
}

/* Anyone: assert that the list is in order and the count is right. Takes the lock. */
void weft__overflow_check(struct weft__overflow *o);

#endif
