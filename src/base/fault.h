/* SPDX-License-Identifier: MIT
 *
 * fault - a test's way to make the nth call of a kind fail; nothing in builds without WEFT_FAULTS.
 *
 *     weft__fault_arm(WEFT__FAULT_MMAP, 3, 1, -ENOMEM);   the third mmap from now on fails, once, with -ENOMEM
 *     weft__fault_arm(WEFT__FAULT_ALLOC, 1, UINT32_MAX, -ENOMEM);   every allocation fails
 *     weft__fault_calls(WEFT__FAULT_MMAP)   how many calls were made since: a test loops n over this, as SQLite's and curl's do
 * At the call itself:
 *     int r = weft__fault(WEFT__FAULT_MMAP);
 *     if (r < 0) return r;
 * Threads: any; counting is atomic, so with several threads "the nth" is the nth of all of them.
 */
#ifndef WEFT_BASE_FAULT_H
#define WEFT_BASE_FAULT_H

#include <stdint.h>

/* One kind per call that can fail. The X-macro keeps the names printable: weft__fault_name. */
#define WEFT__FAULT_KINDS(X)                                                                                           \
    X(ALLOC)                                                                                                           \
    X(MMAP)                                                                                                            \
    X(MADVISE)                                                                                                         \
    X(MPROTECT)                                                                                                        \
    X(THREAD)                                                                                                          \
    X(AFFINITY)                                                                                                        \
    X(FUTEX_WAIT)                                                                                                      \
    X(CLOCK)                                                                                                           \
    X(EPOLL_CREATE)                                                                                                    \
    X(EPOLL_CTL)                                                                                                       \
    X(EPOLL_WAIT)                                                                                                      \
    X(EVENTFD)                                                                                                         \
    X(OPEN)                                                                                                            \
    X(READ)                                                                                                            \
    X(WRITE)

enum weft__fault_kind {
#define X(name) WEFT__FAULT_##name,
    WEFT__FAULT_KINDS(X)
#undef X
    WEFT__FAULT_COUNT
};

#if defined(WEFT_FAULTS)
int weft__fault(enum weft__fault_kind kind);                /* 0, or the error this call has to return */
void weft__fault_arm(enum weft__fault_kind kind, uint32_t nth, uint32_t times, int error);
void weft__fault_reset(void);                               /* disarm all kinds and forget all counts */
uint32_t weft__fault_calls(enum weft__fault_kind kind);     /* calls since the kind was armed, or since the reset */
const char *weft__fault_name(enum weft__fault_kind kind);
#else
#define weft__fault(kind) ((void)(kind), 0)
#endif

#endif
