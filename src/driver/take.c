/* SPDX-License-Identifier: MIT
 *
 * take - one try, and what its answer says of readiness; the idea is in take.h.
 */
#include "driver/take.h"

#include "sys/epoll.h"
#include "sys/event.h"
#include "sys/pipe.h"
#include "sys/socket.h"

/* It was for the one who sleeps there. If he does not, he has its token, and finds that before he sleeps again: given back, the event would be found again
 * by whoever looks after his port, and again. */
void weft__port_pass_on(struct weft__port *port)
{
    /* relaxed: he wrote it before whoever signalled saw that he sleeps, and the kernel keeps that order */
    if (load_relaxed(&port->slept_in)) (void)weft__event_signal(port->event);
}

static ssize_t try_it(int fd, const struct weft__take *what, bool *cut)
{
    int got;
    switch (what->kind) {
    case WEFT__TAKE_RECV:
    case WEFT__TAKE_PEEK:
        return weft__socket_recv(fd, what->iov, what->count, what->kind == WEFT__TAKE_PEEK);
    case WEFT__TAKE_RECV_UNIX:
        return weft__socket_recv_unix(fd, what->iov, what->count, cut);
    case WEFT__TAKE_SEND:
    case WEFT__TAKE_SEND_SOON:
        return weft__socket_send(fd, what->iov, what->count);
    case WEFT__TAKE_READ:
        return weft__pipe_read(fd, what->iov, what->count);
    case WEFT__TAKE_WRITE:
        return weft__pipe_write(fd, what->iov, what->count);
    case WEFT__TAKE_ACCEPT:
        break;
    }
    int r = weft__socket_accept(fd, what->from, &got);
    return r < 0 ? r : got;
}

/* Of what moves fewer bytes than it could: is there nothing more? */
static bool tells_by_being_short(const struct weft__take *what)
{
    return what->kind == WEFT__TAKE_RECV || what->kind == WEFT__TAKE_RECV_UNIX ||
           what->kind == WEFT__TAKE_SEND || what->kind == WEFT__TAKE_SEND_SOON;
}

static bool writes(const struct weft__take *what)
{
    return what->kind == WEFT__TAKE_SEND || what->kind == WEFT__TAKE_SEND_SOON ||
           what->kind == WEFT__TAKE_WRITE;
}

ssize_t weft__take_direct(struct weft__fdslot *slot, const struct weft__take *what,
                          struct weft__lesson *lesson)
{
    bool cut = false;
    ssize_t r = try_it(slot->fd, what, &cut);
    bool brief = tells_by_being_short(what) && !cut && (size_t)r < what->bytes;
    enum weft__side side = writes(what) ? WEFT__SIDE_WRITE : WEFT__SIDE_READ;
    lesson->bits = weft__take_lesson(lesson->seen, side, r, brief);
    return r;
}
