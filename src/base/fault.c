/* SPDX-License-Identifier: MIT
 *
 * fault - the counters behind the seam.
 */
#include "base/fault.h"

#if defined(WEFT_FAULTS)

#include "base/assert.h"
#include "base/atomic.h"

static struct {
    _Atomic uint32_t calls;         /* since the kind was armed or reset */
    _Atomic uint32_t first;         /* the call that fails first, counted from 1; 0: none  [fault-arm] */
    _Atomic uint32_t times;         /* how many in a row; written before first */
    _Atomic int error;              /* what they answer; written before first */
} kinds[WEFT__FAULT_COUNT];

int weft__fault(enum weft__fault_kind kind)
{
    uint32_t call = fetch_add_relaxed(&kinds[kind].calls, 1) + 1; /* relaxed: a count, nothing hangs on it */
    uint32_t first = load_acquire(&kinds[kind].first);            /* [fault-arm] with arm: times and error are there */

    if (first == 0 || call < first) return 0;
    if (call - first >= load_relaxed(&kinds[kind].times)) return 0; /* relaxed: behind the acquire above */
    return load_relaxed(&kinds[kind].error);                        /* relaxed: as above */
}

void weft__fault_arm(enum weft__fault_kind kind, uint32_t nth, uint32_t times, int error)
{
    weft_assert(kind < WEFT__FAULT_COUNT);
    weft_assert(error < 0);
    store_relaxed(&kinds[kind].first, 0);     /* relaxed, as the next three: the release below publishes them */
    store_relaxed(&kinds[kind].times, times); /* relaxed: as above */
    store_relaxed(&kinds[kind].error, error); /* relaxed: as above */
    store_relaxed(&kinds[kind].calls, 0);     /* relaxed: as above */
    store_release(&kinds[kind].first, nth);   /* [fault-arm] with fault: publishes times and error */
}

void weft__fault_reset(void)
{
    for (int i = 0; i < WEFT__FAULT_COUNT; i++) {
        store_relaxed(&kinds[i].first, 0); /* relaxed: a call under way may still see the old arming */
        store_relaxed(&kinds[i].calls, 0); /* relaxed: a count */
    }
}

uint32_t weft__fault_calls(enum weft__fault_kind kind)
{
    return load_relaxed(&kinds[kind].calls); /* relaxed: a count */
}

const char *weft__fault_name(enum weft__fault_kind kind)
{
#define X(name) #name,
    static const char *const names[] = {WEFT__FAULT_KINDS(X)};
#undef X
    return (unsigned)kind < WEFT__FAULT_COUNT ? names[kind] : "?";
}

#else
typedef int weft__fault_c_is_empty; /* ISO C wants a declaration in every file */
#endif
