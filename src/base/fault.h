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
 * Threads: any; counting is atomic, so with several threads "the nth" is the nth of all of them. A call that runs while its kind is being armed
 * may still answer by the old arming. Pairs: [fault-arm].
 */
#ifndef WEFT_BASE_FAULT_H
#define WEFT_BASE_FAULT_H

#include <stdint.h>

/* One kind per call that can fail. GUARD is the MADV_GUARD_INSTALL of madvise, MADVISE all its other uses; EPOLL_PWAIT2 stands before EPOLL_WAIT
 * and is for its absence, with -ENOSYS. READ and WRITE are those of events, READV and WRITEV those of pipes, RECV and SEND those of sockets. URING_FETCH is a request that goes on
 * for ever, written so that the kernel itself answers -EINVAL, as one does that does not know it. The X-macro keeps the names printable: weft__fault_name. */
#define WEFT__FAULT_KINDS(X)                                                                       \
    X(ALLOC)                                                                                       \
    X(MMAP)                                                                                        \
    X(MUNMAP)                                                                                      \
    X(MADVISE)                                                                                     \
    X(GUARD)                                                                                       \
    X(MPROTECT)                                                                                    \
    X(THREAD)                                                                                      \
    X(ATFORK)                                                                                      \
    X(THREAD_KEY)                                                                                  \
    X(AFFINITY)                                                                                    \
    X(SLACK)                                                                                       \
    X(FUTEX_WAIT)                                                                                  \
    X(EPOLL_CREATE)                                                                                \
    X(EPOLL_CTL)                                                                                   \
    X(EPOLL_WAIT)                                                                                  \
    X(EPOLL_PWAIT2)                                                                                \
    X(EVENTFD)                                                                                     \
    X(TIMERFD)                                                                                     \
    X(OPEN)                                                                                        \
    X(READ)                                                                                        \
    X(FILE)                                                                                        \
    X(WRITE)                                                                                       \
    X(PEEK)                                                                                        \
    X(PROCESS)                                                                                     \
    X(PIDFD)                                                                                       \
    X(MEMBARRIER)                                                                                  \
    X(URING_SETUP)                                                                                 \
    X(URING_ENTER)                                                                                 \
    X(URING_PROBE)                                                                                 \
    X(URING_TABLE)                                                                                 \
    X(URING_FETCH)                                                                                 \
    X(SOCKET)                                                                                      \
    X(BIND)                                                                                        \
    X(LISTEN)                                                                                      \
    X(ACCEPT)                                                                                      \
    X(CONNECT)                                                                                     \
    X(RECV)                                                                                        \
    X(SEND)                                                                                        \
    X(SHUTDOWN)                                                                                    \
    X(SOCKOPT)                                                                                     \
    X(SOCKNAME)                                                                                    \
    X(PIPE)                                                                                        \
    X(READV)                                                                                       \
    X(WRITEV)                                                                                      \
    X(SPLICE)                                                                                      \
    X(SENDFILE)                                                                                    \
    X(POLL)                                                                                        \
    X(RESOLVE)

enum weft__fault_kind {
#define X(name) WEFT__FAULT_##name,
    WEFT__FAULT_KINDS(X)
#undef X
    WEFT__FAULT_COUNT
};

#if defined(WEFT_FAULTS)
int weft__fault(enum weft__fault_kind kind);                /* 0, or the error this call has to return */
/* From now on the nth call (from 1; 0 disarms) and the times - 1 after it answer `error`, a negative errno. Forgets the kind's count. */
void weft__fault_arm(enum weft__fault_kind kind, uint32_t nth, uint32_t times, int error);
void weft__fault_reset(void);                               /* disarm all kinds and forget all counts */
uint32_t weft__fault_calls(enum weft__fault_kind kind);     /* calls since the kind was armed, or since the reset */
const char *weft__fault_name(enum weft__fault_kind kind);
#else
#define weft__fault(kind) ((void)(kind), 0)
#endif

#endif
