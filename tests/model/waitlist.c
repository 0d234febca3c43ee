/* SPDX-License-Identifier: MIT
 *
 * The waitlist, proven on a small semaphore: a permit that is released reaches a waiter, a cancelled waiter passes its turn on, and nobody touches a frame
 * that has ended or a list that was freed.
 *
 * Each waiting task is one block: header, waiter and result. A claimed task is polled on the spot by whoever pushes it.
 */
#define WEFT__WAKE_BATCH 1
#include "../harness/ending.h"
#include "sync/waitlist.c"
#include "task/join.c"
#include "task/state.c"
#include "task/waker.c"

struct waiting {
    struct weft_task task;
    struct weft__waiter waiter;
};

struct semaphore {
    struct weft__waitlist list;
    unsigned permits;               /* guarded by the list's lock */
};

static struct semaphore *sem;
static struct waiting *waits[2];
static unsigned acquired;
static unsigned given_up;
static bool last_one_frees;         /* whoever acquires frees the semaphore */
static bool is_notify;              /* the leaf is notified_poll */

/* ---- broken twins ---- */

enum { HONEST, BARE_POINTER, SETTLES_WITHOUT_LOCK, SWALLOWS_ITS_TURN, ALWAYS_GRANTED };

static void run(struct waiting *w);

static void push(void *unused, struct weft_task *task)
{
    (void)unused;
    run((struct waiting *)(void *)task);
}

static void push_chain(void *unused, struct weft_task *first, struct weft_task *last, uint32_t count)
{
    (void)unused;
    (void)last;
    for (struct weft_task *t = first; count-- > 0;) {
        struct weft_task *next = load_relaxed(&t->link);
        run((struct waiting *)(void *)t);
        t = next;
    }
}

static const struct weft__sched_ops ops = {.push = push, .push_chain = push_chain};
static const struct weft__sched sched = {.ops = &ops};

/* The waker takes the task's address out under the lock and claims it after. */
static void release_bare(void)
{
    weft__waitlist_lock(&sem->list);
    plain_write(&sem->permits, plain_read(&sem->permits) + 1);
    struct weft__link *first = weft__list_pop_front(&sem->list.head);
    struct weft_task *task = NULL;
    if (first) {
        struct weft__waiter *w = weft__container_of(first, struct weft__waiter, link);
        /* relaxed, both, as below: under the lock, or broken on purpose */
        task = (struct weft_task *)(load_relaxed(&w->word) & ~WEFT__WAKER_BITS);
        store_relaxed(&w->word, (uintptr_t)task | WEFT__WAITER_TURN);
    }
    weft__waitlist_unlock(&sem->list);
    if (task && weft__state_claim(task) == WEFT__STATE_ENQUEUE) run((struct waiting *)(void *)task);
}

/* ---- the leaf ---- */

/* A notify: the turn is all that it wants, and one that was granted needs no lock. `permits` is 1 if it was rung while nobody waited. */
static bool notified_poll(struct waiting *w)
{
    if (weft__waiter_take_granted(&w->waiter)) return true;
    weft__waitlist_lock(&sem->list);
    bool queued = weft__waiter_queued(&sem->list, &w->waiter);
    bool got = !queued && (plain_read(&sem->permits) > 0 || weft__waiter_has_turn(&sem->list, &w->waiter));
    if (got && !weft__waitlist_settle(&sem->list, &w->waiter)) plain_write(&sem->permits, 0);
    if (!queued && !got) weft__waitlist_add(&sem->list, &w->waiter, weft__waker_of(&w->task));
    weft__waitlist_unlock(&sem->list);
    return got;
}

/* True: it has a permit. */
static bool acquire_poll(struct waiting *w)
{
    bool got = false;
    weft__waitlist_lock(&sem->list);
    if (!weft__waiter_queued(&sem->list, &w->waiter)) {
        bool turn = weft__waiter_has_turn(&sem->list, &w->waiter);
        if (plain_read(&sem->permits) > 0 && (turn || weft__waitlist_empty(&sem->list))) {
            plain_write(&sem->permits, plain_read(&sem->permits) - 1);
            (void)weft__waitlist_settle(&sem->list, &w->waiter);
            got = true;
        } else {
            weft__waitlist_add(&sem->list, &w->waiter, weft__waker_of(&w->task));
        }
    }
    weft__waitlist_unlock(&sem->list);
    return got;
}

static void give_up(struct waiting *w)
{
    if (model_mutant == SETTLES_WITHOUT_LOCK && !(load_relaxed(&w->waiter.word) & WEFT__WAITER_QUEUED)) {
        store_relaxed(&w->waiter.word, 0);
    } else if (model_mutant == SWALLOWS_ITS_TURN) {
        (void)weft__waitlist_leave(&sem->list, &w->waiter);
    } else {
        (void)weft__waitlist_cancel(&sem->list, &w->waiter, &sched);
    }
}

static void free_task(struct waiting *w)
{
    weft__state_free(&w->task);
    model_free(w);
}

static void finish(struct waiting *w)
{
    weft__waiter_check_out(&w->waiter);
    if (ending_alone(&w->task) == WEFT__STATE_FREE) free_task(w);
}

static bool poll_once(struct waiting *w)
{
    uint64_t word = weft__state_begin_poll(&w->task);
    if (is_notify ? notified_poll(w) : acquire_poll(w)) {
        acquired++;
        if (last_one_frees) model_free(sem);
        return true;
    }
    if (!(word & WEFT__STATE_CANCELLED)) return false;
    give_up(w);
    given_up++;
    return true;
}

/* The caller holds the right to poll it. */
static void run(struct waiting *w)
{
    do {
        if (!poll_once(w)) continue;
        finish(w);
        return;
    } while (weft__state_end_poll(&w->task) == WEFT__STATE_REQUEUE);
}

/* ---- the threads ---- */

static void release(void *arg)
{
    (void)arg;
    if (model_mutant == BARE_POINTER) {
        release_bare();
        return;
    }
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    weft__waitlist_lock(&sem->list);
    plain_write(&sem->permits, plain_read(&sem->permits) + 1);
    (void)weft__waitlist_give_turn(&sem->list, &chain);
    weft__waitlist_unlock_push(&sem->list, &chain, &sched);
}

static void release_all(void *arg)
{
    (void)arg;
    weft__waitlist_lock(&sem->list);
    plain_write(&sem->permits, plain_read(&sem->permits) + 2);
    (void)weft__waitlist_unlock_wake_all(&sem->list, &sched);
}

/* The mark of a granted claim, also where it was not: the task was running, and may find it before the lock is dropped. */
static void ring_always_granted(void)
{
    struct weft__waiter *waiter =
        weft__container_of(sem->list.head.next, struct weft__waiter, link);
    struct weft_waker waker = unqueue(&sem->list, waiter);
    struct weft_task *task = weft__waker_task(waker);
    bool granted = weft__waker_claim_task(task);

    mark_turn(waiter, waker, true);
    weft__waitlist_unlock(&sem->list);
    if (granted) push(NULL, task);
}

static void ring(void *arg)
{
    (void)arg;
    weft__waitlist_lock(&sem->list);
    if (weft__waitlist_empty(&sem->list)) {
        plain_write(&sem->permits, 1);
        weft__waitlist_unlock(&sem->list);
    } else if (model_mutant == ALWAYS_GRANTED) {
        ring_always_granted();
    } else {
        weft__waitlist_unlock_wake_first(&sem->list, &sched);
    }
}

static void wait_0(void *arg)
{
    (void)arg;
    run(waits[0]);
}

static void wait_1(void *arg)
{
    (void)arg;
    run(waits[1]);
}

static void cancel_0(void *arg)
{
    (void)arg;
    struct waiting *w = waits[0];
    if (weft__state_cancel(&w->task) == WEFT__STATE_ENQUEUE) run(w);
    if (weft__state_unref(&w->task) == WEFT__STATE_FREE) free_task(w);
}

static void begin(unsigned waiters, uint32_t references_of_0)
{
    sem = model_alloc(sizeof(*sem));
    weft__waitlist_init(&sem->list);
    plain_write(&sem->permits, 0);
    acquired = 0;
    given_up = 0;
    last_one_frees = false;
    is_notify = false;
    for (unsigned i = 0; i < waiters; i++) {
        waits[i] = model_alloc(sizeof(*waits[i]));
        weft__state_init(&waits[i]->task, i == 0 ? references_of_0 : 0);
        weft__waiter_init(&waits[i]->waiter);
    }
}

static void end(unsigned tasks, unsigned permits)
{
    model_join();
    model_assert(acquired + given_up == tasks);
    model_assert(plain_read(&sem->permits) + acquired == permits);
    weft__waitlist_done(&sem->list);
    model_free(sem);
}

/* ---- the cases ---- */

static void one_waiter(void)
{
    begin(1, 0);
    model_thread(wait_0, NULL);
    model_thread(release, NULL);
    end(1, 1);
}

static void wake_against_cancel(void)
{
    begin(1, 1);
    run(waits[0]); /* queued */
    model_thread(release, NULL);
    model_thread(cancel_0, NULL);
    end(1, 1);
}

/* Both wait, one permit comes, the first is cancelled: whichever way, the second gets it or the first did, and then a second permit comes. */
static void turn_is_passed_on(void)
{
    begin(2, 1);
    run(waits[0]);
    run(waits[1]);
    model_thread(release, NULL);
    model_thread(cancel_0, NULL);
    model_join();
    model_assert(acquired + given_up >= 1);
    if (given_up == 1) model_assert(acquired == 1); /* the permit did not get stuck with the one who left */
    if (acquired + given_up == 1) release(NULL);
    end(2, given_up == 1 ? 1 : 2);
}

static void wake_all_against_cancel(void)
{
    begin(2, 1);
    run(waits[0]);
    run(waits[1]);
    model_thread(release_all, NULL);
    model_thread(cancel_0, NULL);
    end(2, 2);
}

static void second_waiter_comes_late(void)
{
    begin(2, 0);
    run(waits[0]);
    model_thread(wait_1, NULL);
    model_thread(release, NULL);
    model_thread(release, NULL);
    end(2, 2);
}

/* The woken side may free the primitive: the waker's last touch of it is the drop of the lock. */
static void woken_side_frees(void)
{
    begin(1, 0);
    last_one_frees = true;
    model_thread(wait_0, NULL);
    model_thread(release, NULL);
    model_join();
    model_assert(acquired == 1);
}

/* The same for a notify, whose woken side does not take the lock when its claim was granted. */
static void notified_side_frees(void)
{
    begin(1, 0);
    is_notify = true;
    last_one_frees = true;
    model_thread(wait_0, NULL);
    model_thread(ring, NULL);
    model_join();
    model_assert(acquired == 1);
}

/* A turn that meets a cancel is used, or goes back: as rung, or to the next. */
static void notify_against_cancel(void)
{
    begin(2, 1);
    is_notify = true;
    run(waits[0]);
    run(waits[1]);
    model_thread(ring, NULL);
    model_thread(cancel_0, NULL);
    model_join();
    model_assert(acquired == 1); /* by one of the two; a turn is never lost */
    if (given_up == 0) ring(NULL);
    model_assert(acquired + given_up == 2);
    weft__waitlist_done(&sem->list);
    model_free(sem);
}

static const struct model_case cases[] = {
    {.name = "waitlist: one waiter, one permit", .run = one_waiter, .unbounded = true},
    {.name = "waitlist: wake against cancel", .run = wake_against_cancel, .unbounded = true},
    {.name = "waitlist: a cancelled waiter passes its turn on", .run = turn_is_passed_on, .unbounded = true},
    {.name = "waitlist: wake all, in batches, against cancel", .run = wake_all_against_cancel, .unbounded = true},
    {.name = "waitlist: another comes while one is woken", .run = second_waiter_comes_late, .preemptions = 3},
    {.name = "waitlist: the woken side frees the list", .run = woken_side_frees, .unbounded = true},
    {.name = "waitlist: the notified side frees the list, without its lock", .run = notified_side_frees, .unbounded = true},
    {.name = "waitlist: a notify against a cancel", .run = notify_against_cancel, .unbounded = true},
    {.name = "mutant: a turn of a running task that claims to be granted", .run = notified_side_frees, .unbounded = true, .mutant = ALWAYS_GRANTED, .must_fail = true},
    {.name = "mutant: wake with a bare pointer after unlocking", .run = wake_against_cancel, .unbounded = true, .mutant = BARE_POINTER, .must_fail = true},
    {.name = "mutant: a leaf settles without the lock", .run = wake_against_cancel, .unbounded = true, .mutant = SETTLES_WITHOUT_LOCK, .must_fail = true},
    {.name = "mutant: a cancelled waiter keeps its turn", .run = turn_is_passed_on, .unbounded = true, .mutant = SWALLOWS_ITS_TURN, .must_fail = true},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
