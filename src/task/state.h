/* SPDX-License-Identifier: MIT
 *
 * state - the life of a task in one word: who may poll it, whether a wake came meanwhile, who still
 * refers to it.
 *
 *     bits  0..15  flags          zero: the block is free
 *     bits 16..31  references     handles, clones, kept wakers; never queues, waiters or timers
 *     bits 32..63  generation     how often the block was freed; part of the id
 *
 * SCHED is a right, not a place: from the claim that sets it to the end of the poll exactly one
 * thread, or the queue it gave the task to, may poll the task and write its `link`. There is no
 * RUNNING flag, because a read-modify-write at the start of each poll costs 1.4 ns; a wake between
 * the push and the poll sets NOTIFIED, and begin_poll takes it out again only when it is there.
 *
 *     FROM                       -> TO                          [function]    ORDER           CALLER MUST
 *     free                       -> ALIVE SCHED, r references   [init]        release         publish it through a queue
 *     ALIVE                      -> ALIVE SCHED                 [claim]       acq_rel RMW     enqueue
 *     ALIVE SCHED                -> + NOTIFIED                  [claim]       acq_rel RMW     nothing, and not touch it again
 *     ALIVE COMPLETE             -> same                        [claim]       acq_rel RMW     nothing
 *     ALIVE                      -> ALIVE SCHED CANCELLED       [cancel]      acq_rel RMW     enqueue
 *     ALIVE SCHED                -> + NOTIFIED CANCELLED        [cancel]      acq_rel RMW     nothing
 *     CANCELLED or COMPLETE      -> same                        [cancel]      acq_rel RMW     nothing
 *       (with CANCELLED comes LATE, if the reason is a deadline that has passed)
 *     ALIVE SCHED                -> same                        [begin_poll]  relaxed load    poll it
 *     ALIVE SCHED NOTIFIED       -> - NOTIFIED                  [begin_poll]  acquire RMW     poll it
 *     ALIVE SCHED                -> ALIVE                       [end_poll]    release RMW     not touch it again
 *     ALIVE SCHED NOTIFIED       -> - NOTIFIED                  [end_poll]    acquire RMW     requeue: it still holds the right
 *     ALIVE SCHED, references    -> ALIVE COMPLETE, references  [complete]    acq_rel RMW     not touch it again
 *     ALIVE SCHED, none          -> ALIVE COMPLETE, none        [complete]    acquire load    free
 *     ALIVE SCHED, one: ours     -> free, generation + 1        [end_free]    acquire load    give the block back
 *     ALIVE SCHED, none          -> free, generation + 1        [end_free]    acquire load    give the block back
 *     references n               -> n + 1                       [ref]         relaxed RMW     -
 *     references n               -> n - 1                       [unref]       acq_rel RMW     free, if COMPLETE and the last
 *     COMPLETE, one              -> same                        [unref]       acquire load    free
 *     ALIVE COMPLETE, none       -> free, generation + 1        [free]        relaxed store   give the block back
 * A task that yields keeps SCHED: its poller pushes it again and this word is not touched.
 * JOINER, TAKEN and DETACHED are the child's side of a join: their arrows are in join.h. WATCHED is that
 * of watchers: watchers.h.
 *
 * No wake is lost: claim is always a read-modify-write, also when it changes nothing. Suppose it
 * returned early because a *load* showed NOTIFIED: that load may be older than the begin_poll that
 * took NOTIFIED out, and the poll that follows need not see what this waker wrote before (store
 * buffering; the model checker finds it, x86 never shows it). A claim that is a read-modify-write
 * stands in one order with begin_poll and end_poll. Before begin_poll's: that one acquires it, and
 * the poll sees what the waker wrote. After it, or beside a begin_poll that saw nothing: end_poll
 * finds NOTIFIED, acquires it, and there is another poll. On an idle task: the claimer's push
 * reaches the poller. All later writes of the word up to the task's end are read-modify-writes, so
 * they continue the release sequence of every claim. (One store is there before the first poll, when nobody can claim: join.h's
 * detach_newborn.)
 *
 * Pairs: [slab-state] init -> walk, find: the header, for who comes without a queue.
 *        [state-wake] claim, cancel -> begin_poll, end_poll: what was written before the wake.
 *        [state-poll] end_poll -> claim, cancel: frame and `link` as the last poll left them;
 *                     push and pop carry it on.
 *        [state-done] complete -> is_complete, unref: the result.
 *        [state-ref]  unref -> complete, unref: one holder's last touch before another's free.
 * Threads: any; begin_poll, end_poll and complete by the holder of SCHED; ref by a holder of a
 * reference or of SCHED; free by whoever was told.
 * Rejected: a RUNNING flag (see above). Taking a reference by id, without holding one: complete's
 * path without a read-modify-write stands on nobody being able to. fetch_or for claim: it would
 * give NOTIFIED and SCHED in one step, but then an idle claim leaves NOTIFIED behind and costs
 * begin_poll its read-modify-write every time.
 */
#ifndef WEFT_TASK_STATE_H
#define WEFT_TASK_STATE_H

#include "base/assert.h"
#include "base/atomic.h"
#include "types.h"

#include <errno.h>
#include <stdint.h>

#define WEFT__STATE_ALIVE     UINT64_C(0x0001) /* the block holds a task */
#define WEFT__STATE_SCHED     UINT64_C(0x0002) /* queued or running: somebody may poll it */
#define WEFT__STATE_NOTIFIED  UINT64_C(0x0004) /* a wake arrived while SCHED */
#define WEFT__STATE_CANCELLED UINT64_C(0x0008) /* the task was asked to stop; for life */
#define WEFT__STATE_COMPLETE  UINT64_C(0x0010) /* the result stands; references keep the block */
#define WEFT__STATE_JOINER    UINT64_C(0x0020) /* the join word holds a waker, to be claimed at the end */
#define WEFT__STATE_TAKEN     UINT64_C(0x0040) /* the completer has taken that waker and claims it */
#define WEFT__STATE_DETACHED  UINT64_C(0x0080) /* the handle was dropped: nobody will read the result */
#define WEFT__STATE_WATCHED   UINT64_C(0x0100) /* somebody watches or did: task/watchers.h; for life */
#define WEFT__STATE_LATE      UINT64_C(0x0200) /* with CANCELLED: a deadline has passed; for life */
#define WEFT__STATE_SPENT     UINT64_C(0x8000) /* debug builds: the handle was spent (sched/spent.h) */
#define WEFT__STATE_KNOWN     UINT64_C(0x83ff) /* all of these */
#define WEFT__STATE_FLAGS     UINT64_C(0xffff)

#define WEFT__STATE_REF_SHIFT 16
#define WEFT__STATE_REF       (UINT64_C(1) << WEFT__STATE_REF_SHIFT)
#define WEFT__STATE_REFS_MAX  UINT32_C(0xffff)
#define WEFT__STATE_REFS      (WEFT__STATE_REF * WEFT__STATE_REFS_MAX)
#define WEFT__STATE_GEN_SHIFT 32

/* What a transition asks of its caller. */
enum weft__state_next {
    WEFT__STATE_NOTHING, /* and do not touch the task again */
    WEFT__STATE_ENQUEUE, /* the caller now holds the right to enqueue it */
    WEFT__STATE_REQUEUE, /* the caller keeps the right: a wake came during the poll */
    WEFT__STATE_FREE,    /* the caller is the last: weft__state_free, then the block */
};

/* Ask the task to stop, and claim it, in one step. The second cancel of a task does nothing.
 * ENQUEUE or NOTHING. */
enum weft__state_next weft__state_cancel(struct weft_task *task);

/* The same with a reason: -ECANCELED or -ETIME. */
enum weft__state_next weft__state_cancel_for(struct weft_task *task, int why);

/* The same by id, for those who hold neither lock nor reference (a sweep of the slab): nothing
 * happens unless a task of that generation lives in the block. The block must stay mapped. ENQUEUE
 * or NOTHING. */
enum weft__state_next weft__state_cancel_id(struct weft_task *task, uint32_t generation);

/* One more reference. Returns 0; -EOVERFLOW beyond WEFT__STATE_REFS_MAX. */
int weft__state_ref(struct weft_task *task);

/* Asserts what no word may say. */
void weft__state_check(uint64_t word);

static inline uint32_t weft__state_references_of(uint64_t word)
{
    return (uint32_t)(word >> WEFT__STATE_REF_SHIFT) & WEFT__STATE_REFS_MAX;
}

static inline uint32_t weft__state_generation_of(uint64_t word)
{
    return (uint32_t)(word >> WEFT__STATE_GEN_SHIFT);
}

/* Why a task whose word this is should stop: 0, -ECANCELED or -ETIME. */
static inline int weft__state_why(uint64_t word)
{
    if (__builtin_expect(!(word & WEFT__STATE_CANCELLED), 1)) return 0;
    return word & WEFT__STATE_LATE ? -ETIME : -ECANCELED;
}

/* The holder of SCHED starts a poll. Answers the word, for its CANCELLED: a cancel that is not in
 * it brings another poll. */
static inline uint64_t weft__state_begin_poll(struct weft_task *task)
{
    /* relaxed: whoever gave us the task, through a queue, has published what it knew; what came
     * since is covered by NOTIFIED */
    uint64_t word = load_relaxed(&task->state);
    weft_dassert(word & WEFT__STATE_SCHED);
    weft_dassert(!(word & WEFT__STATE_COMPLETE));

    if (!(word & WEFT__STATE_NOTIFIED)) return word;
    /* [state-wake] with claim: this poll sees what it wrote */
    word = fetch_and_acquire(&task->state, ~WEFT__STATE_NOTIFIED);
    return word & ~WEFT__STATE_NOTIFIED;
}

/* A look, old by the time it is used. */
static inline uint64_t weft__state_look(const struct weft_task *task)
{
    return load_relaxed(&task->state); /* relaxed: nothing is read on the strength of it */
}

/* True: the result can be read, and the completer does not touch the task any more. */
static inline bool weft__state_is_complete(const struct weft_task *task)
{
    /* [state-done] with complete: the result, and its joiner's claim */
    return load_acquire(&task->state) & WEFT__STATE_COMPLETE;
}

static inline bool weft__state_is_cancelled(const struct weft_task *task)
{
    return weft__state_look(task) & WEFT__STATE_CANCELLED;
}

static inline uint32_t weft__state_references(const struct weft_task *task)
{
    return weft__state_references_of(weft__state_look(task));
}

static inline uint32_t weft__state_generation(const struct weft_task *task)
{
    return weft__state_generation_of(weft__state_look(task));
}

/* Does a task of this generation live in the block? An answer of yes can be old; one of no is
 * final. */
static inline bool weft__state_lives(const struct weft_task *task, uint32_t generation)
{
    uint64_t word = weft__state_look(task);
    return (word & WEFT__STATE_FLAGS) && weft__state_generation_of(word) == generation;
}

/* ---- the transitions of every task's life, inline: each is a few instructions around its one read-modify-write ---- */

/* Make a task of a free block, queued, with so many references; 0: detached from birth. By the
 * spawner, before anybody can see it. */
static inline void weft__state_init(struct weft_task *task, uint32_t references)
{
    /* relaxed, both: the slab gave us the block, a queue will publish it */
    uint64_t word = load_relaxed(&task->state);

    weft_assert(!(word & WEFT__STATE_FLAGS));
    weft_assert(references <= WEFT__STATE_REFS_MAX);
    word |= WEFT__STATE_ALIVE | WEFT__STATE_SCHED | (uint64_t)references << WEFT__STATE_REF_SHIFT;
    if (references == 0) word |= WEFT__STATE_DETACHED;
    store_release(&task->state, word); /* [slab-state] with walk and find: the header as the spawner wrote it */
}

/* The word after a wake. */
static inline uint64_t weft__state_claimed(uint64_t word)
{
    if (word & WEFT__STATE_COMPLETE) return word;
    if (word & WEFT__STATE_SCHED) return word | WEFT__STATE_NOTIFIED;
    return word | WEFT__STATE_SCHED;
}

/* Who made the step from `word` by claimed() has the right to enqueue, if nobody had it before. */
static inline enum weft__state_next weft__state_right_after(uint64_t word)
{
    if (word & (WEFT__STATE_COMPLETE | WEFT__STATE_SCHED)) return WEFT__STATE_NOTHING;
    return WEFT__STATE_ENQUEUE;
}

/* Wake: the first half. The task must not be able to end meanwhile (a lock holds its leaf, or the
 * caller a reference). ENQUEUE or NOTHING. */
static inline enum weft__state_next weft__state_claim(struct weft_task *task)
{
    uint64_t word = load_relaxed(&task->state); /* relaxed: a guess, the CAS decides */

    for (;;) { /* lock-free: a failed CAS means another transition happened */
        weft_dassert(word & WEFT__STATE_ALIVE);
        /* [state-wake] with begin_poll and end_poll, [state-poll] with end_poll. Also when nothing
         * changes: see the top of state.h. */
        if (cas_acq_rel(&task->state, &word, weft__state_claimed(word))) return weft__state_right_after(word);
    }
}

/* The poll answered PENDING. REQUEUE, or NOTHING: then the task may already be running elsewhere,
 * or be gone. */
static inline enum weft__state_next weft__state_end_poll(struct weft_task *task)
{
    /* relaxed: SCHED is ours, and the CAS decides about NOTIFIED */
    uint64_t word = load_relaxed(&task->state);

    while (!(word & WEFT__STATE_NOTIFIED)) {
        weft_dassert(word & WEFT__STATE_SCHED);
        weft_dassert(!(word & WEFT__STATE_COMPLETE));
        /* [state-poll] with claim: the frame as this poll left it. A claim that came first has set
         * NOTIFIED, and the CAS fails. */
        if (cas_release(&task->state, &word, word & ~WEFT__STATE_SCHED)) return WEFT__STATE_NOTHING;
    }
    /* [state-wake] with claim: the next poll sees what it wrote */
    word = fetch_and_acquire(&task->state, ~WEFT__STATE_NOTIFIED);
    weft_assert(word & WEFT__STATE_SCHED);
    return WEFT__STATE_REQUEUE;
}

/* Without references no read-modify-write is needed. Zero is final: ref is called by a holder of a
 * reference, of whom there is none, or by the holder of SCHED, which is this thread. A library
 * waker that could claim has been taken back before the task settled (a lock, or the joined child's
 * COMPLETE, lies between). What is left is cancel_id, from a sweep: it finds SCHED, is answered
 * NOTHING, and the flags that it sets and this store overwrites would have been for a poll that
 * never comes. Later it finds COMPLETE or another generation, by a CAS. */
static inline enum weft__state_next weft__state_complete_unseen(struct weft_task *task, uint64_t word)
{
    word &= ~(WEFT__STATE_SCHED | WEFT__STATE_NOTIFIED);
    store_relaxed(&task->state, word | WEFT__STATE_COMPLETE); /* relaxed: nobody waits for it */
    return WEFT__STATE_FREE;
}

/* The poll answered READY, of a task whose one reference is the caller's: the joiner ran it itself, and
 * `word` is what weft__join_ending gave. Nobody else can take a reference, wait for it or drop it; what
 * complete_unseen says of the sweep holds here too. False if there are or were others. */
static inline bool weft__state_is_own(uint64_t word)
{
    /* WATCHED with one reference: who watched has left. That is rare, and left to weft__join_end. */
    return (word & (WEFT__STATE_REFS | WEFT__STATE_WATCHED)) == WEFT__STATE_REF;
}

/* complete_unseen or complete_own, and free, in one store: for whoever is sure that nobody looks at the block in between. `word` is what
 * one of them would have been given. */
static inline void weft__state_end_free(struct weft_task *task, uint64_t word)
{
    weft_dassert(weft__state_references_of(word) <= 1); /* the joiner's own goes with the block */
    /* relaxed: the acquire that brought `word` has ordered us behind all others */
    store_relaxed(&task->state, ((word >> WEFT__STATE_GEN_SHIFT) + 1) << WEFT__STATE_GEN_SHIFT);
}

/* One reference less. FREE or NOTHING. */
static inline enum weft__state_next weft__state_unref(struct weft_task *task)
{
    /* [state-done] with complete: the result; [state-ref] with unref: their touches before our free.
     * A complete task with one reference has no other holder who could touch the word. */
    uint64_t word = load_acquire(&task->state);
    if ((word & WEFT__STATE_COMPLETE) && weft__state_references_of(word) == 1)
        return WEFT__STATE_FREE;

    /* [state-ref] with complete and unref: our touches come before their free, theirs before ours;
     * [state-done] with complete */
    word = fetch_sub_acq_rel(&task->state, WEFT__STATE_REF);
    weft_assert(word & WEFT__STATE_ALIVE);
    weft_assert(weft__state_references_of(word) > 0);
    /* complete will find that it is the last */
    if (!(word & WEFT__STATE_COMPLETE)) return WEFT__STATE_NOTHING;
    return weft__state_references_of(word) == 1 ? WEFT__STATE_FREE : WEFT__STATE_NOTHING;
}

/* End of the life of a complete task, by whoever was told FREE. The generation goes up by one; after 2^32
 * lives of one block it is what it was, and an id kept that long would find a stranger. */
static inline void weft__state_free(struct weft_task *task)
{
    /* relaxed, both: the transition that answered FREE has ordered us behind all others */
    uint64_t word = load_relaxed(&task->state);

    weft_assert(word & WEFT__STATE_COMPLETE);
    weft_assert(weft__state_references_of(word) <= 1); /* unref leaves the last one in */
    store_relaxed(&task->state, ((word >> WEFT__STATE_GEN_SHIFT) + 1) << WEFT__STATE_GEN_SHIFT);
}

#endif
