/* SPDX-License-Identifier: MIT
 *
 * task - a unit of work and its handle.
 *
 * A task is started by weft_spawn (a stackless function, future.h) or weft_go (a plain function as a fiber, fiber.h).
 * Both give a handle, which has one owner, who spends it once: by weft_join, which waits for the result, or by
 * weft_detach. weft_cancel only asks, weft_wait only watches.
 */
#ifndef WEFT_TASK_H
#define WEFT_TASK_H

#include <weft/future.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_task weft_task;
typedef struct weft_rt weft_rt;
typedef struct weft_pool weft_pool;

/* ---- private: what the macros stand on -------------------------------------------------------------------------------------------------- */

enum weft__kind { WEFT__STACKLESS, WEFT__FIBER };

/* The static record of one place that spawns. */
struct weft_site {
    weft_pollfn *poll;
    const char *name;
    const char *file;
    uint32_t line;
    uint32_t frame_bytes;
    uint16_t ret_at;    /* where in the frame the result lies */
    uint16_t ret_bytes; /* 0: none */
    uint8_t ret_signed; /* a signed integer: below zero is a failure */
    uint8_t kind;       /* enum weft__kind */
};

typedef struct weft_spawn_opts {
    weft_rt *rt WEFT__ZERO;      /* NULL: the current one */
    const char *name WEFT__ZERO; /* borrowed for the task's life; NULL: the function's name */
    size_t stack_bytes
        WEFT__ZERO; /* of the task's fibers, rounded up to a power of two from 16 KiB; 0: the runtime's. Over 4 GiB: NULL */
    bool pinned
        WEFT__ZERO; /* stays on the worker that spawns it; from outside: on one of them, in turn. A worker that is held
                           up holds up its pinned tasks */
    const struct weft_local *local
        WEFT__ZERO; /* borrowed for the call: stays on the worker that this names (local.h), and runs in
                           its runtime; NULL: none */
    bool background
        WEFT__ZERO; /* runs when a worker has nothing else, and one at each worker's every 32nd poll. Not with pinned or
                           local */
    bool unbudgeted
        WEFT__ZERO; /* its polls have no budget: what it awaits never makes it yield, and others may wait for long */
    weft_pool *pool
        WEFT__ZERO; /* borrowed for the task's life: where its memory is (pool.h); NULL: the runtime's own */
    void *weft__scope WEFT__ZERO; /* of the forms that end in _in (scope.h) */
} weft_spawn_opts;

/* A block for the task: its frame is to be filled in before weft__task_start. NULL: out of memory, no runtime, or it
 * is shut down; nothing was taken. `opts` may be NULL. */
WEFT_API weft_task *weft__task_new(const struct weft_site *site, const weft_spawn_opts *opts);
WEFT_API void *weft__task_frame(weft_task *task);

/* Publishes the task. Gives the handle. */
WEFT_API weft_task *weft__task_start(weft_task *task) __attribute__((warn_unused_result));

/* ---- spawn ------------------------------------------------------------------------------------------------------------
 *
 *     weft_task *t = weft_spawn(fetch, .url = url);                            the current runtime
 *     weft_task *t = weft_spawn_as((.name = "db", .pinned = true), fetch, url);
 *
 * Starts a stackless function, or a weft_fiber, as a task of its own. Gives the handle; dropping it is a warning.
 * NULL: no memory, no runtime, one that shuts down, or options that contradict each other; then the arguments were not evaluated, and nothing was taken.
 * The frame is filled in where it will live: one allocation, no copy. It expands to
 *
 *     static const struct weft_site site = { fetch_poll, "fetch", __FILE__, __LINE__, sizeof(struct fetch), ... };
 *     weft_task *task = weft__task_new(&site, NULL);
 *     if (task) {
 *         *(struct fetch *)weft__task_frame(task) = (struct fetch){ .url = url };
 *         task = weft__task_start(task);
 *     }
 *     task;
 */
#ifndef __cplusplus
#define weft_spawn(fn, ...)          WEFT__SPAWN(__COUNTER__, NULL, fn, __VA_ARGS__)
#define weft_spawn_as(opts, fn, ...) WEFT__SPAWN(__COUNTER__, WEFT__OPTS opts, fn, __VA_ARGS__)

#define WEFT__OPTS(...)  (&(const weft_spawn_opts){__VA_ARGS__})
#define WEFT__SPAWN(...) WEFT__SPAWN_(__VA_ARGS__)

/* Its names are numbered: a spawn may be an argument of a spawn. */
#define WEFT__SPAWN_(n, opts, fn, ...)                                                             \
    weft__given(__extension__({                                                                    \
        WEFT__FITS(fn);                                                                            \
        static const struct weft_site weft__site##n = WEFT__SITE(fn);                              \
        weft_task *weft__task##n = weft__task_new(&weft__site##n, opts);                           \
        if (weft__task##n) {                                                                       \
            *WEFT__FRAME_IN(weft__task##n, fn) = WEFT__NEW(fn, __VA_ARGS__);                       \
            weft__task##n = weft__task_start(weft__task##n);                                       \
        }                                                                                          \
        weft__task##n;                                                                             \
    }))

/* A frame lies behind its task's header; a large one on the heap. */
#define WEFT__HEADER_BYTES 64
#define WEFT__FRAME_MAX    1024
#define WEFT__FRAME_IN(task, fn)                                                                   \
    ((struct fn *)(sizeof(struct fn) <= WEFT__FRAME_MAX                                            \
                       ? (void *)((char *)(task) + WEFT__HEADER_BYTES)                             \
                       : weft__task_frame(task)))

#define WEFT__RET(fn) __typeof__(((struct fn *)0)->ret)
#define WEFT__SITE(fn)                                                                             \
    {fn##_poll,                                                                                    \
     #fn,                                                                                          \
     __FILE__,                                                                                     \
     __LINE__,                                                                                     \
     sizeof(struct fn),                                                                            \
     offsetof(struct fn, ret),                                                                     \
     sizeof(WEFT__RET(fn)),                                                                        \
     WEFT__SIGNED(WEFT__RET(fn)),                                                                  \
     WEFT__STACKLESS}
#define WEFT__FITS(fn)                                                                             \
    _Static_assert(_Alignof(struct fn) <= 16,                                                      \
                   "weft_spawn: struct " #fn " is aligned to more than 16");                       \
    _Static_assert(sizeof(WEFT__RET(fn)) <= UINT16_MAX,                                            \
                   "weft_spawn: the result of " #fn " is too big; hand it over by a pointer")

/* Is T a signed integer? Those may hold an errno. */
#define WEFT__SIGNED(T)                                                                            \
    _Generic((T *)0, signed char *: 1, short *: 1, int *: 1, long *: 1, long long *: 1, default: 0)
#endif

/* A handle, as it is given to its owner: whoever drops it is warned. */
__attribute__((warn_unused_result)) static inline weft_task *weft__given(weft_task *task)
{
    return task;
}

/* ---- run ----------------------------------------------------------------------------------------------------------------
 *
 *     int sum = weft_run(delayed_sum, .a = 1, .b = 2);
 *
 * Calls a stackless function from a fiber, which is suspended meanwhile, or from a plain thread, which blocks. The
 * frame lies on the caller's stack; its result is the value. In a weft_async body: weft_await. In a helper that such a
 * body calls the function is not run: one line names task and caller, and the value is -EDEADLK if it is a signed
 * integer, else zero. Debug builds of the library stop there. */
#ifndef __cplusplus
/* A call that was refused says so in its result, if that is a signed integer: `bytes` of it, the low ones of a word, which
 * come first on the machines we run on. */
static inline void weft__refused(int why, void *ret, size_t bytes)
{
    int64_t wide = why;
    if (__builtin_expect(why < 0, 0) && bytes > 0) __builtin_memcpy(ret, &wide, bytes);
}

#define weft_run(fn, ...) WEFT__RUN(__COUNTER__, fn, __VA_ARGS__)
#define WEFT__RUN(...)    WEFT__RUN_(__VA_ARGS__)
#define WEFT__RUN_(n, fn, ...)                                                                     \
    __extension__({                                                                                \
        WEFT__CALL_FORM("weft_run()");                                                             \
        struct fn weft__frame##n = WEFT__NEW(fn, __VA_ARGS__);                                     \
        weft__refused(weft__run(fn##_poll, &weft__frame##n), &weft__frame##n.ret,                  \
                      WEFT__SIGNED(WEFT__RET(fn)) ? sizeof(WEFT__RET(fn)) : 0);                    \
        weft__frame##n.ret;                                                                        \
    })
#endif

/* ---- handles ------------------------------------------------------------------------------------------------------------------------------ */

/* Takes task: wait for its end and copy the result to `into`, which may be NULL. A joiner that is cancelled passes the
 * cancel on and waits all the same.
 * Returns 0; -ECHILD for a NULL task, or one of the parent's in the child of a fork; -EINVAL if `bytes` is not the result's size (of a NULL
 * `into` it does not matter);
 * -ENOMEM for a fiber that never ran, because there was no stack for it, and whose result is no signed integer (such a
 * one is -ENOMEM itself); -EDEADLK in a stackless poll, and for a task that joins itself.
 *
 * weft_join(t, &x): the result of t in x, whose size is compared with that of the result.
 * Awaited, in order:  weft_await(f->join, weft_join, t, &f->x);
 *          by name:   weft_await(f->join, weft_join, .task = t, .into = &f->x, .bytes = sizeof(f->x));
 * In order the macro sees what `into` points at, and fills in `bytes`. Behind a name nothing can: there it is an argument
 * like the others, and left out it is zero, which fits no result (docs/decisions/0006-join-by-name.md). */
struct weft_join {
    WEFT_FRAME(int);
    weft_task *task;
    void *into;              /* NULL: the result is not wanted */
    size_t bytes WEFT__ZERO; /* of *into */
};
WEFT_API weft_pollfn weft_join_poll;
WEFT__CALLED(int, weft__join, weft_join, (weft_task *task, void *into, size_t bytes),
             weft__f.task = task, weft__f.into = into, weft__f.bytes = bytes)

#ifndef __cplusplus
#define weft_join(task, into)                                                                      \
    (WEFT__CALL_FORM("weft_join()"), weft__join(task, into, WEFT__SIZE(into)))

/* Two arguments are in order. One alone, or more than two, say all there is to say themselves. */
#define WEFT__HOOK_weft_join ~, join
#define WEFT__NEW_join(fn, ...)                                                                    \
    WEFT__CAT(WEFT__NEW_join_, WEFT__JOIN_FORM(__VA_ARGS__))(fn, __VA_ARGS__)
#define WEFT__JOIN_FORM(...)                                                                       \
    WEFT__JOIN_FORM_(__VA_ARGS__, whole, whole, whole, sized, whole, ~)
#define WEFT__JOIN_FORM_(a, b, c, d, e, form, ...) form
#define WEFT__NEW_join_whole(fn, ...)              WEFT__NEW_plain(fn, __VA_ARGS__)
#define WEFT__NEW_join_sized(fn, task, into)                                                       \
    ((struct fn){.weft__at = 0,                                                                    \
                 .weft_args = {},                                                                  \
                 task,                                                                             \
                 into,                                                                             \
                 weft_join_by_name_takes_bytes_too(into)})

/* Its name is what gcc's message shows to who gave two arguments by name. */
#define weft_join_by_name_takes_bytes_too(pointer) WEFT__SIZE(pointer)

/* A bare NULL has a size too, in GNU C: 1. Nobody looks at it. */
#define WEFT__SIZE(pointer) (__extension__ sizeof(*(pointer)))
#endif

/* weft_wait(t): wait for its end without owning it. Any number may, at once, beside one that joins; each holds the
 * handle or a weft_ref, which is borrowed until the wait is over. Waits only: the result stays where it is.
 * Returns 0: it has ended; -ECANCELED, -ETIME: the waiter was told to stop, and does so at once; -ECHILD for a NULL
 * task, or one of the parent's in the child of a fork; -EDEADLK in a stackless poll, and for a task that waits for itself.
 * Awaited: weft_await(f->wait, weft_wait, t). */
WEFT_API int weft__wait(weft_task *task);
struct weft_wait {
    WEFT_FRAME(int);
    weft_task *task;
    void *weft__watcher[4] WEFT__ZERO; /* in the task's list while it waits */
};
WEFT_API weft_pollfn weft_wait_poll;
#define weft_wait(task) (WEFT__CALL_FORM("weft_wait()"), weft__wait(task))

/* Ask the task to stop: every await of it answers -ECANCELED from now on. Borrows task. */
WEFT_API void weft_cancel(weft_task *task);

/* Takes task: nobody will wait for it. Returns 0; -ECHILD for NULL. */
WEFT_API int weft_detach(weft_task *task);

/* Has it ended? Borrows task. */
WEFT_API bool weft_done(const weft_task *task);

/* Shares the right to weft_wait, weft_cancel and weft_done; ended by weft_unref. NULL if it has 65,535 already. */
WEFT_API weft_task *weft_ref(weft_task *task);
WEFT_API void weft_unref(weft_task *task);

/* A number that no other task of its runtime has while this one lives; one of another runtime may. 0 for NULL. Borrows task. */
WEFT_API uint64_t weft_task_id(const weft_task *task);
WEFT_API const char *weft_task_name(const weft_task *task);

/* The task that runs here, or NULL. Borrowed until the next suspension. */
WEFT_API weft_task *weft_self(void);

/* weft_yield(): let others run. Awaited: weft_await(f->pause, weft_yield). On a plain thread it waits for nobody.
 * Cancel-safe: it takes nothing; told to stop, it answers at once, at the price of budget: a loop that does not listen still lets others run.
 * Returns 0; -ECANCELED, -ETIME: told to stop; -EDEADLK in a stackless poll (call form). */
WEFT_API int weft__yield(void);
struct weft_yield {
    WEFT_FRAME(int);
};
WEFT_API weft_pollfn weft_yield_poll;
#define weft_yield() (WEFT__CALL_FORM("weft_yield()"), weft__yield())

#ifdef __cplusplus
}

/* The size of *into, as the macro of C has it; a NULL of any spelling wants no result. */
template <class T> static inline int weft__join_cpp(weft_task *task, T *into)
{
    return weft__join(task, into, sizeof(T));
}
static inline int weft__join_cpp(weft_task *task, decltype(nullptr))
{
    return weft__join(task, nullptr, 0);
}
#define weft_join(task, into) weft__join_cpp(task, into)
#endif

#endif
