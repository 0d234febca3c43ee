/* SPDX-License-Identifier: MIT
 *
 * local - what stays where it is: tasks that keep to one worker, a block during which a fiber keeps to its thread, and values that
 * belong to one task wherever it goes.
 *
 * A task moves: it may be on another thread after every await. So what a thread has of its own (thread-local variables, errno,
 * a library that must be called from one thread) is not kept across one, and what two tasks share needs a lock. Four ways out:
 *
 *     weft_go_as((.pinned = true), serve, gl)      it stays on one worker for life
 *     weft_local here = weft_local_here();         a local set: tasks that run on one thread and may share without locks
 *     WEFT_PINNED { ... }                          a fiber stays on its thread for the length of a block
 *     static WEFT_TASK_LOCAL(struct request, req)  a variable of the task's own, which moves along
 *
 * The price of the first three: whatever holds up the worker (a poll that computes for long, a call that blocks) holds up its
 * pinned tasks, since nobody else may run them. On a current-thread runtime everything runs on whichever thread turns it.
 */
#ifndef WEFT_LOCAL_H
#define WEFT_LOCAL_H

#include <weft/task.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- local sets ---------------------------------------------------------------------------------------------------------
 *
 *     weft_local here = weft_local_here();                  this task, from now on, and
 *     weft_task *t = weft_go_as((.local = &here), fn, x);   that one: on one thread, one at a time
 *
 * A weft_local names a worker; it is a plain value, to be copied and handed to other threads, which may spawn by it too. All
 * tasks spawned by one run on that worker's thread: between two awaits no other of them runs, and what only they touch needs
 * neither lock nor atomics. Valid as long as its runtime. Two sets on one worker are one set as far as threads go. */
typedef struct weft_local {
    weft_rt *rt; /* NULL: names nothing, and a spawn by it gives NULL */
    unsigned weft__worker;
} weft_local;

/* The worker that runs this task; the task becomes one of the set: it stays there for the rest of its life (a background task
 * is none from then on). Context: fibers and stackless tasks; elsewhere the answer names nothing. */
WEFT_API weft_local weft_local_here(void);

/* Worker number `worker` of a runtime, from 0 up to weft_rt_workers(rt) - 1, or 0 of a current-thread one; NULL: the current
 * runtime. Names nothing if there is no such worker. Context: any. */
WEFT_API weft_local weft_local_at(weft_rt *rt, unsigned worker);

/* Does this thread run that worker's tasks right now? Borrows local. Context: any. */
WEFT_API bool weft_local_is_here(const weft_local *local);

/* ---- pin block ----------------------------------------------------------------------------------------------------------
 *
 *     WEFT_PINNED {
 *         ctx = ssl_ctx_of_this_thread();
 *         r = weft_read(c, buf, len);           suspends, and comes back on the same thread
 *         use(ctx);
 *     }
 *
 * Left by its end, by return, goto or break (which leaves the block, not a loop around it). Nests. It pins the task whose
 * fiber this is; if two fibers of one task are in such blocks at the same time, the task stays pinned for life. On a plain
 * thread, which stays where it is, it does nothing. Never fails. It expands to
 *
 *     for (struct weft__pin pin __attribute__((cleanup(weft__pin_leave))) = weft__pin_enter(); pin.once; pin.once = false)
 */
struct weft__pin {
    void *weft__fiber;     /* whose block it is; NULL: nothing to undo */
    uint64_t weft__before; /* the task's place outside of it */
    bool once;
};
WEFT_API struct weft__pin weft__pin_enter(void);
WEFT_API void weft__pin_leave(struct weft__pin *pin);

#define WEFT_PINNED     WEFT__PINNED(__COUNTER__)
#define WEFT__PINNED(n) WEFT__PINNED_(n)
#define WEFT__PINNED_(n)                                                                           \
    for (struct weft__pin weft__pin##n __attribute__((cleanup(weft__pin_leave))) =                 \
             (WEFT__CALL_FORM("WEFT_PINNED"), weft__pin_enter());                                  \
         weft__pin##n.once; weft__pin##n.once = false)

/* ---- task-locals --------------------------------------------------------------------------------------------------------
 *
 *     static WEFT_TASK_LOCAL(struct request, this_request);              at file scope; or with what ends a value:
 *     static WEFT_TASK_LOCAL(struct parser, this_parser, parser_done);   void parser_done(struct parser *)
 *
 *     struct request *r = this_request();
 *     if (!r) return -ENOMEM;
 *
 * Defines `struct request *this_request(void)`, which gives the running task's own value: all zero at first, at the same
 * address for the task's life, on whatever thread it runs. Stackless tasks, fibers and children that a join runs on the spot
 * have one each; fibers that a task awaits share their task's. A child does not inherit.
 * NULL: no memory for it; or there is no task here, but a plain thread; or the task has ended and its values are going.
 * `done` runs at the task's end, when its result stands and before its joiner is told, the youngest value first; so it can
 * still use values that are older than its own. It must not wait.
 * The word in front (static or none) is the function's; without it a header declares `struct request *this_request(void);`. */
struct weft__task_key {
    size_t bytes;
    size_t align;
    void (*done)(void *value); /* NULL: none */
    uint32_t weft__number;     /* 0: not used so far; the library's, atomic */
};
WEFT_API void *weft__task_local(struct weft__task_key *key);

#define WEFT_TASK_LOCAL(...)                                                                       \
    WEFT__TASK_LOCAL_PICK(__VA_ARGS__, WEFT__TASK_LOCAL_3, WEFT__TASK_LOCAL_2, ~)(__VA_ARGS__)
#define WEFT__TASK_LOCAL_PICK(type, name, done, macro, ...) macro
#define WEFT__TASK_LOCAL_2(type, name)                                                             \
    type *name(void);                                                                              \
    WEFT__TASK_LOCAL_BODY(type, name, NULL)
#define WEFT__TASK_LOCAL_3(type, name, end)                                                        \
    type *name(void);                                                                              \
    static void name##__done(void *weft__value)                                                    \
    {                                                                                              \
        (end)((type *)weft__value);                                                                \
    }                                                                                              \
    WEFT__TASK_LOCAL_BODY(type, name, name##__done)
/* The last line eats the semicolon behind the macro. */
#define WEFT__TASK_LOCAL_BODY(type, name, end)                                                     \
    static struct weft__task_key name##__key = {sizeof(type), WEFT__ALIGN_OF(type), end, 0};       \
    type *name(void)                                                                               \
    {                                                                                              \
        return (type *)weft__task_local(&name##__key);                                             \
    }                                                                                              \
    struct weft__task_key
#ifdef __cplusplus
#define WEFT__ALIGN_OF(type) alignof(type)
#else
#define WEFT__ALIGN_OF(type) _Alignof(type)
#endif

#ifdef __cplusplus
}
#endif

#endif
