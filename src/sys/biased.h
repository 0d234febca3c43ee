/* SPDX-License-Identifier: MIT
 *
 * biased - a lock that costs its owner two stores, and others a read-modify-write.
 *
 * For what one thread takes all day and others once in a while: a worker's timers. It *favours* its owner: the owner says that it is inside, looks
 * whether it is favoured still, and is in. Whoever else comes takes the lock below, puts the favour out, and waits until the owner is not inside. From then on
 * all take the lock below; the owner is favoured again when it has come `patience` times in a row, which doubles each time that it was in vain.
 *
 *     FAVOURED   the owner enters by `inside`; nobody else is in
 *     SHARED     all enter by `lock`
 *
 *     FAVOURED -> SHARED     [enter by any]     holds the lock; then a heavy fence, then waits for `inside` to be 0
 *     SHARED   -> FAVOURED   [enter by owner]   holds the lock; the owner, so nobody is inside
 * `inside` and `favours` are Dekker's two flags. The owner has no fence between its store and its look: who puts the favour out pays for both
 * (sys/membarrier.h; 10 us, for thousands of the owner's entries). Where the kernel has none, nobody is ever favoured. If it has gone since,
 * as by a filter that the program has put up, a millisecond of sleep stands for it, once: a store is seen long before, and nobody is favoured any more.
 *
 * The owner is a thread, or several that hand the ownership on with an order of their own. A lock that never favours may be taken by either door.
 * Threads: any. Never held across a suspension. Pairs: [biased]; the lock below is of the brief kind (sys/lock.h), and has the rank.
 * Under WEFT_MODEL it is a primitive of the checker, unless the test is about this very file (WEFT_MODEL_REAL_BIASED).
 * Rejected: a fence of the owner's (as dear as the read-modify-write that it spares); favour for each who comes twice in a row (tasks move
 * between workers, and the fence is paid each time).
 */
#ifndef WEFT_SYS_BIASED_H
#define WEFT_SYS_BIASED_H

#include "sys/lock.h"

enum weft__door { WEFT__BY_ANY, WEFT__BY_OWNER };

struct weft__biased {
    struct weft__lock lock;   /* of all, while it is SHARED */
    _Atomic uint32_t inside;  /* 1: the owner is in, by favour          [biased] */
    _Atomic uint32_t favours; /* 1: FAVOURED; written under the lock    [biased] */
    uint32_t again;           /* entries of the owner until it is favoured again; 0: never  [lock] */
    uint32_t patience;        /* what that begins with                                      [lock] */
};

/* It is SHARED, for ever. */
static inline void weft__biased_init(struct weft__biased *b, enum weft__rank rank)
{
    weft__lock_init(&b->lock, rank);
    store_relaxed(&b->inside, 0); /* relaxed, both: not shared yet */
    store_relaxed(&b->favours, 0);
    b->again = 0;
}

#if defined(WEFT_MODEL) && !defined(WEFT_MODEL_REAL_BIASED)

#define weft__biased_can_favour()        false
#define weft__biased_favour(b)           ((void)(b))
#define weft__biased_enter(b, door)      (model_lock(&(b)->lock.word), (void)(door), false)
#define weft__biased_leave(b, by_favour) ((void)(by_favour), model_unlock(&(b)->lock.word))
#define weft__biased_try_enter(b)        (model_lock(&(b)->lock.word), true)

#else

/* Can anybody be favoured here? Asks the kernel: about 10 us, but 12 ms if the library came with dlopen to a program with threads. */
bool weft__biased_can_favour(void);

/* Before it is used, where that can be: it favours its owner. */
void weft__biased_favour(struct weft__biased *b);

void weft__biased_enter_slow(struct weft__biased *b, enum weft__door door);

/* By the owner. False: it is not favoured, and has to take the long way (weft__biased_enter): a path that does not call needs no registers saved. */
static inline bool weft__biased_try_enter(struct weft__biased *b)
{
    store_relaxed(&b->inside, 1);
    fence_light(); /* [biased] with the heavy one: it sees us inside, or we see that the favour is out */
    if (__builtin_expect(load_relaxed(&b->favours), 1)) { /* relaxed: written by this thread, or before it began */
        weft__lock_order_enter(&b->lock);
        return true;
    }
    store_release(&b->inside, 0); /* [biased] with who waits for it */
    return false;
}

/* Returns how it came in, for leave. */
static inline bool weft__biased_enter(struct weft__biased *b, enum weft__door door)
{
    if (door == WEFT__BY_OWNER && weft__biased_try_enter(b)) return true;
    weft__biased_enter_slow(b, door);
    return false;
}

static inline void weft__biased_leave(struct weft__biased *b, bool by_favour)
{
    if (__builtin_expect(by_favour, 1)) {
        weft__lock_order_leave(&b->lock);
        store_release(&b->inside, 0); /* [biased] with who waits for it: sees what was written inside */
        return;
    }
    weft__lock_drop_brief(&b->lock);
}

#endif
#endif
