/* SPDX-License-Identifier: MIT
 *
 * lock - a futex lock, with a rank that debug builds check.
 *
 * The word is 0 (free), 1 (held) or 2 (held, and somebody may sleep). An uncontended pair costs two read-modify-writes and no syscall; a taker
 * that finds it held spins a little, then sleeps. The lock is unfair: what it guards is held for nanoseconds, and whoever needs order keeps a queue.
 *
 *     0 -> 1   lock, fast            1 -> 0   unlock, nobody to wake
 *     any -> 2 lock_slow (exchange)  2 -> 0   unlock, wakes one
 *
 * LOCK ORDER  A thread takes locks in rising rank only (enum weft__rank). Debug builds abort on a violation and name both ranks.
 *             Under a lock a waker is at most claimed; foreign wakers, hooks and user code run with none held.
 * Threads: any. Never held across a suspension. Pairs: [lock]. Under WEFT_MODEL a lock is a primitive of the checker, unless the test is about
 * this very file (WEFT_MODEL_REAL_LOCK).
 */
#ifndef WEFT_SYS_LOCK_H
#define WEFT_SYS_LOCK_H

#include "base/assert.h"
#include "base/atomic.h"
#include "sys/futex.h"

/* Low to high: a thread that holds one may take only those below it in this list. */
enum weft__rank {
    WEFT__RANK_NONE,     /* not checked */
    WEFT__RANK_RT,       /* a runtime: start, stop, directory of workers */
    WEFT__RANK_BLOCKING, /* the blocking pool */
    WEFT__RANK_DRIVER,   /* a shard's rings */
    WEFT__RANK_SLOT,     /* a ring's requests; an fd's own lock is a wait list's */
    WEFT__RANK_SCOPE,    /* a scope's children */
    WEFT__RANK_CHAN,     /* the receiving side of a channel; its sending side is a wait list */
    WEFT__RANK_WAITLIST, /* waiters of a primitive, with what it guards */
    WEFT__RANK_WHEEL,    /* a shard's timers */
    WEFT__RANK_OVERFLOW, /* a worker's overflow arrays */
    WEFT__RANK_SLAB,     /* stacks, their directory; leaves. The slab has no lock */
    WEFT__RANK_COUNT
};

struct weft__lock {
    _Atomic uint32_t word;          /* 0 free, 1 held, 2 held and perhaps slept on  [lock] */
    uint8_t rank;                   /* enum weft__rank; constant */
    /* -- of one that may belong to somebody (sys/bias.h), from weft__bias_begin on; guarded by the word -- */
    _Atomic uint8_t owner;          /* whose it is; 0: nobody's */
    uint8_t last;                   /* who took it last, by its word; 0: not known */
    uint8_t bits;                   /* whoever takes it 2^bits times in a row is given it */
};

_Static_assert(sizeof(struct weft__lock) == 8, "it lies beside what it guards, on one line");

#define WEFT__LOCK_INIT(rank_) {.word = 0, .rank = (rank_)}

#if defined(WEFT_DEBUG) && !defined(WEFT_MODEL)
void weft__lock_order_enter(struct weft__lock *lock);
void weft__lock_order_leave(struct weft__lock *lock);
bool weft__lock_order_holds(const struct weft__lock *lock);
const char *weft__rank_name(enum weft__rank rank); /* "slab"; for messages */
void weft__lock_assert_none_held(void);
#define weft__lock_assert_held(lock) weft_assert(weft__lock_order_holds(lock))
#else
#define weft__lock_order_enter(lock)  ((void)(lock))
#define weft__lock_order_leave(lock)  ((void)(lock))
#define weft__lock_assert_none_held() ((void)0)
#define weft__lock_assert_held(lock)  ((void)(lock))
#endif

static inline void weft__lock_init(struct weft__lock *lock, enum weft__rank rank)
{
    store_relaxed(&lock->word, 0); /* relaxed: not shared yet */
    lock->rank = (uint8_t)rank;
}

#if defined(WEFT_MODEL) && !defined(WEFT_MODEL_REAL_LOCK)

#define weft__lock_take(lock)     model_lock(&(lock)->word)
#define weft__lock_try_take(lock) model_try_lock(&(lock)->word)
#define weft__lock_drop(lock)     model_unlock(&(lock)->word)

#define weft__lock_take_brief(lock) model_lock(&(lock)->word)
#define weft__lock_drop_brief(lock) model_unlock(&(lock)->word)

#define weft__lock_try_take_brief(lock)     model_try_lock(&(lock)->word)
#define weft__lock_drop_brief_quietly(lock) (model_unlock(&(lock)->word), true)

#else

void weft__lock_take_slow(struct weft__lock *lock);
void weft__lock_drop_slow(struct weft__lock *lock);

static inline void weft__lock_take(struct weft__lock *lock)
{
    uint32_t free = 0;
    weft__lock_order_enter(lock);
    if (!cas_acquire(&lock->word, &free, 1)) weft__lock_take_slow(lock); /* [lock] with drop: sees what the last holder wrote */
}

static inline bool weft__lock_try_take(struct weft__lock *lock)
{
    uint32_t free = 0;
    if (!cas_acquire(&lock->word, &free, 1)) return false; /* [lock] with drop */
    weft__lock_order_enter(lock);
    return true;
}

static inline void weft__lock_drop(struct weft__lock *lock)
{
    weft__lock_order_leave(lock);
    uint32_t was = exchange_release(&lock->word, 0); /* [lock] with take: publishes what was written under it */
    weft_dassert(was != 0);
    if (was == 2) weft__lock_drop_slow(lock);
}

/* ---- brief: for what is taken all day, hardly ever contended, and held for nanoseconds ----
 *
 * The drop is a store where nobody seems to sleep: half the read-modify-writes. A sleeper that comes between its look and its store is not woken; so
 * sleepers sleep with a time-out, and such a one is late by WEFT__LOCK_BRIEF_NS. One lock is used either by these two or by those above. */
void weft__lock_take_brief_slow(struct weft__lock *lock);

static inline void weft__lock_take_brief(struct weft__lock *lock)
{
    uint32_t free = 0;
    weft__lock_order_enter(lock);
    if (!cas_acquire(&lock->word, &free, 1)) weft__lock_take_brief_slow(lock); /* [lock] with drop_brief */
}

/* False: it is held. Spares who cannot be bothered a call on its way: weft__lock_take_brief is tried then. */
static inline bool weft__lock_try_take_brief(struct weft__lock *lock)
{
    uint32_t free = 0;
    if (!cas_acquire(&lock->word, &free, 1)) return false; /* [lock] with drop_brief */
    weft__lock_order_enter(lock);
    return true;
}

/* False: it is still held, as somebody may sleep on it: weft__lock_drop_brief sees to that. */
static inline bool weft__lock_drop_brief_quietly(struct weft__lock *lock)
{
    if (load_relaxed(&lock->word) != 1) return false; /* relaxed: as in drop_brief */
    weft__lock_order_leave(lock);
    store_release(&lock->word, 0); /* [lock] with take_brief */
    return true;
}

static inline void weft__lock_drop_brief(struct weft__lock *lock)
{
    weft__lock_order_leave(lock);
    if (__builtin_expect(load_relaxed(&lock->word) == 1, 1)) { /* relaxed: late by a moment, which the sleeper makes good */
        store_release(&lock->word, 0);                         /* [lock] with take_brief */
        return;
    }
    uint32_t was = exchange_release(&lock->word, 0); /* [lock] with take_brief */
    weft_dassert(was != 0);
    if (was == 2) weft__lock_drop_slow(lock);
}

/* Around fork: take a lock of any rank beside others, so that the child finds what it guards whole; and let go, on either side. No order is
 * checked: the one who freezes (sched/fork.c) takes all of them, and nobody else holds two. */
static inline void weft__lock_freeze(struct weft__lock *lock)
{
    uint32_t free = 0;
    if (!cas_acquire(&lock->word, &free, 1)) weft__lock_take_slow(lock); /* [lock] with drop */
}

static inline void weft__lock_thaw(struct weft__lock *lock)
{
    if (exchange_release(&lock->word, 0) == 2) weft__lock_drop_slow(lock); /* [lock] with take */
}

#endif
#endif
