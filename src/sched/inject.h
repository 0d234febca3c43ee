/* SPDX-License-Identifier: MIT
 *
 * inject - the way in for threads that have no ring: many pushers, batches out, first in, first out.
 *
 * An intrusive list through `task->link`. A push is one exchange of the tail, then one store that links
 * the predecessor to it: no allocation, no loop, no CAS that could fail. One consumer at a time takes
 * from the head, under a flag that is tried and never waited for: who finds it taken goes away.
 *
 *     head -> a -> b    c -> d <- tail      c's pusher has exchanged the tail, and not stored b->link
 *     tail == NULL                          empty
 *     t->link == NULL and tail != t         the GAP: a pusher is between its exchange and its store
 *     head == NULL and tail != NULL         the same gap, before the first task
 * The last task is taken by a CAS of the tail from it to NULL. The consumer clears the head before,
 * since the next pusher finds the queue empty and stores the head itself. A task before a gap cannot be
 * taken: without its successor the rest would be lost. So a gap reads as "empty for now".
 *
 * WHY NO WAKE-UP IS LOST  A pusher goes: exchange, link store, fence_seq_cst, look for sleepers. (The
 * exchange does not replace the fence: the store that makes the task reachable comes after it.) A
 * sleeper goes: publish that it sleeps, fence, ask weft__inject_empty. One of the two fences is first:
 *     pusher's first     the sleeper finds the link stored: it sees the task, or an older gap before it
 *     sleeper's first    the pusher finds the sleeper
 * A sleeper that passes by tasks because of a gap looked while the gap was open. The pusher who closes
 * it has its fence still to come, so it finds the sleeper, and its one wake is for all of them. Nobody
 * spins on a gap; it lasts two instructions, or as long as its thread is preempted between them.
 * The flag could hide what the sleeper came to see, and its holder may be a sleeper too, whose look is
 * already behind it. So the flag counts who came: a holder cannot drop a flag to which somebody has come
 * without looking again, and it then sees at least what that one would have seen [inject-flag]. Only a
 * holder whose batch is full leaves without: it is awake, and looks again before it sleeps.
 *
 * Threads: push by anyone; pop and empty by any worker. No locks.
 * Pairs: [inject-tail] push -> push, pop -> push; [inject-link] push -> pop; [inject-flag] among those
 * at the head.
 * Rejected: a lock (a preempted pusher stops all others); a stack, taken whole and reversed (reversing
 * chases a million cold pointers); a stub node instead of NULL (one exchange more per drain, and the
 * empty queue looks like the gap); a flag of 0 and 1 (two sleepers: one looks and sees nothing, the other
 * is woken for the next task, finds the flag taken and trusts the first: both sleep; model-checked); a
 * length (a second shared read-modify-write per push).
 */
#ifndef WEFT_SCHED_INJECT_H
#define WEFT_SCHED_INJECT_H

#include "base/atomic.h"
#include "types.h"

struct weft__inject {
    /* the youngest, NULL when empty; exchanged by pushers  [inject-tail] */
    WEFT__CACHE_ALIGNED struct weft_task *_Atomic tail;
    /* the oldest; stored by the flag's holder, or by the pusher who found it empty  [inject-link] */
    WEFT__CACHE_ALIGNED struct weft_task *_Atomic head;
    /* the flag: 0, or one for who is at the head and one for each who came meanwhile  [inject-flag] */
    _Atomic uint32_t draining;
};

void weft__inject_init(struct weft__inject *q);

/* Anyone: append a task. Takes: t, which the caller has the right to enqueue.
 * The caller then does fence_seq_cst() and looks for sleepers. */
void weft__inject_push(struct weft__inject *q, struct weft_task *t);

/* Anyone: append first -> ... -> last, linked through `link`, for the price of one. Takes: all of them.
 * last->link may hold anything. The caller then does fence_seq_cst() and looks for sleepers. */
void weft__inject_push_chain(struct weft__inject *q, struct weft_task *first,
                             struct weft_task *last);

/* A worker: take up to `max` of the oldest. Gives: the tasks.
 * Returns how many; 0 when empty, at a gap, or while another is draining. */
uint32_t weft__inject_pop(struct weft__inject *q, uint32_t max, struct weft_task **into);

/* Anyone: a hint, without a read-modify-write. false: tasks are there, or on their way. */
static inline bool weft__inject_idle(struct weft__inject *q)
{
    return !load_relaxed(&q->tail); /* relaxed: a hint */
}

/* A worker on its way to sleep, after it published itself and fenced: may it?
 * true: each task pushed so far is taken; or a pusher has its look for sleepers still to come, and will
 * find this one; or another worker is at the head, and does not leave without having looked again.
 * false: a pop at this moment would have got a task. Another worker may be quicker. */
bool weft__inject_empty(struct weft__inject *q);

/* With nobody at work on it: assert that the list is whole. Returns its length. */
uint64_t weft__inject_check(struct weft__inject *q);

#endif
