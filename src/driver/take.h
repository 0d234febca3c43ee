/* SPDX-License-Identifier: MIT
 *
 * take - what the backends share: an operation tried by its system call, what its answer says of readiness, what the kernel's events mean.
 *
 * An edge is reported once, and the slot remembers it until a try finds nothing more (slot.h). On byte streams a short read means
 * drained, and a short write full: the try that would answer -EAGAIN is not made. Three cases in which it means something else are
 * known by their signs: the peer has sent its end (the end comes behind the data, and no edge does), urgent data (a read stops at its
 * mark), a message with descriptors in it on a Unix socket (a read stops behind it). Of descriptors that are neither socket nor pipe a
 * short read says nothing: a terminal gives a line for each.
 *     EPOLLIN, EPOLLERR   READ             EPOLLOUT, EPOLLERR   WRITE            EPOLLPRI, EPOLLERR   URGENT
 *     EPOLLRDHUP          READ_END         EPOLLHUP             READ_END, WRITE_END
 * An error makes both sides try: the call they make says which it is. HUP is cleared by -EAGAIN like all else: a socket that is not
 * connected yet reports it, too.
 */
#ifndef WEFT_DRIVER_TAKE_H
#define WEFT_DRIVER_TAKE_H

#include "driver/driver.h"

/* The verb, by a system call on the fd. */
ssize_t weft__take_direct(struct weft__fdslot *slot, const struct weft__take *what);

/* Likewise, by one who has looked already, and has learnt other things since: what came behind that look is not cleared away. */
ssize_t weft__take_seen(struct weft__fdslot *slot, const struct weft__take *what, uint64_t seen);

/* EPOLL* or POLL*, which are the same, as bits of a slot's word. */
uint64_t weft__ready_of(uint32_t events);

/* The port's event was fetched by somebody else than the one it is for. */
void weft__port_pass_on(struct weft__port *port);

#endif
