/* SPDX-License-Identifier: MIT
 *
 * types - the map: every struct that two folders share, fields grouped by who may touch them.
 */
#ifndef WEFT_TYPES_H
#define WEFT_TYPES_H

#include "base/atomic.h"

#include <weft/task.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft_task;
struct weft__worker;
struct weft__fiber;
struct weft__stacks;
struct weft__stack_magazine;
struct weft__region;
struct weft__sleeper;

/* ---- task: the header of a task, one cache line; the frame follows it ------------------------------------------------------------------
 *
 * `state` is written by task/state.c alone. `link` belongs to whoever holds the right to enqueue the task (it was given by a claim), then to
 * the queue, then to the slab once the task is free. `join` is written by task/join.c alone.
 * A block whose state has no flags is free; its generation survives, so that an old id never finds a new task. */
struct weft_task {
    _Atomic uint64_t state;         /*  0 flags 16 | references 16 | generation 32        [all, through task/state.c] */
    struct weft_task *_Atomic link; /*  8 claim chain, inject queue or free list          [holder of the right to enqueue] */
    const struct weft_site *site;   /* 16 static record: poll, name, file, line, kind     [spawner, before publication] */
    uintptr_t scope;                /* 24 scope, or the parent's id, tagged               [spawner, before publication] */
    _Atomic uintptr_t join;         /* 32 the joiner's waker, if the state says JOINER      [joiner, completer, through task/join.c] */
    _Atomic uintptr_t wait;         /* 40 what it waits for, with its kind                [poller; others only look] */
    void *ext;                      /* 48 struct weft__ext; NULL for most                 [spawner, poller; others by weft__ext_of] */
    _Atomic uint32_t polls;         /* 56 polls so far                                    [poller; others only look] */
    _Atomic uint16_t since;         /* 60 coarse tick since when it waits                 [poller; others only look] */
    _Atomic uint16_t place;         /* 62 where it goes when it is pushed (task/place.h)  [spawner, poller; pushers look] */
} __attribute__((aligned(16)));     /* as all blocks are; wakers keep tags in the low bits */

/* ---- ext: what a task has beyond its header, if it has anything ---------------------------------------------------------------------------
 *
 * Made at the spawn, or by the task itself while it runs; freed with the block. So whoever keeps the task from being freed may look. */
struct weft__locals;

struct weft__ext {
    const char *name;               /* given at the spawn, borrowed; NULL: none           [constant] */
    struct weft__stacks *stacks;    /* where its fibers get their stacks; NULL: here->stacks [constant] */
    struct weft__locals *locals;    /* task-locals; NULL: none (task/local.h)             [poller] */
};

static inline struct weft__ext *weft__ext_of(const struct weft_task *task)
{
    /* [task-ext] with publish: what it points to. The cast: the field is plain for those who make or free the task. */
    return load_acquire((struct weft__ext *_Atomic *)(uintptr_t)&task->ext);
}

static inline void weft__ext_publish(struct weft_task *task, struct weft__ext *ext)
{
    store_release((struct weft__ext *_Atomic *)(uintptr_t)&task->ext, ext); /* [task-ext] with ext_of */
}

/* ---- waker: struct weft_waker is public (weft/task.h) -------------------------------------------------------------------------------------
 *
 * A task's address, or with the low bit set the address of a foreign waker (task/waker.h); zero is no waker. It holds no reference: whoever waits
 * takes the waker back before it may die. */

/* ---- sched_ops: how a task that was claimed reaches a queue, without the lower floors knowing what a worker is ----------------------------
 *
 * The caller holds the right to enqueue each of the tasks, gives it away with the call, and holds no lock. The tasks of a chain hang together by
 * `link`, the oldest first; the last one's link is NULL. They may belong to other runtimes than `sched`: the callee sees to that. */
struct weft__sched_ops {
    void (*push)(void *sched, struct weft_task *task);
    void (*push_chain)(void *sched, struct weft_task *first, struct weft_task *last, uint32_t count);
};

struct weft__sched {
    const struct weft__sched_ops *ops;
    void *self;                     /* what the table's functions get as `sched` */
};

extern const struct weft__sched weft__sched __attribute__((visibility("hidden"))); /* the library's own: pushes any task to where it belongs (sched/worker.c) */

#define WEFT__UNBUDGETED UINT32_MAX

/* ---- cx: what a poll is given; lives on the poller's stack or in its worker ---------------------------------------------------------------- */
struct weft_cx {
    struct weft_waker waker;        /* of the task that polls */
    int why;                        /* 0, -ECANCELED or -ETIME */
    uint32_t budget;                /* operations left in this poll; WEFT__UNBUDGETED: it has no end */
    bool yielded;                   /* the poll asks to be queued again, behind the others, although nobody woke it */
    bool probe;                     /* a look: READY if it is at once, else PENDING, with nothing begun or registered. Only a select asks, and only
                                       those that it knows to listen (weft/select.h) */
    bool among;                     /* polled beside others by the same task: nothing is run on the spot that would hold them up */
    bool deaf;                      /* the budget was spent by a task that was told to stop */
};

/* What is left of a budget, not 0, behind one operation. */
static inline uint32_t weft__charged(uint32_t budget)
{
    return budget - (budget != WEFT__UNBUDGETED);
}

/* What weft_cx_cancelled answers: the reason to stop, which costs budget. */
static inline int weft__told(struct weft_cx *cx)
{
    if (cx->why && cx->budget > 0) cx->budget = weft__charged(cx->budget);
    return cx->why;
}

/* A wait begins that was told to stop (cx->why). Without budget it lets others run first, so that a loop that does not listen still yields. True: PENDING, with
 * nothing begun; the next poll has a budget again, and answers. */
static inline bool weft__told_yields(struct weft_cx *cx)
{
    if (cx->budget > 0 || cx->probe) return false;
    cx->yielded = true;
    cx->deaf = true;
    return true;
}

/* ---- keeper: the time-keeper of a thread that polls (time/keeper.h) ------------------------------------------------------------------------ */
struct weft__wheel;

/* A stretch: the polls of a worker until it looks at what is not in its ring. */
struct weft__stretch {
    uint32_t left;                  /* it ends with the last of these */
    uint32_t length;                /* so many it has in all */
    bool hurried;                   /* it was cut short: a timer was armed */
    bool exact;                     /* ... for a deadline, which may have come: the look behind it turns the wheel also for what is due just now */
};

struct weft__keeper {
    struct weft__wheel *wheels;     /* of the runtime, by number; of a plain thread, its one            [constant] */
    struct weft__stretch *stretch;        /* the worker's: hurried, it looks at its wheel behind this poll    [constant] */
    struct weft__wheel *own;        /* the one that is armed on this thread                             [constant] */
    int32_t home;                   /* its number, an odd one (time/keeper.h)                           [constant] */
    int64_t (*now)(const struct weft__keeper *keeper); /* what time it is                               [constant] */
    int64_t (*look)(struct weft__keeper *keeper); /* a plain thread that waits: fires what is due, answers when to look again; a
                                                     deadline on the system's clock. Workers: NULL      [constant] */
    void (*done)(struct weft__keeper *keeper);    /* a plain thread has waited: it is given back. Workers: NULL [constant] */
};

/* ---- here: what this thread is doing; found by weft__here() (task/here.h) and by nothing else ---------------------------------------------
 *
 * After every suspension of a fiber it is another thread's: read it again, as `cx`. */
struct weft__here {
    struct weft_rt *entered;        /* weft_rt_enter; NULL: none */
    struct weft__worker *worker;    /* the worker that this thread is; NULL: none */
    uint32_t met;                   /* times that a task of this thread met another thread at a lock that both use all the time */
    uint8_t number; /* that worker's, by which locks can belong to it; 0: none (sys/bias.h) */
    struct weft__keeper *keeper;    /* that worker's; NULL: none */
    struct weft__keeper *own_keeper; /* of the thread itself, while it waits for something with timers; NULL: none */
    struct weft_task *task;         /* whose poll runs; NULL: none */
    struct weft_cx *cx;             /* of that poll */
    struct weft__fiber *fiber;      /* on whose stack this thread is; NULL: its own */
    struct weft__stacks *stacks;    /* where fibers polled here get their stacks; NULL: none */
    struct weft__stack_magazine *magazine; /* and from where first; NULL: none */
    char *stack_lo;                 /* of the thread's own stack; NULL: not asked for yet */
    size_t stack_bytes;             /* of that; 0: it cannot be told */
    struct weft__region *regions;   /* that it is inside of, off fibers; the innermost (task/region.h) */
    struct weft__sleeper *sleeper;  /* of its last call, for the next one; NULL: none (task/call.h) */
    uint64_t draws;                 /* of weft__here_draw; a worker's begin at its seed */
    void (*waits)(
        const _Atomic uint32_t *
            rung); /* a thread of the blocking pool: told that it waits, until that word is not 0; and that it has waited (NULL) */
    uint64_t met_at;                /* where, a bit each, since the scheduler has last looked (weft__here_meets) */
};

_Static_assert(sizeof(struct weft_task) == 64, "a task's header is one cache line");
_Static_assert(sizeof(struct weft_task) == WEFT__HEADER_BYTES, "the macros of weft_spawn know where the frame lies");
_Static_assert(offsetof(struct weft_task, link) == 8, "the slab's free list goes through `link`");
_Static_assert(offsetof(struct weft_task, join) == 32, "layout is read from outside the process");

#endif
