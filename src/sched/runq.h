/* SPDX-License-Identifier: MIT
 *
 * runq - the run queue of one worker: a bounded ring, one pusher, many takers, two ends.
 *
 *          head                      tail
 *     ......| oldest ........ newest |......        index & WEFT__RUNQ_MASK is the slot
 *        thieves, owner          owner only
 *
 * The owner pushes at the tail. Owner and thieves take the oldest by CAS on the head, one task a CAS;
 * the owner alone may take back the newest, without a CAS unless it is the last one.
 *     slots in [head, tail) are full
 *     0 <= tail - head <= WEFT__RUNQ_CAP     for the owner, between its calls
 *     tail >= head - 1                       for everybody: the owner may be reaching for the newest
 * Full is the caller's business: it spills half to the worker's own overflow arrays (sched/overflow.h).
 *
 * WHY THE FENCES CARRY IT  The owner may take index b without a CAS only if no thief can still get it.
 * Each side has written or seen one word, and then reads the other:
 *     owner    tail = b         fence   read head     takes b freely if head < b
 *     thief    saw head == b    fence   read tail     tries b only if tail > b
 * Suppose that both go ahead. Then the owner read a head older than the one the thief saw, and the
 * thief read a tail older than the owner's b, so each fence comes before the other, which RC11 (and
 * C++20) forbid for two seq_cst fences. Hence the thief leaves, or the owner finds head == b and the
 * CAS decides [runq-sb]. The argument uses what the thief *saw*, so it holds for a head that a third
 * thread moved; and the order of the CASes has no part in it: a CAS makes one of several takers of an
 * index win, but neither side's CAS stands between its write and its read, where the barrier must be.
 * Taking half with one CAS is unsound for the same reason: the thief has then seen a head far below the
 * indices that it takes, and the owner may take those freely in between. The owner itself may: nobody but
 * the owner takes from the other end (take_many).
 *
 * WHY 64 BITS  A taker's CAS compares indices, and an index never comes back: a thief that slept through
 * any number of rounds between look and CAS fails. With 32 bits its CAS would succeed 2^32 tasks later
 * (43 s at 10 ns each), and it would run the task that it read back then.
 *
 * Orders are the weakest that C11 allows. [runq-head] is there for what C11 and machines do and RC11
 * does not: the thief's read of a slot could be overtaken by its own CAS, and find what the owner puts
 * there a round later (load buffering).
 *
 * Threads: push, take_oldest, take_many, take_newest by the owner; steal and the length by anyone. No locks.
 * Pairs: [runq-tail] push -> steal, [runq-head] steal -> push, [runq-sb] take_newest <-> steal.
 * Rejected: a private ring with published batches (docs/decisions/0003-run-queue.md); head and tail in
 * one word: the owner's half-word store stalls the full-word load after it, 10 ns; a growable deque:
 * reclaiming old arrays needs epochs, and spilling bounds the ring.
 */
#ifndef WEFT_SCHED_RUNQ_H
#define WEFT_SCHED_RUNQ_H

#include "base/assert.h"
#include "base/atomic.h"
#include "limits.h"
#include "types.h"

_Static_assert(WEFT__RUNQ_CAP >= 2, "one spill moves half of the ring");
_Static_assert((WEFT__RUNQ_CAP & (WEFT__RUNQ_CAP - 1)) == 0, "an index is masked, not divided");

#define WEFT__RUNQ_MASK ((uint64_t)WEFT__RUNQ_CAP - 1)

/* Three parts on lines of their own: takers move the head, the owner the tail. */
struct weft__runq {
    /* index of the oldest; CAS by owner and thieves  [runq-head] */
    WEFT__CACHE_ALIGNED _Atomic uint64_t head;
    /* index after the newest; stored by the owner only  [runq-tail] */
    WEFT__CACHE_ALIGNED _Atomic uint64_t tail;
    /* one task each in [head, tail); stored by the owner only */
    WEFT__CACHE_ALIGNED struct weft_task *_Atomic slot[WEFT__RUNQ_CAP];
};

/* What a taker of several got: one to run at once, the others are in its ring. */
struct weft__haul {
    struct weft_task *run; /* the oldest of them; NULL if there was nothing */
    uint32_t count;        /* all of them, with `run` */
};

void weft__runq_init(struct weft__runq *q);

static inline struct weft_task *_Atomic *weft__runq_slot(struct weft__runq *q, uint64_t index)
{
    return &q->slot[index & WEFT__RUNQ_MASK];
}

/* Owner: append a task. Takes: t. Returns false, having done nothing, when the ring is full. */
static inline bool weft__runq_push(struct weft__runq *q, struct weft_task *t)
{
    uint64_t tail = load_relaxed(&q->tail); /* relaxed: this thread is the only writer */
    uint64_t head = load_acquire(&q->head); /* [runq-head] with steal: the slot has been read */

    weft_dassert(tail - head <= WEFT__RUNQ_CAP);
    if (tail - head == WEFT__RUNQ_CAP) return false;
    store_relaxed(weft__runq_slot(q, tail), t); /* relaxed: published by the tail */
    store_release(&q->tail, tail + 1);          /* [runq-tail] with steal: the slot and *t */
    return true;
}

/* Owner: the oldest task, or NULL. Gives: the task.
 * It gets a task by a read-modify-write, so the caller may go on with mb_after_rmw(). */
static inline struct weft_task *weft__runq_take_oldest(struct weft__runq *q)
{
    uint64_t tail = load_relaxed(&q->tail); /* relaxed: this thread is the only writer */
    uint64_t head = load_relaxed(&q->head); /* relaxed: the CAS corrects it */

    while (head != tail) { /* lock-free: a failed CAS means that a thief made progress */
        weft_dassert(tail - head <= WEFT__RUNQ_CAP);
        struct weft_task *t = load_relaxed(weft__runq_slot(q, head)); /* relaxed: our own store */
        /* relaxed: the slot's next writer is this thread, and thieves learn nothing from it */
        if (cas_relaxed(&q->head, &head, head + 1)) return t;
    }
    return NULL;
}

/* Owner: up to `most` of the oldest tasks, by one CAS. Gives: the tasks, oldest first; returns how many. */
uint32_t weft__runq_take_many(struct weft__runq *q, uint32_t most, struct weft_task **into);

/* Owner, the rare end of take_newest: the tail stands at `index`, and it was the last task or is gone. */
struct weft_task *weft__runq_take_last(struct weft__runq *q, uint64_t head, uint64_t index);

/* Owner: the newest task, or NULL. Gives: the task. One full fence; a CAS only for the last task. */
static inline struct weft_task *weft__runq_take_newest(struct weft__runq *q)
{
    uint64_t index = load_relaxed(&q->tail) - 1; /* relaxed: this thread is the only writer */

    /* relaxed: the head never goes back, so what is seen empty is empty */
    if (load_relaxed(&q->head) == index + 1) return NULL;
    /* relaxed: as a read-modify-write it hands on the release of the push before it  [runq-tail].
     * That is one reason for an exchange where a store would do; the other is that on x86 the fence is
     * free behind it, while compilers differ on how to make one (clang's mfence costs 16 ns). */
    (void)exchange_relaxed(&q->tail, index);
    mb_after_rmw(); /* [runq-sb] with steal: it sees this tail, or we see its head */
    uint64_t head = load_relaxed(&q->head); /* relaxed: ordered by the fence */
    if (__builtin_expect((int64_t)(index - head) <= 0, 0)) {
        return weft__runq_take_last(q, head, index);
    }
    return load_relaxed(weft__runq_slot(q, index)); /* relaxed: our own store */
}

/* Anyone: about how many tasks are queued, 0..WEFT__RUNQ_CAP.
 * What a sleeper may conclude from 0, asked after it published that it sleeps and fenced: every task
 * pushed before the owner's own last full fence is taken, or in the hands of an owner that is awake. */
static inline uint32_t weft__runq_length(struct weft__runq *q)
{
    uint64_t head = load_relaxed(&q->head); /* relaxed: a hint; an older one answers too many */
    uint64_t tail = load_relaxed(&q->tail); /* relaxed: a hint */
    int64_t length = (int64_t)(tail - head);

    if (length <= 0) return 0;
    return length < WEFT__RUNQ_CAP ? (uint32_t)length : WEFT__RUNQ_CAP;
}

/* Owner: are there so many? Thieves may have made them fewer since. */
static inline bool weft__runq_holds(struct weft__runq *q, int64_t least)
{
    /* relaxed, both: our own tail; an older head answers too many */
    return (int64_t)(load_relaxed(&q->tail) - load_relaxed(&q->head)) >= least;
}

/* Anyone: the oldest task, or NULL. Gives: the task. */
struct weft_task *weft__runq_steal(struct weft__runq *q);

/* Owner of `into`: move tasks from another worker's ring, oldest first: half of them at most, and no
 * more than `into` has room for. Half is rounded up, since the victim has one more in its hands. A ring
 * of one is left alone unless `lone`: its task was most likely just woken, and is about to be run.
 * Gives: the oldest, to run; the others are in `into`. */
struct weft__haul weft__runq_steal_half(struct weft__runq *from, struct weft__runq *into,
                                        bool lone);

/* Owner: assert that indices are in bounds, slots are full, and no task is queued twice. */
void weft__runq_check(struct weft__runq *q);

#endif
