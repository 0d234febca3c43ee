/* SPDX-License-Identifier: MIT
 *
 * door - who was not accepted: connections that still wait at a listener, or behind it.
 *
 *     door_even(listener, came, accepted);          each of those who came was accepted, or still waits
 */
#ifndef WEFT_TESTS_DOOR_H
#define WEFT_TESTS_DOOR_H

#include "crew.h"
#include "driver/uring.h"
#include "peer.h"

/* Of a ring: those that were fetched ahead. */
static inline uint64_t door_inside(weft_listener *listener)
{
    struct weft__fdslot *slot = (struct weft__fdslot *)(void *)listener;
    struct weft__uring_slot *us = slot->more;
    if (!us) return 0;
    struct weft__uring *u = slot->port->own;
    weft__uring_lock(u);
    uint64_t count = us->fds_count;
    weft__uring_unlock(u);
    return count;
}

/* On a ring some may just be on their way in. Those who wait outside are let in and sent away. */
static inline void door_even(weft_listener *listener, uint64_t came, uint64_t accepted)
{
    int fd;
    while ((fd = accept4(weft_listener_fd(listener), NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        accepted++;
        ASSERT_OK(close(fd));
    }
    CREW_UNTIL(accepted + door_inside(listener) >= came);
    ASSERT_EQ(accepted + door_inside(listener), came);
}

#endif
