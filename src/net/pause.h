/* SPDX-License-Identifier: MIT
 *
 * pause - for what the kernel has no readiness: it is tried again, from 1 ms to 64 ms apart.
 *
 * Each pause is drawn from the upper half of its length. Without that all who found a queue full would come back at the same moment, time after time, and as many
 * as it has room for get in each time: 300 who connect to a Unix listener with a queue of one took 3 s, while the listener had nothing to do.
 */
#ifndef WEFT_NET_PAUSE_H
#define WEFT_NET_PAUSE_H

#include "task/here.h"

#include <weft/time.h>

/* The longest first pause, and how often it is doubled. Doubled: who waits for a full queue of a Unix socket is up to 128 ms late. */
#define WEFT__PAUSE_NS        UINT32_C(2000000)
#define WEFT__PAUSE_DOUBLINGS 5

/* The room that a frame has for its sleep. */
#define WEFT__PAUSE_OF(f)                                                                          \
    ({                                                                                             \
        _Static_assert(sizeof(struct weft_sleep) <= sizeof((f)->weft__pause), "a sleep fits");     \
        (struct weft_sleep *)(void *)(f)->weft__pause;                                             \
    })

static inline void weft__pause_begin(struct weft_sleep *sleep, int *tries)
{
    uint32_t half = (WEFT__PAUSE_NS << *tries) / 2;
    *sleep = (struct weft_sleep){.ns = (weft_time)half + weft__here_draw(half + 1)};
    if (*tries < WEFT__PAUSE_DOUBLINGS) ++*tries;
}

#endif
