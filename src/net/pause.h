/* SPDX-License-Identifier: MIT
 *
 * pause - for what the kernel has no readiness: it is tried again, from 1 ms to 64 ms apart.
 */
#ifndef WEFT_NET_PAUSE_H
#define WEFT_NET_PAUSE_H

#include <weft/time.h>

/* The first pause, and how often it is doubled. Doubled: who waits for a full queue of a Unix socket is up to 128 ms late. */
#define WEFT__PAUSE_NS        INT64_C(1000000)
#define WEFT__PAUSE_DOUBLINGS 6

/* The room that a frame has for its sleep. */
#define WEFT__PAUSE_OF(f)                                                                          \
    ({                                                                                             \
        _Static_assert(sizeof(struct weft_sleep) <= sizeof((f)->weft__pause), "a sleep fits");     \
        (struct weft_sleep *)(void *)(f)->weft__pause;                                             \
    })

static inline void weft__pause_begin(struct weft_sleep *sleep, int *tries)
{
    *sleep = (struct weft_sleep){.ns = WEFT__PAUSE_NS << *tries};
    if (*tries < WEFT__PAUSE_DOUBLINGS) ++*tries;
}

#endif
