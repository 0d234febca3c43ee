/* SPDX-License-Identifier: MIT
 *
 * watchers - the table of those who wait without owning; the drawing and the reasons are in watchers.h.
 */
#include "task/watchers.h"

#include "base/assert.h"
#include "sys/lock.h"

struct bucket {
    WEFT__CACHE_ALIGNED struct weft__lock lock;
    struct weft__link list; /* of watchers, the oldest first; zero: not used yet [lock] */
};

/* All zero, so that a program that waits for nobody has no page of it; only debug builds read ranks. */
#if defined(WEFT_DEBUG)
static struct bucket buckets[WEFT__WATCH_BUCKETS] = {
    [0 ... WEFT__WATCH_BUCKETS - 1] = {.lock = WEFT__LOCK_INIT(WEFT__RANK_WAITLIST)}};
#else
static struct bucket buckets[WEFT__WATCH_BUCKETS];
#endif

static struct bucket *bucket_of(const struct weft_task *child)
{
    /* Blocks lie at multiples of 16; the product's upper half depends on all of the address. */
    uint64_t mixed = (uint64_t)((uintptr_t)child >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    return &buckets[(mixed >> 32) % WEFT__WATCH_BUCKETS];
}

static struct bucket *bucket_lock(const struct weft_task *child)
{
    struct bucket *b = bucket_of(child);
    weft__lock_take(&b->lock);
    if (!b->list.next) weft__link_init(&b->list);
    return b;
}

static void unlink_locked(struct weft__watcher *watcher)
{
    struct bucket *b = bucket_lock(plain_read(&watcher->child));
    weft__list_remove(&watcher->link);
    weft__lock_drop(&b->lock);
}

/* Holds: the bucket's lock, and the watcher is linked. False: the child was complete before. */
static bool mark_watched(struct weft_task *child)
{
    uint64_t word = load_acquire(&child->state); /* [state-done] with end: the result */

    while (!(word & WEFT__STATE_COMPLETE)) { /* lock-free: a failed CAS means another transition */
        if (word & WEFT__STATE_WATCHED) return true;
        /* The flag brings no memory: the list travels with the lock. On failure [state-done] with end. */
        if (cas_acquire(&child->state, &word, word | WEFT__STATE_WATCHED)) return true;
    }
    return false;
}

bool weft__watchers_add(struct weft_task *child, struct weft__watcher *watcher,
                        struct weft_waker waker)
{
    weft_assert(!weft__waker_is_none(waker));
    if (weft__state_is_complete(child)) return true;

    plain_write(&watcher->waker, waker.word);
    plain_write(&watcher->child, child);
    weft__link_init(&watcher->link);
    struct bucket *b = bucket_lock(child);
    weft__list_push_back(&b->list, &watcher->link);
    bool watches = mark_watched(child);
    if (!watches) weft__list_remove(&watcher->link);
    weft__lock_drop(&b->lock);
    return !watches;
}

bool weft__watchers_again(const struct weft_task *child, struct weft__watcher *watcher)
{
    weft_assert(plain_read(&watcher->child) == child);
    if (!weft__state_is_complete(child)) return false;
    unlink_locked(watcher);
    return true;
}

void weft__watchers_leave(struct weft__watcher *watcher)
{
    unlink_locked(watcher);
}

void weft__watchers_wake(const struct weft_task *child, const struct weft__sched *sched)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    struct bucket *b = bucket_lock(child);

    weft__list_each (it, &b->list) {
        struct weft__watcher *watcher = weft__container_of(it, struct weft__watcher, link);
        if (plain_read(&watcher->child) != child) continue;
        weft__wake_chain_claim(&chain, (struct weft_waker){plain_read(&watcher->waker)});
    }
    weft__lock_drop(&b->lock);
    weft__wake_chain_push(&chain, sched);
}

void weft__watchers_forget(void)
{
    for (unsigned i = 0; i < WEFT__WATCH_BUCKETS; i++) {
        struct bucket *b = &buckets[i];
        if (!b->list.next && load_relaxed(&b->lock.word) == 0) /* relaxed: there is one thread */
            continue;                                          /* its page is not written to */
        weft__lock_init(&b->lock, WEFT__RANK_WAITLIST);
        b->list = (struct weft__link){NULL, NULL};
    }
}
