/* SPDX-License-Identifier: MIT
 *
 * notify_actors - a bell, those who wait for it and those who ring, for model tests of it: with a lock that is nobody's, and with one that is lent.
 */
#ifndef MODEL_NOTIFY_ACTORS_H
#define MODEL_NOTIFY_ACTORS_H

#include "lent.h"
#include "leaf.h"
#include "sync/notify.c"

static weft_notify *bell;
static int written; /* before the ring */
static bool frees;

enum { HONEST, SWALLOWS_THE_RING, PASSES_ON_WHAT_WAS_FOR_ALL, RINGS_WITHOUT_KEEPING };

static weft_poll stop_twin(struct weft_notify_wait *f)
{
    bool had_turn = weft__waitlist_leave(&notify_of(f->notify)->list, WEFT__LEAF_WAITER(f));
    if (had_turn && model_mutant == PASSES_ON_WHAT_WAS_FOR_ALL) weft_notify_one(f->notify);
    return ends(f, -ECANCELED);
}

static weft_poll listens(struct actor *actor, weft_cx *cx)
{
    struct weft_notify_wait *f = (void *)actor->frame;
    bool twin = model_mutant == SWALLOWS_THE_RING || model_mutant == PASSES_ON_WHAT_WAS_FOR_ALL;
    f->notify = bell;
    weft_poll answer =
        twin && cx->why && f->weft__at ? stop_twin(f) : weft_notify_wait_poll(f, cx);
    if (answer == WEFT_PENDING) return WEFT_PENDING;
    if (f->ret < 0) {
        given_up++;
    } else {
        got++;
        model_assert(plain_read(&written) == 1);
        if (frees) model_free(bell);
    }
    return WEFT_READY;
}

static void begin(unsigned count, uint32_t references_of_0)
{
    actors_begin();
    bell = model_alloc(sizeof(*bell));
    weft_notify_init(bell);
    plain_write(&written, 0);
    frees = false;
    for (unsigned i = 0; i < count; i++)
        actors[i] = actor_new(listens, i == 0 ? references_of_0 : 0);
}

static void end(void)
{
    weft_notify_done(bell);
    model_free(bell);
}

static void rings(void *arg)
{
    (void)arg;
    plain_write(&written, 1);
    if (model_mutant == RINGS_WITHOUT_KEEPING) {
        (void)weft__waitlist_wake_one(&notify_of(bell)->list, &weft__sched);
    } else {
        weft_notify_one(bell);
    }
}

static void tells_all(void *arg)
{
    (void)arg;
    plain_write(&written, 1);
    (void)weft_notify_waiters(bell);
}

static void ring_against_wait(void)
{
    begin(1, 0);
    frees = true;
    lends(&notify_of(bell)->list);
    model_thread(actor_begin, actors[0]);
    model_thread(rings, NULL);
    model_join();
    model_assert(got == 1);
}

static void two_wait(void)
{
    begin(2, 1);
    actor_run(actors[0]);
    actor_run(actors[1]);
    lends(&notify_of(bell)->list);
}

static void ring_against_cancel(void)
{
    two_wait();
    model_thread(rings, NULL);
    model_thread(actor_cancel, actors[0]);
    model_join();
    model_assert(got == 1);
    if (given_up == 0) weft_notify_one(bell);
    model_assert(got + given_up == 2);
    end();
}

static void all_against_cancel(void)
{
    two_wait();
    model_thread(tells_all, NULL);
    model_thread(actor_cancel, actors[0]);
    model_join();
    model_assert(got + given_up == 2);
    model_assert(!notify_of(bell)->kept); /* nothing was passed on */
    end();
}

#endif
