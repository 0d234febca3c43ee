/* SPDX-License-Identifier: MIT
 *
 * sync - things to wait for, beside the locks (lock.h): permits, notifications.
 *
 * All of them serve fibers, stackless tasks and plain threads, in any mixture. They live in the program's own memory, are
 * initialised by a constant, need nothing from a heap, and are pinned from their first use. A wait is ended by a cancel or a
 * deadline at once, and then has taken nothing: what it would have got goes to the next.
 * Whoever was woken may end the thing and free it, unless more than 64 are woken by one call: then that call must have
 * returned. `_done` ends one: nobody waits, or it is a mistake that aborts; NULL is nothing.
 */
#ifndef WEFT_SYNC_H
#define WEFT_SYNC_H

#include <weft/lock.h>
#include <weft/task.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- semaphore -------------------------------------------------------------------------------------------------------
 *
 *     static weft_sem slots = WEFT_SEM_INIT(10);
 *     if ((r = weft_sem_acquire(&slots, 1)) < 0) return r;
 *     ...
 *     weft_sem_release(&slots, 1);
 *
 * First come, first served: nobody passes while one waits, also not one who wants fewer. Permits belong to nobody; any task
 * or thread gives them back. */
typedef struct weft_sem {
    uint64_t weft__word;
    void *weft__list[4];
} weft_sem;

#define WEFT_SEM_MAX           (UINT64_C(1) << 60) /* permits */
#define WEFT_SEM_INIT(permits) {(uint64_t)(permits) << 2, {0}}

WEFT_API void weft_sem_init(weft_sem *sem, uint64_t permits);
WEFT_API void weft_sem_done(weft_sem *sem);

/* Take so many permits at once, waiting until they are there. Borrows sem. Context: fiber or thread; awaited in stackless
 * tasks. Cancel-safe: yes.
 * Returns 0; -EPIPE once closed; -ECANCELED, -ETIME; -EINVAL for NULL, for none and for more than WEFT_SEM_MAX; -EDEADLK in a
 * stackless poll. */
WEFT_API int weft__sem_acquire(weft_sem *sem, uint64_t permits) __attribute__((warn_unused_result));
struct weft_sem_acquire {
    WEFT_FRAME(int);
    weft_sem *sem;
    uint64_t permits;
    void *weft__waiter[3] WEFT__ZERO; /* in the semaphore's list while it waits */
};
WEFT_API weft_pollfn weft_sem_acquire_poll;
#define WEFT__PROBES_weft_sem_acquire ~, WEFT__ARM_PROBES
#define weft_sem_acquire(sem, permits)                                                             \
    (WEFT__CALL_FORM("weft_sem_acquire()"), weft__sem_acquire(sem, permits))

/* Take them if they are there and nobody waits. Never waits. Context: anywhere but in a signal handler.
 * Returns 0; -EBUSY; -EPIPE once closed; -EINVAL as above. */
WEFT_API int weft_sem_try_acquire(weft_sem *sem, uint64_t permits)
    __attribute__((warn_unused_result));

/* Give permits back, or add new ones: at most WEFT_SEM_MAX in all, or it aborts. Never waits. Context: anywhere but in a
 * signal handler. */
WEFT_API void weft_sem_release(weft_sem *sem, uint64_t permits);

/* Take free permits away for good, as many as there are up to so many; also those that a waiter still lacks others beside.
 * Never waits. Returns how many. */
WEFT_API uint64_t weft_sem_forget(weft_sem *sem, uint64_t permits);

/* No more permits, for good: who waits, and who comes, gets -EPIPE. Those that were taken may still be given back. */
WEFT_API void weft_sem_close(weft_sem *sem);
WEFT_API bool weft_sem_closed(const weft_sem *sem);

/* Free permits just now. */
WEFT_API uint64_t weft_sem_permits(const weft_sem *sem);

/* ---- notify ----------------------------------------------------------------------------------------------------------
 *
 * "Something has changed, look again", without saying what. weft_notify_one is kept for the next who comes if nobody waits:
 * one, however often it is said. weft_notify_waiters wakes those who wait now, and is kept for nobody. */
typedef struct weft_notify {
    void *weft__[5];
} weft_notify;

#define WEFT_NOTIFY_INIT {{0}}

WEFT_API void weft_notify_init(weft_notify *notify);
WEFT_API void weft_notify_done(weft_notify *notify);

/* Wake the one that has waited longest, or let the next not wait. Never waits. Context: anywhere but in a signal handler.
 * A notification whose receiver is cancelled before it has looked goes to the next, or is kept. */
WEFT_API void weft_notify_one(weft_notify *notify);

/* Wake all who wait now. Never waits. Returns how many. Borrows notify until it returns if more than 64 wait. */
WEFT_API uint32_t weft_notify_waiters(weft_notify *notify);

/* Wait for a notification. Borrows notify. Cancel-safe: yes.
 * Returns 0; -ECANCELED, -ETIME; -EINVAL for NULL; -EDEADLK in a stackless poll. */
WEFT_API int weft__notify_wait(weft_notify *notify);
struct weft_notify_wait {
    WEFT_FRAME(int);
    weft_notify *notify;
    void *weft__waiter[3] WEFT__ZERO;
    void *weft__one WEFT__ZERO; /* its turn came from weft_notify_one */
};
WEFT_API weft_pollfn weft_notify_wait_poll;
#define WEFT__PROBES_weft_notify_wait ~, WEFT__ARM_PROBES
#define weft_notify_wait(notify)      (WEFT__CALL_FORM("weft_notify_wait()"), weft__notify_wait(notify))

#ifdef __cplusplus
}
#endif

#endif
