/* SPDX-License-Identifier: MIT
 *
 * fiber - a future with a stack of its own: its poll switches to that stack and comes back.
 *
 * A poll is a call. It enters the fiber, which runs to its next suspension or its end and switches
 * back to whoever polled: a worker, a thread, or another fiber. So a poll begins and ends on one
 * thread, fibers nest as calls do, and the fiber may be entered on another thread the next time.
 *
 *     NEW       -> RUNNING    [first poll: gets its stack]
 *     RUNNING   -> SUSPENDED  [weft__fiber_suspend; the poller, after the switch back]
 *     SUSPENDED -> RUNNING    [poll]
 *     RUNNING   -> ENDED      [body returned; the poller, after the switch back, gives the stack back]
 * Only the poller marks a fiber as no longer running, and only it frees the stack: until the switch
 * is over somebody still stands on it. A task's own state word keeps a second poller away meanwhile.
 *
 * The control block lies at the top of the stack, so that a fiber costs no memory beside it:
 *     lo                                            hi = lo + bytes
 *     | <- grows down ........ | control block | 0 to 15 lines of colour |
 * The colour follows from the stack's address; without it the tops of all stacks would meet in the
 * same few lines of the cache.
 *
 * NO STACK  Where memory or mappings are at their end, a task that is a fiber settles without having
 * run, and its joiner is told -ENOMEM: as the result, where that is a signed integer, by the convention
 * of all errors; else as weft_join's own answer, for which the task is marked (weft__fiber_never_ran).
 * To try again until there is a stack could wait for ever: those who have one may wait for this task.
 * A fiber inside of another future has nobody who could be told, since the type of its result is not
 * known here: its poll asks to be queued behind the others, and tries again; the first time one line on
 * stderr says so. One polled where there is no pool (here->stacks is NULL) brings a pool of one stack,
 * which ends with it.
 *
 * Threads: a fiber is polled by one thread at a time, any; the hand-over is the poll protocol's.
 * Rejected: jumps from fiber to fiber (who polls whom would be lost, and with it here, cx and the
 * joiner); a control block on the heap (an allocation that may fail, a line that is not yet warm).
 */
#ifndef WEFT_TASK_FIBER_H
#define WEFT_TASK_FIBER_H

#include "sys/stack.h"
#include "task/context.h"
#include "task/fiber_hooks.h"
#include "task/region.h"
#include "task/thrown.h"
#include "types.h"

#include <weft/fiber.h>

/* All of it belongs to the poller, from the switch in to the switch back to the fiber itself. */
struct weft__fiber {
    struct weft__context self; /* where the fiber goes on, while it is suspended */
    struct weft__context back; /* where its poller goes on, while it runs */
    void (*body)(void *frame); /* constant, as all down to own_pool */
    void *frame;
    struct weft_task *task; /* whose it is; NULL: polled by a plain thread */
    struct weft__stack *stack;
    struct weft__stacks *pool; /* the stack's home, which need not be the last poller's */
    bool own_pool;             /* the pool is this fiber's alone */
    uint32_t pin_blocks;       /* that it is inside of (sched/place.c) */
    struct weft__region *regions; /* that it is inside of; the innermost (task/region.h) */
    bool running;
    bool polling; /* a frame is polled on its stack: it must not be suspended now */
    bool ended;
    struct weft__thrown thrown; /* C++ exceptions being handled, while it is suspended */
    struct weft__fiber_hooks hooks;
};

/* Suspend the fiber that this thread is on: its poll answers PENDING. Returns when it is polled
 * again, perhaps on another thread: everything that came from weft__here() is stale.
 * Context: fiber, no lock held. */
int weft__fiber_suspend(void);

/* Polls a frame on the fiber's stack, inside of its regions. */
static inline weft_poll weft__fiber_poll_inside(struct weft__fiber *f, weft_pollfn *poll, void *frame,
                                                weft_cx *cx)
{
    if (__builtin_expect(f->regions != NULL, 0))
        return weft__regions_poll(f->regions, poll, frame, cx);
    return poll(frame, cx);
}

/* The fiber that this thread is on has polled a frame, which answered PENDING: suspend it until that one answers READY.
 * Returns 0: so that a caller can end with it. */
int weft__fiber_wait(struct weft__fiber *f, weft_pollfn *poll, void *frame);

/* In the `wait` word of a task that ended before it began, for want of a stack. */
extern const uint64_t weft__no_stack;

/* Asked once the task is complete. */
static inline bool weft__fiber_never_ran(const struct weft_task *task)
{
    return load_relaxed(&task->wait) == (uintptr_t)&weft__no_stack; /* relaxed: ordered by COMPLETE */
}

/* The control block on a stack. Async-signal-safe: an address, nothing is read. */
struct weft__fiber *weft__fiber_at(const char *lo, size_t bytes);

#endif
