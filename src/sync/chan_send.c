/* SPDX-License-Identifier: MIT
 *
 * chan_send - the sending side: send, try, reserve and permits. The idea is in chan.h.
 *
 *     weft__at == 0    not begun
 *     weft__at == 1    queued among the senders, or given a turn
 * A waiting leaf: given up, it leaves the queue and settles at once. `msg` is NULL for a reserve: it takes the place and
 * puts nothing there.
 */
#include "sync/chan.h"

#include "base/alloc.h"

#include <errno.h>

_Static_assert(sizeof(struct weft_send) == sizeof(struct weft_reserve), "they share a poll");
_Static_assert(offsetof(struct weft_send, weft__waiter) ==
                   offsetof(struct weft_reserve, weft__waiter),
               "as above");
_Static_assert(offsetof(struct weft_send, msg) == offsetof(struct weft_reserve, weft__none),
               "as above");
_Static_assert(sizeof(((struct weft_send *)0)->weft__waiter) == sizeof(struct weft__waiter),
               "a waiter fits its place");

static struct weft__waiter *waiter_of(struct weft_send *f)
{
    return (void *)f->weft__waiter;
}

static weft_poll answers(struct weft_send *f, int ret)
{
    f->weft__at = 0;
    f->ret = ret;
    return WEFT_READY;
}

/* ---- holds: the sending side ----------------------------------------------------------------- */

/* A block more. The address of the next one lies behind the last place of each. */
static __attribute__((noinline)) bool grow(struct weft__chan *c)
{
    char *block = weft__alloc(c->block_bytes + sizeof(char *));
    if (!block) return false;
    *(char **)(void *)c->tail_end = block;
    c->tail_slot = block;
    c->tail_end = block + c->block_bytes;
    c->room = c->block_bytes / c->slot_bytes;
    return true;
}

/* Is there a place? What is known of the other side may be old. */
static bool find_room(struct weft__chan *c)
{
    if (__builtin_expect(c->room > 0, 1)) return true;
    if (c->kind == WEFT_CHAN_UNBOUNDED) return grow(c);
    if (c->capacity == 0) return false;
    /* [chan-head] with taken: the places' last readers are done */
    c->room = weft__chan_free_room(c, load_acquire(&c->head));
    return c->room > 0;
}

/* Into the place that was found, or reserved. */
static void put(struct weft__chan *c, const void *msg)
{
    /* an unbounded one never comes here: grow was before */
    if (c->tail_slot == c->tail_end) c->tail_slot = c->ring;
    weft__chan_copy_in(c, c->tail_slot, msg);
    c->tail_slot += c->slot_bytes;
    uint64_t tail = load_relaxed(&c->tail); /* relaxed: written under the lock that is held */
    store_release(&c->tail, tail + 1);      /* [chan-tail] with look: publishes the message */
}

static void use_place(struct weft__chan *c, const void *msg)
{
    if (msg) {
        put(c, msg);
    } else {
        c->reserved++;
    }
}

static void take_place(struct weft__chan *c, const void *msg)
{
    c->room--;
    use_place(c, msg);
}

/* Drops the lock. */
static void unlock_wake_receiver(struct weft__chan *c)
{
    if (__builtin_expect(weft__waitlist_empty(&c->receivers), 1)) {
        weft__chan_unlock_send(c);
    } else {
        weft__waitlist_unlock_wake_first(&c->receivers, &weft__sched);
    }
}

/* ---- holds: both sides, and drops them ------------------------------------------------------- */

/* It has its place. Who waits for what it brought, or for what it left, is woken. */
static void settle_place(struct weft__chan *c, const void *msg)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    bool last = c->kind == WEFT_CHAN_ONESHOT || ((c->gate & WEFT__CHAN_CLOSED) && c->reserved == 0);

    if (msg && last) {
        /* for all who wait this message is the end; in one go: who receives may free the channel */
        (void)weft__chan_shut(c, UINT32_MAX, &chain);
    } else if (msg) {
        (void)weft__waitlist_give_turn(&c->receivers, &chain);
    }
    weft__chan_admit(c, &chain);
    weft__chan_unlock_both(c, &chain);
}

/* A sender leaves the queue, or comes for its turn: its place is free, until the locks are dropped for nobody else. */
static void leave(struct weft__chan *c, struct weft_send *f)
{
    if (weft__waitlist_settle(&c->senders, waiter_of(f))) {
        c->turns--;
    } else {
        c->gate -= WEFT__CHAN_PENDING;
    }
}

static void unlock_admit(struct weft__chan *c)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    weft__chan_admit(c, &chain);
    weft__chan_unlock_both(c, &chain);
}

/* Joins the queue. Of a rendezvous a receiver is told to look. */
static weft_poll queue(struct weft__chan *c, struct weft_send *f, weft_cx *cx)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    weft__waiter_init(waiter_of(f));
    weft__waitlist_add(&c->senders, waiter_of(f), cx->waker);
    c->gate += WEFT__CHAN_PENDING;
    f->weft__at = 1;
    f->ret = 0;
    if (c->capacity == 0) (void)weft__waitlist_give_turn(&c->receivers, &chain);
    weft__chan_unlock_both(c, &chain);
    return WEFT_PENDING;
}

/* ---- begin, go on, give up ------------------------------------------------------------------- */

/* 0: sent; -EPIPE; -ENOMEM; -EAGAIN: it must wait. holds: both, and drops them unless it is -EAGAIN. */
static int send_now(struct weft__chan *c, const void *msg)
{
    int r = -EAGAIN;

    if (c->gate & WEFT__CHAN_CLOSED) {
        r = -EPIPE;
    } else if (c->gate < WEFT__CHAN_PENDING && find_room(c)) {
        take_place(c, msg);
        settle_place(c, msg);
        return 0;
    } else if (c->kind == WEFT_CHAN_UNBOUNDED) {
        r = -ENOMEM;
    }
    if (r != -EAGAIN) unlock_admit(c);
    return r;
}

/* holds: the sending side. It found the gate shut, or no room. */
static __attribute__((noinline)) weft_poll begins_slow(struct weft__chan *c, struct weft_send *f,
                                                       weft_cx *cx)
{
    weft__chan_unlock_send(c);
    weft__chan_lock_both(c);
    int r = send_now(c, f->msg);
    if (r != -EAGAIN) return answers(f, r);
    if (!cx->probe) return queue(c, f, cx);
    unlock_admit(c);
    return WEFT_PENDING;
}

/* holds: both. It has a turn, hence a place; or the channel was closed. */
static weft_poll uses_turn(struct weft__chan *c, struct weft_send *f)
{
    bool taken = f->ret == WEFT__SEND_TAKEN;

    leave(c, f);
    if (taken || (c->gate & WEFT__CHAN_CLOSED)) {
        unlock_admit(c);
        return answers(f, taken ? 0 : -EPIPE);
    }
    /* relaxed: under the locks */
    weft_assert(weft__chan_free_room(c, load_relaxed(&c->head)) > 0); /* its turn was a place */
    use_place(c, f->msg);
    settle_place(c, f->msg);
    return answers(f, 0);
}

static weft_poll goes_on(struct weft__chan *c, struct weft_send *f, weft_cx *cx)
{
    weft__chan_lock_both(c);
    bool taken = f->ret == WEFT__SEND_TAKEN;
    if (cx->why && !taken) {
        leave(c, f);
        unlock_admit(c);
        return answers(f, weft_cx_cancelled(cx));
    }
    if (weft__waiter_has_turn(&c->senders, waiter_of(f))) return uses_turn(c, f);
    unlock_admit(c);
    return WEFT_PENDING;
}

/* Apart from the poll, so that it saves few registers. */
static __attribute__((noinline)) weft_poll poll_slow(struct weft_send *f, weft_cx *cx)
{
    if (!f->chan) return answers(f, -EINVAL);
    if (f->weft__at) return goes_on(weft__chan_of(f->chan), f, cx);
    if (cx->why) return answers(f, weft_cx_cancelled(cx));
    cx->yielded = true; /* no budget is left: others first */
    return WEFT_PENDING;
}

static inline weft_poll send_poll(struct weft_send *f, weft_cx *cx)
{
    struct weft__chan *c = weft__chan_of(f->chan);

    if (__builtin_expect(!c || f->weft__at || cx->why || cx->budget == 0, 0))
        return poll_slow(f, cx);
    (void)weft__chan_charge(cx);
    weft__chan_lock_send(c);
    if (__builtin_expect(c->gate != 0 || !find_room(c), 0)) return begins_slow(c, f, cx);
    take_place(c, f->msg);
    unlock_wake_receiver(c);
    f->ret = 0;
    return WEFT_READY;
}

weft_poll weft_send_poll(void *frame, weft_cx *cx)
{
    struct weft_send *f = frame;
    if (!f->msg) return answers(f, -EINVAL);
    return send_poll(f, cx);
}

/* ---- reserve --------------------------------------------------------------------------------- */

static bool has_places(const struct weft__chan *c)
{
    return c->kind != WEFT_CHAN_UNBOUNDED && c->capacity > 0;
}

weft_poll weft_reserve_poll(void *frame, weft_cx *cx)
{
    struct weft_send *f = frame;
    if (f->chan && !has_places(f->chan)) return answers(f, -EINVAL);
    f->msg = NULL;
    if (f->weft__at || cx->why || !f->chan) return poll_slow(f, cx);
    if (!weft__chan_charge(cx)) return WEFT_PENDING;
    weft__chan_lock_send(f->chan);
    return begins_slow(f->chan, f, cx); /* takes both sides: no receiver is to be woken */
}

int weft__permit_send(weft_chan *chan, const void *msg)
{
    struct weft__chan *c = weft__chan_of(chan);
    if (!c || !msg) return -EINVAL;

    weft__chan_lock_both(c);
    if (c->reserved == 0) {
        unlock_admit(c);
        return -EINVAL;
    }
    c->reserved--;
    put(c, msg);
    settle_place(c, msg);
    return 0;
}

int weft__permit_drop(weft_chan *chan)
{
    struct weft__chan *c = weft__chan_of(chan);
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    if (!c) return -EINVAL;

    weft__chan_lock_both(c);
    bool had_one = c->reserved > 0;
    if (had_one) {
        c->reserved--;
        /* the end may have come with it, for all who wait for a message */
        if (weft__chan_at_end(c)) (void)weft__chan_shut(c, UINT32_MAX, &chain);
        weft__chan_admit(c, &chain);
    }
    weft__chan_unlock_both(c, &chain);
    return had_one ? 0 : -EINVAL;
}

/* ---- at once --------------------------------------------------------------------------------- */

int weft__try_send(weft_chan *chan, const void *msg)
{
    struct weft__chan *c = weft__chan_of(chan);
    if (!c || !msg) return -EINVAL;

    weft__chan_lock_send(c);
    if (c->gate == 0 && find_room(c)) {
        take_place(c, msg);
        unlock_wake_receiver(c);
        return 0;
    }
    weft__chan_unlock_send(c);
    weft__chan_lock_both(c);
    int r = send_now(c, msg);
    if (r == -EAGAIN) unlock_admit(c);
    return r;
}
