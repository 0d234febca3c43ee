/* SPDX-License-Identifier: MIT
 *
 * biased - the way in of those who are not favoured; the idea is in biased.h.
 */
#include "sys/biased.h"

#include "sys/membarrier.h"
#if !defined(WEFT_MODEL)
#include "sys/clock.h"
#endif

/* Entries of the owner, with nobody else between, until it is favoured again: at first, and at most. The fence is paid for by some thousand of them; and with many cores, which
 * it interrupts, by more. */
#ifndef WEFT__BIASED_AGAIN
#define WEFT__BIASED_AGAIN 4096
#endif
#define PATIENCE_MAX (WEFT__BIASED_AGAIN << 8)

#if defined(WEFT_MODEL)
#define heavy_fence() (weft__membarrier() == 0)
#define watch_end()   INT64_C(0)
#else
#define WATCH_NS INT64_C(50000)
#define watch_end() (weft__clock_now() + WATCH_NS)

/* For a fence that the kernel refuses: longer than any store takes to be seen. */
#define STORES_ARE_SEEN_NS INT64_C(1000000)

/* False: the kernel does it no longer. */
static bool heavy_fence(void)
{
    if (weft__membarrier() == 0) return true;
    _Atomic uint32_t nobody_wakes = 0;
    int64_t end = weft__clock_now() + STORES_ARE_SEEN_NS;
    while (weft__clock_now() < end)
        (void)weft__futex_wait(&nobody_wakes, 0, end);
    return false;
}

bool weft__biased_can_favour(void)
{
    return weft__membarrier() == 0;
}
#endif

#if !defined(WEFT_MODEL) || defined(WEFT_MODEL_REAL_BIASED)

void weft__biased_favour(struct weft__biased *b)
{
    b->patience = WEFT__BIASED_AGAIN / 2; /* which the first who comes doubles */
    b->again = WEFT__BIASED_AGAIN;
    store_relaxed(&b->favours, 1); /* relaxed: not shared yet */
}

#ifndef WEFT__BIASED_SPINS
#define WEFT__BIASED_SPINS 40 /* as those of the lock */
#endif

/* Sleeps by the clock: the owner does not look whether anybody waits. */
static void wait_until_outside(struct weft__biased *b)
{
    for (int i = 0; i < WEFT__BIASED_SPINS; i++) {
        if (load_acquire(&b->inside) == 0) return; /* [biased] with leave */
        cpu_pause();
    }
    while (load_acquire(&b->inside) != 0) /* [biased] with leave */
        (void)weft__futex_wait(&b->inside, 1, watch_end());
}

/* Holds: the lock. */
static void owner_comes(struct weft__biased *b)
{
    if (b->again == 0) return;
    b->again--;
    if (b->again > 0) return;
    b->again = b->patience;
    store_relaxed(&b->favours, 1); /* relaxed: whoever puts it out holds the lock then */
}

/* Holds: the lock. */
static void other_comes(struct weft__biased *b)
{
    if (b->again == 0) return;
    b->again = b->patience;
    if (load_relaxed(&b->favours) == 0) return; /* relaxed, both: the lock orders it, or the fence */
    store_relaxed(&b->favours, 0);
    bool fenced = heavy_fence(); /* [biased] with the light one */
    wait_until_outside(b);
    if (b->patience < PATIENCE_MAX) b->patience *= 2;
    b->again = fenced ? b->patience : 0;
}

void weft__biased_enter_slow(struct weft__biased *b, enum weft__door door)
{
    weft__lock_take_brief(&b->lock);
    if (door == WEFT__BY_OWNER) {
        owner_comes(b);
    } else {
        other_comes(b);
    }
}

#endif
