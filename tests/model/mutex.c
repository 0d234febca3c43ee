/* SPDX-License-Identifier: MIT
 *
 * The mutex, proven: one at a time, who sees what the last one did; nobody is forgotten, whoever is cancelled, overtakes or
 * starves meanwhile; and whoever has it last may free it.
 */
#include "sync/mutex.c"
#include "holder.h"

static weft_mutex *mutex;
static int guarded;
static bool cancelled_frees; /* given up, it takes it if it is free, and frees it */
static bool freed;
static unsigned users;      /* the last of so many frees the mutex; 0: nobody does */

enum { HONEST, FORGETS_TO_WAKE, SWALLOWS_ITS_TURN, QUEUES_WITHOUT_MARK, LETS_GO_BEFORE_THE_LOCK };

/* A wait is short or long: all is tried. */
weft_time weft_now(void)
{
    return model_choose(2) ? 2 * WEFT__MUTEX_PATIENCE_NS : 0;
}

/* ---- broken twins ---- */

static void unlock_twin(void)
{
    struct mutex *m = mutex_of(mutex);
    if (model_mutant == FORGETS_TO_WAKE) {
        weft__holder_leave(&m->holder);
        (void)fetch_and_release(&m->word, ~LOCKED);
    } else if (model_mutant == LETS_GO_BEFORE_THE_LOCK) {
        weft__holder_leave(&m->holder);
        uint32_t word = fetch_and_release(&m->word, ~LOCKED);
        if (!(word & WAITERS) || (word & WOKEN)) return;
        weft__leaf_lock(&m->list);
        (void)fetch_or_relaxed(&m->word, WOKEN);
        if (weft__waitlist_empty(&m->list)) {
            weft__waitlist_unlock(&m->list);
        } else {
            weft__waitlist_unlock_wake_first(&m->list, &weft__sched);
        }
    } else {
        (void)weft_unlock(mutex);
    }
}

/* Looks, finds it locked, and queues: the unlock in between saw no mark. */
static weft_poll queue_twin(struct weft_lock *f, weft_cx *cx)
{
    struct mutex *m = mutex_of(f->mutex);
    if (f->weft__at || take(m)) return weft_lock_poll(f, cx);
    weft__waiter_init(WEFT__LEAF_WAITER(f));
    weft__leaf_lock(&m->list);
    f->weft__at = WEFT__LEAF_WAITS;
    weft__waitlist_add(&m->list, WEFT__LEAF_WAITER(f), cx->waker);
    (void)fetch_or_relaxed(&m->word, WAITERS);
    weft__waitlist_unlock(&m->list);
    return WEFT_PENDING;
}

static weft_poll swallow_twin(struct weft_lock *f)
{
    struct mutex *m = mutex_of(f->mutex);
    weft__leaf_lock(&m->list);
    (void)weft__waitlist_settle(&m->list, WEFT__LEAF_WAITER(f));
    weft__waitlist_unlock(&m->list);
    return ends(f, -ECANCELED);
}

/* ---- the body: lock, add, unlock ---- */

static void leave(void)
{
    bool last = users > 0 && got + given_up == users;
    unlock_twin();
    if (last) model_free(mutex);
}

static weft_poll lock_poll_twin(struct weft_lock *f, weft_cx *cx)
{
    f->mutex = mutex;
    if (model_mutant == QUEUES_WITHOUT_MARK) return queue_twin(f, cx);
    if (model_mutant == SWALLOWS_ITS_TURN && cx->why && f->weft__at) return swallow_twin(f);
    return weft_lock_poll(f, cx);
}

static weft_poll adds(struct actor *actor, weft_cx *cx)
{
    struct weft_lock *f = (void *)actor->frame;
    if (lock_poll_twin(f, cx) == WEFT_PENDING) return WEFT_PENDING;
    if (f->ret < 0) {
        given_up++;
        if (cancelled_frees && weft_try_lock(mutex) == 0) {
            (void)weft_unlock(mutex);
            freed = true;
            model_free(mutex);
        }
        return WEFT_READY;
    }
    plain_write(&guarded, plain_read(&guarded) + 1);
    got++;
    leave();
    return WEFT_READY;
}

static void begin(unsigned count, uint32_t references_of_0, unsigned frees)
{
    actors_begin();
    users = frees;
    cancelled_frees = false;
    freed = false;
    mutex = model_alloc(sizeof(*mutex));
    weft_mutex_init(mutex);
    plain_write(&guarded, 0);
    for (unsigned i = 0; i < count; i++)
        actors[i] = actor_new(adds, i == 0 ? references_of_0 : 0);
}

static void end(unsigned count)
{
    model_join();
    model_assert(got + given_up == count);
    if (users > 0) return;
    model_assert(plain_read(&guarded) == (int)got);
    model_assert(load_relaxed(&mutex_of(mutex)->word) == 0);
    weft__waitlist_done(&mutex_of(mutex)->list);
    model_free(mutex);
}

static void unlocks(void *arg)
{
    (void)arg;
    unlock_twin();
}

/* ---- the cases ---- */

static void two(void)
{
    begin(2, 0, 0);
    model_thread(actor_begin, actors[0]);
    model_thread(actor_begin, actors[1]);
    end(2);
}

static void two_and_the_last_frees(void)
{
    begin(2, 0, 2);
    model_thread(actor_begin, actors[0]);
    model_thread(actor_begin, actors[1]);
    end(2);
}

/* It is held; one waits, another comes while it is unlocked. */
static void overtaking(void)
{
    begin(2, 0, 0);
    model_assert(weft_try_lock(mutex) == 0);
    actor_run(actors[0]);
    model_thread(unlocks, NULL);
    model_thread(actor_begin, actors[1]);
    end(2);
}

/* It is held, two wait, the first is cancelled while it is unlocked. */
static void cancel(void)
{
    begin(2, 1, 0);
    model_assert(weft_try_lock(mutex) == 0);
    actor_run(actors[0]);
    actor_run(actors[1]);
    model_thread(unlocks, NULL);
    model_thread(actor_cancel, actors[0]);
    end(2);
}

/* One waits and is cancelled; then it takes the lock all the same, if it is free by then: whoever unlocked it is through. */
static void cancelled_one_frees(void)
{
    begin(1, 1, 0);
    cancelled_frees = true;
    model_assert(weft_try_lock(mutex) == 0);
    actor_run(actors[0]);
    model_thread(unlocks, NULL);
    model_thread(actor_cancel, actors[0]);
    model_join();
    if (!freed) end(1);
}

static void cancel_while_overtaken(void)
{
    begin(3, 1, 0);
    model_assert(weft_try_lock(mutex) == 0);
    actor_run(actors[0]);
    actor_run(actors[1]);
    model_thread(unlocks, NULL);
    model_thread(actor_cancel, actors[0]);
    model_thread(actor_begin, actors[2]);
    end(3);
}

static void three(void)
{
    begin(3, 0, 0);
    for (unsigned i = 0; i < 3; i++)
        model_thread(actor_begin, actors[i]);
    end(3);
}

static const struct model_case cases[] = {
    {.name = "mutex: two", .run = two, .preemptions = 3, .weaken = true},
    {.name = "mutex: two, and the last frees it", .run = two_and_the_last_frees, .preemptions = 3, .weaken = true},
    {.name = "mutex: one waits, one overtakes", .run = overtaking, .preemptions = 2, .weaken = true},
    {.name = "mutex: one who gave up frees it", .run = cancelled_one_frees, .preemptions = 4},
    {.name = "mutex: a waiter is cancelled", .run = cancel, .preemptions = 4},
    {.name = "mutex: a waiter is cancelled, another overtakes", .run = cancel_while_overtaken, .pct_depth = 4, .executions_max = 60000},
    {.name = "mutex: three", .run = three, .pct_depth = 4, .executions_max = 60000},
    {.name = "mutant: an unlock that wakes nobody", .run = two, .mutant = FORGETS_TO_WAKE, .must_fail = true},
    {.name = "mutant: a cancelled turn is kept", .run = cancel, .mutant = SWALLOWS_ITS_TURN, .must_fail = true},
    {.name = "mutant: queued without a mark", .run = two, .mutant = QUEUES_WITHOUT_MARK, .must_fail = true},
    {.name = "mutant: let go before the list's lock is taken", .run = cancelled_one_frees, .preemptions = 4, .mutant = LETS_GO_BEFORE_THE_LOCK, .must_fail = true},
};

static const struct model_spare spare[] = {LEAF_SPARE, {NULL, NULL, NULL}};

int main(int argc, char **argv)
{
    return model_main_with(argc, argv, cases, MODEL_COUNT(cases), spare);
}
