/* SPDX-License-Identifier: MIT
 *
 * delay - a delay queue: a heap of deadlines (flow/delays.h), who waits for them, and one of these who watches the clock.
 *
 * THE LEADER  Of those who wait one has a timer, for the earliest deadline; the others only wait. So a thousand waiters are one timer.
 *     there are items and somebody waits  =>  there is a leader, or somebody has a turn to become it
 *     the leader's timer is for the earliest deadline or an earlier one, or the leader has a turn to move it
 * Whoever stops waiting, with an item, at the end or given up, and leaves no leader behind, gives the next one a turn. An item that comes before all
 * others gives the leader a turn; the first item of all gives one to whoever waits first.
 *
 *     weft__at == 0        not begun
 *     weft__at == WAITS    queued, or given a turn; the leader is the one that the queue names
 * A waiting leaf: given up, it takes its timer out, leaves the queue, passes its turn on, and settles at once.
 *
 * Threads: any. LOCK ORDER: its wait list alone; timers are armed and taken out with no lock held, and memory is asked for likewise.
 * Rejected: a timer for each waiter (all of them wake for each item); one for the queue, on no task (who would be polled by it?).
 */
#include "base/alloc.h"
#include "flow/delays.h"
#include "sync/leaf.h"
#include "task/call.h"
#include "time/keeper.h"

#include <weft/delay.h>

#include <errno.h>

/* Items that a queue has room for at first. */
#define FIRST_ROOM UINT32_C(16)

#define ITEM_BYTES_MAX ((size_t)1 << 20)

struct delay {
    struct weft__waitlist list;     /* the lock; who waits */
    struct weft__delays items;      /*                                [lock] */
    struct weft_delay_next *leader; /* who has the timer; NULL: none  [lock] */
    bool closed;                    /*                                [lock] */
};

static struct delay *delay_of(const void *queue)
{
    return (struct delay *)(uintptr_t)queue;
}

/* ---- holds: the lock -------------------------------------------------------------------------- */

static int64_t earliest(const struct delay *q)
{
    return q->items.count > 0 ? q->items.heap[0].when : WEFT_FOREVER;
}

static void give_turn(struct delay *q, struct weft__wake_chain *chain)
{
    (void)weft__waitlist_give_turn(&q->list, chain);
}

/* It has to move its timer; unless it is about to look anyway. */
static void tell_leader(struct delay *q, struct weft__wake_chain *chain)
{
    struct weft__waiter *waiter = WEFT__LEAF_WAITER(q->leader);

    if (!weft__waiter_queued(&q->list, waiter)) return;
    weft__list_remove(&waiter->link);
    weft__list_push_front(&q->list.head, &waiter->link);
    give_turn(q, chain);
}

/* The earliest deadline was `before`. */
static void tell_of_change(struct delay *q, int64_t before, struct weft__wake_chain *chain)
{
    if (earliest(q) >= before) return;
    if (q->leader) {
        tell_leader(q, chain);
    } else {
        give_turn(q, chain);
    }
}

/* 1: it is in *into; 0: the end; -EAGAIN: none is due. */
static int take(struct delay *q, int64_t now, void *into)
{
    if (q->items.count == 0) return q->closed ? 0 : -EAGAIN;
    if (q->items.heap[0].when > now) return -EAGAIN;
    weft__delays_remove(&q->items, q->items.heap[0].slot, into);
    return 1;
}

/* Something is gone, or somebody: who is left has a leader, or gets a turn to become it; or hears of the end, and tells the next. */
static void tell_rest(struct delay *q, struct weft__wake_chain *chain)
{
    bool at_end = q->closed && q->items.count == 0;

    if (q->leader) {
        if (at_end) tell_leader(q, chain);
    } else if (at_end || q->items.count > 0) {
        give_turn(q, chain);
    }
}

/* ---- making, ending --------------------------------------------------------------------------- */

int weft_delay_new_sized(size_t item_bytes, weft_delay **into)
{
    if (!into || item_bytes == 0 || item_bytes > ITEM_BYTES_MAX) return -EINVAL;

    struct delay *q = weft__alloc(sizeof(*q));
    if (!q) return -ENOMEM;
    weft__waitlist_init(&q->list);
    weft__delays_init(&q->items, item_bytes);
    *into = (weft_delay *)(void *)q;
    return 0;
}

void weft__delay_free(weft_delay *queue)
{
    if (!queue) return;
    struct delay *q = delay_of(queue);
    weft__waitlist_lock(&q->list);
    bool somebody_waits_for_an_item = !weft__waitlist_empty(&q->list) || q->leader;
    weft__waitlist_unlock(&q->list);
    weft_assert(!somebody_waits_for_an_item);
    weft__waitlist_done(&q->list);
    weft__free(q->items.heap);
    weft__free(q);
}

int weft__delay_close(weft_delay *queue)
{
    if (!queue) return -EINVAL;
    struct delay *q = delay_of(queue);
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    weft__waitlist_lock(&q->list);
    bool was = q->closed;
    q->closed = true;
    tell_rest(q, &chain);
    weft__waitlist_unlock_push(&q->list, &chain, &weft__sched);
    return was ? -EALREADY : 0;
}

/* ---- in --------------------------------------------------------------------------------------- */

/* Holds: the lock, but while it asks for memory. 0; -ENOMEM. */
static int make_room(struct delay *q)
{
    while (weft__delays_full(&q->items)) {
        uint32_t capacity = q->items.capacity > 0 ? q->items.capacity * 2 : FIRST_ROOM;
        size_t bytes = weft__delays_block_bytes(&q->items, capacity);
        weft__waitlist_unlock(&q->list);
        void *block = bytes > 0 ? weft__alloc(bytes) : NULL;
        weft__waitlist_lock(&q->list);
        if (!block) return -ENOMEM;
        if (q->items.capacity < capacity) block = weft__delays_grow(&q->items, block, capacity);
        weft__waitlist_unlock(
            &q->list); /* what is left of it: the old one, or the one that was not needed */
        weft__free(block);
        weft__waitlist_lock(&q->list);
    }
    return 0;
}

int weft__delay_insert_at(weft_delay *queue, const void *item, weft_time at, weft_delay_key *key)
{
    if (!queue || !item) return -EINVAL;
    struct delay *q = delay_of(queue);
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    weft__waitlist_lock(&q->list);
    int r = make_room(q);
    if (r == 0 && q->closed) r = -EPIPE;
    if (r == 0) {
        int64_t before = earliest(q);
        uint64_t found_by = weft__delays_insert(&q->items, item, at);
        if (key) key->weft__key = found_by;
        tell_of_change(q, before, &chain);
    }
    weft__waitlist_unlock_push(&q->list, &chain, &weft__sched);
    return r;
}

int weft__delay_insert(weft_delay *queue, const void *item, weft_time ns, weft_delay_key *key)
{
    return weft__delay_insert_at(queue, item, weft_later(weft_now(), ns > 0 ? ns : 0), key);
}

int weft__delay_reset_at(weft_delay *queue, weft_delay_key key, weft_time at)
{
    if (!queue) return -EINVAL;
    struct delay *q = delay_of(queue);
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    weft__waitlist_lock(&q->list);
    uint32_t slot = weft__delays_find(&q->items, key.weft__key);
    if (slot != WEFT__DELAY_NONE) {
        int64_t before = earliest(q);
        weft__delays_move(&q->items, slot, at);
        tell_of_change(q, before, &chain);
    }
    weft__waitlist_unlock_push(&q->list, &chain, &weft__sched);
    return slot == WEFT__DELAY_NONE ? -ENOENT : 0;
}

int weft__delay_reset(weft_delay *queue, weft_delay_key key, weft_time ns)
{
    return weft__delay_reset_at(queue, key, weft_later(weft_now(), ns > 0 ? ns : 0));
}

int weft__delay_remove(weft_delay *queue, weft_delay_key key, void *into)
{
    if (!queue) return -EINVAL;
    struct delay *q = delay_of(queue);
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    weft__waitlist_lock(&q->list);
    uint32_t slot = weft__delays_find(&q->items, key.weft__key);
    if (slot != WEFT__DELAY_NONE) {
        weft__delays_remove(&q->items, slot, into);
        tell_rest(q, &chain);
    }
    weft__waitlist_unlock_push(&q->list, &chain, &weft__sched);
    return slot == WEFT__DELAY_NONE ? -ENOENT : 0;
}

int weft__delay_deadline(weft_delay *queue, weft_delay_key key, weft_time *into)
{
    if (!queue || !into) return -EINVAL;
    struct delay *q = delay_of(queue);

    weft__waitlist_lock(&q->list);
    uint32_t slot = weft__delays_find(&q->items, key.weft__key);
    if (slot != WEFT__DELAY_NONE) *into = weft__delays_when(&q->items, slot);
    weft__waitlist_unlock(&q->list);
    return slot == WEFT__DELAY_NONE ? -ENOENT : 0;
}

/* ---- looking ---------------------------------------------------------------------------------- */

int weft__delay_peek(weft_delay *queue, weft_time *into)
{
    if (!queue || !into) return -EINVAL;
    struct delay *q = delay_of(queue);

    weft__waitlist_lock(&q->list);
    int r = q->items.count > 0;
    if (r) *into = earliest(q);
    weft__waitlist_unlock(&q->list);
    return r;
}

size_t weft__delay_len(weft_delay *queue)
{
    if (!queue) return 0;
    struct delay *q = delay_of(queue);
    weft__waitlist_lock(&q->list);
    size_t count = q->items.count;
    weft__waitlist_unlock(&q->list);
    return count;
}

size_t weft__delay_clear(weft_delay *queue)
{
    if (!queue) return 0;
    struct delay *q = delay_of(queue);
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    weft__waitlist_lock(&q->list);
    size_t count = q->items.count;
    weft__delays_clear(&q->items);
    tell_rest(q, &chain);
    weft__waitlist_unlock_push(&q->list, &chain, &weft__sched);
    return count;
}

/* ---- out -------------------------------------------------------------------------------------- */

int weft__delay_try_next(weft_delay *queue, void *into)
{
    if (!queue || !into) return -EINVAL;
    struct delay *q = delay_of(queue);
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    int64_t now = weft_now();

    weft__waitlist_lock(&q->list);
    int r = take(q, now, into);
    if (r > 0) tell_rest(q, &chain);
    weft__waitlist_unlock_push(&q->list, &chain, &weft__sched);
    return r;
}

/* The frame's timer, and what it is for. */
static void timer_off(struct weft_delay_next *f, weft_cx *cx)
{
    if (f->weft__until.weft__at > 0)
        (void)weft__poll_stop(weft_sleep_until_poll, &f->weft__until, cx);
}

/* True: the time has come. */
static bool timer_on(struct weft_delay_next *f, int64_t when, weft_cx *cx)
{
    if (f->weft__until.weft__at <= 0 || f->weft__until.at != when)
        weft_sleep_until_reset(&f->weft__until, when);
    return weft_sleep_until_poll(&f->weft__until, cx) == WEFT_READY;
}

/* Holds: the lock. It waited: out of the queue, and no leader any more. */
static bool stop_waiting(struct weft_delay_next *f, struct delay *q)
{
    if (q->leader == f) q->leader = NULL;
    f->weft__at = 0;
    return weft__waitlist_settle(&q->list, WEFT__LEAF_WAITER(f));
}

/* Holds: the lock. Waits on, in front if it waited before. Answers the time that it leads to, or WEFT_FOREVER. */
static int64_t queue_up(struct weft_delay_next *f, struct delay *q, weft_cx *cx, bool in_front)
{
    struct weft__link *before = in_front ? q->list.head.next : &q->list.head;

    weft__waiter_init(WEFT__LEAF_WAITER(f));
    weft__waitlist_add_before(&q->list, before, WEFT__LEAF_WAITER(f), cx->waker);
    f->weft__at = WEFT__LEAF_WAITS;
    if (q->leader || q->items.count == 0) return WEFT_FOREVER;
    q->leader = f;
    return earliest(q);
}

/* Holds: the lock. Is it one of those who wait, polled for no reason of ours? */
static bool waits_on(const struct weft_delay_next *f, struct delay *q)
{
    return q->leader != f && weft__waiter_queued(&q->list, WEFT__LEAF_WAITER(f));
}

/* One look. -EAGAIN: it waits, and leads to *when, unless that is WEFT_FOREVER. */
static int look(struct weft_delay_next *f, struct delay *q, weft_cx *cx, int64_t *when)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    bool waited = f->weft__at != 0;
    int why = weft_cx_cancelled(cx);
    int64_t now = weft_now();

    *when = WEFT_FOREVER;
    weft__waitlist_lock(&q->list);
    if (waited && !why && waits_on(f, q)) {
        weft__waitlist_unlock(&q->list);
        return -EAGAIN;
    }
    if (waited) (void)stop_waiting(f, q);
    int r = why ? why : take(q, now, f->into);
    if (r != -EAGAIN) {
        tell_rest(q, &chain);
    } else if (!cx->probe) {
        *when = queue_up(f, q, cx, waited);
    }
    weft__waitlist_unlock_push(&q->list, &chain, &weft__sched);
    return r;
}

static weft_poll ends(struct weft_delay_next *f, weft_cx *cx, int ret)
{
    timer_off(f, cx);
    f->ret = ret;
    return WEFT_READY;
}

weft_poll weft_delay_next_poll(void *frame, weft_cx *cx)
{
    struct weft_delay_next *f = frame;
    struct delay *q = delay_of(f->queue);
    int64_t when = WEFT_FOREVER;

    if (!q || !f->into) return ends(f, cx, -EINVAL);
    if (!f->weft__at) {
        if (cx->why && weft__told_yields(cx)) return WEFT_PENDING;
        if (!cx->why && !weft__leaf_may(cx)) return WEFT_PENDING;
        if (!weft__keeper_here()) return ends(f, cx, -ENOMEM);
    }
    do { /* again, if the time has come while the timer was set */
        int r = look(f, q, cx, &when);
        if (r != -EAGAIN) return ends(f, cx, r);
        if (when == WEFT_FOREVER) timer_off(f, cx);
    } while (when != WEFT_FOREVER && timer_on(f, when, cx));
    return WEFT_PENDING;
}

int weft__delay_next(weft_delay *queue, void *into)
{
    struct weft_delay_next f = {.queue = queue, .into = into};
    int r = weft__run_from(weft_delay_next_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}
