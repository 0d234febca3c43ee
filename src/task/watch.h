/* SPDX-License-Identifier: MIT
 *
 * watch - any number wait for a task's end without owning it: the watchers behind the join word.
 *
 * A watcher lives in the frame that waits. The first one that comes puts its address into the
 * child's join word, with a tag; the others hang on it in a ring. A joiner that was in the word, or
 * that comes later, is kept in the first watcher. So the child's header has no field for watchers,
 * a task that nobody watches pays nothing, and there is no memory that could be lacking.
 *
 *     join word                  WATCHED ---> first <-> watcher <-> watcher <-> (first)
 *                                             .joiner: a waker, or none
 *
 *     FROM      -> TO         [function]            THEN
 *     NONE      -> WATCHED    [add]                 PENDING
 *     WAITER    -> WATCHED    [add]                 the joiner moves into the first watcher; PENDING
 *     DETACHED  -> WATCHED    [add]                 with the mark LET_GO; PENDING
 *     WATCHED   -> same       [add]                 at the ring's end; PENDING
 *     TAKEN     -> same       [add]                 READY; YIELD before COMPLETE
 *     WATCHED   -> WATCHED    [leave]               of the first: the next is the first, with the joiner
 *     WATCHED   -> NONE, WAITER, DETACHED  [leave]  of the last: the word is what it would be without
 *     WATCHED   -> same       [set_joiner, drop_joiner]
 *     WATCHED   -> + LET_GO   [let_go]              the handle was dropped
 *     WATCHED   -> TAKEN      [take]                claims the joiner; the ring moves to the bucket
 *
 * INVARIANT  All of these steps are made under the lock of the child's bucket, and while the word
 *            says WATCHED nobody writes it without that lock. All others (join.h) step from NONE,
 *            WAITER and DETACHED by a CAS, which fails on WATCHED and sends them here.
 *
 * THE END  The completer takes the lock only if it finds WATCHED. Under it: word TAKEN, joiner
 * claimed, the ring put onto the bucket's list `over`. Then, without the lock, COMPLETE: the last
 * touch of the child. Then it wakes what is in `over`, WEFT__WAKE_BATCH at a time, claiming under
 * the lock and pushing after it. Watchers may be claimed after COMPLETE although the joiner may
 * not (join.h), because a watcher that was ever in a ring takes the lock before it settles: whoever
 * claims it holds that lock, so its frame and its task are still there. The bucket's address comes
 * from the child's, which nobody needs to read for that.
 * Two children of one bucket may end at the same time, and the first to finish wakes what both put
 * into `over`: so a watcher that was woken may find its child a few instructions before COMPLETE.
 * It yields, as a joiner does, and looks again.
 * A watcher that gives up unlinks itself under the lock, from the ring or from `over`, and settles
 * at once, whatever the completer is doing.
 *
 * Threads: any. A watcher is polled by one thread at a time, and borrows a reference to the child.
 * LOCK ORDER: rank WAITLIST; tasks that share a bucket share its lock, never its watchers.
 * Pairs: [join], [join-result], as join.h.
 * Rejected: watchers in a table by address (no word needed, but all watched tasks of a bucket are
 * walked at each end: 100,000 tasks with a timeout each would walk hundreds); a list head of its
 * own, allocated when the first watcher comes, as Tokio's users build it from a channel (it can
 * fail, and a wait has no answer for that); a lock-free list as Kotlin's Job has it, one handler in
 * the state word and a list from the second on (removal needs memory that outlives the waiter: a
 * collector); one lock for all (two workers that end watched tasks would meet there).
 */
#ifndef WEFT_TASK_WATCH_H
#define WEFT_TASK_WATCH_H

#include "base/list.h"
#include "limits.h"
#include "task/join.h"

/* One who watches. In the private part of struct weft_wait; all zero: OUT. */
struct weft__watcher {
    struct weft__link link; /* in the child's ring, then in `over`        [bucket's lock] */
    uintptr_t waker;        /* whom to claim; 0: OUT         [bucket's lock; OUT: the waiter] */
    uintptr_t joiner;       /* of the ring's first: the joiner's waker, or 0  [bucket's lock] */
};

/* Is the child complete? If not, see to it that the watcher is woken when it is. READY; PENDING: it is
 * linked, and is OUT again only after READY from weft__watch_again or after weft__watch_leave; YIELD: it
 * is OUT, and to be polled again soon. Borrows: a reference to the child, until the watcher is OUT. */
enum weft__join weft__watch_add(struct weft_task *child, struct weft__watcher *watcher,
                                struct weft_waker waker);

/* For one that was linked: READY, the child is complete and the watcher is OUT; PENDING; or YIELD: it is
 * OUT, and to be polled again soon, by this function. */
enum weft__join weft__watch_again(struct weft_task *child, struct weft__watcher *watcher);

/* Give up: the watcher is OUT. */
void weft__watch_leave(struct weft_task *child, struct weft__watcher *watcher);

/* Wake the watchers of a child that weft__join_complete found `watched`. The child may be gone: its
 * address is enough. Holds: no lock. */
void weft__watch_wake(const struct weft_task *child, const struct weft__sched *sched);

/* ---- for join.c, which found WATCHED. False: the word says something else by now ------------- */

bool weft__watch_set_joiner(struct weft_task *child, struct weft_waker joiner);
bool weft__watch_drop_joiner(struct weft_task *child, struct weft_waker joiner);
bool weft__watch_let_go(struct weft_task *child);
bool weft__watch_take(struct weft_task *child, struct weft__join_done *done);

#endif
