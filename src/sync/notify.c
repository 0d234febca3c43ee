/* SPDX-License-Identifier: MIT
 *
 * notify - a bell that keeps one ring.
 *
 *     kept  =>  nobody is in the list                              whenever the lock is free
 * A turn is all that a waiter wants, so a poll that finds it granted takes no lock. It is marked where it came from:
 * weft_notify_one's is owed to somebody, and a waiter that is cancelled with it rings again; weft_notify_waiters' was for
 * this one alone.
 *
 * The usual ways, to wait where nobody has rung and to ring where nobody or a task waits, are written out, with the lock lent to this worker or free at
 * the first try; all else is the end of a path, in a function of its own, so that they save no registers. Two tasks of one worker that ring for each other pay
 * for the claim and for the end of the poll, and for nothing else.
 *
 * Threads: any. LOCK ORDER: its waitlist alone. What was written before the ring is seen behind the wait: by the lock, or
 * by the push.
 * Rejected: a state word beside the lock, or with one waiter in it (a compare-and-swap where the lock, dropped by a store, is one
 * as well; two ways to ring that must agree, and a frame that may die between the word and the claim).
 */
#include "sync/leaf.h"

#include <weft/sync.h>

#include <errno.h>

struct notify {
    struct weft__waitlist list;
    bool kept; /* rung while nobody waited      [list.lock] */
};
_Static_assert(sizeof(struct notify) <= sizeof(weft_notify), "a notify fits its place");

static struct notify *notify_of(weft_notify *notify)
{
    return (struct notify *)(void *)notify;
}

void weft_notify_init(weft_notify *notify)
{
    struct notify *n = notify_of(notify);
    weft__waitlist_init(&n->list);
    n->kept = false;
}

void weft__notify_done(weft_notify *notify, const char *caller)
{
    if (notify) weft__leaf_done(&notify_of(notify)->list, "a notify", caller);
}

/* holds: n->list.lock, and drops it. */
static void unlock_ring(struct notify *n)
{
    struct weft__link *first = weft__list_first(&n->list.head);
    if (!first) {
        n->kept = true;
        weft__waitlist_unlock(&n->list);
        return;
    }
    weft__container_of(first, struct weft_notify_wait, weft__waiter)->weft__one = n;
    weft__waitlist_unlock_wake(
        &n->list, weft__container_of(first, struct weft__waiter, link), &weft__sched);
}

static __attribute__((noinline)) void notify_one_slow(struct notify *n)
{
    weft__leaf_lock(&n->list);
    unlock_ring(n);
}

/* holds: n->list.lock. Somebody waits who is no task. */
static __attribute__((noinline)) void unlock_ring_foreign(struct notify *n)
{
    unlock_ring(n);
}

/* unlock_ring, by one who knows how it holds the lock. */
static inline __attribute__((always_inline)) void ring(struct notify *n, uint8_t me,
                                                       enum weft__waitlist_way way)
{
    struct weft__link *first = weft__list_first(&n->list.head);
    if (!first) {
        n->kept = true;
        weft__waitlist_drop(&n->list, me, way);
        return;
    }
    struct weft__waiter *waiter = weft__container_of(first, struct weft__waiter, link);
    struct weft_task *task = weft__waiter_task(&n->list, waiter);
    if (__builtin_expect(!task, 0)) {
        unlock_ring_foreign(n);
        return;
    }
    weft__container_of(first, struct weft_notify_wait, weft__waiter)->weft__one = n;
    bool granted = weft__waitlist_claim_task(waiter, task);
    weft__waitlist_drop(&n->list, me, way);
    if (__builtin_expect(!granted, 0)) return;
    weft__lock_assert_none_held();
    weft__sched.ops->push(weft__sched.self, task);
}

static __attribute__((noinline)) void notify_one_by_word(struct notify *n, uint8_t me)
{
    if (__builtin_expect(!weft__leaf_try_word(&n->list), 0)) {
        notify_one_slow(n);
        return;
    }
    ring(n, me, WEFT__BY_WORD);
}

void weft_notify_one(weft_notify *notify)
{
    struct notify *n = notify_of(notify);
    uint8_t me = weft__waitlist_me();

    if (weft__waitlist_try_loan(&n->list, me)) {
        ring(n, me, WEFT__BY_LOAN);
    } else {
        notify_one_by_word(n, me);
    }
}

uint32_t weft_notify_waiters(weft_notify *notify)
{
    struct notify *n = notify_of(notify);

    weft__leaf_lock(&n->list);
    return weft__waitlist_unlock_wake_all(&n->list, &weft__sched);
}

/* ---- wait ------------------------------------------------------------------------------------------ */

static weft_poll ends(struct weft_notify_wait *f, int ret)
{
    f->weft__at = 0;
    f->ret = ret;
    return WEFT_READY;
}

/* holds: the lock. READY: the ring that was kept is taken. */
static inline __attribute__((always_inline)) weft_poll begins(struct notify *n,
                                                              struct weft_notify_wait *f,
                                                              weft_cx *cx)
{
    if (n->kept) {
        n->kept = false;
        return ends(f, 0);
    }
    if (!cx->probe) {
        f->weft__one = NULL;
        f->weft__at = WEFT__LEAF_WAITS;
        weft__waitlist_add_new(&n->list, WEFT__LEAF_WAITER(f), cx->waker);
    }
    return WEFT_PENDING;
}

static weft_poll gives_up(struct weft_notify_wait *f, weft_cx *cx)
{
    bool had_turn = weft__waitlist_leave(&notify_of(f->notify)->list, WEFT__LEAF_WAITER(f));
    if (had_turn && f->weft__one) weft_notify_one(f->notify);
    return ends(f, weft_cx_cancelled(cx));
}

/* It was running when it was rung for, or it is polled for another reason. */
static weft_poll looks_again(struct weft_notify_wait *f)
{
    struct notify *n = notify_of(f->notify);

    weft__leaf_lock(&n->list);
    bool turn = weft__waiter_has_turn(&n->list, WEFT__LEAF_WAITER(f));
    if (turn) (void)weft__waitlist_settle(&n->list, WEFT__LEAF_WAITER(f));
    weft__waitlist_unlock(&n->list);
    return turn ? ends(f, 0) : WEFT_PENDING;
}

static __attribute__((noinline)) weft_poll poll_slow(struct weft_notify_wait *f, weft_cx *cx)
{
    if (f->weft__at) return cx->why ? gives_up(f, cx) : looks_again(f);
    if (cx->why) return weft__told_yields(cx) ? WEFT_PENDING : ends(f, weft_cx_cancelled(cx));
    if (!f->notify) return ends(f, -EINVAL);
    if (!weft__leaf_may(cx)) return WEFT_PENDING;
    struct notify *n = notify_of(f->notify);
    weft__leaf_lock(&n->list);
    weft_poll answer = begins(n, f, cx);
    weft__waitlist_unlock(&n->list);
    return answer;
}

static __attribute__((noinline)) weft_poll poll_by_word(struct weft_notify_wait *f, weft_cx *cx)
{
    struct notify *n = notify_of(f->notify);
    uint8_t me = weft__waitlist_me();

    if (__builtin_expect(!weft__leaf_try_word(&n->list), 0)) return poll_slow(f, cx);
    cx->budget = weft__charged(cx->budget);
    weft_poll answer = begins(n, f, cx);
    weft__waitlist_drop(&n->list, me, WEFT__BY_WORD);
    return answer;
}

weft_poll weft_notify_wait_poll(void *frame, weft_cx *cx)
{
    struct weft_notify_wait *f = frame;

    if (__builtin_expect(cx->why != 0, 0)) return poll_slow(f, cx);
    if (f->weft__at)
        return weft__waiter_take_granted(WEFT__LEAF_WAITER(f)) ? ends(f, 0) : poll_slow(f, cx);
    struct notify *n = notify_of(f->notify);
    uint32_t budget = cx->budget;
    if (__builtin_expect(!n || budget == 0, 0)) return poll_slow(f, cx);
    uint8_t me = weft__waitlist_me();
    if (!weft__waitlist_try_loan(&n->list, me)) return poll_by_word(f, cx);
    cx->budget = weft__charged(budget);
    weft_poll answer = begins(n, f, cx);
    weft__waitlist_drop(&n->list, me, WEFT__BY_LOAN);
    return answer;
}
