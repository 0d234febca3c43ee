/* SPDX-License-Identifier: MIT
 *
 * join - one waits for another's end: three flags of the child's state word, and its join word.
 *
 *     none       nobody waits
 *     JOINER     the join word is the word of a waker (task/waker.h): who waits
 *     TAKEN      the completer has taken that waker and is about to claim it
 *     COMPLETE   the result stands
 *     DETACHED   beside any of them: the handle was dropped, nobody will read the result
 *
 *     FROM       -> TO         [function]             ORDER         THEN
 *     none       -> JOINER     [join_poll]            release RMW   PENDING: it will be claimed
 *     JOINER     -> same       [join_poll, again]     -             PENDING: it will be, or just was
 *     TAKEN      -> same       [join_poll, withdraw]  acquire load  YIELD
 *     COMPLETE   -> same       [join_poll, withdraw]  acquire load  READY
 *     JOINER     -> none       [withdraw]             relaxed RMW   LEFT: the child forgot it
 *     any        -> + DETACHED [detach]               acq_rel RMW   drops the handle's reference too
 *     none       -> DETACHED   [detach_newborn]       release store the same, of a child that nobody can have met
 *     none       -> COMPLETE   [end]                  acq_rel RMW   that is all
 *     JOINER     -> TAKEN      [end]                  acquire RMW   claims the joiner
 *     TAKEN      -> COMPLETE   [end]                  acq_rel RMW   pushes the joiner
 *
 * THE END OF A TASK, where somebody waits, in this order: result written; waker taken; joiner
 * claimed; COMPLETE set, the last touch of the child; joiner pushed. A joiner may be polled for
 * another reason at any moment (a cancel, another arm of its select). If COMPLETE came before the
 * claim, such a poll would take the result, end, and free both blocks under the completer (use after
 * free). As it is, the joiner cannot see COMPLETE before it has been claimed, and a claimed joiner
 * stays alive until it was pushed, or, if it was running, until its poll has ended. Where nobody
 * waits, one read-modify-write ends the task: whoever comes later finds COMPLETE.
 *
 * YIELD  A joiner that finds TAKEN has been claimed, or is about to be, and that claim may be the
 * very reason of this poll: no other wake is coming, so it must not wait. It yields (the poller
 * keeps SCHED and pushes it again) and looks once more; the completer is a few instructions from
 * COMPLETE. The same holds for a joiner that wants to leave: until COMPLETE it may still be claimed.
 *
 * WHO FREES, WHO TELLS  The handle is a reference of the state word. Block and result belong to
 * whoever the state word tells FREE: the completer, if all references went before, else the one who
 * drops the last. A failure that nobody will read is told by the completer, if it finds DETACHED,
 * else by the one who drops the handle of a complete child. There is one word to decide.
 *
 * WATCHERS  Others may wait without owning the handle (watchers.h). The word from which COMPLETE is set
 * says so: they are woken after COMPLETE and after the joiner was pushed. A child without references is
 * watched by nobody.
 *
 * Pairs: [join] join_poll -> end: the waker in the join word is valid. The result travels with
 * [state-done].
 * Threads: join_poll and withdraw by the joiner, one at a time; detach by the owner of the handle;
 * end by the child's poller.
 * Rejected: COMPLETE first (above); a RELEASED flag after the push, on which the joiner spins: one
 * more write for each task; a join word with a protocol of its own (none, waker, detached, taken):
 * one more read-modify-write at the end of every task, and two to detach one.
 */
#ifndef WEFT_TASK_JOIN_H
#define WEFT_TASK_JOIN_H

#include "task/state.h"
#include "task/waker.h"

enum weft__join {
    WEFT__JOIN_READY,   /* the child is complete; its result can be read */
    WEFT__JOIN_PENDING, /* the joiner will be woken */
    WEFT__JOIN_YIELD,   /* no wake will come: poll again soon */
    WEFT__JOIN_LEFT,    /* withdrawn: the child does not know the joiner any more */
};

struct weft__join_done {
    struct weft_waker joiner; /* claimed: to be pushed (weft__waker_push); or none */
    bool watched;             /* weft__watchers_wake is to be called, with the child's address */
    bool free;                /* no references: the caller frees the block */
};

/* Is the child complete? If not, see to it that the joiner is woken when it is. Borrows: a
 * reference to the child, for the joiner's stay. READY, PENDING or YIELD. At most one joiner at a
 * time; it is polled by one thread at a time. */
enum weft__join weft__join_poll(struct weft_task *child, struct weft_waker joiner);

/* Stop waiting. LEFT; or, the child being at its end, READY or YIELD: the joiner may not end before
 * it got READY. */
enum weft__join weft__join_withdraw(struct weft_task *child, struct weft_waker joiner);

/* Takes the handle of a child whose state word was `*word`: drops its reference, and with it the
 * result. Answers false, with the present word, if it had changed: whoever has to look at a complete
 * child's result first can. `*next` is FREE or NOTHING, as of weft__state_unref. */
static inline bool weft__join_detach(struct weft_task *child, uint64_t *word, enum weft__state_next *next)
{
    uint64_t seen = *word;
    weft_assert(!(seen & WEFT__STATE_DETACHED)); /* a handle is dropped once */
    weft_assert(weft__state_references_of(seen) > 0);
    /* [state-ref] with end and unref, both ways; [state-done] with end: as unref */
    bool dropped = cas_acq_rel(&child->state, &seen, (seen | WEFT__STATE_DETACHED) - WEFT__STATE_REF);
    *word = seen;
    if (!dropped) return false;
    bool last = (seen & WEFT__STATE_COMPLETE) && weft__state_references_of(seen) == 1;
    *next = last ? WEFT__STATE_FREE : WEFT__STATE_NOTHING;
    return true;
}

/* The same of a child that has not begun, and that the caller keeps from everybody who could begin it. If the handle is the only reference,
 * too, nobody else writes its word: who has never run has given no waker away. (A sweep may, by id; what it writes and this store
 * overwrites is written by the next one, which comes as long as the child lives.) False, having done nothing, if it is another child. */
static inline bool weft__join_detach_newborn(struct weft_task *child)
{
    /* [state-ref] with unref: who had a reference and dropped it is through with the child; ours hands that on to its end */
    uint64_t word = load_acquire(&child->state);
    uint64_t said = word & (WEFT__STATE_FLAGS | WEFT__STATE_REFS) & ~WEFT__STATE_SPENT;
    if (said != (WEFT__STATE_ALIVE | WEFT__STATE_SCHED | WEFT__STATE_REF)) return false;
    if (load_relaxed(&child->polls) != 0) return false; /* relaxed: this thread could poll it */
    /* [slab-state] with walk: as init; [state-ref] with end */
    store_release(&child->state, (word | WEFT__STATE_DETACHED) - WEFT__STATE_REF);
    return true;
}

/* weft__join_end of a child whose joiner waits: takes the waker, claims it, completes. */
bool weft__join_end_waited(struct weft_task *child, uint64_t *word, struct weft__join_done *done);

/* The word of a child whose poll answered READY, to end it by. */
static inline uint64_t weft__join_ending(const struct weft_task *child)
{
    uint64_t word = load_acquire(&child->state); /* [state-ref] with unref: others' last touches before our free */
    weft_assert((word & (WEFT__STATE_SCHED | WEFT__STATE_COMPLETE)) == WEFT__STATE_SCHED);
    return word;
}

/* weft__join_end of a child for which nobody waits, though somebody may come. */
/* NOLINTNEXTLINE(readability-non-const-parameter): the CAS writes to it, which clang-tidy does not see */
static inline bool weft__join_end_alone(struct weft_task *child, uint64_t *word)
{
    uint64_t seen = *word;
    /* One addition turns SCHED into COMPLETE. [state-done] with is_complete and unref; [state-ref]
     * with unref: its holder's last touch comes before our free, ours before its. */
    bool ended = cas_acq_rel(&child->state, &seen, seen + (WEFT__STATE_COMPLETE - WEFT__STATE_SCHED));
    *word = seen;
    return ended;
}

/* The child's poll answered READY, and its state word was `*word`. Answers false, with the present
 * word, if it had changed: whoever has to tell of an unread result looks at DETACHED once more.
 * When it answers true and `done->free` is false, the child must not be touched again. */
static inline bool weft__join_end(struct weft_task *child, uint64_t *word, struct weft__join_done *done)
{
    uint64_t seen = *word;
    done->joiner = weft__waker_none();
    done->watched = seen & WEFT__STATE_WATCHED;
    done->free = weft__state_references_of(seen) == 0;
    if (done->free) return weft__state_complete_unseen(child, seen) == WEFT__STATE_FREE;
    if (seen & WEFT__STATE_JOINER) return weft__join_end_waited(child, word, done);
    return weft__join_end_alone(child, word);
}

#endif
