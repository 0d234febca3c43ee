/* SPDX-License-Identifier: MIT
 *
 * The three run queues of micro/runq, and the job that they carry. Code, not declarations: all of it is to be inlined into
 * the cases, so this is a part of runq.c, which explains it.
 */
#ifndef WEFT_BENCH_RUNQ_QUEUES_H
#define WEFT_BENCH_RUNQ_QUEUES_H

#include "sched/runq.h"

#include "base/assert.h"
#include "sched/slot.h"

#include <linux/membarrier.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define INLINE static inline __attribute__((always_inline))

/* ---- the work -------------------------------------------------------------------------------- */

struct job {
    struct weft_task task;
    _Atomic uint64_t value; /* relaxed everywhere: a thief may run what is queued again */
    uint32_t position;      /* index in the private ring, for a claim out of the middle */
};

static struct job *jobs;

static uint64_t crunch(uint64_t value)
{
    for (int i = 0; i < 4; i++) value = value * 6364136223846793005 + 1442695040888963407;
    return value;
}

INLINE void run_job(struct weft_task *t)
{
    struct job *job = (struct job *)t;
    store_relaxed(&job->value, crunch(load_relaxed(&job->value)));
}

/* ---- cas: the ring and the slot of the library ----------------------------------------------- */

struct cas_queue {
    struct weft__slot next;
    struct weft__runq ring;
};

static struct cas_queue cas;
static struct weft__runq thief_ring;

INLINE void cas_push(struct weft_task *t)
{
    bool pushed = weft__runq_push(&cas.ring, t);
    weft_assert(pushed);
}

INLINE struct weft_task *cas_take_oldest(void)
{
    return weft__runq_take_oldest(&cas.ring);
}

INLINE struct weft_task *cas_take_newest(void)
{
    return weft__runq_take_newest(&cas.ring);
}

INLINE struct weft_task *cas_claim(struct weft_task *t)
{
    (void)t; /* it runs its siblings from the newest on, until the one it waits for is done */
    return weft__runq_take_newest(&cas.ring);
}

INLINE struct weft_task *cas_put_next(struct weft_task *t)
{
    return weft__slot_put(&cas.next, t);
}

INLINE struct weft_task *cas_take_next(void)
{
    return weft__slot_take(&cas.next);
}

INLINE uint32_t cas_length(void)
{
    return weft__runq_length(&cas.ring);
}

INLINE void nothing(void)
{
}

static void cas_init(void)
{
    weft__slot_init(&cas.next, false);
    weft__runq_init(&cas.ring);
    weft__runq_init(&thief_ring);
}

static uint32_t cas_steal(void)
{
    struct weft__haul haul = weft__runq_steal_half(&cas.ring, &thief_ring, false);
    if (haul.run) run_job(haul.run);
    for (struct weft_task *t; (t = weft__runq_take_oldest(&thief_ring));) run_job(t);
    return haul.count;
}

/* ---- private: a plain ring, half of it published now and then -------------------------------- */

struct private_queue {
    uint32_t head; /* owner only, with tail, slot and next */
    uint32_t tail;
    struct weft_task *next;
    struct weft_task *slot[WEFT__RUNQ_CAP];
    WEFT__CACHE_ALIGNED _Atomic uint32_t inside;   /* biased: the owner is in its queue */
    WEFT__CACHE_ALIGNED _Atomic uint32_t revoked;  /* biased: somebody takes over */
    _Atomic uint32_t wanted;                       /* a thief found nothing published */
    WEFT__CACHE_ALIGNED _Atomic uint64_t out_head; /* the published ring: CAS by takers */
    WEFT__CACHE_ALIGNED _Atomic uint64_t out_tail; /* stored by the owner */
    struct weft_task *_Atomic out[WEFT__RUNQ_CAP];
};

static struct private_queue priv;

INLINE struct weft_task **private_slot(uint32_t index)
{
    return &priv.slot[index & (WEFT__RUNQ_CAP - 1)];
}

INLINE void private_push(struct weft_task *t)
{
    weft_assert(priv.tail - priv.head < WEFT__RUNQ_CAP);
    ((struct job *)t)->position = priv.tail;
    *private_slot(priv.tail++) = t;
}

/* A claim leaves a hole; who comes by passes over it. */
INLINE struct weft_task *private_take_oldest(void)
{
    while (priv.head != priv.tail) {
        struct weft_task *t = *private_slot(priv.head++);
        if (t) return t;
    }
    return NULL;
}

INLINE struct weft_task *private_take_newest(void)
{
    while (priv.head != priv.tail) {
        struct weft_task *t = *private_slot(--priv.tail);
        if (t) return t;
    }
    return NULL;
}

INLINE struct weft_task *private_claim(struct weft_task *t)
{
    uint32_t at = ((struct job *)t)->position;

    if (*private_slot(at) != t || at - priv.head >= priv.tail - priv.head) return NULL;
    *private_slot(at) = NULL;
    while (priv.tail != priv.head && !*private_slot(priv.tail - 1)) priv.tail--;
    return t;
}

INLINE struct weft_task *private_put_next(struct weft_task *t)
{
    struct weft_task *before = priv.next;
    priv.next = t;
    return before;
}

INLINE struct weft_task *private_take_next(void)
{
    struct weft_task *t = priv.next;
    priv.next = NULL;
    return t;
}

INLINE uint32_t private_length(void)
{
    return priv.tail - priv.head;
}

/* At a tick: somebody wants work and nothing is out. Half, oldest first. */
static void private_publish(void)
{
    uint64_t tail = load_relaxed(&priv.out_tail); /* relaxed: the owner's own */
    uint32_t half = private_length() / 2;

    if (load_acquire(&priv.out_head) != tail) return;
    for (uint32_t i = 0; i < half; i++) {
        struct weft_task *t = private_take_oldest();
        if (!t) break;
        store_relaxed(&priv.out[tail++ & WEFT__RUNQ_MASK], t); /* relaxed: published by the tail */
    }
    store_release(&priv.out_tail, tail);
    store_relaxed(&priv.wanted, 0); /* relaxed: a hint */
}

INLINE void private_tick(void)
{
    if (load_relaxed(&priv.wanted)) private_publish(); /* relaxed: a hint */
}

static void private_init(void)
{
    memset(&priv, 0, sizeof(priv));
}

/* All that is out, with one CAS: sound, since its owner never takes back at the tail. */
static uint32_t private_steal(void)
{
    struct weft_task *batch[WEFT__RUNQ_CAP];
    uint64_t head = load_acquire(&priv.out_head);
    uint32_t count = (uint32_t)(load_acquire(&priv.out_tail) - head);

    if (count == 0 || count > WEFT__RUNQ_CAP) {
        if (!load_relaxed(&priv.wanted)) store_relaxed(&priv.wanted, 1); /* relaxed: a hint */
        return 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        batch[i] = load_relaxed(&priv.out[(head + i) & WEFT__RUNQ_MASK]);
    }
    if (!cas_acq_rel(&priv.out_head, &head, head + count)) return 0;
    for (uint32_t i = 0; i < count; i++) run_job(batch[i]);
    return count;
}

/* ---- biased: the same behind a lock that costs its owner a store and a load ------------------ */

static __attribute__((noinline)) void biased_wait(void)
{
    do {
        store_release(&priv.inside, 0);
        while (load_acquire(&priv.revoked)) cpu_pause();
        store_relaxed(&priv.inside, 1);
        atomic_signal_fence(memory_order_seq_cst);
    } while (load_acquire(&priv.revoked));
}

INLINE void biased_enter(void)
{
    store_relaxed(&priv.inside, 1); /* relaxed: the taker's membarrier is the fence of both */
    atomic_signal_fence(memory_order_seq_cst); /* the compiler keeps the order too */
    if (__builtin_expect(load_acquire(&priv.revoked), 0)) biased_wait();
}

INLINE void biased_leave(void)
{
    store_release(&priv.inside, 0);
}

INLINE void biased_push_inside(struct weft_task *t)
{
    biased_enter();
    private_push(t);
    biased_leave();
}

INLINE struct weft_task *biased_take_newest(void)
{
    biased_enter();
    struct weft_task *t = private_take_newest();
    biased_leave();
    return t;
}

INLINE struct weft_task *biased_claim(struct weft_task *t)
{
    biased_enter();
    t = private_claim(t);
    biased_leave();
    return t;
}

INLINE struct weft_task *biased_put_next(struct weft_task *t)
{
    biased_enter();
    t = private_put_next(t);
    biased_leave();
    return t;
}

static int membarrier_expedited(void)
{
    return (int)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

/* What a taker-over does to an owner that is not in its queue. */
static void biased_take_over(void)
{
    store_relaxed(&priv.revoked, 1); /* relaxed: the membarrier orders it */
    (void)membarrier_expedited();
    while (load_acquire(&priv.inside)) cpu_pause();
    store_release(&priv.revoked, 0);
}

#endif
