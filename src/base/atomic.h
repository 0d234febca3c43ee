/* SPDX-License-Identifier: MIT
 *
 * atomic - the one way to touch shared memory: atomics whose names carry their order.
 *
 * Fields are declared `_Atomic`; code reads and writes them through these wrappers only, so that three builds can give them three meanings:
 *     production   C11's <stdatomic.h>, nothing added
 *     TSan         the same, but a stand-alone fence becomes a read-modify-write of one word: TSan does not understand fences
 *     WEFT_MODEL   every access is a scheduling point of the model checker (tests/model/checker), which also chooses what a load sees
 *
 * Vocabulary, each with an order in its name:
 *     load_{relaxed,acquire,seq_cst}  store_{relaxed,release,seq_cst}
 *     exchange_, fetch_add_, fetch_sub_, fetch_or_, fetch_and_  {relaxed,acquire,release,acq_rel,seq_cst}
 *     cas_{relaxed,acquire,release,acq_rel,seq_cst}(p, &expected, desired): strong; on failure `expected` holds what was seen, with the
 *         order's acquire half (cas_release and cas_relaxed fail relaxed)
 *     fence_{acquire,release,seq_cst}()
 *     mb_after_rmw(): a full fence, free where the read-modify-write just done in this thread already was one (x86)
 *     fence_light(): orders nothing but the compiler; a full fence beside whoever calls weft__membarrier, which makes it one (sys/membarrier.h)
 *     own_add(p, n), own_add_release(p, n): a counter of 8 or 4 bytes that this thread alone writes and others read: no read-modify-write, but
 *         one instruction where the machine has it (x86), which compilers do not make of an atomic load and store
 *     plain_read(p), plain_write(p, v): ordinary accesses that claim to be ordered by something else; the model checker holds them to it
 *     cpu_pause(): inside a spin loop; the model checker lets others run first
 *
 * Every acquire, release and fence in the library names its pair in brackets; docs/MEMORY_MODEL.md lists the pairs.
 */
#ifndef WEFT_BASE_ATOMIC_H
#define WEFT_BASE_ATOMIC_H

#include "base/sanitize.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Two words that different threads write at high rate lie this far apart. 64 is the line of x86-64 and most aarch64; 128 would cost memory for the
 * adjacent-line prefetcher's sake, which no measurement here has shown. */
#define WEFT__CACHE_LINE    64
#define WEFT__CACHE_ALIGNED _Alignas(WEFT__CACHE_LINE)

#if defined(WEFT_MODEL)
#include "model_atomic.h"
#else

#define weft__a_load(p, order)          atomic_load_explicit((p), memory_order_##order)
#define weft__a_store(p, v, order)      atomic_store_explicit((p), (v), memory_order_##order)
#define weft__a_exchange(p, v, order)   atomic_exchange_explicit((p), (v), memory_order_##order)
#define weft__a_fetch_add(p, v, order)  atomic_fetch_add_explicit((p), (v), memory_order_##order)
#define weft__a_fetch_sub(p, v, order)  atomic_fetch_sub_explicit((p), (v), memory_order_##order)
#define weft__a_fetch_or(p, v, order)   atomic_fetch_or_explicit((p), (v), memory_order_##order)
#define weft__a_fetch_and(p, v, order)  atomic_fetch_and_explicit((p), (v), memory_order_##order)
#define weft__a_cas(p, e, v, good, bad) \
    atomic_compare_exchange_strong_explicit((p), (e), (v), memory_order_##good, memory_order_##bad)

#if defined(WEFT__TSAN)
extern _Atomic uint32_t weft__tsan_fence_word;
#define weft__a_fence(order) ((void)atomic_fetch_add_explicit(&weft__tsan_fence_word, 0, memory_order_seq_cst))
#elif defined(__x86_64__)
/* A full fence by a locked instruction, as gcc makes it; clang's mfence costs eight times as much. Release and acquire need no instruction. */
#define weft__a_fence(order)                                                                                           \
    (memory_order_##order == memory_order_seq_cst ? weft__full_fence() : atomic_thread_fence(memory_order_##order))
static inline void weft__full_fence(void)
{
    __asm__ volatile("lock; orq $0, (%%rsp)" ::: "memory", "cc");
}
#else
#define weft__a_fence(order) atomic_thread_fence(memory_order_##order)
#endif

#if defined(__x86_64__) && !defined(WEFT__TSAN)
#define mb_after_rmw() atomic_signal_fence(memory_order_seq_cst) /* a locked instruction is a full barrier */
#else
#define mb_after_rmw() weft__a_fence(seq_cst)
#endif

#define fence_light() atomic_signal_fence(memory_order_seq_cst)

#if defined(__x86_64__) && !defined(WEFT__TSAN)
#define WEFT__OWN_ADD 1
/* volatile and "memory" for the release alone: stores before it stay before it, and on x86 that is all. */
#define weft__own_add_by(p, n, words, ...)                                                                             \
    (sizeof(*(p)) == 8 ? ({ __asm__ words("addq %1, %0" : "+m"(*(uint64_t *)(void *)(p)) : "er"((uint64_t)(n)) : __VA_ARGS__); }) \
                       : ({ __asm__ words("addl %1, %0" : "+m"(*(uint32_t *)(void *)(p)) : "er"((uint32_t)(n)) : __VA_ARGS__); }))
#define own_add(p, n)         weft__own_add_by(p, n, , "cc")
#define own_add_release(p, n) weft__own_add_by(p, n, volatile, "cc", "memory")
#endif

#define plain_read(p)     (*(p))
#define plain_write(p, v) ((void)(*(p) = (v)))

static inline void cpu_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); /* `yield` is a no-op on most cores */
#endif
}

#endif /* WEFT_MODEL */

#define load_relaxed(p)               weft__a_load(p, relaxed)
#define load_acquire(p)               weft__a_load(p, acquire)
#define load_seq_cst(p)               weft__a_load(p, seq_cst)
#define store_relaxed(p, v)           weft__a_store(p, v, relaxed)
#define store_release(p, v)           weft__a_store(p, v, release)
#define store_seq_cst(p, v)           weft__a_store(p, v, seq_cst)

#define exchange_relaxed(p, v)        weft__a_exchange(p, v, relaxed)
#define exchange_acquire(p, v)        weft__a_exchange(p, v, acquire)
#define exchange_release(p, v)        weft__a_exchange(p, v, release)
#define exchange_acq_rel(p, v)        weft__a_exchange(p, v, acq_rel)
#define exchange_seq_cst(p, v)        weft__a_exchange(p, v, seq_cst)

#define fetch_add_relaxed(p, v)       weft__a_fetch_add(p, v, relaxed)
#define fetch_add_acquire(p, v)       weft__a_fetch_add(p, v, acquire)
#define fetch_add_release(p, v)       weft__a_fetch_add(p, v, release)
#define fetch_add_acq_rel(p, v)       weft__a_fetch_add(p, v, acq_rel)
#define fetch_add_seq_cst(p, v)       weft__a_fetch_add(p, v, seq_cst)

#define fetch_sub_relaxed(p, v)       weft__a_fetch_sub(p, v, relaxed)
#define fetch_sub_acquire(p, v)       weft__a_fetch_sub(p, v, acquire)
#define fetch_sub_release(p, v)       weft__a_fetch_sub(p, v, release)
#define fetch_sub_acq_rel(p, v)       weft__a_fetch_sub(p, v, acq_rel)
#define fetch_sub_seq_cst(p, v)       weft__a_fetch_sub(p, v, seq_cst)

#define fetch_or_relaxed(p, v)        weft__a_fetch_or(p, v, relaxed)
#define fetch_or_acquire(p, v)        weft__a_fetch_or(p, v, acquire)
#define fetch_or_release(p, v)        weft__a_fetch_or(p, v, release)
#define fetch_or_acq_rel(p, v)        weft__a_fetch_or(p, v, acq_rel)
#define fetch_or_seq_cst(p, v)        weft__a_fetch_or(p, v, seq_cst)

#define fetch_and_relaxed(p, v)       weft__a_fetch_and(p, v, relaxed)
#define fetch_and_acquire(p, v)       weft__a_fetch_and(p, v, acquire)
#define fetch_and_release(p, v)       weft__a_fetch_and(p, v, release)
#define fetch_and_acq_rel(p, v)       weft__a_fetch_and(p, v, acq_rel)
#define fetch_and_seq_cst(p, v)       weft__a_fetch_and(p, v, seq_cst)

#define cas_relaxed(p, expected, v)   weft__a_cas(p, expected, v, relaxed, relaxed)
#define cas_acquire(p, expected, v)   weft__a_cas(p, expected, v, acquire, acquire)
#define cas_release(p, expected, v)   weft__a_cas(p, expected, v, release, relaxed)
#define cas_acq_rel(p, expected, v)   weft__a_cas(p, expected, v, acq_rel, acquire)
#define cas_seq_cst(p, expected, v)   weft__a_cas(p, expected, v, seq_cst, seq_cst)

#if !defined(WEFT__OWN_ADD)
#define own_add(p, n)         store_relaxed((p), load_relaxed(p) + (n))
#define own_add_release(p, n) store_release((p), load_relaxed(p) + (n))
#endif

#define fence_acquire()               weft__a_fence(acquire)
#define fence_release()               weft__a_fence(release)
#define fence_seq_cst()               weft__a_fence(seq_cst)

#endif
