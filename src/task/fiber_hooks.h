/* SPDX-License-Identifier: MIT
 *
 * fiber_hooks - what ASan, TSan and Valgrind must be told when a stack is made, entered, left and
 * given back. In a plain build nothing is left of it but Valgrind's registration, a few
 * instructions at a fiber's birth and end.
 *
 * ASan must know the bounds of the stack that it finds itself on; it tells the fiber those of its
 * poller's, so nobody has to ask pthreads. TSan keeps a record per fiber, and makes what the poller
 * did visible to it: the happens-before that one thread's program order gives. Each pair of hooks is
 * expanded in the very function that switches: a helper's return would be booked on the wrong stack.
 */
#ifndef WEFT_TASK_FIBER_HOOKS_H
#define WEFT_TASK_FIBER_HOOKS_H

#include "base/atomic.h"
#include "base/sanitize.h"
#include "task/context.h"

#include <stdbool.h>
#include <stddef.h>

#if defined(WEFT__ASAN)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(WEFT__TSAN)
#include <sanitizer/tsan_interface.h>
#endif
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#define WEFT__VALGRIND 1
#endif

/* What the tools need of one fiber; part of its control block. Written by whoever runs or polls it. */
struct weft__fiber_hooks {
    void *lo;          /* constant; the stack's low end */
    size_t bytes;      /* constant */
    unsigned valgrind; /* constant; the number it gave to the stack */
#if defined(WEFT__ASAN)
    void *fake;            /* ASan's frames of this fiber, while it is left */
    const void *poller_lo; /* the poller's stack, while it is polled */
    size_t poller_bytes;
    void *poller_fake;
#endif
#if defined(WEFT__TSAN)
    void *self;
    void *poller;
#endif
};

static inline void weft__fiber_hooks_init(struct weft__fiber_hooks *h, void *lo, size_t bytes)
{
    *h = (struct weft__fiber_hooks){.lo = lo, .bytes = bytes};
#if defined(WEFT__TSAN)
    h->self = __tsan_create_fiber(0);
#endif
#if defined(WEFT__VALGRIND)
    h->valgrind = VALGRIND_STACK_REGISTER(lo, (char *)lo + bytes);
#endif
}

/* After its last switch. */
static inline void weft__fiber_hooks_done(struct weft__fiber_hooks *h)
{
    (void)h;
#if defined(WEFT__TSAN)
    __tsan_destroy_fiber(h->self);
#endif
#if defined(WEFT__VALGRIND)
    VALGRIND_STACK_DEREGISTER(h->valgrind);
#endif
}

#define WEFT__FIBER_HOOK WEFT__UNSANITIZED static inline __attribute__((always_inline)) void

/* By the poller, on its own stack, before the switch to the fiber. */
WEFT__FIBER_HOOK weft__fiber_hook_enter(struct weft__fiber_hooks *h)
{
    (void)h;
#if defined(WEFT__TSAN)
    h->poller = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(h->self, 0);
#endif
#if defined(WEFT__ASAN)
    __sanitizer_start_switch_fiber(&h->poller_fake, h->lo, h->bytes);
#endif
}

/* By the poller, on its own stack, after the switch back. */
WEFT__FIBER_HOOK weft__fiber_hook_left(struct weft__fiber_hooks *h)
{
    (void)h;
#if defined(WEFT__ASAN)
    __sanitizer_finish_switch_fiber(h->poller_fake, NULL, NULL);
#endif
}

/* By the fiber, before it switches back; `for_good`: it will not be entered again. */
WEFT__FIBER_HOOK weft__fiber_hook_leave(struct weft__fiber_hooks *h, bool for_good)
{
    (void)h;
    (void)for_good;
#if defined(WEFT__TSAN)
    __tsan_switch_to_fiber(h->poller, 0);
#endif
#if defined(WEFT__ASAN)
    __sanitizer_start_switch_fiber(for_good ? NULL : &h->fake, h->poller_lo, h->poller_bytes);
#endif
}

/* By the fiber, the first thing when it is entered, the first time too. */
WEFT__FIBER_HOOK weft__fiber_hook_entered(struct weft__fiber_hooks *h)
{
    (void)h;
#if defined(WEFT__ASAN)
    __sanitizer_finish_switch_fiber(h->fake, &h->poller_lo, &h->poller_bytes);
#endif
}

#endif
