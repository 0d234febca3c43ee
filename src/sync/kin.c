/* SPDX-License-Identifier: MIT
 *
 * kin - children come, end, and are told to stop; the idea is in kin.h.
 */
#include "sync/kin.h"

#include "task/orphan.h"

#include <errno.h>

bool weft__kin_is_lost(const struct weft__kin *kin)
{
    if (__builtin_expect(weft__forks == 0, 1)) return false;
    uint32_t forks =
        load_relaxed(&kin->forks); /* relaxed: what a fork left behind does not change */
    return forks != 0 && forks != weft__forks + 1;
}

/* One that was zero has lists from now on. */
static void lock(struct weft__kin *kin)
{
    weft__leaf_lock(&kin->list);
    if (__builtin_expect(kin->children.next != NULL, 1)) return;
    weft__link_init(&kin->children);
    weft__link_init(&kin->ends);
    weft__link_init(&kin->bodies);
}

static void unlock(struct weft__kin *kin)
{
    weft__waitlist_unlock(&kin->list);
}

static void unlock_push(struct weft__kin *kin, struct weft__wake_chain *chain)
{
    weft__waitlist_unlock_push(&kin->list, chain, &weft__sched);
}

/* Holds: the lock. */
static uint32_t count_of(const struct weft__kin *kin)
{
    return load_relaxed(&kin->count); /* relaxed: under the lock */
}

/* Holds: the lock. */
static void count_set(struct weft__kin *kin, uint32_t count)
{
    store_relaxed(&kin->count, count); /* relaxed: who looks without the lock wants a number */
}

/* Holds: the lock. Is there room for one more? */
static bool has_room(const struct weft__kin *kin)
{
    return kin->limit == 0 || count_of(kin) < kin->limit;
}

/* Holds: the lock. All waiters of a list of ours get their turn. */
static void turns_to_all(struct weft__kin *kin, struct weft__link *head,
                       struct weft__wake_chain *chain)
{
    for (struct weft__link *it; (it = weft__list_pop_front(head));) {
        weft__list_push_front(&kin->list.head, it);
        (void)weft__waitlist_give_turn(&kin->list, chain);
    }
}

/* ---- birth --------------------------------------------------------------------------------------- */

bool weft__kin_reserve(struct weft__kin *kin)
{
    if (kin->limit == 0) return true;
    lock(kin);
    bool room = has_room(kin);
    if (room) count_set(kin, count_of(kin) + 1);
    unlock(kin);
    return room;
}

/* Of one that began as zero, in a frame: by its first child. holds: the lock, and whoever looks has one of its children. */
static void note_place(struct weft__kin *kin, const struct weft_task *task)
{
    if (kin->lent.file || !task->site) return;
    kin->lent.file = task->site->file;
    kin->lent.line = task->site->line;
}

void weft__kin_add(struct weft__kin *kin, struct weft_task *task)
{
    struct weft__tail *tail = weft__tail_of(task);

    tail->task = task;
    weft__link_init(&tail->sibling);
    lock(kin);
    store_relaxed(&kin->forks, weft__forks + 1);            /* relaxed: see is_lost */
    note_place(kin, task);
    weft__lent_add(&kin->lent);
    if (kin->limit == 0) count_set(kin, count_of(kin) + 1); /* else it is reserved */
    weft__list_push_back(&kin->children, &tail->sibling);
    int why = load_relaxed(&kin->reason);             /* relaxed: under the lock */
    if (why) (void)weft__state_cancel_for(task, why); /* it is SCHED: to push it is the caller's */
    unlock(kin);
}

/* ---- stop ---------------------------------------------------------------------------------------- */

/* Holds: the lock. False: it was stopped before. */
static bool stop(struct weft__kin *kin, int why, int error, struct weft__wake_chain *chain)
{
    if (load_relaxed(&kin->reason)) return false; /* relaxed: under the lock */
    store_release(&kin->reason, why);             /* [scope-stop] with weft__kin_reason */
    if (!kin->error) kin->error = error;
    weft__list_each (it, &kin->children) {
        struct weft_task *child = weft__container_of(it, struct weft__tail, sibling)->task;
        if (weft__state_cancel_for(child, why) == WEFT__STATE_ENQUEUE)
            weft__wake_chain_add(chain, child);
    }
    turns_to_all(kin, &kin->bodies, chain);
    return true;
}

bool weft__kin_stop(struct weft__kin *kin, int why, int error)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    if (weft__kin_reason(kin)) return false;
    lock(kin);
    bool first = stop(kin, why, error, &chain);
    unlock_push(kin, &chain);
    return first;
}

bool weft__kin_fails(struct weft__kin *kin, int failure)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    if (!kin->into) return false; /* nobody would read it */
    lock(kin);
    bool stopped = load_relaxed(&kin->reason) != 0; /* relaxed: under the lock */
    bool taken = kin->policy == WEFT__KIN_FIRST || !stopped;
    if (!stopped && !kin->error) kin->error = failure;
    if (kin->policy == WEFT__KIN_TOGETHER) (void)stop(kin, -ECANCELED, failure, &chain);
    unlock_push(kin, &chain);
    return taken;
}

void weft__kin_wins(struct weft__kin *kin)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    lock(kin);
    kin->won = true;
    (void)stop(kin, -ECANCELED, 0, &chain);
    unlock_push(kin, &chain);
}

/* ---- end ----------------------------------------------------------------------------------------- */

/* Holds: the lock, which it drops: the last touch. */
static void count_down_unlock(struct weft__kin *kin)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    uint32_t count = count_of(kin) - 1;

    weft_assert(count != UINT32_MAX); /* more end than have begun: the scope was made anew under its children */
    count_set(kin, count);
    if (count == 0) turns_to_all(kin, &kin->ends, &chain);
    if (has_room(kin)) (void)weft__waitlist_give_turn(&kin->list, &chain);
    unlock_push(kin, &chain);
}

void weft__kin_leave(struct weft__kin *kin, struct weft_task *task)
{
    lock(kin);
    weft__list_remove(&weft__tail_of(task)->sibling);
    count_down_unlock(kin);
}

void weft__kin_unlink(struct weft__kin *kin, struct weft_task *task)
{
    lock(kin);
    weft__list_remove(&weft__tail_of(task)->sibling);
    unlock(kin);
}

void weft__kin_count_down(struct weft__kin *kin)
{
    lock(kin);
    count_down_unlock(kin);
}

void weft__kin_unreserve(struct weft__kin *kin)
{
    if (kin->limit > 0) weft__kin_count_down(kin);
}

/* ---- wait ---------------------------------------------------------------------------------------- */

/* Holds: the lock. */
static int outcome(const struct weft__kin *kin)
{
    if (kin->won) return 0;
    if (kin->error) return kin->error;
    return kin->policy == WEFT__KIN_FIRST ? -ECHILD : 0; /* there was nobody who could have */
}

/* Holds: the lock. */
static enum weft__kin_end end_waits(struct weft__kin *kin, struct weft__waiter *waiter,
                                    struct weft_waker waker)
{
    if (weft__waiter_queued(&kin->list, waiter)) return WEFT__KIN_WAITS;
    if (!weft__list_empty(&kin->ends)) {
        (void)weft__waitlist_settle(&kin->list, waiter); /* a turn told of an end that is none any more */
        return WEFT__KIN_BUSY;
    }
    weft__waitlist_add_before(&kin->list, &kin->ends, waiter, waker);
    return WEFT__KIN_WAITS;
}

enum weft__kin_end weft__kin_end_poll(struct weft__kin *kin, struct weft__waiter *waiter,
                                      struct weft_waker waker, int *error)
{
    lock(kin);
    bool over = count_of(kin) == 0;
    enum weft__kin_end answer = over ? WEFT__KIN_OVER : end_waits(kin, waiter, waker);
    if (over) {
        (void)weft__waitlist_settle(&kin->list, waiter); /* its turn is nobody else's */
        weft__lent_remove(&kin->lent);
        *error = outcome(kin);
    }
    unlock(kin);
    return answer;
}

bool weft__kin_body_begin(struct weft__kin *kin, struct weft__waiter *waiter,
                          struct weft_waker waker)
{
    lock(kin);
    bool waits = load_relaxed(&kin->reason) == 0; /* relaxed: under the lock */
    if (waits) weft__waitlist_add_before(&kin->list, &kin->bodies, waiter, waker);
    unlock(kin);
    return waits;
}

void weft__kin_body_settle(struct weft__kin *kin, struct weft__waiter *waiter)
{
    lock(kin);
    (void)weft__waitlist_settle(&kin->list, waiter); /* as above */
    unlock(kin);
}

/* Holds: the lock, which it drops. As long as there is room nobody waits: who comes out lets the next one look. */
static void room_unlock(struct weft__kin *kin)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    if (has_room(kin)) (void)weft__waitlist_give_turn(&kin->list, &chain);
    unlock_push(kin, &chain);
}

bool weft__kin_room_poll(struct weft__kin *kin, struct weft__waiter *waiter,
                         struct weft_waker waker)
{
    lock(kin);
    bool room = has_room(kin);
    if (room) {
        (void)weft__waitlist_settle(&kin->list, waiter); /* its turn goes to the next */
    } else if (!weft__waiter_queued(&kin->list, waiter)) {
        weft__waitlist_add(&kin->list, waiter, waker);
    }
    room_unlock(kin);
    return room;
}

void weft__kin_room_settle(struct weft__kin *kin, struct weft__waiter *waiter)
{
    lock(kin);
    (void)weft__waitlist_settle(&kin->list, waiter);
    room_unlock(kin);
}
