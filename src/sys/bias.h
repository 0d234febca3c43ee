/* SPDX-License-Identifier: MIT
 *
 * bias - a brief lock that belongs to one thread until another asks: its owner takes it without a read-modify-write.
 *
 * A read-modify-write is most of what a short operation under a lock costs. Where one thread takes a lock again and again, nobody else comes, and it is for
 * nothing. So the lock may be given to it. The owner says in a mark of its own which lock it holds, and looks whether it is still the owner:
 *
 *     owner    mark = lock;  owner == me?  ...  mark = NULL
 *     other    takes the lock's word;  owner = 0;  membarrier;  waits while the owner's mark says that it holds it
 *
 * Each writes one word and reads the other's, so between the two there has to be a fence on both sides; the membarrier is the owner's as well (sys/membarrier.h). It falls
 * somewhere between two of the owner's steps: behind its first, then the other sees it hold the lock and waits; before, then the owner sees that it is no owner any more.
 *     who holds it:   the owner, while its mark says so, and `owner` was its own when it looked
 *                     or who has taken the word, and has found no owner, or has waited for it
 *
 *     0 -> number   [give]       by the holder, who has the word, to itself. Nobody else is given it.
 *     number -> 0   [take_back]  by who has the word
 * A lock without an owner is a brief lock like any other (sys/lock.h).
 *
 * WHOSE MARK  There are two kinds of such locks, which differ in where the mark lies, and in who may be the owner.
 *     lent    to any worker, by its number: a wait list's lock, or a ring's. The mark lies in that worker's record, not beside the lock: an owner that was interrupted between its look and
 *             its mark would come late, and wipe out the next owner's. It looks before it marks, too: as a rule the lock is nobody's, or another's.
 *     kept    by the one owner that it ever has: a worker's timers. The mark lies beside the lock, which costs less to find, and the owner has no number. Who it is, is told by
 *             the door that it comes by; several threads may be it, one after another, with an order of their own. One that favours nobody has one door.
 *
 * NUMBERS  A worker has a number as long as its runtime lives; who has none, 0, is never lent anything. A number may be given to another worker later, which then owns
 * what the first one owned: all that the first did happens before. In the child of a fork no worker is left, and all numbers are free again, but for those of workers that were
 * inside a lock at that moment: that is held for ever, as any that was held by its word. (Whoever gives a lock does so last of all before it drops the word: what it guards is whole, though
 * a worker of the child's may be its owner.)
 *
 * THE PRICE is the other's: 14 us, and an interrupt for each CPU that runs one of our threads. So a lock is given to who took it often in a row, and each time that it was taken
 * back the next row has to be twice as long: what is paid is in proportion to what was done meanwhile.
 * Where the kernel has no membarrier nothing is given. If it has gone since, as by a filter that the program has put up, a millisecond of sleep stands for it, for each lock that is
 * somebody's, one after the other, and nothing is given any more: a server puts its filter up before it serves thousands.
 *
 * Threads: any. Never held across a suspension. LOCK ORDER: the lock's own rank; at most two that are lent are held at once, each at its own `place`. Pairs: [bias-hold], [bias-number].
 * Under WEFT_MODEL it is a primitive of the checker, unless the test is about this very file (WEFT_MODEL_REAL_BIAS).
 * Rejected: a fence of the owner's (as dear as the read-modify-write that it spares); the owner asked to let go at its next operation (it may be in a poll that takes long, or
 * asleep); a mark that is held for a whole poll (user code runs in it); timers lent by number as well (arm and cancel would have to find the record, and a worker without a number would pay for each).
 */
#ifndef WEFT_SYS_BIAS_H
#define WEFT_SYS_BIAS_H

#include "base/assert.h"
#include "sys/lock.h"

#include <stddef.h>

/* It is nobody's. Who takes it 2^bits times in a row, by its word, is given it; `left` counts that, and lies somewhere under the lock. */
static inline void weft__bias_begin(struct weft__lock *lock, uint8_t bits, uint32_t *left)
{
    store_relaxed(&lock->owner, 0); /* relaxed: not shared yet */
    lock->last = 0;
    lock->bits = bits;
    *left = 0;
}

/* holds: the lock, by its word. One more of a row. True: it is not counted, as it is the last, which is weft__bias_count's. */
static inline bool weft__bias_row_ends(struct weft__lock *lock, uint32_t *left, uint8_t number)
{
    if (__builtin_expect(lock->last != number, 0)) {
        lock->last = number;
        *left = (UINT32_C(1) << lock->bits) - 1; /* this is the first of them */
        return false;
    }
    if (__builtin_expect(*left <= 1, 0)) return true;
    --*left;
    return false;
}

/* ---- private: the protocol ----------------------------------------------------------------------- */

/* What an owner holds; NULL: nothing. It writes, others look  [bias-hold] */
typedef const void *_Atomic weft__bias_mark;

/* By its owner, or who was that a moment ago. False: it is its owner no more. */
static inline bool weft__bias_take_own(struct weft__lock *lock, uint8_t number,
                                       weft__bias_mark *mark)
{
    /* [bias-hold] with take_back of the lock that we have just dropped: it may find this where that wrote NULL */
    store_release(mark, lock);
    fence_light();
    /* relaxed: take_back has a membarrier, which lies before this or behind it */
    if (__builtin_expect(load_relaxed(&lock->owner) == number, 1)) {
        weft__lock_order_enter(lock);
        return true;
    }
    store_release(mark, NULL); /* [bias-hold] with take_back, as above */
    return false;
}

/* holds: the lock, as its owner. */
static inline void weft__bias_drop_own(struct weft__lock *lock, weft__bias_mark *mark)
{
    weft__lock_order_leave(lock);
    store_release(mark, NULL); /* [bias-hold] with take_back: all that was written under the lock */
}

/* The caller has the word, and holds the lock from now on. It had an owner, whose mark this is. The next row has to be longer, up to 2^bits_max. */
void weft__bias_take_back(struct weft__lock *lock, weft__bias_mark *mark, uint8_t bits_max);

/* holds: the lock, by its word. Once that is dropped the lock is `number`'s, who is the caller, unless the kernel has no membarrier. 0 is given nothing. */
void weft__bias_give(struct weft__lock *lock, uint8_t number);

/* holds: the lock, by its word. One more of a row; at the end of one the lock is given to who made it. */
void weft__bias_count(struct weft__lock *lock, uint32_t *left, uint8_t number);

/* By somebody who is not inside: what it guards begins another life. Gives it back if it is `number`'s, who is the caller; unless it is another's nothing is left of the rows that were, and the next
 * one is 2^bits long. */
void weft__bias_renew(struct weft__lock *lock, uint8_t number, uint8_t bits);

/* ---- lent to workers, by number ------------------------------------------------------------------ */

/* Numbers that there are; the workers of all runtimes have one each, and those who come too late none: their channels, bells, descriptors and rings cost a read-modify-write as before.
 * Doubled: 8 KiB more that are zero. */
#define WEFT__BIAS_NUMBERS 128

/* Where an owner writes down what it holds: locks that it may hold at once have places of their own. */
enum {
    WEFT__BIAS_OUTER,  /* a channel's receiving side */
    WEFT__BIAS_INNER,  /* any other wait list: a channel's sending side, a bell, a descriptor */
    WEFT__BIAS_RING,   /* a port's ring */
    WEFT__BIAS_PLACES, /* so many */
};

_Static_assert(WEFT__BIAS_NUMBERS <= UINT8_MAX + 1, "a number is a byte");

/* The row at first: 256. Doubled: short bursts cost a read-modify-write an operation for twice as long; halved: a lock that goes from worker to worker costs 14 us for 128
 * operations, at first. */
#define WEFT__BIAS_LENT_BITS 8

/* Doubling ends here: 32,768 in a row. Once more: a lock that changes hands now and then is nobody's for 0.5 ms each time; once less: one that does so all the time costs a
 * tenth more. */
#define WEFT__BIAS_LENT_BITS_MAX 15

/* The record of number 0 stays empty. */
struct weft__bias_record {
    WEFT__CACHE_ALIGNED weft__bias_mark holds[WEFT__BIAS_PLACES];
};

/* For a new worker: its number; 0: there is none left. */
uint8_t weft__bias_number_new(void);

/* It takes no locks any more. 0 is nothing. */
void weft__bias_number_free(uint8_t number);

/* In the child of a fork, whose one thread has no number: there are no workers any more. */
void weft__bias_forget(void);

#if defined(WEFT_MODEL) && !defined(WEFT_MODEL_REAL_BIAS)

/* Nobody's, ever. */
#define weft__bias_take_word(lock, place)             (model_lock(&(lock)->word), false)
#define weft__bias_take(lock, number, place)          (model_lock(&(lock)->word), (void)(number), false)
#define weft__bias_try_take_lent(lock, number, place) ((void)(lock), (void)(number), false)
#define weft__bias_try_take_word(lock)                model_try_lock(&(lock)->word)
#define weft__bias_has_word(lock, number, place)      ((void)(lock), (void)(number), true)
#define weft__bias_drop_lent(lock, number, place)     ((void)(lock), (void)(number))
#define weft__bias_drop(lock, number, place)          (model_unlock(&(lock)->word), (void)(number))
#define weft__bias_renew(lock, number, bits)          ((void)(lock), (void)(number), (void)(bits))
#define weft__bias_count(lock, left, number)          ((void)(lock), (void)(left), (void)(number))
#define weft__bias_is_given(lock)                     ((void)(lock), false)

#else

extern struct weft__bias_record weft__bias_records[WEFT__BIAS_NUMBERS];

static inline weft__bias_mark *weft__bias_mark_of(uint8_t number, unsigned place)
{
    return &weft__bias_records[number].holds[place];
}

/* False: it is not its owner. */
static inline bool weft__bias_try_take_lent(struct weft__lock *lock, uint8_t number, unsigned place)
{
    uint8_t owner = load_relaxed(&lock->owner); /* relaxed: a guess, which is looked at again */
    if (owner == 0 || owner != number) return false;
    weft__bias_mark *mark = weft__bias_mark_of(number, place);
    weft_dassert(load_relaxed(mark) == NULL); /* nothing else is held at its place; relaxed: our own */
    return weft__bias_take_own(lock, number, mark);
}

void weft__bias_let_go(struct weft__lock *lock);

/* By its word. False: it is held, or belongs to somebody. */
static inline bool weft__bias_try_take_word(struct weft__lock *lock)
{
    if (load_relaxed(&lock->owner) != 0) return false; /* relaxed: a guess, looked at again */
    if (!weft__lock_try_take_brief(lock)) return false;
    /* relaxed: written under the word that is held */
    if (__builtin_expect(load_relaxed(&lock->owner) == 0, 1)) return true;
    weft__bias_let_go(lock);
    return false;
}

/* Anyone: a hint. */
static inline bool weft__bias_is_given(const struct weft__lock *lock)
{
    return load_relaxed(&lock->owner) != 0; /* relaxed: a hint */
}

/* By one whose it is not. True: it belonged to another, and was taken back. */
static inline bool weft__bias_take_word(struct weft__lock *lock, unsigned place)
{
    weft__lock_take_brief(lock);
    uint8_t owner = load_relaxed(&lock->owner); /* relaxed: written under the word that is held */
    if (__builtin_expect(owner == 0, 1)) return false;
    weft__bias_take_back(lock, weft__bias_mark_of(owner, place), WEFT__BIAS_LENT_BITS_MAX);
    return true;
}

/* The same by anybody. */
static inline bool weft__bias_take(struct weft__lock *lock, uint8_t number, unsigned place)
{
    return !weft__bias_try_take_lent(lock, number, place) && weft__bias_take_word(lock, place);
}

/* holds: the lock. By its word, or as its owner? */
static inline bool weft__bias_has_word(const struct weft__lock *lock, uint8_t number,
                                       unsigned place)
{
    return load_relaxed(weft__bias_mark_of(number, place)) != lock; /* relaxed: our own */
}

/* holds: the lock, as its owner. */
static inline void weft__bias_drop_lent(struct weft__lock *lock, uint8_t number, unsigned place)
{
    weft__bias_drop_own(lock, weft__bias_mark_of(number, place));
}

static inline void weft__bias_drop(struct weft__lock *lock, uint8_t number, unsigned place)
{
    if (weft__bias_has_word(lock, number, place)) {
        weft__lock_drop_brief(lock);
    } else {
        weft__bias_drop_lent(lock, number, place);
    }
}

#endif

/* ---- kept by one owner --------------------------------------------------------------------------- */

enum weft__door { WEFT__BY_ANY, WEFT__BY_OWNER };

struct weft__bias {
    struct weft__lock lock;
    weft__bias_mark mark; /* its owner's */
    uint32_t left;        /* of the owner's row                                    [lock] */
    bool favours;         /* may it have an owner at all?                      [constant] */
};

#define WEFT__BIAS_KEEPER 1 /* what stands for its owner in `lock` */

/* It favours nobody: either door is anybody's. */
static inline void weft__bias_init(struct weft__bias *b, enum weft__rank rank)
{
    weft__lock_init(&b->lock, rank);
    weft__bias_begin(&b->lock, 0, &b->left);
    store_relaxed(&b->mark, NULL); /* relaxed: not shared yet */
    b->favours = false;
}

#if defined(WEFT_MODEL) && !defined(WEFT_MODEL_REAL_BIAS)

#define weft__bias_favour(b)           ((void)(b))
#define weft__bias_try_enter(b)        (model_lock(&(b)->lock.word), true)
#define weft__bias_enter(b, door)      (model_lock(&(b)->lock.word), (void)(door), false)
#define weft__bias_leave(b, by_favour) ((void)(by_favour), model_unlock(&(b)->lock.word))

#else

/* Before it is used: it belongs to its owner, if the kernel has a membarrier. Asks it once: about 10 us, but 12 ms if the library came with dlopen to a program with threads. */
void weft__bias_favour(struct weft__bias *b);

void weft__bias_enter_slow(struct weft__bias *b, enum weft__door door);

/* By the owner. False: it has to take the long way (weft__bias_enter): a path that does not call needs no registers saved. */
static inline bool weft__bias_try_enter(struct weft__bias *b)
{
    return weft__bias_take_own(&b->lock, WEFT__BIAS_KEEPER, &b->mark);
}

/* Returns how it came in, for leave. */
static inline bool weft__bias_enter(struct weft__bias *b, enum weft__door door)
{
    if (door == WEFT__BY_OWNER && weft__bias_try_enter(b)) return true;
    weft__bias_enter_slow(b, door);
    return false;
}

static inline void weft__bias_leave(struct weft__bias *b, bool by_favour)
{
    if (__builtin_expect(by_favour, 1)) {
        weft__bias_drop_own(&b->lock, &b->mark);
    } else {
        weft__lock_drop_brief(&b->lock);
    }
}

#endif
#endif
