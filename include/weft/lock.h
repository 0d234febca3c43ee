/* SPDX-License-Identifier: MIT
 *
 * lock - locks that may be held across awaits, by fibers, stackless tasks and plain threads alike: mutex, condition
 * variable, read-write lock.
 *
 *     static weft_mutex m = WEFT_MUTEX_INIT;
 *     if ((r = weft_lock(&m)) < 0) return r;              fibers and threads: cancelled, it is not yours
 *     ...
 *     weft_unlock(&m);
 *     weft_await(f->lock, weft_lock, &m);                 stackless; then f->lock.ret
 *
 * Locks live in the program's own memory, need nothing from a heap, and are pinned from their first use. A wait for one is
 * a wait like any other: a cancel or a deadline ends it, and then the lock was not taken. To unlock never waits.
 * A task that ends with a mutex, a write lock or a once is told by name: to whoever comes to wait for that, and in debug builds at its end, also where others
 * wait by then.
 */
#ifndef WEFT_LOCK_H
#define WEFT_LOCK_H

#include <weft/sync.h>
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

/* weft_mutex_done(mutex) ends it: nobody holds it and nobody waits, or it is a mistake that aborts, and names who does. Whoever
 * got it last may unlock it, end it and free its memory. NULL is nothing. */
WEFT_API void weft__mutex_done(weft_mutex *mutex, const char *caller);
#define weft_mutex_done(mutex) weft__mutex_done(mutex, WEFT__CALLER)

/* Take it, waiting while another has it. Borrows mutex. Context: fiber or thread; awaited in stackless tasks.
 * Cancel-safe: a cancelled lock was not taken.
 * Returns 0: it is yours; -ECANCELED, -ETIME; -EDEADLK: this task has it already (a debug build says so and aborts), or in
 * a stackless poll; -EINVAL for NULL. */
WEFT_API int weft__lock(weft_mutex *mutex, const char *caller) __attribute__((warn_unused_result));
struct weft_lock {
    WEFT_FRAME(int);
    weft_mutex *mutex;
    int64_t weft__since WEFT__ZERO;      /* when it began to wait */
    void *weft__waiter[3] WEFT__ZERO;    /* in the mutex's list while it waits */
    const char *weft__caller WEFT__ZERO; /* "file.c:12" */
};
WEFT_API weft_pollfn weft_lock_poll;
#define WEFT__PROBES_weft_lock ~, WEFT__ARM_PROBES
#define WEFT__HOOK_weft_lock   ~, told
#define weft_lock(mutex)       (WEFT__CALL_FORM("weft_lock()"), weft__lock(mutex, WEFT__CALLER))

/* weft_try_lock(mutex): take it if it is free. Never waits. Context: anywhere but in a signal handler. Returns 0; -EBUSY; -EINVAL
 * for NULL. */
WEFT_API int weft__try_lock(weft_mutex *mutex, const char *caller)
    __attribute__((warn_unused_result));
#define weft_try_lock(mutex) weft__try_lock(mutex, WEFT__CALLER)

/* weft_unlock(mutex): give it back. Never waits. Context: the task or thread that holds it, also in a stackless poll.
 * Returns 0; -EPERM: it is not yours, and nothing happened: one line says who holds it, where that was locked, who tried, and
 * where; a debug build aborts; -EINVAL for NULL. */
WEFT_API int weft__unlock(weft_mutex *mutex, const char *caller);
#define weft_unlock(mutex) weft__unlock(mutex, WEFT__CALLER)

/* ---- condition variable ----------------------------------------------------------------------------------------------
 *
 *     while (!ready) if ((r = weft_cond_wait(&c, &m)) < 0) break;      m is held, before and behind it
 *
 * For who waits for something that the mutex guards. A wait gives the mutex back and takes it again before it returns, also
 * when it is cancelled: that much of it is not to be stopped. Nobody is woken for nothing, but others may come first. */
typedef struct weft_cond {
    void *weft__[4];
} weft_cond;

#define WEFT_COND_INIT {{0}}

WEFT_API void weft_cond_init(weft_cond *cond);
WEFT_API void weft__cond_done(weft_cond *cond, const char *caller);
#define weft_cond_done(cond) weft__cond_done(cond, WEFT__CALLER)

/* Wait until woken. Borrows both. Cancel-safe: a wake-up whose receiver is cancelled goes to the next.
 * Returns 0; -ECANCELED, -ETIME: told to stop. In all these cases the mutex is held. -EPERM: it is not the caller's, and
 * nothing happened; -EINVAL for NULL; -EDEADLK in a stackless poll. */
WEFT_API int weft__cond_wait(weft_cond *cond, weft_mutex *mutex, const char *caller)
    __attribute__((warn_unused_result));
struct weft_cond_wait {
    WEFT_FRAME(int);
    weft_cond *cond;
    weft_mutex *mutex;
    void *weft__waiter[3] WEFT__ZERO;
    void *weft__one WEFT__ZERO; /* its turn came from weft_cond_wake_one */
    const char *weft__caller WEFT__ZERO;
    struct weft_lock weft__lock WEFT__ZERO;
};
WEFT_API weft_pollfn weft_cond_wait_poll;
#define WEFT__PROBES_weft_cond_wait ~, WEFT__ARM_PROBES
#define WEFT__HOOK_weft_cond_wait   ~, told
#define weft_cond_wait(cond, mutex)                                                                \
    (WEFT__CALL_FORM("weft_cond_wait()"), weft__cond_wait(cond, mutex, WEFT__CALLER))

/* Wake the one that has waited longest, or all who wait now. Never waits. Context: anywhere but in a signal handler, with or
 * without the mutex. weft_cond_wake_all returns how many. */
WEFT_API void weft_cond_wake_one(weft_cond *cond);
WEFT_API uint32_t weft_cond_wake_all(weft_cond *cond);

/* ---- read-write lock -------------------------------------------------------------------------------------------------
 *
 * Many who read, or one who writes; first come, first served: behind a writer that waits, readers wait too, so that it
 * gets its turn. A task that reads and locks once more, in either way, may therefore wait for itself for ever. A debug build
 * knows who came last to read: it says so and aborts if that task reads alone and locks to write, or to read once more while a writer waits, and if it has ended without
 * weft_read_unlock whoever waits is told by whom it is kept. */
typedef struct weft_rwlock {
    weft_sem weft__sem;
    void *weft__holder[2];
    int64_t weft__look_at;
} weft_rwlock;

#define WEFT__READERS_MAX (1 << 30)
#define WEFT_RWLOCK_INIT  {WEFT_SEM_INIT(WEFT__READERS_MAX), {0}, 0}

WEFT_API void weft_rwlock_init(weft_rwlock *lock);
WEFT_API void weft__rwlock_done(weft_rwlock *lock, const char *caller);
#define weft_rwlock_done(lock) weft__rwlock_done(lock, WEFT__CALLER)

/* Take it to read, or to write. As weft_lock. Returns 0; -ECANCELED, -ETIME; -EDEADLK: this task writes already (a debug build
 * says so and aborts), or in a stackless poll; -EINVAL for NULL. */
WEFT_API int weft__read_lock(weft_rwlock *lock, const char *caller)
    __attribute__((warn_unused_result));
WEFT_API int weft__write_lock(weft_rwlock *lock, const char *caller)
    __attribute__((warn_unused_result));
struct weft_read_lock {
    WEFT_FRAME(int);
    weft_rwlock *lock;
    const char *weft__caller WEFT__ZERO;
    struct weft_sem_acquire weft__acquire WEFT__ZERO;
};
struct weft_write_lock {
    WEFT_FRAME(int);
    weft_rwlock *lock;
    const char *weft__caller WEFT__ZERO;
    struct weft_sem_acquire weft__acquire WEFT__ZERO;
};
WEFT_API weft_pollfn weft_read_lock_poll;
WEFT_API weft_pollfn weft_write_lock_poll;
#define WEFT__PROBES_weft_read_lock  ~, WEFT__ARM_PROBES
#define WEFT__PROBES_weft_write_lock ~, WEFT__ARM_PROBES
#define WEFT__HOOK_weft_read_lock    ~, told
#define WEFT__HOOK_weft_write_lock   ~, told
#define weft_read_lock(lock)                                                                       \
    (WEFT__CALL_FORM("weft_read_lock()"), weft__read_lock(lock, WEFT__CALLER))
#define weft_write_lock(lock)                                                                      \
    (WEFT__CALL_FORM("weft_write_lock()"), weft__write_lock(lock, WEFT__CALLER))

/* Take it if that needs no wait. Returns 0; -EBUSY; -EINVAL for NULL. */
WEFT_API int weft__try_read_lock(weft_rwlock *lock, const char *caller)
    __attribute__((warn_unused_result));
WEFT_API int weft__try_write_lock(weft_rwlock *lock, const char *caller)
    __attribute__((warn_unused_result));
#define weft_try_read_lock(lock)  weft__try_read_lock(lock, WEFT__CALLER)
#define weft_try_write_lock(lock) weft__try_write_lock(lock, WEFT__CALLER)

/* weft_read_unlock(lock), weft_write_unlock(lock): give it back. Never waits. Returns 0; -EPERM: nobody reads, or another writes,
 * and nothing happened but one line, as of weft_unlock (a debug build aborts). */
WEFT_API int weft__read_unlock(weft_rwlock *lock, const char *caller);
WEFT_API int weft__write_unlock(weft_rwlock *lock, const char *caller);
#define weft_read_unlock(lock)  weft__read_unlock(lock, WEFT__CALLER)
#define weft_write_unlock(lock) weft__write_unlock(lock, WEFT__CALLER)

/* weft_downgrade(lock): from writing to reading, with nobody in between. Never waits. Returns 0; -EPERM as above. */
WEFT_API int weft__downgrade(weft_rwlock *lock, const char *caller);
#define weft_downgrade(lock) weft__downgrade(lock, WEFT__CALLER)

#ifdef __cplusplus
}
#endif

#endif
