/* SPDX-License-Identifier: MIT
 *
 * lock - a mutex that may be held across awaits, by fibers, stackless tasks and plain threads alike.
 *
 *     static weft_mutex m = WEFT_MUTEX_INIT;
 *     if ((r = weft_lock(&m)) < 0) return r;              fibers and threads: cancelled, it is not yours
 *     ...
 *     weft_unlock(&m);
 *     weft_await(f->lock, weft_lock, &m);                 stackless; then f->lock.ret
 *
 * Locks live in the program's own memory, need nothing from a heap, and are pinned from their first use. A wait for one is
 * a wait like any other: a cancel or a deadline ends it, and then the lock was not taken. To unlock never waits.
 */
#ifndef WEFT_LOCK_H
#define WEFT_LOCK_H

#include <weft/task.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- mutex -----------------------------------------------------------------------------------------------------------
 *
 * Fast rather than fair: whoever comes while it is free takes it, also past those who wait, of whom one at a time is woken.
 * One that has waited for a millisecond is not overtaken any more: until it has the lock, newcomers stand in line.
 * It belongs to the task that locked it (on a plain thread, to the thread), which alone may unlock it; also where several
 * functions run in one task (weft_all) it is the task's. For a lock that one takes and another gives back: weft_sem. */
typedef struct weft_mutex {
    void *weft__[8];
} weft_mutex;

#define WEFT_MUTEX_INIT {{0}}

/* The same for memory that is not initialised. Context: anywhere. */
WEFT_API void weft_mutex_init(weft_mutex *mutex);

/* Ends it: nobody holds it and nobody waits, or it is a mistake that aborts, and names the holder. Whoever got it last may
 * unlock it, end it and free its memory. NULL is nothing. */
WEFT_API void weft_mutex_done(weft_mutex *mutex);

/* Take it, waiting while another has it. Borrows mutex. Context: fiber or thread; awaited in stackless tasks.
 * Cancel-safe: a cancelled lock was not taken.
 * Returns 0: it is yours; -ECANCELED, -ETIME; -EDEADLK: this task has it already (a debug build says so and aborts), or in
 * a stackless poll; -EINVAL for NULL. */
WEFT_API int weft__lock(weft_mutex *mutex) __attribute__((warn_unused_result));
struct weft_lock {
    WEFT_FRAME(int);
    weft_mutex *mutex;
    int64_t weft__since WEFT__ZERO;   /* when it began to wait */
    void *weft__waiter[3] WEFT__ZERO; /* in the mutex's list while it waits */
};
WEFT_API weft_pollfn weft_lock_poll;
#define WEFT__PROBES_weft_lock ~, WEFT__ARM_PROBES
#define weft_lock(mutex)       (WEFT__CALL_FORM("weft_lock()"), weft__lock(mutex))

/* Take it if it is free. Never waits. Context: anywhere but in a signal handler. Returns 0; -EBUSY; -EINVAL for NULL. */
WEFT_API int weft_try_lock(weft_mutex *mutex) __attribute__((warn_unused_result));

/* Give it back. Never waits. Context: the task or thread that holds it, also in a stackless poll.
 * Returns 0; -EPERM: it is not yours, and nothing happened: a debug build says who holds it and who tried, and aborts;
 * -EINVAL for NULL. */
WEFT_API int weft_unlock(weft_mutex *mutex);

#ifdef __cplusplus
}
#endif

#endif
