/* SPDX-License-Identifier: MIT
 *
 * call - a system call where it stands: no call around it, no errno.
 *
 *     ssize_t r = WEFT__CALL(WEFT__FAULT_RECV, weft__call6(SYS_recvfrom, fd, (long)buf, (long)len, flags, 0, 0));
 * For the few calls that every request of a server makes. libc's are points of pthread_cancel in a process with threads, at 45 instructions
 * each; and a level of calls around one costs more than its instructions, as measured (docs/BENCHMARKS.md).
 * Sanitizers know libc's calls alone: there WEFT__CALL_BY_LIBC is defined, and the caller makes that.
 * Threads: any.
 */
#ifndef WEFT_SYS_CALL_H
#define WEFT_SYS_CALL_H

#include "base/fault.h"
#include "base/sanitize.h"

#include <errno.h>
#include <sys/types.h>

#if defined(WEFT__TSAN) || defined(WEFT__ASAN) || defined(WEFT__MSAN)
#define WEFT__CALL_BY_LIBC 1
#endif

#if !defined(WEFT__CALL_BY_LIBC) && !defined(__x86_64__) && !defined(__aarch64__)
#define WEFT__CALL_BY_LIBC 1
#endif

#if !defined(WEFT__CALL_BY_LIBC)

/* A count, or a negative errno. */
static inline long weft__call6(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long answer;
    __asm__ volatile("syscall"
                     : "=a"(answer)
                     : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return answer;
#else
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc #0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
#endif
}

#endif

/* As WEFT__ANSWER (answer.h), of a call that answers a negative errno itself. */
#define WEFT__CALL(kind, ...)                                                                      \
    ({                                                                                             \
        ssize_t weft__r;                                                                           \
        do {                                                                                       \
            weft__r = weft__fault(kind);                                                           \
            if (weft__r == 0) weft__r = (__VA_ARGS__);                                             \
        } while (__builtin_expect(weft__r == -EINTR, 0));                                          \
        weft__r;                                                                                   \
    })

#endif
