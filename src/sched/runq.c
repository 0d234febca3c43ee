/* SPDX-License-Identifier: MIT
 *
 * runq - the thieves' half of the ring, and what the owner seldom does.
 */
#include "sched/runq.h"

#include <stddef.h>

#define RUNQ_APART(a, b)                                                                           \
    (offsetof(struct weft__runq, b) - offsetof(struct weft__runq, a) >= WEFT__CACHE_LINE)
_Static_assert(RUNQ_APART(head, tail), "a taker does not take the pusher's line away");
_Static_assert(RUNQ_APART(tail, slot), "nor does a look at the tail cost a look at slots");

void weft__runq_init(struct weft__runq *q)
{
    store_relaxed(&q->head, 0); /* relaxed, all three: not shared yet */
    store_relaxed(&q->tail, 0);
    for (uint64_t i = 0; i < WEFT__RUNQ_CAP; i++) {
        store_relaxed(&q->slot[i], NULL);
    }
}

struct weft_task *weft__runq_take_last(struct weft__runq *q, uint64_t head, uint64_t index)
{
    struct weft_task *t = NULL;

    if (head == index) {
        t = load_relaxed(weft__runq_slot(q, index)); /* relaxed: our own store */
        /* relaxed: as in take_oldest; what the fence before it ordered is the read of the head */
        if (!cas_relaxed(&q->head, &head, head + 1)) t = NULL;
    }
    weft_dassert(t || head == index + 1);
    /* Whoever got it, the ring is empty now, with the head at index + 1.
     * relaxed: take_newest's fence stands before it, and releases what the pushes wrote */
    store_relaxed(&q->tail, index + 1); /* [runq-tail] with steal */
    return t;
}

uint32_t weft__runq_take_many(struct weft__runq *q, uint32_t most, struct weft_task **into)
{
    uint64_t tail = load_relaxed(&q->tail); /* relaxed: this thread is the only writer */
    uint64_t head = load_relaxed(&q->head); /* relaxed: the CAS corrects it */

    while (head != tail) { /* lock-free: as in take_oldest */
        uint32_t count = tail - head < most ? (uint32_t)(tail - head) : most;
        weft_dassert(tail - head <= WEFT__RUNQ_CAP);
        for (uint32_t i = 0; i < count; i++) {
            plain_write(&into[i], load_relaxed(weft__runq_slot(q, head + i))); /* relaxed: our own stores */
        }
        if (cas_relaxed(&q->head, &head, head + count)) return count; /* relaxed: as in take_oldest */
    }
    return 0;
}

/* Take the task at *head, an index that this thread saw or wrote before its last full fence, if at least
 * `least` tasks are there. *head is the next index then; before the next call comes another fence. */
static struct weft_task *steal_at(struct weft__runq *q, uint64_t *head, int64_t least)
{
    /* lock-free: a failed CAS means that another taker made progress.
     * [runq-sb] with take_newest, in later rounds: *head is what the failed CAS has seen */
    for (;; mb_after_rmw()) {
        uint64_t tail = load_acquire(&q->tail); /* [runq-tail] with push: the tasks below it */
        if ((int64_t)(tail - *head) < least) return NULL;
        struct weft_task *t = load_relaxed(weft__runq_slot(q, *head)); /* relaxed: after the tail */
        /* [runq-head] with push: the slot has been read */
        if (cas_release(&q->head, head, *head + 1)) {
            *head += 1;
            return t;
        }
    }
}

struct weft_task *weft__runq_steal(struct weft__runq *q)
{
    uint64_t head = load_relaxed(&q->head); /* relaxed: ordered by the fence */

    fence_seq_cst(); /* [runq-sb] with take_newest: we see its tail, or it sees this head */
    return steal_at(q, &head, 1);
}

static uint32_t room_of(struct weft__runq *own)
{
    return WEFT__RUNQ_CAP - weft__runq_length(own); /* others can only make more of it */
}

static uint32_t steal_at_most(uint32_t length, struct weft__runq *into)
{
    uint32_t half = (length + 1) / 2;
    uint32_t room = room_of(into) + 1; /* one more is run at once */
    return half < room ? half : room;
}

struct weft__haul weft__runq_steal_half(struct weft__runq *from, struct weft__runq *into, bool lone)
{
    uint32_t least = lone ? 1 : 2;
    uint32_t length = weft__runq_length(from);
    struct weft__haul haul = {0};

    if (length < least) return haul; /* no fence spent: a searcher looks at many rings */
    uint32_t most = steal_at_most(length, into);
    uint64_t head = load_relaxed(&from->head); /* relaxed: ordered by the fence */
    fence_seq_cst();                           /* [runq-sb] with take_newest */
    haul.run = steal_at(from, &head, least);
    if (!haul.run) return haul;
    for (haul.count = 1; haul.count < most; haul.count++) {
        mb_after_rmw(); /* [runq-sb] with take_newest: the head that our CAS has written */
        struct weft_task *t = steal_at(from, &head, least);
        if (!t) break;
        bool pushed = weft__runq_push(into, t);
        weft_assert(pushed);
    }
    return haul;
}

void weft__runq_check(struct weft__runq *q)
{
    uint64_t head = load_relaxed(&q->head); /* relaxed: an older head shows tasks just taken, still whole */
    uint64_t tail = load_relaxed(&q->tail); /* relaxed: this thread is the only writer */

    weft_assert(tail - head <= WEFT__RUNQ_CAP);
    for (uint64_t i = head; i != tail; i++) {
        struct weft_task *t = load_relaxed(weft__runq_slot(q, i)); /* relaxed: our own store */
        weft_assert(t);
        for (uint64_t j = head; j != i; j++) {
            weft_assert(load_relaxed(weft__runq_slot(q, j)) != t); /* relaxed: our own store */
        }
    }
}
