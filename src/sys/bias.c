/* SPDX-License-Identifier: MIT
 *
 * bias - numbers, and the other's side of a lock that belongs to somebody; the idea is in bias.h.
 */
#include "sys/bias.h"

#include "sys/membarrier.h"

#if !defined(WEFT_MODEL)
#include "sys/clock.h"
#include "sys/thread.h"
#endif

struct weft__bias_record weft__bias_records[WEFT__BIAS_NUMBERS];

/* ---- numbers ---- */

#define WORD_BITS 64

static _Atomic uint64_t taken[WEFT__BIAS_NUMBERS / WORD_BITS]; /* a bit each; 0 is never given away  [bias-number] */

uint16_t weft__bias_number_new(void)
{
    for (unsigned word = 0; word < WEFT__BIAS_NUMBERS / WORD_BITS; word++) {
        uint64_t seen = load_relaxed(&taken[word]); /* relaxed: the CAS verifies it */
        uint64_t never = word == 0 ? 1 : 0;
        for (uint64_t free; (free = ~(seen | never)) != 0;) {
            uint64_t bit = free & -free;
            /* [bias-number] with number_free: all that its last bearer did */
            if (cas_acquire(&taken[word], &seen, seen | bit))
                return (uint16_t)(word * WORD_BITS + (unsigned)__builtin_ctzll(bit));
        }
    }
    return 0;
}

void weft__bias_number_free(uint16_t number)
{
    if (number == 0) return;
    uint64_t bit = UINT64_C(1) << (number % WORD_BITS);
    (void)fetch_and_release(&taken[number / WORD_BITS], ~bit); /* [bias-number] with number_new */
}

/* ---- giving, taking back ---- */

enum { NOT_ASKED, THERE, MISSING };
static _Atomic uint32_t barrier; /* the kernel's answer */

static bool has_membarrier(void)
{
    uint32_t known = load_relaxed(&barrier); /* relaxed, both: everybody comes to the same answer */
    if (known == NOT_ASKED) {
        known = weft__membarrier() == 0 ? THERE : MISSING;
        store_relaxed(&barrier, known);
    }
    return known == THERE;
}

void weft__bias_give(struct weft__lock *lock, uint16_t number)
{
    if (number == 0 || !has_membarrier()) return;
    store_relaxed(&lock->owner, number); /* relaxed: the word's drop shows it to who takes that */
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

/* It worked when the lock was given away, and is forbidden since. What a processor holds back of a thread's stores is held back for less than a microsecond, and not beyond an
 * interrupt: a millisecond is a barrier as well. */
static void settle(void)
{
    rest(INT64_C(1000000));
}
#endif

void weft__bias_take_back(struct weft__lock *lock, unsigned place)
{
    uint16_t owner = load_relaxed(&lock->owner); /* relaxed: written under the word that is held */
    const void *_Atomic *holds = &weft__bias_records[owner].holds[place];

    store_relaxed(&lock->owner, 0);       /* relaxed: take_own sees this behind the barrier, */
    if (weft__membarrier() < 0) settle(); /* or what it wrote before the barrier is seen below */
    for (unsigned round = 0; load_acquire(holds) == lock; round++)
        wait_on(round); /* [bias-hold] with drop */
}
