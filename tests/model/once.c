/* SPDX-License-Identifier: MIT
 *
 * Once, proven: it is done by one at a time and once in all, those who wait see it or try themselves, whoever is cancelled or
 * fails meanwhile. And the cell over it: who finds its value without the lock sees what was made.
 */
#include "sync/once.c"
#include "holder.h"

static weft_once *the_once;
static weft_cell *cell;
static int made; /* the cell's value is its address */
static unsigned fails; /* so many times it fails */

weft_time weft_now(void)
{
    return 0;
}

enum { HONEST, SWALLOWS_ITS_TURN, FAILS_IN_SILENCE, VALUE_BEHIND_THE_MARK };

static void leaves(bool done)
{
    if (model_mutant == FAILS_IN_SILENCE && !done) {
        struct once *o = once_of(the_once);
        weft__leaf_lock(&o->list);
        store_release(&o->state, NEW);
        weft__waitlist_unlock(&o->list);
    } else {
        model_assert(weft_once_leave(the_once, done) == 0);
    }
}

static weft_poll swallow_twin(struct weft_once_enter *f)
{
    (void)weft__waitlist_leave(&once_of(f->once)->list, WEFT__LEAF_WAITER(f));
    return ends(f, -ECANCELED);
}

static void make(void)
{
    bool failed = fails > 0;
    if (failed) fails--;
    plain_write(&made, plain_read(&made) + (failed ? 0 : 1));
    leaves(!failed);
}

static weft_poll does(struct actor *actor, weft_cx *cx)
{
    struct weft_once_enter *f = (void *)actor->frame;
    f->once = the_once;
    cx->among = true; /* all have one name here */
    bool twin = model_mutant == SWALLOWS_ITS_TURN && cx->why && f->weft__at;
    weft_poll answer = twin ? swallow_twin(f) : weft_once_enter_poll(f, cx);
    if (answer == WEFT_PENDING) return WEFT_PENDING;
    if (f->ret < 0) {
        given_up++;
        return WEFT_READY;
    }
    got++;
    if (f->ret == 1) {
        make();
    } else {
        model_assert(plain_read(&made) == 1);
    }
    return WEFT_READY;
}

static void begin(unsigned count, unsigned failures, uint32_t references_of_0)
{
    actors_begin();
    the_once = model_alloc(sizeof(*the_once));
    plain_write(&made, 0);
    fails = failures;
    for (unsigned i = 0; i < count; i++)
        actors[i] = actor_new(does, i == 0 ? references_of_0 : 0);
}

static void end(unsigned count)
{
    model_join();
    model_assert(got + given_up == count);
    weft__leaf_done(&once_of(the_once)->list, "", NULL);
    model_free(the_once);
}

static void two(void)
{
    begin(2, 0, 0);
    model_thread(actor_begin, actors[0]);
    model_thread(actor_begin, actors[1]);
    end(2);
}

static void first_fails(void)
{
    begin(2, 1, 0);
    model_thread(actor_begin, actors[0]);
    model_thread(actor_begin, actors[1]);
    end(2);
}

static void leaves_failed(void *arg)
{
    (void)arg;
    leaves(false);
}

/* Somebody is at it and fails; two wait, the first is cancelled. */
static void cancel(void)
{
    begin(2, 0, 1);
    struct once *o = once_of(the_once);
    weft__leaf_lock(&o->list);
    model_assert(try_enter(o, NULL, false) == 1);
    weft__waitlist_unlock(&o->list);
    actor_run(actors[0]);
    actor_run(actors[1]);
    model_thread(leaves_failed, NULL);
    model_thread(actor_cancel, actors[0]);
    end(2);
    model_assert(plain_read(&made) == 1);
}

/* ---- the cell ---- */

static void cell_leave(void)
{
    if (model_mutant == VALUE_BEHIND_THE_MARK) {
        model_assert(weft_once_leave(&cell->weft__once, true) == 0);
        cell->weft__value = &made;
    } else {
        model_assert(weft_cell_leave(cell, &made) == 0);
    }
}

static weft_poll makes_it(struct actor *actor, weft_cx *cx)
{
    struct weft_cell_enter *f = (void *)actor->frame;
    f->cell = cell;
    model_assert(weft_cell_enter_poll(f, cx) == WEFT_READY);
    model_assert(f->ret == 1); /* nobody else enters */
    plain_write(&made, 1);
    cell_leave();
    return WEFT_READY;
}

/* Without the lock. Who has seen the mark sees the value, and what was made before. */
static void looks(void *arg)
{
    (void)arg;
    bool done = weft_once_is_done(&cell->weft__once);
    const int *value = weft_cell_get(cell);
    if (done) model_assert(value);
    if (value) model_assert(plain_read(value) == 1);
}

static void found_without_the_lock(void)
{
    actors_begin();
    cell = model_alloc(sizeof(*cell));
    plain_write(&made, 0);
    actors[0] = actor_new(makes_it, 0);
    model_thread(actor_begin, actors[0]);
    model_thread(looks, NULL);
    model_join();
    model_assert(weft_cell_get(cell) == &made);
    weft__leaf_done(&once_of(&cell->weft__once)->list, "", NULL);
    model_free(cell);
}

static const struct model_case cases[] = {
    {.name = "once: two come", .run = two, .preemptions = 4, .weaken = true},
    {.name = "once: the first fails", .run = first_fails, .preemptions = 3},
    {.name = "once: it failed, a waiter is cancelled", .run = cancel, .preemptions = 4},
    {.name = "cell: found without the lock", .run = found_without_the_lock, .unbounded = true, .weaken = true},
    {.name = "mutant: a cancelled turn is kept", .run = cancel, .preemptions = 4, .mutant = SWALLOWS_ITS_TURN, .must_fail = true},
    {.name = "mutant: a failure that wakes nobody", .run = first_fails, .mutant = FAILS_IN_SILENCE, .must_fail = true},
    {.name = "mutant: the value is stored behind the mark", .run = found_without_the_lock, .unbounded = true, .mutant = VALUE_BEHIND_THE_MARK, .must_fail = true},
};

static const struct model_spare spare[] = {LEAF_SPARE, {NULL, NULL, NULL}};

int main(int argc, char **argv)
{
    return model_main_with(argc, argv, cases, MODEL_COUNT(cases), spare);
}
