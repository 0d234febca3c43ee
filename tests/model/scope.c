/* SPDX-License-Identifier: MIT
 *
 * Scopes, proven, with the real children's list, wait list and state word: the end waits for every child, sees what they did, and may then free scope and
 * all that they had borrowed; a stop reaches each child that is there, and each that comes later; who wants room gets it; nobody is touched after its end.
 *
 * A person is a task in one block: header, what it does, a waiter, and the tail. Whoever gets the right to poll one polls it on the spot. The home is the owner's:
 * the scope, and a place for each child to write to. The owner frees it when its end has answered.
 */
#define WEFT__WAKE_BATCH 1
#include "../harness/ending.h"
#include "sync/waitlist.c"
#include "task/here.c"
#include "task/join.c"
#include "task/state.c"
#include "task/waker.c"

#include "sync/kin.c"

#include <string.h>

uint32_t weft__forks;

struct home {
    struct weft__kin kin;
    int lent[4];
};

struct person {
    struct weft_task task;
    weft_poll (*body)(struct person *p, weft_cx *cx);
    struct weft__waiter waiter;
    int number;
    bool waits;
    _Alignas(8) char tail[WEFT__TAIL_BYTES];
};

static const struct weft_site site = {.frame_bytes = offsetof(struct person, tail) - sizeof(struct weft_task)};

static struct home *home;
static struct person *owner;
static struct person *child[4];
static _Atomic uint32_t rung;   /* children that wait for something else end by it */
static unsigned ended;
static unsigned stopped;        /* children that were told */
static int began;               /* children that did */
static int outcome_seen;
static bool homeless;           /* the owner has freed the home */

enum {
    HONEST,
    COUNTS_WITHOUT_THE_LOCK,
    LOOKS_WITHOUT_THE_LOCK,
    CANCELS_BEHIND_THE_LOCK,
    LOOKS_BEFORE_IT_ADDS,
    FREED_BEFORE_IT_IS_UNLINKED,
    COUNTED_BEFORE_IT_IS_COMPLETE,
    TURN_NOT_PASSED_ON,
};

/* ---- persons ---- */

static void person_free(struct person *p)
{
    weft__state_free(&p->task);
    model_free(p);
}

/* weft__kin_leave by one who thinks that a count is enough. */
static void leave_hastily(struct weft__kin *kin, struct weft_task *task)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    weft__kin_unlink(kin, task);
    if (fetch_sub_acq_rel(&kin->count, 1) > 1) return;
    lock(kin);
    turns_to_all(kin, &kin->ends, &chain);
    unlock_push(kin, &chain);
}

/* As weft__poll_finish_scoped. */
static void child_ends(struct person *p)
{
    struct weft__kin *kin = weft__kin_of(&p->task);
    uint64_t word = weft__join_ending(&p->task);

    if (word & (WEFT__STATE_REFS | WEFT__STATE_WATCHED)) {
        struct weft__join_done done;
        weft__kin_unlink(kin, &p->task);
        if (model_mutant == COUNTED_BEFORE_IT_IS_COMPLETE) weft__kin_count_down(kin);
        while (!weft__join_end(&p->task, &word, &done)) {
        }
        if (done.free) person_free(p);
        if (model_mutant != COUNTED_BEFORE_IT_IS_COMPLETE) weft__kin_count_down(kin);
        return;
    }
    if (model_mutant == FREED_BEFORE_IT_IS_UNLINKED) {
        weft__state_end_free(&p->task, word);
        model_free(p);
    }
    if (model_mutant == COUNTS_WITHOUT_THE_LOCK) {
        leave_hastily(kin, &p->task);
    } else {
        weft__kin_leave(kin, &p->task);
    }
    if (model_mutant == FREED_BEFORE_IT_IS_UNLINKED) return;
    weft__state_end_free(&p->task, word);
    model_free(p);
}

static void person_ends(struct person *p)
{
    if (p->task.scope) {
        child_ends(p);
    } else if (ending_alone(&p->task) == WEFT__STATE_FREE) {
        person_free(p);
    }
}

static void run(struct person *p)
{
    do {
        uint64_t word = weft__state_begin_poll(&p->task);
        struct weft_cx cx = {.waker = weft__waker_of(&p->task), .why = weft__state_why(word)};
        if (p->body(p, &cx) == WEFT_PENDING) continue;
        person_ends(p);
        return;
    } while (weft__state_end_poll(&p->task) == WEFT__STATE_REQUEUE);
}

static void push(void *unused, struct weft_task *task)
{
    (void)unused;
    run((struct person *)(void *)task);
}

static void push_chain(void *unused, struct weft_task *first, struct weft_task *last, uint32_t count)
{
    (void)unused;
    (void)last;
    for (struct weft_task *t = first; count-- > 0;) {
        struct weft_task *next = load_relaxed(&t->link);
        push(NULL, t);
        t = next;
    }
}

static const struct weft__sched_ops ops = {.push = push, .push_chain = push_chain};
const struct weft__sched weft__sched = {.ops = &ops};

static struct person *person_new(weft_poll (*body)(struct person *, weft_cx *), uint32_t references)
{
    struct person *p = model_alloc(sizeof(*p));
    p->task.site = &site;
    p->task.scope = 0;
    p->body = body;
    p->number = 0;
    p->waits = false;
    weft__waiter_init(&p->waiter);
    weft__state_init(&p->task, references);
    return p;
}

/* weft__kin_add by one who looks at the reason too early. */
static void add_hastily(struct weft__kin *kin, struct weft_task *task)
{
    struct weft__tail *tail = weft__tail_of(task);
    int why = weft__kin_reason(kin);

    tail->task = task;
    weft__link_init(&tail->sibling);
    lock(kin);
    count_set(kin, count_of(kin) + 1);
    weft__list_push_back(&kin->children, &tail->sibling);
    unlock(kin);
    if (why) (void)weft__state_cancel_for(task, why);
}

static struct person *child_new(int number, weft_poll (*body)(struct person *, weft_cx *), uint32_t references)
{
    struct person *p = person_new(body, references);
    p->number = number;
    p->task.scope = (uintptr_t)&home->kin;
    if (model_mutant == LOOKS_BEFORE_IT_ADDS) {
        add_hastily(&home->kin, &p->task);
    } else {
        weft__kin_add(&home->kin, &p->task);
    }
    return p;
}

/* ---- what they do ---- */

static void works(struct person *p)
{
    plain_write(&home->lent[p->number], 1); /* borrowed */
    ended++;
}

static weft_poll ends_at_once(struct person *p, weft_cx *cx)
{
    (void)cx;
    works(p);
    return WEFT_READY;
}

static weft_poll waits_to_be_told(struct person *p, weft_cx *cx)
{
    if (!cx->why && !load_acquire(&rung)) return WEFT_PENDING; /* acquire: the test's own */
    if (cx->why) stopped++;
    works(p);
    return WEFT_READY;
}

/* weft__kin_stop by one who cancels when it has let go of the lock. */
static void stop_hastily(struct weft__kin *kin)
{
    struct weft_task *task = NULL;

    lock(kin);
    store_release(&kin->reason, -ECANCELED);
    weft__list_each (it, &kin->children) {
        struct person *p = (void *)weft__container_of(it, struct weft__tail, sibling)->task;
        if (p->number == 0) task = &p->task;
    }
    unlock(kin);
    if (task && weft__state_cancel_for(task, -ECANCELED) == WEFT__STATE_ENQUEUE) push(NULL, task);
}

static weft_poll stops_the_scope(struct person *p, weft_cx *cx)
{
    (void)cx;
    if (model_mutant == CANCELS_BEHIND_THE_LOCK) {
        stop_hastily(&home->kin);
    } else {
        (void)weft__kin_stop(&home->kin, -ECANCELED, -ECANCELED);
    }
    works(p);
    return WEFT_READY;
}

static bool is_over(struct person *p, weft_cx *cx)
{
    if (model_mutant == LOOKS_WITHOUT_THE_LOCK) {
        if (load_acquire(&home->kin.count) == 0) return true;
    }
    return weft__kin_end_poll(&home->kin, &p->waiter, cx->waker, &outcome_seen) == WEFT__KIN_OVER;
}

/* The end: of a scope whose owner may be told to stop. */
static weft_poll waits_at_the_end(struct person *p, weft_cx *cx)
{
    if (cx->why) (void)weft__kin_stop(&home->kin, cx->why, cx->why);
    if (!is_over(p, cx)) return WEFT_PENDING;
    for (int i = 0; i < began; i++)
        model_assert(plain_read(&home->lent[i]) == 1);
    model_free(home);
    homeless = true;
    return WEFT_READY;
}

/* ---- the threads ---- */

static void runs(void *p)
{
    run(p);
}

static void rings(void *arg)
{
    struct person *p = arg;
    store_release(&rung, 1); /* release: the test's own */
    if (weft__state_claim(&p->task) == WEFT__STATE_ENQUEUE) run(p);
    if (weft__state_unref(&p->task) == WEFT__STATE_FREE) person_free(p);
}

static void cancels(void *arg)
{
    struct person *p = arg;
    if (weft__state_cancel_for(&p->task, -ETIME) == WEFT__STATE_ENQUEUE) run(p);
    if (weft__state_unref(&p->task) == WEFT__STATE_FREE) person_free(p);
}

/* The owner is still inside: it starts one more, and comes to its end. */
static void spawns_and_ends(void *arg)
{
    (void)arg;
    began++;
    struct person *late = child_new(began - 1, waits_to_be_told, 0);
    run(late);
    run(owner);
}

static void begin(uint32_t owner_references)
{
    home = model_alloc(sizeof(*home));
    memset(home, 0, sizeof(*home));
    weft__waitlist_init(&home->kin.list);
    for (int i = 0; i < 4; i++)
        plain_write(&home->lent[i], 0);
    store_relaxed(&rung, 0); /* relaxed: nobody is there yet */
    ended = 0;
    stopped = 0;
    began = 0;
    homeless = false;
    owner = person_new(waits_at_the_end, owner_references);
}

static void all_is_over(int children)
{
    model_assert(homeless);
    model_assert(ended == (unsigned)children);
}

/* ---- the cases ---- */

static void two_end(void)
{
    begin(0);
    for (int i = 0; i < 2; i++)
        child[i] = child_new(i, ends_at_once, 0);
    began = 2;
    model_thread(runs, child[0]);
    model_thread(runs, child[1]);
    model_thread(runs, owner);
    model_join();
    all_is_over(2);
}

/* One waits, another one stops the scope, the first ends by itself meanwhile, and the end waits for all. */
static void stopped_by_a_child(void)
{
    begin(0);
    child[0] = child_new(0, waits_to_be_told, 0);
    child[1] = child_new(1, stops_the_scope, 0);
    began = 2;
    run(child[0]);
    run(owner);
    model_thread(runs, child[1]);
    model_join();
    all_is_over(2);
    model_assert(stopped == 1);
}

/* The child that is to be told begins just then. */
static void stopped_at_birth(void)
{
    begin(0);
    child[0] = child_new(0, waits_to_be_told, 0);
    child[1] = child_new(1, stops_the_scope, 0);
    began = 2;
    model_thread(runs, child[0]);
    model_thread(runs, child[1]);
    model_thread(runs, owner);
    model_join();
    all_is_over(2);
    model_assert(stopped == 1);
}

/* One that others refer to ends by itself while the scope is stopped: behind the end it is complete. */
static weft_poll waits_and_looks(struct person *p, weft_cx *cx)
{
    if (!is_over(p, cx)) return WEFT_PENDING;
    model_assert(weft__state_is_complete(&child[0]->task));
    model_free(home);
    homeless = true;
    return WEFT_READY;
}

static void ends_against_a_stop(void)
{
    begin(0);
    owner->body = waits_and_looks;
    child[0] = child_new(0, waits_to_be_told, 2);
    child[1] = child_new(1, stops_the_scope, 0);
    run(child[0]);
    run(owner);
    model_thread(rings, child[0]);
    model_thread(runs, child[1]);
    model_join();
    all_is_over(2);
    if (weft__state_unref(&child[0]->task) == WEFT__STATE_FREE) person_free(child[0]);
}

/* One that nobody refers to ends by itself, by a waker that it took back, while the scope is stopped. */
static void ends_unseen_against_a_stop(void)
{
    begin(0);
    child[0] = child_new(0, ends_at_once, 0);
    child[1] = child_new(1, stops_the_scope, 0);
    began = 2;
    run(owner);
    model_thread(runs, child[0]);
    model_thread(runs, child[1]);
    model_join();
    all_is_over(2);
}

static void spawned_against_a_stop(void)
{
    begin(0);
    child[0] = child_new(0, stops_the_scope, 0);
    began = 1;
    model_thread(runs, child[0]);
    model_thread(spawns_and_ends, NULL);
    model_join();
    all_is_over(2);
    model_assert(stopped == 1);
}

static void owner_is_cancelled(void)
{
    begin(1);
    child[0] = child_new(0, waits_to_be_told, 0);
    began = 1;
    run(child[0]);
    model_thread(runs, owner);
    model_thread(cancels, owner);
    model_join();
    all_is_over(1);
    model_assert(stopped == 1);
    model_assert(outcome_seen == -ETIME);
}

/* The body waits for a word of the scope's; it leaves, and comes to its end, while a child stops it. */
static weft_poll is_inside(struct person *p, weft_cx *cx)
{
    bool waits = weft__kin_body_begin(&home->kin, &p->waiter, cx->waker);

    if (waits) weft__kin_body_settle(&home->kin, &p->waiter);
    p->body = waits_at_the_end;
    return waits_at_the_end(p, cx);
}

static weft_poll sleeps_inside(struct person *p, weft_cx *cx)
{
    if (!p->waits && weft__kin_body_begin(&home->kin, &p->waiter, cx->waker)) {
        p->waits = true;
        return WEFT_PENDING;
    }
    if (!weft__kin_reason(&home->kin)) return WEFT_PENDING;
    if (p->waits) weft__kin_body_settle(&home->kin, &p->waiter);
    p->body = waits_at_the_end;
    return waits_at_the_end(p, cx);
}

static void with_a_body(weft_poll (*body)(struct person *, weft_cx *))
{
    begin(0);
    owner->body = body;
    child[0] = child_new(0, stops_the_scope, 0);
    began = 1;
    model_thread(runs, owner);
    model_thread(runs, child[0]);
    model_join();
    all_is_over(1);
    model_assert(outcome_seen == -ECANCELED);
}

static void body_leaves(void)
{
    with_a_body(is_inside);
}

static void body_sleeps(void)
{
    with_a_body(sleeps_inside);
}

/* What was written before the stop is there for who finds the reason by a look. */
static int before_stop;

static void writes_and_stops(void *arg)
{
    (void)arg;
    plain_write(&before_stop, 42);
    (void)weft__kin_stop(&home->kin, -ECANCELED, -ECANCELED);
}

static void looks(void *arg)
{
    (void)arg;
    if (weft__kin_reason(&home->kin)) model_assert(plain_read(&before_stop) == 42);
}

static void seen_by_a_look(void)
{
    begin(0);
    plain_write(&before_stop, 0);
    model_thread(writes_and_stops, NULL);
    model_thread(looks, NULL);
    model_join();
    run(owner);
    model_assert(homeless);
}

/* Two want room in a scope of one, and neither uses it; one is told to stop. */
static unsigned got_room;
static unsigned gave_up;

static void settle_hastily(struct weft__kin *kin, struct weft__waiter *waiter)
{
    lock(kin);
    (void)weft__waitlist_settle(&kin->list, waiter);
    unlock(kin);
}

static weft_poll wants_room(struct person *p, weft_cx *cx)
{
    if (cx->why) {
        gave_up++;
        if (model_mutant == TURN_NOT_PASSED_ON) {
            settle_hastily(&home->kin, &p->waiter);
        } else {
            weft__kin_room_settle(&home->kin, &p->waiter);
        }
        return WEFT_READY;
    }
    if (!weft__kin_room_poll(&home->kin, &p->waiter, cx->waker)) return WEFT_PENDING;
    got_room++;
    return WEFT_READY;
}

static void room_for_two(void)
{
    begin(0);
    got_room = 0;
    gave_up = 0;
    home->kin.limit = 1;
    model_assert(weft__kin_reserve(&home->kin));
    child[0] = child_new(0, ends_at_once, 0);
    struct person *first = person_new(wants_room, 1);
    struct person *second = person_new(wants_room, 0);
    run(first);
    run(second);
    model_thread(runs, child[0]);
    model_thread(cancels, first);
    model_join();
    model_assert(got_room + gave_up == 2);
    model_assert(got_room >= 1);
    began = 1;
    run(owner);
    all_is_over(1);
}

static const struct model_case cases[] = {
    {.name = "scope: two children end, the end frees the home", .run = two_end, .preemptions = 3, .weaken = true},
    {.name = "scope: stopped by a child", .run = stopped_by_a_child, .unbounded = true, .weaken = true},
    {.name = "scope: stopped while a child begins", .run = stopped_at_birth, .preemptions = 2, .weaken = true},
    {.name = "scope: a child that others know ends against a stop", .run = ends_against_a_stop, .preemptions = 3, .weaken = true},
    {.name = "scope: a child that nobody knows ends against a stop", .run = ends_unseen_against_a_stop, .unbounded = true, .weaken = true},
    {.name = "scope: a spawn against a stop", .run = spawned_against_a_stop, .preemptions = 3, .weaken = true},
    {.name = "scope: the owner is cancelled", .run = owner_is_cancelled, .unbounded = true, .weaken = true},
    {.name = "scope: the body leaves while it is told", .run = body_leaves, .unbounded = true, .weaken = true},
    {.name = "scope: the body sleeps, and is told", .run = body_sleeps, .unbounded = true, .weaken = true},
    {.name = "scope: a reason that is seen by a look", .run = seen_by_a_look, .unbounded = true, .weaken = true},
    {.name = "scope: room, and one who gives up", .run = room_for_two, .preemptions = 3, .weaken = true},
    {.name = "mutant: the last one counts without the lock", .run = two_end, .mutant = COUNTS_WITHOUT_THE_LOCK, .must_fail = true},
    {.name = "mutant: the end looks without the lock", .run = two_end, .mutant = LOOKS_WITHOUT_THE_LOCK, .must_fail = true},
    {.name = "mutant: children are cancelled behind the lock", .run = ends_unseen_against_a_stop, .unbounded = true, .mutant = CANCELS_BEHIND_THE_LOCK, .must_fail = true},
    {.name = "mutant: the reason is looked at before the child is added", .run = spawned_against_a_stop, .mutant = LOOKS_BEFORE_IT_ADDS, .must_fail = true},
    {.name = "mutant: a child is freed before it is unlinked", .run = ends_unseen_against_a_stop, .unbounded = true, .mutant = FREED_BEFORE_IT_IS_UNLINKED, .must_fail = true},
    {.name = "mutant: a child is counted before it is complete", .run = ends_against_a_stop, .mutant = COUNTED_BEFORE_IT_IS_COMPLETE, .must_fail = true},
    {.name = "mutant: who gives up keeps its turn", .run = room_for_two, .mutant = TURN_NOT_PASSED_ON, .must_fail = true},
};

static const struct model_spare spare[] = {
    {"task/state.h", "", "proven by model_state"},
    {"task/state.c", "", "proven by model_state"},
    {NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
    return model_main_with(argc, argv, cases, MODEL_COUNT(cases), spare);
}
