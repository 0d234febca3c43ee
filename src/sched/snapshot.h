/* SPDX-License-Identifier: MIT
 *
 * snapshot - a copy of a task that may end, and be another one, while it is copied.
 *
 * Whoever walks the registry holds no reference: the block stays mapped, but what is in it may change
 * at any moment, and what it points at may be gone. So nothing is dereferenced. The block and all
 * behind it are copied by sys/peek, which answers -EFAULT where a program would die, and the copy is
 * kept if the task is still there afterwards: the same generation, and not complete.
 *
 * Why that is enough: a block is written for the next task only after its generation went up, and
 * what hangs on a task (own name, boxed frame) is freed only after COMPLETE was set. If the copy
 * holds anything of that, the later look at the state word finds what came before it. On x86 a
 * thread's stores appear in their order. Elsewhere weft__membarrier, between copy and look, has
 * every thread pass a fence; so neither the spawn of a task nor its end pays for those who look.
 *
 * Threads: any, at any time while the runtime lives; no locks. About 2 us.
 * Rejected: taking a reference by id, which costs every task's end a read-modify-write (state.h);
 * atomic loads of the header (a compiler may do anything with the plain stores they race with, and
 * what the header points at is still gone).
 */
#ifndef WEFT_SCHED_SNAPSHOT_H
#define WEFT_SCHED_SNAPSHOT_H

#include "types.h"

/* Characters of a copied name or path, with the zero. Doubled: a walker's stack holds 256 bytes more. */
#define WEFT__SNAPSHOT_TEXT 128

struct weft__snapshot {
    uint64_t id;           /* of weft_task_id */
    uint64_t state;        /* the state word, as it was looked at last */
    struct weft_site site; /* its pointers may be old by now: name and file are below */
    const struct weft_site *site_at; /* where that was; to be compared */
    uintptr_t scope;
    uintptr_t wait;
    uint32_t polls;
    uint32_t since;
    char name[WEFT__SNAPSHOT_TEXT]; /* its own, else the function's; cut if it is longer */
    char file[WEFT__SNAPSHOT_TEXT];
    char scope_file[WEFT__SNAPSHOT_TEXT]; /* where its scope stands; empty: none, or not known */
    uint32_t scope_line;
};

/* Characters of a scope's place, with the words around it. */
#define WEFT__SNAPSHOT_SCOPE_TEXT (WEFT__SNAPSHOT_TEXT + 48)

/* ", in the scope of file.c:12", or nothing. `into` holds WEFT__SNAPSHOT_SCOPE_TEXT. */
const char *weft__snapshot_scope(const struct weft__snapshot *s, char *into);

/* Copy the task that lived in the block when its state word was `state` (weft__slab_walk tells it).
 * `into` is good only if 0 is returned. Returns 0; -ESRCH: it is gone, or complete; -EFAULT: it names
 * memory that is not there (its code was unloaded); -ENOSYS, -EPERM: the process may not peek. */
int weft__snapshot_take(const struct weft_task *task, uint64_t state, struct weft__snapshot *into);

/* The same of a task whose very block may be gone: not the runtime's registry told of it, and it lay in a pool. `id` is 0. */
int weft__snapshot_take_far(const struct weft_task *task, uint64_t state,
                            struct weft__snapshot *into);

#endif
