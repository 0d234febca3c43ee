/* SPDX-License-Identifier: MIT
 *
 * join - one waits for another's end: the join word of the child.
 *
 *     NONE       nobody waits
 *     WAITER     the word of a waker (task/waker.h): who waits
 *     DETACHED   the handle was dropped: nobody will ever wait; final
 *     TAKEN      the completer was here; final
 *     WATCHED    others wait without owning the handle: watch.h has all of it
 *
 *     FROM     -> TO         [function]             ORDER         THEN
 *     NONE     -> WAITER     [join_poll]            release RMW   PENDING: it will be claimed
 *     WAITER   -> same       [join_poll, again]     -             PENDING: it will be, or just was
 *     TAKEN    -> same       [join_poll, withdraw]  acquire load  READY; YIELD before COMPLETE
 *     WAITER   -> NONE       [withdraw]             relaxed RMW   LEFT: the child forgot it
 *     NONE     -> DETACHED   [let_go]               relaxed RMW   drops the handle's reference
 *     TAKEN    -> same       [let_go]               acquire load  the result is its to report, then as above
 *     NONE     -> TAKEN      [complete]             acq_rel RMW   sets COMPLETE
 *     WAITER   -> TAKEN      [complete]             acq_rel RMW   claims the joiner, sets COMPLETE
 *     DETACHED -> TAKEN      [complete]             acq_rel RMW   sets COMPLETE; without references it stays
 *
 * THE END OF A TASK, in this order: result written; join word exchanged for TAKEN; joiner claimed;
 * COMPLETE set, the last touch of the child; joiner pushed. A joiner may be polled for another
 * reason at any moment (a cancel, another arm of its select). If COMPLETE came before the claim,
 * such a poll would take the result, end, and free both blocks under the completer (use after
 * free). As it is, the joiner cannot see COMPLETE before it has been claimed, and a claimed joiner
 * stays alive until it was pushed, or, if it was running, until its poll has ended.
 *
 * YIELD  A joiner that finds TAKEN without COMPLETE has been claimed, or is about to be, and that
 * claim may be the very reason of this poll: no other wake is coming, so it must not wait. It
 * yields (the poller keeps SCHED and pushes it again) and looks once more; the completer is a few
 * instructions from COMPLETE. The same holds for a joiner that wants to leave: until COMPLETE it
 * may still be claimed.
 *
 * WHO FREES  The handle is a reference of the state word. Block and result belong to whoever the
 * state word tells FREE: the completer, if all references went before, else the one who drops the
 * last. Detach and completion may race in every way; there is one word to decide.
 *
 * WHO REPORTS a failure that nobody will read: completer and owner meet at this word. One of them
 * comes first; the completer reports if it finds DETACHED, the owner if it finds TAKEN.
 *
 * Pairs: [join] join_poll -> complete: the waker in the word is valid.
 *        [join-result] complete -> let_go: the result, before COMPLETE; after it: [state-done].
 * Threads: join_poll and withdraw by the joiner, one at a time; let_go and detach by the owner of
 * the handle; complete by the child's poller.
 * Rejected: COMPLETE first (above); a RELEASED flag after the push, on which the joiner spins: one
 * more write for each task.
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
    bool unread;              /* the handle had been dropped: nobody will read the result */
    bool watched;             /* weft__watch_wake is to be called, with the child's address */
    bool free;                /* no references: the caller frees the block */
};

/* The join word's values that are no waker's: no address is as small, and none has the tag. */
#define WEFT__JOIN_NONE     ((uintptr_t)0)
#define WEFT__JOIN_DETACHED ((uintptr_t)2)
#define WEFT__JOIN_TAKEN    ((uintptr_t)4)
#define WEFT__JOIN_WATCHED  ((uintptr_t)2) /* a tag beside a watcher's address */

static inline bool weft__join_watched(uintptr_t word)
{
    return (word & WEFT__JOIN_WATCHED) && word != WEFT__JOIN_DETACHED;
}

/* Before publication, beside weft__state_init: a child with a handle, or one detached from birth. */
void weft__join_init(struct weft_task *child, bool detached);

/* Is the child complete? If not, see to it that the joiner is woken when it is. Borrows: a
 * reference to the child, for the joiner's stay. READY, PENDING or YIELD. At most one joiner at a
 * time; it is polled by one thread at a time. */
enum weft__join weft__join_poll(struct weft_task *child, struct weft_waker joiner);

/* Stop waiting. LEFT; or, the child being at its end, READY or YIELD: the joiner may not end before
 * it got READY. */
enum weft__join weft__join_withdraw(struct weft_task *child, struct weft_waker joiner);

/* The owner of the handle will not ask for the result. True: the child has one already, which the
 * caller may look at; it reports a failure. False: the completer will. The reference is still held. */
bool weft__join_let_go(struct weft_task *child);

/* Takes the handle: lets the child go and drops the reference, and with it the result. FREE or
 * NOTHING, as weft__state_unref. */
enum weft__state_next weft__join_detach(struct weft_task *child);

/* The child's poll answered READY. If `free` is false in the answer, the child must not be touched
 * again. */
struct weft__join_done weft__join_complete(struct weft_task *child);

#endif
