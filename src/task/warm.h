/* SPDX-License-Identifier: MIT
 *
 * warm - a task's lines, asked for before its poll needs them.
 *
 * Of a task among thousands nothing is in a cache by its next poll, and a poll waits for one line after the other, each of which says where the next one is. Who
 * knows several tasks that are about to be polled asks for those of all of them, a step at a time, and they come side by side. A hint: nothing hangs on it.
 * Threads: whoever keeps the task from ending. Nothing is written, and only what is constant from the task's first poll on is read.
 */
#ifndef WEFT_TASK_WARM_H
#define WEFT_TASK_WARM_H

#include "limits.h"
#include "types.h"

#include <weft/fiber.h>

/* Lines below a waiter on a fiber's stack that its poll uses: the calls from the wait to the switch, and those of the try behind it. */
#define WEFT__WARM_STACK_LINES 4

static inline void weft__warm_line(const void *at, ptrdiff_t lines)
{
    __builtin_prefetch((const char *)at + lines * WEFT__CACHE_LINE, 1);
}

/* The same of memory that is there, and whose page may not be known to the processor: it drops a prefetch then, and loads wait for each other only if there are hundreds. Who writes
 * there meanwhile is not disturbed: nobody gets to see what was read. */
static inline void weft__warm_page(const void *at)
{
#if defined(__x86_64__)
    __asm__ volatile("testb %%al, %0" : : "m"(*(const char *)at) : "cc");
#elif defined(__aarch64__)
    __asm__ volatile("ldrb wzr, %0" : : "Q"(*(const char *)at));
#else
    weft__warm_line(at, 0);
#endif
}

/* The first step: all that is known is where the task waits. */
static inline void weft__warm_waiter(const void *waiter)
{
    weft__warm_page(waiter);
}

/* The second, once the waiter is there: its task; and what lies around the waiter, which is the frame of its operation, and behind that often the buffer. */
static inline void weft__warm_task(const struct weft_task *task, const void *waiter)
{
    weft__warm_line(task, 0);
    weft__warm_line(task + 1, 0);
    weft__warm_line(waiter, -1);
    weft__warm_line(waiter, 1);
    weft__warm_line(waiter, 2);
}

/* The third, once that is: what its poll begins with. */
static inline void weft__warm_poll(const struct weft_task *task, const void *waiter)
{
    const struct weft_site *site = task->site;
    const void *place = task + 1;
    bool boxed = site->frame_bytes > WEFT__FRAME_MAX;
    if (boxed) weft__warm_page(*(const void *const *)place);
    if (site->kind != WEFT__FIBER) return;
    if (site->poll == weft__go_poll && !boxed) { /* a box would have to be waited for */
        const struct weft__go_frame *frame = place;
        weft__warm_page(frame->weft__fiber); /* the control block */
        weft__warm_line(frame->weft__fiber, 1);
    }
    for (ptrdiff_t i = 2; i <= WEFT__WARM_STACK_LINES; i++)
        weft__warm_line(waiter, -i);
}

#endif
