/* SPDX-License-Identifier: MIT
 *
 * Watchers, proven: each is woken and sees the child's result, beside a joiner, an owner that lets the child go, and watchers that give up; a failure
 * that nobody reads is somebody's to report, once; and no frame, block or ring is touched after its end.
 *
 * A watcher is one block: its task's header and its node. Whoever gets the right to poll a task polls it on the spot. The result lies in the child's own
 * block, as plain memory. There is one bucket for all, and wakes come one at a time.
 */
#define WEFT__WAKE_BATCH    1
#define WEFT__WATCH_BUCKETS 1
#include "task/join.c"
#include "task/state.c"
#include "task/waker.c"
#include "task/watch.c"

#include <string.h>

struct watching {
    struct weft_task task;
    struct weft__watcher watcher;
    struct weft_task *child;
    bool linked;
    bool gives_up;                  /* at its second poll */
};

enum { CHILDREN = 2, WATCHERS = 2 };

static struct weft_task *children[CHILDREN];
static struct watching *watchers[WATCHERS];
static struct weft_task *joiner;    /* of the first child */
static unsigned settled;            /* watchers and joiners that came to their end */
static unsigned reported;
static int result;                  /* its address is what a child's result says */

/* ---- broken twins ---- */

enum {
    HONEST,
    CLAIMS_AFTER_THE_LOCK,
    SETTLES_WITHOUT_LOCK,
    LEAVES_WITHOUT_LOCK,
    ADDS_AFTER_TAKEN,
    JOINER_AFTER_COMPLETE,
    TAKES_WITHOUT_LOCK,
    FORGETS_THE_JOINER,
};

static void run(struct weft_task *task);

static void push(void *unused, struct weft_task *task)
{
    (void)unused;
    run(task);
}

static void push_chain(void *unused, struct weft_task *first, struct weft_task *last, uint32_t count)
{
    (void)unused;
    (void)last;
    for (struct weft_task *t = first; count-- > 0;) {
        struct weft_task *next = load_relaxed(&t->link);
        run(t);
        t = next;
    }
}

static const struct weft__sched_ops ops = {.push = push, .push_chain = push_chain};
static const struct weft__sched sched = {.ops = &ops};

/* The waker is taken out of the watcher under the lock, and claimed once that is dropped. */
static void wake_bare(struct weft_task *child)
{
    for (;;) {
        struct bucket *b = bucket_lock(child);
        struct weft__link *link = weft__list_pop_front(&b->over);
        struct weft_waker waker = weft__waker_none();
        if (link) {
            waker.word = plain_read(&watcher_of(link)->waker);
            plain_write(&watcher_of(link)->waker, 0);
        }
        weft__lock_drop(&b->lock);
        if (!link) return;
        weft__waker_wake(waker, &sched);
    }
}

static void leave_unlocked(struct weft_task *child, struct weft__watcher *w)
{
    uintptr_t word = look(child);
    if (plain_read(&w->waker) == 0) return;
    plain_write(&w->waker, 0);
    if (weft__join_watched(word) && first_of(word) == w) {
        first_leaves(child, word);
    } else {
        weft__list_remove(&w->link);
    }
}

static enum weft__join add_after_taken(struct weft_task *child, struct weft__watcher *w, struct weft_waker waker)
{
    enum weft__join r = weft__watch_add(child, w, waker);
    if (r != WEFT__JOIN_YIELD) return r;
    struct bucket *b = bucket_lock(child);
    weft__link_init(&w->link);
    plain_write(&w->waker, waker.word);
    store_release(&child->join, word_of(w, 0));
    weft__lock_drop(&b->lock);
    return WEFT__JOIN_PENDING;
}

/* The joiner is left for later, and claimed by the caller. */
static uintptr_t take_but_the_joiner(struct weft_task *child, struct weft__join_done *done)
{
    struct bucket *b = bucket_lock(child);
    uintptr_t word = look(child);
    uintptr_t left = 0;
    if (weft__join_watched(word)) {
        left = plain_read(&first_of(word)->joiner);
        plain_write(&first_of(word)->joiner, 0);
    }
    weft__lock_drop(&b->lock);
    *done = weft__join_complete(child);
    return left;
}

static struct weft__join_done take_unlocked(struct weft_task *child)
{
    struct weft__join_done done = {.joiner = weft__waker_none()};
    uintptr_t was = exchange_acq_rel(&child->join, JOIN_TAKEN);
    if (weft__join_watched(was)) {
        struct bucket *b = bucket_lock(child);
        done.watched = true;
        ring_to_over(b, first_of(was));
        weft__lock_drop(&b->lock);
    }
    done.free = weft__state_complete(child) == WEFT__STATE_FREE;
    return done;
}

static void leave_without_the_joiner(struct weft_task *child, struct weft__watcher *w)
{
    struct bucket *b = bucket_lock(child);
    uintptr_t word = look(child);
    if (weft__join_watched(word) && first_of(word) == w) plain_write(&w->joiner, 0);
    weft__lock_drop(&b->lock);
    weft__watch_leave(child, w);
}

static struct weft__join_done complete(struct weft_task *child)
{
    struct weft__join_done done = {.joiner = weft__waker_none()};
    if (model_mutant == TAKES_WITHOUT_LOCK) return take_unlocked(child);
    if (model_mutant != JOINER_AFTER_COMPLETE) return weft__join_complete(child);
    uintptr_t left = take_but_the_joiner(child, &done);
    if (left) done.joiner = weft__waker_claim((struct weft_waker){left});
    return done;
}

/* ---- the watchers ---- */

static void free_task(struct weft_task *t)
{
    weft__state_free(t);
    model_free(t);
}

static void unref(struct weft_task *t)
{
    if (weft__state_unref(t) == WEFT__STATE_FREE) free_task(t);
}

static void ends(struct weft_task *t)
{
    settled++;
    if (weft__state_complete(t) == WEFT__STATE_FREE) free_task(t);
}

static void leave(struct watching *w)
{
    if (model_mutant == LEAVES_WITHOUT_LOCK) {
        leave_unlocked(w->child, &w->watcher);
    } else if (model_mutant == FORGETS_THE_JOINER) {
        leave_without_the_joiner(w->child, &w->watcher);
    } else {
        weft__watch_leave(w->child, &w->watcher);
    }
}

static enum weft__join poll_watcher(struct watching *w)
{
    struct weft_waker waker = weft__waker_of(&w->task);
    bool linked = plain_read(&w->linked);

    if (!linked && model_mutant == ADDS_AFTER_TAKEN) return add_after_taken(w->child, &w->watcher, waker);
    if (!linked) return weft__watch_add(w->child, &w->watcher, waker);
    if (model_mutant == SETTLES_WITHOUT_LOCK && weft__state_is_complete(w->child)) return WEFT__JOIN_READY;
    if (!w->gives_up) return weft__watch_again(w->child, &w->watcher);
    leave(w);
    return weft__state_is_complete(w->child) ? WEFT__JOIN_READY : WEFT__JOIN_LEFT;
}

/* The caller holds the right to poll it. */
static void run_watcher(struct watching *w)
{
    for (;;) {
        (void)weft__state_begin_poll(&w->task);
        enum weft__join r = poll_watcher(w);
        if (r == WEFT__JOIN_PENDING) {
            plain_write(&w->linked, true);
            if (weft__state_end_poll(&w->task) != WEFT__STATE_REQUEUE) return;
        } else if (r == WEFT__JOIN_YIELD) {
            model_yield();
        } else {
            if (r == WEFT__JOIN_READY) model_assert(plain_read(&w->child->ext) == &result);
            unref(w->child);
            ends(&w->task);
            return;
        }
    }
}

static void run_joiner(void)
{
    for (;;) {
        (void)weft__state_begin_poll(joiner);
        enum weft__join r = weft__join_poll(children[0], weft__waker_of(joiner));
        if (r == WEFT__JOIN_PENDING) {
            if (weft__state_end_poll(joiner) != WEFT__STATE_REQUEUE) return;
        } else if (r == WEFT__JOIN_YIELD) {
            model_yield();
        } else {
            model_assert(plain_read(&children[0]->ext) == &result);
            unref(children[0]);
            ends(joiner);
            return;
        }
    }
}

static void run(struct weft_task *task)
{
    if (task == joiner) {
        run_joiner();
    } else {
        run_watcher((struct watching *)(void *)task);
    }
}

/* ---- the threads ---- */

static void child_ends(void *arg)
{
    struct weft_task *child = arg;

    plain_write(&child->ext, &result);
    struct weft__join_done done = complete(child);
    if (done.unread) reported++;
    if (done.free) free_task(child);
    weft__waker_push(done.joiner, &sched);
    if (!done.watched) return;
    if (model_mutant == CLAIMS_AFTER_THE_LOCK) {
        wake_bare(child);
    } else {
        weft__watch_wake(child, &sched);
    }
}

static void is_polled(void *arg)
{
    run(arg);
}

/* A wake that has nothing to do with the child; its holder has a reference to the task. */
static void spurious_wake(void *arg)
{
    struct weft_task *task = arg;
    if (weft__state_claim(task) == WEFT__STATE_ENQUEUE) run(task);
    unref(task);
}

static void owner_lets_go(void *arg)
{
    struct weft_task *child = arg;
    if (weft__join_let_go(child)) {
        model_assert(plain_read(&child->ext) == &result);
        reported++;
    }
    unref(child);
}

static void younger_joiner(void *arg)
{
    (void)arg;
    joiner = model_alloc(sizeof(*joiner));
    weft__state_init(joiner, 0);
    weft__join_init(joiner, true);
    run_joiner();
}

/* ---- the cases ---- */

static struct weft_task *child_new(uint32_t references)
{
    struct weft_task *child = model_alloc(sizeof(*child));
    weft__state_init(child, references);
    weft__join_init(child, false);
    return child;
}

/* A case is left in the middle when another like it was seen: nothing of it may stay. */
static void begin(void)
{
    memset(buckets, 0, sizeof(buckets));
    settled = 0;
    reported = 0;
    joiner = NULL;
    memset(watchers, 0, sizeof(watchers));
}

static struct watching *watching_new(struct weft_task *child, uint32_t references, bool gives_up)
{
    struct watching *w = model_alloc(sizeof(*w));
    weft__state_init(&w->task, references);
    weft__join_init(&w->task, true);
    w->child = child;
    plain_write(&w->linked, false);
    w->gives_up = gives_up;
    return w;
}

static void joiner_new(uint32_t references)
{
    joiner = model_alloc(sizeof(*joiner));
    weft__state_init(joiner, references);
    weft__join_init(joiner, true);
}

static void watcher_against_end(void)
{
    begin();
    children[0] = child_new(1);
    watchers[0] = watching_new(children[0], 0, false);
    model_thread(is_polled, watchers[0]);
    model_thread(child_ends, children[0]);
    model_join();
    model_assert(settled == 1);
}

static void two_watchers(void)
{
    begin();
    children[0] = child_new(2);
    for (int i = 0; i < 2; i++) watchers[i] = watching_new(children[0], 0, false);
    model_thread(is_polled, watchers[0]);
    model_thread(is_polled, watchers[1]);
    model_thread(child_ends, children[0]);
    model_join();
    model_assert(settled == 2);
}

static void watcher_beside_joiner(void)
{
    begin();
    children[0] = child_new(2);
    watchers[0] = watching_new(children[0], 0, false);
    joiner_new(0);
    model_thread(is_polled, watchers[0]);
    model_thread(is_polled, joiner);
    model_thread(child_ends, children[0]);
    model_join();
    model_assert(settled == 2);
}

/* The joiner sits in the word when the watcher comes; its address has to bring its contents along. */
static void watcher_beside_younger_joiner(void)
{
    begin();
    children[0] = child_new(2);
    watchers[0] = watching_new(children[0], 0, false);
    model_thread(younger_joiner, NULL);
    model_thread(is_polled, watchers[0]);
    model_thread(child_ends, children[0]);
    model_join();
    model_assert(settled == 2);
}

/* The joiner is polled for another reason while the completer is at work. */
static void watched_joiner_polled_again(void)
{
    begin();
    children[0] = child_new(2);
    watchers[0] = watching_new(children[0], 0, false);
    joiner_new(1);
    run(joiner);
    run(&watchers[0]->task);
    model_thread(spurious_wake, joiner);
    model_thread(child_ends, children[0]);
    model_join();
    model_assert(settled == 2);
}

static void watcher_gives_up(void)
{
    begin();
    children[0] = child_new(1);
    watchers[0] = watching_new(children[0], 1, true);
    model_thread(is_polled, watchers[0]);
    model_thread(spurious_wake, watchers[0]);
    model_thread(child_ends, children[0]);
    model_join();
    model_assert(settled == 1);
}

static void watcher_is_woken_twice(void)
{
    begin();
    children[0] = child_new(1);
    watchers[0] = watching_new(children[0], 1, false);
    model_thread(is_polled, watchers[0]);
    model_thread(spurious_wake, watchers[0]);
    model_thread(child_ends, children[0]);
    model_join();
    model_assert(settled == 1);
}

/* The first of two gives up, with the joiner in it: next and joiner stay. */
static void first_of_the_ring_gives_up(void)
{
    begin();
    children[0] = child_new(3);
    watchers[0] = watching_new(children[0], 1, true);
    watchers[1] = watching_new(children[0], 0, false);
    joiner_new(0);
    run(&watchers[0]->task);
    run(&watchers[1]->task);
    run(joiner);
    model_thread(spurious_wake, watchers[0]);
    model_thread(child_ends, children[0]);
    model_join();
    model_assert(settled == 3);
}

static void last_of_the_ring_gives_up(void)
{
    begin();
    children[0] = child_new(2);
    watchers[0] = watching_new(children[0], 1, true);
    run(&watchers[0]->task);
    model_thread(spurious_wake, watchers[0]);
    model_thread(younger_joiner, NULL);
    model_thread(child_ends, children[0]);
    model_join();
    model_assert(settled == 2);
}

static void owner_lets_a_watched_child_go(void)
{
    begin();
    children[0] = child_new(2);
    watchers[0] = watching_new(children[0], 0, false);
    model_thread(is_polled, watchers[0]);
    model_thread(owner_lets_go, children[0]);
    model_thread(child_ends, children[0]);
    model_join();
    model_assert(settled == 1);
    model_assert(reported == 1);
}

static void owner_lets_go_while_the_last_gives_up(void)
{
    begin();
    children[0] = child_new(2);
    watchers[0] = watching_new(children[0], 1, true);
    run(&watchers[0]->task);
    model_thread(spurious_wake, watchers[0]);
    model_thread(owner_lets_go, children[0]);
    model_thread(child_ends, children[0]);
    model_join();
    model_assert(settled == 1);
    model_assert(reported == 1);
}

/* Each may wake the other's. */
static void two_children_in_one_bucket(void)
{
    begin();
    for (int i = 0; i < 2; i++) {
        children[i] = child_new(1);
        watchers[i] = watching_new(children[i], 0, false);
        run(&watchers[i]->task);
    }
    model_thread(child_ends, children[0]);
    model_thread(child_ends, children[1]);
    model_join();
    model_assert(settled == 2);
}

static const struct model_case cases[] = {
    {.name = "watch: one against the child's end", .run = watcher_against_end, .unbounded = true, .weaken = true},
    {.name = "watch: two against the child's end", .run = two_watchers, .preemptions = 2, .weaken = true},
    {.name = "watch: beside a joiner", .run = watcher_beside_joiner, .preemptions = 2, .weaken = true},
    {.name = "watch: beside a joiner younger than the child", .run = watcher_beside_younger_joiner, .preemptions = 2, .weaken = true},
    {.name = "watch: a joiner among watchers polled for another reason", .run = watched_joiner_polled_again, .preemptions = 3, .weaken = true},
    {.name = "watch: polled for another reason", .run = watcher_is_woken_twice, .preemptions = 3, .weaken = true},
    {.name = "watch: gives up while the child ends", .run = watcher_gives_up, .preemptions = 3, .weaken = true},
    {.name = "watch: the first gives up, next and joiner stay", .run = first_of_the_ring_gives_up, .unbounded = true, .weaken = true},
    {.name = "watch: the last gives up, a joiner comes", .run = last_of_the_ring_gives_up, .preemptions = 2, .weaken = true},
    {.name = "watch: the owner lets go", .run = owner_lets_a_watched_child_go, .preemptions = 2, .weaken = true},
    {.name = "watch: the owner lets go, the last gives up", .run = owner_lets_go_while_the_last_gives_up, .preemptions = 2, .weaken = true},
    {.name = "watch: two children in one bucket", .run = two_children_in_one_bucket, .unbounded = true, .weaken = true},
    {.name = "mutant: claimed after the lock, and after COMPLETE", .run = watcher_gives_up, .preemptions = 3, .mutant = CLAIMS_AFTER_THE_LOCK,
     .must_fail = true},
    {.name = "mutant: settles on COMPLETE without the lock", .run = watcher_is_woken_twice, .preemptions = 3, .mutant = SETTLES_WITHOUT_LOCK,
     .must_fail = true},
    {.name = "mutant: leaves without the lock", .run = watcher_gives_up, .preemptions = 3, .mutant = LEAVES_WITHOUT_LOCK, .must_fail = true},
    {.name = "mutant: linked after the word was taken", .run = watcher_against_end, .preemptions = 3, .mutant = ADDS_AFTER_TAKEN, .must_fail = true},
    {.name = "mutant: joiner among watchers claimed after COMPLETE", .run = watched_joiner_polled_again, .preemptions = 3,
     .mutant = JOINER_AFTER_COMPLETE, .must_fail = true},
    {.name = "mutant: the word taken without the lock", .run = watcher_gives_up, .preemptions = 3, .mutant = TAKES_WITHOUT_LOCK, .must_fail = true},
    {.name = "mutant: the first leaves, and the joiner with it", .run = first_of_the_ring_gives_up, .preemptions = 3, .mutant = FORGETS_THE_JOINER,
     .must_fail = true},
};

static const struct model_spare spare[] = {
    {"task/state.h", "store_release(&task->state, word)", "for those who walk the registry without having met a queue: model_slab has that store"},
    {"task/state.h", "fetch_and_acquire(&task->state, ~0x0004UL)", "what a watcher looks at after a wake it looks at under the lock: model_state has it"},
    {NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
    return model_main_with(argc, argv, cases, MODEL_COUNT(cases), spare);
}
