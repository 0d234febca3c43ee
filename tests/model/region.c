/* SPDX-License-Identifier: MIT
 *
 * Regions against who makes them ask, with the real tokens, wait list and state word: a cancel reaches a task that sleeps inside; one that leaves its region at that
 * moment is not touched any more, nor is a token that the woken side has ended; and whoever is told to stop sees what was written before the cancel.
 *
 * A task is one block: header, region, the region's leaf. Whoever gets the right to poll it polls it on the spot. Inside of the region it waits for `work`, a flag
 * that somebody else sets and wakes it for, or until it is told to stop.
 */
#define WEFT__WAKE_BATCH 1
#include "../harness/ending.h"
#include "sync/waitlist.c"
#include "task/here.c"
#include "task/join.c"
#include "task/region.c"
#include "task/state.c"
#include "task/waker.c"

/* What token.c stands on beyond these. */
#include "task/call.h"

int weft__run_from(weft_pollfn *poll, void *frame, const void *caller)
{
    (void)poll;
    (void)frame;
    (void)caller;
    return -EDEADLK; /* nobody calls */
}

int weft_cx_cancelled(weft_cx *cx)
{
    return cx->why;
}
#include "flow/token.c"

struct sleeper {
    struct weft_task task;
    struct weft__region outer;
    struct weft__region region;
    struct weft_token_wait outer_leaf;
    struct weft_token_wait leaf;
};

static struct sleeper *sleeper;
static weft_token *root;
static weft_token *token;        /* that the region is about; perhaps the root */
static _Atomic uint32_t work;    /* done: what is inside ends by itself */
static int before_cancel;        /* plain: written by who cancels */
static unsigned ended;
static int told;                 /* why it stopped; 0: its work was done */
static bool ends_token;          /* the task ends the token, and frees it */
static bool two_regions;

/* ---- broken twins ---- */

enum { HONEST, SETTLES_WITHOUT_LOCK, LEAVES_WITHOUT_LOCK, DOES_NOT_LOOK_AGAIN };

/* A leaf that goes by what it sees, and leaves the lock alone. */
static weft_poll hasty_wait_poll(void *frame, weft_cx *cx)
{
    struct weft_token_wait *f = frame;
    bool is_over = reason_look(token_of(f->token)) || (cx->why && model_mutant == LEAVES_WITHOUT_LOCK);

    if (!is_over) return weft__token_leaf_poll(frame, cx);
    f->weft__at = 0;
    return WEFT_READY;
}

static void run(struct sleeper *s);

static void push(void *unused, struct weft_task *task)
{
    (void)unused;
    run((struct sleeper *)(void *)task);
}

static void push_chain(void *unused, struct weft_task *first, struct weft_task *last, uint32_t count)
{
    (void)unused;
    (void)last;
    model_assert(count == 1);
    run((struct sleeper *)(void *)first);
}

static const struct weft__sched_ops ops = {.push = push, .push_chain = push_chain};
const struct weft__sched weft__sched = {.ops = &ops};

/* ---- the task ---- */

static weft_poll inside_poll(void *frame, weft_cx *cx)
{
    struct sleeper *s = frame;
    (void)s;
    if (load_acquire(&work)) { /* acquire: the test's own */
        told = 0;
        return WEFT_READY;
    }
    if (!cx->why) return WEFT_PENDING;
    told = cx->why;
    return WEFT_READY;
}

/* The poll of a block that does not look again when its leaf is over as it begins. */
static weft_poll poll_once(struct weft__region *region, struct sleeper *s, weft_cx *cx)
{
    int outer = cx->why;
    cx->why = look_at_all(region, cx);
    weft_poll answer = inside_poll(s, cx);
    cx->why = outer;
    if (answer == WEFT_PENDING) (void)begin_all(region, cx);
    return answer;
}

static void leave(struct sleeper *s, weft_cx *cx)
{
    weft__region_settle(&s->region, cx);
    if (two_regions) weft__region_settle(&s->outer, cx);
    if (model_mutant == HONEST) model_assert(s->leaf.weft__at == 0);
}

static void finish(struct sleeper *s)
{
    ended++;
    if (ends_token) {
        weft_token_done(token);
        model_free(token);
    }
    if (ending_alone(&s->task) != WEFT__STATE_FREE) return;
    weft__state_free(&s->task);
    model_free(s);
}

static void run(struct sleeper *s)
{
    weft_poll answer;
    do {
        uint64_t word = weft__state_begin_poll(&s->task);
        struct weft_cx cx = {.waker = weft__waker_of(&s->task), .why = weft__state_why(word)};
        answer = model_mutant == DOES_NOT_LOOK_AGAIN ? poll_once(&s->region, s, &cx)
                                                     : weft__regions_poll(&s->region, inside_poll, s, &cx);
        if (answer == WEFT_READY) {
            leave(s, &cx);
            finish(s);
            return;
        }
    } while (weft__state_end_poll(&s->task) == WEFT__STATE_REQUEUE);
}

/* ---- the threads ---- */

static void sleeps(void *arg)
{
    (void)arg;
    run(sleeper);
}

static void cancels_token(void *arg)
{
    plain_write(&before_cancel, 42);
    (void)weft_token_cancel(arg);
}

static void cancels_too(void *arg)
{
    (void)weft_token_cancel(arg);
}

/* Holds a reference: the task may end meanwhile. */
static void does_its_work(void *arg)
{
    struct sleeper *s = sleeper;
    (void)arg;
    store_release(&work, 1); /* release: the test's own */
    if (weft__state_claim(&s->task) == WEFT__STATE_ENQUEUE) run(s);
    if (weft__state_unref(&s->task) == WEFT__STATE_FREE) {
        weft__state_free(&s->task);
        model_free(s);
    }
}

static void cancels_task(void *arg)
{
    struct sleeper *s = sleeper;
    (void)arg;
    if (weft__state_cancel_for(&s->task, -ETIME) == WEFT__STATE_ENQUEUE) run(s);
    if (weft__state_unref(&s->task) == WEFT__STATE_FREE) {
        weft__state_free(&s->task);
        model_free(s);
    }
}

static void region_of(struct weft__region *region, struct weft_token_wait *leaf, weft_token *t)
{
    bool hasty = model_mutant == SETTLES_WITHOUT_LOCK || model_mutant == LEAVES_WITHOUT_LOCK;
    *leaf = (struct weft_token_wait){.token = t};
    weft__region_init(region, hasty ? hasty_wait_poll : weft__token_leaf_poll, leaf, -ECANCELED, false);
}

static void set_up(uint32_t references, bool child_token)
{
    root = model_alloc(sizeof(*root));
    weft_token_init(root, NULL);
    token = root;
    if (child_token) {
        token = model_alloc(sizeof(*token));
        weft_token_init(token, root);
    }
    sleeper = model_alloc(sizeof(*sleeper));
    weft__state_init(&sleeper->task, references);
    region_of(&sleeper->region, &sleeper->leaf, token);
    store_relaxed(&work, 0); /* relaxed: nobody else is there yet */
    plain_write(&before_cancel, 0);
    ended = 0;
    told = 1;
    ends_token = false;
    two_regions = false;
}

static void tear_down(void)
{
    model_join();
    model_assert(ended == 1);
    if (!ends_token) {
        if (token != root) {
            weft_token_done(token);
            model_free(token);
        }
    }
    if (!ends_token || token != root) {
        weft_token_done(root);
        model_free(root);
    }
}

/* ---- the cases ---- */

/* However the two meet, the sleeper is told, and sees what came before the cancel. */
static void cancel_reaches_it(void)
{
    set_up(0, false);
    model_thread(sleeps, NULL);
    model_thread(cancels_token, token);
    model_join();
    model_assert(told == -ECANCELED);
    tear_down();
}

static weft_poll looks_poll(void *frame, weft_cx *cx)
{
    (void)frame;
    if (!cx->why) return WEFT_PENDING;
    model_assert(plain_read(&before_cancel) == 42);
    return WEFT_READY;
}

/* Told by a look alone, without the lock: what was written before is there. */
static void looks(void *arg)
{
    struct weft_cx cx = {.waker = weft__waker_of(&sleeper->task)};
    (void)arg;
    cx.why = weft_token_reason(token);
    (void)looks_poll(sleeper, &cx);
}

static void told_by_a_look(void)
{
    set_up(0, false);
    model_thread(looks, NULL);
    model_thread(cancels_token, token);
    model_join();
    run(sleeper);
    model_assert(told == -ECANCELED);
    tear_down();
}

/* It sleeps inside; its work is done, and it leaves, while the token is cancelled. */
static void leaves_against_cancel(void)
{
    set_up(1, false);
    run(sleeper);
    model_thread(does_its_work, NULL);
    model_thread(cancels_token, token);
    model_join();
    model_assert(told == 0 || told == -ECANCELED);
    tear_down();
}

/* The token is the task's own: told by it, the task ends and frees it. */
static void woken_side_ends_the_token(void)
{
    set_up(0, false);
    ends_token = true;
    model_thread(sleeps, NULL);
    model_thread(cancels_token, token);
    model_join();
    model_assert(told == -ECANCELED);
    model_assert(ended == 1);
}

/* The same of a child, whose parent is cancelled: nobody comes back to the child. */
static void woken_side_ends_a_child(void)
{
    set_up(0, true);
    ends_token = true;
    run(sleeper);
    model_thread(cancels_token, root);
    tear_down();
    model_assert(told == -ECANCELED);
}

/* The child's region is left, and the child ended, while its parent is cancelled. */
static void child_leaves_against_cancel(void)
{
    set_up(1, true);
    ends_token = true;
    run(sleeper);
    model_thread(does_its_work, NULL);
    model_thread(cancels_token, root);
    tear_down();
}

/* The task's own cancel, for a deadline, against the token's: the outermost answers, if it was there. */
static void task_and_token(void)
{
    set_up(1, false);
    run(sleeper);
    model_thread(cancels_task, NULL);
    model_thread(cancels_token, token);
    model_join();
    model_assert(told == -ETIME || told == -ECANCELED);
    tear_down();
}

/* Two regions, one in the other, cancelled at once. */
static void two_at_once(void)
{
    set_up(0, true);
    two_regions = true;
    region_of(&sleeper->outer, &sleeper->outer_leaf, root);
    sleeper->region.outer = &sleeper->outer;
    model_thread(sleeps, NULL);
    model_thread(cancels_token, token);
    model_thread(cancels_too, root);
    model_join();
    model_assert(told == -ECANCELED);
    tear_down();
}

static const struct model_case cases[] = {
    {.name = "region: a cancel reaches who sleeps inside", .run = cancel_reaches_it, .unbounded = true, .weaken = true},
    {.name = "region: told by a look", .run = told_by_a_look, .unbounded = true, .weaken = true},
    {.name = "region: left against a cancel", .run = leaves_against_cancel, .unbounded = true, .weaken = true},
    {.name = "region: the woken side ends the token", .run = woken_side_ends_the_token, .unbounded = true, .weaken = true},
    {.name = "region: the woken side ends a child of it", .run = woken_side_ends_a_child, .unbounded = true, .weaken = true},
    {.name = "region: a child is left against its parent's cancel", .run = child_leaves_against_cancel, .unbounded = true, .weaken = true},
    {.name = "region: the task's cancel and the token's", .run = task_and_token, .unbounded = true, .weaken = true},
    {.name = "region: two regions, two cancels", .run = two_at_once, .preemptions = 2},
    {.name = "mutant: a leaf that is told settles without the lock", .run = leaves_against_cancel, .unbounded = true, .mutant = SETTLES_WITHOUT_LOCK, .must_fail = true},
    {.name = "mutant: a region is left without the lock", .run = leaves_against_cancel, .unbounded = true, .mutant = LEAVES_WITHOUT_LOCK, .must_fail = true},
    {.name = "mutant: a region that asks as it begins is not heard", .run = cancel_reaches_it, .unbounded = true, .mutant = DOES_NOT_LOOK_AGAIN, .must_fail = true},
};

static const struct model_spare spare[] = {
    {"task/state.h", "store_release(&task->state, word)", "for those who walk the registry: model_slab has that store"},
    {"task/state.h", "cas_acq_rel(&task->state, weft__state_claimed(word))", "what a poll leaves to the next, and a waker to the poll: model_state has both; here the lock carries them"},
    {"task/state.h", "fetch_and_acquire(&task->state, ~0x0004UL)", "the same"},
    {"task/state.c", "cas_acq_rel(&task->state, cancelled(word, flags))", "the same: model_state"},
    {NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
    return model_main_with(argc, argv, cases, MODEL_COUNT(cases), spare);
}
