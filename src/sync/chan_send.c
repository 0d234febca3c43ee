/* SPDX-License-Identifier: MIT
 *
 * chan_send - the sending side: send, try, reserve and permits. The idea is in chan.h.
 *
 *     weft__at == 0    not begun
 *     weft__at == 1    queued among the senders, or given a turn
 *     weft__at == 3    not begun: it gave way to who held the lock
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

/* An unbounded one whose last block is full. */
static bool wants_block(const struct weft__chan *c)
{
    return c->kind == WEFT_CHAN_UNBOUNDED && c->room == 0 && c->tail_run == 0 && c->gate == 0;
}

/* A block more. The address of the next one lies behind the last place of each. */
static void append(struct weft__chan *c, char *block)
{
    *(char **)(void *)c->tail_slot = block; /* the last one is full: that is its end */
    c->tail_slot = block;
    c->tail_left = c->slots;
    c->room = c->slots;
}

/* Until it has room, by others or by a block that is brought with the lock dropped. False: there is no memory. */
static __attribute__((noinline)) bool grow(struct weft__chan *c)
{
    while (wants_block(c)) {
        weft__chan_unlock_send(c);
        char *block = weft__chan_places_new(c);
        weft__chan_lock_send(c);
        if (!block) return !wants_block(c);
        if (wants_block(c)) {
            append(c, block);
        } else {
            weft__chan_unlock_send(c);
            weft__free(block);
            weft__chan_lock_send(c);
        }
    }
    return true;
}

/* Are there so many places? What is known of the other side may be old. */
static bool find_room(struct weft__chan *c, uint32_t wants)
{
    weft_dassert(c->tail_run == 0);
    if (__builtin_expect(c->room >= wants, 1)) return true;
    if (c->capacity == 0) return false;
    /* [chan-head] with taken: the places' last readers are done */
    c->room = weft__chan_free_room(c, load_acquire(&c->head));
    return c->room >= wants;
}

/* The next place is written. */
static inline void publish(struct weft__chan *c, char *slot, uint32_t slot_bytes)
{
    uint64_t tail = load_relaxed(&c->tail); /* relaxed: written under the lock that is held */
    c->tail_slot = slot + slot_bytes;
    store_release(&c->tail, tail + 1); /* [chan-tail] with look: publishes the message */
}

/* Into the next place, of the run or not. */
static inline void put(struct weft__chan *c, const void *msg)
{
    char *slot = c->tail_slot;
    weft__chan_copy_in(c, slot, msg);
    publish(c, slot, weft__chan_slot_bytes(c));
}

static inline void put_plain(struct weft__chan *c, const void *msg)
{
    char *slot = c->tail_slot;
    weft__chan_copy_word(slot, msg);
    publish(c, slot, 8);
}

/* The run is taken back. There is a place, perhaps at the ring's beginning; a block's end was grown over before. */
static void go_to_place(struct weft__chan *c)
{
    weft_dassert(c->tail_run == 0);
    if (c->tail_left > 0) return;
    c->tail_slot = c->ring;
    c->tail_left = c->slots;
}

/* So many places that were found, or whose turn it is: one for the message, or all for permits. */
static void use_places(struct weft__chan *c, const struct weft_send *f)
{
    if (f->msg) {
        go_to_place(c);
        c->tail_left--;
        put(c, f->msg);
    } else {
        c->reserved += weft__send_wants(f);
    }
}

static void take_places(struct weft__chan *c, const struct weft_send *f)
{
    c->room -= weft__send_wants(f);
    use_places(c, f);
}

/* Nobody is to be woken, and the gate is open: those who come next need not look. */
static void open_run(struct weft__chan *c)
{
    if (c->room == 0) return;
    go_to_place(c);
    c->tail_run = c->room < c->tail_left ? c->room : c->tail_left;
    c->room -= c->tail_run;
    c->tail_left -= c->tail_run;
}

/* Drops the lock. */
static void unlock_wake_receiver(struct weft__chan *c)
{
    if (__builtin_expect(weft__waitlist_empty(&c->receivers), 1)) {
        open_run(c);
        weft__chan_unlock_send(c);
    } else {
        struct weft_waker first = weft__waitlist_claim_first(&c->receivers);
        weft__chan_unlock_send(c);
        weft__waker_push(first, &weft__sched);
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
        c->turns -= weft__send_wants(f);
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

/* A sender has left, with nothing in its place. The last one that a channel waited for, which was freed meanwhile, takes it down. */
static void unlock_left(struct weft__chan *c)
{
    bool last = c->freed && c->turns == 0;

    unlock_admit(c);
    if (last) weft__chan_take_down(c);
}

/* Joins the queue. Of a rendezvous a receiver is told to look. */
static weft_poll queue(struct weft__chan *c, struct weft_send *f, weft_cx *cx)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    weft__chan_calm_send(c);
    weft__chan_calm_recv(c); /* who receives has one to wake */
    weft__waiter_init(waiter_of(f));
    weft__waitlist_add(&c->senders, waiter_of(f), cx->waker);
    c->gate += WEFT__CHAN_PENDING;
    f->weft__at = 1;
    f->ret = 0;
    if (weft__chan_meets(c)) (void)weft__waitlist_give_turn(&c->receivers, &chain);
    weft__chan_unlock_both(c, &chain);
    return WEFT_PENDING;
}

/* ---- begin, go on, give up ------------------------------------------------------------------- */

/* 0: sent; -EPIPE; -EAGAIN: it must wait. holds: both, and drops them unless it is -EAGAIN. */
static int send_now(struct weft__chan *c, const struct weft_send *f)
{
    int r = -EAGAIN;

    weft__chan_calm_send(c);
    if (c->gate & WEFT__CHAN_CLOSED) {
        r = -EPIPE;
    } else if (c->gate < WEFT__CHAN_PENDING && find_room(c, weft__send_wants(f))) {
        take_places(c, f);
        settle_place(c, f->msg);
        return 0;
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
    int r = send_now(c, f);
    if (r != -EAGAIN) return answers(f, r);
    if (!cx->probe) return queue(c, f, cx);
    unlock_admit(c);
    return WEFT_PENDING;
}

/* holds: the sending side. There is no run: somebody is to be woken, or it has come to its end. */
static __attribute__((noinline)) weft_poll begins(struct weft__chan *c, struct weft_send *f,
                                                  weft_cx *cx)
{
    if (!grow(c)) {
        weft__chan_unlock_send(c);
        return answers(f, -ENOMEM);
    }
    weft__chan_calm_send(c); /* another may have opened one, while the lock was dropped */
    /* a reserve takes both sides: no receiver is to be woken for it */
    if (c->gate != 0 || !f->msg || !find_room(c, 1)) return begins_slow(c, f, cx);
    take_places(c, f);
    unlock_wake_receiver(c);
    return answers(f, 0);
}

/* holds: both. It has a turn, hence its places; or the channel was closed. */
static weft_poll uses_turn(struct weft__chan *c, struct weft_send *f)
{
    bool taken = f->ret == WEFT__SEND_TAKEN;

    leave(c, f);
    if (taken || (c->gate & WEFT__CHAN_CLOSED)) {
        unlock_left(c);
        return answers(f, taken ? 0 : -EPIPE);
    }
    weft__chan_calm_send(c);
    uint32_t there = weft__chan_free_room(c, load_relaxed(&c->head)); /* relaxed: under the locks */
    weft_assert(there >= weft__send_wants(f)); /* its turn was so many places */
    use_places(c, f);
    settle_place(c, f->msg);
    return answers(f, 0);
}

static weft_poll goes_on(struct weft__chan *c, struct weft_send *f, weft_cx *cx)
{
    weft__chan_lock_both(c);
    bool taken = f->ret == WEFT__SEND_TAKEN;
    if (cx->why && !taken) {
        leave(c, f);
        unlock_left(c);
        return answers(f, weft_cx_cancelled(cx));
    }
    if (weft__waiter_has_turn(&c->senders, waiter_of(f))) return uses_turn(c, f);
    unlock_admit(c);
    return WEFT_PENDING;
}

/* holds: the sending side, and drops it. One more of a row, if its lock is nobody's. */
static void unlock_in_row(struct weft__chan *c)
{
    uint8_t me = weft__waitlist_me();

    if (weft__bias_has_word(&c->receivers.lock, me, WEFT__BIAS_INNER))
        weft__bias_count(&c->receivers.lock, &c->receivers.row, me);
    weft__chan_unlock_send(c);
}

/* All that the poll below leaves out: also messages of other sizes, and a lock that is held. */
static __attribute__((noinline)) weft_poll poll_slow(struct weft_send *f, weft_cx *cx)
{
    struct weft__chan *c = weft__chan_of(f->chan);

    if (!c) return answers(f, -EINVAL);
    if (f->weft__at == 1) return goes_on(c, f, cx);
    f->weft__at = 0; /* it gives way no more */
    if (cx->why) return weft__told_yields(cx) ? WEFT_PENDING : answers(f, weft_cx_cancelled(cx));
    if (!weft__chan_charge(cx)) return WEFT_PENDING; /* others first */
    weft__chan_lock_send(c);
    if (c->tail_run == 0 || !f->msg) return begins(c, f, cx);
    c->tail_run--;
    put(c, f->msg);
    unlock_in_row(c);
    return answers(f, 0);
}

static __attribute__((noinline)) weft_poll meets_another(struct weft_send *f, weft_cx *cx)
{
    struct weft__chan *c = weft__chan_of(f->chan);
    if (weft__bias_is_given(&c->receivers.lock)) return poll_slow(f, cx);
    return weft__chan_gives_way(c, &f->weft__at, cx) ? WEFT_PENDING : poll_slow(f, cx);
}

static __attribute__((noinline)) weft_poll ready_in_row(struct weft__chan *c)
{
    unlock_in_row(c);
    return WEFT_READY;
}

/* The poll below where the lock is nobody's, or another's. */
static __attribute__((noinline)) weft_poll poll_by_word(struct weft_send *f, weft_cx *cx)
{
    struct weft__chan *c = weft__chan_of(f->chan);
    struct weft__lock *lock = &c->receivers.lock;

    if (!weft__bias_try_take_word(lock)) return meets_another(f, cx);
    cx->budget = weft__charged(cx->budget);
    if (__builtin_expect(c->tail_run == 0, 0)) return begins(c, f, cx);
    c->tail_run--;
    put_plain(c, f->msg);
    f->ret = 0;
    if (weft__bias_row_ends(lock, &c->receivers.row, weft__waitlist_me())) return ready_in_row(c);
    if (__builtin_expect(!weft__lock_drop_brief_quietly(lock), 0)) return ready_in_row(c);
    return WEFT_READY;
}

/* Calls nobody on its way, so that it saves no registers: what is rare it leaves to others. */
weft_poll weft_send_poll(void *frame, weft_cx *cx)
{
    struct weft_send *f = frame;
    struct weft__chan *c = weft__chan_of(f->chan);

    const void *msg = f->msg;
    uint32_t budget = cx->budget;

    if (__builtin_expect(!msg, 0)) return answers(f, -EINVAL);
    if (__builtin_expect(!c || (f->weft__at | cx->why) || budget == 0, 0)) return poll_slow(f, cx);
    if (__builtin_expect(!weft__chan_is_plain(c), 0)) return poll_slow(f, cx);
    uint8_t me = weft__waitlist_me();
    if (!weft__bias_try_take_lent(&c->receivers.lock, me, WEFT__BIAS_INNER))
        return poll_by_word(f, cx);
    cx->budget = weft__charged(budget);
    uint32_t run = c->tail_run;
    if (__builtin_expect(run == 0, 0)) return begins(c, f, cx);
    c->tail_run = run - 1;
    put_plain(c, msg);
    f->ret = 0;
    weft__bias_drop_lent(&c->receivers.lock, me, WEFT__BIAS_INNER);
    return WEFT_READY;
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
    return poll_slow(f, cx);
}

weft_poll weft_reserve_many_poll(void *frame, weft_cx *cx)
{
    struct weft_reserve_many *f = frame;
    struct weft_reserve *one = &f->weft__one;
    const struct weft__chan *c = weft__chan_of(f->chan);

    f->ret = -EINVAL;
    if (c && (f->count == 0 || f->count > c->capacity)) return WEFT_READY;
    if (!f->weft__at) {
        void *count = (void *)(uintptr_t)f->count;
        *one = (struct weft_reserve){.chan = f->chan, .weft__spare = count};
    }
    weft_poll answer = weft_reserve_poll(one, cx);
    f->weft__at = one->weft__at;
    f->ret = one->ret;
    return answer;
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
    weft__chan_calm_send(c);
    use_places(c, &(struct weft_send){.msg = msg});
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
        /* the last one of a closed channel: what lies there is all that comes; in one go, as above */
        if ((c->gate & WEFT__CHAN_CLOSED) && c->reserved == 0)
            (void)weft__chan_shut(c, UINT32_MAX, &chain);
        weft__chan_admit(c, &chain);
    }
    weft__chan_unlock_both(c, &chain);
    return had_one ? 0 : -EINVAL;
}

/* ---- at once --------------------------------------------------------------------------------- */

/* Of a rendezvous: a receiver that waits, and has not been told to come, gets this message, or whoever comes in its place.
 * 0; -EPIPE; -EAGAIN; -ENOBUFS: there are no places to leave it in yet. */
static int leave_in_hand(struct weft__chan *c, const struct weft_send *f)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    /* relaxed, both: under the locks */
    uint64_t there = load_relaxed(&c->tail) - load_relaxed(&c->head);
    int r = 0;

    if (c->gate & WEFT__CHAN_CLOSED) {
        r = -EPIPE;
    } else if (weft__waitlist_empty(&c->receivers) || c->gate >= WEFT__CHAN_PENDING ||
               there >= c->slots) {
        r = -EAGAIN;
    } else if (!c->ring) {
        r = -ENOBUFS;
    } else {
        use_places(c, f);
        (void)weft__waitlist_give_turn(&c->receivers, &chain);
    }
    weft__chan_unlock_both(c, &chain);
    return r;
}

static int try_to_meet(struct weft__chan *c, const struct weft_send *f)
{
    weft__chan_lock_both(c);
    int r = leave_in_hand(c, f);
    if (r != -ENOBUFS) return r;
    if (!weft__chan_hands_new(c)) return -ENOMEM;
    weft__chan_lock_both(c);
    return leave_in_hand(c, f);
}

int weft__try_send(weft_chan *chan, const void *msg)
{
    struct weft__chan *c = weft__chan_of(chan);
    struct weft_send f = {.chan = c, .msg = msg};
    if (!c || !msg) return -EINVAL;
    if (weft__chan_meets(c)) return try_to_meet(c, &f);

    weft__chan_lock_send(c);
    if (c->tail_run > 0) {
        c->tail_run--;
        put(c, msg);
        weft__chan_unlock_send(c);
        return 0;
    }
    if (!grow(c)) {
        weft__chan_unlock_send(c);
        return -ENOMEM;
    }
    weft__chan_calm_send(c);
    if (c->gate == 0 && find_room(c, 1)) {
        take_places(c, &f);
        unlock_wake_receiver(c);
        return 0;
    }
    weft__chan_unlock_send(c);
    weft__chan_lock_both(c);
    int r = send_now(c, &f);
    if (r == -EAGAIN) unlock_admit(c);
    return r;
}
