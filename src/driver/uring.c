/* SPDX-License-Identifier: MIT
 *
 * uring - the verbs on io_uring; the idea is in uring.h.
 */
#include "driver/uring.h"

#include "base/alloc.h"
#include "driver/take.h"
#include "sys/event.h"
#include "sys/fd.h"
#include "sys/futex.h"
#include "sys/socket.h"

#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* The words of requests: slot and which of its three; a cancel of it; the port's event; what takes all back. */
#define TOKEN(us, which) ((uint64_t)(us)->slot->index << 8 | (which))
#define TOKEN_CANCEL     UINT64_C(0x10)
#define TOKEN_EVENT      UINT64_MAX
#define TOKEN_CANCEL_ALL (UINT64_MAX - 1)

/* What is fetched: a slot's token and bits of its word, or one of these. */
#define FETCHED_EVENT (UINT64_C(1) << 63)
#define FETCHED_FREE  (UINT64_C(1) << 62) /* the slot is nobody's any more: it is given back */

static struct weft__uring *uring_of(const struct weft__port *port)
{
    return port->own;
}

static struct weft__uring_slot *more_of(const struct weft__fdslot *slot)
{
    return slot->more;
}

static uint8_t asked(const struct weft__uring_slot *us)
{
    return load_acquire(&us->asked); /* [uring-asked] with set_asked: what was kept until then */
}

static void set_asked(struct weft__uring_slot *us, uint32_t which)
{
    store_release(&us->asked,
                  (uint8_t)which); /* [uring-asked] with who reads: what is kept is noted */
}

/* ---- requests. Holds: the ring's lock ---- */

static void list_it(struct weft__uring *u, struct weft__uring_slot *us)
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
static void unlist(struct weft__uring *u, struct weft__uring_slot *us)
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

static struct weft__uring_slot *unlist_first(struct weft__uring *u)
{
    struct weft__uring_slot *us = u->first;
    u->first = us->next;
    if (!u->first) u->last = NULL;
    us->listed = false;
    return us;
}

static void ask(struct weft__uring *u, struct weft__uring_slot *us, uint32_t which)
{
    set_asked(us, asked(us) | which);
    us->to_submit |= (uint8_t)which;
    list_it(u, us);
}

/* Those of `which` that are there. */
static void stop(struct weft__uring *u, struct weft__uring_slot *us, uint32_t which)
{
    uint32_t early = us->to_submit & which;
    us->to_submit &= (uint8_t)~early;
    set_asked(us, asked(us) & ~early);
    uint32_t late = asked(us) & which & (uint32_t)~us->cancelled;
    if (!late) return;
    us->cancelled |= (uint8_t)late;
    us->to_cancel |= (uint8_t)late;
    list_it(u, us);
}

static void write_poll(struct io_uring_sqe *sqe, int fd, uint32_t events, uint64_t token)
{
    sqe->opcode = IORING_OP_POLL_ADD;
    sqe->fd = fd;
    sqe->len = IORING_POLL_ADD_MULTI;
    sqe->poll32_events = __BYTE_ORDER == __BIG_ENDIAN ? (events << 16 | events >> 16) : events;
    sqe->user_data = token;
}

static void write_fetch(const struct weft__uring *u, struct io_uring_sqe *sqe,
                        struct weft__uring_slot *us, uint64_t token)
{
    const struct weft__fdslot *slot = us->slot;
    sqe->fd = slot->fd;
    sqe->user_data = token;
    if (slot->shape == WEFT__SHAPE_LISTENER) {
        sqe->opcode = IORING_OP_ACCEPT;
        sqe->ioprio = IORING_ACCEPT_MULTISHOT;
        sqe->accept_flags = WEFT__SOCKET_ACCEPT_FLAGS;
        return;
    }
    sqe->opcode = IORING_OP_RECV;
    sqe->ioprio =
        IORING_RECV_MULTISHOT |
        IORING_RECVSEND_POLL_FIRST; /* there is nothing yet: no buffer is asked for until there is */
    sqe->flags = IOSQE_BUFFER_SELECT;
    sqe->buf_group = WEFT__RINGBUF_GROUP;
    us->capped = !u->no_cap;
    if (us->capped)
        sqe->file_index =
            WEFT__URING_UNREAD; /* `optlen` of newer headers: bytes in all, then it ends */
}

static void write_request(const struct weft__uring *u, struct io_uring_sqe *sqe,
                          struct weft__uring_slot *us, uint32_t which)
{
    const struct weft__fdslot *slot = us->slot;
    switch (which) {
    case WEFT__URING_POLL_READ:
        write_poll(sqe, slot->fd, EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLET, TOKEN(us, which));
        break;
    case WEFT__URING_POLL_WRITE:
        write_poll(sqe, slot->fd, EPOLLOUT | EPOLLET, TOKEN(us, which));
        break;
    default:
        write_fetch(u, sqe, us, TOKEN(us, which));
        break;
    }
}

static void write_cancel(struct io_uring_sqe *sqe, const struct weft__uring_slot *us,
                         uint32_t which)
{
    sqe->opcode = IORING_OP_ASYNC_CANCEL;
    sqe->fd = -1;
    sqe->addr = TOKEN(us, which);
    sqe->user_data = TOKEN(us, which) | TOKEN_CANCEL;
}

static void write_event(struct weft__uring *u, struct io_uring_sqe *sqe, int event)
{
    write_poll(sqe, event, EPOLLIN | EPOLLET, TOKEN_EVENT);
    store_relaxed(&u->event_asked, true); /* relaxed: under the lock */
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

static struct weft__uring_slot *slot_of_token(struct weft__port *port, uint64_t token)
{
    struct weft__fdslot *slot = weft__port_slot(port, (uint32_t)(token >> 8));
    weft_assert(slot); /* we made the token */
    return more_of(slot);
}

/* The kernel did not take these, having no memory: they are bits again. */
static void take_back(struct weft__port *port, struct weft__uring *u)
{
    const struct io_uring_sqe *sqe;
    while ((sqe = weft__ring_withdraw(&u->ring))) {
        if (sqe->user_data == TOKEN_CANCEL_ALL) continue;
        if (sqe->opcode != IORING_OP_ASYNC_CANCEL) u->in_kernel--;
        if (sqe->user_data == TOKEN_EVENT) {
            store_relaxed(&u->event_asked, false); /* relaxed: under the lock */
            continue;
        }
        struct weft__uring_slot *us = slot_of_token(port, sqe->user_data);
        uint8_t which = sqe->user_data & WEFT__URING_ALL;
        if (sqe->user_data & TOKEN_CANCEL)
            us->to_cancel |= which;
        else
            us->to_submit |= which;
        list_it(u, us);
    }
}

/* As many as have room. */
static void write_wanted(struct weft__port *port, struct weft__uring *u, bool sleeps)
{
    if (sleeps && !load_relaxed(&u->event_asked)) {
        struct io_uring_sqe *sqe = weft__ring_sqe(&u->ring);
        if (sqe) write_event(u, sqe, port->event);
    }
    while (u->first) {
        struct weft__uring_slot *us = unlist_first(u);
        if (submit_slot(u, us)) continue;
        list_it(u, us);
        return;
    }
}

/* All that is wanted, as far as the kernel takes it: what it does not is tried again by whoever comes next. The port's event is asked for by whoever
 * will sleep in the port: the kernel hands its answers to the thread that asked, which is disturbed for each if it sleeps elsewhere. */
static void flush(struct weft__port *port, struct weft__uring *u, bool sleeps)
{
    bool taken = true;
    while (taken && (u->first || (sleeps && !load_relaxed(&u->event_asked)))) {
        write_wanted(port, u, sleeps);
        (void)weft__ring_submit(&u->ring);
        taken = weft__ring_unsubmitted(&u->ring) == 0;
        if (!taken) take_back(port, u);
    }
    store_relaxed(&u->pending, u->first != NULL); /* relaxed: a hint */
}

/* The slot has asked for something. Whoever is at home submits it when he comes by; if he sleeps, he is told to. */
static void hand_in(struct weft__port *port, struct weft__uring *u)
{
    struct weft__driver *driver = port->driver;
    enum weft__home home = u->down ? WEFT__HOME_SELF : driver->home(driver, port->index);
    if (home == WEFT__HOME_NOBODY) flush(port, u, false);
    if (home == WEFT__HOME_ANOTHER) (void)weft__event_signal(port->event);
}

/* This slot's alone, at once: it is to be closed, and until its cancels are done the kernel holds the file. */
static void submit_now(struct weft__port *port, struct weft__uring *u, struct weft__uring_slot *us)
{
    if (us->listed) unlist(u, us);
    if (!submit_slot(u, us))
        list_it(u, us); /* never: nothing is left in the queue behind the lock */
    (void)weft__ring_submit(&u->ring);
    if (weft__ring_unsubmitted(&u->ring) == 0) return;
    take_back(port, u);
    hand_in(port, u);
}

/* ---- answers. Holds: the ring's lock ---- */

/* The last answer of a request: the side is to be tried, whatever it said. */
static uint64_t ends(struct weft__uring *u, struct weft__uring_slot *us, uint32_t which)
{
    set_asked(us, asked(us) & ~which);
    us->cancelled &= (uint8_t)~which;
    us->to_cancel &= (uint8_t)~which;
    u->in_kernel--;
    switch (which) {
    case WEFT__URING_POLL_WRITE:
        return WEFT__READY_WRITE;
    case WEFT__URING_POLL_READ:
        return WEFT__READY_READ | WEFT__READY_URGENT;
    default:
        return WEFT__READY_READ;
    }
}

/* Returns bits of the slot's word, or FETCHED_FREE. */
static uint64_t answered(struct weft__uring *u, struct weft__uring_slot *us, uint32_t which,
                         const struct weft__ring_done *done)
{
    uint64_t bits = 0;
    if (which == WEFT__URING_FETCH) {
        weft__uring_keep(u, us, done);
        bits = WEFT__READY_READ;
        if (weft__uring_is_full(us)) stop(u, us, WEFT__URING_FETCH);
    } else if (done->result > 0) {
        bits = weft__ready_of((uint32_t)done->result);
    }
    if (!(done->flags & IORING_CQE_F_MORE)) bits |= ends(u, us, which);
    if (!us->closed) return bits;
    return us->left && !asked(us) ? FETCHED_FREE : 0;
}

/* A cancel found its request busy: again, if that has not ended meanwhile. Not found, its last answer is here, or behind this. */
static void cancel_answered(struct weft__uring *u, struct weft__uring_slot *us, uint32_t which,
                            int result)
{
    if (result != -EALREADY || !(us->cancelled & which)) return;
    us->to_cancel |= (uint8_t)which;
    list_it(u, us);
}

static void put(struct weft__events *into, uint64_t token, uint64_t what)
{
    into->room[2 * into->count] = token;
    into->room[2 * into->count + 1] = what;
    into->count++;
}

static void fetch_one(struct weft__port *port, struct weft__uring *u,
                      const struct weft__ring_done *done, struct weft__events *into)
{
    if (done->data == TOKEN_CANCEL_ALL) return;
    if (done->data == TOKEN_EVENT) {
        if (!(done->flags & IORING_CQE_F_MORE)) {
            store_relaxed(
                &u->event_asked,
                false); /* who sleeps next asks anew, and is told at once if there was a signal  (relaxed: a hint) */
            u->in_kernel--;
        }
        put(into, 0, FETCHED_EVENT);
        return;
    }
    struct weft__uring_slot *us = slot_of_token(port, done->data);
    uint32_t which = done->data & WEFT__URING_ALL;
    if (done->data & TOKEN_CANCEL) {
        cancel_answered(u, us, which, done->result);
        return;
    }
    uint64_t what = answered(u, us, which, done);
    if (what == FETCHED_FREE) {
        us->left = false;
        if (us->listed) unlist(u, us);
    }
    if (what) put(into, us->token, what);
}

static uint32_t fetch(struct weft__port *port, struct weft__uring *u, struct weft__events *into)
{
    struct weft__ring_done done[WEFT__EVENTS_MAX];
    uint32_t count = weft__ring_reap(&u->ring, done, WEFT__EVENTS_MAX);
    for (uint32_t i = 0; i < count; i++)
        fetch_one(port, u, &done[i], into);
    return count;
}

/* ---- open, close ---- */

/* What it must know: to be woken in its sleep by time, no interrupts for answers and requests of one kind taken back all at once, which came together. */
static int ring_open(struct weft__ring *ring)
{
    int r = weft__ring_open_wide(ring, WEFT__URING_REQUESTS, WEFT__URING_ANSWERS);
    if (r < 0) return r;
    bool fit = ring->coop && (ring->features & IORING_FEAT_EXT_ARG);
    r = fit ? weft__ring_probe(ring, IORING_OP_POLL_ADD) : -ENOSYS;
    if (r == 0) r = weft__ring_probe(ring, IORING_OP_ASYNC_CANCEL);
    if (r < 0) weft__ring_close(ring);
    return r;
}

int weft__driver_uring_probe(void)
{
    struct weft__ring ring;
    int r = ring_open(&ring);
    if (r == 0) weft__ring_close(&ring);
    return r;
}

/* Buffers that cannot be had are no reason not to work: streams are polled. */
static int open_all(struct weft__port *port, struct weft__uring *u)
{
    int r = ring_open(&u->ring);
    if (r < 0) return r;
    r = weft__event_open(&port->event);
    if (r < 0) {
        weft__ring_close(&u->ring);
        return r;
    }
    r = weft__ringbuf_open(&u->buffers, &u->ring, WEFT__URING_BUFFERS, WEFT__URING_BUFFER_BYTES);
    store_relaxed(&u->no_fetch_stream, r < 0); /* relaxed: not shared yet */
    port->kernel = u->ring.fd;
    return 0;
}

static int uring_open(struct weft__port *port)
{
    struct weft__uring *u = weft__alloc(sizeof(*u));
    if (!u) return -ENOMEM;
    weft__lock_init(&u->lock, WEFT__RANK_SLOT);
    int r = open_all(port, u);
    if (r < 0) {
        weft__free(u);
        return r;
    }
    port->own = u;
    return 0;
}

static void free_slots(struct weft__port *port, const struct weft__events *events)
{
    for (int i = 0; i < events->count; i++) {
        if (events->room[2 * i + 1] != FETCHED_FREE) continue;
        weft__port_give_back(weft__port_slot(port, (uint32_t)(events->room[2 * i] >> 32)), true);
    }
}

static void ask_for_the_end(struct weft__uring *u)
{
    struct io_uring_sqe *sqe = weft__ring_sqe(&u->ring);
    if (sqe) {
        sqe->opcode = IORING_OP_ASYNC_CANCEL;
        sqe->fd = -1;
        sqe->cancel_flags = IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL;
        sqe->user_data = TOKEN_CANCEL_ALL;
    }
    (void)weft__ring_submit(&u->ring);
}

/* What was wanted is not any more. */
static void want_nothing(struct weft__uring *u)
{
    while (u->first) {
        struct weft__uring_slot *us = unlist_first(u);
        set_asked(us, asked(us) & ~(uint32_t)us->to_submit);
        us->to_submit = 0;
        us->to_cancel = 0;
    }
}

/* Returns how many answers there were. */
static uint32_t fetch_last(struct weft__port *port, struct weft__uring *u)
{
    struct weft__events events = {.count = 0};
    uint32_t count = fetch(port, u, &events);
    want_nothing(u);
    free_slots(port, &events);
    return count;
}

/* The kernel has our buffers, and files, until its last answer: that is waited for. It may need the thread that submitted to look up: a tick. */
static void uring_close(struct weft__port *port)
{
    struct weft__uring *u = uring_of(port);

    weft__lock_take(&u->lock);
    u->down = true;
    want_nothing(u);
    while (u->in_kernel > 0) {
        ask_for_the_end(u);
        do {
            (void)weft__ring_wait(&u->ring, 1000000);
        } while (fetch_last(port, u) > 0 && u->in_kernel > 0);
    }
    weft__ringbuf_stop(&u->buffers, &u->ring);
    weft__ring_close(&u->ring);
    weft__lock_drop(&u->lock);
    weft__fd_close(port->event);
    port->event = -1;
    port->kernel = -1;
}

static void uring_free(struct weft__port *port)
{
    struct weft__uring *u = uring_of(port);
    if (!u) return;
    weft__ringbuf_close(&u->buffers);
    weft__free(u->watched);
    weft__free(u);
    port->own = NULL;
}

/* ---- add, del. Under the port's lock ---- */

static int watched_room(struct weft__uring *u, int fd)
{
    uint32_t words = (uint32_t)fd / 64 + 1;
    if (words <= u->watched_words) return 0;
    words = words < 16 ? 16 : words + words / 2;
    uint64_t *all = weft__alloc(words * sizeof(uint64_t));
    if (!all) return -ENOMEM;
    if (u->watched_words > 0) memcpy(all, u->watched, u->watched_words * sizeof(uint64_t));
    weft__free(u->watched);
    u->watched = all;
    u->watched_words = words;
    return 0;
}

static uint64_t *watched_word(const struct weft__uring *u, int fd)
{
    return &u->watched[(uint32_t)fd / 64];
}

static uint64_t watched_bit(int fd)
{
    return UINT64_C(1) << (fd % 64);
}

/* The kernel would watch anything, as often as it is told to: what epoll refuses is refused here. */
static int may_watch(struct weft__uring *u, int fd)
{
    int r = weft__fd_has_readiness(fd);
    if (r < 0) return r;
    r = watched_room(u, fd);
    if (r < 0) return r;
    return *watched_word(u, fd) & watched_bit(fd) ? -EEXIST : 0;
}

static int make_more(struct weft__fdslot *slot)
{
    if (!slot->more) slot->more = weft__alloc(sizeof(struct weft__uring_slot));
    if (!slot->more) return -ENOMEM;
    *more_of(slot) = (struct weft__uring_slot){.slot = slot, .token = weft__fdslot_token(slot)};
    return 0;
}

static int uring_add(struct weft__port *port, struct weft__fdslot *slot)
{
    struct weft__uring *u = uring_of(port);
    int r = may_watch(u, slot->fd);
    if (r == 0) r = make_more(slot);
    if (r == 0) *watched_word(u, slot->fd) |= watched_bit(slot->fd);
    return r;
}

static void uring_del(struct weft__port *port, struct weft__fdslot *slot)
{
    struct weft__uring *u = uring_of(port);
    struct weft__uring_slot *us = more_of(slot);

    *watched_word(u, slot->fd) &= ~watched_bit(slot->fd);
    weft__lock_take(&u->lock);
    us->closed = true;
    stop(u, us, WEFT__URING_ALL);
    weft__uring_drop(u, us);
    if (us->to_cancel && !u->down) submit_now(port, u, us);
    weft__lock_drop(&u->lock);
}

static bool uring_let_go(struct weft__port *port, struct weft__fdslot *slot)
{
    struct weft__uring *u = uring_of(port);
    struct weft__uring_slot *us = more_of(slot);

    weft__lock_take(&u->lock);
    us->closed = true;
    weft__uring_drop(u, us); /* of a port that was down before it was closed */
    bool gone = !asked(us);
    if (gone && us->listed) unlist(u, us);
    us->left = !gone;
    weft__lock_drop(&u->lock);
    return gone;
}

/* ---- wait, deliver ---- */

static void come_by(struct weft__port *port, struct weft__uring *u, struct weft__events *into,
                    bool sleeps)
{
    weft__lock_take(&u->lock);
    flush(port, u, sleeps);
    bool watched = load_relaxed(&u->event_asked); /* relaxed, both: under the lock */
    (void)fetch(port, u, into);
    bool unwatched = watched && !load_relaxed(&u->event_asked);
    /* Who holds enough is stopped before more comes. And the event's request may have ended while
     * its worker, who saw it there, is about to sleep upon it: asked for again, by whoever is here,
     * it answers at once if there was a signal. */
    flush(port, u, sleeps || unwatched);
    weft__lock_drop(&u->lock);
}

static bool has_something(const struct weft__uring *u)
{
    return load_relaxed(&u->pending) ||
           weft__ring_due(
               &u->ring); /* relaxed: a hint; who wants something is at home, or has flushed */
}

/* What the kernel would not take is tried again soon. */
static int64_t sleep_for(const struct weft__uring *u, int64_t timeout_ns)
{
    const int64_t soon = 1000000;
    /* relaxed, both: written by this thread, under the lock, or by one that has just seen to it */
    bool all = !load_relaxed(&u->pending) && load_relaxed(&u->event_asked);
    return all || timeout_ns < soon ? timeout_ns : soon;
}

static int uring_wait(struct weft__port *port, struct weft__events *into, int64_t timeout_ns)
{
    struct weft__uring *u = uring_of(port);
    bool sleeps = timeout_ns != 0;

    into->count = 0;
    /* relaxed: a hint, as above */
    if (has_something(u) || (sleeps && !load_relaxed(&u->event_asked)))
        come_by(port, u, into, sleeps);
    if (into->count > 0 || !sleeps) return into->count;
    int r = weft__ring_wait(&u->ring, sleep_for(u, timeout_ns));
    weft_assert(r == 0);
    if (has_something(u)) come_by(port, u, into, false);
    return into->count;
}

static uint32_t uring_deliver(struct weft__port *port, const struct weft__events *events, bool own)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    bool frees = false;
    for (int i = 0; i < events->count; i++) {
        uint64_t token = events->room[2 * i];
        uint64_t what = events->room[2 * i + 1];
        frees |= what == FETCHED_FREE;
        if (what == FETCHED_FREE) continue;
        if (what == FETCHED_EVENT) {
            if (!own) weft__port_pass_on(port);
            continue;
        }
        weft__fdslot_ready(weft__port_slot(port, (uint32_t)(token >> 32)), (uint32_t)token, what,
                           &chain);
    }
    uint32_t woken = chain.count;
    weft__wake_chain_push(&chain, &weft__sched);
    for (int i = 0; frees && i < events->count; i++) {
        if (events->room[2 * i + 1] == FETCHED_FREE)
            weft__port_give_back(weft__port_slot(port, (uint32_t)(events->room[2 * i] >> 32)),
                                 false);
    }
    return woken;
}

static bool uring_has(struct weft__port *port)
{
    if (!load_acquire(&port->open)) return false; /* [port-open] with open_port */
    const struct weft__uring *u = uring_of(port);
    return load_relaxed(&u->pending) || weft__ring_has(&u->ring); /* relaxed: a hint */
}

/* ---- arm, take ---- */

static bool may_fetch(const struct weft__uring *u, const struct weft__uring_slot *us)
{
    /* relaxed, both: hints, and the reader's own */
    if (load_relaxed(&us->by_calls) || load_relaxed(&us->in_bulk)) return false;
    switch (us->slot->shape) {
    case WEFT__SHAPE_STREAM:
        return !load_relaxed(&u->no_fetch_stream);
    case WEFT__SHAPE_LISTENER:
        return !load_relaxed(&u->no_fetch_listener);
    default:
        return false;
    }
}

/* What brings an event to whoever waits for these. */
static uint32_t wants(const struct weft__uring *u, const struct weft__uring_slot *us,
                      enum weft__side side, uint64_t bits)
{
    if (side == WEFT__SIDE_WRITE) return WEFT__URING_POLL_WRITE;
    if (bits & WEFT__READY_URGENT) return WEFT__URING_POLL_READ;
    if (asked(us) & WEFT__URING_FETCH) return WEFT__URING_FETCH;
    return may_fetch(u, us) ? WEFT__URING_FETCH : WEFT__URING_POLL_READ;
}

static void uring_arm(struct weft__fdslot *slot, enum weft__side side, uint64_t bits)
{
    struct weft__port *port = slot->port;
    struct weft__uring *u = uring_of(port);
    struct weft__uring_slot *us = more_of(slot);

    if (asked(us) & wants(u, us, side, bits))
        return; /* a hint: its last answer makes the side ready, and we are in its list */
    weft__lock_take(&u->lock);
    uint32_t which = wants(u, us, side, bits);
    if (!us->closed && !u->down && !(asked(us) & which)) {
        if (which == WEFT__URING_FETCH)
            stop(u, us, WEFT__URING_POLL_READ); /* it would report the same again */
        ask(u, us, which);
        hand_in(port, u);
    }
    weft__lock_drop(&u->lock);
}

static bool uring_direct(struct weft__fdslot *slot)
{
    struct weft__port *port = slot->port;
    struct weft__uring *u = uring_of(port);
    struct weft__uring_slot *us = more_of(slot);

    store_relaxed(&us->by_calls, true); /* relaxed: the reader's own, and who arms is he */
    if (!(asked(us) & WEFT__URING_FETCH) && !load_relaxed(&us->holds))
        return true; /* relaxed: only he asks for more, and what was asked for is seen */
    weft__lock_take(&u->lock);
    stop(u, us, WEFT__URING_FETCH);
    if (us->to_cancel && !u->down) submit_now(port, u, us);
    bool direct = !(asked(us) & WEFT__URING_FETCH) && !us->count && !us->error;
    weft__lock_drop(&u->lock);
    return direct;
}

/* What FETCH has brought, or will bring; -ENOENT: it is not there, and the fd is the caller's. */
static ssize_t take_fetched(struct weft__fdslot *slot, const struct weft__take *what, uint64_t seen)
{
    struct weft__uring *u = uring_of(slot->port);
    struct weft__uring_slot *us = more_of(slot);

    weft__lock_take(&u->lock);
    ssize_t r = weft__uring_give(u, us, what);
    bool dry = !us->count && !us->fds_count && !us->error;
    bool comes = asked(us) & WEFT__URING_FETCH;
    bool closed = us->closed;
    weft__lock_drop(&u->lock);
    if (r == -EAGAIN && !comes && !closed) return -ENOENT;
    if (dry && comes) weft__fdslot_clear(slot, seen, WEFT__READY_READ | WEFT__READY_READ_END);
    return r;
}

static bool is_fetched(const struct weft__take *what)
{
    return what->kind == WEFT__TAKE_RECV || what->kind == WEFT__TAKE_PEEK ||
           what->kind == WEFT__TAKE_ACCEPT;
}

/* The look comes first: what is fetched behind it changes the tick, so that a call which found nothing because of that clears nothing. */
static ssize_t uring_take(struct weft__fdslot *slot, const struct weft__take *what)
{
    struct weft__uring_slot *us = more_of(slot);
    uint64_t seen = weft__fdslot_look(slot);
    bool fetched = slot->shape != WEFT__SHAPE_ANY && is_fetched(what);
    /* relaxed: read behind `asked`; what this reader has not seen of it comes with an event */
    if (fetched && ((asked(us) & WEFT__URING_FETCH) || load_relaxed(&us->holds))) {
        ssize_t r = take_fetched(slot, what, seen);
        if (r != -ENOENT) return r;
    }
    ssize_t r = weft__take_seen(slot, what, seen);
    if (what->kind == WEFT__TAKE_RECV && r > 0)
        store_relaxed(&us->in_bulk, r >= WEFT__URING_BUFFER_BYTES); /* relaxed: a hint */
    return r;
}

const struct weft__driver_ops weft__driver_uring = {
    .name = "io_uring",
    .open = uring_open,
    .close = uring_close,
    .add = uring_add,
    .del = uring_del,
    .wait = uring_wait,
    .deliver = uring_deliver,
    .take = uring_take,
    .has = uring_has,
    .arm = uring_arm,
    .direct = uring_direct,
    .let_go = uring_let_go,
    .free = uring_free,
};
