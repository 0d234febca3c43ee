/* SPDX-License-Identifier: MIT
 *
 * Watchers, proven: each is woken and sees the child's result, beside a joiner, an owner that drops the handle, and watchers that give up; a failure
 * that nobody reads is somebody's to report, once; and no frame or block is touched after its end, also when the child's block is another task's by
 * the time its watchers are woken.
 *
 * A watcher is one block: its task's header and its node. Whoever gets the right to poll a task polls it on the spot. The result lies in the child's own
 * block, as plain memory. There is one bucket for all.
 */
#define WEFT__WATCH_BUCKETS 1
#include "../harness/ending.h"
#include "task/join.c"
#include "task/state.c"
#include "task/waker.c"
#include "task/watchers.c"

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
static unsigned lives;              /* that the first child's block still has before it; 0: it is freed */
static int result;                  /* its address is what a child's result says */

/* ---- broken twins ---- */

enum {
    HONEST,
    WAKES_BEFORE_COMPLETE,
    CLAIMS_AFTER_THE_LOCK,
    SETTLES_WITHOUT_LOCK,
    LEAVES_WITHOUT_LOCK,
    LINKS_AFTER_THE_LOOK,
    ENDS_BY_ADDITION,
    WATCHED_FROM_AN_OLD_LOOK,
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

/* The waker is copied under the lock, and claimed once that is dropped. */
static void wake_bare(const struct weft_task *child)
{
    struct weft_waker waker = weft__waker_none();
    struct bucket *b = bucket_lock(child);
    weft__list_each (it, &b->list) {
        struct weft__watcher *w = weft__container_of(it, struct weft__watcher, link);
        if (plain_read(&w->child) == child) waker.word = plain_read(&w->waker);
    }
    weft__lock_drop(&b->lock);
    if (!weft__waker_is_none(waker)) weft__waker_wake(waker, &sched);
}

/* Marks the child, and hangs the watcher in when the completer may have been there. */
static bool link_late(struct weft_task *child, struct weft__watcher *w, struct weft_waker waker)
{
    if (!mark_watched(child)) return true;
    plain_write(&w->waker, waker.word);
    plain_write(&w->child, child);
    weft__link_init(&w->link);
    struct bucket *b = bucket_lock(child);
    weft__list_push_back(&b->list, &w->link);
    weft__lock_drop(&b->lock);
    return false;
}

/* Looks for watchers once, and ends the child whatever comes meanwhile. */
static struct weft__join_done end_by_addition(struct weft_task *child)
{
    struct weft__join_done d = {.joiner = weft__waker_none()};
    uint64_t word = load_acquire(&child->state);
    d.watched = word & WEFT__STATE_WATCHED;
    word = fetch_add_acq_rel(&child->state, WEFT__STATE_COMPLETE - WEFT__STATE_SCHED);
    d.free = weft__state_references_of(word) == 0;
    return d;
}

/* Of a child with a joiner: what it knows of watchers is from before it took the waker. */
static struct weft__join_done end_by_old_look(struct weft_task *child)
{
    bool watched = load_acquire(&child->state) & WEFT__STATE_WATCHED;
    struct weft__join_done d = ending_complete(child);
    d.watched = watched;
    return d;
}

static struct weft__join_done complete(struct weft_task *child)
{
    if (model_mutant == WAKES_BEFORE_COMPLETE) weft__watchers_wake(child, &sched);
    if (model_mutant == ENDS_BY_ADDITION) return end_by_addition(child);
    if (model_mutant == WATCHED_FROM_AN_OLD_LOOK) return end_by_old_look(child);
    struct weft__join_done d = ending_complete(child);
    if (model_mutant == WAKES_BEFORE_COMPLETE) d.watched = false;
    return d;
}

/* ---- the watchers ---- */

static void next_life(struct weft_task *child);

static void free_task(struct weft_task *t)
{
    weft__state_free(t);
    if (t == children[0] && lives > 0) {
        lives--;
        weft__state_init(t, 1);
        next_life(t);
        return;
    }
    model_free(t);
}

static void unref(struct weft_task *t)
{
    if (weft__state_unref(t) == WEFT__STATE_FREE) free_task(t);
}

static void ends(struct weft_task *t)
{
    settled++;
    if (ending_alone(t) == WEFT__STATE_FREE) free_task(t);
}

static void leave(struct weft__watcher *w)
{
    if (model_mutant == LEAVES_WITHOUT_LOCK) {
        weft__list_remove(&w->link);
    } else {
        weft__watchers_leave(w);
    }
}

static enum weft__join ready_if(bool ready)
{
    return ready ? WEFT__JOIN_READY : WEFT__JOIN_PENDING;
}

static enum weft__join poll_watcher(struct watching *w)
{
    struct weft_waker waker = weft__waker_of(&w->task);
    bool linked = plain_read(&w->linked);

    if (!linked && model_mutant == LINKS_AFTER_THE_LOOK) return ready_if(link_late(w->child, &w->watcher, waker));
    if (!linked) return ready_if(weft__watchers_add(w->child, &w->watcher, waker));
    if (model_mutant == SETTLES_WITHOUT_LOCK) {
        if (!weft__state_is_complete(w->child)) return WEFT__JOIN_PENDING;
        weft__list_remove(&w->watcher.link);
        return WEFT__JOIN_READY;
    }
    if (weft__watchers_again(w->child, &w->watcher)) return WEFT__JOIN_READY;
    if (!w->gives_up) return WEFT__JOIN_PENDING;
    leave(&w->watcher);
    return WEFT__JOIN_LEFT;
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

static void wake(const struct weft_task *child)
{
    if (model_mutant == CLAIMS_AFTER_THE_LOCK) {
        wake_bare(child);
    } else {
        weft__watchers_wake(child, &sched);
    }
}

static void child_ends(void *arg)
{
    struct weft_task *child = arg;

    plain_write(&child->ext, &result);
    struct weft__join_done done = complete(child);
    if (done.free) free_task(child);
    weft__waker_push(done.joiner, &sched);
    if (done.watched) wake(child);
}

/* As finish does it: DETACHED is looked at anew whenever the word has changed. */
static void child_ends_and_tells(void *arg)
{
    struct weft_task *child = arg;
    struct weft__join_done done;
    bool unread = false;

    plain_write(&child->ext, &result);
    uint64_t word = weft__join_ending(child);
    do {
        if (word & WEFT__STATE_DETACHED) unread = true;
    } while (!weft__join_end(child, &word, &done));
    if (unread) reported++;
    if (done.free) free_task(child);
    weft__waker_push(done.joiner, &sched);
    if (done.watched) wake(child);
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

static void owner_detaches(void *arg)
{
    struct weft_task *child = arg;
    uint64_t word = load_acquire(&child->state);
    enum weft__state_next next;
    bool told = false;
    do {
        if (told || !(word & WEFT__STATE_COMPLETE)) continue;
        model_assert(plain_read(&child->ext) == &result);
        reported++;
        told = true;
    } while (!weft__join_detach(child, &word, &next));
    if (next == WEFT__STATE_FREE) free_task(child);
}

/* ---- the cases ---- */

static struct weft_task *child_new(uint32_t references)
{
    struct weft_task *child = model_alloc(sizeof(*child));
    weft__state_init(child, references);
    return child;
}

/* A case is left in the middle when another like it was seen: nothing of it may stay. */
static void begin(void)
{
    memset(buckets, 0, sizeof(buckets));
    settled = 0;
    reported = 0;
    lives = 0;
    joiner = NULL;
    memset(watchers, 0, sizeof(watchers));
}

static struct watching *watching_new(struct weft_task *child, uint32_t references, bool gives_up)
{
    struct watching *w = model_alloc(sizeof(*w));
    weft__state_init(&w->task, references);
    w->child = child;
    plain_write(&w->linked, false);
    w->gives_up = gives_up;
    return w;
}

static void joiner_new(uint32_t references)
{
    joiner = model_alloc(sizeof(*joiner));
    weft__state_init(joiner, references);
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

/* The joiner is there, so that the child ends in two steps: between them the watcher comes. */
static void watcher_comes_while_the_joiner_is_taken(void)
{
    begin();
    children[0] = child_new(2);
    watchers[0] = watching_new(children[0], 0, false);
    joiner_new(0);
    run(joiner);
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

/* The first of two gives up, beside a joiner: the others stay. */
static void first_of_two_gives_up(void)
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

static void owner_detaches_a_watched_child(void)
{
    begin();
    children[0] = child_new(2);
    watchers[0] = watching_new(children[0], 0, false);
    model_thread(is_polled, watchers[0]);
    model_thread(owner_detaches, children[0]);
    model_thread(child_ends_and_tells, children[0]);
    model_join();
    model_assert(settled == 1);
    model_assert(reported == 1);
}

static void owner_detaches_while_the_last_gives_up(void)
{
    begin();
    children[0] = child_new(2);
    watchers[0] = watching_new(children[0], 1, true);
    run(&watchers[0]->task);
    model_thread(spurious_wake, watchers[0]);
    model_thread(owner_detaches, children[0]);
    model_thread(child_ends_and_tells, children[0]);
    model_join();
    model_assert(settled == 1);
    model_assert(reported == 1);
}

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

/* The child's watcher looks for another reason, and frees the child. The next task of the block, by the same thread, gets a watcher of its own, which
 * the first one's completer may find at its wake; and ends. */
static void next_life(struct weft_task *child)
{
    run(&watchers[1]->task);
    child_ends(child);
}

static void block_is_used_anew(void)
{
    begin();
    children[0] = child_new(1);
    lives = 1;
    watchers[0] = watching_new(children[0], 1, false);
    watchers[1] = watching_new(children[0], 0, false);
    run(&watchers[0]->task);
    model_thread(spurious_wake, watchers[0]);
    model_thread(child_ends, children[0]);
    model_join();
    model_assert(settled == 2);
}

static const struct model_case cases[] = {
    {.name = "watchers: one against the child's end", .run = watcher_against_end, .unbounded = true, .weaken = true},
    {.name = "watchers: two against the child's end", .run = two_watchers, .preemptions = 2, .weaken = true},
    {.name = "watchers: beside a joiner", .run = watcher_beside_joiner, .preemptions = 2, .weaken = true},
    {.name = "watchers: one comes while the joiner is taken", .run = watcher_comes_while_the_joiner_is_taken, .unbounded = true, .weaken = true},
    {.name = "watchers: a joiner among them polled for another reason", .run = watched_joiner_polled_again, .preemptions = 3, .weaken = true},
    {.name = "watchers: polled for another reason", .run = watcher_is_woken_twice, .preemptions = 3, .weaken = true},
    {.name = "watchers: one gives up while the child ends", .run = watcher_gives_up, .preemptions = 3, .weaken = true},
    {.name = "watchers: the first gives up, the others stay", .run = first_of_two_gives_up, .preemptions = 3, .weaken = true},
    {.name = "watchers: the owner detaches", .run = owner_detaches_a_watched_child, .preemptions = 2, .weaken = true},
    {.name = "watchers: the owner detaches, the last gives up", .run = owner_detaches_while_the_last_gives_up, .preemptions = 2, .weaken = true},
    {.name = "watchers: two children in one bucket", .run = two_children_in_one_bucket, .preemptions = 3, .weaken = true},
    {.name = "watchers: the child's block is used anew", .run = block_is_used_anew, .preemptions = 3, .weaken = true},
    {.name = "mutant: woken before COMPLETE", .run = watcher_against_end, .preemptions = 3, .mutant = WAKES_BEFORE_COMPLETE, .must_fail = true},
    {.name = "mutant: claimed after the lock", .run = watcher_gives_up, .preemptions = 3, .mutant = CLAIMS_AFTER_THE_LOCK, .must_fail = true},
    {.name = "mutant: settles on COMPLETE without the lock", .run = watcher_is_woken_twice, .preemptions = 3, .mutant = SETTLES_WITHOUT_LOCK,
     .must_fail = true},
    {.name = "mutant: leaves without the lock", .run = watcher_gives_up, .preemptions = 3, .mutant = LEAVES_WITHOUT_LOCK, .must_fail = true},
    {.name = "mutant: linked after WATCHED is set", .run = watcher_against_end, .preemptions = 3, .mutant = LINKS_AFTER_THE_LOOK, .must_fail = true},
    {.name = "mutant: the end is an addition, not a comparison", .run = watcher_against_end, .preemptions = 3, .mutant = ENDS_BY_ADDITION,
     .must_fail = true},
    {.name = "mutant: WATCHED is looked for before the joiner is taken", .run = watcher_comes_while_the_joiner_is_taken, .preemptions = 3,
     .mutant = WATCHED_FROM_AN_OLD_LOOK, .must_fail = true},
};

static const struct model_spare spare[] = {
    {"task/state.h", "store_release(&task->state, word)", "for those who walk the registry without having met a queue: model_slab has that store"},
    {"task/join.c", "cas_acquire(&child->state, seen ^ (0x0020UL | 0x0040UL))", "for a joiner that is younger than the child: model_join has one"},
    {NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
    return model_main_with(argc, argv, cases, MODEL_COUNT(cases), spare);
}
