/* SPDX-License-Identifier: MIT
 *
 * uring - the verbs on io_uring; the idea is in uring.h.
 */
#include "driver/uring.h"

#include "base/alloc.h"
#include "driver/news.h"
#include "driver/take.h"
#include "sys/epoll.h"
#include "sys/event.h"
#include "sys/fd.h"
#include "sys/futex.h"
#include "sys/socket.h"

#include <string.h>

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif

/* The row of the ring's lock at first (sys/bias.h): some eighty requests. Debug builds lend sooner, so that their tests are about it. */
#if defined(WEFT_DEBUG)
#define ROW_BITS 3
#else
#define ROW_BITS WEFT__BIAS_LENT_BITS
#endif

static struct weft__uring *uring_of(const struct weft__port *port)
{
    return port->own;
}

/* ---- open, close ---- */

/* Every operation that is needed (uring_ask.c) is asked for by its name: no version says what another kernel, or one that was built without, has. Whether an accept or a
 * receive answers more than once cannot be asked for: its first answer tells (refused, uring_fetched.c). */
static int probe_all(const struct weft__ring *ring)
{
    static const uint8_t used[] = {IORING_OP_POLL_ADD, IORING_OP_ASYNC_CANCEL, IORING_OP_ACCEPT,
                                   IORING_OP_RECV, IORING_OP_SEND};
    int r = 0;
    for (size_t i = 0; r == 0 && i < sizeof(used) / sizeof(used[0]); i++)
        r = weft__ring_probe(ring, used[i]);
    return r;
}

/* What it must know: to be woken in its sleep by time, no interrupts for answers and requests of one kind taken back all at once, which came together. */
static int ring_open(struct weft__ring *ring)
{
    int r = weft__ring_open_wide(ring, WEFT__URING_REQUESTS, WEFT__URING_ANSWERS);
    if (r < 0) return r;
    bool fit = ring->coop && (ring->features & IORING_FEAT_EXT_ARG);
    r = fit ? probe_all(ring) : -ENOSYS;
    if (r < 0) weft__ring_close(ring);
    return r;
}

/* Valgrind (3.19) keeps its lock while a thread sleeps in io_uring_enter: no other thread would run. */
static bool is_under_valgrind(void)
{
#if __has_include(<valgrind/valgrind.h>)
    return RUNNING_ON_VALGRIND;
#else
    return false;
#endif
}

int weft__driver_uring_probe(void)
{
    struct weft__ring ring;
    if (is_under_valgrind()) return -EOPNOTSUPP;
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
    u->places = weft__uring_places(port, &u->ring);
    weft__uring_flood_open(port, u);
    port->kernel = u->ring.fd;
    return 0;
}

static int uring_open(struct weft__port *port)
{
    struct weft__uring *u = weft__alloc(sizeof(*u));
    if (!u) return -ENOMEM;
    weft__lock_init(&u->lock, WEFT__RANK_SLOT);
    weft__bias_begin(&u->lock, ROW_BITS, &u->row);
    int r = open_all(port, u);
    if (r < 0) {
        weft__free(u);
        return r;
    }
    port->own = u;
    return 0;
}

static void give_back_free(struct weft__port *port, const struct weft__events *events, bool locked)
{
    for (int i = 0; i < events->count; i++) {
        if (events->room[2 * i + 1] != WEFT__URING_FETCHED_FREE) continue;
        weft__port_give_back(weft__port_slot(port, (uint32_t)(events->room[2 * i] >> 32)), locked);
    }
}

static void ask_for_the_end(struct weft__uring *u)
{
    struct io_uring_sqe *sqe = weft__ring_sqe(&u->ring);
    if (sqe) {
        sqe->opcode = IORING_OP_ASYNC_CANCEL;
        sqe->fd = -1;
        sqe->cancel_flags = IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL;
        sqe->user_data = WEFT__URING_TOKEN_CANCEL_ALL;
    }
    (void)weft__ring_submit(&u->ring);
}

/* What was wanted is not any more: who is left, and waited only to leave its place, goes. */
static void want_nothing(struct weft__uring *u)
{
    while (u->first) {
        struct weft__uring_slot *us = weft__uring_unlist_first(u);
        weft__uring_set_asked(us, weft__uring_asked(us) & ~(uint32_t)us->to_submit);
        us->to_submit = 0;
        us->to_cancel = 0;
        if (!us->left || weft__uring_asked(us)) continue;
        us->left = false;
        weft__port_give_back(us->slot, true);
    }
}

/* Returns how many answers there were. */
static uint32_t fetch_last(struct weft__port *port, struct weft__uring *u)
{
    struct weft__events events = {.count = 0};
    uint32_t count = weft__uring_fetch(port, u, &events, WEFT__EVENTS_MAX);
    want_nothing(u);
    give_back_free(port, &events, true);
    return count;
}

/* The kernel has our buffers, and files, until its last answer: that is waited for. It may need the thread that submitted to look up: a tick. */
static void uring_close(struct weft__port *port)
{
    struct weft__uring *u = uring_of(port);

    weft__uring_lock(u);
    u->down = true;
    want_nothing(u);
    while (u->in_kernel > 0) {
        ask_for_the_end(u);
        do {
            (void)weft__ring_wait(&u->ring, 1000000);
        } while (fetch_last(port, u) > 0 && u->in_kernel > 0);
    }
    weft__ringbuf_stop(&u->buffers, &u->ring);
    if (u->places > 0) weft__ring_table_close(&u->ring);
    weft__ring_close(&u->ring);
    weft__uring_flood_close(u);
    weft__uring_unlock(u);
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

static int make_more(struct weft__uring *u, struct weft__fdslot *slot)
{
    if (!slot->more)
        slot->more = weft__alloc_aligned(sizeof(struct weft__uring_slot), WEFT__CACHE_LINE);
    if (!slot->more) return -ENOMEM;
    weft__uring_lock(u); /* the epoll may still tell of a slot that was closed */
    *weft__uring_more_of(slot) =
        (struct weft__uring_slot){.slot = slot, .token = weft__fdslot_token(slot)};
    weft__uring_unlock(u);
    return 0;
}

static int uring_add(struct weft__port *port, struct weft__fdslot *slot)
{
    struct weft__uring *u = uring_of(port);
    int r = may_watch(u, slot->fd);
    if (r == 0) r = make_more(u, slot);
    if (r == 0) *watched_word(u, slot->fd) |= watched_bit(slot->fd);
    return r;
}

static void uring_del(struct weft__port *port, struct weft__fdslot *slot)
{
    struct weft__uring *u = uring_of(port);
    struct weft__uring_slot *us = weft__uring_more_of(slot);

    *watched_word(u, slot->fd) &= ~watched_bit(slot->fd);
    weft__uring_lock(u);
    us->closed = true;
    weft__uring_leave_place(u, us);
    weft__uring_stop(u, us, WEFT__URING_STOPPABLE);
    weft__uring_drop(u, us);
    if ((us->to_cancel | us->to_submit) && !u->down) weft__uring_submit_now(port, u, us);
    weft__uring_unlock(u);
}

/* The parent's ring, and what is in its table, would be there for as long as this process has it. */
static void uring_lose(struct weft__port *port)
{
    struct weft__uring *u = uring_of(port);
    if (!u) return;
    weft__ring_close(&u->ring);
    weft__uring_flood_close(u);
}

static bool uring_let_go(struct weft__port *port, struct weft__fdslot *slot)
{
    struct weft__uring *u = uring_of(port);
    struct weft__uring_slot *us = weft__uring_more_of(slot);

    weft__uring_lock(u);
    us->closed = true;
    weft__uring_drop(u, us); /* both of a port that was down before it was closed */
    weft__uring_unwatch(u, us);
    bool gone = !weft__uring_asked(us);
    if (gone && us->listed) weft__uring_unlist(u, us);
    us->left = !gone;
    weft__uring_unlock(u);
    return gone;
}

/* ---- wait, deliver ---- */

/* What both have: half of it is the epoll's. */
static void fetch(struct weft__port *port, struct weft__uring *u, struct weft__events *into, uint32_t most)
{
    (void)weft__uring_fetch(port, u, into, weft__uring_must_look(u) ? most - most / 2 : most);
    weft__uring_look(port, u, into, most);
}

static void come_by(struct weft__port *port, struct weft__uring *u, struct weft__events *into,
                    uint32_t most, bool sleeps)
{
    weft__uring_lock(u);
    weft__uring_flush(port, u, sleeps);
    bool watched = load_relaxed(&u->event_asked); /* relaxed, all: under the lock */
    bool guarded = load_relaxed(&u->epoll_asked);
    fetch(port, u, into, most);
    bool unwatched = watched && !load_relaxed(&u->event_asked);
    if (guarded && !load_relaxed(&u->epoll_asked) && !weft__uring_at_home(port, u))
        (void)weft__event_signal(port->event); /* its worker asks again, before it sleeps */
    /* Who holds enough is stopped before more comes. And the event's request may have ended while
     * its worker, who saw it there, is about to sleep upon it: asked for again, by whoever is here,
     * it answers at once if there was a signal. */
    weft__uring_flush(port, u, sleeps || unwatched);
    weft__uring_unlock(u);
}

static bool has_something(const struct weft__uring *u)
{
    /* relaxed: a hint; who wants something is at home, or has flushed */
    return load_relaxed(&u->pending) || weft__ring_due(&u->ring) || weft__uring_must_look(u);
}

/* Would something come that nobody in the ring heard of? */
static bool is_unguarded(const struct weft__uring *u)
{
    /* relaxed, all: written by this thread, under the lock, or by one that has just seen to it */
    return !load_relaxed(&u->event_asked) || (load_relaxed(&u->in_epoll) > 0 && !load_relaxed(&u->epoll_asked));
}

/* What the kernel would not take is tried again soon. */
static int64_t sleep_for(const struct weft__uring *u, int64_t timeout_ns)
{
    bool all = !load_relaxed(&u->pending) && !is_unguarded(u); /* relaxed: as there */
    return all || timeout_ns < WEFT__URING_AGAIN_NS ? timeout_ns : WEFT__URING_AGAIN_NS;
}

static int uring_wait(struct weft__port *port, struct weft__events *into, uint32_t most,
                      int64_t timeout_ns)
{
    struct weft__uring *u = uring_of(port);
    bool sleeps = timeout_ns != 0;

    into->count = 0;
    into->full = false;
    /* relaxed: a hint, as above */
    if (has_something(u)) come_by(port, u, into, most, false);
    if (into->count > 0 || !sleeps) return into->count;
    if (is_unguarded(u)) come_by(port, u, into, most, true);
    if (into->count > 0) return into->count;
    int r = weft__ring_wait(&u->ring, sleep_for(u, timeout_ns));
    /* -EBADR: the kernel had an answer more than places, and no memory to keep it by. What it carried is gone, be it bytes that were taken from a socket, a
     * connection, or the last word of a request that now counts as there for ever: a stream would go on with a hole in it. So this ends the process, as a heap
     * that cannot be trusted does. It takes WEFT__URING_ANSWERS answers unfetched and a small allocation of the kernel's that fails. -EINVAL: a kernel that the probe has refused. */
    weft_assert(r == 0);
    if (has_something(u)) come_by(port, u, into, most, false);
    return into->count;
}

static uint32_t uring_deliver(struct weft__port *port, const struct weft__events *events, bool own)
{
    struct weft__news news;
    bool frees = false;
    weft__news_begin(&news, port);
    for (int i = 0; i < events->count; i++) {
        uint64_t what = events->room[2 * i + 1];
        if (what == WEFT__URING_FETCHED_FREE)
            frees = true;
        else if (what != WEFT__URING_FETCHED_EVENT)
            weft__news_add(&news, events->room[2 * i], what);
        else if (!own)
            weft__port_pass_on(port);
    }
    uint32_t woken = weft__news_end(&news);
    if (frees) give_back_free(port, events, false);
    return woken;
}

static bool uring_has(struct weft__port *port)
{
    if (!load_acquire(&port->open)) return false; /* [port-open] with open_port */
    const struct weft__uring *u = uring_of(port);
    if (load_relaxed(&u->pending) || weft__ring_has(&u->ring)) return true; /* relaxed: a hint */
    return weft__uring_must_look(u) && weft__fd_ready(u->epoll, WEFT__FD_IN) > 0;
}

static bool uring_behind(const struct weft__port *port)
{
    if (!load_acquire(&port->open)) return false; /* [port-open] with open_port */
    const struct weft__uring *u = uring_of(port);
    return load_relaxed(&u->pending); /* relaxed: whoever leaves something behind the look stirs */
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
    uint32_t there = weft__uring_asked(us) & (WEFT__URING_FETCH | WEFT__URING_EPOLL); /* one of them at most */
    if (there) return there;
    if (weft__uring_may_watch(u, us)) return WEFT__URING_EPOLL;
    return may_fetch(u, us) ? WEFT__URING_FETCH : WEFT__URING_POLL_READ;
}

static void uring_arm(struct weft__fdslot *slot, enum weft__side side, uint64_t bits)
{
    struct weft__port *port = slot->port;
    struct weft__uring *u = uring_of(port);
    struct weft__uring_slot *us = weft__uring_more_of(slot);

    if (load_relaxed(&slot->direct)) return; /* relaxed: see there */
    if (side == WEFT__SIDE_WRITE && weft__uring_is_sending(us))
        return; /* its answer makes the side ready, or has */
    if (weft__uring_asked(us) & wants(u, us, side, bits))
        return; /* a hint: its last answer makes the side ready, and we are in its list */
    weft__uring_lock(u);
    uint32_t which = wants(u, us, side, bits);
    if (!us->closed && !u->down && !(weft__uring_asked(us) & which)) {
        if (which == WEFT__URING_FETCH)
            weft__uring_stop(u, us, WEFT__URING_POLL_READ); /* it would report the same again */
        if (which == WEFT__URING_EPOLL && !weft__uring_watch(u, us)) which = WEFT__URING_POLL_READ;
        if (!(weft__uring_asked(us) & which)) weft__uring_ask(u, us, which);
        bool unheard = which == WEFT__URING_EPOLL && !load_relaxed(&u->epoll_asked); /* relaxed: under the lock */
        if (us->listed || unheard) weft__uring_hand_in(port, u);
    }
    weft__uring_unlock(u);
}

static bool uring_direct(struct weft__fdslot *slot)
{
    struct weft__port *port = slot->port;
    struct weft__uring *u = uring_of(port);
    struct weft__uring_slot *us = weft__uring_more_of(slot);

    store_relaxed(&us->by_calls, true); /* relaxed: the reader's own, and who arms is he */
    if (!(weft__uring_asked(us) & WEFT__URING_FETCH) && !load_relaxed(&us->holds))
        return true; /* relaxed: only he asks for more, and what was asked for is seen */
    weft__uring_lock(u);
    weft__uring_stop(u, us, WEFT__URING_FETCH);
    if (us->to_cancel && !u->down) weft__uring_submit_now(port, u, us);
    bool direct = !(weft__uring_asked(us) & WEFT__URING_FETCH) && !us->count && !us->error;
    weft__uring_unlock(u);
    return direct;
}

/* What FETCH has brought, or will bring; -ENOENT: it is not there, and the fd is the caller's. */
static ssize_t take_fetched(struct weft__fdslot *slot, const struct weft__take *what,
                            struct weft__lesson *lesson)
{
    struct weft__uring *u = uring_of(slot->port);
    struct weft__uring_slot *us = weft__uring_more_of(slot);

    weft__uring_lock(u);
    ssize_t r = weft__uring_give(u, us, what);
    bool dry = !us->count && !us->fds_count && !us->error;
    bool comes = weft__uring_asked(us) & WEFT__URING_FETCH;
    bool closed = us->closed;
    weft__uring_unlock(u);
    if (r == -EAGAIN && !comes && !closed) return -ENOENT;
    lesson->bits = dry && comes ? weft__ready_bits(WEFT__SIDE_READ) : 0;
    return r;
}

static bool is_fetched(const struct weft__take *what)
{
    return what->kind == WEFT__TAKE_RECV || what->kind == WEFT__TAKE_PEEK ||
           what->kind == WEFT__TAKE_ACCEPT;
}

/* The look comes first: what is fetched behind it changes the tick, so that a call which found nothing because of that clears nothing. */
static ssize_t take_in(struct weft__fdslot *slot, const struct weft__take *what,
                       struct weft__lesson *lesson)
{
    struct weft__uring_slot *us = weft__uring_more_of(slot);
    bool fetched = slot->shape != WEFT__SHAPE_ANY && is_fetched(what);
    /* relaxed: read behind `asked`; what this reader has not seen of it comes with an event */
    if (fetched && ((weft__uring_asked(us) & WEFT__URING_FETCH) || load_relaxed(&us->holds))) {
        ssize_t r = take_fetched(slot, what, lesson);
        if (r != -ENOENT) return r;
    }
    ssize_t r = weft__take_direct(slot, what, lesson);
    if (what->kind == WEFT__TAKE_RECV && r > 0)
        /* relaxed, both: hints */
        store_relaxed(&us->in_bulk, r >= WEFT__URING_BUFFER_BYTES || load_relaxed(&uring_of(slot->port)->flood));
    return r;
}

static ssize_t uring_take(struct weft__fdslot *slot, const struct weft__take *what,
                          struct weft__lesson *lesson)
{
    if (what->kind == WEFT__TAKE_SEND || what->kind == WEFT__TAKE_SEND_SOON)
        return weft__uring_send(slot, what, lesson);
    ssize_t r = take_in(slot, what, lesson);
    if (r > 0 && (what->kind == WEFT__TAKE_RECV || what->kind == WEFT__TAKE_RECV_UNIX))
        store_relaxed(&weft__uring_more_of(slot)->heard, true); /* relaxed: a hint */
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
    .behind = uring_behind,
    .arm = uring_arm,
    .direct = uring_direct,
    .unsend = weft__uring_unsend,
    .let_go = uring_let_go,
    .lose = uring_lose,
    .free = uring_free,
};
