/* SPDX-License-Identifier: MIT
 *
 * state - the transitions of a task's state word; the drawing and the reasons are in state.h.
 */
#include "task/state.h"

#include <errno.h>

void weft__state_check(uint64_t word)
{
    uint64_t flags = word & WEFT__STATE_FLAGS;

    weft_assert((flags & ~WEFT__STATE_KNOWN) == 0);    /* no flag that nobody knows */
    if (flags) weft_assert(flags & WEFT__STATE_ALIVE); /* zero flags is the only way to be free */
    /* nobody refers to a free block */
    if (!flags) weft_assert(weft__state_references_of(word) == 0);
    /* nobody polls it again */
    if (flags & WEFT__STATE_COMPLETE) weft_assert(!(flags & WEFT__STATE_SCHED));
    if ((flags & WEFT__STATE_NOTIFIED) && !(flags & WEFT__STATE_COMPLETE)) {
        weft_assert(flags & WEFT__STATE_SCHED); /* an idle task has no wake waiting */
    }
    weft_assert(!(flags & WEFT__STATE_JOINER) || !(flags & WEFT__STATE_TAKEN));
    if (flags & WEFT__STATE_LATE) weft_assert(flags & WEFT__STATE_CANCELLED); /* a reason for it */
}

/* The word after a cancel, which sets the flags. */
static uint64_t cancelled(uint64_t word, uint64_t flags)
{
    if (word & (WEFT__STATE_COMPLETE | WEFT__STATE_CANCELLED)) return word;
    return weft__state_claimed(word) | flags;
}

static enum weft__state_next cancel_from(struct weft_task *task, uint64_t word, uint32_t generation,
                                         uint64_t flags)
{
    for (;;) { /* lock-free, as claim */
        if (!(word & WEFT__STATE_FLAGS) || weft__state_generation_of(word) != generation)
            return WEFT__STATE_NOTHING;
        /* [state-wake], [state-poll], as claim */
        if (!cas_acq_rel(&task->state, &word, cancelled(word, flags))) continue;
        if (word & WEFT__STATE_CANCELLED) return WEFT__STATE_NOTHING; /* the first cancel woke it */
        return weft__state_right_after(word);
    }
}

static uint64_t flags_for(int why)
{
    weft_dassert(why == -ECANCELED || why == -ETIME);
    return why == -ETIME ? WEFT__STATE_CANCELLED | WEFT__STATE_LATE : WEFT__STATE_CANCELLED;
}

enum weft__state_next weft__state_cancel_for(struct weft_task *task, int why)
{
    uint64_t word = load_relaxed(&task->state); /* relaxed: a guess, the CAS decides */

    weft_dassert(word & WEFT__STATE_ALIVE);
    return cancel_from(task, word, weft__state_generation_of(word), flags_for(why));
}

enum weft__state_next weft__state_cancel(struct weft_task *task)
{
    return weft__state_cancel_for(task, -ECANCELED);
}

enum weft__state_next weft__state_cancel_id(struct weft_task *task, uint32_t generation)
{
    /* relaxed: a guess, the CAS decides */
    return cancel_from(task, load_relaxed(&task->state), generation, WEFT__STATE_CANCELLED);
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

