/* SPDX-License-Identifier: MIT
 *
 * idle - which workers sleep, which search, and the proof that no work is left behind by either.
 *
 * WORDS  A worker *runs* (polls tasks), *searches* (has none, and goes through all queues) or
 * *sleeps* (its bit is set; parked, or about to be). One 64-bit word per group of 56 workers, each
 * word on a line of its own:
 *     bits 0..55   the group's sleepers            bits 56..63   how many of the group search
 * Both in one word, so that "gives up searching and sleeps" and "is woken and searches" are one
 * read-modify-write each.
 *
 * PROBLEM  Waking a worker for every task costs 5 us each and makes two workers slower than one;
 * waking none strands work. Sleepers and submitters each write one place and read the other's (work
 * and idle word): store buffering, where without a full fence on *both* sides each may miss the
 * other.
 *
 * RULE  A sleeper is woken only if nobody searches, or if the work is for it alone. A searcher is a promise: work that was
 * published before the promise ends is found. It ends in two ways only, sleep and search_end, and
 * both are followed by a fence and a look at all queues.
 *
 * RECIPES
 *     submit, by another thread      submit, by a worker          sleep
 *       push by RMW                    push (plain stores)          have nothing
 *       fence              [idle-sb]   hint: a free try             write what wakers read of us
 *       look: nobody searches and      the poll goes on             sleep: ONE RMW, bit on and
 *         somebody sleeps              pop the next, by RMW           searching off, then its
 *       take its bit, searcher + 1       (the slot: then a fence)     fence             [idle-sb]
 *                                      look, behind it [idle-sb]
 *       unpark it                      if so: wake_one, unpark      re-scan *everything*: rings,
 *     = push, weft__idle_submit                                       overflow, inject, inbox, driver
 *                                                                   found: unsleep
 *     search                                                        not: park, unsleep
 *       search_begin                                                either way it now searches
 *       go through all queues; nothing: sleep
 *       found: take it; search_end: RMW, fence [idle-sb]; if it answers true
 *         and more work is visible: wake_one, unpark
 *
 * WHY NOTHING IS STRANDED  Let work be pushed before fence F of its submitter, who then looks at
 * the word of each group, in any order.
 *   1. A word showed a searcher. The look is older than the RMW by which that searcher ends, so F
 *      comes before the fence behind that RMW in the order of all seq_cst fences, and what is read
 *      after it includes the work: sleep re-scans and finds it, search_end sees it and wakes one
 *      more. If search_end was not the last of its group, or wake_one found another searcher, the
 *      promise has passed on: that one's RMW is still to come, its fence later still. The chain
 *      ends, as each link is a worker that stops searching.
 *   2. No searcher and a sleeper: the CAS makes it a searcher, and the unpark carries the work to
 *      it. If the CAS fails, the word is looked at again.
 *   3. Neither: all run. Whoever sleeps later publishes it by an RMW that the look did not see: F
 *      comes before its fence, and its re-scan finds the work.
 * Each case speaks of one worker and of its group's word alone, so the words need no common
 * snapshot: with several groups the look at the others can only show a searcher more (case 1) or a
 * sleeper more (case 2). What a single word gives up by being several is "one searcher": two groups
 * may get one each at the same time, which costs CPU and strands nothing.
 *
 * WORK FOR ONE WORKER, in its inbox, is submitted by wake, which looks at that worker's bit alone:
 *     push by RMW; fence [idle-sb]; the bit is on: take it, searcher + 1, unpark
 * Cases 2 and 3, with "a sleeper" and "whoever sleeps" read as that worker. Case 1 does not come up:
 * no searcher can help. The woken worker counts as a searcher even if there is one: it goes on like
 * any that was woken, and its own end of searching, by the same fence, passes on what others
 * trusted it with. So there may be several searchers, which costs CPU and strands nothing.
 *
 * WHICH FENCE FOR WHAT  Without the submitter's fence cases 1 and 3 fail: its look may be older
 * than its push. Without the sleeper's fence they fail too: the re-scan may be older than the RMW.
 * search_end's fence is needed by case 1 only; without it, as without look's, work waits beside a
 * sleeper until the poll that follows has ended. The hint needs none: the look behind the next pop
 * repeats it, and a poll so long that this is late is the monitor's business. wake_one brings no
 * fence of its own: its caller has one.
 *
 * ALL THAT A WAKER MAY READ OR WRITE about a sleeper is written by the sleeper before
 * weft__idle_sleep ([idle-own]: where it parks). Before, not after: a sleeper that cleared its own
 * `searching` flag after it had published itself overwrote the right that a waker had just handed
 * to it; the count stayed at one for ever and nobody was woken again (one hang in 3,900 runs of a
 * prototype). Here that right is in the word alone. What a waker reads is constant or atomic: it
 * may still be reading when the worker, who saw its bit gone, is awake already.
 *
 * Pairs: [idle-sb] look, submit and wake <-> sleep and search_end. [idle-own] sleep -> wake_one, wake, all_sleep.
 * Threads: search_begin, search_end, sleep and unsleep by the worker itself; the rest by anyone. No
 * locks.
 * Rejected: a fence per push (0.3 to 1 ns each, for a hint); membarrier by the sleeper (9 us here);
 * one list of sleepers under a lock (a waker must not wait for a preempted sleeper); a counter
 * beside the mask (two words, and states between them).
 */
#ifndef WEFT_SCHED_IDLE_H
#define WEFT_SCHED_IDLE_H

#include "base/atomic.h"
#include "limits.h"

#define WEFT__IDLE_NOBODY UINT32_MAX

struct weft__idle_group {
    WEFT__CACHE_ALIGNED _Atomic uint64_t word; /* sleepers and searchers  [idle-sb] [idle-own] */
};

struct weft__idle {
    struct weft__idle_group group[WEFT__IDLE_GROUPS_MAX];
    WEFT__CACHE_ALIGNED uint32_t group_count; /* constant */
    uint32_t worker_count;                    /* constant */
};

/* All workers run. */
void weft__idle_init(struct weft__idle *idle, uint32_t worker_count);

/* The worker ran and has nothing. True: it searches. False: somebody else does; it sleeps instead.
 * */
bool weft__idle_search_begin(struct weft__idle *idle, uint32_t worker);

/* The searcher has found work and taken it. True: it was its group's last; the caller calls
 * wake_one if more work is visible. */
bool weft__idle_search_end(struct weft__idle *idle, uint32_t worker);

/* The worker gives up. From here on it may be woken; it re-scans everything, and only then parks.
 * */
void weft__idle_sleep(struct weft__idle *idle, uint32_t worker, bool was_searching);

/* The sleeper is awake: the re-scan found work, or its park has returned. It searches from here on,
 * in either case. True: it took itself out. False: a waker did, and its unpark came or is on its
 * way. The worker need not wait for it: a token that comes late ends the next park early, once. */
bool weft__idle_unsleep(struct weft__idle *idle, uint32_t worker);

/* Unless somebody searches, make one sleeper a searcher, of `from`'s group if there is one; `from`
 * is a worker or NOBODY. Answers whom the caller must unpark, or NOBODY. */
uint32_t weft__idle_wake_one(struct weft__idle *idle, uint32_t from);

/* A free look without order: would wake_one find somebody? */
bool weft__idle_hint(const struct weft__idle *idle);

/* The look that counts, in a worker's loop: right behind a read-modify-write of this thread, and where there is none. */
bool weft__idle_look(const struct weft__idle *idle);
bool weft__idle_look_fenced(const struct weft__idle *idle);

/* For threads outside: after an RMW push. Fence, look and wake_one. Answers whom to unpark, or
 * NOBODY. */
uint32_t weft__idle_submit(struct weft__idle *idle);

/* After an RMW push to what `worker` alone takes from, by any other thread. Fence and look. True: it
 * slept, it searches now, and the caller must unpark it. */
bool weft__idle_wake(struct weft__idle *idle, uint32_t worker);

/* Counts, old by the time they are used. */
uint32_t weft__idle_searching(const struct weft__idle *idle);
uint32_t weft__idle_sleeping(const struct weft__idle *idle);

/* Do all sleep? What each of them did before it fell asleep is seen by who is told so. */
bool weft__idle_all_sleep(const struct weft__idle *idle);

#endif
