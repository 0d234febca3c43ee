/* SPDX-License-Identifier: MIT
 *
 * Places in the ring's table, proven: whoever closes a socket, at whatever moment of its PLACE, of its sends and of others who look after the port, has it out of the table when the
 * close returns; a send names a place only if its own socket is there; one that was refused sends on by its number; and a slot that is another's begins without.
 */
#include "uring_senders.h"

enum {
    LEAVES_NO_PLACE = 20,
    LEAVES_WHAT_IT_SEES, /* its PLACE is under way */
    SENDS_TOO_EARLY,     /* by a place that it has asked for */
};

/* It has none, as far as the close is told. */
static void overlook(struct weft__fdslot *of, uint32_t asked)
{
    struct weft__uring *u = port.own;
    struct weft__uring_slot *us = of->more;
    weft__uring_lock(u);
    if (!asked) us->placed = false;
    if (!us->to_submit) weft__uring_set_asked(us, weft__uring_asked(us) & ~(uint32_t)WEFT__URING_PLACE);
    weft__uring_unlock(u);
}

static void twin_del(struct weft__port *p, struct weft__fdslot *of)
{
    if (model_mutant == LEAVES_NO_PLACE) overlook(of, 0);
    if (model_mutant == LEAVES_WHAT_IT_SEES) overlook(of, WEFT__URING_PLACE);
    uring_del(p, of);
}

static ssize_t early_take(struct weft__fdslot *of, const struct weft__take *what,
                          struct weft__lesson *lesson)
{
    struct weft__uring *u = port.own;
    struct weft__uring_slot *us = of->more;
    ssize_t r = twin_take(of, what, lesson);
    weft__uring_lock(u);
    if (model_mutant == SENDS_TOO_EARLY && us->sends == OFTEN) us->placed = true;
    weft__uring_unlock(u);
    return r;
}

static void begin_placed(unsigned sends_wanted)
{
    places = 2;
    begin(sends_wanted, false);
    verbs.del = twin_del;
    verbs.take = early_take;
}

static void answers_late(void)
{
    model_lock(&kernel);
    post_late();
    model_unlock(&kernel);
}

/* Of the driver there is nobody left but its runtime. */
static void stop_placed(void)
{
    for (int i = 0; i < FILES; i++)
        model_assert(!has_place(FIRST_FD + i));
    finish(false);
    model_assert(load_relaxed(&driver.references) == 1); /* relaxed: one thread */
}

static void finish_placed(bool is_open)
{
    if (is_open) weft__driver_close(slot);
    (void)weft__port_turn(&port, WEFT__EVENTS_MAX, true); /* what was refused */
    answers_late();
    stop_placed();
}

static void closes_it(void *arg)
{
    weft__driver_close(arg);
    model_assert(!has_place(FIRST_FD));
}

static void sends_on(void)
{
    begin_placed(3);
    model_thread(sends_and_works, actor_of(0, 0));
    model_thread(robs, NULL);
    model_join();
    for (int i = 0; i < 3; i++)
        model_assert(answers[i] == 1);
    finish_placed(true);
}

static void closed_between(void)
{
    begin_placed(2);
    model_thread(sends_and_works, actor_of(0, 0));
    model_thread(closes_it, slot);
    model_join();
    model_assert(answers[1] == 1 || answers[1] == -EBADF);
    finish_placed(false);
}

static void closed_and_robbed(void)
{
    begin_placed(2);
    model_thread(sends_and_works, actor_of(0, 0));
    model_thread(closes_it, slot);
    model_thread(robs, NULL);
    model_join();
    finish_placed(false);
}

static void given_up_between(void)
{
    begin_placed(2);
    actors[0] = actor_of(1, 0);
    model_thread(sends_and_works, actors[0]);
    model_thread(actor_cancel, actors[0]);
    model_join();
    finish_placed(true);
}

/* ---- the kernel has no memory for a moment ---- */

static void closes_refused(void *arg)
{
    may_refuse = 1;
    weft__driver_close(arg);
}

/* Its place is left by whoever comes next. */
static void closed_in_need(void)
{
    begin_placed(2);
    model_thread(sends_and_works, actor_of(0, 0));
    model_thread(closes_refused, slot);
    model_join();
    finish_placed(false);
}

/* Nobody comes any more: the table goes, and with it what was to be left. */
static void stopped_in_need(void)
{
    begin_placed(2);
    model_thread(sends_and_works, actor_of(0, 0));
    model_join();
    may_refuse = 1;
    weft__driver_close(slot);
    may_refuse = 0;
    weft__driver_stop(&driver);
    stop_placed();
}

/* ---- another's ---- */

static struct weft__fdslot *_Atomic next; /* of the sender */

static weft_poll sends_and_goes_on(struct actor *actor, weft_cx *cx)
{
    struct sending *s = (void *)actor->frame;
    for (;;) {
        while (s->count < wanted)
            if (sends_one(s, cx) == WEFT_PENDING) return WEFT_PENDING;
        struct weft__fdslot *another = load_acquire(&next);
        if (!another || wanted == 3) break;
        s->slot = another;
        wanted = 3;
    }
    one_ends();
    return WEFT_READY;
}

/* Its slot is perhaps this one's. Not before the sender is inside: nobody uses what is closed. */
static void reopens(void *arg)
{
    struct weft__fdslot *first = arg;
    bool inside = load_relaxed(&first->users) & WEFT__USE_WRITER; /* relaxed, both: a look */
    if (!inside && load_relaxed(&to_end) > 0) return;
    closes_it(first);
    model_assert(weft__driver_add(&port, FIRST_FD + 1, &slot) == 0);
    slot->shape = WEFT__SHAPE_STREAM;
    model_lock(&kernel);
    model_assert(!place[slot->index]);
    model_unlock(&kernel);
    store_release(&next, slot);
}

static void reopened(void)
{
    store_relaxed(&next, NULL);
    begin_placed(1);
    model_thread(sends_and_works, actor_with(sends_and_goes_on, 0, 0));
    model_thread(reopens, slot);
    model_join();
    finish_placed(true);
}

static const struct model_case cases[] = {
    CASE("by a place", sends_on, 1),
    CASE("by a place, and closed", closed_between, 2),
    {.name = "send: by a place, closed while another looks after the port", .run = closed_and_robbed, .pct_depth = 4, .executions_max = 200000},
    CASE("by a place, given up", given_up_between, 1),
    CASE("by a place, closed, and its slot is another's", reopened, 1),
    CASE("by a place, closed while the kernel is without memory", closed_in_need, 1),
    CASE("by a place, closed without memory, and stopped", stopped_in_need, 2),
    MUTANT("its place is left to the kernel", closed_between, LEAVES_NO_PLACE),
    MUTANT("a place that is under way is left", closed_between, LEAVES_WHAT_IT_SEES),
    MUTANT("sends by a place that it has asked for", sends_on, SENDS_TOO_EARLY),
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
