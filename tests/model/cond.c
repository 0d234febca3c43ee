/* SPDX-License-Identifier: MIT
 *
 * The condition variable over the real mutex, proven: a change that is made under the mutex is found by who waits for it; a
 * cancelled waiter passes its wake-up on, and comes back with the mutex; and one that wakes all wakes those who wait, whoever
 * leaves or comes meanwhile.
 */
#include "holder.h"
#include "sync/mutex.c"
#define ends     cond_ends
#define begins   cond_begins
#include "sync/cond.c"

static weft_mutex mutex;
static weft_cond changed;
static int there; /* guarded by the mutex */

enum {
    HONEST,
    SWALLOWS_ITS_WAKE_UP,
    UNLOCKS_BEFORE_IT_QUEUES,
    KEEPS_ITS_PLACE, /* who wakes all knows the next one across the drop of the lock */
};

weft_time weft_now(void)
{
    return 0;
}

/* ---- broken twins ---- */

static weft_poll wait_twin(struct weft_cond_wait *f, weft_cx *cx)
{
    if (model_mutant == SWALLOWS_ITS_WAKE_UP) f->weft__one = NULL;
    if (model_mutant == UNLOCKS_BEFORE_IT_QUEUES && !f->weft__at) {
        (void)weft_unlock(&mutex);
        weft__waiter_init(WEFT__LEAF_WAITER(f));
        f->weft__at = WAITS;
        weft__leaf_lock(list_of(f->cond));
        weft__waitlist_add(list_of(f->cond), WEFT__LEAF_WAITER(f), cx->waker);
        weft__waitlist_unlock(list_of(f->cond));
        return WEFT_PENDING;
    }
    return weft_cond_wait_poll(f, cx);
}

static void wake_all_twin(void)
{
    struct weft__waitlist *list = list_of(&changed);

    weft__leaf_lock(list);
    struct weft__link *it = list->head.next;
    while (it != &list->head) {
        struct weft__link *next = it->next;
        weft__waitlist_unlock_wake(list, weft__container_of(it, struct weft__waiter, link),
                                   &weft__sched);
        weft__leaf_lock(list);
        it = next;
    }
    weft__waitlist_unlock(list);
}

/* ---- the bodies ---- */

struct taking {
    struct weft_lock lock;
    struct weft_cond_wait wait;
    bool waits;
};
_Static_assert(sizeof(struct taking) <= sizeof(((struct actor *)0)->frame), "it fits an actor");

/* Holds: the mutex. */
static weft_poll over(int r)
{
    if (r == 0) {
        plain_write(&there, plain_read(&there) - 1);
        got++;
    } else {
        given_up++;
    }
    (void)weft_unlock(&mutex);
    return WEFT_READY;
}

static weft_poll takes(struct actor *actor, weft_cx *cx)
{
    struct taking *f = (void *)actor->frame;
    if (!f->waits) {
        f->lock.mutex = &mutex;
        if (weft_lock_poll(&f->lock, cx) == WEFT_PENDING) return WEFT_PENDING;
        model_assert(f->lock.ret == 0);
        if (plain_read(&there) > 0) return over(0);
        f->waits = true;
        f->wait.cond = &changed;
        f->wait.mutex = &mutex;
    }
    for (;;) {
        if (wait_twin(&f->wait, cx) == WEFT_PENDING) return WEFT_PENDING;
        if (f->wait.ret < 0 || plain_read(&there) > 0) return over(f->wait.ret);
    }
}

static weft_poll brings(struct actor *actor, weft_cx *cx)
{
    struct weft_lock *f = (void *)actor->frame;
    f->mutex = &mutex;
    if (weft_lock_poll(f, cx) == WEFT_PENDING) return WEFT_PENDING;
    plain_write(&there, plain_read(&there) + 1);
    (void)weft_unlock(&mutex);
    weft_cond_wake_one(&changed);
    return WEFT_READY;
}

/* Enough for three. */
static weft_poll brings_for_all(struct actor *actor, weft_cx *cx)
{
    struct weft_lock *f = (void *)actor->frame;
    f->mutex = &mutex;
    if (weft_lock_poll(f, cx) == WEFT_PENDING) return WEFT_PENDING;
    plain_write(&there, plain_read(&there) + 3);
    (void)weft_unlock(&mutex);
    if (model_mutant == KEEPS_ITS_PLACE) {
        wake_all_twin();
    } else {
        (void)weft_cond_wake_all(&changed);
    }
    return WEFT_READY;
}

static void begin(void)
{
    actors_begin();
    weft_mutex_init(&mutex);
    weft_cond_init(&changed);
    plain_write(&there, 0);
}

static void end(void)
{
    weft_cond_done(&changed);
    weft_mutex_done(&mutex);
}

static void put_against_wait(void)
{
    begin();
    actors[0] = actor_new(takes, 0);
    actors[1] = actor_new(brings, 0);
    model_thread(actor_begin, actors[0]);
    model_thread(actor_begin, actors[1]);
    model_join();
    model_assert(got == 1);
    end();
}

static void put_against_cancel(void)
{
    begin();
    actors[0] = actor_new(takes, 1);
    actors[1] = actor_new(takes, 0);
    actors[2] = actor_new(brings, 0);
    actor_run(actors[0]);
    actor_run(actors[1]);
    model_thread(actor_begin, actors[2]);
    model_thread(actor_cancel, actors[0]);
    model_join();
    model_assert(got == 1); /* one of the two has it */
    if (given_up == 0) actor_run(actor_new(brings, 0));
    model_assert(got + given_up == 2);
    end();
}

/* Two wait, of whom the second may be cancelled, or one waits; and another may come: there is enough for all, and nobody waits in vain. */
static void all_are_woken(bool cancel, bool newcomer)
{
    begin();
    actors[0] = actor_new(takes, 0);
    actors[1] = cancel ? actor_new(takes, 1) : NULL;
    actors[2] = newcomer ? actor_new(takes, 0) : NULL;
    actor_run(actors[0]);
    if (cancel) actor_run(actors[1]);
    model_thread(actor_begin, actor_new(brings_for_all, 0));
    if (cancel) model_thread(actor_cancel, actors[1]);
    if (newcomer) model_thread(actor_begin, actors[2]);
    model_join();
    model_assert(got >= (newcomer ? 2 : 1));
    model_assert(got + given_up == (cancel && newcomer ? 3 : 2));
    model_assert(plain_read(&there) == 3 - (int)got);
    end();
}

static void all_against_cancel(void)
{
    all_are_woken(true, false);
}

static void all_against_newcomer(void)
{
    all_are_woken(false, true);
}

static void all_against_both(void)
{
    all_are_woken(true, true);
}

static const struct model_case cases[] = {
    {.name = "cond: a change against a wait", .run = put_against_wait, .preemptions = 3},
    {.name = "cond: a change against a cancel", .run = put_against_cancel, .preemptions = 2},
    {.name = "cond: all are woken, one is cancelled", .run = all_against_cancel, .preemptions = 2},
    {.name = "cond: all are woken, one comes", .run = all_against_newcomer, .preemptions = 2},
    {.name = "cond: all are woken, one is cancelled, one comes", .run = all_against_both, .pct_depth = 4, .executions_max = 60000},
    {.name = "mutant: a cancelled waiter keeps its wake-up", .run = put_against_cancel, .preemptions = 2, .mutant = SWALLOWS_ITS_WAKE_UP, .must_fail = true},
    {.name = "mutant: unlocked before it is queued", .run = put_against_wait, .mutant = UNLOCKS_BEFORE_IT_QUEUES, .must_fail = true},
    {.name = "mutant: one comes, and unlocks before it is queued", .run = all_against_newcomer, .preemptions = 2, .mutant = UNLOCKS_BEFORE_IT_QUEUES, .must_fail = true},
    {.name = "mutant: who wakes all keeps its place in the queue", .run = all_against_cancel, .mutant = KEEPS_ITS_PLACE, .must_fail = true, .why = "use after free"},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
