/* SPDX-License-Identifier: MIT
 *
 * spent - handles that are used after they were spent, caught in debug builds.
 *
 * Two nets, neither of which is there in release builds:
 *     SPENT       a flag of the state word: the handle was given to join or detach. It catches the
 *                 second spender while other references keep the task.
 *     the ring    a block that is to be freed first waits here, as it was: complete and without
 *                 references. Whoever comes with its handle finds that, and is told the task's name
 *                 and place. The oldest leaves when another comes.
 * What is used later than WEFT__SPENT_MAX frees of its thread, or was in a pool, finds a free block, which is told
 * without a name, or another task, which nobody can know. weft_cancel, weft_wait and weft_done by the
 * owner of a spent handle are caught once the task is gone; before, somebody else's reference would
 * look the same.
 *
 * Threads: a ring belongs to a worker; that of all other threads is under a lock of the runtime's.
 * Rejected: a generation in the low bits of each handle, which would catch more, but every function
 * that takes a handle would have to take it out, and a debugger could not follow one.
 */
#ifndef WEFT_SCHED_SPENT_H
#define WEFT_SCHED_SPENT_H

#include "limits.h"
#include "types.h"

#if defined(WEFT_DEBUG)

struct weft__spent {
    struct weft_task *ring[WEFT__SPENT_MAX]; /* NULL: empty place */
    uint32_t next;                           /* where the oldest is */
    bool closed;                             /* nothing waits here any more */
};

/* Does the task's block wait? That of a pool does not: it is the program's memory, and a pool of four
 * would be full for ever. */
bool weft__spent_waits(const struct weft_task *task);

/* Takes a complete task without references, whose frame and extras are gone. Gives back the one that
 * is to be freed in its place, or NULL. */
struct weft_task *weft__spent_put(struct weft__spent *spent, struct weft_task *task);

/* Gives back one that waits, or NULL; from the first call on nothing waits here any more. */
struct weft_task *weft__spent_close(struct weft__spent *spent);

/* The caller uses a handle or reference: is its task there? If not, says who used it, and aborts. */
void weft__handle_check(const struct weft_task *task, const char *user);

/* The same for one that spends the handle. */
void weft__handle_spend(struct weft_task *task, const char *user);

#else
#define weft__handle_check(task, user) ((void)(task))
#define weft__handle_spend(task, user) ((void)(task))
#endif

#endif
