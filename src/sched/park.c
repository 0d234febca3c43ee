/* SPDX-License-Identifier: MIT
 *
 * park - the futex or the event behind a token; the drawing is in park.h.
 */
#include "sched/park.h"

#include "base/assert.h"
#include "sys/event.h"

#include <errno.h>

#define PARK_EMPTY     UINT32_C(0)
#define PARK_NOTIFIED  UINT32_C(1)
#define PARK_ELSEWHERE UINT32_C(2)
#define PARK_PARKED    UINT32_MAX /* one below EMPTY */

void weft__park_init(struct weft__park *park)
{
    store_relaxed(&park->word, PARK_EMPTY); /* relaxed, both: not shared yet */
    store_relaxed(&park->event, -1);
}

/* The time is over: go, with a token that came at the last moment, or without. */
static bool park_give_up(struct weft__park *park)
{
    uint32_t was = exchange_acquire(&park->word, PARK_EMPTY); /* [park] with unpark */
    return was == PARK_NOTIFIED;
}

static bool park_slow(struct weft__park *park, int64_t deadline_ns)
{
    for (;;) {
        int r = weft__futex_wait(&park->word, PARK_PARKED, deadline_ns);
        uint32_t token = PARK_NOTIFIED;

        weft_assert(r == 0 || r == -EAGAIN || r == -EINTR || r == -ETIMEDOUT);
        if (cas_acquire(&park->word, &token, PARK_EMPTY)) return true; /* [park] with unpark */
        weft_assert(token == PARK_PARKED); /* only the owner makes it EMPTY */
        if (r == -ETIMEDOUT) return park_give_up(park);
    } /* woken for no reason, or by a signal: sleep on */
}

bool weft__park(struct weft__park *park, int64_t deadline_ns)
{
    /* NOTIFIED -> EMPTY or EMPTY -> PARKED. [park] with unpark */
    uint32_t was = fetch_sub_acquire(&park->word, 1);

    weft_assert(was != PARK_PARKED); /* one thread parks here */
    return was == PARK_NOTIFIED || park_slow(park, deadline_ns);
}

bool weft__park_elsewhere(struct weft__park *park, int event)
{
    uint32_t empty = PARK_EMPTY;

    store_relaxed(&park->event, event); /* relaxed: the CAS publishes it */
    if (cas_release(&park->word, &empty, PARK_ELSEWHERE)) return true; /* [park-event] with unpark */
    weft_assert(empty == PARK_NOTIFIED); /* one thread parks here */
    (void)park_give_up(park);            /* takes it */
    return false;
}

bool weft__park_back(struct weft__park *park)
{
    return park_give_up(park);
}

void weft__unpark(struct weft__park *park)
{
    /* [park] with park. A read-modify-write even if a token is there: it continues the release of
     * the one who put it there. acquire: [park-event] with park_elsewhere */
    uint32_t was = exchange_acq_rel(&park->word, PARK_NOTIFIED);
    if (was == PARK_PARKED) {
        (void)weft__futex_wake(&park->word, 1);
    } else if (was == PARK_ELSEWHERE) {
        (void)weft__event_signal(load_relaxed(&park->event)); /* relaxed: ordered by the exchange */
    }
}
