/* SPDX-License-Identifier: MIT
 *
 * take - what the backends share: an operation tried by its system call, what its answer says of readiness, what the kernel's events mean.
 *
 * An edge is reported once, and the slot remembers it until a try finds nothing more (slot.h). On sockets of bytes a short read means
 * drained, and a short write full: the try that would answer -EAGAIN is not made. Three cases in which it means something else are
 * known by their signs: the peer has sent its end (the end comes behind the data, and no edge does), urgent data (a read stops at its
 * mark), a message with descriptors in it on a Unix socket (a read stops behind it). Of all other descriptors it says nothing: a
 * terminal gives a line for each read, and ends a write early for a signal; a pipe gives a packet, if its writer has told it so (O_DIRECT),
 * which nobody can see from the end that reads.
 *     EPOLLIN, EPOLLERR   READ             EPOLLOUT, EPOLLERR   WRITE            EPOLLPRI, EPOLLERR   URGENT
 *     EPOLLRDHUP          READ_END         EPOLLHUP             READ_END, WRITE_END
 * An error makes both sides try: the call they make says which it is. HUP is cleared by -EAGAIN like all else: a socket that is not
 * connected yet reports it, too.
 */
#ifndef WEFT_DRIVER_TAKE_H
#define WEFT_DRIVER_TAKE_H

#include "driver/driver.h"
#include "sys/epoll.h"
#include "sys/socket.h"

/* The verb, by a system call on the fd. */
ssize_t weft__take_direct(struct weft__fdslot *slot, const struct weft__take *what,
                          struct weft__lesson *lesson);

/* What an answer says of readiness: of these there is nothing more. `seen`: the look before the try. `brief`: it is short of what it could have moved, where that tells something. */
static inline uint64_t weft__take_lesson(uint64_t seen, enum weft__side side, ssize_t answer,
                                         bool brief)
{
    if (__builtin_expect(answer == -EAGAIN, 0)) return weft__ready_bits(side);
    if (answer <= 0 || !brief || (seen & (WEFT__READY_READ_END | WEFT__READY_URGENT))) return 0;
    return side == WEFT__SIDE_WRITE ? WEFT__READY_WRITE : WEFT__READY_READ;
}

/* EPOLL* or POLL*, which are the same, as bits of a slot's word. */
_Static_assert(EPOLLIN == WEFT__READY_READ && EPOLLOUT >> 1 == WEFT__READY_WRITE,
               "what most events are made of needs no look at each bit");
static inline uint64_t weft__ready_of(uint32_t events)
{
    if (!(events & ~(uint32_t)(EPOLLIN | EPOLLOUT)))
        return (events & EPOLLIN) | (events & EPOLLOUT) >> 1;
    uint64_t bits = 0;
    if (events & (EPOLLIN | EPOLLERR)) bits |= WEFT__READY_READ;
    if (events & (EPOLLOUT | EPOLLERR)) bits |= WEFT__READY_WRITE;
    if (events & (EPOLLPRI | EPOLLERR)) bits |= WEFT__READY_URGENT;
    if (events & EPOLLRDHUP) bits |= WEFT__READY_READ_END;
    if (events & EPOLLHUP) bits |= WEFT__READY_READ_END | WEFT__READY_WRITE_END;
    return bits;
}

/* The port's event was fetched by somebody else than the one it is for. */
void weft__port_pass_on(struct weft__port *port);

#endif
