/* SPDX-License-Identifier: MIT
 *
 * types - the map: every struct that two folders share, fields grouped by who may touch them.
 */
#ifndef WEFT_TYPES_H
#define WEFT_TYPES_H

#include "base/atomic.h"

#include <stddef.h>
#include <stdint.h>

struct weft_task;

/* ---- task: the header of a task, one cache line; the frame follows it ------------------------------------------------------------------
 *
 * `state` is written by task/state.c alone. `link` belongs to whoever holds the right to enqueue the task (it was given by a claim), then to
 * the queue, then to the slab once the task is free. `join` is written by task/join.c alone.
 * A block whose state has no flags is free; its generation survives, so that an old id never finds a new task. */
struct weft_task {
    _Atomic uint64_t state;         /*  0 flags 16 | references 16 | generation 32        [all, through task/state.c] */
    struct weft_task *_Atomic link; /*  8 claim chain, inject queue or free list          [holder of the right to enqueue] */
    const void *site;               /* 16 static record: poll, name, file, line, kind     [spawner, before publication] */
    uintptr_t scope;                /* 24 scope, or the parent's id, tagged               [spawner, before publication] */
    _Atomic uintptr_t join;         /* 32 the joiner's waker, tagged                      [joiner, completer, through task/join.c] */
    _Atomic uintptr_t wait;         /* 40 what it waits for, with its kind                [poller; others only look] */
    void *ext;                      /* 48 task-locals, own name, counters while watched   [owner] */
    _Atomic uint32_t polls;         /* 56 polls so far                                    [poller; others only look] */
    _Atomic uint32_t since;         /* 60 coarse tick since when it waits                 [poller; others only look] */
};

_Static_assert(sizeof(struct weft_task) == 64, "a task's header is one cache line");
_Static_assert(offsetof(struct weft_task, link) == 8, "the slab's free list goes through `link`");
_Static_assert(offsetof(struct weft_task, join) == 32, "layout is read from outside the process");

#endif
