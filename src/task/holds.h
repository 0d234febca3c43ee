/* SPDX-License-Identifier: MIT
 *
 * holds - debug builds: which locks a task has, so that one that ends with a lock is told by name at its end.
 *
 * Nobody else may give back what a task has locked. Whoever comes to wait for it later is told (sync/holder.h); but whoever waits by then sleeps, and a task that
 * ends looks at no lock. So a lock is noted by who takes it, and at the end of a task those that it has still are told, each by a line with the place.
 *
 * A table by the task, of addresses of locks, without a lock of its own: what a lock costs is counted in these builds, too. Two who note at the same moment may take one
 * place, and one goes unseen then; so does what a full group has no room for. But nothing is said that is not so: at the end the lock itself is looked at, by a copy,
 * for its memory may be another's by then, and says whether it is this task's, and since where.
 * Read locks, semaphores and permits belong to nobody, and are not noted; neither is what a plain thread has.
 * Release builds have none of it. Threads: any. Fork: the child forgets what was held in its parent.
 */
#ifndef WEFT_TASK_HOLDS_H
#define WEFT_TASK_HOLDS_H

#include "types.h"

#if defined(WEFT_DEBUG) && !defined(WEFT_MODEL)
/* The task that runs here has taken a lock, of which `word` says so (sync/holder.h), and the word behind it since where. No task runs here: nothing. */
void weft__holds_add(const _Atomic uintptr_t *word);

/* It gives that back. */
void weft__holds_remove(const _Atomic uintptr_t *word);

/* The task is about to end. */
void weft__holds_check(const struct weft_task *task);

/* In the child of a fork, with one thread. */
void weft__holds_forget(void);
#else
static inline void weft__holds_add(const _Atomic uintptr_t *word)
{
    (void)word;
}

static inline void weft__holds_remove(const _Atomic uintptr_t *word)
{
    (void)word;
}

static inline void weft__holds_check(const struct weft_task *task)
{
    (void)task;
}

static inline void weft__holds_forget(void)
{
}
#endif

#endif
