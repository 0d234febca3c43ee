/* SPDX-License-Identifier: MIT
 *
 * sync - things to wait for, beside the locks (lock.h): permits, notifications, events, groups, barriers, what is done
 * once.
 *
 * All of them serve fibers, stackless tasks and plain threads, in any mixture. They live in the program's own memory, are
 * initialised by a constant, need nothing from a heap, and are pinned from their first use. A wait is ended by a cancel or a
 * deadline at once, and then has taken nothing: what it would have got goes to the next.
 * Whoever was woken may end the thing and free it, unless more than 64 are woken by one call: then that call must have
 * returned. `_done` ends one: nobody waits, or it is a mistake that aborts and says who; NULL is nothing.
 */
#ifndef WEFT_SYNC_H
#define WEFT_SYNC_H

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
WEFT_API void weft__sem_done(weft_sem *sem, const char *caller);
#define weft_sem_done(sem) weft__sem_done(sem, WEFT__CALLER)

/* Take so many permits at once, waiting until they are there. Borrows sem. Context: fiber or thread; awaited in stackless
 * tasks. Cancel-safe: yes.
 * Returns 0; -EPIPE once closed; -ECANCELED, -ETIME; -EINVAL for NULL, for none and for more than WEFT_SEM_MAX; -EDEADLK in a
 * stackless poll. */
struct weft_sem_acquire {
    WEFT_FRAME(int);
    weft_sem *sem;
    uint64_t permits;
    void *weft__waiter[3] WEFT__ZERO; /* in the semaphore's list while it waits */
};
WEFT_API weft_pollfn weft_sem_acquire_poll;
__attribute__((warn_unused_result)) WEFT__CALLED(int, weft__sem_acquire, weft_sem_acquire,
                                                 (weft_sem *sem, uint64_t permits),
                                                 weft__f.sem = sem, weft__f.permits = permits)
#define WEFT__PROBES_weft_sem_acquire ~, WEFT__ARM_PROBES
#define weft_sem_acquire(sem, permits)                                                             \
    (WEFT__CALL_FORM("weft_sem_acquire()"), weft__sem_acquire(sem, permits))

/* Take them if they are there and nobody waits. Never waits. Context: anywhere but in a signal handler.
 * Returns 0; -EBUSY; -EPIPE once closed; -EINVAL as above. */
WEFT_API int weft_sem_try_acquire(weft_sem *sem, uint64_t permits)
    __attribute__((warn_unused_result));

/* Give permits back, or add new ones: at most WEFT_SEM_MAX in all, or it aborts, and says where. Never waits. Context:
 * anywhere but in a signal handler. */
WEFT_API void weft__sem_release(weft_sem *sem, uint64_t permits, const char *caller);
#define weft_sem_release(sem, permits) weft__sem_release(sem, permits, WEFT__CALLER)

/* Take free permits away for good, as many as there are up to so many; also those that a waiter still lacks others beside.
 * Never waits. Returns how many. */
WEFT_API uint64_t weft_sem_forget(weft_sem *sem, uint64_t permits);

/* No more permits, for good: who waits, and who comes, gets -EPIPE. Those that were taken may still be given back.
 * Never waits. Returns 0; -EALREADY: it was closed; -EINVAL for NULL. */
WEFT_API int weft_sem_close(weft_sem *sem);
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
WEFT_API void weft__notify_done(weft_notify *notify, const char *caller);
#define weft_notify_done(notify) weft__notify_done(notify, WEFT__CALLER)

/* Wake the one that has waited longest, or let the next not wait. Never waits. Context: anywhere but in a signal handler.
 * A notification whose receiver is cancelled before it has looked goes to the next, or is kept. */
WEFT_API void weft_notify_one(weft_notify *notify);

/* Wake all who wait now. Never waits. Returns how many. Borrows notify until it returns if more than 64 wait. */
WEFT_API uint32_t weft_notify_waiters(weft_notify *notify);

/* Wait for a notification. Borrows notify. Cancel-safe: yes.
 * Returns 0; -ECANCELED, -ETIME; -EINVAL for NULL; -EDEADLK in a stackless poll. */
struct weft_notify_wait {
    WEFT_FRAME(int);
    weft_notify *notify;
    void *weft__waiter[3] WEFT__ZERO;
    void *weft__one WEFT__ZERO; /* its turn came from weft_notify_one */
};
WEFT_API weft_pollfn weft_notify_wait_poll;
WEFT__CALLED(int, weft__notify_wait, weft_notify_wait, (weft_notify *notify),
             weft__f.notify = notify)
#define WEFT__PROBES_weft_notify_wait ~, WEFT__ARM_PROBES
#define weft_notify_wait(notify)      (WEFT__CALL_FORM("weft_notify_wait()"), weft__notify_wait(notify))

/* ---- event -----------------------------------------------------------------------------------------------------------
 *
 * A flag that can be waited for: set, it lets everybody through until it is reset. */
typedef struct weft_event {
    void *weft__[5];
} weft_event;

#define WEFT_EVENT_INIT {{0}}

WEFT_API void weft_event_init(weft_event *event);
WEFT_API void weft__event_done(weft_event *event, const char *caller);
#define weft_event_done(event) weft__event_done(event, WEFT__CALLER)

/* Set it, and wake all who wait. What was written before is seen by them. Never waits. Context: anywhere but in a signal
 * handler. Borrows event until it returns if more than 64 wait. */
WEFT_API void weft_event_set(weft_event *event);
WEFT_API void weft_event_reset(weft_event *event);
WEFT_API bool weft_event_is_set(const weft_event *event);

/* Wait until it is set. One that was woken has got through, also if it is reset meanwhile.
 * Returns 0; -ECANCELED, -ETIME; -EINVAL for NULL; -EDEADLK in a stackless poll. Cancel-safe: it takes nothing. */
WEFT_API int weft__event_wait(weft_event *event);
struct weft_event_wait {
    WEFT_FRAME(int);
    weft_event *event;
    void *weft__waiter[3] WEFT__ZERO;
};
WEFT_API weft_pollfn weft_event_wait_poll;
#define WEFT__PROBES_weft_event_wait ~, WEFT__ARM_PROBES
#define weft_event_wait(event)       (WEFT__CALL_FORM("weft_event_wait()"), weft__event_wait(event))

/* ---- wait group ------------------------------------------------------------------------------------------------------
 *
 * How much is still to come: it is added before it begins, finished when it is over, and waited for until none is left. */
typedef struct weft_wg {
    uint64_t weft__count;
    void *weft__list[4];
} weft_wg;

#define WEFT_WG_INIT(count) {(uint64_t)(count), {0}}

WEFT_API void weft_wg_init(weft_wg *wg, uint64_t count);
WEFT_API void weft__wg_done(weft_wg *wg, const char *caller);
#define weft_wg_done(wg) weft__wg_done(wg, WEFT__CALLER)

WEFT_API void weft_wg_add(weft_wg *wg, uint64_t count);

/* One is over; one more than were added aborts, and says where. The last one wakes who waits. Never waits. Context: anywhere
 * but in a signal handler. */
WEFT_API void weft__wg_finish(weft_wg *wg, const char *caller);
#define weft_wg_finish(wg) weft__wg_finish(wg, WEFT__CALLER)
WEFT_API uint64_t weft_wg_count(const weft_wg *wg);

/* Wait until none is left; what was done before each finish is seen. Returns as weft_event_wait; cancel-safe, as that. */
WEFT_API int weft__wg_wait(weft_wg *wg);
struct weft_wg_wait {
    WEFT_FRAME(int);
    weft_wg *wg;
    void *weft__waiter[3] WEFT__ZERO;
};
WEFT_API weft_pollfn weft_wg_wait_poll;
#define WEFT__PROBES_weft_wg_wait ~, WEFT__ARM_PROBES
#define weft_wg_wait(wg)          (WEFT__CALL_FORM("weft_wg_wait()"), weft__wg_wait(wg))

/* ---- barrier ---------------------------------------------------------------------------------------------------------
 *
 * So many meet, then all go on, one of them as the leader; and again. Of a size of 0 or 1 nobody waits. */
typedef struct weft_barrier {
    uint64_t weft__size;
    uint64_t weft__arrived;
    uint64_t weft__round;
    void *weft__list[4];
} weft_barrier;

#define WEFT_BARRIER_INIT(size) {(uint64_t)(size), 0, 0, {0}}

WEFT_API void weft_barrier_init(weft_barrier *barrier, uint64_t size);
WEFT_API void weft__barrier_done(weft_barrier *barrier, const char *caller);
#define weft_barrier_done(barrier) weft__barrier_done(barrier, WEFT__CALLER)

/* Returns 1: the leader, one of each round; 0: one of the others; -ECANCELED, -ETIME: it is not counted any more, another is
 * waited for; -EINVAL for NULL; -EDEADLK in a stackless poll. */
WEFT_API int weft__barrier_wait(weft_barrier *barrier);
struct weft_barrier_wait {
    WEFT_FRAME(int);
    weft_barrier *barrier;
    void *weft__waiter[3] WEFT__ZERO;
    uint64_t weft__round WEFT__ZERO;
};
WEFT_API weft_pollfn weft_barrier_wait_poll;
#define WEFT__PROBES_weft_barrier_wait ~, WEFT__ARM_PROBES
#define weft_barrier_wait(barrier)                                                                 \
    (WEFT__CALL_FORM("weft_barrier_wait()"), weft__barrier_wait(barrier))

/* ---- once ------------------------------------------------------------------------------------------------------------
 *
 *     r = weft_once_enter(&once);
 *     if (r > 0) {                                        this one does it; it may await as it likes
 *         r = load(&config);
 *         weft_once_leave(&once, r >= 0);                 false: it was not done, the next one tries
 *     }
 *     if (r < 0) return r;
 *
 * Whoever comes meanwhile waits. */
typedef struct weft_once {
    void *weft__[7];
} weft_once;

#define WEFT_ONCE_INIT {{0}}

/* Returns 0: it is done, and what was done is seen; 1: do it, then weft_once_leave, on every path; -ECANCELED, -ETIME;
 * -EDEADLK: this very task is at it (a debug build says so and aborts), or in a stackless poll; -EINVAL for NULL. */
WEFT_API int weft__once_enter(weft_once *once, const char *caller)
    __attribute__((warn_unused_result));
struct weft_once_enter {
    WEFT_FRAME(int);
    weft_once *once;
    void *weft__waiter[3] WEFT__ZERO;
    const char *weft__caller WEFT__ZERO; /* "file.c:12" */
};
WEFT_API weft_pollfn weft_once_enter_poll;
#define WEFT__PROBES_weft_once_enter ~, WEFT__ARM_PROBES
#define WEFT__HOOK_weft_once_enter   ~, told
#define weft_once_enter(once)                                                                      \
    (WEFT__CALL_FORM("weft_once_enter()"), weft__once_enter(once, WEFT__CALLER))

/* weft_once_leave(once, done), by who entered with 1. Never waits. Returns 0; -EPERM: by another, and nothing happened but one line
 * that names both (a debug build aborts). */
WEFT_API int weft__once_leave(weft_once *once, bool done, const char *caller);
#define weft_once_leave(once, done) weft__once_leave(once, done, WEFT__CALLER)
WEFT_API bool weft_once_is_done(const weft_once *once);

/* A once with what came of it: a pointer that is made when it is first asked for. weft_cell_leave gives the value, or NULL: it
 * could not be made, the next one tries. The cell borrows it. */
typedef struct weft_cell {
    weft_once weft__once;
    void *weft__value;
} weft_cell;

#define WEFT_CELL_INIT {WEFT_ONCE_INIT, NULL}

/* As weft_once_enter; with 0, *into is the value. */
WEFT_API int weft__cell_enter(weft_cell *cell, void **into, const char *caller)
    __attribute__((warn_unused_result));
struct weft_cell_enter {
    WEFT_FRAME(int);
    weft_cell *cell;
    void **into;
    const char *weft__caller WEFT__ZERO;
    struct weft_once_enter weft__enter WEFT__ZERO;
};
WEFT_API weft_pollfn weft_cell_enter_poll;
#define WEFT__PROBES_weft_cell_enter ~, WEFT__ARM_PROBES
#define weft_cell_enter(cell, into)                                                                \
    (WEFT__CALL_FORM("weft_cell_enter()"), weft__cell_enter(cell, into, WEFT__CALLER))
#define WEFT__HOOK_weft_cell_enter ~, told

WEFT_API int weft__cell_leave(weft_cell *cell, void *value, const char *caller);
#define weft_cell_leave(cell, value) weft__cell_leave(cell, value, WEFT__CALLER)

/* The value, or NULL: not made yet. Never waits. */
WEFT_API void *weft_cell_get(const weft_cell *cell);

#ifdef __cplusplus
}
#endif

#endif
