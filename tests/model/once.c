/* SPDX-License-Identifier: MIT
 *
 * Once, proven: it is done by one at a time and once in all, those who wait see it or try themselves, whoever is cancelled or
 * fails meanwhile.
 */
#include "sync/once.c"
#include "holder.h"

static weft_once *the_once;
static int made;
static unsigned fails; /* so many times it fails */

weft_time weft_now(void)
{
    return 0;
}

enum { HONEST, SWALLOWS_ITS_TURN, FAILS_IN_SILENCE };

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

static const struct model_case cases[] = {
    {.name = "once: two come", .run = two, .preemptions = 4, .weaken = true},
    {.name = "once: the first fails", .run = first_fails, .preemptions = 3},
    {.name = "once: it failed, a waiter is cancelled", .run = cancel, .preemptions = 4},
    {.name = "mutant: a cancelled turn is kept", .run = cancel, .preemptions = 4, .mutant = SWALLOWS_ITS_TURN, .must_fail = true},
    {.name = "mutant: a failure that wakes nobody", .run = first_fails, .mutant = FAILS_IN_SILENCE, .must_fail = true},
};

static const struct model_spare spare[] = {LEAF_SPARE, {NULL, NULL, NULL}};

int main(int argc, char **argv)
{
    return model_main_with(argc, argv, cases, MODEL_COUNT(cases), spare);
}
