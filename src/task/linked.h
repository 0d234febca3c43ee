/* SPDX-License-Identifier: MIT
 *
 * linked - debug builds: how many waiters of a task are in a list, or have a turn that they have not taken.
 *
 * A future that was polled is polled until it is READY. One that is dropped before leaves its waiter in a list, or keeps a turn that was somebody's; its
 * frame goes with the task, and whoever comes to that list next writes to what lies there then. So a waiter is counted in when it is queued and out when it is settled, and a
 * task that ends with one is named, and the process aborts.
 *
 * A table by the task's address, in groups that each have a lock: the header of a task has no room. Where a group is full a task is not counted, so a million that wait are
 * no burden, and nothing is said that is not so; a dropped wait may go unseen then. Foreign wakers are not counted.
 * Release builds have none of it. Threads: any. LOCK ORDER: none is taken under a group's. Fork: the child forgets what waited in its parent.
 */
#ifndef WEFT_TASK_LINKED_H
#define WEFT_TASK_LINKED_H

#include "types.h"

#if defined(WEFT_DEBUG) && !defined(WEFT_MODEL)
void weft__linked_add(struct weft_task *task);    /* NULL: nobody's */
void weft__linked_remove(struct weft_task *task); /* likewise */

/* The task is about to end. Aborts if something of it is linked. */
void weft__linked_check(const struct weft_task *task);

/* In the child of a fork, with one thread. */
void weft__linked_forget(void);
#else
static inline void weft__linked_add(struct weft_task *task)
{
    (void)task;
}

static inline void weft__linked_remove(struct weft_task *task)
{
    (void)task;
}

static inline void weft__linked_check(const struct weft_task *task)
{
    (void)task;
}

static inline void weft__linked_forget(void)
{
}
#endif

#endif
