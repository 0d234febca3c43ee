/* SPDX-License-Identifier: MIT
 *
 * name - what reports call a task: its own name, which was given at the spawn, else its function's.
 *
 * An own name is borrowed for the task's life, and its place in the task's ext is freed behind that.
 * Whoever keeps the task from ending reads it as it is. Whoever does not, copies it by sys/peek and
 * looks afterwards whether the task still lived: the copy is good then (sched/snapshot.h says why).
 * Of one that has ended the function's name is left, and where it was spawned.
 * Threads: any.
 */
#ifndef WEFT_TASK_NAME_H
#define WEFT_TASK_NAME_H

#include "types.h"

#include <stddef.h>

/* Characters of a copied name, with the zero; a longer one is cut. */
#define WEFT__NAME_BYTES 128

/* By who keeps the task from ending. */
static inline const char *weft__name_of(const struct weft_task *task)
{
    const struct weft__ext *ext = weft__ext_of(task);
    return ext && ext->name ? ext->name : task->site->name;
}

/* The own name of a task that may end, or have ended, and whose block may be gone: of the one that
 * lived there when its state word was `state`. `into` holds WEFT__NAME_BYTES, and is good only if 0 is
 * returned. Returns 0; -ENOENT: it has none; -ESRCH: it has ended; -EFAULT, -ENOSYS, -EPERM: it
 * cannot be read. */
int weft__name_peek(const struct weft_task *task, uint64_t state, char *into);

#endif
