/* SPDX-License-Identifier: MIT
 *
 * lock - the contended half of the futex lock, and the debug check of the lock order.
 */
#include "sys/lock.h"

#if !defined(WEFT_MODEL)
#include "sys/clock.h"
#endif

#if !defined(WEFT_MODEL) || defined(WEFT_MODEL_REAL_LOCK)

/* Looks before sleeping. A pause is 5 to 25 ns; doubled, a waiter behind a preempted holder burns twice as long for nothing. */
#ifndef WEFT__LOCK_SPINS
#define WEFT__LOCK_SPINS 40
#endif

void weft__lock_take_slow(struct weft__lock *lock)
{
    for (int i = 0; i < WEFT__LOCK_SPINS; i++) {
        uint32_t free = 0;
        if (load_relaxed(&lock->word) == 0 && cas_acquire(&lock->word, &free, 1)) return; /* [lock] with drop; the load is a hint */
        cpu_pause();
    }
    /* From here on the word says 2, also when we get the lock: a sleeper beside us may exist, and the next drop must look. */
    while (exchange_acquire(&lock->word, 2) != 0) { /* [lock] with drop */
        (void)weft__futex_wait(&lock->word, 2, WEFT__NEVER);
    }
}

/* A sleep that nobody ends lasts this long. Doubled: a taker that met the one bad moment is late by twice as much; halved: one behind a preempted holder
 * looks twice as often. */
#define WEFT__LOCK_BRIEF_NS INT64_C(50000)

#if defined(WEFT_MODEL)
#define brief_end() INT64_C(0) /* the checker lets it time out whenever it likes */
#else
#define brief_end() (weft__clock_now() + WEFT__LOCK_BRIEF_NS)
#endif

/* Pauses between two looks at a brief lock, doubled from one on up to so many. It is held for nanoseconds, so who finds it held has met somebody who takes it again and
 * again, and each look takes the line away from that one in the midst of its work: two workers that did nothing but look cost each other 70 ns an operation, and cost 15
 * when one of them lets the other go on. Doubled: who comes too late by a moment waits for 2 us, where a pause is 17 ns; halved: mpmc costs a tenth more. */
#define WEFT__LOCK_PAUSES_MAX 64

/* Looks before sleeping: 320 pauses. Doubled, a waiter behind a preempted holder burns 10 us for nothing. */
#ifndef WEFT__LOCK_LOOKS
#define WEFT__LOCK_LOOKS 10
#endif

void weft__lock_take_brief_slow(struct weft__lock *lock)
{
    for (int look = 0, pauses = 1; look < WEFT__LOCK_LOOKS; look++) {
        uint32_t free = 0;
        for (int i = 0; i < pauses; i++) cpu_pause();
        if (pauses < WEFT__LOCK_PAUSES_MAX) pauses *= 2;
        if (load_relaxed(&lock->word) == 0 && cas_acquire(&lock->word, &free, 1)) return; /* [lock] with drop_brief; the load is a hint */
    }
    while (exchange_acquire(&lock->word, 2) != 0) { /* [lock] with drop_brief */
        (void)weft__futex_wait(&lock->word, 2, brief_end());
    }
}

void weft__lock_drop_slow(struct weft__lock *lock)
{
    (void)weft__futex_wake(&lock->word, 1);
}

#endif

#if defined(WEFT_DEBUG) && !defined(WEFT_MODEL)

#include <stdio.h>

static const char *const rank_names[WEFT__RANK_COUNT] = {
    [WEFT__RANK_NONE] = "none",         [WEFT__RANK_RT] = "rt",       [WEFT__RANK_BLOCKING] = "blocking",
    [WEFT__RANK_DRIVER] = "driver",     [WEFT__RANK_SLOT] = "slot",   [WEFT__RANK_SCOPE] = "scope",
    [WEFT__RANK_WAITLIST] = "waitlist", [WEFT__RANK_WHEEL] = "wheel", [WEFT__RANK_OVERFLOW] = "overflow",
    [WEFT__RANK_SLAB] = "slab",         [WEFT__RANK_CHAN] = "chan",
};

const char *weft__rank_name(enum weft__rank rank)
{
    return (unsigned)rank < WEFT__RANK_COUNT && rank_names[rank] ? rank_names[rank] : "?";
}

/* Locks this thread holds, in the order taken. Deeper nesting than this is a design error of its own. */
#define HELD_MAX 8

static _Thread_local const struct weft__lock *held[HELD_MAX];
static _Thread_local unsigned held_count;

void weft__lock_order_enter(struct weft__lock *lock)
{
    weft_assert(held_count < HELD_MAX);
    for (unsigned i = 0; i < held_count; i++) {
        weft_assert(held[i] != lock); /* recursive lock */
        if (lock->rank == WEFT__RANK_NONE || held[i]->rank == WEFT__RANK_NONE || held[i]->rank < lock->rank) continue;
        fprintf(stderr, "weft: lock order: %s (rank %u) is taken while %s (rank %u) is held\n", weft__rank_name(lock->rank), lock->rank,
                weft__rank_name(held[i]->rank), held[i]->rank);
        weft_assert(held[i]->rank < lock->rank);
    }
    held[held_count++] = lock;
}

void weft__lock_order_leave(struct weft__lock *lock)
{
    for (unsigned i = held_count; i-- > 0;) {
        if (held[i] != lock) continue;
        for (; i + 1 < held_count; i++) held[i] = held[i + 1];
        held_count--;
        return;
    }
    const bool held_by_this_thread = false; /* and yet it drops the lock */
    weft_assert(held_by_this_thread);
}

bool weft__lock_order_holds(const struct weft__lock *lock)
{
    for (unsigned i = 0; i < held_count; i++)
        if (held[i] == lock) return true;
    return false;
}

void weft__lock_assert_none_held(void)
{
    weft_assert(held_count == 0);
}

#endif
