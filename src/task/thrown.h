/* SPDX-License-Identifier: MIT
 *
 * thrown - the C++ exceptions that a fiber is handling, while it is suspended.
 *
 * The C++ runtime keeps them in a record of the thread: a stack of those whose catch block is running, and a count of those
 * in flight. A fiber that suspends inside a catch block would leave its own on the thread, to be found by the next fiber there,
 * and not find them where it goes on. So every poll exchanges the record's two words, as it exchanges the stack: each fiber
 * begins with none, and has its own.
 *     struct __cxa_eh_globals { void *caughtExceptions; unsigned uncaughtExceptions; }    the Itanium C++ ABI, 2.2.2
 * A program without C++ has no such record; the symbol is weak, and the exchange is one test. (One that loads its first C++
 * code by dlopen is taken for such a program.) With C++ it is a call and eight moves, about 2 ns a poll.
 *
 * Threads: the poller, for the fiber that it polls. Rejected: looking only at suspensions (a fiber polled inside another's catch
 * block would take the other's exceptions along).
 */
#ifndef WEFT_TASK_THROWN_H
#define WEFT_TASK_THROWN_H

#include <stddef.h>

struct weft__thrown {
    void *caught;      /* the innermost whose handler runs */
    unsigned uncaught; /* in flight */
};

/* NOLINTNEXTLINE(bugprone-reserved-identifier): the C++ ABI's */
extern struct weft__thrown *__cxa_get_globals(void) __attribute__((weak));

/* Make `now` the thread's. Gives what it was. */
static inline struct weft__thrown weft__thrown_swap(struct weft__thrown now)
{
    struct weft__thrown before = {.caught = NULL};
    if (__builtin_expect(!__cxa_get_globals, 1)) return before;
    struct weft__thrown *record = __cxa_get_globals();
    before = *record;
    *record = now;
    return before;
}

#endif
