/* SPDX-License-Identifier: MIT
 *
 * bias - the other's side of a lock that belongs to somebody, and numbers; the idea is in bias.h.
 */
#include "sys/bias.h"

#include "sys/membarrier.h"

#if !defined(WEFT_MODEL)
#include "sys/clock.h"
#include "sys/thread.h"
#endif

/* ---- waiting ---- */

enum { NOT_ASKED, THERE, MISSING };
static _Atomic uint32_t barrier; /* the kernel's answer */

static bool has_membarrier(void)
{
    /* relaxed, both: who is wrong about it sleeps a millisecond more */
    uint32_t known = load_relaxed(&barrier);
    if (known == NOT_ASKED) {
        known = weft__membarrier() == 0 ? THERE : MISSING;
        store_relaxed(&barrier, known);
    }
    return known == THERE;
}

#if defined(WEFT_MODEL)
#define wait_on(round) ((void)(round), cpu_pause())
#define settle()       ((void)0)
#else
/* The owner is in the midst of an operation, or was interrupted there. Doubled: 2 us more are burnt before others may run on this CPU, perhaps the owner. */
#define PAUSES 100
#define YIELDS 100 /* and then it sleeps: an owner of a lower real-time class gets no CPU from a yield */

/* Not less, whatever signals come. */
static void rest(int64_t ns)
{
    static _Atomic uint32_t never;
    int64_t end = weft__clock_now() + ns;
    while (weft__clock_now() < end)
        (void)weft__futex_wait(&never, 0, end);
}

/* By the clock: the owner does not look whether anybody waits. */
static void wait_on(unsigned round)
{
    if (round < PAUSES) {
        cpu_pause();
    } else if (round < PAUSES + YIELDS) {
        weft__thread_yield();
    } else {
        rest(INT64_C(50000));
    }
}

/* The membarrier worked when the lock was given away, and is forbidden since. What a processor holds back of a thread's stores is held back for less than a microsecond, and not
 * beyond an interrupt: a millisecond is a barrier as well. */
static void settle(void)
{
    store_relaxed(&barrier, MISSING); /* relaxed: as above */
    rest(INT64_C(1000000));
}
#endif

/* ---- giving, taking back ---- */

#if !defined(WEFT_MODEL) || defined(WEFT_MODEL_REAL_BIAS)

void weft__bias_give(struct weft__lock *lock, uint8_t number)
{
    if (number == 0 || !has_membarrier()) return;
    store_relaxed(&lock->owner, number); /* relaxed: the word's drop shows it to who takes that */
}

void weft__bias_count(struct weft__lock *lock, uint32_t *left, uint8_t number)
{
    if (!weft__bias_row_ends(lock, left, number)) return;
    weft__bias_give(lock, number);
    *left = (UINT32_C(1) << lock->bits) - 1; /* of the next one, if it is taken back */
}

void weft__bias_take_back(struct weft__lock *lock, weft__bias_mark *mark, uint8_t bits_max)
{
    store_relaxed(&lock->owner, 0);       /* relaxed: take_own sees this behind the barrier, */
    if (weft__membarrier() < 0) settle(); /* or what it wrote before the barrier is seen below */
    for (unsigned round = 0; load_acquire(mark) == lock; round++)
        wait_on(round); /* [bias-hold] with drop_own, or take_own that fails */
    if (lock->bits < bits_max) lock->bits++;
    lock->last = 0;
}

void weft__bias_renew(struct weft__lock *lock, uint8_t number, uint8_t bits)
{
    weft__lock_take_brief(lock);
    uint8_t owner = load_relaxed(&lock->owner); /* relaxed, both: written under the word that is held */
    if (owner == 0 || owner == number) { /* no barrier: nobody but this thread could be inside by its mark */
        store_relaxed(&lock->owner, 0);
        lock->last = 0;
        lock->bits = bits;
    }
    weft__lock_drop_brief(lock);
}

/* It was given away since the look: whoever wants it takes it back. */
void weft__bias_let_go(struct weft__lock *lock)
{
    weft__lock_drop_brief(lock);
}

/* ---- kept by one owner ---- */

/* Entries of the owner, with nobody else between, until it is favoured again: 2^12 the first time, which is one more than this, and at most 2^20. The fence is paid for by
 * some thousand of them; and with many cores, which it interrupts, by more. */
#ifndef WEFT__BIAS_KEPT_BITS
#define WEFT__BIAS_KEPT_BITS 11
#endif
#define KEPT_BITS_MAX 20

void weft__bias_favour(struct weft__bias *b)
{
    b->favours = true;
    b->lock.bits = WEFT__BIAS_KEPT_BITS;
    weft__bias_give(&b->lock, WEFT__BIAS_KEEPER);
}

void weft__bias_enter_slow(struct weft__bias *b, enum weft__door door)
{
    weft__lock_take_brief(&b->lock);
    if (!b->favours) return;
    if (door == WEFT__BY_OWNER) {
        weft__bias_count(&b->lock, &b->left, WEFT__BIAS_KEEPER);
    } else if (load_relaxed(&b->lock.owner) != 0) { /* relaxed: written under the word */
        weft__bias_take_back(&b->lock, &b->mark, KEPT_BITS_MAX);
    } else {
        b->lock.last = 0;
    }
}

#endif

/* ---- numbers ---- */

struct weft__bias_record weft__bias_records[WEFT__BIAS_NUMBERS];

#define WORD_BITS 64

/* A bit each; 0 is never given away  [bias-number] */
static _Atomic uint64_t numbers_taken[WEFT__BIAS_NUMBERS / WORD_BITS];

uint8_t weft__bias_number_new(void)
{
    for (unsigned word = 0; word < WEFT__BIAS_NUMBERS / WORD_BITS; word++) {
        uint64_t seen = load_relaxed(&numbers_taken[word]); /* relaxed: the CAS verifies it */
        uint64_t never = word == 0 ? 1 : 0;
        for (uint64_t free; (free = ~(seen | never)) != 0;) {
            uint64_t bit = free & -free;
            /* [bias-number] with number_free: all that its last bearer did */
            if (cas_acquire(&numbers_taken[word], &seen, seen | bit))
                return (uint8_t)(word * WORD_BITS + (unsigned)__builtin_ctzll(bit));
        }
    }
    return 0;
}

void weft__bias_number_free(uint8_t number)
{
    if (number == 0) return;
    uint64_t bit = UINT64_C(1) << (number % WORD_BITS);
    (void)fetch_and_release(&numbers_taken[number / WORD_BITS], ~bit); /* [bias-number] with number_new */
}

/* By a thread that is alone. */
static bool is_inside(unsigned number)
{
    for (unsigned place = 0; place < WEFT__BIAS_PLACES; place++)
        if (load_relaxed(&weft__bias_records[number].holds[place]))
            return true; /* relaxed: alone */
    return false;
}

void weft__bias_forget(void)
{
    for (unsigned number = 1; number < WEFT__BIAS_NUMBERS; number++)
        if (!is_inside(number)) weft__bias_number_free((uint8_t)number);
}
