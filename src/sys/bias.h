/* SPDX-License-Identifier: MIT
 *
 * bias - a brief lock that belongs to one worker until another asks: its owner takes it without a read-modify-write.
 *
 * A read-modify-write is most of what a short operation under a lock costs. Where one worker takes a lock again and again, nobody else comes, and it is for
 * nothing. So the lock may be given to it. The owner says in a record of its own which lock it holds, and looks whether it is still the owner:
 *
 *     owner    holds = lock;  owner == me?  ...  holds = NULL
 *     other    takes the lock's word;  owner = 0;  membarrier;  waits while the owner's record says that it holds it
 *
 * Each writes one word and reads the other's, so between the two there has to be a fence on both sides; the membarrier is the owner's as well (sys/membarrier.h). It falls
 * somewhere between two of the owner's steps: behind its first, then the other sees it hold the lock and waits; before, then the owner sees that it is no owner any more.
 *     who holds it:   the owner, while its record says so, and `owner` was its own when it looked
 *                     or who has taken the word, and has found no owner, or has waited for it
 *
 *     0 -> number   [give]     by the holder, who has the word, to itself. Nobody else is given it.
 *     number -> 0   [take_back]  by who has the word
 * A lock without an owner is a brief lock like any other (sys/lock.h).
 *
 * NUMBERS  A worker has a number as long as its runtime lives; who has none, 0, is never an owner. A number may be given to another worker later, which then owns
 * what the first one owned: all that the first did happens before.
 * A record, and not a mark in the lock: an owner that was interrupted between its look and its mark would come late, and wipe out the next owner's.
 *
 * THE PRICE is the other's: 14 us, and an interrupt for each CPU that runs one of our threads. So a lock is given to who took it often in a row, and the
 * more often it has been taken back the longer that row has to be (sync/chan.h): what is paid is in proportion to what was done meanwhile.
 * Where the kernel has no membarrier nothing is given.
 *
 * Threads: any. LOCK ORDER: the lock's own rank; at most two such locks are held at once, each at its own `place`. Pairs: [bias-hold], [bias-number].
 * Rejected: the owner asked to let go at its next operation (it may be in a poll that takes long, or asleep); a mark that is held for a whole poll (user code runs in it).
 */
#ifndef WEFT_SYS_BIAS_H
#define WEFT_SYS_BIAS_H

#include "sys/lock.h"

#include <stddef.h>

/* Numbers that there are; the workers of all runtimes have one each, and those who come too late none: their channels cost a read-modify-write as before.
 * Doubled: 8 KiB more that are zero. */
#define WEFT__BIAS_NUMBERS 128

/* Locks that one worker may hold at once by being their owner: the outer one of a channel, and the inner one. */
#define WEFT__BIAS_PLACES 2

/* What an owner holds. The record of number 0 stays empty. */
struct weft__bias_record {
    WEFT__CACHE_ALIGNED const void
        *_Atomic holds[WEFT__BIAS_PLACES]; /* its owner writes, others look  [bias-hold] */
};

/* How often in a row somebody has taken a lock by its word. Guarded by that lock. */
struct weft__bias_row {
    uint16_t last; /* who did; a number */
    uint16_t left; /* so many times more, and it is given the lock */
};

static inline void weft__bias_init(struct weft__lock *lock, struct weft__bias_row *row)
{
    store_relaxed(&lock->owner, 0); /* relaxed: not shared yet */
    *row = (struct weft__bias_row){0};
}

#if defined(WEFT_MODEL) && !defined(WEFT_MODEL_REAL_LOCK)

/* Nobody's, ever. */
#define weft__bias_take(lock, number, place)         (model_lock(&(lock)->word), (void)(number), false)
#define weft__bias_try_take_own(lock, number, place) ((void)(lock), (void)(number), false)
#define weft__bias_try_take_word(lock, place)        model_try_lock(&(lock)->word)
#define weft__bias_has_word(lock, number, place)     ((void)(lock), (void)(number), true)
#define weft__bias_drop_own(lock, number, place)     ((void)(lock), (void)(number))
#define weft__bias_drop(lock, number, place)         (model_unlock(&(lock)->word), (void)(number))
#define weft__bias_give(lock, number)                ((void)(lock), (void)(number))
#define weft__bias_is_given(lock)                    ((void)(lock), false)

#else

extern struct weft__bias_record weft__bias_records[WEFT__BIAS_NUMBERS];

/* For a new worker: its number; 0: there is none left. */
uint16_t weft__bias_number_new(void);

/* It takes no locks any more. 0 is nothing. */
void weft__bias_number_free(uint16_t number);

/* The caller has the word, and holds the lock from now on. It had an owner. */
void weft__bias_take_back(struct weft__lock *lock, unsigned place);

/* holds: the lock, by its word. Once that is dropped the lock is `number`'s, who is the caller, unless the kernel has no membarrier. */
void weft__bias_give(struct weft__lock *lock, uint16_t number);

/* By its owner, or who was that a moment ago. False: it is its owner no more. */
static inline bool weft__bias_take_own(struct weft__lock *lock, uint16_t number, unsigned place)
{
    const void *_Atomic *holds = &weft__bias_records[number].holds[place];

    store_relaxed(holds, lock); /* relaxed, both: take_back has a membarrier, which lies before this or behind it */
    fence_light();
    if (__builtin_expect(load_relaxed(&lock->owner) == number, 1)) {
        weft__lock_order_enter(lock);
        return true;
    }
    /* relaxed: nothing was written, and what was before, the barrier has shown: the guess before this (try_take_own) was made before it */
    store_relaxed(holds, NULL);
    return false;
}

/* False: it is not its owner. */
static inline bool weft__bias_try_take_own(struct weft__lock *lock, uint16_t number, unsigned place)
{
    uint16_t owner = load_relaxed(&lock->owner); /* relaxed: a guess, which is looked at again */
    return owner != 0 && owner == number && weft__bias_take_own(lock, number, place);
}

/* By its word. False: it is held, or belongs to somebody. */
static inline bool weft__bias_try_take_word(struct weft__lock *lock, unsigned place)
{
    if (load_relaxed(&lock->owner) != 0)
        return false; /* relaxed: a guess, which is looked at again */
    if (!weft__lock_try_take_brief(lock)) return false;
    /* relaxed: written under the word that is held */
    if (__builtin_expect(load_relaxed(&lock->owner) != 0, 0)) weft__bias_take_back(lock, place);
    return true;
}

/* Anyone: a hint. */
static inline bool weft__bias_is_given(const struct weft__lock *lock)
{
    return load_relaxed(&lock->owner) != 0; /* relaxed: a hint */
}

/* True: it belonged to another, and was taken back. */
static inline bool weft__bias_take(struct weft__lock *lock, uint16_t number, unsigned place)
{
    if (weft__bias_try_take_own(lock, number, place)) return false;
    weft__lock_take_brief(lock);
    if (__builtin_expect(load_relaxed(&lock->owner) == 0, 1)) return false; /* relaxed: as above */
    weft__bias_take_back(lock, place);
    return true;
}

/* holds: the lock. By its word, or as its owner? */
static inline bool weft__bias_has_word(const struct weft__lock *lock, uint16_t number,
                                       unsigned place)
{
    return load_relaxed(&weft__bias_records[number].holds[place]) != lock; /* relaxed: our own */
}

/* holds: the lock, as its owner. */
static inline void weft__bias_drop_own(struct weft__lock *lock, uint16_t number, unsigned place)
{
    weft__lock_order_leave(lock);
    /* [bias-hold] with take_back: all that was written under the lock */
    store_release(&weft__bias_records[number].holds[place], NULL);
}

static inline void weft__bias_drop(struct weft__lock *lock, uint16_t number, unsigned place)
{
    if (weft__bias_has_word(lock, number, place)) {
        weft__lock_drop_brief(lock);
    } else {
        weft__bias_drop_own(lock, number, place);
    }
}

#endif

/* holds: the lock, by its word. True: all is as it was, and one less is left of this row. */
static inline bool weft__bias_row_goes_on(struct weft__bias_row *row, uint16_t number)
{
    if (__builtin_expect(row->last != number || row->left <= 1, 0)) return false;
    row->left--;
    return true;
}

#endif
