/* SPDX-License-Identifier: MIT
 *
 * uring_send - sends that are handed in together: one system call for those of many tasks.
 *
 * A call of its own for each costs more than the call: on its way out the kernel does whatever has come for the ring meanwhile, one
 * by one, where one entry would do a batch (measured: 0.7 us a request of 6). So the worker whose port it is notes its small
 * sends, and submits them when it comes by, with all else.
 *     NONE -> ASKED        [send]     the buffer stays the caller's frame's: it waits
 *     ASKED -> KERNEL      [flush]    done within the submit: MSG_DONTWAIT, so that the kernel keeps nothing
 *     KERNEL -> ANSWERED   [answer]   the side is ready; `asked` is clear
 *     ANSWERED -> NONE     [send]     by the same writer, which takes it for what its try has brought
 *     ASKED -> NONE        [unsend; close]    the kernel never sees the buffer
 *     KERNEL -> NONE       [unsend]   the answer is fetched, by whoever gives up: it counts, as that of a call would
 * THE BUFFER is the kernel's only inside of a submit, which is made under the ring's lock. Whoever has that lock, and takes SEND out of
 * `to_submit`, has the buffer for itself.
 * ANSWERS ALONE  It waits until its worker comes by, at the tick at the latest (61 polls), as what is read does; a worker whose polls have been long of late sends by calls. So that who writes ten times in a row does not
 * wait ten times, only the first send behind something that was read is noted; the others are calls.
 * WHAT IT DOES NOT TELL  Whether there is room now: it was made before the look that its taker has made, and an edge that came in between would be cleared away
 * (TICK, slot.h). So a short one leaves the side ready, and one that found no room is made again by a call.
 * NOTHING IS SENT UNTOLD  A loser in a select would be: its answer is dropped. So who is polled among others sends by a call.
 * One writer at a time has entered the slot; `sending` is its own.
 */
#include "driver/take.h"
#include "driver/uring.h"

static void set_sending(struct weft__uring_slot *us, bool sending)
{
    store_relaxed(&us->sending, sending); /* relaxed: the writer's own; others see it behind the word */
}

/* Holds: the ring's lock. -EINPROGRESS: it is in the kernel's queue of answers; -EINTR: it was not made. */
static ssize_t take_answer(struct weft__uring_slot *us)
{
    if (!us->has_sent) return weft__uring_asked(us) & WEFT__URING_SEND ? -EINPROGRESS : -EINTR;
    us->has_sent = false;
    return us->sent;
}

/* Holds: the ring's lock. By the worker whose port it is, and while there is one: it comes by before it sleeps. Not by one whose polls are long: an answer
 * that is ready would wait for those of sixty others. */
static bool may_note(const struct weft__uring *u, const struct weft__uring_slot *us)
{
    const struct weft__port *port = us->slot->port;
    if (us->closed || u->down) return false; /* its runtime may be gone */
    if (!load_relaxed(&us->heard)) return false; /* relaxed: a hint */
    if (weft__uring_asked(us) & WEFT__URING_EPOLL) return false;
    return port->driver->home(port->driver, port->index) == WEFT__HOME_SOON;
}

/* False: it is to be made by a call. */
static bool note_send(struct weft__uring *u, struct weft__uring_slot *us,
                      const struct weft__take *what)
{
    weft__uring_lock(u);
    bool may = may_note(u, us);
    if (may) {
        us->send_from = what->iov->iov_base;
        us->send_bytes = (uint32_t)what->bytes;
        set_sending(us, true);
        store_relaxed(&us->heard, false); /* relaxed: a hint */
        weft__uring_ask(u, us, WEFT__URING_SEND);
        weft__uring_count_send(u, us);
    }
    weft__uring_unlock(u);
    return may;
}

/* Its answer makes the side ready. */
static ssize_t is_under_way(struct weft__lesson *lesson)
{
    lesson->bits = weft__ready_bits(WEFT__SIDE_WRITE);
    return -EAGAIN;
}

/* One was handed in. -EAGAIN if it is under way still: the side is ready again when it is answered. One that found no room, or was interrupted, or dropped since
 * the port is down, is made once more, by a call. */
static ssize_t take_sent(struct weft__fdslot *slot, struct weft__uring *u,
                         const struct weft__take *what, struct weft__lesson *lesson)
{
    struct weft__uring_slot *us = weft__uring_more_of(slot);

    weft__uring_lock(u);
    ssize_t r = take_answer(us);
    weft__uring_unlock(u);
    if (r == -EINPROGRESS) return is_under_way(lesson);
    set_sending(us, false);
    if (r == -EAGAIN || r == -EINTR) return weft__take_direct(slot, what, lesson);
    lesson->bits = 0;
    return r;
}

ssize_t weft__uring_send(struct weft__fdslot *slot, const struct weft__take *what,
                         struct weft__lesson *lesson)
{
    struct weft__uring *u = slot->port->own;
    struct weft__uring_slot *us = weft__uring_more_of(slot);

    if (weft__uring_is_sending(us)) return take_sent(slot, u, what, lesson);
    bool soon = what->kind == WEFT__TAKE_SEND_SOON && what->bytes <= WEFT__URING_SEND_BYTES;
    if (!soon || !note_send(u, us, what)) return weft__take_direct(slot, what, lesson);
    return is_under_way(lesson);
}

/* Holds: the ring's lock. */
static ssize_t take_it_back(struct weft__uring *u, struct weft__uring_slot *us)
{
    if (us->to_submit & WEFT__URING_SEND) weft__uring_stop(u, us, WEFT__URING_SEND);
    return take_answer(us);
}

/* It was noted as not ready while one was under way, and no event says that it is. */
static void is_ready_again(struct weft__fdslot *slot)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    uint64_t word = weft__fdslot_look(slot);
    weft__fdslot_ready(slot, weft__fdslot_generation(word), WEFT__READY_WRITE, &chain);
    weft__wake_chain_push(&chain, &weft__sched);
}

ssize_t weft__uring_unsend(struct weft__fdslot *slot)
{
    struct weft__port *port = slot->port;
    struct weft__uring *u = port->own;
    struct weft__uring_slot *us = weft__uring_more_of(slot);

    if (!weft__uring_is_sending(us)) return -EAGAIN;
    for (;;) { /* its answer is there, behind others perhaps: each round fetches some */
        weft__uring_lock(u);
        ssize_t r = take_it_back(u, us);
        weft__uring_unlock(u);
        if (r != -EINPROGRESS) {
            set_sending(us, false);
            if (r != -EAGAIN && r != -EINTR) return r;
            is_ready_again(slot);
            return -EAGAIN;
        }
        (void)weft__port_turn(port, WEFT__EVENTS_MAX, false);
    }
}
