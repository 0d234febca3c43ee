/* SPDX-License-Identifier: MIT
 *
 * fault - the counters behind the seam.
 */
#include "base/fault.h"

#if defined(WEFT_FAULTS)

#include "base/assert.h"
#include "base/atomic.h"

/* Written by the test while nobody else calls; the counter alone is shared. */
static struct {
    _Atomic uint32_t calls;
    uint32_t first;                 /* the call that fails first, counted from 1; 0: none */
    uint32_t times;                 /* how many in a row */
    int error;
} kinds[WEFT__FAULT_COUNT];

int weft__fault(enum weft__fault_kind kind)
{
    uint32_t call = fetch_add_relaxed(&kinds[kind].calls, 1) + 1; /* relaxed: a count, nothing hangs on it */
    uint32_t first = kinds[kind].first;

    if (first == 0 || call < first || call - first >= kinds[kind].times) return 0;
    return kinds[kind].error;
}

void weft__fault_arm(enum weft__fault_kind kind, uint32_t nth, uint32_t times, int error)
{
    weft_assert(kind < WEFT__FAULT_COUNT);
    weft_assert(error < 0);
    store_relaxed(&kinds[kind].calls, 0); /* relaxed: see above */
    kinds[kind].first = nth;
    kinds[kind].times = times;
    kinds[kind].error = error;
}

void weft__fault_reset(void)
{
    for (int i = 0; i < WEFT__FAULT_COUNT; i++) {
        store_relaxed(&kinds[i].calls, 0); /* relaxed: see above */
        kinds[i].first = 0;
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
    return kind < WEFT__FAULT_COUNT ? names[kind] : "?";
}

#else
typedef int weft__fault_c_is_empty; /* ISO C wants a declaration in every file */
#endif
