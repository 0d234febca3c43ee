/* SPDX-License-Identifier: MIT
 *
 * semaphore - what lies in the place of a weft_sem; the idea is in semaphore.c.
 */
#ifndef WEFT_SYNC_SEMAPHORE_H
#define WEFT_SYNC_SEMAPHORE_H

#include "sync/waitlist.h"

#include <weft/sync.h>

struct weft__sem {
    _Atomic uint64_t word;      /* permits << 2 | CLOSED | WAITERS        [sem] */
    struct weft__waitlist list; /* the waiters of struct weft_sem_acquire */
};

#endif
