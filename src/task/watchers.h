/* SPDX-License-Identifier: MIT
 *
 * watchers - any number wait for a task's end without owning it.
 *
 * A watcher lives in the frame that waits, and hangs in a table: buckets by the child's address, each
 * with a lock and a list. One flag of the child's state word, WATCHED, tells the completer that
 * somebody is, or was, in the table. So the child's header has no field for watchers, a task that
 * nobody watches pays a test of a word in hand, and there is no memory that could be lacking.
 *
 *     FROM       -> TO          [function]   ORDER         THEN
 *     no flag    -> WATCHED     [add]        acquire RMW   linked before, under the lock: not ready
 *     WATCHED    -> same        [add]        acquire load  linked before, under the lock: not ready
 *     COMPLETE   -> same        [add, again] acquire load  unlinked, under the lock: ready
 *     WATCHED    -> + COMPLETE  [join_end]   as there      then wake
 * WATCHED stays for the child's life; state_free takes it out.
 *
 * NO WAKE IS LOST  COMPLETE is set by a read-modify-write of the word (join.h), from which the completer
 * knows WATCHED. If it was there, wake takes the lock after COMPLETE. A watcher that was linked before is
 * found; one that comes later has the lock after the completer, and sees COMPLETE. If it was not there,
 * the watcher's read-modify-write comes after COMPLETE, and sees it.
 *
 * NOTHING IS TOUCHED AFTER ITS END  A watcher that was linked takes the lock before it settles, whatever it
 * has seen: whoever claims it holds that lock, so its frame and its task are still there. It stays linked
 * when it is claimed, and unlinks itself. The child may be gone when wake runs, and its block be another
 * task's: wake knows an address and nothing else. Watchers of the block's next task may be claimed for
 * nothing; they look again, as every waiter does.
 *
 * Threads: any. A watcher is polled by one thread at a time, and borrows a reference to the child; so a
 * task without references, and one whose only reference is its joiner's, has none.
 * LOCK ORDER: rank WAITLIST; children that share a bucket share its lock and its list.
 * Fork: no watcher of the parent is waited for in the child (all runtimes are lost): forget.
 * Pairs: [state-done], as join.h. The rest is the lock's.
 * Rejected: the list in the join word, its first node holding the joiner (twelve more transitions of that
 * word); a list head allocated when the first watcher comes (it can fail, and a wait has no answer for
 * that); a lock-free list (removal needs memory that outlives the waiter); one lock for all.
 */
#ifndef WEFT_TASK_WATCHERS_H
#define WEFT_TASK_WATCHERS_H

#include "base/list.h"
#include "limits.h"
#include "task/join.h"

/* One who watches. In the private part of struct weft_wait. */
struct weft__watcher {
    struct weft__link link;        /* in its bucket                            [bucket's lock] */
    uintptr_t waker;               /* whom to claim                [waiter, before it is linked] */
    const struct weft_task *child; /* whose end it waits for       [waiter, before it is linked] */
};

/* True: the child is complete, and the watcher was not linked. False: it is linked, and its waker is
 * claimed when the child is; it must not end before again said true or it left. Borrows: a reference to
 * the child, as long. */
bool weft__watchers_add(struct weft_task *child, struct weft__watcher *watcher,
                        struct weft_waker waker);

/* For one that is linked. True: the child is complete, and the watcher is out. */
bool weft__watchers_again(const struct weft_task *child, struct weft__watcher *watcher);

/* For one that is linked: gives up, and is out. */
void weft__watchers_leave(struct weft__watcher *watcher);

/* Wake the watchers of a child that ended `watched` (join.h). The child may be gone. Holds: no lock. */
void weft__watchers_wake(const struct weft_task *child, const struct weft__sched *sched);

/* In the child of a fork, with one thread: nobody watches any more, and no lock is held. */
void weft__watchers_forget(void);

#endif
