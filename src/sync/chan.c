/* SPDX-License-Identifier: MIT
 *
 * chan - making, closing and freeing; what both sides need. The idea is in chan.h.
 */
#include "sync/chan.h"

#include "base/alloc.h"
#include "base/bits.h"
#include "sync/leaf.h"

#include <errno.h>
#include <stddef.h>

/* The largest message. Doubled: a copy under a lock holds others up for twice as long; larger things go by a pointer. */
#define MSG_BYTES_MAX ((size_t)1 << 20)

/* Places of a block of an unbounded channel. Doubled: an idle one keeps twice the memory; halved: twice the allocations. */
#ifndef WEFT__CHAN_BLOCK
#define WEFT__CHAN_BLOCK 31
#endif

/* Places of a rendezvous' ring, made when the first message is left in it. Doubled: twice as many receivers can be served at once
 * before the first of them has run. */
#ifndef WEFT__CHAN_HANDS
#define WEFT__CHAN_HANDS 16
#endif

/* Behind an address that malloc gives, up to the next line of the cache. */
#define SLACK (WEFT__CACHE_LINE - _Alignof(max_align_t))

static uint32_t slots_of(enum weft_chan_kind kind, size_t capacity)
{
    if (kind == WEFT_CHAN_UNBOUNDED) return WEFT__CHAN_BLOCK;
    if (kind == WEFT_CHAN_ONESHOT) return 1;
    return capacity > 0 ? (uint32_t)capacity : WEFT__CHAN_HANDS;
}

/* Behind a block's places lies the address of the next one. */
char *weft__chan_places_new(const struct weft__chan *c)
{
    size_t link = c->kind == WEFT_CHAN_UNBOUNDED ? sizeof(char *) : 0;
    return weft__alloc((size_t)c->slots * weft__chan_slot_bytes(c) + link);
}

/* holds: both, or it is not shared yet. The first places: a ring, or the first block, which is not the channel's own: it is freed with
 * the last message in it. */
static void places_begin(struct weft__chan *c, char *places)
{
    c->ring = c->kind == WEFT_CHAN_UNBOUNDED ? NULL : places;
    c->tail_slot = places;
    c->head_slot = places;
    c->tail_left = c->slots;
    c->head_left = c->slots;
}

static void sides_init(struct weft__chan *c)
{
    weft__waitlist_init(&c->receivers);
    weft__waitlist_init(&c->senders);
    weft__lock_init(&c->senders.lock, WEFT__RANK_CHAN);
    weft__link_init(&c->ends);
    store_relaxed(&c->tail, 0); /* relaxed, both: not shared yet */
    store_relaxed(&c->head, 0);
}

/* The places of a ring that is there from the beginning lie behind the channel. */
static bool has_ring_inside(unsigned kind, size_t capacity)
{
    return kind != WEFT_CHAN_UNBOUNDED && capacity > 0;
}

static int storage_new(struct weft__chan *c)
{
    sides_init(c);
    if (weft__chan_meets(c)) return 0;
    char *places = has_ring_inside(c->kind, c->capacity) ? (char *)(c + 1) : weft__chan_places_new(c);
    if (!places) return -ENOMEM;
    places_begin(c, places);
    c->room = c->slots;
    return 0;
}

/* A oneshot is made for each question: aligned by hand, since what is asked of the C library with an alignment passes by the threads' caches of free blocks, and
 * costs three times as much. Others live long, and shall lie where their block begins: that is what tools that look for leaks know. Their places are not touched: many
 * of them cost no memory until messages come to them. */
static struct weft__chan *chan_alloc(enum weft_chan_kind kind, size_t places_bytes)
{
    size_t bytes = sizeof(struct weft__chan) + places_bytes;
    bool by_hand = kind == WEFT_CHAN_ONESHOT;
    void *memory =
        by_hand ? weft__alloc(bytes + SLACK)
                : weft__alloc_aligned_part(bytes, WEFT__CACHE_LINE, sizeof(struct weft__chan));
    if (!memory) return NULL;
    struct weft__chan *c = weft__align_up(memory, WEFT__CACHE_LINE);
    c->memory = memory;
    return c;
}

bool weft__chan_hands_new(struct weft__chan *c)
{
    char *places = weft__chan_places_new(c);
    if (!places) return false;
    weft__chan_lock_both(c);
    bool ours = !c->ring;
    if (ours) places_begin(c, places);
    weft__chan_unlock_send(c);
    weft__chan_unlock_recv(c);
    if (!ours) weft__free(places);
    return true;
}

int weft_chan_new_sized(enum weft_chan_kind kind, size_t msg_bytes, size_t capacity,
                        weft_chan **into)
{
    if (!into || msg_bytes == 0 || msg_bytes > MSG_BYTES_MAX) return -EINVAL;
    if (kind != WEFT_CHAN_BOUNDED) capacity = 1; /* it is not looked at */
    if (capacity > INT32_MAX || (unsigned)kind > WEFT_CHAN_ONESHOT) return -EINVAL;
    size_t slot_bytes = (msg_bytes + 7) & ~(size_t)7;
    if (capacity > SIZE_MAX / 2 / slot_bytes) return -ENOMEM;

    bool ring = has_ring_inside(kind, capacity);
    struct weft__chan *c = chan_alloc(kind, ring ? slots_of(kind, capacity) * slot_bytes : 0);
    if (!c) return -ENOMEM;
    c->kind = (uint8_t)kind;
    c->slots = slots_of(kind, capacity);
    c->capacity = kind == WEFT_CHAN_BOUNDED ? (uint32_t)capacity : kind == WEFT_CHAN_ONESHOT;
    c->msg_bytes = (uint32_t)msg_bytes;
    if (kind == WEFT_CHAN_ONESHOT || weft__chan_meets(c)) c->gate = WEFT__CHAN_SPECIAL;
    int r = storage_new(c);
    if (r < 0) {
        weft__free(c->memory);
        return r;
    }
    *into = (weft_chan *)(void *)c;
    return 0;
}

static void blocks_free(struct weft__chan *c)
{
    size_t slot_bytes = weft__chan_slot_bytes(c);
    size_t bytes = c->slots * slot_bytes;
    weft__chan_calm_send(c);
    weft__chan_calm_recv(c);
    char *end = c->head_slot + c->head_left * slot_bytes;
    char *last = c->tail_slot + c->tail_left * slot_bytes;

    while (end != last) {
        char *next = *(char **)(void *)end;
        weft__free(end - bytes);
        end = next + bytes;
    }
    weft__free(end - bytes);
}

void weft__chan_take_down(struct weft__chan *c)
{
    if (c->kind == WEFT_CHAN_UNBOUNDED) {
        blocks_free(c);
    } else if (!has_ring_inside(c->kind, c->capacity)) {
        weft__free(c->ring);
    }
    weft__free(c->memory);
}

void weft__chan_free(weft_chan *chan, const char *caller)
{
    if (!chan) return;
    struct weft__chan *c = weft__chan_of(chan);

    weft__chan_lock_both(c);                          /* behind the last touch of those who leave */
    weft__leaf_report_waiter(&c->receivers.head, "a channel", caller);
    weft__leaf_report_waiter(&c->senders.head, "a channel", caller);
    weft__leaf_report_waiter(&c->ends, "a channel", caller);
    weft_assert(weft__waitlist_empty(&c->receivers)); /* nobody waits any more */
    weft_assert(weft__waitlist_empty(&c->senders));
    weft_assert(weft__list_empty(&c->ends));
    bool awaited = weft__chan_meets(c) && c->turns > 0; /* by senders that do not know it yet */
    c->freed = awaited;
    weft__chan_unlock_send(c);
    weft__chan_unlock_recv(c);
    if (!awaited) weft__chan_take_down(c);
}

void weft__chan_unlock_both(struct weft__chan *c, struct weft__wake_chain *chain)
{
    weft__chan_unlock_send(c);
    weft__chan_unlock_recv(c);
    weft__wake_chain_push(chain, &weft__sched);
}

bool weft__chan_at_end(struct weft__chan *c)
{
    /* relaxed, both: under the locks */
    return (c->gate & WEFT__CHAN_CLOSED) && c->reserved == 0 &&
           load_relaxed(&c->tail) == load_relaxed(&c->head);
}

/* holds: both. Places that the first sender in the queue wants; 0: there is none. */
static uint32_t first_wants(struct weft__chan *c)
{
    struct weft__link *first = weft__list_first(&c->senders.head);
    if (!first) return 0;
    return weft__send_wants(weft__send_of(weft__container_of(first, struct weft__waiter, link)));
}

bool weft__chan_give_sender(struct weft__chan *c, struct weft__wake_chain *chain)
{
    uint32_t wants = first_wants(c);
    if (wants == 0) return false;
    (void)weft__waitlist_give_turn(&c->senders, chain);
    c->gate -= WEFT__CHAN_PENDING;
    c->turns += wants;
    return true;
}

void weft__chan_admit(struct weft__chan *c, struct weft__wake_chain *chain)
{
    if (c->capacity == 0 || (c->gate & WEFT__CHAN_CLOSED)) return; /* nobody waits for a place */
    weft__chan_calm_send(c);
    c->room = weft__chan_free_room(c, load_relaxed(&c->head)); /* relaxed: under the locks */
    for (uint32_t wants; (wants = first_wants(c)) > 0 && wants <= c->room; c->room -= wants)
        (void)weft__chan_give_sender(c, chain);
}

bool weft__chan_shut(struct weft__chan *c, uint32_t most, struct weft__wake_chain *chain)
{
    bool nothing_comes = c->reserved == 0; /* else the last permit tells receivers */

    weft__chan_calm_send(c);
    c->gate |= WEFT__CHAN_CLOSED;
    store_release(&c->closed, 1); /* [chan-closed] with is_closed: what the closer did before */
    for (uint32_t i = 0; i < most && weft__chan_give_sender(c, chain); i++)
        continue;
    for (uint32_t i = 0; i < most && nothing_comes; i++)
        if (!weft__waitlist_give_turn(&c->receivers, chain)) break;
    for (uint32_t i = 0; i < most; i++)
        if (!weft__waitlist_give_turn_at(&c->receivers, &c->ends, chain)) break;
    bool told = !nothing_comes || weft__waitlist_empty(&c->receivers);
    return told && weft__waitlist_empty(&c->senders) && weft__list_empty(&c->ends);
}

/* Who is woken may free the channel once nobody is left to be woken: then this does not come back. */
int weft__chan_close(weft_chan *chan)
{
    if (!chan) return -EINVAL;
    struct weft__chan *c = weft__chan_of(chan);
    bool all = false;

    for (bool first = true; !all; first = false) {
        struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
        weft__chan_lock_both(c);
        bool already = first && (c->gate & WEFT__CHAN_CLOSED);
        all = already || weft__chan_shut(c, WEFT__WAKE_BATCH, &chain);
        weft__chan_unlock_both(c, &chain);
        if (already) return -EALREADY;
    }
    return 0;
}

/* Looks without a lock, until the head is the same before and behind the tail: then there were so many at that moment. Beside a receiver that does nothing else that is so for 98 of 100 at the first
 * look, and for 99 within these; the last takes the lock. Doubled: hardly less often. */
#ifndef WEFT__CHAN_LOOKS
#define WEFT__CHAN_LOOKS 16
#endif

size_t weft__chan_len(weft_chan *chan)
{
    if (!chan) return 0;
    struct weft__chan *c = weft__chan_of(chan);

    for (int i = 0; i < WEFT__CHAN_LOOKS; i++) {
        /* [chan-head] with taken: the tail below is not before it */
        uint64_t head = load_acquire(&c->head);
        /* [chan-tail] with publish: the head behind it is at most a capacity before it */
        uint64_t tail = load_acquire(&c->tail);
        /* relaxed: nothing is read behind it */
        if (load_relaxed(&c->head) == head) return (size_t)(tail - head);
    }
    weft__chan_lock_recv(c);
    /* relaxed: a number that is old by the time it is read */
    uint64_t len = load_relaxed(&c->tail) - load_relaxed(&c->head);
    weft__chan_unlock_recv(c);
    return (size_t)len;
}

bool weft__chan_is_closed(weft_chan *chan)
{
    if (!chan) return true;
    return load_acquire(&weft__chan_of(chan)->closed); /* [chan-closed] with shut */
}

/* ---- the end, waited for --------------------------------------------------------------------- */

/* holds: the sending side, and drops it. */
static weft_poll end_waits(struct weft_chan_closed *f, struct weft__chan *c, weft_cx *cx)
{
    struct weft__waiter *waiter = WEFT__LEAF_WAITER(f);

    weft__waiter_init(waiter);
    weft__waitlist_add_before(&c->receivers, &c->ends, waiter, cx->waker);
    f->weft__at = WEFT__LEAF_WAITS;
    weft__chan_unlock_send(c);
    return WEFT_PENDING;
}

static weft_poll end_answers(struct weft_chan_closed *f, int ret)
{
    f->weft__at = 0;
    f->ret = ret;
    return WEFT_READY;
}

/* A turn is everybody's: none is passed on. */
weft_poll weft_chan_closed_poll(void *frame, weft_cx *cx)
{
    struct weft_chan_closed *f = frame;
    struct weft__chan *c = weft__chan_of(f->chan);
    if (!c) return end_answers(f, -EINVAL);
    if (!f->weft__at && cx->why)
        return weft__told_yields(cx) ? WEFT_PENDING : end_answers(f, weft_cx_cancelled(cx));
    if (!f->weft__at && !weft__leaf_may(cx)) return WEFT_PENDING;

    weft__chan_lock_send(c);
    bool closed = c->gate & WEFT__CHAN_CLOSED;
    bool over = closed || cx->why;
    if (f->weft__at && over) (void)weft__waitlist_settle(&c->receivers, WEFT__LEAF_WAITER(f));
    if (!f->weft__at && !over && !cx->probe) return end_waits(f, c, cx);
    weft__chan_unlock_send(c);
    if (!over) return WEFT_PENDING;
    return end_answers(f, closed ? 0 : weft_cx_cancelled(cx));
}
