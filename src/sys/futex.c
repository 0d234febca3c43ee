/* SPDX-License-Identifier: MIT
 *
 * futex - the syscall, with an absolute monotonic deadline.
 */
#include "sys/futex.h"

#include "base/fault.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if !defined(WEFT_MODEL)

int weft__futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns)
{
    struct timespec at;
    struct timespec *until = NULL;
    int r = weft__fault(WEFT__FAULT_FUTEX_WAIT);

    if (r < 0) return r;
    if (deadline_ns != WEFT__NEVER) {
        if (deadline_ns < 0) deadline_ns = 0;
        at.tv_sec = deadline_ns / 1000000000;
        at.tv_nsec = deadline_ns % 1000000000;
        until = &at;
    }
    /* WAIT_BITSET takes an absolute time; WAIT would take a relative one, and lose time on every spurious return. */
    int before =
        errno; /* the program's: this is its own thread's wait, and to be late is no error */
    long done = syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected, until, NULL, FUTEX_BITSET_MATCH_ANY);
    if (done < 0) r = -errno;
    errno = before;
    return r;
}

int weft__futex_wake(_Atomic uint32_t *word, int count)
{
    int before = errno;
    long woken = syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count, NULL, NULL, 0);
    errno = before;
    return woken < 0 ? 0 : (int)woken; /* it fails only for a word that is no memory any more: nobody sleeps there */
}

#endif
