/* SPDX-License-Identifier: MIT
 *
 * lent - debug builds: scopes that have had a child and were not joined since, by where they lie.
 *
 * A scope lies in the frame or on the stack of its owner, and its children write to it. If that memory goes before the
 * scope was joined, they write to whatever comes next. So whoever gives up a frame or a stack asks here whether such a scope
 * is in it: if so, the task is named, and the scope's place in the program, and the process aborts. Whether the children
 * happen to be over by then does not matter: the mistake is found in every run.
 *
 * A table of addresses, in groups that each have a lock, and a mark in the scope itself. The table alone would not do: it may
 * know scopes on the heap that were never joined, and whose memory is somebody else's by now; nor would links through them.
 * Release builds have none of it. Threads: any. LOCK ORDER: rank SLAB, under the scope's own. Fork: the child forgets what its
 * parent has lent. Not found: scopes on the heap, in a boxed frame or on a thread's own stack, and what the table has no room for.
 */
#ifndef WEFT_TASK_LENT_H
#define WEFT_TASK_LENT_H

#include "types.h"

/* Inside of a scope, whose lock guards it. Zero is one that is not listed. */
struct weft__lent {
    const struct weft__lent *mark; /* itself, while it is not joined */
    const char *file;              /* where the scope stands, or its first child was spawned; NULL: it had none [constant then] */
    uint32_t line;
};

#if defined(WEFT_DEBUG) && !defined(WEFT_MODEL)
void weft__lent_add(struct weft__lent *lent);    /* also when it is listed */
void weft__lent_remove(struct weft__lent *lent); /* also when it is not */

/* The memory goes, with the task that had it; NULL: a thread's. Aborts if a scope in it was not joined. */
void weft__lent_check(const void *lo, size_t bytes, const struct weft_task *task);

/* In the child of a fork, with one thread. */
void weft__lent_forget(void);
#else
static inline void weft__lent_add(struct weft__lent *lent)
{
    (void)lent;
}

static inline void weft__lent_remove(struct weft__lent *lent)
{
    (void)lent;
}

static inline void weft__lent_check(const void *lo, size_t bytes, const struct weft_task *task)
{
    (void)lo;
    (void)bytes;
    (void)task;
}

static inline void weft__lent_forget(void)
{
}
#endif

#endif
