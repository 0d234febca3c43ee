/* SPDX-License-Identifier: MIT
 *
 * rwlock - a semaphore with a permit for each reader: who writes takes all of them.
 *
 * The semaphore is first come, first served, also for one who wants much: that is all it takes for a writer not to starve.
 *     holder != 0  =>  it has all permits
 * Threads: any. What is written under it is seen by the semaphore's pair.
 * Rejected: readers that pass a waiting writer (it starves); a word of its own with two kinds of waiters (the same queue, the
 * same races, once more).
 */
#include "sync/holder.h"
#include "sync/semaphore.h"
#include "task/call.h"

#include <weft/lock.h>

#include <errno.h>

static _Atomic uintptr_t *holder_of(weft_rwlock *lock)
{
    return (_Atomic uintptr_t *)(void *)&lock->weft__holder;
}

static uintptr_t holder_look(weft_rwlock *lock)
{
    return load_relaxed(holder_of(lock)); /* relaxed: one's own word, or not */
}

static void own(weft_rwlock *lock, uintptr_t self)
{
    store_relaxed(holder_of(lock), self); /* relaxed: nobody reads anything on the strength of it */
}

void weft_rwlock_init(weft_rwlock *lock)
{
    weft_sem_init(&lock->weft__sem, WEFT__READERS_MAX);
    own(lock, 0);
}

void weft_rwlock_done(weft_rwlock *lock)
{
    if (!lock) return;
    weft_sem_done(&lock->weft__sem);
    weft_assert(weft_sem_permits(&lock->weft__sem) == WEFT__READERS_MAX); /* somebody has it */
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

static weft_poll lock_poll(struct weft_read_lock *f, weft_cx *cx, uint64_t permits)
{
    struct weft_sem_acquire *acquire = &f->weft__acquire;
    if (!f->weft__at) {
        if (!f->lock) return ends(f, -EINVAL);
        uintptr_t self = weft__holder_self();
        if (!cx->why && !cx->among && holder_look(f->lock) == self) {
            return ends(f, weft__holder_misuse(self, "a read-write lock is locked once more", NULL,
                                               -EDEADLK));
        }
        *acquire = (struct weft_sem_acquire){.sem = &f->lock->weft__sem, .permits = permits};
    }
    weft_poll answer = weft_sem_acquire_poll(acquire, cx);
    f->weft__at = acquire->weft__at;
    return answer == WEFT_READY ? ends(f, acquire->ret) : WEFT_PENDING;
}

weft_poll weft_read_lock_poll(void *frame, weft_cx *cx)
{
    return lock_poll(frame, cx, 1);
}

weft_poll weft_write_lock_poll(void *frame, weft_cx *cx)
{
    struct weft_read_lock *f = frame;
    weft_poll answer = lock_poll(f, cx, WEFT__READERS_MAX);
    if (answer == WEFT_READY && f->ret == 0) own(f->lock, weft__holder_self());
    return answer;
}

int weft__read_lock(weft_rwlock *lock)
{
    struct weft_read_lock f = {.lock = lock};
    int r = weft__run_from(weft_read_lock_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

int weft__write_lock(weft_rwlock *lock)
{
    struct weft_write_lock f = {.lock = lock};
    int r = weft__run_from(weft_write_lock_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

int weft_try_read_lock(weft_rwlock *lock)
{
    return lock ? weft_sem_try_acquire(&lock->weft__sem, 1) : -EINVAL;
}

int weft_try_write_lock(weft_rwlock *lock)
{
    if (!lock) return -EINVAL;
    int r = weft_sem_try_acquire(&lock->weft__sem, WEFT__READERS_MAX);
    if (r == 0) own(lock, weft__holder_self());
    return r;
}

/* ---- give back ------------------------------------------------------------------------------------- */

int weft_read_unlock(weft_rwlock *lock)
{
    if (!lock) return -EINVAL;
    uintptr_t writer = holder_look(lock);
    if (writer || weft_sem_permits(&lock->weft__sem) >= WEFT__READERS_MAX) {
        return weft__holder_misuse(writer, "a read-write lock that nobody reads is unlocked",
                                   __builtin_return_address(0), -EPERM);
    }
    weft_sem_release(&lock->weft__sem, 1);
    return 0;
}

static int give_back(weft_rwlock *lock, uint64_t permits, const void *caller)
{
    if (!lock) return -EINVAL;
    uintptr_t writer = holder_look(lock);
    if (writer != weft__holder_self()) {
        return weft__holder_misuse(writer, "a read-write lock is unlocked", caller, -EPERM);
    }
    own(lock, 0);
    weft_sem_release(&lock->weft__sem, permits);
    return 0;
}

int weft_write_unlock(weft_rwlock *lock)
{
    return give_back(lock, WEFT__READERS_MAX, __builtin_return_address(0));
}

int weft_downgrade(weft_rwlock *lock)
{
    return give_back(lock, WEFT__READERS_MAX - 1, __builtin_return_address(0));
}
