/* SPDX-License-Identifier: MIT
 *
 * search - how long an idle worker looks for work before it sleeps: as long as that has paid lately.
 *
 * A search that finds nothing makes the next one half as long, down to an eighth; one that finds something after its first look makes it whole again. What the
 * first look finds says nothing: that is what the worker was woken for. So a program whose work comes in quick succession has all of `spin_us`, and one that does
 * a little now and then burns an eighth of it each time.
 * Threads: the worker's own.
 * Rejected: a mean of how long the gaps are (two clock reads more for each sleep, and no better here); no search at all behind one in vain (one long gap
 * among short ones would cost a wake by the kernel each time).
 */
#ifndef WEFT_SCHED_SEARCH_H
#define WEFT_SCHED_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#define WEFT__SEARCH_HALVES 3

struct weft__search {
    uint32_t vain; /* searches in a row that did not pay, up to WEFT__SEARCH_HALVES */
};

/* Of `full_ns`, so long. */
static inline int64_t weft__search_ns(const struct weft__search *search, int64_t full_ns)
{
    return full_ns >> search->vain;
}

/* It is over. `looks`: how often it has looked, the last time with success if `found`. */
static inline void weft__search_over(struct weft__search *search, bool found, unsigned looks)
{
    if (!found) {
        if (search->vain < WEFT__SEARCH_HALVES) search->vain++;
    } else if (looks > 1) {
        search->vain = 0;
    }
}

#endif
