/* SPDX-License-Identifier: MIT
 *
 * task - a unit of work, its handle, and the poll protocol beneath.
 *
 * A task is started by weft_spawn (a stackless function, future.h) or weft_go (a plain function as a fiber, fiber.h). Both give a handle, which has one
 * owner, who spends it once: by weft_join, which waits for the result, or by weft_detach. weft_cancel only asks.
 */
#ifndef WEFT_TASK_H
#define WEFT_TASK_H

#include <weft/api.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_task weft_task;
typedef struct weft_rt weft_rt;
typedef struct weft_cx weft_cx;                /* what a poll is given: waker, reason to stop, budget. Valid during the poll */
typedef enum { WEFT_PENDING, WEFT_READY } weft_poll;
typedef weft_poll weft_pollfn(void *frame, weft_cx *cx);

/* The right to have one task polled again: one word, copied freely. It holds no reference; weft_waker_ref gives one that does. */
typedef struct weft_waker {
    uintptr_t word;
} weft_waker;

/* ---- the poll protocol --------------------------------------------------------------------------------------------------------------- */

/* Why to stop: 0, -ECANCELED, or -ETIME. A leaf that has done nothing yet settles with it. Costs budget when it is not 0. */
WEFT_API int weft_cx_cancelled(weft_cx *cx);

/* The waker of the task that polls. Valid until this poll's frame settles. */
WEFT_API weft_waker weft_cx_waker(weft_cx *cx);

/* Have the task polled again. Context: anywhere but in a signal handler; any thread. Never blocks. */
WEFT_API void weft_waker_wake(weft_waker waker);

/* A waker that keeps its task's memory alive, for who stores it beyond the poll without taking it back; weft_waker_unref ends it.
 * Gives a reference. Returns a waker of word 0 if the task has 65,535 already; waking that does nothing. */
WEFT_API weft_waker weft_waker_ref(weft_waker waker);
WEFT_API void weft_waker_unref(weft_waker waker);

/* ---- private: what the macros stand on -------------------------------------------------------------------------------------------------- */

enum weft__kind { WEFT__STACKLESS, WEFT__FIBER };

/* The static record of one place that spawns. */
struct weft_site {
    weft_pollfn *poll;
    const char *name;
    const char *file;
    uint32_t line;
    uint32_t frame_bytes;
    uint16_t ret_at;                           /* where in the frame the result lies */
    uint16_t ret_bytes;                        /* 0: none */
    uint8_t ret_signed;                        /* a signed integer: below zero is a failure */
    uint8_t kind;                              /* enum weft__kind */
};

typedef struct weft_spawn_opts {
    weft_rt *rt;                               /* NULL: the current one */
    const char *name;                          /* borrowed for the task's life; NULL: the function's name */
    size_t stack_bytes;                        /* of a fiber; 0: the runtime's */
    bool pinned;                               /* stays on the worker it starts on */
    bool background;                           /* served when idle, and now and then */
} weft_spawn_opts;

/* A block for the task: its frame is to be filled in before weft__task_start. NULL: out of memory, no runtime, or it is shut down; nothing was taken.
 * `opts` may be NULL. */
WEFT_API weft_task *weft__task_new(const struct weft_site *site, const weft_spawn_opts *opts);
WEFT_API void *weft__task_frame(weft_task *task);

/* Publishes the task. Gives the handle. */
WEFT_API weft_task *weft__task_start(weft_task *task) __attribute__((warn_unused_result));

/* Poll a frame to its end, from a fiber (which is suspended meanwhile) or a plain thread (which blocks). */
WEFT_API void weft__run(weft_pollfn *poll, void *frame);

/* ---- handles ------------------------------------------------------------------------------------------------------------------------------ */

/* Takes task: wait for its end and copy the result to `into`, which may be NULL. A joiner that is cancelled passes the cancel on and waits all the same.
 * Returns 0; -ECHILD for a NULL task; -EINVAL if `bytes` is not the result's size; -EDEADLK in a stackless poll. */
WEFT_API int weft__join(weft_task *task, void *into, size_t bytes);

/* The frame of an awaited join. */
struct weft_join {
    int32_t weft__at;
    int ret;
    weft_task *task;
    void *into;
    size_t weft__bytes;
};
WEFT_API weft_pollfn weft_join_poll;

/* Ask the task to stop: every await of it answers -ECANCELED from now on. Borrows task. */
WEFT_API void weft_cancel(weft_task *task);

/* Takes task: nobody will wait for it. Returns 0; -ECHILD for NULL. */
WEFT_API int weft_detach(weft_task *task);

/* Has it ended? Borrows task. */
WEFT_API bool weft_done(const weft_task *task);

/* Shares the right to weft_wait, weft_cancel and weft_done; ended by weft_unref. NULL if it has 65,535 already. */
WEFT_API weft_task *weft_ref(weft_task *task);
WEFT_API void weft_unref(weft_task *task);

/* A number that no other task of the process's runtimes has while this one lives. Borrows task. */
WEFT_API uint64_t weft_task_id(const weft_task *task);
WEFT_API const char *weft_task_name(const weft_task *task);

/* The task that runs here, or NULL. Borrowed until the next suspension. */
WEFT_API weft_task *weft_self(void);

/* Let others run. Returns 0; -ECANCELED. */
WEFT_API int weft__yield(void);
struct weft_yield {
    int32_t weft__at;
    int ret;
};
WEFT_API weft_pollfn weft_yield_poll;

#ifdef __cplusplus
}
#endif

#endif
