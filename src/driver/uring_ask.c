/* SPDX-License-Identifier: MIT
 *
 * uring_ask - requests: from a bit in the slot to the kernel, and back if it takes none; the idea is in uring.h.
 */
#include "driver/uring.h"

#include "base/fault.h"
#include "sys/epoll.h"
#include "sys/event.h"
#include "sys/socket.h"


void weft__uring_list_it(struct weft__uring *u, struct weft__uring_slot *us)
{
    if (us->listed) return;
    us->listed = true;
    us->next = NULL;
    if (u->last)
        u->last->next = us;
    else
        u->first = us;
    u->last = us;
    store_relaxed(&u->pending, true); /* relaxed: a hint */
}

/* Walks: it is of this turn, and not far. */
void weft__uring_unlist(struct weft__uring *u, struct weft__uring_slot *us)
{
    struct weft__uring_slot *before = NULL;
    for (struct weft__uring_slot *at = u->first; at != us; at = at->next)
        before = at;
    if (before)
        before->next = us->next;
    else
        u->first = us->next;
    if (u->last == us) u->last = before;
    us->listed = false;
}

struct weft__uring_slot *weft__uring_unlist_first(struct weft__uring *u)
{
    struct weft__uring_slot *us = u->first;
    u->first = us->next;
    if (!u->first) u->last = NULL;
    us->listed = false;
    return us;
}

void weft__uring_ask(struct weft__uring *u, struct weft__uring_slot *us, uint32_t which)
{
    weft__uring_set_asked(us, weft__uring_asked(us) | which);
    us->to_submit |= (uint8_t)which;
    weft__uring_list_it(u, us);
}

void weft__uring_unask(struct weft__uring_slot *us, uint32_t which)
{
    uint32_t early = us->to_submit & which;
    us->to_submit &= (uint8_t)~early;
    weft__uring_set_asked(us, weft__uring_asked(us) & ~early);
}

void weft__uring_stop(struct weft__uring *u, struct weft__uring_slot *us, uint32_t which)
{
    if (which & WEFT__URING_EPOLL) weft__uring_unwatch(u, us);
    weft__uring_unask(us, which);
    uint32_t late = weft__uring_asked(us) & which & (uint32_t)~us->cancelled;
    if (!late) return;
    us->cancelled |= (uint8_t)late;
    us->to_cancel |= (uint8_t)late;
    weft__uring_list_it(u, us);
}

static void write_poll(struct io_uring_sqe *sqe, int fd, uint32_t events, uint64_t token)
{
    sqe->opcode = IORING_OP_POLL_ADD;
    sqe->fd = fd;
    sqe->len = IORING_POLL_ADD_MULTI;
    sqe->poll32_events = __BYTE_ORDER == __BIG_ENDIAN ? (events << 16 | events >> 16) : events;
    sqe->user_data = token;
}

/* What an older kernel does not know, it refuses: for a test, a flag that none knows. */
static uint16_t unknown_flag(void)
{
    return weft__fault(WEFT__FAULT_URING_FETCH) < 0 ? UINT16_C(1) << 15 : 0;
}

static void write_fetch(const struct weft__uring *u, struct io_uring_sqe *sqe,
                        struct weft__uring_slot *us, uint64_t token)
{
    const struct weft__fdslot *slot = us->slot;
    sqe->fd = slot->fd;
    sqe->user_data = token;
    if (slot->shape == WEFT__SHAPE_LISTENER) {
        sqe->opcode = IORING_OP_ACCEPT;
        sqe->ioprio = IORING_ACCEPT_MULTISHOT | unknown_flag();
        sqe->accept_flags = WEFT__SOCKET_ACCEPT_FLAGS;
        return;
    }
    sqe->opcode = IORING_OP_RECV;
    sqe->ioprio = IORING_RECV_MULTISHOT | unknown_flag();
    sqe->flags = IOSQE_BUFFER_SELECT;
    sqe->buf_group = WEFT__RINGBUF_GROUP;
    us->capped = !u->no_cap;
    if (us->capped)
        sqe->file_index =
            WEFT__URING_UNREAD; /* `optlen` of newer headers: bytes in all, then it ends */
}

/* Done while it is submitted, or not at all: it never waits in the kernel. */
static void write_send(struct io_uring_sqe *sqe, const struct weft__uring_slot *us, uint64_t token)
{
    sqe->opcode = IORING_OP_SEND;
    sqe->fd = us->placed ? (int)us->slot->index : us->slot->fd;
    sqe->flags = us->placed ? IOSQE_FIXED_FILE : 0;
    sqe->addr = (uint64_t)(uintptr_t)us->send_from;
    sqe->len = us->send_bytes;
    sqe->msg_flags = MSG_NOSIGNAL | MSG_DONTWAIT;
    sqe->user_data = token;
}

/* The kernel reads the number while it is submitted. */
static void write_place(struct io_uring_sqe *sqe, const struct weft__fdslot *slot, const int *fd,
                        uint64_t token)
{
    sqe->opcode = IORING_OP_FILES_UPDATE;
    sqe->fd = -1;
    sqe->addr = (uint64_t)(uintptr_t)fd;
    sqe->len = 1;
    sqe->off = slot->index;
    sqe->user_data = token;
}

static void write_request(const struct weft__uring *u, struct io_uring_sqe *sqe,
                          struct weft__uring_slot *us, uint32_t which)
{
    static const int none = -1;
    const struct weft__fdslot *slot = us->slot;
    switch (which) {
    case WEFT__URING_PLACE:
        write_place(sqe, slot, &slot->fd, WEFT__URING_TOKEN(us, which));
        break;
    case WEFT__URING_UNPLACE:
        write_place(sqe, slot, &none, WEFT__URING_TOKEN(us, which));
        break;
    case WEFT__URING_POLL_READ:
        write_poll(sqe, slot->fd, EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLET,
                   WEFT__URING_TOKEN(us, which));
        break;
    case WEFT__URING_POLL_WRITE:
        write_poll(sqe, slot->fd, EPOLLOUT | EPOLLET, WEFT__URING_TOKEN(us, which));
        break;
    case WEFT__URING_SEND:
        write_send(sqe, us, WEFT__URING_TOKEN(us, which));
        break;
    default:
        write_fetch(u, sqe, us, WEFT__URING_TOKEN(us, which));
        break;
    }
}

static void write_cancel(struct io_uring_sqe *sqe, const struct weft__uring_slot *us,
                         uint32_t which)
{
    sqe->opcode = IORING_OP_ASYNC_CANCEL;
    sqe->fd = -1;
    sqe->addr = WEFT__URING_TOKEN(us, which);
    sqe->user_data = WEFT__URING_TOKEN(us, which) | WEFT__URING_TOKEN_CANCEL;
}

static void write_event(struct weft__uring *u, struct io_uring_sqe *sqe, int event)
{
    write_poll(sqe, event, EPOLLIN | EPOLLET, WEFT__URING_TOKEN_EVENT);
    store_relaxed(&u->event_asked, true); /* relaxed: under the lock */
    u->in_kernel++;
}

/* It answers once: as long as there is work, whoever comes by looks, and nothing comes of it on the way out of each call. */
static void write_epoll(struct weft__uring *u, struct io_uring_sqe *sqe)
{
    write_poll(sqe, u->epoll, EPOLLIN, WEFT__URING_TOKEN_EPOLL);
    sqe->len = 0;
    store_relaxed(&u->epoll_asked, true); /* relaxed: under the lock */
    u->in_kernel++;
}

/* Lowest first: a request is there before its cancel. False: the queue is full. */
static bool submit_slot(struct weft__uring *u, struct weft__uring_slot *us)
{
    while (us->to_submit | us->to_cancel) {
        struct io_uring_sqe *sqe = weft__ring_sqe(&u->ring);
        if (!sqe) return false;
        if (us->to_submit) {
            uint8_t which = us->to_submit & (uint8_t)-us->to_submit;
            write_request(u, sqe, us, which);
            us->to_submit &= (uint8_t)~which;
            u->in_kernel++;
        } else {
            uint8_t which = us->to_cancel & (uint8_t)-us->to_cancel;
            write_cancel(sqe, us, which);
            us->to_cancel &= (uint8_t)~which;
        }
    }
    return true;
}

struct weft__uring_slot *weft__uring_slot_of_token(struct weft__port *port, uint64_t token)
{
    struct weft__fdslot *slot = weft__port_slot(port, (uint32_t)(token >> 8));
    weft_assert(slot); /* we made the token */
    struct weft__uring_slot *us = weft__uring_more_of(slot);
    weft_dassert(us && us->slot == slot); /* and let go of the slot behind its last answer */
    return us;
}

/* The kernel did not take these, having no memory: they are bits again. */
static void take_back(struct weft__port *port, struct weft__uring *u)
{
    const struct io_uring_sqe *sqe;
    while ((sqe = weft__ring_withdraw(&u->ring))) {
        if (sqe->user_data == WEFT__URING_TOKEN_CANCEL_ALL) continue;
        if (sqe->opcode != IORING_OP_ASYNC_CANCEL) u->in_kernel--;
        if (sqe->user_data == WEFT__URING_TOKEN_EVENT) {
            store_relaxed(&u->event_asked, false); /* relaxed: under the lock */
            continue;
        }
        if (sqe->user_data == WEFT__URING_TOKEN_EPOLL) {
            store_relaxed(&u->epoll_asked, false); /* likewise */
            continue;
        }
        struct weft__uring_slot *us = weft__uring_slot_of_token(port, sqe->user_data);
        uint8_t which = sqe->user_data & WEFT__URING_ALL;
        if (sqe->user_data & WEFT__URING_TOKEN_CANCEL)
            us->to_cancel |= which;
        else
            us->to_submit |= which;
        weft__uring_list_it(u, us);
    }
}

static bool wants_event(const struct weft__uring *u, bool sleeps)
{
    return sleeps && !load_relaxed(&u->event_asked); /* relaxed: under the lock */
}

/* By the port's worker alone: the kernel hands its answer to the thread that asked. */
static bool wants_epoll(const struct weft__port *port, const struct weft__uring *u, bool sleeps)
{
    /* relaxed, all: under the lock */
    if (load_relaxed(&u->in_epoll) == 0 || load_relaxed(&u->epoll_asked)) return false;
    return (sleeps || !load_relaxed(&u->flood)) && weft__uring_at_home(port, u);
}

/* As many as have room. */
static void write_wanted(struct weft__port *port, struct weft__uring *u, bool sleeps)
{
    struct io_uring_sqe *sqe;
    if (wants_event(u, sleeps) && (sqe = weft__ring_sqe(&u->ring))) write_event(u, sqe, port->event);
    if (wants_epoll(port, u, sleeps) && (sqe = weft__ring_sqe(&u->ring))) write_epoll(u, sqe);
    while (u->first) {
        struct weft__uring_slot *us = weft__uring_unlist_first(u);
        if (submit_slot(u, us)) continue;
        weft__uring_list_it(u, us);
        return;
    }
}

/* All that is wanted, as far as the kernel takes it: what it does not is tried again by whoever comes next. The port's event is asked for by whoever
 * will sleep in the port: the kernel hands its answers to the thread that asked, which is disturbed for each if it sleeps elsewhere. */
void weft__uring_flush(struct weft__port *port, struct weft__uring *u, bool sleeps)
{
    bool taken = true;
    while (taken && (u->first || wants_event(u, sleeps) || wants_epoll(port, u, sleeps))) {
        write_wanted(port, u, sleeps);
        (void)weft__ring_submit(&u->ring);
        taken = weft__ring_unsubmitted(&u->ring) == 0;
        if (!taken) take_back(port, u);
    }
    store_relaxed(&u->pending, u->first != NULL); /* relaxed: a hint */
}

/* By whoever is here. What the kernel does not take is left to whoever turns the runtime: asleep, in the port or beside the host's fd, he would not hear of it. */
static void hand_in_here(struct weft__port *port, struct weft__uring *u)
{
    weft__uring_flush(port, u, false);
    if (u->first) port->driver->stir(port->driver, port->index);
}

bool weft__uring_at_home(const struct weft__port *port, const struct weft__uring *u)
{
    return !u->down && port->driver->home(port->driver, port->index) >= WEFT__HOME_SELF;
}

/* The slot has asked for something. Whoever is at home submits it when he comes by; if he sleeps, he is told to. */
void weft__uring_hand_in(struct weft__port *port, struct weft__uring *u)
{
    struct weft__driver *driver = port->driver;
    enum weft__home home = u->down ? WEFT__HOME_SELF : driver->home(driver, port->index);
    if (home == WEFT__HOME_NOBODY) hand_in_here(port, u);
    if (home == WEFT__HOME_ANOTHER) (void)weft__event_signal(port->event);
}

/* This slot's alone, at once: it is to be closed, and until its cancels are done, and its place is empty, the kernel holds the file. */
void weft__uring_submit_now(struct weft__port *port, struct weft__uring *u,
                            struct weft__uring_slot *us)
{
    if (us->listed) weft__uring_unlist(u, us);
    if (!submit_slot(u, us))
        weft__uring_list_it(u, us); /* never: nothing is left in the queue behind the lock */
    (void)weft__ring_submit(&u->ring);
    store_relaxed(&u->pending, u->first != NULL); /* relaxed: a hint */
    if (weft__ring_unsubmitted(&u->ring) == 0) return;
    take_back(port, u);
    weft__uring_hand_in(port, u);
}
