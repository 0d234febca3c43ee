/* SPDX-License-Identifier: MIT
 *
 * rwlock - a semaphore with a permit for each reader: who writes takes all of them.
 *
 * The semaphore is first come, first served, also for one who wants much: that is all it takes for a writer not to starve.
 *     holder != 0  =>  it has all permits                          unless it says that it reads
 * Readers are many, and leave no word: it would be one more line that they fight for. Debug builds keep the one that came last, for as
 * long as it reads: a lock of a reader that has ended is told then, and who reads alone is stopped where it locks to write, or to read once more behind a writer.
 * Threads: any. What is written under it is seen by the semaphore's pair.
 * Rejected: readers that pass a waiting writer (it starves); a word of its own with two kinds of waiters (the same queue, the
 * same races, once more).
 */
#include "limits.h"
#include "sync/holder.h"
#include "sync/leaf.h"
#include "sync/semaphore.h"
#include "task/call.h"

#include <weft/lock.h>
#include <weft/time.h>

#include <errno.h>

_Static_assert(sizeof(struct weft__holder) == sizeof(((weft_rwlock *)0)->weft__holder),
               "a holder fits its place");

static struct weft__holder *writer_of(weft_rwlock *lock)
{
    return (struct weft__holder *)(void *)&lock->weft__holder;
}

/* ---- the last reader, in debug builds ----------------------------------------------------------------- */

#if defined(WEFT_DEBUG) && !defined(WEFT_MODEL)
static uintptr_t reader_self(void)
{
    return weft__holder_self() | WEFT__HOLDER_READS;
}

/* By who has just begun to read. relaxed, in all of these: as in holder.h */
static void reader_note(weft_rwlock *lock, const char *at)
{
    store_relaxed(&writer_of(lock)->who, reader_self());
    store_relaxed(&writer_of(lock)->at, at);
}

/* By who reads no more in a moment. One that was let go by another than took it is forgotten with the last of them. */
static void reader_forget(weft_rwlock *lock)
{
    bool last = weft_sem_permits(&lock->weft__sem) == WEFT__READERS_MAX - 1;
    if (last || load_relaxed(&writer_of(lock)->who) == reader_self())
        store_relaxed(&writer_of(lock)->who, 0);
}

static bool reads_alone(weft_rwlock *lock)
{
    return load_relaxed(&writer_of(lock)->who) == reader_self() &&
           weft_sem_permits(&lock->weft__sem) == WEFT__READERS_MAX - 1;
}
#else
static void reader_note(weft_rwlock *lock, const char *at)
{
    (void)lock, (void)at;
}

static void reader_forget(weft_rwlock *lock)
{
    (void)lock;
}

static bool reads_alone(weft_rwlock *lock)
{
    (void)lock;
    return false;
}
#endif

static bool is_written(weft_rwlock *lock)
{
    uintptr_t who = load_relaxed(&writer_of(lock)->who); /* relaxed: as in holder.h */
    return who != 0 && !(who & WEFT__HOLDER_READS);
}

/* ------------------------------------------------------------------------------------------------------- */

void weft_rwlock_init(weft_rwlock *lock)
{
    weft_sem_init(&lock->weft__sem, WEFT__READERS_MAX);
    store_relaxed(&writer_of(lock)->who, 0); /* relaxed, both: not shared yet */
    store_relaxed(&writer_of(lock)->at, NULL);
    lock->weft__look_at = 0;
}

void weft__rwlock_done(weft_rwlock *lock, const char *caller)
{
    if (!lock) return;
    weft__leaf_done(&((struct weft__sem *)(void *)&lock->weft__sem)->list, "a read-write lock",
                    caller);
    bool is_free = weft_sem_permits(&lock->weft__sem) == WEFT__READERS_MAX;
    if (is_free) return;
    (void)weft__holder_misuse(weft__holder_is_any(writer_of(lock)) ? writer_of(lock) : NULL,
                              "a read-write lock that somebody has is ended", caller, -EBUSY);
    weft_assert(is_free);
}

/* ---- take ------------------------------------------------------------------------------------------ */

/* Both frames are the same. */
_Static_assert(sizeof(struct weft_read_lock) == sizeof(struct weft_write_lock), "as said");

static weft_poll ends(struct weft_read_lock *f, int ret)
{
    f->weft__at = 0;
    f->ret = ret;
    return WEFT_READY;
}

/* Is it time to ask whether the holder lives? By several at once it is asked more than once, or told by one of them. */
static bool time_to_look(weft_rwlock *lock)
{
    _Atomic int64_t *look_at = (_Atomic int64_t *)(void *)&lock->weft__look_at;
    if (!weft__holder_is_any(writer_of(lock))) return false;
    int64_t now = weft_now();
    if (now < load_relaxed(look_at)) return false; /* relaxed, both: a hint */
    store_relaxed(look_at, now + WEFT__MUTEX_PATIENCE_NS);
    return true;
}

static weft_poll lock_poll(struct weft_read_lock *f, weft_cx *cx, uint64_t permits)
{
    struct weft_sem_acquire *acquire = &f->weft__acquire;
    if (!f->weft__at) {
        if (!f->lock) return ends(f, -EINVAL);
        if (!cx->why && !cx->among && weft__holder_is_me(writer_of(f->lock)))
            return ends(f, weft__holder_misuse(writer_of(f->lock),
                                               "a read-write lock is locked once more",
                                               f->weft__caller, -EDEADLK));
        *acquire = (struct weft_sem_acquire){.sem = &f->lock->weft__sem, .permits = permits};
    }
    bool waited = f->weft__at != 0;
    weft_poll answer = weft_sem_acquire_poll(acquire, cx);
    f->weft__at = acquire->weft__at;
    if (answer == WEFT_READY) return ends(f, acquire->ret);
    if (!waited && f->weft__at && time_to_look(f->lock)) /* it waits: the lock is there */
        (void)weft__holder_report_ended(writer_of(f->lock), "read-write lock", f->lock);
    return WEFT_PENDING;
}

weft_poll weft_read_lock_poll(void *frame, weft_cx *cx)
{
    struct weft_read_lock *f = frame;
    bool waited = f->weft__at != 0;
    weft_poll answer = lock_poll(f, cx, 1);
    if (answer == WEFT_READY && f->ret == 0) reader_note(f->lock, f->weft__caller);
    if (answer == WEFT_PENDING && f->weft__at && !waited && !cx->among && reads_alone(f->lock)) /* and it waits for itself: behind a writer, who waits for it */
        (void)weft__holder_misuse(writer_of(f->lock), "a read-write lock is read once more while a writer waits", f->weft__caller, -EDEADLK);
    return answer;
}

weft_poll weft_write_lock_poll(void *frame, weft_cx *cx)
{
    struct weft_read_lock *f = frame;
    if (!f->weft__at && f->lock && !cx->why && !cx->among && reads_alone(f->lock))
        return ends(f, weft__holder_misuse(writer_of(f->lock),
                                           "a read-write lock is locked to write while it is read",
                                           f->weft__caller, -EDEADLK));
    weft_poll answer = lock_poll(f, cx, WEFT__READERS_MAX);
    if (answer == WEFT_READY && f->ret == 0) weft__holder_take(writer_of(f->lock), f->weft__caller);
    return answer;
}

int weft__read_lock(weft_rwlock *lock, const char *caller)
{
    struct weft_read_lock f = {.lock = lock, .weft__caller = caller};
    int r = weft__run_from(weft_read_lock_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

int weft__write_lock(weft_rwlock *lock, const char *caller)
{
    struct weft_write_lock f = {.lock = lock, .weft__caller = caller};
    int r = weft__run_from(weft_write_lock_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

int weft__try_read_lock(weft_rwlock *lock, const char *caller)
{
    if (!lock) return -EINVAL;
    int r = weft_sem_try_acquire(&lock->weft__sem, 1);
    if (r == 0) reader_note(lock, caller);
    return r;
}

int weft__try_write_lock(weft_rwlock *lock, const char *caller)
{
    if (!lock) return -EINVAL;
    int r = weft_sem_try_acquire(&lock->weft__sem, WEFT__READERS_MAX);
    if (r == 0) weft__holder_take(writer_of(lock), caller);
    return r;
}

/* ---- give back ------------------------------------------------------------------------------------- */

int weft__read_unlock(weft_rwlock *lock, const char *caller)
{
    if (!lock) return -EINVAL;
    if (is_written(lock) || weft_sem_permits(&lock->weft__sem) >= WEFT__READERS_MAX)
        return weft__holder_misuse(
            writer_of(lock), "a read-write lock that nobody reads is unlocked", caller, -EPERM);
    reader_forget(lock);
    weft__sem_release(&lock->weft__sem, 1, caller);
    return 0;
}

static int give_back(weft_rwlock *lock, uint64_t permits, const char *caller)
{
    if (!lock) return -EINVAL;
    if (!weft__holder_is_me(writer_of(lock)))
        return weft__holder_misuse(writer_of(lock), "a read-write lock is unlocked", caller,
                                   -EPERM);
    weft__holder_leave(writer_of(lock));
    if (permits < WEFT__READERS_MAX) reader_note(lock, caller);
    weft__sem_release(&lock->weft__sem, permits, caller);
    return 0;
}

int weft__write_unlock(weft_rwlock *lock, const char *caller)
{
    return give_back(lock, WEFT__READERS_MAX, caller);
}

int weft__downgrade(weft_rwlock *lock, const char *caller)
{
    return give_back(lock, WEFT__READERS_MAX - 1, caller);
}
