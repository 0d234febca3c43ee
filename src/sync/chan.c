/* SPDX-License-Identifier: MIT
 *
 * chan - making, closing and freeing; what both sides need. The idea is in chan.h.
 */
#include "sync/chan.h"

#include "base/alloc.h"
#include "sync/leaf.h"

#include <errno.h>

/* The largest message. Doubled: a copy under a lock holds others up for twice as long; larger things go by a pointer. */
#define MSG_BYTES_MAX ((size_t)1 << 20)

/* Places of a block of an unbounded channel. Doubled: an idle one keeps twice the memory; halved: twice the allocations. */
#ifndef WEFT__CHAN_BLOCK
#define WEFT__CHAN_BLOCK 31
#endif

static size_t ring_bytes(enum weft_chan_kind kind, size_t slot_bytes, size_t capacity)
{
    if (kind == WEFT_CHAN_UNBOUNDED) return WEFT__CHAN_BLOCK * slot_bytes + sizeof(char *);
    return capacity * slot_bytes;
}

static void sides_init(struct weft__chan *c, size_t bytes)
{
    weft__waitlist_init(&c->receivers);
    weft__waitlist_init(&c->senders);
    weft__lock_init(&c->senders.lock, WEFT__RANK_CHAN);
    c->tail_slot = c->ring;
    c->head_slot = c->ring;
    c->tail_end = c->ring ? c->ring + bytes : NULL;
    c->head_end = c->tail_end;
    store_relaxed(&c->tail, 0); /* relaxed, both: not shared yet */
    store_relaxed(&c->head, 0);
}

/* The ring, or the first block, which is not the channel's own: it is freed with the last message in it. */
static int storage_new(struct weft__chan *c)
{
    size_t slots = c->kind == WEFT_CHAN_UNBOUNDED ? WEFT__CHAN_BLOCK : c->capacity;
    if (slots > 0) {
        c->ring = weft__alloc(ring_bytes(c->kind, c->slot_bytes, c->capacity));
        if (!c->ring) return -ENOMEM;
    }
    sides_init(c, slots * c->slot_bytes);
    c->room = (uint32_t)slots;
    c->block_bytes = (uint32_t)(slots * c->slot_bytes);
    if (c->kind == WEFT_CHAN_UNBOUNDED) c->ring = NULL;
    return 0;
}

int weft_chan_new_sized(enum weft_chan_kind kind, size_t msg_bytes, size_t capacity,
                        weft_chan **into)
{
    if (!into || msg_bytes == 0 || msg_bytes > MSG_BYTES_MAX) return -EINVAL;
    if (capacity > INT32_MAX || (unsigned)kind > WEFT_CHAN_ONESHOT) return -EINVAL;
    size_t slot_bytes = (msg_bytes + 7) & ~(size_t)7;
    if (capacity > SIZE_MAX / 2 / slot_bytes) return -ENOMEM;

    struct weft__chan *c = weft__alloc_aligned(sizeof(*c), WEFT__CACHE_LINE);
    if (!c) return -ENOMEM;
    c->kind = kind;
    c->capacity = kind == WEFT_CHAN_ONESHOT ? 1 : (uint32_t)capacity;
    c->msg_bytes = (uint32_t)msg_bytes;
    c->slot_bytes = (uint32_t)slot_bytes;
    if (kind == WEFT_CHAN_ONESHOT || (kind == WEFT_CHAN_BOUNDED && capacity == 0))
        c->gate = WEFT__CHAN_SPECIAL;
    int r = storage_new(c);
    if (r < 0) {
        weft__free(c);
        return r;
    }
    *into = (weft_chan *)(void *)c;
    return 0;
}

static void blocks_free(struct weft__chan *c)
{
    char *end = c->head_end;

    while (end != c->tail_end) {
        char *next = *(char **)(void *)end;
        weft__free(end - c->block_bytes);
        end = next + c->block_bytes;
    }
    weft__free(end - c->block_bytes);
}

void weft__chan_free(weft_chan *chan, const char *caller)
{
    if (!chan) return;
    struct weft__chan *c = weft__chan_of(chan);

    weft__chan_lock_both(c);                          /* behind the last touch of those who leave */
    weft__leaf_report_waiter(&c->receivers.head, "a channel", caller);
    weft__leaf_report_waiter(&c->senders.head, "a channel", caller);
    weft_assert(weft__waitlist_empty(&c->receivers)); /* nobody waits any more */
    weft_assert(weft__waitlist_empty(&c->senders));
    weft__chan_unlock_send(c);
    weft__chan_unlock_recv(c);
    if (c->kind == WEFT_CHAN_UNBOUNDED) {
        blocks_free(c);
    } else {
        weft__free(c->ring);
    }
    weft__free(c);
}

void weft__chan_unlock_both(struct weft__chan *c, struct weft__wake_chain *chain)
{
    weft__chan_unlock_send(c);
    weft__waitlist_unlock_push(&c->senders, chain, &weft__sched);
}

bool weft__chan_at_end(struct weft__chan *c)
{
    /* relaxed, both: under the locks */
    return (c->gate & WEFT__CHAN_CLOSED) && c->reserved == 0 &&
           load_relaxed(&c->tail) == load_relaxed(&c->head);
}

struct weft__waiter *weft__chan_give_sender(struct weft__chan *c, struct weft__wake_chain *chain)
{
    struct weft__waiter *waiter = weft__waitlist_give_turn(&c->senders, chain);
    if (!waiter) return NULL;
    c->gate -= WEFT__CHAN_PENDING;
    c->turns++;
    return waiter;
}

void weft__chan_admit(struct weft__chan *c, struct weft__wake_chain *chain)
{
    if (c->ring == NULL || (c->gate & WEFT__CHAN_CLOSED)) return; /* unbounded, or a rendezvous */
    uint64_t head = load_relaxed(&c->head);                       /* relaxed: under the locks */
    c->room = weft__chan_free_room(c, head);
    while (c->room > 0 && weft__chan_give_sender(c, chain))
        c->room--;
}

bool weft__chan_shut(struct weft__chan *c, uint32_t most, struct weft__wake_chain *chain)
{
    c->gate |= WEFT__CHAN_CLOSED;
    for (uint32_t i = 0; i < most && weft__chan_give_sender(c, chain); i++)
        continue;
    for (uint32_t i = 0; i < most && weft__waitlist_give_turn(&c->receivers, chain); i++)
        continue;
    return weft__waitlist_empty(&c->senders) && weft__waitlist_empty(&c->receivers);
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

size_t weft__chan_len(weft_chan *chan)
{
    if (!chan) return 0;
    struct weft__chan *c = weft__chan_of(chan);

    weft__chan_lock_recv(c);
    /* relaxed: a number that is old by the time it is read */
    uint64_t len = load_relaxed(&c->tail) - load_relaxed(&c->head);
    weft__chan_unlock_recv(c);
    return (size_t)len;
}

bool weft__chan_is_closed(weft_chan *chan)
{
    if (!chan) return true;
    struct weft__chan *c = weft__chan_of(chan);

    weft__chan_lock_send(c);
    bool closed = c->gate & WEFT__CHAN_CLOSED;
    weft__chan_unlock_send(c);
    return closed;
}
