/* SPDX-License-Identifier: MIT
 *
 * The barrier, proven: two meet, one leads, also if a third is cancelled at that moment; each sees what the other did before.
 */
#include "leaf.h"
#include "sync/barrier.c"

static weft_barrier *meeting;
static unsigned leaders;
static int before[3]; /* written by each before it comes */

enum { HONEST, STAYS_COUNTED, LEAVES_ALTHOUGH_MET };

static unsigned number_of(const struct actor *actor)
{
    for (unsigned i = 0; i < 3; i++)
        if (actors[i] == actor) return i;
    return 0;
}

static weft_poll leave_twin(struct weft_barrier_wait *f)
{
    weft_barrier *b = f->barrier;
    weft__leaf_lock(list_of(b));
    (void)weft__waitlist_settle(list_of(b), WEFT__LEAF_WAITER(f));
    if (model_mutant == LEAVES_ALTHOUGH_MET && b->weft__arrived > 0) b->weft__arrived--;
    weft__waitlist_unlock(list_of(b));
    return ends(f, -ECANCELED);
}

static weft_poll meets(struct actor *actor, weft_cx *cx)
{
    struct weft_barrier_wait *f = (void *)actor->frame;
    unsigned number = number_of(actor);
    if (!f->barrier) plain_write(&before[number], 1);
    f->barrier = meeting;
    weft_poll answer = model_mutant && cx->why && f->weft__at ? leave_twin(f) : weft_barrier_wait_poll(f, cx);
    if (answer == WEFT_PENDING) return WEFT_PENDING;
    if (f->ret < 0) {
        given_up++;
        return WEFT_READY;
    }
    got++;
    leaders += (unsigned)f->ret;
    return WEFT_READY;
}

static void begin(unsigned count, uint32_t references_of_0)
{
    actors_begin();
    leaders = 0;
    meeting = model_alloc(sizeof(*meeting));
    weft_barrier_init(meeting, 2);
    for (unsigned i = 0; i < count; i++) {
        plain_write(&before[i], 0);
        actors[i] = actor_new(meets, i == 0 ? references_of_0 : 0);
    }
}

static void end(void)
{
    model_assert(got == 2 * leaders);
    model_assert(meeting->weft__arrived == 0);
    weft_barrier_done(meeting);
    model_free(meeting);
}

static void two(void)
{
    begin(2, 0);
    model_thread(actor_begin, actors[0]);
    model_thread(actor_begin, actors[1]);
    model_join();
    model_assert(got == 2);
    model_assert(plain_read(&before[0]) + plain_read(&before[1]) == 2);
    end();
}

/* One waits and is cancelled while another comes: both have met, or the other waits for the third. */
static void cancel(void)
{
    begin(3, 1);
    actor_run(actors[0]);
    model_thread(actor_cancel, actors[0]);
    model_thread(actor_begin, actors[1]);
    model_join();
    model_assert(got + given_up == (got ? 2 : 1));
    actor_run(actors[2]); /* meets the one that waits, or waits itself */
    if (meeting->weft__arrived == 1) {
        actors[1] = actor_new(meets, 0);
        actor_run(actors[1]);
    }
    end();
}

static const struct model_case cases[] = {
    {.name = "barrier: two meet", .run = two, .unbounded = true},
    {.name = "barrier: one is cancelled", .run = cancel, .unbounded = true},
    {.name = "mutant: the cancelled one stays counted", .run = cancel, .unbounded = true, .mutant = STAYS_COUNTED, .must_fail = true},
    {.name = "mutant: one that has met says that it was cancelled", .run = cancel, .unbounded = true, .mutant = LEAVES_ALTHOUGH_MET, .must_fail = true},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
