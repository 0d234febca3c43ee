/* SPDX-License-Identifier: MIT
 *
 * semaphore - permits in one word, and a queue for those who lack some.
 *
 *     word = permits << 2 | CLOSED | WAITERS
 * Without WAITERS the word is everything: to take and to give back is one CAS. While it has WAITERS nobody but the
 * holder of the list's lock writes it, so a newcomer cannot pass, whatever it wants.
 *     WAITERS  <=>  somebody is in the list                        whenever the lock is free
 *     the first of the list lacks permits                          whenever the lock is free
 *
 * A waiter gets its permits where it gets its turn: they leave the word in that moment, and `ret`, which says -EPIPE as
 * long as it waits, says 0. So a turn keeps its place before those who come later, and a poll that finds it granted takes
 * no lock. One that is cancelled with a turn puts them back, and whoever is first now is looked at: none is lost.
 *
 * Threads: any. LOCK ORDER: its waitlist alone. Pairs: [sem] who gives back -> who takes.
 * Rejected: permits handed to the first in parts, as they come (a cancel in the midst of it has more to undo, and nobody
 * else could use them meanwhile either way); everything under the lock (four read-modify-writes instead of two).
 */
#include "sync/semaphore.h"
#include "sync/leaf.h"

#include <errno.h>

#define WAITERS ((uint64_t)1)
#define CLOSED  ((uint64_t)2)
#define PERMIT  ((uint64_t)4)

_Static_assert(sizeof(struct weft__sem) == sizeof(weft_sem), "a semaphore fits its place");
_Static_assert(offsetof(struct weft__sem, list) == offsetof(weft_sem, weft__list), "as above");

static struct weft__sem *sem_of(const weft_sem *sem)
{
    return (struct weft__sem *)(uintptr_t)sem;
}

static bool countable(uint64_t permits)
{
    return permits > 0 && permits <= WEFT_SEM_MAX;
}

void weft_sem_init(weft_sem *sem, uint64_t permits)
{
    struct weft__sem *s = sem_of(sem);
    weft_assert(permits <= WEFT_SEM_MAX);
    weft__waitlist_init(&s->list);
    store_relaxed(&s->word, permits * PERMIT); /* relaxed: not shared yet */
}

void weft__sem_done(weft_sem *sem, const char *caller)
{
    if (sem) weft__leaf_done(&sem_of(sem)->list, "a semaphore", caller);
}

/* ---- take ------------------------------------------------------------------------------------------ */

/* Without the lock. 0, -EPIPE; -EBUSY: there are too few, or somebody waits. */
static int take(struct weft__sem *s, uint64_t permits)
{
    uint64_t word = load_relaxed(&s->word); /* relaxed: the CAS orders */
    do {
        if (word & CLOSED) return -EPIPE;
        if ((word & WAITERS) || word / PERMIT < permits) return -EBUSY;
        /* [sem] with put, grant: what was done before the permits were given back */
    } while (!cas_acquire(&s->word, &word, word - permits * PERMIT));
    return 0;
}

int weft_sem_try_acquire(weft_sem *sem, uint64_t permits)
{
    if (!sem || !countable(permits)) return -EINVAL;
    return take(sem_of(sem), permits);
}

/* ---- give ------------------------------------------------------------------------------------------ */

/* So many come to a word. They are given at `at`, if that is known. */
static inline void check_room(uint64_t word, uint64_t permits, const char *at)
{
    if (__builtin_expect(word / PERMIT + permits > WEFT_SEM_MAX, 0))
        weft__misuse("a semaphore is given more permits than it can hold", at);
}

/* Holds: the lock, and somebody waits, or did until now. So many permits come; whoever is first gets what it wants, as long as
 * there is enough. */
static void grant(struct weft__sem *s, uint64_t permits, struct weft__wake_chain *chain,
                  const char *at)
{
    uint64_t word = load_relaxed(&s->word); /* relaxed: with WAITERS it is the lock's */
    weft_assert(word & WAITERS);
    check_room(word, permits, at);
    word += permits * PERMIT;
    for (struct weft__link *it; (it = weft__list_first(&s->list.head));) {
        struct weft_sem_acquire *first =
            weft__container_of(it, struct weft_sem_acquire, weft__waiter);
        if (word / PERMIT < first->permits) break;
        word -= first->permits * PERMIT;
        first->ret = 0;
        (void)weft__waitlist_give_turn(&s->list, chain);
    }
    if (weft__waitlist_empty(&s->list)) word &= ~WAITERS;
    store_release(&s->word, word); /* [sem] with take: what is left is anybody's */
}

/* Without the lock, or with it. False: somebody waits. */
static bool put(struct weft__sem *s, uint64_t permits, const char *at)
{
    uint64_t word = load_relaxed(&s->word); /* relaxed: the CAS orders */
    do {
        if (word & WAITERS) return false;
        check_room(word, permits, at);
        /* [sem] with take, take_or_mark: what was done with the permits */
    } while (!cas_release(&s->word, &word, word + permits * PERMIT));
    return true;
}

/* Somebody waits. False: nobody does any more; it is put without the lock then, since whoever takes it may free the
 * semaphore. */
static bool put_in_line(struct weft__sem *s, uint64_t permits, const char *at)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    weft__leaf_lock(&s->list);
    bool waits = load_relaxed(&s->word) & WAITERS; /* relaxed: under the lock */
    if (waits) grant(s, permits, &chain, at);
    weft__waitlist_unlock_push(&s->list, &chain, &weft__sched);
    return waits;
}

void weft__sem_release(weft_sem *sem, uint64_t permits, const char *caller)
{
    struct weft__sem *s = sem_of(sem);

    if (permits > WEFT_SEM_MAX) check_room(0, WEFT_SEM_MAX + 1, caller); /* a sum could wrap */
    while (!put(s, permits, caller) &&
           !put_in_line(s, permits, caller)) /* again only if the last waiter has left */
        continue;
}

/* ---- wait ------------------------------------------------------------------------------------------ */

static weft_poll ends(struct weft_sem_acquire *f, int ret)
{
    f->weft__at = 0;
    f->ret = ret;
    return WEFT_READY;
}

/* Holds: the lock. 0, -EPIPE; -EBUSY: it is marked that somebody waits. */
static int take_or_mark(struct weft__sem *s, uint64_t permits)
{
    uint64_t word = load_relaxed(&s->word); /* relaxed: the CAS orders */
    for (;;) {
        if (word & CLOSED) return -EPIPE;
        bool enough = !(word & WAITERS) && word / PERMIT >= permits;
        uint64_t next = enough ? word - permits * PERMIT : word | WAITERS;
        /* [sem] with put, grant: also for those who take what a later grant puts there */
        if (cas_acquire(&s->word, &word, next)) return enough ? 0 : -EBUSY;
    }
}

static __attribute__((noinline)) weft_poll begins(struct weft_sem_acquire *f, weft_cx *cx)
{
    struct weft__sem *s = sem_of(f->sem);
    struct weft__waiter *waiter = WEFT__LEAF_WAITER(f);

    weft__waiter_init(waiter);
    weft__leaf_lock(&s->list);
    int r = take_or_mark(s, f->permits);
    if (r == -EBUSY) {
        f->weft__at = WEFT__LEAF_WAITS;
        f->ret = -EPIPE; /* until it is granted */
        weft__waitlist_add(&s->list, waiter, cx->waker);
    }
    weft__waitlist_unlock(&s->list);
    return r == -EBUSY ? WEFT_PENDING : ends(f, r);
}

/* What it was granted goes back; and one that was first and wanted much may have kept others waiting. */
static weft_poll gives_up(struct weft_sem_acquire *f, weft_cx *cx)
{
    struct weft__sem *s = sem_of(f->sem);
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    weft__leaf_lock(&s->list);
    bool granted = weft__waitlist_settle(&s->list, WEFT__LEAF_WAITER(f)) && f->ret == 0;
    uint64_t back = granted ? f->permits : 0;
    if (!put(s, back, NULL)) grant(s, back, &chain, NULL);
    weft__waitlist_unlock_push(&s->list, &chain, &weft__sched);
    return ends(f, weft_cx_cancelled(cx));
}

static weft_poll goes_on(struct weft_sem_acquire *f, weft_cx *cx)
{
    struct weft__sem *s = sem_of(f->sem);
    struct weft__waiter *waiter = WEFT__LEAF_WAITER(f);

    if (cx->why) return gives_up(f, cx);
    if (weft__waiter_take_granted(waiter)) return ends(f, f->ret);
    weft__leaf_lock(&s->list);
    bool over = weft__waiter_has_turn(&s->list, waiter);
    if (over) (void)weft__waitlist_settle(&s->list, waiter);
    weft__waitlist_unlock(&s->list);
    return over ? ends(f, f->ret) : WEFT_PENDING;
}

weft_poll weft_sem_acquire_poll(void *frame, weft_cx *cx)
{
    struct weft_sem_acquire *f = frame;

    if (f->weft__at) return goes_on(f, cx);
    if (cx->why) return weft__told_yields(cx) ? WEFT_PENDING : ends(f, weft_cx_cancelled(cx));
    if (!f->sem || !countable(f->permits)) return ends(f, -EINVAL);
    if (!weft__leaf_may(cx)) return WEFT_PENDING;
    int r = take(sem_of(f->sem), f->permits);
    if (r != -EBUSY) return ends(f, r);
    return cx->probe ? WEFT_PENDING : begins(f, cx);
}

/* ---- the rest -------------------------------------------------------------------------------------- */

uint64_t weft_sem_forget(weft_sem *sem, uint64_t permits)
{
    struct weft__sem *s = sem_of(sem);

    weft__leaf_lock(&s->list); /* with WAITERS the word is the lock's */
    uint64_t word = load_relaxed(
        &s->word); /* relaxed, both: what is forgotten says nothing of who gave it back */
    uint64_t gone;
    do {
        gone = word / PERMIT < permits ? word / PERMIT : permits;
    } while (!cas_relaxed(&s->word, &word, word - gone * PERMIT));
    weft__waitlist_unlock(&s->list);
    return gone;
}

/* Who waits keeps its -EPIPE; nobody queues any more. */
int weft_sem_close(weft_sem *sem)
{
    if (!sem) return -EINVAL;
    struct weft__sem *s = sem_of(sem);

    weft__leaf_lock(&s->list);
    uint64_t word = fetch_or_relaxed(&s->word, CLOSED); /* relaxed, both: a flag */
    if (word & WAITERS) (void)fetch_and_relaxed(&s->word, ~WAITERS);
    (void)weft__waitlist_unlock_wake_all(&s->list, &weft__sched);
    return word & CLOSED ? -EALREADY : 0;
}

bool weft_sem_closed(const weft_sem *sem)
{
    return load_relaxed(&sem_of(sem)->word) & CLOSED; /* relaxed: a look */
}

uint64_t weft_sem_permits(const weft_sem *sem)
{
    return load_relaxed(&sem_of(sem)->word) / PERMIT; /* relaxed: a look */
}
