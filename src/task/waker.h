/* SPDX-License-Identifier: MIT
 *
 * waker - wake in two steps: claim where the waiter is held fast, push where nothing is held.
 *
 * A waiter leaves its list under the list's lock, and its task is touched for the last time there:
 * once the lock is dropped, a cancel can wake the task by another way, and it settles, ends and is
 * freed. So under the lock the waker is *claimed*: for a task one read-modify-write of its state,
 * after which it cannot run, hence cannot die, before the claimer pushes it; for a foreign waker
 * the same on a word of its own, with a reference. A claim that was not granted leaves nothing to
 * do: somebody else's push is on its way and covers this wake.
 *
 *     under the lock   struct weft_waker c = weft__waker_claim(w);   weft__wake_chain_claim(&chain, w);
 *     after it         weft__waker_push(c, sched);                   weft__wake_chain_push(&chain, sched);
 * Claimed tasks chain through their own `link`, so a chain of any length needs no memory. A chain
 * that is not pushed loses its tasks for ever.
 *
 * A FOREIGN waker stands for something that is no task: a thread in its own wait, another event
 * loop. Its owner makes it with one reference and a table of two functions. CLAIMED is its
 * NOTIFIED: it is set by the claim, which takes a reference for the claimer, and taken out by the
 * deliverer *before* it calls wake(), so that a wake that comes during the call brings another
 * call.
 *     references, 0       -> references + 1, CLAIMED    [claim]    acq_rel RMW    caller delivers
 *     references, CLAIMED -> same                       [claim]    acq_rel RMW    nothing: covered by the delivery
 *     references, CLAIMED -> references, 0              [deliver]  acq_rel RMW    calls wake(), then unref
 * Pairs: [foreign-wake] claim -> deliver: what was written before the wake.
 *        [foreign-link] deliver -> claim: `link` is read out.
 *        [foreign-ref]  unref -> unref: the last touch before free().
 * Threads: any. Under a lock a waker is at most claimed; wake() and the sched's table run with none
 * held.
 * Rejected: a reference per waiter (the read-modify-write that claiming saves); a table with clone
 * and drop (every user would write the same counter, and the claim needs a word to stand on
 * anyway).
 */
#ifndef WEFT_TASK_WAKER_H
#define WEFT_TASK_WAKER_H

#include "base/assert.h"
#include "base/atomic.h"
#include "task/state.h"
#include "types.h"

/* Tasks and foreign wakers lie at multiples of 16 bytes: the low bits are free for tags. */
#define WEFT__WAKER_FOREIGN ((uintptr_t)1)
#define WEFT__WAKER_BITS    ((uintptr_t)15)

struct weft__foreign;

struct weft__foreign_ops {
    void (*wake)(struct weft__foreign *foreign); /* by any thread, no lock held; must not block */
    void (*free)(struct weft__foreign *foreign); /* the last reference is gone */
    /* Instead of wake, where it is there: takes the deliverer's reference, so that it can be given back before whoever is woken looks. */
    void (*deliver)(struct weft__foreign *foreign);
};

struct weft__foreign {
    _Alignas(16) const struct weft__foreign_ops *ops; /* constant */
    struct weft__foreign *link;                       /* in a chain      [holder of the claim] */
    _Atomic uint32_t state; /* references << 1 | CLAIMED                 [all, through waker.c] */
};

/* Tasks and foreign wakers that were claimed and not yet pushed; on the stack of the claimer. */
struct weft__wake_chain {
    struct weft_task *first; /* the oldest; NULL: none */
    struct weft_task *last;
    struct weft__foreign *foreign; /* the newest first: turns were given, the order is settled */
    uint32_t count;                /* tasks */
};

#define WEFT__WAKE_CHAIN_INIT {.first = NULL, .last = NULL, .foreign = NULL, .count = 0}

static inline struct weft_waker weft__waker_none(void)
{
    return (struct weft_waker){0};
}

static inline bool weft__waker_is_none(struct weft_waker waker)
{
    return waker.word == 0;
}

/* Borrows the task; the waker holds no reference. */
static inline struct weft_waker weft__waker_of(struct weft_task *task)
{
    weft_dassert(((uintptr_t)task & WEFT__WAKER_BITS) == 0);
    return (struct weft_waker){(uintptr_t)task};
}

static inline struct weft_waker weft__waker_of_foreign(struct weft__foreign *foreign)
{
    weft_dassert(((uintptr_t)foreign & WEFT__WAKER_BITS) == 0);
    return (struct weft_waker){(uintptr_t)foreign | WEFT__WAKER_FOREIGN};
}

/* The task behind it, or NULL for a foreign waker or none. */
static inline struct weft_task *weft__waker_task(struct weft_waker waker)
{
    return (waker.word & WEFT__WAKER_FOREIGN) ? NULL : (struct weft_task *)waker.word;
}

/* The foreign waker behind it, or NULL. */
static inline struct weft__foreign *weft__waker_foreign(struct weft_waker waker)
{
    return (waker.word & WEFT__WAKER_FOREIGN)
               ? (struct weft__foreign *)(waker.word & ~WEFT__WAKER_BITS)
               : NULL;
}

/* Claims; the waiter behind the waker must be held fast. Gives the claimed waker, which must be
 * pushed, or none. */
struct weft_waker weft__waker_claim(struct weft_waker waker);

/* The same for a task, inline. True: the task must be pushed. */
static inline bool weft__waker_claim_task(struct weft_task *task)
{
    return weft__state_claim(task) == WEFT__STATE_ENQUEUE;
}

/* Takes a claimed waker (or none) to where it runs. Holds: no lock. */
void weft__waker_push(struct weft_waker claimed, const struct weft__sched *sched);

/* The same in a signal handler, where the interrupted code may hold locks: what `sched` does must need none. */
void weft__waker_deliver(struct weft_waker claimed, const struct weft__sched *sched);

/* Both steps, for a caller that holds no lock and knows that the waiter cannot die. */
void weft__waker_wake(struct weft_waker waker, const struct weft__sched *sched);

/* Puts a task that was claimed already at the chain's end: by a cancel that answered ENQUEUE. */
static inline void weft__wake_chain_add(struct weft__wake_chain *chain, struct weft_task *claimed)
{
    /* relaxed, both: the claim gave us the link, the push publishes it */
    store_relaxed(&claimed->link, NULL);
    if (chain->last) {
        store_relaxed(&chain->last->link, claimed);
    } else {
        chain->first = claimed;
    }
    chain->last = claimed;
    chain->count++;
}

/* Claims, and puts the claimed waker, if it is one, at the chain's end. True: it is a task, which the chain's push brings. */
bool weft__wake_chain_claim_foreign(struct weft__wake_chain *chain, struct weft_waker waker);
static inline bool weft__wake_chain_claim(struct weft__wake_chain *chain, struct weft_waker waker)
{
    struct weft_task *task = weft__waker_task(waker);
    if (__builtin_expect(!task, 0)) return weft__wake_chain_claim_foreign(chain, waker);
    if (!weft__waker_claim_task(task)) return false;
    weft__wake_chain_add(chain, task);
    return true;
}

/* Takes the whole chain to where it runs, first claimed first; it is empty afterwards. Holds: no
 * lock. */
void weft__wake_chain_push(struct weft__wake_chain *chain, const struct weft__sched *sched);

/* A foreign waker with one reference, the owner's. */
void weft__foreign_init(struct weft__foreign *foreign, const struct weft__foreign_ops *ops);
void weft__foreign_ref(struct weft__foreign *foreign);
bool weft__foreign_unref(struct weft__foreign *foreign); /* true: it was the last, and the thing may be gone */

/* Asked by its owner, who waits for nothing by it any more: has nobody else a reference? Then nobody touches it again, and it can be made anew. */
bool weft__foreign_alone(struct weft__foreign *foreign);

#endif
