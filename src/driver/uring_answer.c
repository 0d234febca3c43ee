/* SPDX-License-Identifier: MIT
 *
 * uring_answer - what the kernel has answered, from the ring to the slots that it is about; the idea is in uring.h.
 *
 * Under the ring's lock, all of it.
 */
#include "driver/news.h"
#include "driver/take.h"
#include "driver/uring.h"
#include "task/warm.h"

/* ---- one answer ---- */

/* The last answer of a request: the side is to be tried, whatever it said. */
static uint64_t ends(struct weft__uring *u, struct weft__uring_slot *us, uint32_t which)
{
    weft__uring_set_asked(us, weft__uring_asked(us) & ~which);
    us->cancelled &= (uint8_t)~which;
    us->to_cancel &= (uint8_t)~which;
    u->in_kernel--;
    switch (which) {
    case WEFT__URING_PLACE:
    case WEFT__URING_UNPLACE:
        return 0;
    case WEFT__URING_POLL_WRITE:
    case WEFT__URING_SEND:
        return WEFT__READY_WRITE;
    case WEFT__URING_POLL_READ:
        return WEFT__READY_READ | WEFT__READY_URGENT;
    default:
        return WEFT__READY_READ;
    }
}

static uint64_t brought(struct weft__uring *u, struct weft__uring_slot *us, uint32_t which,
                        const struct weft__ring_done *done)
{
    switch (which) {
    case WEFT__URING_FETCH:
        weft__uring_keep(u, us, done);
        if (weft__uring_is_full(us) || weft__uring_may_watch(u, us))
            weft__uring_stop(u, us, WEFT__URING_FETCH); /* that of those who stay would be done on the way out of each call of the others */
        return WEFT__READY_READ;
    case WEFT__URING_SEND:
        us->sent = done->result;
        us->has_sent = true;
        return 0;
    case WEFT__URING_PLACE:
        weft__uring_place_answered(us, done->result);
        return 0;
    case WEFT__URING_UNPLACE:
        return 0;
    default:
        return done->result > 0 ? weft__ready_of((uint32_t)done->result) : 0;
    }
}

/* Returns bits of the slot's word, or WEFT__URING_FETCHED_FREE. */
static uint64_t answered(struct weft__uring *u, struct weft__uring_slot *us, uint32_t which,
                         const struct weft__ring_done *done)
{
    uint64_t bits = brought(u, us, which, done);
    if (!(done->flags & IORING_CQE_F_MORE)) bits |= ends(u, us, which);
    if (!us->closed) return bits;
    return us->left && !weft__uring_asked(us) ? WEFT__URING_FETCHED_FREE : 0;
}

/* A cancel found its request busy: again, if that has not ended meanwhile. Not found, its last answer is here, or behind this; or it was here before, and the slot may be another's by now. */
static void cancel_answered(struct weft__port *port, struct weft__uring *u,
                            const struct weft__ring_done *done)
{
    if (done->result != -EALREADY) return;
    struct weft__uring_slot *us = weft__uring_slot_of_token(port, done->data);
    uint32_t which = done->data & WEFT__URING_ALL;
    if (!(us->cancelled & which)) return;
    us->to_cancel |= (uint8_t)which;
    weft__uring_list_it(u, us);
}

/* ---- fetching ---- */

static void fetch_one(struct weft__port *port, struct weft__uring *u,
                      const struct weft__ring_done *done, struct weft__events *into)
{
    if (done->data == WEFT__URING_TOKEN_CANCEL_ALL) return;
    if (done->data == WEFT__URING_TOKEN_EVENT) {
        if (!(done->flags & IORING_CQE_F_MORE)) {
            store_relaxed(
                &u->event_asked,
                false); /* who sleeps next asks anew, and is told at once if there was a signal  (relaxed: a hint) */
            u->in_kernel--;
        }
        weft__uring_put(into, 0, WEFT__URING_FETCHED_EVENT);
        return;
    }
    if (done->data == WEFT__URING_TOKEN_EPOLL) {
        store_relaxed(&u->epoll_asked, false); /* relaxed: under the lock */
        u->in_kernel--;
        return;
    }
    if (done->data & WEFT__URING_TOKEN_CANCEL) {
        cancel_answered(port, u, done);
        return;
    }
    struct weft__uring_slot *us = weft__uring_slot_of_token(port, done->data);
    uint64_t what = answered(u, us, done->data & WEFT__URING_ALL, done);
    if (what == WEFT__URING_FETCHED_FREE) {
        us->left = false;
        if (us->listed) weft__uring_unlist(u, us);
    }
    if (what) weft__uring_put(into, us->token, what);
}

/* Of a request, and not of its cancel. */
static bool is_of_slot(const struct weft__ring_done *done)
{
    return done->data < WEFT__URING_TOKEN_OWN && !(done->data & WEFT__URING_TOKEN_CANCEL);
}

/* The lines of all that have an answer, before the first is looked at, step by step as news is told (news.h). */
static void warm_answered(struct weft__port *port, const struct weft__ring_done *done, uint32_t count)
{
    if (count < WEFT__NEWS_FEW) return;
    for (uint32_t i = 0; i < count; i++) {
        if (!is_of_slot(&done[i])) continue;
        const struct weft__fdslot *slot = weft__port_slot(port, (uint32_t)(done[i].data >> 8));
        weft__warm_line(slot, 0);
        weft__warm_line(slot, 1);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!is_of_slot(&done[i])) continue;
        const struct weft__uring_slot *us = weft__uring_slot_of_token(port, done[i].data);
        weft__warm_page(us);
        weft__warm_line(us, 1);
    }
}

uint32_t weft__uring_fetch(struct weft__port *port, struct weft__uring *u,
                           struct weft__events *into, uint32_t most)
{
    struct weft__ring_done done[WEFT__EVENTS_MAX];
    if (load_relaxed(&u->flood) && most > WEFT__URING_FLOOD_EVENTS) /* relaxed: a hint */
        most = WEFT__URING_FLOOD_EVENTS;
    uint32_t count = weft__ring_reap(&u->ring, done, most);
    into->full = count == most;
    warm_answered(port, done, count);
    weft__uring_note_flood(u);
    for (uint32_t i = 0; i < count; i++)
        fetch_one(port, u, &done[i], into);
    return count;
}
