/* SPDX-License-Identifier: MIT
 *
 * slot - what lies behind a stream on a descriptor, for tests that act when somebody is in the middle of it.
 *
 *     CREW_UNTIL(slot_users(s) & WEFT__USE_READER);           one reads, or is about to wait
 *     CREW_UNTIL(slot_is_awaited(s, WEFT__SIDE_WRITE));       one has found it full, and waits
 */
#ifndef WEFT_TESTS_SLOT_H
#define WEFT_TESTS_SLOT_H

#include "driver/driver.h"

#include <weft/stream.h>

static inline struct weft__fdslot *slot_of(weft_stream *s)
{
    return weft__container_of((void **)(void *)s, struct weft__fdslot, face[0]);
}

static inline uint32_t slot_users(weft_stream *s)
{
    return load_relaxed(&slot_of(s)->users); /* relaxed: a look */
}

static inline bool slot_is_awaited(weft_stream *s, enum weft__side side)
{
    struct weft__fdslot *slot = slot_of(s);
    weft__waitlist_lock(&slot->list);
    bool awaited = !weft__list_empty(weft__fdslot_queue(slot, side));
    weft__waitlist_unlock(&slot->list);
    return awaited;
}

#endif
