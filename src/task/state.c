/* SPDX-License-Identifier: MIT
 *
 * state - the transitions of a task's state word; the drawing and the reasons are in state.h.
 */
#include "task/state.h"

#include <errno.h>

void weft__state_check(uint64_t word)
{
    uint64_t flags = word & WEFT__STATE_FLAGS;

    weft_assert(flags < WEFT__STATE_COMPLETE << 1);    /* no flag that nobody knows */
    if (flags) weft_assert(flags & WEFT__STATE_ALIVE); /* zero flags is the only way to be free */
    /* nobody refers to a free block */
    if (!flags) weft_assert(weft__state_references_of(word) == 0);
    /* nobody polls it again */
    if (flags & WEFT__STATE_COMPLETE) weft_assert(!(flags & WEFT__STATE_SCHED));
    if ((flags & WEFT__STATE_NOTIFIED) && !(flags & WEFT__STATE_COMPLETE)) {
        weft_assert(flags & WEFT__STATE_SCHED); /* an idle task has no wake waiting */
    }
}

void weft__state_init(struct weft_task *task, uint32_t references)
{
    /* relaxed, both: the slab gave us the block, a queue will publish it */
    uint64_t word = load_relaxed(&task->state);

    weft_assert(!(word & WEFT__STATE_FLAGS));
    weft_assert(references <= WEFT__STATE_REFS_MAX);
    word |= WEFT__STATE_ALIVE | WEFT__STATE_SCHED | (uint64_t)references << WEFT__STATE_REF_SHIFT;
    store_release(&task->state, word); /* [slab-state] with walk and find: the header as the spawner wrote it */
}

/* The word after a wake. */
static uint64_t claimed(uint64_t word)
{
    if (word & WEFT__STATE_COMPLETE) return word;
    if (word & WEFT__STATE_SCHED) return word | WEFT__STATE_NOTIFIED;
    return word | WEFT__STATE_SCHED;
}

/* Who made the step from `word` by claimed() has the right to enqueue, if nobody had it before. */
static enum weft__state_next right_after(uint64_t word)
{
    if (word & (WEFT__STATE_COMPLETE | WEFT__STATE_SCHED)) return WEFT__STATE_NOTHING;
    return WEFT__STATE_ENQUEUE;
}

enum weft__state_next weft__state_claim(struct weft_task *task)
{
    uint64_t word = load_relaxed(&task->state); /* relaxed: a guess, the CAS decides */

    for (;;) { /* lock-free: a failed CAS means another transition happened */
        weft_dassert(word & WEFT__STATE_ALIVE);
        /* [state-wake] with begin_poll and end_poll, [state-poll] with end_poll. Also when nothing
         * changes: see the top of state.h. */
        if (cas_acq_rel(&task->state, &word, claimed(word))) return right_after(word);
    }
}

/* The word after a cancel. */
static uint64_t cancelled(uint64_t word)
{
    if (word & (WEFT__STATE_COMPLETE | WEFT__STATE_CANCELLED)) return word;
    return claimed(word) | WEFT__STATE_CANCELLED;
}

static enum weft__state_next cancel_from(struct weft_task *task, uint64_t word, uint32_t generation)
{
    for (;;) { /* lock-free, as claim */
        if (!(word & WEFT__STATE_FLAGS) || weft__state_generation_of(word) != generation)
            return WEFT__STATE_NOTHING;
        /* [state-wake], [state-poll], as claim */
        if (!cas_acq_rel(&task->state, &word, cancelled(word))) continue;
        if (word & WEFT__STATE_CANCELLED) return WEFT__STATE_NOTHING; /* the first cancel woke it */
        return right_after(word);
    }
}

enum weft__state_next weft__state_cancel(struct weft_task *task)
{
    uint64_t word = load_relaxed(&task->state); /* relaxed: a guess, the CAS decides */

    weft_dassert(word & WEFT__STATE_ALIVE);
    return cancel_from(task, word, weft__state_generation_of(word));
}

enum weft__state_next weft__state_cancel_id(struct weft_task *task, uint32_t generation)
{
    /* relaxed: a guess, the CAS decides */
    return cancel_from(task, load_relaxed(&task->state), generation);
}

enum weft__state_next weft__state_end_poll(struct weft_task *task)
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
static enum weft__state_next complete_unseen(struct weft_task *task, uint64_t word)
{
    word &= ~(WEFT__STATE_SCHED | WEFT__STATE_NOTIFIED);
    store_relaxed(&task->state, word | WEFT__STATE_COMPLETE); /* relaxed: nobody waits for it */
    return WEFT__STATE_FREE;
}

enum weft__state_next weft__state_complete(struct weft_task *task)
{
    /* [state-ref] with unref: its holder's last touch comes before our free */
    uint64_t word = load_acquire(&task->state);

    weft_assert(word & WEFT__STATE_SCHED);
    weft_assert(!(word & WEFT__STATE_COMPLETE));
    if (weft__state_references_of(word) == 0) return complete_unseen(task, word);

    /* One addition turns SCHED into COMPLETE. [state-done] with is_complete and unref; [state-ref]
     * with unref, as above. */
    word = fetch_add_acq_rel(&task->state, WEFT__STATE_COMPLETE - WEFT__STATE_SCHED);
    return weft__state_references_of(word) == 0 ? WEFT__STATE_FREE : WEFT__STATE_NOTHING;
}

int weft__state_ref(struct weft_task *task)
{
    /* relaxed, all: who has one can give one; nothing else is said by it */
    uint64_t word = load_relaxed(&task->state);

    do {
        weft_assert(word & WEFT__STATE_ALIVE);
        if (weft__state_references_of(word) == WEFT__STATE_REFS_MAX) return -EOVERFLOW;
    } while (!cas_relaxed(&task->state, &word, word + WEFT__STATE_REF));
    return 0;
}

enum weft__state_next weft__state_unref(struct weft_task *task)
{
    /* [state-ref] with complete and unref: our touches come before their free, theirs before ours;
     * [state-done] with complete */
    uint64_t word = fetch_sub_acq_rel(&task->state, WEFT__STATE_REF);

    weft_assert(word & WEFT__STATE_ALIVE);
    weft_assert(weft__state_references_of(word) > 0);
    /* complete will find that it is the last */
    if (!(word & WEFT__STATE_COMPLETE)) return WEFT__STATE_NOTHING;
    return weft__state_references_of(word) == 1 ? WEFT__STATE_FREE : WEFT__STATE_NOTHING;
}

void weft__state_free(struct weft_task *task)
{
    /* relaxed, both: the transition that answered FREE has ordered us behind all others */
    uint64_t word = load_relaxed(&task->state);

    weft_assert(word & WEFT__STATE_COMPLETE);
    weft_assert(weft__state_references_of(word) == 0);
    store_relaxed(&task->state, ((word >> WEFT__STATE_GEN_SHIFT) + 1) << WEFT__STATE_GEN_SHIFT);
}
