/* SPDX-License-Identifier: MIT
 *
 * mutex - one word and a queue; it may be overtaken, but not for long.
 *
 *     LOCKED    somebody has it
 *     WAITERS   somebody is in the list, or had a turn and has not looked yet
 *     WOKEN     somebody has a turn and has not looked yet: one is enough, the next unlock wakes nobody
 *     STARVING  one who was overtaken has waited for WEFT__MUTEX_PATIENCE_NS: only who has a turn may take it now
 *
 *     WAITERS without WOKEN  =>  the list is not empty                whenever its lock is free
 *     STARVING without LOCKED  =>  WOKEN                              always
 *
 * Free, it is taken by a CAS and given back by a CAS. A waiter marks WAITERS, by a CAS that sees LOCKED, before it queues,
 * under the list's lock; so an unlock either sees the mark, or is seen. One that sees WAITERS alone takes the list's lock
 * *first*, then lets go, marks WOKEN and gives the first its turn, whose poll then competes with all who come. Overtaken, it
 * goes back to the front of the list; if it has waited long enough it marks STARVING, and the next unlock's turn is as good
 * as the lock. A cancelled turn goes to the next if the lock is free; otherwise its holder's unlock will give one.
 *
 * THE LAST TOUCH of an unlock is its CAS; or, if it has let go under the list's lock, the drop of that, behind which alone
 * the one it has woken goes on: whoever has the mutex last may free it.
 * Threads: any. LOCK ORDER: its waitlist alone; weft_now is asked before. Pairs: [mutex] unlock -> lock.
 * Rejected: fetch_and for the unlock (the mutex may be gone before its list's lock is taken); handing over always (with two
 * workers each lock is then a switch: 38 ns instead of 5); waking one at each unlock (42 ns).
 */
#include "sync/mutex.h"
#include "limits.h"
#include "sync/holder.h"
#include "sync/leaf.h"
#include "task/call.h"

#include <weft/lock.h>
#include <weft/time.h>

#include <errno.h>

#define LOCKED   UINT32_C(1)
#define WAITERS  UINT32_C(2)
#define WOKEN    UINT32_C(4)
#define STARVING UINT32_C(8)

struct mutex {
    _Atomic uint32_t word; /* the four above                                            [mutex] */
    struct weft__holder
        holder; /* who has it, once that is noted                  [holder; others look] */
    struct weft__waitlist list; /* of struct weft_lock */
    int64_t look_at; /* not before then is it asked whether the holder lives  [list.lock] */
};
_Static_assert(sizeof(struct mutex) <= sizeof(weft_mutex), "a mutex fits its place");

static struct mutex *mutex_of(weft_mutex *mutex)
{
    return (struct mutex *)(void *)mutex;
}

void weft_mutex_init(weft_mutex *mutex)
{
    struct mutex *m = mutex_of(mutex);
    weft__waitlist_init(&m->list);
    store_relaxed(&m->word, 0); /* relaxed, all: not shared yet */
    store_relaxed(&m->holder.who, 0);
    store_relaxed(&m->holder.at, NULL);
    m->look_at = 0;
}

void weft__mutex_done(weft_mutex *mutex, const char *caller)
{
    if (!mutex) return;
    struct mutex *m = mutex_of(mutex);

    weft__leaf_done(&m->list, "a mutex", caller);
    if (load_relaxed(&m->word) == 0) return; /* relaxed, both: nobody else uses it */
    (void)weft__holder_misuse(&m->holder, "a mutex that is locked is ended", caller, -EBUSY);
    weft_assert(load_relaxed(&m->word) == 0);
}

/* ---- take ------------------------------------------------------------------------------------------ */

static bool take_slow(struct mutex *m, uint32_t word)
{
    while (!(word & (LOCKED | STARVING)))
        if (cas_acquire(&m->word, &word, word | LOCKED)) return true; /* [mutex] with unlock */
    return false;
}

static inline bool take(struct mutex *m)
{
    uint32_t word = load_relaxed(&m->word); /* relaxed: the CAS orders */
    /* [mutex] with unlock: what the last holder did */
    if (__builtin_expect(word == 0, 1) && cas_acquire(&m->word, &word, LOCKED)) return true;
    return take_slow(m, word);
}

int weft__try_lock(weft_mutex *mutex, const char *caller)
{
    if (!mutex) return -EINVAL;
    if (!take(mutex_of(mutex))) return -EBUSY;
    weft__holder_take(&mutex_of(mutex)->holder, caller);
    return 0;
}

/* ---- wait ------------------------------------------------------------------------------------------ */

static weft_poll ends(struct weft_lock *f, int ret)
{
    f->weft__at = 0;
    f->ret = ret;
    return WEFT_READY;
}

static bool patient(const struct weft_lock *f, int64_t now)
{
    return now - f->weft__since < WEFT__MUTEX_PATIENCE_NS;
}

/* Holds: the list's lock. A newcomer takes it, or marks that it waits. */
static bool take_or_mark(struct mutex *m)
{
    uint32_t word = load_relaxed(&m->word); /* relaxed: the CAS orders */
    for (;;) {
        bool is_free = !(word & (LOCKED | STARVING));
        /* [mutex] with unlock */
        if (cas_acquire(&m->word, &word, word | (is_free ? LOCKED : WAITERS))) return is_free;
    }
}

/* Holds: the list's lock. The same for one that had a turn, and is in no list. */
static bool take_by_turn(struct mutex *m, const struct weft_lock *f, int64_t now)
{
    bool last = weft__waitlist_empty(&m->list);
    uint32_t word = load_relaxed(&m->word); /* relaxed: the CAS orders */
    for (;;) {
        bool is_free = !(word & LOCKED);
        uint32_t next = word & ~WOKEN;
        if (is_free) {
            next |= LOCKED;
            if (patient(f, now)) next &= ~STARVING;
            if (last) next &= ~(WAITERS | STARVING);
        } else {
            next |= WAITERS;
            if (!patient(f, now)) next |= STARVING;
        }
        if (cas_acquire(&m->word, &word, next)) return is_free; /* [mutex] with unlock */
    }
}

/* Holds: the list's lock. Is it time to ask whether the holder lives? */
static bool time_to_look(struct mutex *m, int64_t now)
{
    if (now < m->look_at) return false;
    m->look_at = now + WEFT__MUTEX_PATIENCE_NS;
    return true;
}

bool weft__mutex_is_mine(weft_mutex *mutex)
{
    return weft__holder_is_me(&mutex_of(mutex)->holder);
}

int weft__mutex_misuse(weft_mutex *mutex, const char *what, const char *at, int error)
{
    return weft__holder_misuse(&mutex_of(mutex)->holder, what, at, error);
}

/* Others of the same task may have it, if there are any: they run on. */
static __attribute__((noinline)) weft_poll begins(struct weft_lock *f, weft_cx *cx)
{
    struct mutex *m = mutex_of(f->mutex);
    if (!cx->among && weft__holder_is_me(&m->holder))
        return ends(f, weft__holder_misuse(&m->holder, "a mutex is locked once more",
                                           f->weft__caller, -EDEADLK));
    f->weft__since = weft_now();
    weft__waiter_init(WEFT__LEAF_WAITER(f));
    weft__leaf_lock(&m->list);
    bool mine = take_or_mark(m);
    bool look = !mine && time_to_look(m, f->weft__since);
    if (!mine) {
        f->weft__at = WEFT__LEAF_WAITS;
        weft__waitlist_add(&m->list, WEFT__LEAF_WAITER(f), cx->waker);
    }
    weft__waitlist_unlock(&m->list);
    if (mine) {
        weft__holder_take(&m->holder, f->weft__caller);
        return ends(f, 0);
    }
    if (look) (void)weft__holder_report_ended(&m->holder, "mutex", m); /* it waits: it is there */
    return WEFT_PENDING;
}

/* Holds: the list's lock. A turn that is not used. True: it goes to the next. */
static bool pass_turn(struct mutex *m)
{
    bool last = weft__waitlist_empty(&m->list);
    uint32_t word = load_relaxed(&m->word); /* relaxed, both: it gives nothing away, nor takes */
    for (;;) {
        uint32_t next = word;
        if (last) {
            next &= ~(WOKEN | WAITERS | STARVING);
        } else if (word & LOCKED) {
            next &= ~WOKEN;
        }
        if (cas_relaxed(&m->word, &word, next)) return next & WOKEN;
    }
}

/* Holds: the list's lock. One that waited has left. */
static void unmark(struct mutex *m)
{
    if (!weft__waitlist_empty(&m->list)) return;
    uint32_t word = load_relaxed(&m->word); /* relaxed, both: as above */
    while (!(word & WOKEN) && !cas_relaxed(&m->word, &word, word & ~(WAITERS | STARVING)))
        continue;
}

static weft_poll gives_up(struct weft_lock *f, weft_cx *cx)
{
    struct mutex *m = mutex_of(f->mutex);

    weft__leaf_lock(&m->list);
    bool had_turn = weft__waitlist_settle(&m->list, WEFT__LEAF_WAITER(f));
    if (had_turn && pass_turn(m)) {
        weft__waitlist_unlock_wake_first(&m->list, &weft__sched);
    } else {
        if (!had_turn) unmark(m);
        weft__waitlist_unlock(&m->list);
    }
    return ends(f, weft_cx_cancelled(cx));
}

static weft_poll goes_on(struct weft_lock *f, weft_cx *cx)
{
    struct mutex *m = mutex_of(f->mutex);
    struct weft__waiter *waiter = WEFT__LEAF_WAITER(f);

    if (cx->why) return gives_up(f, cx);
    /* relaxed: a guess; without it the clock is not asked, and this one counts as patient */
    bool hurry = load_relaxed(&m->word) & (LOCKED | STARVING);
    int64_t now = hurry ? weft_now() : f->weft__since;
    weft__leaf_lock(&m->list);
    bool mine = false;
    if (!weft__waiter_queued(&m->list, waiter)) {
        mine = take_by_turn(m, f, now);
        if (mine) {
            (void)weft__waitlist_settle(&m->list, waiter);
        } else {
            weft__waitlist_add_first(&m->list, waiter, cx->waker);
        }
    }
    weft__waitlist_unlock(&m->list);
    if (!mine) return WEFT_PENDING;
    weft__holder_take(&m->holder, f->weft__caller);
    return ends(f, 0);
}

static __attribute__((noinline)) weft_poll lock_poll_slow(struct weft_lock *f, weft_cx *cx)
{
    if (f->weft__at) return goes_on(f, cx);
    if (cx->why) return weft__told_yields(cx) ? WEFT_PENDING : ends(f, weft_cx_cancelled(cx));
    if (!f->mutex) return ends(f, -EINVAL);
    if (!weft__leaf_may(cx)) return WEFT_PENDING;
    if (take(mutex_of(f->mutex))) {
        weft__holder_take(&mutex_of(f->mutex)->holder, f->weft__caller);
        return ends(f, 0);
    }
    return cx->probe ? WEFT_PENDING : begins(f, cx);
}

weft_poll weft_lock_poll(void *frame, weft_cx *cx)
{
    struct weft_lock *f = frame;
    struct mutex *m = mutex_of(f->mutex);

    if (__builtin_expect(f->weft__at || cx->why || !m || cx->budget == 0, 0))
        return lock_poll_slow(f, cx);
    uint32_t is_free = 0;
    if (load_relaxed(&m->word) != 0) return lock_poll_slow(f, cx); /* relaxed: the CAS orders */
    /* [mutex] with unlock: what the last holder did */
    if (!cas_acquire(&m->word, &is_free, LOCKED)) return lock_poll_slow(f, cx);
    if (cx->budget != WEFT__UNBUDGETED) cx->budget--;
    weft__holder_take(&m->holder, f->weft__caller);
    f->ret = 0;
    return WEFT_READY;
}

int weft__lock(weft_mutex *mutex, const char *caller)
{
    /* a thread's wait begins with a waker on the heap: not for a mutex that is free */
    if (mutex && weft__holder_may_block() && take(mutex_of(mutex))) {
        weft__holder_take(&mutex_of(mutex)->holder, caller);
        return 0;
    }
    struct weft_lock f = {.mutex = mutex, .weft__caller = caller};
    int r = weft__run_from(weft_lock_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

/* ---- unlock ---------------------------------------------------------------------------------------- */

/* It is ours, and stays LOCKED until it is certain that somebody is woken, who then keeps the mutex from being freed until the
 * list's lock is dropped. False: there is nobody to wake any more. */
static bool unlock_wake(struct mutex *m)
{
    weft__leaf_lock(&m->list);
    /* relaxed: LOCKED by us and with the list's lock held nobody else writes it */
    uint32_t word = load_relaxed(&m->word);
    if ((word & WOKEN) || weft__waitlist_empty(&m->list)) {
        weft__waitlist_unlock(&m->list);
        return false;
    }
    store_release(&m->word, (word & ~LOCKED) | WOKEN); /* [mutex] with take and others */
    weft__waitlist_unlock_wake_first(&m->list, &weft__sched);
    return true;
}

static __attribute__((noinline)) void unlock_slow(struct mutex *m, uint32_t word)
{
    for (;;) { /* again only if a waiter has left, or another has got a turn, in between */
        while (!(word & WAITERS) || (word & WOKEN))
            if (cas_release(&m->word, &word, word & ~LOCKED))
                return; /* [mutex] with take and others */
        if (unlock_wake(m)) return;
        word = load_relaxed(&m->word); /* relaxed: the CAS orders */
    }
}

int weft__unlock(weft_mutex *mutex, const char *caller)
{
    struct mutex *m = mutex_of(mutex);

    if (!m) return -EINVAL;
    if (__builtin_expect(!weft__holder_is_me(&m->holder), 0))
        return weft__holder_misuse(&m->holder, "a mutex is unlocked", caller, -EPERM);
    weft__holder_leave(&m->holder);
    uint32_t word = load_relaxed(&m->word); /* relaxed: the CAS orders */
    /* [mutex] with take and others: what was done with it */
    if (__builtin_expect(word == LOCKED, 1) && cas_release(&m->word, &word, 0)) return 0;
    unlock_slow(m, word);
    return 0;
}
