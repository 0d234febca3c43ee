/* SPDX-License-Identifier: MIT
 *
 * waiters - how many wait for something, so that a test can let them go when they really do. A thread that is counted here
 * sleeps, or is about to: whoever wakes it from then on has to find it.
 */
#ifndef WEFT_TESTS_WAITERS_H
#define WEFT_TESTS_WAITERS_H

#include "sync/waitlist.h"

static inline uint32_t waiters_in(struct weft__waitlist *list)
{
    uint32_t count = 0;
    weft__waitlist_lock(list);
    if (list->head.next) { /* one that was made by zeros has no head before its first waiter */
        weft__list_each (it, &list->head)
            count++;
    }
    weft__waitlist_unlock(list);
    return count;
}

/* Of what begins with its list: events, broadcasts, watches. */
static inline uint32_t waiters_of(void *object)
{
    return waiters_in((struct weft__waitlist *)object);
}

#endif
