/* SPDX-License-Identifier: MIT
 *
 * join - what happens when somebody waits; the drawing and the reasons are in join.h.
 */
#include "task/join.h"

enum weft__join weft__join_poll(struct weft_task *child, struct weft_waker joiner)
{
    uint64_t word = load_acquire(&child->state); /* [state-done] with end: the result */

    weft_assert(!weft__waker_is_none(joiner));
    for (;;) { /* lock-free: a failed CAS means another transition happened */
        if (word & WEFT__STATE_COMPLETE) return WEFT__JOIN_READY;
        if (word & WEFT__STATE_TAKEN) return WEFT__JOIN_YIELD;
        if (word & WEFT__STATE_JOINER) {
            /* Our own waker from an earlier poll, perhaps an old value: then the completer's claim comes
             * after this poll's begin_poll (else that one's acquire would have shown us TAKEN), so it
             * leaves NOTIFIED for the end of this poll, and there is another one. */
            weft_assert(load_relaxed(&child->join) == joiner.word); /* relaxed: our own store */
            return WEFT__JOIN_PENDING;
        }
        weft_assert(!(word & WEFT__STATE_DETACHED)); /* a child without a handle has no joiner */
        store_relaxed(&child->join, joiner.word);    /* relaxed: the CAS publishes it */
        /* [join] with end_waited: the waker. On failure [state-done] with end. */
        if (cas_acq_rel(&child->state, &word, word | WEFT__STATE_JOINER)) return WEFT__JOIN_PENDING;
    }
}

enum weft__join weft__join_withdraw(struct weft_task *child, struct weft_waker joiner)
{
    uint64_t word = load_acquire(&child->state); /* [state-done] with end: the result */

    for (;;) { /* lock-free: a failed CAS means another transition happened */
        if (word & WEFT__STATE_COMPLETE) return WEFT__JOIN_READY;
        if (word & WEFT__STATE_TAKEN) return WEFT__JOIN_YIELD;
        if (!(word & WEFT__STATE_JOINER)) return WEFT__JOIN_LEFT; /* it never waited */
        weft_assert(load_relaxed(&child->join) == joiner.word);   /* relaxed: our own store */
        /* All that it says to the completer is "nobody", with which no memory comes; on failure
         * [state-done] with end. */
        if (cas_acquire(&child->state, &word, word & ~WEFT__STATE_JOINER)) return WEFT__JOIN_LEFT;
    }
}

bool weft__join_end_waited(struct weft_task *child, uint64_t *word, struct weft__join_done *done)
{
    uint64_t seen = *word;
    /* [join] with join_poll: the waker. It fails if the joiner has left, among others. */
    bool taken = cas_acquire(&child->state, &seen, seen ^ (WEFT__STATE_JOINER | WEFT__STATE_TAKEN));
    *word = seen;
    if (!taken) return false;
    uintptr_t waker = load_relaxed(&child->join); /* relaxed: acquired with JOINER */
    done->joiner = weft__waker_claim((struct weft_waker){waker});

    /* One addition ends it. [state-done] with is_complete and unref; [state-ref] with unref: our last
     * touch comes before their free. The joiner's reference is still there, so we are not the last. */
    uint64_t before = fetch_add_release(&child->state, WEFT__STATE_COMPLETE - WEFT__STATE_SCHED - WEFT__STATE_TAKEN);
    weft_assert(weft__state_references_of(before) > 0);
    done->watched = before & WEFT__STATE_WATCHED;
    return true;
}
