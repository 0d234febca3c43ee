/* SPDX-License-Identifier: MIT
 *
 * chan_recv - the receiving side: one message or many. The idea is in chan.h.
 *
 *     weft__at == 0    not begun
 *     weft__at == 1    queued among the receivers, or given a turn
 *     weft__at == 3    not begun: it gave way to who held the lock
 * A waiting leaf: given up, it leaves the queue, passes its turn on, and settles at once.
 */
#include "sync/chan.h"

#include "base/alloc.h"

#include <errno.h>

_Static_assert(sizeof(((struct weft_recv *)0)->weft__waiter) == sizeof(struct weft__waiter),
               "a waiter fits its place");
_Static_assert(sizeof(((struct weft_recv_many *)0)->weft__waiter) == sizeof(struct weft__waiter),
               "as above");

_Static_assert(offsetof(struct weft_recv, weft__spare) - offsetof(struct weft_recv, weft__waiter) ==
                   offsetof(struct weft_recv_many, weft__spare) -
                       offsetof(struct weft_recv_many, weft__waiter),
               "a waiter's number lies behind it");

/* What both kinds of frames are to this file; on the stack of a poll. */
struct taking {
    struct weft__chan *chan;
    char *into;
    size_t max;
    int32_t *at; /* weft__at */
    struct weft__waiter *waiter;
};

/* ---- holds: the receiving side --------------------------------------------------------------- */

/* How many messages are there? None: look at the other side. */
static uint64_t look(struct weft__chan *c)
{
    uint64_t head = load_relaxed(&c->head); /* relaxed: written under the lock that is held */
    uint32_t known = c->tail_seen - (uint32_t)head;

    if (known > 0) return known;
    uint64_t there = load_acquire(&c->tail) - head; /* [chan-tail] with publish */
    known = there < UINT32_MAX ? (uint32_t)there : UINT32_MAX;
    c->tail_seen = (uint32_t)head + known;
    return known;
}

/* Blocks that are to be freed once the lock is dropped: each begins with the next. */
struct spent {
    char *first;
};

static void spent_free(struct spent *spent)
{
    for (char *block; (block = spent->first);) {
        spent->first = *(char **)(void *)block;
        weft__free(block);
    }
}

/* From the ring's end to its beginning, or to the next block. */
static void turn_over(struct weft__chan *c, struct spent *spent)
{
    c->head_left = c->slots;
    if (c->ring) {
        c->head_slot = c->ring;
        return;
    }
    char *end = c->head_slot;
    char *block = end - (size_t)c->slots * weft__chan_slot_bytes(c);
    c->head_slot = *(char **)(void *)end;
    *(char **)(void *)block = spent->first;
    spent->first = block;
}

/* Takes one out of the run. */
static inline void take(struct weft__chan *c, void *into)
{
    c->head_run--;
    weft__chan_copy_out(c, into, c->head_slot);
    c->head_slot += weft__chan_slot_bytes(c);
}

static inline void take_plain(struct weft__chan *c, void *into, uint32_t run)
{
    char *slot = c->head_slot;
    c->head_run = run - 1;
    c->head_slot = slot + 8;
    weft__chan_copy_word_out(into, slot);
}

/* Opens a run of those that are there, up to `max`. */
static uint32_t run_of(struct weft__chan *c, uint64_t max, struct spent *spent)
{
    uint64_t there = look(c);
    uint64_t count = there < max ? there : max;

    if (count > 0 && c->head_left == 0) turn_over(c, spent);
    c->head_run = count < c->head_left ? (uint32_t)count : c->head_left;
    c->head_left -= c->head_run;
    return c->head_run;
}

static void taken(struct weft__chan *c, uint64_t count)
{
    uint64_t head = load_relaxed(&c->head); /* relaxed: written under the lock that is held */
    store_release(&c->head, head + count);  /* [chan-head] with find_room: the places are free */
}

/* Drops the lock, with turns for senders that have room now. */
static __attribute__((noinline)) void unlock_admit_senders(struct weft__chan *c)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    weft__chan_lock_send(c);
    weft__chan_admit(c, &chain);
    weft__chan_unlock_both(c, &chain);
}

/* Up to `max` of those that are there. */
static uint64_t take_some(struct weft__chan *c, char *into, size_t max, struct spent *spent)
{
    uint64_t count = 0;

    weft__chan_calm_recv(c);
    while (count < max && run_of(c, max - count, spent) > 0) {
        uint64_t before = count;
        while (c->head_run > 0)
            take(c, into + count++ * c->msg_bytes);
        taken(c, count - before);
    }
    return count;
}

/* Of a rendezvous: the messages of the first senders that wait. The frames of these stay until the lock is dropped. */
static uint64_t take_offers(struct weft__chan *c, char *into, size_t max,
                            struct weft__wake_chain *chain)
{
    uint64_t count = 0;
    if (!weft__chan_meets(c)) return 0;
    while (count < max && !weft__waitlist_empty(&c->senders)) {
        struct weft__waiter *first =
            weft__container_of(c->senders.head.next, struct weft__waiter, link);
        struct weft_send *f = weft__send_of(first);
        __builtin_memcpy(into + count++ * c->msg_bytes, f->msg, c->msg_bytes);
        f->ret = WEFT__SEND_TAKEN;
        (void)weft__chan_give_sender(c, chain);
    }
    return count;
}

/* ---- the queue: holds both ------------------------------------------------------------------- */

/* The number under which it came to wait: where that is, in either kind of frame. */
static void **ticket_of(struct weft__waiter *waiter)
{
    return &weft__container_of((void *)waiter, struct weft_recv, weft__waiter)->weft__spare;
}

/* Did the one in the queue come before? Numbers go round. */
static bool came_before(struct weft__link *queued, struct weft__waiter *waiter)
{
    struct weft__waiter *other = weft__container_of(queued, struct weft__waiter, link);
    uintptr_t behind = (uintptr_t)*ticket_of(waiter) - (uintptr_t)*ticket_of(other);
    return (int32_t)(uint32_t)behind > 0;
}

/* At the end; or, overtaken, before all who came later: in front of it are at most those who were overtaken, too. */
static void stand_in_line(struct weft__chan *c, struct weft__waiter *waiter,
                          struct weft_waker waker, bool overtaken)
{
    struct weft__link *end = &c->receivers.head;
    struct weft__link *at = overtaken ? end->next : end;

    if (!overtaken) *ticket_of(waiter) = (void *)(uintptr_t)c->came++;
    while (at != end && came_before(at, waiter))
        at = at->next;
    weft__waiter_init(waiter);
    weft__waitlist_add_before(&c->receivers, at, waiter, waker);
}

/* ---- begin, go on, give up ------------------------------------------------------------------- */

/* holds: the receiving side, and drops it. Above 0: so many; 0: the end; -EAGAIN: it must wait, and does so if it has a
 * waker. `overtaken`: it had its turn. */
static int64_t take_or_wait(struct taking *t, struct weft_waker waker, bool overtaken)
{
    struct weft__chan *c = t->chan;
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    struct spent spent = {NULL};

    weft__chan_lock_send(c);
    int64_t r = (int64_t)take_some(c, t->into, t->max, &spent);
    if (r == 0) r = (int64_t)take_offers(c, t->into, t->max, &chain);
    if (r == 0 && !weft__chan_at_end(c)) r = -EAGAIN;
    if (r == -EAGAIN && !weft__waker_is_none(waker)) {
        weft__chan_calm_send(c); /* who sends has one to wake */
        stand_in_line(c, t->waiter, waker, overtaken);
        *t->at = 1;
    }
    if (r > 0) weft__chan_admit(c, &chain);
    weft__chan_unlock_both(c, &chain);
    spent_free(&spent);
    return r;
}

/* It waited. -EAGAIN: it still does; 0: it had a turn, and is out of the queue; or why it was stopped. */
static int stop_waiting(struct taking *t, weft_cx *cx)
{
    struct weft__chan *c = t->chan;
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    int why = weft_cx_cancelled(cx);

    weft__chan_lock_send(c);
    if (!why && weft__waiter_queued(&c->receivers, t->waiter)) {
        weft__chan_unlock_send(c);
        return -EAGAIN;
    }
    bool had_turn = weft__waitlist_settle(&c->receivers, t->waiter);
    if (why && had_turn) (void)weft__waitlist_give_turn(&c->receivers, &chain);
    weft__chan_unlock_send(c);
    weft__wake_chain_push(&chain, &weft__sched);
    *t->at = 0;
    return why;
}

/* A count, 0 at the end, why it was stopped, -EINVAL; -EAGAIN: PENDING. */
static __attribute__((noinline)) int64_t take_slow(struct taking *t, weft_cx *cx)
{
    bool waited = *t->at != 0;
    if (!t->chan || !t->into || t->max == 0) return -EINVAL;

    if (waited) {
        int r = stop_waiting(t, cx);
        if (r < 0) return r;
    } else {
        if (cx->why) return weft__told_yields(cx) ? -EAGAIN : weft_cx_cancelled(cx);
        if (!weft__chan_charge(cx)) return -EAGAIN;
    }
    weft__chan_lock_recv(t->chan);
    return take_or_wait(t, cx->probe ? weft__waker_none() : cx->waker, waited);
}

/* holds: the receiving side, and drops it. One more of a row, if its lock is nobody's. */
static void recv_unlock_in_row(struct weft__chan *c)
{
    uint8_t me = weft__waitlist_me();

    if (weft__bias_has_word(&c->senders.lock, me, WEFT__BIAS_OUTER))
        weft__bias_count(&c->senders.lock, &c->senders.row, me);
    weft__chan_unlock_recv(c);
}

/* holds: the receiving side, and drops it. If there is no run it opens one, unless senders wait. */
static __attribute__((noinline)) bool take_one(struct weft__chan *c, void *into)
{
    bool alone = weft__waitlist_empty(&c->senders);
    struct spent spent = {NULL};

    if (c->head_run == 0 && run_of(c, alone ? UINT64_MAX : 1, &spent) == 0) {
        weft__chan_unlock_recv(c);
        return false;
    }
    take(c, into);
    taken(c, 1);
    if (alone) {
        recv_unlock_in_row(c);
    } else {
        unlock_admit_senders(c);
    }
    spent_free(&spent);
    return true;
}

static weft_poll recv_waits(struct weft_recv *f, weft_cx *cx)
{
    struct taking t = {.chan = weft__chan_of(f->chan),
                       .into = f->into,
                       .max = 1,
                       .at = &f->weft__at,
                       .waiter = (void *)f->weft__waiter};
    int64_t r = take_slow(&t, cx);
    if (r == -EAGAIN) return WEFT_PENDING;
    f->ret = (int)r;
    return WEFT_READY;
}

/* holds: the receiving side, and drops it. */
static weft_poll recv_begins(struct weft__chan *c, struct weft_recv *f, weft_cx *cx)
{
    if (!take_one(c, f->into)) return recv_waits(f, cx);
    (void)weft__chan_charge(cx);
    f->ret = 1;
    return WEFT_READY;
}

/* All that the poll below leaves out: also messages of other sizes, and a lock that is held. */
static __attribute__((noinline)) weft_poll recv_slow(struct weft_recv *f, weft_cx *cx)
{
    struct weft__chan *c = weft__chan_of(f->chan);

    if (f->weft__at == WEFT__CHAN_GAVE_WAY) f->weft__at = 0; /* it gives way no more */
    if (!c || !f->into || f->weft__at || cx->why || cx->budget == 0) return recv_waits(f, cx);
    weft__chan_lock_recv(c);
    return recv_begins(c, f, cx);
}

static __attribute__((noinline)) weft_poll recv_meets_another(struct weft_recv *f, weft_cx *cx)
{
    struct weft__chan *c = weft__chan_of(f->chan);
    if (weft__bias_is_given(&c->senders.lock)) return recv_slow(f, cx);
    return weft__chan_gives_way(c, &f->weft__at, cx) ? WEFT_PENDING : recv_slow(f, cx);
}

/* holds: the receiving side, and drops it. There is no run. */
static __attribute__((noinline)) weft_poll recv_looks(struct weft__chan *c, struct weft_recv *f,
                                                      weft_cx *cx)
{
    return recv_begins(c, f, cx);
}

static __attribute__((noinline)) weft_poll recv_ready_in_row(struct weft__chan *c)
{
    recv_unlock_in_row(c);
    return WEFT_READY;
}

/* The poll below where the lock is nobody's, or another's. */
static __attribute__((noinline)) weft_poll recv_by_word(struct weft_recv *f, weft_cx *cx)
{
    struct weft__chan *c = weft__chan_of(f->chan);
    struct weft__lock *lock = &c->senders.lock;

    if (!weft__bias_try_take_word(lock)) return recv_meets_another(f, cx);
    uint32_t run = c->head_run;
    if (__builtin_expect(run == 0, 0)) return recv_begins(c, f, cx);
    take_plain(c, f->into, run);
    taken(c, 1);
    cx->budget = weft__charged(cx->budget);
    f->ret = 1;
    if (weft__bias_row_ends(lock, &c->senders.row, weft__waitlist_me())) return recv_ready_in_row(c);
    if (__builtin_expect(!weft__lock_drop_brief_quietly(lock), 0)) return recv_ready_in_row(c);
    return WEFT_READY;
}

/* Calls nobody on its way, so that it saves no registers: what is rare it leaves to others. */
weft_poll weft_recv_poll(void *frame, weft_cx *cx)
{
    struct weft_recv *f = frame;
    struct weft__chan *c = weft__chan_of(f->chan);

    void *into = f->into;
    uint32_t budget = cx->budget;

    if (__builtin_expect(!c || !into || (f->weft__at | cx->why) || budget == 0, 0))
        return recv_slow(f, cx);
    if (__builtin_expect(!weft__chan_is_plain(c), 0)) return recv_slow(f, cx);
    uint8_t me = weft__waitlist_me();
    if (!weft__bias_try_take_lent(&c->senders.lock, me, WEFT__BIAS_OUTER))
        return recv_by_word(f, cx);
    uint32_t run = c->head_run;
    if (__builtin_expect(run == 0, 0)) return recv_looks(c, f, cx);
    take_plain(c, into, run);
    taken(c, 1);
    cx->budget = weft__charged(budget);
    f->ret = 1;
    weft__bias_drop_lent(&c->senders.lock, me, WEFT__BIAS_OUTER);
    return WEFT_READY;
}

weft_poll weft_recv_many_poll(void *frame, weft_cx *cx)
{
    struct weft_recv_many *f = frame;
    struct taking t = {.chan = weft__chan_of(f->chan),
                       .into = f->into,
                       .max = f->max,
                       .at = &f->weft__at,
                       .waiter = (void *)f->weft__waiter};
    int64_t r = take_slow(&t, cx);
    if (r == -EAGAIN) return WEFT_PENDING;
    f->ret = (ssize_t)r;
    return WEFT_READY;
}

int weft__try_recv(weft_chan *chan, void *into)
{
    struct taking t = {.chan = weft__chan_of(chan), .into = into, .max = 1};
    if (!t.chan || !into) return -EINVAL;

    weft__chan_lock_recv(t.chan);
    if (take_one(t.chan, into)) return 1;
    weft__chan_lock_recv(t.chan);
    return (int)take_or_wait(&t, weft__waker_none(), false);
}
